/*
 * Where we believe that CPython keeps things, against its real headers where those
 * are, of whichever version.
 */
#include <criterion/criterion.h>

#include "collect/python_layout.h"

#if __has_include(<internal/pycore_runtime.h>)
#define Py_BUILD_CORE
#include <Python.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030e0000
#define HAVE_HEADERS
#endif
#endif

#ifdef HAVE_HEADERS

#define SAME(ours, theirs, field) cr_expect_eq((ours), offsetof(theirs, field), #theirs "." #field)

#if PY_VERSION_HEX >= 0x030d0000
/* As the interpreter fills its table; what we read of it lies where it says. */
static void fill(unsigned char runtime[PYTHON_RUNTIME_BYTES])
{
	struct _Py_DebugOffsets table = { .cookie = "xdebugpy", .version = PY_VERSION_HEX };

	table.runtime_state.interpreters_head = offsetof(_PyRuntimeState, interpreters.head);
	table.interpreter_state.next = offsetof(PyInterpreterState, next);
	table.interpreter_state.threads_head = offsetof(PyInterpreterState, threads.head);
	table.thread_state.next = offsetof(PyThreadState, next);
	table.thread_state.current_frame = offsetof(PyThreadState, current_frame);
	table.thread_state.native_thread_id = offsetof(PyThreadState, native_thread_id);
	table.interpreter_frame.previous = offsetof(_PyInterpreterFrame, previous);
	table.interpreter_frame.executable = offsetof(_PyInterpreterFrame, f_executable);
	table.interpreter_frame.instr_ptr = offsetof(_PyInterpreterFrame, instr_ptr);
	table.interpreter_frame.owner = offsetof(_PyInterpreterFrame, owner);
	table.code_object.filename = offsetof(PyCodeObject, co_filename);
	table.code_object.qualname = offsetof(PyCodeObject, co_qualname);
	table.code_object.linetable = offsetof(PyCodeObject, co_linetable);
	table.code_object.firstlineno = offsetof(PyCodeObject, co_firstlineno);
	table.code_object.co_code_adaptive = offsetof(PyCodeObject, co_code_adaptive);
	table.pyobject.ob_type = offsetof(PyObject, ob_type);
	table.bytes_object.ob_size = offsetof(PyBytesObject, ob_base.ob_size);
	table.bytes_object.ob_sval = offsetof(PyBytesObject, ob_sval);
	table.unicode_object.state = offsetof(PyASCIIObject, state);
	table.unicode_object.length = offsetof(PyASCIIObject, length);
	table.unicode_object.asciiobject_size = sizeof(PyASCIIObject);
	memcpy(runtime, &table, sizeof(table));
}
#else
static void fill(unsigned char runtime[PYTHON_RUNTIME_BYTES])
{
	(void)runtime;
}
#endif

Test(python_layout, agrees_with_the_real_headers)
{
	unsigned char runtime[PYTHON_RUNTIME_BYTES] = { 0 };
	struct python_layout layout;

	fill(runtime);
	cr_assert(python_layout(PY_VERSION_HEX, runtime, &layout));
	SAME(layout.interpreters, _PyRuntimeState, interpreters.head);
	SAME(layout.next_interpreter, PyInterpreterState, next);
	SAME(layout.threads, PyInterpreterState, threads.head);
	SAME(layout.next_thread, PyThreadState, next);
	SAME(layout.native_id, PyThreadState, native_thread_id);
#if PY_VERSION_HEX >= 0x030d0000
	SAME(layout.frame, PyThreadState, current_frame);
	SAME(layout.code, _PyInterpreterFrame, f_executable);
	SAME(layout.instruction, _PyInterpreterFrame, instr_ptr);
	cr_expect_not(layout.cframe);
#else
	SAME(layout.frame, PyThreadState, cframe);
	SAME(layout.frame_in_cframe, _PyCFrame, current_frame);
	SAME(layout.code, _PyInterpreterFrame, f_code);
	SAME(layout.instruction, _PyInterpreterFrame, prev_instr);
	cr_expect(layout.cframe);
#endif
	SAME(layout.previous, _PyInterpreterFrame, previous);
	SAME(layout.owner, _PyInterpreterFrame, owner);
#if PY_VERSION_HEX >= 0x030c0000
	cr_expect_eq((int)PYTHON_OWNER_C, (int)FRAME_OWNED_BY_CSTACK);
#endif
	SAME(layout.file, PyCodeObject, co_filename);
	SAME(layout.qualname, PyCodeObject, co_qualname);
	SAME(layout.lines, PyCodeObject, co_linetable);
	SAME(layout.first_line, PyCodeObject, co_firstlineno);
	SAME(layout.bytecode, PyCodeObject, co_code_adaptive);
	SAME(layout.type, PyObject, ob_type);
	SAME(layout.text_length, PyASCIIObject, length);
	SAME(layout.text_state, PyASCIIObject, state);
	cr_expect_eq(layout.text_ascii, sizeof(PyASCIIObject));
	cr_expect_eq(layout.text_compact, sizeof(PyCompactUnicodeObject));
	SAME(layout.bytes_length, PyBytesObject, ob_base.ob_size);
	SAME(layout.bytes_at, PyBytesObject, ob_sval);
}

#endif

Test(python_layout, versions_that_are_not_known_are_refused)
{
	unsigned char runtime[PYTHON_RUNTIME_BYTES] = "xdebugpy";
	struct python_layout layout;
	uint32_t version = 0x030d00f0;

	cr_assert(python_layout(0x030b02f0, runtime, &layout));
	cr_assert(python_layout(0x030c01f0, runtime, &layout));
	cr_assert_not(python_layout(0x030a0df0, runtime, &layout));
	cr_assert_not(python_layout(0x030e00f0, runtime, &layout));
	cr_assert_not(python_layout(0x030c00b1, runtime, &layout), "a beta");
	cr_assert_not(python_layout(version, runtime, &layout), "the table is of another version");
	memcpy(runtime + 8, &version, sizeof(version));
	cr_assert(python_layout(version, runtime, &layout));
	cr_assert_not(python_layout_lacks_gil(version, runtime));
	runtime[16] = 1;
	cr_assert_not(python_layout(version, runtime, &layout), "free-threaded");
	cr_assert(python_layout_lacks_gil(version, runtime));
	cr_assert_not(python_layout_lacks_gil(0x030c01f0, runtime), "it has no table");
	runtime[16] = 0;
	memset(runtime + 40, 0x7f, 8);
	cr_assert_not(python_layout(version, runtime, &layout), "an offset beyond reason");
	memset(runtime + 40, 0, 8);
	runtime[0] = 'y';
	cr_assert_not(python_layout(version, runtime, &layout), "no table at all");
}
