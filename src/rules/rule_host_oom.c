#include "base/i18n.h"
#include "base/units.h"
#include "rules/tell_fault.h"

static void tell(const struct facts *facts, const struct rule *rule,
		 const struct fault_group *group, struct findings *findings)
{
	struct finding *finding = finding_add(findings, rule, SEVERITY_WARN);
	const struct fault *fault = &group->first;
	const char *process = tell_fault_process(findings, group);
	struct unit_text size;

	finding->claim = finding_text(
		findings, _("The kernel killed %s because host memory ran out: %s."),
		process ? process : _("a process"), tell_fault_when(facts, findings, group));
	if (fault_has(fault, FAULT_MEMORY_KB) && fault->memory_kb < INT64_MAX / 1024)
		finding->claim =
			finding_text(findings, _("%s The first had %s resident."), finding->claim,
				     units_bytes(&size, fault->memory_kb * 1024));
	if (fault_has(fault, FAULT_IN_CGROUP) && fault->in_cgroup)
		finding->claim =
			finding_text(findings,
				     _("%s It was the limit of its container or job (%s), not the "
				       "machine's memory."),
				     finding->claim, *fault->cgroup ? fault->cgroup : "cgroup");
	finding_evidence(finding, "faults.count", (double)group->count, "count", "");
	finding_advice(finding, _(group->meaning.action));
	finding_next(finding, _("sonde sql PROFILE \"SELECT start_ns, name, detail FROM mark ORDER "
				"BY start_ns\""));
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->fault_groups.count; i++) {
		if (facts->fault_groups.at[i].first.kind == FAULT_OOM)
			tell(facts, rule, &facts->fault_groups.at[i], findings);
	}
}

const struct rule rule_host_oom = {
	.id = "host_oom",
	.title = N_("Host memory ran out"),
	.why = N_("A killed worker or rank looks like a hang or a lost connection to the others; "
		  "the kernel log has the reason."),
	.layer = LAYER_SYSTEM,
	.apply = apply,
};
