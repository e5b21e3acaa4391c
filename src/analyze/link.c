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

/* Of the fastest state that was seen: an idle link is slow to save power. */
static double link_gbps(const struct device_fact *fact)
{
	const struct metric_stats *gen = &fact->system.metric[METRIC_pcie_gen];
	const struct metric_stats *width = &fact->system.metric[METRIC_pcie_width];
	size_t known = sizeof(LANE_GBPS) / sizeof(*LANE_GBPS);

	if (!fact->has_system || !gen->count || !width->count || !(gen->max >= 1) ||
	    !(gen->max < (double)known) || !(width->max >= 1))
		return NAN;
	return LANE_GBPS[(size_t)gen->max] * width->max;
}

void link_facts(struct facts *facts)
{
	for (size_t i = 0; i < facts->copies.count; i++) {
		struct copy_fact *copy = &facts->copies.at[i];

		if ((copy->kind != COPY_HTOD && copy->kind != COPY_DTOH) ||
		    copy->device >= facts->devices.count)
			continue;
		copy->link_peak_gbps = link_gbps(&facts->devices.at[copy->device]);
		/* Faster than all that was seen of the link: it was never seen awake. */
		if (copy->gbps > copy->link_peak_gbps)
			copy->link_peak_gbps = NAN;
	}
}
