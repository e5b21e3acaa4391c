#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* ncu's CPIStall names a reason from 30 % of the time between two instructions
 * on. doc/rules/barrier_stall.md */
static const double BARRIER_SHARE = 0.30;
/* Most of the waiting. */
static const double BARRIER_WARN_SHARE = 0.50;

static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];

	return kernel->has_counters &&
	       (kernel_bound_by(kernel, BOUND_LATENCY, "sync") ||
		kernel_bound_by(kernel, BOUND_LATENCY, "barrier")) &&
	       kernel_stall(kernel, "barrier") >= BARRIER_SHARE;
}

/* At most what stalled warps spend there, and cycles in which an instruction
 * was issued were not lost. */
static double lost_share(const struct kernel_fact *kernel)
{
	double idle = 1 - kernel->counters.issue_pct / 100;
	double share = kernel_stall(kernel, "barrier");

	return fmin(share, idle); /* of NAN and a number, the number */
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const char *where = kernel_where(facts, kernel, findings);
	double stall = kernel_stall(kernel, "barrier");
	struct finding *finding = kernel_finding(
		facts, rule, index, stall >= BARRIER_WARN_SHARE ? SEVERITY_WARN : SEVERITY_NOTE,
		findings);
	struct unit_text share;

	finding->claim =
		finding_text(findings,
			     _("%s of the waiting of warps in %s is at a barrier of the block "
			       "(__syncthreads): they have arrived, and the slowest warp has not."),
			     units_share(&share, stall), where);
	kernel_impact(facts, kernel, finding, lost_share(kernel));
	kernel_numbers(kernel, finding, where);
	finding_evidence(finding, "stalls.barrier", 100 * stall, "%", where);
	finding_advice(finding, _("Use smaller blocks: fewer warps wait for each other, and the "
				  "warps of other blocks fill the gap"));
	finding_advice(finding,
		       _("Take out barriers that aren't needed: two buffers instead of "
			 "one save every second; within a warp __syncwarp or shuffles do"));
	finding_advice(finding, _("Share out the work before the barrier evenly among the warps"));
	finding_next(finding, _("ncu --section SourceCounters --section WarpStateStats: which "
				"barrier the samples are at"));
}

const struct rule rule_barrier_stall = {
	.id = "barrier_stall",
	.title = N_("Warps wait for each other at a barrier"),
	.why = N_("At a barrier every warp of a block waits for the slowest; with one or two large "
		  "blocks on an SM nothing else can run meanwhile."),
	.layer = LAYER_KERNEL,
	.concerns = concerns,
	.tell = tell,
};
