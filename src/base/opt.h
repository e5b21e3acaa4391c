/*
 * opt.h - options of a command as a table; popt parses.
 *
 * Each row fills a field of the command's struct, so a test can fill it
 * itself. Help, completion and the manual page come from the same rows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum opt_kind {
	OPT_KIND_END,
	OPT_KIND_STRING,
	OPT_KIND_INT,
	OPT_KIND_FLAG,
	OPT_KIND_OPTIONAL,
	OPT_KIND_ARGUMENT,
	OPT_KIND_ARGUMENTS,
	OPT_KIND_COMMAND
};

/* Arguments that are left, for OPT_ARGUMENTS and OPT_COMMAND. */
struct opt_list {
	const char *const *at;
	size_t count;
};

struct opt {
	enum opt_kind kind;
	size_t offset;
	char letter;       /* 0: none */
	const char *word;  /* "output" for --output */
	const char *value; /* "FILE" */
	const char *what;  /* NULL: not in help and completion, for tests */
	bool required;     /* of arguments */
};

#define OPT_STRING(type, field, letter, word, value, what)                               \
	{                                                                                \
		OPT_KIND_STRING, offsetof(type, field), letter, word, value, what, false \
	}
#define OPT_INT(type, field, letter, word, value, what)                               \
	{                                                                             \
		OPT_KIND_INT, offsetof(type, field), letter, word, value, what, false \
	}
#define OPT_FLAG(type, field, letter, word, what)                                     \
	{                                                                             \
		OPT_KIND_FLAG, offsetof(type, field), letter, word, NULL, what, false \
	}
/* A string that may be missing: "" for --word alone. What follows --word is
 * its value unless it begins with '-': not for commands that take arguments. */
#define OPT_OPTIONAL(type, field, letter, word, value, what)                               \
	{                                                                                  \
		OPT_KIND_OPTIONAL, offsetof(type, field), letter, word, value, what, false \
	}
#define OPT_ARGUMENT(type, field, value, what)                                       \
	{                                                                            \
		OPT_KIND_ARGUMENT, offsetof(type, field), 0, NULL, value, what, true \
	}
/* The rest, at least one if `must`. */
#define OPT_ARGUMENTS(type, field, value, what, must)                                 \
	{                                                                             \
		OPT_KIND_ARGUMENTS, offsetof(type, field), 0, NULL, value, what, must \
	}
/* Another program's command line: from the first word that is no option of
 * ours, or from behind --. Its options are its own. */
#define OPT_COMMAND(type, field, value, what)                                       \
	{                                                                           \
		OPT_KIND_COMMAND, offsetof(type, field), 0, NULL, value, what, true \
	}
#define OPT_END                      \
	{                            \
		.kind = OPT_KIND_END \
	}

/* Fill the zeroed `args` from argv[1..]. `memory` keeps what the fields point
 * to; opt_done releases it. *ret_help: --help was there, nothing else counts.
 * ERR_USAGE with the option named. */
struct opt_memory;
int opt_parse(const struct opt *opts, int argc, const char *const *argv, void *args,
	      struct opt_memory **ret_memory, bool *ret_help, struct err *err);
void opt_done(struct opt_memory *memory);
/* Is it an option (no argument) that help and completion show? */
bool opt_is_shown(const struct opt *opt);
/* The option table of --help. */
void opt_help(const struct opt *opts, struct buf *out);
