/*
 * replay_cupti.h - a log of CUPTI's (cupti_log.h), taken apart, and what its player shares.
 *
 * The libcupti.so.13 in the folder `replay` knows nothing but the log that PUPPET_LOG names:
 *
 *	PUPPET_LOG=LOG LD_LIBRARY_PATH=.../replay:... sonde run -- host replay
 *
 * It answers calls from it - the same question gets the answer that it had next after what is
 * being played, or the last before -, and `host replay` makes it play the rest: callbacks,
 * buffers asked for and given back, by as many threads, in the same order, at the same
 * distances in time. Times in records are moved to the present, threads and the process
 * are those of the player, names are texts of its own. Contexts, streams and handles are the
 * numbers that they were. It knows calls of CUPTI alone: no NVTX, no call stack.
 *
 * A log that is not one ends the program with a line that says where, and status 1.
 *
 * PUPPET_CUPTI varies it, words joined by ',':
 *
 *	drop-buffer=N    the N-th buffer with records never comes back
 *	short-buffer=N   it comes back without the second half of its records
 *	keep-buffer=N    its records are in it, and it never comes back
 *	swap-buffers=N   it and the next come with each other's records
 *	fail-call=N      the N-th call that is made fails with 999
 *	NAME=N           calls of this function fail with N
 *	until=N          nothing is played from the N-th event on
 *	kill=N           there the program is killed: what had a time before is in the buffers
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fake/cupti_log.h"

struct log_pc {
	uint64_t offset, crc;
	const char *function;
	size_t first, count; /* stalls */
};

/* A call, and what was answered. */
struct log_call {
	uint32_t line, result;
	enum cupti_call call;
	uint64_t key;      /* of its name and what went in: log_key */
	uint64_t in, out;  /* the first number of each */
	const char *text;  /* of GetCallbackName; of GetStallReasons the rest of the line */
	uint64_t total[6]; /* of GetData */
	size_t first_pc, pc_count;
	bool used; /* an answer that is given once */
};

struct log_record {
	uint32_t kind, bytes;
	size_t at; /* in log.bytes */
	const char *name;
};

/* Something that is played. */
struct log_event {
	char kind; /* b, m, a, d */
	uint32_t line, tid;
	int64_t time_ns;
	uint32_t domain, cbid;
	struct cupti_callback call; /* b; its pointers are numbers */
	uintptr_t words[2], pointed[2];
	uintptr_t context, stream; /* m */
	struct cupti_module module;
	uint64_t buffer, bytes, valid; /* a, d */
	size_t first, count;           /* d: its records */
	size_t asked;                  /* d: the event that it was asked for in */
	uint8_t *lent;                 /* a: what was got when it was played */
	size_t lent_bytes;
};

struct cupti_log {
	int64_t start_ns, start_real_ns;
	uint32_t pid, tid;
	uint32_t strides[CUPTI_LOG_KINDS];
	struct log_call *calls;
	struct log_event *events;
	struct log_record *records;
	struct log_pc *pcs;
	struct cupti_pc_stall *stalls;
	uint8_t *bytes;
	size_t call_count, event_count, record_count, pc_count, stall_count, byte_count;
	int64_t subscribed_ns; /* when CUPTI was subscribed to, after the start */
	bool monotonic;        /* records have the host's steady time */
	size_t kernels;
};

/* replay_load.c: what PUPPET_LOG names, read once. */
struct cupti_log *log_now(void);
/* Of a function and the numbers that go in. */
uint64_t log_key(enum cupti_call call, const uint64_t *in, size_t count);
/* The text again, always at the same place. */
const char *log_text(const char *text, size_t len);
/* One line, and the end of the program. */
void log_stop(uint32_t line, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* replay_cupti.c */
struct replay {
	cupti_callback_fn *callback;
	void *user;
	cupti_buffer_asked *asked;
	cupti_buffer_done *done;
	uint64_t watched[4][CALLS_MAX / 64];
	int64_t base_ns; /* the present's time of the log's subscription */
	int64_t base_real_ns;
	_Atomic uint32_t line; /* of what is played, by any thread */
};
extern struct replay replay;
/* Of the event that this thread plays; 0: none. */
extern __thread uint32_t replay_line;

/* replay_play.c: plays it; how many kernels there are in the log. */
size_t puppet_play(void);
