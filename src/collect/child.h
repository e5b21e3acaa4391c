/*
 * child.h - the process that talks to the driver, and what it sends.
 *
 * Private to collect/. A question is four bytes, enum collect_group. An answer
 * is a struct answer followed by its arrays, as they are in memory: both ends
 * are the same program. Nothing it holds is a pointer that means anything.
 */
#pragma once

#include <stdint.h>

#include "collect/board.h"
#include "collect/collector.h"

enum { ANSWER_MAGIC = 0x534e4f44 };

/* Most of each array that this end takes. */
enum {
	BOARDS_MAX = 4096,
	PROCESSES_MAX = 262144,
	POINTS_MAX = 262144,
	EVENTS_MAX = 4096,
	COSTS_MAX = 1024,
};

struct answer {
	uint32_t magic;
	int32_t status;           /* NVML's; with `line` if there is no snapshot */
	uint32_t failed;          /* no snapshot */
	uint32_t leaves;          /* the child ends after this: counters may start again */
	struct snapshot snapshot; /* without its arrays */
	char line[512];
};

/* Answer questions from `fd` until it closes. Returns when the process should end. */
void child_run(int fd, const struct collector_opts *opts);
