#include "present/short_name.h"

#include <stdbool.h>
#include <string.h>

/* One past what closes the bracket at `at`; the end if nothing does. Angle
 * brackets of "->", "operator<" and comparisons inside parentheses don't
 * occur in what compilers print for kernels, so depth alone is enough. */
static const char *past_bracket(const char *at)
{
	int depth = 0;

	/* No strchr: a report of a training goes through megabytes of names. */
	for (; *at; at++) {
		if (*at == '<' || *at == '(' || *at == '{' || *at == '[')
			depth++;
		else if ((*at == '>' || *at == ')' || *at == '}' || *at == ']') && --depth == 0)
			return at + 1;
	}
	return at;
}

/* Only a signature has parameters or template arguments; a sentence or a path
 * with a blank and no bracket is somebody's own name. */
static bool is_signature(const char *name)
{
	const char *bracket = strpbrk(name, "<(");

	if (!bracket || bracket == name)
		return false;
	if (!strncmp(bracket, "(anonymous namespace)::", 23))
		return true;
	/* "torch/nn/modules.py(12): forward", "enumerate(DataLoader)#_next" */
	bracket = past_bracket(bracket);
	return !*bracket || *bracket == '(' || !strncmp(bracket, "::", 2) ||
	       !strncmp(bracket, " [clone", 7);
}

void short_name(const char *name, struct buf *out)
{
	static const char anonymous[] = "(anonymous namespace)::";
	size_t start = out->len;

	if (!is_signature(name)) {
		buf_text(out, name);
		return;
	}
	while (*name) {
		if (*name == '(' && !strncmp(name, anonymous, sizeof(anonymous) - 1)) {
			name += sizeof(anonymous) - 1;
		} else if (*name == 'o' && !strncmp(name, "operator", 8) &&
			   strchr("<>(", name[8]) && name[8]) {
			buf_add(out, name, name[8] == '(' ? 10 : 9);
			name += name[8] == '(' && name[9] == ')' ? 10 : 9;
		} else if (*name == '<') {
			name = past_bracket(name);
		} else if (*name == '(') {
			break; /* the parameters: the rest is no name */
		} else if (*name == '{' || *name == '[') {
			const char *end = past_bracket(name);

			buf_add(out, name, (size_t)(end - name));
			name = end;
		} else if (*name == ' ') {
			out->len = start; /* what we had was the return type */
			name++;
		} else {
			buf_char(out, *name++);
		}
	}
	if (out->len == start)
		buf_char(out, '?');
	else
		out->at[out->len] = 0;
}
