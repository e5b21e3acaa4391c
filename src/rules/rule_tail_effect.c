#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* ncu's rule Tail speaks from a fifth of the time on. doc/rules/tail_effect.md */
static const double WARN_LOSS = 0.40;

static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];

	return kernel->has_counters && kernel_bound_by(kernel, BOUND_TAIL, NULL) &&
	       kernel->counters.active_share < 1;
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;
	const char *where = kernel_where(facts, kernel, findings);
	struct finding *finding = kernel_finding(
		facts, rule, index,
		1 - kernel->counters.active_share >= WARN_LOSS ? SEVERITY_WARN : SEVERITY_NOTE,
		findings);
	struct unit_text share;

	finding->claim = finding_text(
		findings,
		_("In %s the average SM has no work for %s of the time: the last blocks run alone "
		  "while the others have finished (%.2f waves of blocks)."),
		where, units_share(&share, 1 - counters->active_share), counters->waves);
	kernel_impact(facts, kernel, finding, 1 - counters->active_share);
	kernel_numbers(kernel, finding, where);
	finding_evidence(finding, "counters.active_share", 100 * counters->active_share, "%",
			 where);
	if (isfinite(counters->waves))
		finding_evidence(finding, "launch__waves_per_multiprocessor", counters->waves,
				 "waves", where);
	finding_advice(finding,
		       _("Choose a grid that fills whole waves, or more and smaller blocks, "
			 "so that the last wave is short"));
	finding_advice(finding, _("A persistent kernel (as many blocks as fit, each taking work "
				  "until none is left) has no last wave"));
	finding_advice(finding, _("If blocks take unequal time, start the long ones first"));
	finding_next(finding, _("ncu --section LaunchStats --section Occupancy: waves, and what "
				"limits the blocks on an SM"));
}

const struct rule rule_tail_effect = {
	.id = "tail_effect",
	.title = N_("The last blocks of a kernel run alone"),
	.why = N_("A grid runs in waves of as many blocks as fit; a partly filled last wave, or a "
		  "few long blocks, leave the other SMs idle."),
	.layer = LAYER_KERNEL,
	.concerns = concerns,
	.tell = tell,
};
