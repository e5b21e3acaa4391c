/*
 * threads.h - what the threads of profiled processes are at, from outside.
 *
 * Where the kernel records context switches for us (perf_ring.h), states are exact
 * and go with samples of the functions on a core; /proc then only says which
 * system call a long wait is in. Elsewhere:
 *
 * Looks at /proc/PID/task/TID some 50 times a second: running, runnable (it waits
 * for a core), waiting or uninterruptible in which system call, stopped. No
 * ptrace, no signal, nothing in the target. Each look becomes a RANGE_STATE range
 * in the thread's lane, from this look to the next: its start is what was seen,
 * the rest is what was not looked at.
 *
 * Of threads that run Python the functions are read at the same rate (python.h).
 *
 * Threads are those that the session has lanes for (they made calls), and the
 * first of each process. Looks get rarer where they would cost more than half a
 * percent of a core.
 *
 * Times: CLOCK_MONOTONIC, as the sources'. Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "model/sink.h"

struct threads;

struct threads_opts {
	bool switches;  /* states from context switches, where the kernel lets us */
	bool python;    /* the Python functions they run, where we may read them */
	int samples_hz; /* with these, samples of where threads are on a core; 0: none */
};

/* `root`: "" or where a tree with proc/ lies, for tests. Borrowed, as the sink.
 * `opts` NULL: looks only. */
struct threads *threads_new(const char *root, const struct threads_opts *opts, struct sink *sink);
void threads_free(struct threads *threads);
DEFINE_OWNED(threads, threads_free);

/* Looks, if it is time to. Fails as the sink does. */
int threads_tick(struct threads *threads, int64_t now_ns, struct err *err);
/* The looks that are not in the sink yet; the threads are no longer watched. */
int threads_finish(struct threads *threads, int64_t now_ns, struct err *err);

/* Why there are only looks, in one line; NULL: nothing was refused. */
const char *threads_complaint(const struct threads *threads);
/* Why no Python functions, in one line; NULL: they are there, or it is no Python. */
const char *threads_python_complaint(const struct threads *threads);
/* Process `i` of those that were watched, and its Python as python_open has it. False: there are
 * no more. */
bool threads_python(const struct threads *threads, size_t i, int64_t *ret_pid,
		    uint32_t *ret_version);
