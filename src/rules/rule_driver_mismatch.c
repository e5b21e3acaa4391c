#include "base/i18n.h"
#include "rules/tell_fault.h"

static void tell(const struct facts *facts, const struct rule *rule,
		 const struct fault_group *group, struct findings *findings)
{
	struct finding *finding = finding_add(findings, rule, SEVERITY_WARN);
	const char *client = *group->first.client ? group->first.client : "?";
	const char *module = *group->first.module ? group->first.module : "?";

	finding->claim = finding_text(findings,
				      _("A program with the user library of %s met the kernel "
					"module of %s: %s. Every new "
					"CUDA program fails so until they agree."),
				      client, module, tell_fault_when(facts, findings, group));
	finding_evidence(finding, "faults.count", (double)group->count, "count", "");
	finding_advice(finding, _(group->meaning.action));
	finding_next(finding, _("cat /proc/driver/nvidia/version; ldconfig -p | grep libcuda"));
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->fault_groups.count; i++) {
		if (facts->fault_groups.at[i].first.kind == FAULT_MISMATCH)
			tell(facts, rule, &facts->fault_groups.at[i], findings);
	}
}

const struct rule rule_driver_mismatch = {
	.id = "driver_mismatch",
	.title = N_("Driver and library are of two versions"),
	.why = N_("The kernel module stays loaded when the driver's packages are updated; programs "
		  "that start afterwards bring the new library."),
	.layer = LAYER_SYSTEM,
	.apply = apply,
};
