/*
 * What the link between host and device can carry, where samples of the board say
 * which link it is: copies are told as a share of it.
 */
#include "analyze/system.h"

#include <math.h>

#include "know/pcie.h"
#include "model/metric.h"

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

	if (!fact->has_system || !(width >= 1))
		return NAN;
	return pcie_lane_bytes_s(gen) / 1e9 * width;
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
