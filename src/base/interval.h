/*
 * interval.h - sets of half-open time intervals [start, end).
 *
 * A set is an array sorted by start whose members neither overlap nor touch:
 * interval_union makes one. Lengths are ns, but nothing here knows that.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct interval {
	int64_t start;
	int64_t end;
};

/* Sort and merge in place; empty and reversed ones vanish. Returns the count. */
size_t interval_union(struct interval *at, size_t count);
/* Sum of lengths. */
int64_t interval_length(const struct interval *at, size_t count);
