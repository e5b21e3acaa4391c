/*
 * python_thread.h - looks at what one thread runs in Python, as RANGE_PYTHON_STACK.
 *
 * Each look is a range up to the next. Not thread safe.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "collect/python.h"
#include "model/sink.h"

struct python_thread;

/* `python` and the sink are borrowed. */
struct python_thread *python_thread_new(struct python *python, int64_t tid, uint32_t lane,
					struct sink *sink);
void python_thread_free(struct python_thread *thread);
DEFINE_OWNED(python_thread, python_thread_free);

/* Look, and put what the look before saw. Fails as the sink does. */
int python_thread_look(struct python_thread *thread, int64_t now_ns, struct err *err);
/* Put what the last look saw: no more come. */
int python_thread_finish(struct python_thread *thread, int64_t now_ns, struct err *err);
