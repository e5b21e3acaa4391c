/*
 * io.h - reading a file of somebody else, from front to back.
 *
 * gzip (also several members) and zstd are undone on the way; "-" is standard
 * input. A directory is refused; a FIFO is read like standard input. Nothing
 * is mapped: a file that shrinks while we read it is short, not SIGBUS.
 *
 * A broken end of a compressed file is not an error of input_fill: what came
 * before it is delivered, then the input is at its end and input_truncated
 * tells.
 *
 * Behind the first 4 MiB a compressed file is decoded by a thread of its own
 * (io_ahead.h), which the caller does not notice: input_close ends it at any
 * moment. Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"

struct input;

/* "-" is standard input. ERR_MISSING: no such file; ERR_FORMAT: a directory. */
int input_open(const char *path, struct input **ret_input, struct err *err);
/* From memory, which stays the caller's and must outlive the input: for tests
 * and fuzzers. `name` is what errors call it. Compression is undone too. */
struct input *input_memory(const char *name, const void *at, size_t len);
void input_close(struct input *input);
DEFINE_OWNED(input, input_close);

/* The unread bytes in memory, at *ret_at, and how many. Tries to have at least
 * `want` (fewer only at the end of the file); 0 at the end; negative: ERR_IO,
 * ERR_LIMIT when `want` is over 256 MiB. The pointer holds until the next call. */
int64_t input_fill(struct input *input, size_t want, const char **ret_at, struct err *err);
/* Go past `len` bytes of what input_fill showed. */
void input_skip(struct input *input, size_t len);

/* The path as given, or "standard input". */
const char *input_name(const struct input *input);
/* Bytes (after decompression) that were skipped so far: the place in errors. */
int64_t input_offset(const struct input *input);
/* The compressed stream ended early or was damaged. */
bool input_truncated(const struct input *input);
