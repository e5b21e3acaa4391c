/*
 * cmd.h - one command, one file.
 *
 * To add one: cmd_x.c with `const struct cmd cmd_x`, a word in CMD_LIST,
 * doc/man/sonde-x.md, tests/cli/x/. A command parses (the table does), calls
 * one or two functions of a lower layer, and prints.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/opt.h"

struct cmd {
	const char *name;
	const char *summary;     /* one line, no full stop */
	const char *description; /* paragraphs for --help */
	const char *examples;    /* lines for --help */
	const struct opt *opts;
	size_t args_size;
	/* Starts a program that gets signals as we got them. */
	bool keeps_signals;
	/* `args` is the options' struct. 0 or an exit status of the command's own
	 * above 0; negative ERR_*. */
	int (*run)(const void *args, struct err *err);
};

#define CMD_LIST(X)   \
	X(run)        \
	X(import)     \
	X(report)     \
	X(top)        \
	X(monitor)    \
	X(sql)        \
	X(explain)    \
	X(doctor)     \
	X(completion) \
	X(help)

#define X(name) extern const struct cmd cmd_##name;
CMD_LIST(X)
#undef X

const struct cmd *const *cmd_list(size_t *ret_count);
const struct cmd *cmd_find(const char *name);

/* The texts of 'sonde help NAME' and of 'sonde help'. */
void cmd_describe(const struct cmd *cmd, struct buf *out);
void cmd_overview(struct buf *out);

/* ERR_USAGE with the nearest name, or with 'sonde report FILE' for a file. */
int cmd_unknown(const char *name, struct err *err);

/* After ERR_MISSING of the driver or its cards: adds which command tells more. Returns
 * err->code. */
int cmd_ask_doctor(struct err *err);

/* Write `out` to standard output and empty it. ERR_IO, told with its reason. */
int cmd_print(struct buf *out, struct err *err);
