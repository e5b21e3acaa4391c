/*
 * capped.h - sums and differences that stop at the ends of int64.
 *
 * Files may be hostile: what they say stays ordered instead of wrapping round.
 */
#pragma once

#include <stdint.h>

static inline int64_t capped_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN + 1;
	return sum;
}

static inline int64_t capped_sub(int64_t a, int64_t b)
{
	int64_t difference;

	if (__builtin_sub_overflow(a, b, &difference))
		return a < b ? INT64_MIN + 1 : INT64_MAX;
	return difference;
}
