#include "collect/perf_thread.h"

#include <stdlib.h>

#include "base/mem.h"
#include "collect/stack_look.h"
#include "model/thread_state.h"

struct perf_thread {
	struct perf_ring *ring;
	struct sink *sink;
	struct perf_stack *stack;
	uint32_t lane;
	uint32_t state; /* string; 0: not known */
	bool waits, looked;
	int64_t since_ns;
	struct stack_look sample; /* the last, as long as the thread is on the core */
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
	thread->sample = (struct stack_look){ .sink = sink, .lane = lane, .kind = RANGE_CPU_STACK };
	return thread;
}

void perf_thread_free(struct perf_thread *thread)
{
	if (!thread)
		return;
	perf_ring_close(thread->ring);
	stack_look_done(&thread->sample);
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

static int switched(struct perf_thread *thread, const struct perf_record *record, struct err *err)
{
	static const enum thread_state states[] = { [PERF_ON_CORE] = THREAD_STATE_running,
						    [PERF_OFF_CORE] = THREAD_STATE_waiting,
						    [PERF_PREEMPTED] = THREAD_STATE_runnable };

	if (put_state(thread, record->time_ns, err) < 0 ||
	    stack_look_put(&thread->sample, record->time_ns, err) < 0)
		return err->code;
	thread->state = thread_state_string(thread->sink->session, states[record->kind], NULL);
	thread->since_ns = record->time_ns;
	thread->waits = record->kind == PERF_OFF_CORE;
	thread->looked = false;
	return 0;
}

static int sampled(struct perf_thread *thread, const struct perf_record *record, struct err *err)
{
	struct stack_look *sample = &thread->sample;

	if (stack_look_put(sample, record->time_ns, err) < 0)
		return err->code;
	stack_look_begin(sample, record->time_ns);
	if (thread->stack)
		perf_stack_name(thread->stack, record->frame, record->frames, record->time_ns,
				&sample->leaf, &sample->chain);
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
			buf_clear(&thread->sample.leaf);
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
	const char *call;
	enum thread_state found =
		thread_state_of(session_text(thread->sink->session, state), &call);
	bool waits = found == THREAD_STATE_waiting || found == THREAD_STATE_uninterruptible;

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
	return thread->sample.seen_ns < before_ns ? stack_look_put(&thread->sample, now_ns, err)
						  : 0;
}

int64_t perf_thread_lost(struct perf_thread *thread)
{
	int64_t lost = thread->lost;

	thread->lost = 0;
	return lost;
}
