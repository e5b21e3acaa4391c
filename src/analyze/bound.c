#include "analyze/bound.h"

#include <math.h>
#include <string.h>

/* Marks of ncu's SOLBottleneck rule (2025.3): from 80 a unit is the limit,
 * below 60 none is. OLCF's guide has the same 60. */
const double BOUND_HIGH_PCT = 80, BOUND_BUSY_PCT = 60;
/* ncu's CPIStall names a reason from 30 % of the latency on. */
const double BOUND_STALL_SHARE = 0.3;
/* ncu's Tail rule speaks from 20 % on, WorkloadImbalance from 5 %. */
const double BOUND_TAIL_LOSS = 0.2, BOUND_IDLE_SM_SHARE = 0.05;

/* ncu's SOLBottleneck calls two figures balanced that differ by less. */
static const double BALANCED_POINTS = 10;
/* Where issue slots top, a pipe this close below is what fills them. */
static const double PIPE_NEAR_POINTS = 15;
/* Nearer than this to a threshold a verdict is less sure. */
static const double THRESHOLD_POINTS = 3;
/* ncu's IssueSlotUtilization: below this schedulers starve. */
static const double STARVED_ISSUE_PCT = 60;
/* Counters of shorter kernels are noisy. A launch takes 3.3 to 4.8 us of the host
 * (doc/analysis.md): whether that binds only a timeline can tell. */
static const double SHORT_NS = 5000;
/* One slice is hot if it has twice the mean and more. */
static const double HOT_SLICE_RATIO = 2;
/* With half the SMs idle a full unit of the others is no full card. */
static const double HALF_IDLE_GAIN = 2;

static const enum bound_class CLASS_OF[] = {
	[UNIT_DRAM] = BOUND_DRAM, [UNIT_L2] = BOUND_L2,        [UNIT_L1] = BOUND_L1,
	[UNIT_MIO] = BOUND_L1,    [UNIT_PIPE] = BOUND_COMPUTE, [UNIT_ISSUE] = BOUND_COMPUTE,
};

struct judge {
	const struct metric_table *table;
	struct arena *arena;
	struct bound_fact *bound;
	struct kernel_counters counters;
	struct unit_loads loads;
	struct stall_list stalls;
	const struct unit_load *top, *second; /* NULL; second of another class */
	enum unit_group top_group, second_group;
	enum stall_group stall;
};

static void note(struct judge *judge, const char *text)
{
	*VEC_ADD(&judge->bound->notes) = text;
}

static void number(struct judge *judge, const char *name, double value, const char *unit)
{
	if (isfinite(value))
		*VEC_ADD(&judge->bound->numbers) = (struct number){ name, value, unit };
}

static void number_of(struct judge *judge, const char *const *names)
{
	const struct metric_row *row = metric_row_first(judge->table, names);

	if (row)
		number(judge, row->name, row->value, row->unit);
}
#define NUMBER_OF(judge, ...) number_of(judge, (const char *const[]){ __VA_ARGS__, NULL })

/* Imbalance of SMs as a share of the time: ncu's WorkloadImbalance; NAN. */
static double bound_imbalance(const struct metric_table *table)
{
	double avg = metric_find_value(table, "sm__cycles_active.avg");
	double max = metric_find_value(table, "sm__cycles_active.max");
	double elapsed =
		metric_first(table, (const char *const[]){ "sm__cycles_elapsed.max",
							   "gpc__cycles_elapsed.max", NULL });

	if (!(max > 0) || !isfinite(avg))
		return NAN;
	if (!(elapsed >= max))
		elapsed = max;
	return fmax(1 - avg / max, 0) * max / elapsed;
}

static void find_top(struct judge *judge)
{
	for (int g = 0; g < UNIT_GROUP_COUNT; g++) {
		const struct unit_load *load = &judge->loads.group[g];

		if (!isfinite(load->pct) || (judge->top && load->pct <= judge->top->pct))
			continue;
		judge->top = load;
		judge->top_group = g;
	}
	for (int g = 0; judge->top && g < UNIT_GROUP_COUNT; g++) {
		const struct unit_load *load = &judge->loads.group[g];

		if (!isfinite(load->pct) || CLASS_OF[g] == CLASS_OF[judge->top_group] ||
		    (judge->second && load->pct <= judge->second->pct))
			continue;
		judge->second = load;
		judge->second_group = g;
	}
}

/* Issue slots on top: the pipe that fills them, if one does. */
static void name_pipe(struct judge *judge)
{
	const struct unit_load *pipe = &judge->loads.group[UNIT_PIPE];

	if (judge->top && judge->top_group == UNIT_ISSUE && pipe->unit && *pipe->unit &&
	    (pipe->pct >= BOUND_HIGH_PCT || pipe->pct >= judge->top->pct - PIPE_NEAR_POINTS))
		judge->top = pipe;
}

static void lose(struct judge *judge)
{
	if (judge->bound->grade > GRADE_LOW)
		judge->bound->grade--;
}

/* Where the stalls decide, and few samples are all there is of them. */
static void doubt_stalls(struct judge *judge)
{
	if (!judge->stalls.few)
		return;
	lose(judge);
	note(judge, arena_printf(judge->arena, "few stall samples (%.0f): their shares are rough",
				 judge->stalls.samples));
	judge->bound->next = "ncu --section WarpStateStats (stalls by hardware counters)";
}

static void runner_up(struct judge *judge, const struct unit_load *load, enum unit_group group)
{
	if (!load)
		return;
	judge->bound->runner_up = CLASS_OF[group];
	judge->bound->runner_up_unit = load->unit;
	number(judge, load->number.metric, load->number.value, load->number.unit);
}

static bool near_threshold(double pct)
{
	return fabs(pct - BOUND_HIGH_PCT) < THRESHOLD_POINTS ||
	       fabs(pct - BOUND_BUSY_PCT) < THRESHOLD_POINTS;
}

static void by_throughput(struct judge *judge)
{
	struct bound_fact *bound = judge->bound;
	const struct unit_load *top = judge->top;
	double margin = judge->second ? top->pct - judge->second->pct : 100;

	bound->bound = CLASS_OF[judge->top_group];
	bound->unit = top->unit;
	number(judge, top->number.metric, top->number.value, top->number.unit);
	bound->grade = top->pct >= BOUND_HIGH_PCT ? GRADE_HIGH : GRADE_MEDIUM;
	if (margin < BALANCED_POINTS) {
		note(judge, "two units are nearly as busy: the next limit is close");
		lose(judge);
	}
	if (near_threshold(top->pct) || top->headline)
		lose(judge);
	/* Stalls could have made it a matter of synchronisation. */
	if (judge->top_group == UNIT_MIO)
		doubt_stalls(judge);
	if (top->headline)
		bound->next = "ncu --set full (the breakdown of the throughput figures)";
	runner_up(judge, judge->second, judge->second_group);
}

/* The share that decided is that of the group; then what it is made of most. */
static void stall_numbers(struct judge *judge)
{
	enum stall_group group = judge->stall;

	number(judge, arena_printf(judge->arena, "stall group %s", stall_group_name(group)),
	       100 * judge->stalls.share[group], "%");
	for (size_t i = 0; i < judge->stalls.at.count; i++) {
		const struct stall_share *stall = &judge->stalls.at.at[i];

		if (stall_group_of(stall->reason) != group)
			continue;
		number(judge, arena_printf(judge->arena, "stall share %s", stall->reason),
		       100 * stall->share, "%");
		return;
	}
}

static void by_latency(struct judge *judge)
{
	struct bound_fact *bound = judge->bound;
	double share = judge->stalls.share[judge->stall];

	bound->bound = BOUND_LATENCY;
	bound->grade = judge->counters.issue_pct < STARVED_ISSUE_PCT ? GRADE_HIGH : GRADE_MEDIUM;
	NUMBER_OF(judge, "smsp__issue_active.avg.pct_of_peak_sustained_active",
		  "smsp__issue_active.avg.per_cycle_active",
		  "Scheduler Statistics / One or More Eligible");
	if (!judge->stalls.at.count) {
		bound->unit = "";
		bound->grade = GRADE_LOW;
		bound->next =
			"ncu --section WarpStateStats --section SourceCounters (why warps stall)";
	} else if (share < BOUND_STALL_SHARE) {
		bound->unit = "mixed";
		lose(judge);
		stall_numbers(judge);
		doubt_stalls(judge);
	} else {
		bound->unit = stall_group_name(judge->stall);
		stall_numbers(judge);
		if (fabs(share - BOUND_STALL_SHARE) * 100 < THRESHOLD_POINTS)
			lose(judge);
		doubt_stalls(judge);
	}
	if (judge->top && near_threshold(judge->top->pct))
		lose(judge);
	runner_up(judge, judge->top, judge->top_group);
}

static bool reaches(const struct unit_load *load, double pct)
{
	return load && load->pct >= pct;
}

/* Barriers are executed by a unit of the memory instructions: full of them, it
 * says that warps wait for each other, not that memory is slow. */
static bool is_sync(const struct judge *judge)
{
	return reaches(judge->top, BOUND_BUSY_PCT) && judge->top_group == UNIT_MIO &&
	       judge->stalls.share[STALL_SYNC] >= BOUND_STALL_SHARE &&
	       !reaches(judge->second, BOUND_HIGH_PCT);
}

static double idle_sm_share(const struct judge *judge)
{
	double sms = judge->counters.sms, blocks = judge->counters.blocks;

	return sms > 0 && blocks > 0 && blocks < sms ? 1 - blocks / sms : 0;
}

/* Fewer blocks than SMs is the verdict if filling the card promises more than
 * what holds back the SMs that run. */
static bool is_small_grid(struct judge *judge)
{
	double idle = idle_sm_share(judge), gain, within;
	bool common = judge->top && (judge->top_group == UNIT_DRAM || judge->top_group == UNIT_L2);

	if (idle < BOUND_IDLE_SM_SHARE)
		return false;
	gain = 1 / (1 - idle);
	note(judge,
	     arena_printf(judge->arena, "small grid: %.0f %s on %.0f SMs", judge->counters.blocks,
			  judge->counters.blocks < 1.5 ? "block" : "blocks", judge->counters.sms));
	if (common && reaches(judge->top, BOUND_BUSY_PCT))
		return false;
	if (reaches(judge->top, BOUND_HIGH_PCT))
		return gain >= HALF_IDLE_GAIN;
	within = reaches(judge->top, BOUND_BUSY_PCT) ? 100 / judge->top->pct
						     : 100 / judge->counters.issue_pct;
	return !isfinite(within) || gain >= within;
}

static void by_small_grid(struct judge *judge)
{
	double idle = idle_sm_share(judge);

	judge->bound->bound = BOUND_SMALL_GRID;
	judge->bound->unit = "";
	judge->bound->grade = idle >= 1 - 1 / HALF_IDLE_GAIN ? GRADE_HIGH : GRADE_MEDIUM;
	NUMBER_OF(judge, "launch__grid_size", "Launch Statistics / Grid Size");
	NUMBER_OF(judge, "launch__sm_count", "device__attribute_multiprocessor_count",
		  "Launch Statistics / # SMs");
	judge->bound->runner_up = BOUND_LATENCY;
	judge->bound->runner_up_unit = judge->stalls.at.count ? stall_group_name(judge->stall) : "";
}

/* SMs that ran out of blocks before the others; NAN unknown. *ret_sure: seen in
 * the counters, not concluded from the mean over SMs. */
static double tail_loss(const struct judge *judge, bool *ret_sure)
{
	double imbalance = bound_imbalance(judge->table);

	*ret_sure = isfinite(imbalance);
	return *ret_sure ? imbalance : 1 - judge->counters.active_share;
}

static bool is_tail(struct judge *judge)
{
	bool sure;
	double loss = tail_loss(judge, &sure);
	bool filled = judge->counters.waves >= 1 - BOUND_IDLE_SM_SHARE;

	if (!filled || !(loss >= BOUND_IDLE_SM_SHARE))
		return false;
	for (int g = 0; g < UNIT_GROUP_COUNT; g++) {
		/* What is full over the whole time was not held up by a tail. */
		if (judge->loads.group[g].number.metric &&
		    judge->loads.group[g].number.value >= BOUND_HIGH_PCT)
			return false;
	}
	if (loss >= BOUND_TAIL_LOSS)
		return true;
	if (sure)
		note(judge, arena_printf(judge->arena, "%.0f %% of SM time is lost to uneven work",
					 100 * loss));
	return false;
}

static void by_tail(struct judge *judge)
{
	bool sure;
	double loss = tail_loss(judge, &sure), waves = judge->counters.waves;

	judge->bound->bound = BOUND_TAIL;
	judge->bound->unit = "";
	judge->bound->grade = sure ? GRADE_HIGH : GRADE_LOW;
	if (fabs(loss - BOUND_TAIL_LOSS) * 100 < THRESHOLD_POINTS)
		lose(judge);
	NUMBER_OF(judge, "sm__cycles_active.avg",
		  "GPU Speed Of Light Throughput / SM Active Cycles");
	NUMBER_OF(judge, "sm__cycles_active.max", "sm__cycles_elapsed.max",
		  "GPU Speed Of Light Throughput / Elapsed Cycles");
	NUMBER_OF(judge, "launch__waves_per_multiprocessor", "Launch Statistics / Waves Per SM");
	if (waves > 0 && fabs(1 - waves / ceil(waves) - loss) > BOUND_IDLE_SM_SHARE)
		note(judge,
		     "the part of a wave does not explain it all: blocks may be of unequal length");
	judge->bound->runner_up =
		reaches(judge->top, BOUND_BUSY_PCT) ? CLASS_OF[judge->top_group] : BOUND_LATENCY;
	judge->bound->runner_up_unit = reaches(judge->top, BOUND_BUSY_PCT) ? judge->top->unit : "";
}

/* One address, one slice: visible in the largest of the slices only. */
static bool is_hot_slice(const struct judge *judge)
{
	double mean = judge->loads.group[UNIT_L2].pct;

	return judge->loads.slice.pct >= BOUND_BUSY_PCT &&
	       judge->loads.slice.pct >= HOT_SLICE_RATIO * mean;
}

static void by_hot_slice(struct judge *judge)
{
	const struct unit_load *slice = &judge->loads.slice;

	judge->bound->bound = BOUND_L2;
	judge->bound->unit = slice->unit;
	judge->bound->grade = GRADE_MEDIUM;
	number(judge, slice->number.metric, slice->number.value, slice->number.unit);
	judge->bound->runner_up = BOUND_LATENCY;
	judge->bound->runner_up_unit = judge->stalls.at.count ? stall_group_name(judge->stall) : "";
}

static bool memory_known(const struct judge *judge)
{
	return isfinite(judge->loads.group[UNIT_L1].pct) || isfinite(judge->counters.memory_pct);
}

static bool compute_known(const struct judge *judge)
{
	return isfinite(judge->loads.group[UNIT_PIPE].pct) ||
	       isfinite(judge->loads.group[UNIT_ISSUE].pct);
}

static void decide(struct judge *judge)
{
	if (is_small_grid(judge)) {
		by_small_grid(judge);
	} else if (is_tail(judge)) {
		by_tail(judge);
	} else if (is_sync(judge)) {
		judge->stall = STALL_SYNC;
		by_latency(judge);
	} else if (reaches(judge->top, BOUND_BUSY_PCT)) {
		by_throughput(judge);
	} else if (is_hot_slice(judge)) {
		by_hot_slice(judge);
	} else if (memory_known(judge) && compute_known(judge)) {
		by_latency(judge);
	} else {
		judge->bound->next = "ncu --set full (too few metrics for a verdict)";
	}
	if (judge->counters.duration_ns < SHORT_NS && judge->bound->grade > GRADE_LOW) {
		judge->bound->grade = GRADE_LOW;
		note(judge,
		     "shorter than 5 us: counters are noisy, and a launch costs the host as much");
	}
}

void bound_decide(const struct metric_table *table, struct arena *arena,
		  struct bound_fact *ret_bound)
{
	struct judge judge = { .table = table, .arena = arena, .bound = ret_bound };

	memset(ret_bound, 0, sizeof(*ret_bound));
	ret_bound->unit = ret_bound->runner_up_unit = ret_bound->next = "";
	kernel_counters_read(table, &judge.counters);
	unit_loads_read(table, &judge.counters, &judge.loads);
	stall_list_read(table, &judge.stalls);
	for (int g = 0; g < STALL_OTHER; g++) {
		if (judge.stalls.share[g] > judge.stalls.share[judge.stall])
			judge.stall = g;
	}
	find_top(&judge);
	name_pipe(&judge);
	decide(&judge);
	stall_list_done(&judge.stalls);
}
