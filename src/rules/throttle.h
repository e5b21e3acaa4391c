/*
 * throttle.h - what the rules on held-down clocks share.
 */
#pragma once

#include "rules/rule.h"

/* The episodes of a device with one of the reasons (the list ends with NULL). */
struct throttle {
	const struct episode *longest; /* NULL: none */
	size_t count;
	int64_t samples;
	int64_t lost_ns; /* time x clock lost over clock before; FACT_UNKNOWN */
	bool by_plateau; /* all of them */
};

struct throttle throttle_of(const struct device_fact *device, const char *const *reasons);

/* "in samples 32 to 39 of dmon.txt (about 8.00 s, at the tool's usual interval
 * of 1.00 s: the file has no time stamps)" */
const char *throttle_when(const struct facts *facts, struct findings *findings,
			  const struct device_fact *device, const struct throttle *throttle);

/* "1485 MHz instead of 1980 MHz (25 % lower)", or that the depth is unknown. */
const char *throttle_depth(struct findings *findings, const struct throttle *throttle);

/* Evidence, impact (nought to all of the clock lost) and severity by depth. */
void throttle_complete(const struct facts *facts, struct findings *findings,
		       const struct device_fact *device, const struct throttle *throttle,
		       struct finding *finding);
