/* What synchronising calls waited for, as the spool tells it. */
#include <unistd.h>

#include "spool_bench.h"

TestSuite(spool_sync, .init = open_bench, .fini = close_bench);

/* The second is there before the device is known: it has to be on the right one. */
Test(spool_sync, a_wait_is_a_call_on_its_stream)
{
	struct cupti_device device = { .kind = CUPTI_KIND_DEVICE, .id = 1, .uuid = { 0xab } };
	const struct session *session = bench.record->sink.session;
	const struct call *calls;

	bench.pid = (uint32_t)getpid(); /* it lives: there is more to come */
	bench_claim(&bench);
	SLOT(SLOT_SYNC, .time_ns = 50, .value = 5, .a = SYNC_CONTEXT, .b = 80,
	     .x = { 3, UINT32_MAX, 1 });
	SLOT(SLOT_SYNC, .time_ns = 70, .value = 60, .a = SYNC_STREAM, .b = 81, .x = { 3, 7, 1 });
	SLOT(SLOT_SYNC, .time_ns = 70, .value = 71, .a = SYNC_STREAM, .b = 82, .x = { 3, 7, 1 });
	SLOT(SLOT_SYNC, .time_ns = 70, .value = 60, .a = SYNC_KINDS, .b = 83, .x = { 3, 7, 1 });
	take();
	cr_assert_eq(bench.record->calls.count, 1, "before the device: what needs none");
	cr_assert_eq(loss(LOSS_malformed), 2);
	PUT(0, device, 184);
	take();
	SLOT(SLOT_SYNC, .time_ns = 90, .value = 80, .a = SYNC_STREAM_WAIT, .b = 84,
	     .x = { 3, 8, 1 });
	take();
	calls = bench.record->calls.at;
	cr_assert_eq(bench.record->calls.count, 3);
	cr_assert_str_eq(text(calls[0].name), "Context Sync");
	cr_assert_eq(calls[0].kind, CALL_SYNC);
	cr_assert_eq(session->lanes.at[calls[0].lane].stream, -1);
	cr_assert_str_eq(text(calls[1].name), "Stream Sync");
	cr_assert_eq(calls[1].start_ns, 60);
	cr_assert_eq(calls[1].end_ns, 70);
	cr_assert_eq(calls[1].correlation, 81);
	cr_assert_eq(session->lanes.at[calls[1].lane].stream, 7);
	cr_assert_eq(session->lanes.at[calls[1].lane].context, 3);
	cr_assert_str_eq(text(calls[2].name), "Stream Wait Event");
	cr_assert_eq(session->lanes.at[calls[2].lane].stream, 8);
	cr_assert_eq(session->devices.count, 1, "one device, by its UUID");
}

/* Each device has a record of its own, the second one's perhaps much later. */
Test(spool_sync, a_wait_needs_the_record_of_its_own_device)
{
	struct cupti_device device = { .kind = CUPTI_KIND_DEVICE, .id = 0, .uuid = { 0xaa } };
	const struct session *session = bench.record->sink.session;
	const struct call *calls;

	bench.pid = (uint32_t)getpid();
	bench_claim(&bench);
	PUT(0, device, 184);
	SLOT(SLOT_SYNC, .time_ns = 70, .value = 60, .a = SYNC_STREAM, .b = 81, .x = { 3, 7, 1 });
	take();
	SLOT(SLOT_SYNC, .time_ns = 71, .value = 61, .a = SYNC_STREAM, .b = 82, .x = { 2, 7, 0 });
	SLOT(SLOT_SYNC, .time_ns = 72, .value = 62, .a = SYNC_STREAM, .b = 83, .x = { 4, 7, 2 });
	take();
	cr_assert_eq(bench.record->calls.count, 1);
	device.id = 1;
	device.uuid[0] = 0xbb;
	PUT(1, device, 184);
	take();
	calls = bench.record->calls.at;
	cr_assert_eq(bench.record->calls.count, 2);
	cr_assert_eq(calls[1].correlation, 81);
	cr_assert_eq(session->devices.at[session->lanes.at[calls[1].lane].device].ordinal, 1);
	cr_assert_geq(spool_finish(bench.spool, &bench.record->sink, &err), 0);
	calls = bench.record->calls.at;
	cr_assert_eq(bench.record->calls.count, 3, "at the end also what never got one");
	cr_assert_eq(session->lanes.at[calls[2].lane].stream, -1);
	cr_assert_eq(session->devices.count, 2);
}

Test(spool_sync, a_wait_that_began_in_a_pause_is_left_out)
{
	bench_claim(&bench);
	SLOT(SLOT_GATE, .time_ns = 10, .value = 1);
	SLOT(SLOT_GATE, .time_ns = 20);
	SLOT(SLOT_SYNC, .time_ns = 40, .value = 15, .a = SYNC_CONTEXT, .b = 1);
	SLOT(SLOT_GATE, .time_ns = 30, .value = 1);
	SLOT(SLOT_SYNC, .time_ns = 40, .value = 25, .a = SYNC_CONTEXT, .b = 2);
	SLOT(SLOT_SYNC, .time_ns = 40, .value = 30, .a = SYNC_CONTEXT, .b = 3);
	take();
	cr_assert_eq(bench.record->calls.count, 2);
	cr_assert_eq(bench.record->calls.at[0].correlation, 1);
	cr_assert_eq(bench.record->calls.at[1].correlation, 3);
	cr_assert_eq(loss(LOSS_dropped), 0);
}
