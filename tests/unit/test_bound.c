/* The verdict on a kernel: recorded ones that were built to be bound by one
 * thing, and made ones on both sides of each threshold. */
#include <criterion/criterion.h>

#include "analyze/bound.h"
#include "counter_sink.h"
#include "read/ncu.h"

enum { CASES = 21, SEEDS = 20 };
#define ELAPSED(stem) stem ".avg.pct_of_peak_sustained_elapsed"
#define STALL(reason) "smsp__average_warps_issue_stalled_" reason "_per_issue_active.ratio"

/* Classes and units that are right, "|" between them; "*": any unit. */
static const struct truth {
	const char *kernel, *classes, *units;
} TRUTH[CASES] = {
	{ "copy_scalar", "|memory:dram|", "|dram|" },
	{ "copy_float4", "|memory:dram|", "|dram|" },
	{ "copy_strided", "|memory:l2|", "|lts|" },
	{ "softmax_row_scalar", "|latency|", "|memory|" },
	{ "softmax_row_vec4", "|memory:dram|", "|dram|" },
	{ "act_powf", "|compute|", "|issue slots|fma|alu|" },
	{ "act_mul", "|compute|", "|issue slots|fma|" },
	{ "fma_bound", "|compute|", "|fma|" },
	{ "fp64_bound", "|compute|", "|fp64|" },
	{ "int_bound", "|compute|", "|alu|" },
	{ "chase", "|latency|", "|memory|" },
	{ "one_block", "|small_grid|", "*" },
	{ "reg_heavy", "|compute|", "|fma|" },
	{ "barrier_heavy", "|latency|", "|sync|barrier|" },
	{ "transpose_conflict", "|memory:l1|", "|shared memory|" },
	{ "transpose_padded", "|memory:dram|", "|dram|" },
	{ "matmul_naive", "|memory:l1|", "|l1tex data pipe|" },
	{ "matmul_tiled", "|memory:l1|", "|shared memory|" },
	{ "atomic_hot", "|latency|memory:l2|", "*" },
	{ "tail_wave", "|tail|", "*" },
	{ "divergent", "|compute|", "|issue slots|xu|fma|" },
};

/* A factor in 0.97..1.03; seed 0: 1. splitmix64, so that every machine draws
 * the same. */
static double jitter(uint64_t seed, uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return seed ? 0.97 + 0.06 * (double)(z >> 11) / (double)(UINT64_C(1) << 53) : 1;
}

/* Of the launch and the card: known, not measured. */
static bool is_fixed(const char *name)
{
	return !strncmp(name, "launch__", 8) || !strncmp(name, "device__", 8);
}

static bool lists(const char *list, const char *word)
{
	char marked[64];

	(void)snprintf(marked, sizeof(marked), "|%s|", word);
	return !strcmp(list, "*") || strstr(list, marked);
}

static const struct truth *truth_of(const char *kernel)
{
	size_t len = strcspn(kernel, "(");

	for (size_t i = 0; i < CASES; i++) {
		if (strlen(TRUTH[i].kernel) == len && !strncmp(TRUTH[i].kernel, kernel, len))
			return &TRUTH[i];
	}
	return NULL;
}

/* Judges a launch; true if the truth has it so. */
static bool judge_launch(const struct counter_sink *sink, int64_t launch, uint64_t seed)
{
	struct metric_table table = { 0 };
	struct arena arena = { 0 };
	struct bound_fact bound;
	const struct truth *truth = NULL;
	uint64_t state = seed * 1000 + (uint64_t)launch;
	bool right;

	for (size_t i = 0; i < sink->counters.count; i++) {
		const struct counter *c = &sink->counters.at[i];
		const char *name = session_text(sink->sink.session, c->name);

		if (c->launch != launch)
			continue;
		truth = truth_of(
			session_text(sink->sink.session, sink->sink.session->keys.at[c->key].name));
		metric_table_add(&table, name, session_text(sink->sink.session, c->unit),
				 is_fixed(name) ? c->value : c->value * jitter(seed, &state));
	}
	cr_assert(truth, "launch %d is no kernel of the table", (int)launch);
	metric_table_sort(&table);
	bound_decide(&table, &arena, &bound);
	right = lists(truth->classes, bound_name(bound.bound)) && lists(truth->units, bound.unit);
	if (!right)
		cr_log_error("seed %d: %s is %s / %s, not %s %s", (int)seed, truth->kernel,
			     bound_name(bound.bound), bound.unit, truth->classes, truth->units);
	VEC_DONE(&bound.numbers);
	VEC_DONE(&bound.notes);
	metric_table_done(&table);
	arena_done(&arena);
	return right;
}

static struct counter_sink *read_cases(void)
{
	static const char path[] = SOURCE_DIR "/tests/truth/ncu/cases_raw.csv.gz";
	OWN(input_closep) struct input *input = NULL;
	struct counter_sink *sink = counter_sink_new();
	struct err err = { 0 };

	cr_assert_eq(input_open(path, &input, &err), 0);
	cr_assert_eq(reader_ncu_csv.read(input, &sink->sink,
					 session_source(sink->sink.session, "ncu_csv", path), &err),
		     0);
	return sink;
}

static int count_right(uint64_t first_seed, uint64_t last_seed)
{
	OWN(counter_sink_freep) struct counter_sink *sink = read_cases();
	int right = 0;

	for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
		for (int64_t launch = 0; launch < CASES; launch++)
			right += judge_launch(sink, launch, seed);
	}
	return right;
}

Test(bound, each_recorded_kernel_is_bound_by_what_it_was_built_for)
{
	cr_assert_eq(count_right(0, 0), CASES);
}

Test(bound, verdicts_bear_three_per_cent_of_noise)
{
	cr_assert_eq(count_right(1, SEEDS), CASES * SEEDS);
}

/* A kernel of 100 us with 10 waves on 132 SMs where nothing is busy. */
struct made {
	struct metric_row rows[16];
	size_t count;
};

static void set(struct made *made, const char *name, double value)
{
	size_t i = 0;

	while (i < made->count && strcmp(made->rows[i].name, name))
		i++;
	cr_assert_lt(i, sizeof(made->rows) / sizeof(made->rows[0]));
	made->rows[i] = (struct metric_row){ name, "", value };
	made->count += i == made->count;
}

static struct made idle_kernel(void)
{
	struct made made = { 0 };

	set(&made, "gpu__time_duration.sum", 100000);
	set(&made, "launch__grid_size", 1320);
	set(&made, "launch__sm_count", 132);
	set(&made, "launch__waves_per_multiprocessor", 10);
	set(&made, "sm__cycles_active.avg", 100000);
	set(&made, "sm__cycles_active.max", 100000);
	set(&made, "sm__cycles_elapsed.max", 100000);
	set(&made, ELAPSED("dram__cycles_active"), 10);
	set(&made, ELAPSED("l1tex__data_pipe_lsu_wavefronts"), 10);
	set(&made, ELAPSED("sm__inst_executed_pipe_lsu"), 10);
	set(&made, ELAPSED("sm__pipe_fma_cycles_active"), 10);
	set(&made, "smsp__issue_active.avg.pct_of_peak_sustained_active", 10);
	set(&made, STALL("long_scoreboard"), 8);
	set(&made, STALL("wait"), 2);
	return made;
}

static void expect(const struct made *made, enum bound_class class, const char *unit,
		   enum grade grade, size_t notes)
{
	struct metric_table table = { 0 };
	struct arena arena = { 0 };
	struct bound_fact bound;

	for (size_t i = 0; i < made->count; i++)
		metric_table_add(&table, made->rows[i].name, made->rows[i].unit,
				 made->rows[i].value);
	metric_table_sort(&table);
	bound_decide(&table, &arena, &bound);
	cr_expect_str_eq(bound_name(bound.bound), bound_name(class));
	cr_expect_str_eq(bound.unit, unit);
	cr_expect_str_eq(grade_name(bound.grade), grade_name(grade));
	cr_expect_eq(bound.notes.count, notes, "%d notes", (int)bound.notes.count);
	VEC_DONE(&bound.numbers);
	VEC_DONE(&bound.notes);
	metric_table_done(&table);
	arena_done(&arena);
}

Test(bound, a_unit_binds_from_sixty_per_cent_and_surely_from_eighty)
{
	static const struct {
		double pct;
		enum bound_class class;
		const char *unit;
		enum grade grade;
	} cases[] = {
		/* Within 3 points of a threshold a verdict loses a grade. */
		{ 50, BOUND_LATENCY, "memory", GRADE_HIGH },
		{ 59.9, BOUND_LATENCY, "memory", GRADE_MEDIUM },
		{ 60, BOUND_DRAM, "dram", GRADE_LOW },
		{ 63, BOUND_DRAM, "dram", GRADE_MEDIUM },
		{ 77, BOUND_DRAM, "dram", GRADE_MEDIUM },
		{ 79.9, BOUND_DRAM, "dram", GRADE_LOW },
		{ 80, BOUND_DRAM, "dram", GRADE_MEDIUM },
		{ 83, BOUND_DRAM, "dram", GRADE_HIGH },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made made = idle_kernel();

		set(&made, ELAPSED("dram__cycles_active"), cases[i].pct);
		expect(&made, cases[i].class, cases[i].unit, cases[i].grade, 0);
	}
}

Test(bound, two_units_are_balanced_within_ten_points)
{
	struct made made = idle_kernel();

	set(&made, ELAPSED("dram__cycles_active"), 90);
	set(&made, ELAPSED("sm__pipe_fma_cycles_active"), 80);
	expect(&made, BOUND_DRAM, "dram", GRADE_HIGH, 0);
	set(&made, ELAPSED("sm__pipe_fma_cycles_active"), 80.1);
	expect(&made, BOUND_DRAM, "dram", GRADE_MEDIUM, 1);
}

Test(bound, a_grid_is_small_below_the_count_of_sms)
{
	struct made made = idle_kernel();

	set(&made, "launch__waves_per_multiprocessor", 0.5);
	set(&made, "launch__grid_size", 132);
	expect(&made, BOUND_LATENCY, "memory", GRADE_HIGH, 0);
	/* Under 5 % of idle SMs are not worth a word. */
	set(&made, "launch__grid_size", 126);
	expect(&made, BOUND_LATENCY, "memory", GRADE_HIGH, 0);
	/* A fuller card would gain less than fuller SMs (10 % of issue slots). */
	set(&made, "launch__grid_size", 125);
	expect(&made, BOUND_LATENCY, "memory", GRADE_HIGH, 1);
	set(&made, "launch__grid_size", 14);
	expect(&made, BOUND_LATENCY, "memory", GRADE_HIGH, 1);
	set(&made, "launch__grid_size", 13);
	expect(&made, BOUND_SMALL_GRID, "", GRADE_HIGH, 1);
}

Test(bound, a_full_unit_of_half_the_sms_is_no_full_card)
{
	struct made made = idle_kernel();

	set(&made, "launch__waves_per_multiprocessor", 0.5);
	set(&made, ELAPSED("sm__pipe_fma_cycles_active"), 90);
	set(&made, "launch__grid_size", 66);
	expect(&made, BOUND_SMALL_GRID, "", GRADE_HIGH, 1);
	set(&made, "launch__grid_size", 67);
	expect(&made, BOUND_COMPUTE, "fma", GRADE_HIGH, 1);
	/* DRAM is everybody's: full is full. */
	set(&made, ELAPSED("sm__pipe_fma_cycles_active"), 10);
	set(&made, ELAPSED("dram__cycles_active"), 90);
	set(&made, "launch__grid_size", 66);
	expect(&made, BOUND_DRAM, "dram", GRADE_HIGH, 1);
}

Test(bound, a_tail_is_a_fifth_of_the_sms_time)
{
	struct made made = idle_kernel();

	set(&made, "sm__cycles_active.avg", 96000);
	expect(&made, BOUND_LATENCY, "memory", GRADE_HIGH, 0);
	set(&made, "sm__cycles_active.avg", 94000);
	expect(&made, BOUND_LATENCY, "memory", GRADE_HIGH, 1);
	set(&made, "sm__cycles_active.avg", 80100);
	expect(&made, BOUND_LATENCY, "memory", GRADE_HIGH, 1);
	/* Ten whole waves do not explain a loss: a note says so. */
	set(&made, "sm__cycles_active.avg", 79900);
	expect(&made, BOUND_TAIL, "", GRADE_MEDIUM, 1);
	set(&made, "sm__cycles_active.avg", 76000);
	expect(&made, BOUND_TAIL, "", GRADE_HIGH, 1);
	/* Less than a wave has no tail. */
	set(&made, "launch__waves_per_multiprocessor", 0.5);
	expect(&made, BOUND_LATENCY, "memory", GRADE_HIGH, 0);
}

Test(bound, what_is_full_over_the_whole_time_has_no_tail)
{
	struct made made = idle_kernel();

	set(&made, "sm__cycles_active.avg", 70000);
	set(&made, ELAPSED("dram__cycles_active"), 79.9);
	expect(&made, BOUND_TAIL, "", GRADE_HIGH, 1);
	set(&made, ELAPSED("dram__cycles_active"), 85);
	expect(&made, BOUND_DRAM, "dram", GRADE_HIGH, 0);
}

Test(bound, a_busy_mio_path_is_synchronisation_from_three_tenths_of_the_stalls)
{
	struct made made = idle_kernel();

	set(&made, ELAPSED("sm__inst_executed_pipe_lsu"), 85);
	set(&made, STALL("long_scoreboard"), 50.1);
	set(&made, STALL("wait"), 20);
	set(&made, STALL("barrier"), 29.9);
	expect(&made, BOUND_L1, "lsu", GRADE_HIGH, 0);
	set(&made, STALL("long_scoreboard"), 49.9);
	set(&made, STALL("barrier"), 30.1);
	expect(&made, BOUND_LATENCY, "sync", GRADE_MEDIUM, 0);
	/* Not where another unit is full as well. */
	set(&made, ELAPSED("sm__inst_executed_pipe_lsu"), 95);
	set(&made, ELAPSED("sm__pipe_fma_cycles_active"), 84);
	expect(&made, BOUND_L1, "lsu", GRADE_HIGH, 0);
}

Test(bound, latency_has_a_name_from_three_tenths_of_the_stalls)
{
	struct made made = idle_kernel();

	set(&made, STALL("long_scoreboard"), 29.9);
	set(&made, STALL("wait"), 25);
	set(&made, STALL("barrier"), 25);
	set(&made, STALL("no_instruction"), 20.1);
	expect(&made, BOUND_LATENCY, "mixed", GRADE_MEDIUM, 0);
	set(&made, STALL("long_scoreboard"), 30.1);
	set(&made, STALL("no_instruction"), 19.9);
	expect(&made, BOUND_LATENCY, "memory", GRADE_MEDIUM, 0);
	set(&made, STALL("long_scoreboard"), 34);
	set(&made, STALL("no_instruction"), 16);
	expect(&made, BOUND_LATENCY, "memory", GRADE_HIGH, 0);
}

/* The number of this name, NAN if there is none. */
static double number_in(const struct bound_fact *bound, const char *name)
{
	for (size_t i = 0; i < bound->numbers.count; i++) {
		if (!strcmp(bound->numbers.at[i].metric, name))
			return bound->numbers.at[i].value;
	}
	return NAN;
}

Test(bound, the_number_of_a_stall_is_the_share_that_decided)
{
	static const struct {
		const char *name;
		double value;
	} rows[] = { { STALL("barrier"), 25 },
		     { STALL("gmma"), 15 },
		     { STALL("long_scoreboard"), 35 },
		     { STALL("wait"), 25 },
		     { ELAPSED("sm__inst_executed_pipe_lsu"), 85 },
		     { ELAPSED("sm__pipe_fma_cycles_active"), 10 },
		     { ELAPSED("l1tex__data_pipe_lsu_wavefronts"), 10 } };
	struct metric_table table = { 0 };
	struct arena arena = { 0 };
	struct bound_fact bound;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		metric_table_add(&table, rows[i].name, "", rows[i].value);
	metric_table_sort(&table);
	bound_decide(&table, &arena, &bound);
	/* Neither reason alone is the largest, nor reaches the threshold. */
	cr_expect_str_eq(bound.unit, "sync");
	cr_expect_float_eq(number_in(&bound, "stall group sync"), 40, 1e-9);
	cr_expect_float_eq(number_in(&bound, "stall share barrier"), 25, 1e-9);
	cr_expect(isnan(number_in(&bound, "stall share long_scoreboard")));
	VEC_DONE(&bound.numbers);
	VEC_DONE(&bound.notes);
	metric_table_done(&table);
	arena_done(&arena);
}

Test(bound, few_samples_of_stalls_lower_the_grade_unless_counters_say)
{
	static const char sampled[] = "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued";
	struct made made = idle_kernel();

	set(&made, sampled, 200);
	expect(&made, BOUND_LATENCY, "memory", GRADE_HIGH, 0);
	set(&made, sampled, 199);
	expect(&made, BOUND_LATENCY, "memory", GRADE_HIGH, 0);
	set(&made, STALL("long_scoreboard"), NAN);
	set(&made, STALL("wait"), NAN);
	expect(&made, BOUND_LATENCY, "memory", GRADE_MEDIUM, 1);
	set(&made, sampled, 200);
	expect(&made, BOUND_LATENCY, "memory", GRADE_HIGH, 0);
	/* A busy MIO path rests on the stalls as well. */
	set(&made, ELAPSED("sm__inst_executed_pipe_lsu"), 90);
	expect(&made, BOUND_L1, "lsu", GRADE_HIGH, 0);
	set(&made, sampled, 199);
	expect(&made, BOUND_L1, "lsu", GRADE_MEDIUM, 1);
}

Test(bound, fusing_saves_half_of_what_is_not_fused)
{
#define FP32(op) "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum.per_cycle_elapsed"
	struct metric_table table = { 0 };
	struct kernel_counters counters;

	metric_table_add(&table, FP32("fadd"), "", 30);
	metric_table_add(&table, FP32("fmul"), "", 10);
	metric_table_add(&table, FP32("ffma"), "", 60);
	metric_table_sort(&table);
	kernel_counters_read(&table, &counters);
	cr_expect_float_eq(counters.fp32_unfused_share, 0.2, 1e-9);
	metric_table_done(&table);
}

Test(bound, shared_memory_is_read_again_for_what_came_into_the_sms)
{
	struct metric_table table = { 0 };
	struct kernel_counters counters;

	/* 100 passes, 20 of them repeats: 80 x 128 bytes of 1,024 that came. */
	metric_table_add(&table, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "", 100);
	metric_table_add(&table, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "",
			 20);
	metric_table_add(&table, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "", 16);
	metric_table_sort(&table);
	kernel_counters_read(&table, &counters);
	cr_expect(isnan(counters.shared_reread)); /* asynchronous copies are not known */
	metric_table_add(&table, "l1tex__m_xbar2l1tex_read_bytes.sum", "byte", 1024);
	metric_table_sort(&table);
	kernel_counters_read(&table, &counters);
	cr_expect_float_eq(counters.shared_reread, 10, 1e-9);
	metric_table_done(&table);
}

/* A kernel that ran `sum_ns` in `count` launches and was waited for. */
static struct kernel_fact *timed(struct facts *facts, int64_t count, int64_t sum_ns,
				 int64_t launch_idle_ns)
{
	struct kernel_fact *kernel = VEC_ADD(&facts->kernels);

	kernel->count = count;
	kernel->sum_ns = sum_ns;
	kernel->launch_idle_ns = launch_idle_ns;
	kernel->coverage = 1;
	return kernel;
}

static void launches_bind(struct facts *facts, bool expected, enum grade grade)
{
	struct kernel_fact *kernel = &facts->kernels.at[0];

	kernel->has_bound = false;
	kernel->bound.bound = BOUND_UNKNOWN;
	bound_launch(facts);
	cr_expect_eq(kernel->has_bound, expected);
	cr_expect_eq(kernel->bound.bound, expected ? BOUND_LAUNCH : BOUND_UNKNOWN);
	if (expected)
		cr_expect_str_eq(grade_name(kernel->bound.grade), grade_name(grade));
}

Test(bound, launches_bind_where_the_gap_is_longer_than_the_kernel)
{
	struct facts facts = { 0 };
	struct kernel_fact *kernel = timed(&facts, 100, 500000, 500001);

	launches_bind(&facts, true, GRADE_MEDIUM);
	kernel->launch_idle_ns = 500000;
	launches_bind(&facts, false, GRADE_NONE);
	kernel->launch_idle_ns = 600000;
	launches_bind(&facts, true, GRADE_HIGH);
	cr_expect_float_eq(number_in(&kernel->bound, "kernels.mean_ns"), 5000, 1e-9);
	facts.host_time_inflated = true;
	launches_bind(&facts, true, GRADE_MEDIUM);
	kernel->launch_idle_ns = FACT_UNKNOWN;
	launches_bind(&facts, false, GRADE_NONE);
	kernel->launch_idle_ns = 600000;
	kernel->count = 10;
	launches_bind(&facts, true, GRADE_MEDIUM);
	kernel->count = 9;
	launches_bind(&facts, false, GRADE_NONE);
	kernel->count = 10;
	kernel->coverage = 0.79;
	launches_bind(&facts, false, GRADE_NONE);
	kernel->coverage = 0.8;
	launches_bind(&facts, true, GRADE_MEDIUM);
	/* A collective waits for its peers, not for its launch. */
	kernel->collective = true;
	launches_bind(&facts, false, GRADE_NONE);
	VEC_DONE(&kernel->bound.numbers);
	VEC_DONE(&facts.kernels);
}

Test(bound, what_the_counters_say_is_second_to_launches)
{
	struct facts facts = { 0 };
	struct kernel_fact *kernel = timed(&facts, 100, 500000, 900000);

	kernel->has_bound = true;
	kernel->bound.bound = BOUND_DRAM;
	kernel->bound.unit = "dram";
	bound_launch(&facts);
	cr_expect_eq(kernel->bound.bound, BOUND_LAUNCH);
	cr_expect_eq(kernel->bound.runner_up, BOUND_DRAM);
	cr_expect_str_eq(kernel->bound.runner_up_unit, "dram");
	VEC_DONE(&kernel->bound.numbers);
	VEC_DONE(&facts.kernels);
}

Test(bound, short_kernels_are_never_sure)
{
	struct made made = idle_kernel();

	set(&made, ELAPSED("dram__cycles_active"), 90);
	set(&made, "gpu__time_duration.sum", 5000);
	expect(&made, BOUND_DRAM, "dram", GRADE_HIGH, 0);
	set(&made, "gpu__time_duration.sum", 4999);
	expect(&made, BOUND_DRAM, "dram", GRADE_LOW, 1);
}

Test(bound, nothing_is_said_of_an_empty_table)
{
	struct made made = { 0 };

	expect(&made, BOUND_UNKNOWN, "", GRADE_NONE, 0);
}
