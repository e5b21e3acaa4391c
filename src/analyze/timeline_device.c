/*
 * The times of a device: one pass over its ops in order of start.
 */
#include "analyze/timeline.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/array.h"
#include "analyze/order.h"

/* A kernel shorter than this costs the host more to launch than the device to
 * run: a launch takes about 5 us of host time (doc/analysis.md). */
const int64_t SMALL_KERNEL_NS = 10000;

enum { GROUP_KERNEL, GROUP_COPY, GROUP_COLLECTIVE };

/* What is counted of a kernel in the pass: a kernel_fact has much more, and ten
 * million kernels in turn would have all of it out of the cache. */
struct kernel_sum {
	int64_t sum_ns, min_ns, max_ns;
	uint32_t count, launched;
};

/*
 * How many ops were launched and not yet started, where every launch has one op and
 * launches end in order (one thread, no graphs): both are followed side by side.
 */
struct depth {
	struct launch_walk walk;
	uint32_t launch; /* the next that has not ended; TL_NONE */
	int64_t end_ns;  /* of it, INT64_MAX */
	int64_t waiting, most;
	bool unordered;
	int64_t queued_ns;
	size_t queued_count;
};

struct pass {
	struct timeline *timeline;
	struct device_fact *fact;
	struct kernel_sum *sums; /* by key */
	VEC(uint32_t) keys;      /* as they came */
	const bool *collective;  /* by key */
	struct cover busy, kernel, copy, collective_cover;
	struct overlap streams, copy_kernel, collective_other;
	/* Without several streams, copies or collectives nothing can overlap. */
	bool several_streams, any_copies, any_collectives;
	struct quantiles kernel_ns, delay_ns;
	struct depth depth;
};

static void kernel_add(struct pass *pass, uint32_t key, int64_t ns, bool launched)
{
	struct kernel_sum *sum = &pass->sums[key];

	if (!sum->count++) {
		*VEC_ADD(&pass->keys) = key;
		sum->min_ns = INT64_MAX;
	}
	sum->launched += launched;
	sum->sum_ns = capped_add(sum->sum_ns, ns);
	if (ns < sum->min_ns)
		sum->min_ns = ns;
	if (ns > sum->max_ns)
		sum->max_ns = ns;
}

static void depth_next(struct depth *depth)
{
	const struct tl_calls *calls = &depth->walk.timeline->calls;
	int64_t last_ns = depth->end_ns;

	depth->launch = launches_next(&depth->walk);
	depth->end_ns = depth->launch != TL_NONE ? call_end(calls, depth->launch) : INT64_MAX;
	depth->unordered |= depth->end_ns < last_ns;
}

/* All launches that ended before the time. */
static void depth_until(struct depth *depth, int64_t time_ns)
{
	const struct timeline *timeline = depth->walk.timeline;

	for (; depth->end_ns < time_ns; depth_next(depth))
		depth->waiting += op_start(&timeline->ops,
					   timeline->calls.first_op[depth->launch]) > depth->end_ns;
}

/* An op starts whose launch ended before. */
static void depth_op(struct depth *depth, int64_t start_ns, int64_t launched_ns)
{
	depth->queued_ns = capped_add(depth->queued_ns, start_ns - launched_ns);
	depth->queued_count++;
	if (depth->waiting > depth->most)
		depth->most = depth->waiting;
	depth->waiting--;
}

/* Times of an op, each told from the arrays but once. */
struct op_times {
	int64_t start, ns, end;
	int64_t launched_ns; /* when its launch ended; INT64_MAX */
};

static void pass_kernel(struct pass *pass, uint32_t op, const struct op_times *at)
{
	uint32_t key = pass->timeline->ops.key[op], call = pass->timeline->ops.call[op];
	struct device_fact *fact = pass->fact;

	fact->kernel_count++;
	fact->kernel_sum_ns = capped_add(fact->kernel_sum_ns, at->ns);
	cover_add(&pass->kernel, at->start, at->end);
	if (pass->any_copies)
		overlap_add(&pass->copy_kernel, GROUP_KERNEL, at->start, at->end);
	quantiles_add(&pass->kernel_ns, at->ns);
	fact->small_kernels += at->ns < SMALL_KERNEL_NS;
	fact->small_kernel_ns += at->ns < SMALL_KERNEL_NS ? at->ns : 0;
	if (call >= TL_BEFORE) {
		fact->unmatched_ops++;
		fact->launched_before += call == TL_BEFORE;
	} else {
		quantiles_add(&pass->delay_ns, at->start - at->launched_ns);
	}
	if (key >= pass->timeline->session->keys.count)
		return;
	kernel_add(pass, key, at->ns, call < TL_BEFORE);
	if (!pass->any_collectives)
		return;
	if (pass->collective[key])
		cover_add(&pass->collective_cover, at->start, at->end);
	overlap_add(&pass->collective_other, pass->collective[key], at->start, at->end);
}

/* Returns when the op ends; pauses from `last_ns`, when all before it had ended, are
 * pauses of the device. */
static int64_t pass_op(struct pass *pass, uint32_t op, const struct pauses *pauses, int64_t last_ns)
{
	const struct tl_ops *ops = &pass->timeline->ops;
	const struct tl_segment *segment = op_segment(pass->timeline, op);
	uint32_t call = ops->call[op];
	struct op_times at = { .start = op_start(ops, op), .ns = op_ns(ops, op) };

	at.end = at.start + at.ns;
	at.launched_ns = call < TL_BEFORE ? call_end(&pass->timeline->calls, call) : INT64_MAX;
	depth_until(&pass->depth, at.start);
	cover_add(&pass->busy, at.start, at.end);
	if (pass->several_streams)
		overlap_add(&pass->streams, segment->lane, at.start, at.end);
	switch (segment->kind) {
	case STORE_kernel:
		pass_kernel(pass, op, &at);
		break;
	case STORE_memcpy:
		pass->fact->memcpy_count++;
		cover_add(&pass->copy, at.start, at.end);
		overlap_add(&pass->copy_kernel, GROUP_COPY, at.start, at.end);
		break;
	case STORE_memset:
		pass->fact->memset_count++;
		break;
	case STORE_graph:
		/* A graph traced as one block: kernels, as far as one can tell. */
		pass->fact->graph_count++;
		cover_add(&pass->kernel, at.start, at.end);
		overlap_add(&pass->copy_kernel, GROUP_KERNEL, at.start, at.end);
		break;
	default:
		break;
	}
	if (at.start > at.launched_ns)
		depth_op(&pass->depth, at.start, at.launched_ns);
	pass->fact->paused_ns += pauses_within(pauses, last_ns, at.start);
	return at.end;
}

/* The most ops that were launched and not yet started at one time. */
static int64_t queue_depth_max(const struct timeline *timeline, const struct tl_device *device,
			       size_t queued)
{
	const struct tl_ops *ops = &timeline->ops;
	int64_t *launched = array_new((queued + 1) * sizeof(*launched));
	size_t count = 0, next = 0, done = 0;
	int64_t most = 0;

	for (size_t i = 0; i < device->count; i++) {
		uint32_t op = device_op(device, i), call = ops->call[op];

		if (call < TL_BEFORE && op_start(ops, op) > call_end(&timeline->calls, call))
			launched[count++] = call_end(&timeline->calls, call);
	}
	order_values(launched, count);
	for (size_t i = 0; i < device->count; i++) {
		uint32_t op = device_op(device, i), call = ops->call[op];

		if (call >= TL_BEFORE || op_start(ops, op) <= call_end(&timeline->calls, call))
			continue;
		while (next < count && launched[next] < op_start(ops, op))
			next++;
		if ((int64_t)(next - done) > most)
			most = (int64_t)(next - done);
		done++;
	}
	free(launched);
	return most;
}

/* The recorded window: that of the sources whose streams the device has. */
static void device_window(const struct timeline *timeline, uint32_t index, struct device_fact *fact,
			  int64_t first, int64_t last)
{
	const struct tl_ops *ops = &timeline->ops;
	int64_t start = first, end = last;

	for (size_t s = 0; s < ops->segments.count; s++) {
		const struct tl_segment *segment = &ops->segments.at[s];

		if (segment->device != index)
			continue;
		if (timeline->window_start[segment->source] < start)
			start = timeline->window_start[segment->source];
		if (timeline->window_end[segment->source] > end)
			end = timeline->window_end[segment->source];
		fact->stream_count += !s || ops->segments.at[s - 1].lane != segment->lane;
	}
	fact->window_start_ns = start;
	fact->window_ns = end - start;
	fact->before_ns = first - start;
	fact->after_ns = end - last;
	fact->span_ns = last - first - fact->paused_ns;
}

static void kernels_finish(struct pass *pass, struct facts *facts)
{
	const struct device_fact *fact = pass->fact;

	VEC_ROOM(&facts->kernels, facts->kernels.count + pass->keys.count);
	for (size_t i = 0; i < pass->keys.count; i++) {
		uint32_t key = pass->keys.at[i];
		const struct kernel_sum *sum = &pass->sums[key];
		struct kernel_fact *kernel = VEC_ADD(&facts->kernels);

		kernel->key = key;
		kernel->device = fact->device;
		kernel->collective = pass->collective[key];
		kernel->count = sum->count;
		kernel->sum_ns = sum->sum_ns;
		kernel->min_ns = sum->min_ns;
		kernel->max_ns = sum->max_ns;
		kernel->mean_ns = sum->sum_ns / sum->count;
		kernel->coverage = (double)sum->launched / (double)sum->count;
		kernel->share = fact->kernel_sum_ns
					? (double)sum->sum_ns / (double)fact->kernel_sum_ns
					: NAN;
	}
	VEC_DONE(&pass->keys);
	free(pass->sums);
}

static void pass_finish(struct pass *pass, const struct tl_device *device)
{
	struct device_fact *fact = pass->fact;

	fact->busy_ns = cover_total(&pass->busy);
	fact->working_ns = fact->busy_ns;
	fact->idle_ns = fact->span_ns - fact->busy_ns;
	fact->kernel_ns = cover_total(&pass->kernel);
	fact->copy_ns = cover_total(&pass->copy);
	fact->compute_idle_ns = fact->span_ns - fact->kernel_ns;
	fact->copy_overlap_ns = cover_total(&pass->copy_kernel.cover);
	fact->stream_overlap_ns = cover_total(&pass->streams.cover);
	fact->collective_ns = cover_total(&pass->collective_cover);
	fact->collective_hidden_ns = cover_total(&pass->collective_other.cover);
	if (fact->kernel_count)
		fact->coverage = 1 - (double)fact->unmatched_ops / (double)fact->kernel_count;
	fact->kernel_p50_ns = quantiles_get(&pass->kernel_ns, 0.5);
	fact->delay_p50_ns = quantiles_get(&pass->delay_ns, 0.5);
	fact->delay_p95_ns = quantiles_get(&pass->delay_ns, 0.95);
	if (device->launch_count) {
		fact->queue_max = pass->depth.most;
		if (pass->depth.unordered || pass->timeline->calls.gpu_ns.count)
			fact->queue_max =
				queue_depth_max(pass->timeline, device, pass->depth.queued_count);
		if (fact->span_ns > 0)
			fact->queue_mean = (double)pass->depth.queued_ns / (double)fact->span_ns;
	}
	quantiles_done(&pass->kernel_ns);
	quantiles_done(&pass->delay_ns);
}

/* Copies by kind and host memory: its places in enum host_memory. */
static void copy_facts(const struct timeline *timeline, uint32_t index, struct facts *facts)
{
	enum { KINDS = COPY_PTOP + 1, MEMORIES = HOST_MEMORY_MANAGED + 1 };
	const struct tl_ops *ops = &timeline->ops;
	const struct tl_device *device = &timeline->devices[index];
	struct copy_fact copies[KINDS][MEMORIES] = { 0 };
	struct cover covers[KINDS][MEMORIES] = { 0 };
	struct device_fact *fact = &facts->devices.at[index];
	uint8_t *kind_of = fact->memcpy_count ? mem_zero(ops->count + 1) : NULL;

	for (size_t i = 0; kind_of && i < ops->copies.count; i++) {
		const struct tl_copy *copy = &ops->copies.at[i];
		struct copy_fact *at = &copies[copy->kind][copy->host_memory];

		if (op_segment(timeline, copy->op)->device != index)
			continue;
		at->kind = copy->kind;
		at->managed = copy->host_memory == HOST_MEMORY_MANAGED;
		at->pageable = copy->host_memory == HOST_MEMORY_UNKNOWN || at->managed
				       ? -1
				       : copy->host_memory == HOST_MEMORY_PAGEABLE;
		at->count++;
		at->sum_ns = capped_add(at->sum_ns, op_ns(ops, copy->op));
		kind_of[copy->op] = (uint8_t)(1 + copy->kind * MEMORIES + copy->host_memory);
		if (copy->bytes == FACT_UNKNOWN)
			continue;
		at->bytes = capped_add(at->bytes, copy->bytes);
		at->tiny_count += copy->bytes <= TINY_COPY_BYTES;
		fact->memcpy_bytes = capped_add(fact->memcpy_bytes, copy->bytes);
	}
	for (size_t i = 0; kind_of && i < device->count; i++) {
		uint32_t op = device_op(device, i);
		int kind = kind_of[op] - 1;

		if (kind >= 0)
			cover_add(&covers[kind / MEMORIES][kind % MEMORIES], op_start(ops, op),
				  op_end(ops, op));
	}
	for (int i = 0; i < KINDS * MEMORIES; i++) {
		struct copy_fact *at = &copies[i / MEMORIES][i % MEMORIES];

		if (!at->count)
			continue;
		at->device = index;
		at->union_ns = cover_total(&covers[i / MEMORIES][i % MEMORIES]);
		at->gbps =
			at->sum_ns > 0 && at->bytes ? (double)at->bytes / (double)at->sum_ns : NAN;
		at->link_peak_gbps = NAN;
		*VEC_ADD(&facts->copies) = *at;
	}
	free(kind_of);
}

static void what_overlaps(struct pass *pass, uint32_t index)
{
	const struct timeline *timeline = pass->timeline;
	const struct tl_segment *first = NULL;

	for (size_t s = 0; s < timeline->ops.segments.count; s++) {
		const struct tl_segment *segment = &timeline->ops.segments.at[s];

		if (segment->device != index)
			continue;
		first = first ? first : segment;
		pass->several_streams |= segment->lane != first->lane;
		pass->any_copies |= segment->kind == STORE_memcpy;
	}
	for (size_t i = 0; i < timeline->session->keys.count; i++)
		pass->any_collectives |= pass->collective[i];
}

static void device_time(struct timeline *timeline, struct facts *facts, uint32_t index,
			const bool *collective)
{
	const struct tl_ops *ops = &timeline->ops;
	const struct tl_device *device = &timeline->devices[index];
	struct device_fact *fact = &facts->devices.at[index];
	struct pass pass = { .timeline = timeline,
			     .fact = fact,
			     .collective = collective,
			     .depth = { .walk = { .timeline = timeline, .device = device },
					.end_ns = INT64_MIN } };
	int64_t last;

	pass.sums = mem_zero((timeline->session->keys.count + 1) * sizeof(*pass.sums));
	what_overlaps(&pass, index);
	fact->has_timeline = true;
	depth_next(&pass.depth);
	last = op_end(ops, device_op(device, 0));
	for (size_t i = 0; i < device->count; i++) {
		int64_t end = pass_op(&pass, device_op(device, i), &device->pauses, last);

		last = end > last ? end : last;
	}
	/* Are the launches behind the last op in order, too? */
	while (pass.depth.launch != TL_NONE)
		depth_next(&pass.depth);
	device_window(timeline, index, fact, op_start(ops, device_op(device, 0)), last);
	for (size_t i = 0; i < device->pauses.count; i++)
		*VEC_ADD(&fact->pauses) = device->pauses.at[i];
	pass_finish(&pass, device);
	kernels_finish(&pass, facts);
	copy_facts(timeline, index, facts);
}

void device_times(struct timeline *timeline, struct facts *facts)
{
	const struct session *session = timeline->session;
	bool *collective = mem_zero(session->keys.count + 1);

	for (size_t i = 0; i < session->keys.count; i++)
		collective[i] = collective_name(session_text(session, session->keys.at[i].name));
	for (uint32_t i = 0; i < session->devices.count; i++)
		if (timeline->devices[i].count)
			device_time(timeline, facts, i, collective);
	free(collective);
}
