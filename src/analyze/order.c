#include "analyze/order.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/array.h"
#include "base/mem.h"
#include "base/vec.h"

struct sorter {
	const struct spans *spans;
	bool longest;
};

static inline bool in_order(const struct sorter *by, uint32_t a, uint32_t b)
{
	int64_t x = spans_start(by->spans, a), y = spans_start(by->spans, b);

	if (x != y)
		return x < y;
	return !by->longest || spans_ns(by->spans, a) >= spans_ns(by->spans, b);
}

/* Room for the part of a run that has to move. */
struct spare {
	uint32_t *at;
	size_t room;
};

/* Merge the sorted runs [0, middle) and [middle, count) in place. Where runs
 * follow each other but for their ends, as chunks of one stream do, only the
 * ends are touched. */
static void merge(const struct sorter *by, uint32_t *list, size_t middle, size_t count,
		  struct spare *spare)
{
	size_t first = 0, last = count, high = middle, low = middle, left = 0, right, out, moved;

	/* What of the left run is behind something of the right one ... */
	while (first < high) {
		size_t at = first + (high - first) / 2;

		if (in_order(by, list[at], list[middle]))
			first = at + 1;
		else
			high = at;
	}
	/* ... and what of the right run is in front of something of the left one. */
	while (low < last) {
		size_t at = low + (last - low) / 2;

		if (in_order(by, list[middle - 1], list[at]))
			last = at;
		else
			low = at + 1;
	}
	moved = middle - first;
	if (moved > spare->room) {
		free(spare->at);
		spare->at = array_new(moved * sizeof(*spare->at));
		spare->room = moved;
	}
	if (moved)
		memcpy(spare->at, list + first, moved * sizeof(*list));
	for (right = middle, out = first; left < moved && right < last;)
		list[out++] = in_order(by, spare->at[left], list[right]) ? spare->at[left++]
									 : list[right++];
	if (left < moved)
		memcpy(list + out, spare->at + left, (moved - left) * sizeof(*list));
}

void order_sort(uint32_t *list, size_t count, const struct spans *spans, bool longest)
{
	struct sorter by = { spans, longest };
	struct spare spare = { 0 };
	VEC(size_t) runs = { 0 }; /* where they end */

	for (size_t i = 1; i < count; i++)
		if (!in_order(&by, list[i - 1], list[i]))
			*VEC_ADD(&runs) = i;
	if (!runs.count)
		return;
	*VEC_ADD(&runs) = count;
	while (runs.count > 1) {
		size_t at = 0, merged = 0;

		for (size_t r = 0; r < runs.count; r += 2) {
			size_t middle = runs.at[r];
			size_t stop = r + 1 < runs.count ? runs.at[r + 1] : middle;

			if (stop > middle)
				merge(&by, list + at, middle - at, stop - at, &spare);
			at = stop;
			runs.at[merged++] = stop;
		}
		runs.count = merged;
	}
	free(spare.at);
	VEC_DONE(&runs);
}

/* The first of the ascending events [first, last) that is not before `event`. */
static size_t first_after(const struct sorter *by, size_t first, size_t last, size_t event,
			  bool or_equal)
{
	while (first < last) {
		size_t middle = first + (last - first) / 2;
		bool before = or_equal ? in_order(by, (uint32_t)middle, (uint32_t)event)
				       : !in_order(by, (uint32_t)event, (uint32_t)middle);

		if (before)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/* The least of each run and all behind it, by run; runs: where they begin, and the end. */
static size_t *least_behind(const struct sorter *by, const size_t *runs, size_t count)
{
	size_t *least = mem_alloc(count * sizeof(*least));

	least[count - 1] = runs[count - 1];
	for (size_t r = count - 1; r-- > 0;)
		least[r] = in_order(by, (uint32_t)runs[r], (uint32_t)least[r + 1]) ? runs[r]
										   : least[r + 1];
	return least;
}

size_t order_parts(const struct spans *spans, size_t first, size_t last,
		   struct order_part **ret_parts)
{
	struct sorter by = { spans, true };
	VEC(size_t) runs = { 0 }; /* where ascending events begin, and the end */
	VEC(struct order_part) parts = { 0 };
	size_t most = first, from = first, *least;

	*VEC_ADD(&runs) = first;
	for (size_t i = first + 1; i < last; i++)
		if (!in_order(&by, (uint32_t)i - 1, (uint32_t)i))
			*VEC_ADD(&runs) = i;
	*VEC_ADD(&runs) = last;
	least = least_behind(&by, runs.at, runs.count - 1);
	/* Of each run stays what is behind all before it and before all behind it. */
	for (size_t r = 0; runs.count > 2 && r + 1 < runs.count; r++) {
		size_t end = runs.at[r + 1], stays = runs.at[r], until = end;

		if (r)
			stays = first_after(&by, stays, end, most, false);
		if (end < last)
			until = first_after(&by, stays, end, least[r + 1], true);
		if (r && (stays < until || end == last))
			*VEC_ADD(&parts) = (struct order_part){ from, stays };
		if (stays < until)
			from = until;
		if (!r || in_order(&by, (uint32_t)most, (uint32_t)end - 1))
			most = end - 1;
	}
	free(least);
	VEC_DONE(&runs);
	*ret_parts = parts.at;
	return parts.count;
}

int order_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void order_values(int64_t *at, size_t count)
{
	size_t i = 1;

	while (i < count && at[i - 1] <= at[i])
		i++;
	if (i < count)
		qsort(at, count, sizeof(*at), by_value);
}

static int64_t bin_value(uint32_t bin)
{
	int shift = (int)(bin >> QUANTILES_BIN_BITS) - 1;
	uint64_t mantissa = bin & ((1 << QUANTILES_BIN_BITS) - 1);

	if (shift < 0)
		return (int64_t)mantissa;
	return (int64_t)((mantissa | 1 << QUANTILES_BIN_BITS) << shift);
}

void quantiles_add_first(struct quantiles *quantiles, int64_t value)
{
	if (!quantiles->exact)
		quantiles->exact = mem_alloc(QUANTILES_EXACT * sizeof(int64_t));
	if (quantiles->count == QUANTILES_EXACT) {
		quantiles->bins = mem_zero(QUANTILES_BINS * sizeof(*quantiles->bins));
		for (int64_t i = 0; i < quantiles->count; i++)
			quantiles->bins[quantiles_bin(quantiles->exact[i])]++;
		quantiles_add(quantiles, value);
		return;
	}
	quantiles->exact[quantiles->count++] = value;
}

int64_t quantiles_get(struct quantiles *quantiles, double q)
{
	int64_t count = quantiles->bins ? 0 : quantiles->count, seen = 0, rank;

	for (uint32_t bin = 0; quantiles->bins && bin < QUANTILES_BINS; bin++)
		count += quantiles->bins[bin];
	if (!count)
		return INT64_MIN;
	rank = (int64_t)ceil(q * (double)count);
	if (rank < 1)
		rank = 1;
	if (rank > count)
		rank = count;
	if (!quantiles->bins) {
		order_values(quantiles->exact, (size_t)quantiles->count);
		return quantiles->exact[rank - 1];
	}
	for (uint32_t bin = 0; bin < QUANTILES_BINS; bin++) {
		seen += (int64_t)quantiles->bins[bin];
		if (seen >= rank)
			return bin_value(bin);
	}
	return INT64_MIN;
}

void quantiles_done(struct quantiles *quantiles)
{
	free(quantiles->exact);
	free(quantiles->bins);
	memset(quantiles, 0, sizeof(*quantiles));
}
