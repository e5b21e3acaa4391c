/*
 * run_range.h - `sonde run --capture-range`: which range of the program recording is limited to.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* What goes into SEGMENT_OPTIONS_ENV of "cudaProfilerApi", "nvtx:NAME" (of any domain) or
 * "nvtx:NAME@DOMAIN" (DOMAIN "": the default one; "*": any), each word with a comma in front.
 * NULL: nothing. The last @ without a backslash in front is the one between the two; \@ and
 * \\ stand for the character. ERR_USAGE: none of these. */
int run_range_words(const char *range, struct buf *out, struct err *err);
