#include "analyze/timeline.h"

void cursor_init(struct cursor *cursor, const struct timeline *timeline, const struct tl_lane *lane)
{
	cursor->timeline = timeline;
	cursor->lane = lane;
	cursor->frame = 0;
	cursor->call = lane->first_call;
	cursor->stack.count = 0;
	cursor->top = NULL;
	cursor->until = INT64_MIN;
	cursor->then = INT64_MIN;
}

void cursor_done(struct cursor *cursor)
{
	VEC_DONE(&cursor->stack);
}

static const struct open_frame *top_of(const struct cursor *cursor)
{
	return cursor->stack.count ? &cursor->stack.at[cursor->stack.count - 1] : NULL;
}

static void push_frame(struct cursor *cursor, const struct tl_frame *frame)
{
	const struct open_frame *below = top_of(cursor);
	bool annotated = frame->flags & FRAME_ANNOTATED;
	struct open_frame top = { .end = frame->end, .name = frame->name, .kind = frame->kind };

	if (frame->kind == ACTIVITY_RANGE && !(frame->flags & FRAME_STEP))
		top.range = frame->name;
	top.phase =
		(uint8_t)phase_within(below ? below->phase : PHASE_OTHER, frame->phase, annotated);
	if (below) {
		top.loader = below->loader;
		top.loader_kind = below->loader_kind;
		top.range = top.range ? top.range : below->range;
	}
	if (annotated && frame->phase == PHASE_LOADER &&
	    (!top.loader || (top.loader_kind == ACTIVITY_PYTHON && top.kind != ACTIVITY_PYTHON))) {
		top.loader = top.name;
		top.loader_kind = top.kind;
	}
	*VEC_ADD(&cursor->stack) = top;
}

/* A call as part of what is round it. */
static void open_call(const struct cursor *cursor, uint32_t call, struct open_frame *ret_open)
{
	const struct tl_calls *calls = &cursor->timeline->calls;
	const struct open_frame *below = top_of(cursor);

	*ret_open = below ? *below : (struct open_frame){ .phase = PHASE_OTHER };
	ret_open->end = call_end(calls, call);
	ret_open->name = call_name(calls, call);
	ret_open->kind = ACTIVITY_CALL;
	ret_open->sync = call_waits(calls, call);
}

static void pop(struct cursor *cursor, int64_t time_ns)
{
	while (cursor->stack.count && cursor->stack.at[cursor->stack.count - 1].end <= time_ns)
		cursor->stack.count--;
}

/* When the next call begins, INT64_MAX: none does. Calls in a row that are over at
 * `time_ns` leave nothing behind: no frame opens between them, and what opens later
 * gets nothing from a call. */
static int64_t next_call(struct cursor *cursor, int64_t time_ns, int64_t frame_at)
{
	const struct tl_calls *calls = &cursor->timeline->calls;
	uint32_t call = cursor->call, last = cursor->lane->first_call + cursor->lane->call_count;

	for (; call < last; call++) {
		int64_t start = call_start(calls, call);

		if (start >= frame_at || start + call_ns(calls, call) > time_ns) {
			cursor->call = call;
			return start;
		}
	}
	cursor->call = call;
	return INT64_MAX;
}

/* Does nothing open before the next call ends? Then it need not go onto the stack. */
static bool take_alone(struct cursor *cursor, int64_t frame_at)
{
	const struct tl_calls *calls = &cursor->timeline->calls;
	uint32_t next = cursor->call + 1;
	int64_t end = call_end(calls, cursor->call), opens = frame_at;

	if (next < cursor->lane->first_call + cursor->lane->call_count) {
		int64_t start = call_start(calls, next);

		opens = start < opens ? start : opens;
	}
	if (opens < end)
		return false;
	open_call(cursor, cursor->call++, &cursor->alone);
	cursor->top = &cursor->alone;
	cursor->until = end;
	cursor->then = cursor->stack.count ? end : opens;
	return true;
}

void cursor_move(struct cursor *cursor, int64_t time_ns)
{
	const struct tl_lane *lane = cursor->lane;
	int64_t next;

	for (;;) {
		const struct tl_frame *frame =
			cursor->frame < lane->frame_count ? &lane->frames[cursor->frame] : NULL;
		int64_t frame_at = frame ? frame->start : INT64_MAX;
		int64_t call_at = next_call(cursor, time_ns, frame_at);
		bool is_call = call_at < frame_at ||
			       (frame && call_at == frame_at &&
				call_end(&cursor->timeline->calls, cursor->call) > frame->end);

		next = is_call ? call_at : frame_at;
		if (next > time_ns)
			break;
		pop(cursor, next);
		if (!is_call) {
			push_frame(cursor, frame);
			cursor->frame++;
		} else if (take_alone(cursor, frame_at)) {
			return;
		} else {
			struct open_frame open;

			open_call(cursor, cursor->call++, &open);
			*VEC_ADD(&cursor->stack) = open;
		}
	}
	pop(cursor, time_ns);
	cursor->top = top_of(cursor);
	cursor->until = cursor->top && cursor->top->end < next ? cursor->top->end : next;
	cursor->then = cursor->until;
}
