/*
 * kernel_line.h - a line of a kernel log without what stands before the message.
 *
 * Knows the forms in which logs come: dmesg (seconds since boot, -T, -x, -r,
 * --time-format iso), syslog and kern.log (no year, a year, ISO times),
 * journalctl (short, short-iso, short-precise, short-full, short-unix,
 * short-monotonic, -o json) and records of /dev/kmsg. A line in none of them
 * is a message as a whole. Forms: doc/formats/kernel_log.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum stamp_kind {
	STAMP_NONE,
	STAMP_BOOT,  /* since boot: stamp_ns */
	STAMP_LOCAL, /* a clock on the wall of an unknown zone: ns since 1970 as if it were UTC */
	STAMP_YEARLESS, /* the same without a year: ns since the start of a leap year */
	STAMP_UTC,      /* ns since 1970, the zone is known */
};

struct kernel_line {
	enum stamp_kind stamp;
	int64_t stamp_ns;
	int64_t resolution_ns; /* of the stamp as it is written */
	bool has_day;
	int64_t day_s;     /* second of the day where the log was written */
	bool has_boot;     /* the line has seconds since boot beside another stamp */
	int64_t boot_ns;   /* that */
	bool has_sequence; /* /dev/kmsg */
	uint64_t sequence;
	bool framed;        /* a known form: not just text */
	bool kernel;        /* a form that only the kernel's lines have */
	bool foreign;       /* the form says that it is not of the kernel; message is empty */
	struct str message; /* into the line, or into `memory` */
};

/* Take `line` apart. `memory` holds what had to be decoded, until it is used
 * again. Never fails. */
void kernel_line_parse(struct str line, struct buf *memory, struct kernel_line *ret_line);

/* Private to know/: the pieces. Each takes off what it knows from the front of
 * *text, or leaves it. */
bool kernel_stamp_take(struct str *text, struct kernel_line *line);
bool kernel_boot_take(struct str *text, int64_t *ret_ns, int64_t *ret_resolution_ns);
bool kernel_json_parse(struct str text, struct buf *memory, struct kernel_line *ret_line);
