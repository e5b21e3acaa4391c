/*
 * Set-up and the steady part behind it.
 *
 * A process loads modules, compiles, makes its context and obtains memory
 * once. That is the program's start, not how its loop runs, so what follows
 * is told apart: the steady part of a device begins where hardly any set-up
 * is left. doc/analysis.md, "Set-up and the steady part".
 */
#include "analyze/timeline.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Set-up of so small a share of what follows is noise: half of what makes a
 * GPU "starved", so it can't turn that verdict. */
static const double REST_SHARE = 0.05;
/* A start that is a smaller share of the span changes no verdict: half of the
 * least difference between "noted" and "bad". */
static const double LEFT_OUT_LEAST = 0.10;
/* What follows must be what the recording is about: most of its kernels. */
static const double KERNELS_LEAST = 0.5;
/* No launching takes so long; the first launch of a kernel does where the
 * driver loads its code then (CUDA Programming Guide, "Lazy Loading"). */
static const int64_t FIRST_LAUNCH_NS = 1000000;

/* CUPTI's work for a context takes 1 to 2 ms a piece on an H200, that for its end 0.04 ms. */
static const int64_t CONTEXT_WORK_NS = 500000;
/* Calls inside the one that is looked for. */
enum { CALLS_INSIDE = 8 };

static const struct {
	const char *starts;
	enum setup_kind kind;
} NAMES[] = {
	/* CUPTI's overhead records, as sonde and as Kineto spell them. */
	{ "runtime triggered module loading", SETUP_LOAD },
	{ "lazy function loading", SETUP_LOAD },
	{ "driver compiler", SETUP_JIT },
	{ "jit", SETUP_JIT },
	{ "resource", SETUP_CONTEXT },
	/* CUDA and HIP. */
	{ "cuLibraryLoad", SETUP_LOAD },
	{ "cudaLibraryLoad", SETUP_LOAD },
	{ "cuModuleLoad", SETUP_LOAD },
	{ "hipModuleLoad", SETUP_LOAD },
	{ "cuLink", SETUP_JIT },
	{ "cuInit", SETUP_CONTEXT },
	{ "cuCtxCreate", SETUP_CONTEXT },
	{ "cuDevicePrimaryCtxRetain", SETUP_CONTEXT },
	{ "cudaSetDevice", SETUP_CONTEXT },
	{ "cudaInitDevice", SETUP_CONTEXT },
	{ "hipInit", SETUP_CONTEXT },
	{ "cudaMalloc", SETUP_MEMORY },
	{ "cudaHostAlloc", SETUP_MEMORY },
	{ "cudaHostRegister", SETUP_MEMORY },
	{ "cuMemAlloc", SETUP_MEMORY },
	{ "cuMemHostAlloc", SETUP_MEMORY },
	{ "cuMemCreate", SETUP_MEMORY },
	{ "cuMemMap", SETUP_MEMORY },
	{ "cudaStreamCreate", SETUP_MEMORY },
	{ "cuStreamCreate", SETUP_MEMORY },
	{ "hipMalloc", SETUP_MEMORY },
	{ "hipHostMalloc", SETUP_MEMORY },
	{ "hipStreamCreate", SETUP_MEMORY },
};

enum setup_kind setup_kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++)
		if (!strncasecmp(name, NAMES[i].starts, strlen(NAMES[i].starts)))
			return NAMES[i].kind;
	return SETUP_NONE;
}

const char *setup_name(enum setup_kind kind)
{
	static const char *const names[] = {
#define X(id, name) [SETUP_##id] = name,
		SETUP_LIST(X)
#undef X
	};

	return names[kind];
}

struct event {
	int64_t start, end;
	uint32_t source;
	uint8_t kind;
};

struct setup {
	struct timeline *timeline;
	VEC(struct event) events;
};

static void add(struct setup *setup, uint32_t source, enum setup_kind kind, int64_t start,
		int64_t end)
{
	*VEC_ADD(&setup->events) = (struct event){ start, end, source, (uint8_t)kind };
}

/* Does any call last as long as one that brings a kernel's code? */
static bool any_long_call(const struct facts *facts)
{
	for (size_t i = 0; i < facts->calls.count; i++)
		if (facts->calls.at[i].max_ns >= FIRST_LAUNCH_NS)
			return true;
	return false;
}

static bool any_setup_call(const struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->calls.names.count; i++)
		if (timeline->setup_of[timeline->calls.names.at[i]])
			return true;
	return false;
}

static void lane_events(struct setup *setup, const struct tl_lane *lane, bool any_calls)
{
	const struct timeline *timeline = setup->timeline;
	const struct tl_calls *calls = &timeline->calls;
	uint32_t end = lane->first_call + lane->call_count;

	for (size_t i = 0; i < lane->frame_count; i++) {
		const struct tl_frame *frame = &lane->frames[i];

		if (frame->kind == ACTIVITY_CALL && timeline->setup_of[frame->name])
			add(setup, lane->source, timeline->setup_of[frame->name], frame->start,
			    frame->end);
	}
	for (uint32_t i = lane->first_call; any_calls && i < end; i++)
		if (timeline->setup_of[call_name(calls, i)])
			add(setup, lane->source, timeline->setup_of[call_name(calls, i)],
			    call_start(calls, i), call_end(calls, i));
}

/* The call of the lane that is open at `time`; TL_NONE. Of the runtime's and the driver's
 * inside it the outer one. */
static uint32_t call_open_at(const struct tl_calls *calls, const struct tl_lane *lane, int64_t time)
{
	uint32_t from = lane->first_call, to = from + lane->call_count;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (call_start(calls, middle) <= time)
			from = middle + 1;
		else
			to = middle;
	}
	for (uint32_t i = from, n = 0; i > lane->first_call && n < CALLS_INSIDE; n++) {
		i--;
		if (call_end(calls, i) > time &&
		    (i == lane->first_call || call_end(calls, i - 1) < call_end(calls, i)))
			return i;
	}
	return TL_NONE;
}

/* Which calls made a context: CUPTI's own work for it lies in them. Its name on the list of
 * calls is that of what was asked for, which took a small part of the time. */
static void context_calls(struct setup *setup, struct facts *facts)
{
	const struct timeline *timeline = setup->timeline;
	const struct tl_calls *calls = &timeline->calls;
	struct map by_name = { 0 };

	for (size_t i = 0; i < facts->calls.count; i++)
		map_put(&by_name, facts->calls.at[i].name, i);
	for (size_t k = 0; k < timeline->lanes.count; k++) {
		const struct tl_lane *lane = &timeline->lanes.at[k];
		uint32_t last = TL_NONE;

		for (size_t i = 0; i < lane->frame_count; i++) {
			const struct tl_frame *frame = &lane->frames[i];
			const uint64_t *found;
			uint32_t call;

			if (frame->kind != ACTIVITY_CALL ||
			    frame->end - frame->start < CONTEXT_WORK_NS ||
			    timeline->setup_of[frame->name] != SETUP_CONTEXT)
				continue;
			call = call_open_at(calls, lane, frame->start);
			if (call == TL_NONE || call == last)
				continue;
			last = call;
			add(setup, lane->source, SETUP_CONTEXT, call_start(calls, call),
			    call_end(calls, call));
			found = map_find(&by_name, call_name(calls, call));
			if (found)
				facts->calls.at[*found].context_ns = capped_add(
					facts->calls.at[*found].context_ns, call_ns(calls, call));
		}
	}
	map_done(&by_name);
}

/* The first launch of each kernel, where it took long. */
static void first_launches(struct setup *setup)
{
	struct timeline *timeline = setup->timeline;
	const struct session *session = timeline->session;
	const struct tl_ops *ops = &timeline->ops;

	for (uint32_t d = 0; d < session->devices.count; d++) {
		const struct tl_device *device = &timeline->devices[d];
		bool *seen = device->count ? mem_zero(timeline->name_count + 1) : NULL;
		/* The keys themselves lie far apart: ten million looks at them take long. */
		bool *seen_key = device->count ? mem_zero(session->keys.count + 1) : NULL;

		for (size_t i = 0; i < device->count; i++) {
			uint32_t op = device_op(device, i), call = ops->call[op], name;
			const struct tl_segment *segment = op_segment(timeline, op);
			int64_t start, end;

			if (segment->kind != STORE_kernel || ops->key[op] >= session->keys.count ||
			    seen_key[ops->key[op]])
				continue;
			seen_key[ops->key[op]] = true;
			name = session->keys.at[ops->key[op]].name;
			if (name >= timeline->name_count || seen[name])
				continue;
			seen[name] = true;
			if (call >= TL_BEFORE)
				continue;
			start = call_start(&timeline->calls, call);
			end = call_end(&timeline->calls, call);
			if (end - start < FIRST_LAUNCH_NS)
				continue;
			map_put(&timeline->first_launches, call, 1);
			add(setup, segment->source, SETUP_LAUNCH, start, end);
		}
		free(seen_key);
		free(seen);
	}
}

bool device_runs(const struct timeline *timeline, uint32_t device, uint32_t source)
{
	for (size_t i = 0; i < timeline->ops.segments.count; i++)
		if (timeline->ops.segments.at[i].device == device &&
		    timeline->ops.segments.at[i].source == source)
			return true;
	return false;
}

/* The set-up of the device's sources of kinds up to `kind`, cut to [from, to). */
static size_t intervals(const struct setup *setup, const bool *sources, enum setup_kind kind,
			int64_t from, int64_t to, struct interval *ret_at)
{
	size_t count = 0;

	for (size_t i = 0; i < setup->events.count; i++) {
		const struct event *event = &setup->events.at[i];
		int64_t start = event->start > from ? event->start : from;
		int64_t end = event->end < to ? event->end : to;

		if (sources[event->source] && event->kind <= kind && start < end)
			ret_at[count++] = (struct interval){ start, end };
	}
	return interval_union(ret_at, count);
}

/* The first kernel of the device, if memory or code for it came within the
 * recording before anything ran: then what ran before it brought the data. */
static int64_t first_kernel(const struct setup *setup, const struct tl_device *device,
			    const bool *sources)
{
	const struct timeline *timeline = setup->timeline;
	int64_t first = op_start(&timeline->ops, device_op(device, 0));
	bool begun = false;

	for (size_t i = 0; i < setup->events.count && !begun; i++)
		begun = sources[setup->events.at[i].source] && setup->events.at[i].start < first;
	for (size_t i = 0; begun && i < device->count; i++) {
		uint32_t op = device_op(device, i);
		enum store_kind kind = op_segment(timeline, op)->kind;

		if (kind == STORE_kernel || kind == STORE_graph)
			return op_start(&timeline->ops, op);
	}
	return first;
}

/* The earliest time behind which set-up is a small part of the rest. */
static int64_t steady_from(const struct interval *setup, size_t count, int64_t from, int64_t end)
{
	int64_t after = 0;
	size_t next = 0;

	while (next < count && setup[next].end <= from)
		next++;
	for (size_t i = next; i < count; i++)
		after += setup[i].end - (setup[i].start > from ? setup[i].start : from);
	for (; next < count && (double)after > REST_SHARE * (double)(end - from); next++) {
		after -= setup[next].end - (setup[next].start > from ? setup[next].start : from);
		from = setup[next].end;
	}
	return from;
}

/* Times of the steady part: from the first op at or after `from`. */
static void steady_times(const struct timeline *timeline, const struct tl_device *device,
			 int64_t from, int64_t end, struct steady_fact *steady)
{
	const struct tl_ops *ops = &timeline->ops;
	struct cover busy = { 0 }, kernel = { 0 };
	int64_t last, paused_ns = 0;
	size_t first = 0;

	while (first < device->count && op_start(ops, device_op(device, first)) < from)
		first++;
	if (first == device->count)
		return;
	steady->start_ns = op_start(ops, device_op(device, first));
	last = steady->start_ns;
	for (size_t i = 0; i < device->count; i++) {
		uint32_t op = device_op(device, i), call = ops->call[op];
		enum store_kind kind = op_segment(timeline, op)->kind;
		bool late = op_start(ops, op) < steady->start_ns;
		int64_t start = late ? steady->start_ns : op_start(ops, op);

		if (op_end(ops, op) <= start && late)
			continue;
		cover_add(&busy, start, op_end(ops, op));
		paused_ns += pauses_within(&device->pauses, last, start);
		last = op_end(ops, op) > last ? op_end(ops, op) : last;
		if (kind == STORE_kernel || kind == STORE_graph)
			cover_add(&kernel, start, op_end(ops, op));
		if (late)
			continue;
		steady->kernel_count += kind == STORE_kernel;
		if (call < TL_BEFORE && timeline->calls.first_op[call] == op)
			steady->launch_sum_ns += call_ns(&timeline->calls, call);
	}
	steady->span_ns = end - steady->start_ns - paused_ns;
	steady->busy_ns = cover_total(&busy);
	steady->kernel_ns = cover_total(&kernel);
	steady->idle_ns = steady->span_ns - steady->busy_ns;
}

/* Of [start, end) what no known interval covers; *at is the first of them that may. */
static int64_t beside(const struct interval *known, size_t count, size_t *at, int64_t start,
		      int64_t end)
{
	int64_t ns = end - start;

	while (*at < count && known[*at].end <= start)
		++*at;
	for (size_t i = *at; i < count && known[i].start < end; i++)
		ns -= (known[i].end < end ? known[i].end : end) -
		      (known[i].start > start ? known[i].start : start);
	return ns;
}

/* How long the device was at work before `to`, beside what is known to be set-up. */
static int64_t busy_beside(const struct timeline *timeline, const struct tl_device *device,
			   int64_t to, const struct interval *known, size_t count)
{
	int64_t start = INT64_MIN, end = INT64_MIN, ns = 0;
	size_t at = 0;

	for (size_t i = 0; i < device->count; i++) {
		uint32_t op = device_op(device, i);
		int64_t from = op_start(&timeline->ops, op), until = op_end(&timeline->ops, op);

		if (from >= to)
			break;
		until = until < to ? until : to;
		if (from > end) {
			ns += end > start ? beside(known, count, &at, start, end) : 0;
			start = from;
		}
		end = until > end ? until : end;
	}
	return ns + (end > start ? beside(known, count, &at, start, end) : 0);
}

/* What the time before was for: what loads while something compiles compiles, and
 * so on in the order of kinds. */
static void setup_parts(const struct setup *setup, const bool *sources,
			const struct tl_device *device, struct device_fact *fact,
			struct interval *spare)
{
	struct setup_fact *out = &fact->setup;
	int64_t known = 0;
	size_t count = 0;

	out->start_ns = fact->window_start_ns;
	out->ns = fact->steady.start_ns - fact->window_start_ns;
	for (int kind = SETUP_NONE + 1; kind <= SETUP_MEMORY; kind++) {
		int64_t covered;

		count = intervals(setup, sources, kind, out->start_ns, fact->steady.start_ns,
				  spare);
		covered = interval_length(spare, count);
		out->part_ns[kind] = covered - known;
		known = covered;
	}
	out->part_ns[SETUP_BUSY] =
		busy_beside(setup->timeline, device, fact->steady.start_ns, spare, count);
	out->other_ns = out->ns - known - out->part_ns[SETUP_BUSY];
}

static void device_setup(struct setup *setup, struct facts *facts, uint32_t index,
			 struct interval *spare)
{
	struct timeline *timeline = setup->timeline;
	const struct tl_device *device = &timeline->devices[index];
	struct device_fact *fact = &facts->devices.at[index];
	bool *sources = mem_zero(timeline->session->sources.count + 1);
	int64_t first = op_start(&timeline->ops, device_op(device, 0));
	int64_t end = first + fact->span_ns + fact->paused_ns, from;
	struct steady_fact steady = { 0 };
	size_t count;

	for (uint32_t i = 0; i < timeline->session->sources.count; i++)
		sources[i] = device_runs(timeline, index, i);
	/* Memory that is obtained in the loop is the loop's. */
	count = intervals(setup, sources, SETUP_LAUNCH, first, end, spare);
	from = steady_from(spare, count, first_kernel(setup, device, sources), end);
	if ((double)(from - first) >= LEFT_OUT_LEAST * (double)fact->span_ns)
		steady_times(timeline, device, from, end, &steady);
	if (steady.span_ns > 0 &&
	    (double)steady.kernel_count >= KERNELS_LEAST * (double)fact->kernel_count) {
		steady.has = true;
		fact->steady = steady;
		setup_parts(setup, sources, device, fact, spare);
	}
	free(sources);
}

void setup_facts(struct timeline *timeline, struct facts *facts)
{
	struct setup setup = { .timeline = timeline };
	struct interval *spare;
	bool any_calls;

	timeline->setup_of = mem_zero(timeline->name_count + 1);
	for (uint32_t i = 0; i < timeline->name_count; i++)
		timeline->setup_of[i] = (uint8_t)setup_kind_of(session_text(timeline->session, i));
	if (any_long_call(facts))
		first_launches(&setup);
	any_calls = any_setup_call(timeline);
	for (size_t i = 0; i < timeline->lanes.count; i++)
		lane_events(&setup, &timeline->lanes.at[i], any_calls);
	context_calls(&setup, facts);
	spare = mem_alloc((setup.events.count + 1) * sizeof(*spare));
	for (uint32_t i = 0; i < facts->devices.count; i++)
		if (facts->devices.at[i].has_timeline)
			device_setup(&setup, facts, i, spare);
	free(spare);
	VEC_DONE(&setup.events);
}
