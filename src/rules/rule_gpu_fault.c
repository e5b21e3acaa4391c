#include "base/i18n.h"
#include "base/units.h"
#include "rules/tell.h"
#include "rules/tell_fault.h"

#include <math.h>

/* What the catalogue says to count becomes a warning when it comes back so often:
 * "repeats -> ticket". Twice may be one cause that lasted. */
static const int64_t BACK_AGAIN = 3;
/* A node in trouble has dozens of kinds; the table and the JSON have them all. */
static const size_t FINDINGS_MAX = 6;
/* Further kinds that a claim names. */
static const int WAKE_MAX = 4;

static bool concerns_gpu(const struct fault_group *group)
{
	enum fault_kind kind = group->first.kind;

	return kind == FAULT_XID || kind == FAULT_SXID || kind == FAULT_OFF_BUS ||
	       kind == FAULT_INIT;
}

/* A clean-up that follows nothing is no fault; what follows something is told
 * with that, unless the line it names is not in the log. */
static bool is_told(const struct fault_group *group)
{
	return concerns_gpu(group) && (group->role[FAULT_ROLE_CAUSE] || group->previous >= 0);
}

static bool one_sm(const struct fault_group *group)
{
	for (size_t i = 0; i < group->patterns.count; i++) {
		if (group->patterns.at[i].kind == FAULT_PATTERN_PLACE &&
		    fault_has(&group->first, FAULT_SM))
			return true;
	}
	return false;
}

static enum severity severity_of(const struct fault_group *group)
{
	static const enum severity by_weight[] = {
		[FAULT_WEIGHT_INFO] = SEVERITY_INFO,
		[FAULT_WEIGHT_WARN] = SEVERITY_NOTE,
		[FAULT_WEIGHT_ERROR] = SEVERITY_WARN,
		[FAULT_WEIGHT_FATAL] = SEVERITY_BAD,
	};
	enum severity severity = by_weight[group->meaning.weight];

	if (severity == SEVERITY_NOTE && group->incidents >= BACK_AGAIN)
		severity = SEVERITY_WARN;
	/* Programs fault all over the chip; one SM speaks for the board. */
	if (one_sm(group) && severity < SEVERITY_BAD)
		severity = SEVERITY_BAD;
	return severity;
}

static const char *pattern_text(struct findings *findings, const struct fault_pattern *pattern)
{
	struct unit_text interval;

	switch (pattern->kind) {
	case FAULT_PATTERN_PROCESS:
		return finding_text(findings,
				    _("All %lld incidents whose process is known are of %s."),
				    (long long)pattern->count, pattern->what);
	case FAULT_PATTERN_KERNEL:
		return finding_text(findings,
				    _("Each of %lld times %s ran (by chance: 1 in %.0f)."),
				    (long long)pattern->count, pattern->what, 1 / pattern->p);
	case FAULT_PATTERN_PLACE:
		return finding_text(findings, _("All %lld incidents are on %s."),
				    (long long)pattern->count, pattern->what);
	case FAULT_PATTERN_INTERVAL:
		return finding_text(findings, _("They come evenly, every %s."),
				    units_ns(&interval, whole_of(pattern->value)));
	case FAULT_PATTERN_DAYTIME:
		return finding_text(findings,
				    _("They gather around %02d:%02d of the log's clock (%lld "
				      "incidents, Rayleigh test p = %.2g)."),
				    (int)(pattern->value / 3600), (int)(pattern->value / 60) % 60,
				    (long long)pattern->count, pattern->p);
	case FAULT_PATTERN_NONE:
		return finding_text(
			findings,
			_("%lld incidents show no pattern: neither one process, kernel, "
			  "place, interval nor time of day."),
			(long long)pattern->count);
	default:
		return "";
	}
}

static void add_patterns(const struct fault_group *group, struct finding *finding,
			 struct findings *findings)
{
	for (size_t i = 0; i < group->patterns.count; i++) {
		const char *text = pattern_text(findings, &group->patterns.at[i]);

		if (*text)
			finding->claim = finding_text(findings, "%s %s", finding->claim, text);
	}
}

/* What came after it, and the driver's own advice among that. */
static void add_wake(const struct facts *facts, size_t index, struct finding *finding,
		     struct findings *findings)
{
	const char *list = "";
	int named = 0;

	for (size_t i = 0; i < facts->fault_groups.count; i++) {
		const struct fault_group *group = &facts->fault_groups.at[i];
		struct buf title = { 0 };

		if (group->caused_by != index || i == index)
			continue;
		fault_title(&group->first, &title);
		if (named++ < WAKE_MAX)
			list = finding_text(findings, "%s%s%s", list, named > 1 ? ", " : "",
					    _(title.at));
		buf_done(&title);
		if (group->first.number == 154 && fault_has(&group->first, FAULT_ACTION_TO)) {
			finding_advice(
				finding,
				finding_text(findings, _("The driver asks for it: %s"),
					     _(fault_recovery_text(group->first.action_to))));
			if (group->meaning.weight == FAULT_WEIGHT_FATAL)
				finding->severity = SEVERITY_BAD;
		}
	}
	if (named)
		finding->claim =
			finding_text(findings, _("%s In its wake: %s."), finding->claim, list);
}

/* "link 8, unit 4 (NETIR_LINK_EVT)", where the line says so. */
static void add_place(const struct fault *fault, struct finding *finding, struct findings *findings)
{
	if (fault_has(fault, FAULT_GPU_INSTANCE))
		finding->claim = finding_text(findings, _("%s MIG instance %lld."), finding->claim,
					      (long long)fault->gpu_instance);
	if (fault_has(fault, FAULT_UNIT))
		finding->claim = finding_text(findings, _("%s NVLink unit %lld (%s)."),
					      finding->claim, (long long)fault->unit, fault->event);
	if (fault_has(fault, FAULT_LINK) && fault->link >= 0)
		finding->claim = finding_text(findings, _("%s Link %lld."), finding->claim,
					      (long long)fault->link);
}

static void tell(const struct facts *facts, const struct rule *rule, size_t index,
		 struct findings *findings)
{
	const struct fault_group *group = &facts->fault_groups.at[index];
	struct finding *finding = finding_add(findings, rule, severity_of(group));
	const char *where = group->device == SESSION_NONE
				    ? _("the GPU")
				    : tell_device(facts, findings, group->device);
	const char *process = tell_fault_process(findings, group);

	finding->device = group->device;
	finding->title = finding_text(findings, _("%s on %s"), tell_fault(findings, group), where);
	finding->claim = finding_text(findings, _("%s. It came %s."), _(group->meaning.meaning),
				      tell_fault_when(facts, findings, group));
	if (process)
		finding->claim = finding_text(findings, _("%s The driver lays it to %s."),
					      finding->claim, process);
	add_place(&group->first, finding, findings);
	if (group->previous >= 0)
		finding->claim = finding_text(
			findings, _("%s It names Xid %lld as its cause, whose line is not there."),
			finding->claim, (long long)group->previous);
	add_wake(facts, index, finding, findings);
	add_patterns(group, finding, findings);
	if (group->lower_bound)
		finding->claim =
			finding_text(findings, _("%s The driver printed only some of its lines."),
				     finding->claim);
	if (*group->meaning.causes)
		finding->claim = finding_text(findings, _("%s Likely: %s."), finding->claim,
					      _(group->meaning.causes));
	finding_evidence(finding, "faults.count", (double)group->count, "count", where);
	finding_evidence(finding, "faults.incidents", (double)group->incidents, "count", where);
	if (one_sm(group))
		finding_advice(finding, _("Test the board (dcgmi diag, another program on the same "
					  "GPU, the same program on another): a program's own "
					  "fault moves about, this one does not"));
	finding_advice(finding, _(group->meaning.action));
	if (group->meaning.known && fault_has(&group->first, FAULT_NUMBER))
		finding_next(finding, finding_text(findings, "sonde explain %s %lld",
						   fault_kind_name(group->first.kind),
						   (long long)group->first.number));
	finding_next(finding, _("sonde sql PROFILE \"SELECT start_ns, name, detail FROM mark ORDER "
				"BY start_ns\""));
	if (!group->meaning.known)
		finding_lose_grade(finding);
}

static size_t heaviest(const struct facts *facts, const bool *done)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < facts->fault_groups.count; i++) {
		const struct fault_group *group = &facts->fault_groups.at[i];

		if (done[i] || !is_told(group))
			continue;
		if (best == SIZE_MAX ||
		    severity_of(group) > severity_of(&facts->fault_groups.at[best]))
			best = i;
	}
	return best;
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	bool *done = mem_zero(facts->fault_groups.count + 1);
	size_t at, told = 0, more = 0;

	while ((at = heaviest(facts, done)) != SIZE_MAX) {
		done[at] = true;
		if (told < FINDINGS_MAX) {
			tell(facts, rule, at, findings);
			told++;
		} else {
			more++;
		}
	}
	free(done);
	if (more)
		findings_abstain(findings, rule,
				 ngettext("%zu further kind of fault is in the table only",
					  "%zu further kinds of fault are in the table only",
					  (unsigned long)more),
				 more);
}

const struct rule rule_gpu_fault = {
	.id = "gpu_fault",
	.title = N_("The driver reports a fault of a GPU"),
	.why = N_(
		"Xid and SXid numbers are how the driver tells of errors. One often brings others "
		"in its wake: the first of an incident is the one to look at."),
	.layer = LAYER_SYSTEM,
	.apply = apply,
};
