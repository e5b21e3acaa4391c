/*
 * perf_request.h - the perf maps that a program's processes write because we asked for them, and
 * their end.
 *
 * CPython from 3.12 on writes /tmp/perf-PID.map where its environment has PYTHONPERFSUPPORT, and
 * leaves it there. Ours to remove is a file that came into /tmp while we watched, of a process
 * whose environment has our mark and whose arguments do not ask for a map themselves, that holds
 * what CPython writes and is still the same file. A thread looks at a process the moment its file
 * appears, so that it may be killed right afterwards. Others' files are never touched: one that was
 * there before, one that node or Java wrote, one of a process that was started without the mark.
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

/* Watches /tmp of this machine below `root` ("": its own). ERR_IO: it can't be watched, and what is
 * asked for would stay. */
int perf_request_open(const char *root, struct perf_request **ret_request, struct err *err);
/* "SONDE_PERF_MAP=...", for the program's environment. */
const char *perf_request_mark(const struct perf_request *request);

struct perf_request_counts {
	int64_t seen;    /* maps that this request caused */
	int64_t removed; /* of them; the others were gone, or another's by then */
	bool overrun;    /* more came at once than the kernel told: some may stay */
};

/* Removes them and releases; NULL is a no-op. */
struct perf_request_counts perf_request_close(struct perf_request *request);
