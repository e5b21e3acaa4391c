#include "present/text.h"

#include "base/i18n.h"
#include "base/units.h"

static const char *loss_what(enum loss loss)
{
	static const char *const what[] = {
#define X(id, text) [LOSS_##id] = text,
		LOSS_LIST(X)
#undef X
	};

	return _(what[loss]);
}

static void loss_line(struct page *page, int64_t count, const char *what)
{
	struct unit_text text;

	page_wrap(page, INK_PLAIN, page_printf(page, "%14s  ", units_count(&text, count)), 16,
		  INK_PLAIN, what);
}

/* What the kernel recorded of threads; what was lost of it. */
static int64_t print_perf(struct page *page, const struct session *session)
{
	int64_t seen = session_loss_sum(session, LOSS_seen, true);
	int64_t lost = session_loss_sum(session, LOSS_dropped, true);

	if (seen || lost)
		loss_line(page, seen, _("context switches and samples of threads"));
	if (lost)
		loss_line(page, lost, _("more of these found no room in the kernel's buffer"));
	return lost;
}

static void print_coverage(struct page *page, const struct facts *facts)
{
	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];
		const char *share = cell_share(page, device->coverage);

		if (device->has_timeline && share)
			page_wrap(page, INK_PLAIN, page_printf(page, "%14s  ", share), 16,
				  INK_PLAIN,
				  page_printf(page, _("of the kernels on %s have their launch"),
					      text_device_short(page, facts, device->device)));
	}
}

/* What recording cost the host, in one line, the largest first. */
static void print_overhead(struct page *page, const struct facts *facts)
{
	struct buf line = { 0 };
	struct unit_text ns;
	const char *between = ": ";

	if (facts->own_ns <= 0)
		return;
	buf_printf(&line, _("Recording itself took %s of the host's time"),
		   units_ns(&ns, facts->own_ns));
	for (size_t i = 0; i < facts->overheads.count; i++) {
		const struct overhead_fact *overhead = &facts->overheads.at[i];

		if (!overhead->own || overhead->sum_ns * 50 < facts->own_ns)
			continue;
		buf_printf(&line, "%s%s %s", between, text_string(page, facts, overhead->name),
			   units_ns(&ns, overhead->sum_ns));
		between = ", ";
	}
	page_wrap(page, INK_PLAIN, "", 2, INK_DIM, line.at);
	buf_done(&line);
}

/* In threads of the program, where something was made, obtained, loaded or destroyed. */
static void print_callbacks(struct page *page, const struct facts *facts)
{
	struct unit_text count, ns;
	int64_t all = 0, sum = 0;

	for (size_t i = 0; i < facts->callbacks.count; i++) {
		all += facts->callbacks.at[i].count;
		sum += facts->callbacks.at[i].sum_ns;
	}
	if (all)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  page_printf(page, _("sonde's %s callbacks in the program took %s."),
				      units_count(&count, all), units_ns(&ns, sum)));
}

static const int64_t SHORT_NS = 100000000;

static void print_recorder(struct page *page, const struct recorder_fact *recorder)
{
	struct unit_text ns, cards, share;

	if (!recorder->wall_ns)
		return;
	if (recorder->wall_ns < SHORT_NS) { /* its start and end, and no rate */
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  page_printf(page,
				      _("Beside the program, sonde itself took %s of processor "
					"time."),
				      units_ns(&ns, recorder->cpu_ns)));
		return;
	}
	page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
		  page_printf(
			  page,
			  recorder->cards_cpu_ns
				  ? _("Beside the program, sonde itself took %s of processor time "
				      "(%s of a core), %s of it for the samples of the cards.")
				  : _("Beside the program, sonde itself took %s of processor time "
				      "(%s of a core)."),
			  units_ns(&ns, recorder->cpu_ns),
			  units_share(&share, (double)recorder->cpu_ns / (double)recorder->wall_ns),
			  units_ns(&cards, recorder->cards_cpu_ns)));
}

/* What it added to the program's time, seen by leaving it off now and then. */
static void print_calibrations(struct page *page, const struct facts *facts)
{
	for (size_t i = 0; i < facts->calibrations.count; i++) {
		const struct calibration_fact *fact = &facts->calibrations.at[i];
		struct unit_text low, middle, high, launches;
		int64_t ns[3];

		for (size_t k = 0; k < 3; k++)
			ns[k] = (int64_t)(fact->launch_ns[k] > 0 ? fact->launch_ns[k] : 0);
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM,
			  page_printf(page,
				      _("Recording added %s to each launch (%s to %s), %.1f %% of "
					"the time (%.1f to %.1f), by %d quiet windows and %s "
					"launches"),
				      units_ns(&middle, ns[1]), units_ns(&low, ns[0]),
				      units_ns(&high, ns[2]), fact->share[1] * 100,
				      fact->share[0] * 100, fact->share[2] * 100,
				      (int)fact->windows, units_count(&launches, fact->launches)));
	}
}

/* Recording was off now and then, as asked for. */
static void print_pauses(struct page *page, const struct facts *facts)
{
	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];
		struct unit_text paused;

		if (device->has_timeline && device->paused_ns)
			page_wrap(
				page, INK_PLAIN, "", 2, INK_PLAIN,
				page_printf(page,
					    _("%s: recording was off for %s between its first and "
					      "last operation; no time above has it"),
					    text_device_short(page, facts, device->device),
					    units_ns(&paused, device->paused_ns)));
	}
	if (facts->steps.missed)
		loss_line(page, facts->steps.missed, _("steps in which recording was off"));
}

/* What is missing from the recording: a reader must be able to doubt every
 * number above. All well is one line. */
void text_loss(struct page *page, const struct facts *facts)
{
	const struct session *session = facts->session;
	int64_t lost = 0;

	page_heading(page, _("What the recording lacks"), NULL);
	loss_line(page, session_loss_sum(session, LOSS_seen, false), loss_what(LOSS_seen));
	for (int loss = LOSS_seen + 1; loss < LOSS_COUNT; loss++) {
		int64_t sum = session_loss_sum(session, (enum loss)loss, false);

		if (sum)
			loss_line(page, sum, loss_what((enum loss)loss));
		lost += sum;
	}
	lost += print_perf(page, session);
	if (facts->has_timeline && facts->unmatched_ops > 0)
		loss_line(page, facts->unmatched_ops, _("operations whose launch is not in it"));
	if (facts->has_timeline && facts->unmatched_calls > 0)
		loss_line(page, facts->unmatched_calls, _("launches whose operation is not in it"));
	if (facts->streams_uncompared > 0)
		loss_line(page, facts->streams_uncompared,
			  _("streams of collectives too many to compare between ranks"));
	if (facts->threads_unsearched > 0)
		loss_line(page, facts->threads_unsearched,
			  _("threads too many to search for steps"));
	if (facts->damaged_chunks > 0)
		loss_line(page, facts->damaged_chunks, _("damaged blocks of the profile"));
	print_coverage(page, facts);
	if (!lost && facts->damaged_chunks <= 0)
		page_wrap(page, INK_PLAIN, "", 2, INK_DIM, _("Nothing was lost on the way in."));
	print_overhead(page, facts);
	print_callbacks(page, facts);
	print_recorder(page, &facts->recorder);
	print_calibrations(page, facts);
	print_pauses(page, facts);
	for (size_t i = 0; i < session->missing_columns.count && i < (size_t)page->top; i++)
		page_wrap(page, INK_PLAIN, page_printf(page, "  %s ", _("not in the file:")), 4,
			  INK_PLAIN, text_string(page, facts, session->missing_columns.at[i]));
	for (size_t i = 0; i < session->notes.count && i < (size_t)page->top; i++)
		page_wrap(page, INK_DIM, page->utf8 ? "  \xc2\xb7 " : "  - ", 4, INK_DIM,
			  page_clean(page,
				     text_note(page,
					       session_text(session, session->notes.at[i].text))));
}
