/*
 * spool_slots.c - the ring: NVTX, names, PC samples, gaps.
 *
 * Ranges become events when they end. Push and pop are matched by thread and
 * domain; slots of one thread come in its order.
 */
#include <string.h>

#include "base/clock.h"
#include "collect/spool_process.h"

/* "domain: message", or the message alone in the default domain. */
static uint32_t range_name(struct spooled *p, uint32_t message, uint32_t domain)
{
	struct session *session = p->sink->session;
	uint32_t text = message ? spooled_text(p, message) : 0;
	uint32_t of = domain ? spooled_text(p, domain) : 0;
	char name[TEXT_MAX];
	int len;

	if (!text)
		text = intern_text(session->strings, "(no message)");
	if (!of)
		return text;
	len = snprintf(name, sizeof(name), "%s: %s", session_text(session, of),
		       session_text(session, text));
	if (len >= (int)sizeof(name))
		len = (int)sizeof(name) - 1;
	return session_string(session, name, (size_t)len);
}

/* Has the time a part in which NVTX was wanted? A range around a window is: in it
 * the program did what the window has. */
static bool is_wanted(const struct spooled *p, int64_t from_ns, int64_t to_ns)
{
	int64_t next_ns = INT64_MAX;

	if (from_ns >= p->window->to_ns || to_ns < p->window->from_ns)
		return false;
	for (size_t i = p->gates.count; i-- > 0 && p->gated;) {
		const struct open_gate *open = &p->gates.at[i];
		int64_t end_ns = open->part ? next_ns : open->to_ns;

		if (to_ns >= open->from_ns && from_ns < end_ns)
			return true;
		if (from_ns >= end_ns)
			return false;
		next_ns = open->from_ns;
	}
	return !p->gated;
}

static int put_range(struct spooled *p, const struct open_range *open, int64_t end_ns)
{
	struct range range = { .kind = RANGE_USER, .name = open->name };

	range.lane = spooled_thread(p, open->thread);
	range.start_ns = open->start_ns;
	range.end_ns = end_ns;
	if (end_ns < range.start_ns) {
		session_loss(p->sink->session, p->source, LOSS_negative, 1);
		return 0;
	}
	if (!is_wanted(p, range.start_ns, end_ns))
		return 0;
	range.detail = spooled_nvtx_detail(p, &open->says);
	p->ranges_seen++;
	return sink_range(p->sink, &range, p->err);
}

static int push(struct spooled *p, const struct segment_slot *slot)
{
	struct open_range *open;

	if (p->pushed.count >= OPEN_RANGES_MAX) {
		session_loss(p->sink->session, p->source, LOSS_unmatched_ends, 1);
		return 0;
	}
	open = VEC_ADD(&p->pushed);
	open->thread = slot->thread;
	open->says = spooled_nvtx_says(slot);
	open->name = range_name(p, slot->a, slot->b);
	open->start_ns = (int64_t)slot->time_ns;
	return 0;
}

static int pop(struct spooled *p, const struct segment_slot *slot)
{
	for (size_t i = p->pushed.count; i-- > 0;) {
		struct open_range open = p->pushed.at[i];

		if (open.thread != slot->thread || open.says.domain != slot->b)
			continue;
		memmove(&p->pushed.at[i], &p->pushed.at[i + 1],
			(p->pushed.count - i - 1) * sizeof(open));
		p->pushed.count--;
		return put_range(p, &open, (int64_t)slot->time_ns);
	}
	session_loss(p->sink->session, p->source, LOSS_unmatched_ends, 1);
	return 0;
}

/* Ids only grow: those that ended are forgotten now and then. */
static void forget_ended(struct spooled *p)
{
	if (p->ranges.count < STARTED_RANGES_MAX || p->ranges.count < 4 * p->open_started)
		return;
	map_done(&p->ranges);
	for (size_t i = 0; i < p->started.count; i++) {
		if (p->started.at[i].open)
			map_put(&p->ranges, p->started.at[i].id, i + 1);
	}
}

static size_t free_place(struct spooled *p)
{
	for (size_t i = 0; i < p->started.count; i++) {
		size_t at = (p->free_started + i) % p->started.count;

		if (!p->started.at[at].open) {
			p->free_started = at + 1;
			return at;
		}
		/* Few are open: the first look nearly always finds one. */
		if (i > 64 && p->started.count < STARTED_RANGES_MAX)
			break;
	}
	(void)VEC_ADD(&p->started);
	return p->started.count - 1;
}

static int start(struct spooled *p, const struct segment_slot *slot)
{
	struct open_range *open;
	size_t at;

	if (p->open_started >= STARTED_RANGES_MAX) {
		session_loss(p->sink->session, p->source, LOSS_unmatched_ends, 1);
		return 0;
	}
	forget_ended(p);
	at = free_place(p);
	open = &p->started.at[at];
	open->thread = slot->thread;
	open->says = spooled_nvtx_says(slot);
	open->name = range_name(p, slot->a, slot->b);
	open->start_ns = (int64_t)slot->time_ns;
	open->open = true;
	open->id = slot->value;
	p->open_started++;
	map_put(&p->ranges, slot->value, at + 1);
	return 0;
}

static int end(struct spooled *p, const struct segment_slot *slot)
{
	uint64_t *found = map_find(&p->ranges, slot->value);
	struct open_range *open = found && *found ? &p->started.at[*found - 1] : NULL;

	if (!open || !open->open || open->id != slot->value) {
		session_loss(p->sink->session, p->source, LOSS_unmatched_ends, 1);
		return 0;
	}
	*found = 0;
	open->open = false;
	p->open_started--;
	return put_range(p, open, (int64_t)slot->time_ns);
}

static int mark(struct spooled *p, const struct segment_slot *slot)
{
	struct mark mark = { .kind = MARK_TEXT };
	struct nvtx_says says = spooled_nvtx_says(slot);

	if (!is_wanted(p, (int64_t)slot->time_ns, (int64_t)slot->time_ns))
		return 0;
	mark.lane = spooled_thread(p, slot->thread);
	mark.time_ns = (int64_t)slot->time_ns;
	mark.name = range_name(p, slot->a, slot->b);
	mark.detail = spooled_nvtx_detail(p, &says);
	return sink_mark(p->sink, &mark, p->err);
}

/* What happened between two windows nobody knows: the profile says so. */
static int pause_end(struct spooled *p, int64_t end_ns)
{
	const struct open_gate *last = p->gates.count ? &p->gates.at[p->gates.count - 1] : NULL;
	struct range range = { .kind = RANGE_PAUSED, .end_ns = end_ns };

	if (!last || last->to_ns >= end_ns)
		return 0;
	range.start_ns = last->to_ns;
	range.lane = spooled_other(p, "recording");
	range.name = intern_text(p->sink->session->strings, "recording paused");
	return sink_range(p->sink, &range, p->err);
}

static int gate(struct spooled *p, const struct segment_slot *slot)
{
	int64_t ns = (int64_t)slot->time_ns;
	struct open_gate *last = p->gates.count ? &p->gates.at[p->gates.count - 1] : NULL;
	bool open = last && last->to_ns == INT64_MAX;

	if (slot->value == GATE_ON && !open) {
		int ret = pause_end(p, ns);

		if (ret < 0)
			return ret;
		*VEC_ADD(&p->gates) = (struct open_gate){ ns, INT64_MAX, false };
	} else if (slot->value != GATE_ON) {
		if (open)
			last->to_ns = ns;
		if (last)
			last->part = slot->value == GATE_PART;
		p->gated = true;
	}
	return 0;
}

bool spooled_is_open(const struct spooled *p, int64_t ns)
{
	if (!p->gated)
		return true;
	for (size_t i = p->gates.count; i-- > 0;) {
		if (ns >= p->gates.at[i].from_ns)
			return ns < p->gates.at[i].to_ns;
	}
	return false;
}

static int os_call(struct spooled *p, const struct segment_slot *slot)
{
	struct call call = { .kind = CALL_OS };

	if (!slot->value || slot->value > slot->time_ns) {
		session_loss(p->sink->session, p->source, LOSS_malformed, 1);
		return 0;
	}
	call.lane = spooled_thread(p, slot->thread);
	call.start_ns = (int64_t)slot->value;
	call.end_ns = (int64_t)slot->time_ns;
	call.name = spooled_text(p, slot->a);
	return sink_call(p->sink, &call, p->err);
}

/* What was made before the window is still there in it; what comes behind is not told. */
static bool is_too_late(const struct spooled *p, const struct segment_slot *slot, uint32_t kind)
{
	return (int64_t)slot->time_ns >= p->window->to_ns &&
	       (kind == SLOT_STREAM || kind == SLOT_OBJECT || kind == SLOT_MODULE ||
		kind == SLOT_CONTEXT_GONE);
}

static int take(struct spooled *p, const struct segment_slot *slot)
{
	uint32_t kind = atomic_load_explicit(&slot->kind, memory_order_relaxed);

	if (!slot->time_ns || slot->time_ns > INT64_MAX) {
		session_loss(p->sink->session, p->source, LOSS_malformed, 1);
		return 0;
	}
	if (kind == SLOT_DEVICE || kind == SLOT_MODULE)
		p->set_up_ns = (int64_t)slot->time_ns;
	if (is_too_late(p, slot, kind))
		return 0;
	switch (kind) {
	case SLOT_PUSH:
		spooled_range_saw(p, slot);
		return push(p, slot);
	case SLOT_POP:
		return pop(p, slot);
	case SLOT_START:
		spooled_range_saw(p, slot);
		return start(p, slot);
	case SLOT_END:
		return end(p, slot);
	case SLOT_MARK:
		return mark(p, slot);
	case SLOT_STREAM:
		return spooled_stream_slot(p, slot);
	case SLOT_OBJECT:
		return spooled_object_slot(p, slot);
	case SLOT_MODULE:
		return spooled_module_slot(p, slot);
	case SLOT_CONTEXT_GONE:
		return spooled_context_gone(p, slot);
	case SLOT_API_NAME: {
		uint32_t name = spooled_text(p, slot->a);
		const char *text = session_text(p->sink->session, name);
		const char *version = name ? strstr(text, "_v") : NULL;

		/* "cudaLaunchKernel_v7000": the symbol's version says nothing here. */
		if (version && version[2] >= '0' && version[2] <= '9' && strlen(version) >= 6)
			name = session_string(p->sink->session, text, (size_t)(version - text));
		map_put(&p->apis, slot->value, name);
		return 0;
	}
	case SLOT_THREAD: {
		uint32_t lane = spooled_thread(p, (uint32_t)slot->value);

		p->sink->session->lanes.at[lane].name = spooled_text(p, slot->a);
		return 0;
	}
	case SLOT_DEVICE:
		spooled_device_slot(p, slot);
		return 0;
	case SLOT_CATEGORY:
		spooled_category_slot(p, slot);
		return 0;
	case SLOT_GATE:
		return gate(p, slot);
	case SLOT_SITE:
		map_put(&p->asked, slot->value, spooled_site(p, slot->a));
		return 0;
	case SLOT_STALL_NAME:
		map_put(&p->reasons, slot->value, spooled_text(p, slot->a));
		return 0;
	case SLOT_OS:
		return os_call(p, slot);
	case SLOT_WAITS_FOR:
		spooled_waits_for_slot(p, slot);
		return 0;
	case SLOT_SYNC:
		return spooled_sync_slot(p, slot);
	case SLOT_PC:
		return spooled_pc_sample(p, slot);
	default:
		return 0;
	}
}

/* A thread that was killed, or left by longjmp, in the midst of a slot never
 * finishes it. Writing one takes nanoseconds, or a time slice. */
static bool is_abandoned(struct spooled *p)
{
	static const int64_t PATIENCE_NS = 2000000000;
	int64_t ns = clock_steady_ns();

	if (!p->stuck_ns)
		p->stuck_ns = ns;
	return ns - p->stuck_ns > PATIENCE_NS;
}

/* Lanes of a device can wait for its record, which has the UUID: without it the
 * device would be another one than the driver's samples know. */
static bool is_early(const struct spooled *p, uint32_t kind)
{
	return kind == SLOT_PC && !p->rows.count;
}

int spooled_slots(struct spooled *p, bool last)
{
	uint64_t slots = p->layout->ring_slots;
	uint64_t head = atomic_load_explicit(&p->segment->ring_head, memory_order_acquire);
	int ret = 0;

	if (head - p->tail > slots)
		head = p->tail + slots; /* scribbled over */
	while (p->tail < head && ret >= 0) {
		struct segment_slot *slot =
			(struct segment_slot *)(void *)((char *)p->segment + p->layout->ring_at) +
			(p->tail & (slots - 1));
		uint32_t kind = atomic_load_explicit(&slot->kind, memory_order_acquire);
		struct segment_slot copy;

		if (is_early(p, kind) && !last)
			break;
		if (!kind) {
			if (!last && !is_abandoned(p))
				break; /* being written */
			session_loss(p->sink->session, p->source, LOSS_dropped, 1);
		} else {
			memcpy(&copy, slot, sizeof(copy));
			ret = take(p, &copy);
			atomic_store_explicit(&slot->kind, SLOT_NONE, memory_order_relaxed);
			session_loss(p->sink->session, p->source, LOSS_seen, 1);
		}
		p->stuck_ns = 0;
		p->tail++;
		atomic_store_explicit(&p->segment->ring_tail, p->tail, memory_order_release);
	}
	return ret < 0 ? ret : spooled_early_waits(p, last);
}

int spooled_close_ranges(struct spooled *p, int64_t end_ns)
{
	int ret = 0;

	for (size_t i = 0; i < p->pushed.count && ret >= 0; i++)
		ret = put_range(p, &p->pushed.at[i], end_ns);
	for (size_t i = 0; i < p->started.count && ret >= 0; i++) {
		if (p->started.at[i].open)
			ret = put_range(p, &p->started.at[i], end_ns);
	}
	session_loss(p->sink->session, p->source, LOSS_unmatched_ends,
		     (int64_t)(p->pushed.count + p->open_started));
	p->pushed.count = p->started.count = 0;
	p->open_started = 0;
	return ret;
}
