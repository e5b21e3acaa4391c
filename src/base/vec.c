#include "base/vec.h"

#include <stdint.h>

#include "base/mem.h"

void *vec_reserve(void *at, size_t *room, size_t wanted, size_t size)
{
	size_t bytes;

	/* Past SIZE_MAX there is no memory either: let mem_resize say so. */
	if (__builtin_mul_overflow(wanted, size, &bytes))
		bytes = SIZE_MAX / 2;
	*room = wanted;
	return mem_resize(at, bytes);
}

void *vec_grow(void *at, size_t *room, size_t size)
{
	return vec_reserve(at, room, *room < 8 ? 8 : *room + *room / 2, size);
}
