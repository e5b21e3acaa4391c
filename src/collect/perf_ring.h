/*
 * perf_ring.h - when one thread got on a core and off it, and where it was.
 *
 * perf_event_open on one thread, and the ring of memory that the kernel writes its
 * records into. Hides the system call and the layout of the records. Nothing in
 * the target is touched; each of its switches costs the kernel a record.
 *
 * One event a thread, not one a core that threads inherit: the cost follows the
 * threads that matter, not the machine or the workers that a program starts.
 *
 * Times are CLOCK_MONOTONIC. Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"

enum { PERF_FRAMES_MAX = 32 };

enum perf_record_kind {
	PERF_ON_CORE,
	PERF_OFF_CORE,  /* it waits for something */
	PERF_PREEMPTED, /* it could go on, and another has the core */
	PERF_SAMPLED,
	PERF_LOST, /* the ring was full: `lost` records are missing before this one */
};

struct perf_record {
	enum perf_record_kind kind;
	int64_t time_ns; /* not of PERF_LOST */
	uint64_t lost;
	size_t frames; /* of PERF_SAMPLED: user addresses, innermost first */
	uint64_t frame[PERF_FRAMES_MAX];
};

struct perf_opts {
	bool switches;
	int samples_hz; /* of its time on a core; 0: none */
};

struct perf_ring;

/* ERR_UNSUPPORTED: the kernel does not let us; the line says why. ERR_MISSING: the
 * thread is gone. */
int perf_ring_open(int64_t tid, const struct perf_opts *opts, struct perf_ring **ret_ring,
		   struct err *err);
void perf_ring_close(struct perf_ring *ring);
DEFINE_OWNED(perf_ring, perf_ring_close);

/* The next record; false: there is none yet. */
bool perf_ring_next(struct perf_ring *ring, struct perf_record *ret_record);

/* The thread has ended: what the ring holds is all. */
bool perf_ring_ended(const struct perf_ring *ring);

/* A ring over memory that a test filled: a struct perf_event_mmap_page, and at
 * `data` a power of two of bytes. Not unmapped. */
struct perf_ring *perf_ring_over(void *page, void *data, size_t bytes);
