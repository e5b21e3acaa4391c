/* resource.c - contexts, streams and modules come and go. [setup] in callbacks. */
#include "inject/inject.h"

#include <limits.h>

static void stream_slot(struct inject *inject, struct segment *segment,
			const struct cupti_resource *resource, uint32_t made)
{
	struct segment_slot *slot;
	uint32_t context = 0, stream = 0;
	uint32_t site = made && inject->trace >> TRACE_MEMORY & 1
				? site_here(inject, segment, SITE_OBJECT)
				: 0;

	if (!inject->cupti.cuptiGetContextId || !inject->cupti.cuptiGetStreamId ||
	    inject->cupti.cuptiGetContextId(resource->context, &context) ||
	    inject->cupti.cuptiGetStreamId(resource->context, resource->stream, &stream))
		return;
	slot = slot_take(segment);
	if (!slot)
		return;
	slot->value = stream;
	slot->x[0] = context;
	slot->x[1] = made;
	slot->x[2] = context_device(inject, resource->context);
	memcpy(&slot->x[3], &resource->stream, sizeof(resource->stream));
	slot->a = site;
	slot_commit(slot, SLOT_STREAM);
}

/* Which card the context is on. */
static void device_slot(struct inject *inject, struct segment *segment, void *context)
{
	struct segment_slot *slot;
	uint32_t device = 0, uuid[4] = { 0 };

	if (!inject->cuDeviceGetUuid || !inject->cupti.cuptiGetDeviceId ||
	    inject->cupti.cuptiGetDeviceId(context, &device) || device > INT_MAX ||
	    inject->cuDeviceGetUuid(uuid, (int)device))
		return;
	slot = slot_take(segment);
	if (!slot)
		return;
	slot->value = device;
	memcpy(slot->x, uuid, sizeof(uuid));
	slot_commit(slot, SLOT_DEVICE);
}

static void context_slot(struct inject *inject, struct segment *segment, void *context)
{
	struct segment_slot *slot;
	uint32_t id = 0;

	if (!inject->cupti.cuptiGetContextId || inject->cupti.cuptiGetContextId(context, &id))
		return;
	slot = slot_take(segment);
	if (!slot)
		return;
	slot->value = id;
	slot_commit(slot, SLOT_CONTEXT_GONE);
}

static void module_slot(struct inject *inject, struct segment *segment,
			const struct cupti_resource *resource, uint32_t loaded)
{
	const struct cupti_module *module = resource->descriptor;
	struct cupti_crc_params crc = { .size = sizeof(crc) };
	struct segment_slot *slot;

	if (!module)
		return;
	crc.cubin_bytes = module->bytes;
	crc.cubin = module->cubin;
	/* The checksum costs time that grows with the cubin: only PC samples need it. */
	if (loaded && inject->trace >> TRACE_PC & 1 && inject->cupti.cuptiGetCubinCrc)
		(void)inject->cupti.cuptiGetCubinCrc(&crc);
	slot = slot_take(segment);
	if (!slot)
		return;
	slot->value = crc.crc;
	slot->x[0] = module->id;
	slot->x[1] = 0;
	if (inject->cupti.cuptiGetContextId)
		(void)inject->cupti.cuptiGetContextId(resource->context, &slot->x[1]);
	slot->x[2] = loaded;
	slot->x[3] = module->bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)module->bytes;
	slot_commit(slot, SLOT_MODULE);
}

/* The call of the runtime that this thread is in and that obtains memory, and where it is made. */
static __thread bool in_runtime __attribute__((tls_model("initial-exec")));
static __thread uint32_t runtime_call __attribute__((tls_model("initial-exec")));
static __thread uint32_t runtime_site __attribute__((tls_model("initial-exec")));

static void site_slot(struct segment *segment, uint32_t correlation, uint32_t site)
{
	struct segment_slot *slot = site ? slot_take(segment) : NULL;

	if (!slot)
		return;
	slot->value = correlation;
	slot->a = site;
	slot_commit(slot, SLOT_SITE);
}

/* Where memory is asked for; CUPTI's record of it comes later, with the same correlation.
 * The runtime's call has the driver's inside, which needs no call stack of its own: CUPTI's
 * header says that both have one number, and 13.0 does so. Where they do not, either
 * finds its place. */
static void allocation_call(struct inject *inject, struct segment *segment, uint32_t domain,
			    const struct cupti_callback *call)
{
	uint32_t site;

	if (domain == CUPTI_DOMAIN_DRIVER && in_runtime) {
		if (call->site == CUPTI_SITE_ENTER && call->correlation != runtime_call)
			site_slot(segment, call->correlation, runtime_site);
		return;
	}
	in_runtime = domain == CUPTI_DOMAIN_RUNTIME && call->site == CUPTI_SITE_ENTER;
	if (call->site != CUPTI_SITE_ENTER)
		return;
	site = site_here(inject, segment, SITE_MEMORY);
	runtime_call = call->correlation;
	runtime_site = site;
	site_slot(segment, call->correlation, site);
}

/* cudaProfilerStart and cudaProfilerStop bound what is recorded. */
static void profiler_call(struct inject *inject, uint32_t cbid, const struct cupti_callback *call)
{
	if (cbid == inject->start_cbid && call->site == CUPTI_SITE_EXIT)
		activity_range(inject, true);
	else if (cbid == inject->stop_cbid && call->site == CUPTI_SITE_ENTER)
		activity_range(inject, false);
}

static void dispatch(struct inject *inject, struct segment *segment, uint32_t domain, uint32_t cbid,
		     const void *data)
{
	const struct cupti_resource *resource = data;

	if (domain == CUPTI_DOMAIN_DRIVER || domain == CUPTI_DOMAIN_RUNTIME) {
		if (sync_called(inject, segment, domain, cbid, data) ||
		    event_called(inject, domain, cbid, data) ||
		    object_called(inject, segment, domain, cbid, data))
			return;
	}
	if (domain == CUPTI_DOMAIN_DRIVER &&
	    (cbid == inject->start_cbid || cbid == inject->stop_cbid)) {
		profiler_call(inject, cbid, data);
		return;
	}
	if (domain == CUPTI_DOMAIN_DRIVER || domain == CUPTI_DOMAIN_RUNTIME) {
		allocation_call(inject, segment, domain, data);
		return;
	}
	if (domain != CUPTI_DOMAIN_RESOURCE)
		return;
	switch (cbid) {
	case CUPTI_CONTEXT_CREATED:
		device_slot(inject, segment, resource->context);
		activity_unified(inject);
		pc_context_created(inject, resource->context);
		break;
	case CUPTI_CONTEXT_DESTROY:
		pc_context_destroyed(inject, resource->context);
		context_slot(inject, segment, resource->context);
		break;
	case CUPTI_STREAM_CREATED:
	case CUPTI_STREAM_DESTROY:
		stream_slot(inject, segment, resource, cbid == CUPTI_STREAM_CREATED);
		break;
	case CUPTI_MODULE_LOADED:
	case CUPTI_MODULE_UNLOAD:
		module_slot(inject, segment, resource, cbid == CUPTI_MODULE_LOADED);
		break;
	default:
		break;
	}
}

void resource_callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
	HOOK;
	struct segment_counts *counts = hook.segment ? &hook.segment->counts : NULL;
	uint64_t begun_ns;

	(void)user;
	if (!counts || !data)
		return;
	begun_ns = inject_now();
	dispatch(inject_state, hook.segment, domain, cbid, data);
	atomic_fetch_add_explicit(&counts->callbacks, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&counts->callback_ns, inject_now() - begun_ns,
				  memory_order_relaxed);
}
