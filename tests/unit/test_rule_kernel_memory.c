/* The rules about how a kernel uses memory and the grid, on both sides of each
 * threshold. */
#include "kernel_bench.h"

/* The rule speaks, as `severity`, with a high end of `high_ns`. */
#define SPEAKS(rule, expected, high_ns)                                                          \
	do {                                                                                     \
		cr_assert_eq(found_by(&bench, &rule), 1);                                        \
		cr_assert_eq(first(&bench)->severity, expected);                                 \
		cr_assert_eq(first(&bench)->impact_low_ns, 0);                                   \
		cr_assert_float_eq((double)first(&bench)->impact_high_ns, (double)(high_ns), 2); \
	} while (0)
#define SILENT(rule) cr_assert_eq(found_by(&bench, &rule), 0)

Test(uncoalesced, begins_at_a_fifth_where_memory_binds)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_L2, "lts");

	fact->counters.excess_sector_share = 0.20;
	SPEAKS(rule_uncoalesced, SEVERITY_NOTE, 2 * MS);
	fact->counters.excess_sector_share = 0.199;
	SILENT(rule_uncoalesced);
	fact->counters.excess_sector_share = 0.5;
	SPEAKS(rule_uncoalesced, SEVERITY_WARN, 5 * MS);
	fact->bound.bound = BOUND_COMPUTE;
	SILENT(rule_uncoalesced);
	fact->bound.bound = BOUND_LATENCY;
	fact->bound.unit = "memory";
	SPEAKS(rule_uncoalesced, SEVERITY_WARN, 5 * MS);
	fact->counters.excess_sector_share = NAN;
	SILENT(rule_uncoalesced);
	done(&bench);
}

Test(bank_conflicts, begin_at_a_tenth_where_the_shared_path_binds)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_L1, "shared memory");

	fact->counters.bank_conflict_share = 0.10;
	SPEAKS(rule_bank_conflicts, SEVERITY_NOTE, MS);
	fact->counters.bank_conflict_share = 0.099;
	SILENT(rule_bank_conflicts);
	fact->counters.bank_conflict_share = 0.9;
	SPEAKS(rule_bank_conflicts, SEVERITY_WARN, 9 * MS);
	fact->bound.bound = BOUND_DRAM;
	SILENT(rule_bank_conflicts);
	fact->bound.bound = BOUND_LATENCY;
	fact->bound.unit = "sync";
	SILENT(rule_bank_conflicts);
	done(&bench);
}

Test(small_grid, needs_fewer_blocks_than_sms)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_SMALL_GRID, "");

	fact->counters.sms = 100;
	fact->counters.blocks = 51;
	SPEAKS(rule_small_grid, SEVERITY_NOTE, 49 * MS / 10);
	fact->counters.blocks = 50;
	SPEAKS(rule_small_grid, SEVERITY_WARN, 5 * MS);
	fact->counters.blocks = 100;
	SILENT(rule_small_grid);
	fact->counters.blocks = 1;
	fact->bound.bound = BOUND_COMPUTE;
	SILENT(rule_small_grid);
	done(&bench);
}

Test(tail_effect, follows_the_verdict)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_TAIL, "");

	fact->counters.active_share = 0.7;
	SPEAKS(rule_tail_effect, SEVERITY_NOTE, 3 * MS);
	fact->counters.active_share = 0.5;
	SPEAKS(rule_tail_effect, SEVERITY_WARN, 5 * MS);
	fact->bound.bound = BOUND_DRAM;
	SILENT(rule_tail_effect);
	fact->bound.bound = BOUND_TAIL;
	fact->counters.active_share = NAN;
	SILENT(rule_tail_effect);
	done(&bench);
}

Test(low_occupancy, is_a_fault_only_where_latency_binds)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_LATENCY, "memory");

	fact->counters.theoretical_occupancy_pct = 25;
	SPEAKS(rule_low_occupancy, SEVERITY_NOTE, 75 * MS / 10);
	fact->counters.theoretical_occupancy_pct = 50;
	SILENT(rule_low_occupancy);
	fact->counters.theoretical_occupancy_pct = 22;
	fact->bound.bound = BOUND_COMPUTE;
	fact->bound.unit = "fma";
	SILENT(rule_low_occupancy);
	done(&bench);
}

Test(low_cache_reuse, needs_misses_and_bytes_that_come_again)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_DRAM, "dram");

	fact->counters.l1_hit_pct = fact->counters.l2_hit_pct = 20;
	fact->counters.l1_bytes = 4000;
	fact->counters.dram_bytes = 1000;
	SPEAKS(rule_low_cache_reuse, SEVERITY_NOTE, 75 * MS / 10);
	fact->counters.l1_bytes = 2999;
	SILENT(rule_low_cache_reuse);
	fact->counters.l1_bytes = 4000;
	fact->counters.l2_hit_pct = 50;
	SILENT(rule_low_cache_reuse);
	fact->counters.l2_hit_pct = NAN;
	SILENT(rule_low_cache_reuse);
	done(&bench);
}
