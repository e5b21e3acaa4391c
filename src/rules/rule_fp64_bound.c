#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* ncu's HighPipeUtilization: from 60 % a pipe is highly used, above 80 % it is
 * the bottleneck. doc/rules/fp64_bound.md */
static const double FP64_HIGH_PCT = 60;
static const double FP64_FULL_PCT = 80;
/* "Throughput of Native Arithmetic Instructions", CUDA C++ Programming Guide:
 * FP32 is at least twice as fast as FP64 on every NVIDIA GPU. */
static const double FP32_GAIN = 2;

static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];

	return kernel->has_counters && kernel_bound_by(kernel, BOUND_COMPUTE, "fp64") &&
	       kernel->counters.fp64_pct >= FP64_HIGH_PCT;
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const char *where = kernel_where(facts, kernel, findings);
	double fp64_pct = kernel->counters.fp64_pct;
	struct finding *finding =
		kernel_finding(facts, rule, index,
			       fp64_pct >= FP64_FULL_PCT ? SEVERITY_WARN : SEVERITY_NOTE, findings);
	struct unit_text share;

	finding->claim = finding_text(
		findings,
		_("%s calculates in double precision and keeps the FP64 pipe busy for %s of what "
		  "it can do: that pipe sets its pace."),
		where, units_share(&share, fp64_pct / 100));
	kernel_impact(facts, kernel, finding, 1 - 1 / FP32_GAIN);
	kernel_numbers(kernel, finding, where);
	finding_evidence(finding, "counters.fp64_pct", fp64_pct, "%", where);
	finding_advice(finding,
		       _("If the results needn't be doubles, calculate in float: at least twice "
			 "the rate, and many times on GPUs that are not made for FP64"));
	finding_advice(finding,
		       _("Look for doubles nobody asked for: constants like 0.5 instead of 0.5f, "
			 "sqrt() instead of sqrtf(), numpy arrays that are float64 by default"));
	finding_advice(finding, _("Keep only the sums in double, and the products in float; or "
				  "use the FP64 tensor cores through cuBLAS"));
	finding_next(finding, _("ncu --section InstructionStats --section SourceCounters: which "
				"lines issue DADD, DMUL and DFMA"));
}

const struct rule rule_fp64_bound = {
	.id = "fp64_bound",
	.title = N_("Double precision limits a kernel"),
	.why = N_("FP64 units are fewer than FP32 units: half as many on data-centre GPUs, one in "
		  "32 or 64 on others."),
	.layer = LAYER_KERNEL,
	.concerns = concerns,
	.tell = tell,
};
