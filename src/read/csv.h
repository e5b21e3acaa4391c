/*
 * csv.h - records of comma separated values, of any width.
 *
 * Fields may be quoted; a quoted field may hold commas, line ends and doubled
 * quotes. A record that never closes its quote is given up where a line begins
 * that looks like the next record (a quoted number and a comma), at ROW_MAX
 * bytes, or at the end of the file: what was read of it comes back with
 * `damaged` set, its last field unfinished, and reading goes on.
 *
 * All-zero but for `lines` is the initial state. Not thread safe.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "read/lines.h"

struct csv {
	struct lines *lines;    /* stays the caller's */
	VEC(struct str) fields; /* of the record returned last */
	bool damaged;           /* that record was not closed, or a line of it was cut */
	int64_t bytes;          /* of that record in the file */
	/* private */
	struct str line;
	bool held; /* line was looked at, not taken */
	struct buf text;
	VEC(size_t) starts;
};

/* The line that the next record begins with, not taken. Results as csv_next. */
int csv_peek(struct csv *csv, struct str *ret_line, struct err *err);
/* Go past the line that csv_peek showed: it is no record. */
void csv_pass(struct csv *csv);

/* The next record. 1, or 0 at the end of the file, or what lines_next failed
 * with. Fields hold until the next call; each is followed by a NUL. */
int csv_next(struct csv *csv, struct err *err);
void csv_done(struct csv *csv);
