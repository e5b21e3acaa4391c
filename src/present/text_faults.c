#include "present/text.h"

#include <math.h>
#include <string.h>

#include "base/i18n.h"
#include "base/units.h"

static const struct column FAULT_COLUMNS[] = {
	{ N_("fault"), false, false, 0 },    { N_("name"), false, true, 0 },
	{ N_("on"), false, false, 1 },       { N_("lines"), true, false, 0 },
	{ N_("incidents"), true, false, 4 }, { N_("first at"), true, false, 2 },
	{ N_("process"), false, false, 3 },  { N_("role"), false, false, 0 },
};

/* Beside other slots the word GPU says nothing. */
static const char *place_of(struct page *page, const struct facts *facts, uint32_t device)
{
	const struct device *row;

	if (device >= facts->session->devices.count)
		return NULL;
	row = &facts->session->devices.at[device];
	return row->ordinal < 0 && row->pci_bus ? text_string(page, facts, row->pci_bus)
						: text_device_short(page, facts, device);
}

static const char *title_of(struct page *page, const struct fault *fault)
{
	struct buf text = { 0 };
	const char *title;

	fault_title(fault, &text);
	title = page_printf(page, "%s", _(text.at));
	buf_done(&text);
	return page_clean(page, title);
}

/* What most of its lines are; of a consequence, of what. */
static const char *role_of(struct page *page, const struct facts *facts,
			   const struct fault_group *group)
{
	if (group->role[FAULT_ROLE_CAUSE])
		return _("cause");
	if (group->caused_by != FAULT_NO_INDEX)
		return page_printf(page, _("after %s"),
				   title_of(page, &facts->fault_groups.at[group->caused_by].first));
	if (group->previous >= 0)
		return page_printf(page, _("after Xid %lld"), (long long)group->previous);
	return _("clean-up");
}

static const char *name_of(struct page *page, const struct fault_group *group)
{
	if (*group->first.event &&
	    (group->first.number == 154 || fault_has(&group->first, FAULT_UNIT)))
		return page_clean(page, group->first.event);
	return *group->meaning.name ? group->meaning.name : _(group->meaning.meaning);
}

static void fault_row(struct page *page, const struct facts *facts, const struct fault_group *group,
		      struct table *table)
{
	const char *process = group->processes.count ? group->processes.at[0].name : "";

	table_cell(table, title_of(page, &group->first));
	table_cell(table, name_of(page, group));
	table_cell(table, place_of(page, facts, group->device));
	table_cell(table, group->lower_bound
				  ? page_printf(page, "%s+", cell_count(page, group->count))
				  : cell_count(page, group->count));
	table_cell(table, cell_count(page, group->incidents));
	table_cell(table, group->has_time ? cell_ns(page, group->first_ns) : NULL);
	table_cell(table, *process ? page_shorten(page, process, 15) : NULL);
	table_cell(table, role_of(page, facts, group));
}

void text_faults(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = FAULT_COLUMNS, .column_count = 8 };
	size_t shown = facts->fault_groups.count;
	bool lower = false;
	struct unit_text count;

	if (!shown)
		return;
	if (shown > (size_t)page->top)
		shown = (size_t)page->top;
	page_heading(
		page, _("Faults"),
		page_printf(page,
			    ngettext("%s line", "%s lines", (unsigned long)facts->faults.count),
			    units_count(&count, (int64_t)facts->faults.count)));
	for (size_t i = 0; i < shown; i++) {
		fault_row(page, facts, &facts->fault_groups.at[i], &table);
		lower |= facts->fault_groups.at[i].lower_bound;
	}
	table_print(page, &table, 2);
	if (shown < facts->fault_groups.count)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  page_printf(page, _("and %d more"),
				      (int)(facts->fault_groups.count - shown)));
	if (lower)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  _("+ the driver printed only some of these lines"));
	if (facts->faults_left_out)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  page_printf(page, _("Lines that were too many to keep: %s"),
				      units_count(&count, facts->faults_left_out)));
}
