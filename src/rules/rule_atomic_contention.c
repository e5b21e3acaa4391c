#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* With fewer than half of the requests atomic the hot slice may be hot for
 * another reason. doc/rules/atomic_contention.md */
static const double ATOMIC_SHARE = 0.5;
/* ncu's SOLBottleneck: from 60 % of its peak a unit is busy, from 80 % full. */
static const double SLICE_BUSY_PCT = 60;
static const double SLICE_FULL_PCT = 80;
/* Addresses are hashed over the slices: an even load stays far below twice the
 * mean, one address does not. */
static const double SLICE_RATIO = 2;

static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;

	return kernel->has_counters && counters->atomic_share >= ATOMIC_SHARE &&
	       counters->slice_max_pct >= SLICE_BUSY_PCT &&
	       counters->slice_max_pct >= SLICE_RATIO * counters->slice_avg_pct;
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;
	const char *where = kernel_where(facts, kernel, findings);
	struct finding *finding = kernel_finding(
		facts, rule, index,
		counters->slice_max_pct >= SLICE_FULL_PCT ? SEVERITY_WARN : SEVERITY_NOTE,
		findings);
	struct unit_text share, max, avg;

	finding->claim = finding_text(
		findings,
		_("%s of the requests of %s to the L2 cache are atomic operations, and they meet "
		  "in one place: the busiest slice of the cache works at %s of its peak, the "
		  "average slice at %s. Operations on one address are done one after another."),
		units_share(&share, counters->atomic_share), where,
		units_share(&max, counters->slice_max_pct / 100),
		units_share(&avg, counters->slice_avg_pct / 100));
	/* Spread over all slices, the busiest would do what the average does now. */
	kernel_impact(facts, kernel, finding,
		      1 - counters->slice_avg_pct / counters->slice_max_pct);
	kernel_numbers(kernel, finding, where);
	finding_evidence(finding, "counters.slice_max_pct", counters->slice_max_pct, "%", where);
	finding_evidence(finding, "counters.slice_avg_pct", counters->slice_avg_pct, "%", where);
	finding_evidence(finding, "counters.atomic_share", 100 * counters->atomic_share, "%",
			 where);
	finding_advice(finding, _("Add up within the warp (__reduce_add_sync, shuffles) and the "
				  "block (shared memory) first: one atomic operation a block"));
	finding_advice(finding, _("Give each block its own copy of the counter or histogram, and "
				  "add the copies up at the end"));
	finding_advice(finding, _("For sums use the reductions of CUB or of the framework instead "
				  "of atomicAdd"));
	finding_next(finding, _("ncu --section SourceCounters --section MemoryWorkloadAnalysis: "
				"which lines issue ATOM and RED instructions"));
}

const struct rule rule_atomic_contention = {
	.id = "atomic_contention",
	.title = N_("Atomic operations meet at one address"),
	.why = N_("An address lives in one slice of the L2 cache, which does the atomic "
		  "operations on it one by one while the others idle."),
	.layer = LAYER_KERNEL,
	.concerns = concerns,
	.tell = tell,
};
