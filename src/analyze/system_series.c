#include "analyze/system.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/order.h"
#include "base/mem.h"

static void grow(struct series *series)
{
	size_t room = series->room ? 2 * series->room : 64;

	series->time_ns = mem_resize(series->time_ns, room * sizeof(*series->time_ns));
	for (int m = 0; m < METRIC_COUNT; m++)
		if (series->col[m])
			series->col[m] = mem_resize(series->col[m], room * sizeof(double));
	series->room = room;
}

void series_add(struct series *series, const struct sample *sample, int64_t time_ns)
{
	if (series->count == series->room)
		grow(series);
	for (int m = 0; m < METRIC_COUNT; m++) {
		double value = NAN;

		if (sample_get(sample, (enum metric)m, &value) && !series->col[m]) {
			series->col[m] = mem_alloc(series->room * sizeof(double));
			for (size_t i = 0; i < series->count; i++)
				series->col[m][i] = NAN;
		}
		/* Infinite values come from hostile files only. */
		if (series->col[m])
			series->col[m][series->count] = isfinite(value) ? value : NAN;
	}
	series->time_ns[series->count++] = time_ns;
}

struct place {
	int64_t time_ns;
	size_t index;
};

static int by_time(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns > y->time_ns ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

static bool is_sorted(const struct series *series)
{
	for (size_t i = 1; i < series->count; i++)
		if (series->time_ns[i] < series->time_ns[i - 1])
			return false;
	return true;
}

void series_sort(struct series *series)
{
	OWN(own_freep) struct place *places = NULL;
	OWN(own_freep) double *values = NULL;

	if (is_sorted(series))
		return;
	places = mem_alloc(series->count * sizeof(*places));
	values = mem_alloc(series->count * sizeof(*values));
	for (size_t i = 0; i < series->count; i++)
		places[i] = (struct place){ series->time_ns[i], i };
	qsort(places, series->count, sizeof(*places), by_time);
	for (size_t i = 0; i < series->count; i++)
		series->time_ns[i] = places[i].time_ns;
	for (int m = 0; m < METRIC_COUNT; m++) {
		if (!series->col[m])
			continue;
		memcpy(values, series->col[m], series->count * sizeof(*values));
		for (size_t i = 0; i < series->count; i++)
			series->col[m][i] = values[places[i].index];
	}
}

/* The last number before place `at`, where the column has none in [at, end). */
static void carry(double *column, size_t at, size_t end)
{
	for (size_t i = at; i < end; i++)
		if (!isnan(column[i]))
			return;
	for (size_t i = at; i > 0; i--) {
		if (isnan(column[i - 1]))
			continue;
		column[at] = column[i - 1];
		return;
	}
}

void series_cut(struct series *series, int64_t from_ns, int64_t to_ns)
{
	size_t at = 0, end = series->count;

	while (at < end && series->time_ns[at] < from_ns)
		at++;
	while (end > at && series->time_ns[end - 1] > to_ns)
		end--;
	if (at == end)
		return;
	for (int m = 0; m < METRIC_COUNT; m++) {
		if (!series->col[m])
			continue;
		carry(series->col[m], at, end);
		memmove(series->col[m], series->col[m] + at, (end - at) * sizeof(double));
	}
	memmove(series->time_ns, series->time_ns + at, (end - at) * sizeof(*series->time_ns));
	series->before = at;
	series->after = series->count - end;
	series->count = end - at;
}

void series_done(struct series *series)
{
	free(series->time_ns);
	for (int m = 0; m < METRIC_COUNT; m++)
		free(series->col[m]);
	memset(series, 0, sizeof(*series));
}

/* The numbers, sorted, at the front; how many. */
static size_t numbers_of(double *values, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i]))
			values[kept++] = values[i];
	if (kept)
		qsort(values, kept, sizeof(*values), order_doubles);
	return kept;
}

static double middle(const double *sorted, size_t count)
{
	if (!count)
		return NAN;
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double median_of(double *values, size_t count)
{
	return middle(values, numbers_of(values, count));
}

void stats_of(double *values, size_t count, struct metric_stats *ret)
{
	double sum = 0, last = NAN;
	size_t kept;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i]))
			last = values[i];
	kept = numbers_of(values, count);
	if (!kept)
		return;
	for (size_t i = 0; i < kept; i++)
		sum += values[i];
	ret->count = (int64_t)kept;
	ret->min = values[0];
	ret->max = values[kept - 1];
	ret->mean = sum / (double)kept;
	ret->median = middle(values, kept);
	/* Nearest rank: a value that was measured. */
	ret->p95 = values[(size_t)ceil(0.95 * (double)kept) - 1];
	ret->last = last;
}
