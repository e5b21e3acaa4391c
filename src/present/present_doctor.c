/*
 * The text of `sonde doctor`: one line that sums up, what can be measured, what
 * to know of the machine, and each way to mend once, with all that it mends.
 */
#include "present/present_doctor.h"

#include <string.h>

#include "base/i18n.h"
#include "present/page.h"

static const struct {
	const char *word;
	enum ink ink;
} STATES[] = {
	[CHECK_UNKNOWN] = { N_("unknown"), INK_DIM },
	[CHECK_OK] = { N_("ok"), INK_WORK },
	[CHECK_LIMITED] = { N_("limited"), INK_WAIT },
	[CHECK_NO] = { N_("no"), INK_BAD },
};

enum { LEFT = 2, GAP = 2, CODE_INDENT = 6 };

static int width_of(struct page *page, const char *text)
{
	return present_width(page_clean(page, text));
}

static void print_summary(struct page *page, const struct checkup *checkup)
{
	const size_t *counts = checkup->counts;
	size_t all =
		counts[CHECK_OK] + counts[CHECK_LIMITED] + counts[CHECK_NO] + counts[CHECK_UNKNOWN];
	const char *line;

	if (checkup_is_fine(checkup)) {
		page_wrap(page, INK_PLAIN, "", 0, INK_BOLD,
			  _("Everything can be measured here, and nothing is wrong."));
		return;
	}
	line = page_printf(page, _("%zu of %zu can be measured here"), counts[CHECK_OK], all);
	if (counts[CHECK_LIMITED])
		line = page_printf(page, _("%s, %zu in part"), line, counts[CHECK_LIMITED]);
	if (counts[CHECK_NO])
		line = page_printf(page, _("%s, %zu not"), line, counts[CHECK_NO]);
	if (counts[CHECK_UNKNOWN])
		line = page_printf(page, _("%s, %zu unknown"), line, counts[CHECK_UNKNOWN]);
	if (checkup->faults)
		line = page_printf(page,
				   ngettext("%s; %zu condition to look at",
					    "%s; %zu conditions to look at", checkup->faults),
				   line, checkup->faults);
	page_wrap(page, INK_PLAIN, "", 0, INK_BOLD, page_printf(page, _("%s."), line));
}

/* "Docker container, KVM · 2 x NVIDIA H200 · driver 580.159.04 · CUDA 13.0" */
static void print_scene(struct page *page, const struct scene *scene, const struct checkup *checkup)
{
	const struct host *host = scene->host;
	const char *dot = page->utf8 ? " \xc2\xb7 " : " - ";
	const char *line = _(place_title(checkup->place));
	size_t cards = 0;

	if (host->machine && strcmp(host->machine, "unknown hypervisor") != 0)
		line = page_printf(page, "%s, %s", line, host->machine);
	if (host->slurm_job)
		line = page_printf(page, _("%s, Slurm job %s"), line, host->slurm_job);
	for (size_t i = 0; scene->cards && i < scene->cards->boards.count; i++)
		cards += scene->cards->boards.at[i].parent < 0;
	if (cards)
		line = page_printf(page, "%s%s%zu x %s", line, dot, cards,
				   scene->cards->boards.at[0].name);
	if (scene->cards && *scene->cards->driver)
		line = page_printf(page, _("%s%sdriver %s, CUDA %s"), line, dot,
				   scene->cards->driver, scene->cards->cuda);
	else if (host->driver)
		line = page_printf(page, _("%s%sdriver %s"), line, dot, host->driver);
	page_wrap(page, INK_PLAIN, "", 0, INK_DIM, line);
}

static void print_checks(struct page *page, const struct checkup *checkup, bool abilities)
{
	int state_width = 0, title_width = 0, indent;

	for (size_t i = 0; i < sizeof(STATES) / sizeof(*STATES); i++) {
		int width = width_of(page, _(STATES[i].word));

		state_width = width > state_width ? width : state_width;
	}
	for (size_t i = 0; i < checkup->at.count; i++) {
		int width = width_of(page, _(checkup->at.at[i].title));

		title_width = width > title_width ? width : title_width;
	}
	indent = LEFT + state_width + GAP + title_width + GAP;
	for (size_t i = 0; i < checkup->at.count; i++) {
		const struct diagnosis *diagnosis = &checkup->at.at[i];

		if (diagnosis->ability != abilities)
			continue;
		page_pad(page, INK_PLAIN, "", LEFT);
		page_pad(page, STATES[diagnosis->state].ink, _(STATES[diagnosis->state].word),
			 state_width + GAP);
		page_pad(page, INK_PLAIN, _(diagnosis->title), title_width + GAP);
		if (i && diagnosis->state != CHECK_OK &&
		    !strcmp(diagnosis->why, checkup->at.at[i - 1].why))
			page_flow(page, indent, INK_DIM, _("as above"));
		else
			page_flow(page, indent, INK_PLAIN, diagnosis->why);
		if (diagnosis->state == CHECK_OK || !diagnosis->costs)
			continue;
		page_pad(page, INK_PLAIN, "", indent);
		page_flow(page, indent, INK_DIM,
			  page_printf(page, _("costs: %s"), diagnosis->costs));
	}
}

static bool same_mend(const struct mend *a, const struct mend *b)
{
	return !strcmp(a->what, b->what) &&
	       (a->lines && b->lines ? !strcmp(a->lines, b->lines) : a->lines == b->lines);
}

static bool has_mend(const struct diagnosis *diagnosis, const struct mend *mend)
{
	for (size_t i = 0; i < diagnosis->mends.count; i++) {
		if (same_mend(&diagnosis->mends.at[i], mend))
			return true;
	}
	return false;
}

/* Titles of all that this mends; NULL if an earlier check was the first. */
static const char *mended_by(struct page *page, const struct checkup *checkup, size_t first,
			     const struct mend *mend)
{
	const char *titles = NULL;

	for (size_t i = 0; i < checkup->at.count; i++) {
		if (!has_mend(&checkup->at.at[i], mend))
			continue;
		if (i < first)
			return NULL;
		titles = titles ? page_printf(page, "%s, %s", titles, _(checkup->at.at[i].title))
				: _(checkup->at.at[i].title);
	}
	return titles;
}

/* As they are to be typed: not wrapped. */
static void print_lines(struct page *page, const char *lines)
{
	while (lines && *lines) {
		size_t len = strcspn(lines, "\n");

		page_pad(page, INK_PLAIN, "", CODE_INDENT);
		page_ink(page, INK_COPY, arena_text(&page->arena, lines, len));
		page_blank(page);
		lines += len + (lines[len] == '\n');
	}
}

static void print_mends(struct page *page, const struct checkup *checkup)
{
	const char *before = NULL;
	bool any = false;

	for (size_t i = 0; i < checkup->at.count; i++) {
		for (size_t m = 0; m < checkup->at.at[i].mends.count; m++) {
			const struct mend *mend = &checkup->at.at[i].mends.at[m];
			const char *titles = mended_by(page, checkup, i, mend);

			if (!titles)
				continue;
			if (!any)
				page_heading(page, _("The least that mends it"),
					     _(place_title(checkup->place)));
			if (!before || strcmp(before, titles) != 0)
				page_wrap(page, INK_PLAIN, "  ", LEFT, INK_BOLD, titles);
			page_wrap(page, INK_PLAIN, "    ", LEFT + 2, INK_PLAIN,
				  page_printf(page, mend->lines ? "%s:" : "%s", mend->what));
			print_lines(page, mend->lines);
			before = titles;
			any = true;
		}
	}
}

void present_doctor(const struct scene *scene, const struct checkup *checkup,
		    const struct present_style *style, struct buf *out)
{
	struct page page = { .out = out,
			     .columns = style->columns < 60 ? 60 : style->columns,
			     .colour = style->colour,
			     .utf8 = style->utf8 };

	print_summary(&page, checkup);
	print_scene(&page, scene, checkup);
	page_heading(&page, _("What can be measured"), NULL);
	print_checks(&page, checkup, true);
	page_heading(&page, _("What to know of this machine"), NULL);
	print_checks(&page, checkup, false);
	print_mends(&page, checkup);
	if (scene->probe_error) {
		page_blank(&page);
		page_wrap(&page, INK_PLAIN, "", 0, INK_WAIT,
			  page_printf(&page, _("The probe did not come to its end: %s."),
				      scene->probe_error));
	} else if (!scene->probe && scene->cards && scene->host->cuptis.count) {
		page_blank(&page);
		page_wrap(&page, INK_PLAIN, "", 0, INK_DIM,
			  _("Tracing, sampling and counters are concluded from rights and "
			    "versions; --probe asks CUPTI itself."));
	}
	arena_done(&page.arena);
}
