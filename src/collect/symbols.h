/*
 * symbols.h - names of functions in ELF files, for call stacks of programs that
 * are not ours. ELF-64 of this machine's byte order; .symtab where the file has
 * one of at most 16 MiB, else .dynsym. Files are read, not mapped: they can change under us.
 * What is read is kept, up to 256 MiB and 1,024 files; what comes then has no names. A file
 * that another took the place of is read again.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/own.h"

struct symbols;

struct symbols *symbols_new(void);
void symbols_free(struct symbols *symbols);
DEFINE_OWNED(symbols, symbols_free);

/* For callers that must not stand still: whether the file's table was read, which this
 * does if it is time to; after each, there is a rest of 20 times what it took. */
bool symbols_ready(struct symbols *symbols, const char *path, int64_t now_ns);

/* The function of the file `path` that `offset` (from where the file is loaded)
 * lies in, as the file writes it (mangled); NULL if none is known. Borrowed
 * until the next call. */
const char *symbols_find(struct symbols *symbols, const char *path, uint64_t offset);

/* Where the file's exported variables `names` lie, from where it is loaded; 0 of those it lacks.
 * How many it has. The file is read anew. */
size_t symbols_objects(const char *path, const char *const *names, size_t count,
		       uint64_t *ret_offset);

/* Does the name say something? The inside of a CUDA runtime that is linked in has hashes. */
bool symbols_says(const char *name);

/* A C++ name as its programmer wrote it, for free(); NULL: it is none. */
char *symbols_plain(const char *name);
