/*
 * Frames: what threads did, by name.
 *
 * Framework ops, Python functions and ranges of one thread form a stack over
 * time each. Clocks are coarse (old traces: 1 us), so a child may end a little
 * after its parent: it is cut there. Across these families there is no
 * nesting: a range begins inside the Python function that opens it and
 * outlives it. What a thread does is what began last and is still open.
 */
#include "analyze/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/order.h"

enum { PHASE_NOT_ASKED = 255 };

struct loading {
	struct timeline *timeline;
	struct tl_lane **of;         /* by lane: NULL, or where its frames go */
	size_t *room;                /* of frames, by lane */
	uint8_t *phase, *user_phase; /* by name */
	uint32_t step_name;
};

static enum phase name_phase(struct loading *loading, uint32_t name, bool user)
{
	uint8_t *cache = user ? loading->user_phase : loading->phase;

	if (cache[name] == PHASE_NOT_ASKED)
		cache[name] = (uint8_t)phase_of_name(session_text(loading->timeline->session, name),
						     user);
	return cache[name];
}

static struct tl_frame *frame_add(struct loading *loading, uint32_t lane)
{
	struct tl_lane *at = loading->of[lane];

	if (!at) {
		at = mem_zero(sizeof(*at));
		at->lane = lane;
		at->source = loading->timeline->session->lanes.at[lane].source;
		loading->of[lane] = at;
	}
	if (at->frame_count == loading->room[lane]) {
		loading->room[lane] += loading->room[lane] / 2 + 64;
		at->frames = mem_resize(at->frames, loading->room[lane] * sizeof(*at->frames));
	}
	memset(&at->frames[at->frame_count], 0, sizeof(*at->frames));
	return &at->frames[at->frame_count++];
}

static void range_frame(struct loading *loading, const struct tl_range *range)
{
	const struct session *session = loading->timeline->session;
	struct tl_frame *frame;

	if (range->kind == RANGE_DEVICE || range->kind == RANGE_SPAN ||
	    range->kind == RANGE_PAUSED || session->lanes.at[range->lane].kind != LANE_THREAD)
		return;
	frame = frame_add(loading, range->lane);
	frame->start = range->start;
	frame->end = range->end;
	frame->name = range->name;
	frame->kind = ACTIVITY_RANGE;
	frame->phase = (uint8_t)name_phase(loading, range->name, range->kind == RANGE_USER);
	if (frame->phase != PHASE_OTHER)
		frame->flags |= FRAME_ANNOTATED;
	if (range->kind != RANGE_STEP)
		return;
	/* Steps are numbered; what is said of them is said of all. */
	if (!loading->step_name)
		loading->step_name = range->name;
	frame->name = loading->step_name;
	frame->flags |= FRAME_STEP;
	frame->phase = PHASE_OTHER;
}

static int by_start(const void *a, const void *b)
{
	const struct tl_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end < y->end) - (x->end > y->end);
}

/* Looks at threads are no frames. */
static void look_load(struct timeline *timeline, enum look_kind kind,
		      const struct store_batch *batch, size_t row)
{
	const int64_t *name = batch->col[COL_name];
	uint64_t id = name ? (uint64_t)name[row] : 0;
	struct tl_look *look;

	if (!id || id >= timeline->name_count)
		return;
	look = VEC_ADD(&timeline->looks[kind]);
	look->lane = batch->lane;
	look->name = (uint32_t)id;
	timeline_time(timeline, timeline->session->lanes.at[batch->lane].source,
		      batch->col[COL_start][row], batch->col[COL_duration][row], &look->time,
		      &look->end);
}

static int ranges_load(struct loading *loading, struct store *store, struct err *err)
{
	struct store_query query = {
		.kinds = STORE_BIT(STORE_range) | STORE_BIT(STORE_state) |
			 STORE_BIT(STORE_state_exact) | STORE_BIT(STORE_cpu_stack) |
			 STORE_BIT(STORE_python_stack),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_duration) | COL_BIT(COL_name) |
			   COL_BIT(COL_subkind),
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct timeline *timeline = loading->timeline;
	const struct session *session = timeline->session;
	struct store_batch batch;
	int got;

	if (store_query_open(store, &query, &cursor, err) < 0)
		return err->code;
	while ((got = store_next(cursor, &batch, err)) > 0) {
		const int64_t *kind = batch.col[COL_subkind], *name = batch.col[COL_name];
		enum look_kind look;
		bool is_look = look_kind_of(batch.kind, &look);

		for (size_t i = 0; i < batch.count; i++) {
			uint64_t id = name ? (uint64_t)name[i] : 0;
			struct tl_range *range;

			if (is_look) {
				look_load(timeline, look, &batch, i);
				continue;
			}
			range = VEC_ADD(&timeline->ranges);

			range->lane = batch.lane;
			range->source = session->lanes.at[batch.lane].source;
			range->name = id < timeline->name_count ? (uint32_t)id : 0;
			range->kind = kind && ((kind[i] >= 0 && kind[i] <= RANGE_COLLECTIVE) ||
					       kind[i] == RANGE_PAUSED)
					      ? (enum range_kind)kind[i]
					      : RANGE_USER;
			timeline_time(timeline, range->source, batch.col[COL_start][i],
				      batch.col[COL_duration][i], &range->start, &range->end);
		}
	}
	looks_settle(timeline);
	if (timeline->ranges.count)
		qsort(timeline->ranges.at, timeline->ranges.count, sizeof(*timeline->ranges.at),
		      by_start);
	for (size_t i = 0; i < timeline->ranges.count; i++)
		range_frame(loading, &timeline->ranges.at[i]);
	return got;
}

static void calls_frames(struct loading *loading, const struct store_batch *batch)
{
	static const uint8_t kinds[STORE_KIND_COUNT] = {
		[STORE_op] = ACTIVITY_OP,           [STORE_python] = ACTIVITY_PYTHON,
		[STORE_overhead] = ACTIVITY_CALL,   [STORE_os] = ACTIVITY_CALL,
		[STORE_call_other] = ACTIVITY_CALL,
	};
	struct timeline *timeline = loading->timeline;
	uint32_t source = timeline->session->lanes.at[batch->lane].source;
	const int64_t *name = batch->col[COL_name], *sequence = batch->col[COL_sequence];
	const int64_t *parent = batch->col[COL_parent];

	for (size_t i = 0; i < batch->count; i++) {
		struct tl_frame *frame = frame_add(loading, batch->lane);
		uint64_t id = name ? (uint64_t)name[i] : 0;

		timeline_time(timeline, source, batch->col[COL_start][i],
			      batch->col[COL_duration][i], &frame->start, &frame->end);
		frame->name = id < timeline->name_count ? (uint32_t)id : 0;
		frame->kind = kinds[batch->kind];
		frame->is_op = batch->kind == STORE_op;
		frame->phase = (uint8_t)name_phase(loading, frame->name, false);
		if (frame->phase != PHASE_OTHER)
			frame->flags |= FRAME_ANNOTATED;
		else if (frame->is_op && parent && parent[i])
			frame->phase = PHASE_BACKWARD;
		else if (frame->is_op && sequence && sequence[i])
			frame->phase = PHASE_FORWARD;
	}
}

static int ops_load(struct loading *loading, struct store *store, struct err *err)
{
	struct store_query query = {
		.kinds = STORE_BIT(STORE_op) | STORE_BIT(STORE_python) | STORE_BIT(STORE_overhead) |
			 STORE_BIT(STORE_os) | STORE_BIT(STORE_call_other),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_duration) | COL_BIT(COL_name) |
			   COL_BIT(COL_sequence) | COL_BIT(COL_parent),
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int got;

	if (store_query_open(store, &query, &cursor, err) < 0)
		return err->code;
	while ((got = store_next(cursor, &batch, err)) > 0)
		calls_frames(loading, &batch);
	return got;
}

static void frames_sort(struct tl_lane *lane)
{
	size_t count = lane->frame_count, i = 1;
	const struct tl_frame *at = lane->frames;

	while (i < count && (at[i - 1].start < at[i].start ||
			     (at[i - 1].start == at[i].start && at[i - 1].end >= at[i].end)))
		i++;
	if (i < count) {
		struct spans spans = { 0 };
		uint32_t *order = mem_alloc(count * sizeof(*order));
		struct tl_frame *sorted = mem_alloc(count * sizeof(*sorted));

		spans_room(&spans, 0, count);
		for (i = 0; i < count; i++) {
			spans_put(&spans, i, at[i].start, at[i].end - at[i].start);
			order[i] = (uint32_t)i;
		}
		order_sort(order, count, &spans, true);
		for (i = 0; i < count; i++)
			sorted[i] = at[order[i]];
		spans_done(&spans);
		free(order);
		free(lane->frames);
		lane->frames = sorted;
	}
}

/* Ends of what is open in a family. */
struct ends {
	int64_t *at;
	size_t count, room;
};

static void frames_clip(struct tl_lane *lane)
{
	struct ends families[ACTIVITY_PYTHON + 1] = { 0 };

	for (size_t i = 0; i < lane->frame_count; i++) {
		struct tl_frame *frame = &lane->frames[i];
		struct ends *open = &families[frame->kind];

		while (open->count && open->at[open->count - 1] <= frame->start)
			open->count--;
		if (open->count && frame->end > open->at[open->count - 1])
			frame->end = open->at[open->count - 1];
		*VEC_ADD(open) = frame->end;
	}
	for (int i = 0; i <= ACTIVITY_PYTHON; i++)
		free(families[i].at);
}

/* What was recorded: the tool's own word for it, else all that was seen. */
static void windows(struct timeline *timeline)
{
	const struct session *session = timeline->session;

	for (size_t i = 0; i < timeline->ranges.count; i++) {
		const struct tl_range *range = &timeline->ranges.at[i];

		if (range->kind != RANGE_SPAN)
			continue;
		if (range->start < timeline->window_start[range->source])
			timeline->window_start[range->source] = range->start;
		if (range->end > timeline->window_end[range->source])
			timeline->window_end[range->source] = range->end;
	}
	for (uint32_t i = 0; i < session->sources.count; i++) {
		const struct source *source = &session->sources.at[i];
		int64_t ignored;

		if (timeline->window_start[i] <= timeline->window_end[i] ||
		    source->first_ns > source->last_ns)
			continue;
		timeline_time(timeline, i, source->first_ns, 0, &timeline->window_start[i],
			      &ignored);
		timeline_time(timeline, i, source->last_ns, 0, &timeline->window_end[i], &ignored);
	}
}

/* Lanes that have frames, calls or both, in order. */
static void lanes_settle(struct loading *loading)
{
	struct timeline *timeline = loading->timeline;
	const struct tl_calls *calls = &timeline->calls;
	size_t segment = 0;

	for (uint32_t i = 0; i < timeline->session->lanes.count; i++) {
		struct tl_lane lane = { .lane = i };

		if (loading->of[i])
			lane = *loading->of[i];
		if (segment < calls->segments.count && calls->segments.at[segment].lane == i) {
			lane.source = calls->segments.at[segment].source;
			lane.first_call = calls->segments.at[segment].first;
			lane.call_count = calls->segments.at[segment].count;
			segment++;
		} else {
			/* Where its calls would be: a thread is found by first_call. */
			lane.first_call = segment < calls->segments.count
						  ? calls->segments.at[segment].first
						  : (uint32_t)calls->count;
		}
		if (!lane.frame_count && !lane.call_count)
			continue;
		frames_sort(&lane);
		frames_clip(&lane);
		*VEC_ADD(&timeline->lanes) = lane;
	}
}

int frames_load(struct timeline *timeline, struct store *store, struct err *err)
{
	size_t lanes = timeline->session->lanes.count;
	struct loading loading = { .timeline = timeline };
	int got;

	loading.of = mem_zero((lanes + 1) * sizeof(*loading.of));
	loading.room = mem_zero((lanes + 1) * sizeof(*loading.room));
	loading.phase = mem_alloc(timeline->name_count + 1);
	loading.user_phase = mem_alloc(timeline->name_count + 1);
	memset(loading.phase, PHASE_NOT_ASKED, timeline->name_count + 1);
	memset(loading.user_phase, PHASE_NOT_ASKED, timeline->name_count + 1);
	got = ranges_load(&loading, store, err);
	if (got >= 0)
		got = ops_load(&loading, store, err);
	lanes_settle(&loading);
	windows(timeline);
	for (size_t i = 0; i < lanes; i++)
		free(loading.of[i]);
	free(loading.of);
	free(loading.room);
	free(loading.phase);
	free(loading.user_phase);
	return got;
}
