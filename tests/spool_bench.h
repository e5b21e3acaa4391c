/*
 * spool_bench.h - a suite on what the spool makes of a made-up process's records and slots:
 * a test puts some, takes, and looks at bench.record.
 */
#pragma once

#include <criterion/criterion.h>

#include "segment_bench.h"

static struct bench bench;
static struct err err;

static inline void open_bench(void)
{
	struct spool_opts opts = { .segments = 2, .buffer_bytes = 8192, .buffers = 4 };

	cr_assert(bench_open(&bench, &opts));
	bench_claim(&bench);
}

static inline void close_bench(void)
{
	bench_close(&bench);
}

static inline void take(void)
{
	cr_assert_geq(spool_take(bench.spool, &bench.record->sink, &err), 0, "%s", err.line);
}

static inline const char *text(uint32_t id)
{
	return session_text(bench.record->sink.session, id);
}

static inline int64_t loss(enum loss id)
{
	int64_t count = 0;

	for (size_t i = 0; i < bench.record->sink.session->losses.count; i++)
		count += bench.record->sink.session->losses.at[i].count[id];
	return count;
}

#define PUT(index, record, bytes) bench_record(&bench, index, &(record), sizeof(record), bytes)
#define TEXT(at)                  bench_text(&bench, at)
#define SLOT(kind, ...)           bench_slot(&bench, kind, (struct segment_slot){ __VA_ARGS__ })
