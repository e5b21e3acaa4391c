/* Faults beside the kernels of the same card, and clocks beside steps. */
#include <criterion/criterion.h>

#include "model/fault.h"
#include "trace_builder.h"

/* `count` Xids ten hours and a bit apart, each in a run of `name` of 2 ms, after
 * `before_ms` of another kernel. Ends with trace_done. */
static struct trace faults_in(const char *name, int count, int64_t before_ms)
{
	static const int64_t uneven_s[] = { 0, 5000, 1300, 700, 9000, 4000 };
	struct trace trace = { .store = memory_store_new() };
	struct session *session = trace.store->session;
	struct device device = { .scope = DEVICE_OF_SMI, .ordinal = -1 };
	struct fault fault = { .kind = FAULT_XID,
			       .origin = FAULT_FROM_NVML,
			       .has_time = true,
			       .have = FAULT_HAS(FAULT_NUMBER),
			       .number = 31 };
	struct err err = { 0 };

	memcpy(fault.pci, "0000:9b:00.0", 13);
	trace.source = session_source(session, "run", "");
	device.source = trace.source;
	device.pci_bus = trace_text(&trace, fault.pci);
	trace.device = session_device(session, &device);
	trace.process = session_process(session, trace.source, 100);
	for (int i = 0; i < count; i++) {
		int64_t at_us = (i * INT64_C(36000) + uneven_s[i]) * 1000000 + 1000000;

		if (before_ms)
			trace_kernel(&trace, 7, "common", at_us - before_ms * 1000 - 1000,
				     at_us - 1000, 0);
		trace_kernel(&trace, 7, name, at_us - 1000, at_us + 1000, 0);
		fault.time_ns = at_us * 1000;
		cr_assert_eq(fault_push(&trace.store->sink, trace.source, &fault, &err), 0, "%s",
			     err.line);
	}
	session_settle(session);
	cr_assert_eq(facts_build(trace.store, &trace.facts, &err), 0, "%s", err.line);
	cr_assert_eq(trace.facts->fault_groups.count, 1);
	cr_assert_eq(trace.facts->fault_groups.at[0].incidents, count);
	return trace;
}

/* Borrowed from the trace. */
static const struct fault_pattern *kernel_pattern(const struct trace *trace)
{
	const struct fault_group *group = &trace->facts->fault_groups.at[0];

	for (size_t i = 0; i < group->patterns.count; i++)
		if (group->patterns.at[i].kind == FAULT_PATTERN_KERNEL)
			return &group->patterns.at[i];
	return NULL;
}

Test(fault_kernel, five_in_a_kernel_that_seldom_runs)
{
	struct trace trace = faults_in("rare", 5, 100);
	const struct fault_pattern *pattern = kernel_pattern(&trace);

	cr_assert_not_null(pattern);
	cr_assert_str_eq(pattern->what, "rare");
	cr_assert_eq(pattern->count, 5);
	/* 2 of 102 ms, five times. */
	cr_assert_float_eq(pattern->p, 2.899e-9, 1e-11);
	trace_done(&trace);
}

Test(fault_kernel, four_are_too_few)
{
	struct trace trace = faults_in("rare", 4, 100);

	cr_assert_null(kernel_pattern(&trace));
	trace_done(&trace);
}

/* Chance would have it so: half of the time to the fifth power is 0.03. */
Test(fault_kernel, a_kernel_that_runs_half_of_the_time_is_no_pattern)
{
	struct trace trace = faults_in("rare", 5, 2);

	cr_assert_null(kernel_pattern(&trace));
	trace_done(&trace);
}

Test(fault_kernel, the_only_kernel_is_no_pattern)
{
	struct trace trace = faults_in("only", 5, 0);

	cr_assert_null(kernel_pattern(&trace));
	trace_done(&trace);
}

static bool tells_of_clocks(const struct step *step)
{
	for (size_t i = 0; i < step->differs.count; i++)
		if (strstr(step->differs.at[i], "clock reasons") &&
		    strstr(step->differs.at[i], "clock event reasons"))
			return true;
	return false;
}

/* Ten steps of 100 ms, the sixth of 900 ms; clock reasons change `at_us`. */
static bool clocks_are_told(int64_t at_us)
{
	struct trace trace = trace_new();
	struct session *session = trace.store->session;
	struct lane lane = { .kind = LANE_BOARD,
			     .source = trace.source,
			     .device = trace.device,
			     .process = SESSION_NONE,
			     .context = -1,
			     .stream = -1,
			     .tid = -1 };
	struct mark mark = { .kind = MARK_THROTTLE, .time_ns = at_us * 1000 };
	struct err err = { 0 };
	int64_t start_us = 0;
	bool told;

	for (int i = 0; i < 10; i++) {
		int64_t end_us = start_us + (i == 5 ? 900000 : 100000);

		trace_range(&trace, 1, RANGE_STEP, "step", start_us, end_us);
		start_us = end_us;
	}
	mark.lane = session_lane(session, &lane);
	mark.name = trace_text(&trace, "clock event reasons");
	cr_assert_eq(sink_mark(&trace.store->sink, &mark, &err), 0);
	session_settle(session);
	cr_assert_eq(facts_build(trace.store, &trace.facts, &err), 0, "%s", err.line);
	cr_assert_eq(trace.facts->steps.step.count, 10);
	cr_assert(trace.facts->steps.step.at[5].outlier);
	told = tells_of_clocks(&trace.facts->steps.step.at[5]);
	trace_done(&trace);
	return told;
}

Test(clock_marks, a_change_in_an_outlier_step_is_named_there)
{
	cr_assert(clocks_are_told(900000));
}

Test(clock_marks, a_change_after_it_is_not)
{
	cr_assert_not(clocks_are_told(1450000));
}
