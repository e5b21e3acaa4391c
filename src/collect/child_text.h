/*
 * child_text.h - what a child process wrote, if it is done in time.
 *
 * For answers that may hang or crash: an interpreter, NVIDIA's libraries. The
 * child has /dev/null as input and errors and is the head of a process group
 * that ends with it, whatever happens. Fork before threads.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum { CHILD_TEXT_MAX = 1 << 16 };

/* Call `run` in a child; what it writes to `fd` is added to `out`, up to
 * CHILD_TEXT_MAX bytes. ERR_BUSY: late; ERR_IO: it died, or was not to be
 * started. Then `out` has what came before. */
int child_text(void (*run)(int fd, void *arg), void *arg, int64_t limit_ms, struct buf *out,
	       struct err *err);

/* The same with a program: argv[0] is looked for in PATH. */
int child_program(const char *const *argv, int64_t limit_ms, struct buf *out, struct err *err);
