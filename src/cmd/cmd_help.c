#include "base/i18n.h"
#include "base/own.h"
#include "cmd/cmd.h"

struct help_args {
	struct opt_list names;
};

static const struct opt help_opts[] = {
	OPT_ARGUMENTS(struct help_args, names, "COMMAND", N_("the commands to tell about"), false),
	OPT_END,
};

static int help_run(const void *arguments, struct err *err)
{
	const struct help_args *args = arguments;
	struct buf out = { 0 };
	int code;

	if (!args->names.count)
		cmd_overview(&out);
	for (size_t i = 0; i < args->names.count; i++) {
		const struct cmd *cmd = cmd_find(args->names.at[i]);

		if (!cmd) {
			buf_done(&out);
			return cmd_unknown(args->names.at[i], err);
		}
		if (i)
			buf_char(&out, '\n');
		cmd_describe(cmd, &out);
	}
	code = cmd_print(&out, err);
	buf_done(&out);
	return code;
}

const struct cmd cmd_help = {
	.name = "help",
	.summary = N_("Tell about a command"),
	.opts = help_opts,
	.args_size = sizeof(struct help_args),
	.run = help_run,
};
