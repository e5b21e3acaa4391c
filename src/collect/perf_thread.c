#include "collect/perf_thread.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

struct perf_thread {
	struct perf_ring *ring;
	struct sink *sink;
	struct perf_stack *stack;
	uint32_t lane;
	uint32_t state; /* string; 0: not known */
	bool waits, looked;
	int64_t since_ns;
	uint32_t leaf; /* of the last sample, as long as the thread is on the core; 0: none */
	struct buf chain;
	int64_t sampled_ns;
	int64_t lost;
};

struct perf_thread *perf_thread_new(struct perf_ring *ring, uint32_t lane, struct sink *sink,
				    struct perf_stack *stack)
{
	struct perf_thread *thread = mem_zero(sizeof(*thread));

	thread->ring = ring;
	thread->lane = lane;
	thread->sink = sink;
	thread->stack = stack;
	return thread;
}

void perf_thread_free(struct perf_thread *thread)
{
	if (!thread)
		return;
	perf_ring_close(thread->ring);
	buf_done(&thread->chain);
	free(thread);
}

static int put_state(struct perf_thread *thread, int64_t until_ns, struct err *err)
{
	struct range range = { .kind = RANGE_STATE_EXACT,
			       .lane = thread->lane,
			       .start_ns = thread->since_ns,
			       .end_ns = until_ns,
			       .name = thread->state };

	if (!thread->state || until_ns <= thread->since_ns)
		return 0;
	return sink_range(thread->sink, &range, err);
}

static int put_stack(struct perf_thread *thread, int64_t until_ns, struct err *err)
{
	struct range range = { .kind = RANGE_CPU_STACK,
			       .lane = thread->lane,
			       .start_ns = thread->sampled_ns,
			       .end_ns = until_ns,
			       .name = thread->leaf };

	if (!thread->leaf)
		return 0;
	range.detail = session_detail(thread->sink->session, thread->chain.at, thread->chain.len);
	thread->leaf = 0;
	return sink_range(thread->sink, &range, err);
}

static int switched(struct perf_thread *thread, const struct perf_record *record, struct err *err)
{
	static const char *const names[] = { [PERF_ON_CORE] = "running",
					     [PERF_OFF_CORE] = "waiting",
					     [PERF_PREEMPTED] = "runnable" };

	if (put_state(thread, record->time_ns, err) < 0 ||
	    put_stack(thread, record->time_ns, err) < 0)
		return err->code;
	thread->state = intern_text(thread->sink->session->strings, names[record->kind]);
	thread->since_ns = record->time_ns;
	thread->waits = record->kind == PERF_OFF_CORE;
	thread->looked = false;
	return 0;
}

static int sampled(struct perf_thread *thread, const struct perf_record *record, struct err *err)
{
	struct buf leaf = { 0 };

	if (put_stack(thread, record->time_ns, err) < 0)
		return err->code;
	buf_clear(&thread->chain);
	buf_text(&thread->chain, "stack=");
	if (thread->stack)
		perf_stack_name(thread->stack, record->frame, record->frames, record->time_ns,
				&leaf, &thread->chain);
	thread->leaf = leaf.len ? session_string(thread->sink->session, leaf.at, leaf.len) : 0;
	thread->sampled_ns = record->time_ns;
	buf_done(&leaf);
	return 0;
}

int perf_thread_take(struct perf_thread *thread, size_t most, struct err *err)
{
	struct perf_record record;
	size_t taken = 0;
	int ret = 0;

	while (ret >= 0 && taken < most && perf_ring_next(thread->ring, &record)) {
		taken++;
		if (record.kind == PERF_SAMPLED) {
			ret = sampled(thread, &record, err);
		} else if (record.kind == PERF_LOST) {
			thread->lost += record.lost < INT64_MAX ? (int64_t)record.lost : 0;
			thread->state = 0;
			thread->leaf = 0;
			thread->waits = false;
		} else {
			ret = switched(thread, &record, err);
		}
	}
	return ret < 0 ? ret : (int)taken;
}

bool perf_thread_wants_look(const struct perf_thread *thread, int64_t before_ns)
{
	return !thread->state || (thread->waits && !thread->looked && thread->since_ns < before_ns);
}

void perf_thread_looked(struct perf_thread *thread, uint32_t state, int64_t seen_ns)
{
	const char *text = session_text(thread->sink->session, state);
	bool waits = !strncmp(text, "waiting", 7) || !strncmp(text, "uninterruptible", 15);

	if (!thread->state) {
		thread->since_ns = seen_ns;
		thread->waits = waits;
		thread->state = state;
	} else if (thread->waits && waits) {
		thread->state = state;
	}
	thread->looked = true;
}

bool perf_thread_ended(const struct perf_thread *thread)
{
	return perf_ring_ended(thread->ring);
}

int perf_thread_settle(struct perf_thread *thread, int64_t before_ns, int64_t now_ns,
		       struct err *err)
{
	if (thread->since_ns < before_ns) {
		if (put_state(thread, now_ns, err) < 0)
			return err->code;
		if (now_ns > thread->since_ns)
			thread->since_ns = now_ns;
	}
	return thread->leaf && thread->sampled_ns < before_ns ? put_stack(thread, now_ns, err) : 0;
}

int64_t perf_thread_lost(struct perf_thread *thread)
{
	int64_t lost = thread->lost;

	thread->lost = 0;
	return lost;
}
