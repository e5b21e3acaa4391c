#include "base/i18n.h"
#include "base/units.h"
#include "rules/tell.h"
#include "rules/tell_wait.h"

#include <math.h>

/* A recording ends in the midst of something: shorter waits are that. Nobody reaches for
 * the keyboard because of less. */
static const int64_t WAIT_LEAST_NS = 1000000000;
/* As many times as long as any wait of the process that did return: that is none of its
 * usual waits. */
static const int64_t OUTLASTS = 10;
/* Ranks of a job hang together. */
enum { FINDINGS_MAX = 4 };
/* Samples of a card whose kernel spins are all 100, of one that idles all 0. */
static const double SPINS_PCT = 90, IDLES_PCT = 10;

static enum severity severity_of(const struct wait_fact *wait)
{
	if (wait->longest_ns == FACT_UNKNOWN)
		return SEVERITY_WARN;
	return wait->waited_ns / OUTLASTS >= wait->longest_ns ? SEVERITY_BAD : SEVERITY_NOTE;
}

static bool is_collective(const struct facts *facts, uint32_t name)
{
	const struct session *session = facts->session;

	for (size_t i = 0; i < facts->kernels.count; i++) {
		const struct kernel_fact *kernel = &facts->kernels.at[i];

		if (kernel->collective && kernel->key < session->keys.count &&
		    session->keys.at[kernel->key].name == name)
			return true;
	}
	return false;
}

static bool spins(const struct wait_fact *wait)
{
	return wait->sampled || wait->util_pct >= SPINS_PCT;
}

static bool idles(const struct wait_fact *wait)
{
	return !wait->sampled && wait->util_pct <= IDLES_PCT;
}

static const char *why_busy(const struct wait_fact *wait)
{
	if (wait->pending_count)
		return _("a kernel spins");
	if (wait->handover != WAIT_HANDOVER_ALL)
		return _("a kernel does not end, most likely one of those");
	return _("with what is not in the recording, as work of before it began, or of another "
		 "process");
}

static const char *why_idle(const struct wait_fact *wait)
{
	if (wait->pending_count && wait->handover == WAIT_HANDOVER_ALL)
		return _("what is queued does not begin");
	return _("no kernel spins, and what is waited for does not come");
}

static void tell_util(const struct facts *facts, const struct wait_fact *wait,
		      struct findings *findings, struct finding *finding)
{
	if (wait->sampled)
		finding->claim = finding_text(
			findings,
			_("%s Of %lld samples of its instructions in the second half of the wait "
			  "%.0f %% are of \"%s\": it runs and does not end."),
			finding->claim, (long long)wait->samples,
			100.0 * (double)wait->sampled_count / (double)wait->samples,
			tell_name(facts, wait->sampled));
	else if (spins(wait))
		finding->claim = finding_text(findings,
					      _("%s The card was busy all the time (%.0f %%): %s."),
					      finding->claim, wait->util_pct, why_busy(wait));
	else if (idles(wait))
		finding->claim = finding_text(findings,
					      _("%s The card did nothing meanwhile (%.0f %%): %s."),
					      finding->claim, wait->util_pct, why_idle(wait));
	/* What is not known by the records must be known by the card. */
	if (wait->handover != WAIT_HANDOVER_ALL &&
	    (wait->pending_count || !(spins(wait) || idles(wait))))
		finding_lose_grade(finding);
}

static void add_advice(const struct facts *facts, const struct wait_fact *wait,
		       struct findings *findings, struct finding *finding)
{
	const struct session *session = facts->session;
	const struct lane *lane = &session->lanes.at[wait->lane];

	if (wait->likely && is_collective(facts, wait->likely))
		finding_advice(finding,
			       _("A collective waits for each of its ranks: look for the rank that "
				 "is elsewhere, has ended, or made another call"));
	if (idles(wait))
		finding_advice(finding,
			       _("Look for what the stream waits for: an event that nobody "
				 "records, a function of the host that does not return, another "
				 "process"));
	else
		finding_advice(finding,
			       _("Attach a debugger while it hangs: it names the kernel, its line "
				 "and what its threads wait for"));
	if (lane->process < session->processes.count)
		finding_next(
			finding,
			finding_text(findings,
				     idles(wait)
					     ? "gdb -p %lld -batch -ex 'thread apply all bt'"
					     : "cuda-gdb -p %lld -batch -ex 'info cuda kernels'",
				     (long long)session->processes.at[lane->process].pid));
	if (idles(wait))
		finding_next(finding, _("sonde run --trace cuda,sync,events ... shows which stream "
					"waits for which"));
	else if (!wait->sampled)
		finding_next(finding, _("sonde run --pc-sampling on ... names the kernel that "
					"spins, and the instruction"));
	finding_next(finding, _("sonde sql PROFILE \"SELECT start_ns, tid, name, detail FROM mark "
				"WHERE name LIKE 'wait%'\""));
}

static void tell(const struct facts *facts, const struct rule *rule, const struct wait_fact *wait,
		 struct findings *findings)
{
	struct finding *finding = finding_add(findings, rule, severity_of(wait));
	const char *who = tell_waiting(facts, findings, wait->lane);
	const char *where = tell_tid(facts, findings, wait->lane);
	struct unit_text since, waited, longest;

	finding->device = wait->device;
	finding->title = finding_text(findings, _("%s has not returned"), wait->call);
	finding->claim = finding_text(
		findings, _("The %s waits in %s since %s and has not returned, %s later."), who,
		tell_wait_call(facts, findings, wait),
		units_ns(&since, capped_add(wait->since_ns, -facts->start_ns)),
		units_ns(&waited, wait->waited_ns));
	if (wait->longest_ns != FACT_UNKNOWN)
		finding->claim = finding_text(
			findings, _("%s The longest wait of the process that returned took %s."),
			finding->claim, units_ns(&longest, wait->longest_ns));
	tell_wait_stack(wait, findings, finding);
	tell_wait_device(facts, wait, findings, finding);
	tell_util(facts, wait, findings, finding);
	finding_evidence(finding, "waits.waited_ns", (double)wait->waited_ns, "ns", where);
	if (wait->longest_ns != FACT_UNKNOWN)
		finding_evidence(finding, "waits.longest_ns", (double)wait->longest_ns, "ns",
				 where);
	if (wait->pending_count || wait->handover == WAIT_HANDOVER_ALL)
		finding_evidence(finding, "waits.pending_launches", (double)wait->pending_count,
				 "count", where);
	finding_evidence(finding, "waits.util_pct", wait->util_pct, "%", where);
	add_advice(facts, wait, findings, finding);
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	int64_t told = 0, more = facts->waits_left_out;

	for (size_t i = 0; i < facts->waits.count; i++) {
		const struct wait_fact *wait = &facts->waits.at[i];

		if (wait->end != WAIT_OPEN || wait->waited_ns < WAIT_LEAST_NS)
			continue;
		if (told++ < FINDINGS_MAX)
			tell(facts, rule, wait, findings);
		else
			more++;
	}
	if (more)
		findings_abstain(findings, rule,
				 ngettext("%lld further thread waits, too",
					  "%lld further threads wait, too", (unsigned long)more),
				 (long long)more);
}

const struct rule rule_open_wait = {
	.id = "open_wait",
	.title = N_("A call that waits for the GPU has not returned"),
	.why = N_("A kernel that never ends, or a collective that waits for a rank that is gone, "
		  "shows as a host that waits for ever."),
	.layer = LAYER_SYSTEM,
	.stands = true,
	.apply = apply,
};
