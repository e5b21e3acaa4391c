/*
 * What limits cost in all, who had the card when, and cards that differ from
 * their twins.
 */
#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "present/text.h"

static const struct column LEDGER_COLUMNS[] = {
	{ N_("limit in force"), false, true, 0 }, { N_("for"), true, false, 0 },
	{ N_("of the time"), true, false, 0 },    { N_("clock lost"), true, false, 0 },
	{ N_("worth"), true, false, 0 },          { N_("told by"), false, false, 1 },
};

static const char *limit_label(enum limit limit)
{
	static const char *const label[] = {
		[LIMIT_POWER] = N_("power limit"),
		[LIMIT_SW_THERMAL] = N_("temperature, by driver"),
		[LIMIT_HW_THERMAL] = N_("temperature, by card"),
		[LIMIT_POWER_BRAKE] = N_("power brake"),
		[LIMIT_SYNC_BOOST] = N_("sync boost"),
	};

	return _(label[limit]);
}

static const char *means_label(enum ledger_means means)
{
	static const char *const label[] = {
		[LEDGER_UNKNOWN] = "",
		[LEDGER_COUNTER] = N_("counter"),
		[LEDGER_SHARE] = N_("share"),
		[LEDGER_SAMPLED] = N_("samples"),
	};

	return *label[means] ? _(label[means]) : "";
}

void text_ledger(struct page *page, const struct ledger *ledger)
{
	struct table table = { .columns = LEDGER_COLUMNS, .column_count = 6 };
	int64_t lost_ns = 0;
	struct unit_text lost, share;

	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct ledger_row *row = &ledger->row[i];

		if (row->means == LEDGER_UNKNOWN || !row->ns)
			continue;
		lost_ns += row->lost_ns;
		table_cell(&table, limit_label((enum limit)i));
		table_cell(&table, cell_ns(page, row->ns));
		table_cell(&table, cell_of(page, row->ns, ledger->observed_ns));
		table_cell(&table, cell_value(page, row->mhz_lost, "MHz"));
		table_cell(&table, row->clocked_ns ? cell_ns(page, row->lost_ns) : NULL);
		table_cell(&table, means_label(row->means));
	}
	if (!table.cells.count)
		return;
	page_blank(page);
	table_print(page, &table, 2);
	if (lost_ns > 0)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  page_printf(page,
				      _("The lost clocks are worth %s at full clock, %s of the "
					"time that was observed."),
				      units_ns(&lost, lost_ns),
				      units_share(&share,
						  (double)lost_ns / (double)ledger->observed_ns)));
}

const char *text_slots(struct page *page, const struct process_fact *process)
{
	static const char *const bars[] = { "\u2581", "\u2582", "\u2583", "\u2584",
					    "\u2585", "\u2586", "\u2587", "\u2588" };
	static const char signs[] = ".:-=+*%#";
	const char *text = "";

	if (process->sm_ns == FACT_UNKNOWN)
		return NULL;
	for (int i = 0; i < PROCESS_SLOTS; i++) {
		double pct = process->slot_pct[i];
		int step = isnan(pct) ? -1 : (int)(pct * 8 / 100);

		step = step > 7 ? 7 : step;
		if (step < 0)
			text = page_printf(page, "%s ", text);
		else if (page->utf8)
			text = page_printf(page, "%s%s", text, bars[step]);
		else
			text = page_printf(page, "%s%c", text, signs[step]);
	}
	return text;
}

static const struct column TWIN_COLUMNS[] = {
	{ N_("card"), false, false, 0 }, { N_("differs in"), false, true, 0 },
	{ N_("value"), true, false, 0 }, { N_("its twins"), true, false, 0 },
	{ N_("+-"), true, false, 1 },    { N_("of"), true, false, 2 },
};

void text_twins(struct page *page, const struct facts *facts)
{
	struct table table = { .columns = TWIN_COLUMNS, .column_count = 6 };

	for (size_t i = 0; i < facts->twins.count; i++) {
		const struct twin_fact *twin = &facts->twins.at[i];
		const char *unit = metric_unit(twin->metric);
		const char *what = _(metric_what(twin->metric));

		table_cell(&table, text_device_short(page, facts, twin->device));
		table_cell(&table,
			   twin->under_load ? page_printf(page, _("%s, under load"), what) : what);
		table_cell(&table, cell_value(page, twin->value, unit));
		table_cell(&table, cell_value(page, twin->median, unit));
		table_cell(&table, cell_value(page, twin->spread, unit));
		table_cell(&table, cell_count(page, twin->twins));
	}
	if (!table.cells.count)
		return;
	page_heading(page, _("Cards that differ from their twins"), NULL);
	table_print(page, &table, 2);
}
