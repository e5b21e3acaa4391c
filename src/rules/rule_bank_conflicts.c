#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* ncu's SharedMemoryConflicts: conflicts / wavefronts from a tenth on.
 * doc/rules/bank_conflicts.md */
static const double CONFLICT_SHARE = 0.10;
static const double CONFLICT_WARN_SHARE = 0.50;

/* Conflicts cost nothing where the shared memory path is not what binds. */
static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];

	return kernel->has_counters &&
	       (kernel_bound_by(kernel, BOUND_L1, NULL) ||
		kernel_bound_by(kernel, BOUND_LATENCY, "shared")) &&
	       kernel->counters.bank_conflict_share >= CONFLICT_SHARE;
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;
	const char *where = kernel_where(facts, kernel, findings);
	struct finding *finding = kernel_finding(
		facts, rule, index,
		kernel->counters.bank_conflict_share >= CONFLICT_WARN_SHARE ? SEVERITY_WARN
									    : SEVERITY_NOTE,
		findings);
	struct unit_text share;

	finding->claim = finding_text(
		findings,
		_("%s of the passes over shared memory in %s are repeats: threads of a warp hit "
		  "different words of the same bank."),
		units_share(&share, counters->bank_conflict_share), where);
	kernel_impact(facts, kernel, finding, counters->bank_conflict_share);
	kernel_numbers(kernel, finding, where);
	finding_evidence(finding, "counters.bank_conflict_share",
			 100 * counters->bank_conflict_share, "%", where);
	finding_advice(finding, _("Pad the rows of the array by one element, or swizzle the index "
				  "(XOR of row and column)"));
	finding_advice(
		finding,
		_("Let neighbouring threads access neighbouring 4-byte words; 8- and 16-byte "
		  "accesses are served in parts of a warp, so count per part"));
	finding_next(finding, _("ncu --section SourceCounters --section MemoryWorkloadAnalysis: "
				"which lines have conflicts"));
}

const struct rule rule_bank_conflicts = {
	.id = "bank_conflicts",
	.title = N_("Bank conflicts slow shared memory"),
	.why = N_("Shared memory has 32 banks of 4 bytes; a warp that hits several words of one "
		  "bank is served once for each."),
	.layer = LAYER_KERNEL,
	.concerns = concerns,
	.tell = tell,
};
