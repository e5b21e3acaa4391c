/*
 * directory.h - the recordings of a monitor's directory as one profile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

bool directory_is(const char *path);

/* Join the recordings of `dir` into a new profile at `output`: all of them, or
 * those of the last `last_ns` (0: all). Flight records are left out: what they
 * hold is there already, coarser. ERR_MISSING: there are none. What can't be read
 * is noted in the profile. */
int directory_join(const char *dir, int64_t last_ns, const char *output, struct err *err);

/* "90m", "24h", "7d"; ERR_USAGE. */
int directory_span(const char *text, int64_t *ret_ns, struct err *err);
