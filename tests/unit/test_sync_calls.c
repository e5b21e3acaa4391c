/* test_sync_calls.c - in the program: what a call waits for is told once, with its times. */
#include <criterion/criterion.h>

#include "inject/inject.h"

enum { IN_STREAM = 1, OF_DEVICE = 2, PER_THREAD = 3, EVENT = 4 };

static struct inject inject;
static struct segment segment;
static struct segment_slot slot, waits_for;
static unsigned int slots;
static uint64_t now_ns = 100;

struct segment_slot *slot_take(struct segment *of)
{
	(void)of;
	slot.time_ns = inject_now();
	return &slot;
}

void slot_commit(struct segment_slot *of, enum slot_kind kind)
{
	cr_assert(kind == SLOT_SYNC || kind == SLOT_WAITS_FOR);
	if (kind == SLOT_WAITS_FOR)
		waits_for = *of;
	slots += kind == SLOT_SYNC;
}

uint32_t inject_thread(void)
{
	return 70;
}

uint64_t inject_now(void)
{
	return now_ns++;
}

static uint32_t id_of(void *context, void *stream, uint8_t per_thread, uint32_t *ret_id)
{
	now_ns += 1000; /* it takes its time */
	if ((uintptr_t)stream == 0xbad)
		return 1;
	*ret_id = stream ? (uint32_t)(uintptr_t)stream : per_thread ? 8 : 7;
	return !context;
}

static void call_of(uint32_t domain, uint32_t cbid, uint32_t site, uintptr_t parameter,
		    uint32_t result)
{
	struct cupti_callback callback = { .site = site,
					   .params = &parameter,
					   .result = &result,
					   .context = &inject,
					   .context_id = 3,
					   .correlation = domain };

	cr_assert(sync_called(&inject, &segment, domain, cbid, &callback));
}

static void both(uint32_t domain, uint32_t cbid, uintptr_t parameter, uint32_t result)
{
	call_of(domain, cbid, CUPTI_SITE_ENTER, parameter, 0);
	call_of(domain, cbid, CUPTI_SITE_EXIT, parameter, result);
}

static void watch(void)
{
	static const uint32_t domains[] = { CUPTI_DOMAIN_DRIVER, CUPTI_DOMAIN_RUNTIME };

	atomic_store(&inject.active, true);
	inject.cupti.cuptiGetStreamIdEx = id_of;
	for (size_t i = 0; i < 2; i++) {
		cr_assert(sync_watch(&inject, domains[i], IN_STREAM, "cuStreamSynchronize"));
		cr_assert(sync_watch(&inject, domains[i], OF_DEVICE,
				     i ? "cudaDeviceSynchronize_v3020" : "cuCtxSynchronize_v2"));
		cr_assert(sync_watch(&inject, domains[i], PER_THREAD,
				     "cudaStreamSynchronize_ptsz_v7000"));
		cr_assert(sync_watch(&inject, domains[i], EVENT, "cuEventSynchronize"));
		cr_assert_not(sync_watch(&inject, domains[i], 9, "cuEventRecord"));
	}
}

Test(sync_calls, the_outer_call_counts)
{
	watch();
	call_of(CUPTI_DOMAIN_RUNTIME, IN_STREAM, CUPTI_SITE_ENTER, 0x11, 0);
	both(CUPTI_DOMAIN_DRIVER, IN_STREAM, 0x11, 0);
	cr_assert_eq(slots, 0);
	call_of(CUPTI_DOMAIN_RUNTIME, IN_STREAM, CUPTI_SITE_EXIT, 0x11, 0);
	cr_assert_eq(slots, 1);
	cr_assert_eq(slot.value, 100, "its begin");
	cr_assert_eq(slot.time_ns, 101, "its end");
	cr_assert_eq(slot.a, SYNC_STREAM);
	cr_assert_eq(slot.b, CUPTI_DOMAIN_RUNTIME, "its correlation");
	cr_assert_eq(slot.x[0], 3);
	cr_assert_eq(slot.x[1], 0x11);
	both(CUPTI_DOMAIN_DRIVER, OF_DEVICE, 0, 0);
	cr_assert_eq(slots, 2, "the driver's own");
	cr_assert_eq(slot.a, SYNC_CONTEXT);
	cr_assert_eq(slot.x[1], UINT32_MAX);
}

Test(sync_calls, the_default_stream_is_one_of_two)
{
	static const struct {
		uint32_t cbid, handle, id;
	} cases[] = { { IN_STREAM, 0, 7 },
		      { IN_STREAM, 1, 7 },
		      { IN_STREAM, 2, 8 },
		      { PER_THREAD, 0, 8 },
		      { PER_THREAD, 1, 7 },
		      { PER_THREAD, 0x20, 0x20 },
		      { IN_STREAM, 0xbad, UINT32_MAX } };

	watch();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		both(CUPTI_DOMAIN_RUNTIME, cases[i].cbid, cases[i].handle, 0);
		cr_assert_eq(slot.x[1], cases[i].id, "case %zu: %u", i, slot.x[1]);
	}
}

static const struct segment_wait *waiting(void)
{
	for (size_t i = 0; i < SEGMENT_WAITS; i++) {
		if (atomic_load(&segment.waits[i].thread) &&
		    atomic_load(&segment.waits[i].since_ns))
			return &segment.waits[i];
	}
	return NULL;
}

Test(sync_calls, what_is_not_recorded_is_not_told)
{
	watch();
	call_of(CUPTI_DOMAIN_RUNTIME, EVENT, CUPTI_SITE_EXIT, 0, 0);
	atomic_store(&inject.active, false);
	call_of(CUPTI_DOMAIN_RUNTIME, EVENT, CUPTI_SITE_ENTER, 0, 0);
	cr_assert_null(waiting());
	call_of(CUPTI_DOMAIN_RUNTIME, EVENT, CUPTI_SITE_EXIT, 0, 0);
	cr_assert_eq(slots, 0);
	atomic_store(&inject.active, true);
	both(CUPTI_DOMAIN_RUNTIME, EVENT, 0, 0);
	cr_assert_eq(slots, 1);
	cr_assert_not(sync_called(&inject, &segment, CUPTI_DOMAIN_RUNTIME, 9, NULL));
}

/* CUPTI is not asked for what may be gone. */
Test(sync_calls, what_failed_is_told_with_its_error)
{
	uint64_t handle;

	watch();
	inject.cupti.cuptiGetStreamIdEx = NULL;
	inject.cupti.cuptiGetStreamId = NULL;
	both(CUPTI_DOMAIN_RUNTIME, IN_STREAM, 0xdead, 700);
	cr_assert_eq(slots, 1);
	cr_assert_eq(slot.x[0], 3, "its context");
	cr_assert_eq(slot.x[1], UINT32_MAX);
	cr_assert_eq(slot.x[2], UINT32_MAX);
	memcpy(&handle, &slot.x[3], sizeof(handle));
	cr_assert_eq(handle, 0xdead);
	cr_assert_eq(slot.x[5], 700);
	cr_assert_eq(slot.x[6], CUPTI_DOMAIN_RUNTIME);
	cr_assert_eq(slot.x[7], IN_STREAM);
	both(CUPTI_DOMAIN_DRIVER, IN_STREAM, 0x11, 0);
	cr_assert_eq(slot.x[5], 0);
}

Test(sync_calls, a_thread_that_waits_says_so_until_it_is_back)
{
	const struct segment_wait *wait;

	watch();
	call_of(CUPTI_DOMAIN_RUNTIME, PER_THREAD, CUPTI_SITE_ENTER, 0, 0);
	call_of(CUPTI_DOMAIN_DRIVER, IN_STREAM, CUPTI_SITE_ENTER, 0x22, 0);
	wait = waiting();
	cr_assert_not_null(wait);
	cr_assert_eq(wait->thread, 70);
	cr_assert_eq(wait->since_ns, 100);
	cr_assert_eq(wait->kind, SYNC_STREAM);
	cr_assert_eq(wait->handle, HANDLE_THREAD, "what the program's 0 means");
	cr_assert_eq(wait->context, 3);
	cr_assert_eq(wait->domain, CUPTI_DOMAIN_RUNTIME);
	cr_assert_eq(wait->cbid, PER_THREAD);
	call_of(CUPTI_DOMAIN_DRIVER, IN_STREAM, CUPTI_SITE_EXIT, 0x22, 0);
	cr_assert_not_null(waiting(), "the driver's inside it is back, it is not");
	call_of(CUPTI_DOMAIN_RUNTIME, PER_THREAD, CUPTI_SITE_EXIT, 0, 0);
	cr_assert_null(waiting());
	cr_assert_eq(wait->thread, 0, "the place is free");
}

Test(sync_calls, a_wait_that_was_left_by_a_jump_leaves_no_second_place)
{
	size_t taken = 0;

	watch();
	call_of(CUPTI_DOMAIN_RUNTIME, IN_STREAM, CUPTI_SITE_ENTER, 0x22, 0);
	call_of(CUPTI_DOMAIN_RUNTIME, OF_DEVICE, CUPTI_SITE_ENTER, 0, 0);
	for (size_t i = 0; i < SEGMENT_WAITS; i++)
		taken += atomic_load(&segment.waits[i].thread) != 0;
	cr_assert_eq(taken, 1);
	cr_assert_eq(waiting()->kind, SYNC_CONTEXT);
	cr_assert_eq(waiting()->handle, 0);
}

/* It is counted, and goes on. */
Test(sync_calls, more_threads_than_places_are_counted)
{
	watch();
	for (size_t i = 0; i < SEGMENT_WAITS; i++)
		atomic_store(&segment.waits[i].thread, 1000);
	both(CUPTI_DOMAIN_RUNTIME, IN_STREAM, 0x22, 0);
	cr_assert_eq(segment.counts.waits_dropped, 1);
	cr_assert_eq(slots, 1, "what returned is told");
	cr_assert_eq(segment.waits[70].thread, 1000);
}

/* As CUPTI's records of calls: the reader drops those that begin in a pause. */
Test(sync_calls, what_began_while_recording_was_on_is_told)
{
	watch();
	call_of(CUPTI_DOMAIN_RUNTIME, EVENT, CUPTI_SITE_ENTER, 0, 0);
	atomic_store(&inject.active, false);
	call_of(CUPTI_DOMAIN_RUNTIME, EVENT, CUPTI_SITE_EXIT, 0, 0);
	cr_assert_eq(slots, 1);
	call_of(CUPTI_DOMAIN_RUNTIME, EVENT, CUPTI_SITE_ENTER, 0, 0);
	atomic_store(&inject.active, true);
	both(CUPTI_DOMAIN_DRIVER, EVENT, 0, 0);
	cr_assert_eq(slots, 2, "the driver's inside it began later");
	call_of(CUPTI_DOMAIN_RUNTIME, EVENT, CUPTI_SITE_EXIT, 0, 0);
	cr_assert_eq(slots, 2);
}

static void record(uint64_t event, uintptr_t stream, uint32_t correlation, uint32_t result)
{
	uintptr_t parameters[] = { event, stream };
	struct cupti_callback callback = { .site = CUPTI_SITE_EXIT,
					   .params = parameters,
					   .result = &result,
					   .context_id = 3,
					   .correlation = correlation };

	cr_assert(event_called(&inject, CUPTI_DOMAIN_DRIVER, 30, &callback));
}

static void wait_for(uintptr_t event)
{
	uintptr_t parameters[] = { 0x11, event };
	uint32_t result = 0;
	struct cupti_callback callback = { .params = parameters,
					   .result = &result,
					   .context = &inject,
					   .context_id = 3,
					   .correlation = 90 };

	waits_for = (struct segment_slot){ 0 };
	for (callback.site = CUPTI_SITE_ENTER; callback.site <= CUPTI_SITE_EXIT; callback.site++)
		cr_assert(sync_called(&inject, &segment, CUPTI_DOMAIN_RUNTIME, 31, &callback));
}

Test(sync_calls, a_stream_waits_for_where_the_event_was_recorded_last)
{
	watch();
	inject.trace = UINT64_C(1) << TRACE_EVENTS;
	cr_assert(event_watch(&inject, CUPTI_DOMAIN_DRIVER, 30, "cuEventRecord"));
	cr_assert_not(event_watch(&inject, CUPTI_DOMAIN_RUNTIME, 30, "cudaEventRecord_v3020"));
	cr_assert_not(event_watch(&inject, CUPTI_DOMAIN_DRIVER, 32, "cuEventRecordStuff"));
	cr_assert(sync_watch(&inject, CUPTI_DOMAIN_RUNTIME, 31, "cudaStreamWaitEvent_v3020"));
	wait_for(0xe0);
	cr_assert_eq(waits_for.b, 0, "it was never recorded");
	record(0xe0, 0x22, 50, 0);
	record(0xe0, 0x33, 60, 0);
	record(0xe0, 0x44, 70, 400);
	wait_for(0xe0);
	cr_assert_eq(waits_for.value, 0x33);
	cr_assert_eq(waits_for.b, 90, "the correlation of the call that waits");
	cr_assert_eq(waits_for.x[0], 3);
	cr_assert_eq(waits_for.x[1], 60);
	cr_assert_eq(waits_for.x[2], UINT32_MAX, "the reader knows its number");
	record(0xe0, 0, 80, 0);
	wait_for(0xe0);
	cr_assert_eq(waits_for.value, HANDLE_DEFAULT);
	cr_assert_eq(waits_for.x[2], 7);
	wait_for(0);
	cr_assert_eq(waits_for.b, 0);
	cr_assert_null(waiting(), "the host does not wait");
	inject.trace = 0;
	wait_for(0xe0);
	cr_assert_eq(waits_for.b, 0, "it was not asked for");
}
