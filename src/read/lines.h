/*
 * lines.h - a text file, line by line, whatever its line ends.
 *
 * LF and CRLF end a line; a byte order mark at the start of the file vanishes,
 * and a file in UTF-16 with its mark (what a redirection in PowerShell writes)
 * is read as UTF-8. A line longer than LINES_MAX bytes is shortened and says
 * so. Bytes that are no text, NUL too, are left as they are.
 *
 * All-zero but for `input` is the initial state. Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"

/* A hundred times the widest row known: a launch with all metrics of Nsight
 * Compute. */
enum { LINES_MAX = 16 << 20 };

struct lines {
	struct input *input; /* stays the caller's */
	int64_t number;      /* of the line returned last, from 1 */
	bool shortened;      /* the line returned last was longer than LINES_MAX */
	bool open_end;       /* the line returned last has no line end: the file stops there */
	size_t bytes;        /* of the line returned last, with its end */
	/* private */
	size_t pending; /* bytes of it, skipped by the next call */
	bool rest;      /* its end is still to be found */
	bool begun;
	int wide; /* bytes a character before decoding: 2 for UTF-16, else 0 */
	bool wide_big_endian;
	struct buf decoded;
};

/* The next line without its end, good until the next call. 1, or 0 at the end
 * of the file, or what input_fill failed with. */
int lines_next(struct lines *lines, struct str *ret_line, struct err *err);

void lines_done(struct lines *lines);

/* The first bytes of a file as text, for probes: a byte order mark is skipped
 * and UTF-16 is decoded into `memory`, which the caller releases. */
struct str lines_probe_text(const char *at, size_t len, struct buf *memory);
