/*
 * err.h - one line that says what went wrong.
 *
 * A function that can fail returns 0 (or a count) on success and one of the
 * negative ERR_* codes on failure. The function that saw the problem sets the
 * line, with the facts only it knows; callers add context in front, pass it
 * on, or handle it. Only cmd/main.c prints. Nothing here allocates, so
 * reporting a failure cannot fail.
 *
 * A code exists because somebody branches on it; its exit status is the code
 * with the sign taken off. To add one: a line in ERR_LIST.
 */
#pragma once

#include <stddef.h>

/* X(code, name, exit status of the program) */
#define ERR_LIST(X)                          \
	X(ERR_USAGE, "usage", 2)             \
	X(ERR_IO, "io", 3)                   \
	X(ERR_FORMAT, "format", 4)           \
	X(ERR_MISSING, "missing", 5)         \
	X(ERR_LIMIT, "limit", 6)             \
	X(ERR_UNSUPPORTED, "unsupported", 7) \
	X(ERR_BUSY, "busy", 8)

enum err_code {
	ERR_NONE = 0,
#define X(code, name, status) code = -(status),
	ERR_LIST(X)
#undef X
};

struct err {
	enum err_code code;
	char line[512];
};

/* Set code and line; returns `code`. Control characters in the line, which
 * may quote a hostile file, are replaced by '?'. `err` may be NULL. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same from errno, as "text: strerror": ERR_MISSING for ENOENT, else ERR_IO. */
int err_errno(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Put "text: " in front of a line that is already set; returns err->code
 * (ERR_IO when err is NULL: the caller is on a failure path). */
int err_context(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "io", "format", ...; "none" for ERR_NONE. */
const char *err_name(enum err_code code);
