/*
 * Fractions and ratios for the kernel rules, each from the first of the ways
 * in which a file may have it.
 */
#include "analyze/bound.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FIRST(table, ...) metric_first(table, (const char *const[]){ __VA_ARGS__, NULL })
#define ELAPSED           ".avg.pct_of_peak_sustained_elapsed"
#define SOL               "GPU Speed Of Light Throughput / "
#define OLD_SOL           "GPU Speed Of Light / "

enum { SECTOR_BYTES = 32 };

static double ratio(double part, double whole)
{
	return whole > 0 && isfinite(part) ? part / whole : NAN;
}

static double clamp_share(double share)
{
	return share < 0 ? 0 : share > 1 ? 1 : share;
}

static void read_headline(const struct metric_table *table, struct kernel_counters *c)
{
	double issue = FIRST(table, "smsp__issue_active.avg.per_cycle_active",
			     "Scheduler Statistics / Issued Warp Per Scheduler");

	c->duration_ns = FIRST(table, "gpu__time_duration.sum", "gpu__time_duration.avg",
			       "gpu__time_duration.max", SOL "Duration", OLD_SOL "Duration");
	c->sm_pct = FIRST(table, "sm__throughput" ELAPSED, SOL "Compute (SM) Throughput",
			  SOL "Compute (SM) [%]", OLD_SOL "Compute (SM) Throughput",
			  OLD_SOL "Compute (SM) [%]", OLD_SOL "SOL SM", OLD_SOL "SM [%]");
	c->memory_pct =
		FIRST(table, "gpu__compute_memory_throughput" ELAPSED, SOL "Memory Throughput",
		      SOL "Memory [%]", OLD_SOL "Memory Throughput", OLD_SOL "Memory [%]");
	c->issue_pct = FIRST(table, "smsp__issue_active.avg.pct_of_peak_sustained_active",
			     "Scheduler Statistics / One or More Eligible");
	if (!isfinite(c->issue_pct))
		c->issue_pct = 100 * issue;
	if (!isfinite(c->issue_pct))
		c->issue_pct = FIRST(table, "Compute Workload Analysis / Issue Slots Busy",
				     "sm__inst_issued.avg.pct_of_peak_sustained_active");
	c->warp_latency_cycles =
		FIRST(table, "smsp__average_warp_latency_per_inst_issued.ratio",
		      "Warp State Statistics / Warp Cycles Per Issued Instruction");
}

static void read_occupancy(const struct metric_table *table, struct kernel_counters *c)
{
	double limit[] = {
		FIRST(table, "launch__occupancy_limit_registers",
		      "Occupancy / Block Limit Registers"),
		FIRST(table, "launch__occupancy_limit_shared_mem",
		      "Occupancy / Block Limit Shared Mem"),
		FIRST(table, "launch__occupancy_limit_blocks", "Occupancy / Block Limit SM"),
		FIRST(table, "launch__occupancy_limit_warps", "Occupancy / Block Limit Warps"),
	};
	static const char *const names[] = { "registers", "shared memory", "blocks", "warps" };
	double least = NAN;

	c->achieved_occupancy_pct =
		FIRST(table, "sm__warps_active.avg.pct_of_peak_sustained_active",
		      "Occupancy / Achieved Occupancy");
	c->theoretical_occupancy_pct = FIRST(table, "sm__maximum_warps_per_active_cycle_pct",
					     "Occupancy / Theoretical Occupancy");
	c->occupancy_limiter = NULL;
	for (size_t i = 0; i < 4; i++) {
		if (isfinite(limit[i]) && !(limit[i] >= least)) {
			least = limit[i];
			c->occupancy_limiter = names[i];
		}
	}
	c->waves = FIRST(table, "launch__waves_per_multiprocessor",
			 "Launch Statistics / Waves Per SM");
	c->blocks = FIRST(table, "launch__grid_size", "Launch Statistics / Grid Size");
	c->sms = FIRST(table, "launch__sm_count", "device__attribute_multiprocessor_count",
		       "Launch Statistics / # SMs");
	c->active_share = ratio(FIRST(table, "sm__cycles_active.avg", SOL "SM Active Cycles",
				      OLD_SOL "SM Active Cycles"),
				FIRST(table, "sm__cycles_elapsed.max", "gpc__cycles_elapsed.max",
				      SOL "Elapsed Cycles", OLD_SOL "Elapsed Cycles"));
	c->active_share = isfinite(c->active_share) ? clamp_share(c->active_share) : NAN;
}

/* Sectors more than the accesses need, by ncu's own count or by the bytes that
 * were used of each sector. */
static void read_sectors(const struct metric_table *table, struct kernel_counters *c)
{
	double ld = FIRST(table, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum");
	double st = FIRST(table, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum");
	double used_ld =
		FIRST(table, "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio");
	double used_st =
		FIRST(table, "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio");
	double all = FIRST(table, "memory_l2_theoretical_sectors_global");
	double ideal = FIRST(table, "memory_l2_theoretical_sectors_global_ideal");
	double excess = FIRST(table, "derived__memory_l2_theoretical_sectors_global_excessive");

	c->sectors_per_request_load =
		ratio(ld, FIRST(table, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"));
	c->sectors_per_request_store =
		ratio(st, FIRST(table, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"));
	c->ideal_sectors_load =
		used_ld > 0 ? c->sectors_per_request_load * fmin(used_ld / SECTOR_BYTES, 1) : NAN;
	c->ideal_sectors_store =
		used_st > 0 ? c->sectors_per_request_store * fmin(used_st / SECTOR_BYTES, 1) : NAN;
	c->excess_sector_share = NAN;
	if (all > 0 && isfinite(ideal))
		c->excess_sector_share = clamp_share(1 - ideal / all);
	else if (all > 0 && isfinite(excess))
		c->excess_sector_share = clamp_share(excess / all);
	else if (ld + st > 0 && (!(ld > 0) || used_ld > 0) && (!(st > 0) || used_st > 0))
		c->excess_sector_share =
			clamp_share(((ld > 0 ? ld * (1 - used_ld / SECTOR_BYTES) : 0) +
				     (st > 0 ? st * (1 - used_st / SECTOR_BYTES) : 0)) /
				    (ld + st));
	if (!isfinite(c->excess_sector_share))
		c->excess_sector_share = FIRST(table, "UncoalescedGlobalAccess excess") / 100;
}

static void read_memory(const struct metric_table *table, struct kernel_counters *c)
{
	double conflicts = FIRST(table, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum");
	double wavefronts = FIRST(table, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum");
	double red = FIRST(table, "lts__t_requests_srcunit_tex_op_red.sum",
			   "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum");
	double atom = FIRST(table, "lts__t_requests_srcunit_tex_op_atom.sum",
			    "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum");
	double l1 = FIRST(table, "l1tex__t_sectors.sum", "SM_B.TriageCompute.l1tex__t_sectors.sum");
	double local_ld = FIRST(table, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum");
	double local_st = FIRST(table, "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum");

	c->bank_conflict_share = ratio(conflicts, wavefronts);
	if (!isfinite(c->bank_conflict_share))
		c->bank_conflict_share =
			1 - ratio(FIRST(table, "memory_l1_wavefronts_shared_ideal"),
				  FIRST(table, "memory_l1_wavefronts_shared"));
	if (isfinite(c->bank_conflict_share))
		c->bank_conflict_share = clamp_share(c->bank_conflict_share);
	c->local_share = ratio(
		(isfinite(local_ld) ? local_ld : 0) + (isfinite(local_st) ? local_st : 0), l1);
	if (!isfinite(local_ld) && !isfinite(local_st))
		c->local_share = NAN;
	c->l1_hit_pct = FIRST(table, "l1tex__t_sector_hit_rate.pct",
			      "Memory Workload Analysis / L1/TEX Hit Rate");
	c->l2_hit_pct = FIRST(table, "lts__t_sector_hit_rate.pct",
			      "Memory Workload Analysis / L2 Hit Rate");
	c->atomic_share = NAN;
	if (isfinite(red) || isfinite(atom))
		c->atomic_share = ratio(
			(isfinite(red) ? red : 0) + (isfinite(atom) ? atom : 0),
			FIRST(table, "lts__t_requests_srcunit_tex.sum", "lts__t_requests.sum"));
	c->dram_bytes = FIRST(table, "dram__bytes_read.sum", "dram__bytes_op_read.sum") +
			FIRST(table, "dram__bytes_write.sum", "dram__bytes_op_write.sum");
	c->l2_bytes = FIRST(table, "lts__t_bytes.sum");
	if (!isfinite(c->l2_bytes))
		c->l2_bytes = SECTOR_BYTES * FIRST(table, "lts__t_sectors.sum");
	c->l1_bytes = FIRST(table, "l1tex__t_bytes.sum");
	if (!isfinite(c->l1_bytes))
		c->l1_bytes = SECTOR_BYTES * l1;
}

/* What each byte that came into the SMs is read from shared memory. A pass reads
 * up to 128 bytes; repeats by conflicts of banks read nothing new. Copies past the
 * registers (cp.async, TMA) are no loads, hence the bytes that crossed from L2. */
static void read_shared(const struct metric_table *table, struct kernel_counters *c)
{
	enum { PASS_BYTES = 128 };
	double passes = FIRST(table, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum");
	double repeats = FIRST(table, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum");
	double crossed = FIRST(table, "l1tex__m_xbar2l1tex_read_bytes.sum");
	double loaded =
		SECTOR_BYTES * FIRST(table, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum");

	c->shared_reread = NAN;
	if (isfinite(crossed) && isfinite(loaded))
		c->shared_reread = ratio(PASS_BYTES * (passes - repeats), fmax(crossed, loaded));
}

static void read_pipes(const struct metric_table *table, struct kernel_counters *c)
{
	double add = FIRST(table,
			   "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed");
	double mul = FIRST(table,
			   "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed");
	double fma = FIRST(table,
			   "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed");

	c->threads_per_instruction =
		FIRST(table, "smsp__thread_inst_executed_per_inst_executed.ratio",
		      "Warp State Statistics / Avg. Active Threads Per Warp");
	c->fp64_pct = FIRST(table, "sm__pipe_fp64_cycles_active" ELAPSED,
			    "sm__inst_executed_pipe_fp64" ELAPSED,
			    "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active");
	c->xu_pct = FIRST(table, "sm__inst_executed_pipe_xu" ELAPSED,
			  "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active");
	c->fma_pct = FIRST(table, "sm__pipe_fma_cycles_active" ELAPSED,
			   "sm__inst_executed_pipe_fma" ELAPSED);
	c->alu_pct = FIRST(table, "sm__pipe_alu_cycles_active" ELAPSED,
			   "sm__inst_executed_pipe_alu" ELAPSED);
	c->tensor_pct = FIRST(table, "sm__pipe_tensor_cycles_active" ELAPSED,
			      "sm__inst_executed_pipe_tensor" ELAPSED);
	c->lsu_pct = FIRST(table, "sm__inst_executed_pipe_lsu" ELAPSED);
	/* ncu's FPInstructions: two of them become one, so half of them can go. */
	c->fp32_unfused_share = ratio(add + mul, add + mul + fma) / 2;
}

void kernel_counters_read(const struct metric_table *table, struct kernel_counters *ret_counters)
{
	struct unit_loads loads;

	memset(ret_counters, 0, sizeof(*ret_counters));
	read_headline(table, ret_counters);
	read_occupancy(table, ret_counters);
	read_sectors(table, ret_counters);
	read_memory(table, ret_counters);
	read_shared(table, ret_counters);
	read_pipes(table, ret_counters);
	unit_loads_read(table, ret_counters, &loads);
	ret_counters->dram_pct =
		loads.group[UNIT_DRAM].number.metric ? loads.group[UNIT_DRAM].number.value : NAN;
	ret_counters->l2_pct = loads.group[UNIT_L2].pct;
	ret_counters->l1_pct =
		loads.group[UNIT_L1].number.metric ? loads.group[UNIT_L1].number.value : NAN;
	ret_counters->slice_max_pct = loads.slice.pct;
	ret_counters->slice_avg_pct =
		loads.group[UNIT_L2].number.metric ? loads.group[UNIT_L2].number.value : NAN;
}
