#include "rules/short_name.h"

#include <stdbool.h>
#include <string.h>

#include "base/call_stack.h"

/* Only a signature has parameters or template arguments; a sentence or a path
 * with a blank and no bracket is somebody's own name. */
static bool is_signature(const char *name)
{
	const char *bracket = strpbrk(name, "<(");

	if (!bracket)
		return false;
	if (bracket - name >= 8 && name_operator(name, bracket - 8)) /* "operator<(A, B)" */
		return true;
	if (!strncmp(bracket, "(anonymous namespace)::", 23))
		return true;
	if (bracket == name || (*bracket == '(' && bracket[-1] == ' ')) /* "main (pipeline)" */
		return false;
	/* "torch/nn/modules.py(12): forward", "enumerate(DataLoader)#_next" */
	bracket = name_past_bracket(name, bracket);
	return !*bracket || *bracket == '(' || !strncmp(bracket, "::", 2) ||
	       !strncmp(bracket, " [clone", 7);
}

void short_name(const char *name, struct buf *out)
{
	static const char anonymous[] = "(anonymous namespace)::";
	const char *whole = name;
	size_t start = out->len, sign;

	if (!is_signature(name)) {
		buf_text(out, name);
		return;
	}
	while (*name) {
		if (*name == '(' && !strncmp(name, anonymous, sizeof(anonymous) - 1)) {
			name += sizeof(anonymous) - 1;
		} else if ((sign = name_operator(whole, name)) != 0) {
			buf_add(out, name, sign);
			name += sign;
			name += *name == ' ' && name[1] == '<'; /* "operator< <int>" */
		} else if (*name == '<') {
			name = name_past_bracket(whole, name);
		} else if (*name == '(') {
			break; /* the parameters: the rest is no name */
		} else if (*name == '{' || *name == '[') {
			const char *end = name_past_bracket(whole, name);

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

static const char STACK_STEP[] = " < ";

/* "libcublas.so.13+0x5c385b", "libc.so.6"; and the inside of a CUDA runtime that is linked
 * in, where a hash stands for a name. */
static bool is_nameless(const char *frame)
{
	return (strstr(frame, ".so") && !strpbrk(frame, " (<")) ||
	       !strncmp(frame, "libcudart_static_", 17);
}

static bool says_who(const char *frame)
{
	return !strstr(frame, "CachingAllocator::") && !strstr(frame, "CachingHostAllocator") &&
	       !strstr(frame, "allocate_host_memory") &&
	       strncmp(frame, "at::detail::empty", 17) != 0 && !is_nameless(frame);
}

/* " (libtorch_cuda.so)", where the last frame is; the end if there is none. */
static size_t library_at(const char *stack, size_t len)
{
	const char *open;

	if (!len || stack[len - 1] != ')')
		return len;
	for (open = stack + len - 1; open > stack && *open != '('; open--)
		;
	return open > stack && open[-1] == ' ' && !strchr(" )", open[1])
		       ? (size_t)(open - stack) - 1
		       : len;
}

/* Libraries in a row, each once. */
static void add_library(struct buf *libraries, const char *frame)
{
	const char *offset = strstr(frame, "+0x");
	size_t len = offset ? (size_t)(offset - frame) : strlen(frame);

	if (!strstr(frame, ".so") ||
	    (libraries->len >= len && !strncmp(libraries->at + libraries->len - len, frame, len)))
		return;
	buf_text(libraries, STACK_STEP);
	buf_add(libraries, frame, len);
}

void short_stack(const char *stack, struct buf *out)
{
	size_t start = out->len, len = library_at(stack, strlen(stack)), frame_len, count = 0;
	const char *library = stack + len;
	struct buf frame = { 0 }, libraries = { 0 };

	if (!stack_step(stack)) {
		short_name(stack, out);
		return;
	}
	for (const char *at = stack; at < library; at += frame_len + sizeof(STACK_STEP) - 1) {
		const char *step = stack_step(at);

		frame_len = (size_t)((step && step < library ? step : library) - at);
		buf_clear(&frame);
		buf_add(&frame, at, frame_len);
		if (!says_who(frame.at) && (at + frame_len < library || out->len > start)) {
			if (count == 1 && is_nameless(frame.at))
				add_library(&libraries, frame.at);
			continue;
		}
		if (out->len > start)
			buf_text(out, STACK_STEP);
		short_name(frame.at, out);
		count++;
	}
	if (count == 1 && libraries.len && out->len > start)
		buf_text(out, libraries.at);
	buf_text(out, library);
	buf_done(&libraries);
	buf_done(&frame);
}

static bool is_cuda(const char *frame)
{
	return (!strncmp(frame, "cuda", 4) && frame[4] >= 'A' && frame[4] <= 'Z') ||
	       (!strncmp(frame, "cu", 2) && frame[2] >= 'A' && frame[2] <= 'Z');
}

void short_stack_of_call(const char *stack, const char *call, struct buf *out)
{
	const char *cuda = NULL, *found = NULL, *next;
	size_t len = strlen(call);

	for (const char *at = stack; at; at = next ? next + sizeof(STACK_STEP) - 1 : NULL) {
		next = stack_step(at);
		if (len && !strncmp(at, call, len))
			found = at;
		if (is_cuda(at))
			cuda = at;
	}
	short_stack(found ? found : cuda ? cuda : stack, out);
}
