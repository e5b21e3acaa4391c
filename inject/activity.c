/*
 * activity.c - CUPTI's activity records, written by CUPTI straight into the
 * buffers of the segment.
 *
 * When a buffer is full, names in it are replaced by text ids and it goes
 * READY. When none is free, CUPTI gets memory that is thrown away: refusing
 * one can crash versions before 12.9. What goes to waste is counted.
 */
#include "inject/inject.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* No more than this is lent beyond the segment's buffers. */
static const uint64_t OVERFLOW_MAX = 32 << 20;

/* [hot] The index of a lent buffer of ours, or -1. */
static int64_t index_of(struct segment *segment, const uint8_t *buffer)
{
	const uint8_t *first = segment_buffer(segment, 0);
	uint64_t offset = (uint64_t)(buffer - first);

	return buffer >= first && offset / segment->buffer_bytes < segment->buffer_count
		       ? (int64_t)(offset / segment->buffer_bytes)
		       : -1;
}

/* [hot] */
static void overflow(struct inject *inject, struct segment *segment, uint8_t **ret_buffer,
		     size_t *ret_bytes)
{
	uint64_t bytes = segment->buffer_bytes;
	void *at = MAP_FAILED;

	atomic_fetch_add(&segment->counts.buffers_refused, 1);
	if (atomic_fetch_add(&inject->overflow_bytes, bytes) + bytes <= OVERFLOW_MAX)
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) {
		atomic_fetch_sub(&inject->overflow_bytes, bytes);
		return;
	}
	*ret_buffer = at;
	*ret_bytes = bytes;
}

/* [hot] CUPTI, on any thread. */
static void buffer_asked(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records)
{
	HOOK;
	struct segment *segment = hook.segment;
	uint32_t count;

	*ret_buffer = NULL;
	*ret_bytes = *ret_records = 0;
	if (!segment) /* inside ourselves, for instance in a flush of ours */
		segment = inject_state ? atomic_load(&inject_state->segment) : NULL;
	if (!segment)
		return;
	atomic_fetch_add(&segment->counts.buffers_asked, 1);
	count = segment->buffer_count;
	for (uint32_t i = 0; i < count && i < SEGMENT_BUFFERS_MAX; i++) {
		struct segment_buffer *buffer = &segment->buffers[i];
		uint32_t is = BUFFER_FREE;

		if (atomic_load_explicit(&buffer->state, memory_order_acquire) != BUFFER_FREE ||
		    !atomic_compare_exchange_strong(&buffer->state, &is, BUFFER_FILLING))
			continue;
		buffer->thread = inject_thread();
		atomic_store(&buffer->order, atomic_fetch_add(&segment->order, 1));
		*ret_buffer = segment_buffer(segment, i);
		*ret_bytes = segment->buffer_bytes;
		return;
	}
	overflow(inject_state, segment, ret_buffer, ret_bytes);
}

/* [hot] Size of the record at `at`, by CUPTI's own step to the next where it
 * has not been seen; 0: not known, stop. */
static uint32_t record_bytes(struct inject *inject, struct segment *segment, uint8_t *buffer,
			     size_t valid, size_t at)
{
	uint32_t kind = *(uint32_t *)(void *)(buffer + at);
	uint32_t bytes = kind < SEGMENT_KINDS ? atomic_load(&segment->record_bytes[kind]) : 0;
	void *record = buffer + at;

	if (bytes)
		return bytes;
	if (inject->cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == 0 &&
	    (uint8_t *)record > buffer + at)
		bytes = (uint32_t)((uint8_t *)record - (buffer + at));
	else
		bytes = (uint32_t)(valid - at); /* the last one */
	if (kind < SEGMENT_KINDS && bytes <= 1024)
		atomic_store(&segment->record_bytes[kind], bytes);
	return bytes;
}

/* [hot] Names become text ids; the number of records. */
static uint64_t resolve(struct inject *inject, struct segment *segment, uint8_t *buffer,
			size_t valid)
{
	uint64_t last_pointer = 0, count = 0;
	uint32_t last_text = 0, bytes;

	for (size_t at = 0; at + 8 <= valid; at += bytes, count++) {
		uint32_t kind = *(uint32_t *)(void *)(buffer + at);

		bytes = record_bytes(inject, segment, buffer, valid, at);
		if (!bytes)
			break;
		if ((kind == CUPTI_KIND_CONCURRENT_KERNEL || kind == CUPTI_KIND_KERNEL) &&
		    at + sizeof(struct cupti_kernel) <= valid) {
			struct cupti_kernel *kernel = (struct cupti_kernel *)(void *)(buffer + at);

			if (kernel->name != last_pointer || !last_text) {
				last_pointer = kernel->name;
				last_text = text_of_pointer(segment,
							    (const char *)(uintptr_t)last_pointer);
			}
			kernel->name = last_text;
		} else if (kind == CUPTI_KIND_DEVICE && at + sizeof(struct cupti_device) <= valid) {
			struct cupti_device *device = (struct cupti_device *)(void *)(buffer + at);

			device->name =
				text_of_pointer(segment, (const char *)(uintptr_t)device->name);
		}
	}
	return count;
}

/* [hot] CUPTI's worker, or a thread that flushes. */
static void buffer_done(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	HOOK; /* for errno, and so that nothing of ours nests */
	struct inject *inject = inject_state;
	struct segment *segment = inject ? atomic_load(&inject->segment) : NULL;
	size_t dropped = 0;
	int64_t index;

	(void)hook;
	if (!segment || !buffer)
		return;
	index = index_of(segment, buffer);
	if (index >= 0) {
		struct segment_buffer *ours = &segment->buffers[index];

		if (valid > segment->buffer_bytes)
			valid = segment->buffer_bytes;
		(void)resolve(inject, segment, buffer, valid);
		atomic_store(&ours->valid, valid);
		atomic_store_explicit(&ours->state, BUFFER_READY, memory_order_release);
	} else {
		atomic_fetch_add(&segment->counts.records_dropped,
				 resolve(inject, segment, buffer, valid));
		munmap(buffer, bytes);
		atomic_fetch_sub(&inject->overflow_bytes, bytes);
	}
	if (inject->cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == 0 &&
	    dropped)
		atomic_fetch_add(&segment->counts.records_dropped, dropped);
}

/* Runtime and driver calls that matter: launches, copies, sets, waits, memory,
 * graphs, modules. Names begin so; "*" inside: anything. */
static const char *const API_PREFIXES[] = {
	"cudaLaunch",
	"cudaMemcpy",
	"cudaMemset",
	"cudaDeviceSynchronize",
	"cudaStreamSynchronize",
	"cudaEventSynchronize",
	"cudaStreamWaitEvent",
	"cudaMalloc",
	"cudaFree",
	"cudaHostAlloc",
	"cudaHostRegister",
	"cudaHostUnregister",
	"cudaGraphLaunch",
	"cudaGraphInstantiate",
	"cudaGraphExecUpdate",
	"cudaStreamCreate",
	"cudaStreamDestroy",
	"cudaStreamBeginCapture",
	"cudaStreamEndCapture",
	"cudaDeviceReset",
	"cudaMemPrefetch",
	"cudaProfilerSt",
	"cudaLibraryLoad",
	"cuLaunch",
	"cuMemcpy",
	"cuMemset",
	"cuCtxSynchronize",
	"cuStreamSynchronize",
	"cuEventSynchronize",
	"cuStreamWaitEvent",
	"cuMemAlloc",
	"cuMemFree",
	"cuMemHostAlloc",
	"cuMemHostRegister",
	"cuMemMap",
	"cuMemCreate",
	"cuGraphLaunch",
	"cuGraphInstantiate",
	"cuGraphExecUpdate",
	"cuStreamCreate",
	"cuStreamDestroy",
	"cuModuleLoad",
	"cuLibraryLoad",
	"cuModuleUnload",
	"cuProfilerSt",
	"cuLinkComplete",
};

static bool api_matters(const char *name)
{
	for (size_t i = 0; i < sizeof(API_PREFIXES) / sizeof(API_PREFIXES[0]); i++) {
		if (!strncmp(name, API_PREFIXES[i], strlen(API_PREFIXES[i])))
			return true;
	}
	return false;
}

/* [setup] Names of calls into the segment; those that matter on or off. */
static void enable_api(struct inject *inject, uint32_t domain, uint8_t enable)
{
	struct segment *segment = atomic_load(&inject->segment);
	bool all = inject->trace >> TRACE_API_ALL & 1;
	enum { CBID_MAX = 2000, GAP = 16 };

	for (uint32_t cbid = 1, gap = 0; cbid < CBID_MAX && gap < GAP; cbid++) {
		const char *name = NULL;
		struct segment_slot *slot;

		if (inject->cupti.cuptiGetCallbackName(domain, cbid, &name) || !name) {
			gap++;
			continue;
		}
		gap = 0;
		if (!all && !api_matters(name))
			continue;
		if (domain == CUPTI_DOMAIN_RUNTIME)
			(void)inject->cupti.cuptiActivityEnableRuntimeApi(cbid, enable);
		else
			(void)inject->cupti.cuptiActivityEnableDriverApi(cbid, enable);
		slot = enable ? slot_take(segment) : NULL;
		if (slot) {
			slot->value = (uint64_t)domain << 32 | cbid;
			slot->a = text_intern(segment, name, strlen(name));
			slot_commit(slot, SLOT_API_NAME);
		}
	}
}

/* X(word of TRACE_LIST, kind) */
#define KINDS(X)                                      \
	X(TRACE_CUDA, CUPTI_KIND_MEMCPY)              \
	X(TRACE_CUDA, CUPTI_KIND_MEMCPY2)             \
	X(TRACE_CUDA, CUPTI_KIND_MEMSET)              \
	X(TRACE_CUDA, CUPTI_KIND_CONCURRENT_KERNEL)   \
	X(TRACE_CUDA, CUPTI_KIND_DEVICE)              \
	X(TRACE_CUDA, CUPTI_KIND_CONTEXT)             \
	X(TRACE_CUDA, CUPTI_KIND_OVERHEAD)            \
	X(TRACE_CUDA, CUPTI_KIND_JIT)                 \
	X(TRACE_CUDA, CUPTI_KIND_STREAM)              \
	X(TRACE_KERNEL, CUPTI_KIND_CONCURRENT_KERNEL) \
	X(TRACE_KERNEL, CUPTI_KIND_DEVICE)            \
	X(TRACE_KERNEL, CUPTI_KIND_CONTEXT)           \
	X(TRACE_SYNC, CUPTI_KIND_SYNCHRONIZATION)     \
	X(TRACE_SYNC, CUPTI_KIND_CUDA_EVENT)          \
	X(TRACE_MEMORY, CUPTI_KIND_MEMORY2)           \
	X(TRACE_MEMORY, CUPTI_KIND_MEMORY_POOL)       \
	X(TRACE_GRAPH, CUPTI_KIND_GRAPH_TRACE)        \
	X(TRACE_UNIFIED, CUPTI_KIND_UNIFIED_MEMORY)

static void each_kind(struct inject *inject, bool enable)
{
#define X(word, kind)                                                   \
	if (inject->trace >> (word)&1)                                  \
		(void)(enable ? inject->cupti.cuptiActivityEnable(kind) \
			      : inject->cupti.cuptiActivityDisable(kind));
	KINDS(X)
#undef X
}

void activity_watch_allocations(struct inject *inject)
{
	static const char *const prefixes[] = { "cudaMalloc", "cudaHostAlloc" };
	enum { CBID_MAX = 2000 };

	for (uint32_t cbid = 1, gap = 0; cbid < CBID_MAX && gap < 16; cbid++) {
		const char *name = NULL;

		if (inject->cupti.cuptiGetCallbackName(CUPTI_DOMAIN_RUNTIME, cbid, &name) ||
		    !name) {
			gap++;
			continue;
		}
		gap = 0;
		for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
			if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
				(void)inject->cupti.cuptiEnableCallback(1, inject->subscriber,
									CUPTI_DOMAIN_RUNTIME, cbid);
		}
	}
}

static bool wants_api(const struct inject *inject)
{
	return inject->trace & ((uint64_t)1 << TRACE_CUDA | (uint64_t)1 << TRACE_API_ALL);
}

/* libsonde-osrt.so records in the same windows. */
static void pause_host(struct inject *inject, bool paused)
{
	struct segment *segment = atomic_load(&inject->segment);

	if (segment)
		atomic_store(&segment->paused, paused);
}

/* What is on even while recording is paused: devices and contexts are told once,
 * and calls can't be switched from a callback (seen with CUPTI 13.0: they stay off).
 * The reader drops calls outside of what SLOT_GATE opens. */
static void each_base(struct inject *inject, bool enable)
{
	static const uint32_t kinds[] = { CUPTI_KIND_DEVICE, CUPTI_KIND_CONTEXT };
	static const uint32_t calls[] = { CUPTI_KIND_RUNTIME, CUPTI_KIND_DRIVER };

	for (size_t i = 0; i < 2; i++)
		(void)(enable ? inject->cupti.cuptiActivityEnable(kinds[i])
			      : inject->cupti.cuptiActivityDisable(kinds[i]));
	if (!wants_api(inject))
		return;
	if (inject->cupti.cuptiActivityEnableRuntimeApi &&
	    inject->cupti.cuptiActivityEnableDriverApi) {
		enable_api(inject, CUPTI_DOMAIN_RUNTIME, enable);
		enable_api(inject, CUPTI_DOMAIN_DRIVER, enable);
		return;
	}
	for (size_t i = 0; i < 2; i++)
		(void)(enable ? inject->cupti.cuptiActivityEnable(calls[i])
			      : inject->cupti.cuptiActivityDisable(calls[i]));
}

static void gate(struct inject *inject, bool open)
{
	struct segment *segment = atomic_load(&inject->segment);
	struct segment_slot *slot = segment ? slot_take(segment) : NULL;

	if (!slot)
		return;
	slot->value = open;
	slot_commit(slot, SLOT_GATE);
}

void activity_enable(struct inject *inject)
{
	/* After a step back CUPTI is the host's. */
	if (atomic_load(&inject->leaving) || atomic_exchange(&inject->active, true))
		return;
	pause_host(inject, false);
	each_kind(inject, true);
	gate(inject, true);
}

void activity_disable(struct inject *inject)
{
	if (!atomic_exchange(&inject->active, false))
		return;
	if (!atomic_load(&inject->leaving))
		pause_host(inject, true);
	gate(inject, false);
	each_kind(inject, false);
}

void activity_off(struct inject *inject)
{
	activity_disable(inject);
	each_base(inject, false);
}

void activity_watch_profiler_calls(struct inject *inject)
{
	enum { CBID_MAX = 2000 };

	for (uint32_t cbid = 1; cbid < CBID_MAX && !(inject->start_cbid && inject->stop_cbid);
	     cbid++) {
		const char *name = NULL;

		if (inject->cupti.cuptiGetCallbackName(CUPTI_DOMAIN_DRIVER, cbid, &name) || !name)
			continue;
		if (!strcmp(name, "cuProfilerStart"))
			inject->start_cbid = cbid;
		else if (!strcmp(name, "cuProfilerStop"))
			inject->stop_cbid = cbid;
		else
			continue;
		(void)inject->cupti.cuptiEnableCallback(1, inject->subscriber, CUPTI_DOMAIN_DRIVER,
							cbid);
	}
}

static void set_attribute(struct inject *inject, uint32_t attribute, uint8_t value)
{
	size_t bytes = sizeof(value);

	if (inject->cupti.cuptiActivitySetAttribute)
		(void)inject->cupti.cuptiActivitySetAttribute(attribute, &bytes, &value);
}

/* Fault counts and copies of unified memory, on all devices. */
static void configure_unified(struct inject *inject)
{
	/* scope 1: one device; kinds 1 to 4: copies either way, faults of CPU and GPU */
	struct {
		uint32_t scope, kind, device, enable;
	} config[4];

	for (uint32_t i = 0; i < 4; i++) {
		config[i].scope = 1;
		config[i].kind = i + 1;
		config[i].device = 0;
		config[i].enable = 1;
	}
	if (!inject->cupti.cuptiActivityConfigureUnifiedMemoryCounter ||
	    inject->cupti.cuptiActivityConfigureUnifiedMemoryCounter(config, 4))
		inject->trace &= ~((uint64_t)1 << TRACE_UNIFIED);
}

/* [setup] */
int activity_start(struct inject *inject)
{
	struct segment *segment = atomic_load(&inject->segment);
	uint32_t result =
		inject->cupti.cuptiSubscribe(&inject->subscriber, resource_callback, NULL);

	if (result) {
		inject_off(inject,
			   result == CUPTI_RESULT_SUBSCRIBERS || result == CUPTI_RESULT_MAX_LIMIT
				   ? SEGMENT_REASON_SUBSCRIBED
				   : SEGMENT_REASON_CALL_FAILED,
			   result);
		return -1;
	}
	set_attribute(inject, CUPTI_ATTR_ZEROED_BUFFER, 1);
	if (inject->cupti.cuptiSetThreadIdType)
		(void)inject->cupti.cuptiSetThreadIdType(1); /* as the kernel counts */
	segment->clock =
		inject->cupti.cuptiActivityRegisterTimestampCallback &&
				!inject->cupti.cuptiActivityRegisterTimestampCallback(inject_now)
			? SEGMENT_CLOCK_MONOTONIC
			: SEGMENT_CLOCK_REALTIME;
	result = inject->cupti.cuptiActivityRegisterCallbacks(buffer_asked, buffer_done);
	if (result) {
		(void)inject->cupti.cuptiUnsubscribe(inject->subscriber);
		inject_off(inject, SEGMENT_REASON_CALL_FAILED, result);
		return -1;
	}
	if (inject->trace >> TRACE_UNIFIED & 1)
		configure_unified(inject);
	if (inject->trace >> TRACE_QUEUED & 1 && inject->cupti.cuptiActivityEnableLatencyTimestamps)
		(void)inject->cupti.cuptiActivityEnableLatencyTimestamps(1);
	for (uint32_t cbid = CUPTI_CONTEXT_CREATED; cbid <= CUPTI_MODULE_UNLOAD; cbid++) {
		if (cbid != 5)
			(void)inject->cupti.cuptiEnableCallback(1, inject->subscriber,
								CUPTI_DOMAIN_RESOURCE, cbid);
	}
	if (inject->trace >> TRACE_MEMORY & 1) {
		site_prepare(inject);
		activity_watch_allocations(inject);
	}
	if (inject->trace >> TRACE_RANGE_PROFILER & 1)
		activity_watch_profiler_calls(inject);
	each_base(inject, true);
	if (inject->trace >> TRACE_PAUSED & 1)
		gate(inject, false);
	else
		activity_enable(inject);
	return 0;
}
