/*
 * io_decode.h - the bytes of a file with gzip or zstd undone. Internal to
 * base/: io.c and io_ahead.c see it.
 *
 * Not thread safe; it may move to another thread between two calls.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"

struct decoder;

/* Takes `fd`. With fd < 0: the `len` bytes at `memory`, which are borrowed. */
struct decoder *decoder_new(int fd, const void *memory, size_t len);
void decoder_free(struct decoder *decoder);
DEFINE_OWNED(decoder, decoder_free);

/* From now on a read that would wait, as of a pipe, ends the file once
 * `wake_fd` is readable. It stays the caller's; -1: none. */
void decoder_wake_by(struct decoder *decoder, int wake_fd);

/* Some bytes, at most `room`, which is not 0. 0: the end, or what was read of the
 * file gave none yet; decoder_ended tells. Waits for the file only if it has nothing
 * to give, and once at most. ERR_IO: the line is what happened and names neither file
 * nor place. */
int64_t decoder_read(struct decoder *decoder, char *to, size_t room, struct err *err);
bool decoder_ended(const struct decoder *decoder);
/* The next decoder_read need not wait, or would not any more within `timeout_ns`,
 * which is waited for; below 0: for ever. */
bool decoder_ready(const struct decoder *decoder, int64_t timeout_ns);

/* The file is compressed, which the first read finds out. */
bool decoder_packed(const struct decoder *decoder);
/* The compressed stream ended early or was damaged. */
bool decoder_truncated(const struct decoder *decoder);
