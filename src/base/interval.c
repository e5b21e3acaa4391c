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
