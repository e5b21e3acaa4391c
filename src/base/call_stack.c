#include "base/call_stack.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Brackets that are open, the innermost in the lowest bit: is it a '<'? Of more than 64 the
 * outer ones are taken for round. */
struct nest {
	uint64_t angles;
	int depth;
};

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

size_t name_operator(const char *name, const char *at)
{
	static const char *const signs[] = { "<<=", ">>=", "<=>", "->*", "<<", ">>", "<=",
					     ">=",  "->",  "()",  "[]",  "<",  ">" };
	static const char word[] = "operator";
	enum { WORD = sizeof(word) - 1 };

	if (*at != 'o' || strncmp(at, word, WORD) != 0 || (at > name && is_word(at[-1])))
		return 0;
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		if (!strncmp(at + WORD, signs[i], strlen(signs[i])))
			return WORD + strlen(signs[i]);
	}
	return 0;
}

static void open(struct nest *nest, bool is_angle)
{
	nest->angles = nest->angles << 1 | is_angle;
	nest->depth++;
}

static void close(struct nest *nest)
{
	nest->angles >>= 1;
	nest->depth--;
}

static bool is_less(const char *name, const char *at)
{
	enum { CALL = sizeof("operator()") - 1 };

	if (at == name)
		return false;
	if (at[-1] == ')') /* but of "operator()<int>" */
		return at - name < CALL || name_operator(name, at - CALL) != CALL;
	return at[-1] == ' ' && at[1] == ' ';
}

/* A character further, or an operator. No strchr: a report of a training goes through megabytes
 * of names. */
static const char *pass(const char *name, const char *at, struct nest *nest)
{
	size_t operator_len = name_operator(name, at);

	if (operator_len)
		return at + operator_len;
	if (*at == '-' && at[1] == '>')
		return at + 2;
	if (*at == '(' || *at == '{' || *at == '[') {
		open(nest, false);
	} else if (*at == '<') {
		if (!is_less(name, at))
			open(nest, true);
	} else if (*at == '>') {
		if (nest->depth && nest->angles & 1)
			close(nest);
	} else if (*at == ')' || *at == '}' || *at == ']') {
		while (nest->depth && nest->angles & 1) /* were none */
			close(nest);
		if (nest->depth)
			close(nest);
	}
	return at + 1;
}

const char *name_past_bracket(const char *name, const char *at)
{
	struct nest nest = { 0 };

	do {
		at = *at ? pass(name, at, &nest) : at;
	} while (*at && nest.depth);
	return at;
}

const char *stack_step(const char *stack)
{
	struct nest nest = { 0 };

	for (const char *at = stack; *at; at = pass(stack, at, &nest)) {
		if (!nest.depth && !strncmp(at, " < ", 3))
			return at;
	}
	return NULL;
}
