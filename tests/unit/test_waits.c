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
	cr_assert_says(first(&bench)->claim, "No launch without its end");
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
	wait->result = 12345;
	cr_assert_eq(found_by(&bench, &rule_failed_wait), 1);
	cr_assert_says(first(&bench)->title, "CUDA error 12345");
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
