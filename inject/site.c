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
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES_MAX = 48, FRAMES_TOLD = 8 };
/* What stacks may cost a process, each kind of them: at first, and of its whole time.
 * On an H200's host one takes 10 to 50 us, so a program that makes events all the time
 * goes without most of the time (doc/inject.md). */
static const uint64_t FIRST_NS = 50000000, SHARE = 400;
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
	inject->sites_begun_ns = inject_now();
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

/* The text of a stack that has not been seen. */
static uint32_t text_of(struct segment *segment, const struct walk *walk)
{
	char text[2048];
	size_t len = 0;
	int told = 0;

	for (int i = 0; i < walk->count && told < FRAMES_TOLD; i++) {
		Dl_info info;
		int added;

		/* The return address lies behind the call. */
		if (!dladdr((void *)(walk->pcs[i] - 1), &info) || !info.dli_fname ||
		    is_ours(info.dli_fname))
			continue;
		added = snprintf(text + len, sizeof(text) - len, "%s\t%lx\t%s\n", info.dli_fname,
				 (unsigned long)(walk->pcs[i] - 1 - (uintptr_t)info.dli_fbase),
				 info.dli_sname ? info.dli_sname : "");
		if (added < 0 || (size_t)added >= sizeof(text) - len)
			break;
		len += (size_t)added;
		told++;
	}
	return len ? text_intern(segment, text, len) : 0;
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *user)
{
	(void)size;
	*(uint64_t *)user = (uint64_t)info->dlpi_adds << 32 ^ (uint64_t)info->dlpi_subs;
	return 1;
}

/* Of the addresses, and of how often objects came and went: what lies there may be
 * another since. Never 0. */
static uint64_t hash_of(const struct walk *walk)
{
	uint64_t hash = 0;

	(void)dl_iterate_phdr(count_loads, &hash);
	for (int i = 0; i < walk->count; i++) {
		hash = (hash ^ walk->pcs[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash | 1;
}

/* Not inlined: its frame is not for threads without room. */
static __attribute__((noinline)) uint32_t take_stack(struct inject *inject, struct segment *segment)
{
	struct walk walk = { .count = 0 };
	struct site_known *known;
	uint64_t hash;
	uint32_t text;

	(void)inject->unwind(step, &walk);
	hash = hash_of(&walk);
	known = &inject->sites[hash >> 32 & (SITES_KNOWN - 1)];
	/* Both halves agree, or another thread is about to write. */
	text = atomic_load(&known->text);
	if (text && atomic_load(&known->hash) == (hash ^ text))
		return text;
	text = text_of(segment, &walk);
	atomic_store(&known->hash, hash ^ text);
	atomic_store(&known->text, text);
	return text;
}

uint32_t site_here(struct inject *inject, struct segment *segment, enum site_of of)
{
	uint64_t begun = inject_now();
	uint32_t text;

	if (!inject->unwind || !inject->unwind_ip || !has_room() ||
	    atomic_load(&inject->sites_ns[of]) >
		    FIRST_NS + (begun - inject->sites_begun_ns) / SHARE)
		return 0;
	text = take_stack(inject, segment);
	atomic_fetch_add(&inject->sites_ns[of], inject_now() - begun);
	return text;
}
