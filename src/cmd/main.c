/*
 * main.c - from argv to an exit status.
 *
 * The only place that prints an error: "sonde COMMAND: line". The status of a
 * failure is its code without the sign (base/err.h); commands may return
 * statuses above 0 of their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "cmd/cmd.h"

static int run(const struct cmd *cmd, int argc, const char *const *argv, struct err *err)
{
	OWN(own_freep) void *args = mem_zero(cmd->args_size);
	struct opt_memory *memory = NULL;
	bool help = false;
	int code = opt_parse(cmd->opts, argc, argv, args, &memory, &help, err);

	if (code < 0)
		return code;
	if (help) {
		struct buf out = { 0 };

		cmd_describe(cmd, &out);
		(void)fwrite(out.at, 1, out.len, stdout);
		buf_done(&out);
	} else {
		code = cmd->run(args, err);
	}
	opt_done(memory);
	return code;
}

/* A file over the shell's limit is a failed write, to be told as one. Not SIG_IGN,
 * which a program that we start would inherit. */
static void on_size_limit(int number)
{
	(void)number;
}

static void take_signals(const struct cmd *cmd)
{
	struct sigaction size_limit;

	if (sigaction(SIGXFSZ, NULL, &size_limit) == 0 && size_limit.sa_handler != SIG_IGN)
		(void)signal(SIGXFSZ, on_size_limit);
	if (cmd && cmd->keeps_signals)
		return;
	/* `sonde report | head` ends with head, whatever our parent set up. */
	(void)signal(SIGPIPE, SIG_DFL);
	/* Ignored it would leave us no child to wait for. */
	(void)signal(SIGCHLD, SIG_DFL);
}

/* A file that we open must not become standard output: what is printed would go into it. What
 * takes the place refuses as a closed one does, and closes when a program is started. */
static void fill_standard_files(void)
{
	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC) < 0)
			return;
	}
}

static int overview(void)
{
	struct buf out = { 0 };

	cmd_overview(&out);
	(void)fwrite(out.at, 1, out.len, stdout);
	buf_done(&out);
	return 0;
}

/* What a full disk or a closed descriptor behind stdout refused would be lost
 * silently at exit. A reader that went away is no failure. */
static int flush_output(int code, struct err *err)
{
	bool failed;

	errno = 0;
	failed = fflush(stdout) || ferror(stdout);
	if (!failed || code < 0 || errno == EPIPE)
		return code;
	if (!errno)
		return err_set(err, ERR_IO, "standard output: could not be written");
	return err_errno(err, "standard output");
}

int main(int argc, char **argv)
{
	const char *const *words = (const char *const *)argv;
	const char *name = argc > 1 ? argv[1] : "--help";
	const struct cmd *cmd = NULL;
	struct err err = { 0 };
	int code = 0;

	/* Large buffers come and go all the time: giving them back to the kernel
	 * in between costs more than a quarter of an import in page faults. */
	(void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, 512 << 20);
	fill_standard_files();
	take_signals(cmd_find(name));
	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		(void)puts("sonde " SONDE_VERSION);
	else if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		code = overview();
	else if ((cmd = cmd_find(name)))
		code = run(cmd, argc - 1, words + 1, &err);
	else if (name[0] == '-')
		code = err_set(&err, ERR_USAGE, "no option %s; 'sonde help' tells more", name);
	else
		code = cmd_unknown(name, &err);
	code = flush_output(code, &err);
	if (code >= 0)
		return code;
	(void)fprintf(stderr, "sonde%s%s: %s\n", cmd ? " " : "", cmd ? cmd->name : "", err.line);
	return -code;
}
