#include <string.h>

#include "base/i18n.h"
#include "base/own.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/import.h"

struct import_args {
	const char *output;
	struct opt_list files;
};

static const struct opt import_opts[] = {
	OPT_STRING(struct import_args, output, 'o', "output", "PROFILE",
		   N_("write this file; else the first FILE's name with .sonde, here")),
	OPT_ARGUMENTS(struct import_args, files, "FILE",
		      N_("what another tool wrote; - is standard input"), true),
	OPT_END,
};

/* "logs/run1.pt.trace.json.gz" -> "run1.sonde". Names decide nothing else. */
static void add_default_output(struct buf *out, const char *file)
{
	static const char *const endings[] = { ".gz",  ".zst", ".json", ".trace", ".pt",
					       ".csv", ".txt", ".xml",  ".log" };
	const char *slash = strrchr(file, '/');
	struct str name = str_of(slash ? slash + 1 : file);
	size_t i = 0;

	while (i < sizeof(endings) / sizeof(endings[0])) {
		if (name.len > strlen(endings[i]) && str_ends(name, endings[i])) {
			name.len -= strlen(endings[i]);
			i = 0;
		} else {
			i++;
		}
	}
	if (str_is(name, "-") || !name.len)
		name = STR("profile");
	buf_printf(out, "%.*s.sonde", (int)name.len, name.at);
}

static int import_run(const void *arguments, struct err *err)
{
	const struct import_args *args = arguments;
	struct buf output = { 0 }, summary = { 0 };
	bool written = false;
	int code;

	if (args->output)
		buf_text(&output, args->output);
	else
		add_default_output(&output, args->files.at[0]);
	code = import_files(args->files.at, args->files.count, output.at, &summary, &written, err);
	if (written) {
		struct err own = { 0 };

		buf_printf(&summary, "%s %s\n", _("wrote"), output.at);
		if (cmd_print(&summary, &own) < 0 && code >= 0) {
			*err = own;
			code = own.code;
		}
	}
	buf_done(&output);
	buf_done(&summary);
	return code;
}

const struct cmd cmd_import = {
	.name = "import",
	.summary = N_("Read files of other tools into a profile"),
	.description =
		N_("Kineto and other Chrome traces, nvidia-smi's tables, logs and XML, Nsight\n"
		   "Compute's CSV and kernel logs are told apart by their content; gzip and zstd\n"
		   "are undone. Several files of one run make one profile."),
	.examples = "  sonde import trace.json.gz\n"
		    "  sonde import -o run.sonde trace.json.gz dmon.txt q.txt\n"
		    "  nvidia-smi -q | sonde import -o node.sonde -",
	.opts = import_opts,
	.args_size = sizeof(struct import_args),
	.run = import_run,
};
