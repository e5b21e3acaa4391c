/*
 * totals.h - what a trace holds, counted when it is made and again in the
 * profile: sums wrap, order does not matter.
 */
#pragma once

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#define TOTALS_LIST(X)     \
	X(objects)         \
	X(intervals)       \
	X(kernels)         \
	X(kernel_ns)       \
	X(start_sum)       \
	X(duration_sum)    \
	X(correlation_sum) \
	X(name_sum)        \
	X(marker_sum)      \
	X(arrows)          \
	X(instants)

struct totals {
#define X(field) uint64_t field;
	TOTALS_LIST(X)
#undef X
};

/* FNV-1a, 64 bits. */
static inline uint64_t totals_hash(const char *at, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)at[i]) * 0x100000001b3u;
	return hash;
}

static inline int totals_write(const struct totals *totals, const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return 1;
#define X(field) (void)fprintf(file, #field " %" PRIu64 "\n", totals->field);
	TOTALS_LIST(X)
#undef X
	return fclose(file) != 0;
}
