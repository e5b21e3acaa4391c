#include "cmd/cmd.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/i18n.h"
#include "base/nearest.h"

static const struct cmd *const cmds[] = {
#define X(name) &cmd_##name,
	CMD_LIST(X)
#undef X
};

const struct cmd *const *cmd_list(size_t *ret_count)
{
	*ret_count = sizeof(cmds) / sizeof(cmds[0]);
	return cmds;
}

const struct cmd *cmd_find(const char *name)
{
	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		if (!strcmp(cmds[i]->name, name))
			return cmds[i];
	}
	return NULL;
}

static void add_usage(const struct cmd *cmd, struct buf *out)
{
	buf_printf(out, "%s sonde %s", _("Usage:"), cmd->name);
	for (const struct opt *opt = cmd->opts; opt->kind != OPT_KIND_END; opt++) {
		if (opt_is_shown(opt)) {
			buf_printf(out, " [%s]", _("options"));
			break;
		}
	}
	for (const struct opt *opt = cmd->opts; opt->kind != OPT_KIND_END; opt++) {
		if (opt->kind == OPT_KIND_COMMAND)
			buf_printf(out, " [--] %s", opt->value);
		else if (opt->kind == OPT_KIND_ARGUMENT)
			buf_printf(out, " %s", opt->value);
		else if (opt->kind == OPT_KIND_ARGUMENTS)
			buf_printf(out, opt->required ? " %s..." : " [%s...]", opt->value);
	}
	buf_char(out, '\n');
}

void cmd_describe(const struct cmd *cmd, struct buf *out)
{
	add_usage(cmd, out);
	buf_printf(out, "\n%s.\n\n", _(cmd->summary));
	if (cmd->description)
		buf_printf(out, "%s\n\n", _(cmd->description));
	opt_help(cmd->opts, out);
	if (cmd->examples)
		buf_printf(out, "\n%s\n%s\n", _("Examples:"), cmd->examples);
}

void cmd_overview(struct buf *out)
{
	buf_printf(out, "%s sonde COMMAND [%s]\n\n%s\n\n", _("Usage:"), _("options"),
		   _("Says where a GPU's time goes, why, and what to do about it."));
	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		buf_printf(out, "  %-12s%s\n", cmds[i]->name, _(cmds[i]->summary));
	buf_printf(out, "\n%s\n%s\n%s\n%s\n%s\n\n%s\n", _("Try:"), "  sonde doctor",
		   "  sonde run -- python train.py", "  sonde report trace.json.gz",
		   "  sonde explain occupancy",
		   _("'sonde help COMMAND' tells more. 'sonde --version' prints the version."));
}

int cmd_unknown(const char *name, struct err *err)
{
	struct nearest nearest = { .word = name };

	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		nearest_try(&nearest, cmds[i]->name);
	if (nearest.best)
		return err_set(err, ERR_USAGE, "no command '%s'; did you mean '%s'?", name,
			       nearest.best);
	/* A file first is what people try who know one command of one tool. */
	if (!access(name, F_OK))
		return err_set(err, ERR_USAGE, "no command '%s'; try 'sonde report %s'", name,
			       name);
	return err_set(err, ERR_USAGE, "no command '%s'; 'sonde help' lists them", name);
}

int cmd_ask_doctor(struct err *err)
{
	char line[sizeof(err->line)];

	if (err->code != ERR_MISSING)
		return err->code;
	(void)snprintf(line, sizeof(line), "%s", err->line);
	return err_set(err, ERR_MISSING, "%.200s; 'sonde doctor' says more", line);
}

int cmd_print(struct buf *out, struct err *err)
{
	size_t written = out->len ? fwrite(out->at, 1, out->len, stdout) : 0;

	/* Now: at exit nobody could say any more why it failed. */
	if (written < out->len || fflush(stdout))
		return err_errno(err, "standard output");
	buf_clear(out);
	return 0;
}
