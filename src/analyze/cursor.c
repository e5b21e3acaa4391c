#include "analyze/timeline.h"

void cursor_init(struct cursor *cursor, const struct timeline *timeline, const struct tl_lane *lane)
{
	cursor->timeline = timeline;
	cursor->lane = lane;
	cursor->frame = 0;
	cursor->call = 0;
	cursor->stack.count = 0;
	cursor->until = INT64_MIN;
}

void cursor_done(struct cursor *cursor)
{
	VEC_DONE(&cursor->stack);
}

static void push(struct cursor *cursor, const struct open_frame *frame, enum phase phase,
		 bool annotated)
{
	const struct open_frame *below =
		cursor->stack.count ? &cursor->stack.at[cursor->stack.count - 1] : NULL;
	struct open_frame top = *frame;

	top.phase = (uint8_t)phase_within(below ? below->phase : PHASE_OTHER, phase, annotated);
	if (below) {
		top.loader = below->loader;
		top.loader_kind = below->loader_kind;
		top.range = top.range ? top.range : below->range;
	}
	if (annotated && phase == PHASE_LOADER &&
	    (!top.loader || (top.loader_kind == ACTIVITY_PYTHON && top.kind != ACTIVITY_PYTHON))) {
		top.loader = top.name;
		top.loader_kind = top.kind;
	}
	*VEC_ADD(&cursor->stack) = top;
}

static void pop(struct cursor *cursor, int64_t time_ns)
{
	while (cursor->stack.count && cursor->stack.at[cursor->stack.count - 1].end <= time_ns)
		cursor->stack.count--;
}

/* When the next frame or call begins; INT64_MAX: none does. */
static int64_t next_start(const struct cursor *cursor, bool *ret_call)
{
	const struct tl_lane *lane = cursor->lane;
	const struct tl_calls *calls = &cursor->timeline->calls;
	int64_t frame = INT64_MAX, call = INT64_MAX;
	uint32_t index = lane->first_call + cursor->call;

	if (cursor->frame < lane->frame_count)
		frame = lane->frames[cursor->frame].start;
	if (cursor->call < lane->call_count)
		call = calls->start[index];
	*ret_call = call < frame || (call == frame && call != INT64_MAX &&
				     call_end(calls, index) > lane->frames[cursor->frame].end);
	return *ret_call ? call : frame;
}

static void push_next(struct cursor *cursor, bool is_call)
{
	const struct timeline *timeline = cursor->timeline;

	if (is_call) {
		uint32_t call = cursor->lane->first_call + cursor->call++;
		uint32_t name = call_name(&timeline->calls, call);
		struct open_frame frame = { .end = call_end(&timeline->calls, call),
					    .name = name,
					    .kind = ACTIVITY_CALL,
					    .sync = call_waits(&timeline->calls, call) };

		push(cursor, &frame, PHASE_OTHER, false);
	} else {
		const struct tl_frame *at = &cursor->lane->frames[cursor->frame++];
		struct open_frame frame = { .end = at->end, .name = at->name, .kind = at->kind };

		if (at->kind == ACTIVITY_RANGE && !(at->flags & FRAME_STEP))
			frame.range = at->name;
		push(cursor, &frame, at->phase, at->flags & FRAME_ANNOTATED);
	}
}

/* Calls in a row that are over at `time_ns` leave nothing behind: no frame opens
 * between them, and what opens later gets nothing from a call. */
static void skip_calls(struct cursor *cursor, int64_t time_ns)
{
	const struct tl_lane *lane = cursor->lane;
	const struct tl_calls *calls = &cursor->timeline->calls;
	int64_t frame =
		cursor->frame < lane->frame_count ? lane->frames[cursor->frame].start : INT64_MAX;

	while (cursor->call < lane->call_count &&
	       call_end(calls, lane->first_call + cursor->call) <= time_ns &&
	       calls->start[lane->first_call + cursor->call] < frame)
		cursor->call++;
}

void cursor_move(struct cursor *cursor, int64_t time_ns)
{
	bool is_call;
	int64_t next;

	for (;;) {
		skip_calls(cursor, time_ns);
		next = next_start(cursor, &is_call);
		if (next > time_ns)
			break;
		pop(cursor, next);
		push_next(cursor, is_call);
	}
	pop(cursor, time_ns);
	cursor->until = next;
	if (cursor->stack.count && cursor->stack.at[cursor->stack.count - 1].end < next)
		cursor->until = cursor->stack.at[cursor->stack.count - 1].end;
}
