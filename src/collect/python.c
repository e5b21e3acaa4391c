#include "collect/python.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/maps.h"
#include "collect/python_stack.h"
#include "collect/remote.h"
#include "collect/symbols.h"

/* A thread without a state is asked again after this: it may be about to get one. */
static const int64_t ASK_AGAIN_NS = 1000000000;
/* Files of a process that are searched for an interpreter. */
enum { FILES_MAX = 16 };

struct python {
	struct remote *remote;
	struct python_stack *stack;
	struct map threads; /* tid -> address of its state */
	struct map due;     /* tid -> when to ask again */
};

static bool read_memory(void *from, uint64_t address, void *to, size_t bytes)
{
	const struct python *python = from;

	return remote_read(python->remote, address, to, bytes);
}

static int refused(int code, struct err *err)
{
	int file = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope = 0;

	if (file >= 0) {
		if (read(file, &scope, 1) != 1)
			scope = 0;
		(void)close(file);
	}
	/* With 0 something else forbids it: another user, a seccomp profile. */
	if (code == EPERM && scope >= '1' && scope <= '9')
		return err_set(err, ERR_UNSUPPORTED,
			       "process_vm_readv: %s (kernel.yama.ptrace_scope is %c)",
			       strerror(code), scope);
	return err_set(err, ERR_UNSUPPORTED, "process_vm_readv: %s", strerror(code));
}

enum { WANT_RUNTIME, WANT_VERSION, WANT_CODE, WANT_TEXT, WANT_BYTES, WANT_COUNT };

/* The interpreter is in a library of its own or in the program, whatever that is
 * called. Extension modules have "cpython" in their names, are many, and lie before the
 * library, as they were mapped after it. */
static bool is_candidate(const struct maps *maps, size_t i)
{
	static const char library[] = "/libpython";
	const char *slash = strrchr(maps->at[i].path, '/');

	return slash && (!i || !strncmp(slash, library, sizeof(library) - 1));
}

static bool find_places(const struct maps *maps, struct maps_files *seen,
			uint64_t ret_address[WANT_COUNT])
{
	static const char *const names[WANT_COUNT] = {
		[WANT_RUNTIME] = "_PyRuntime", [WANT_VERSION] = "Py_Version",
		[WANT_CODE] = "PyCode_Type",   [WANT_TEXT] = "PyUnicode_Type",
		[WANT_BYTES] = "PyBytes_Type",
	};
	int files = 0;

	for (size_t i = 0; i < maps->count && files < FILES_MAX; i++) {
		bool again = i && !strcmp(maps->at[i].path, maps->at[i - 1].path);
		const char *file = maps_file(seen, str_of(maps->at[i].path));

		if (again || !file || !is_candidate(maps, i))
			continue;
		files++;
		if (!symbols_objects(file, names, WANT_COUNT, ret_address) ||
		    !ret_address[WANT_RUNTIME])
			continue;
		for (int k = 0; k < WANT_COUNT; k++)
			ret_address[k] += ret_address[k] ? maps->at[i].base : 0;
		return true;
	}
	return false;
}

static int attach(struct python *python, const uint64_t address[WANT_COUNT], uint32_t *ret_version,
		  struct err *err)
{
	struct python_places places = { .runtime = address[WANT_RUNTIME],
					.code_type = address[WANT_CODE],
					.text_type = address[WANT_TEXT],
					.bytes_type = address[WANT_BYTES] };
	struct python_memory memory = { .read = read_memory, .from = python };
	unsigned char runtime[PYTHON_RUNTIME_BYTES];
	struct python_layout layout;
	uint64_t version = 0;

	if (!read_memory(python, places.runtime, runtime, sizeof(runtime)))
		return errno == ESRCH || errno == EFAULT
			       ? err_set(err, ERR_MISSING, "its memory is not there")
			       : refused(errno, err);
	*ret_version = address[WANT_VERSION] ? 0 : PYTHON_OLD;
	/* A constant: nobody may have needed it so far. */
	if (!address[WANT_VERSION] ||
	    !remote_fetch(python->remote, address[WANT_VERSION], &version, sizeof(version)))
		return err_set(err, ERR_UNSUPPORTED, "Python before 3.11");
	*ret_version = (uint32_t)version;
	if (python_layout_lacks_gil((uint32_t)version, runtime))
		return err_set(err, ERR_UNSUPPORTED, "Python %u.%u without the GIL is not known",
			       (unsigned int)version >> 24 & 255,
			       (unsigned int)version >> 16 & 255);
	if (!python_layout((uint32_t)version, runtime, &layout))
		return err_set(err, ERR_UNSUPPORTED, "Python %u.%u.%u is not known",
			       (unsigned int)version >> 24 & 255, (unsigned int)version >> 16 & 255,
			       (unsigned int)version >> 8 & 255);
	python->stack = python_stack_new(&layout, &places, &memory);
	return 0;
}

int python_open(const char *root, int64_t pid, struct python **ret_python, uint32_t *ret_version,
		struct err *err)
{
	OWN(python_closep) struct python *python = mem_zero(sizeof(*python));
	uint64_t address[WANT_COUNT] = { 0 };
	struct maps_files files = { 0 };
	struct maps maps = { 0 };
	bool found;

	*ret_version = 0;
	maps_load(&maps, root, pid);
	maps_files_load(&files, root, pid);
	found = find_places(&maps, &files, address);
	maps_files_done(&files);
	maps_done(&maps);
	if (!found)
		return err_set(err, ERR_MISSING, "no Python in process %lld", (long long)pid);
	if (remote_open(root, pid, &python->remote, err) < 0 ||
	    attach(python, address, ret_version, err) < 0)
		return err->code;
	*ret_python = STEAL(python);
	return 0;
}

void python_close(struct python *python)
{
	if (!python)
		return;
	python_stack_free(python->stack);
	remote_close(python->remote);
	map_done(&python->threads);
	map_done(&python->due);
	free(python);
}

void python_look(struct python *python, int64_t tid, int64_t now_ns, struct buf *leaf,
		 struct buf *chain)
{
	uint64_t *known = map_find(&python->threads, (uint64_t)tid);
	uint64_t *due = map_find(&python->due, (uint64_t)tid), thread;

	if (known && *known && python_stack_look(python->stack, *known, tid, leaf, chain))
		return;
	if (due && now_ns < (int64_t)*due)
		return;
	map_put(&python->due, (uint64_t)tid, (uint64_t)(now_ns + ASK_AGAIN_NS));
	thread = python_stack_thread(python->stack, tid);
	map_put(&python->threads, (uint64_t)tid, thread);
	if (thread)
		(void)python_stack_look(python->stack, thread, tid, leaf, chain);
}
