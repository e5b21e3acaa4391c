/* test_memory_calls.c - in the program: a call that obtains memory has one call stack, the
 * runtime's where that has the driver's inside. */
#include <criterion/criterion.h>

#include "inject/inject.h"

enum { MALLOC = 20, ALLOC = 243, START = 311 };

static struct inject inject;
static struct segment segment;
static struct segment_slot slot;
static unsigned int stacks, starts;
static uint64_t sites[8]; /* correlations */

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
	if (kind == SLOT_SITE && stacks <= sizeof(sites) / sizeof(sites[0]))
		sites[stacks - 1] = of->value;
}

uint32_t site_here(struct inject *of, struct segment *in, enum site_of what)
{
	(void)of;
	(void)in;
	stacks += what == SITE_MEMORY;
	return 1;
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

Test(memory_calls, the_outer_one_has_the_call_stack)
{
	by_driver(1);
	by_runtime(2);
	by_runtime(4);
	by_driver(6);
	cr_assert_eq(stacks, 4);
	cr_assert_eq(sites[0], 1);
	cr_assert_eq(sites[1], 2);
	cr_assert_eq(sites[2], 4);
	cr_assert_eq(sites[3], 6);
}

Test(memory_calls, where_recording_begins_or_ends_no_memory_is_obtained)
{
	inject.start_cbid = START;
	call(CUPTI_DOMAIN_DRIVER, START, CUPTI_SITE_ENTER, 1);
	call(CUPTI_DOMAIN_DRIVER, START, CUPTI_SITE_EXIT, 1);
	cr_assert_eq(stacks, 0);
	cr_assert_eq(starts, 1);
}
