/*
 * run_status.h - a line on the terminal while a program runs and is recorded.
 *
 * The program writes to the same terminal, so the line is asked for. It is on
 * stderr, if that is a terminal; and where the program's own output goes to a
 * terminal too, in the terminal's title instead, where nothing can mangle it or
 * be mangled.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collect/spool.h"

struct run_status {
	bool on, in_title, drawn;
	int64_t start_ns, shown_ns, shown_kernels;
};

/* `wanted`, and there is a terminal. */
void run_status_start(struct run_status *status, bool wanted);
/* Draw it, if it is time; `path`: the profile as it grows. */
void run_status_tick(struct run_status *status, const struct spool *spool, const char *path);
/* Before anything else is written. */
void run_status_stop(struct run_status *status);
