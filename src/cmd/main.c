/*
 * main.c - from argv to an exit status.
 *
 * The only place that prints an error: "sonde COMMAND: line". The status of a
 * failure is its code without the sign (base/err.h); commands may return
 * statuses above 0 of their own.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "cmd/cmd.h"

static int run(const struct cmd *cmd, int argc, const char *const *argv, struct err *err)
{
	OWN(own_freep) void *args = mem_zero(cmd->args_size);
	struct opt_memory *memory = NULL;
	struct buf out = { 0 };
	bool help = false;
	int code = opt_parse(cmd->opts, argc, argv, args, &memory, &help, err);

	if (code < 0)
		return code;
	if (help) {
		cmd_describe(cmd, &out);
		code = cmd_print(&out, err);
	} else {
		code = cmd->run(args, err);
	}
	buf_done(&out);
	opt_done(memory);
	return code;
}

static int show(void (*add)(struct buf *out), struct err *err)
{
	struct buf out = { 0 };
	int code;

	add(&out);
	code = cmd_print(&out, err);
	buf_done(&out);
	return code;
}

static void add_version(struct buf *out)
{
	buf_text(out, "sonde " SONDE_VERSION "\n");
}

int main(int argc, char **argv)
{
	const char *const *words = (const char *const *)argv;
	const char *name = argc > 1 ? argv[1] : "--help";
	const struct cmd *cmd = NULL;
	struct err err = { 0 };
	int code = 0;

	/* `sonde report | head` ends with head, whatever our parent set up. */
	(void)signal(SIGPIPE, SIG_DFL);
	/* A file over the shell's limit is a failed write, to be told as one. */
	(void)signal(SIGXFSZ, SIG_IGN);
	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		code = show(add_version, &err);
	else if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		code = show(cmd_overview, &err);
	else if ((cmd = cmd_find(name)))
		code = run(cmd, argc - 1, words + 1, &err);
	else if (name[0] == '-')
		code = err_set(&err, ERR_USAGE, "no option %s; 'sonde help' tells more", name);
	else
		code = cmd_unknown(name, &err);
	if (code >= 0)
		return code;
	(void)fprintf(stderr, "sonde%s%s: %s\n", cmd ? " " : "", cmd ? cmd->name : "", err.line);
	return -code;
}
