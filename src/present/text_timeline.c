#include "present/text.h"

#include <string.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/tell_thread.h"

/* One part of a device's span in the bar. */
struct part {
	const char *label;
	const char *glyph;
	char ascii;
	enum ink ink;
	int64_t ns;
};

enum { PART_COUNT = 2 + IDLE_COUNT, BAR_INDENT = 2, NS_WIDTH = 10, SHARE_WIDTH = 9 };

static const struct part IDLE_PARTS[IDLE_COUNT] = {
	[IDLE_HOST_LATE] = { N_("idle: host late"), "\xe2\x96\x91", '.', INK_WAIT, 0 },
	[IDLE_SYNC_BLOCKED] = { N_("idle: host in a sync"), "\xe2\x96\x92", 's', INK_BLOCK, 0 },
	[IDLE_LAUNCH_RATE] = { N_("idle: launches too slow"), "\xe2\x95\x8c", 'l', INK_WAIT, 0 },
	[IDLE_DEPENDENCY] = { N_("idle: waits for a stream"), "\xe2\x94\x86", 'd', INK_BLOCK, 0 },
	[IDLE_SETUP] = { N_("idle: set-up"), "\xe2\x97\xa6", 'u', INK_DIM, 0 },
	[IDLE_PEER] = { N_("idle: waits for a peer"), "\xe2\x89\x88", 'p', INK_BLOCK, 0 },
	[IDLE_UNATTRIBUTED] = { N_("idle: cause not recorded"), "\xc2\xb7", '?', INK_DIM, 0 },
};

static void fill_parts(const struct judged *device, struct part *parts)
{
	int64_t copies = device->busy_ns - device->kernel_ns;

	parts[0] = (struct part){ N_("kernels"), "\xe2\x96\x88", '#', INK_WORK, device->kernel_ns };
	parts[1] = (struct part){ N_("copies and sets alone"), "\xe2\x96\x93", '=', INK_COPY,
				  copies > 0 ? copies : 0 };
	for (int i = 0; i < IDLE_COUNT; i++) {
		parts[2 + i] = IDLE_PARTS[i];
		parts[2 + i].ns = device->idle[i].ns;
	}
}

/* Cells by largest remainder; what is there at all gets one. */
static void apportion(const struct part *parts, int cells, int *share)
{
	double sum = 0, rest[PART_COUNT];
	int given = 0;

	for (int i = 0; i < PART_COUNT; i++)
		sum += (double)parts[i].ns;
	for (int i = 0; i < PART_COUNT; i++) {
		double exact = sum > 0 ? (double)parts[i].ns / sum * cells : 0;

		share[i] = parts[i].ns > 0 && exact < 1 ? 1 : (int)exact;
		rest[i] = exact - share[i];
		given += share[i];
	}
	while (sum > 0 && given != cells) {
		int step = given < cells ? 1 : -1, best = -1;

		for (int i = 0; i < PART_COUNT; i++) {
			if ((step > 0 ? parts[i].ns > 0 : share[i] > 1) &&
			    (best < 0 || rest[i] * step > rest[best] * step))
				best = i;
		}
		if (best < 0)
			break;
		share[best] += step;
		rest[best] -= step;
		given += step;
	}
}

static const char *glyph(struct page *page, const struct part *part)
{
	return page->utf8 ? part->glyph : page_printf(page, "%c", part->ascii);
}

static void print_bar(struct page *page, const struct part *parts)
{
	int share[PART_COUNT];

	apportion(parts, page->columns - 2 * BAR_INDENT, share);
	page_pad(page, INK_PLAIN, "", BAR_INDENT);
	for (int i = 0; i < PART_COUNT; i++)
		page_repeat(page, parts[i].ink, glyph(page, &parts[i]), share[i]);
	page_blank(page);
}

static const char *phase_label(enum phase phase)
{
	static const char *const label[] = {
		[PHASE_FORWARD] = N_("forward"),     [PHASE_BACKWARD] = N_("backward"),
		[PHASE_OPTIMIZER] = N_("optimizer"), [PHASE_LOADER] = N_("data loader"),
		[PHASE_READBACK] = N_("read-back"),  [PHASE_OTHER] = "",
	};

	return *label[phase] ? _(label[phase]) : "";
}

/* Calls of the system and CUPTI's records of overhead are told like calls. */
static const char *call_label(const struct facts *facts, uint32_t name)
{
	for (size_t i = 0; i < facts->overheads.count; i++)
		if (facts->overheads.at[i].name == name)
			return facts->overheads.at[i].own ? _("recording") : _("driver");
	return call_is_cuda(session_text(facts->session, name)) ? _("CUDA call") : _("system call");
}

static const char *activity_label(const struct facts *facts, const struct during *during)
{
	static const char *const label[] = {
		[ACTIVITY_UNKNOWN] = N_("not recorded"), [ACTIVITY_CALL] = "",
		[ACTIVITY_OP] = N_("operator"),          [ACTIVITY_RANGE] = N_("range"),
		[ACTIVITY_PYTHON] = N_("Python"),
	};

	return during->kind == ACTIVITY_CALL ? call_label(facts, during->name)
					     : _(label[during->kind]);
}

enum {
	DURING_SHOWN = 3,
	DURING_INDENT = 4,
	DURING_NS = 10,
	SEEN_INDENT = DURING_INDENT + DURING_NS + 2,
	RANGE_LEAST = 12
};

/* The name, and the range round it where both have room. */
static void print_named(struct page *page, const char *name, const char *range, int room)
{
	const char *in = *range ? page_printf(page, _("in %s"), range) : "";
	const char *kept = page_name(page, name, room);
	int rest = room - present_width(kept) - 2;

	page_ink(page, INK_PLAIN, kept);
	if (!*range || rest < RANGE_LEAST)
		return;
	page_ink(page, INK_DIM, page_printf(page, "  %s", page_name(page, in, rest)));
}

/* "      180 ms  data loader  enumerate(DataLoader)" under a cause. */
static void print_during(struct page *page, const struct facts *facts, const struct idle_fact *idle)
{
	for (size_t i = 0; i < idle->during.count && i < DURING_SHOWN; i++) {
		const struct during *during = &idle->during.at[i];
		const char *what = phase_label(during->phase);
		const char *name = text_string(page, facts, during->name);
		const char *range = during->range ? text_string(page, facts, during->range) : "";
		struct unit_text ns;
		int room;

		if (during->ns * 20 < idle->ns)
			break; /* below a twentieth of the cause nobody needs it */
		(void)units_ns(&ns, during->ns);
		if (!*what)
			what = activity_label(facts, during);
		room = page->columns - DURING_INDENT - DURING_NS - 2 - present_width(what) - 2;
		page_pad(page, INK_PLAIN, "", DURING_INDENT + DURING_NS - present_width(ns.at));
		page_ink(page, INK_PLAIN, ns.at);
		page_ink(page, INK_DIM, page_printf(page, "  %s  ", what));
		print_named(page, name, range, room);
		page_blank(page);
	}
}

/* "              5.58 ms of it from a short kernel to the next, queued by then". */
static void print_turnaround(struct page *page, const struct idle_fact *idle)
{
	struct unit_text ns;

	if (idle->turnaround_ns && idle->turnaround_ns * 20 >= idle->ns)
		page_wrap(page, INK_PLAIN, "", SEEN_INDENT, INK_DIM,
			  page_printf(page,
				      _("%s of it from a short kernel to the next, queued by then"),
				      units_ns(&ns, idle->turnaround_ns)));
}

enum seen_as { SEEN_TEXT, SEEN_NAME };

/* "              in Python: collate data.py:41, in 41 of 50 looks": the name gives way, so
 * that how often it was seen stays on the page. */
static void print_seen(struct page *page, const char *what, enum seen_as as, const char *name,
		       const char *tail)
{
	int room = page->columns - SEEN_INDENT - present_width(what) - present_width(tail);

	room = room < RANGE_LEAST ? RANGE_LEAST : room;
	name = as == SEEN_NAME ? page_name(page, name, room) : page_shorten(page, name, room);
	page_wrap(page, INK_PLAIN, "", SEEN_INDENT, INK_DIM,
		  page_printf(page, "%s%s%s", what, name, tail));
}

static const char *looks_text(struct page *page, int64_t part, int64_t all)
{
	/* behind "in Python: collate data.py:41": 41, 50 */
	return page_printf(page, _(", in %lld of %lld looks"), (long long)part, (long long)all);
}

/* Of the first causes findings say it. A thread that runs while it waits for the GPU, or
 * while what it launched waits for a stream, does nothing that it should not. */
static const char *meanwhile_text(enum idle_cause cause, enum thread_wait wait)
{
	if (cause == IDLE_HOST_LATE || cause == IDLE_LAUNCH_RATE)
		return "";
	if (wait == THREAD_RUNS)
		return cause == IDLE_SYNC_BLOCKED ? _("it ran: in the call, where the driver "
						      "copies, or spins while it waits")
						  : "";
	return thread_wait_text(wait);
}

/* "              its thread: waiting: futex, in 41 of 50 looks". */
static void print_thread(struct page *page, const struct facts *facts, const struct idle_fact *idle)
{
	enum thread_wait wait = thread_wait(facts, idle);
	struct unit_text ns, all;
	const char *meanwhile;

	if (idle->thread_state)
		print_seen(page, _("its thread: "), SEEN_TEXT, idle->thread_state,
			   idle->thread_ns ? page_printf(page, _(", %s of %s"),
							 units_ns(&ns, idle->thread_state_ns),
							 units_ns(&all, idle->thread_ns))
					   : looks_text(page, idle->thread_state_looks,
							idle->thread_looks));
	meanwhile = idle->thread_state ? meanwhile_text(idle->cause, wait) : "";
	if (*meanwhile)
		page_wrap(page, INK_PLAIN, "", SEEN_INDENT, INK_DIM, meanwhile);
	if (idle->python)
		print_seen(page, _("in Python: "), SEEN_TEXT,
			   text_string(page, facts, idle->python),
			   looks_text(page, idle->python_function_looks, idle->python_looks));
	for (size_t i = 0; i < idle->board.count; i++)
		page_wrap(page, INK_PLAIN, "", SEEN_INDENT, INK_DIM,
			  page_printf(page, _("in the longest gap: %s"), idle->board.at[i]));
	if (idle->cpu && !idle->cpu_is_python)
		print_seen(page, _("on a core: "), SEEN_NAME, text_string(page, facts, idle->cpu),
			   page_printf(page, _(", in %lld of %lld samples"),
				       (long long)idle->cpu_function_samples,
				       (long long)idle->cpu_samples));
}

/* "6,040 kernels", and "20,000 graphs" of which the kernels are not known one by one. */
static const char *kernels_aside(struct page *page, int64_t kernels, int64_t graphs)
{
	const char *some = NULL, *blocks = NULL;
	struct unit_text count;

	if (kernels != FACT_UNKNOWN && (kernels > 0 || graphs <= 0))
		some = page_printf(page,
				   ngettext("%s kernel", "%s kernels", (unsigned long)kernels),
				   units_count(&count, kernels));
	if (graphs > 0)
		blocks = page_printf(page, ngettext("%s graph", "%s graphs", (unsigned long)graphs),
				     units_count(&count, graphs));
	return some && blocks ? page_printf(page, "%s, %s", some, blocks) : some ? some : blocks;
}

/* The legend, which is the table of the times at once. */
static void print_parts(struct page *page, const struct facts *facts, const struct judged *device,
			int64_t graphs, const struct part *parts)
{
	int label = 0;

	for (int i = 0; i < PART_COUNT; i++) {
		int cells = parts[i].ns ? present_width(page_clean(page, _(parts[i].label))) : 0;

		label = cells > label ? cells : label;
	}
	for (int i = 0; i < PART_COUNT; i++) {
		const struct idle_fact *idle = i >= 2 ? &device->idle[i - 2] : NULL;
		const char *ns = cell_ns(page, parts[i].ns);
		const char *share = cell_of(page, parts[i].ns, device->span_ns);
		struct unit_text longest, count;
		const char *aside;

		if (!parts[i].ns)
			continue;
		page_pad(page, INK_PLAIN, "", BAR_INDENT);
		page_ink(page, parts[i].ink, glyph(page, &parts[i]));
		page_ink(page, INK_PLAIN, " ");
		page_pad(page, INK_PLAIN, _(parts[i].label), label);
		page_pad(page, INK_PLAIN, "", NS_WIDTH - present_width(ns));
		page_ink(page, INK_PLAIN, ns);
		page_pad(page, INK_PLAIN, "", SHARE_WIDTH - (share ? present_width(share) : 1));
		page_ink(page, INK_PLAIN, share ? share : "-");
		aside = NULL;
		if (idle && idle->count > 0)
			aside = page_printf(page,
					    ngettext("%s gap, longest %s", "%s gaps, longest %s",
						     (unsigned long)idle->count),
					    units_count(&count, idle->count),
					    units_ns(&longest, idle->longest_ns));
		else if (i == 0)
			aside = kernels_aside(page, device->kernel_count, graphs);
		/* A narrow page does without. */
		if (aside && BAR_INDENT + 2 + label + NS_WIDTH + SHARE_WIDTH + 3 +
					     present_width(page_clean(page, aside)) <=
				     page->columns)
			page_ink(page, INK_DIM, page_printf(page, "   %s", aside));
		page_blank(page);
		if (idle) {
			print_during(page, facts, idle);
			print_turnaround(page, idle);
			print_thread(page, facts, idle);
		}
	}
}

static void remark(struct page *page, const char *text)
{
	page_wrap(page, INK_PLAIN, "", BAR_INDENT, INK_DIM, text);
}

/* Who waits for whom. */
static void print_waits(struct page *page, const struct device_fact *device)
{
	const struct idle_fact *idle = device->idle;
	int64_t gpu_ns = idle[IDLE_HOST_LATE].ns + idle[IDLE_LAUNCH_RATE].ns + idle[IDLE_SETUP].ns;
	struct unit_text host, host_share, gpu, gpu_share;

	if (device->host_wait_ns == FACT_UNKNOWN || device->span_ns <= 0)
		return;
	remark(page,
	       page_printf(
		       page,
		       _("The host waited for the GPU in %s of the span (%s), the GPU for the host "
			 "in %s (%s)."),
		       units_ns(&host, device->host_wait_ns),
		       units_share(&host_share,
				   (double)device->host_wait_ns / (double)device->span_ns),
		       units_ns(&gpu, gpu_ns),
		       units_share(&gpu_share, (double)gpu_ns / (double)device->span_ns)));
}

/* Of nodes of graphs CUPTI does not know it. */
static void print_queued(struct page *page, const struct device_fact *device)
{
	struct unit_text a, b, c, d;
	const char *median = units_ns(&a, device->queued_p50_ns);
	const char *most = units_ns(&b, device->queued_p95_ns);

	if (device->queued_count >= device->kernel_count)
		remark(page, page_printf(page,
					 _("From the driver's queue to the start: median %s, 95 %% "
					   "under %s."),
					 median, most));
	else
		remark(page, page_printf(page,
					 _("From the driver's queue to the start: median %s, 95 %% "
					   "under %s, where it is known: %s of %s kernels."),
					 median, most, units_count(&c, device->queued_count),
					 units_count(&d, device->kernel_count)));
}

/* A kernel can start while its launch is still on the way back: then nothing was to wait. */
static void print_delay(struct page *page, const struct device_fact *device)
{
	struct unit_text median, most;

	if (device->delay_p50_ns == FACT_UNKNOWN || device->delay_p95_ns == FACT_UNKNOWN)
		return;
	(void)units_ns(&median, device->delay_p50_ns);
	(void)units_ns(&most, device->delay_p95_ns);
	if (device->delay_p50_ns > 0)
		remark(page,
		       page_printf(page, _("From launch to start: median %s, 95 %% under %s."),
				   median.at, most.at));
	else if (device->delay_p95_ns > 0)
		remark(page, page_printf(page,
					 _("Half of the kernels and more had started when their "
					   "launch returned, 95 %% within %s behind it."),
					 most.at));
	else
		remark(page, _("The kernels had started when their launch returned."));
}

/* A sentence each for what the bar can't show. */
static void print_remarks(struct page *page, const struct device_fact *device)
{
	struct judged judged = device_judged(device);
	struct unit_text a, b, c;

	if (judged.waiting_ns != FACT_UNKNOWN && judged.waiting_ns > 0)
		remark(page, page_printf(page,
					 _("%s of the busy time is waiting for another rank inside "
					   "collectives."),
					 units_ns(&a, judged.waiting_ns)));
	if (judged.steady)
		remark(page, _("Of the whole span, set-up included:"));
	print_waits(page, device);
	print_delay(page, device);
	if (device->queued_p50_ns != FACT_UNKNOWN && device->queued_p95_ns != FACT_UNKNOWN)
		print_queued(page, device);
	if (device->small_kernels > 0 && device->kernel_count > 0)
		remark(page, page_printf(page,
					 ngettext("%s of %s kernels is shorter than %s.",
						  "%s of %s kernels are shorter than %s.",
						  (unsigned long)device->small_kernels),
					 units_count(&a, device->small_kernels),
					 units_count(&b, device->kernel_count),
					 units_ns(&c, SMALL_KERNEL_NS)));
	if (judged.waiting_ns == FACT_UNKNOWN && device->collective_suspect_ns != FACT_UNKNOWN &&
	    device->collective_suspect_ns > 0)
		remark(page,
		       page_printf(page,
				   _("Collectives last %s; up to %s of that may be waiting for "
				     "a late rank, which one rank alone can't show."),
				   units_ns(&a, device->collective_ns),
				   units_ns(&b, device->collective_suspect_ns)));
	if (device->copy_overlap_ns != FACT_UNKNOWN && device->copy_overlap_ns > 0)
		remark(page, page_printf(page, _("%s of %s copying ran under kernels."),
					 units_ns(&a, device->copy_overlap_ns),
					 units_ns(&b, device->copy_ns)));
	if (device->stream_overlap_ns != FACT_UNKNOWN && device->stream_overlap_ns > 0)
		remark(page, page_printf(page, _("Two streams or more were busy at once for %s."),
					 units_ns(&a, device->stream_overlap_ns)));
}

static const char *setup_label(enum setup_kind kind)
{
	static const char *const label[SETUP_COUNT] = {
		[SETUP_NONE] = N_("the host's own work"),
		[SETUP_JIT] = N_("compiling"),
		[SETUP_LOAD] = N_("loading modules and kernels"),
		[SETUP_CONTEXT] = N_("making the context"),
		[SETUP_LAUNCH] = N_("first launches"),
		[SETUP_MEMORY] = N_("obtaining memory and streams"),
		[SETUP_BUSY] = N_("copies and kernels"),
	};

	return _(label[kind]);
}

/* "Left out: 6.8 s of set-up before: the host's own work 6.2 s, ...", the longest
 * first. */
static void print_setup(struct page *page, const struct setup_fact *setup)
{
	int64_t part[SETUP_COUNT];
	struct buf line = { 0 };
	struct unit_text ns;

	memcpy(part, setup->part_ns, sizeof(part));
	part[SETUP_NONE] = setup->other_ns;
	buf_printf(&line, _("Left out: %s of set-up before"), units_ns(&ns, setup->ns));
	for (int told = 0; told < SETUP_COUNT; told++) {
		int most = 0;

		for (int kind = 1; kind < SETUP_COUNT; kind++)
			most = part[kind] > part[most] ? kind : most;
		if (part[most] <= 0)
			break;
		buf_printf(&line, "%s%s %s", told ? ", " : ": ", setup_label(most),
			   units_ns(&ns, part[most]));
		part[most] = 0;
	}
	remark(page, line.at);
	buf_done(&line);
}

void text_timeline(struct page *page, const struct facts *facts)
{
	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];
		struct judged judged = device_judged(device);
		struct part parts[PART_COUNT];
		struct unit_text span;

		if (!device->has_timeline)
			continue;
		fill_parts(&judged, parts);
		page_heading(page,
			     page_printf(page, _("Where the time went: %s"),
					 text_device_short(page, facts, device->device)),
			     page_printf(page, judged.steady ? _("steady %s") : _("span %s"),
					 units_ns(&span, judged.span_ns)));
		if (judged.span_ns > 0)
			print_bar(page, parts);
		/* How many of them are of the steady part is not counted. */
		print_parts(page, facts, &judged, judged.steady ? 0 : device->graph_count, parts);
		if (judged.steady)
			print_setup(page, &device->setup);
		print_remarks(page, device);
	}
}
