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

/* What the recorder's library had of the process at the end. */
enum wait_handover {
	WAIT_HANDOVER_UNKNOWN, /* of an older recording */
	WAIT_HANDOVER_ALL,     /* came */
	WAIT_HANDOVER_LOST,    /* ended with the process, which was killed */
	WAIT_HANDOVER_HELD,    /* is still there, in a process that lives */
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
	bool gone_on;       /* its thread began another call later; of no fact of these */
	const char *stack;  /* "f < g < main", where the thread was looked at; NULL */
	bool stack_is_python;
	/* On the stream, or else in the context: what ended last by then. */
	uint32_t last_op;    /* string; 0: nothing ran there */
	int64_t last_end_ns; /* session time */
	/* When the last wait there began that returned well, of those that ended by then: what was
	 * launched before had ended, recorded or not; FACT_UNKNOWN. */
	int64_t returned_ns;
	/* Launches after this may have no record at all, unless all was handed over: when the last
	 * call of the thread began that has one. CUPTI keeps records by thread. FACT_UNKNOWN: none
	 * has. */
	int64_t known_ns;
	enum wait_handover handover;
	/* Launches of the process behind that, without a record of the end of what they
	 * launched. */
	int64_t pending_count;
	uint32_t pending_lane;  /* of the first: thread */
	int64_t pending_ns;     /* when it was; FACT_UNKNOWN */
	uint32_t pending_range; /* string: the innermost range or operator round it; 0 */
	/* Those whose record came without times, and the name of the first; 0: none did. */
	uint32_t named;
	int64_t named_count;
	/* Of nearly all PC samples of the second half of the wait; 0. */
	uint32_t sampled;
	int64_t sampled_count, samples;
	/* What followed that kernel on its stream each time, if always the same; 0. */
	uint32_t likely;
	int64_t likely_count;
	double util_pct; /* of the device meanwhile, mean of samples; NAN */
	int64_t lost;    /* records that the process lost: a launch can seem pending */
};
