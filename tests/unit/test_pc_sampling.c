/*
 * test_pc_sampling.c - PC sampling in the program, on a time of its own: bounds are of
 * what sampling made while it was on, and a context that begins while it is switched
 * off stays off.
 */
#include <criterion/criterion.h>

#include <string.h>

#include "inject/inject.h"

enum { TICK_NS = 50000000, NS_PER_LAUNCH_OFF = 5000, NS_PER_LAUNCH_ON = 6000 };

static uint64_t now_ns = 1;
static struct inject inject;
static struct segment segment;
static int enabled;

struct inject *inject_state = &inject;

uint64_t inject_now(void)
{
	return now_ns;
}

struct segment_slot *slot_take(struct segment *of)
{
	(void)of;
	return NULL;
}

void slot_commit(struct segment_slot *slot, enum slot_kind kind)
{
	(void)slot;
	(void)kind;
}

uint32_t text_intern(struct segment *of, const char *at, size_t len)
{
	(void)of;
	(void)at;
	(void)len;
	return 0;
}

void inject_reason(struct inject *of, enum segment_reason reason, uint32_t detail)
{
	(void)of;
	(void)reason;
	(void)detail;
}

static uint32_t flush(uint32_t flag)
{
	(void)flag;
	return 0;
}

static void begin(void)
{
	inject.segment = &segment;
	segment.clock = SEGMENT_CLOCK_MONOTONIC;
	inject.trace = UINT64_C(1) << TRACE_PC;
	inject.active = true;
	inject.launches[1][0] = 2; /* number 1 of the runtime */
	inject.cupti.cuptiActivityFlushAll = flush;
	pc_govern_start(&inject);
}

/* A program of so many launches and samples a second. */
static void run_tick(uint64_t launches_per_s, uint64_t samples_per_s)
{
	uint64_t launches = launches_per_s * TICK_NS / 1000000000;
	struct cupti_api api = { .kind = CUPTI_KIND_RUNTIME, .cbid = 1 };

	now_ns += TICK_NS;
	if (inject.pc.on)
		inject.pc.samples += samples_per_s * TICK_NS / 1000000000;
	for (uint64_t i = 0; i < launches; i++) {
		api.start = now_ns;
		api.end = now_ns + (inject.pc.on ? NS_PER_LAUNCH_ON : NS_PER_LAUNCH_OFF);
		pc_launched(&inject, &api);
	}
}

/* 2.2 % of the time, 400,000 samples a second: both below the bounds. */
Test(pc_sampling, the_first_look_after_the_probe_is_at_what_came_after_it)
{
	uint32_t period;

	begin();
	period = inject.pc.period;
	for (int i = 0; i < 100; i++) {
		run_tick(22000, 400000);
		pc_govern(&inject);
	}
	cr_assert(inject.pc.probed);
	cr_assert(inject.pc.on);
	cr_assert_eq(inject.pc.period, period);
	cr_assert_leq(inject.pc.cost_permille, 24);
	cr_assert_geq(inject.pc.cost_permille, 18);
}

Test(pc_sampling, windows_of_the_recording_do_not_make_it_dearer)
{
	begin();
	for (int i = 0; i < 400; i++) {
		run_tick(22000, 400000);
		inject.active = i % 40 < 30;
		pc_govern(&inject);
	}
	cr_assert_leq(inject.pc.cost_permille, 24);
	inject.active = true;
	pc_govern(&inject);
	cr_assert(inject.pc.on, "off for good");
}

/* Windows that are shorter than a look are looked at together. */
static void run_short_windows(uint64_t launches_per_s)
{
	begin();
	for (int i = 0; i < 60; i++) {
		run_tick(22000, 0);
		pc_govern(&inject);
	}
	for (int i = 0; i < 240; i++) {
		run_tick(launches_per_s, 0);
		inject.active = i % 12 < 8;
		pc_govern(&inject);
	}
	inject.active = true;
	pc_govern(&inject);
}

Test(pc_sampling, short_windows_are_not_too_short_for_the_bounds)
{
	run_short_windows(80000);
	cr_assert_not(inject.pc.on);
}

Test(pc_sampling, short_windows_that_are_cheap_stay)
{
	run_short_windows(22000);
	cr_assert(inject.pc.on);
	cr_assert_leq(inject.pc.cost_permille, 24);
	cr_assert_geq(inject.pc.cost_permille, 18);
}

Test(pc_sampling, what_stays_too_dear_goes_off_for_good)
{
	begin();
	for (int i = 0; i < 100; i++) {
		run_tick(80000, 0);
		pc_govern(&inject);
	}
	cr_assert_not(inject.pc.on);
}

/* The thread switches off while a context's sampling begins, which takes long. */
static uint32_t enable(struct cupti_pc_params *params)
{
	(void)params;
	enabled++;
	atomic_store(&inject.pc.on, false);
	pc_switch(&inject, false, PC_WHY_COST);
	return 0;
}

static uint32_t disable(struct cupti_pc_params *params)
{
	(void)params;
	enabled--;
	return 0;
}

static uint32_t reason_count(struct cupti_pc_params *params)
{
	*params->u.counts = 1;
	return 0;
}

static uint32_t reasons(struct cupti_pc_params *params)
{
	params->v.indices[0] = 0;
	return 0;
}

static uint32_t any(struct cupti_pc_params *params)
{
	(void)params;
	return 0;
}

Test(pc_sampling, a_context_that_begins_while_it_is_switched_off_stays_off)
{
	int context;

	segment.cupti_version = 30;
	inject.cupti.cuptiPCSamplingEnable = enable;
	inject.cupti.cuptiPCSamplingDisable = disable;
	inject.cupti.cuptiPCSamplingGetData = any;
	inject.cupti.cuptiPCSamplingSetConfigurationAttribute = any;
	inject.cupti.cuptiPCSamplingGetNumStallReasons = reason_count;
	inject.cupti.cuptiPCSamplingGetStallReasons = reasons;
	begin();
	cr_assert(inject.pc.on);
	pc_context_created(&inject, &context);
	cr_assert_eq(enabled, 0, "sampling goes on");
}
