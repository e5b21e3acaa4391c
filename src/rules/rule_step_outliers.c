#include "base/i18n.h"
#include "base/units.h"
#include "rules/advise.h"
#include "rules/tell.h"

/* With fewer steps there is no usual one to differ from. */
static const size_t STEPS_LEAST = 5;
/* All outliers together must cost so much of all steps; those of the set-up are its own. */
static const double OUTLIER_SHARE = 0.01;
static const double OUTLIER_WARN_SHARE = 0.1;

static const struct advice ADVICE[] = {
	{ N_("Look at what the longest steps do besides: checkpoints, evaluation, logging, a new "
	     "shape that is compiled or tuned (cudnn.benchmark), garbage collection, cudaMalloc "
	     "after the cache is full, a slow storage read"),
	  N_("Look at what the longest steps do besides: output, logging, memory that is obtained "
	     "or given back, code that is loaded or compiled for the first time, a slow storage "
	     "read") },
};

struct outliers {
	int64_t count, over_p50_ns, over_p95_ns, all_ns;
	size_t worst;
};

static struct outliers outliers_of(const struct step_facts *steps)
{
	struct outliers sum = { 0 };
	int64_t longest_ns = 0;

	for (size_t i = 0; i < steps->step.count; i++) {
		const struct step *step = &steps->step.at[i];
		int64_t ns = step->end_ns - step->start_ns;

		if (step->setup)
			continue;
		sum.all_ns = capped_add(sum.all_ns, ns);
		if (!step->outlier)
			continue;
		sum.count++;
		if (ns > steps->p50_ns)
			sum.over_p50_ns = capped_add(sum.over_p50_ns, ns - steps->p50_ns);
		if (ns > steps->p95_ns)
			sum.over_p95_ns = capped_add(sum.over_p95_ns, ns - steps->p95_ns);
		if (ns > longest_ns) {
			longest_ns = ns;
			sum.worst = i;
		}
	}
	return sum;
}

static const char *steps_name(const struct facts *facts, const struct step_facts *steps,
			      struct findings *findings)
{
	const char *name = tell_name(facts, steps->name);

	return steps->name ? finding_text(findings, "%.*s", step_name_bytes(name), name)
			   : _("found by launches that repeat");
}

static void tell(const struct facts *facts, const struct rule *rule, const struct step_facts *steps,
		 const struct outliers *sum, struct findings *findings)
{
	double share = share_of(sum->over_p50_ns, sum->all_ns);
	struct finding *finding = finding_add(
		findings, rule, share >= OUTLIER_WARN_SHARE ? SEVERITY_WARN : SEVERITY_NOTE);
	const struct step *worst = &steps->step.at[sum->worst];
	struct unit_text longest, median, over;

	finding->claim = finding_text(
		findings,
		_("%lld of %zu steps (%s) took much longer than the rest and cost %s together. The "
		  "longest, number %zu, took %s against a median of %s."),
		(long long)sum->count, steps->step.count, steps_name(facts, steps, findings),
		units_ns(&over, sum->over_p50_ns), sum->worst,
		units_ns(&longest, worst->end_ns - worst->start_ns),
		units_ns(&median, steps->p50_ns));
	if (worst->differs.count)
		finding->claim = finding_text(findings, _("%s What differs in it: %s."),
					      finding->claim, worst->differs.at[0]);
	finding_impact(finding, sum->over_p95_ns, sum->over_p50_ns, STRETCH_STEPS, sum->all_ns);
	finding_evidence(finding, "steps.p50_ns", (double)steps->p50_ns, "ns", "");
	finding_evidence(finding, "steps.p95_ns", (double)steps->p95_ns, "ns", "");
	finding_evidence(finding, "steps.outliers", (double)sum->count, "count", "");
	advise(facts, finding, ADVICE, sizeof(ADVICE) / sizeof(*ADVICE));
	/* Steps that nobody named are no ranges. */
	finding_next(finding,
		     steps->name ? _("sonde sql PROFILE \"SELECT name, start_ns, duration_ns FROM "
				     "range ORDER BY duration_ns DESC LIMIT 20\"")
				 : _("sonde sql PROFILE \"SELECT name, start_ns, duration_ns FROM "
				     "runtime ORDER BY duration_ns DESC LIMIT 20\""));
	tell_host_doubt(facts, findings, finding);
}

static void judge(const struct facts *facts, const struct rule *rule,
		  const struct step_facts *steps, struct findings *findings)
{
	struct outliers sum;

	if (!steps->step.count)
		return;
	if (steps->step.count < STEPS_LEAST) {
		findings_abstain(
			findings, rule, _("too few steps to compare: %zu (%s), needed are %zu"),
			steps->step.count, steps_name(facts, steps, findings), STEPS_LEAST);
		return;
	}
	sum = outliers_of(steps);
	if (sum.count && share_of(sum.over_p50_ns, sum.all_ns) >= OUTLIER_SHARE)
		tell(facts, rule, steps, &sum, findings);
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	judge(facts, rule, &facts->steps, findings);
	judge(facts, rule, &facts->requests, findings);
}

const struct rule rule_step_outliers = {
	.id = "step_outliers",
	.title = N_("Some steps take much longer"),
	.why = N_("A few slow steps hide in a mean, and in a job on several GPUs each of them "
		  "makes all the others wait."),
	.layer = LAYER_TIMELINE,
	.apply = apply,
};
