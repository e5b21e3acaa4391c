/*
 * stream_waits.c - which stream waited for which, for what, and how long.
 *
 * A stream that is made to wait for an event (cudaStreamWaitEvent) waits for what was
 * launched on the event's stream before it was recorded. It is held up from when it could
 * have gone on - the work before is done, the next is launched - to the end of that.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/timeline.h"
#include "base/str.h"

struct stream_wait {
	uint32_t lane; /* of the stream that waits */
	int64_t on_stream;
	uint64_t record; /* correlation of the call that recorded the event */
	int64_t time_ns; /* end of the call that makes it wait */
};

struct stream_waits {
	const struct timeline *timeline;
	struct facts *facts;
	VEC(struct stream_wait) at;
	struct map records; /* source and correlation -> time of the call + 1; 0: not seen */
	struct map pairs;   /* lane and stream -> place in facts.stream_waits + 1 */
};

static uint64_t record_key(uint32_t source, uint64_t correlation)
{
	return (uint64_t)source << 48 ^ correlation;
}

static bool read_detail(const char *detail, struct stream_wait *wait)
{
	struct str rest = str_of(detail);
	uint64_t stream = 0;
	bool has_stream = false;

	while (rest.len) {
		struct str value = str_cut(&rest, ';'), word = str_cut(&value, '=');

		if (str_is(word, "wait_on_stream"))
			has_stream = str_to_u64(value, &stream) && stream <= INT64_MAX;
		else if (str_is(word, "wait_on_cuda_event_record_corr_id") &&
			 !str_to_u64(value, &wait->record))
			return false;
	}
	wait->on_stream = (int64_t)stream;
	return has_stream && wait->record;
}

static void take_waits(struct stream_waits *waits, const struct store_batch *batch)
{
	const struct session *session = waits->facts->session;
	const struct lane *lane = &session->lanes.at[batch->lane];
	const int64_t *detail = batch->col[COL_detail];

	for (size_t i = 0; detail && i < batch->count; i++) {
		const char *text = intern_get(session->details, (uint32_t)detail[i], NULL);
		struct stream_wait wait = { .lane = batch->lane };
		int64_t ignored;

		if (!text || !read_detail(text, &wait) || wait.on_stream == lane->stream)
			continue;
		timeline_time(waits->timeline, lane->source, batch->col[COL_start][i],
			      batch->col[COL_duration][i], &ignored, &wait.time_ns);
		*VEC_ADD(&waits->at) = wait;
		map_put(&waits->records, record_key(lane->source, wait.record), 0);
	}
}

static void take_records(struct stream_waits *waits, const struct store_batch *batch)
{
	const struct session *session = waits->facts->session;
	uint32_t source = session->lanes.at[batch->lane].source;
	const int64_t *id = batch->col[COL_correlation], *name = batch->col[COL_name];

	for (size_t i = 0; id && name && i < batch->count; i++) {
		uint64_t *found = map_find(&waits->records, record_key(source, (uint64_t)id[i]));
		int64_t start, ignored;

		if (!found || !strstr(session_text(session, (uint32_t)name[i]), "EventRecord"))
			continue;
		timeline_time(waits->timeline, source, batch->col[COL_start][i], 0, &start,
			      &ignored);
		*found = (uint64_t)start + 1;
	}
}

static int load(struct stream_waits *waits, struct store *store, uint32_t kinds,
		void (*take)(struct stream_waits *, const struct store_batch *), struct err *err)
{
	const struct store_query query = {
		.kinds = kinds,
		.columns = COL_BIT(COL_start) | COL_BIT(COL_duration) | COL_BIT(COL_name) |
			   COL_BIT(COL_correlation) | COL_BIT(COL_detail),
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int got = store_query_open(store, &query, &cursor, err);

	while (got >= 0 && (got = store_next(cursor, &batch, err)) > 0)
		take(waits, &batch);
	return got;
}

/* When the op was launched; where that is not known, when it began. */
static int64_t launched(const struct timeline *timeline, uint32_t op)
{
	uint32_t call = timeline->ops.call[op];

	return call < timeline->calls.count ? call_start(&timeline->calls, call)
					    : op_start(&timeline->ops, op);
}

/* A stream does in order what was launched on it: the first of the segment that was
 * launched at the time or later, or behind the last one. */
static uint32_t first_launched(const struct timeline *timeline, const struct tl_segment *segment,
			       int64_t time_ns)
{
	uint32_t low = segment->first, high = segment->first + segment->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (launched(timeline, middle) < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* On the lane: the last op launched before the time, the first launched later; TL_NONE. */
static void around(const struct timeline *timeline, uint32_t lane, int64_t time_ns,
		   uint32_t *ret_before, uint32_t *ret_after)
{
	const struct tl_ops *ops = &timeline->ops;

	*ret_before = *ret_after = TL_NONE;
	for (size_t s = 0; s < ops->segments.count; s++) {
		const struct tl_segment *segment = &ops->segments.at[s];
		uint32_t at;

		if (segment->lane != lane || !segment->count)
			continue;
		at = first_launched(timeline, segment, time_ns);
		if (at > segment->first &&
		    (*ret_before == TL_NONE || op_end(ops, at - 1) > op_end(ops, *ret_before)))
			*ret_before = at - 1;
		if (at < segment->first + segment->count &&
		    (*ret_after == TL_NONE || op_start(ops, at) < op_start(ops, *ret_after)))
			*ret_after = at;
	}
}

static uint32_t lane_of(const struct session *session, const struct lane *like, int64_t stream)
{
	for (uint32_t i = 0; i < session->lanes.count; i++) {
		const struct lane *lane = &session->lanes.at[i];

		if (lane->kind == LANE_STREAM && lane->source == like->source &&
		    lane->stream == stream &&
		    (lane->context == like->context || lane->context < 0 || like->context < 0))
			return i;
	}
	return SESSION_NONE;
}

static struct stream_wait_fact *fact_of(struct stream_waits *waits, const struct stream_wait *wait)
{
	const struct lane *lane = &waits->facts->session->lanes.at[wait->lane];
	uint64_t key = (uint64_t)wait->lane << 32 ^ (uint64_t)wait->on_stream;
	uint64_t *known = map_find(&waits->pairs, key);
	struct stream_wait_fact *fact;

	if (known)
		return &waits->facts->stream_waits.at[*known - 1];
	fact = VEC_ADD(&waits->facts->stream_waits);
	fact->device = lane->device;
	fact->source = lane->source;
	fact->context = lane->context;
	fact->stream = lane->stream;
	fact->on_stream = wait->on_stream;
	map_put(&waits->pairs, key, waits->facts->stream_waits.count);
	return fact;
}

static void judge(struct stream_waits *waits, const struct stream_wait *wait)
{
	const struct timeline *timeline = waits->timeline;
	const struct session *session = waits->facts->session;
	const struct lane *lane = &session->lanes.at[wait->lane];
	const struct tl_ops *ops = &timeline->ops;
	const uint64_t *record = map_find(&waits->records, record_key(lane->source, wait->record));
	uint32_t on_lane = lane_of(session, lane, wait->on_stream);
	uint32_t before, next, last, ignored;
	struct stream_wait_fact *fact;
	int64_t ready_ns, until_ns;

	if (!record || !*record || on_lane == SESSION_NONE)
		return;
	fact = fact_of(waits, wait);
	fact->count++;
	around(timeline, wait->lane, wait->time_ns, &before, &next);
	around(timeline, on_lane, (int64_t)(*record - 1), &last, &ignored);
	if (next == TL_NONE || last == TL_NONE)
		return;
	ready_ns = launched(timeline, next);
	if (before != TL_NONE && op_end(ops, before) > ready_ns)
		ready_ns = op_end(ops, before);
	until_ns = op_end(ops, last);
	/* It did not wait for that: the record is of another stream than it seems. */
	if (until_ns > op_start(ops, next) || until_ns <= ready_ns)
		return;
	fact->held_count++;
	fact->held_ns = capped_add(fact->held_ns, until_ns - ready_ns);
	if (until_ns - ready_ns > fact->longest_ns) {
		fact->longest_ns = until_ns - ready_ns;
		fact->longest_name = op_name(timeline, last);
	}
}

static int by_held(const void *a, const void *b)
{
	const struct stream_wait_fact *x = a, *y = b;

	if (x->held_ns != y->held_ns)
		return x->held_ns > y->held_ns ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return (x->stream > y->stream) - (x->stream < y->stream);
}

int stream_wait_facts(struct timeline *timeline, struct store *store, struct facts *facts,
		      struct err *err)
{
	struct stream_waits waits = { .timeline = timeline, .facts = facts };
	int ret = load(&waits, store, STORE_BIT(STORE_sync), take_waits, err);

	if (ret >= 0 && waits.at.count)
		ret = load(&waits, store, STORE_BIT(STORE_runtime) | STORE_BIT(STORE_driver),
			   take_records, err);
	for (size_t i = 0; i < waits.at.count && ret >= 0; i++)
		judge(&waits, &waits.at.at[i]);
	if (facts->stream_waits.count)
		qsort(facts->stream_waits.at, facts->stream_waits.count,
		      sizeof(*facts->stream_waits.at), by_held);
	VEC_DONE(&waits.at);
	map_done(&waits.records);
	map_done(&waits.pairs);
	return ret < 0 ? ret : 0;
}
