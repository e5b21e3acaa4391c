/*
 * test_call_stack.c - where a call stack's functions end, whatever their names have in them.
 */
#include <criterion/criterion.h>

#include "base/call_stack.h"
#include "base/mem.h"

/* `step`: what stands behind the first step; NULL: there is none. */
static void expect_step(const char *stack, const char *step)
{
	const char *found = stack_step(stack);

	if (!step) {
		cr_assert_null(found, "%s: %s", stack, found);
		return;
	}
	cr_assert_not_null(found, "%s", stack);
	cr_assert_str_eq(found + 3, step, "%s", stack);
}

Test(call_stack, steps_are_outside_of_brackets)
{
	expect_step("a < b < c", "b < c");
	expect_step("a", NULL);
	expect_step("", NULL);
	expect_step("f<(3 < 4)>(int) < main", "main");
	expect_step("f<(3 < 4)>(int)", NULL);
	expect_step("f(A<B<int> > const&) < main", "main");
	expect_step("f<((n)<(4))>() < main", "main");
	expect_step("a->b < c", "c");
}

Test(call_stack, the_sign_of_an_operator_opens_nothing)
{
	expect_step("operator<(A, A) < main", "main");
	expect_step("operator< < main", "main");
	expect_step("operator<< <char>(A, char) < main", "main");
	expect_step("A::operator->() < main", "main");
	expect_step("f<&(operator<(A, A))>() < main", "main");
	expect_step("my_operator<int>() < main", "main");
}

Test(call_stack, brackets_without_end_are_bounded)
{
	enum { DEEP = 100000 };
	char *text = mem_alloc(DEEP + 1);

	memset(text, '<', DEEP);
	text[DEEP] = 0;
	cr_assert_null(stack_step(text));
	cr_assert_eq(name_past_bracket(text, text), text + DEEP);
	memset(text, '>', DEEP);
	cr_assert_null(stack_step(text));
	cr_assert_eq(name_past_bracket(text, text), text + 1);
	memset(text, ')', DEEP);
	cr_assert_null(stack_step(text));
	free(text);
}
