/*
 * The picture for people. A card has a row of numbers, a dim line of details,
 * and a line for each thing that is not as it should be; then the processes,
 * then what has to be said about the numbers.
 */
#include "present/top.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/i18n.h"
#include "base/units.h"
#include "present/top_text.h"

enum { LABEL = 4, BAR = 12, PERCENT = 6, UTIL = 5, POWER = 11, CLOCK = 8, TEMP = 5, GAP = 2 };
enum { INDENT = LABEL + GAP };

/* A gap between a card's memory and its processes' that is worth a line: a
 * context with its libraries takes up to about 1 GiB (measured by PyTorch's
 * maintainers before lazy loading). */
static const double UNACCOUNTED_BYTES = 1073741824.0;
static const double UNACCOUNTED_SHARE = 0.02;

/* Of a card that looks busy, less than this is a trap: DCGM's guidance calls
 * SM activity below half ineffective. */
static const double BUSY_UTIL_PCT = 95, POOR_SM_ACTIVE_PCT = 50;

static bool has(const struct board *board, enum metric metric, double *ret)
{
	return board_get(board, metric, ret, NULL);
}

static void gap(struct page *page)
{
	page_pad(page, INK_PLAIN, "", GAP);
}

/* At the right of `width` cells. */
void top_right(struct page *page, enum ink ink, const char *text, int width)
{
	int blanks;

	text = page_clean(page, text);
	blanks = width - present_width(text);
	page_pad(page, INK_PLAIN, "", blanks > 0 ? blanks : 0);
	page_ink(page, ink, text);
}

/* Eighths of a cell where the terminal has them. */
static void bar(struct page *page, enum ink ink, double pct)
{
	static const char *const part[] = {
		"",
		"\xe2\x96\x8f",
		"\xe2\x96\x8e",
		"\xe2\x96\x8d",
		"\xe2\x96\x8c",
		"\xe2\x96\x8b",
		"\xe2\x96\x8a",
		"\xe2\x96\x89",
	};
	int eighths = (int)lround(pct / 100 * BAR * 8), full;

	eighths = eighths < 0 ? 0 : eighths > BAR * 8 ? BAR * 8 : eighths;
	full = page->utf8 ? eighths / 8 : (eighths + 4) / 8;
	page_repeat(page, ink, page->utf8 ? "\xe2\x96\x88" : "#", full);
	if (page->utf8 && eighths % 8) {
		page_ink(page, ink, part[eighths % 8]);
		full++;
	}
	page_pad(page, INK_PLAIN, "", BAR - full);
}

static const char *percent(struct page *page, double pct)
{
	return page_printf(page, "%.0f %%", pct);
}

static void print_activity(struct page *page, const struct board *board)
{
	double pct;

	if (has(board, METRIC_sm_active_pct, &pct)) {
		bar(page, INK_WORK, pct);
		buf_char(page->out, ' ');
		top_right(page, INK_BOLD, percent(page, pct), PERCENT);
	} else if (top_bound(board, &pct)) {
		bar(page, INK_DIM, pct);
		buf_char(page->out, ' ');
		top_right(page, INK_DIM,
			  pct > 0 ? page_printf(page, "<%.0f %%?", pct) : percent(page, 0),
			  PERCENT);
	} else {
		top_right(page, INK_DIM, "-", BAR + 1 + PERCENT);
	}
}

/* "690/700 W", "690 W" */
static const char *power_cell(struct page *page, const struct board *board)
{
	double power_w, limit_w;

	if (!has(board, METRIC_power_w, &power_w))
		return "-";
	if (!has(board, METRIC_power_limit_w, &limit_w))
		return page_printf(page, "%.0f W", power_w);
	return page_printf(page, "%.0f/%.0f W", power_w, limit_w);
}

/* "61.2/141 GiB": both in the unit of the second. */
static const char *part_of(struct page *page, double used, double total)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double scale = 1;
	size_t unit = 0;

	while (total / scale >= 1024 && unit + 1 < sizeof(units) / sizeof(*units)) {
		scale *= 1024;
		unit++;
	}
	used /= scale;
	total /= scale;
	return page_printf(page, "%.*f/%.*f %s", used < 100 ? 1 : 0, used, total < 100 ? 1 : 0,
			   total, units[unit]);
}

static const char *memory_cell(struct page *page, const struct board *board)
{
	double used, total;

	if (!has(board, METRIC_mem_used_bytes, &used))
		return "-";
	if (!has(board, METRIC_mem_total_bytes, &total))
		return cell_bytes(page, used);
	return part_of(page, used, total);
}

static const char *number_cell(struct page *page, const struct board *board, enum metric metric,
			       const char *unit)
{
	double value;

	return has(board, metric, &value) ? page_printf(page, "%.0f %s", value, unit) : "-";
}

const char *top_label(struct page *page, const struct snapshot *snapshot, uint32_t place)
{
	const struct board *board = &snapshot->boards.at[place];

	if (board->parent < 0)
		return page_printf(page, "%u", board->index);
	return page_printf(page, "%u.%u", snapshot->boards.at[board->parent].index, board->index);
}

static void print_headings(struct page *page)
{
	top_right(page, INK_DIM, "GPU", LABEL);
	gap(page);
	page_pad(page, INK_DIM, _("SM active"), BAR + 1 + PERCENT);
	gap(page);
	top_right(page, INK_DIM, _("util"), UTIL);
	gap(page);
	top_right(page, INK_DIM, _("power"), POWER);
	gap(page);
	top_right(page, INK_DIM, _("clock"), CLOCK);
	gap(page);
	top_right(page, INK_DIM, _("temp"), TEMP);
	gap(page);
	page_ink(page, INK_DIM, _("memory"));
	page_blank(page);
}

static void print_row(struct page *page, const struct snapshot *snapshot, uint32_t place)
{
	const struct board *board = &snapshot->boards.at[place];
	const char *clock = number_cell(page, board, METRIC_sm_mhz, "MHz");

	if (!strcmp(clock, "-"))
		clock = number_cell(page, board, METRIC_graphics_mhz, "MHz");
	top_right(page, INK_BOLD, top_label(page, snapshot, place), LABEL);
	gap(page);
	print_activity(page, board);
	gap(page);
	top_right(page, INK_PLAIN, number_cell(page, board, METRIC_util_pct, "%"), UTIL);
	gap(page);
	top_right(page, INK_PLAIN, power_cell(page, board), POWER);
	gap(page);
	top_right(page, INK_PLAIN, clock, CLOCK);
	gap(page);
	top_right(page, INK_PLAIN, number_cell(page, board, METRIC_temp_c, "C"), TEMP);
	gap(page);
	page_ink(page, INK_PLAIN, memory_cell(page, board));
	page_blank(page);
}

/* "NVIDIA H200 · occupancy 44 % · tensor 61 %" */
static void print_details(struct page *page, const struct board *board)
{
	static const struct {
		enum metric metric;
		const char *name, *unit;
	} details[] = {
		{ METRIC_occupancy_pct, N_("occupancy"), "%" },
		{ METRIC_tensor_pct, N_("tensor"), "%" },
		{ METRIC_dram_pct, N_("DRAM"), "%" },
		{ METRIC_enc_pct, N_("encoder"), "%" },
		{ METRIC_dec_pct, N_("decoder"), "%" },
		{ METRIC_temp_mem_c, N_("memory at"), "C" },
	};
	const char *dot = page->utf8 ? " \xc2\xb7 " : ", ";
	struct buf line = { 0 };
	double value;

	buf_text(&line, *board->mig_profile ? "MIG " : "");
	buf_text(&line, *board->mig_profile ? board->mig_profile : board->name);
	if (!line.len)
		buf_text(&line, *board->pci_bus ? board->pci_bus : _("nameless"));
	for (size_t i = 0; i < sizeof(details) / sizeof(*details); i++) {
		bool coder =
			details[i].metric == METRIC_enc_pct || details[i].metric == METRIC_dec_pct;

		if (!has(board, details[i].metric, &value) || (coder && value <= 0))
			continue;
		buf_text(&line, dot);
		buf_printf(&line, "%s %.0f %s", _(details[i].name), value, details[i].unit);
	}
	if (!has(board, METRIC_dram_pct, NULL) && has(board, METRIC_mem_util_pct, &value)) {
		buf_text(&line, dot);
		buf_printf(&line, _("memory interface %.0f %%"), value);
	}
	page_wrap(page, INK_PLAIN, "", INDENT, INK_DIM,
		  arena_text(&page->arena, line.at, line.len));
	buf_done(&line);
}

static void remark(struct page *page, enum ink ink, const char *text)
{
	page_wrap(page, INK_PLAIN, "", INDENT, ink, text);
}

static void print_reasons(struct page *page, const struct board *board)
{
	struct buf line = { 0 };
	double mask, now, most;

	if (!has(board, METRIC_clock_reasons, &mask) || mask < 0 || mask > 1e15 ||
	    !top_clock_reason((uint64_t)mask, 0))
		return;
	if (has(board, METRIC_sm_mhz, &now) && has(board, METRIC_max_sm_mhz, &most) && most > 0)
		buf_printf(&line, _("clock at %.0f of %.0f MHz, held by: "), now, most);
	else
		buf_text(&line, _("clock held by: "));
	for (size_t i = 0; top_clock_reason((uint64_t)mask, i); i++)
		buf_printf(&line, "%s%s", i ? ", " : "", _(top_clock_reason((uint64_t)mask, i)));
	remark(page, INK_WAIT, arena_text(&page->arena, line.at, line.len));
	buf_done(&line);
}

static const char *recovery_text(int32_t action)
{
	static const char *const text[] = {
		[1] = N_("The driver asks for a reset of this card."),
		[2] = N_("The driver asks for a reboot of this machine."),
		[3] = N_("The driver asks to end peer-to-peer work on this card."),
		[4] = N_("The driver asks to end all work on this card, then to reset it."),
	};

	return action > 0 && action < (int32_t)(sizeof(text) / sizeof(*text)) ? _(text[action])
									      : NULL;
}

static void print_use(struct page *page, const struct board *board)
{
	double util, active, bound;

	if (!has(board, METRIC_util_pct, &util) || util < BUSY_UTIL_PCT)
		return;
	if (has(board, METRIC_sm_active_pct, &active)) {
		if (active < POOR_SM_ACTIVE_PCT)
			remark(page, INK_WAIT,
			       page_printf(page,
					   _("some kernel ran %.0f %% of the time, but only on "
					     "%.0f %% of the SMs"),
					   util, active));
	} else if (!top_bound(board, &bound)) {
		remark(page, INK_DIM,
		       _("utilisation says only that some kernel ran; how much of the card it "
			 "used is not measured here"));
	}
}

/* Numbers of the row that are missing for a reason that somebody can mend or
 * should know; that the card does not tell them is no news. */
static void print_refused(struct page *page, const struct board *board, enum origin why)
{
	static const struct {
		enum metric metric;
		const char *name;
	} numbers[] = {
		{ METRIC_sm_active_pct, N_("SM active") },
		{ METRIC_util_pct, N_("util") },
		{ METRIC_power_w, N_("power") },
		{ METRIC_sm_mhz, N_("clock") },
		{ METRIC_temp_c, N_("temp") },
		{ METRIC_mem_used_bytes, N_("memory") },
	};
	struct buf line = { 0 };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (board->origin[numbers[i].metric] == why)
			buf_printf(&line, "%s%s", line.len ? ", " : "", _(numbers[i].name));
	}
	if (line.len)
		remark(page, INK_WAIT, page_printf(page, "%s: %s", line.at, _(origin_word(why))));
	buf_done(&line);
}

static void print_unaccounted(struct page *page, const struct top_view *view, uint32_t place)
{
	const struct board *board = &view->snapshot->boards.at[place];
	int64_t bytes = roster_unaccounted_bytes(view->snapshot, place);
	struct unit_text text;
	double total = 0;

	(void)has(board, METRIC_mem_total_bytes, &total);
	if ((double)bytes < UNACCOUNTED_BYTES || (double)bytes < UNACCOUNTED_SHARE * total)
		return;
	remark(page, INK_WAIT,
	       page_printf(page,
			   view->nested ? _("%s are held by no process listed here: this shell has "
					    "a PID namespace of its own")
					: _("%s are held by no process that the driver lists"),
			   units_bytes(&text, bytes)));
}

static void print_remarks(struct page *page, const struct top_view *view, uint32_t place)
{
	const struct board *board = &view->snapshot->boards.at[place];

	if (board->state == BOARD_LOST)
		remark(page, INK_BAD,
		       page_printf(page, _("lost: the driver no longer reaches it (NVML %d)"),
				   board->status));
	else if (board->state == BOARD_GONE)
		remark(page, INK_BAD, _("gone: the driver no longer lists it"));
	else if (board->state == BOARD_ASLEEP)
		remark(page, INK_DIM, _("asleep, and left so; --wake asks it"));
	if (recovery_text(board->recovery_action))
		remark(page, INK_BAD, recovery_text(board->recovery_action));
	print_reasons(page, board);
	print_refused(page, board, ORIGIN_NO_PERMISSION);
	print_refused(page, board, ORIGIN_FAILED);
	print_use(page, board);
	if (board->mig_mode == 1 && board->parent < 0 && !has(board, METRIC_util_pct, NULL))
		remark(page, INK_DIM,
		       _("MIG is on: the driver tells no utilisation of the whole card"));
	print_unaccounted(page, view, place);
}

static void print_header(struct page *page, const struct top_view *view)
{
	const struct snapshot *snapshot = view->snapshot;
	time_t seconds = (time_t)(snapshot->utc_ns / 1000000000);
	struct buf host = { 0 };
	struct tm when = { 0 };
	char stamp[32] = "";
	const char *head;
	int blanks;

	if (localtime_r(&seconds, &when))
		(void)strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &when);
	if (isfinite(view->host_busy))
		buf_printf(&host, _("CPU %.0f %%"), 100 * view->host_busy);
	if (view->host.has_memory)
		buf_printf(&host, "%s%s %s", host.len ? ", " : "", _("host memory"),
			   part_of(page,
				   (double)(view->host.mem_total_bytes -
					    view->host.mem_available_bytes),
				   (double)view->host.mem_total_bytes));
	head = page_printf(page, _("%s  driver %s"), stamp,
			   *snapshot->driver ? snapshot->driver : "-");
	page_ink(page, INK_PLAIN, head);
	blanks = page->columns - present_width(head) - present_width(host.at ? host.at : "");
	if (host.len && blanks >= GAP) {
		page_pad(page, INK_PLAIN, "", blanks);
		page_ink(page, INK_DIM, host.at);
	}
	page_blank(page);
	buf_done(&host);
}

static void print_holders(struct page *page, const struct top_view *view)
{
	struct unit_text text;
	long count = 0;
	double sum = 0;

	for (size_t i = 0; i < view->shown.count; i++) {
		const struct roster_row *row = &view->rows[view->shown.at[i]];
		double bytes;

		if (!top_is_idle_holder(row) ||
		    !sample_get(&view->snapshot->processes.at[row->place].sample,
				METRIC_proc_mem_used_bytes, &bytes))
			continue;
		sum += bytes;
		count++;
	}
	if (count && sum < 9e18)
		page_wrap(page, INK_PLAIN, "", 0, INK_WAIT,
			  page_printf(page,
				      ngettext("%s are held by a process that has done no work on "
					       "the GPU for 10 s or more.",
					       "%s are held by processes that have done no work on "
					       "the GPU for 10 s or more.",
					       (unsigned long)count),
				      units_bytes(&text, (int64_t)sum)));
}

/* "12 python, 40 python": who here may be behind PIDs of the host. */
static void print_openers(struct page *page, const struct top_view *view)
{
	struct buf line = { 0 };

	for (size_t i = 0; i < view->opener_count; i++)
		buf_printf(&line, "%s%lld %s", i ? ", " : "", (long long)view->openers[i].pid,
			   view->openers[i].comm);
	if (line.len)
		page_wrap(page, INK_PLAIN, "", 0, INK_DIM,
			  page_printf(page, _("Here these have an NVIDIA device open: %s."),
				      line.at));
	buf_done(&line);
}

static void print_notes(struct page *page, const struct top_view *view)
{
	bool bounded = false, foreign = false;
	double bound;

	for (size_t i = 0; i < view->boards.count; i++) {
		const struct board *board = &view->snapshot->boards.at[view->boards.at[i]];

		bounded = bounded || (top_bound(board, &bound) && bound > 0);
	}
	for (size_t i = 0; i < view->shown.count; i++)
		foreign = foreign || view->rows[view->shown.at[i]].proc.state == PROC_FOREIGN;
	if (bounded)
		page_wrap(page, INK_PLAIN, "", 0, INK_DIM,
			  _("<N %?: SM activity is not measured on this card (GPM: Hopper and "
			    "later). N is the larger of power over its limit and memory use: a "
			    "guess; work that waits can fill more SMs at less power."));
	if (*view->snapshot->wrapper)
		page_wrap(page, INK_PLAIN, "", 0, INK_DIM,
			  page_printf(page,
				      _("Some values are answered by %s instead of the driver: its "
					"memory is a quota, not the card's."),
				      view->snapshot->wrapper));
	if (foreign)
		page_wrap(
			page, INK_PLAIN, "", 0, INK_DIM,
			_("This shell has a PID namespace of its own: PIDs without a user are the "
			  "host's (docker run --pid=host, hostPID: true)."));
	print_openers(page, view);
	if (view->snapshot->junk_rows)
		page_wrap(page, INK_PLAIN, "", 0, INK_DIM,
			  page_printf(page,
				      _("Rows of process use that can't be true, left out: %u."),
				      view->snapshot->junk_rows));
	if (view->trouble)
		page_wrap(page, INK_PLAIN, "", 0, INK_BAD, view->trouble);
}

/* A blank line in front of the notes, now that there are some. */
static void part_notes(struct buf *out, size_t at)
{
	buf_char(out, '\n');
	memmove(out->at + at + 1, out->at + at, out->len - at - 1);
	out->at[at] = '\n';
}

void present_top(const struct top_view *view, const struct present_style *style, struct buf *out)
{
	struct page page = {
		.out = out, .columns = style->columns, .colour = style->colour, .utf8 = style->utf8
	};
	size_t notes_at;

	print_header(&page, view);
	page_blank(&page);
	print_headings(&page);
	for (size_t i = 0; i < view->boards.count; i++) {
		const struct board *board = &view->snapshot->boards.at[view->boards.at[i]];

		print_row(&page, view->snapshot, view->boards.at[i]);
		print_details(&page, board);
		print_remarks(&page, view, view->boards.at[i]);
	}
	page_blank(&page);
	top_processes(&page, view);
	notes_at = out->len;
	print_holders(&page, view);
	print_notes(&page, view);
	if (out->len > notes_at)
		part_notes(out, notes_at);
	arena_done(&page.arena);
}
