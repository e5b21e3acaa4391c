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
