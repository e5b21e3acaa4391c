/*
 * spool.h - takes what profiled processes recorded, and turns it into events.
 *
 * The spool is a sealed memfd of segments (wire/segment.h). Processes that the
 * injection library is in find it by spool_path and claim segments; spool_take
 * reads what they finished into a sink, each process as a source of its own
 * (reader "cuda"), and gives the room back. What a process left unfinished when
 * it died is read too; what can't be is counted as loss.
 *
 * The contents are not trusted: the process can have written anything.
 *
 * Times are CLOCK_MONOTONIC ns; the source's mapping to UTC is measured when it
 * begins.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "model/sink.h"

struct spool;

/* Bounds of spool_opts.memory. Less would not hold what CUPTI wants at once. */
#define SPOOL_MEMORY_LEAST (UINT64_C(16) << 20)
#define SPOOL_MEMORY_MOST  (UINT64_C(1) << 30)

struct spool_opts {
	uint32_t segments;     /* most processes at a time; 0: 64 */
	uint64_t memory;       /* in each process, for all but PC samples; 0: 64 MiB */
	uint64_t buffer_bytes; /* 0, and the next one: what `memory` gives */
	uint32_t buffers;
	bool calibrates; /* spool_ask_quiet will be called */
	bool waits;      /* nothing is recorded until spool_ask_start */
	const char
		*range; /* that recording is limited to, as `sonde run` is told; borrowed; NULL */
	bool named;     /* names of NVTX ranges are recorded */
};

/* ERR_IO: no memfd. */
int spool_open(const struct spool_opts *opts, struct spool **ret_spool, struct err *err);
void spool_close(struct spool *spool);
DEFINE_OWNED(spool, spool_close);

/* Is that the file of a library that fills such a spool? ERR_UNSUPPORTED: it is of another
 * build, with a line that says so; ERR_MISSING, ERR_IO. */
int spool_check_library(const char *path, struct err *err);

/* For SEGMENT_ENV: the spool as another process of ours opens it. */
const char *spool_path(const struct spool *spool);

/* What there is. Fails as the sink does; the number of events, or ERR_*. */
int spool_take(struct spool *spool, struct sink *sink, struct err *err);

/* The last time, when no process will write any more: also what is unfinished. */
int spool_finish(struct spool *spool, struct sink *sink, struct err *err);

/* Ask the processes, and those yet to come: stop recording, whatever their ranges say;
 * record, where these say so. */
void spool_ask_stop(struct spool *spool);
void spool_ask_start(struct spool *spool);

/* Off but for a moment, to see what recording costs: what the processes then did is
 * compared when they end (spool_quiet.c). spool_ask_start ends it. */
void spool_ask_quiet(struct spool *spool);

/* For a status line and the end of a run. */
struct spool_status {
	uint32_t processes;     /* that used CUDA or NVTX, so far */
	uint32_t live;          /* of them with a segment */
	uint32_t unserved;      /* processes that found no segment */
	uint32_t unserved_host; /* the same, of those that only make calls of the system */
	uint32_t stranger; /* version of a library of another build that a process has; 0: none */
	int64_t kernels, copies, calls, ranges, samples;
	int64_t dropped; /* records and slots, as counted by the processes and here */
};
void spool_status(const struct spool *spool, struct spool_status *ret_status);

/* Why a process recorded nothing, or less: one line each, in English; NULL at
 * the end. Borrowed until the next call that takes. */
const char *spool_complaint(const struct spool *spool, uint32_t number);
