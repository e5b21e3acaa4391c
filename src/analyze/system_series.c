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

/* Where the column has no number in what is kept: its last one from before, else from a time in
 * between. */
static void carry(double *column, const bool *keep, size_t count)
{
	double last = NAN;

	for (size_t i = 0; i < count; i++)
		if (keep[i] && !isnan(column[i]))
			return;
	for (size_t i = 0; i < count; i++) {
		if (!isnan(column[i]))
			last = column[i];
		if (keep[i] && !isnan(last)) {
			column[i] = last;
			return;
		}
	}
}

static size_t which_to_keep(const struct series *series, int64_t interval_ns,
			    const struct recorded *recorded, bool *keep)
{
	size_t kept = 0, next = 0;

	for (size_t i = 0; i < series->count; i++) {
		int64_t from_ns = series->time_ns[i], to_ns = from_ns + interval_ns;
		const struct interval *pause;

		while (next < recorded->pause_count && recorded->pauses[next].end < to_ns)
			next++;
		pause = next < recorded->pause_count ? &recorded->pauses[next] : NULL;
		keep[i] = to_ns >= recorded->from_ns && from_ns <= recorded->to_ns;
		if (pause && pause->start <= from_ns &&
		    pause->end - pause->start > GAP_INTERVALS * interval_ns)
			keep[i] = false;
		kept += keep[i];
	}
	return kept;
}

void series_cut(struct series *series, int64_t interval_ns, const struct recorded *recorded)
{
	OWN(own_freep) bool *keep = mem_zero(series->count + 1);
	size_t kept = which_to_keep(series, interval_ns, recorded, keep), at = 0;

	if (!kept || kept == series->count)
		return;
	series->number = mem_alloc(kept * sizeof(*series->number));
	for (int m = 0; m < METRIC_COUNT; m++)
		if (series->col[m])
			carry(series->col[m], keep, series->count);
	for (size_t i = 0; i < series->count; i++) {
		if (!keep[i])
			continue;
		for (int m = 0; m < METRIC_COUNT; m++)
			if (series->col[m])
				series->col[m][at] = series->col[m][i];
		series->time_ns[at] = series->time_ns[i];
		series->number[at++] = i;
	}
	series->left_out = series->count - kept;
	series->count = kept;
}

void series_done(struct series *series)
{
	free(series->time_ns);
	free(series->number);
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
