#include "collect/perf_stack.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

/* A program with PyTorch maps some 4,000 ranges, 500 KiB of text. */
enum { MAPS_BYTES_MAX = 16 << 20, CODE_MAX = 65536, NAMES_MAX = 65536, NAME_BYTES = 120 };
/* Between two readings of the map; doubled each time that one brings nothing. */
static const int64_t PAUSE_NS = 250000000;
static const int64_t PAUSE_MAX_NS = 60000000000;

struct code {
	uint64_t start, end;
	uint64_t base; /* where the file's first byte lies */
	char *path;    /* "" none: made as the program runs */
};

struct perf_stack {
	const char *root;
	int64_t pid;
	struct symbols *symbols;
	VEC(struct code) code; /* by start */
	int64_t due_ns, pause_ns;
	struct map named; /* address -> index into names */
	VEC(char *) names;
};

struct perf_stack *perf_stack_new(const char *root, int64_t pid, struct symbols *symbols)
{
	struct perf_stack *stack = mem_zero(sizeof(*stack));

	stack->root = root;
	stack->pid = pid;
	stack->symbols = symbols;
	stack->pause_ns = PAUSE_NS;
	return stack;
}

static void forget(struct perf_stack *stack)
{
	for (size_t i = 0; i < stack->code.count; i++)
		free(stack->code.at[i].path);
	for (size_t i = 0; i < stack->names.count; i++)
		free(stack->names.at[i]);
	VEC_DONE(&stack->code);
	VEC_DONE(&stack->names);
	map_done(&stack->named);
}

void perf_stack_free(struct perf_stack *stack)
{
	if (!stack)
		return;
	forget(stack);
	free(stack);
}

static void read_maps(const struct perf_stack *stack, struct buf *out)
{
	struct buf path = { 0 };
	ssize_t len = 1;
	int file;

	buf_printf(&path, "%s/proc/%lld/maps", stack->root, (long long)stack->pid);
	file = open(path.at, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	buf_done(&path);
	while (file >= 0 && len > 0 && out->len < MAPS_BYTES_MAX) {
		char part[16384];

		len = read(file, part, sizeof(part));
		if (len > 0)
			buf_add(out, part, (size_t)len);
	}
	if (file >= 0)
		(void)close(file);
}

/* "7f00-7f10 r-xp 00001000 08:01 123   /lib/x.so" */
struct mapped {
	uint64_t start, end, offset;
	bool is_code;
	struct str path;
};

static bool parse(struct str line, struct mapped *ret_mapped)
{
	struct str range = str_cut(&line, ' '), rights = str_cut(&line, ' ');
	struct str offset = str_cut(&line, ' '), start = str_cut(&range, '-');

	(void)str_cut(&line, ' '); /* device */
	(void)str_cut(&line, ' '); /* inode */
	ret_mapped->is_code = rights.len > 2 && rights.at[2] == 'x';
	ret_mapped->path = line.at ? str_trim(line) : (struct str){ "", 0 };
	return str_to_hex(start, &ret_mapped->start) && str_to_hex(range, &ret_mapped->end) &&
	       str_to_hex(offset, &ret_mapped->offset) && ret_mapped->start < ret_mapped->end;
}

/* The parts of one file lie together, the first with its head. */
static void load(struct perf_stack *stack)
{
	struct buf text = { 0 };
	struct str rest, path = { "", 0 };
	uint64_t base = 0;

	forget(stack);
	read_maps(stack, &text);
	rest = (struct str){ text.at, text.len };
	while (rest.at && rest.len && stack->code.count < CODE_MAX) {
		struct mapped mapped;
		struct code *code;

		if (!parse(str_cut(&rest, '\n'), &mapped))
			continue;
		if (!str_same(mapped.path, path) || !mapped.offset) {
			path = mapped.path;
			base = mapped.start - mapped.offset;
		}
		if (!mapped.is_code)
			continue;
		code = VEC_ADD(&stack->code);
		code->start = mapped.start;
		code->end = mapped.end;
		code->base = base;
		code->path = mem_alloc(path.len + 1);
		memcpy(code->path, path.at, path.len);
		code->path[path.len] = 0;
	}
	buf_done(&text);
}

static const struct code *code_at(const struct perf_stack *stack, uint64_t address)
{
	size_t low = 0, high = stack->code.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (stack->code.at[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < stack->code.at[low - 1].end ? &stack->code.at[low - 1] : NULL;
}

static const struct code *code_find(struct perf_stack *stack, uint64_t address, int64_t now_ns)
{
	const struct code *code = code_at(stack, address);

	if (code || now_ns < stack->due_ns)
		return code;
	load(stack);
	code = code_at(stack, address);
	stack->pause_ns = code                             ? PAUSE_NS
			  : stack->pause_ns < PAUSE_MAX_NS ? stack->pause_ns * 2
							   : PAUSE_MAX_NS;
	stack->due_ns = now_ns + stack->pause_ns;
	return code;
}

/* Names stand in "a < b < c" and in "key=value;...". */
static char *fit_name(const char *name)
{
	size_t len = strnlen(name, NAME_BYTES);
	char *fit = mem_alloc(len + 1);

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];

		fit[i] = c == ';' || c < ' ' || c == 127 ? '?' : (char)c;
	}
	fit[len] = 0;
	return fit;
}

static char *name_new(const struct perf_stack *stack, const struct code *code, uint64_t address)
{
	const char *slash = strrchr(code->path, '/'), *name = NULL;
	char *plain, *fit;

	if (slash)
		name = symbols_find(stack->symbols, code->path, address - code->base);
	plain = name ? symbols_plain(name) : NULL;
	fit = fit_name(plain           ? plain
		       : name          ? name
		       : slash         ? slash + 1
		       : code->path[0] ? code->path
				       : "[code without a file]");
	free(plain);
	return fit;
}

/* NULL: no code. */
static const char *name_of(struct perf_stack *stack, uint64_t address, int64_t now_ns)
{
	const struct code *code = code_find(stack, address, now_ns);
	uint64_t *known;

	if (!code)
		return NULL;
	known = map_find(&stack->named, address);
	if (known)
		return stack->names.at[*known];
	if (stack->names.count >= NAMES_MAX) {
		for (size_t i = 0; i < stack->names.count; i++)
			free(stack->names.at[i]);
		VEC_DONE(&stack->names);
		map_done(&stack->named);
	}
	map_put(&stack->named, address, stack->names.count);
	return *VEC_ADD(&stack->names) = name_new(stack, code, address);
}

void perf_stack_name(struct perf_stack *stack, const uint64_t *frame, size_t frames, int64_t now_ns,
		     struct buf *leaf, struct buf *chain)
{
	for (size_t i = 0; i < frames; i++) {
		/* Return addresses lie behind the call, perhaps in the next function. */
		const char *name = name_of(stack, frame[i] - (i > 0), now_ns);

		if (!name)
			return;
		if (!i)
			buf_text(leaf, name);
		buf_printf(chain, "%s%s", i ? " < " : "", name);
		if (!strcmp(name, "main"))
			return;
	}
}
