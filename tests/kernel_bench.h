/*
 * kernel_bench.h - one kernel with counters, for tests of the rules about
 * kernels.
 */
#pragma once

#include "rule_bench.h"

enum { MS = 1000000 };

static const struct number deciding = { "sm__pipe_x.avg.pct_of_peak_sustained_elapsed", 91, "%" };

/* A kernel of 10 ms in a span of 100 ms, bound so, of which no counter is known. */
static inline struct kernel_fact *kernel(struct rule_bench *bench, enum bound_class bound,
					 const char *unit)
{
	struct device_fact *device = bench_init(bench);
	struct kernel_fact *fact = VEC_ADD(&bench->facts.kernels);
	struct kernel_key key = { .name = bench_text(bench, "void work<(int)3>(float *, int)"),
				  .block = { 256, 1, 1 } };

	device->has_timeline = true;
	device->span_ns = 100 * MS;
	memset(fact, 0, sizeof(*fact));
	fact->key = session_key(bench->session, &key);
	fact->device = device->device;
	fact->count = 10;
	fact->sum_ns = 10 * MS;
	fact->has_bound = fact->has_counters = true;
	fact->bound.bound = bound;
	fact->bound.unit = unit;
	fact->bound.grade = GRADE_HIGH;
	*VEC_ADD(&fact->bound.numbers) = deciding;
	fact->counters.xu_pct = fact->counters.fp64_pct = fact->counters.fma_pct = NAN;
	fact->counters.alu_pct = fact->counters.tensor_pct = fact->counters.issue_pct = NAN;
	fact->counters.memory_pct = fact->counters.threads_per_instruction = NAN;
	fact->counters.slice_max_pct = fact->counters.slice_avg_pct = NAN;
	fact->counters.atomic_share = NAN;
	fact->counters.excess_sector_share = fact->counters.bank_conflict_share = NAN;
	fact->counters.theoretical_occupancy_pct = fact->counters.active_share = NAN;
	fact->counters.blocks = fact->counters.sms = fact->counters.waves = NAN;
	fact->counters.l1_hit_pct = fact->counters.l2_hit_pct = NAN;
	fact->counters.l1_bytes = fact->counters.dram_bytes = NAN;
	fact->counters.sectors_per_request_load = NAN;
	fact->counters.achieved_occupancy_pct = fact->counters.local_share = NAN;
	fact->counters.shared_reread = fact->counters.sm_pct = NAN;
	fact->counters.dram_pct = fact->counters.l2_pct = fact->counters.l1_pct = NAN;
	fact->counters.duration_ns = 1 * MS;
	return fact;
}

static inline void done(struct rule_bench *bench)
{
	for (size_t i = 0; i < bench->facts.kernels.count; i++) {
		VEC_DONE(&bench->facts.kernels.at[i].bound.numbers);
		VEC_DONE(&bench->facts.kernels.at[i].stalls);
	}
	bench_done(bench);
}
