/* test_object_calls.c - in the program: an object that two calls tell of has one call stack. */
#include <criterion/criterion.h>

#include "inject/inject.h"

enum { CREATE = 1, DESTROY = 2 };

static struct inject inject;
static struct segment segment;
static struct segment_slot slot;
static unsigned int slots, stacks;

struct segment_slot *slot_take(struct segment *of)
{
	(void)of;
	slots++;
	return &slot;
}

void slot_commit(struct segment_slot *of, enum slot_kind kind)
{
	(void)of;
	(void)kind;
}

uint32_t site_here(struct inject *of, struct segment *in, enum site_of what)
{
	(void)of;
	(void)in;
	(void)what;
	stacks++;
	return 1;
}

static void call(uint32_t domain, uint32_t cbid, uint32_t site, uintptr_t parameter)
{
	uintptr_t parameters[2] = { parameter, 0 };
	struct cupti_callback callback = { .site = site, .params = parameters };

	cr_assert(object_called(&inject, &segment, domain, cbid, &callback));
}

/* As the runtime's create has the driver's inside. */
static void create(uintptr_t handle, bool by_runtime, bool driver_seen)
{
	if (driver_seen)
		call(CUPTI_DOMAIN_DRIVER, CREATE, CUPTI_SITE_EXIT, (uintptr_t)&handle);
	if (by_runtime)
		call(CUPTI_DOMAIN_RUNTIME, CREATE, CUPTI_SITE_EXIT, (uintptr_t)&handle);
}

static void watch(void)
{
	cr_assert(object_watch(&inject, CUPTI_DOMAIN_DRIVER, CREATE, "cuEventCreate"));
	cr_assert(object_watch(&inject, CUPTI_DOMAIN_DRIVER, DESTROY, "cuEventDestroy_v2"));
	cr_assert(object_watch(&inject, CUPTI_DOMAIN_RUNTIME, CREATE, "cudaEventCreate_v3020"));
	cr_assert(object_watch(&inject, CUPTI_DOMAIN_RUNTIME, DESTROY, "cudaEventDestroy_v3020"));
}

Test(object_calls, one_event_is_told_once_with_one_call_stack)
{
	watch();
	for (uintptr_t i = 0; i < 10; i++)
		create(0x1000 + 16 * i, true, true);
	cr_assert_eq(slots, 10);
	cr_assert_eq(stacks, 10);
}

Test(object_calls, the_same_handle_again_is_another_event)
{
	watch();
	create(0x1000, false, true);
	call(CUPTI_DOMAIN_DRIVER, DESTROY, CUPTI_SITE_ENTER, 0x1000);
	create(0x1000, true, false);
	call(CUPTI_DOMAIN_RUNTIME, DESTROY, CUPTI_SITE_ENTER, 0x1000);
	create(0x1000, true, false);
	cr_assert_eq(slots, 5);
	cr_assert_eq(stacks, 3);
}
