#include "base/interval.h"

#include <stdlib.h>

static int by_start(const void *a, const void *b)
{
	const struct interval *x = a;
	const struct interval *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

size_t interval_union(struct interval *at, size_t count)
{
	size_t out = 0;
	int sorted = 1;

	for (size_t i = 1; i < count && sorted; i++)
		sorted = at[i - 1].start <= at[i].start;
	if (!sorted)
		qsort(at, count, sizeof(*at), by_start);
	for (size_t i = 0; i < count; i++) {
		if (at[i].end <= at[i].start)
			continue;
		if (out && at[i].start <= at[out - 1].end) {
			if (at[i].end > at[out - 1].end)
				at[out - 1].end = at[i].end;
			continue;
		}
		at[out++] = at[i];
	}
	return out;
}

int64_t interval_length(const struct interval *at, size_t count)
{
	int64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += at[i].end - at[i].start;
	return sum;
}

int64_t interval_overlap(const struct interval *a, size_t a_count, const struct interval *b,
			 size_t b_count)
{
	int64_t sum = 0;

	for (size_t i = 0, j = 0; i < a_count && j < b_count;) {
		int64_t start = a[i].start > b[j].start ? a[i].start : b[j].start;
		int64_t end = a[i].end < b[j].end ? a[i].end : b[j].end;

		if (end > start)
			sum += end - start;
		if (a[i].end < b[j].end)
			i++;
		else
			j++;
	}
	return sum;
}
