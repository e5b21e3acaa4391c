#include "analyze/order.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/array.h"
#include "base/mem.h"
#include "base/vec.h"

struct sorter {
	const int64_t *start;
	const int64_t *end;
};

static inline bool in_order(const struct sorter *by, uint32_t a, uint32_t b)
{
	if (by->start[a] != by->start[b])
		return by->start[a] < by->start[b];
	return !by->end || by->end[a] >= by->end[b];
}

/* Merge the sorted runs [0, middle) and [middle, count) of `from` into `to`. */
static void merge(const struct sorter *by, const uint32_t *from, size_t middle, size_t count,
		  uint32_t *to)
{
	size_t i = 0, j = middle, out = 0;

	while (i < middle && j < count)
		to[out++] = in_order(by, from[i], from[j]) ? from[i++] : from[j++];
	memcpy(to + out, from + i, (middle - i) * sizeof(*to));
	out += middle - i;
	memcpy(to + out, from + j, (count - j) * sizeof(*to));
}

void order_sort(uint32_t *list, size_t count, const int64_t *start, const int64_t *end)
{
	struct sorter by = { start, end };
	VEC(size_t) runs = { 0 }; /* where they end */
	uint32_t *from = list, *to, *spare;

	for (size_t i = 1; i < count; i++)
		if (!in_order(&by, list[i - 1], list[i]))
			*VEC_ADD(&runs) = i;
	if (!runs.count)
		return;
	*VEC_ADD(&runs) = count;
	spare = array_new(count * sizeof(*spare));
	to = spare;
	while (runs.count > 1) {
		size_t at = 0, merged = 0;
		uint32_t *swap = from;

		for (size_t r = 0; r < runs.count; r += 2) {
			size_t middle = runs.at[r];
			size_t stop = r + 1 < runs.count ? runs.at[r + 1] : middle;

			merge(&by, from + at, middle - at, stop - at, to + at);
			at = stop;
			runs.at[merged++] = stop;
		}
		runs.count = merged;
		from = to;
		to = swap;
	}
	if (from != list)
		memcpy(list, from, count * sizeof(*list));
	free(spare);
	VEC_DONE(&runs);
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
	int64_t rank = (int64_t)ceil(q * (double)quantiles->count), seen = 0;

	if (!quantiles->count)
		return INT64_MIN;
	if (rank < 1)
		rank = 1;
	if (rank > quantiles->count)
		rank = quantiles->count;
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
