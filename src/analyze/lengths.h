/*
 * lengths.h - how long each of many events lasted, in 32 bits an event.
 *
 * Ten million events with their ends in 64 bits are 40 MB more to fill and to go
 * through. Hardly any lasts LENGTH_LONGER ns (3.2 s); of those that do, the 32 bits
 * are a number in a list, so events can be moved without it. All-zero is empty.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define LENGTH_LONGER UINT32_C(0xc0000000)

struct lengths {
	uint32_t *at; /* the owner sees to room */
	VEC(int64_t) longer;
};

/* For lengths_put. */
uint32_t lengths_longer(struct lengths *lengths, int64_t ns);

/* `ns` is not negative. */
static inline void lengths_put(struct lengths *lengths, size_t i, int64_t ns)
{
	lengths->at[i] = ns < LENGTH_LONGER ? (uint32_t)ns : lengths_longer(lengths, ns);
}

static inline int64_t lengths_get(const struct lengths *lengths, size_t i)
{
	uint32_t ns = lengths->at[i];

	return __builtin_expect(ns < LENGTH_LONGER, 1) ? ns
						       : lengths->longer.at[ns - LENGTH_LONGER];
}

void lengths_done(struct lengths *lengths);
