/*
 * sync.c - calls that wait for the device, and what they wait for.
 *
 * CUPTI has records of them, but to ask for these, or for those of CUDA events, makes
 * every other call of the program dearer: 2 us an operator of PyTorch (doc/measured.md).
 * Callbacks cost those alone who synchronise. The runtime's call has the driver's
 * inside: the outer one counts.
 *
 * A call that never returns is the one that matters most: as long as a thread is in one,
 * the segment says so, and that is still there when the program was killed.
 */
#include "inject/inject.h"

#include <string.h>

/* The name as call_is() takes it; has_stream: the stream is the first parameter. */
static const struct sync_call {
	const char *name;
	enum sync_kind kind;
	bool has_stream;
} CALLS[] = {
	{ "StreamSynchronize", SYNC_STREAM, true },   { "StreamWaitEvent", SYNC_STREAM_WAIT, true },
	{ "EventSynchronize", SYNC_EVENT, false },    { "DeviceSynchronize", SYNC_CONTEXT, false },
	{ "ThreadSynchronize", SYNC_CONTEXT, false }, { "CtxSynchronize", SYNC_CONTEXT, false },
};

enum { CALL_COUNT = sizeof(CALLS) / sizeof(CALLS[0]), PER_THREAD = 0x80, PROBES = 8 };

/* Of the call that this thread is in, where recording was on as it began: its begin, and
 * whose it is; 0: none. */
static __thread uint64_t begun_ns __attribute__((tls_model("initial-exec")));
static __thread uint32_t begun_in __attribute__((tls_model("initial-exec")));
/* Where the segment says so; NULL: nowhere. */
static __thread struct segment_wait *told __attribute__((tls_model("initial-exec")));

/* [setup] */
bool sync_watch(struct inject *inject, uint32_t domain, uint32_t cbid, const char *name)
{
	for (uint8_t i = 0; i < CALL_COUNT && cbid < CALLS_MAX; i++) {
		if (!call_is(name, CALLS[i].name))
			continue;
		inject->sync_calls[domain - CUPTI_DOMAIN_DRIVER][cbid] =
			(uint8_t)((i + 1) | (strstr(name, "_ptsz") ? PER_THREAD : 0));
		return true;
	}
	return false;
}

/* [hot] Of the stream that the call waits for, as the segment has it. 1 and 2 are CUDA's own
 * for the legacy and the per-thread default stream; 0 is either, by how the program was
 * compiled. */
static uintptr_t handle_of(uint8_t what, const struct cupti_callback *call)
{
	const uintptr_t *parameters = call->params;

	if (!CALLS[(what & ~PER_THREAD) - 1].has_stream || !parameters)
		return 0;
	return handle_or_default(parameters[0], what & PER_THREAD);
}

/* [hot] */
static uint32_t stream_id(struct inject *inject, void *context, uintptr_t handle)
{
	bool per_thread = handle == HANDLE_THREAD;
	void *stream = handle <= HANDLE_THREAD
			       ? NULL
			       : (void *)handle; /* NOLINT(performance-no-int-to-ptr) */
	uint32_t id = UINT32_MAX;

	if (!handle)
		return UINT32_MAX;
	if (inject->cupti.cuptiGetStreamIdEx) {
		if (inject->cupti.cuptiGetStreamIdEx(context, stream, per_thread, &id))
			return UINT32_MAX;
	} else if (!inject->cupti.cuptiGetStreamId || per_thread ||
		   inject->cupti.cuptiGetStreamId(context, stream, &id)) {
		return UINT32_MAX;
	}
	return id;
}

/* [hot] A place for the thread; one that was left by longjmp is still its own. */
static struct segment_wait *place_for(struct segment *segment, uint32_t thread)
{
	if (told && atomic_load_explicit(&told->thread, memory_order_relaxed) == thread)
		return told;
	for (uint32_t i = 0; i < PROBES; i++) {
		struct segment_wait *wait = &segment->waits[(thread + i) % SEGMENT_WAITS];
		uint32_t nobody = 0;

		if (atomic_compare_exchange_strong(&wait->thread, &nobody, thread))
			return wait;
	}
	atomic_fetch_add_explicit(&segment->counts.waits_dropped, 1, memory_order_relaxed);
	return NULL;
}

/* [hot] What sonde finds there when the program is gone has not returned. CUPTI is asked
 * nothing: the stream and the context may be none. */
static void entered(struct segment *segment, uint32_t domain, uint32_t cbid, uint8_t what,
		    const struct cupti_callback *call)
{
	const struct sync_call *sync = &CALLS[(what & ~PER_THREAD) - 1];

	if (sync->kind == SYNC_STREAM_WAIT) /* the stream waits, and not the host */
		return;
	told = place_for(segment, inject_thread());
	if (!told)
		return;
	told->kind = sync->kind;
	told->handle = handle_of(what, call);
	told->context = call->context_id;
	told->correlation = call->correlation;
	told->domain = domain;
	told->cbid = cbid;
	atomic_store_explicit(&told->since_ns, begun_ns, memory_order_release);
}

/* [hot] */
static void left(void)
{
	if (!told)
		return;
	atomic_store_explicit(&told->since_ns, 0, memory_order_release);
	atomic_store_explicit(&told->thread, 0, memory_order_release);
	told = NULL;
}

/* [hot] A stream waits for an event: on which stream was that recorded? The number of a default
 * stream has no other way to be known. */
static void tell_event(struct inject *inject, struct segment *segment,
		       const struct cupti_callback *call)
{
	const uintptr_t *parameters = call->params;
	uint64_t stream, which;
	struct segment_slot *slot;

	if (!(inject->trace >> TRACE_EVENTS & 1) || !parameters ||
	    !event_find(inject, parameters[1], &stream, &which) || !(slot = slot_take(segment)))
		return;
	slot->value = stream;
	slot->b = call->correlation;
	slot->x[0] = (uint32_t)(which >> 32);
	slot->x[1] = (uint32_t)which;
	slot->x[2] = stream <= HANDLE_THREAD && slot->x[0] == call->context_id
			     ? stream_id(inject, call->context, stream)
			     : UINT32_MAX;
	slot_commit(slot, SLOT_WAITS_FOR);
}

/* [hot] Of a call that failed the stream may be none, or its context be gone by now: CUPTI is
 * not asked. What CUPTI takes here is no part of the wait. */
static void ended(struct inject *inject, struct segment *segment, uint32_t domain, uint32_t cbid,
		  uint8_t what, const struct cupti_callback *call)
{
	uint32_t result = call->result ? *(const uint32_t *)call->result : 0;
	uint64_t ended_ns = inject_now(), handle = handle_of(what, call);
	uint32_t device = UINT32_MAX, stream = UINT32_MAX;
	struct segment_slot *slot;

	if (!result && !call->context)
		return;
	if (!result) {
		stream = stream_id(inject, call->context, handle);
		device = context_device(inject, call->context);
		if (CALLS[(what & ~PER_THREAD) - 1].kind == SYNC_STREAM_WAIT)
			tell_event(inject, segment, call);
	}
	slot = slot_take(segment);
	if (!slot)
		return;
	slot->time_ns = ended_ns;
	slot->value = begun_ns;
	slot->a = CALLS[(what & ~PER_THREAD) - 1].kind;
	slot->b = call->correlation;
	slot->x[0] = call->context_id;
	slot->x[1] = stream;
	slot->x[2] = device;
	memcpy(&slot->x[3], &handle, sizeof(handle));
	slot->x[5] = result;
	slot->x[6] = domain;
	slot->x[7] = cbid;
	slot_commit(slot, SLOT_SYNC);
}

/* [hot] What counts is whether recording was on as the call began, as for CUPTI's records of
 * calls. */
bool sync_called(struct inject *inject, struct segment *segment, uint32_t domain, uint32_t cbid,
		 const struct cupti_callback *call)
{
	uint8_t what =
		cbid < CALLS_MAX ? inject->sync_calls[domain - CUPTI_DOMAIN_DRIVER][cbid] : 0;

	if (!what)
		return false;
	if (domain == CUPTI_DOMAIN_DRIVER && begun_in == CUPTI_DOMAIN_RUNTIME)
		return true;
	if (call->site == CUPTI_SITE_ENTER) {
		begun_ns = inject_now();
		begun_in = atomic_load(&inject->active) ? domain : 0;
		if (begun_in)
			entered(segment, domain, cbid, what, call);
	} else if (begun_in == domain) {
		left();
		ended(inject, segment, domain, cbid, what, call);
		begun_in = 0;
	}
	return true;
}
