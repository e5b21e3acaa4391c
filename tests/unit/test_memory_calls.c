/* test_memory_calls.c - in the program: a call that obtains memory has one call stack, the
 * runtime's where that has the driver's inside. */
#include <criterion/criterion.h>

#include "inject/inject.h"

enum { MALLOC = 20, ALLOC = 243, START = 311 };

static struct inject inject;
static struct segment segment;
static struct segment_slot slot;
static unsigned int stacks, starts, site_count;
static uint64_t sites[8][2]; /* correlation, site */

struct inject *inject_state = &inject;

struct hook hook_enter(void)
{
	return (struct hook){ .segment = &segment };
}

void hook_leave(struct hook *hook)
{
	(void)hook;
}

uint64_t inject_now(void)
{
	return 1;
}

struct segment_slot *slot_take(struct segment *of)
{
	(void)of;
	return &slot;
}

void slot_commit(struct segment_slot *of, enum slot_kind kind)
{
	if (kind != SLOT_SITE || site_count >= sizeof(sites) / sizeof(sites[0]))
		return;
	sites[site_count][0] = of->value;
	sites[site_count++][1] = of->a;
}

uint32_t site_here(struct inject *of, struct segment *in, enum site_of what)
{
	(void)of;
	(void)in;
	stacks += what == SITE_MEMORY;
	return 100 + stacks;
}

bool event_called(struct inject *of, uint32_t domain, uint32_t cbid,
		  const struct cupti_callback *call)
{
	(void)of;
	(void)domain;
	(void)cbid;
	(void)call;
	return false;
}

bool sync_called(struct inject *of, struct segment *in, uint32_t domain, uint32_t cbid,
		 const struct cupti_callback *call)
{
	(void)of, (void)in, (void)domain, (void)cbid, (void)call;
	return false;
}

bool object_called(struct inject *of, struct segment *in, uint32_t domain, uint32_t cbid,
		   const struct cupti_callback *call)
{
	(void)of, (void)in, (void)domain, (void)cbid, (void)call;
	return false;
}

void activity_range(struct inject *of, bool inside)
{
	(void)of;
	starts += inside;
}

void activity_unified(struct inject *of)
{
	(void)of;
}

void pc_context_created(struct inject *of, void *context)
{
	(void)of, (void)context;
}

void pc_context_destroyed(struct inject *of, void *context)
{
	(void)of, (void)context;
}

static void call(uint32_t domain, uint32_t cbid, uint32_t site, uint32_t correlation)
{
	struct cupti_callback callback = { .site = site, .correlation = correlation };

	resource_callback(NULL, domain, cbid, &callback);
}

static void by_driver(uint32_t correlation)
{
	call(CUPTI_DOMAIN_DRIVER, ALLOC, CUPTI_SITE_ENTER, correlation);
	call(CUPTI_DOMAIN_DRIVER, ALLOC, CUPTI_SITE_EXIT, correlation);
}

static void by_runtime(uint32_t correlation)
{
	call(CUPTI_DOMAIN_RUNTIME, MALLOC, CUPTI_SITE_ENTER, correlation);
	by_driver(correlation + 1);
	call(CUPTI_DOMAIN_RUNTIME, MALLOC, CUPTI_SITE_EXIT, correlation);
}

/* CUPTI's record has the number of one of both. */
Test(memory_calls, the_outer_one_has_the_call_stack_and_the_inner_one_has_it_too)
{
	static const uint64_t want[][2] = { { 1, 101 }, { 2, 102 }, { 3, 102 },
					    { 4, 103 }, { 5, 103 }, { 6, 104 } };

	by_driver(1);
	by_runtime(2);
	by_runtime(4);
	by_driver(6);
	cr_assert_eq(stacks, 4);
	cr_assert_eq(site_count, 6);
	for (size_t i = 0; i < 6; i++) {
		cr_assert_eq(sites[i][0], want[i][0]);
		cr_assert_eq(sites[i][1], want[i][1]);
	}
}

/* As CUPTI's header has it. */
Test(memory_calls, of_one_number_one_place_is_told)
{
	call(CUPTI_DOMAIN_RUNTIME, MALLOC, CUPTI_SITE_ENTER, 7);
	by_driver(7);
	call(CUPTI_DOMAIN_RUNTIME, MALLOC, CUPTI_SITE_EXIT, 7);
	cr_assert_eq(site_count, 1);
}

Test(memory_calls, where_recording_begins_or_ends_no_memory_is_obtained)
{
	inject.start_cbid = START;
	call(CUPTI_DOMAIN_DRIVER, START, CUPTI_SITE_ENTER, 1);
	call(CUPTI_DOMAIN_DRIVER, START, CUPTI_SITE_EXIT, 1);
	cr_assert_eq(stacks, 0);
	cr_assert_eq(starts, 1);
}
