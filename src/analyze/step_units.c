/*
 * step_units.c - steps of a recording that has no ranges: the unit of launches
 * that a thread repeats.
 *
 * Each process (source) is asked for itself, and of its threads the one whose
 * units cover most time speaks: of a training the thread that runs the forward
 * pass and the optimizer, or the one that autograd launches from.
 */
#include "analyze/timeline.h"

#include <stdlib.h>

#include "analyze/order.h"
#include "analyze/repeat.h"

/* Of a shorter unit the host's jitter is as long as itself: a loop within a step,
 * or a benchmark, not what a person calls a step. */
static const int64_t UNIT_LEAST_NS = 1000000;

/* More threads of a process are not asked: a file may have any number of them. */
enum { COPY_KINDS = COPY_PTOP + 1, THREADS_MOST = 8 };

struct thread {
	struct repeat_source source; /* calls that launched something */
	const struct timeline *timeline;
	const struct tl_lane *lane;
	VEC(uint32_t) calls; /* the same, once they are needed */
};

/* Kernels go by name: grids differ with the last batch. Copies by direction, those
 * of a single value apart. */
static uint32_t what_of(const struct timeline *timeline, uint32_t op)
{
	const struct tl_ops *ops = &timeline->ops;
	enum store_kind kind = op_segment(timeline, op)->kind;
	uint32_t key = ops->key[op], name = 0;

	if (kind == STORE_memcpy) {
		const struct tl_copy *copy = copy_find(&timeline->ops, op);
		bool tiny = copy && copy->bytes >= 0 && copy->bytes <= TINY_COPY_BYTES;

		return timeline->name_count + 1 +
		       2 * (copy && copy->kind < COPY_KINDS ? copy->kind : 0) + tiny;
	}
	if (kind == STORE_memset)
		return timeline->name_count;
	if (kind != STORE_kernel)
		name = key;
	else if (key < timeline->session->keys.count)
		name = timeline->session->keys.at[key].name;
	return name < timeline->name_count ? name : 0;
}

static void launches_get(const struct repeat_source *source, size_t first, size_t count,
			 struct repeat_item *ret_items)
{
	const struct thread *thread = (const struct thread *)source;
	const struct tl_calls *calls = &thread->timeline->calls;
	uint32_t at = thread->lane->first_call, before = TL_NONE;
	struct repeat_item *end = ret_items + count;

	for (size_t n = 0; n < first; at++) {
		if (calls->first_op[at] == TL_NONE)
			continue;
		before = at;
		n++;
	}
	for (; ret_items < end; at++) {
		int64_t gap = 0;

		if (calls->first_op[at] == TL_NONE)
			continue;
		if (before != TL_NONE && call_start(calls, at) > call_end(calls, before))
			gap = call_start(calls, at) - call_end(calls, before);
		*ret_items++ = (struct repeat_item){
			.what = what_of(thread->timeline, calls->first_op[at]),
			.gap_ns = gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX,
		};
		before = at;
	}
}

static void launches_count(struct thread *thread)
{
	const uint32_t *first_op = thread->timeline->calls.first_op + thread->lane->first_call;

	thread->source.count = 0;
	for (uint32_t i = 0; i < thread->lane->call_count; i++)
		thread->source.count += first_op[i] != TL_NONE;
}

static void launches_list(struct thread *thread)
{
	const uint32_t *first_op = thread->timeline->calls.first_op;
	uint32_t first = thread->lane->first_call;

	thread->calls.count = 0;
	VEC_ROOM(&thread->calls, thread->source.count);
	for (uint32_t i = first; i < first + thread->lane->call_count; i++)
		if (first_op[i] != TL_NONE)
			*VEC_ADD(&thread->calls) = i;
}

/* A step lasts until the next launch begins; the last one until all of it is done. */
static int64_t unit_end(const struct thread *thread, const struct repeat_unit *unit)
{
	const struct timeline *timeline = thread->timeline;
	int64_t end = INT64_MIN;

	if (unit->end < thread->calls.count)
		return call_start(&timeline->calls, thread->calls.at[unit->end]);
	for (size_t i = unit->first; i < unit->end; i++) {
		uint32_t call = thread->calls.at[i];
		int64_t done = op_end(&timeline->ops, timeline->calls.first_op[call]);

		if (call_end(&timeline->calls, call) > end)
			end = call_end(&timeline->calls, call);
		if (done > end)
			end = done;
	}
	return end;
}

static int64_t units_time(struct thread *thread, struct tl_ranges *ret_units)
{
	const struct timeline *timeline = thread->timeline;
	struct repeat repeat;
	int64_t sum_ns = 0, *lengths;

	if (repeat_find(&thread->source, timeline->name_count + 1 + 2 * COPY_KINDS, &repeat))
		launches_list(thread);
	lengths = mem_alloc((repeat.units.count + 1) * sizeof(*lengths));
	for (size_t i = 0; i < repeat.units.count; i++) {
		const struct repeat_unit *unit = &repeat.units.at[i];
		struct tl_range *range = VEC_ADD(ret_units);

		range->start = call_start(&timeline->calls, thread->calls.at[unit->first]);
		range->end = unit_end(thread, unit);
		range->lane = thread->lane->lane;
		range->source = thread->lane->source;
		range->kind = RANGE_STEP;
		lengths[i] = range->end - range->start;
		sum_ns = capped_add(sum_ns, lengths[i]);
	}
	order_values(lengths, repeat.units.count);
	if (!repeat.units.count || lengths[repeat.units.count / 2] < UNIT_LEAST_NS) {
		ret_units->count = 0;
		sum_ns = 0;
	}
	free(lengths);
	repeat_done(&repeat);
	return sum_ns;
}

/* A thread that calls, for the order in which they are looked at. */
struct caller {
	uint32_t source, calls, lane; /* lane: index into timeline.lanes */
};

static int by_source_and_calls(const void *a, const void *b)
{
	const struct caller *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

/* Of the threads of one process, those with most calls, the best one's units. Returns
 * how many more there are if none has any. */
static size_t source_units(const struct timeline *timeline, const struct caller *callers,
			   size_t count, struct tl_ranges *units)
{
	struct thread thread = { .source.get = launches_get, .timeline = timeline };
	struct tl_ranges best = { 0 }, now = { 0 };
	int64_t best_ns = 0;
	size_t left_out;

	for (size_t i = 0; i < count && i < THREADS_MOST; i++) {
		int64_t ns;

		thread.lane = &timeline->lanes.at[callers[i].lane];
		launches_count(&thread);
		now.count = 0;
		ns = units_time(&thread, &now);
		if (ns > best_ns) {
			struct tl_ranges other = best;

			best = now;
			now = other;
			best_ns = ns;
		}
	}
	for (size_t i = 0; i < best.count; i++)
		*VEC_ADD(units) = best.at[i];
	left_out = best.count || count < THREADS_MOST ? 0 : count - THREADS_MOST;
	VEC_DONE(&best);
	VEC_DONE(&now);
	VEC_DONE(&thread.calls);
	return left_out;
}

static int by_start(const void *a, const void *b)
{
	const struct tl_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->source > y->source) - (x->source < y->source);
}

size_t step_units(const struct timeline *timeline, struct tl_ranges *ret_units)
{
	VEC(struct caller) callers = { 0 };
	size_t left_out = 0;

	for (size_t i = 0; i < timeline->lanes.count; i++) {
		const struct tl_lane *lane = &timeline->lanes.at[i];

		if (lane->call_count)
			*VEC_ADD(&callers) =
				(struct caller){ lane->source, lane->call_count, (uint32_t)i };
	}
	if (callers.count)
		qsort(callers.at, callers.count, sizeof(*callers.at), by_source_and_calls);
	for (size_t i = 0; i < callers.count;) {
		size_t n = 1;

		while (i + n < callers.count && callers.at[i + n].source == callers.at[i].source)
			n++;
		left_out += source_units(timeline, &callers.at[i], n, ret_units);
		i += n;
	}
	VEC_DONE(&callers);
	if (ret_units->count)
		qsort(ret_units->at, ret_units->count, sizeof(*ret_units->at), by_start);
	return left_out;
}
