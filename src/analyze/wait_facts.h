/*
 * wait_facts.h - calls that wait for a device and did not come back well: those that had
 * not returned when the process or the recording of it ended, and those that failed.
 *
 * With each goes what says why: what the device had done by then, what was launched and
 * has no end, where the host was. Definitions: doc/analysis.md, "Waits".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum wait_end {
	WAIT_OPEN,   /* it had not returned */
	WAIT_FAILED, /* it returned an error: the first with this error in its process */
};

struct wait_fact {
	enum wait_end end;
	uint32_t lane; /* the thread's */
	uint32_t source;
	uint32_t device;         /* SESSION_NONE: not known */
	int64_t context, stream; /* -1: not known, or not for a stream */
	bool default_stream;     /* that, whose number is not known */
	const char *call;        /* of the session: "cudaStreamSynchronize" */
	int64_t result;          /* CUresult or cudaError_t; 0: WAIT_OPEN */
	int64_t count;           /* failed calls with this error, it included; else 1 */
	int64_t since_ns;        /* session time */
	int64_t waited_ns;
	int64_t longest_ns; /* of waits of its process that returned; FACT_UNKNOWN: none did */
	const char *stack;  /* "f < g < main", where the thread was looked at; NULL */
	bool stack_is_python;
	/* On the stream, or else in the context: what ended last by then. */
	uint32_t last_op;    /* string; 0: nothing ran there */
	int64_t last_end_ns; /* session time */
	/* Launches of the process behind that, without a record of what they launched. */
	int64_t pending_count;
	uint32_t pending_lane;  /* of the first: thread */
	int64_t pending_ns;     /* when it was */
	uint32_t pending_range; /* string: the innermost range or operator round it; 0 */
	/* What followed that kernel on its stream each time, if always the same; 0. */
	uint32_t likely;
	int64_t likely_count;
	double util_pct; /* of the device meanwhile, mean of samples; NAN */
	int64_t lost;    /* records that the process lost: a launch can seem pending */
};
