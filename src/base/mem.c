#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t ARENA_BLOCK_BYTES = 64 * 1024;

struct arena_block {
	struct arena_block *next;
	size_t used;
	size_t room;
	_Alignas(16) char bytes[];
};

static void out_of_memory(size_t size)
{
	(void)fprintf(stderr, "sonde: out of memory (%zu bytes asked for)\n", size);
	abort();
}

void *mem_alloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		out_of_memory(size);
	return p;
}

void *mem_zero(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		out_of_memory(size);
	return p;
}

void *mem_resize(void *old, size_t size)
{
	void *p = realloc(old, size ? size : 1);

	if (!p)
		out_of_memory(size);
	return p;
}

void *mem_array(size_t count, size_t size, size_t limit)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > limit)
		return NULL;
	return malloc(bytes ? bytes : 1);
}

void *mem_copy(const void *from, size_t size)
{
	void *p = mem_alloc(size);

	if (size)
		memcpy(p, from, size);
	return p;
}

char *mem_text(const char *text)
{
	return mem_copy(text, strlen(text) + 1);
}

void *arena_alloc(struct arena *arena, size_t size)
{
	struct arena_block *block = arena->blocks;
	size_t need = (size + 15) & ~(size_t)15;

	if (!block || block->room - block->used < need) {
		size_t room = need > ARENA_BLOCK_BYTES ? need : ARENA_BLOCK_BYTES;

		block = mem_alloc(sizeof(*block) + room);
		block->used = 0;
		block->room = room;
		block->next = arena->blocks;
		arena->blocks = block;
	}
	block->used += need;
	arena->used_bytes += need;
	return block->bytes + block->used - need;
}

char *arena_text(struct arena *arena, const char *at, size_t len)
{
	char *copy = arena_alloc(arena, len + 1);

	if (len)
		memcpy(copy, at, len);
	copy[len] = 0;
	return copy;
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list args;
	va_list again;
	int len;
	char *text;

	va_start(args, fmt);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	text = arena_alloc(arena, (size_t)(len < 0 ? 0 : len) + 1);
	text[0] = 0;
	if (len > 0)
		(void)vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);
	return text;
}

void arena_done(struct arena *arena)
{
	struct arena_block *block = arena->blocks;

	while (block) {
		struct arena_block *next = block->next;

		free(block);
		block = next;
	}
	memset(arena, 0, sizeof(*arena));
}
