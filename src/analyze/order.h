/*
 * order.h - orders and order statistics of long arrays that are nearly sorted.
 *
 * Chunks come in order of start, a stream or a thread at a time: what has to be
 * sorted is a few ascending runs. A natural merge sort costs one pass for each
 * doubling of runs and nothing for a sorted array.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Sort indices in `list` by start[i], then (if `end` is given) longest first;
 * stable. Needs room for another `count` indices while it runs. */
void order_sort(uint32_t *list, size_t count, const int64_t *start, const int64_t *end);

/* Sort values, ascending. */
void order_values(int64_t *at, size_t count);

/*
 * Quantiles of non-negative values (negative ones count as 0): exact up to
 * QUANTILES_EXACT of them, beyond that within 1/2048 of the value, in 1 MiB.
 * All-zero is empty.
 */
enum { QUANTILES_EXACT = 1 << 16 };

struct quantiles {
	int64_t *exact;
	uint64_t *bins;
	int64_t count;
};

void quantiles_add(struct quantiles *quantiles, int64_t value);
/* The value at rank ceil(q * count), 0 < q <= 1; INT64_MIN of none. */
int64_t quantiles_get(struct quantiles *quantiles, double q);
void quantiles_done(struct quantiles *quantiles);
