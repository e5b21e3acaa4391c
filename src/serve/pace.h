/*
 * pace.h - when to ask the driver for what.
 *
 * The monitor's rounds come every `interval`; with a flight recorder, quick ones
 * of the cheap values come between. Groups that are dear or change seldom are
 * asked less often than rounds come. When rounds take long, the pace gives way:
 * first the processes and rings go, then the interval doubles, up to a minute;
 * it comes back step by step.
 *
 * Times come in as arguments. All-zero but for the first fields is valid.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pace {
	int64_t interval_ns; /* between rounds */
	int64_t flight_ns;   /* between quick ones; 0: none */
	uint32_t always;     /* groups of each round beside those below, enum collect_group */
	/* private */
	int64_t next_round_ns, next_flight_ns;
	int64_t next_counters_ns, next_processes_ns, next_rings_ns, next_health_ns;
	int level, slow, quick;
};

/* When the next round of either kind is due. */
int64_t pace_next(const struct pace *pace);

/* What to ask in the round that is due now, which then counts as asked.
 * *ret_round: it is one of the monitor's, not only the flight recorder's. */
uint32_t pace_ask(struct pace *pace, int64_t now_ns, bool *ret_round);

/* A round took the driver so long. True: the pace changed. */
bool pace_took(struct pace *pace, int64_t wall_ns);

/* Between rounds, as it is now. */
int64_t pace_interval(const struct pace *pace);
/* 0: as asked for; 1: without processes and rings; 2 and more: slower too. */
int pace_level(const struct pace *pace);
