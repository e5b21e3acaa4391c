/*
 * python.h - what the Python threads of a running process are at, from outside.
 *
 * CPython 3.11, 3.12 and 3.13; others are refused with a line. The interpreter is found
 * by its symbols in the process's map, its memory is read by process_vm_readv, as far
 * as it is there (remote.h): nothing stops, nothing is changed. That needs what a debugger needs:
 * the same user and, with Yama's ptrace_scope 1, a descendant of ours; 2: CAP_SYS_PTRACE; 3: nobody
 * may.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"

struct python;

/* ERR_MISSING: no Python there (yet). ERR_UNSUPPORTED: a version that is not known, or no
 * right to read; the line says which. `root` as threads_new has it. *ret_version, failed or
 * not, as CPython writes it in hex, 0x030c01f0 for 3.12.1; PYTHON_OLD for all before 3.11, which
 * can't be told apart; 0: unknown. */
enum { PYTHON_OLD = 0x03000000 };
int python_open(const char *root, int64_t pid, struct python **ret_python, uint32_t *ret_version,
		struct err *err);
void python_close(struct python *python);
DEFINE_OWNED(python, python_close);

/* The innermost function of thread `tid`, "collate data.py:41", and its callers behind
 * it, "collate data.py:41 < fetch data.py:20 < ...", to the ends of `leaf` and `chain`:
 * nothing if it runs no Python. */
void python_look(struct python *python, int64_t tid, int64_t now_ns, struct buf *leaf,
		 struct buf *chain);
