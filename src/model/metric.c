#include "model/metric.h"

#include <string.h>

static const struct {
	const char *name;
	const char *unit;
	const char *what;
} metrics[METRIC_COUNT] = {
#define X(id, unit, what) [METRIC_##id] = { #id, unit, what },
	METRIC_LIST(X)
#undef X
};

const char *metric_name(enum metric metric)
{
	return metrics[metric].name;
}

const char *metric_unit(enum metric metric)
{
	return metrics[metric].unit;
}

const char *metric_what(enum metric metric)
{
	return metrics[metric].what;
}

bool metric_possible(enum metric metric, double value)
{
	static const struct {
		const char *unit;
		double least, most;
	} ranges[] = {
		{ "%", 0, 100 },   { "C", -100, 1000 }, { "W", 0, 1e5 },
		{ "MHz", 0, 1e5 }, { "B", 0, 1e15 },    { "B/s", 0, 1e15 },
		{ "us", 0, 1e15 }, { "lanes", 0, 64 },  { "", 0, 64 },
	};

	/* A fan may turn faster than its 100 %. */
	if (metric == METRIC_fan_pct)
		return value >= 0 && value <= 1000;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		if (!strcmp(metric_unit(metric), ranges[i].unit))
			return value >= ranges[i].least && value <= ranges[i].most;
	}
	/* Counts: as far as a double has every one. */
	return value >= 0 && value <= 9007199254740992.0;
}
