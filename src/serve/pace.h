/*
 * pace.h - when to ask the driver for what.
 *
 * The monitor's rounds come every `interval`; with a flight recorder, quick ones
 * of the cheap values come between. Groups that are dear or change seldom are
 * asked less often than rounds come: the plan in pace.c says how often, by what
 * the answers are for. What is not asked in a round is absent from it. The two
 * kinds of rounds have a count each, so that the quick ones, which are not
 * recorded, take nothing from the others.
 *
 * When rounds take long, the pace gives way: first the processes and rings go,
 * then the interval doubles, up to a minute; it comes back step by step.
 *
 * Times come in as arguments. All-zero but for the first fields is valid.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What the answers are for, or-ed. */
enum pace_need {
	PACE_FILES = 1,   /* a recording, csv, jsonl, the flight recorder */
	PACE_ROWS = 2,    /* rows of dmon, and nothing else of a card */
	PACE_METRICS = 4, /* everything that Prometheus has a name for */
	PACE_RUN = 8,     /* beside a program that is profiled */
};

enum { PACE_PLANS = 24 };

struct pace {
	int64_t interval_ns; /* between rounds */
	int64_t flight_ns;   /* between quick ones; 0: none */
	uint32_t needs;      /* enum pace_need */
	/* private */
	int64_t next_round_ns, next_flight_ns;
	int64_t next_ns[2][PACE_PLANS]; /* rounds; quick ones */
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
