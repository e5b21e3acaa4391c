/*
 * array.h - arrays of a hundred megabytes.
 *
 * Half the time of a first pass over fresh memory goes into page faults, one
 * for each 4 KiB; arrays of some size ask for huge pages, 2 MiB each. Where
 * there are none nothing changes. Release with free.
 */
#pragma once

#include <stddef.h>

/* Room for `bytes`, of which the first `used_bytes` are those of `old`, which goes. */
void *array_resize(void *old, size_t used_bytes, size_t bytes) __attribute__((returns_nonnull));
/* Not cleared, and cleared. */
void *array_new(size_t bytes) __attribute__((malloc, returns_nonnull));
void *array_zero(size_t bytes) __attribute__((malloc, returns_nonnull));
