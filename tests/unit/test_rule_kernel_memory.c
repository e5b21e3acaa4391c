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

/* The finding has this number, so named. */
static bool has_number(const struct finding *finding, const char *metric)
{
	for (size_t i = 0; i < finding->evidence.count; i++) {
		if (!strcmp(finding->evidence.at[i].metric, metric))
			return true;
	}
	return false;
}

Test(small_grid, counts_one_block_as_one)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_SMALL_GRID, "");

	fact->counters.sms = 132;
	fact->counters.blocks = 1;
	SPEAKS(rule_small_grid, SEVERITY_WARN, 10 * MS * 131 / 132);
	cr_assert_not_null(strstr(first(&bench)->claim, "runs 1 block on"));
	fact->counters.blocks = 2;
	SPEAKS(rule_small_grid, SEVERITY_WARN, 10 * MS * 130 / 132);
	cr_assert_not_null(strstr(first(&bench)->claim, "runs 2 blocks on"));
	done(&bench);
}

/* Of a kernel like a walk through a list, all but what a case changes. */
static struct kernel_fact *scattered(struct rule_bench *bench)
{
	struct kernel_fact *fact = kernel(bench, BOUND_LATENCY, "memory");

	fact->counters.excess_sector_share = 0.87;
	fact->counters.sectors_per_request_load = 31;
	fact->counters.threads_per_instruction = 32;
	fact->counters.l1_hit_pct = 10;
	fact->counters.l2_hit_pct = 30;
	fact->counters.memory_pct = 15;
	*VEC_ADD(&fact->stalls) = (struct stall_share){ "long_scoreboard", 0.9 };
	return fact;
}

static bool told_as_scattered(struct rule_bench *bench)
{
	cr_assert_eq(found_by(bench, &rule_uncoalesced), 1);
	return strstr(first(bench)->title, "scattered");
}

Test(uncoalesced, scattered_addresses_get_advice_of_their_own_and_no_promise)
{
	struct rule_bench bench = { 0 };

	(void)scattered(&bench);
	cr_assert(told_as_scattered(&bench));
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	cr_assert_eq(first(&bench)->impact_high_ns, FACT_UNKNOWN);
	for (size_t i = 0; i + 1 < first(&bench)->advice.count; i++)
		cr_assert_null(strstr(first(&bench)->advice.at[i], "swap loops"));
	done(&bench);
}

/* One field on both sides of its threshold. */
#define SCATTERED_UP_TO(field, in, out)                   \
	do {                                              \
		double kept = field;                      \
                                                          \
		field = in;                               \
		cr_expect(told_as_scattered(&bench));     \
		field = out;                              \
		cr_expect_not(told_as_scattered(&bench)); \
		field = NAN;                              \
		cr_expect_not(told_as_scattered(&bench)); \
		field = kept;                             \
	} while (0)

Test(uncoalesced, what_a_cache_finds_or_a_path_is_full_of_is_a_bad_order)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = scattered(&bench);

	SCATTERED_UP_TO(fact->counters.l1_hit_pct, 49.9, 50);
	SCATTERED_UP_TO(fact->counters.l2_hit_pct, 49.9, 50);
	SCATTERED_UP_TO(fact->counters.memory_pct, 29.9, 30);
	SCATTERED_UP_TO(fact->counters.sectors_per_request_load, 27.3, 27.1);
	SCATTERED_UP_TO(fact->stalls.at[0].share, 0.50, 0.49);
	/* Half of the lanes take part: half as many sectors are one for each. */
	fact->counters.threads_per_instruction = 16;
	SCATTERED_UP_TO(fact->counters.sectors_per_request_load, 13.7, 13.5);
	fact->bound.bound = BOUND_L2;
	cr_expect_not(told_as_scattered(&bench));
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
	/* Nor if few of many warps are there. */
	fact->counters.theoretical_occupancy_pct = 100;
	fact->counters.achieved_occupancy_pct = 20;
	SILENT(rule_low_occupancy);
	done(&bench);
}

Test(low_occupancy, tells_what_does_not_fit_from_what_does_not_come)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = kernel(&bench, BOUND_LATENCY, "memory");

	fact->counters.theoretical_occupancy_pct = 60;
	fact->counters.achieved_occupancy_pct = 49.9;
	fact->counters.waves = 0.5;
	SILENT(rule_low_occupancy); /* of 60, 48 are four fifths */
	fact->counters.achieved_occupancy_pct = 47.9;
	SPEAKS(rule_low_occupancy, SEVERITY_NOTE, 521 * MS / 100);
	cr_assert_not_null(strstr(first(&bench)->claim, "places on the GPU"));
	fact->counters.waves = 1;
	SPEAKS(rule_low_occupancy, SEVERITY_NOTE, 521 * MS / 100);
	cr_assert_not_null(strstr(first(&bench)->claim, "blocks enough"));
	fact->counters.waves = NAN;
	SPEAKS(rule_low_occupancy, SEVERITY_NOTE, 521 * MS / 100);
	cr_assert_not_null(strstr(first(&bench)->claim, "too small, or"));
	/* Half of the warps are enough to be no fault. */
	fact->counters.theoretical_occupancy_pct = 100;
	fact->counters.achieved_occupancy_pct = 50;
	SILENT(rule_low_occupancy);
	fact->counters.achieved_occupancy_pct = 49.9;
	SPEAKS(rule_low_occupancy, SEVERITY_NOTE, 501 * MS / 100);
	/* More warps help until the busiest unit is full. */
	fact->counters.memory_pct = 58;
	SPEAKS(rule_low_occupancy, SEVERITY_NOTE, 42 * MS / 10);
	/* The limit is what binds where all that fit are there. */
	fact->counters.theoretical_occupancy_pct = 25;
	fact->counters.achieved_occupancy_pct = 24;
	fact->counters.waves = 0.9;
	SPEAKS(rule_low_occupancy, SEVERITY_NOTE, 42 * MS / 10);
	cr_assert_not_null(strstr(first(&bench)->claim, "the limit is"));
	done(&bench);
}

/* Four bytes through L1 for each of device memory, L1 misses, L2 finds them. */
static struct kernel_fact *reread_from(struct rule_bench *bench, enum bound_class bound,
				       const char *unit)
{
	struct kernel_fact *fact = kernel(bench, bound, unit);

	fact->counters.excess_sector_share = 0;
	fact->counters.l1_hit_pct = 20;
	fact->counters.l2_hit_pct = 75;
	fact->counters.l1_bytes = 4000;
	fact->counters.dram_bytes = 1000;
	return fact;
}

Test(low_cache_reuse, needs_misses_in_l1_and_bytes_that_come_again)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = reread_from(&bench, BOUND_L2, "lts");

	SPEAKS(rule_low_cache_reuse, SEVERITY_NOTE, 75 * MS / 10);
	cr_assert(has_number(first(&bench), "lts__t_sector_hit_rate.pct"));
	fact->counters.l1_bytes = 2999;
	SILENT(rule_low_cache_reuse);
	fact->counters.l1_bytes = 4000;
	fact->counters.l1_hit_pct = 49.9;
	SPEAKS(rule_low_cache_reuse, SEVERITY_NOTE, 75 * MS / 10);
	fact->counters.l1_hit_pct = 50;
	SILENT(rule_low_cache_reuse);
	fact->counters.l1_hit_pct = NAN;
	SILENT(rule_low_cache_reuse);
	fact->counters.l1_hit_pct = 20;
	/* What L2 finds is unknown: said all the same, without that number. */
	fact->counters.l2_hit_pct = NAN;
	SPEAKS(rule_low_cache_reuse, SEVERITY_NOTE, 75 * MS / 10);
	cr_assert_not(has_number(first(&bench), "lts__t_sector_hit_rate.pct"));
	done(&bench);
}

Test(low_cache_reuse, leaves_wasted_sectors_atomics_and_one_slice_to_others)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = reread_from(&bench, BOUND_L2, "lts");

	fact->counters.excess_sector_share = 0.199;
	SPEAKS(rule_low_cache_reuse, SEVERITY_NOTE, 75 * MS / 10);
	fact->counters.excess_sector_share = 0.20;
	SILENT(rule_low_cache_reuse);
	fact->counters.excess_sector_share = NAN;
	SILENT(rule_low_cache_reuse);
	fact->counters.excess_sector_share = 0;
	fact->counters.atomic_share = 0.49;
	SPEAKS(rule_low_cache_reuse, SEVERITY_NOTE, 75 * MS / 10);
	fact->counters.atomic_share = 0.5;
	SILENT(rule_low_cache_reuse);
	fact->counters.atomic_share = 0;
	fact->bound.unit = "L2 slice";
	SILENT(rule_low_cache_reuse);
	fact->bound.unit = "lts";
	fact->bound.bound = BOUND_COMPUTE;
	SILENT(rule_low_cache_reuse);
	done(&bench);
}

Test(low_cache_reuse, promises_no_more_than_the_next_unit_leaves)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = reread_from(&bench, BOUND_L2, "lts");

	fact->counters.l2_pct = 90;
	fact->counters.l1_pct = 45;
	fact->counters.dram_pct = 20;
	SPEAKS(rule_low_cache_reuse, SEVERITY_NOTE, 5 * MS);
	/* Of device memory only that bound is known, and the finding less sure. */
	fact->bound.bound = BOUND_DRAM;
	fact->bound.unit = "dram";
	fact->counters.dram_pct = 90;
	fact->counters.l2_pct = 63;
	SPEAKS(rule_low_cache_reuse, SEVERITY_NOTE, 3 * MS);
	cr_assert_eq(first(&bench)->grade, GRADE_MEDIUM);
	fact->counters.dram_pct = NAN;
	cr_assert_eq(found_by(&bench, &rule_low_cache_reuse), 1);
	cr_assert_eq(first(&bench)->impact_high_ns, FACT_UNKNOWN);
	done(&bench);
}

Test(low_cache_reuse, moves_what_l1_finds_often_into_registers)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = reread_from(&bench, BOUND_L1, "l1tex data pipe");

	fact->counters.l1_hit_pct = 66.7; /* each byte 3 times */
	SPEAKS(rule_low_cache_reuse, SEVERITY_NOTE, 667 * MS / 100);
	cr_assert_not_null(strstr(first(&bench)->claim, "registers"));
	fact->counters.l1_hit_pct = 66.6;
	SILENT(rule_low_cache_reuse);
	fact->counters.l1_hit_pct = 80;
	fact->counters.local_share = 0.049;
	SPEAKS(rule_low_cache_reuse, SEVERITY_NOTE, 8 * MS);
	fact->counters.local_share = 0.05; /* spilled registers */
	SILENT(rule_low_cache_reuse);
	fact->counters.local_share = NAN;
	/* Other units of the path have no bytes that would tell. */
	fact->bound.unit = "lsu";
	SILENT(rule_low_cache_reuse);
	done(&bench);
}

Test(low_cache_reuse, moves_what_is_read_often_from_shared_memory_into_registers)
{
	struct rule_bench bench = { 0 };
	struct kernel_fact *fact = reread_from(&bench, BOUND_L1, "shared memory");

	fact->counters.shared_reread = 3;
	SPEAKS(rule_low_cache_reuse, SEVERITY_NOTE, 20 * MS / 3);
	fact->counters.shared_reread = 2.99;
	SILENT(rule_low_cache_reuse);
	fact->counters.shared_reread = NAN;
	SILENT(rule_low_cache_reuse);
	fact->counters.shared_reread = 10;
	fact->counters.bank_conflict_share = 0.099;
	SPEAKS(rule_low_cache_reuse, SEVERITY_NOTE, 9 * MS);
	fact->counters.bank_conflict_share = 0.10;
	SILENT(rule_low_cache_reuse);
	done(&bench);
}
