/*
 * perf_stack.h - addresses of a running program as names of its functions.
 *
 * One for each process. Hides its memory map, which is read again when an address
 * lies in none of what is known, with growing pauses. Code that a program makes
 * as it runs has the names of its perf map, if it writes one (perf_map_file.h). Call chains follow
 * frame pointers; code that is built without them breaks the chain or bends it, so it ends at the
 * first address that is no code. The innermost function does not depend on that: the pauses of its
 * readings are its own.
 *
 * Until the table of a file is read (symbols_ready), its functions go by the file's name.
 *
 * Not thread safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/own.h"
#include "collect/symbols.h"

struct perf_stack;

/* `root` as threads_new has it; it and `symbols` are borrowed. */
struct perf_stack *perf_stack_new(const char *root, int64_t pid, struct symbols *symbols);
void perf_stack_free(struct perf_stack *stack);
DEFINE_OWNED(perf_stack, perf_stack_free);

/* The innermost function, and "f < g < main" of all of them, to the ends of `leaf` and
 * `chain`; in CPython's loop the function of Python's that it runs, where its name is known. A
 * function without a name goes by its file's, and several of one file in a row are one. Nothing if
 * the first address is no code. */
void perf_stack_name(struct perf_stack *stack, const uint64_t *frame, size_t frames, int64_t now_ns,
		     struct buf *leaf, struct buf *chain);
