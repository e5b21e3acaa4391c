/* test_waits.c - calls that wait for a device and do not come back well: what is told with
 * them, and from when on they are a finding. */
#include "rule_bench.h"
#include "trace_builder.h"

enum { S = 1000000, STREAM = 7, OTHER = 8, MAIN = 1, SECOND = 2 };

static void mark(struct trace *trace, enum mark_kind kind, int64_t tid, int64_t at_us,
		 const char *detail)
{
	struct mark event = {
		.kind = kind,
		.lane = trace_thread(trace, tid),
		.time_ns = at_us * 1000,
		.detail = session_detail(trace->store->session, detail, strlen(detail)),
	};

	sink_mark(&trace->store->sink, &event, NULL);
}

static void launch(struct trace *trace, int64_t stream, const char *name, int64_t at_us)
{
	uint64_t id = trace_call(trace, MAIN, "cudaLaunchKernel", at_us, at_us + 5);

	trace_kernel(trace, stream, name, at_us + 10, at_us + 20, id);
}

/* Four rounds of two kernels on a stream, each waited for; then one more kernel, a launch
 * that has none, and a wait of 3 s. */
static struct trace hung(void)
{
	struct trace trace = trace_new();

	for (int64_t i = 0; i < 4; i++) {
		launch(&trace, STREAM, "first", i * 1000);
		launch(&trace, STREAM, "second", i * 1000 + 100);
		(void)trace_call(&trace, MAIN, "cudaStreamSynchronize", i * 1000 + 200,
				 i * 1000 + 300);
	}
	launch(&trace, STREAM, "first", 4000);
	trace_range(&trace, MAIN, RANGE_USER, "all_reduce", 4050, 4200);
	(void)trace_call(&trace, MAIN, "cudaLaunchKernel", 4100, 4105);
	(void)trace_call(&trace, MAIN, "cudaStreamSynchronize", 5000, 3 * S + 5000);
	mark(&trace, MARK_WAIT_OPEN, MAIN, 5000,
	     "call=cudaStreamSynchronize;waited_ns=3000000000;context=1;correlation=9;stream=7;"
	     "device=0");
	return trace;
}

static void look(struct trace *trace, enum range_kind kind, int64_t at_us, const char *detail)
{
	struct range range = {
		.kind = kind,
		.lane = trace_thread(trace, MAIN),
		.start_ns = at_us * 1000,
		.end_ns = at_us * 1000 + 1,
		.detail = session_detail(trace->store->session, detail, strlen(detail)),
	};

	sink_range(&trace->store->sink, &range, NULL);
}

Test(waits, what_hangs_is_told_with_what_has_no_end)
{
	struct trace trace = hung();
	const struct wait_fact *wait;

	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.count, 1);
	wait = &trace.facts->waits.at[0];
	cr_assert_eq(wait->end, WAIT_OPEN);
	cr_assert_str_eq(wait->call, "cudaStreamSynchronize");
	cr_assert_eq(wait->since_ns, 5000000);
	cr_assert_eq(wait->waited_ns, 3000000000);
	cr_assert_eq(wait->longest_ns, 100000, "of those that returned");
	cr_assert_eq(wait->stream, STREAM);
	cr_assert_eq(wait->device, trace.device);
	cr_assert_str_eq(session_text(trace.store->session, wait->last_op), "first");
	cr_assert_eq(wait->last_end_ns, 4020000);
	cr_assert_eq(wait->pending_count, 1);
	cr_assert_eq(wait->pending_ns, 4100000);
	cr_assert_str_eq(session_text(trace.store->session, wait->pending_range), "all_reduce");
	cr_assert_str_eq(session_text(trace.store->session, wait->likely), "second");
	cr_assert_eq(wait->likely_count, 4);
	cr_assert_null(wait->stack);
	cr_assert(isnan(wait->util_pct));
	trace_done(&trace);
}

/* They run nothing: no wait is for them. */
Test(waits, launches_into_a_graph_are_not_pending)
{
	struct trace trace = hung();

	(void)trace_call(&trace, SECOND, "cudaStreamBeginCapture", 4300, 4301);
	(void)trace_call(&trace, SECOND, "cudaLaunchKernel", 4310, 4312);
	(void)trace_call(&trace, SECOND, "cudaStreamEndCapture", 4320, 4321);
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.at[0].pending_count, 1);
	trace_done(&trace);
}

/* Else each would be one of the usual waits of the process, and no cause for concern. */
Test(waits, another_thread_that_hangs_is_none_that_returned)
{
	struct trace trace = hung();

	(void)trace_call(&trace, SECOND, "cudaDeviceSynchronize", 6000, 3 * S + 5000);
	mark(&trace, MARK_WAIT_OPEN, SECOND, 6000,
	     "call=cudaDeviceSynchronize;waited_ns=2999000000;context=1;correlation=10");
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.count, 2);
	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(trace.facts->waits.at[i].longest_ns, 100000);
	trace_done(&trace);
}

/* So many that not all are kept: none of them returned. */
Test(waits, those_that_are_left_out_did_not_return_either)
{
	struct trace trace = hung();

	for (int tid = 10; tid < 60; tid++) {
		(void)trace_call(&trace, tid, "cudaDeviceSynchronize", 6000 + tid, 3 * S + 5000);
		mark(&trace, MARK_WAIT_OPEN, tid, 6000 + tid,
		     "call=cudaDeviceSynchronize;waited_ns=2998000000;context=1");
	}
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.count, 32);
	cr_assert_eq(trace.facts->waits_left_out, 19);
	for (size_t i = 0; i < 32; i++)
		cr_assert_eq(trace.facts->waits.at[i].longest_ns, 100000);
	trace_done(&trace);
}

/* By a longjmp out of it, of which nobody is told. */
Test(waits, a_thread_that_launched_later_waits_no_more)
{
	struct trace trace = hung();

	(void)trace_call(&trace, MAIN, "cudaLaunchKernel", 9000, 9005);
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.count, 0);
	trace_done(&trace);
}

static void untimed(struct trace *trace, int64_t stream, const char *name, uint64_t correlation)
{
	struct mark event = { .kind = MARK_UNTIMED, .lane = trace_stream(trace, stream) };
	char detail[64];

	(void)snprintf(detail, sizeof(detail), "op=kernel;correlation=%llu;grid=1,1,1",
		       (unsigned long long)correlation);
	event.time_ns = 7000000;
	event.name = trace_text(trace, name);
	event.detail = session_detail(trace->store->session, detail, strlen(detail));
	sink_mark(&trace->store->sink, &event, NULL);
}

static void sync_row(struct trace *trace, int64_t stream, int64_t start_us, int64_t end_us,
		     const char *detail)
{
	struct call call = { .kind = CALL_SYNC,
			     .lane = trace_stream(trace, stream),
			     .start_ns = start_us * 1000,
			     .end_ns = end_us * 1000,
			     .name = trace_text(trace, "Stream Sync") };

	if (detail)
		call.detail = session_detail(trace->store->session, detail, strlen(detail));
	sink_call(&trace->store->sink, &call, NULL);
}

/* As on an H200: a context that failed has no times of what had ended well before, either. */
Test(waits, a_kernel_without_times_is_named_by_the_call_that_launched_it)
{
	struct trace trace = trace_new();
	const struct wait_fact *wait;
	uint64_t before, elsewhere, faults;

	before = trace_call(&trace, MAIN, "cudaLaunchKernel", 10, 15);
	sync_row(&trace, STREAM, 20, 30, NULL);
	elsewhere = trace_call(&trace, MAIN, "cudaLaunchKernel", 40, 45);
	faults = trace_call(&trace, MAIN, "cudaLaunchKernel", 50, 55);
	sync_row(&trace, STREAM, 60, 90, "result=700");
	untimed(&trace, STREAM, "faults", faults);
	untimed(&trace, OTHER, "elsewhere", elsewhere);
	untimed(&trace, STREAM, "before", before);
	mark(&trace, MARK_WAIT_FAILED, MAIN, 90,
	     "call=cudaStreamSynchronize;waited_ns=30000;context=1;correlation=6;stream=7;"
	     "result=700");
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.count, 1);
	wait = &trace.facts->waits.at[0];
	cr_assert_eq(wait->last_op, 0);
	cr_assert_eq(wait->returned_ns, 10000, "time begins with the first event");
	cr_assert_eq(wait->pending_count, 1, "nor is what ran elsewhere");
	cr_assert_eq(wait->pending_ns, 40000);
	cr_assert_eq(wait->named_count, 1);
	cr_assert_str_eq(session_text(trace.store->session, wait->named), "faults");
	trace_done(&trace);
}

Test(waits, one_whose_launch_is_not_recorded_is_named_too)
{
	struct trace trace = hung();

	untimed(&trace, STREAM, "spins", 1000);
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.at[0].pending_count, 2);
	cr_assert_eq(trace.facts->waits.at[0].named_count, 1);
	cr_assert_eq(trace.facts->waits.at[0].pending_ns, 4100000);
	cr_assert_str_eq(session_text(trace.store->session, trace.facts->waits.at[0].named),
			 "spins");
	cr_assert_eq(trace.facts->waits.at[0].likely, 0, "no need to guess");
	trace_done(&trace);
}

Test(waits, what_was_handed_over_is_told_with_the_last_that_is_known)
{
	static const struct {
		const char *word;
		enum wait_handover handover;
	} cases[] = { { ";handover=all", WAIT_HANDOVER_ALL },
		      { ";handover=lost", WAIT_HANDOVER_LOST },
		      { ";handover=held", WAIT_HANDOVER_HELD },
		      { "", WAIT_HANDOVER_UNKNOWN } };

	for (size_t i = 0; i < 4; i++) {
		struct trace trace = trace_new();
		char detail[128];

		launch(&trace, STREAM, "first", 0);
		(void)trace_call(&trace, SECOND, "cudaLaunchKernel", 700, 705);
		(void)snprintf(detail, sizeof(detail),
			       "call=cudaStreamSynchronize;waited_ns=9000;context=1;stream=7%s",
			       cases[i].word);
		(void)trace_call(&trace, MAIN, "cudaStreamSynchronize", 900, 909);
		mark(&trace, MARK_WAIT_OPEN, MAIN, 900, detail);
		(void)trace_analyze(&trace);
		cr_assert_eq(trace.facts->waits.at[0].handover, cases[i].handover);
		cr_assert_eq(trace.facts->waits.at[0].known_ns, 0, "of its own thread");
		trace_done(&trace);
	}
}

static void sampled(struct trace *trace, const char *function, int64_t at_us, int64_t samples)
{
	struct stall stall = { .lane = trace_stream(trace, STREAM),
			       .time_ns = at_us * 1000,
			       .function = trace_text(trace, function),
			       .reason = trace_text(trace, "wait"),
			       .samples = samples };

	sink_stall(&trace->store->sink, &stall, NULL);
}

Test(waits, samples_of_the_second_half_name_the_kernel_that_runs)
{
	struct trace trace = hung();

	sampled(&trace, "first", S, 5000);
	sampled(&trace, "spins", 2 * S, 90);
	sampled(&trace, "other", 2 * S + 1, 10);
	(void)trace_analyze(&trace);
	cr_assert_str_eq(session_text(trace.store->session, trace.facts->waits.at[0].sampled),
			 "spins");
	cr_assert_eq(trace.facts->waits.at[0].sampled_count, 90);
	cr_assert_eq(trace.facts->waits.at[0].samples, 100);
	trace_done(&trace);
	trace = hung();
	sampled(&trace, "spins", 2 * S, 89);
	sampled(&trace, "other", 2 * S, 11);
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.at[0].sampled, 0, "nearly all of them");
	trace_done(&trace);
	trace = hung();
	sampled(&trace, "spins", 2 * S, 99);
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.at[0].sampled, 0, "too few");
	trace_done(&trace);
}

/* The rule says of those that are left out that they wait. */
Test(waits, failed_ones_that_are_left_out_do_not_count_as_open)
{
	struct trace trace = trace_new();
	char detail[96];

	for (int result = 1; result <= 40; result++) {
		(void)snprintf(detail, sizeof(detail),
			       "call=cudaDeviceSynchronize;waited_ns=1000;context=1;result=%d",
			       result);
		mark(&trace, MARK_WAIT_FAILED, MAIN, result * 1000, detail);
	}
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.count, 32);
	cr_assert_eq(trace.facts->waits_left_out, 0);
	cr_assert_eq(trace.facts->errors_left_out, 8);
	trace_done(&trace);
}

/* What other streams did says nothing of the one that is waited for. */
Test(waits, the_last_is_that_of_the_stream_if_it_is_for_one)
{
	struct trace trace = hung();

	launch(&trace, OTHER, "elsewhere", 4300);
	(void)trace_analyze(&trace);
	cr_assert_str_eq(session_text(trace.store->session, trace.facts->waits.at[0].last_op),
			 "first");
	trace_done(&trace);
	trace = trace_new();
	launch(&trace, STREAM, "first", 0);
	launch(&trace, OTHER, "elsewhere", 300);
	(void)trace_call(&trace, SECOND, "cudaDeviceSynchronize", 1000, 9000);
	mark(&trace, MARK_WAIT_OPEN, SECOND, 1000,
	     "call=cudaDeviceSynchronize;waited_ns=8000000;context=1;correlation=3");
	(void)trace_analyze(&trace);
	cr_assert_str_eq(session_text(trace.store->session, trace.facts->waits.at[0].last_op),
			 "elsewhere");
	cr_assert_eq(trace.facts->waits.at[0].pending_count, 0);
	cr_assert_eq(trace.facts->waits.at[0].likely, 0);
	cr_assert_eq(trace.facts->waits.at[0].device, trace.device);
	trace_done(&trace);
}

Test(waits, what_comes_next_is_likely_only_if_it_always_did)
{
	struct trace trace = hung();

	launch(&trace, STREAM, "first", 3500);
	launch(&trace, STREAM, "third", 3600);
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.at[0].likely, 0);
	cr_assert_eq(trace.facts->waits.at[0].pending_count, 1);
	trace_done(&trace);
}

Test(waits, the_stack_is_that_of_the_last_look_and_python_says_more)
{
	struct trace trace = hung();

	look(&trace, RANGE_CPU_STACK, 4900, "stack=before < main");
	look(&trace, RANGE_CPU_STACK, 6000, "stack=poll < main");
	look(&trace, RANGE_CPU_STACK, 2 * S, "stack=spin < main");
	(void)trace_analyze(&trace);
	cr_assert_str_eq(trace.facts->waits.at[0].stack, "spin < main");
	cr_assert_not(trace.facts->waits.at[0].stack_is_python);
	trace_done(&trace);
	trace = hung();
	look(&trace, RANGE_CPU_STACK, 2 * S, "stack=spin < main");
	look(&trace, RANGE_PYTHON_STACK, S, "stack=step train.py:12 < main train.py:40");
	(void)trace_analyze(&trace);
	cr_assert_str_eq(trace.facts->waits.at[0].stack, "step train.py:12 < main train.py:40");
	cr_assert(trace.facts->waits.at[0].stack_is_python);
	trace_done(&trace);
}

static void sample(struct trace *trace, int64_t at_us, double util)
{
	struct lane board = { .kind = LANE_BOARD,
			      .source = trace->source,
			      .device = trace->device,
			      .process = SESSION_NONE,
			      .context = -1,
			      .stream = -1,
			      .tid = -1 };
	struct sample event = { .time_ns = at_us * 1000 };

	event.lane = session_lane(trace->store->session, &board);
	event.have[METRIC_util_pct / 64] = UINT64_C(1) << METRIC_util_pct % 64;
	event.value[METRIC_util_pct] = util;
	sink_sample(&trace->store->sink, &event, NULL);
}

Test(waits, what_the_card_did_meanwhile_takes_two_samples)
{
	struct trace trace = hung();

	sample(&trace, 100, 20);
	sample(&trace, 6000, 100);
	(void)trace_analyze(&trace);
	cr_assert(isnan(trace.facts->waits.at[0].util_pct));
	trace_done(&trace);
	trace = hung();
	sample(&trace, 100, 20);
	sample(&trace, 6000, 100);
	sample(&trace, S, 96);
	(void)trace_analyze(&trace);
	cr_assert_float_eq(trace.facts->waits.at[0].util_pct, 98, 1e-9);
	trace_done(&trace);
}

/* The runtime's call and the driver's inside it are one launch. */
Test(waits, a_launch_within_a_launch_counts_once)
{
	struct trace trace = hung();

	(void)trace_call(&trace, MAIN, "cudaLaunchKernel", 4300, 4310);
	(void)trace_call(&trace, MAIN, "cuLaunchKernel", 4302, 4308);
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.at[0].pending_count, 2);
	trace_done(&trace);
}

Test(waits, an_error_is_told_once_by_its_first_call)
{
	struct trace trace = trace_new();
	const struct wait_fact *wait;

	launch(&trace, STREAM, "good", 0);
	(void)trace_call(&trace, MAIN, "cudaLaunchKernel", 100, 105);
	mark(&trace, MARK_WAIT_FAILED, SECOND, 400,
	     "call=cudaDeviceSynchronize;waited_ns=1000;context=1;correlation=7;result=700");
	mark(&trace, MARK_WAIT_FAILED, MAIN, 300,
	     "call=cudaStreamSynchronize;waited_ns=100000;context=1;correlation=6;stream=7;"
	     "result=700");
	mark(&trace, MARK_WAIT_FAILED, MAIN, 500, "call=cudaEventSynchronize;result=400;;=;x");
	(void)trace_analyze(&trace);
	cr_assert_eq(trace.facts->waits.count, 2);
	wait = &trace.facts->waits.at[0];
	cr_assert_eq(wait->end, WAIT_FAILED);
	cr_assert_eq(wait->result, 700);
	cr_assert_eq(wait->count, 2);
	cr_assert_str_eq(wait->call, "cudaStreamSynchronize");
	cr_assert_eq(wait->since_ns, 200000);
	cr_assert_str_eq(session_text(trace.store->session, wait->last_op), "good");
	cr_assert_eq(wait->pending_count, 1);
	cr_assert_eq(trace.facts->waits.at[1].result, 400);
	trace_done(&trace);
}

/* One wait of a thread of "train.py"; the first of the facts. */
static struct wait_fact *waiting(struct rule_bench *bench, enum wait_end end)
{
	struct lane lane = {
		.kind = LANE_THREAD, .device = SESSION_NONE, .context = -1, .stream = -1, .tid = 12
	};
	struct wait_fact *wait = VEC_ADD(&bench->facts.waits);

	(void)bench_init(bench);
	lane.process = session_process(bench->session, 0, 10);
	bench->session->processes.at[lane.process].name = bench_text(bench, "train.py");
	*wait = (struct wait_fact){ .end = end,
				    .lane = session_lane(bench->session, &lane),
				    .context = 1,
				    .stream = 13,
				    .call = "cudaStreamSynchronize",
				    .count = 1,
				    .since_ns = 12300000000,
				    .waited_ns = 5000000000,
				    .longest_ns = 20000000,
				    .last_op = bench_text(bench, "reduce"),
				    .last_end_ns = 12200000000,
				    .returned_ns = FACT_UNKNOWN,
				    .handover = WAIT_HANDOVER_ALL,
				    .known_ns = 12300000000,
				    .pending_ns = FACT_UNKNOWN,
				    .util_pct = NAN };
	wait->pending_lane = wait->lane;
	return wait;
}

static void done(struct rule_bench *bench)
{
	VEC_DONE(&bench->facts.waits);
	bench_done(bench);
}

Test(open_wait, says_who_waits_where_since_when_and_for_what)
{
	struct rule_bench bench = { 0 };
	struct wait_fact *wait = waiting(&bench, WAIT_OPEN);

	wait->pending_count = 2;
	wait->pending_ns = 12250000000;
	wait->likely = bench_text(&bench, "ncclAllReduce");
	wait->likely_count = 41;
	wait->stack = "step train.py:12 < main train.py:40";
	wait->stack_is_python = true;
	wait->util_pct = 100;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_says(first(&bench)->title, "cudaStreamSynchronize has not returned");
	cr_assert_says(first(&bench)->claim, "The thread 12 of train.py (pid 10) waits in "
					     "cudaStreamSynchronize for stream 13 of GPU 0 since "
					     "12.3 s and has not returned, 5.00 s later.");
	cr_assert_says(first(&bench)->claim, "returned took 20.0 ms");
	cr_assert_says(first(&bench)->claim, "Python stack then: step train.py:12 < main");
	cr_assert_says(first(&bench)->claim, "last is \"reduce\"");
	cr_assert_says(first(&bench)->claim, "2 launches behind it have no end");
	cr_assert_says(first(&bench)->claim, "All 41 times before, \"ncclAllReduce\" came next");
	cr_assert_says(first(&bench)->claim, "busy all the time (100 %)");
	cr_assert_says(first(&bench)->next.at[0], "cuda-gdb -p 10 ");
	cr_assert_eq(first(&bench)->grade, GRADE_HIGH);
	wait->lost = 3;
	wait->util_pct = 0;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_eq(first(&bench)->grade, GRADE_MEDIUM);
	cr_assert_says(first(&bench)->claim, "did nothing meanwhile");
	wait->util_pct = 50;
	wait->pending_count = 0;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_silent(first(&bench)->claim, "meanwhile");
	cr_assert_says(first(&bench)->claim, "No launch is without its end");
	cr_assert_silent(first(&bench)->claim, "may be missing");
	done(&bench);
}

/* What is launched and pending, handed over, and how busy the card was: what follows. */
Test(open_wait, concludes_from_what_is_known_alone)
{
	static const struct {
		int64_t pending;
		enum wait_handover handover;
		double util;
		const char *says, *silent;
		enum grade grade;
	} cases[] = {
		{ 1, WAIT_HANDOVER_ALL, 99, "(99 %): a kernel spins.", "may", GRADE_HIGH },
		{ 1, WAIT_HANDOVER_ALL, 0, "(0 %): what is queued does not begin.", "may",
		  GRADE_HIGH },
		{ 1, WAIT_HANDOVER_ALL, 50, "1 launch behind it has no end", "The card",
		  GRADE_HIGH },
		{ 1, WAIT_HANDOVER_ALL, NAN, "1 launch behind it has no end", "The card",
		  GRADE_HIGH },
		{ 0, WAIT_HANDOVER_ALL, 99, "(99 %): with what is not in the recording", "a kernel",
		  GRADE_HIGH },
		{ 0, WAIT_HANDOVER_ALL, 0,
		  "(0 %): no kernel spins, and what is waited for does "
		  "not come.",
		  "may", GRADE_HIGH },
		{ 0, WAIT_HANDOVER_ALL, NAN, "No launch is without its end", "may", GRADE_HIGH },
		{ 1, WAIT_HANDOVER_LOST, 99,
		  "What has no end may have ended. The card was busy "
		  "all the time (99 %): a kernel spins.",
		  "queued", GRADE_MEDIUM },
		{ 1, WAIT_HANDOVER_LOST, 0,
		  "What has no end may have ended. The card did nothing "
		  "meanwhile (0 %): no kernel spins",
		  "queued", GRADE_MEDIUM },
		{ 1, WAIT_HANDOVER_LOST, NAN, "What has no end may have ended.", "The card",
		  GRADE_MEDIUM },
		{ 0, WAIT_HANDOVER_LOST, 99,
		  "The process ended before CUPTI had handed over all records: launches after "
		  "12.3 s may be missing. The card was busy all the time (99 %): a kernel does not "
		  "end, most likely one of those.",
		  "No launch", GRADE_HIGH },
		{ 0, WAIT_HANDOVER_LOST, 0,
		  "(0 %): no kernel spins, and what is waited for does "
		  "not come.",
		  "No launch", GRADE_HIGH },
		{ 0, WAIT_HANDOVER_LOST, 50, "may be missing", "No launch", GRADE_MEDIUM },
		{ 0, WAIT_HANDOVER_LOST, NAN, "may be missing", "No launch", GRADE_MEDIUM },
		{ 0, WAIT_HANDOVER_HELD, 99, "CUPTI still held records when recording ended",
		  "No launch", GRADE_HIGH },
		{ 0, WAIT_HANDOVER_UNKNOWN, NAN,
		  "Whether CUPTI had handed over all records is not known: launches after 12.3 s "
		  "may be missing.",
		  "No launch", GRADE_MEDIUM },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rule_bench bench = { 0 };
		struct wait_fact *wait = waiting(&bench, WAIT_OPEN);

		wait->pending_count = cases[i].pending;
		wait->pending_ns = cases[i].pending ? 12250000000 : FACT_UNKNOWN;
		wait->handover = cases[i].handover;
		wait->util_pct = cases[i].util;
		cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
		cr_assert_says(first(&bench)->claim, cases[i].says);
		cr_assert_silent(first(&bench)->claim, cases[i].silent);
		cr_assert_eq(first(&bench)->grade, cases[i].grade, "%zu", i);
		done(&bench);
	}
}

/* Which of the launches it is: by its record, or by the samples of it. */
Test(open_wait, names_the_kernel_where_anything_does)
{
	struct rule_bench bench = { 0 };
	struct wait_fact *wait = waiting(&bench, WAIT_OPEN);

	wait->pending_count = wait->named_count = 1;
	wait->pending_ns = 12250000000;
	wait->named = bench_text(&bench, "spins(long long)");
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_says(first(&bench)->claim, "12.2 s. It is \"spins(long long)\".");
	wait->pending_count = 3;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_says(first(&bench)->claim, "The first of them with a name is \"spins");
	wait->named_count = 3;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_says(first(&bench)->claim, "The first of them is \"spins");
	wait->pending_ns = FACT_UNKNOWN;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_says(first(&bench)->claim, "3 operations behind it have no end");
	wait->pending_count = wait->named_count = wait->named = 0;
	wait->handover = WAIT_HANDOVER_LOST;
	wait->util_pct = 0;
	wait->sampled = bench_text(&bench, "spins");
	wait->samples = 200;
	wait->sampled_count = 190;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_says(first(&bench)->claim,
		       "Of 200 samples of its instructions in the second half "
		       "of the wait 95 % are of \"spins\"");
	cr_assert_silent(first(&bench)->claim, "The card");
	cr_assert_eq(first(&bench)->grade, GRADE_HIGH);
	done(&bench);
}

Test(open_wait, of_an_idle_card_asks_for_no_kernel)
{
	struct rule_bench bench = { 0 };
	struct wait_fact *wait = waiting(&bench, WAIT_OPEN);

	wait->util_pct = 0;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_says(first(&bench)->advice.at[0], "what the stream waits for");
	cr_assert_says(first(&bench)->next.at[0], "gdb -p 10 -batch -ex 'thread apply all bt'");
	cr_assert_silent(first(&bench)->next.at[0], "cuda-gdb");
	cr_assert_silent(first(&bench)->next.at[1], "pc-sampling");
	done(&bench);
}

Test(open_wait, its_stack_begins_with_the_call)
{
	struct rule_bench bench = { 0 };
	struct wait_fact *wait = waiting(&bench, WAIT_OPEN);

	wait->stack = "libcuda.so.580 < libcuda.so.580 < cuStreamSynchronize < "
		      "cudaStreamSynchronize < step(int) < main";
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_says(first(&bench)->claim,
		       "Its stack then: cudaStreamSynchronize < step < main.");
	done(&bench);
}

Test(open_wait, begins_at_a_second)
{
	struct rule_bench bench = { 0 };
	struct wait_fact *wait = waiting(&bench, WAIT_OPEN);

	wait->waited_ns = 999000000;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 0);
	wait->waited_ns = 1000000000;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	done(&bench);
}

Test(open_wait, is_bad_only_where_it_outlasts_the_others)
{
	struct rule_bench bench = { 0 };
	struct wait_fact *wait = waiting(&bench, WAIT_OPEN);

	wait->longest_ns = 500000000;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_BAD);
	wait->longest_ns = 501000000;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	wait->longest_ns = FACT_UNKNOWN;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	done(&bench);
}

Test(open_wait, a_collective_waits_for_a_rank_and_many_threads_are_counted)
{
	struct rule_bench bench = { 0 };
	struct wait_fact *wait = waiting(&bench, WAIT_OPEN), more;
	struct kernel_key key = { .name = bench_text(&bench, "ring"), .shared_bytes = -1 };

	*VEC_ADD(&bench.facts.kernels) =
		(struct kernel_fact){ .key = session_key(bench.session, &key), .collective = true };
	wait->pending_count = 1;
	wait->likely = key.name;
	more = *wait;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 1);
	cr_assert_says(first(&bench)->advice.at[0], "each of its ranks");
	for (int i = 0; i < 5; i++)
		*VEC_ADD(&bench.facts.waits) = more;
	bench.facts.waits_left_out = 2;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 4);
	cr_assert_says(bench.findings.abstained.at[0], "4 further threads wait, too");
	done(&bench);
}

Test(failed_wait, names_the_error_and_what_may_have_made_it)
{
	struct rule_bench bench = { 0 };
	struct wait_fact *wait = waiting(&bench, WAIT_FAILED);

	wait->result = 719;
	wait->count = 3;
	wait->pending_count = 1;
	wait->pending_ns = 12250000000;
	cr_assert_eq(found_by(&bench, &rule_open_wait), 0);
	cr_assert_eq(found_by(&bench, &rule_failed_wait), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_BAD);
	cr_assert_says(first(&bench)->title,
		       "cudaStreamSynchronize failed: cudaErrorLaunchFailure");
	cr_assert_says(first(&bench)->claim,
		       "The thread 12 of train.py (pid 10) got cudaErrorLaunchFailure (719) from "
		       "cudaStreamSynchronize for stream 13 of GPU 0 at 17.3 s.");
	cr_assert_says(first(&bench)->claim, "first of 3 such calls");
	cr_assert_says(first(&bench)->claim, "1 launch behind it has no end");
	cr_assert_says(first(&bench)->advice.at[0], "CUDA_LAUNCH_BLOCKING");
	wait->named_count = 1;
	wait->named = bench_text(&bench, "faults(float*)");
	wait->last_op = 0;
	wait->returned_ns = 12100000000;
	cr_assert_eq(found_by(&bench, &rule_failed_wait), 1);
	cr_assert_says(first(&bench)->claim, "It is \"faults(float*)\".");
	cr_assert_says(first(&bench)->claim, "A wait there returned well at 12.1 s");
	cr_assert_silent(first(&bench)->claim, "may be missing");
	wait->result = 12345;
	cr_assert_eq(found_by(&bench, &rule_failed_wait), 1);
	cr_assert_says(first(&bench)->title, "CUDA error 12345");
	done(&bench);
}

Test(failed_wait, counts_those_behind_the_fourth)
{
	struct rule_bench bench = { 0 };
	struct wait_fact *wait = waiting(&bench, WAIT_FAILED), more;

	wait->result = 700;
	more = *wait;
	for (int i = 0; i < 4; i++)
		*VEC_ADD(&bench.facts.waits) = more;
	bench.facts.errors_left_out = 2;
	cr_assert_eq(found_by(&bench, &rule_failed_wait), 4);
	cr_assert_says(bench.findings.abstained.at[0], "3 further calls failed");
	done(&bench);
}

Test(failed_wait, what_the_call_did_wrong_is_no_kernels_fault)
{
	struct rule_bench bench = { 0 };
	struct wait_fact *wait = waiting(&bench, WAIT_FAILED);

	wait->result = 400;
	cr_assert_eq(found_by(&bench, &rule_failed_wait), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	cr_assert_silent(first(&bench)->claim, "reduce");
	cr_assert_says(first(&bench)->advice.at[0], "The call itself");
	done(&bench);
}

/* However much time something else takes. */
Test(open_wait, comes_before_what_is_slow)
{
	struct findings findings = { 0 };

	finding_impact(finding_add(&findings, &rule_launch_bound, SEVERITY_BAD), 0, 900,
		       STRETCH_SPAN, 1000);
	finding_add(&findings, &rule_open_wait, SEVERITY_WARN);
	findings_order(&findings);
	cr_assert_eq(findings.at.at[0].rule, &rule_open_wait);
	cr_assert_eq(findings.at.at[1].rule, &rule_launch_bound);
	findings_done(&findings);
}
