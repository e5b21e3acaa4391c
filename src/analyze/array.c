#include "analyze/array.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"

static const size_t HUGE_BYTES = (size_t)2 << 20;
/* Smaller arrays would waste more than they gain. */
static const size_t LARGE_BYTES = (size_t)8 << 20;

void *array_new(size_t bytes)
{
	size_t rounded = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	void *at;

	if (bytes < LARGE_BYTES || rounded < bytes)
		return mem_alloc(bytes);
	at = aligned_alloc(HUGE_BYTES, rounded);
	if (!at)
		return mem_alloc(bytes);
	/* An advice: that it is not taken changes nothing but speed. */
	(void)madvise(at, rounded, MADV_HUGEPAGE);
	return at;
}

void *array_zero(size_t bytes)
{
	void *at;

	if (bytes < LARGE_BYTES)
		return mem_zero(bytes);
	at = array_new(bytes);
	memset(at, 0, bytes);
	return at;
}

void *array_resize(void *old, size_t used_bytes, size_t bytes)
{
	void *at;

	if (bytes < LARGE_BYTES)
		return mem_resize(old, bytes);
	at = array_new(bytes);
	if (used_bytes)
		memcpy(at, old, used_bytes);
	free(old);
	return at;
}
