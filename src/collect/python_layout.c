#include "collect/python_layout.h"

#include <string.h>

/* No structure is larger: PyInterpreterState has some 300 KiB. */
static const uint64_t OFFSET_MAX = 1 << 20;

static const struct python_layout PYTHON_3_11 = {
	.interpreters = 40,
	.next_interpreter = 0,
	.threads = 16,
	.next_thread = 8,
	.native_id = 160,
	.frame = 56,
	.cframe = true,
	.frame_in_cframe = 8,
	.code = 32,
	.previous = 48,
	.instruction = 56,
	.owner = 69,
	.file = 112,
	.qualname = 128,
	.lines = 136,
	.first_line = 72,
	.bytecode = 184,
	.type = 8,
	.text_length = 16,
	.text_state = 32,
	.text_ascii = 48,
	.text_compact = 72,
	.bytes_length = 16,
	.bytes_at = 32,
};

static const struct python_layout PYTHON_3_12 = {
	.interpreters = 40,
	.next_interpreter = 0,
	.threads = 72,
	.next_thread = 8,
	.native_id = 144,
	.frame = 56,
	.cframe = true,
	.frame_in_cframe = 0,
	.code = 0,
	.previous = 8,
	.instruction = 56,
	.owner = 70,
	.file = 112,
	.qualname = 128,
	.lines = 136,
	.first_line = 68,
	.bytecode = 192,
	.type = 8,
	.text_length = 16,
	.text_state = 32,
	.text_ascii = 40,
	.text_compact = 56,
	.bytes_length = 16,
	.bytes_at = 32,
};

/* The table of 3.13, in words of 8 bytes: the fields that we use. */
enum {
	WORD_COOKIE = 0,
	WORD_VERSION = 1,
	WORD_NO_GIL = 2,
	WORD_INTERPRETERS = 5,
	WORD_INTERPRETER_NEXT = 8,
	WORD_THREADS = 9,
	WORD_THREAD_NEXT = 21,
	WORD_FRAME = 23,
	WORD_NATIVE_ID = 25,
	WORD_PREVIOUS = 29,
	WORD_CODE = 30,
	WORD_INSTRUCTION = 31,
	WORD_OWNER = 33,
	WORD_FILE = 35,
	WORD_QUALNAME = 37,
	WORD_LINES = 38,
	WORD_FIRST_LINE = 39,
	WORD_BYTECODE = 43,
	WORD_TYPE = 45,
	WORD_BYTES_LENGTH = 65,
	WORD_BYTES_AT = 66,
	WORD_TEXT_STATE = 68,
	WORD_TEXT_LENGTH = 69,
	WORD_TEXT_ASCII = 70,
	WORD_COUNT = 73,
};
_Static_assert(WORD_COUNT * 8 <= PYTHON_RUNTIME_BYTES, "the table lies within what is read");

/* What is read of a frame and of a code object has a fixed size. */
static bool fits(const struct python_layout *layout)
{
	return layout->code + 8 <= PYTHON_FRAME_BYTES &&
	       layout->previous + 8 <= PYTHON_FRAME_BYTES &&
	       layout->instruction + 8 <= PYTHON_FRAME_BYTES &&
	       layout->owner < PYTHON_FRAME_BYTES && layout->file + 8 <= PYTHON_CODE_BYTES &&
	       layout->qualname + 8 <= PYTHON_CODE_BYTES &&
	       layout->lines + 8 <= PYTHON_CODE_BYTES &&
	       layout->first_line + 4 <= PYTHON_CODE_BYTES && layout->type + 8 <= PYTHON_CODE_BYTES;
}

/* False: there is no table of this version. */
static bool read_table(uint32_t version, const void *runtime, uint64_t word[WORD_COUNT])
{
	memcpy(word, runtime, WORD_COUNT * sizeof(*word));
	return version >> 16 == 0x030d && !memcmp(&word[WORD_COOKIE], "xdebugpy", 8) &&
	       word[WORD_VERSION] == version;
}

/* The heads of its objects are others, and the state of a text has its bits elsewhere. */
bool python_layout_lacks_gil(uint32_t version, const void *runtime)
{
	uint64_t word[WORD_COUNT];

	return read_table(version, runtime, word) && word[WORD_NO_GIL];
}

static bool own_table(uint32_t version, const void *runtime, struct python_layout *ret_layout)
{
	uint64_t word[WORD_COUNT];

	if (!read_table(version, runtime, word) || word[WORD_NO_GIL])
		return false;
	for (int i = WORD_VERSION + 1; i < WORD_COUNT; i++) {
		if (word[i] > OFFSET_MAX)
			return false;
	}
#define TAKE(field, index) .field = (uint32_t)word[WORD_##index]
	*ret_layout = (struct python_layout){
		TAKE(interpreters, INTERPRETERS),
		TAKE(next_interpreter, INTERPRETER_NEXT),
		TAKE(threads, THREADS),
		TAKE(next_thread, THREAD_NEXT),
		TAKE(native_id, NATIVE_ID),
		TAKE(frame, FRAME),
		TAKE(code, CODE),
		TAKE(previous, PREVIOUS),
		TAKE(instruction, INSTRUCTION),
		TAKE(owner, OWNER),
		TAKE(file, FILE),
		TAKE(qualname, QUALNAME),
		TAKE(lines, LINES),
		TAKE(first_line, FIRST_LINE),
		TAKE(bytecode, BYTECODE),
		TAKE(type, TYPE),
		TAKE(text_length, TEXT_LENGTH),
		TAKE(text_state, TEXT_STATE),
		TAKE(text_ascii, TEXT_ASCII),
		TAKE(bytes_length, BYTES_LENGTH),
		TAKE(bytes_at, BYTES_AT),
	};
#undef TAKE
	/* Behind the fields of an ASCII text two more, for its UTF-8. */
	ret_layout->text_compact = ret_layout->text_ascii + 16;
	return fits(ret_layout);
}

bool python_layout(uint32_t version, const void *runtime, struct python_layout *ret_layout)
{
	/* Release candidates have the layout of the release; before them it changed. */
	bool settled = (version >> 4 & 15) >= 12;

	switch (version >> 16) {
	case 0x030b:
		*ret_layout = PYTHON_3_11;
		return settled;
	case 0x030c:
		*ret_layout = PYTHON_3_12;
		return settled;
	case 0x030d:
		return settled && own_table(version, runtime, ret_layout);
	default:
		return false;
	}
}
