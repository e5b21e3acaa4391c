#include "collect/perf_stack.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/maps.h"
#include "collect/perf_map_file.h"

enum { NAMES_MAX = 65536, NAME_BYTES = 120 };
/* Between two readings of the map; doubled each time that one brings nothing. */
static const int64_t PAUSE_NS = 250000000;
static const int64_t PAUSE_MAX_NS = 60000000000;
/* A reading is followed by this many times its cost of rest: a map of 65,536 ranges takes long. */
static const int64_t REST = 100;

/* Callers are rubbish where code is built without frame pointers: what they ask for
 * in vain must not delay the innermost function's. */
enum asker { ASKER_INNERMOST, ASKER_CALLER, ASKER_COUNT };

/* Of a function; without a name of its own it goes by its file's. */
struct name {
	char *text;
	bool is_file;
};

struct perf_stack {
	const char *root;
	int64_t pid;
	struct symbols *symbols;
	struct maps maps;
	int64_t rested_ns;
	int64_t due_ns[ASKER_COUNT], pause_ns[ASKER_COUNT];
	struct maps_files files;
	struct perf_map_file *made;
	char *later;      /* the name of a function whose table is not read yet */
	struct map named; /* address -> index into names */
	VEC(struct name) names;
};

struct perf_stack *perf_stack_new(const char *root, int64_t pid, struct symbols *symbols)
{
	struct perf_stack *stack = mem_zero(sizeof(*stack));

	stack->root = root;
	stack->pid = pid;
	stack->symbols = symbols;
	stack->made = perf_map_file_new(root, pid);
	for (int i = 0; i < ASKER_COUNT; i++)
		stack->pause_ns[i] = PAUSE_NS;
	return stack;
}

static void forget(struct perf_stack *stack)
{
	for (size_t i = 0; i < stack->names.count; i++)
		free(stack->names.at[i].text);
	VEC_DONE(&stack->names);
	map_done(&stack->named);
}

void perf_stack_free(struct perf_stack *stack)
{
	if (!stack)
		return;
	forget(stack);
	maps_done(&stack->maps);
	perf_map_file_free(stack->made);
	free(stack->later);
	maps_files_done(&stack->files);
	free(stack);
}

/* NULL: no code. */
static const struct mapping *code_at(const struct perf_stack *stack, uint64_t address)
{
	const struct mapping *code = maps_find(&stack->maps, address);

	return code && code->is_code ? code : NULL;
}

/* Names stay good as long as the map is the same. */
static void reload(struct perf_stack *stack, int64_t now_ns)
{
	int64_t began_ns = clock_steady_ns();
	struct maps fresh = { 0 };

	maps_load(&fresh, stack->root, stack->pid);
	maps_files_load(&stack->files, stack->root, stack->pid);
	if (maps_same(&fresh, &stack->maps)) {
		maps_done(&fresh);
	} else {
		forget(stack);
		maps_done(&stack->maps);
		stack->maps = fresh;
	}
	stack->rested_ns = now_ns + (clock_steady_ns() - began_ns) * REST;
}

static const struct mapping *code_find(struct perf_stack *stack, uint64_t address, enum asker asker,
				       int64_t now_ns)
{
	const struct mapping *code = code_at(stack, address);
	int64_t *pause_ns = &stack->pause_ns[asker];

	if (code || now_ns < stack->due_ns[asker] || now_ns < stack->rested_ns)
		return code;
	reload(stack, now_ns);
	code = code_at(stack, address);
	*pause_ns = code ? PAUSE_NS : *pause_ns < PAUSE_MAX_NS ? *pause_ns * 2 : PAUSE_MAX_NS;
	stack->due_ns[asker] = now_ns + *pause_ns;
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

static struct name name_new(struct perf_stack *stack, const struct mapping *code, uint64_t address)
{
	const char *slash = strrchr(code->path, '/'), *name = NULL;
	const char *file = maps_file(&stack->files, str_of(code->path));
	char *plain, *fit;

	if (file)
		name = symbols_find(stack->symbols, file, address - code->base);
	if (name && !symbols_says(name))
		name = NULL;
	plain = name ? symbols_plain(name) : NULL;
	fit = fit_name(plain           ? plain
		       : name          ? name
		       : slash         ? slash + 1
		       : code->path[0] ? code->path
				       : "[code without a file]");
	free(plain);
	return (struct name){ .text = fit, .is_file = !name };
}

/* NULL: no code. Valid until the next call. */
static const char *name_of(struct perf_stack *stack, uint64_t address, enum asker asker,
			   int64_t now_ns, bool *ret_is_python, bool *ret_is_file)
{
	const struct mapping *code = code_find(stack, address, asker, now_ns);
	const char *file, *name;
	uint64_t *known;

	*ret_is_python = *ret_is_file = false;
	if (!code)
		return NULL;
	/* Not kept here: the program may make another function there at any time. */
	name = maps_is_made(code) ? perf_map_file_find(stack->made, address, now_ns, ret_is_python)
				  : NULL;
	if (name)
		return name;
	known = map_find(&stack->named, address);
	if (known) {
		*ret_is_file = stack->names.at[*known].is_file;
		return stack->names.at[*known].text;
	}
	file = maps_file(&stack->files, str_of(code->path));
	if (file && !symbols_ready(stack->symbols, file, now_ns)) {
		free(stack->later);
		*ret_is_file = true;
		return stack->later = fit_name(strrchr(code->path, '/') + 1);
	}
	if (stack->names.count >= NAMES_MAX)
		forget(stack);
	map_put(&stack->named, address, stack->names.count);
	*VEC_ADD(&stack->names) = name_new(stack, code, address);
	*ret_is_file = stack->names.at[stack->names.count - 1].is_file;
	return stack->names.at[stack->names.count - 1].text;
}

/* Functions of Python's run in the interpreter's loop: it says nothing where they are known. */
static bool is_python_loop(const char *name)
{
	return !strcmp(name, "_PyEval_EvalFrameDefault");
}

void perf_stack_name(struct perf_stack *stack, const uint64_t *frame, size_t frames, int64_t now_ns,
		     struct buf *leaf, struct buf *chain)
{
	size_t leaf_at = leaf->len, chain_at = chain->len, last_at = chain->len;
	bool in_loop = false, is_python, is_file;

	for (size_t i = 0; i < frames; i++) {
		/* Return addresses lie behind the call, perhaps in the next function. */
		const char *name =
			name_of(stack, frame[i] - (i > 0), i ? ASKER_CALLER : ASKER_INNERMOST,
				now_ns, &is_python, &is_file);

		if (!name)
			return;
		if (i == 1 && in_loop && is_python)
			leaf->len = leaf_at;
		if (!i || (i == 1 && in_loop && is_python))
			buf_text(leaf, name);
		in_loop = !i && is_python_loop(name);
		/* What a library does inside, where it does not say so, is one. */
		if (is_file && chain->len > chain_at && !strcmp(chain->at + last_at, name))
			continue;
		if (chain->len > chain_at)
			buf_text(chain, " < ");
		last_at = chain->len;
		buf_text(chain, name);
		if (!strcmp(name, "main"))
			return;
	}
}
