#include "collect/python_stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/python_name.h"

enum {
	INTERPRETERS_MAX = 64,
	THREADS_MAX = 4096,
	FRAMES_TOLD = 12,   /* the innermost; the outer ones are the same in all looks */
	FRAMES_WALKED = 24, /* frames of C code count, and are not told */
	TEXT_MAX = 200,     /* characters of a name; of a path the last ones */
	PATH_CHARACTERS_MAX = 4096,
	LINES_MAX = 65536, /* bytes of a location table */
	CODES_MAX = 16384,
	KEPT_BYTES_MAX = 16 << 20, /* of tables: beyond, all is read anew */
};

/* A code object as it was when it was first met. */
struct code {
	uint64_t file, qualname, lines; /* addresses, to tell it from its successor */
	int32_t first_line;
	char *function, *base; /* "collate", "data.py" */
	bool is_library;       /* the standard one */
	uint8_t *table;
	size_t table_bytes;
};

struct python_stack {
	struct python_layout layout;
	struct python_places places;
	struct python_memory memory;
	struct map known; /* address -> index into codes */
	VEC(struct code) codes;
	size_t kept_bytes; /* of the codes' tables */
};

struct python_stack *python_stack_new(const struct python_layout *layout,
				      const struct python_places *places,
				      const struct python_memory *memory)
{
	struct python_stack *stack = mem_zero(sizeof(*stack));

	stack->layout = *layout;
	stack->places = *places;
	stack->memory = *memory;
	return stack;
}

static void code_done(struct code *code)
{
	free(code->function);
	free(code->base);
	free(code->table);
}

static void forget(struct python_stack *stack)
{
	for (size_t i = 0; i < stack->codes.count; i++)
		code_done(&stack->codes.at[i]);
	VEC_DONE(&stack->codes);
	map_done(&stack->known);
	stack->kept_bytes = 0;
}

void python_stack_free(struct python_stack *stack)
{
	if (!stack)
		return;
	forget(stack);
	free(stack);
}

static bool get(const struct python_stack *stack, uint64_t address, void *to, size_t bytes)
{
	return address >= 4096 && address <= INT64_MAX &&
	       stack->memory.read(stack->memory.from, address, to, bytes);
}

/* 0: out of reach, or it is 0. */
static uint64_t pointer_at(const struct python_stack *stack, uint64_t address)
{
	uint64_t value;

	return get(stack, address, &value, sizeof(value)) ? value : 0;
}

static uint64_t word_in(const unsigned char *bytes, uint32_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

uint64_t python_stack_thread(struct python_stack *stack, int64_t tid)
{
	const struct python_layout *layout = &stack->layout;
	uint64_t interpreter = pointer_at(stack, stack->places.runtime + layout->interpreters);
	int threads = 0;

	for (int i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		uint64_t thread = pointer_at(stack, interpreter + layout->threads);

		for (; thread && threads < THREADS_MAX; threads++) {
			if (pointer_at(stack, thread + layout->native_id) == (uint64_t)tid)
				return thread;
			thread = pointer_at(stack, thread + layout->next_thread);
		}
		interpreter = pointer_at(stack, interpreter + layout->next_interpreter);
	}
	return 0;
}

static void put_character(struct buf *out, uint32_t c)
{
	if (c < ' ' || c == 127 || c == ';' || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
		buf_char(out, '?');
	} else if (c < 0x80) {
		buf_char(out, (char)c);
	} else if (c < 0x800) {
		buf_char(out, (char)(0xc0 | c >> 6));
		buf_char(out, (char)(0x80 | (c & 63)));
	} else if (c < 0x10000) {
		buf_char(out, (char)(0xe0 | c >> 12));
		buf_char(out, (char)(0x80 | (c >> 6 & 63)));
		buf_char(out, (char)(0x80 | (c & 63)));
	} else {
		buf_char(out, (char)(0xf0 | c >> 18));
		buf_char(out, (char)(0x80 | (c >> 12 & 63)));
		buf_char(out, (char)(0x80 | (c >> 6 & 63)));
		buf_char(out, (char)(0x80 | (c & 63)));
	}
}

/* A text object: 1, 2 or 4 bytes a character, behind its head. NULL: it is none. */
static char *text_at(const struct python_stack *stack, uint64_t address, bool is_path)
{
	const struct python_layout *layout = &stack->layout;
	unsigned char bytes[4 * TEXT_MAX];
	uint64_t length = pointer_at(stack, address + layout->text_length), skip = 0, at;
	uint32_t state, width;
	struct buf out = { 0 };

	if (pointer_at(stack, address + layout->type) != stack->places.text_type ||
	    !get(stack, address + layout->text_state, &state, sizeof(state)) || !length ||
	    length > PATH_CHARACTERS_MAX || !(state >> 5 & 1))
		return NULL;
	width = state >> 2 & 7;
	if (width != 1 && width != 2 && width != 4)
		return NULL;
	if (length > TEXT_MAX) {
		skip = is_path ? length - TEXT_MAX : 0;
		length = TEXT_MAX;
	}
	at = address + (state >> 6 & 1 ? layout->text_ascii : layout->text_compact);
	if (!get(stack, at + skip * width, bytes, length * width))
		return NULL;
	for (uint64_t i = 0; i < length; i++) {
		uint32_t c = 0;

		memcpy(&c, bytes + i * width, width);
		put_character(&out, c);
	}
	return out.at;
}

/* ".../lib/python3.11/queue.py", but not what is installed below it; and modules that
 * are part of the interpreter. */
static bool is_library(const char *path)
{
	return path[0] == '<' ? !strncmp(path, "<frozen ", 8)
			      : strstr(path, "/lib/python3.") && !strstr(path, "-packages/");
}

static bool code_names(const struct python_stack *stack, struct code *code)
{
	char *qualname = text_at(stack, code->qualname, false);
	char *file = text_at(stack, code->file, true);

	if (qualname && file) {
		/* Both end where their text does. */
		code->function = mem_text(python_name_function(str_of(qualname)).at);
		code->base = mem_text(python_name_file(str_of(file)).at);
		code->is_library = is_library(file);
	}
	free(qualname);
	free(file);
	return code->function != NULL;
}

static void code_table(const struct python_stack *stack, struct code *code)
{
	const struct python_layout *layout = &stack->layout;
	uint64_t bytes = pointer_at(stack, code->lines + layout->bytes_length);

	if (pointer_at(stack, code->lines + layout->type) != stack->places.bytes_type || !bytes ||
	    bytes > LINES_MAX)
		return;
	code->table = mem_alloc(bytes);
	code->table_bytes = bytes;
	if (get(stack, code->lines + layout->bytes_at, code->table, bytes))
		return;
	free(code->table);
	code->table = NULL;
	code->table_bytes = 0;
}

/* What was read of the object at `address`, in place of what was known of it. */
static const struct code *keep(struct python_stack *stack, uint64_t address,
			       const struct code *fresh)
{
	uint64_t *known;
	struct code *code;

	if (stack->codes.count >= CODES_MAX ||
	    stack->kept_bytes + fresh->table_bytes > KEPT_BYTES_MAX)
		forget(stack);
	known = map_find(&stack->known, address);
	if (known) {
		code = &stack->codes.at[*known];
		stack->kept_bytes -= code->table_bytes;
		code_done(code);
	} else {
		map_put(&stack->known, address, stack->codes.count);
		code = VEC_ADD(&stack->codes);
	}
	*code = *fresh;
	stack->kept_bytes += fresh->table_bytes;
	return code;
}

size_t python_stack_kept(const struct python_stack *stack)
{
	return stack->kept_bytes;
}

/* NULL: there is no code object. Valid until the next call. */
static const struct code *code_at(struct python_stack *stack, uint64_t address)
{
	const struct python_layout *layout = &stack->layout;
	unsigned char bytes[PYTHON_CODE_BYTES];
	uint64_t *known = map_find(&stack->known, address);
	struct code fresh = { 0 };
	const struct code *code;
	size_t want = layout->bytecode < sizeof(bytes) ? layout->bytecode : sizeof(bytes);

	memset(bytes, 0, sizeof(bytes));
	if (!get(stack, address, bytes, want) ||
	    word_in(bytes, layout->type) != stack->places.code_type)
		return NULL;
	fresh.file = word_in(bytes, layout->file);
	fresh.qualname = word_in(bytes, layout->qualname);
	fresh.lines = word_in(bytes, layout->lines);
	memcpy(&fresh.first_line, bytes + layout->first_line, sizeof(fresh.first_line));
	code = known ? &stack->codes.at[*known] : NULL;
	if (code && code->file == fresh.file && code->qualname == fresh.qualname &&
	    code->lines == fresh.lines && code->first_line == fresh.first_line)
		return code;
	if (!code_names(stack, &fresh))
		return NULL;
	code_table(stack, &fresh);
	return keep(stack, address, &fresh);
}

/* Six bits a byte, the seventh: more follow. */
static int64_t number_in(const struct code *code, size_t *at)
{
	int64_t number = 0;

	for (int shift = 0; *at < code->table_bytes && shift < 36; shift += 6) {
		uint8_t byte = code->table[(*at)++];

		number |= (int64_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return number;
}

/*
 * The line of the instruction at `offset` bytes; 0: none. The table has an entry for each run
 * of instructions: a byte 1kkkklll with the kind of entry and the length in
 * instructions - 1, then by kind how far the line moves and columns, all of
 * which have the highest bit clear.
 */
static int64_t line_at(const struct code *code, int64_t offset)
{
	enum { KIND_NONE = 15, KIND_LONG = 14, KIND_NO_COLUMNS = 13, KIND_ONE_LINE = 10 };
	int64_t line = code->first_line, end = 0;

	for (size_t at = 0; at < code->table_bytes;) {
		uint8_t head = code->table[at++];
		int kind = head >> 3 & 15;
		int64_t told = line, moved;

		if (kind == KIND_LONG || kind == KIND_NO_COLUMNS) {
			moved = number_in(code, &at);
			line += moved & 1 ? -(moved >> 1) : moved >> 1;
			told = line;
		} else if (kind >= KIND_ONE_LINE && kind < KIND_NO_COLUMNS) {
			line += kind - KIND_ONE_LINE;
			told = line;
		} else if (kind == KIND_NONE) {
			told = 0;
		}
		end += 2 * ((head & 7) + 1);
		if (offset < end)
			return told;
		while (at < code->table_bytes && !(code->table[at] & 128))
			at++;
	}
	return 0;
}

static void tell(const struct code *code, int64_t offset, struct buf *out)
{
	int64_t line = line_at(code, offset);

	buf_printf(out, "%s %s", code->function, code->base);
	if (line > 0 && line < INT32_MAX)
		buf_printf(out, ":%d", (int)line);
}

bool python_stack_look(struct python_stack *stack, uint64_t thread, int64_t tid, struct buf *leaf,
		       struct buf *chain)
{
	const struct python_layout *layout = &stack->layout;
	struct buf innermost = { 0 };
	size_t leaf_before = leaf->len;
	uint64_t frame;
	int told = 0;

	if (pointer_at(stack, thread + layout->native_id) != (uint64_t)tid)
		return false;
	frame = pointer_at(stack, thread + layout->frame);
	if (layout->cframe && frame)
		frame = pointer_at(stack, frame + layout->frame_in_cframe);
	for (int i = 0; frame && i < FRAMES_WALKED && told < FRAMES_TOLD; i++) {
		unsigned char bytes[PYTHON_FRAME_BYTES] = { 0 };
		uint64_t address;
		const struct code *code;
		int64_t offset;

		if (!get(stack, frame, bytes, layout->owner + 1))
			break;
		address = word_in(bytes, layout->code);
		frame = word_in(bytes, layout->previous);
		if (bytes[layout->owner] == PYTHON_OWNER_C)
			continue;
		code = code_at(stack, address);
		if (!code)
			break;
		offset =
			(int64_t)(word_in(bytes, layout->instruction) - address - layout->bytecode);
		if (!told)
			tell(code, offset, &innermost);
		if (leaf->len == leaf_before && !code->is_library)
			tell(code, offset, leaf);
		buf_text(chain, told++ ? " < " : "");
		tell(code, offset, chain);
	}
	if (leaf->len == leaf_before && innermost.len)
		buf_text(leaf, innermost.at);
	buf_done(&innermost);
	return true;
}
