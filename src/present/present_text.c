#include "present/present.h"

#include <string.h>

#include "base/i18n.h"
#include "base/units.h"
#include "present/source_devices.h"
#include "present/text.h"

enum { COLUMNS_DEFAULT = 80, COLUMNS_MIN = 60, TOP_DEFAULT = 8 };

const char *text_string(struct page *page, const struct facts *facts, uint32_t id)
{
	return page_clean(page, session_text(facts->session, id));
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Another device that a reader could mistake for this one. */
static bool has_twin(const struct session *session, uint32_t id)
{
	const struct device *device = &session->devices.at[id];

	for (size_t i = 0; i < session->devices.count; i++) {
		if (i != id && session->devices.at[i].ordinal == device->ordinal &&
		    session->devices.at[i].part == device->part)
			return true;
	}
	return false;
}

static bool is_switch(const struct session *session, uint32_t id)
{
	return !strcmp(session_text(session, session->devices.at[id].name), "NVSwitch");
}

const char *text_device_short(struct page *page, const struct facts *facts, uint32_t id)
{
	const struct session *session = facts->session;
	const struct device *device;
	const char *label;

	if (id >= session->devices.count)
		return _("device ?");
	device = &session->devices.at[id];
	/* Known from a kernel log alone: by its slot. */
	if (device->ordinal < 0 && device->pci_bus)
		return page_printf(page, "%s %s", is_switch(session, id) ? "NVSwitch" : "GPU",
				   text_string(page, facts, device->pci_bus));
	label = device->ordinal >= 0 ? page_printf(page, _("GPU %lld"), (long long)device->ordinal)
				     : page_printf(page, _("GPU"));
	if (device->part)
		label = page_printf(page, "%s %s", label, text_string(page, facts, device->part));
	if (has_twin(session, id) && device->source < session->sources.count) {
		const struct source *source = &session->sources.at[device->source];

		if (source->rank >= 0)
			return page_printf(page, _("%s of rank %d"), label, (int)source->rank);
		return page_printf(page, "%s (%s)", label,
				   base_name(text_string(page, facts, source->file)));
	}
	return label;
}

/* "GPU 0 NVIDIA H200", told apart by rank or file where several are called the
 * same. */
/* What the timeline says in one sentence. */
static const char *busy_sentence(struct page *page, const struct facts *facts)
{
	const struct device_fact *least = NULL;
	double least_share = 0, most_share = 0;
	struct unit_text low, high, span, setup;
	struct judged judged;
	size_t count = 0;

	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];

		double share;

		judged = device_judged(device);
		if (!device->has_timeline || judged.span_ns <= 0)
			continue;
		share = (double)judged.busy_ns / (double)judged.span_ns;
		if (!count++ || share < least_share) {
			least = device;
			least_share = share;
		}
		most_share = share > most_share ? share : most_share;
	}
	if (!count)
		return NULL;
	(void)units_share(&low, least_share);
	(void)units_share(&high, most_share);
	judged = device_judged(least);
	if (count == 1 && judged.steady)
		return page_printf(page,
				   _("%s was busy for %s of %s of steady work (set-up of %s before "
				     "is left out)."),
				   text_device_short(page, facts, least->device), low.at,
				   units_ns(&span, judged.span_ns),
				   units_ns(&setup, least->setup.ns));
	if (count == 1)
		return page_printf(page, _("%s was busy for %s of %s."),
				   text_device_short(page, facts, least->device), low.at,
				   units_ns(&span, judged.span_ns));
	return page_printf(page, _("%d GPUs were busy for %s to %s of their time."), (int)count,
			   low.at, high.at);
}

/* A GPU counts once, by itself or by the first of its parts. */
static bool first_part(const struct facts *facts, size_t index)
{
	const struct session *session = facts->session;
	const struct device_fact *at = facts->devices.at;

	if (at[index].device >= session->devices.count)
		return true;
	for (size_t i = 0; i < index; i++) {
		const struct device *a = &session->devices.at[at[index].device], *b;

		if (!at[i].has_system || at[i].device >= session->devices.count)
			continue;
		b = &session->devices.at[at[i].device];
		if ((a->part || b->part) && a->ordinal == b->ordinal)
			return false;
	}
	return true;
}

static const char *samples_sentence(struct page *page, const struct facts *facts)
{
	struct unit_text interval, count;
	int64_t samples = 0, interval_ns = FACT_UNKNOWN;
	int devices = 0;

	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];

		if (!device->has_system)
			continue;
		devices += first_part(facts, i);
		samples = device->system.samples > samples ? device->system.samples : samples;
		if (device->system.interval_ns != FACT_UNKNOWN)
			interval_ns = device->system.interval_ns;
	}
	if (!devices)
		return NULL;
	if (samples > 1 && interval_ns != FACT_UNKNOWN)
		return page_printf(
			page,
			ngettext("%d GPU, sampled %s times, %s apart.",
				 "%d GPUs, sampled %s times, %s apart.", (unsigned long)devices),
			devices, units_count(&count, samples), units_ns(&interval, interval_ns));
	if (samples > 1)
		return page_printf(page,
				   ngettext("%d GPU, sampled %s times.",
					    "%d GPUs, sampled %s times.", (unsigned long)devices),
				   devices, units_count(&count, samples));
	return page_printf(page,
			   ngettext("%d GPU, looked at once.", "%d GPUs, looked at once.",
				    (unsigned long)devices),
			   devices);
}

static const char *counters_sentence(struct page *page, const struct facts *facts)
{
	int measured = 0;

	for (size_t i = 0; i < facts->kernels.count; i++)
		measured += facts->kernels.at[i].counter_launches > 0;
	if (!measured)
		return NULL;
	return page_printf(page,
			   ngettext("%d kernel measured with hardware counters.",
				    "%d kernels measured with hardware counters.",
				    (unsigned long)measured),
			   measured);
}

/* What a kernel log says; NULL if none is in the profile. */
static const char *faults_sentence(struct page *page, const struct facts *facts)
{
	const struct session *session = facts->session;
	int groups = (int)facts->fault_groups.count;
	bool log = groups > 0;

	for (size_t i = 0; i < session->sources.count; i++)
		log = log ||
		      !strcmp(session_text(session, session->sources.at[i].reader), "kernel_log");
	if (!log)
		return NULL;
	if (!groups)
		return _("The kernel log tells of no fault of a GPU.");
	return page_printf(page,
			   ngettext("The kernel log tells of %d kind of fault.",
				    "The kernel log tells of %d kinds of fault.",
				    (unsigned long)groups),
			   groups);
}

static const char *no_activity_sentence(struct page *page, const struct facts *facts)
{
	const struct session *session = facts->session;

	if (facts->damaged_chunks > 0)
		return _("No GPU activity can be read from what is left of this profile.");
	if (!facts->no_device_activity)
		return _("The GPU activity in this trace has no duration.");
	for (size_t i = 0; i < session->sources.count; i++) {
		const char *maker = text_string(page, facts, session->sources.at[i].accelerator);

		if (*maker && strcmp(maker, "NVIDIA") != 0)
			return page_printf(page,
					   _("There is no GPU activity in this trace: it was "
					     "recorded on another accelerator (%s)."),
					   maker);
	}
	if (profile_env(session, "command"))
		return _("No operation of a GPU is in this recording: what it lacks, at its end, "
			 "says why, or the program started none.");
	return _("There is no GPU activity in this trace: only the host was recorded. To see the "
		 "GPU, record with ProfilerActivity.CUDA (torch.profiler) on a machine with one.");
}

/* The first finding that is told and not held back. */
static const struct finding *leading(const struct page *page, const struct findings *findings)
{
	for (size_t i = 0; i < findings->at.count; i++) {
		const struct finding *finding = &findings->at.at[i];

		if (!finding->held_back && finding->severity >= SEVERITY_NOTE &&
		    page_has(page, finding->rule->layer))
			return finding;
	}
	return NULL;
}

static void text_verdict(struct page *page, const struct facts *facts,
			 const struct findings *findings)
{
	const struct finding *first = leading(page, findings);
	const char *mark = page->utf8 ? "\xe2\x96\x8c " : "> ";
	const char *text = busy_sentence(page, facts);

	if (facts->no_device_activity || (facts->has_timeline && !text))
		text = no_activity_sentence(page, facts);
	if (!text)
		text = samples_sentence(page, facts);
	if (!text)
		text = counters_sentence(page, facts);
	if (!text)
		text = faults_sentence(page, facts);
	/* Of programs or lines alone there is nothing to sum up in front of a finding. */
	if (!text && first)
		text = page_printf(page, _("%s."), first->title);
	else if (!text && facts->damaged_chunks > 0)
		text = _("Nothing that can be judged is left of this profile.");
	else if (!text)
		text = _("Nothing that can be judged was recorded.");
	else if (first && first->rule == &rule_open_wait && !facts->no_device_activity)
		/* What hangs is not among what has ended. */
		text = page_printf(page, _("%s. Before that: %s"), first->title, text);
	else if (first)
		text = page_printf(page, _("%s First: %s."), text, first->title);
	else if (!facts->no_device_activity && !facts->damaged_chunks)
		text = page_printf(page,
				   !page->layers ? _("%s Nothing stands out.")
						 : _("%s In this layer nothing stands out."),
				   text);
	page_blank(page);
	page_wrap(page, first ? first->severity == SEVERITY_BAD ? INK_BAD : INK_WAIT : INK_WORK,
		  mark, 2, INK_BOLD, text);
}

void present_text(const struct facts *facts, const struct findings *findings,
		  const struct present_style *style, struct buf *out)
{
	struct page page = {
		.out = out,
		.columns = style->columns < 1             ? COLUMNS_DEFAULT
			   : style->columns < COLUMNS_MIN ? COLUMNS_MIN
							  : style->columns,
		.colour = style->colour,
		.utf8 = style->utf8,
		.top = style->top > 0 ? style->top : TOP_DEFAULT,
		.layers = style->layers,
	};

	text_header(&page, facts);
	text_verdict(&page, facts, findings);
	if (page_has(&page, LAYER_TIMELINE))
		text_timeline(&page, facts);
	text_findings(&page, facts, findings);
	if (page_has(&page, LAYER_SYSTEM))
		text_faults(&page, facts);
	if (page_has(&page, LAYER_KERNEL)) {
		text_kernels(&page, facts);
		text_counters(&page, facts);
	}
	if (page_has(&page, LAYER_TIMELINE))
		text_tables(&page, facts);
	if (page_has(&page, LAYER_SYSTEM)) {
		text_system(&page, facts);
		text_processes(&page, facts);
	}
	text_loss(&page, facts);
	text_abstained(&page, findings);
	text_held_back(&page, facts, findings);
	arena_done(&page.arena);
}
