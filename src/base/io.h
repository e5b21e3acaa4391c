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
 * Who writes into a pipe may take its time: input_on_pause says so, and
 * input_fill_some does not wait for a whole window.
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
/* The same for a reader that can go on with less: what a slow pipe gave so far will do
 * once that is more than the `have` bytes which the caller has seen. Not more: the end. */
int64_t input_fill_some(struct input *input, size_t have, size_t want, const char **ret_at,
			struct err *err);
/* Go past `len` bytes of what input_fill showed. */
void input_skip(struct input *input, size_t len);

/* Whenever a pipe keeps input_fill waiting, call `pause`, and again at *ret_again_ns of
 * the steady clock if there is nothing more by then; INT64_MAX: no need to. input_fill
 * fails with what it fails with. */
typedef int input_pause(void *arg, int64_t *ret_again_ns, struct err *err);
void input_on_pause(struct input *input, input_pause *pause, void *arg);

/* input_fill showed the last byte. False while it has not tried for more. */
bool input_ended(const struct input *input);
/* The path as given, or "standard input". */
const char *input_name(const struct input *input);
/* Bytes (after decompression) that were skipped so far: the place in errors. */
int64_t input_offset(const struct input *input);
/* The compressed stream ended early or was damaged. */
bool input_truncated(const struct input *input);
