#include "base/i18n.h"
#include "base/units.h"
#include "know/cuda_error.h"
#include "rules/tell.h"
#include "rules/tell_wait.h"

/* Each with another error: an error of a kernel stays for the rest of the process. */
enum { FINDINGS_MAX = 4 };

static void add_advice(const struct cuda_error *error, struct finding *finding)
{
	if (error && !error->of_kernel) {
		finding_advice(finding,
			       _("The call itself is at fault: look at what the program passes to "
				 "it"));
		return;
	}
	finding_advice(finding, _("The kernel that is at fault ran before the call: run with "
				  "CUDA_LAUNCH_BLOCKING=1, and the launch itself fails"));
	finding_advice(finding, _("compute-sanitizer names the kernel, its line and the address"));
	finding_next(finding, _("compute-sanitizer COMMAND"));
}

static void tell(const struct facts *facts, const struct rule *rule, const struct wait_fact *wait,
		 struct findings *findings)
{
	const struct cuda_error *error = cuda_error_find(wait->result);
	bool of_kernel = !error || error->of_kernel;
	struct finding *finding =
		finding_add(findings, rule, of_kernel ? SEVERITY_BAD : SEVERITY_WARN);
	const char *who = tell_waiting(facts, findings, wait->lane);
	const char *where = tell_tid(facts, findings, wait->lane);
	const char *name =
		error ? error->name
		      : finding_text(findings, _("CUDA error %lld"), (long long)wait->result);
	struct unit_text at;

	finding->device = wait->device;
	finding->title = finding_text(findings, _("%s failed: %s"), wait->call, name);
	finding->claim =
		finding_text(findings, _("The %s got %s (%lld) from %s at %s."), who, name,
			     (long long)wait->result, tell_wait_call(facts, findings, wait),
			     units_ns(&at, capped_add(capped_add(wait->since_ns, wait->waited_ns),
						      -facts->start_ns)));
	if (error)
		finding->claim = finding_text(findings, _("%s It means: %s."), finding->claim,
					      _(error->meaning));
	if (wait->count > 1)
		finding->claim = finding_text(
			findings, _("%s It was the first of %lld such calls with this error."),
			finding->claim, (long long)wait->count);
	tell_wait_stack(wait, findings, finding);
	if (of_kernel)
		tell_wait_device(facts, wait, findings, finding);
	finding_evidence(finding, "waits.result", (double)wait->result, "", where);
	finding_evidence(finding, "waits.count", (double)wait->count, "count", where);
	if (of_kernel)
		finding_evidence(finding, "waits.pending_launches", (double)wait->pending_count,
				 "count", where);
	add_advice(error, finding);
	finding_next(finding, _("sonde sql PROFILE \"SELECT start_ns, tid, name, detail FROM mark "
				"WHERE name LIKE 'wait%'\""));
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	int64_t told = 0, more = facts->errors_left_out;

	for (size_t i = 0; i < facts->waits.count; i++) {
		if (facts->waits.at[i].end != WAIT_FAILED)
			continue;
		if (told++ < FINDINGS_MAX)
			tell(facts, rule, &facts->waits.at[i], findings);
		else
			more++;
	}
	if (more)
		findings_abstain(findings, rule,
				 ngettext("%lld further call failed, with another error",
					  "%lld further calls failed, with other errors",
					  (unsigned long)more),
				 (long long)more);
}

const struct rule rule_failed_wait = {
	.id = "failed_wait",
	.title = N_("A call that waits for the GPU failed"),
	.why = N_("A kernel that fails says so to nobody: the next call that waits for it gets the "
		  "error, and so does every call after."),
	.layer = LAYER_SYSTEM,
	.stands = true,
	.apply = apply,
};
