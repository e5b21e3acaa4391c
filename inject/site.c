/*
 * site.c - where in the host's code memory, streams, events and graphs are asked for: the call
 * stack as text, "path TAB offset LF" a frame, innermost first, the offset from the
 * object's first page. What lies in no object has no path and its address for an offset; 0: there
 * callers are left out. Functions are named by sonde: dladdr goes through all that an
 * object exports for each address, 0.5 ms for 45,000 symbols, while it holds the
 * loader's lock, and a library of PyTorch has several times as many.
 *
 * The unwinder is libgcc's, of the process if it has one. It and dl_iterate_phdr take
 * the loader's lock, so this runs only in callbacks of CUDA calls, which come on the
 * host's own threads outside of signal handlers, and only for calls that are
 * rare and slow by themselves. Nothing here is [hot].
 */
#include "inject/inject.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { FRAMES_MAX = 48, FRAMES_TOLD = 8, TEXT_BYTES = 2048 };
/* What stacks may cost a process, each kind of them: at first, and of its whole time.
 * On an H200's host one takes 10 to 50 us, so a program that makes events all the time
 * goes without most of the time (doc/inject.md). */
static const uint64_t FIRST_NS = 50000000, SHARE = 400;
/* What unwinding, the walk over objects and snprintf can need: a thread with less goes untold. */
enum { STACK_LEAST = 64 << 10 };
/* Nearer to the main stack's top than this the kernel maps nothing else, whatever its limit. */
static const uintptr_t MAIN_STACK_MOST = 128 << 20;

struct walk {
	uintptr_t pcs[FRAMES_MAX];
	int count;
};

/* The objects that a stack's addresses lie in. Their paths are copied, as an object may
 * go once the walk over all is done. */
struct located {
	const struct walk *walk;
	uint16_t path[FRAMES_MAX]; /* offset in paths + 1; 0: in no object, or one of ours */
	bool found[FRAMES_MAX];    /* in an object */
	uintptr_t offset[FRAMES_MAX];
	char paths[8192];
	size_t used;
	int left; /* addresses not found yet */
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

/* What a coroutine runs on is neither the thread's stack nor known to us. */
static bool has_room(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	pthread_attr_t attr;
	void *lowest = NULL;
	size_t bytes = 0;
	bool room;

	/* The main thread's grows, below what the kernel put at its top. */
	if (inject_thread() == (uint32_t)getpid())
		return getauxval(AT_RANDOM) - here < MAIN_STACK_MOST;
	if (pthread_getattr_np(pthread_self(), &attr))
		return false;
	room = !pthread_attr_getstack(&attr, &lowest, &bytes) &&
	       here - (uintptr_t)lowest > STACK_LEAST && here - (uintptr_t)lowest < bytes;
	pthread_attr_destroy(&attr);
	return room;
}

void site_extent(const struct dl_phdr_info *object, uintptr_t *ret_start, uintptr_t *ret_end)
{
	uintptr_t low = UINTPTR_MAX, high = 0;

	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type != PT_LOAD)
			continue;
		if (part->p_vaddr < low)
			low = part->p_vaddr;
		if (part->p_vaddr + part->p_memsz > high)
			high = part->p_vaddr + part->p_memsz;
	}
	*ret_start = object->dlpi_addr + (low & ~(uintptr_t)(SEGMENT_PAGE - 1));
	*ret_end = high ? object->dlpi_addr + high : *ret_start;
}

static bool add_text(struct located *located, const char *text)
{
	size_t len = strlen(text);

	if (len > sizeof(located->paths) - located->used)
		return false;
	memcpy(located->paths + located->used, text, len);
	located->used += len;
	return true;
}

static bool add_link(struct located *located, const char *link)
{
	size_t room = sizeof(located->paths) - located->used;
	ssize_t len = room ? readlink(link, located->paths + located->used, room) : -1;

	if (len <= 0 || (size_t)len >= room)
		return false;
	located->used += (size_t)len;
	return true;
}

/* The program itself, which the loader has no name for: NULL, it was added, or its name.
 * One that the loader was told to run, as `ld.so PROGRAM`, is not what the kernel
 * started; what the loader puts in its place may be the loader still. */
static const char *add_program(struct located *located)
{
	const char *name = (const char *)getauxval(AT_EXECFN), *slash;

	if (getauxval(AT_BASE)) /* without /proc, as after chroot(2), nobody can tell */
		return add_link(located, "/proc/self/exe") ? NULL : "[program]";
	slash = name ? strrchr(name, '/') : NULL;
	return slash && strncmp(slash, "/ld", 3) != 0 ? name : "[program]";
}

/* Offset + 1; 0: there is no room, or it says nothing. */
static uint16_t path_add(struct located *located, const char *name)
{
	size_t at = located->used;
	bool fits = true;

	if (is_ours(name))
		return 0;
	if (!*name)
		name = add_program(located);
	/* By a relative path the program may have loaded it from where it is. */
	if (name && *name != '/' && strchr(name, '/'))
		fits = fits && add_link(located, "/proc/self/cwd") && add_text(located, "/");
	if (!fits || (name && !add_text(located, name)) ||
	    located->used >= sizeof(located->paths)) {
		located->used = at;
		return 0;
	}
	located->paths[located->used++] = 0;
	return (uint16_t)(at + 1);
}

static int locate(struct dl_phdr_info *info, size_t size, void *user)
{
	struct located *located = user;
	uintptr_t start, end;
	uint16_t path = 0;
	bool known = false;

	(void)size;
	site_extent(info, &start, &end);
	for (int i = 0; i < located->walk->count; i++) {
		/* The return address lies behind the call. */
		uintptr_t pc = located->walk->pcs[i] - 1;

		if (pc < start || pc >= end)
			continue;
		if (!known)
			path = path_add(located, info->dlpi_name ? info->dlpi_name : "");
		known = true;
		located->path[i] = path;
		located->found[i] = true;
		located->offset[i] = pc - start;
		located->left--;
	}
	return located->left <= 0;
}

/* A frame at the end of the text; false: there is no room. */
static bool add_frame(char text[TEXT_BYTES], size_t *len, const char *path, uintptr_t offset)
{
	int added =
		snprintf(text + *len, TEXT_BYTES - *len, "%s\t%lx\n", path, (unsigned long)offset);

	if (added < 0 || (size_t)added >= TEXT_BYTES - *len)
		return false;
	*len += (size_t)added;
	return true;
}

/* The text of a stack that has not been seen. The first function that the program made is told
 * beyond the others, as unwinding mostly ends there: what an interpreter runs is
 * far below what called us. */
static uint32_t text_of(struct segment *segment, const struct walk *walk)
{
	struct located located = { .walk = walk, .left = walk->count };
	char text[TEXT_BYTES];
	size_t len = 0;
	int told = 0;
	bool left_out = false, made = false;

	(void)dl_iterate_phdr(locate, &located);
	for (int i = 0; i < walk->count && (told < FRAMES_TOLD || !made); i++) {
		bool is_made = !located.found[i];

		if (!is_made && (!located.path[i] || told >= FRAMES_TOLD)) {
			left_out |= located.path[i] != 0;
			continue;
		}
		if (left_out && !add_frame(text, &len, "", 0))
			break;
		if (!add_frame(text, &len, is_made ? "" : located.paths + located.path[i] - 1,
			       is_made ? walk->pcs[i] - 1 : located.offset[i]))
			break;
		made |= is_made;
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
