#include "analyze/bound.h"

#include <math.h>
#include <string.h>

void metric_table_add(struct metric_table *table, const char *name, const char *unit, double value)
{
	*VEC_ADD(&table->rows) = (struct metric_row){ name, unit, value };
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct metric_row *)a)->name, ((const struct metric_row *)b)->name);
}

void metric_table_sort(struct metric_table *table)
{
	if (table->rows.count)
		qsort(table->rows.at, table->rows.count, sizeof(*table->rows.at), by_name);
}

void metric_table_done(struct metric_table *table)
{
	VEC_DONE(&table->rows);
}

const struct metric_row *metric_row_find(const struct metric_table *table, const char *name)
{
	struct metric_row key = { .name = name };
	const struct metric_row *row = NULL;

	if (table->rows.count)
		row = bsearch(&key, table->rows.at, table->rows.count, sizeof(key), by_name);
	return row && isfinite(row->value) ? row : NULL;
}

/* ncu's words for time, and prefixes as it scales with --print-units auto:
 * decimal ones, also for bytes (32,768 B is shown as 32.77 Kbyte). */
/* What one `unit` is in base units: 1000 for "us" and "Kbyte". */
static double metric_unit_factor(const char *unit)
{
	static const struct {
		const char *unit;
		double factor;
	} words[] = {
		{ "ns", 1 },
		{ "nsecond", 1 },
		{ "us", 1e3 },
		{ "usecond", 1e3 },
		{ "ms", 1e6 },
		{ "msecond", 1e6 },
		{ "s", 1e9 },
		{ "second", 1e9 },
		{ "sec", 1e9 },
		{ "cycle/nsecond", 1e9 },
		{ "cycle/usecond", 1e6 },
		{ "cycle/msecond", 1e3 },
		{ "cycle/ns", 1e9 },
		{ "cycle/us", 1e6 },
		{ "Mhz", 1e6 },
		{ "Ghz", 1e9 },
		{ "Khz", 1e3 },
	};
	static const char prefixes[] = "KMGTP";
	static const double factors[] = { 1e3, 1e6, 1e9, 1e12, 1e15 };
	const char *prefix;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(unit, words[i].unit))
			return words[i].factor;
	}
	prefix = unit[0] ? strchr(prefixes, unit[0]) : NULL;
	return prefix && unit[1] >= 'a' && unit[1] <= 'z' ? factors[prefix - prefixes] : 1;
}

static double row_value(const struct metric_row *row)
{
	return row ? row->value * metric_unit_factor(row->unit) : NAN;
}

double metric_find_value(const struct metric_table *table, const char *name)
{
	return row_value(metric_row_find(table, name));
}

const struct metric_row *metric_row_first(const struct metric_table *table,
					  const char *const *names)
{
	const struct metric_row *row = NULL;

	while (!row && *names)
		row = metric_row_find(table, *names++);
	return row;
}

double metric_first(const struct metric_table *table, const char *const *names)
{
	return row_value(metric_row_first(table, names));
}
