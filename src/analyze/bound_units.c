/*
 * How busy each unit of the chip was. A headline percentage of ncu is the
 * largest of many counters, some of them not disclosed, and mixes units:
 * "SM throughput" counts memory instructions too. So the counters that a
 * headline is made of are read one by one (the breakdown lists of NVIDIA's
 * metrics library for GH100, with the names of other chips) and the headline
 * only where none of them was measured.
 */
#include "analyze/bound.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/i18n.h"

struct unit_counter {
	enum unit_group group;
	const char *unit;
	const char *stem; /* of "STEM.avg.pct_of_peak_sustained_elapsed" */
};

static const struct unit_counter SOURCES[] = {
	{ UNIT_DRAM, "dram", "dram__cycles_active" },
	{ UNIT_DRAM, "dram", "fbpa__dram_sectors" },
	{ UNIT_DRAM, "dram", "gpu__dram_throughput" },
	{ UNIT_DRAM, "dram", "dram__throughput" },
	{ UNIT_L2, "lts", "lts__t_sectors" },
	{ UNIT_L2, "lts", "lts__t_tag_requests" },
	{ UNIT_L2, "lts", "lts__d_sectors" },
	{ UNIT_L2, "lts", "lts__d_atomic_input_cycles_active" },
	{ UNIT_L2, "lts", "lts__d_decomp_input_sectors" },
	{ UNIT_L2, "lts", "lts__d_sectors_fill_device" },
	{ UNIT_L2, "lts", "lts__d_sectors_fill_sysmem" },
	{ UNIT_L2, "lts", "lts__lts2xbar_cycles_active" },
	{ UNIT_L2, "lts", "lts__xbar2lts_cycles_active" },
	{ UNIT_L1, N_("l1tex data pipe"), "l1tex__data_pipe_lsu_wavefronts" },
	{ UNIT_L1, N_("l1tex data pipe"), "l1tex__data_bank_reads" },
	{ UNIT_L1, N_("l1tex data pipe"), "l1tex__data_bank_writes" },
	{ UNIT_L1, N_("l1tex data pipe"), "l1tex__data_pipe_tex_wavefronts" },
	{ UNIT_L1, "l1tex", "l1tex__f_wavefronts" },
	{ UNIT_L1, "l1tex", "l1tex__lsuin_requests" },
	{ UNIT_L1, "l1tex", "l1tex__texin_sm2tex_req_cycles_active" },
	{ UNIT_L1, "l1tex", "l1tex__lsu_writeback_active" },
	{ UNIT_L1, "l1tex", "l1tex__tex_writeback_active" },
	{ UNIT_L1, "l1tex", "l1tex__m_l1tex2xbar_req_cycles_active" },
	{ UNIT_L1, "l1tex", "l1tex__m_xbar2l1tex_read_sectors" },
	{ UNIT_L1, "l1tex", "l1tex__m_xbar2l1tex_read_sectors_mem_dshared" },
	{ UNIT_L1, "tma", "l1tex__tmain_requests" },
	{ UNIT_MIO, "lsu", "sm__inst_executed_pipe_lsu" },
	{ UNIT_MIO, "adu", "sm__inst_executed_pipe_adu" },
	{ UNIT_MIO, "mio", "sm__mio_inst_issued" },
	{ UNIT_MIO, "mio", "sm__mio_pq_read_cycles_active" },
	{ UNIT_MIO, "mio", "sm__mio_pq_write_cycles_active" },
	{ UNIT_MIO, "mio", "sm__mio2rf_writeback_active" },
	{ UNIT_MIO, N_("constant cache"), "idc__request_cycles_active" },
	{ UNIT_MIO, "tex", "sm__inst_executed_pipe_tex" },
	{ UNIT_MIO, "tma", "sm__pipe_tma_cycles_active" },
	{ UNIT_PIPE, "alu", "sm__pipe_alu_cycles_active" },
	{ UNIT_PIPE, "alu", "sm__inst_executed_pipe_alu" },
	{ UNIT_PIPE, "fma", "sm__pipe_fma_cycles_active" },
	{ UNIT_PIPE, "fma", "sm__inst_executed_pipe_fma" },
	{ UNIT_PIPE, "fma", "sm__pipe_fmaheavy_cycles_active" },
	{ UNIT_PIPE, "fp16", "sm__inst_executed_pipe_fp16" },
	{ UNIT_PIPE, "fp64", "sm__pipe_fp64_cycles_active" },
	{ UNIT_PIPE, "fp64", "sm__inst_executed_pipe_fp64" },
	{ UNIT_PIPE, "fp64", "sm__inst_executed_pipe_fp64_op_fp64" },
	{ UNIT_PIPE, "xu", "sm__inst_executed_pipe_xu" },
	{ UNIT_PIPE, "tensor", "sm__pipe_tensor_cycles_active" },
	{ UNIT_PIPE, "tensor", "sm__inst_executed_pipe_tensor" },
	{ UNIT_PIPE, "tensor", "sm__pipe_tensor_op_hmma_cycles_active" },
	{ UNIT_PIPE, "tensor", "sm__pipe_tensor_op_imma_cycles_active" },
	{ UNIT_PIPE, "tensor", "sm__pipe_tensor_op_dmma_cycles_active" },
	{ UNIT_PIPE, "tensor", "sm__pipe_tensor_subpipe_hmma_cycles_active" },
	{ UNIT_PIPE, "tensor", "sm__pipe_tc_cycles_active" },
	{ UNIT_PIPE, "cbu", "sm__inst_executed_pipe_cbu_pred_on_any" },
	{ UNIT_PIPE, "uniform", "sm__inst_executed_pipe_uniform" },
	{ UNIT_ISSUE, N_("issue slots"), "sm__issue_active" },
	{ UNIT_ISSUE, N_("issue slots"), "sm__inst_issued" },
	{ UNIT_ISSUE, N_("issue slots"), "sm__inst_executed" },
	{ UNIT_ISSUE, N_("issue slots"), "smsp__issue_active" },
};

/* Only where a group has none of the above. `active`: a share of the time in
 * which SMs had work, not of the whole. L2 is apart: see read_l2_headline. */
static const struct headline {
	enum unit_group group;
	const char *unit, *name;
	bool active;
} HEADLINES[] = {
	{ UNIT_DRAM, "dram", "GPU Speed Of Light Throughput / DRAM Throughput", false },
	{ UNIT_DRAM, "dram", "GPU Speed Of Light / DRAM Throughput", false },
	{ UNIT_DRAM, "dram", "GPU Speed Of Light / SOL DRAM", false },
	{ UNIT_DRAM, "dram", "GPU Speed Of Light / SOL FB", false },
	{ UNIT_L1, "l1tex", "l1tex__throughput.avg.pct_of_peak_sustained_active", true },
	{ UNIT_L1, "l1tex", "l1tex__throughput.avg.pct_of_peak_sustained_elapsed", false },
	{ UNIT_L1, "l1tex", "GPU Speed Of Light Throughput / L1/TEX Cache Throughput", true },
	{ UNIT_L1, "l1tex", "GPU Speed Of Light / L1/TEX Cache Throughput", true },
	{ UNIT_L1, "l1tex", "GPU Speed Of Light / SOL L1/TEX Cache", true },
	{ UNIT_L1, "l1tex", "GPU Speed Of Light / SOL TEX", true },
	{ UNIT_MIO, "mio", "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed", false },
	{ UNIT_MIO, "mio", "Memory Workload Analysis / Mem Pipes Busy", false },
	{ UNIT_PIPE, "", "sm__instruction_throughput.avg.pct_of_peak_sustained_active", true },
	{ UNIT_PIPE, "", "sm__instruction_throughput.avg.pct_of_peak_sustained_elapsed", false },
	{ UNIT_PIPE, "", "Compute Workload Analysis / SM Busy", true },
	{ UNIT_ISSUE, N_("issue slots"), "smsp__issue_active.avg.pct_of_peak_sustained_active",
	  true },
	{ UNIT_ISSUE, "issue slots", "Compute Workload Analysis / Issue Slots Busy", true },
	{ UNIT_ISSUE, "issue slots", "Scheduler Statistics / One or More Eligible", true },
};

/* Of shared-memory wavefronts among all that pass the data pipe: from half on
 * the pipe is shared memory's. */
static const double SHARED_MEMORY_PART = 0.5;

/* A percentage as a share of the time in which there was work to do. Jittery
 * below a real loss, so only where the loss is one. */
static double rescale(double pct, enum unit_group group, const struct kernel_counters *counters,
		      double any_share)
{
	bool common = group == UNIT_DRAM || group == UNIT_L2;
	double share = common ? any_share : counters->active_share;

	if (isfinite(share) && share > 0 && 1 - share >= BOUND_TAIL_LOSS)
		pct /= share;
	return pct > 100 ? 100 : pct;
}

static void take(struct unit_load *load, double pct, const char *unit, const struct metric_row *row,
		 bool headline)
{
	if (isfinite(load->pct) && pct <= load->pct)
		return;
	load->pct = pct;
	load->unit = unit;
	load->number = (struct number){ row->name, row->value, row->unit };
	load->headline = headline;
}

/* Time in which any SM ran, of the whole. */
static double any_active_share(const struct metric_table *table)
{
	double max = metric_find_value(table, "sm__cycles_active.max");
	double elapsed =
		metric_first(table, (const char *const[]){ "sm__cycles_elapsed.max",
							   "gpc__cycles_elapsed.max", NULL });

	return elapsed > 0 ? fmin(max / elapsed, 1) : NAN;
}

static void read_counters(const struct metric_table *table, const struct kernel_counters *counters,
			  double any_share, struct unit_loads *loads)
{
	for (size_t i = 0; i < sizeof(SOURCES) / sizeof(SOURCES[0]); i++) {
		const struct unit_counter *source = &SOURCES[i];
		const struct metric_row *row;
		char name[128];

		(void)snprintf(name, sizeof(name), "%s.avg.pct_of_peak_sustained_elapsed",
			       source->stem);
		row = metric_row_find(table, name);
		if (row) {
			take(&loads->group[source->group],
			     rescale(row->value, source->group, counters, any_share), source->unit,
			     row, false);
		} else {
			(void)snprintf(name, sizeof(name), "%s.avg.pct_of_peak_sustained_active",
				       source->stem);
			row = metric_row_find(table, name);
			if (row)
				take(&loads->group[source->group], fmin(row->value, 100),
				     source->unit, row, false);
		}
		if (source->group != UNIT_L2)
			continue;
		(void)snprintf(name, sizeof(name), "%s.max.pct_of_peak_sustained_elapsed",
			       source->stem);
		row = metric_row_find(table, name);
		if (row)
			take(&loads->slice, fmin(row->value, 100), "L2 slice", row, false);
	}
}

/*
 * ncu's figure for L2 counts parts that are not disclosed and tops DRAM on a
 * plain copy. It is bounded by the headline of all memory, which does not have
 * those parts; and where DRAM explains that headline, by the busiest unit
 * of the access path ("Mem Busy").
 */
static void read_l2_headline(const struct metric_table *table,
			     const struct kernel_counters *counters, struct unit_loads *loads)
{
	static const double SAME_POINTS = 1; /* rounding of two figures of one page */
	const struct metric_row *row = metric_row_first(
		table, (const char *const[]){ "lts__throughput.avg.pct_of_peak_sustained_elapsed",
					      "GPU Speed Of Light Throughput / L2 Cache Throughput",
					      "GPU Speed Of Light / L2 Cache Throughput",
					      "GPU Speed Of Light / SOL L2 Cache",
					      "GPU Speed Of Light / SOL L2", NULL });
	double dram = loads->group[UNIT_DRAM].pct, memory = counters->memory_pct, pct;

	if (!row || isfinite(loads->group[UNIT_L2].pct))
		return;
	pct = fmin(row->value, 100);
	if (isfinite(memory))
		pct = fmin(pct, memory);
	if (isfinite(memory) && dram >= memory - SAME_POINTS) {
		double busy = metric_first(
			table,
			(const char *const[]){
				"gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_"
				"elapsed",
				"Memory Workload Analysis / Mem Busy", NULL });

		pct = fmin(pct, isfinite(busy) ? busy : dram - SAME_POINTS);
	}
	take(&loads->group[UNIT_L2], fmax(pct, 0), "lts", row, true);
}

/* On Turing and A100 the pipe that FP64 and tensor instructions share. */
static void read_shared_pipe(const struct metric_table *table,
			     const struct kernel_counters *counters, struct unit_loads *loads)
{
	const struct metric_row *row = metric_row_find(
		table, "sm__pipe_shared_cycles_active.avg.pct_of_peak_sustained_elapsed");

	if (row && !isfinite(counters->fp64_pct) && !isfinite(counters->tensor_pct))
		take(&loads->group[UNIT_PIPE], rescale(row->value, UNIT_PIPE, counters, NAN),
		     N_("shared pipe"), row, false);
}

static void read_headlines(const struct metric_table *table, const struct kernel_counters *counters,
			   double any_share, struct unit_loads *loads)
{
	bool counted[UNIT_GROUP_COUNT];

	for (int g = 0; g < UNIT_GROUP_COUNT; g++)
		counted[g] = isfinite(loads->group[g].pct);
	for (size_t i = 0; i < sizeof(HEADLINES) / sizeof(HEADLINES[0]); i++) {
		const struct headline *headline = &HEADLINES[i];
		const struct metric_row *row = metric_row_find(table, headline->name);

		if (!row || counted[headline->group] || isfinite(loads->group[headline->group].pct))
			continue;
		take(&loads->group[headline->group],
		     headline->active ? fmin(row->value, 100)
				      : rescale(row->value, headline->group, counters, any_share),
		     headline->unit, row, headline->group != UNIT_ISSUE);
	}
	read_l2_headline(table, counters, loads);
}

/* Nothing of the SM but its headline, which may mean memory instructions. */
static void read_sm_headline(const struct metric_table *table,
			     const struct kernel_counters *counters, struct unit_loads *loads)
{
	const struct metric_row *row = metric_row_first(
		table,
		(const char *const[]){ "sm__throughput.avg.pct_of_peak_sustained_elapsed",
				       "GPU Speed Of Light Throughput / Compute (SM) Throughput",
				       "GPU Speed Of Light / Compute (SM) Throughput",
				       "GPU Speed Of Light / Compute (SM) [%]",
				       "GPU Speed Of Light Throughput / Compute (SM) [%]",
				       "GPU Speed Of Light / SOL SM", "GPU Speed Of Light / SM [%]",
				       NULL });

	if (row && !isfinite(loads->group[UNIT_PIPE].pct) &&
	    !isfinite(loads->group[UNIT_ISSUE].pct) && !isfinite(loads->group[UNIT_MIO].pct))
		take(&loads->group[UNIT_PIPE], rescale(row->value, UNIT_PIPE, counters, NAN), "",
		     row, true);
}

static void name_shared_memory(const struct metric_table *table, struct unit_load *l1)
{
	double shared = metric_find_value(
		table,
		"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed");
	double all = metric_find_value(
		table, "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed");

	if (!(shared >= 0)) {
		shared = metric_find_value(table, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum");
		all = metric_find_value(table, "l1tex__data_pipe_lsu_wavefronts.sum");
	}
	if (isfinite(l1->pct) && !l1->headline && strcmp(l1->unit, "tma") != 0 &&
	    shared >= SHARED_MEMORY_PART * all)
		l1->unit = N_("shared memory");
}

void unit_loads_read(const struct metric_table *table, const struct kernel_counters *counters,
		     struct unit_loads *ret_loads)
{
	double any_share = any_active_share(table);

	memset(ret_loads, 0, sizeof(*ret_loads));
	for (int g = 0; g < UNIT_GROUP_COUNT; g++)
		ret_loads->group[g].pct = NAN;
	ret_loads->slice.pct = NAN;
	read_counters(table, counters, any_share, ret_loads);
	read_shared_pipe(table, counters, ret_loads);
	read_headlines(table, counters, any_share, ret_loads);
	read_sm_headline(table, counters, ret_loads);
	name_shared_memory(table, &ret_loads->group[UNIT_L1]);
}
