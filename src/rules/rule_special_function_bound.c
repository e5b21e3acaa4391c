#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* ncu's HighPipeUtilization: from 60 % a pipe is highly used, above 80 % it is
 * the bottleneck. doc/rules/special_function_bound.md */
static const double XU_HIGH_PCT = 60;
static const double XU_FULL_PCT = 80;

static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];

	return kernel->has_counters && kernel_bound_by(kernel, BOUND_COMPUTE, NULL) &&
	       (kernel->counters.xu_pct >= XU_HIGH_PCT ||
		(kernel->counters.xu_pct > 0 && kernel_bound_by(kernel, BOUND_COMPUTE, "xu")));
}

/* What is next to bind when the special functions are gone. */
static double next_pct(const struct kernel_counters *counters)
{
	const double others[] = { counters->issue_pct, counters->fma_pct,    counters->alu_pct,
				  counters->fp64_pct,  counters->memory_pct, counters->tensor_pct };
	double most = NAN;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		most = fmax(most, others[i]);
	return most;
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const char *where = kernel_where(facts, kernel, findings);
	double xu_pct = kernel->counters.xu_pct;
	struct finding *finding =
		kernel_finding(facts, rule, index,
			       xu_pct >= XU_FULL_PCT ? SEVERITY_WARN : SEVERITY_NOTE, findings);
	struct unit_text share;

	finding->claim = finding_text(
		findings,
		_("%s keeps the unit for special functions busy for %s of what it can do. It does "
		  "exp, log, sin, square roots, divisions and conversions of types, at a fraction "
		  "of the rate of a multiplication."),
		where, units_share(&share, xu_pct / 100));
	kernel_impact(facts, kernel, finding, 1 - next_pct(&kernel->counters) / xu_pct);
	kernel_numbers(kernel, finding, where);
	finding_evidence(finding, "counters.xu_pct", xu_pct, "%", where);
	finding_advice(finding,
		       _("Do fewer of them: take them out of the inner loop, multiply by a "
			 "reciprocal computed once, write small whole powers as products"));
	finding_advice(finding, _("Where the precision allows it, use the fast forms (__expf, "
				  "__fdividef, -use_fast_math) or a short polynomial, which runs "
				  "on the multiply-add pipe"));
	finding_advice(finding, _("Convert between integer, half and double less often: those "
				  "conversions run on the same unit"));
	finding_next(finding, _("ncu --section InstructionStats --section SourceCounters: which "
				"lines issue MUFU and conversion instructions"));
}

const struct rule rule_special_function_bound = {
	.id = "special_function_bound",
	.title = N_("Special functions limit a kernel"),
	.why = N_("Each SM has few units for exp, log, sin, roots and conversions; a kernel with "
		  "many of them waits for those units."),
	.layer = LAYER_KERNEL,
	.concerns = concerns,
	.tell = tell,
};
