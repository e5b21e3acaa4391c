/* Time in which recording was off is neither idle nor busy, and in no span and step. */
#include <math.h>

#include "rules/rule.h"
#include "trace_builder.h"

static void off(struct trace *trace, int64_t start_us, int64_t end_us)
{
	struct lane lane = { .kind = LANE_OTHER,
			     .source = trace->source,
			     .device = SESSION_NONE,
			     .process = trace->process,
			     .context = -1,
			     .stream = -1,
			     .tid = -1 };
	struct range range = { .kind = RANGE_PAUSED,
			       .lane = session_lane(trace->store->session, &lane),
			       .start_ns = start_us * 1000,
			       .end_ns = end_us * 1000,
			       .name = trace_text(trace, "recording paused") };

	sink_range(&trace->store->sink, &range, NULL);
}

static int64_t idle_sum(const struct idle_fact *idle)
{
	int64_t sum_ns = 0;

	for (int i = 0; i < IDLE_COUNT; i++)
		sum_ns += idle[i].ns;
	return sum_ns;
}

/* A program that keeps the card busy throughout; a third of it was not recorded. */
Test(pauses, a_busy_program_is_busy_though_recording_was_off_now_and_then)
{
	struct trace trace = trace_new();
	struct findings findings = { 0 };
	const struct device_fact *device;

	for (int64_t at = 0; at < 600000; at += 1000) {
		if (at % 60000 < 40000)
			trace_launch(&trace, 1, at, at + 500, at + 1490);
		else if (at % 60000 == 40000 && at < 580000)
			off(&trace, at + 490, at + 20500);
	}
	device = trace_analyze(&trace);
	cr_assert_eq(device->paused_ns, 9 * INT64_C(20010) * 1000);
	cr_assert_eq(device->span_ns + device->paused_ns, INT64_C(579990) * 1000);
	cr_assert_eq(device->span_ns, device->busy_ns + device->idle_ns);
	cr_assert_gt(device->busy_ns, device->span_ns / 100 * 98);
	cr_assert_eq(idle_sum(device->idle), device->idle_ns);
	rule_apply(trace.facts, &rule_gpu_starved, &findings);
	cr_assert_eq(findings.at.count, 0);
	findings_done(&findings);
	trace_done(&trace);
}

Test(pauses, of_a_gap_that_is_longer_the_rest_is_idle)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	trace_launch(&trace, 1, 0, 10, 100);
	off(&trace, 1000, 3000);
	off(&trace, 2000, 4000); /* of two windows that say the same once */
	off(&trace, 20000, 30000);
	trace_launch(&trace, 1, 10090, 10100, 10200);
	device = trace_analyze(&trace);
	cr_assert_eq(device->paused_ns, 3000 * 1000);
	cr_assert_eq(device->idle_ns, (10000 - 3000) * 1000);
	cr_assert_eq(idle_sum(device->idle), device->idle_ns);
	cr_assert_eq(device->idle[IDLE_HOST_LATE].ns, (10090 - 100 - 3000) * 1000);
	trace_done(&trace);
}

/* Copies of one process go on while another's recording is off. */
Test(pauses, what_is_recorded_all_the_same_is_busy)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	trace_launch(&trace, 1, 0, 10, 100);
	off(&trace, 50, 300);
	trace_launch(&trace, 1, 190, 200, 250);
	trace_launch(&trace, 1, 390, 400, 500);
	device = trace_analyze(&trace);
	cr_assert_eq(device->paused_ns, (100 + 50) * 1000);
	cr_assert_eq(device->busy_ns, (90 + 50 + 100) * 1000);
	cr_assert_eq(device->idle_ns, 100 * 1000);
	cr_assert_eq(idle_sum(device->idle), device->idle_ns);
	trace_done(&trace);
}

Test(pauses, steps_of_which_half_is_missing_are_none)
{
	struct trace trace = trace_new();
	const struct step_facts *steps;

	for (int i = 0; i < 20; i++) {
		int64_t at = i * 10000;

		trace_range(&trace, 1, RANGE_USER, "step", at, at + 9990);
		if (i % 5 == 4)
			off(&trace, at + (i == 9 ? 7000 : 100), at + 9000);
		for (int k = 0; k < 9; k++)
			if (i % 5 != 4 || (i == 9 && k < 6))
				trace_launch(&trace, 1, at + 1000 * k, at + 1000 * k + 10,
					     at + 1000 * k + 1000);
	}
	trace_analyze(&trace);
	steps = &trace.facts->steps;
	cr_assert_eq(steps->step.count, 17);
	cr_assert_eq(steps->missed, 3);
	/* 9.99 ms, of which 5.94 busy and 2 not known. */
	cr_assert_eq(steps->step.at[8].start_ns, 90000 * 1000);
	cr_assert_eq(steps->step.at[8].idle_ns, (9990 - 5940 - 2000) * 1000);
	trace_done(&trace);
}

static int64_t phase_ns(const struct facts *facts, enum phase phase)
{
	for (size_t i = 0; i < facts->phases.count; i++)
		if (facts->phases.at[i].phase == phase)
			return facts->phases.at[i].wall_ns;
	return 0;
}

/* Two windows of 1 ms, 98 ms apart. Threads are watched, and ranges known, all along. */
Test(pauses, threads_and_ranges_count_in_the_windows_alone)
{
	struct trace trace = trace_new();
	const struct device_fact *device;
	const struct idle_fact *idle;

	trace_launch(&trace, 1, 0, 10, 400);
	trace_range(&trace, 1, RANGE_USER, "data loading", 500, 99500);
	trace_call(&trace, 1, "cudaStreamSynchronize", 600, 50000);
	off(&trace, 1000, 99000);
	trace_range(&trace, 1, RANGE_STATE_EXACT, "running", 0, 700);
	trace_range(&trace, 1, RANGE_STATE_EXACT, "waiting: futex", 700, 98000);
	trace_range(&trace, 1, RANGE_STATE_EXACT, "running", 98000, 100000);
	for (int64_t at = 1500; at < 98000; at += 1000)
		trace_range(&trace, 1, RANGE_PYTHON_STACK, "sleep loop.py:7", at, at);
	trace_launch(&trace, 1, 99600, 99610, 100000);
	device = trace_analyze(&trace);
	cr_assert_eq(device->paused_ns, 98000 * 1000);
	cr_assert_eq(device->idle_ns, (600 + 610) * 1000);
	cr_assert_eq(device->host_wait_ns, 400 * 1000);
	cr_assert_eq(phase_ns(trace.facts, PHASE_LOADER), (500 + 500) * 1000);
	for (int i = 0; i < IDLE_COUNT; i++) {
		idle = &device->idle[i];
		cr_assert_leq(idle->thread_ns, idle->ns);
		cr_assert_eq(idle->python, 0);
	}
	idle = &device->idle[IDLE_HOST_LATE];
	cr_assert_eq(idle->ns, (200 + 600) * 1000);
	cr_assert_str_eq(idle->thread_state, "running");
	idle = &device->idle[IDLE_SYNC_BLOCKED];
	cr_assert_eq(idle->ns, 400 * 1000);
	cr_assert_eq(idle->thread_ns, 400 * 1000);
	trace_done(&trace);
}
