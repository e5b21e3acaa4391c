#include "base/i18n.h"
#include "base/units.h"
#include "rules/tell.h"

/* Waiting in collectives worth a word, as a share of the span. "straggler
 * impact < 10 % silent" (traceopt-ai/traceml, issue 253); half of it here, as
 * the figure from one rank is a lower bound. */
static const double WAIT_SHARE = 0.05;
static const double WAIT_WARN_SHARE = 0.10;
/* Where nothing tells waiting from transfer: so much of the span in
 * collectives that no other kernel covers. */
static const double EXPOSED_SHARE = 0.20;
/* More than half of the time in them is seldom the transfer. */
static const double EXPOSED_WARN_SHARE = 0.5;

static const char *rank_of(const struct facts *facts, struct findings *findings, uint32_t device)
{
	uint32_t source = SESSION_NONE;

	if (facts->session && device < facts->session->devices.count)
		source = facts->session->devices.at[device].source;
	if (source == SESSION_NONE || source >= facts->session->sources.count ||
	    facts->session->sources.at[source].rank < 0)
		return tell_device(facts, findings, device);
	return finding_text(findings, _("rank %lld"),
			    (long long)facts->session->sources.at[source].rank);
}

static void tell(const struct facts *facts, const struct rule *rule,
		 const struct device_fact *device, int64_t suspect_ns, bool is_known,
		 struct findings *findings)
{
	double share = share_of(suspect_ns, device->span_ns);
	double warn_share = is_known ? WAIT_WARN_SHARE : EXPOSED_WARN_SHARE;
	struct finding *finding =
		finding_add(findings, rule, share >= warn_share ? SEVERITY_WARN : SEVERITY_NOTE);
	const char *rank = rank_of(facts, findings, device->device);
	struct unit_text all, suspect, percent;

	finding->device = device->device;
	if (is_known)
		finding->claim =
			finding_text(findings,
				     _("Suspicion: of %s in collectives on %s, %s (%s of the span) "
				       "go beyond what the same collectives take at their "
				       "quickest. A collective that started early spins until the "
				       "last rank has come; this counts as busy, and is not work."),
				     units_ns(&all, device->collective_ns), rank,
				     units_ns(&suspect, suspect_ns), units_share(&percent, share));
	else
		finding->claim = finding_text(
			findings,
			_("Suspicion: %s spends %s (%s of the span) in collectives with no other "
			  "kernel beside them. How much of that is waiting for a late rank, one "
			  "rank alone can't tell."),
			rank, units_ns(&suspect, suspect_ns), units_share(&percent, share));
	finding->grade = is_known ? GRADE_MEDIUM : GRADE_LOW;
	finding_impact(finding, 0, suspect_ns, whole_of_device(device), device->span_ns);
	finding_evidence(finding, "collective_ns", (double)device->collective_ns, "ns", rank);
	finding_evidence(finding, "collective_hidden_ns", (double)device->collective_hidden_ns,
			 "ns", rank);
	if (is_known)
		finding_evidence(finding, "collective_suspect_ns", (double)suspect_ns, "ns", rank);
	finding_advice(finding, _("Look at the other ranks first: the one that waits least is the "
				  "late one, and what its host or GPU does before the collective "
				  "is the cause (often its data loading)"));
	finding_advice(finding,
		       _("Only if all ranks arrive together is the transfer itself too slow: then "
			 "overlap it with the backward pass, use larger buckets, check NVLink "
			 "(nvidia-smi nvlink -s) and NCCL_DEBUG=INFO"));
	finding_next(finding, _("record all ranks in the same steps and compare when each enters "
				"the collective"));
	finding->runner_up = _("the transfer itself is slow");
}

/* The rank that came last most often; NULL: none did. */
static const struct device_fact *late_rank(const struct facts *facts)
{
	const struct device_fact *late = NULL;

	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *at = &facts->devices.at[i];

		if (at->compared_last && (!late || at->compared_last > late->compared_last))
			late = at;
	}
	return late;
}

static void tell_late(const struct facts *facts, const struct device_fact *device,
		      struct finding *finding, struct findings *findings)
{
	const struct device_fact *late = late_rank(facts);
	struct unit_text behind;

	if (!late || late == device)
		return;
	finding->claim = finding_text(
		findings,
		_("%s Last to come was %s, to %lld of %lld collectives, at the median %s after the "
		  "first."),
		finding->claim, rank_of(facts, findings, late->device),
		(long long)late->compared_last, (long long)late->compared_count,
		units_ns(&behind, late->late_p50_ns));
	finding_evidence(finding, "compared_last", (double)late->compared_last, "count",
			 rank_of(facts, findings, late->device));
	finding_evidence(finding, "late_p50_ns", (double)late->late_p50_ns, "ns",
			 rank_of(facts, findings, late->device));
}

/* All ranks are in the profile: waiting is a fact. */
static void tell_compared(const struct facts *facts, const struct rule *rule,
			  const struct device_fact *device, const struct judged *judged,
			  struct findings *findings)
{
	double share = share_of(judged->waiting_ns, judged->span_ns);
	struct finding *finding = finding_add(
		findings, rule, share >= WAIT_WARN_SHARE ? SEVERITY_WARN : SEVERITY_NOTE);
	const char *rank = rank_of(facts, findings, device->device);
	struct unit_text all, waiting, percent;

	finding->device = device->device;
	finding->claim = finding_text(
		findings,
		_("Of %s in collectives on %s, %s (%s of the span) are waiting for a rank that "
		  "came later, with nothing else running. It counts as busy, and is not work."),
		units_ns(&all, judged->collective_ns), rank, units_ns(&waiting, judged->waiting_ns),
		units_share(&percent, share));
	finding->grade = GRADE_HIGH;
	finding_impact(finding, 0, judged->waiting_ns, part_judged(judged), judged->span_ns);
	finding_evidence(finding, "collective_ns", (double)judged->collective_ns, "ns", rank);
	finding_evidence(finding, "waiting_ns", (double)judged->waiting_ns, "ns", rank);
	tell_late(facts, device, finding, findings);
	tell_setup(findings, device, finding);
	finding_advice(finding, _("Look at the rank that waits least: it is the late one, and what "
				  "its host or GPU does before the collective is the cause (often "
				  "its data loading)"));
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];
		int64_t suspect_ns = device->collective_suspect_ns;
		int64_t exposed_ns = device->collective_ns - device->collective_hidden_ns;

		if (!device->has_timeline || device->span_ns <= 0 || device->collective_ns <= 0)
			continue;
		if (device->waiting_ns != FACT_UNKNOWN) {
			struct judged judged = device_judged(device);

			if (share_of(judged.waiting_ns, judged.span_ns) >= WAIT_SHARE)
				tell_compared(facts, rule, device, &judged, findings);
			continue;
		}
		if (suspect_ns != FACT_UNKNOWN &&
		    share_of(suspect_ns, device->span_ns) >= WAIT_SHARE)
			tell(facts, rule, device, suspect_ns, true, findings);
		else if (suspect_ns == FACT_UNKNOWN &&
			 share_of(exposed_ns, device->span_ns) >= EXPOSED_SHARE)
			tell(facts, rule, device, exposed_ns, false, findings);
	}
}

const struct rule rule_collective_wait = {
	.id = "collective_wait",
	.title = N_("Waiting for another rank looks like work"),
	.why = N_("The kernel of a collective spins on the SMs until every rank has joined, so "
		  "utilisation shows 100 % while nothing moves."),
	.layer = LAYER_TIMELINE,
	.apply = apply,
};
