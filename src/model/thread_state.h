/*
 * thread_state.h - what a thread is at, as the name of a RANGE_STATE or
 * RANGE_STATE_EXACT: a word of this list, and for waits, where it is known, the
 * system call behind it, "waiting: futex".
 */
#pragma once

#include <stdint.h>

#include "model/session.h"

/* X(id) */
#define THREAD_STATE_LIST(X)                                \
	X(running)                                          \
	X(runnable) /* it waits for a core */               \
	X(waiting)                                          \
	X(uninterruptible) /* a wait that no signal ends */ \
	X(stopped)

enum thread_state {
	THREAD_STATE_unknown, /* no word of ours */
#define X(id) THREAD_STATE_##id,
	THREAD_STATE_LIST(X)
#undef X
		THREAD_STATE_COUNT
};

/* The string of the state; `call` NULL: no call, or not known. */
uint32_t thread_state_string(struct session *session, enum thread_state state, const char *call);

/* *ret_call: what stands behind it, within `text`; "" nothing. */
enum thread_state thread_state_of(const char *text, const char **ret_call);
