/* host_where.c - who asks for memory, from where call stacks are hard to take or to name. */
#include "inject/host.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <ucontext.h>
#include <unistd.h>

#include "fake/puppet_cuda.h"

static __attribute__((noinline)) int obtain_block(uint64_t *ret_address)
{
	int result = cudaMalloc(ret_address, 4096);

	__asm__ volatile("" ::: "memory"); /* not by a jump */
	return result;
}

/* The file's content without a name of its own. */
static void copy_to_memory(const char *file, char *ret_path, size_t size)
{
	int from = open(file, O_RDONLY | O_CLOEXEC), to = memfd_create("library", MFD_CLOEXEC);

	if (from < 0 || to < 0 || sendfile(to, from, NULL, 64 << 20) <= 0)
		_exit(9);
	close(from);
	(void)snprintf(ret_path, size, "/proc/self/fd/%d", to);
}

/* HOST_LIBRARY: its path; HOST_LIBRARY_HOW: "memory", "gone" once it is loaded, or "stay": to
 * be looked at for a while. */
int host_where(void)
{
	const char *path = getenv("HOST_LIBRARY"), *how = getenv("HOST_LIBRARY_HOW");
	int (*ask)(int (*obtain)(uint64_t *), uint64_t *) = NULL;
	uint64_t address;
	char copy[64];
	void *handle;

	gpu_begin();
	if (path && how && !strcmp(how, "memory")) {
		copy_to_memory(path, copy, sizeof(copy));
		path = copy;
	}
	handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (handle)
		*(void **)(void *)&ask = dlsym(handle, "ask_for_memory");
	if (!ask)
		return 9;
	if (how && !strcmp(how, "gone"))
		(void)unlink(path);
	(void)ask(obtain_block, &address);
	if (how && !strcmp(how, "stay"))
		nap_ms(500);
	say("launches 0\n");
	return 0;
}

static void run_coroutine(void)
{
	uint64_t address;

	(void)obtain_block(&address);
}

/* On a stack of its own, with nothing below it: a page that can't be touched. */
static void on_coroutine(void)
{
	enum { BYTES = 16 << 10, GUARD = 64 << 10 };
	char *stack = mmap(NULL, GUARD + BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ucontext_t here, there;

	if (stack == MAP_FAILED || mprotect(stack + GUARD, BYTES, PROT_READ | PROT_WRITE) ||
	    getcontext(&there))
		_exit(9);
	there.uc_stack.ss_sp = stack + GUARD;
	there.uc_stack.ss_size = BYTES;
	there.uc_link = &here;
	makecontext(&there, run_coroutine, 0);
	(void)swapcontext(&here, &there);
}

static void *in_thread(void *unused)
{
	(void)unused;
	on_coroutine();
	return NULL;
}

int host_coroutine(void)
{
	pthread_t thread;

	gpu_begin();
	on_coroutine();
	if (pthread_create(&thread, NULL, in_thread, NULL) || pthread_join(thread, NULL))
		return 9;
	say("launches 0\n");
	return 0;
}
