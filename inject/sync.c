/*
 * sync.c - calls that wait for the device, and what they wait for.
 *
 * CUPTI has records of them, but to ask for these, or for those of CUDA events, makes
 * every other call of the program dearer: 2 us an operator of PyTorch (doc/measured.md).
 * Callbacks cost those alone who synchronise. The runtime's call has the driver's
 * inside: the outer one counts.
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

enum { CALL_COUNT = sizeof(CALLS) / sizeof(CALLS[0]), PER_THREAD = 0x80 };

/* Of the call that this thread is in, where recording was on as it began: its begin, and
 * whose it is; 0: none. */
static __thread uint64_t begun_ns __attribute__((tls_model("initial-exec")));
static __thread uint32_t begun_in __attribute__((tls_model("initial-exec")));

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

/* [hot] Handles 1 and 2 are the legacy and the per-thread default stream, as is 0, by
 * how the program was compiled. */
static uint32_t stream_id(struct inject *inject, void *context, uintptr_t handle, bool per_thread)
{
	void *stream = (void *)handle; /* NOLINT(performance-no-int-to-ptr) */
	uint32_t id = UINT32_MAX;

	if (handle <= 2) {
		per_thread = handle ? handle == 2 : per_thread;
		stream = NULL;
	}
	if (inject->cupti.cuptiGetStreamIdEx) {
		if (inject->cupti.cuptiGetStreamIdEx(context, stream, per_thread, &id))
			return UINT32_MAX;
	} else if (!inject->cupti.cuptiGetStreamId || per_thread ||
		   inject->cupti.cuptiGetStreamId(context, stream, &id)) {
		return UINT32_MAX;
	}
	return id;
}

/* [hot] Of a call that failed the stream may be none, or its context be gone by now: CUPTI is
 * not asked. What CUPTI takes here is no part of the wait. */
static void ended(struct inject *inject, struct segment *segment, uint8_t what,
		  const struct cupti_callback *call)
{
	const struct sync_call *sync = &CALLS[(what & ~PER_THREAD) - 1];
	const uintptr_t *parameters = call->params;
	uint64_t ended_ns = inject_now();
	uint32_t device = UINT32_MAX, stream = UINT32_MAX;
	struct segment_slot *slot;

	if (!call->context || (call->result && *(const uint32_t *)call->result))
		return;
	if (sync->has_stream && parameters)
		stream = stream_id(inject, call->context, parameters[0], what & PER_THREAD);
	if (inject->cupti.cuptiGetDeviceId)
		(void)inject->cupti.cuptiGetDeviceId(call->context, &device);
	slot = slot_take(segment);
	if (!slot)
		return;
	slot->time_ns = ended_ns;
	slot->value = begun_ns;
	slot->a = sync->kind;
	slot->b = call->correlation;
	slot->x[0] = call->context_id;
	slot->x[1] = stream;
	slot->x[2] = device;
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
	} else if (begun_in == domain) {
		ended(inject, segment, what, call);
		begun_in = 0;
	}
	return true;
}
