/* The rules of the system layer, on both sides of each threshold. */
#include "rule_bench.h"

static struct episode *episode_add(struct device_fact *fact, const char *reason,
				   int64_t first_sample, int64_t last_sample)
{
	struct episode *at = VEC_ADD(&fact->episodes);

	fact->has_system = true;
	fact->system.interval_ns = 1000000000;
	fact->system.first_ns = 0;
	fact->system.last_ns = 99000000000;
	*at = (struct episode){
		.reason = reason,
		.first_sample = first_sample,
		.last_sample = last_sample,
		.start_ns = first_sample * 1000000000,
		.end_ns = (last_sample + 1) * 1000000000,
		.mhz_before = 2000,
		.mhz_in = 1500,
		.mhz_lost = 500,
		.power_w = 690,
		.temp_c = 60,
	};
	return at;
}

static void known(struct device_fact *fact, enum metric metric, double value)
{
	fact->system.metric[metric] =
		(struct metric_stats){ 1, value, value, value, value, value, value };
}

Test(power_wall, says_when_how_deep_and_that_the_limit_is_unknown)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = bench_init(&bench);

	episode_add(fact, "power", 10, 17);
	fact->system.interval_assumed = true;
	cr_assert_eq(found_by(&bench, &rule_power_wall), 1);
	cr_assert_says(first(&bench)->claim, "samples 10 to 17 of file.txt");
	cr_assert_says(first(&bench)->claim, "8.00 s");
	cr_assert_says(first(&bench)->claim, "no time stamps");
	cr_assert_says(first(&bench)->claim, "1500 MHz instead of 2000 MHz, 25 % lower");
	cr_assert_says(first(&bench)->claim, "in none of the files");
	cr_assert_eq(first(&bench)->impact_low_ns, 0);
	cr_assert_eq(first(&bench)->impact_high_ns, 2000000000);
	known(fact, METRIC_power_limit_w, 700);
	cr_assert_eq(found_by(&bench, &rule_power_wall), 1);
	cr_assert_says(first(&bench)->claim, "the limit is 700 W");
	bench_done(&bench);
}

Test(power_wall, needs_two_samples_and_the_reason_power)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = bench_init(&bench);
	struct episode *at;

	cr_assert_eq(found_by(&bench, &rule_power_wall), 0);
	at = episode_add(fact, "power", 10, 10);
	cr_assert_eq(found_by(&bench, &rule_power_wall), 0);
	at->last_sample = 11;
	cr_assert_eq(found_by(&bench, &rule_power_wall), 1);
	at->reason = "thermal";
	cr_assert_eq(found_by(&bench, &rule_power_wall), 0);
	bench_done(&bench);
}

Test(power_wall, is_a_warning_from_a_tenth_of_the_clock)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = bench_init(&bench);
	struct episode *at = episode_add(fact, "power", 10, 17);

	at->mhz_lost = 199;
	cr_assert_eq(found_by(&bench, &rule_power_wall), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	at->mhz_lost = 201;
	cr_assert_eq(found_by(&bench, &rule_power_wall), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	at->mhz_lost = NAN;
	cr_assert_eq(found_by(&bench, &rule_power_wall), 1);
	cr_assert_says(first(&bench)->claim, "how deep is unknown");
	cr_assert_eq(first(&bench)->impact_high_ns, FACT_UNKNOWN);
	bench_done(&bench);
}

Test(power_wall, never_advises_a_lower_limit_and_a_higher_one_only_where_the_board_allows_it)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = bench_init(&bench);

	episode_add(fact, "power", 10, 17);
	known(fact, METRIC_power_limit_w, 500);
	known(fact, METRIC_power_max_limit_w, 700);
	cr_assert_eq(found_by(&bench, &rule_power_wall), 1);
	cr_assert_says(first(&bench)->advice.at[0], "nvidia-smi -pl 700");
	known(fact, METRIC_power_limit_w, 700);
	cr_assert_eq(found_by(&bench, &rule_power_wall), 1);
	for (size_t i = 0; i < first(&bench)->advice.count; i++)
		cr_assert_silent(first(&bench)->advice.at[i], "-pl");
	bench_done(&bench);
}

Test(power_wall, read_from_a_plateau_has_a_low_grade_and_a_runner_up)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = bench_init(&bench);

	episode_add(fact, "power", 10, 17)->by_plateau = true;
	cr_assert_eq(found_by(&bench, &rule_power_wall), 1);
	cr_assert_eq(first(&bench)->grade, GRADE_LOW);
	cr_assert_not_null(first(&bench)->runner_up);
	bench_done(&bench);
}

Test(thermal_throttle, is_told_from_the_first_sample_and_is_never_ordinary)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = bench_init(&bench);
	struct episode *at;

	cr_assert_eq(found_by(&bench, &rule_thermal_throttle), 0);
	at = episode_add(fact, "thermal", 4, 4);
	at->mhz_lost = 10;
	cr_assert_eq(found_by(&bench, &rule_thermal_throttle), 1);
	cr_assert_geq(first(&bench)->severity, SEVERITY_WARN);
	cr_assert_says(first(&bench)->claim, "60 C");
	at->reason = "power";
	cr_assert_eq(found_by(&bench, &rule_thermal_throttle), 0);
	at->reason = "power_brake";
	cr_assert_eq(found_by(&bench, &rule_thermal_throttle), 1);
	cr_assert_says(first(&bench)->claim, "power brake");
	cr_assert_says(first(&bench)->advice.at[0], "Power supply");
	bench_done(&bench);
}

static struct process_fact *process_add(struct rule_bench *bench, int64_t pid, const char *name)
{
	struct process_fact *fact = VEC_ADD(&bench->facts.processes);

	*fact = (struct process_fact){ .sm_pct_mean = NAN,
				       .sm_pct_max = NAN,
				       .mem_bytes = NAN,
				       .mem_bytes_first = NAN,
				       .mem_growth_bytes = NAN,
				       .mem_growth_bytes_s = NAN,
				       .sm_pct_shared = NAN,
				       .sm_pct_solo = NAN };
	fact->process = session_process(bench->session, 0, pid);
	bench->session->processes.at[fact->process].name = bench_text(bench, name);
	return fact;
}

Test(shared_card_contention, gives_no_slowdown_without_a_solo_baseline)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = bench_init(&bench);
	struct process_fact *one, *two;

	(void)process_add(&bench, 11, "train");
	(void)process_add(&bench, 12, "serve");
	one = &bench.facts.processes.at[0];
	two = &bench.facts.processes.at[1];
	fact->process_rounds = 5;
	cr_assert_eq(found_by(&bench, &rule_shared_card_contention), 0);
	fact->shared_rounds = 1;
	one->shared_rounds = two->shared_rounds = 1;
	one->sm_pct_shared = 55;
	two->sm_pct_shared = 44;
	cr_assert_eq(found_by(&bench, &rule_shared_card_contention), 1);
	cr_assert_says(first(&bench)->claim, "train (pid 11) with 55 %, serve (pid 12) with 44 %");
	cr_assert_silent(first(&bench)->claim, "Alone");
	cr_assert_eq(bench.findings.abstained.count, 1);
	cr_assert_says(bench.findings.abstained.at[0], "how much slower");
	one->solo_rounds = 2;
	one->sm_pct_solo = 99;
	cr_assert_eq(found_by(&bench, &rule_shared_card_contention), 1);
	cr_assert_eq(bench.findings.abstained.count, 1);
	one->solo_rounds = 3;
	cr_assert_eq(found_by(&bench, &rule_shared_card_contention), 1);
	cr_assert_eq(bench.findings.abstained.count, 0);
	cr_assert_says(first(&bench)->claim, "Alone, train (pid 11) had the SMs for 99 %");
	bench_done(&bench);
}

Test(memory_growth, of_a_card_says_when_it_is_full)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = bench_init(&bench);

	cr_assert_eq(found_by(&bench, &rule_memory_growth), 0);
	fact->system.mem_growth_bytes_s = 1 << 20;
	fact->system.mem_growth_bytes = 600.0 * (1 << 20);
	cr_assert_eq(found_by(&bench, &rule_memory_growth), 1);
	cr_assert_says(first(&bench)->claim, "600 MiB");
	cr_assert_says(first(&bench)->claim, "60.0 MiB a minute");
	cr_assert_silent(first(&bench)->claim, "full in");
	known(fact, METRIC_mem_used_bytes, 1024.0 * (1 << 20));
	known(fact, METRIC_mem_total_bytes, 2048.0 * (1 << 20));
	cr_assert_eq(found_by(&bench, &rule_memory_growth), 1);
	cr_assert_says(first(&bench)->claim, "full in 17.1 min");
	bench_done(&bench);
}

Test(memory_growth, of_the_allocator_needs_twenty_steps)
{
	struct rule_bench bench = { 0 };
	struct memory_fact *memory;

	(void)bench_init(&bench);
	memory = VEC_ADD(&bench.facts.memory);
	memory->growth_bytes_per_step = 65535;
	memory->steps = 19;
	/* Those of other ranks don't count. */
	for (int i = 0; i < 200; i++)
		VEC_ADD(&bench.facts.steps.step)->source = 1;
	cr_assert_eq(found_by(&bench, &rule_memory_growth), 0);
	cr_assert_eq(bench.findings.abstained.count, 0);
	memory->growth_bytes_per_step = 65536;
	cr_assert_eq(found_by(&bench, &rule_memory_growth), 0);
	cr_assert_eq(bench.findings.abstained.count, 1);
	memory->steps = 20;
	cr_assert_eq(found_by(&bench, &rule_memory_growth), 1);
	cr_assert_says(first(&bench)->claim, "over 20 steps");
	memory->growth_bytes_per_step = NAN;
	cr_assert_eq(found_by(&bench, &rule_memory_growth), 0);
	bench_done(&bench);
}

Test(low_utilisation_trap, believes_sm_activity_before_power)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = bench_init(&bench);

	fact->has_system = true;
	fact->system.high_util_samples = 5;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 0);
	cr_assert_eq(bench.findings.abstained.count, 1);
	fact->system.high_util_power_share = 0.61;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 0);
	fact->system.high_util_power_share = 0.59;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 1);
	cr_assert_eq(first(&bench)->grade, GRADE_LOW);
	fact->system.high_util_sm_active_pct = 51;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 0);
	fact->system.high_util_sm_active_pct = 49;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 1);
	cr_assert_eq(first(&bench)->grade, GRADE_HIGH);
	fact->system.high_util_samples = 4;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 0);
	bench_done(&bench);
}

Test(low_utilisation_trap, sees_small_grids_on_a_busy_timeline)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = bench_init(&bench);
	struct kernel_fact *kernel = VEC_ADD(&bench.facts.kernels);
	struct kernel_key key = { .grid = { 49, 1, 1 }, .block = { 128, 1, 1 } };

	bench.session->devices.at[0].sm_count = 100;
	fact->has_timeline = true;
	fact->span_ns = 1000000;
	fact->kernel_ns = 910000;
	kernel->key = session_key(bench.session, &key);
	kernel->sum_ns = 910000;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 1);
	bench.session->keys.at[kernel->key].grid[0] = 50;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 0);
	bench.session->keys.at[kernel->key].grid[0] = 49;
	fact->kernel_ns = 890000;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 0);
	fact->kernel_ns = 910000;
	fact->stream_overlap_ns = 800000;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 0);
	fact->stream_overlap_ns = 0;
	fact->span_ns = 999999;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 0);
	fact->span_ns = 1000000;
	kernel->collective = true;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 0);
	bench_done(&bench);
}

Test(rules, cope_with_every_fact_missing)
{
	struct rule_bench bench = { 0 };
	size_t count;
	const struct rule *const *rules = rule_list(&count);

	(void)bench_init(&bench);
	for (size_t i = 0; i < count; i++)
		cr_assert_eq(found_by(&bench, rules[i]), 0, "%s", rules[i]->id);
	bench_done(&bench);
}
