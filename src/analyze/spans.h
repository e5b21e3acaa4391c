/*
 * spans.h - start and length of many events, in 32 bits each.
 *
 * Ten million events with both in 64 bits are 80 MB more to fill and to go through.
 * Events lie nearly in order of time: a start is told from a base that 256 of them
 * have in common. What does not fit (hardly any event lasts SPAN_FAR ns, 3.2 s, or is
 * so far from its neighbours) is a number in a list instead. All-zero is empty.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define SPAN_FAR UINT32_C(0xc0000000)
enum { SPAN_BLOCK_BITS = 8 };

struct spans {
	uint32_t *from, *ns;
	int64_t *base; /* by block */
	VEC(int64_t) far;
};

/* Room for `room` events, of which `used` are there. */
void spans_room(struct spans *spans, size_t used, size_t room);
void spans_done(struct spans *spans);

static inline int64_t spans_start(const struct spans *spans, size_t i)
{
	uint32_t from = spans->from[i];

	return __builtin_expect(from < SPAN_FAR, 1) ? spans->base[i >> SPAN_BLOCK_BITS] + from
						    : spans->far.at[from - SPAN_FAR];
}

static inline int64_t spans_ns(const struct spans *spans, size_t i)
{
	uint32_t ns = spans->ns[i];

	return __builtin_expect(ns < SPAN_FAR, 1) ? ns : spans->far.at[ns - SPAN_FAR];
}

static inline int64_t spans_end(const struct spans *spans, size_t i)
{
	return spans_start(spans, i) + spans_ns(spans, i);
}

/* `ns` is not negative. The first of a block to be put says where the block is. */
void spans_put(struct spans *spans, size_t i, int64_t start, int64_t ns);
/* The same of `count` events whose starts and lengths are far from the ends of int64. */
void spans_put_many(struct spans *spans, size_t i, const int64_t *start, int64_t shift,
		    const int64_t *ns, size_t count);
