/* test_stream_waits.c - which stream waited for which, for what, and how long. */
#include "trace_builder.h"

static void wait_on(struct trace *trace, int64_t stream, int64_t at_us, int64_t on, uint64_t record)
{
	char text[96];
	int len = snprintf(text, sizeof(text),
			   "wait_on_stream=%lld;wait_on_cuda_event_record_corr_id=%llu;else=1",
			   (long long)on, (unsigned long long)record);
	struct call call = { .kind = CALL_SYNC,
			     .lane = trace_stream(trace, stream),
			     .start_ns = at_us * 1000 - 500,
			     .end_ns = at_us * 1000,
			     .name = trace_text(trace, "Stream Wait Event"),
			     .detail = session_detail(trace->store->session, text, (size_t)len) };

	sink_call(&trace->store->sink, &call, NULL);
}

static void launch(struct trace *trace, int64_t stream, const char *name, int64_t launch_us,
		   int64_t start_us, int64_t end_us)
{
	trace_kernel(trace, stream, name, start_us, end_us,
		     trace_call(trace, 1, "cudaLaunchKernel", launch_us, launch_us + 2));
}

/* Stream 7 runs up to 200; the event is recorded on it behind that; something follows that
 * nobody waits for. Stream 13 was busy up to `free_us`. */
static struct trace held(int64_t free_us)
{
	struct trace trace = trace_new();
	uint64_t record;

	launch(&trace, 7, "first", 0, 10, 100);
	launch(&trace, 7, "produce", 5, 100, 200);
	record = trace_call(&trace, 1, "cudaEventRecord", 10, 12);
	launch(&trace, 7, "behind", 15, 200, 900);
	launch(&trace, 13, "before", 16, 18, free_us);
	wait_on(&trace, 13, 20, 7, record);
	launch(&trace, 13, "consume", 30, free_us > 200 ? free_us : 203, 1000);
	return trace;
}

Test(stream_waits, it_is_held_up_from_when_it_could_go_on_to_the_end_of_what_was_recorded)
{
	struct trace trace = held(60);
	const struct stream_wait_fact *wait;

	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->stream_waits.count, 1);
	wait = &trace.facts->stream_waits.at[0];
	cr_assert_eq(wait->stream, 13);
	cr_assert_eq(wait->on_stream, 7);
	cr_assert_eq(wait->device, trace.device);
	cr_assert_eq(wait->count, 1);
	cr_assert_eq(wait->held_count, 1);
	cr_assert_eq(wait->held_ns, 140000);
	cr_assert_eq(wait->longest_ns, 140000);
	cr_assert_str_eq(session_text(trace.store->session, wait->longest_name), "produce");
	trace_done(&trace);
	trace = held(25); /* then the launch, at 30, is what it lacks */
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->stream_waits.at[0].held_ns, 170000);
	trace_done(&trace);
}

Test(stream_waits, where_it_has_work_of_its_own_so_long_it_is_not_held_up)
{
	struct trace trace = held(210);

	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->stream_waits.at[0].count, 1);
	cr_assert_eq(trace.facts->stream_waits.at[0].held_count, 0);
	cr_assert_eq(trace.facts->stream_waits.at[0].held_ns, 0);
	trace_done(&trace);
}

/* An event whose record was not seen, of a stream that is none, or of itself says nothing. */
Test(stream_waits, what_is_not_known_is_left_out)
{
	struct trace trace = trace_new();
	uint64_t record = trace_call(&trace, 1, "cudaEventRecord", 10, 12);

	launch(&trace, 7, "produce", 0, 100, 200);
	wait_on(&trace, 13, 20, 7, 4711);
	wait_on(&trace, 13, 21, 99, record);
	wait_on(&trace, 13, 22, 13, record);
	wait_on(&trace, 13, 23, 7, trace_call(&trace, 1, "cudaLaunchKernel", 14, 15));
	launch(&trace, 13, "consume", 30, 300, 400);
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->stream_waits.count, 0);
	trace_done(&trace);
}

/* The next one began before that ended: the two do not belong together. */
Test(stream_waits, what_went_on_before_did_not_wait)
{
	struct trace trace = trace_new();
	uint64_t record;

	launch(&trace, 7, "produce", 0, 100, 200);
	record = trace_call(&trace, 1, "cudaEventRecord", 10, 12);
	wait_on(&trace, 13, 20, 7, record);
	launch(&trace, 13, "consume", 30, 150, 400);
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->stream_waits.at[0].held_count, 0);
	trace_done(&trace);
}
