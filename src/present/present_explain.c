#include "present/present.h"

#include <string.h>

#include "base/i18n.h"
#include "base/json.h"
#include "present/page.h"

/* Labels of the tables' columns; data/NAME.csv names them. */
static const char *label_of(const struct know_entry *entry, const char *column)
{
	static const struct {
		const char *column, *label;
	} labels[] = {
		{ "name", N_("name") },
		{ "meaning", N_("meaning") },
		{ "likely_causes", N_("likely causes") },
		{ "action", N_("what to do") },
		{ "severity", N_("severity") },
		{ "source", N_("source") },
		{ "unit", N_("unit") },
		{ "class", N_("class") },
		{ "fix", N_("what to do") },
		{ "do_not_confuse", N_("don't confuse") },
		{ "reading", N_("how to read it") },
		{ "the_warp_waits_for", N_("the warp waits for") },
		{ "look_first_at", N_("look first at") },
		{ "right", N_("what is right") },
		{ "first_suspect", N_("first suspect") },
		{ "how_to_confirm", N_("how to confirm") },
		{ "min_linux_driver", N_("driver, Linux") },
		{ "min_windows_driver", N_("driver, Windows") },
		{ "sm_min", N_("lowest SM") },
		{ "sm_max", N_("highest SM") },
		{ "stable_cuda", N_("CUDA, stable") },
		{ "experimental_cuda", N_("CUDA, experimental") },
		{ "compute_capabilities", N_("compute capabilities") },
	};

	/* Elsewhere a unit is a part of the hardware. */
	if (!strcmp(entry->kind, "metric") && !strcmp(column, "unit"))
		return _("measured in");
	for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++) {
		if (!strcmp(labels[i].column, column))
			return _(labels[i].label);
	}
	return column;
}

/* What a fault is and what to do about it has a translation; other tables have none. */
static const char *shown_value(const struct know_entry *entry, const char *column,
			       const char *value)
{
	bool is_fault = !strcmp(entry->kind, "xid") || !strcmp(entry->kind, "sxid");
	bool is_said = !strcmp(column, "meaning") || !strcmp(column, "unit") ||
		       !strcmp(column, "likely_causes") || !strcmp(column, "action");

	return is_fault && is_said && *value ? _(value) : value;
}

static void explain_entry(struct page *page, const struct know_entry *entry)
{
	const char *column, *value;
	int indent = 0;

	page_wrap(page, INK_DIM, page_printf(page, "%s  ", _(entry->title)),
		  present_width(page_clean(page, _(entry->title))) + 2, INK_BOLD, entry->name);
	for (size_t i = 0; know_field(entry, i, &column, &value); i++) {
		int cells = value ? present_width(page_clean(page, label_of(entry, column))) : 0;

		indent = cells > indent ? cells : indent;
	}
	for (size_t i = 0; know_field(entry, i, &column, &value); i++) {
		if (value)
			page_wrap(page, INK_DIM, page_printf(page, "  %s", label_of(entry, column)),
				  indent + 4, !strcmp(column, "source") ? INK_DIM : INK_PLAIN,
				  shown_value(entry, column, value));
	}
}

void present_explain(const struct know_hits *hits, const struct present_style *style,
		     struct buf *out)
{
	struct page page = { .out = out,
			     .columns = style->columns < 60 ? 60 : style->columns,
			     .colour = style->colour,
			     .utf8 = style->utf8 };

	if (!hits->exact && hits->count > 1) {
		page_wrap(&page, INK_PLAIN, "", 0, INK_DIM,
			  _("No exact name or number; by its words this may be about:"));
		page_blank(&page);
	}
	for (size_t i = 0; i < hits->count; i++) {
		if (i)
			page_blank(&page);
		explain_entry(&page, &hits->at[i]);
	}
	arena_done(&page.arena);
}

void present_explain_json(const struct know_hits *hits, const struct fault *fault, struct buf *out)
{
	struct json json = { .out = out };

	json_object(&json, NULL);
	json_text(&json, "schema", "sonde.explain/1");
	if (fault)
		present_explain_fault_json(fault, &json);
	json_bool(&json, "exact", hits->exact);
	json_array(&json, "entries");
	for (size_t i = 0; i < hits->count; i++) {
		const struct know_entry *entry = &hits->at[i];
		const char *column, *value;

		json_object(&json, NULL);
		json_text(&json, "kind", entry->kind);
		json_text(&json, "entry", entry->name);
		for (size_t f = 0; know_field(entry, f, &column, &value); f++) {
			if (value)
				json_text(&json, column, value);
		}
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
	buf_char(out, '\n');
}
