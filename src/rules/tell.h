/*
 * tell.h - what several rules say in the same words.
 */
#pragma once

#include "base/capped.h"
#include "rules/rule.h"

/* "GPU 0", or "GPU 0 of rank 1" where two have that number. */
const char *tell_device(const struct facts *facts, struct findings *findings, uint32_t device);

/* The file name of a source without its folders; "" unknown. */
const char *tell_file(const struct facts *facts, uint32_t source);

/* "<name>", or "unnamed" for none. */
const char *tell_name(const struct facts *facts, uint32_t name);

/* Where Python stacks were recorded the host was slowed by it: a finding that
 * rests on host time says so and loses a grade. Call it when the claim is set. */
void tell_host_doubt(const struct facts *facts, struct findings *findings, struct finding *finding);

/* Where sonde itself may have made a good part of the `idle_ns` that a finding rests on, it
 * says so and loses a grade: by its callbacks, where memory, streams and contexts are made; by
 * what PC sampling adds to each launch. Call it when the claim is set. */
void tell_callbacks_doubt(const struct facts *facts, struct findings *findings,
			  struct finding *finding, int64_t idle_ns);
void tell_sampling_doubt(const struct facts *facts, struct findings *findings,
			 struct finding *finding, int64_t idle_ns, int64_t launches);

/* Where set-up is left out of what was judged, the claim says so. */
void tell_setup(struct findings *findings, const struct device_fact *device,
		struct finding *finding);

/* The part of the time that device_judged speaks of, and all of a device's, whose name
 * depends on whether others speak of a part. */
static inline enum stretch part_judged(const struct judged *judged)
{
	return judged->steady ? STRETCH_STEADY : STRETCH_SPAN;
}

static inline enum stretch whole_of_device(const struct device_fact *device)
{
	return device->steady.has ? STRETCH_WHOLE : STRETCH_SPAN;
}

/* Launches must be known for so large a part of the kernels before idle time
 * has causes. False, with a line, if they are not. */
bool tell_enough_launches(const struct facts *facts, const struct rule *rule,
			  const struct device_fact *device, struct findings *findings);

static inline int64_t whole_of(double value)
{
	if (value >= 9.2e18)
		return INT64_MAX;
	return value > -9.2e18 ? (int64_t)value : INT64_MIN + 1; /* NAN too */
}

static inline double share_of(int64_t part_ns, int64_t whole_ns)
{
	return whole_ns > 0 ? (double)part_ns / (double)whole_ns : 0;
}
