/*
 * python_layout.h - where CPython keeps what a look at its stacks needs.
 *
 * Bytes from the start of each structure. CPython promises none of them; they stay
 * within a minor version. For 3.11 and 3.12 they are written here; 3.13 says
 * them itself, in a table at the start of _PyRuntime that is meant for this. Other
 * versions are not known: python_layout says so, and nobody guesses.
 *
 * test_python_layout holds them against the real headers where these are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct python_layout {
	uint32_t interpreters; /* _PyRuntimeState: first interpreter */
	uint32_t next_interpreter, threads;
	uint32_t next_thread, native_id;
	uint32_t frame; /* of the thread: its innermost frame; or, with `cframe`, */
	bool cframe;    /* a structure that has it */
	uint32_t frame_in_cframe;
	uint32_t code, previous, instruction, owner;          /* of the frame */
	uint32_t file, qualname, lines, first_line, bytecode; /* of the code object */
	uint32_t type;                                        /* of any object */
	uint32_t text_length, text_state, text_ascii, text_compact;
	uint32_t bytes_length, bytes_at;
};

enum {
	/* How much of _PyRuntime python_layout is shown. */
	PYTHON_RUNTIME_BYTES = 640,
	/* A frame that belongs to C code and has no code object. */
	PYTHON_OWNER_C = 3,
	PYTHON_FRAME_BYTES = 96,
	PYTHON_CODE_BYTES = 256,
};

/* `version`: 0x030b07f0 is 3.11.7. `runtime`: the start of _PyRuntime. False: not known,
 * or the table there is not what it should be. */
bool python_layout(uint32_t version, const void *runtime, struct python_layout *ret_layout);

/* A 3.13 that was built without the global interpreter lock, which is not known. */
bool python_layout_lacks_gil(uint32_t version, const void *runtime);
