/*
 * warped_clock.h - time that passes without waiting, for one test program.
 *
 * Include it in the test's one source file, call clock_warp() before the collector
 * begins; *ahead_ns is how far our clock is ahead. The child has the same page, and
 * the puppet the same clock.
 */
#pragma once

#include <criterion/criterion.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t *ahead_ns;

static inline void clock_warp(void)
{
	ahead_ns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(ahead_ns, MAP_FAILED);
}

/* In place of libc's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	long ret = syscall(SYS_clock_gettime, clock, now);

	if (ret || !ahead_ns || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
		return (int)ret;
	now->tv_sec += *ahead_ns / 1000000000;
	now->tv_nsec += *ahead_ns % 1000000000;
	if (now->tv_nsec >= 1000000000) {
		now->tv_nsec -= 1000000000;
		now->tv_sec++;
	}
	return 0;
}
