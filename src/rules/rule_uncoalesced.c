#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* A fifth of the sectors thrown away: "waste modifiers" of doc/bound.md.
 * doc/rules/uncoalesced.md */
static const double EXCESS_SHARE = 0.20;
static const double EXCESS_WARN_SHARE = 0.50;

/* Only where the memory path is what the kernel waits for. */
static bool waits_for_memory(const struct kernel_fact *kernel)
{
	return kernel_bound_by(kernel, BOUND_DRAM, NULL) ||
	       kernel_bound_by(kernel, BOUND_L2, NULL) || kernel_bound_by(kernel, BOUND_L1, NULL) ||
	       kernel_bound_by(kernel, BOUND_LATENCY, "memory");
}

static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];

	return kernel->has_counters && waits_for_memory(kernel) &&
	       kernel->counters.excess_sector_share >= EXCESS_SHARE;
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;
	const char *where = kernel_where(facts, kernel, findings);
	struct finding *finding = kernel_finding(
		facts, rule, index,
		kernel->counters.excess_sector_share >= EXCESS_WARN_SHARE ? SEVERITY_WARN
									  : SEVERITY_NOTE,
		findings);
	struct unit_text share;

	finding->claim = finding_text(
		findings,
		_("%s of the 32-byte sectors that %s asks for carry nothing it uses: neighbouring "
		  "threads access addresses that do not lie side by side."),
		units_share(&share, counters->excess_sector_share), where);
	kernel_impact(facts, kernel, finding, counters->excess_sector_share);
	kernel_numbers(kernel, finding, where);
	finding_evidence(finding, "counters.excess_sector_share",
			 100 * counters->excess_sector_share, "%", where);
	if (isfinite(counters->sectors_per_request_load))
		finding_evidence(finding, "counters.sectors_per_request_load",
				 counters->sectors_per_request_load, "sectors", where);
	finding_advice(finding, _("Let thread i of a warp access element i: swap loops or indices, "
				  "or lay the data out as a structure of arrays"));
	finding_advice(finding, _("Where the order is given, read rows into shared memory "
				  "coalesced and take them from there in the other order"));
	finding_advice(finding, _("Then widen the accesses (float4): fewer requests for the same "
				  "bytes"));
	finding_next(finding, _("ncu --section SourceCounters --section MemoryWorkloadAnalysis: "
				"which lines have excess sectors"));
}

const struct rule rule_uncoalesced = {
	.id = "uncoalesced",
	.title = N_("Loads ask for sectors that are thrown away"),
	.why = N_("Memory moves in sectors of 32 bytes. A full warp needs 4 sectors for 32-bit "
		  "accesses, 8 for 64-bit and 16 for 128-bit; scattered addresses cost up to one a "
		  "thread."),
	.layer = LAYER_KERNEL,
	.concerns = concerns,
	.tell = tell,
};
