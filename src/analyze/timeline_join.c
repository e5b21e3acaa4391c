/*
 * Ops and the calls that launched them.
 *
 * Correlations are counted up by CUPTI over all API calls of a process, so
 * within a source they fill a range rather densely: a table by correlation
 * joins ten million in a fraction of a second. A thread makes its calls in
 * order of correlation, and ops come nearly in the order of their launches: a
 * few threads are followed side by side, without any table. Where neither
 * helps, the calls are sorted by correlation and searched.
 */
#include "analyze/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/array.h"
#include "analyze/order.h"

/* A table may have this many slots for each call, and so many in all (256 MiB). */
static const uint32_t SLOTS_LIMIT = 1 << 26;
static const int64_t SLOTS_A_CALL = 16;

/* Threads that are followed: each costs a look for every op. */
enum { RUNS_MOST = 8 };

struct pair {
	uint32_t correlation;
	uint32_t call;
};

/* The calls of a thread, [first, last), if their correlations ascend. */
struct run {
	uint32_t first, last;
	uint32_t at; /* where the last one was found */
};

/* The calls of one source by correlation. */
struct by_correlation {
	uint32_t least, most;
	const uint32_t *ids; /* correlations by call */
	struct run runs[RUNS_MOST];
	size_t run_count; /* 0: use the table */
	uint32_t *table;  /* call + 1 by correlation - least; NULL: use pairs */
	struct pair *pairs;
	size_t pair_count;
};

static int by_pair(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->correlation != y->correlation)
		return x->correlation < y->correlation ? -1 : 1;
	return (x->call > y->call) - (x->call < y->call);
}

/* The usual case: one thread that launches, or a few. */
static bool index_ascending(const struct timeline *timeline, uint32_t source,
			    struct by_correlation *by)
{
	const struct tl_calls *calls = &timeline->calls;

	by->ids = calls->first_op;
	by->least = UINT32_MAX;
	for (size_t s = 0; s < calls->segments.count; s++) {
		const struct tl_segment *segment = &calls->segments.at[s];
		uint32_t last = segment->first + segment->count;

		if (segment->source != source || !segment->count)
			continue;
		if (by->run_count == RUNS_MOST || !by->ids[segment->first])
			return false;
		for (uint32_t i = segment->first + 1; i < last; i++)
			if (by->ids[i - 1] >= by->ids[i])
				return false;
		if (by->ids[segment->first] < by->least)
			by->least = by->ids[segment->first];
		if (by->ids[last - 1] > by->most)
			by->most = by->ids[last - 1];
		by->runs[by->run_count++] = (struct run){ segment->first, last, segment->first };
	}
	return by->run_count;
}

/* Look on from the last one found, in steps that double. */
static uint32_t find_near(const uint32_t *ids, struct run *run, uint32_t id)
{
	uint32_t low = run->at, high, step = 1;

	if (low + 1 < run->last && ids[low + 1] == id)
		return ++run->at;
	if (ids[low] <= id) {
		while (run->last - low > step && ids[low + step] <= id) {
			low += step;
			step *= 2;
		}
		high = run->last - low > step ? low + step : run->last;
	} else {
		high = low;
		while (low - run->first > step && ids[low - step] > id) {
			low -= step;
			high = low;
			step *= 2;
		}
		low = low - run->first > step ? low - step : run->first;
	}
	/* ids[low] <= id, unless all are above it, and id is before high. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (ids[middle] <= id)
			low = middle;
		else
			high = middle;
	}
	run->at = low;
	return ids[low] == id ? low : TL_NONE;
}

/* The first of the calls with that correlation. */
static uint32_t find_in_runs(struct by_correlation *by, uint32_t id)
{
	uint32_t call = TL_NONE;

	for (size_t i = 0; call == TL_NONE && i < by->run_count; i++)
		call = find_near(by->ids, &by->runs[i], id);
	return call;
}

static void index_calls(const struct timeline *timeline, uint32_t source, struct by_correlation *by)
{
	const struct tl_calls *calls = &timeline->calls;
	int64_t count = timeline->source_calls[source];
	uint32_t range;

	*by = (struct by_correlation){ .least = UINT32_MAX };
	for (size_t s = 0; s < calls->segments.count; s++) {
		const struct tl_segment *segment = &calls->segments.at[s];

		for (size_t i = 0; segment->source == source && i < segment->count; i++) {
			uint32_t id = calls->first_op[segment->first + i];

			if (id && id < by->least)
				by->least = id;
			if (id > by->most)
				by->most = id;
		}
	}
	if (by->least > by->most)
		return;
	range = by->most - by->least + 1;
	if (range <= SLOTS_LIMIT && range <= count * SLOTS_A_CALL + 4096)
		by->table = array_zero(range * sizeof(*by->table));
	else
		by->pairs = array_new((size_t)count * sizeof(*by->pairs));
	for (size_t s = 0; s < calls->segments.count; s++) {
		const struct tl_segment *segment = &calls->segments.at[s];

		for (size_t i = 0; segment->source == source && i < segment->count; i++) {
			uint32_t call = segment->first + (uint32_t)i;
			uint32_t id = calls->first_op[call];

			if (!id)
				continue;
			if (!by->table)
				by->pairs[by->pair_count++] = (struct pair){ id, call };
			else if (!by->table[id - by->least])
				by->table[id - by->least] = call + 1;
		}
	}
	if (by->pairs)
		qsort(by->pairs, by->pair_count, sizeof(*by->pairs), by_pair);
}

static uint32_t find_call(struct by_correlation *by, uint32_t id)
{
	size_t low = 0, high = by->pair_count;

	if (id < by->least || id > by->most)
		return TL_NONE;
	if (by->run_count)
		return find_in_runs(by, id);
	if (by->table)
		return by->table[id - by->least] - 1; /* 0 - 1: TL_NONE */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by->pairs[middle].correlation < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < by->pair_count && by->pairs[low].correlation == id ? by->pairs[low].call
									: TL_NONE;
}

/* Without a call an op may have been launched before all that was recorded. */
static bool older(const struct timeline *timeline, uint32_t source, uint32_t id)
{
	uint64_t correlation = id < TL_WIDE ? id : timeline->wide.values.at[id - TL_WIDE];

	return correlation < timeline->least_correlation[source];
}

/* Returns whether ops seem to have been launched before the recording. */
static bool join_source(struct timeline *timeline, uint32_t source)
{
	struct tl_ops *ops = &timeline->ops;
	struct by_correlation by = { 0 };
	bool any_before = false;

	if (!index_ascending(timeline, source, &by))
		index_calls(timeline, source, &by);
	for (size_t s = 0; s < ops->segments.count; s++) {
		const struct tl_segment *segment = &ops->segments.at[s];

		for (size_t i = 0; segment->source == source && i < segment->count; i++) {
			uint32_t *call = &ops->call[segment->first + i], id = *call;

			*call = id ? find_call(&by, id) : TL_NONE;
			if (*call == TL_NONE && timeline->source_calls[source] &&
			    older(timeline, source, id)) {
				*call = TL_BEFORE;
				any_before = true;
			}
		}
	}
	free(by.table);
	free(by.pairs);
	return any_before;
}

/* Streams keep the order of launches: what ran after an op whose call was recorded
 * was not launched before. Of an op without correlation nothing else is known. */
static void confirm_before(struct timeline *timeline)
{
	struct tl_ops *ops = &timeline->ops;
	size_t lanes = timeline->session->lanes.count;
	int64_t *first = mem_alloc((lanes + 1) * sizeof(*first));

	for (size_t i = 0; i < lanes; i++)
		first[i] = INT64_MAX;
	for (size_t i = 0; i < ops->count; i++) {
		uint32_t lane = op_segment(timeline, (uint32_t)i)->lane;

		if (ops->call[i] < TL_BEFORE && op_start(ops, i) < first[lane])
			first[lane] = op_start(ops, i);
	}
	for (size_t i = 0; i < ops->count; i++)
		if (ops->call[i] == TL_BEFORE &&
		    op_start(ops, i) >= first[op_segment(timeline, (uint32_t)i)->lane])
			ops->call[i] = TL_NONE;
	free(first);
}

/* A copy with pageable memory waits, whatever the call. */
static void mark_waits(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->ops.copies.count; i++) {
		const struct tl_copy *copy = &timeline->ops.copies.at[i];
		uint32_t call = timeline->ops.call[copy->op];

		if (call < TL_BEFORE && copy->host_memory == HOST_MEMORY_PAGEABLE)
			timeline->calls.what[call] |= CALL_WAITS;
	}
}

/* What each call launched: its first op, and the sum where there are several. */
static void launched(struct timeline *timeline)
{
	struct tl_ops *ops = &timeline->ops;
	struct tl_calls *calls = &timeline->calls;

	for (size_t i = 0; i < ops->count; i++) {
		uint32_t call = ops->call[i], first;
		uint64_t *sum;

		if (call >= TL_BEFORE)
			continue;
		first = calls->first_op[call];
		if (first == TL_NONE) {
			calls->first_op[call] = (uint32_t)i;
			continue;
		}
		sum = map_find(&calls->gpu_ns, call);
		map_put(&calls->gpu_ns, call,
			(uint64_t)capped_add(sum ? (int64_t)*sum : op_ns(ops, first),
					     op_ns(ops, i)));
		if (op_start(ops, i) < op_start(ops, first))
			calls->first_op[call] = (uint32_t)i;
	}
}

void timeline_join(struct timeline *timeline)
{
	struct tl_ops *ops = &timeline->ops;
	bool *seen = mem_zero(timeline->session->sources.count + 1);
	bool any_before = false;

	for (size_t i = 0; i < ops->segments.count; i++) {
		uint32_t source = ops->segments.at[i].source;

		if (!seen[source])
			any_before |= join_source(timeline, source);
		seen[source] = true;
	}
	free(seen);
	if (any_before)
		confirm_before(timeline);
	if (timeline->calls.count)
		memset(timeline->calls.first_op, 0xff,
		       timeline->calls.count * sizeof(*timeline->calls.first_op));
	launched(timeline);
	mark_waits(timeline);
}

/* The ops of a device are one segment, which is in order. */
static bool lies_in_order(const struct timeline *timeline, struct tl_device *device, uint32_t index,
			  size_t count)
{
	const struct tl_ops *ops = &timeline->ops;
	size_t s = 0;

	while (s < ops->segments.count && ops->segments.at[s].device != index)
		s++;
	if (s == ops->segments.count || ops->segments.at[s].count != count)
		return false;
	device->first = ops->segments.at[s].first;
	device->count = count;
	return true;
}

static uint32_t only_device(const struct tl_ops *ops)
{
	for (size_t s = 1; s < ops->segments.count; s++)
		if (ops->segments.at[s].device != ops->segments.at[0].device)
			return TL_NONE;
	return ops->segments.count ? ops->segments.at[0].device : TL_NONE;
}

void timeline_devices(struct timeline *timeline)
{
	struct tl_ops *ops = &timeline->ops;
	size_t devices = timeline->session->devices.count;
	size_t *counts = mem_zero((devices + 1) * sizeof(*counts));

	for (size_t s = 0; s < ops->segments.count; s++)
		counts[ops->segments.at[s].device] += ops->segments.at[s].count;
	for (size_t d = 0; d < devices; d++) {
		struct tl_device *device = &timeline->devices[d];

		if (counts[d] && !lies_in_order(timeline, device, (uint32_t)d, counts[d]))
			device->order = array_new(counts[d] * sizeof(uint32_t));
	}
	for (size_t s = 0; s < ops->segments.count; s++) {
		const struct tl_segment *segment = &ops->segments.at[s];
		struct tl_device *device = &timeline->devices[segment->device];

		for (uint32_t i = 0; device->order && i < segment->count; i++)
			device->order[device->count++] = segment->first + i;
	}
	timeline->only_device = only_device(ops);
	launches_find(timeline);
	for (size_t d = 0; d < devices; d++) {
		struct tl_device *device = &timeline->devices[d];

		if (device->order)
			order_sort(device->order, device->count, &ops->spans, true);
	}
	free(counts);
}

struct tl_copy *copy_find(const struct tl_ops *ops, uint32_t op)
{
	size_t low = 0, high = ops->copies.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ops->copies.at[middle].op < op)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ops->copies.count && ops->copies.at[low].op == op ? &ops->copies.at[low]
								       : NULL;
}
