/*
 * run_host.h - the environment that a run gives its command for the host side:
 * libsonde-osrt.so in LD_PRELOAD, the start-up module in PYTHONPATH.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* The word `word` is in the list "a,b,c". */
bool run_host_has_word(const char *list, const char *word);

/* "LD_PRELOAD=..." into `out`: what the user has there comes first, ours last; one
 * of a sonde around us gives way. `inject`: path of libsonde-inject.so, which ours
 * lies beside. ERR_MISSING, ERR_UNSUPPORTED: it can't be loaded from there. */
int run_host_preload(const char *inject, const char *before, struct buf *out, struct err *err);

/* "PYTHONPATH=..." into `out`: the folder of the start-up module, which lies beside
 * `inject` too, then what the user has there. Fails as above. */
int run_host_python(const char *inject, const char *before, struct buf *out, struct err *err);
