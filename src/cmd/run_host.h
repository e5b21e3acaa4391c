/*
 * run_host.h - what a run loads into its command: where libsonde-inject.so is, and the
 * environment for the host side: libsonde-osrt.so in LD_PRELOAD, the start-up module
 * in PYTHONPATH.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* Path of libsonde-inject.so: `given`, or NULL: beside the program, or where it is installed.
 * ERR_MISSING, ERR_IO; ERR_UNSUPPORTED: it is of another build. */
int run_host_library(const char *given, char ret_path[PATH_MAX], struct err *err);

/* The word `word` is in the list "a,b,c". */
bool run_host_has_word(const char *list, const char *word);

/* "LD_PRELOAD=..." into `out`: what the user has there comes first, ours last; one
 * of a sonde around us gives way. `inject`: path of libsonde-inject.so, which ours
 * lies beside. ERR_MISSING, ERR_UNSUPPORTED: it can't be loaded from there. */
int run_host_preload(const char *inject, const char *before, struct buf *out, struct err *err);

/* "PYTHONPATH=..." into `out`: the folder of the start-up module, which lies beside
 * `inject` too, then what the user has there. Fails as above. */
int run_host_python(const char *inject, const char *before, struct buf *out, struct err *err);
