#include "rules/rule.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>

#include "base/i18n.h"

/* A coarser finding holds finer ones back only if it explains a real part of
 * the time itself; below this the order of telling is enough. */
static const double HOLDS_BACK_SHARE = 0.2;

/* The same where the finer finding's time is unknown (counters without a
 * timeline): then the coarser one must explain most of the time there is, so
 * that whatever the finer one could save is the smaller part. */
static const double HOLDS_BACK_UNKNOWN_SHARE = 0.5;

static const struct rule *const RULES[] = {
#define X(name) &rule_##name,
	RULE_LIST(X)
#undef X
		NULL,
};

const struct rule *const *rule_list(size_t *ret_count)
{
	*ret_count = sizeof(RULES) / sizeof(RULES[0]) - 1;
	return RULES;
}

const char *severity_name(enum severity severity)
{
	static const char *const NAMES[] = { "info", "note", "warn", "bad" };

	assert((size_t)severity < sizeof(NAMES) / sizeof(NAMES[0]));
	return NAMES[severity];
}

const char *layer_name(enum layer layer)
{
	static const char *const NAMES[] = { "system", "timeline", "kernel" };

	assert((size_t)layer < sizeof(NAMES) / sizeof(NAMES[0]));
	return NAMES[layer];
}

const char *stretch_name(enum stretch stretch)
{
	static const char *const NAMES[] = {
#define X(id, name) [STRETCH_##id] = name,
		STRETCH_LIST(X)
#undef X
	};

	assert((size_t)stretch < sizeof(NAMES) / sizeof(NAMES[0]));
	return NAMES[stretch];
}

struct finding *finding_add(struct findings *findings, const struct rule *rule,
			    enum severity severity)
{
	struct finding *finding = VEC_ADD(&findings->at);

	finding->rule = rule;
	finding->severity = severity;
	finding->device = SESSION_NONE;
	finding->kernel = SESSION_NONE;
	finding->title = _(rule->title);
	finding->claim = "";
	finding->impact_low_ns = FACT_UNKNOWN;
	finding->impact_high_ns = FACT_UNKNOWN;
	finding->impact_share = NAN;
	finding->coverage = 1;
	finding->grade = GRADE_HIGH;
	return finding;
}

static const char *text_v(struct findings *findings, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));

static const char *text_v(struct findings *findings, const char *fmt, va_list args)
{
	va_list again;
	char *text;
	int len;

	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len < 0)
		return "";
	text = arena_alloc(&findings->arena, (size_t)len + 1);
	(void)vsnprintf(text, (size_t)len + 1, fmt, args);
	return text;
}

const char *finding_text(struct findings *findings, const char *fmt, ...)
{
	const char *text;
	va_list args;

	va_start(args, fmt);
	text = text_v(findings, fmt, args);
	va_end(args);
	return text;
}

void finding_evidence(struct finding *finding, const char *metric, double value, const char *unit,
		      const char *where)
{
	/* Unknown is left out, not shown as a number. */
	if (!isfinite(value))
		return;
	*VEC_ADD(&finding->evidence) = (struct evidence){ metric, value, unit, where };
}

void finding_impact(struct finding *finding, int64_t low_ns, int64_t high_ns, enum stretch of,
		    int64_t stretch_ns)
{
	assert(low_ns <= high_ns);
	if (stretch_ns > 0 && high_ns > stretch_ns)
		high_ns = stretch_ns;
	finding->impact_low_ns = low_ns < high_ns ? low_ns : high_ns;
	finding->impact_high_ns = high_ns;
	finding->impact_share = stretch_ns > 0 ? (double)high_ns / (double)stretch_ns : NAN;
	finding->impact_of = of;
}

void finding_advice(struct finding *finding, const char *text)
{
	*VEC_ADD(&finding->advice) = text;
}

void finding_next(struct finding *finding, const char *text)
{
	*VEC_ADD(&finding->next) = text;
}

void finding_lose_grade(struct finding *finding)
{
	if (finding->grade > GRADE_LOW)
		finding->grade--;
}

void findings_abstain(struct findings *findings, const struct rule *rule, const char *fmt, ...)
{
	const char *why;
	va_list args;

	va_start(args, fmt);
	why = text_v(findings, fmt, args);
	va_end(args);
	*VEC_ADD(&findings->abstained) = finding_text(findings, "%s: %s", rule->id, why);
}

/* The part of the time that a finding explains; 0 while unknown. */
static double weight_of(const struct finding *finding)
{
	return isfinite(finding->impact_share) ? finding->impact_share : 0;
}

static bool same_device(const struct finding *a, const struct finding *b)
{
	return a->device == SESSION_NONE || b->device == SESSION_NONE || a->device == b->device;
}

/* Does the coarser finding explain so much that the finer one should wait? */
static bool holds_back(const struct finding *coarse, const struct finding *fine)
{
	double least = isfinite(fine->impact_share) ? HOLDS_BACK_SHARE : HOLDS_BACK_UNKNOWN_SHARE;

	return coarse->rule->layer < fine->rule->layer && coarse->severity >= SEVERITY_WARN &&
	       same_device(coarse, fine) && weight_of(coarse) >= least &&
	       weight_of(coarse) > weight_of(fine);
}

static void hold_back_finer(struct findings *findings)
{
	for (size_t i = 0; i < findings->at.count; i++) {
		struct finding *fine = &findings->at.at[i];
		const struct finding *by = NULL;

		for (size_t j = 0; j < findings->at.count; j++) {
			const struct finding *coarse = &findings->at.at[j];

			if (holds_back(coarse, fine) && (!by || weight_of(coarse) > weight_of(by)))
				by = coarse;
		}
		if (!by)
			continue;
		fine->held_back = true;
		fine->held_back_why = finding_text(
			findings, _("held back: \"%s\" explains more of the time; mend that first"),
			by->title);
	}
}

/* The layer whose finding explains most; the coarsest while none is known. */
static enum layer leading_layer(const struct findings *findings)
{
	enum layer lead = LAYER_SYSTEM;
	double most = 0;

	for (size_t i = 0; i < findings->at.count; i++) {
		const struct finding *finding = &findings->at.at[i];

		if (weight_of(finding) > most && !finding->held_back) {
			most = weight_of(finding);
			lead = finding->rule->layer;
		}
	}
	return lead;
}

struct place {
	struct finding finding;
	enum layer lead;
	size_t order; /* as the rules told them: qsort is not stable */
};

static int compare(double a, double b)
{
	return (a > b) - (a < b);
}

static int place_order(const void *a_, const void *b_)
{
	const struct place *a = a_, *b = b_;
	const struct finding *x = &a->finding, *y = &b->finding;
	int order;

	if (x->held_back != y->held_back)
		return x->held_back ? 1 : -1;
	if (x->rule->stands != y->rule->stands)
		return x->rule->stands ? -1 : 1;
	/* A by-the-way comes after whatever asks for action. */
	if ((x->severity == SEVERITY_INFO) != (y->severity == SEVERITY_INFO))
		return x->severity == SEVERITY_INFO ? 1 : -1;
	if ((x->rule->layer == a->lead) != (y->rule->layer == a->lead))
		return x->rule->layer == a->lead ? -1 : 1;
	if (x->rule->layer != y->rule->layer)
		return x->rule->layer < y->rule->layer ? -1 : 1;
	order = compare(y->severity, x->severity);
	if (!order)
		order = compare(weight_of(y), weight_of(x));
	return order ? order : (a->order > b->order) - (a->order < b->order);
}

static void tell_in_order(struct findings *findings)
{
	size_t count = findings->at.count;
	enum layer lead = leading_layer(findings);
	OWN(own_freep) struct place *places = mem_alloc((count + 1) * sizeof(*places));

	for (size_t i = 0; i < count; i++)
		places[i] = (struct place){ findings->at.at[i], lead, i };
	qsort(places, count, sizeof(*places), place_order);
	for (size_t i = 0; i < count; i++)
		findings->at.at[i] = places[i].finding;
}

void findings_order(struct findings *findings)
{
	hold_back_finer(findings);
	tell_in_order(findings);
}

void rule_apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	if (rule->apply)
		rule->apply(facts, rule, findings);
	for (uint32_t i = 0; rule->concerns && i < facts->kernels.count; i++) {
		if (rule->concerns(facts, i))
			rule->tell(facts, rule, i, findings);
	}
}

void rules_run(const struct facts *facts, struct findings *findings)
{
	for (const struct rule *const *rule = RULES; *rule; rule++)
		rule_apply(facts, *rule, findings);
	/* What the damaged part held might say otherwise. */
	for (size_t i = 0; i < findings->at.count && facts->damaged_chunks > 0; i++)
		findings->at.at[i].grade = GRADE_LOW;
	findings_order(findings);
}

void findings_done(struct findings *findings)
{
	for (size_t i = 0; i < findings->at.count; i++) {
		struct finding *finding = &findings->at.at[i];

		VEC_DONE(&finding->evidence);
		VEC_DONE(&finding->advice);
		VEC_DONE(&finding->next);
	}
	VEC_DONE(&findings->at);
	VEC_DONE(&findings->abstained);
	arena_done(&findings->arena);
}
