/*
 * own_cost.h - what recording itself cost: facts of facts.h, and where those come
 * from that a run measured itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/session.h"

struct facts;

/* CUPTI's overhead records of one kind. */
struct overhead_fact {
	uint32_t name;
	bool own; /* of the profiler; else the program would do it all the same */
	int64_t count, sum_ns;
};

/* PC sampling beside a run: how long, and how often. */
struct pc_sampling_fact {
	uint32_t source;
	int64_t covered_ns, span_ns; /* of which it was on */
	int64_t period;              /* a sample of an SM every 2^period cycles */
	int64_t samples, dropped;    /* in all; of these by the card; FACT_UNKNOWN */
	int64_t other_kernels;       /* in kernels that are not the program's; FACT_UNKNOWN */
};

/* What recording cost, from windows in which it was off: lower quartile, median and
 * upper quartile of the differences. */
struct calibration_fact {
	uint32_t source;
	int64_t windows, launches;
	double launch_ns[3]; /* of each launch; below 0: less than chance */
	double share[3];     /* of the time */
};

/* Callbacks of CUPTI in threads of the program, and the time in them. */
struct callback_fact {
	uint32_t source;
	int64_t count, sum_ns;
};

/* What the recording process and its child took of the processors beside the program. */
struct recorder_fact {
	int64_t wall_ns; /* 0: unknown */
	int64_t cpu_ns, cards_cpu_ns;
};

/* Of what a run measured itself and wrote into its environment. */
void own_cost_facts(const struct session *session, struct facts *facts);
