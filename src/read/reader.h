/*
 * reader.h - files of other tools, one format a reader.
 *
 * A reader knows its format by the content, never by the name. To add one:
 * read_x.c with `const struct reader reader_x`, a word in READER_LIST,
 * doc/formats/x.md, tests/read/x/, tests/fuzz/fuzz_x.c.
 *
 * A reader streams: memory does not grow with the file, but for what the
 * session keeps. Damage costs the damaged record, is counted as loss in the
 * session, and reading goes on; what follows an unreadable tail is counted in
 * truncated_bytes. Only a file in which nothing could be read is an error
 * (ERR_FORMAT, one line with file and place).
 */
#pragma once

#include "base/err.h"
#include "base/io.h"
#include "model/sink.h"

struct reader {
	const char *name;  /* "kineto" */
	const char *title; /* "PyTorch profiler (Kineto) or Chrome trace, JSON" */
	/* How sure, 0 (no) to 100, from the first bytes (up to 64 KiB, decompressed). */
	int (*probe)(const char *at, size_t len);
	/* Read all of `input` into `sink` as source `source`. */
	int (*read)(struct input *input, struct sink *sink, uint32_t source, struct err *err);
};

/* In this order, the first of equally sure ones wins. */
#define READER_LIST(X) \
	X(kineto)      \
	X(ncu_csv)     \
	X(smi_xml)     \
	X(smi_query)   \
	X(smi_dmon)    \
	X(smi_pmon)    \
	X(smi_q)       \
	X(smi_table)   \
	X(kernel_log)

#define X(name) extern const struct reader reader_##name;
READER_LIST(X)
#undef X

/* The one for these first bytes; NULL if none claims them. */
const struct reader *reader_probe(const char *at, size_t len);

/* Open `path` ("-": standard input), find its reader, and read it into `sink`
 * as a new source, whose index goes to *ret_source. ERR_FORMAT: nobody knows
 * it, it is empty, or nothing in it could be read. */
int reader_import(const char *path, struct sink *sink, uint32_t *ret_source, struct err *err);
