/*
 * event.c - where an event was recorded last, for streams that are made to wait for it.
 *
 * Programs record events at a high rate, and a callback costs each record a good part of
 * what it takes: only where `events` is asked for. The runtime's call has the driver's
 * inside: that one alone calls us back. Nothing is told until a stream waits.
 */
#include "inject/inject.h"

/* 1: records an event; the same in the per-thread default stream; destroys one. */
enum { PER_THREAD = 2, DESTROYS = 3 };

/* [setup] */
bool event_watch(struct inject *inject, uint32_t domain, uint32_t cbid, const char *name)
{
	uint8_t what = 0;

	if (domain != CUPTI_DOMAIN_DRIVER || cbid >= CALLS_MAX)
		return false;
	if (call_is(name, "EventRecord") || call_is(name, "EventRecordWithFlags"))
		what = strstr(name, "_ptsz") ? PER_THREAD : 1;
	else if (call_is(name, "EventDestroy"))
		what = DESTROYS;
	inject->event_calls[cbid] = what;
	return what;
}

/* [hot] */
static struct event_record *place_of(struct inject *inject, uint64_t event)
{
	return &inject->events[event * 0x9e3779b97f4a7c15ull >> 52 & (EVENTS_KNOWN - 1)];
}

/* Of all parts, which two threads may write at once. */
static uint64_t check_of(uint64_t event, uint64_t stream, uint64_t which)
{
	return (event ^ stream >> 3 ^ stream << 7) * 0x9e3779b97f4a7c15ull ^ which;
}

/* [hot] The next one that is made may have its address. */
static void forget(struct inject *inject, uint64_t event)
{
	uint64_t stream, which;

	if (event_find(inject, event, &stream, &which))
		atomic_store_explicit(&place_of(inject, event)->stream, 0, memory_order_relaxed);
}

/* [hot] */
bool event_called(struct inject *inject, uint32_t domain, uint32_t cbid,
		  const struct cupti_callback *call)
{
	uint8_t what =
		domain == CUPTI_DOMAIN_DRIVER && cbid < CALLS_MAX ? inject->event_calls[cbid] : 0;
	const uintptr_t *parameters = call->params;
	struct event_record *record;
	uint64_t event, stream, which;

	if (!what)
		return false;
	if (what == DESTROYS) {
		if (parameters && call->site == CUPTI_SITE_ENTER)
			forget(inject, parameters[0]);
		return !(inject->trace >> TRACE_MEMORY & 1); /* else object_called tells of it */
	}
	if (!parameters || call->site != CUPTI_SITE_EXIT ||
	    (call->result && *(const uint32_t *)call->result))
		return true;
	event = parameters[0];
	stream = handle_or_default(parameters[1], what == PER_THREAD);
	which = (uint64_t)call->context_id << 32 | call->correlation;
	record = place_of(inject, event);
	atomic_store_explicit(&record->stream, stream, memory_order_relaxed);
	atomic_store_explicit(&record->which, which, memory_order_relaxed);
	atomic_store_explicit(&record->check, check_of(event, stream, which), memory_order_release);
	return true;
}

/* [hot] */
bool event_find(struct inject *inject, uint64_t event, uint64_t *ret_stream, uint64_t *ret_which)
{
	const struct event_record *record = place_of(inject, event);
	uint64_t check = atomic_load_explicit(&record->check, memory_order_acquire);

	*ret_stream = atomic_load_explicit(&record->stream, memory_order_relaxed);
	*ret_which = atomic_load_explicit(&record->which, memory_order_relaxed);
	return event && *ret_stream && check == check_of(event, *ret_stream, *ret_which);
}
