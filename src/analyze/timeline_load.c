#include "analyze/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/array.h"
#include "analyze/order.h"

/* Ids are 32 bits and TL_NONE and TL_BEFORE are taken. */
static const size_t EVENTS_LIMIT = UINT32_MAX - 2;

struct timeline *timeline_new(const struct session *session)
{
	struct timeline *timeline = mem_zero(sizeof(*timeline));
	size_t sources = session->sources.count;

	timeline->session = session;
	timeline->shift_ns = mem_zero((sources + 1) * sizeof(int64_t));
	timeline->source_calls = mem_zero((sources + 1) * sizeof(int64_t));
	timeline->least_correlation = mem_zero((sources + 1) * sizeof(uint64_t));
	timeline->window_start = mem_zero((sources + 1) * sizeof(int64_t));
	timeline->window_end = mem_zero((sources + 1) * sizeof(int64_t));
	for (size_t i = 0; i < sources; i++) {
		timeline->shift_ns[i] = session_time(session, (uint32_t)i, 0);
		timeline->least_correlation[i] = UINT64_MAX;
		timeline->window_start[i] = INT64_MAX;
		timeline->window_end[i] = INT64_MIN;
	}
	timeline->devices = mem_zero((session->devices.count + 1) * sizeof(struct tl_device));
	timeline->last_segment = mem_zero(sizeof(*timeline->last_segment));
	timeline->name_count = intern_count(session->strings);
	return timeline;
}

void timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return;
	free(timeline->shift_ns);
	free(timeline->source_calls);
	free(timeline->least_correlation);
	for (size_t i = 0; timeline->pauses && i < timeline->session->sources.count; i++)
		pauses_done(&timeline->pauses[i]);
	free(timeline->pauses);
	free(timeline->window_start);
	free(timeline->window_end);
	VEC_DONE(&timeline->collectives);
	VEC_DONE(&timeline->unsized);
	VEC_DONE(&timeline->readbacks);
	VEC_DONE(&timeline->loading);
	spans_done(&timeline->ops.spans);
	free(timeline->ops.key);
	free(timeline->last_segment);
	free(timeline->ops.call);
	VEC_DONE(&timeline->ops.segments);
	VEC_DONE(&timeline->ops.copies);
	VEC_DONE(&timeline->ops.moved);
	spans_done(&timeline->calls.spans);
	free(timeline->calls.what);
	VEC_DONE(&timeline->calls.names);
	free(timeline->calls.first_op);
	map_done(&timeline->calls.gpu_ns);
	map_done(&timeline->wide.number);
	VEC_DONE(&timeline->wide.values);
	VEC_DONE(&timeline->calls.segments);
	for (size_t i = 0; timeline->devices && i < timeline->session->devices.count; i++) {
		pauses_done(&timeline->devices[i].pauses);
		free(timeline->devices[i].order);
		VEC_DONE(&timeline->devices[i].launches);
		VEC_DONE(&timeline->devices[i].waits);
	}
	free(timeline->devices);
	for (size_t i = 0; i < timeline->lanes.count; i++)
		free(timeline->lanes.at[i].frames);
	VEC_DONE(&timeline->lanes);
	VEC_DONE(&timeline->ranges);
	for (int i = 0; i < LOOK_KIND_COUNT; i++)
		VEC_DONE(&timeline->looks[i]);
	free(timeline->setup_of);
	map_done(&timeline->first_launches);
	free(timeline);
}

const struct tl_segment *segment_find(const struct timeline *timeline, uint32_t op)
{
	const struct tl_segment *segments = timeline->ops.segments.at;
	size_t low = 0, high = timeline->ops.segments.count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (segments[middle].first <= op)
			low = middle;
		else
			high = middle;
	}
	*timeline->last_segment = &segments[low];
	return &segments[low];
}

static int room(size_t count, size_t more, size_t *room, struct err *err)
{
	size_t wanted = *room;

	if (more > EVENTS_LIMIT - count)
		return err_set(err, ERR_LIMIT, "more than 4 billion device operations or calls");
	if (count + more <= *room)
		return 0;
	wanted += wanted / 2;
	if (wanted < count + more)
		wanted = count + more;
	*room = wanted;
	return 1;
}

#define GROW(array, used, n) \
	(array) = array_resize((array), (used) * sizeof(*(array)), (n) * sizeof(*(array)))

/* Room for `count` more. ERR_LIMIT beyond 2^32 - 2. */
static int ops_room(struct tl_ops *ops, size_t count, struct err *err)
{
	int grow = room(ops->count, count, &ops->room, err);

	if (grow <= 0)
		return grow;
	spans_room(&ops->spans, ops->count, ops->room);
	GROW(ops->key, ops->count, ops->room);
	GROW(ops->call, ops->count, ops->room);
	return 0;
}

static int calls_room(struct tl_calls *calls, size_t count, struct err *err)
{
	int grow = room(calls->count, count, &calls->room, err);

	if (grow <= 0)
		return grow;
	spans_room(&calls->spans, calls->count, calls->room);
	GROW(calls->what, calls->count, calls->room);
	GROW(calls->first_op, calls->count, calls->room);
	return 0;
}

static int64_t clamp_ns(int64_t ns)
{
	if (ns > TIME_LIMIT_NS)
		return TIME_LIMIT_NS;
	return ns < -TIME_LIMIT_NS ? -TIME_LIMIT_NS : ns;
}

void timeline_time(const struct timeline *timeline, uint32_t source, int64_t start,
		   int64_t duration, int64_t *ret_start, int64_t *ret_end)
{
	int64_t from = clamp_ns(capped_add(start, timeline->shift_ns[source]));

	*ret_start = from;
	*ret_end = duration > 0 ? clamp_ns(capped_add(from, duration)) : from;
}

static uint32_t narrow(struct tl_wide *wide, uint64_t correlation)
{
	uint64_t *number;

	if (correlation < TL_WIDE)
		return (uint32_t)correlation;
	number = map_find(&wide->number, correlation);
	if (number)
		return (uint32_t)*number;
	if (wide->values.count >= TL_BEFORE - TL_WIDE)
		return 0;
	map_put(&wide->number, correlation, TL_WIDE + wide->values.count);
	*VEC_ADD(&wide->values) = correlation;
	return (uint32_t)(TL_WIDE + wide->values.count - 1);
}

/* Is none of a batch's times so large that sums could overflow or be cut? */
static bool times_tame(const struct store_batch *batch, int64_t shift)
{
	const int64_t *start = batch->col[COL_start], *duration = batch->col[COL_duration];
	const uint64_t limit = (uint64_t)TIME_LIMIT_NS / 4;
	bool tame = (uint64_t)shift + limit < 2 * limit;

	for (size_t i = 0; i < batch->count; i++)
		tame &= (uint64_t)start[i] + limit < 2 * limit && (uint64_t)duration[i] < limit;
	return tame;
}

/* The times of a batch, whose first event comes to place `at`. */
static void take_times(const struct timeline *timeline, uint32_t source,
		       const struct store_batch *batch, size_t at, struct spans *spans)
{
	const int64_t *start = batch->col[COL_start], *duration = batch->col[COL_duration];
	int64_t shift = timeline->shift_ns[source];

	if (times_tame(batch, shift)) {
		spans_put_many(spans, at, start, shift, duration, batch->count);
		return;
	}
	for (size_t i = 0; i < batch->count; i++) {
		int64_t from, end;

		timeline_time(timeline, source, start[i], duration[i], &from, &end);
		spans_put(spans, at + i, from, end - from);
	}
}

static void ops_batch(struct timeline *timeline, const struct store_batch *batch,
		      const struct tl_segment *segment)
{
	struct tl_ops *ops = &timeline->ops;
	bool kernel = batch->kind == STORE_kernel;
	const int64_t *key = batch->col[kernel ? COL_key : COL_name];
	const int64_t *correlation = batch->col[COL_correlation];
	size_t limit = kernel ? timeline->session->keys.count : timeline->name_count;

	take_times(timeline, segment->source, batch, ops->count, &ops->spans);
	for (size_t i = 0; i < batch->count; i++) {
		size_t at = ops->count + i;
		uint64_t id = key ? (uint64_t)key[i] : 0;

		ops->key[at] = id < limit ? (uint32_t)id : 0;
		ops->call[at] = correlation ? narrow(&timeline->wide, (uint64_t)correlation[i]) : 0;
	}
	for (size_t i = 0; batch->kind == STORE_memcpy && i < batch->count; i++) {
		struct tl_copy *copy = VEC_ADD(&ops->copies);
		const int64_t *bytes = batch->col[COL_bytes], *kind = batch->col[COL_copy];
		const int64_t *memory = batch->col[COL_host_memory];

		copy->op = (uint32_t)(ops->count + i);
		copy->bytes = bytes && bytes[i] >= 0 ? bytes[i] : FACT_UNKNOWN;
		copy->kind = kind && kind[i] >= 0 && kind[i] <= COPY_PTOP ? (uint8_t)kind[i] : 0;
		copy->host_memory = memory && memory[i] >= 0 && memory[i] <= HOST_MEMORY_MANAGED
					    ? (uint8_t)memory[i]
					    : 0;
	}
	ops->count += batch->count;
}

/* The segment that a batch belongs to: the last one or a new one. */
static struct tl_segment *segment_for(const struct lane *lane, const struct store_batch *batch,
				      struct tl_segment *last, uint32_t at)
{
	if (last->first != TL_NONE && last->lane == batch->lane && last->kind == batch->kind)
		return NULL;
	*last = (struct tl_segment){ .lane = batch->lane,
				     .device = lane->device,
				     .source = lane->source,
				     .kind = batch->kind,
				     .first = at };
	return last;
}

/* As many events as the file says it has: believed only so far, as it costs
 * memory. */
static size_t expected(struct store *store, uint32_t kinds)
{
	enum { BELIEVED = 1 << 25 };
	int64_t count = 0;

	for (int kind = 0; kind < STORE_KIND_COUNT; kind++)
		if (kinds & STORE_BIT(kind))
			count = capped_add(count, store_count(store, kind));
	if (count < 0)
		return 0;
	return count < BELIEVED ? (size_t)count : BELIEVED;
}

/* Sorted events of a part: order[i] is the event that belongs at place i of it. */
#define PERMUTE(array, part, order, spare)                                           \
	do {                                                                         \
		size_t count_ = (part)->last - (part)->first;                        \
		for (size_t i_ = 0; i_ < count_; i_++)                               \
			(spare)[i_] = (array)[(order)[i_]];                          \
		memcpy(&(array)[(part)->first], (spare), count_ * sizeof(*(array))); \
	} while (0)

/* Chunks of a lane overlap at their ends, and those of a kind another kind. */
static uint32_t *part_order(const struct order_part *part, const struct spans *spans)
{
	size_t count = part->last - part->first;
	uint32_t *order = array_new(count * sizeof(*order));

	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)(part->first + i);
	order_sort(order, count, spans, true);
	return order;
}

static void spans_permute(struct spans *spans, const struct order_part *part, const uint32_t *order)
{
	size_t count = part->last - part->first;
	int64_t *start = array_new(count * sizeof(*start)), *ns = array_new(count * sizeof(*ns));

	for (size_t i = 0; i < count; i++) {
		start[i] = spans_start(spans, order[i]);
		ns[i] = spans_ns(spans, order[i]);
	}
	spans_put_many(spans, part->first, start, 0, ns, count);
	free(start);
	free(ns);
}

/* The copies of a segment are all its ops. */
static void copies_permute(struct tl_ops *ops, const struct order_part *part, const uint32_t *order)
{
	size_t count = part->last - part->first;
	struct tl_copy *at = copy_find(ops, (uint32_t)part->first);
	struct tl_copy *spare = mem_alloc(count * sizeof(*spare));

	for (size_t i = 0; i < count; i++) {
		spare[i] = at[order[i] - part->first];
		spare[i].op = (uint32_t)(part->first + i);
	}
	memcpy(at, spare, count * sizeof(*spare));
	free(spare);
}

static void ops_sort(struct tl_ops *ops, const struct tl_segment *segment)
{
	struct order_part *parts;
	size_t count =
		order_parts(&ops->spans, segment->first, segment->first + segment->count, &parts);

	for (size_t p = 0; p < count; p++) {
		const struct order_part *part = &parts[p];
		uint32_t *order = part_order(part, &ops->spans);
		uint32_t *spare32 = array_new((part->last - part->first) * sizeof(*spare32));

		spans_permute(&ops->spans, part, order);
		PERMUTE(ops->key, part, order, spare32);
		PERMUTE(ops->call, part, order, spare32);
		if (segment->kind == STORE_memcpy)
			copies_permute(ops, part, order);
		for (size_t i = part->first; segment->kind == STORE_kernel && i < part->last; i++)
			spare32[order[i - part->first] - part->first] = (uint32_t)i;
		for (size_t i = part->first; segment->kind == STORE_kernel && i < part->last; i++)
			if (spare32[i - part->first] != i)
				*VEC_ADD(&ops->moved) =
					(struct tl_moved){ (uint32_t)i, spare32[i - part->first] };
		free(spare32);
		free(order);
	}
	free(parts);
}

int timeline_load_ops(struct timeline *timeline, struct store *store, struct err *err)
{
	/* Not STORE_device_other: what other accelerators ran is no GPU time. */
	struct store_query query = {
		.kinds = STORE_BIT(STORE_kernel) | STORE_BIT(STORE_memcpy) |
			 STORE_BIT(STORE_memset) | STORE_BIT(STORE_graph),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_duration) | COL_BIT(COL_name) |
			   COL_BIT(COL_key) | COL_BIT(COL_correlation) | COL_BIT(COL_bytes) |
			   COL_BIT(COL_copy) | COL_BIT(COL_host_memory),
		.keys_only = true,
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct tl_ops *ops = &timeline->ops;
	struct tl_segment last = { .first = TL_NONE };
	struct store_batch batch;
	int got;

	if (store_query_open(store, &query, &cursor, err) < 0 ||
	    ops_room(ops, expected(store, query.kinds), err) < 0)
		return err->code;
	while ((got = store_next(cursor, &batch, err)) > 0) {
		const struct lane *lane = &timeline->session->lanes.at[batch.lane];

		if (lane->device >= timeline->session->devices.count)
			continue;
		if (ops_room(ops, batch.count, err) < 0)
			return err->code;
		if (segment_for(lane, &batch, &last, (uint32_t)ops->count))
			*VEC_ADD(&ops->segments) = last;
		ops_batch(timeline, &batch, &last);
		ops->segments.at[ops->segments.count - 1].count += (uint32_t)batch.count;
	}
	for (size_t i = 0; got == 0 && i < ops->segments.count; i++)
		ops_sort(ops, &ops->segments.at[i]);
	return got;
}

static void calls_sort(struct tl_calls *calls, const struct tl_segment *segment)
{
	struct order_part *parts;
	size_t count =
		order_parts(&calls->spans, segment->first, segment->first + segment->count, &parts);

	for (size_t p = 0; p < count; p++) {
		const struct order_part *part = &parts[p];
		uint32_t *order = part_order(part, &calls->spans);
		uint32_t *spare32 = array_new((part->last - part->first) * sizeof(*spare32));
		uint16_t *spare16 = (uint16_t *)spare32;

		spans_permute(&calls->spans, part, order);
		PERMUTE(calls->what, part, order, spare16);
		PERMUTE(calls->first_op, part, order, spare32);
		free(spare32);
		free(order);
	}
	free(parts);
}

/* The number of a name, which numbers by name know once it has come. */
static uint16_t call_number(struct timeline *timeline, uint16_t *numbers, uint64_t name)
{
	struct tl_calls *calls = &timeline->calls;
	uint16_t number = name < timeline->name_count ? numbers[name] : 0;

	if (number || !name || name >= timeline->name_count)
		return number;
	if (calls->names.count == CALL_NAMES_MOST)
		return 0;
	number = (uint16_t)calls->names.count;
	*VEC_ADD(&calls->names) = (uint32_t)name;
	if (sync_call_name(session_text(timeline->session, (uint32_t)name)))
		number |= CALL_WAITS;
	numbers[name] = number;
	return number;
}

static void calls_batch(struct timeline *timeline, const struct store_batch *batch,
			const struct lane *lane, uint16_t *numbers)
{
	struct tl_calls *calls = &timeline->calls;
	const int64_t *name = batch->col[COL_name], *correlation = batch->col[COL_correlation];
	uint64_t least = timeline->least_correlation[lane->source];

	take_times(timeline, lane->source, batch, calls->count, &calls->spans);
	for (size_t i = 0; i < batch->count; i++) {
		size_t at = calls->count + i;

		calls->what[at] = call_number(timeline, numbers, name ? (uint64_t)name[i] : 0);
		calls->first_op[at] =
			correlation ? narrow(&timeline->wide, (uint64_t)correlation[i]) : 0;
		if (calls->first_op[at] && (uint64_t)correlation[i] < least)
			least = (uint64_t)correlation[i];
	}
	timeline->least_correlation[lane->source] = least;
	timeline->source_calls[lane->source] += (int64_t)batch->count;
	calls->count += batch->count;
}

int timeline_load_calls(struct timeline *timeline, struct store *store, struct err *err)
{
	struct store_query query = {
		.kinds = STORE_BIT(STORE_runtime) | STORE_BIT(STORE_driver),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_duration) | COL_BIT(COL_name) |
			   COL_BIT(COL_correlation),
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	OWN(own_freep) uint16_t *numbers = mem_zero((timeline->name_count + 1) * sizeof(*numbers));
	struct tl_calls *calls = &timeline->calls;
	struct store_batch batch;
	int got;

	*VEC_ADD(&calls->names) = 0;
	if (store_query_open(store, &query, &cursor, err) < 0 ||
	    calls_room(calls, expected(store, query.kinds), err) < 0)
		return err->code;
	while ((got = store_next(cursor, &batch, err)) > 0) {
		const struct lane *lane = &timeline->session->lanes.at[batch.lane];
		struct tl_segment *segment;

		if (calls_room(calls, batch.count, err) < 0)
			return err->code;
		segment = calls->segments.count ? &calls->segments.at[calls->segments.count - 1]
						: NULL;
		if (!segment || segment->lane != batch.lane) {
			segment = VEC_ADD(&calls->segments);
			segment->lane = batch.lane;
			segment->source = lane->source;
			segment->first = (uint32_t)calls->count;
		}
		segment->count += (uint32_t)batch.count;
		calls_batch(timeline, &batch, lane, numbers);
	}
	for (size_t i = 0; got == 0 && i < calls->segments.count; i++)
		calls_sort(calls, &calls->segments.at[i]);
	return got;
}
