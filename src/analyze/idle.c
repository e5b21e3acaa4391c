/*
 * Why a device was idle: every ns of every gap gets one cause.
 *
 * A gap is cut in time by the call that launched what ends it:
 *
 *	gap begins          call begins     queued, ready        op begins
 *	    |  host            |  launching       |  waiting          |
 *
 * waiting: dependency. host and launching: the launches came slower than the
 * device ran (launch_rate) if they came in their cadence, else the host was
 * late (host_late). Within these, time that the thread spent in a
 * synchronising call is sync_blocked, as is the whole of it if the thread was
 * blocked when the device ran dry and launched again right after. The
 * reasons are told in doc/analysis.md.
 */
#include "analyze/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"

/* From the start of a launch call to the start of its kernel on an idle device:
 * 8 to 10 us at the median, 30 at the 90th percentile with a profiler attached
 * (doc/analysis.md). What takes longer was held up on the device. */
static const int64_t LAUNCH_LATENCY_NS = 20000;

/* Launches that follow each other within ten times their median distance are one
 * steady stream of launches: the host work of framework ops differs by about
 * that much. Never less than 200 us, or a fast loop's hiccup would count as
 * absence; never more than 1 ms, which no launching takes. */
static const int64_t CADENCE_FACTOR = 10;
static const int64_t CADENCE_LEAST_NS = 200000;
static const int64_t CADENCE_MOST_NS = 1000000;

/* A thread that launches again so soon after a wait did nothing else: the gap
 * is the price of the wait. Waking up takes 10 to 50 us, a launch 5 to 10. */
static const int64_t SYNC_RECOVERY_NS = 200000;

/* From one kernel to the next of its stream, where that is queued already, a device takes
 * 1 to 5 us with a profiler attached (doc/analysis.md). */
static const int64_t TURNAROUND_NS = 10000;

/* Names kept for each cause. */
enum { DURING_LIMIT = 32 };

struct idler {
	struct timeline *timeline;
	struct facts *facts;
	struct device_fact *fact;
	struct idle_fact *out; /* of the whole, or of the steady part: then [from_ns, ) */
	int64_t from_ns;
	bool steady, any_looks;
	const struct tl_device *device;
	struct cursor *cursors; /* by index into timeline.lanes */
	struct map during_slot; /* by hash: index into during */
	VEC(struct during) during[IDLE_COUNT];
	size_t last_during[IDLE_COUNT]; /* what was added to last */
	struct look_counts looks[IDLE_COUNT];
	int64_t gap_ns[IDLE_COUNT];
	uint32_t gap_causes; /* a bit for each that has some of the gap */
	int64_t phase_ns[PHASE_COUNT];
	int64_t *launch_ns; /* idle before kernels by their launches, by key */
	int64_t cadence_ns;
	size_t launch;   /* for launches_before */
	uint32_t thread; /* of the last call asked for */
};

/* The thread of a call, as index into timeline.lanes, where `near` may be it: calls
 * lie lane by lane. */
static uint32_t thread_of(const struct timeline *timeline, uint32_t call, uint32_t near)
{
	const struct tl_lane *lane = &timeline->lanes.at[near];
	size_t low = 0, high = timeline->lanes.count;

	if (call - lane->first_call < lane->call_count)
		return near;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (timeline->lanes.at[middle].first_call <= call)
			low = middle;
		else
			high = middle;
	}
	return (uint32_t)low;
}

static struct during *during_find(struct idler *idler, enum idle_cause cause, enum phase phase,
				  enum activity_kind kind, uint32_t name, uint32_t range)
{
	uint64_t key = hash_u64((uint64_t)name << 32 | range,
				(uint64_t)cause << 8 | (uint64_t)kind << 4 | phase);
	uint64_t *slot = map_find(&idler->during_slot, key);

	if (slot) {
		idler->last_during[cause] = *slot;
	} else {
		struct during *during = VEC_ADD(&idler->during[cause]);

		*during = (struct during){
			.kind = kind, .name = name, .range = range, .phase = phase
		};
		idler->last_during[cause] = idler->during[cause].count - 1;
		map_put(&idler->during_slot, key, idler->last_during[cause]);
	}
	return &idler->during[cause].at[idler->last_during[cause]];
}

static void during_add(struct idler *idler, enum idle_cause cause, const struct open_frame *frame,
		       int64_t ns)
{
	enum activity_kind kind = frame->loader ? frame->loader_kind : frame->kind;
	uint32_t name = frame->loader ? frame->loader : frame->name;
	uint32_t range = frame->loader || frame->range == name ? 0 : frame->range;
	struct during *during = NULL;

	if (!idler->steady)
		idler->phase_ns[frame->phase] += ns;
	if (idler->during[cause].count)
		during = &idler->during[cause].at[idler->last_during[cause]];
	if (!during || during->name != name || during->range != range || during->kind != kind ||
	    during->phase != frame->phase)
		during = during_find(idler, cause, frame->phase, kind, name, range);
	during->ns += ns;
}

/* Loading, compiling and the like is set-up whenever it happens; obtaining memory
 * only until the device runs steadily: then it is a fault of the loop. */
static bool is_setup(const struct idler *idler, const struct open_frame *frame, int64_t at)
{
	enum setup_kind kind =
		frame->kind == ACTIVITY_CALL ? idler->timeline->setup_of[frame->name] : SETUP_NONE;

	return kind != SETUP_NONE && (kind != SETUP_MEMORY || (idler->fact->steady.has &&
							       at < idler->fact->steady.start_ns));
}

static void give(struct idler *idler, enum idle_cause cause, int64_t ns)
{
	if (!ns)
		return;
	idler->gap_ns[cause] += ns;
	idler->gap_causes |= 1u << cause;
}

/* What the cause becomes where the host was at `frame`. */
static enum idle_cause cause_within(const struct idler *idler, enum idle_cause cause,
				    const struct open_frame *frame, int64_t at)
{
	bool host = cause == IDLE_HOST_LATE || cause == IDLE_LAUNCH_RATE || cause == IDLE_SETUP;

	if (host && frame->sync)
		return IDLE_SYNC_BLOCKED;
	if (host && is_setup(idler, frame, at))
		return IDLE_SETUP;
	return cause == IDLE_LAUNCH_RATE && frame->loader ? IDLE_HOST_LATE : cause;
}

/* Give [from, to) of a gap to `cause`, but for what the threads say otherwise. */
static void part(struct idler *idler, enum idle_cause cause, int64_t from, int64_t to,
		 uint32_t thread, uint32_t other)
{
	struct cursor *mine = &idler->cursors[thread];
	int64_t given = 0;

	while (from < to) {
		enum idle_cause now = cause;
		const struct open_frame *frame;
		int64_t until, ns, as_far = to;

		/* What was not recorded has no cause. */
		if (idler->device->pauses.count &&
		    pauses_at(&idler->device->pauses, from, &as_far)) {
			from = as_far;
			continue;
		}
		cursor_to(mine, from);
		frame = mine->top;
		until = mine->until < as_far ? mine->until : as_far;
		if (!frame && other != thread) {
			struct cursor *theirs = &idler->cursors[other];

			cursor_to(theirs, from);
			frame = theirs->top;
			until = theirs->until < until ? theirs->until : until;
		}
		until = until < to ? until : to;
		ns = until - from;
		if (frame) {
			now = cause_within(idler, cause, frame, from);
			during_add(idler, now, frame, ns);
		}
		if (now == cause)
			given += ns;
		else
			give(idler, now, ns);
		if (idler->any_looks)
			looks_count(&idler->looks[now], idler->timeline,
				    idler->timeline->lanes.at[thread].lane, from, until);
		from = until;
	}
	give(idler, cause, given);
}

/* The thread sat in a synchronising call when the gap began; up to when. */
static bool blocked_at(struct idler *idler, uint32_t thread, int64_t from, int64_t *ret_until)
{
	struct cursor *cursor = &idler->cursors[thread];

	cursor_to(cursor, from);
	if (!cursor->top || !cursor->top->sync)
		return false;
	*ret_until = cursor->top->end;
	return true;
}

static int64_t within(int64_t time, int64_t from, int64_t to)
{
	return time < from ? from : time > to ? to : time;
}

static void launched_gap(struct idler *idler, int64_t from, int64_t to, uint32_t call)
{
	const struct tl_calls *calls = &idler->timeline->calls;
	int64_t launch = call_start(calls, call), end = launch + call_ns(calls, call);
	int64_t ready = end > launch + LAUNCH_LATENCY_NS ? end : launch + LAUNCH_LATENCY_NS;
	int64_t host_to = within(launch, from, to), launch_to = within(ready, from, to);
	uint32_t before =
		launches_before(idler->timeline, idler->device, &idler->launch, call, launch);
	uint32_t thread = thread_of(idler->timeline, call, idler->thread);
	uint32_t other = before == TL_NONE ? thread : thread_of(idler->timeline, before, thread);
	enum idle_cause host = IDLE_LAUNCH_RATE, launching = IDLE_LAUNCH_RATE;
	int64_t free_at;

	idler->thread = thread;
	if (before == TL_NONE || launch - call_end(calls, before) > idler->cadence_ns)
		host = IDLE_HOST_LATE;
	if (end - launch > idler->cadence_ns)
		launching = map_find(&idler->timeline->first_launches, call) ? IDLE_SETUP
									     : IDLE_HOST_LATE;
	if (from < launch &&
	    (blocked_at(idler, thread, from, &free_at) ||
	     (other != thread && blocked_at(idler, other, from, &free_at))) &&
	    launch - free_at <= SYNC_RECOVERY_NS) {
		host = IDLE_SYNC_BLOCKED;
		launching = IDLE_SYNC_BLOCKED;
	}
	if (host == launching)
		host_to = from;
	if (from < host_to)
		part(idler, host, from, host_to, thread, other);
	if (host_to < launch_to)
		part(idler, launching, host_to, launch_to, thread, other);
	if (launch_to < to)
		part(idler, IDLE_DEPENDENCY, launch_to, to, thread, other);
}

/* NULL: the op is no copy. */
static const struct tl_copy *copy_of(const struct timeline *timeline, uint32_t op)
{
	return op_segment(timeline, op)->kind == STORE_memcpy ? copy_find(&timeline->ops, op)
							      : NULL;
}

/* The op brings data to the device: more than a value or two. */
static bool is_upload(const struct timeline *timeline, uint32_t op)
{
	const struct tl_copy *copy = copy_of(timeline, op);

	return copy && copy->kind == COPY_HTOD && copy->bytes > TINY_COPY_BYTES;
}

/* Pages move when the host touches them, or a kernel that runs: no launch ends a gap. */
static bool is_managed(const struct timeline *timeline, uint32_t op)
{
	const struct tl_copy *copy = copy_of(timeline, op);

	return copy && copy->host_memory == HOST_MEMORY_MANAGED;
}

static void cause_tell(struct idle_fact *idle, int64_t ns, int64_t from, bool upload)
{
	idle->ns += ns;
	idle->count++;
	if (upload) {
		idle->upload_ns += ns;
		idle->upload_count++;
	}
	if (ns > idle->longest_ns) {
		idle->longest_ns = ns;
		idle->longest_at_ns = from;
	}
}

/* A queued kernel that came at once after a short one of its stream: ops of a segment are of
 * one stream and kind. The nodes of a graph are one launch, and fewer launches would spare
 * none of their gaps. The gap as a whole is short: of a long one that ends with a late launch a
 * part, too, is spent waiting. */
static bool is_turnaround(const struct timeline *timeline, int64_t gap_ns, uint32_t last,
			  uint32_t op)
{
	const struct tl_ops *ops = &timeline->ops;
	const struct tl_segment *segment;

	if (gap_ns > TURNAROUND_NS || op_ns(ops, last) >= SMALL_KERNEL_NS ||
	    ops->call[last] == ops->call[op])
		return false;
	segment = op_segment(timeline, op);
	return segment->kind == STORE_kernel && last - segment->first < segment->count;
}

/* A gap is the launch's where that is the most of it: the first launch after
 * something else took its time is late, too, but not slow. */
static void gap_tell(struct idler *idler, int64_t from, int64_t to, uint32_t last, uint32_t op)
{
	int64_t queued_ns = idler->gap_ns[IDLE_DEPENDENCY];
	const struct timeline *timeline = idler->timeline;
	bool upload = timeline->ops.copies.count && is_upload(timeline, op);
	int64_t launch_ns = idler->gap_ns[IDLE_LAUNCH_RATE];
	bool is_launch = launch_ns > 0 && !idler->steady;

	for (uint32_t left = idler->gap_causes; left; left &= left - 1) {
		int cause = __builtin_ctz(left);
		int64_t ns = idler->gap_ns[cause];

		cause_tell(&idler->out[cause], ns, from, upload);
		is_launch &= ns <= launch_ns;
	}
	if (queued_ns && is_turnaround(timeline, to - from, last, op)) {
		idler->out[IDLE_DEPENDENCY].turnaround_ns += queued_ns;
		idler->out[IDLE_DEPENDENCY].turnaround_count++;
	}
	if (is_launch && op_segment(timeline, op)->kind == STORE_kernel)
		idler->launch_ns[timeline->ops.key[op]] += launch_ns;
}

/* From the end of `last` to the start of `op`. */
static void gap(struct idler *idler, int64_t from, int64_t to, uint32_t last, uint32_t op)
{
	uint32_t call = idler->timeline->ops.call[op];

	memset(idler->gap_ns, 0, sizeof(idler->gap_ns));
	idler->gap_causes = 0;
	if (call >= TL_BEFORE && idler->timeline->lanes.count && is_managed(idler->timeline, op))
		part(idler, IDLE_HOST_LATE, from, to, idler->thread, idler->thread);
	else if (call >= TL_BEFORE)
		give(idler, call == TL_BEFORE ? IDLE_DEPENDENCY : IDLE_UNATTRIBUTED,
		     to - from - pauses_within(&idler->device->pauses, from, to));
	else
		launched_gap(idler, from, to, call);
	gap_tell(idler, from, to, last, op);
}

static struct tl_readback *readback_of(struct timeline *timeline, uint32_t op)
{
	size_t low = 0, high = timeline->readbacks.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (timeline->readbacks.at[middle].op < op)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < timeline->readbacks.count && timeline->readbacks.at[low].op == op)
		return &timeline->readbacks.at[low];
	return NULL;
}

static void device_gaps(struct idler *idler)
{
	struct timeline *timeline = idler->timeline;
	const struct tl_ops *ops = &timeline->ops;
	uint32_t last = device_op(idler->device, 0);
	int64_t last_end = op_end(ops, last);

	/* The steady part begins with an op: no gap reaches across. */
	for (size_t i = 1; i < idler->device->count; i++) {
		uint32_t op = device_op(idler->device, i);
		int64_t start = op_start(ops, op), end = start + op_ns(ops, op);

		if (start > last_end && start > idler->from_ns) {
			struct tl_readback *readback =
				timeline->readbacks.count ? readback_of(timeline, last) : NULL;

			gap(idler, last_end, start, last, op);
			/* What the host did elsewhere is not the read-back's. */
			if (readback)
				readback->idle_ns =
					start - last_end -
					pauses_within(&idler->device->pauses, last_end, start) -
					idler->gap_ns[IDLE_HOST_LATE];
		}
		if (end >= last_end) {
			last = op;
			last_end = end;
		}
	}
}

static int by_ns(const void *a, const void *b)
{
	const struct during *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static void kernel_gaps(struct idler *idler, uint32_t device)
{
	for (size_t i = 0; i < idler->facts->kernels.count; i++) {
		struct kernel_fact *kernel = &idler->facts->kernels.at[i];

		if (kernel->device != device)
			continue;
		kernel->launch_idle_ns = idler->launch_ns[kernel->key];
		idler->launch_ns[kernel->key] = 0;
	}
}

static void device_idle(struct idler *idler, uint32_t index, bool steady)
{
	struct timeline *timeline = idler->timeline;

	idler->steady = steady;
	idler->out = steady ? idler->fact->steady.idle : idler->fact->idle;
	idler->from_ns = steady ? idler->fact->steady.start_ns : INT64_MIN;
	idler->device = &timeline->devices[index];
	idler->launch = 0;
	idler->cadence_ns = CADENCE_LEAST_NS;
	if (idler->fact->launch_gap_p50_ns > CADENCE_LEAST_NS / CADENCE_FACTOR)
		idler->cadence_ns =
			idler->fact->launch_gap_p50_ns > CADENCE_MOST_NS / CADENCE_FACTOR
				? CADENCE_MOST_NS
				: CADENCE_FACTOR * idler->fact->launch_gap_p50_ns;
	for (size_t i = 0; i < timeline->lanes.count; i++)
		cursor_init(&idler->cursors[i], timeline, &timeline->lanes.at[i]);
	device_gaps(idler);
	if (!steady)
		kernel_gaps(idler, index);
	for (int i = 0; i < IDLE_COUNT; i++) {
		struct idle_fact *idle = &idler->out[i];
		size_t count = idler->during[i].count;

		idle->cause = i;
		if (count)
			qsort(idler->during[i].at, count, sizeof(struct during), by_ns);
		for (size_t k = 0; k < count && k < DURING_LIMIT; k++)
			*VEC_ADD(&idle->during) = idler->during[i].at[k];
		VEC_DONE(&idler->during[i]);
		looks_tell(&idler->looks[i], timeline->session, idle);
	}
	map_done(&idler->during_slot);
}

static int by_op(const void *a, const void *b)
{
	const struct tl_readback *x = a, *y = b;

	return (x->op > y->op) - (x->op < y->op);
}

void idle_facts(struct timeline *timeline, struct facts *facts)
{
	struct idler idler = { .timeline = timeline, .facts = facts };

	for (int kind = 0; kind < LOOK_KIND_COUNT; kind++)
		idler.any_looks |= timeline->looks[kind].count > 0;
	idler.cursors = mem_zero((timeline->lanes.count + 1) * sizeof(*idler.cursors));
	idler.launch_ns = mem_zero((timeline->session->keys.count + 1) * sizeof(int64_t));
	if (timeline->readbacks.count)
		qsort(timeline->readbacks.at, timeline->readbacks.count,
		      sizeof(*timeline->readbacks.at), by_op);
	for (uint32_t i = 0; i < facts->devices.count; i++) {
		idler.fact = &facts->devices.at[i];
		if (idler.fact->has_timeline)
			device_idle(&idler, i, false);
		if (idler.fact->steady.has)
			device_idle(&idler, i, true);
	}
	for (size_t i = 0; i < timeline->lanes.count; i++)
		cursor_done(&idler.cursors[i]);
	for (size_t i = 0; i < facts->phases.count; i++)
		facts->phases.at[i].idle_ns = idler.phase_ns[facts->phases.at[i].phase];
	free(idler.launch_ns);
	free(idler.cursors);
}
