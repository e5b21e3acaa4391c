/*
 * python_stack.h - what a thread of a CPython process runs, read out of its memory.
 *
 * The process is not stopped: what is read can change between two reads, or be
 * rubbish. Each object's type is compared with the interpreter's own, every length
 * and depth has a limit, lists may bite their tails; the result is a stack that was
 * there, or none.
 *
 * Reads are a function, so that tests and the fuzzer bring memory of their own.
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/own.h"
#include "collect/python_layout.h"

struct python_memory {
	/* All `bytes` from `address`, or false. */
	bool (*read)(void *from, uint64_t address, void *to, size_t bytes);
	void *from;
};

/* Addresses in the process. */
struct python_places {
	uint64_t runtime;
	uint64_t code_type, text_type, bytes_type;
};

struct python_stack;

struct python_stack *python_stack_new(const struct python_layout *layout,
				      const struct python_places *places,
				      const struct python_memory *memory);
void python_stack_free(struct python_stack *stack);
DEFINE_OWNED(python_stack, python_stack_free);

/* The thread's state, to be looked at; 0: it has none (yet). */
uint64_t python_stack_thread(struct python_stack *stack, int64_t tid);

/* What thread `tid`, whose state is at `thread`, runs: "collate data.py:41", the
 * innermost function that is not the standard library's (if none is, the innermost),
 * to the end of `leaf`; all of them, "sleep time.py:7 < collate data.py:41 < ...",
 * to that of `chain`. False: the state is not the thread's any more. */
bool python_stack_look(struct python_stack *stack, uint64_t thread, int64_t tid, struct buf *leaf,
		       struct buf *chain);

/* Bytes of line tables that it holds, the process's to choose: 16 MiB at most. */
size_t python_stack_kept(const struct python_stack *stack);
