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

/* What is lent beyond the segment's buffers is thrown away: small, so that many threads
 * can have one. */
static const uint64_t OVERFLOW_BYTES = 64 << 10;

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
	uint64_t bytes =
		segment->buffer_bytes < OVERFLOW_BYTES ? segment->buffer_bytes : OVERFLOW_BYTES;
	void *at = MAP_FAILED;

	if (atomic_fetch_add(&inject->overflow_bytes, bytes) + bytes <= segment->overflow_bytes)
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
	if (!segment) { /* inside ourselves, for instance in a flush of ours: nothing is lost */
		segment = inject_state ? atomic_load(&inject_state->segment) : NULL;
		if (!segment)
			return;
		if (hook.nested)
			atomic_fetch_sub(&segment->counts.slots_nested, 1);
	}
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
 * has not been seen; 0: not known, stop. Whether CUPTI takes the mark of a kernel that has not
 * ended away when it is told to hand everything over has not been seen: it is no other kind. */
static uint32_t record_bytes(struct inject *inject, struct segment *segment, uint8_t *buffer,
			     size_t valid, size_t at)
{
	uint32_t kind = *(uint32_t *)(void *)(buffer + at) & ~CUPTI_KIND_OPEN;
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

/* The text of the kernel before is most often that of the next. */
struct last_name {
	uint64_t pointer;
	uint32_t text;
};

/* [hot] What is read of a record that is touched. */
static size_t least_bytes(uint32_t kind)
{
	return kind == CUPTI_KIND_DEVICE ? sizeof(struct cupti_device)
					 : sizeof(struct cupti_kernel);
}

/* [hot] What is not as CUPTI left it: names become text ids. */
static __attribute__((noinline)) void touch(struct segment *segment, void *at, uint32_t kind,
					    struct last_name *last)
{
	struct cupti_kernel *kernel = at;
	struct cupti_device *device = at;

	if (kind == CUPTI_KIND_CONCURRENT_KERNEL || kind == CUPTI_KIND_KERNEL) {
		if (kernel->name != last->pointer || !last->text) {
			last->pointer = kernel->name;
			last->text =
				text_of_pointer(segment, (const char *)(uintptr_t)last->pointer);
		}
		kernel->name = last->text;
	} else {
		device->name = text_of_pointer(segment, (const char *)(uintptr_t)device->name);
	}
}

/* [hot] Names become text ids; the number of records. Sizes of records are looked up
 * once for the buffer, and records of calls, which are the most, are only stepped over:
 * this runs where the program's threads wait for a buffer. */
static uint64_t resolve(struct inject *inject, struct segment *segment, uint8_t *buffer,
			size_t valid)
{
	static const uint64_t named = UINT64_C(1) << CUPTI_KIND_CONCURRENT_KERNEL |
				      UINT64_C(1) << CUPTI_KIND_KERNEL |
				      UINT64_C(1) << CUPTI_KIND_DEVICE;
	uint64_t count = 0;
	struct last_name last = { 0 };
	uint16_t sizes[SEGMENT_KINDS];
	uint32_t bytes;

	for (size_t i = 0; i < SEGMENT_KINDS; i++)
		sizes[i] = (uint16_t)atomic_load_explicit(&segment->record_bytes[i],
							  memory_order_relaxed);
	for (size_t at = 0; at + 8 <= valid; at += bytes, count++) {
		struct cupti_kernel *kernel = (struct cupti_kernel *)(void *)(buffer + at);
		uint32_t kind = kernel->kind & ~CUPTI_KIND_OPEN;

		bytes = kind < SEGMENT_KINDS ? sizes[kind] : 0;
		if (__builtin_expect(!bytes, 0)) {
			bytes = record_bytes(inject, segment, buffer, valid, at);
			if (!bytes)
				break;
			if (kind >= SEGMENT_KINDS)
				continue;
			sizes[kind] = (uint16_t)bytes;
		}
		if (!(named >> kind & 1) || at + least_bytes(kind) > valid)
			continue;
		if (kind == CUPTI_KIND_CONCURRENT_KERNEL && kernel->name == last.pointer)
			kernel->name = last.text;
		else
			touch(segment, kernel, kind, &last);
	}
	return count;
}

/* [hot] What went to waste is told by kind: it matters whether launches did. */
static void count_dropped(struct inject *inject, struct segment *segment, uint8_t *buffer,
			  size_t valid)
{
	uint32_t bytes;

	for (size_t at = 0; at + 8 <= valid; at += bytes) {
		uint32_t kind = *(uint32_t *)(void *)(buffer + at) & ~CUPTI_KIND_OPEN;

		bytes = record_bytes(inject, segment, buffer, valid, at);
		if (!bytes)
			return;
		if (kind == CUPTI_KIND_CONCURRENT_KERNEL || kind == CUPTI_KIND_KERNEL)
			atomic_fetch_add(&segment->counts.kernels_dropped, 1);
		else if (kind == CUPTI_KIND_RUNTIME || kind == CUPTI_KIND_DRIVER)
			atomic_fetch_add(&segment->counts.calls_dropped, 1);
	}
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
		count_dropped(inject, segment, buffer, valid);
		munmap(buffer, bytes);
		atomic_fetch_sub(&inject->overflow_bytes, bytes);
	}
	if (inject->cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == 0 &&
	    dropped) {
		atomic_fetch_add(&segment->counts.records_dropped, dropped);
		atomic_fetch_add(&segment->counts.cupti_dropped, dropped);
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
	X(TRACE_KERNEL, CUPTI_KIND_CONCURRENT_KERNEL) \
	X(TRACE_KERNEL, CUPTI_KIND_DEVICE)            \
	X(TRACE_KERNEL, CUPTI_KIND_CONTEXT)           \
	X(TRACE_MEMORY, CUPTI_KIND_MEMORY2)           \
	X(TRACE_MEMORY, CUPTI_KIND_MEMORY_POOL)       \
	X(TRACE_GRAPH, CUPTI_KIND_GRAPH_TRACE)

static void each_kind(struct inject *inject, bool enable)
{
#define X(word, kind)                                                   \
	if (inject->trace >> (word)&1)                                  \
		(void)(enable ? inject->cupti.cuptiActivityEnable(kind) \
			      : inject->cupti.cuptiActivityDisable(kind));
	KINDS(X)
#undef X
	if (atomic_load(&inject->unified))
		(void)(enable ? inject->cupti.cuptiActivityEnable(CUPTI_KIND_UNIFIED_MEMORY)
			      : inject->cupti.cuptiActivityDisable(CUPTI_KIND_UNIFIED_MEMORY));
}

/* What is on even while recording is paused: devices and contexts are told once,
 * and calls can't be switched from a callback (seen with CUPTI 13.0: they stay off).
 * The reader drops calls outside of what SLOT_GATE opens. */
static void each_base(struct inject *inject, bool enable)
{
	static const uint32_t kinds[] = { CUPTI_KIND_DEVICE, CUPTI_KIND_CONTEXT };

	for (size_t i = 0; i < 2; i++)
		(void)(enable ? inject->cupti.cuptiActivityEnable(kinds[i])
			      : inject->cupti.cuptiActivityDisable(kinds[i]));
	calls_switch(inject, enable);
}

/* When recording goes on or pauses: CUPTI records calls all along, and NVTX never stops,
 * so the reader, which comes later, drops what lies in the pauses. */
static void gate(struct inject *inject, struct segment *segment, bool open)
{
	struct segment_slot *slot = slot_take(segment);

	if (!slot)
		return;
	if (open)
		slot->value = GATE_ON;
	else if (atomic_load(&segment->closed) == CLOSED_MOMENT ||
		 atomic_load(&inject->leaving) == LEAVING_YIELDED)
		slot->value = GATE_PART;
	else
		slot->value = GATE_OFF;
	slot_commit(slot, SLOT_GATE);
}

/* The program says by its range when, and sonde whether at all. After a step back CUPTI
 * is the host's. */
static bool is_wanted(struct inject *inject, struct segment *segment)
{
	return !atomic_load(&segment->paused) && !atomic_load(&segment->closed) &&
	       atomic_load(&inject->leaving) != LEAVING_YIELDED;
}

/* Without CUPTI, which may come yet, NVTX still has its windows. */
static void turn(struct inject *inject, struct segment *segment, bool on)
{
	if (!on)
		gate(inject, segment, false);
	if (inject->subscriber)
		each_kind(inject, on);
	atomic_store(&inject->active, on);
	if (on)
		gate(inject, segment, true);
}

/* Threads of the program and ours come here at any moment. Who finds another one at it
 * leaves the rest to that one, which looks again when it is done. */
void activity_follow(struct inject *inject)
{
	struct segment *segment = atomic_load(&inject->segment);
	bool wanted;

	if (!segment || atomic_load(&inject->leaving) == LEAVING_EXIT)
		return;
	do {
		if (atomic_exchange(&inject->switching, true))
			return;
		wanted = is_wanted(inject, segment);
		if (wanted != atomic_load(&inject->active))
			turn(inject, segment, wanted);
		atomic_store(&inject->switching, false);
	} while (wanted != is_wanted(inject, segment));
}

void activity_begin(struct inject *inject)
{
	struct segment *segment = atomic_load(&inject->segment);

	if (atomic_load(&segment->paused))
		gate(inject, segment, false);
}

void activity_range(struct inject *inject, bool inside)
{
	struct segment *segment = atomic_load(&inject->segment);

	if (!segment)
		return;
	if (inside)
		atomic_fetch_add(&segment->ranges_begun, 1);
	atomic_store(&segment->paused, !inside);
	activity_follow(inject);
	if (!inside)
		atomic_fetch_or(&segment->wanted, WANT_FLUSH);
}

/* [setup], [thread], [final] All that CUPTI has, also of kernels that have not ended: these have no
 * times then, and get none later. */
void activity_flush(struct inject *inject)
{
	struct segment *segment = atomic_load(&inject->segment);
	uint64_t now = inject_now();

	if (!inject->cupti.cuptiActivityFlushAll(1) && segment)
		atomic_store(&segment->flushed_ns, now);
}

void activity_off(struct inject *inject)
{
	activity_follow(inject);
	each_base(inject, false);
}

static void set_attribute(struct inject *inject, uint32_t attribute, uint8_t value)
{
	size_t bytes = sizeof(value);

	if (inject->cupti.cuptiActivitySetAttribute)
		(void)inject->cupti.cuptiActivitySetAttribute(attribute, &bytes, &value);
}

/* Copies and faults of unified memory, on all devices: scope and device have meant nothing
 * since CUDA 7. */
static uint32_t configure_unified(struct inject *inject)
{
	struct {
		uint32_t scope, counter, device, enable;
	} config[CUPTI_UNIFIED_COUNTERS - 1];
	uint32_t result;

	for (uint32_t i = 0; i < CUPTI_UNIFIED_COUNTERS - 1; i++) {
		config[i].scope = 1;
		config[i].counter = i + 1;
		config[i].device = 0;
		config[i].enable = 1;
	}
	result = inject->cupti.cuptiActivityConfigureUnifiedMemoryCounter(
		config, CUPTI_UNIFIED_COUNTERS - 1);
	/* Versions that do not know all of them. */
	if (result)
		result = inject->cupti.cuptiActivityConfigureUnifiedMemoryCounter(
			config, CUPTI_UNIFIED_GPU_FAULT);
	return result;
}

/* Not before there is a context: CUPTI 13.0 takes the configuration as we begin, inside
 * cuInit, but refuses the records then (13, not ready), and ever after. */
void activity_unified(struct inject *inject)
{
	uint32_t result;

	if (!(inject->trace >> TRACE_UNIFIED & 1) ||
	    !inject->cupti.cuptiActivityConfigureUnifiedMemoryCounter ||
	    atomic_exchange(&inject->unified_asked, true))
		return;
	result = configure_unified(inject);
	atomic_store(&inject->unified, !result);
	if (!result && atomic_load(&inject->active))
		result = inject->cupti.cuptiActivityEnable(CUPTI_KIND_UNIFIED_MEMORY);
	if (result)
		inject_lacks(inject, LACK_UNIFIED, result);
}

static void enable_queued(struct inject *inject)
{
	uint32_t result = inject->cupti.cuptiActivityEnableLatencyTimestamps
				  ? inject->cupti.cuptiActivityEnableLatencyTimestamps(1)
				  : 0;

	if (result || !inject->cupti.cuptiActivityEnableLatencyTimestamps)
		inject_lacks(inject, LACK_QUEUED, result);
}

/* [setup] */
int activity_start(struct inject *inject)
{
	struct segment *segment = atomic_load(&inject->segment);
	uint32_t result =
		inject->cupti.cuptiSubscribe(&inject->subscriber, resource_callback, NULL);

	if (result) {
		inject->subscriber = NULL;
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
		inject->subscriber = NULL;
		inject_off(inject, SEGMENT_REASON_CALL_FAILED, result);
		return -1;
	}
	if (inject->trace >> TRACE_QUEUED & 1)
		enable_queued(inject);
	for (uint32_t cbid = CUPTI_CONTEXT_CREATED; cbid <= CUPTI_MODULE_UNLOAD; cbid++) {
		if (cbid != 5)
			(void)inject->cupti.cuptiEnableCallback(1, inject->subscriber,
								CUPTI_DOMAIN_RESOURCE, cbid);
	}
	if (inject->trace >> TRACE_MEMORY & 1)
		site_prepare(inject);
	each_base(inject, true);
	if (atomic_load(&inject->active)) /* by a range of NVTX, before CUDA */
		each_kind(inject, true);
	activity_follow(inject);
	if (!atomic_load(&inject->active))
		gate(inject, segment, false);
	pc_setup(inject);
	return 0;
}
