/*
 * perf_thread.h - one thread's states and stacks as ranges, from what perf records.
 *
 * Between two switches a thread is "running", "waiting" or "runnable" (another has
 * its core): RANGE_STATE_EXACT, from the one to the other. From a wake-up to the
 * core it still counts as waiting. A wait gets the name of its system call,
 * "waiting: futex", where somebody looked at /proc during it. Samples of where
 * it is on a core become RANGE_CPU_STACK.
 *
 * Where records are lost no state is told until the next one.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "collect/perf_ring.h"
#include "collect/perf_stack.h"
#include "model/sink.h"

struct perf_thread;

/* Takes the ring. `stack` may be NULL: no samples. Both it and the sink are borrowed. */
struct perf_thread *perf_thread_new(struct perf_ring *ring, uint32_t lane, struct sink *sink,
				    struct perf_stack *stack);
void perf_thread_free(struct perf_thread *thread);
DEFINE_OWNED(perf_thread, perf_thread_free);

/* Take what the kernel wrote, up to `most` records. The count; fails as the sink does. */
int perf_thread_take(struct perf_thread *thread, size_t most, struct err *err);

/* It waits, since before `before_ns`, and nobody has said in what. */
bool perf_thread_wants_look(const struct perf_thread *thread, int64_t before_ns);
/* What a look at it saw: "waiting: futex" (string). Counts only if the thread did
 * not move meanwhile: call perf_thread_take in front. Also how the state is
 * known before the first record. */
void perf_thread_looked(struct perf_thread *thread, uint32_t state, int64_t seen_ns);

/* The thread has ended. */
bool perf_thread_ended(const struct perf_thread *thread);

/* Put into the sink what lasts since before `before_ns`, up to now. */
int perf_thread_settle(struct perf_thread *thread, int64_t before_ns, int64_t now_ns,
		       struct err *err);

/* Records that found no room, since the last call. */
int64_t perf_thread_lost(struct perf_thread *thread);
