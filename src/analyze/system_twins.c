/*
 * A card against the others of its name in the same recording.
 *
 * No limit says which clock is low: the others do. A card stands out when it is
 * further from the median of all than the others' scatter explains. The scatter
 * is the median distance from the median, which a few odd cards don't move.
 */
#include <math.h>

#include "analyze/system.h"
#include "base/mem.h"

/* With two cards nobody says which is the odd one. */
static const size_t TWINS_LEAST = 3;

/* "modified z-score above 3.5": Iglewicz and Hoaglin, How to Detect and Handle
 * Outliers, 1993. 1.4826 makes of a median distance a standard deviation. */
static const double OUTLIER_Z = 3.5;
static const double MAD_TO_SIGMA = 1.4826;

/* So much of the median is a difference that anybody would notice: identical
 * readings of the others make any other look far away. */
static const double NOTICED_SHARE = 0.03;

/* Fewer samples under load say nothing of a card. */
static const int64_t LOAD_SAMPLES_LEAST = 10;

struct compared {
	enum metric metric;
	bool under_load;
	double least; /* differences below are the sensor's */
};

/* Utilisation and memory differ with the work, not with the card. */
static const struct compared COMPARED[] = {
	{ METRIC_sm_mhz, true, 30 },       { METRIC_power_w, true, 20 },
	{ METRIC_temp_c, true, 8 },        { METRIC_power_limit_w, false, 1 },
	{ METRIC_max_sm_mhz, false, 1 },   { METRIC_pcie_gen_max, false, 0.5 },
	{ METRIC_pcie_width, false, 0.5 }, { METRIC_mem_total_bytes, false, 1 << 28 },
};

static double value_of(const struct device_fact *fact, const struct compared *what)
{
	const struct system_facts *system = &fact->system;

	if (!fact->has_system)
		return NAN;
	if (!what->under_load)
		return system->metric[what->metric].count ? system->metric[what->metric].median
							  : NAN;
	if (system->load_samples < LOAD_SAMPLES_LEAST)
		return NAN;
	switch (what->metric) {
	case METRIC_sm_mhz:
		return system->load_sm_mhz;
	case METRIC_power_w:
		return system->load_power_w;
	case METRIC_temp_c:
		return system->load_temp_c;
	default:
		return NAN;
	}
}

static uint32_t name_of(const struct facts *facts, size_t device)
{
	return facts->session->devices.at[facts->devices.at[device].device].name;
}

/* Values of the cards that bear `name`; how many are known. */
static size_t gather(const struct facts *facts, uint32_t name, const struct compared *what,
		     double *values)
{
	size_t count = 0;

	for (size_t i = 0; i < facts->devices.count; i++) {
		double value = value_of(&facts->devices.at[i], what);

		if (name_of(facts, i) == name && !isnan(value))
			values[count++] = value;
	}
	return count;
}

static void compare(struct facts *facts, uint32_t name, const struct compared *what, double *values)
{
	size_t count = gather(facts, name, what, values);
	double median, sigma, least;

	if (count < TWINS_LEAST)
		return;
	median = median_of(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] = fabs(values[i] - median);
	sigma = MAD_TO_SIGMA * median_of(values, count);
	least = fmax(what->least, NOTICED_SHARE * fabs(median));
	for (size_t i = 0; i < facts->devices.count; i++) {
		double value = value_of(&facts->devices.at[i], what);

		if (name_of(facts, i) != name || isnan(value) || fabs(value - median) < least ||
		    fabs(value - median) <= OUTLIER_Z * sigma)
			continue;
		*VEC_ADD(&facts->twins) = (struct twin_fact){
			.device = facts->devices.at[i].device,
			.metric = what->metric,
			.under_load = what->under_load,
			.value = value,
			.median = median,
			.spread = sigma,
			.twins = (int64_t)count,
		};
	}
}

void system_twins(struct facts *facts)
{
	OWN(own_freep) double *values = mem_alloc((facts->devices.count + 1) * sizeof(*values));

	for (size_t i = 0; i < facts->devices.count; i++) {
		bool first = true;

		/* Once a name, at its first card. */
		for (size_t k = 0; k < i; k++)
			first &= name_of(facts, k) != name_of(facts, i);
		for (size_t k = 0;
		     first && name_of(facts, i) && k < sizeof(COMPARED) / sizeof(*COMPARED); k++)
			compare(facts, name_of(facts, i), &COMPARED[k], values);
	}
}
