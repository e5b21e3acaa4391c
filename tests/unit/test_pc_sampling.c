/*
 * test_pc_sampling.c - PC sampling in the program, on a time and a CUPTI of its own:
 * samples follow the recording's windows as much later as they come, places of
 * contexts that are gone are used again, and one context of a card is sampled.
 */
#include <criterion/criterion.h>

#include <string.h>
#include <time.h>

#include "inject/inject.h"

enum { MS = 1000000, SAMPLES = 10 };

static uint64_t now_ns = 1;
static struct inject inject;
static struct segment segment;
static struct segment_slot slot;
static uint32_t on_device;
static int enabled, drained;
static void *beside; /* a context that another thread makes while one is enabled */
static bool ring_is_full;
static uint32_t fails;      /* GetData, with this */
static uint64_t fails_with; /* so many samples all the same */
static uint32_t unnamed;    /* no context has a number, with this */
static void (*hangs)(void *context);

struct inject *inject_state = &inject;

/* Time passes by being asked, and in sleeps, which are over at once. */
uint64_t inject_now(void)
{
	return now_ns += MS;
}

int nanosleep(const struct timespec *span, struct timespec *ret_left)
{
	(void)ret_left;
	now_ns += (uint64_t)span->tv_nsec;
	return 0;
}

struct segment_slot *slot_take(struct segment *of)
{
	(void)of;
	memset(&slot, 0, sizeof(slot));
	return ring_is_full ? NULL : &slot;
}

void slot_commit(struct segment_slot *of, enum slot_kind kind)
{
	(void)of;
	(void)kind;
}

static uint64_t kept(void)
{
	return atomic_load(&segment.counts.pc_samples);
}

uint32_t text_intern(struct segment *of, const char *at, size_t len)
{
	(void)of;
	(void)at;
	(void)len;
	return 0;
}

void inject_lacks(struct inject *of, enum segment_lack lack, uint32_t detail)
{
	(void)lack;
	of->pc_period = detail; /* the last, for tests */
}

static uint32_t enable(struct cupti_pc_params *params)
{
	void *other = beside;

	(void)params;
	enabled++;
	beside = NULL;
	if (other)
		pc_context_created(&inject, other);
	return 0;
}

static uint32_t refuse(struct cupti_pc_params *params)
{
	(void)params;
	return CUPTI_RESULT_HARDWARE_BUSY;
}

static uint32_t data(struct cupti_pc_params *params)
{
	struct cupti_pc_data *into = params->u.data;

	drained++;
	if (fails) {
		into->total = fails_with;
		return fails;
	}
	if (hangs) /* what others do meanwhile */
		hangs(params->context);
	into->at[0].offset = 0;
	into->total = SAMPLES;
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

static uint32_t configure(struct cupti_pc_params *params)
{
	(void)params;
	return 0;
}

static uint32_t context_of(void *context, uint32_t *ret_id)
{
	(void)context;
	*ret_id = 1;
	return unnamed;
}

static uint32_t device_of(void *context, uint32_t *ret_device)
{
	(void)context;
	*ret_device = on_device;
	return 0;
}

static bool window_is_open(void)
{
	return segment.pc.since_ns;
}

static void begin(void)
{
	inject.segment = &segment;
	segment.cupti_version = 30;
	inject.trace = UINT64_C(1) << TRACE_PC;
	inject.active = true;
	inject.cupti.cuptiPCSamplingEnable = enable;
	inject.cupti.cuptiPCSamplingGetData = data;
	inject.cupti.cuptiPCSamplingSetConfigurationAttribute = configure;
	inject.cupti.cuptiPCSamplingGetNumStallReasons = reason_count;
	inject.cupti.cuptiPCSamplingGetStallReasons = reasons;
	inject.cupti.cuptiGetContextId = context_of;
	inject.cupti.cuptiGetDeviceId = device_of;
	pc_setup(&inject);
}

Test(pc_sampling, what_comes_in_a_pause_was_sampled_before_it_and_counts_then_no_more)
{
	int context;

	begin();
	pc_context_created(&inject, &context);
	cr_assert(window_is_open());
	pc_drain(&inject);
	cr_assert_eq(kept(), SAMPLES);
	inject.active = false;
	pc_follow(&inject);
	pc_drain(&inject); /* decoded late */
	cr_assert_eq(kept(), 2 * SAMPLES);
	now_ns += 200 * MS;
	pc_follow(&inject); /* drains once more, then turns */
	cr_assert_eq(kept(), 3 * SAMPLES);
	cr_assert_not(window_is_open());
	cr_assert_geq(segment.pc.covered_ns, 200 * (uint64_t)MS);
	pc_drain(&inject);
	cr_assert_eq(kept(), 3 * SAMPLES);
	inject.active = true;
	pc_follow(&inject);
	now_ns += 200 * MS;
	pc_follow(&inject);
	pc_drain(&inject);
	cr_assert_eq(kept(), 4 * SAMPLES);
	cr_assert(window_is_open());
}

Test(pc_sampling, a_pause_that_ends_at_once_changes_nothing)
{
	int context;

	begin();
	pc_context_created(&inject, &context);
	for (int i = 0; i < 20; i++) {
		inject.active = i & 1;
		now_ns += 100 * MS;
		pc_follow(&inject);
	}
	cr_assert_eq(segment.pc.since_ns, segment.pc.first_ns);
	cr_assert_eq(segment.pc.covered_ns, 0);
	cr_assert(inject.pc.counts);
}

Test(pc_sampling, a_second_context_of_a_card_is_not_sampled_one_of_another_card_is)
{
	int first, second, third;

	begin();
	pc_context_created(&inject, &first);
	pc_context_created(&inject, &second);
	cr_assert_eq(enabled, 1);
	cr_assert_eq(inject.pc_period, CUPTI_RESULT_MAX_LIMIT, "a reason is given");
	on_device = 1;
	pc_context_created(&inject, &third);
	cr_assert_eq(enabled, 2);
	on_device = 0;
	pc_context_destroyed(&inject, &first);
	pc_context_created(&inject, &first);
	cr_assert_eq(enabled, 3, "the first is gone");
}

Test(pc_sampling, of_two_contexts_that_two_threads_make_at_once_one_is_sampled)
{
	int first, second;

	begin();
	beside = &second;
	pc_context_created(&inject, &first);
	cr_assert_eq(enabled, 1);
	cr_assert_eq(segment.pc.contexts, 1);
	pc_context_destroyed(&inject, &second);
	pc_context_created(&inject, &second);
	cr_assert_eq(enabled, 1, "the first is still there");
}

Test(pc_sampling, a_context_that_was_refused_is_not_in_the_way_of_the_next)
{
	int first, second;

	begin();
	inject.cupti.cuptiPCSamplingEnable = refuse;
	pc_context_created(&inject, &first);
	inject.cupti.cuptiPCSamplingEnable = enable;
	pc_context_created(&inject, &second);
	cr_assert_eq(enabled, 1);
}

Test(pc_sampling, where_samples_do_not_count_nobody_waits_for_them)
{
	int context;

	begin();
	pc_context_created(&inject, &context);
	inject.active = false;
	pc_follow(&inject);
	now_ns += 200 * MS;
	pc_follow(&inject);
	cr_assert_not(inject.pc.counts);
	drained = 0;
	pc_context_destroyed(&inject, &context);
	pc_end(&inject);
	cr_assert_eq(drained, 0);
}

Test(pc_sampling, places_of_contexts_long_gone_are_used_again)
{
	int context;

	begin();
	for (int i = 0; i < 2 * PC_CONTEXTS_MAX; i++) {
		now_ns += 400 * (uint64_t)MS;
		pc_context_created(&inject, &context);
		pc_context_destroyed(&inject, &context);
	}
	cr_assert_eq(enabled, 2 * PC_CONTEXTS_MAX);
}

static void goes_and_others_come(void *context)
{
	static int others[2 * PC_CONTEXTS_MAX];

	hangs = NULL;
	pc_context_destroyed(&inject, context);
	for (int i = 0; i < 2 * PC_CONTEXTS_MAX; i++) {
		now_ns += 400 * (uint64_t)MS;
		pc_context_created(&inject, &others[i]);
		pc_context_destroyed(&inject, &others[i]);
	}
}

Test(pc_sampling, buffers_that_somebody_hangs_with_are_not_freed)
{
	int context;

	begin();
	pc_context_created(&inject, &context);
	hangs = goes_and_others_come;
	pc_drain(&inject);
	cr_assert_eq(enabled, 1 + 2 * PC_CONTEXTS_MAX);
}

Test(pc_sampling, the_last_drain_ends_though_samples_never_do)
{
	int context;

	begin();
	pc_context_created(&inject, &context);
	pc_end(&inject);
	cr_assert_gt(drained, 5);
	cr_assert_lt(drained, 400);
	cr_assert_not(window_is_open());
	pc_drain(&inject);
	cr_assert_eq(kept(), (uint64_t)drained * SAMPLES, "all were kept, none comes after");
}

Test(pc_sampling, that_the_memory_was_full_is_told_though_the_ring_is_full_too)
{
	int context;
	uint64_t good_ns;

	begin();
	pc_context_created(&inject, &context);
	now_ns += 3000 * (uint64_t)MS;
	pc_drain(&inject);
	good_ns = now_ns;
	ring_is_full = true;
	fails = CUPTI_RESULT_OUT_OF_MEMORY;
	now_ns += 9000 * (uint64_t)MS;
	pc_drain(&inject);
	pc_end(&inject);
	cr_assert_not(window_is_open());
	cr_assert_eq(segment.pc.first_ns + segment.pc.covered_ns, good_ns,
		     "to the last good drain");
	cr_assert_eq(segment.pc.full, 1);
	cr_assert_eq(segment.pc.failed, 0);
}

Test(pc_sampling, a_context_that_cupti_does_not_name_is_not_sampled)
{
	int first, second;

	begin();
	unnamed = 7;
	pc_context_created(&inject, &first);
	cr_assert_eq(enabled, 0);
	cr_assert_eq(inject.pc_period, 7, "why");
	unnamed = 0;
	pc_context_created(&inject, &second);
	cr_assert_eq(enabled, 1, "the card is free");
	pc_context_destroyed(&inject, &first);
	pc_context_destroyed(&inject, &second);
}

/* CUPTI's header says that there are none. */
Test(pc_sampling, samples_that_come_though_the_memory_was_full_are_kept)
{
	int context;

	begin();
	pc_context_created(&inject, &context);
	fails = CUPTI_RESULT_OUT_OF_MEMORY;
	fails_with = 3 * SAMPLES;
	pc_drain(&inject);
	cr_assert_eq(kept(), 3 * SAMPLES);
	cr_assert_eq(segment.pc.full, 1);
	fails_with = 0;
	pc_drain(&inject);
	cr_assert_eq(kept(), 3 * SAMPLES, "once");
}

Test(pc_sampling, memory_that_has_room_again_gives_samples_again)
{
	int context;
	uint64_t ms = 3000;

	begin();
	pc_context_created(&inject, &context);
	now_ns += ms * MS;
	pc_drain(&inject);
	for (int i = 0; i < 2; i++) {
		fails = CUPTI_RESULT_OUT_OF_MEMORY;
		now_ns += 2000 * (uint64_t)MS;
		pc_drain(&inject);
		cr_assert_not(window_is_open());
		cr_assert_leq(segment.pc.covered_ns - ms * MS, 20 * MS, "to the last good drain");
		fails = 0;
		now_ns += 1000 * (uint64_t)MS;
		pc_drain(&inject);
		cr_assert(window_is_open());
		now_ns += 500 * (uint64_t)MS;
		pc_drain(&inject);
		ms += 500;
	}
	cr_assert_eq(kept(), 5 * SAMPLES, "each drain that went well");
	pc_end(&inject);
	cr_assert_eq(segment.pc.full, 1, "one context");
	cr_assert_eq(segment.pc.failed, 0);
}

Test(pc_sampling, an_end_before_the_first_window_is_told)
{
	int context;

	begin();
	inject.active = false;
	pc_setup(&inject);
	pc_context_created(&inject, &context);
	cr_assert_eq(segment.pc.first_ns, 0);
	fails = CUPTI_RESULT_OUT_OF_MEMORY;
	pc_drain(&inject);
	cr_assert_eq(segment.pc.first_ns, now_ns);
	cr_assert_eq(segment.pc.covered_ns, 0);
	cr_assert_eq(segment.pc.full, 1);
	inject.active = true;
	pc_follow(&inject);
	now_ns += 200 * MS;
	pc_follow(&inject);
	cr_assert(inject.pc.counts);
	cr_assert_not(window_is_open());
}

Test(pc_sampling, a_call_that_fails_in_mid_run_is_an_early_end_with_its_result)
{
	int context;

	begin();
	pc_context_created(&inject, &context);
	now_ns += 3000 * (uint64_t)MS;
	pc_drain(&inject);
	fails = 999;
	now_ns += 9000 * (uint64_t)MS;
	pc_drain(&inject);
	cr_assert_not(window_is_open());
	cr_assert_lt(segment.pc.covered_ns, 4000 * (uint64_t)MS);
	cr_assert_eq(segment.pc.full, 0);
	cr_assert_eq(segment.pc.failed, 1);
	cr_assert_eq(segment.pc.result, 999);
	cr_assert_eq(inject.pc_period, 0, "that is no reason why there is no sampling");
}

/* Of two cards: what is covered is what either of them covers, to the latest end. */
Test(pc_sampling, windows_of_contexts_on_two_cards_are_one)
{
	int first, second;
	uint64_t end_ns;

	begin();
	pc_context_created(&inject, &first);
	on_device = 1;
	now_ns += 1000 * (uint64_t)MS;
	pc_context_created(&inject, &second);
	now_ns += 1000 * (uint64_t)MS;
	pc_drain(&inject);
	now_ns += 1000 * (uint64_t)MS;
	pc_context_destroyed(&inject, &first);
	end_ns = now_ns;
	cr_assert(window_is_open(), "the second is still there");
	cr_assert_eq(segment.pc.covered_ns, 0);
	fails = 999; /* what came of the second since its last good drain is lost */
	now_ns += 1000 * (uint64_t)MS;
	pc_drain(&inject);
	cr_assert_not(window_is_open());
	cr_assert_eq(segment.pc.contexts, 2);
	cr_assert_leq(segment.pc.first_ns + segment.pc.covered_ns, end_ns);
	cr_assert_gt(segment.pc.first_ns + segment.pc.covered_ns, end_ns - 10 * MS);
}
