/* The rules about a kernel's arithmetic, warps, barriers and atomics, on both
 * sides of each threshold. */
#include "kernel_bench.h"

static void stall(struct kernel_fact *fact, double share)
{
	fact->stalls.count = 0;
	*VEC_ADD(&fact->stalls) = (struct stall_share){ "barrier", share };
}

Test(special_function_bound, begins_at_sixty_per_cent_of_the_unit)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_COMPUTE, "issue slots");

	fact->counters.xu_pct = 60;
	fact->counters.issue_pct = 45;
	cr_assert_eq(found_by(&bench, &rule_special_function_bound), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	cr_assert_eq(first(&bench)->kernel, 0);
	cr_assert_eq(first(&bench)->grade, GRADE_HIGH);
	cr_assert_says(first(&bench)->claim, "60 %");
	/* The next limit is at three quarters of it. */
	cr_assert_eq(first(&bench)->impact_low_ns, 0);
	cr_assert_eq(first(&bench)->impact_high_ns, 10 * MS / 4);
	fact->counters.xu_pct = 59.9;
	cr_assert_eq(found_by(&bench, &rule_special_function_bound), 0);
	fact->counters.xu_pct = 80;
	cr_assert_eq(found_by(&bench, &rule_special_function_bound), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	fact->bound.bound = BOUND_DRAM;
	cr_assert_eq(found_by(&bench, &rule_special_function_bound), 0);
	done(&bench);
}

Test(special_function_bound, begins_lower_where_the_verdict_names_the_unit)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_COMPUTE, "xu");

	fact->counters.xu_pct = 55;
	cr_assert_eq(found_by(&bench, &rule_special_function_bound), 1);
	fact->bound.unit = "fma";
	cr_assert_eq(found_by(&bench, &rule_special_function_bound), 0);
	done(&bench);
}

Test(fp64_bound, needs_the_verdict_and_sixty_per_cent)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_COMPUTE, "fp64");

	fact->counters.fp64_pct = 60;
	cr_assert_eq(found_by(&bench, &rule_fp64_bound), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	cr_assert_eq(first(&bench)->impact_high_ns, 5 * MS);
	cr_assert_float_eq(first(&bench)->impact_share, 0.05, 1e-9);
	/* Kernels that run side by side take longer in sum than there was time. */
	bench.facts.devices.at[0].span_ns = 4 * MS;
	cr_assert_eq(found_by(&bench, &rule_fp64_bound), 1);
	cr_assert_eq(first(&bench)->impact_high_ns, 4 * MS);
	cr_assert_eq(first(&bench)->impact_share, 1);
	fact->counters.fp64_pct = 59.9;
	cr_assert_eq(found_by(&bench, &rule_fp64_bound), 0);
	fact->counters.fp64_pct = 97;
	cr_assert_eq(found_by(&bench, &rule_fp64_bound), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	fact->bound.unit = "fma";
	cr_assert_eq(found_by(&bench, &rule_fp64_bound), 0);
	done(&bench);
}

Test(divergence, begins_below_twenty_four_threads)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_COMPUTE, "issue slots");

	fact->counters.threads_per_instruction = 23.9;
	cr_assert_eq(found_by(&bench, &rule_divergence), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	fact->counters.threads_per_instruction = 24;
	cr_assert_eq(found_by(&bench, &rule_divergence), 0);
	fact->counters.threads_per_instruction = 8;
	cr_assert_eq(found_by(&bench, &rule_divergence), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	cr_assert_says(first(&bench)->claim, "8.0 of the 32");
	cr_assert_eq(first(&bench)->impact_high_ns, 10 * MS / 4 * 3);
	fact->bound.bound = BOUND_LATENCY;
	cr_assert_eq(found_by(&bench, &rule_divergence), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	cr_assert_eq(first(&bench)->grade, GRADE_MEDIUM);
	fact->bound.bound = BOUND_DRAM;
	cr_assert_eq(found_by(&bench, &rule_divergence), 0);
	done(&bench);
}

Test(divergence, does_not_blame_branches_for_lanes_that_were_never_launched)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_COMPUTE, "issue slots");

	bench.session->keys.at[fact->key].block[0] = 16;
	fact->counters.threads_per_instruction = 16;
	cr_assert_eq(found_by(&bench, &rule_divergence), 0);
	fact->counters.threads_per_instruction = 12;
	cr_assert_eq(found_by(&bench, &rule_divergence), 0);
	fact->counters.threads_per_instruction = 11.9;
	cr_assert_eq(found_by(&bench, &rule_divergence), 1);
	cr_assert_says(first(&bench)->claim, "of the 16");
	done(&bench);
}

Test(barrier_stall, begins_at_thirty_per_cent_of_the_waiting)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_LATENCY, "sync");

	fact->counters.issue_pct = 80;
	stall(fact, 0.30);
	cr_assert_eq(found_by(&bench, &rule_barrier_stall), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	/* No more than the cycles without an instruction. */
	cr_assert_float_eq((double)first(&bench)->impact_high_ns, 2 * MS, 2);
	fact->counters.issue_pct = NAN;
	cr_assert_eq(found_by(&bench, &rule_barrier_stall), 1);
	cr_assert_float_eq((double)first(&bench)->impact_high_ns, 3 * MS, 2);
	stall(fact, 0.29);
	cr_assert_eq(found_by(&bench, &rule_barrier_stall), 0);
	stall(fact, 0.50);
	cr_assert_eq(found_by(&bench, &rule_barrier_stall), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	fact->bound.unit = "memory";
	cr_assert_eq(found_by(&bench, &rule_barrier_stall), 0);
	fact->bound.bound = BOUND_L1;
	fact->bound.unit = "sync";
	cr_assert_eq(found_by(&bench, &rule_barrier_stall), 0);
	done(&bench);
}

Test(atomic_contention, needs_atomics_and_one_slice_far_above_the_others)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_L2, "slice");
	struct kernel_counters *counters = &fact->counters;

	counters->atomic_share = 0.5;
	counters->slice_max_pct = 60;
	counters->slice_avg_pct = 30;
	cr_assert_eq(found_by(&bench, &rule_atomic_contention), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	cr_assert_eq(first(&bench)->impact_high_ns, 5 * MS);
	counters->slice_avg_pct = 30.1;
	cr_assert_eq(found_by(&bench, &rule_atomic_contention), 0);
	counters->slice_avg_pct = 1;
	counters->slice_max_pct = 59.9;
	cr_assert_eq(found_by(&bench, &rule_atomic_contention), 0);
	counters->slice_max_pct = 80;
	cr_assert_eq(found_by(&bench, &rule_atomic_contention), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	counters->atomic_share = 0.49;
	cr_assert_eq(found_by(&bench, &rule_atomic_contention), 0);
	done(&bench);
}

Test(kernel_rules, say_where_and_give_the_time_of_a_launch_without_a_timeline)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_COMPUTE, "fp64");

	fact->counters.fp64_pct = 90;
	cr_assert_eq(found_by(&bench, &rule_fp64_bound), 1);
	cr_assert_str_eq(first(&bench)->evidence.at[0].where, "void work<(int)3>");
	cr_assert_str_eq(first(&bench)->evidence.at[0].metric, deciding.metric);
	fact->count = fact->sum_ns = 0;
	cr_assert_eq(found_by(&bench, &rule_fp64_bound), 1);
	cr_assert_eq(first(&bench)->impact_high_ns, MS / 2);
	cr_assert(isnan(first(&bench)->impact_share));
	fact->counters.duration_ns = NAN;
	cr_assert_eq(found_by(&bench, &rule_fp64_bound), 1);
	cr_assert_eq(first(&bench)->impact_high_ns, FACT_UNKNOWN);
	done(&bench);
}

Test(kernel_rules, are_silent_where_nothing_was_measured)
{
	static const struct rule *const rules[] = { &rule_special_function_bound, &rule_fp64_bound,
						    &rule_divergence, &rule_barrier_stall,
						    &rule_atomic_contention };
	static const enum bound_class bounds[] = { BOUND_UNKNOWN, BOUND_COMPUTE, BOUND_LATENCY };

	for (size_t i = 0; i < 5; i++) {
		for (size_t k = 0; k < 3; k++) {
			struct rule_bench bench = { 0 };
			struct kernel_fact *fact = kernel(&bench, bounds[k], "sync");

			cr_assert_eq(found_by(&bench, rules[i]), 0);
			fact->bound.unit = NULL;
			cr_assert_eq(found_by(&bench, rules[i]), 0);
			fact->has_bound = fact->has_counters = false;
			cr_assert_eq(found_by(&bench, rules[i]), 0);
			done(&bench);
		}
	}
}
