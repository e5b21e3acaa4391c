/*
 * call_stack.h - call stacks as texts, "fill(int) < load<4> < main (train)", innermost first,
 * and the names in them, which may hold what looks like a bracket or like a step.
 *
 * A '<' is no bracket in the name of an operator, between blanks and behind a ')': "operator<<",
 * "(3 < 4)", "((n)<(4))"; a '>' is none in "->" nor where no '<' is open.
 */
#pragma once

#include <stddef.h>

/* The next " < " between two functions; NULL: there is none. */
const char *stack_step(const char *stack);

/* One past what closes the bracket at `at`, in `name`; the end if nothing does. */
const char *name_past_bracket(const char *name, const char *at);

/* Length of "operator<<" and the like at `at`, where it has a bracket's character in it; 0. */
size_t name_operator(const char *name, const char *at);
