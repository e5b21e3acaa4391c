#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* ncu's ThreadDivergence: fewer than 24 of the 32 threads of a warp take part
 * in the average instruction. doc/rules/divergence.md */
static const double THREADS_LEAST = 24;
static const double WARP_THREADS = 32;
/* Half of the warp idle. */
static const double THREADS_FEW = 16;

/* Threads in the average warp of a block as it was launched: a block that is
 * no multiple of 32 has empty lanes without any branch. */
static double threads_launched(const struct facts *facts, const struct kernel_fact *kernel)
{
	const struct kernel_key *key;
	double threads;

	if (!facts->session || kernel->key >= facts->session->keys.count)
		return WARP_THREADS;
	key = &facts->session->keys.at[kernel->key];
	threads = (double)key->block[0] * key->block[1] * key->block[2];
	return threads >= 1 ? threads / ceil(threads / WARP_THREADS) : WARP_THREADS;
}

static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	double least = THREADS_LEAST / WARP_THREADS * threads_launched(facts, kernel);

	return kernel->has_counters && kernel->counters.threads_per_instruction > 0 &&
	       kernel->counters.threads_per_instruction < least &&
	       (kernel_bound_by(kernel, BOUND_COMPUTE, NULL) ||
		kernel_bound_by(kernel, BOUND_LATENCY, NULL));
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const char *where = kernel_where(facts, kernel, findings);
	double threads = kernel->counters.threads_per_instruction;
	double launched = threads_launched(facts, kernel);
	bool waits = kernel_bound_by(kernel, BOUND_LATENCY, NULL);
	struct finding *finding = kernel_finding(
		facts, rule, index, !waits && threads < THREADS_FEW ? SEVERITY_WARN : SEVERITY_NOTE,
		findings);
	struct unit_text share;

	finding->claim = finding_text(
		findings,
		_("In %s only %.1f of the %.0f threads of a warp take part in the average "
		  "instruction: the threads take different branches, which run one after "
		  "another. %s of the lanes do nothing."),
		where, threads, launched, units_share(&share, 1 - threads / launched));
	kernel_impact(facts, kernel, finding, 1 - threads / launched);
	/* A kernel that waits has issue slots to spare for branches. */
	if (waits)
		finding_lose_grade(finding);
	finding_evidence(finding, "smsp__thread_inst_executed_per_inst_executed.ratio", threads,
			 "threads", where);
	kernel_numbers(kernel, finding, where);
	finding_advice(finding, _("Let the threads of a warp take the same branch: sort or group "
				  "the work by kind, or branch on the warp, not on the thread"));
	finding_advice(finding, _("Where loops have a different length for each thread, share the "
				  "long ones among the threads of the warp"));
	finding_advice(finding, _("Replace a short branch by arithmetic or a selection of one of "
				  "two values"));
	finding_next(finding, _("ncu --section SourceCounters: which branches diverge (Avg. "
				"Threads Executed by line)"));
}

const struct rule rule_divergence = {
	.id = "divergence",
	.title = N_("The threads of a warp take different branches"),
	.why = N_("32 threads share one instruction stream: where they branch apart, each branch "
		  "is run with the others switched off."),
	.layer = LAYER_KERNEL,
	.concerns = concerns,
	.tell = tell,
};
