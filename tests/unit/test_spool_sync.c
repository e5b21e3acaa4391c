/* What synchronising calls waited for, as the spool tells it. */
#include <string.h>
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

/* Its call, up to the end of what is recorded, and a mark; CUPTI has a record of neither. */
Test(spool_sync, a_wait_that_did_not_return_is_told_at_the_end_of_the_process)
{
	struct segment_wait *wait = &bench.segment->waits[5];
	const struct session *session = bench.record->sink.session;
	uint64_t handle = 0xabc0;

	bench_claim(&bench);
	SLOT(SLOT_API_NAME, .time_ns = 1, .value = UINT64_C(2) << 32 | 131,
	     .a = TEXT("cudaStreamSynchronize_v3020"));
	SLOT(SLOT_STREAM, .time_ns = 2, .value = 13, .x = { 3, 1, 0, 0xabc0 });
	*wait = (struct segment_wait){ .thread = 77,
				       .kind = SYNC_STREAM,
				       .since_ns = 50,
				       .handle = handle,
				       .context = 3,
				       .correlation = 9,
				       .domain = 2,
				       .cbid = 131 };
	bench.segment->waits[6] = (struct segment_wait){ .thread = 78, .since_ns = INT64_MAX };
	bench.segment->waits[7] = (struct segment_wait){ .thread = 79, .since_ns = 5, .kind = 9 };
	bench.segment->waits[8] = (struct segment_wait){ .thread = 80 };
	take();
	cr_assert_eq(bench.record->calls.count, 1, "what can't be is not told");
	cr_assert_eq(bench.record->calls.at[0].kind, CALL_RUNTIME);
	cr_assert_eq(bench.record->calls.at[0].start_ns, 50);
	cr_assert_eq(bench.record->calls.at[0].correlation, 9);
	cr_assert_eq(session->lanes.at[bench.record->calls.at[0].lane].tid, 77);
	cr_assert_str_eq(text(bench.record->calls.at[0].name), "cudaStreamSynchronize");
	cr_assert_eq(bench.record->marks.count, 2, "a stream was made");
	cr_assert_eq(bench.record->marks.at[1].kind, MARK_WAIT_OPEN);
	cr_assert_eq(bench.record->marks.at[1].time_ns, 50);
	cr_assert_not_null(strstr(text(bench.record->marks.at[1].detail),
				  ";context=3;correlation=9;stream=13;device=0"));
	cr_assert_eq(loss(LOSS_dropped), 0);
}

Test(spool_sync, a_device_that_cupti_did_not_name_is_none)
{
	bench_claim(&bench);
	SLOT(SLOT_STREAM, .time_ns = 2, .value = 13, .x = { 3, 1, 1, 0xabc0 });
	SLOT(SLOT_STREAM, .time_ns = 3, .value = 14, .x = { 3, 1, UINT32_MAX, 0xabd0 });
	SLOT(SLOT_STREAM, .time_ns = 4, .value = 15, .x = { 4, 1, UINT32_MAX, 0xabe0 });
	bench.segment->waits[0] =
		(struct segment_wait){ .thread = 77, .since_ns = 50, .context = 3 };
	bench.segment->waits[1] =
		(struct segment_wait){ .thread = 78, .since_ns = 50, .context = 4 };
	take();
	cr_assert_eq(bench.record->marks.count, 5);
	cr_assert_not_null(strstr(text(bench.record->marks.at[3].detail), ";device=1"));
	cr_assert_null(strstr(text(bench.record->marks.at[4].detail), "device="));
}

/* What CUPTI keeps for itself is known to be complete once it was told to give all. */
Test(spool_sync, a_wait_that_did_not_return_says_whether_the_launches_before_it_came)
{
	struct segment_wait *waits = bench.segment->waits;

	bench_claim(&bench);
	waits[0] = (struct segment_wait){ .thread = 77, .since_ns = 50 };
	waits[1] = (struct segment_wait){ .thread = 78, .since_ns = 51 };
	atomic_store(&bench.segment->flushed_ns, 50);
	take();
	cr_assert_eq(bench.record->marks.count, 2);
	cr_assert_not_null(strstr(text(bench.record->marks.at[0].detail), ";handover=all"));
	cr_assert_not_null(strstr(text(bench.record->marks.at[1].detail), ";handover=lost"));
}

Test(spool_sync, a_wait_of_a_pause_or_of_a_thread_that_is_gone_is_not_told)
{
	bench_claim(&bench);
	SLOT(SLOT_GATE, .time_ns = 10, .value = 1);
	SLOT(SLOT_GATE, .time_ns = 20);
	bench.segment->waits[0] = (struct segment_wait){ .thread = 77, .since_ns = 30 };
	take();
	cr_assert_eq(bench.record->calls.count, 0);
	cr_assert_eq(bench.record->marks.count, 0);
}

/* Of a process that lives that can be told; one that ends has no threads any more. */
Test(spool_sync, a_thread_that_ended_in_a_wait_waits_no_more)
{
	struct segment_wait *waits = bench.segment->waits;

	bench.pid = (uint32_t)getpid();
	bench_claim(&bench);
	waits[0] = (struct segment_wait){ .thread = bench_dead_pid(), .since_ns = 30 };
	waits[1] = (struct segment_wait){ .thread = bench.pid, .since_ns = 30 };
	take();
	cr_assert_eq(bench.record->marks.count, 0, "it may still return");
	cr_assert_geq(spool_finish(bench.spool, &bench.record->sink, &err), 0);
	cr_assert_eq(bench.record->marks.count, 1, "we let go of it");
	cr_assert_not_null(strstr(text(bench.record->marks.at[0].detail), "call=runtime call 0;"));
	cr_assert_not_null(strstr(text(bench.record->marks.at[0].detail), ";handover=held"));
}

Test(spool_sync, a_wait_that_failed_is_told_with_its_error)
{
	const struct session *session = bench.record->sink.session;

	bench_claim(&bench);
	SLOT(SLOT_API_NAME, .time_ns = 1, .value = UINT64_C(2) << 32 | 131,
	     .a = TEXT("cudaStreamSynchronize_v3020"));
	SLOT(SLOT_SYNC, .time_ns = 40, .value = 30, .a = SYNC_STREAM, .b = 1,
	     .x = { 3, 7, 1, HANDLE_DEFAULT, 0, 0, 2, 131 });
	SLOT(SLOT_SYNC, .time_ns = 70, .value = 60, .a = SYNC_STREAM, .b = 2,
	     .x = { 3, UINT32_MAX, UINT32_MAX, HANDLE_DEFAULT, 0, 700, 2, 131 });
	SLOT(SLOT_SYNC, .time_ns = 90, .value = 80, .a = SYNC_STREAM, .b = 3,
	     .x = { 4, UINT32_MAX, UINT32_MAX, HANDLE_DEFAULT, 0, 719, 2, 131 });
	take();
	cr_assert_eq(bench.record->calls.count, 3);
	cr_assert_eq(bench.record->marks.count, 2);
	cr_assert_eq(bench.record->marks.at[0].kind, MARK_WAIT_FAILED);
	cr_assert_eq(bench.record->marks.at[0].time_ns, 70);
	cr_assert_str_eq(text(bench.record->marks.at[0].detail),
			 "call=cudaStreamSynchronize;waited_ns=10;context=3;correlation=2;stream=7;"
			 "device=1;result=700");
	cr_assert_str_eq(text(bench.record->marks.at[1].detail),
			 "call=cudaStreamSynchronize;waited_ns=10;context=4;correlation=3;"
			 "stream=default;result=719");
	cr_assert_eq(session->lanes.at[bench.record->marks.at[0].lane].kind, LANE_THREAD);
}

/* In the words of Kineto's traces. */
Test(spool_sync, a_stream_that_waits_says_for_which_and_for_which_record)
{
	bench_claim(&bench);
	SLOT(SLOT_STREAM, .time_ns = 2, .value = 13, .x = { 3, 1, 0, 0xabc0 });
	SLOT(SLOT_WAITS_FOR, .time_ns = 30, .value = 0xabc0, .b = 5, .x = { 3, 77, UINT32_MAX });
	SLOT(SLOT_WAITS_FOR, .time_ns = 31, .value = HANDLE_DEFAULT, .b = 6, .x = { 3, 78, 7 });
	SLOT(SLOT_SYNC, .time_ns = 40, .value = 29, .a = SYNC_STREAM_WAIT, .b = 5,
	     .x = { 3, 8, 0 });
	SLOT(SLOT_SYNC, .time_ns = 41, .value = 29, .a = SYNC_STREAM_WAIT, .b = 6,
	     .x = { 3, 8, 0 });
	SLOT(SLOT_SYNC, .time_ns = 42, .value = 29, .a = SYNC_STREAM_WAIT, .b = 7,
	     .x = { 3, 8, 0 });
	SLOT(SLOT_SYNC, .time_ns = 43, .value = 29, .a = SYNC_STREAM, .b = 5, .x = { 3, 8, 0 });
	take();
	cr_assert_eq(bench.record->calls.count, 4);
	cr_assert_str_eq(text(bench.record->calls.at[0].detail),
			 "wait_on_stream=13;wait_on_cuda_event_record_corr_id=77");
	cr_assert_str_eq(text(bench.record->calls.at[1].detail),
			 "wait_on_stream=7;wait_on_cuda_event_record_corr_id=78");
	cr_assert_eq(bench.record->calls.at[2].detail, 0);
	cr_assert_eq(bench.record->calls.at[3].detail, 0);
}

/* CUPTI's record of the device lies in the buffer of the thread that made the context, which
 * another thread's, full before it, comes ahead of. The driver's samples have made a row. */
Test(spool_sync, a_kernel_before_the_record_of_its_device_is_on_the_same_card)
{
	struct session *session = bench.record->sink.session;
	struct device card = { .scope = DEVICE_OF_SMI, .ordinal = 5 };
	struct cupti_device device = { .kind = CUPTI_KIND_DEVICE, .id = 0, .sms = 132 };
	struct cupti_kernel kernel = {
		.kind = CUPTI_KIND_CONCURRENT_KERNEL, .start = 10, .end = 20, .context = 1
	};
	const char *uuid = "GPU-aa000000-0000-0000-0000-000000000000";

	card.uuid = session_string(session, uuid, strlen(uuid));
	cr_assert_eq(session_device(session, &card), 0);
	bench.pid = (uint32_t)getpid();
	bench_claim(&bench);
	SLOT(SLOT_DEVICE, .time_ns = 1, .value = 0, .x = { 0xaa });
	SLOT(SLOT_DEVICE, .time_ns = 1, .value = UINT64_MAX);
	PUT(0, kernel, 216);
	take();
	cr_assert_eq(bench.record->ops.count, 1);
	device.uuid[0] = 0xaa;
	PUT(1, device, 184);
	PUT(2, kernel, 216);
	take();
	cr_assert_eq(bench.record->ops.count, 2);
	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(session->lanes.at[bench.record->ops.at[i].lane].device, 0);
	cr_assert_eq(session->devices.count, 1);
	cr_assert_eq(session->devices.at[0].sm_count, 132);
	/* A record that says otherwise makes no second card. */
	device.uuid[0] = 0xbb;
	PUT(3, device, 184);
	take();
	cr_assert_eq(session->devices.count, 1);
}
