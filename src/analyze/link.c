/*
 * What the link between host and device can carry, where samples of the board say
 * which link it is: copies are told as a share of it.
 */
#include "analyze/system.h"

#include <math.h>

#include "model/metric.h"

/* GB/s of one lane and direction behind the line code: 2.5, 5 GT/s with 8b/10b, 8, 16,
 * 32 GT/s with 128b/130b, 64 GT/s in flits of 242 of 256 bytes (PCI Express Base
 * Specification). Headers of packets come off that: about a tenth. */
static const double LANE_GBPS[] = { NAN,
				    2.5 / 8 * 8 / 10,
				    5.0 / 8 * 8 / 10,
				    8.0 / 8 * 128 / 130,
				    16.0 / 8 * 128 / 130,
				    32.0 / 8 * 128 / 130,
				    64.0 / 8 * 242 / 256 };

/* The highest that was seen, if no more is possible; else NAN. */
static double at_its_most(const struct metric_stats *seen, const struct metric_stats *most)
{
	return seen->count && most->count && seen->max >= most->max ? seen->max : NAN;
}

/* Of the fastest state that card and slot have, where samples show that the link gets
 * there: an idle link is slow to save power, and samples may have caught it at rest. */
static double link_gbps(const struct device_fact *fact)
{
	const struct metric_stats *metric = fact->system.metric;
	double gen = at_its_most(&metric[METRIC_pcie_gen], &metric[METRIC_pcie_gen_max]);
	double width = at_its_most(&metric[METRIC_pcie_width], &metric[METRIC_pcie_width_max]);
	size_t known = sizeof(LANE_GBPS) / sizeof(*LANE_GBPS);

	if (!fact->has_system || !(gen >= 1) || !(gen < (double)known) || !(width >= 1))
		return NAN;
	return LANE_GBPS[(size_t)gen] * width;
}

void link_facts(struct facts *facts)
{
	for (size_t i = 0; i < facts->copies.count; i++) {
		struct copy_fact *copy = &facts->copies.at[i];

		if ((copy->kind != COPY_HTOD && copy->kind != COPY_DTOH) ||
		    copy->device >= facts->devices.count)
			continue;
		copy->link_peak_gbps = link_gbps(&facts->devices.at[copy->device]);
		/* Faster than the link: then what was said of it is wrong. */
		if (copy->gbps > copy->link_peak_gbps)
			copy->link_peak_gbps = NAN;
	}
}
