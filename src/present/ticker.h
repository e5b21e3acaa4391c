/*
 * ticker.h - snapshots as lines: for a terminal, a script, a log.
 *
 * Three forms. dmon: the columns, widths and units of `nvidia-smi dmon -s
 * pucvmet` of driver 580, a row for each card, the header again every
 * screenful; what was not asked in this round is as before, what is unknown "-". csv: a row for
 * each card or MIG instance, a column for each metric of metric.h in its unit, empty where unknown.
 * jsonl: an object for each snapshot, schema "sonde.snapshot/1"; what is unknown is left out.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/own.h"
#include "collect/board.h"

enum ticker_form { TICKER_DMON, TICKER_CSV, TICKER_JSONL };

/* "dmon", "csv", "jsonl"; false: none of them. */
bool ticker_form_find(const char *name, enum ticker_form *ret);

struct ticker;

struct ticker *ticker_new(enum ticker_form form);
void ticker_free(struct ticker *ticker);
DEFINE_OWNED(ticker, ticker_free);

/* The snapshot's lines, added to `out`. */
void ticker_add(struct ticker *ticker, const struct snapshot *snapshot, struct buf *out);

/* "2026-11-30T08:15:02.125Z"; borrowed from `text`. */
const char *ticker_time(int64_t utc_ns, char text[32]);
