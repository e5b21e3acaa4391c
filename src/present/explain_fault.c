/*
 * A pasted line of the kernel log, taken apart before it is explained.
 */
#include "present/present.h"

#include <inttypes.h>

#include "base/i18n.h"
#include "base/json.h"
#include "know/fault_catalogue.h"
#include "know/fault_line.h"
#include "know/kernel_line.h"
#include "present/page.h"

bool present_explain_find(struct str text, struct fault *ret_fault)
{
	struct fault_parser parser = { 0 };
	struct kernel_line line;
	struct buf memory = { 0 };
	enum fault_line got = FAULT_LINE_NONE;

	/* Several lines may have been pasted; the first fault counts. */
	while (got != FAULT_LINE_FAULT && text.at && text.len) {
		kernel_line_parse(str_cut(&text, '\n'), &memory, &line);
		got = fault_line_parse(&parser, line.message, ret_fault);
	}
	if (got != FAULT_LINE_FAULT)
		got = fault_line_end(&parser, ret_fault);
	buf_done(&memory);
	return got == FAULT_LINE_FAULT && ret_fault->kind != FAULT_IDENTITY &&
	       ret_fault->kind != FAULT_DRIVER;
}

struct row {
	const char *label;
	const char *text;
};

enum { ROWS_MAX = 20 };

struct rows {
	struct page *page;
	struct row at[ROWS_MAX];
	size_t count;
};

static void add(struct rows *rows, const char *label, const char *text)
{
	if (*text && rows->count < ROWS_MAX)
		rows->at[rows->count++] = (struct row){ label, page_clean(rows->page, text) };
}

static void add_number(struct rows *rows, const struct fault *fault, enum fault_number number,
		       const char *label, bool hex, int64_t value)
{
	struct buf text = { 0 };

	if (!fault_has(fault, number))
		return;
	if (hex)
		buf_printf(&text, "0x%" PRIx64, value);
	else
		buf_printf(&text, "%" PRId64, value);
	add(rows, label, page_printf(rows->page, "%s", text.at));
	buf_done(&text);
}

static void add_link(struct rows *rows, const struct fault *fault)
{
	struct buf words = { 0 };

	if (fault_has(fault, FAULT_LINK) && fault->link < 0)
		add(rows, _("link"), _("none"));
	else
		add_number(rows, fault, FAULT_LINK, _("link"), false, fault->link);
	add_number(rows, fault, FAULT_UNIT, _("unit"), false, fault->unit);
	add_number(rows, fault, FAULT_STATUS, _("status"), true, fault->status);
	if (fault_has(fault, FAULT_FATAL))
		add(rows, _("fatal"), fault->fatal ? _("yes") : _("no"));
	for (uint32_t i = 0; i < fault->word_count; i++)
		buf_printf(&words, "%s0x%08" PRIx32, i ? " " : "", fault->words[i]);
	if (words.len)
		add(rows, _("words"), page_printf(rows->page, "%s", words.at));
	buf_done(&words);
}

static void add_place(struct rows *rows, const struct fault *fault)
{
	add(rows, "PCI", fault->pci);
	add_number(rows, fault, FAULT_SWITCH, "NVSwitch", false, fault->switch_index);
	add_number(rows, fault, FAULT_GPU_INSTANCE, _("MIG GPU instance"), false,
		   fault->gpu_instance);
	add_number(rows, fault, FAULT_COMPUTE_INSTANCE, _("MIG compute instance"), false,
		   fault->compute_instance);
	if (fault_has(fault, FAULT_SM))
		add(rows, "SM",
		    page_printf(rows->page, "GPC %d, TPC %d, SM %d", (int)fault->gpc,
				(int)fault->tpc, (int)fault->sm));
	add_number(rows, fault, FAULT_ADDRESS, _("address"), true, fault->address);
}

static void add_all(struct rows *rows, const struct fault *fault)
{
	add_place(rows, fault);
	add_number(rows, fault, FAULT_PID, "pid", false, fault->pid);
	add(rows, _("process"), fault->process);
	add_number(rows, fault, FAULT_PREVIOUS, _("caused by Xid"), false, fault->previous);
	if (fault_has(fault, FAULT_ACTION_TO))
		add(rows, _("recovery action"),
		    page_printf(rows->page, "%s -> %s: %s", fault->action_before, fault->event,
				_(fault_recovery_text(fault->action_to))));
	else
		add(rows, _("event"), fault->event);
	add_link(rows, fault);
	add(rows, _("library"), fault->client);
	add(rows, _("kernel module"), fault->module);
	add(rows, "cgroup", fault->cgroup);
	add(rows, _("text"), fault->text);
}

void present_explain_fault(const struct fault *fault, const struct present_style *style,
			   struct buf *out)
{
	struct page page = { .out = out,
			     .columns = style->columns < 60 ? 60 : style->columns,
			     .colour = style->colour,
			     .utf8 = style->utf8 };
	struct rows rows = { .page = &page };
	struct fault_meaning meaning;
	struct buf title = { 0 };
	int indent = 0;

	fault_title(fault, &title);
	add_all(&rows, fault);
	fault_meaning_of(fault, &meaning);
	/* What has a number is explained by its entry, which follows. */
	if (!meaning.known || !*meaning.name) {
		add(&rows, _("meaning"), _(meaning.meaning));
		if (*meaning.causes)
			add(&rows, _("likely causes"), _(meaning.causes));
		add(&rows, _("what to do"), _(meaning.action));
	} else if (fault->kind == FAULT_XID && fault_has(fault, FAULT_FATAL))
		add(&rows, _("what to do"), _(meaning.action));
	page_wrap(&page, INK_DIM, page_printf(&page, "%s  ", _("The line")),
		  present_width(_("The line")) + 2, INK_BOLD, _(title.at));
	buf_done(&title);
	for (size_t i = 0; i < rows.count; i++) {
		int cells = present_width(rows.at[i].label);

		indent = cells > indent ? cells : indent;
	}
	for (size_t i = 0; i < rows.count; i++)
		page_wrap(&page, INK_DIM, page_printf(&page, "  %s", rows.at[i].label), indent + 4,
			  INK_PLAIN, rows.at[i].text);
	arena_done(&page.arena);
}

void present_explain_fault_json(const struct fault *fault, struct json *json)
{
	struct buf detail = { 0 };
	struct str rest;

	/* The same keys as in a profile. */
	fault_detail(fault, &detail);
	rest = (struct str){ detail.at, detail.len };
	json_object(json, "line");
	while (rest.at && rest.len) {
		struct str value, key;
		struct buf name = { 0 };
		int64_t number;

		if (str_starts(rest, "text=")) {
			json_text(json, "text", fault->text);
			break;
		}
		value = str_cut(&rest, ';');
		key = str_cut(&value, '=');
		if (str_is(key, "time"))
			continue;
		buf_add(&name, key.at, key.len);
		if (str_to_i64(value, &number))
			json_i64(json, name.at, number);
		else
			json_str(json, name.at, value);
		buf_done(&name);
	}
	json_end(json);
	buf_done(&detail);
}
