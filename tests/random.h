/*
 * random.h - numbers that are the same on every machine: a seed that fails can be
 * run again.
 */
#pragma once

#include <stdint.h>

static uint64_t random_state = 1;

static inline uint64_t random_step(void)
{
	return random_state = random_state * 6364136223846793005u + 1442695040888963407u;
}

/* In 0..1, without 1. */
static inline double random_unit(void)
{
	return (double)(random_step() >> 11) / 9007199254740992.0;
}

static inline int64_t random_below(int64_t limit)
{
	return (int64_t)(random_step() >> 33) % limit;
}
