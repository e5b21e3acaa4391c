#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyze/facts.h"
#include "base/i18n.h"
#include "base/own.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/directory.h"
#include "cmd/import.h"
#include "cmd/profile_file.h"
#include "cmd/temp.h"
#include "cmd/terminal.h"
#include "present/present.h"
#include "store/store.h"

struct report_args {
	bool json;
	const char *lang;
	const char *layer;
	int top;
	const char *fail_on;
	const char *color;
	const char *last;
	struct opt_list files;
};

static const struct opt report_opts[] = {
	OPT_FLAG(struct report_args, json, 'j', "json", N_("for programs: schema sonde.report/1")),
	OPT_STRING(struct report_args, lang, 'l', "lang", "en|zh", N_("the report's language")),
	OPT_STRING(struct report_args, layer, 0, "layer", "system|timeline|kernel",
		   N_("only this layer")),
	OPT_INT(struct report_args, top, 'n', "top", "N", N_("rows in each table")),
	OPT_STRING(struct report_args, fail_on, 0, "fail-on", "info|note|warn|bad",
		   N_("exit with 1 if a finding is this severe or worse")),
	OPT_STRING(struct report_args, color, 0, "color", "auto|always|never",
		   N_("auto: on a terminal, unless NO_COLOR is set")),
	OPT_STRING(struct report_args, last, 0, "last", "TIME",
		   N_("of a monitor's directory only so much: 90m, 24h, 7d")),
	OPT_ARGUMENTS(
		struct report_args, files, "PROFILE",
		N_("a profile; a directory of sonde monitor; or files of other tools, imported "
		   "for this report only"),
		true),
	OPT_END,
};

static struct present_style style_of(const struct report_args *args)
{
	struct present_style style = terminal_style(args->color);

	style.top = args->top;
	for (int layer = LAYER_SYSTEM; args->layer && layer <= LAYER_KERNEL; layer++) {
		if (!strcmp(args->layer, layer_name((enum layer)layer)))
			style.layers = 1 << layer;
	}
	return style;
}

/* Is any finding at least as severe as `least`, a name of severity_name? */
static bool any_as_bad(const struct findings *findings, const char *least)
{
	for (size_t i = 0; i < findings->at.count; i++) {
		for (int s = SEVERITY_INFO; s <= (int)findings->at.at[i].severity; s++) {
			if (!strcmp(severity_name((enum severity)s), least))
				return true;
		}
	}
	return false;
}

static int report(struct store *store, const char *shown_path, const struct report_args *args,
		  struct err *err)
{
	OWN(facts_freep) struct facts *facts = NULL;
	struct present_style style = style_of(args);
	struct findings findings = { 0 };
	struct buf out = { 0 };
	int status = 0;

	if (facts_build(store, &facts, err) < 0)
		return err->code;
	facts->path = shown_path;
	rules_run(facts, &findings);
	if (args->json)
		present_json(facts, &findings, &out);
	else
		present_text(facts, &findings, &style, &out);
	status = cmd_print(&out, err);
	if (status >= 0 && args->fail_on && any_as_bad(&findings, args->fail_on))
		status = 1;
	findings_done(&findings);
	buf_done(&out);
	return status;
}

/* Traces instead of a profile: what people try first. They go into a profile
 * that nobody sees. If some of the files could not be read, the report of the
 * rest stands, and the failure is told after it. */
static int report_files(const struct report_args *args, struct err *err)
{
	OWN(store_closep) struct store *store = NULL;
	OWN(temp_freep) struct temp *temp = NULL;
	struct buf summary = { 0 };
	struct err own = { 0 };
	bool written = false;
	int imported, status;

	if (temp_new(&temp, err) < 0)
		return err->code;
	imported = import_files(args->files.at, args->files.count, temp_path(temp), &summary,
				&written, err);
	buf_done(&summary);
	if (!written)
		return imported;
	if (store_open(temp_path(temp), &store, &own) < 0) {
		*err = own;
		return err->code;
	}
	status = report(store, args->files.at[0], args, &own);
	if (status < 0)
		*err = own;
	return imported < 0 ? imported : status;
}

/* What a monitor recorded, hour after hour, as one. */
static int report_directory(const struct report_args *args, struct err *err)
{
	OWN(store_closep) struct store *store = NULL;
	OWN(temp_freep) struct temp *temp = NULL;
	int64_t last_ns = 0;

	if (args->last && directory_span(args->last, &last_ns, err) < 0)
		return err->code;
	if (temp_new(&temp, err) < 0 ||
	    directory_join(args->files.at[0], last_ns, temp_path(temp), err) < 0 ||
	    store_open(temp_path(temp), &store, err) < 0)
		return err->code;
	return report(store, args->files.at[0], args, err);
}

static int report_run(const void *arguments, struct err *err)
{
	const struct report_args *args = arguments;
	OWN(store_closep) struct store *store = NULL;
	const char *path = args->files.at[0];

	if (terminal_language(args->lang, args->json, err) < 0)
		return err->code;
	for (size_t i = 0; i < args->files.count; i++) {
		if (args->files.count > 1 && profile_file_is_database(args->files.at[i]))
			return err_set(err, ERR_USAGE, "%s: one profile at a time",
				       args->files.at[i]);
	}
	if (args->files.count == 1 && directory_is(path))
		return report_directory(args, err);
	if (args->last)
		return err_set(err, ERR_USAGE, "--last: %s is not a directory", path);
	if (!strcmp(path, "-") || (!profile_file_is_database(path) && !access(path, R_OK)))
		return report_files(args, err);
	profile_file_tell_newer(path, "report");
	if (store_open(path, &store, err) < 0)
		return err->code;
	return report(store, path, args, err);
}

const struct cmd cmd_report = {
	.name = "report",
	.summary = N_("Say where the time went, why, and what to do"),
	.description = N_("Leads with the layer that explains most: the card, then the timeline,\n"
			  "then single kernels. What was not measured is a dash, never 0."),
	.examples = "  sonde report run.sonde\n"
		    "  sonde report trace.json.gz\n"
		    "  sonde report --last 24h /var/lib/sonde\n"
		    "  sonde report --json run.sonde | jq '.findings[].title'\n"
		    "  sonde report --fail-on warn run.sonde",
	.opts = report_opts,
	.args_size = sizeof(struct report_args),
	.run = report_run,
};
