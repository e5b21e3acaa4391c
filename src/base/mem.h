/*
 * mem.h - memory.
 *
 * Ordinary allocation does not fail: the program stops with a message. A size
 * that came from a file goes through mem_array, which can fail. What lives and
 * dies together (everything of one import, say) goes into an arena.
 */
#pragma once

#include <stddef.h>

void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_zero(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_resize(void *old, size_t size) __attribute__((returns_nonnull));

/* Room for `count` things of `size` bytes, not cleared. NULL if that is more
 * than `limit` bytes, or if there is no memory. Release with free. */
void *mem_array(size_t count, size_t size, size_t limit);

/* A copy of `size` bytes, and one of a string. */
void *mem_copy(const void *from, size_t size) __attribute__((returns_nonnull));
char *mem_text(const char *text) __attribute__((returns_nonnull));

/* Blocks are released together; all-zero is an empty arena. */
struct arena {
	struct arena_block *blocks;
	size_t used_bytes; /* handed out in all */
};

/* 16-byte aligned, not cleared; valid until arena_done. */
void *arena_alloc(struct arena *arena, size_t size);
/* A copy with a NUL behind it. */
char *arena_text(struct arena *arena, const char *at, size_t len);
char *arena_printf(struct arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void arena_done(struct arena *arena);
