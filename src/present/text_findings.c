#include "present/text.h"

#include <math.h>
#include <string.h>

#include "base/call_stack.h"
#include "base/i18n.h"
#include "base/units.h"
#include "base/vec.h"
#include "rules/rule.h"
#include "rules/short_name.h"

static const char *severity_label(enum severity severity)
{
	static const char *const label[] = {
		[SEVERITY_INFO] = N_("info"),
		[SEVERITY_NOTE] = N_("note"),
		[SEVERITY_WARN] = N_("warning"),
		[SEVERITY_BAD] = N_("bad"),
	};

	return _(label[severity]);
}

static enum ink severity_ink(enum severity severity)
{
	static const enum ink ink[] = { INK_DIM, INK_PLAIN, INK_WAIT, INK_BAD };

	return ink[severity];
}

static const char *grade_label(enum grade grade)
{
	static const char *const label[] = {
		[GRADE_NONE] = N_("not graded"),
		[GRADE_LOW] = N_("low"),
		[GRADE_MEDIUM] = N_("medium"),
		[GRADE_HIGH] = N_("high"),
	};

	return _(label[grade]);
}

/* The labels at the left of a finding's lines; one width for all of them. */
enum field { FIELD_COST, FIELD_BECAUSE, FIELD_SURE, FIELD_DO, FIELD_NEXT, FIELD_OR, FIELD_COUNT };

static const char *const FIELD_LABEL[FIELD_COUNT] = {
	[FIELD_COST] = N_("costs"), [FIELD_BECAUSE] = N_("because"), [FIELD_SURE] = N_("sure"),
	[FIELD_DO] = N_("do"),      [FIELD_NEXT] = N_("run next"),   [FIELD_OR] = N_("or else"),
};

enum { FIELD_INDENT = 3, FIELD_GAP = 2 };

static int field_width(struct page *page)
{
	int width = 0;

	for (int i = 0; i < FIELD_COUNT; i++) {
		int cells = present_width(page_clean(page, _(FIELD_LABEL[i])));

		width = cells > width ? cells : width;
	}
	return FIELD_INDENT + width + FIELD_GAP;
}

static void print_field(struct page *page, enum field field, bool first, const char *text)
{
	const char *label = first ? _(FIELD_LABEL[field]) : "";

	page_wrap(page, INK_DIM, page_printf(page, "%*s%s", FIELD_INDENT, "", label),
		  field_width(page), INK_PLAIN, text);
}

/* Several lines of one field: each with a mark of its own. */
static void print_list(struct page *page, enum field field, const char *const *at, size_t count)
{
	const char *mark = page->utf8 ? "\xc2\xb7 " : "- ";

	for (size_t i = 0; i < count; i++) {
		int indent = field_width(page);
		const char *label = page_printf(page, "%*s%s", FIELD_INDENT, "",
						i ? "" : _(FIELD_LABEL[field]));
		int blanks = indent - present_width(page_clean(page, label));

		if (count < 2) {
			print_field(page, field, true, at[i]);
			return;
		}
		page_wrap(page, INK_DIM, page_printf(page, "%s%*s%s", label, blanks, "", mark),
			  indent + 2, INK_PLAIN, at[i]);
	}
}

/* Findings on one device may speak of different times: each says of which. */
static const char *with_share(struct page *page, const struct finding *finding, const char *cost)
{
	struct unit_text text;
	const char *share = units_share(&text, finding->impact_share);

	switch (finding->impact_of) {
	case STRETCH_SPAN:
		return page_printf(page, _("%s, up to %s of the span"), cost, share);
	case STRETCH_WHOLE:
		return page_printf(page, _("%s, up to %s of the whole span, set-up included"), cost,
				   share);
	case STRETCH_STEADY:
		return page_printf(page, _("%s, up to %s of the steady part"), cost, share);
	case STRETCH_STEPS:
		return page_printf(page, _("%s, up to %s of the time in steps"), cost, share);
	case STRETCH_SAMPLES:
		return page_printf(page, _("%s, up to %s of the time that was sampled"), cost,
				   share);
	}
	return cost;
}

static void print_cost(struct page *page, const struct finding *finding)
{
	struct unit_text low, high;
	const char *text;

	if (finding->impact_low_ns == FACT_UNKNOWN || finding->impact_high_ns == FACT_UNKNOWN)
		return;
	(void)units_ns(&low, finding->impact_low_ns);
	(void)units_ns(&high, finding->impact_high_ns);
	text = finding->impact_low_ns == finding->impact_high_ns
		       ? page_printf(page, "%s", high.at)
		       : page_printf(page, _("%s to %s"), low.at, high.at);
	if (isfinite(finding->impact_share))
		text = with_share(page, finding, text);
	print_field(page, FIELD_COST, true, text);
}

static void print_evidence(struct page *page, const struct finding *finding)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < finding->evidence.count; i++) {
		const struct evidence *evidence = &finding->evidence.at[i];
		const char *value =
			cell_value(page, evidence->value, evidence->unit ? evidence->unit : "");

		buf_printf(&text, "%s%s %s", i ? "; " : "", evidence->metric, value ? value : "-");
		if (evidence->where && *evidence->where) {
			buf_text(&text, " (");
			if (stack_step(evidence->where))
				short_stack(evidence->where, &text);
			else
				buf_text(&text, evidence->where);
			buf_char(&text, ')');
		}
	}
	if (text.len)
		print_field(page, FIELD_BECAUSE, true, text.at);
	buf_done(&text);
}

static void print_sure(struct page *page, const struct finding *finding)
{
	const char *text = grade_label(finding->grade);
	struct unit_text share;

	if (isfinite(finding->coverage))
		text = page_printf(page, _("%s; the evidence covers %s of what it speaks about"),
				   text, units_share(&share, finding->coverage));
	print_field(page, FIELD_SURE, true, text);
}

static void print_title(struct page *page, const struct finding *finding, int number)
{
	const char *tag =
		page_printf(page, "[%s: %s]", severity_label(finding->severity), finding->rule->id);
	const char *mark = page_printf(page, "%d.", number);
	int used = FIELD_INDENT + present_width(page_clean(page, finding->title)) + 2 +
		   present_width(page_clean(page, tag));

	page_blank(page);
	if (used <= page->columns) {
		page_pad(page, severity_ink(finding->severity), mark, FIELD_INDENT);
		page_pad(page, INK_BOLD, finding->title,
			 page->columns - used + 2 +
				 present_width(page_clean(page, finding->title)));
		page_ink(page, severity_ink(finding->severity), tag);
		page_blank(page);
		return;
	}
	page_wrap(page, severity_ink(finding->severity), mark, FIELD_INDENT, INK_BOLD,
		  finding->title);
	page_wrap(page, INK_PLAIN, "", FIELD_INDENT, severity_ink(finding->severity), tag);
}

static const char PLACE_OF_PATH[] = "PROFILE";

/* The profile's path as it can be typed in a shell; NULL where files were
 * imported for this report only, or where it would have to be quoted. */
static const char *path_to_type(const struct facts *facts)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./+:,@%-";
	static const char ending[] = ".sonde";
	const char *path = facts->path ? facts->path : "";
	size_t len = strlen(path);

	if (len < sizeof(ending) || strcmp(path + len + 1 - sizeof(ending), ending) != 0)
		return NULL;
	return path[0] != '-' && strspn(path, plain) == len ? path : NULL;
}

/* What to run next, with this profile's path in it. */
static void print_next(struct page *page, const struct facts *facts, const struct finding *finding)
{
	const char *path = path_to_type(facts);
	VEC(const char *) lines = { 0 };

	for (size_t i = 0; i < finding->next.count; i++) {
		const char *line = finding->next.at[i];
		const char *place = path ? strstr(line, PLACE_OF_PATH) : NULL;

		if (place)
			line = page_printf(page, "%.*s%s%s", (int)(place - line), line, path,
					   place + sizeof(PLACE_OF_PATH) - 1);
		*VEC_ADD(&lines) = line;
	}
	print_list(page, FIELD_NEXT, lines.at, lines.count);
	VEC_DONE(&lines);
}

/* Is there a command that names a profile which nobody has? */
static bool lacks_profile(const struct facts *facts, const struct finding *finding)
{
	for (size_t i = 0; i < finding->next.count; i++) {
		if (strstr(finding->next.at[i], PLACE_OF_PATH) && !path_to_type(facts))
			return true;
	}
	return false;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* What to do and to run next, of two findings. */
static bool same_advice(const struct finding *a, const struct finding *b)
{
	if (!a->advice.count || a->advice.count != b->advice.count ||
	    a->next.count != b->next.count || !same_text(a->runner_up, b->runner_up))
		return false;
	for (size_t i = 0; i < a->advice.count; i++)
		if (!same_text(a->advice.at[i], b->advice.at[i]))
			return false;
	for (size_t i = 0; i < a->next.count; i++)
		if (!same_text(a->next.at[i], b->next.at[i]))
			return false;
	return true;
}

/* `as`: the number of one above that has the same advice, as for another GPU; 0: none. */
static void print_finding(struct page *page, const struct facts *facts,
			  const struct finding *finding, int number, int as)
{
	print_title(page, finding, number);
	page_wrap(page, INK_PLAIN, "", FIELD_INDENT, INK_PLAIN, finding->claim);
	print_cost(page, finding);
	print_evidence(page, finding);
	print_sure(page, finding);
	if (as) {
		print_field(page, FIELD_DO, true, page_printf(page, _("as under %d"), as));
		return;
	}
	print_list(page, FIELD_DO, finding->advice.at, finding->advice.count);
	print_next(page, facts, finding);
	if (finding->runner_up)
		print_field(page, FIELD_OR, true, finding->runner_up);
}

static bool is_told(const struct page *page, const struct finding *finding, bool held_back)
{
	return finding->held_back == held_back && page_has(page, finding->rule->layer);
}

/* The number of the first that is told with the advice of `at`, if it stands before it. */
static int told_before(const struct page *page, const struct findings *findings, size_t at)
{
	int number = 0;

	for (size_t i = 0; i < at; i++) {
		if (!is_told(page, &findings->at.at[i], false))
			continue;
		number++;
		if (same_advice(&findings->at.at[i], &findings->at.at[at]))
			return number;
	}
	return 0;
}

void text_findings(struct page *page, const struct facts *facts, const struct findings *findings)
{
	int told = 0, with_cost = 0;
	bool no_profile = false;

	for (size_t i = 0; i < findings->at.count; i++)
		told += is_told(page, &findings->at.at[i], false);
	if (!told)
		return;
	page_heading(page, _("Findings"), page_printf(page, "%d", told));
	told = 0;
	for (size_t i = 0; i < findings->at.count; i++) {
		const struct finding *finding = &findings->at.at[i];

		if (!is_told(page, finding, false))
			continue;
		print_finding(page, facts, finding, ++told, told_before(page, findings, i));
		no_profile = no_profile || lacks_profile(facts, finding);
		with_cost += finding->impact_high_ns != FACT_UNKNOWN;
	}
	if (with_cost > 1 || facts->host_time_inflated || no_profile)
		page_blank(page);
	if (with_cost > 1)
		page_wrap(page, INK_PLAIN, "", FIELD_INDENT, INK_DIM,
			  _("Times may overlap: savings of different findings do not add up."));
	if (facts->host_time_inflated)
		page_wrap(page, INK_PLAIN, "", FIELD_INDENT, INK_DIM,
			  _("Recorded with stacks, which slows the host: host times are too long, "
			    "and findings on them are graded lower."));
	if (no_profile)
		page_wrap(page, INK_PLAIN, "", FIELD_INDENT, INK_DIM,
			  _("PROFILE is what 'sonde import FILE...' or 'sonde run' writes."));
}

void text_held_back(struct page *page, const struct facts *facts, const struct findings *findings)
{
	bool any = false;

	(void)facts;
	for (size_t i = 0; i < findings->at.count; i++) {
		const struct finding *finding = &findings->at.at[i];
		const char *text;

		if (!is_told(page, finding, true))
			continue;
		if (!any) {
			page_heading(page, _("Held back"), NULL);
			page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
				  _("True, but not yet worth your time."));
		}
		any = true;
		text = page_printf(page, "%s [%s] %s", finding->title, finding->rule->id,
				   finding->claim ? finding->claim : "");
		page_wrap(page, INK_DIM, page->utf8 ? "  \xc2\xb7 " : "  - ", 4, INK_PLAIN, text);
		if (finding->held_back_why)
			page_wrap(page, INK_PLAIN, "", 4, INK_DIM, finding->held_back_why);
	}
}

void text_abstained(struct page *page, const struct findings *findings)
{
	if (!findings->abstained.count)
		return;
	page_heading(page, _("Not judged"), NULL);
	for (size_t i = 0; i < findings->abstained.count; i++)
		page_wrap(page, INK_DIM, page->utf8 ? "  \xc2\xb7 " : "  - ", 4, INK_PLAIN,
			  findings->abstained.at[i]);
}
