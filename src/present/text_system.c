#include "present/text.h"

#include <math.h>

#include "base/i18n.h"
#include "base/units.h"

/* Metrics worth a line, in order of telling. The label stands at the head of a
 * row of six numbers in 80 columns: at most 24 cells, in every language. */
static const struct shown {
	enum metric metric;
	const char *label;
} SHOWN[] = {
	{ METRIC_util_pct, N_("a kernel ran") },
	{ METRIC_sm_active_pct, N_("SMs with work") },
	{ METRIC_occupancy_pct, N_("warps resident") },
	{ METRIC_mem_util_pct, N_("memory accessed") },
	{ METRIC_dram_pct, N_("memory interface busy") },
	{ METRIC_tensor_pct, N_("tensor pipes busy") },
	{ METRIC_power_w, N_("board power") },
	{ METRIC_power_limit_w, N_("power limit") },
	{ METRIC_power_violation_pct, N_("held by the power limit") },
	{ METRIC_thermal_violation, N_("held by a thermal limit") },
	{ METRIC_temp_c, N_("GPU temperature") },
	{ METRIC_temp_mem_c, N_("memory temperature") },
	{ METRIC_sm_mhz, N_("SM clock") },
	{ METRIC_graphics_mhz, N_("graphics clock") },
	{ METRIC_max_sm_mhz, N_("highest SM clock") },
	{ METRIC_mem_mhz, N_("memory clock") },
	{ METRIC_mem_used_bytes, N_("memory in use") },
	{ METRIC_mem_total_bytes, N_("memory in all") },
	{ METRIC_pcie_rx_bytes_s, N_("PCIe receive rate") },
	{ METRIC_pcie_tx_bytes_s, N_("PCIe send rate") },
	{ METRIC_nvlink_rx_bytes_s, N_("NVLink receive rate") },
	{ METRIC_nvlink_tx_bytes_s, N_("NVLink send rate") },
	{ METRIC_pcie_gen, N_("PCIe generation") },
	{ METRIC_pcie_width, N_("PCIe width") },
	{ METRIC_ecc_double, N_("uncorrected ECC errors") },
	{ METRIC_remapped_uncorrected, N_("rows remapped, bad") },
	{ METRIC_remapped_pending, N_("row remap pending") },
};

static const struct column METRIC_COLUMNS[] = {
	{ N_("sampled"), false, true, 0 }, { N_("mean"), true, false, 0 },
	{ N_("median"), true, false, 2 },  { N_("min"), true, false, 0 },
	{ N_("p95"), true, false, 1 },     { N_("max"), true, false, 0 },
	{ N_("last"), true, false, 3 },
};

static const struct column ONE_SAMPLE_COLUMNS[] = {
	{ N_("sampled"), false, true, 0 },
	{ N_("value"), true, false, 0 },
};

/* Metrics of one number, for which six columns would be too many. */
struct plain {
	struct buf unchanged; /* in several samples */
	struct buf once;
};

static bool take_plain(struct page *page, struct plain *plain, const struct shown *shown,
		       const struct metric_stats *stats)
{
	struct buf *to = stats->count == 1 ? &plain->once : &plain->unchanged;

	if (stats->min < stats->max)
		return false;
	buf_printf(to, "%s%s %s", to->len ? "; " : "", _(shown->label),
		   cell_value(page, stats->last, metric_unit(shown->metric)));
	return true;
}

static void print_plain(struct page *page, struct plain *plain)
{
	if (plain->unchanged.len)
		page_wrap(
			page, INK_PLAIN, "", 2, INK_DIM,
			page_printf(page, _("The same in all samples: %s."), plain->unchanged.at));
	if (plain->once.len)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  page_printf(page, _("Sampled once: %s."), plain->once.at));
	buf_done(&plain->unchanged);
	buf_done(&plain->once);
}

static void print_metrics(struct page *page, const struct system_facts *system)
{
	struct table table = { .columns = METRIC_COLUMNS, .column_count = 7 };
	bool once = system->samples <= 1;
	struct plain plain = { 0 };

	if (once)
		table = (struct table){ .columns = ONE_SAMPLE_COLUMNS, .column_count = 2 };
	for (size_t i = 0; i < sizeof(SHOWN) / sizeof(*SHOWN); i++) {
		const struct metric_stats *stats = &system->metric[SHOWN[i].metric];
		const char *unit = metric_unit(SHOWN[i].metric);

		if (!stats->count)
			continue;
		if (!once && take_plain(page, &plain, &SHOWN[i], stats))
			continue;
		table_cell(&table, _(SHOWN[i].label));
		table_cell(&table, cell_value(page, stats->mean, unit));
		if (once)
			continue;
		table_cell(&table, cell_value(page, stats->median, unit));
		table_cell(&table, cell_value(page, stats->min, unit));
		table_cell(&table, cell_value(page, stats->p95, unit));
		table_cell(&table, cell_value(page, stats->max, unit));
		table_cell(&table, cell_value(page, stats->last, unit));
	}
	if (table.cells.count)
		table_print(page, &table, 2);
	print_plain(page, &plain);
}

static const char *character_label(enum job_character character)
{
	static const char *const label[] = {
		[CHARACTER_UNKNOWN] = "",          [CHARACTER_IDLE] = N_("idle"),
		[CHARACTER_STEADY] = N_("steady"), [CHARACTER_PERIODIC] = N_("periodic"),
		[CHARACTER_BURSTY] = N_("bursty"),
	};

	return *label[character] ? _(label[character]) : NULL;
}

static void print_character(struct page *page, const struct system_facts *system)
{
	const char *label = character_label(system->character);
	struct unit_text period, bytes;

	if (label && system->period_ns != FACT_UNKNOWN)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  page_printf(page, _("Load: %s, period %s."), label,
				      units_ns(&period, system->period_ns)));
	else if (label)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  page_printf(page, _("Load: %s."), label));
	if (isfinite(system->mem_growth_bytes) && fabs(system->mem_growth_bytes) < 9e18)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  page_printf(page, _("Memory in use grew by %s over the recording."),
				      units_bytes(&bytes, (int64_t)system->mem_growth_bytes)));
	if (system->interval_ns != FACT_UNKNOWN && system->interval_assumed)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  _("The file has no time stamps: the interval is the tool's default."));
}

static const struct column EPISODE_COLUMNS[] = {
	{ N_("clock held down by"), false, true, 0 },
	{ N_("samples"), true, false, 0 },
	{ N_("from"), true, false, 2 },
	{ N_("for"), true, false, 0 },
	{ N_("clock"), true, false, 0 },
	{ N_("below"), true, false, 0 },
	{ N_("power"), true, false, 1 },
	{ N_("hottest"), true, false, 3 },
};

static const char *reason_label(const char *reason)
{
	static const struct {
		const char *reason, *label;
	} labels[] = {
		{ "power", N_("power limit") },       { "thermal", N_("temperature") },
		{ "power_brake", N_("power brake") }, { "sync_boost", N_("sync boost") },
		{ "unknown", N_("unknown") },
	};

	for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++) {
		if (!strcmp(labels[i].reason, reason))
			return _(labels[i].label);
	}
	return reason;
}

static void print_episodes(struct page *page, const struct device_fact *device)
{
	struct table table = { .columns = EPISODE_COLUMNS, .column_count = 8 };

	for (size_t i = 0; i < device->episodes.count && i < (size_t)page->top; i++) {
		const struct episode *episode = &device->episodes.at[i];

		table_cell(&table, reason_label(episode->reason));
		table_cell(&table, page_printf(page, "%lld-%lld", (long long)episode->first_sample,
					       (long long)episode->last_sample));
		table_cell(&table, cell_ns(page, episode->start_ns));
		table_cell(&table,
			   episode->start_ns == FACT_UNKNOWN || episode->end_ns == FACT_UNKNOWN
				   ? NULL
				   : cell_ns(page, episode->end_ns - episode->start_ns));
		table_cell(&table, cell_value(page, episode->mhz_in, "MHz"));
		table_cell(&table, cell_value(page, episode->mhz_before, "MHz"));
		table_cell(&table, cell_value(page, episode->power_w, "W"));
		table_cell(&table, cell_value(page, episode->temp_c, "C"));
	}
	if (table.cells.count)
		page_blank(page);
	table_print(page, &table, 2);
}

void text_system(struct page *page, const struct facts *facts)
{
	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];
		struct unit_text count, interval;
		const char *aside;

		if (!device->has_system)
			continue;
		aside = page_printf(
			page,
			ngettext("%s sample", "%s samples", (unsigned long)device->system.samples),
			units_count(&count, device->system.samples));
		if (device->system.interval_ns != FACT_UNKNOWN && device->system.samples > 1)
			aside = page_printf(page, _("%s, %s apart"), aside,
					    units_ns(&interval, device->system.interval_ns));
		page_heading(page,
			     page_printf(page, _("The board: %s"),
					 text_device_short(page, facts, device->device)),
			     aside);
		print_metrics(page, &device->system);
		if (device->system.samples_outside)
			page_wrap(
				page, INK_PLAIN, "", 2, INK_DIM,
				page_printf(page,
					    ngettext("%s more sample, of a time in which nothing "
						     "was recorded, is left out.",
						     "%s more samples, of times in which nothing "
						     "was recorded, are left out.",
						     (unsigned long)device->system.samples_outside),
					    units_count(&count, device->system.samples_outside)));
		print_character(page, &device->system);
		text_ledger(page, &device->system.ledger);
		print_episodes(page, device);
	}
	text_twins(page, facts);
}

static const struct column PROCESS_COLUMNS[] = {
	{ N_("process"), false, true, 0 },    { N_("pid"), true, false, 0 },
	{ N_("on"), false, false, 1 },        { N_("SM mean"), true, false, 0 },
	{ N_("SM max"), true, false, 0 },     { N_("memory"), true, false, 0 },
	{ N_("grew"), true, false, 2 },       { N_("share"), true, false, 0 },
	{ N_("over time"), false, false, 3 }, { N_("samples"), true, false, 4 },
};

void text_processes(struct page *page, const struct facts *facts)
{
	const struct session *session = facts->session;
	struct table table = { .columns = PROCESS_COLUMNS, .column_count = 10 };

	for (size_t i = 0; i < facts->processes.count && i < (size_t)page->top; i++) {
		const struct process_fact *process = &facts->processes.at[i];
		const struct process *row = process->process < session->processes.count
						    ? &session->processes.at[process->process]
						    : NULL;
		const char *name = row ? text_string(page, facts, row->name) : "";

		if (row && !*name)
			name = text_string(page, facts, row->command);
		table_cell(&table, *name ? name : NULL);
		table_cell(&table, row ? page_printf(page, "%lld", (long long)row->pid) : NULL);
		table_cell(&table, process->device == SESSION_NONE
					   ? NULL
					   : text_device_short(page, facts, process->device));
		table_cell(&table, cell_value(page, process->sm_pct_mean, "%"));
		table_cell(&table, cell_value(page, process->sm_pct_max, "%"));
		table_cell(&table, cell_bytes(page, process->mem_bytes));
		table_cell(&table, cell_bytes(page, process->mem_growth_bytes));
		table_cell(&table, cell_share(page, process->sm_share));
		table_cell(&table, text_slots(page, process));
		table_cell(&table, cell_count(page, process->samples));
	}
	if (!table.cells.count)
		return;
	page_heading(page, _("Who uses the card"), NULL);
	table_print(page, &table, 2);
}
