#include <stdio.h>

#include "base/i18n.h"
#include "cmd/cmd.h"
#include "cmd/terminal.h"
#include "know/know.h"
#include "present/present.h"

struct explain_args {
	bool json;
	bool list;
	const char *lang;
	const char *color;
	struct opt_list words;
};

static const struct opt explain_opts[] = {
	OPT_FLAG(struct explain_args, json, 'j', "json",
		 N_("for programs: schema sonde.explain/1")),
	OPT_FLAG(struct explain_args, list, 0, "list", N_("the names of all entries")),
	OPT_STRING(struct explain_args, lang, 'l', "lang", "en|zh", N_("language of the headings")),
	OPT_STRING(struct explain_args, color, 0, "color", "auto|always|never",
		   N_("auto: on a terminal, unless NO_COLOR is set")),
	OPT_ARGUMENTS(struct explain_args, words, "WORD",
		      N_("a number, a name, or a pasted message"), false),
	OPT_END,
};

static void list(struct buf *out)
{
	struct know_entry entry;

	for (size_t i = 0; know_at(i, &entry); i++)
		buf_printf(out, "%s\t%s\n", entry.kind, entry.name);
}

/* What the tables are asked for a pasted line: its number, not its words. */
static void question_of(const struct fault *fault, struct buf *text)
{
	buf_clear(text);
	if (fault->kind == FAULT_XID || fault->kind == FAULT_SXID)
		buf_printf(text, "%s %lld", fault_kind_name(fault->kind), (long long)fault->number);
	if (fault_has(fault, FAULT_PREVIOUS))
		buf_printf(text, ", xid %lld", (long long)fault->previous);
	if (fault->kind == FAULT_OFF_BUS)
		buf_text(text, "xid 79");
	if (fault->kind == FAULT_MISMATCH)
		buf_text(text, "Failed to initialize NVML: Driver/library version mismatch");
}

static int explain(const struct explain_args *args, struct buf *out, struct err *err)
{
	struct present_style style = terminal_style(args->color);
	struct know_hits hits = { 0 };
	struct buf text = { 0 };
	struct fault fault;
	bool is_line;
	int status = 0;

	for (size_t i = 0; i < args->words.count; i++)
		buf_printf(&text, "%s%s", i ? " " : "", args->words.at[i]);
	is_line = present_explain_find((struct str){ text.at, text.len }, &fault);
	if (is_line)
		question_of(&fault, &text);
	/* A line explains itself even if no table knows its number. */
	if (text.len)
		status = know_find(text.at, &hits, is_line ? NULL : err);
	if (is_line && !hits.exact)
		hits.count = 0;
	buf_done(&text);
	if (status < 0 && !is_line)
		return status;
	if (args->json) {
		present_explain_json(&hits, is_line ? &fault : NULL, out);
		return 0;
	}
	if (is_line)
		present_explain_fault(&fault, &style, out);
	if (is_line && hits.count)
		buf_char(out, '\n');
	if (hits.count)
		present_explain(&hits, &style, out);
	return 0;
}

static int explain_run(const void *arguments, struct err *err)
{
	const struct explain_args *args = arguments;
	struct buf out = { 0 };
	int status = terminal_language(args->lang, args->json, err);

	if (status == 0 && args->list)
		list(&out);
	else if (status == 0 && (!args->words.count || !*args->words.at[0]))
		status = err_set(err, ERR_USAGE, "explain what? A WORD, or --list");
	else if (status == 0)
		status = explain(args, &out, err);
	if (status == 0)
		status = cmd_print(&out, err);
	buf_done(&out);
	return status;
}

const struct cmd cmd_explain = {
	.name = "explain",
	.summary = N_("Say what a number, a metric, a stall reason or an error text means"),
	.description = N_("Knows Xid and SXid numbers, hardware metrics, stall reasons, concepts,\n"
			  "symptoms, error texts and what is widely repeated and wrong. Every\n"
			  "entry names its source."),
	.examples = "  sonde explain 79\n"
		    "  sonde explain occupancy\n"
		    "  sonde explain long_scoreboard\n"
		    "  dmesg | grep Xid | tail -1 | xargs -d '\\n' sonde explain",
	.opts = explain_opts,
	.args_size = sizeof(struct explain_args),
	.run = explain_run,
};
