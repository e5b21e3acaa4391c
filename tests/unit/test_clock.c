#include "rules/rule.h"
#include "trace_builder.h"

#include <math.h>

static struct trace on_the_clock(void)
{
	struct trace trace = trace_new();

	trace.store->session->sources.at[trace.source].has_utc = true;
	return trace;
}

/* Samples of the trace's device, a second apart, on the same clock. */
static uint32_t board(struct trace *trace)
{
	struct session *session = trace->store->session;
	uint32_t source = session_source(session, "nvml", "");
	struct lane lane = { .kind = LANE_BOARD,
			     .source = source,
			     .device = trace->device,
			     .process = SESSION_NONE,
			     .context = -1,
			     .stream = -1,
			     .tid = -1 };

	session->sources.at[source].has_utc = true;
	session->sources.at[source].interval_ns = 1000000000;
	return session_lane(session, &lane);
}

static void sampled(struct trace *trace, uint32_t lane, int second, double mhz, bool held)
{
	struct sample sample = { .lane = lane, .time_ns = second * INT64_C(1000000000) };

	sample_set(&sample, METRIC_sm_mhz, mhz);
	sample_set(&sample, METRIC_power_violation_pct, held ? 100 : 0);
	sample_set(&sample, METRIC_power_w, held ? 690 : 400);
	sample_set(&sample, METRIC_util_pct, 100);
	sink_sample(&trace->store->sink, &sample, NULL);
}

/* Kernels of a million cycles, ten a second, at the clock of that second. */
static void kernels(struct trace *trace, int seconds, int held_from, int held_to)
{
	for (int s = 0; s < seconds; s++)
		for (int k = 0; k < 10; k++) {
			int64_t at = s * 1000000 + 50000 + 90000 * k;
			bool held = s >= held_from && s < held_to;

			trace_launch(trace, 1, at, at + 10, at + 10 + (held ? 1000 : 500));
		}
}

static const char *claim_of(const struct trace *trace, struct findings *findings)
{
	rule_apply(trace->facts, &rule_power_wall, findings);
	return findings->at.count ? findings->at.at[0].claim : "";
}

Test(clock, cycles_stay_where_the_clock_moves_and_the_slowed_kernel_is_named)
{
	struct trace trace = on_the_clock();
	uint32_t lane = board(&trace);
	struct findings findings = { 0 };
	const struct kernel_fact *kernel;

	for (int s = 0; s < 12; s++)
		sampled(&trace, lane, s, s >= 4 && s < 8 ? 1000 : 2000, s >= 4 && s < 8);
	kernels(&trace, 12, 4, 8);
	trace_analyze(&trace);
	kernel = &trace.facts->kernels.at[0];
	cr_assert_float_eq(kernel->mean_cycles, 1e6, 1e-3);
	/* By time: 40 x 1 ms at 1,000 MHz, 80 x 0.5 ms at 2,000. */
	cr_assert_float_eq(kernel->sm_mhz, 1500, 1e-6);
	cr_assert_eq(trace.facts->devices.at[trace.device].held.count, 1);
	cr_assert_float_eq(trace.facts->devices.at[trace.device].held.at[0].slower, 2, 1e-9);
	cr_assert(strstr(claim_of(&trace, &findings), "some_kernel (40.0 ms, 2.00 x"), "%s",
		  claim_of(&trace, &findings));
	findings_done(&findings);
	trace_done(&trace);
}

Test(clock, without_a_limit_no_kernel_is_blamed)
{
	struct trace trace = on_the_clock();
	uint32_t lane = board(&trace);

	for (int s = 0; s < 12; s++)
		sampled(&trace, lane, s, 2000, false);
	kernels(&trace, 12, 0, 0);
	trace_analyze(&trace);
	cr_assert_float_eq(trace.facts->kernels.at[0].mean_cycles, 1e6, 1e-3);
	cr_assert_eq(trace.facts->devices.at[trace.device].held.count, 0);
	trace_done(&trace);
}

Test(clock, without_samples_near_by_cycles_are_unknown)
{
	for (int has = 0; has < 2; has++) {
		struct trace trace = on_the_clock();

		if (has) /* long before */
			sampled(&trace, board(&trace), 0, 2000, false);
		trace_launch(&trace, 1, 5000000, 5000010, 5000500);
		trace_analyze(&trace);
		cr_assert(isnan(trace.facts->kernels.at[0].mean_cycles));
		cr_assert(isnan(trace.facts->kernels.at[0].sm_mhz));
		trace_done(&trace);
	}
}

Test(clock, a_trace_without_an_origin_is_not_matched_with_samples)
{
	struct trace trace = trace_new();

	sampled(&trace, board(&trace), 0, 2000, false);
	kernels(&trace, 1, 0, 0);
	trace_analyze(&trace);
	cr_assert(isnan(trace.facts->kernels.at[0].mean_cycles));
	trace_done(&trace);
}
