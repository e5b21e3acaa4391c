/*
 * clock.h - what a clock of this machine says, in nanoseconds.
 *
 * Spans and deadlines go by the steady clock, which nobody sets. A clock that
 * can't be read, as that of a process that ended, says 0.
 */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	if (clock_gettime(clock, &now) < 0)
		return 0;
	return (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline int64_t clock_steady_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}
