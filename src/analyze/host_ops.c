/*
 * Self and total time of framework ops, ranges and phases: one sweep over the
 * frames and calls of each thread, as a stack.
 *
 * Self time is the part of an op's interval in no op inside it; Python frames
 * and ranges between two ops do not count as ops. Total time of a name counts
 * an instant once, however often the name recurs on the stack. GPU time goes
 * to the op in which the launching call began.
 */
#include "analyze/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/interval.h"

enum { READBACK_CALLS = 8 };

struct level {
	int64_t start, end, inner_op_ns, gpu_ns;
	uint32_t name;
	int32_t link; /* the next op or range below this level; -1 none */
	uint8_t kind, is_op, phase;
};

struct op_sum {
	uint32_t name;
	int64_t count, self_ns, total_ns, gpu_self_ns, gpu_total_ns;
	int64_t phase_ns[PHASE_COUNT];
	int32_t open;
};

struct phase_sum {
	VEC(struct interval) wall;
	int64_t count, gpu_ns, longest_ns;
	uint32_t name;
	bool by_annotation;
};

struct sweep {
	struct timeline *timeline;
	struct facts *facts;
	const uint8_t *tiny; /* by op: a tiny copy to the host; NULL: there is none */
	VEC(struct level) stack;
	uint32_t *op_slot, *range_slot; /* index + 1 by name */
	VEC(struct op_sum) ops, ranges;
	struct phase_sum phases[PHASE_COUNT];
	const struct pauses *pauses; /* of the lane's source */
};

static struct op_sum *sum_for(struct sweep *sweep, bool op, uint32_t name)
{
	uint32_t *slot = op ? &sweep->op_slot[name] : &sweep->range_slot[name];

	if (!*slot) {
		struct op_sum *sum = op ? VEC_ADD(&sweep->ops) : VEC_ADD(&sweep->ranges);

		sum->name = name;
		*slot = (uint32_t)(op ? sweep->ops.count : sweep->ranges.count);
	}
	return op ? &sweep->ops.at[*slot - 1] : &sweep->ranges.at[*slot - 1];
}

/* The innermost op that is open at `time_ns`, from level `link` down. */
static struct level *op_round(struct sweep *sweep, int32_t link, int64_t time_ns)
{
	for (; link >= 0; link = sweep->stack.at[link].link)
		if (sweep->stack.at[link].is_op && sweep->stack.at[link].end > time_ns)
			return &sweep->stack.at[link];
	return NULL;
}

/* The level to look at first for something on top of the stack. */
static int32_t top_link(const struct sweep *sweep)
{
	size_t depth = sweep->stack.count;
	const struct level *top = depth ? &sweep->stack.at[depth - 1] : NULL;

	if (!top)
		return -1;
	return top->is_op || top->kind == ACTIVITY_RANGE ? (int32_t)depth - 1 : top->link;
}

static void pop_level(struct sweep *sweep)
{
	struct level *level = &sweep->stack.at[sweep->stack.count - 1];
	int64_t ns = level->end - level->start;

	if (level->is_op) {
		struct level *outer = op_round(sweep, level->link, level->start);

		if (outer)
			outer->inner_op_ns += ns;
	}
	if (level->is_op || level->kind == ACTIVITY_RANGE) {
		struct op_sum *sum = sum_for(sweep, level->is_op, level->name);

		sum->self_ns = capped_add(sum->self_ns, ns - level->inner_op_ns);
		if (--sum->open == 0) {
			sum->total_ns = capped_add(sum->total_ns, ns);
			sum->gpu_total_ns = capped_add(sum->gpu_total_ns, level->gpu_ns);
			sum->phase_ns[level->phase] = capped_add(sum->phase_ns[level->phase], ns);
		}
	}
	sweep->stack.count--;
}

static void pop_until(struct sweep *sweep, int64_t time_ns)
{
	while (sweep->stack.count && sweep->stack.at[sweep->stack.count - 1].end <= time_ns)
		pop_level(sweep);
}

/* A range that reaches into a window of the recording is known as a whole; what the device did
 * meanwhile is known of the windows alone. */
static void wall_add(const struct sweep *sweep, struct phase_sum *sum, int64_t from, int64_t to)
{
	while (from < to) {
		int64_t until = to;

		if (!sweep->pauses->count || !pauses_at(sweep->pauses, from, &until)) {
			until = until < to ? until : to;
			*VEC_ADD(&sum->wall) = (struct interval){ from, until };
		}
		from = until;
	}
}

/* A phase begins where something of another phase is round it. */
static void phase_begins(struct sweep *sweep, const struct tl_frame *frame, enum phase phase)
{
	struct phase_sum *sum = &sweep->phases[phase];
	int64_t ns = frame->end - frame->start;

	wall_add(sweep, sum, frame->start, frame->end);
	sum->count++;
	sum->by_annotation |= (frame->flags & FRAME_ANNOTATED) != 0;
	if (ns > sum->longest_ns) {
		sum->longest_ns = ns;
		sum->name = frame->name;
	}
}

static void sweep_frame(struct sweep *sweep, const struct tl_frame *frame)
{
	size_t depth = sweep->stack.count;
	enum phase outer = depth ? sweep->stack.at[depth - 1].phase : PHASE_OTHER;
	enum phase phase = phase_within(outer, frame->phase, (frame->flags & FRAME_ANNOTATED) != 0);
	int32_t link = top_link(sweep);
	struct level *level = VEC_ADD(&sweep->stack);

	level->start = frame->start;
	level->end = frame->end;
	level->name = frame->name;
	level->kind = frame->kind;
	level->is_op = frame->is_op;
	level->phase = (uint8_t)phase;
	level->link = link;
	if (phase != outer)
		phase_begins(sweep, frame, phase);
	if (frame->is_op || frame->kind == ACTIVITY_RANGE) {
		struct op_sum *sum = sum_for(sweep, frame->is_op, frame->name);

		sum->count++;
		sum->open++;
	}
}

/*
 * A tiny copy to the host is a read-back if the host then waits for it: in the
 * copy itself, or in a synchronising call of the thread before its next launch.
 */
static void sweep_readback(struct sweep *sweep, const struct tl_lane *lane, uint32_t call)
{
	struct timeline *timeline = sweep->timeline;
	const struct tl_calls *calls = &timeline->calls;
	uint32_t last = lane->first_call + lane->call_count;
	int64_t blocked = call_ns(calls, call);
	bool waits = call_waits(calls, call);
	struct tl_readback *readback;

	for (uint32_t i = call + 1; !waits && i < last && i <= call + READBACK_CALLS; i++) {
		if (calls->first_op[i] != TL_NONE)
			break;
		if (!call_waits(calls, i))
			continue;
		waits = true;
		blocked += call_ns(calls, i);
	}
	if (!waits)
		return;
	readback = VEC_ADD(&timeline->readbacks);
	readback->op = calls->first_op[call];
	readback->blocked_ns = blocked;
	for (size_t i = 0; i < sweep->stack.count && !readback->name; i++)
		if (sweep->stack.at[i].is_op)
			readback->name = sweep->stack.at[i].name;
	for (size_t i = sweep->stack.count; i > 0 && !readback->name; i--)
		readback->name = sweep->stack.at[i - 1].name;
	if (!readback->name)
		readback->name = call_name(calls, call);
}

static void sweep_call(struct sweep *sweep, const struct tl_lane *lane, uint32_t call)
{
	const struct tl_calls *calls = &sweep->timeline->calls;
	size_t depth = sweep->stack.count;
	enum phase phase = depth ? sweep->stack.at[depth - 1].phase : PHASE_OTHER;
	int64_t gpu_ns;
	struct level *op;

	if (calls->first_op[call] == TL_NONE)
		return;
	gpu_ns = call_gpu_ns(sweep->timeline, call);
	if (sweep->tiny && sweep->tiny[calls->first_op[call]])
		sweep_readback(sweep, lane, call);
	sweep->phases[phase].gpu_ns = capped_add(sweep->phases[phase].gpu_ns, gpu_ns);
	for (int32_t i = top_link(sweep); i >= 0; i = sweep->stack.at[i].link)
		if (sweep->stack.at[i].end > call_start(calls, call))
			sweep->stack.at[i].gpu_ns = capped_add(sweep->stack.at[i].gpu_ns, gpu_ns);
	op = op_round(sweep, top_link(sweep), call_start(calls, call));
	if (op) {
		struct op_sum *sum = sum_for(sweep, true, op->name);

		sum->gpu_self_ns = capped_add(sum->gpu_self_ns, gpu_ns);
	}
}

static void sweep_lane(struct sweep *sweep, const struct tl_lane *lane)
{
	const struct tl_calls *calls = &sweep->timeline->calls;
	size_t frame = 0;
	uint32_t call = 0, source = sweep->timeline->session->lanes.at[lane->lane].source;

	sweep->pauses = &sweep->timeline->pauses[source];
	while (frame < lane->frame_count || call < lane->call_count) {
		uint32_t index = lane->first_call + call;

		if (frame < lane->frame_count &&
		    (call >= lane->call_count ||
		     lane->frames[frame].start <= call_start(calls, index))) {
			pop_until(sweep, lane->frames[frame].start);
			sweep_frame(sweep, &lane->frames[frame++]);
		} else {
			pop_until(sweep, call_start(calls, index));
			sweep_call(sweep, lane, index);
			call++;
		}
	}
	while (sweep->stack.count)
		pop_level(sweep);
}

static enum phase main_phase(const struct op_sum *sum)
{
	enum phase phase = PHASE_OTHER;

	for (int i = 0; i < PHASE_COUNT; i++)
		if (sum->phase_ns[i] > sum->phase_ns[phase])
			phase = i;
	return phase;
}

static int by_weight(const void *a, const void *b)
{
	const struct op_fact *x = a, *y = b;
	int64_t left = capped_add(x->gpu_total_ns, x->cpu_self_ns);
	int64_t right = capped_add(y->gpu_total_ns, y->cpu_self_ns);

	if (left != right)
		return left > right ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static void ops_out(struct sweep *sweep)
{
	struct facts *facts = sweep->facts;

	for (size_t i = 0; i < sweep->ops.count; i++) {
		const struct op_sum *sum = &sweep->ops.at[i];
		struct op_fact *fact = VEC_ADD(&facts->ops);

		fact->name = sum->name;
		fact->count = sum->count;
		fact->cpu_self_ns = sum->self_ns;
		fact->cpu_total_ns = sum->total_ns;
		fact->gpu_self_ns = sum->gpu_self_ns;
		fact->gpu_total_ns = sum->gpu_total_ns;
		fact->phase = main_phase(sum);
	}
	if (facts->ops.count)
		qsort(facts->ops.at, facts->ops.count, sizeof(*facts->ops.at), by_weight);
}

static int by_sum(const void *a, const void *b)
{
	const struct range_fact *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns > y->sum_ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Ranges as they were made: their own lengths, not cut to fit a stack. */
static void ranges_out(struct sweep *sweep)
{
	struct facts *facts = sweep->facts;
	uint32_t *slot = mem_zero((sweep->timeline->name_count + 1) * sizeof(*slot));

	for (size_t i = 0; i < sweep->timeline->ranges.count; i++) {
		const struct tl_range *range = &sweep->timeline->ranges.at[i];
		struct range_fact *fact;

		if (range->kind != RANGE_USER && range->kind != RANGE_COLLECTIVE)
			continue;
		if (!slot[range->name]) {
			fact = VEC_ADD(&facts->ranges);
			fact->name = range->name;
			if (sweep->range_slot[range->name])
				fact->gpu_ns = sweep->ranges.at[sweep->range_slot[range->name] - 1]
						       .gpu_total_ns;
			slot[range->name] = (uint32_t)facts->ranges.count;
		}
		fact = &facts->ranges.at[slot[range->name] - 1];
		fact->count++;
		fact->sum_ns = capped_add(fact->sum_ns, range->end - range->start);
	}
	free(slot);
	if (facts->ranges.count)
		qsort(facts->ranges.at, facts->ranges.count, sizeof(*facts->ranges.at), by_sum);
}

static void phases_out(struct sweep *sweep)
{
	for (int i = 0; i < PHASE_COUNT; i++) {
		struct phase_sum *sum = &sweep->phases[i];
		struct phase_fact *fact;

		if ((!sum->count && !sum->gpu_ns) || i == PHASE_READBACK)
			continue;
		fact = VEC_ADD(&sweep->facts->phases);
		fact->phase = i;
		fact->count = sum->count;
		fact->gpu_ns = sum->gpu_ns;
		fact->name = sum->name;
		fact->by_annotation = sum->by_annotation;
		sum->wall.count = interval_union(sum->wall.at, sum->wall.count);
		/* The rest has no begin and no end of its own. */
		fact->wall_ns = i == PHASE_OTHER ? FACT_UNKNOWN
						 : interval_length(sum->wall.at, sum->wall.count);
	}
	for (size_t i = 0; i < sweep->phases[PHASE_LOADER].wall.count; i++)
		*VEC_ADD(&sweep->timeline->loading) = sweep->phases[PHASE_LOADER].wall.at[i];
}

void host_ops(struct timeline *timeline, struct facts *facts)
{
	struct sweep sweep = { .timeline = timeline, .facts = facts };
	uint8_t *tiny = timeline->ops.copies.count ? mem_zero(timeline->ops.count + 1) : NULL;

	for (size_t i = 0; i < timeline->ops.copies.count; i++) {
		const struct tl_copy *copy = &timeline->ops.copies.at[i];

		tiny[copy->op] = copy->kind == COPY_DTOH && copy->bytes >= 0 &&
				 copy->bytes <= TINY_COPY_BYTES;
	}
	sweep.tiny = tiny;
	sweep.op_slot = mem_zero((timeline->name_count + 1) * sizeof(*sweep.op_slot));
	sweep.range_slot = mem_zero((timeline->name_count + 1) * sizeof(*sweep.range_slot));
	for (size_t i = 0; i < timeline->lanes.count; i++)
		sweep_lane(&sweep, &timeline->lanes.at[i]);
	ops_out(&sweep);
	ranges_out(&sweep);
	phases_out(&sweep);
	VEC_DONE(&sweep.stack);
	VEC_DONE(&sweep.ops);
	VEC_DONE(&sweep.ranges);
	for (int i = 0; i < PHASE_COUNT; i++)
		VEC_DONE(&sweep.phases[i].wall);
	free(sweep.op_slot);
	free(sweep.range_slot);
	free(tiny);
}
