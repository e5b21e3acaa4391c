#include "present/text.h"

#include <string.h>

#include "base/i18n.h"
#include "base/units.h"
#include "present/source_devices.h"

/* Many files or devices: the first few, then how many more. */
enum { HEADER_LINES = 8 };

static const char *text_device(struct page *page, const struct facts *facts, uint32_t id)
{
	const char *label = text_device_short(page, facts, id);
	uint32_t name;

	if (id >= facts->session->devices.count)
		return label;
	name = facts->session->devices.at[id].name;
	return *session_text(facts->session, name) &&
			       strcmp(session_text(facts->session, name), "NVSwitch") != 0
		       ? page_printf(page, "%s  %s", label, text_string(page, facts, name))
		       : label;
}

static void source_line(struct page *page, const struct facts *facts, const struct source *source,
			int indent, const char *label)
{
	struct unit_text text;
	const char *file = page_shorten(page, session_text(facts->session, source->file),
					page->columns - indent);
	const char *reader = text_string(page, facts, source->reader);
	/* Of a damaged profile either may be lost. */
	const char *line =
		page_printf(page, "%s  (%s)", *file ? file : "-", *reader ? reader : "-");

	if (source->rank >= 0)
		line = page_printf(page, _("%s, rank %d"), line, (int)source->rank);
	if (source->first_ns < source->last_ns)
		line = page_printf(page, "%s, %s", line,
				   units_ns(&text, session_source_span(source)));
	if (source->with_stack)
		line = page_printf(page, _("%s, with stacks"), line);
	if (source->truncated)
		line = page_printf(page, _("%s, ends early"), line);
	page_wrap(page, INK_DIM, label, indent, INK_PLAIN, line);
}

static void device_line(struct page *page, const struct facts *facts, uint32_t id, int indent,
			const char *label)
{
	const struct device *device = &facts->session->devices.at[id];
	struct unit_text text;
	const char *line = text_device(page, facts, id);

	if (device->sm_count > 0)
		line = page_printf(page, _("%s, %d SMs"), line, (int)device->sm_count);
	if (device->memory_bytes > 0)
		line = page_printf(page, "%s, %s", line, units_bytes(&text, device->memory_bytes));
	page_wrap(page, INK_DIM, label, indent, INK_PLAIN, line);
}

static void more_line(struct page *page, size_t count, int indent)
{
	if (count > HEADER_LINES)
		page_wrap(page, INK_PLAIN, "", indent, INK_DIM,
			  page_printf(page, _("and %d more"), (int)(count - HEADER_LINES)));
}

/* What was run and how it ended, and the processes of it. */
static void command_line(struct page *page, const struct facts *facts, uint32_t command, int indent,
			 const char *label)
{
	const struct session *session = facts->session;
	const char *status = text_string(page, facts, profile_env(session, "exit_status"));
	const char *line = text_string(page, facts, command);

	if (*status)
		line = page_printf(page, _("%s  (exit status %s)"), line, status);
	page_wrap(page, INK_DIM, label, indent, INK_PLAIN, line);
}

/* How many processes of the source have this row's name; 0: one before it has. */
static size_t namesakes(const struct session *session, uint32_t source, size_t row)
{
	size_t count = 0;

	for (size_t i = 0; i < session->processes.count; i++) {
		const struct process *process = &session->processes.at[i];

		if (process->source != source || process->name != session->processes.at[row].name ||
		    !session_process_is_bare(session, (uint32_t)i))
			continue;
		if (i < row)
			return 0;
		count++;
	}
	return count;
}

/* "8 x python: pt_data_worker, sh" */
static const char *names_in(struct page *page, const struct facts *facts, uint32_t source)
{
	enum { NAMES = 6 };
	const struct session *session = facts->session;
	const char *line = "";
	size_t told = 0, more = 0;

	for (size_t i = 0; i < session->processes.count; i++) {
		const struct process *process = &session->processes.at[i];
		bool is_bare =
			process->source == source && session_process_is_bare(session, (uint32_t)i);
		size_t count = is_bare ? namesakes(session, source, i) : 0;
		const char *name = text_string(page, facts, process->name);

		if (!*name) /* one may call itself so */
			name = page_printf(page, _("process %lld"), (long long)process->pid);
		if (count && told < NAMES)
			line = count > 1
				       ? page_printf(page, "%s%s%zu x %s", line, told ? ", " : "",
						     count, name)
				       : page_printf(page, "%s%s%s", line, told ? ", " : "", name);
		else
			more += count;
		told += count > 0;
	}
	return more ? page_printf(page, _("%s and %d more"), line, (int)more) : line;
}

/* "python3 (pid 760), rank 0, on GPU 0, 6.83 s" */
static void process_line(struct page *page, const struct facts *facts, uint32_t id, int indent)
{
	const struct session *session = facts->session;
	const struct source *source = &session->sources.at[id];
	uint32_t devices[HEADER_LINES];
	size_t count = source_devices(session, id, devices, HEADER_LINES);
	const char *line = text_string(page, facts, source->file);
	struct unit_text text;

	if (!strcmp(session_text(session, source->reader), "nvml"))
		line = _("the cards, sampled meanwhile");
	if (!strcmp(session_text(session, source->reader), "perf"))
		line = _("context switches of its threads");
	if (!strcmp(session_text(session, source->reader), READER_PROC))
		line = page_printf(page, _("%s, without CUDA or NVTX"), names_in(page, facts, id));
	if (source->rank >= 0)
		line = page_printf(page, _("%s, rank %d"), line, (int)source->rank);
	for (size_t i = 0; i < count && i < HEADER_LINES; i++)
		line = page_printf(page, i ? "%s, %s" : _("%s, on %s"), line,
				   text_device_short(page, facts, devices[i]));
	if (source->first_ns < source->last_ns)
		line = page_printf(page, "%s, %s", line,
				   units_ns(&text, session_source_span(source)));
	if (source->truncated)
		line = page_printf(page, _("%s, ends early"), line);
	page_wrap(page, INK_PLAIN, "", indent, INK_PLAIN, line);
}

/* Of each process of it more became known: then that has a line of its own. */
static bool is_told_elsewhere(const struct session *session, uint32_t id)
{
	if (strcmp(session_text(session, session->sources.at[id].reader), READER_PROC) != 0)
		return false;
	for (uint32_t i = 0; i < session->processes.count; i++)
		if (session->processes.at[i].source == id && session_process_is_bare(session, i))
			return false;
	return true;
}

static void sources(struct page *page, const struct facts *facts, int indent, const char *label)
{
	const struct session *session = facts->session;
	uint32_t command = profile_env(session, "command");

	size_t lines = 0;

	if (command)
		command_line(page, facts, command, indent, label);
	for (uint32_t i = 0; i < session->sources.count; i++) {
		if (is_told_elsewhere(session, i) || lines++ >= HEADER_LINES)
			continue;
		if (command)
			process_line(page, facts, i, indent);
		else
			source_line(page, facts, &session->sources.at[i], indent, i ? "" : label);
	}
	more_line(page, lines, indent);
}

void text_header(struct page *page, const struct facts *facts)
{
	const struct session *session = facts->session;
	const char *from = page_printf(page, "%s  ", _("recorded"));
	const char *device = page_printf(page, "%s  ", _("device"));
	int indent = present_width(from), wide = present_width(device);

	indent = wide > indent ? wide : indent;
	page_ink(page, INK_BOLD, "sonde");
	page_ink(page, INK_PLAIN, page_printf(page, "  %s", facts->path ? facts->path : ""));
	page_blank(page);
	page_blank(page);
	sources(page, facts, indent, from);
	for (size_t i = 0; i < session->devices.count && i < HEADER_LINES; i++)
		device_line(page, facts, (uint32_t)i, indent, i ? "" : device);
	more_line(page, session->devices.count, indent);
	if (facts->damaged_chunks > 0)
		page_wrap(page, INK_PLAIN, "", indent, INK_BAD,
			  page_printf(page,
				      ngettext("The profile is damaged: %d block of it can't be "
					       "read. Every number below lacks what was in it.",
					       "The profile is damaged: %d blocks of it can't be "
					       "read. Every number below lacks what was in them.",
					       (unsigned long)facts->damaged_chunks),
				      (int)facts->damaged_chunks));
	else if (facts->was_cut)
		page_wrap(page, INK_PLAIN, "", indent, INK_BAD,
			  _("The recording was cut off; this is what was saved."));
}
