/*
 * object.c - CUDA events and graphs come and go: what the program makes with calls
 * of CUDA and has to destroy itself.
 *
 * One that is made is told of at the exit of its call, one that is destroyed at the
 * entry: in between nobody else can be given the same handle. The runtime's call
 * and the driver's inside it both speak of one handle: the outer one is left out
 * here, as its call stack costs much, and where that fails sonde takes them for one.
 */
#include "inject/inject.h"

/* The name as call_is() takes it. Where the handle is: the first or second parameter, all of which
 * are pointers; of calls that make, a pointer to it. */
struct object_call {
	const char *name;
	enum object_kind kind;
	bool makes;
	uint8_t parameter;
};

static const struct object_call CALLS[] = {
	{ "EventCreate", OBJECT_EVENT, true, 0 },
	{ "EventCreateWithFlags", OBJECT_EVENT, true, 0 },
	{ "IpcOpenEventHandle", OBJECT_EVENT, true, 0 },
	{ "EventDestroy", OBJECT_EVENT, false, 0 },
	{ "GraphCreate", OBJECT_GRAPH, true, 0 },
	{ "GraphClone", OBJECT_GRAPH, true, 0 },
	{ "StreamEndCapture", OBJECT_GRAPH, true, 1 },
	{ "GraphDestroy", OBJECT_GRAPH, false, 0 },
	{ "GraphInstantiate", OBJECT_GRAPH_EXEC, true, 0 },
	{ "GraphInstantiateWithFlags", OBJECT_GRAPH_EXEC, true, 0 },
	{ "GraphInstantiateWithParams", OBJECT_GRAPH_EXEC, true, 0 },
	{ "GraphExecDestroy", OBJECT_GRAPH_EXEC, false, 0 },
};

enum { CALL_COUNT = sizeof(CALLS) / sizeof(CALLS[0]) };

/* Place in CALLS + 1; 0: another call. */
static uint8_t call_named(const char *name)
{
	for (size_t i = 0; i < CALL_COUNT; i++) {
		if (call_is(name, CALLS[i].name))
			return (uint8_t)(i + 1);
	}
	return 0;
}

/* [setup] */
bool object_watch(struct inject *inject, uint32_t domain, uint32_t cbid, const char *name)
{
	uint8_t call = call_named(name);

	if (!call || cbid >= CALLS_MAX)
		return false;
	inject->object_calls[domain - CUPTI_DOMAIN_DRIVER][cbid] = call;
	return true;
}

/* The driver's call inside this one has told of it, the last of all threads. */
static bool is_told(struct inject *inject, uint32_t domain, uintptr_t object)
{
	return domain == CUPTI_DOMAIN_RUNTIME &&
	       atomic_compare_exchange_strong(&inject->object_told, &object, 0);
}

static void told(struct inject *inject, uint32_t domain, uintptr_t object, bool made)
{
	if (made && domain == CUPTI_DOMAIN_DRIVER)
		atomic_store(&inject->object_told, object);
	else if (!made)
		(void)atomic_compare_exchange_strong(&inject->object_told, &object, 0);
}

/* [setup] in a callback */
bool object_called(struct inject *inject, struct segment *segment, uint32_t domain, uint32_t cbid,
		   const struct cupti_callback *call)
{
	uint8_t at =
		cbid < CALLS_MAX ? inject->object_calls[domain - CUPTI_DOMAIN_DRIVER][cbid] : 0;
	const struct object_call *what = at ? &CALLS[at - 1] : NULL;
	const uintptr_t *parameters = call->params;
	struct segment_slot *slot;
	uintptr_t handle;
	uint32_t site = 0;

	if (!what)
		return false;
	if (!parameters || call->site != (what->makes ? CUPTI_SITE_EXIT : CUPTI_SITE_ENTER))
		return true;
	handle = parameters[what->parameter];
	if (what->makes) {
		if ((call->result && *(const uint32_t *)call->result) || !handle)
			return true;
		handle = *(const uintptr_t *)handle; /* NOLINT(performance-no-int-to-ptr) */
		if (handle && is_told(inject, domain, handle * OBJECT_KINDS + what->kind))
			return true;
		if (handle)
			site = site_here(inject, segment, SITE_OBJECT);
	}
	slot = handle ? slot_take(segment) : NULL;
	if (!slot)
		return true;
	slot->value = handle;
	slot->a = site;
	slot->x[0] = call->context_id;
	slot->x[1] = what->kind;
	slot->x[2] = what->makes;
	slot_commit(slot, SLOT_OBJECT);
	told(inject, domain, handle * OBJECT_KINDS + what->kind, what->makes);
	return true;
}
