#include "trace_builder.h"

#include <math.h>

#define REASON(r) "smsp__pcsamp_warps_issue_stalled_" r

static void sample(struct trace *trace, const char *function, const char *reason, int64_t samples)
{
	struct stall stall = { .lane = trace_stream(trace, 0),
			       .function = trace_text(trace, function),
			       .reason = trace_text(trace, reason),
			       .samples = samples };

	sink_stall(&trace->store->sink, &stall, NULL);
}

/* `idle` of `all` samples of a reason found the scheduler with nothing to issue. */
static void stall(struct trace *trace, const char *function, const char *reason, int64_t all,
		  int64_t idle)
{
	char name[128];

	(void)snprintf(name, sizeof(name), REASON("%s"), reason);
	sample(trace, function, name, all);
	(void)snprintf(name, sizeof(name), REASON("%s_not_issued"), reason);
	sample(trace, function, name, idle);
}

static struct trace trace_of_kernel(void)
{
	struct trace trace = trace_new();

	/* Long kernels: no matter of launches. */
	for (int i = 0; i < 20; i++)
		trace_launch(&trace, 1, 1000 * i, 1000 * i + 10, 1000 * i + 1000);
	return trace;
}

static const struct kernel_fact *kernel_of(struct trace *trace)
{
	trace_analyze(trace);
	cr_assert_eq(trace->facts->kernels.count, 1);
	return &trace->facts->kernels.at[0];
}

static double share_of(const struct kernel_fact *kernel, const char *reason)
{
	for (size_t i = 0; i < kernel->stalls.count; i++)
		if (!strcmp(kernel->stalls.at[i].reason, reason))
			return kernel->stalls.at[i].share;
	return 0;
}

Test(stalls, shares_are_of_the_samples_without_an_issue_and_totals_are_left_out)
{
	struct trace trace = trace_of_kernel();
	const struct kernel_fact *kernel;

	stall(&trace, "some_kernel", "barrier", 600, 300);
	stall(&trace, "some_kernel", "wait", 200, 100);
	sample(&trace, "some_kernel", REASON("selected"), 200);
	sample(&trace, "some_kernel", "smsp__pcsamp_sample_count", 100000);
	sample(&trace, "some_kernel", "smsp__pcsamp_samples_data_dropped", 5000);
	kernel = kernel_of(&trace);
	cr_assert_eq(kernel->stalls.count, 2);
	cr_assert_float_eq(share_of(kernel, "barrier"), 0.75, 1e-12);
	cr_assert_float_eq(share_of(kernel, "wait"), 0.25, 1e-12);
	cr_assert_eq(kernel->stall_samples, 400);
	/* 400 of 1,000 found nothing to issue: the slots are busy for 60 %. */
	cr_assert_not(kernel->has_bound);
	trace_done(&trace);
}

static void expect_group(const char *reason, const char *group, enum grade grade)
{
	struct trace trace = trace_of_kernel();
	const struct kernel_fact *kernel;

	stall(&trace, "some_kernel", reason, 900, 700);
	stall(&trace, "some_kernel", "misc", 100, 50);
	sample(&trace, "some_kernel", REASON("selected"), 200);
	kernel = kernel_of(&trace);
	cr_assert(kernel->has_bound, "%s", reason);
	cr_assert_eq(kernel->bound.bound, BOUND_LATENCY);
	cr_assert_str_eq(kernel->bound.unit, group);
	cr_assert_eq(kernel->bound.grade, grade);
	trace_done(&trace);
}

Test(stalls, latency_is_named_by_its_group)
{
	expect_group("long_scoreboard", "memory", GRADE_LOW); /* or bandwidth */
	expect_group("barrier", "sync", GRADE_MEDIUM);
	expect_group("wait", "dependency", GRADE_MEDIUM);
	expect_group("branch_resolving", "fetch", GRADE_MEDIUM);
}

Test(stalls, a_full_queue_is_no_latency)
{
	struct trace trace = trace_of_kernel();

	stall(&trace, "some_kernel", "math_pipe_throttle", 900, 700);
	sample(&trace, "some_kernel", REASON("selected"), 200);
	cr_assert_not(kernel_of(&trace)->has_bound);
	trace_done(&trace);
}

Test(stalls, few_samples_give_no_verdict)
{
	for (int64_t samples = 199; samples <= 200; samples++) {
		struct trace trace = trace_of_kernel();
		const struct kernel_fact *kernel;

		stall(&trace, "some_kernel", "barrier", samples, samples);
		sample(&trace, "some_kernel", REASON("selected"), 10);
		kernel = kernel_of(&trace);
		cr_assert_eq(kernel->has_bound, samples >= 200);
		cr_assert_eq(kernel->stall_samples, samples);
		trace_done(&trace);
	}
}

Test(stalls, busy_schedulers_are_no_latency)
{
	for (int selected = 0; selected < 2; selected++) {
		struct trace trace = trace_of_kernel();

		/* 599 or 601 of 1,000 issue slots in use. */
		stall(&trace, "some_kernel", "barrier", 401 - 2 * selected, 401 - 2 * selected);
		sample(&trace, "some_kernel", REASON("selected"), 599 + 2 * selected);
		cr_assert_eq(kernel_of(&trace)->has_bound, !selected);
		trace_done(&trace);
	}
}

Test(stalls, without_the_second_count_shares_are_told_and_no_verdict)
{
	struct trace trace = trace_of_kernel();
	const struct kernel_fact *kernel;

	sample(&trace, "some_kernel", REASON("barrier"), 900);
	sample(&trace, "some_kernel", REASON("selected"), 100);
	kernel = kernel_of(&trace);
	cr_assert_float_eq(share_of(kernel, "barrier"), 1, 1e-12);
	cr_assert_not(kernel->has_bound);
	trace_done(&trace);
}

Test(stalls, samples_of_another_function_are_not_ours)
{
	struct trace trace = trace_of_kernel();
	const struct kernel_fact *kernel;

	stall(&trace, "another", "barrier", 900, 900);
	kernel = kernel_of(&trace);
	cr_assert_eq(kernel->stalls.count, 0);
	cr_assert_eq(kernel->stall_samples, 0);
	trace_done(&trace);
}

/* Plainly: every sample of the function, offsets and chunks whatever. */
Test(stalls, sums_agree_with_plain_addition)
{
	static const char *const reasons[] = { "barrier", "wait", "long_scoreboard", "sleeping" };
	struct trace trace = trace_of_kernel();
	const struct kernel_fact *kernel;
	int64_t sum[4] = { 0 }, all = 0;
	unsigned seed = 3;

	for (int i = 0; i < 500; i++) {
		int reason = rand_r(&seed) % 4;
		int64_t count = 1 + rand_r(&seed) % 20;

		stall(&trace, i % 5 ? "some_kernel" : "another", reasons[reason], count + 2, count);
		if (i % 5) {
			sum[reason] += count;
			all += count;
		}
	}
	kernel = kernel_of(&trace);
	for (int i = 0; i < 4; i++)
		cr_assert_float_eq(share_of(kernel, reasons[i]), (double)sum[i] / (double)all,
				   1e-12);
	cr_assert_eq(kernel->stall_samples, all);
	trace_done(&trace);
}

Test(stalls, not_selected_may_lead_as_ncu_counts_it)
{
	struct trace trace = trace_of_kernel();
	const struct kernel_fact *kernel;

	stall(&trace, "some_kernel", "not_selected", 600, 0);
	stall(&trace, "some_kernel", "selected", 200, 0);
	stall(&trace, "some_kernel", "wait", 200, 150);
	kernel = kernel_of(&trace);
	cr_assert_str_eq(kernel->top_stall, "not_selected");
	cr_assert_eq(kernel->top_samples, 600);
	cr_assert_eq(kernel->pc_samples, 1000);
	/* The shares that verdicts rest on are of what was not issued, as before. */
	cr_assert_str_eq(kernel->stalls.at[0].reason, "wait");
	trace_done(&trace);
}

Test(stalls, a_lead_within_chance_is_not_sure)
{
	static const struct {
		int64_t first, second;
		bool told, sure;
	} cases[] = {
		{ 29, 0, false, true },  { 30, 0, true, true },      { 60, 30, true, true },
		{ 57, 33, true, false }, { 5500, 5000, true, true }, { 5200, 5000, true, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct trace trace = trace_of_kernel();
		const struct kernel_fact *kernel;

		stall(&trace, "some_kernel", "barrier", cases[i].first, cases[i].first);
		if (cases[i].second)
			stall(&trace, "some_kernel", "wait", cases[i].second, cases[i].second);
		kernel = kernel_of(&trace);
		cr_assert_eq(kernel->top_stall != NULL, cases[i].told, "case %zu", i);
		cr_assert_eq(kernel->sure_stall, cases[i].sure, "case %zu", i);
		cr_assert_eq(kernel->pc_samples, cases[i].first + cases[i].second);
		trace_done(&trace);
	}
}

/* A kernel of so many blocks, on a card of so many SMs. */
static struct trace trace_of_blocks(int32_t blocks, int64_t sms)
{
	struct trace trace = trace_of_kernel();

	trace.store->session->keys.at[0].grid[0] = blocks;
	trace.store->session->keys.at[0].grid[1] = trace.store->session->keys.at[0].grid[2] = 1;
	trace.store->session->devices.at[trace.device].sm_count = sms;
	return trace;
}

/* 132 SMs in step, looked at 30 times: 3,960 samples and no more than 30 looks. */
Test(stalls, sms_that_run_in_step_are_one_look)
{
	static const struct {
		int32_t blocks;
		int64_t sms;
		bool sure;
	} cases[] = {
		{ 1000, 132, false }, /* 2,244 to 1,716: 17 looks to 13 */
		{ 10, 132, true },    /* ten SMs have blocks: 224 to 172 */
		{ 1000, 0, true },    /* unknown: as if alone */
		{ 0, 132, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct trace trace = trace_of_blocks(cases[i].blocks, cases[i].sms);
		const struct kernel_fact *kernel;

		stall(&trace, "some_kernel", "barrier", 17 * 132, 17 * 132);
		stall(&trace, "some_kernel", "wait", 13 * 132, 13 * 132);
		kernel = kernel_of(&trace);
		cr_assert_str_eq(kernel->top_stall, "barrier");
		cr_assert_eq(kernel->sure_stall, cases[i].sure, "case %zu", i);
		trace_done(&trace);
	}
}

/* In 40 % of 2,640 samples something was issued: of 20 looks that may be chance. */
Test(stalls, a_verdict_of_few_looks_has_a_low_grade)
{
	for (int64_t sms = 10; sms <= 132; sms += 122) {
		struct trace trace = trace_of_blocks(1000, sms);
		const struct kernel_fact *kernel;

		stall(&trace, "some_kernel", "barrier", 1584, 1584);
		sample(&trace, "some_kernel", REASON("selected"), 1056);
		kernel = kernel_of(&trace);
		cr_assert(kernel->has_bound);
		cr_assert_eq(kernel->bound.grade, sms == 10 ? GRADE_MEDIUM : GRADE_LOW);
		trace_done(&trace);
	}
}

/* Two looks at 132 SMs in step found nothing issued: a share of 0, but of two looks. */
Test(stalls, no_issue_in_very_few_looks_is_no_proof_either)
{
	for (int64_t looks = 2; looks <= 100; looks += 98) {
		struct trace trace = trace_of_blocks(1000, 132);
		const struct kernel_fact *kernel;

		stall(&trace, "some_kernel", "barrier", 132 * looks, 132 * looks);
		kernel = kernel_of(&trace);
		cr_assert(kernel->has_bound);
		cr_assert_eq(kernel->bound.grade, looks == 2 ? GRADE_LOW : GRADE_MEDIUM);
		trace_done(&trace);
	}
}

/* Samples drawn at random from known shares: what is sure is right, but for one
 * time in a hundred. */
Test(stalls, the_leader_that_is_told_leads_in_truth)
{
	static const char *const reasons[] = { "wait", "barrier", "long_scoreboard",
					       "not_selected" };
	static const int64_t parts[] = { 36, 32, 20, 12 }; /* of 100 */
	uint64_t state = 17;
	int told = 0, wrong = 0;

	for (int round = 0; round < 500; round++) {
		struct trace trace = trace_of_kernel();
		int64_t counts[4] = { 0 };
		const struct kernel_fact *kernel;

		for (int i = 0; i < 20 + 4 * round; i++) {
			int64_t dice;
			int at = 0;

			state = state * 6364136223846793005u + 1442695040888963407u;
			dice = (int64_t)(state >> 33) % 100;
			while (dice >= parts[at])
				dice -= parts[at++];
			counts[at]++;
		}
		for (int i = 0; i < 4; i++)
			stall(&trace, "some_kernel", reasons[i], counts[i], counts[i] / 2);
		kernel = kernel_of(&trace);
		if (kernel->sure_stall) {
			told++;
			wrong += strcmp(kernel->top_stall, "wait") != 0;
		}
		trace_done(&trace);
	}
	cr_assert_gt(told, 50, "%d", told);
	cr_assert_leq(100 * wrong, told, "%d of %d", wrong, told);
}
