#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* Below half of the warps that fit, latency has few others to hide behind:
 * step 5 of doc/bound.md. Low occupancy alone is no fault: a kernel that fills
 * its pipe at 22 % is fine. doc/rules/low_occupancy.md */
static const double OCCUPANCY_LOW_PCT = 50;

static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];

	return kernel->has_counters &&
	       (kernel_bound_by(kernel, BOUND_LATENCY, "memory") ||
		kernel_bound_by(kernel, BOUND_LATENCY, "dependency")) &&
	       kernel->counters.theoretical_occupancy_pct < OCCUPANCY_LOW_PCT;
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;
	const char *where = kernel_where(facts, kernel, findings);
	struct finding *finding = kernel_finding(facts, rule, index, SEVERITY_NOTE, findings);
	struct unit_text share;
	const char *limiter = counters->occupancy_limiter;

	finding->claim = finding_text(
		findings,
		_("%s waits for latency, and at most %s of the warps that an SM can hold are there "
		  "to hide it; the limit is %s."),
		where, units_share(&share, counters->theoretical_occupancy_pct / 100),
		limiter ? limiter : _("not told by the file"));
	kernel_impact(facts, kernel, finding, 1 - counters->theoretical_occupancy_pct / 100);
	kernel_numbers(kernel, finding, where);
	finding_evidence(finding, "sm__maximum_warps_per_active_cycle_pct",
			 counters->theoretical_occupancy_pct, "%", where);
	finding_advice(finding, _("Ease the limit that is named: fewer registers "
				  "(__launch_bounds__, watch for spills), less shared memory a "
				  "block, another block size"));
	finding_advice(finding, _("Or need fewer warps: several independent loads in flight for "
				  "each thread (unrolling, asynchronous copies)"));
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
