#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* Below half of the warps that fit, latency has few others to hide behind:
 * step 5 of doc/bound.md. Low occupancy alone is no fault: a kernel that fills
 * its pipe at 22 % is fine. doc/rules/low_occupancy.md */
static const double OCCUPANCY_LOW_PCT = 50;
/* Below this part of what fits the limit is not what fits, but what comes: the
 * grid, or blocks that end early. Step 5 of doc/bound.md; ncu's
 * IssueSlotUtilization has the same. */
static const double ACHIEVED_PART = 0.8;

enum shortage {
	SHORTAGE_NONE,
	SHORTAGE_LIMIT,  /* no more fit */
	SHORTAGE_GRID,   /* the grid has no more blocks */
	SHORTAGE_UNEVEN, /* there were, and places stand empty */
	SHORTAGE_UNKNOWN,
};

static enum shortage shortage_of(const struct kernel_counters *counters)
{
	double fits = counters->theoretical_occupancy_pct;
	double achieved = counters->achieved_occupancy_pct;

	if (achieved < OCCUPANCY_LOW_PCT && achieved < ACHIEVED_PART * fits) {
		if (counters->waves < 1)
			return SHORTAGE_GRID;
		return counters->waves >= 1 ? SHORTAGE_UNEVEN : SHORTAGE_UNKNOWN;
	}
	return fits < OCCUPANCY_LOW_PCT ? SHORTAGE_LIMIT : SHORTAGE_NONE;
}

static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];

	return kernel->has_counters &&
	       (kernel_bound_by(kernel, BOUND_LATENCY, "memory") ||
		kernel_bound_by(kernel, BOUND_LATENCY, "dependency")) &&
	       shortage_of(&kernel->counters) != SHORTAGE_NONE;
}

static const char *claim(const struct kernel_counters *counters, enum shortage shortage,
			 const char *where, struct findings *findings)
{
	const char *limiter = counters->occupancy_limiter;
	struct unit_text achieved, fits, waves;

	if (shortage == SHORTAGE_LIMIT)
		return finding_text(
			findings,
			_("%s waits for latency, and at most %s of the warps that an SM can hold "
			  "are there "
			  "to hide it; the limit is %s."),
			where, units_share(&fits, counters->theoretical_occupancy_pct / 100),
			limiter ? limiter : _("not told by the file"));
	(void)units_share(&achieved, counters->achieved_occupancy_pct / 100);
	(void)units_share(&fits, counters->theoretical_occupancy_pct / 100);
	if (shortage == SHORTAGE_GRID)
		return finding_text(
			findings,
			_("%s waits for latency with %s of the warps that an SM can hold, though "
			  "%s would fit: its blocks fill only %s of the places on the GPU."),
			where, achieved.at, fits.at, units_share(&waves, counters->waves));
	if (shortage == SHORTAGE_UNEVEN)
		return finding_text(
			findings,
			_("%s waits for latency with %s of the warps that an SM can hold, though "
			  "%s would fit. There are blocks enough (%.2f waves): warps or blocks end "
			  "early and leave their places empty."),
			where, achieved.at, fits.at, counters->waves);
	return finding_text(findings,
			    _("%s waits for latency with %s of the warps that an SM can hold, "
			      "though %s would fit: the grid is too small, or blocks end early."),
			    where, achieved.at, fits.at);
}

static void advise(struct finding *finding, enum shortage shortage)
{
	if (shortage == SHORTAGE_LIMIT)
		finding_advice(finding, _("Ease the limit that is named: fewer registers "
					  "(__launch_bounds__, watch for spills), less shared "
					  "memory a "
					  "block, another block size"));
	if (shortage == SHORTAGE_GRID || shortage == SHORTAGE_UNKNOWN)
		finding_advice(finding,
			       _("Start more threads: a warp or a block for the row or chain that "
				 "one thread works on now, and parts of it side by side"));
	if (shortage == SHORTAGE_UNEVEN || shortage == SHORTAGE_UNKNOWN) {
		finding_advice(finding, _("Share the work out evenly: among the warps of a block, "
					  "and long blocks first; or let blocks that stay take "
					  "work until none is left"));
		finding_advice(finding, _("If blocks are very short, give each more to do: "
					  "starting one takes time in which its place is empty"));
	}
	finding_advice(finding, _("Or need fewer warps: several independent loads in flight for "
				  "each thread (unrolling, asynchronous copies)"));
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;
	enum shortage shortage = shortage_of(counters);
	const char *where = kernel_where(facts, kernel, findings);
	struct finding *finding = kernel_finding(facts, rule, index, SEVERITY_NOTE, findings);
	double there = shortage == SHORTAGE_LIMIT ? counters->theoretical_occupancy_pct
						  : counters->achieved_occupancy_pct;

	finding->claim = claim(counters, shortage, where, findings);
	/* More warps help until the busiest unit is full. */
	kernel_impact(facts, kernel, finding,
		      1 - fmax(there, fmax(counters->sm_pct, counters->memory_pct)) / 100);
	if (isfinite(counters->theoretical_occupancy_pct))
		finding_evidence(finding, "sm__maximum_warps_per_active_cycle_pct",
				 counters->theoretical_occupancy_pct, "%", where);
	if (isfinite(counters->achieved_occupancy_pct))
		finding_evidence(finding, "sm__warps_active.avg.pct_of_peak_sustained_active",
				 counters->achieved_occupancy_pct, "%", where);
	if (isfinite(counters->waves))
		finding_evidence(finding, "launch__waves_per_multiprocessor", counters->waves, "",
				 where);
	kernel_numbers(kernel, finding, where);
	advise(finding, shortage);
	finding_next(finding, _("ncu --section Occupancy --section WarpStateStats"));
}

const struct rule rule_low_occupancy = {
	.id = "low_occupancy",
	.title = N_("Too few warps to hide latency"),
	.why = N_("An SM hides the wait of one warp behind the work of others; with few resident "
		  "warps it stands still. This counts only where latency is what binds."),
	.layer = LAYER_KERNEL,
	.concerns = concerns,
	.tell = tell,
};
