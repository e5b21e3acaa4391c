/*
 * site.c - where in the host's code memory, streams, events and graphs are asked for: the call
 * stack as text, "path TAB offset TAB symbol LF" a frame, innermost first.
 * Names that only the file's symbol table knows are found by sonde.
 *
 * The unwinder is libgcc's, of the process if it has one. It and dladdr take the
 * loader's lock, so this runs only in callbacks of CUDA calls, which come on the
 * host's own threads outside of signal handlers, and only for calls that are
 * rare and slow by themselves. Nothing here is [hot].
 */
#include "inject/inject.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES_MAX = 48, FRAMES_TOLD = 8 };
/* Of a process; what they cost: doc/inject.md. */
static const uint32_t STACKS_MAX[SITE_COUNT] = { [SITE_MEMORY] = 50000, [SITE_OBJECT] = 25000 };
/* What unwinding, dladdr and snprintf can need: a thread with less goes untold. */
enum { STACK_LEAST = 64 << 10 };

struct walk {
	uintptr_t pcs[FRAMES_MAX];
	int count;
};

/* [setup] */
void site_prepare(struct inject *inject)
{
	void *handle = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return;
	*(void **)(void *)&inject->unwind = dlsym(handle, "_Unwind_Backtrace");
	*(void **)(void *)&inject->unwind_ip = dlsym(handle, "_Unwind_GetIP");
}

static int step(void *context, void *user)
{
	struct walk *walk = user;

	if (walk->count >= FRAMES_MAX)
		return 5; /* _URC_END_OF_STACK */
	walk->pcs[walk->count++] = inject_state->unwind_ip(context);
	return 0;
}

/* CUDA's own frames and ours say nothing of the host. */
static bool is_ours(const char *path)
{
	static const char *const names[] = { "libsonde-", "libcupti", "libcuda.so", "libcudart" };
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strncmp(base, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

static bool has_room(void)
{
	pthread_attr_t attr;
	void *lowest = NULL;
	size_t bytes;
	bool room;

	if (inject_thread() == (uint32_t)getpid())
		return true; /* the main thread: its stack grows */
	if (pthread_getattr_np(pthread_self(), &attr))
		return false;
	room = !pthread_attr_getstack(&attr, &lowest, &bytes) &&
	       (char *)__builtin_frame_address(0) - (char *)lowest > STACK_LEAST;
	pthread_attr_destroy(&attr);
	return room;
}

/* Not inlined: its frame is not for threads without room. */
static __attribute__((noinline)) uint32_t take_stack(struct inject *inject, struct segment *segment)
{
	struct walk walk = { .count = 0 };
	char text[2048];
	size_t len = 0;
	int told = 0;

	(void)inject->unwind(step, &walk);
	for (int i = 0; i < walk.count && told < FRAMES_TOLD; i++) {
		Dl_info info;
		int added;

		/* The return address lies behind the call. */
		if (!dladdr((void *)(walk.pcs[i] - 1), &info) || !info.dli_fname ||
		    is_ours(info.dli_fname))
			continue;
		added = snprintf(text + len, sizeof(text) - len, "%s\t%lx\t%s\n", info.dli_fname,
				 (unsigned long)(walk.pcs[i] - 1 - (uintptr_t)info.dli_fbase),
				 info.dli_sname ? info.dli_sname : "");
		if (added < 0 || (size_t)added >= sizeof(text) - len)
			break;
		len += (size_t)added;
		told++;
	}
	return len ? text_intern(segment, text, len) : 0;
}

uint32_t site_here(struct inject *inject, struct segment *segment, enum site_of of)
{
	if (!inject->unwind || !inject->unwind_ip || !has_room() ||
	    atomic_fetch_add(&inject->stacks[of], 1) >= STACKS_MAX[of])
		return 0;
	return take_stack(inject, segment);
}
