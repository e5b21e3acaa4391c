#include "base/i18n.h"
#include "base/units.h"
#include "rules/tell.h"

#include <math.h>

/* One sampling with two processes on the SMs shows that the card is shared. */
static const int64_t SHARED_ROUNDS = 1;

/* Alone for so many samplings is a baseline. */
static const int64_t SOLO_ROUNDS = 3;

static const char *process_text(const struct facts *facts, struct findings *findings,
				const struct process_fact *fact)
{
	const struct process *row;
	const char *name;

	if (!facts->session || fact->process >= facts->session->processes.count)
		return _("a process");
	row = &facts->session->processes.at[fact->process];
	name = session_text(facts->session, row->name);
	if (!*name)
		return finding_text(findings, _("pid %lld"), (long long)row->pid);
	return finding_text(findings, _("%s (pid %lld)"), name, (long long)row->pid);
}

/* "a (pid 1) with 55 % of SM time, b (pid 2) with 44 %" */
static const char *sharers(const struct facts *facts, struct findings *findings, uint32_t device,
			   struct finding *finding)
{
	const char *list = "";

	for (size_t i = 0; i < facts->processes.count; i++) {
		const struct process_fact *fact = &facts->processes.at[i];
		const char *name;

		if (fact->device != device || !fact->shared_rounds)
			continue;
		name = process_text(facts, findings, fact);
		list = finding_text(findings, _("%s%s%s with %.0f %%"), list, *list ? ", " : "",
				    name, fact->sm_pct_shared);
		finding_evidence(finding, "proc_sm_pct", fact->sm_pct_shared, "%", name);
	}
	return list;
}

/* The process that fell most from its own SM use alone; NULL: no baseline. */
static const struct process_fact *slowed(const struct facts *facts, uint32_t device)
{
	const struct process_fact *most = NULL;
	double lowest = 1;

	for (size_t i = 0; i < facts->processes.count; i++) {
		const struct process_fact *fact = &facts->processes.at[i];
		double ratio = fact->sm_pct_shared / fact->sm_pct_solo;

		if (fact->device != device || !fact->shared_rounds ||
		    fact->solo_rounds < SOLO_ROUNDS || !(ratio < lowest))
			continue;
		lowest = ratio;
		most = fact;
	}
	return most;
}

static void slowdown(const struct facts *facts, const struct rule *rule, uint32_t device,
		     struct findings *findings, struct finding *finding)
{
	const struct process_fact *fact = slowed(facts, device);
	const char *name;

	if (!fact) {
		findings_abstain(findings, rule,
				 _("%s: how much slower each became is unknown, as no process was "
				   "seen alone on it for %lld samplings"),
				 tell_device(facts, findings, device), (long long)SOLO_ROUNDS);
		return;
	}
	name = process_text(facts, findings, fact);
	finding->claim = finding_text(
		findings,
		_("%s Alone, %s had the SMs for %.0f %% of the time; shared, for %.0f %%."),
		finding->claim, name, fact->sm_pct_solo, fact->sm_pct_shared);
	finding_evidence(finding, "proc_sm_pct.alone", fact->sm_pct_solo, "%", name);
	/* A job may have phases of its own: the same share is no proof. */
	finding->grade = GRADE_MEDIUM;
}

static void tell(const struct facts *facts, const struct rule *rule,
		 const struct device_fact *device, struct findings *findings)
{
	struct finding *finding = finding_add(findings, rule, SEVERITY_WARN);
	const char *where = tell_device(facts, findings, device->device);

	finding->device = device->device;
	finding->claim =
		finding_text(findings,
			     _("In %lld of %lld samplings with work on %s, several processes used "
			       "its SMs: %s of the time."),
			     (long long)device->shared_rounds, (long long)device->process_rounds,
			     where, sharers(facts, findings, device->device, finding));
	finding_evidence(finding, "shared_rounds", (double)device->shared_rounds, "count", where);
	finding_evidence(finding, "process_rounds", (double)device->process_rounds, "count", where);
	slowdown(facts, rule, device->device, findings, finding);
	finding_advice(finding,
		       _("Give each job a card of its own (CUDA_VISIBLE_DEVICES, or the "
			 "scheduler's exclusive mode; as root: nvidia-smi -c EXCLUSIVE_PROCESS)"));
	finding_advice(
		finding,
		_("Small jobs that must share: MPS lets their kernels run side by side instead of "
		  "in turns; MIG gives each a fixed part, on cards that have it"));
	finding_next(finding, _("nvidia-smi pmon -s um -d 1"));
	finding_next(finding,
		     _("nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory "
		       "--format=csv"));
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->devices.count; i++)
		if (facts->devices.at[i].shared_rounds >= SHARED_ROUNDS)
			tell(facts, rule, &facts->devices.at[i], findings);
}

const struct rule rule_shared_card_contention = {
	.id = "shared_card_contention",
	.title = N_("Several processes share the card"),
	.why = N_("Without MPS, processes take turns on a GPU in time slices; each waits for the "
		  "others, and caches start cold."),
	.layer = LAYER_SYSTEM,
	.apply = apply,
};
