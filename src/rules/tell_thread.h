/*
 * tell_thread.h - what the launching thread was at while a device was idle, in
 * words: its state by the kernel, its Python function, its function on a core.
 */
#pragma once

#include "rules/rule.h"

/* What holds a thread up, as far as its state or the call it sits in says. */
enum thread_wait {
	THREAD_UNKNOWN,
	THREAD_RUNS,    /* works itself */
	THREAD_NO_CORE, /* could run, if a core were free */
	THREAD_LOCK,    /* for another thread, or a process with shared memory: futex */
	THREAD_PIPE,    /* for a pipe or socket: poll, read, recvmsg */
	THREAD_STORAGE, /* for a disk or network file system */
	THREAD_SLEEP,   /* its own nanosleep */
	THREAD_CHILD,   /* for a process to end */
	THREAD_OTHER,   /* some other call */
};

/* Of a state ("waiting: futex") or the name of a call ("poll", "read"). */
enum thread_wait thread_wait_of(const char *state);

/* Of the cause: by its state; else by the call of the system that covers half of it. */
enum thread_wait thread_wait(const struct facts *facts, const struct idle_fact *idle);

/* "it waited for storage", in the reader's language; "" for unknown. */
const char *thread_wait_text(enum thread_wait wait);

/* A sentence for each thing that is known, with how it is known; "" nothing is. */
const char *tell_thread(const struct facts *facts, const struct idle_fact *idle,
			struct findings *findings);
