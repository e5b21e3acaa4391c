#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* Half of the SMs without a block: more than scheduling can make up for.
 * doc/rules/small_grid.md */
static const double WARN_IDLE_SHARE = 0.50;

/* As ngettext counts: as it is shown, 1.2 blocks (a median) are 1. */
static unsigned long plural_of(double count)
{
	return count >= 0 && count < 1e9 ? (unsigned long)llround(count) : 2;
}

static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];

	return kernel->has_counters && kernel_bound_by(kernel, BOUND_SMALL_GRID, NULL) &&
	       kernel->counters.blocks > 0 && kernel->counters.blocks < kernel->counters.sms;
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;
	const char *where = kernel_where(facts, kernel, findings);
	struct finding *finding =
		kernel_finding(facts, rule, index,
			       1 - kernel->counters.blocks / kernel->counters.sms >= WARN_IDLE_SHARE
				       ? SEVERITY_WARN
				       : SEVERITY_NOTE,
			       findings);
	struct unit_text share;

	finding->claim = finding_text(
		findings,
		ngettext("%s runs %.0f block on a GPU of %.0f SMs: %s of them have nothing to do, "
			 "though nvidia-smi shows 100 %% while it runs.",
			 "%s runs %.0f blocks on a GPU of %.0f SMs: %s of them have nothing to do, "
			 "though nvidia-smi shows 100 %% while it runs.",
			 plural_of(counters->blocks)),
		where, counters->blocks, counters->sms,
		units_share(&share, 1 - counters->blocks / counters->sms));
	kernel_impact(facts, kernel, finding, 1 - counters->blocks / counters->sms);
	finding_evidence(finding, "launch__grid_size", counters->blocks, "", where);
	finding_evidence(finding, "launch__sm_count", counters->sms, "", where);
	kernel_numbers(kernel, finding, where);
	finding_advice(finding, _("Split the work into more blocks: at least one, better several "
				  "for each SM; smaller tiles, or split the reduction (split-K)"));
	finding_advice(finding, _("If there is no more work, run such kernels beside others: "
				  "several streams, a CUDA graph, or a larger batch"));
	finding_next(finding, _("sonde report --layer timeline: how much of the run such kernels "
				"take"));
}

const struct rule rule_small_grid = {
	.id = "small_grid",
	.title = N_("A kernel leaves most of the GPU empty"),
	.why = N_("A thread block runs on one SM; a grid with fewer blocks than SMs cannot use the "
		  "others."),
	.layer = LAYER_KERNEL,
	.concerns = concerns,
	.tell = tell,
};
