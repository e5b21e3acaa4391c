/*
 * perf_watch.h - perf on one thread, for a price that nobody notices.
 *
 * A switch that is recorded costs the thread's core some 0.8 us, with the timer of
 * the samples some 1.7 us (measured: doc/inject.md). A thread that switches often
 * would pay more than half a percent: it first loses the samples, then the records
 * as well, and gets another chance ten seconds later. Short bursts are let through.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "collect/perf_ring.h"
#include "collect/perf_thread.h"

struct perf_watch_opts {
	int64_t tid;
	uint32_t lane;
	struct sink *sink;        /* borrowed, as the stack */
	struct perf_stack *stack; /* with samples */
	int samples_hz;           /* 0: none */
};

struct perf_watch;

/* Fails as perf_ring_open. */
int perf_watch_new(const struct perf_watch_opts *opts, int64_t now_ns,
		   struct perf_watch **ret_watch, struct err *err);
void perf_watch_free(struct perf_watch *watch);
DEFINE_OWNED(perf_watch, perf_watch_free);

/* Take what the kernel wrote. 0: the thread has ended; fails as the sink does. */
int perf_watch_feed(struct perf_watch *watch, int64_t now_ns, struct err *err);

/* States come from switches now; else somebody has to look. */
bool perf_watch_exact(const struct perf_watch *watch);
/* It was too dear for a time. */
bool perf_watch_limited(const struct perf_watch *watch);

/* While exact: what a long wait is for, as perf_thread_wants_look and _looked. */
bool perf_watch_wants_look(const struct perf_watch *watch, int64_t before_ns);
int perf_watch_looked(struct perf_watch *watch, uint32_t state, int64_t seen_ns, struct err *err);

/* Put what lasts up to now: no more comes. */
int perf_watch_finish(struct perf_watch *watch, int64_t now_ns, struct err *err);

/* Records since the last call: taken, and those that found no room. */
int64_t perf_watch_seen(struct perf_watch *watch);
int64_t perf_watch_lost(struct perf_watch *watch);
