/*
 * perf_request.h - the perf maps that a program's processes write because we asked for them, and
 * their end.
 *
 * CPython from 3.12 on writes /tmp/perf-PID.map where its environment has PYTHONPERFSUPPORT, and
 * leaves it there. Ours to remove is a file that came into /tmp while we watched, that
 * holds what CPython writes, is still the same file, and whose process was asked by us. That is
 * known in two ways: a thread looks at the process's environment for our mark the moment the file
 * appears; and the start-up module (inject/python) writes the numbers of processes, forked ones
 * too, into memory that the mark names, so that one may end before the look. Others' files are
 * never touched: one that was there before, one that node or Java wrote, one of a process without
 * the mark, one of a Python whose arguments ask for it.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"

#define PERF_REQUEST_MARK "SONDE_PERF_MAP"

struct perf_request;

/* Watches /tmp below `root` ("": this machine's; borrowed), whose proc/ it looks into. ERR_IO: it
 * can't be watched, and what is asked for would stay. */
int perf_request_open(const char *root, struct perf_request **ret_request, struct err *err);
/* "SONDE_PERF_MAP=/proc/...", for the program's environment. */
const char *perf_request_mark(const struct perf_request *request);

struct perf_request_counts {
	int64_t seen;    /* maps that this request caused */
	int64_t removed; /* of them; the others were gone, or another's by then */
	int64_t unsure;  /* Python's, of this user, whose process had ended too soon: left */
	bool overrun;    /* more came at once than the kernel told: some may stay */
};

/* Removes them and releases; NULL is a no-op. */
struct perf_request_counts perf_request_close(struct perf_request *request);
