/*
 * run_limits.h - numbers of `sonde run`'s options that say how much it may take, checked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* As they were given; NULL: they were not. */
struct run_limits {
	const char *memory, *pc_period, *pc_memory, *osrt_threshold;
};

/* What goes into SEGMENT_OPTIONS_ENV of them, each with a comma in front. `pc`, `osrt`: what
 * they are about is recorded. ERR_USAGE: no such number, out of bounds, or about nothing. */
int run_limits_words(const struct run_limits *limits, bool pc, bool osrt, struct buf *out,
		     struct err *err);

/* For spool_opts. ERR_USAGE as above. */
int run_limits_memory(const struct run_limits *limits, uint64_t *ret_bytes, struct err *err);
