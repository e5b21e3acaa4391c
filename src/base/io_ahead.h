/*
 * io_ahead.h - a thread that decodes a file ahead of its reader. Internal to
 * base/: io.c alone sees it.
 *
 * Undoing gzip costs as much as reading the trace inside. The thread owns the
 * decoder while it runs and fills a ring of blocks; memory is that ring. One
 * reader.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"

struct ahead;
struct decoder;

/* NULL if there is no thread to be had: the caller reads the decoder itself.
 * Else the decoder is not touched by the caller until ahead_stop. */
struct ahead *ahead_start(struct decoder *decoder);
/* As decoder_read, with the same bytes, and the error behind them. An end or an
 * error stays. */
int64_t ahead_read(struct ahead *ahead, char *to, size_t room, struct err *err);
/* As decoder_ready. */
bool ahead_ready(struct ahead *ahead, int64_t timeout_ns);
/* Ends and joins the thread, at any moment, also while it waits for a pipe that
 * nobody writes to; blocks not yet read are lost. NULL is a no-op. */
void ahead_stop(struct ahead *ahead);
DEFINE_OWNED(ahead, ahead_stop);
