/*
 * order.h - orders and order statistics of long arrays that are nearly sorted.
 *
 * Chunks come in order of start, a stream or a thread at a time: what has to be
 * sorted is a few ascending runs. A natural merge sort costs one pass for each
 * doubling of runs and nothing for a sorted array.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/spans.h"

/* Sort indices of spans by start, and with `longest` those of one start by length,
 * longest first; stable. Needs room for another `count` indices while it runs. */
void order_sort(uint32_t *list, size_t count, const struct spans *spans, bool longest);

/* A part of an array, [first, last). */
struct order_part {
	size_t first, last;
};

/* What of the events [first, last) is not where sorting puts it, by start, then longest
 * first: parts that are sorted each for itself. The caller frees *ret_parts. */
size_t order_parts(const struct spans *spans, size_t first, size_t last,
		   struct order_part **ret_parts);

/* Sort values, ascending. */
void order_values(int64_t *at, size_t count);

/* For qsort: doubles, ascending; none of them NaN. */
int order_doubles(const void *a, const void *b);

/*
 * Quantiles of non-negative values (negative ones count as 0): exact up to
 * QUANTILES_EXACT of them, beyond that within 1/2048 of the value, in 1 MiB.
 * All-zero is empty.
 */
enum { QUANTILES_EXACT = 1 << 16 };

struct quantiles {
	int64_t *exact;
	uint32_t *bins; /* no more events than 32 bits have ids for */
	int64_t count;  /* in `exact`; the bins are counted when they are asked */
};

/* For quantiles_add. Bins: values below 2^11 one each; above, 2^11 for each power
 * of two. */
enum {
	QUANTILES_BIN_BITS = 11,
	QUANTILES_BINS = (64 - QUANTILES_BIN_BITS + 1) << QUANTILES_BIN_BITS
};

/* Without a branch: lengths of kernels are on both sides of any. */
static inline uint32_t quantiles_bin(int64_t value)
{
	uint64_t v = (uint64_t)value;
	uint32_t shift = 63 - QUANTILES_BIN_BITS -
			 (uint32_t)__builtin_clzll(v | UINT64_C(1) << QUANTILES_BIN_BITS);

	return (shift << QUANTILES_BIN_BITS) + (uint32_t)(v >> shift);
}

void quantiles_add_first(struct quantiles *quantiles, int64_t value);

static inline void quantiles_add(struct quantiles *quantiles, int64_t value)
{
	if (value < 0)
		value = 0;
	if (!quantiles->bins) {
		quantiles_add_first(quantiles, value);
		return;
	}
	quantiles->bins[quantiles_bin(value)]++;
}

/* The value at rank ceil(q * count), 0 < q <= 1; INT64_MIN of none. */
int64_t quantiles_get(struct quantiles *quantiles, double q);
void quantiles_done(struct quantiles *quantiles);
