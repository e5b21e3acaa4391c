/*
 * test_site.c - call stacks in the program, on a time of its own: the same stack is
 * named once, and what stacks cost stays within its share of the time.
 */
#include <criterion/criterion.h>

#include <string.h>
#include <unistd.h>

#include "inject/inject.h"

enum { MS = 1000000 };

static uint64_t now_ns = 1, step_ns;
static uint32_t interned;
static char last[2048];
static struct inject inject;
static struct segment segment;

struct inject *inject_state = &inject;

uint64_t inject_now(void)
{
	return now_ns += step_ns;
}

uint32_t inject_thread(void)
{
	return (uint32_t)getpid();
}

uint32_t text_intern(struct segment *of, const char *at, size_t len)
{
	(void)of;
	memcpy(last, at, len);
	last[len] = 0;
	return ++interned;
}

static __attribute__((noinline)) uint32_t from_here(void)
{
	uint32_t text = site_here(&inject, &segment, SITE_OBJECT);

	__asm__ volatile("" ::: "memory"); /* no tail call */
	return text;
}

static __attribute__((noinline)) uint32_t from_there(void)
{
	uint32_t text = site_here(&inject, &segment, SITE_OBJECT);

	__asm__ volatile("" ::: "memory");
	return text + 0;
}

Test(site, the_same_stack_is_named_once_and_another_is_another)
{
	uint32_t texts[10];

	site_prepare(&inject);
	for (int i = 0; i < 10; i++)
		texts[i] = from_here();
	cr_assert_eq(interned, 1);
	cr_assert(texts[0] && texts[0] == texts[9]);
	cr_assert_neq(from_there(), texts[0]);
	cr_assert_eq(interned, 2);
	cr_assert_not_null(strchr(last, '\t'), "%s", last);
}

/* Each takes 10 ms by this clock: 5 or 6 at first, then one each 4 s. */
Test(site, stacks_stay_within_their_share_of_the_time)
{
	int first = 0, later = 0, other;

	step_ns = 10 * MS;
	site_prepare(&inject);
	for (int i = 0; i < 100; i++) {
		now_ns -= step_ns; /* what refuses takes no time */
		first += from_here() != 0;
	}
	cr_assert_geq(first, 4);
	cr_assert_leq(first, 7, "%d", first);
	for (int i = 0; i < 4000; i++) {
		now_ns += 10 * MS;
		later += from_here() != 0;
	}
	/* 40 s and what the calls took: a 400th of it is 100 to 250 ms. */
	cr_assert_geq(later, 8, "%d", later);
	cr_assert_leq(later, 30, "%d", later);
	other = site_here(&inject, &segment, SITE_MEMORY) != 0;
	cr_assert(other, "memory has a share of its own");
}
