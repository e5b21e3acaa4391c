#include "trace_builder.h"

static const struct overhead_fact *found(const struct facts *facts, const char *name)
{
	for (size_t i = 0; i < facts->overheads.count; i++)
		if (!strcmp(session_text(facts->session, facts->overheads.at[i].name), name))
			return &facts->overheads.at[i];
	return NULL;
}

Test(overhead, our_own_cost_is_told_from_what_the_program_would_do_anyway)
{
	struct trace trace = trace_new();

	trace_launch(&trace, 1, 0, 10, 20);
	trace_host(&trace, 1, CALL_OVERHEAD, "Buffer flush", 100, 130);
	trace_host(&trace, 1, CALL_OVERHEAD, "Activity Buffer Request", 200, 205);
	trace_host(&trace, 1, CALL_OVERHEAD, "Lazy function loading", 300, 900);
	trace_host(&trace, 1, CALL_OVERHEAD, "Command buffer full", 1000, 1100);
	trace_analyze(&trace);
	cr_assert_eq(trace.facts->own_ns, 35 * 1000);
	cr_assert_eq(trace.facts->overheads.count, 4);
	cr_assert(found(trace.facts, "Buffer flush")->own);
	cr_assert_not(found(trace.facts, "Lazy function loading")->own);
	cr_assert_not(found(trace.facts, "Command buffer full")->own);
	cr_assert_str_eq(session_text(trace.facts->session, trace.facts->overheads.at[0].name),
			 "Lazy function loading");
	trace_done(&trace);
}

Test(overhead, an_instant_of_a_thread_counts_once_and_threads_add_up)
{
	struct trace trace = trace_new();

	trace_launch(&trace, 1, 0, 10, 20);
	trace_host(&trace, 1, CALL_OVERHEAD, "Resource", 100, 200);
	trace_host(&trace, 1, CALL_OVERHEAD, "Instrumentation", 150, 250);
	trace_host(&trace, 2, CALL_OVERHEAD, "Resource", 100, 200);
	trace_analyze(&trace);
	cr_assert_eq(trace.facts->own_ns, 250 * 1000);
	cr_assert_eq(found(trace.facts, "Resource")->sum_ns, 200 * 1000);
	cr_assert_eq(found(trace.facts, "Resource")->count, 2);
	trace_done(&trace);
}

Test(overhead, without_records_nothing_is_claimed)
{
	struct trace trace = trace_new();

	trace_launch(&trace, 1, 0, 10, 20);
	trace_analyze(&trace);
	cr_assert_eq(trace.facts->overheads.count, 0);
	cr_assert_eq(trace.facts->own_ns, 0);
	trace_done(&trace);
}

static void told(struct trace *trace, const char *key, const char *text)
{
	session_env(trace->store->session, trace->source, SESSION_NONE, str_of(key), str_of(text));
}

Test(overhead, what_the_recorder_took_is_told_if_it_makes_sense)
{
	static const struct {
		const char *text;
		int64_t wall_ns;
	} cases[] = {
		{ "cpu_ns=300;cards_cpu_ns=100;wall_ns=2000", 2000 },
		{ "cpu_ns=300;cards_cpu_ns=0;wall_ns=2000", 2000 },
		{ "cpu_ns=99;cards_cpu_ns=100;wall_ns=2000", 0 },
		{ "cpu_ns=300;wall_ns=2000", 0 },
		{ "cpu_ns=300;cards_cpu_ns=-1;wall_ns=2000", 0 },
		{ "cpu_ns=300;cards_cpu_ns=100;wall_ns=0", 0 },
		{ "", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct trace trace = trace_new();

		trace_launch(&trace, 1, 0, 10, 20);
		told(&trace, "recorder_cost", cases[i].text);
		trace_analyze(&trace);
		cr_assert_eq(trace.facts->recorder.wall_ns, cases[i].wall_ns, "%s", cases[i].text);
		cr_assert_eq(trace.facts->recorder.cpu_ns, cases[i].wall_ns ? 300 : 0);
		trace_done(&trace);
	}
}

Test(overhead, what_pc_sampling_took_is_told_as_far_as_it_was_written)
{
	struct trace trace = trace_new();

	trace_launch(&trace, 1, 0, 10, 20);
	told(&trace, "pc_sampling_cost",
	     "covered_ns=5;span_ns=6;period=18;samples=9;dropped=2;other=1");
	told(&trace, "pc_sampling_cost", "covered_ns=5;span_ns=6;period=18");
	trace_analyze(&trace);
	cr_assert_eq(trace.facts->pc_samplings.count, 2);
	cr_assert_eq(trace.facts->pc_samplings.at[0].dropped, 2);
	cr_assert_eq(trace.facts->pc_samplings.at[0].other_kernels, 1);
	cr_assert_eq(trace.facts->pc_samplings.at[1].other_kernels, FACT_UNKNOWN);
	trace_done(&trace);
}

Test(overhead, callbacks_of_each_process_are_told)
{
	struct trace trace = trace_new();

	trace_launch(&trace, 1, 0, 10, 20);
	told(&trace, "callback_cost", "callbacks=7;ns=5000");
	told(&trace, "callback_cost", "callbacks=0;ns=0");
	told(&trace, "callback_cost", "callbacks=8");
	told(&trace, "callback_cost", "callbacks=2;ns=0");
	trace_analyze(&trace);
	cr_assert_eq(trace.facts->callbacks.count, 2);
	cr_assert_eq(trace.facts->callbacks.at[0].count, 7);
	cr_assert_eq(trace.facts->callbacks.at[0].sum_ns, 5000);
	cr_assert_eq(trace.facts->callbacks.at[1].count, 2);
	trace_done(&trace);
}
