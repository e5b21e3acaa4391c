/* host_made.c - code that the program makes as it runs, and tells of in a perf map. */
#include "inject/host.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake/puppet_cuda.h"

/* One calls its argument, as CPython's trampolines do; one counts its argument down. */
#if defined(__x86_64__)
static const unsigned char CALL[] = { 0x48, 0x83, 0xec, 0x08, 0xff, 0xd7,
				      0x48, 0x83, 0xc4, 0x08, 0xc3 };
static const unsigned char SPIN[] = { 0xff, 0xcf, 0x75, 0xfc, 0xc3 };
#elif defined(__aarch64__)
static const unsigned int CALL[] = { 0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
static const unsigned int SPIN[] = { 0x71000400, 0x54ffffe1, 0xd65f03c0 };
#endif

enum { SPIN_AT = 256, PAGE = 4096 };

static __attribute__((noinline)) void obtain_block(void)
{
	uint64_t address;

	(void)cudaMalloc(&address, 4096);
	__asm__ volatile("" ::: "memory"); /* not by a jump */
}

static __attribute__((noinline)) void obtain_deep(unsigned int levels)
{
	if (levels)
		obtain_deep(levels - 1);
	else
		obtain_block();
	__asm__ volatile("" ::: "memory");
}

static void obtain_below(void)
{
	const char *levels = getenv("HOST_MADE_LEVELS");

	obtain_deep(levels ? (unsigned int)strtoul(levels, NULL, 10) : 0);
	__asm__ volatile("" ::: "memory");
}

/* As CPython opens it. */
static void write_map(const char *code, const char *call, const char *spin)
{
	const char *folder = getenv("HOST_MADE_FOLDER");
	char path[64], text[1024];
	int file, len;

	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	folder = folder ? folder : "";
	len = snprintf(text, sizeof(text), "%lx %zx %s%s/data\n%lx %zx %s%s/data\n",
		       (unsigned long)code, sizeof(CALL), call, folder,
		       (unsigned long)(code + SPIN_AT), sizeof(SPIN), spin, folder);
	if (file < 0 || write(file, text, (size_t)len) != len)
		_exit(9);
	(void)close(file);
}

/* As the start-up module does: this program may be gone before sonde looks. */
static void tell_sonde(void)
{
	const char *where = getenv("SONDE_PERF_MAP");
	int to = where ? open(where, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

	if (to < 0)
		return;
	(void)dprintf(to, "%d\n", (int)getpid());
	(void)close(to);
}

static long long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

/* HOST_MADE: "python" writes a map where Python would, "node" always. HOST_MADE_MS: so long it
 * is in what it made. HOST_MADE_LEVELS: calls between that and the one that obtains memory.
 * HOST_MADE_END: "kill". HOST_MADE_FOLDER: of the file that its functions are in. */
int host_made(void)
{
	const char *how = getenv("HOST_MADE"), *ms = getenv("HOST_MADE_MS");
	const char *end = getenv("HOST_MADE_END"), *asked = getenv("PYTHONPERFSUPPORT");
	char *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long long until;
	void (*call)(void (*function)(void));
	void (*spin)(int count);

	if (code == MAP_FAILED)
		return 9;
	memcpy(code, CALL, sizeof(CALL));
	memcpy(code + SPIN_AT, SPIN, sizeof(SPIN));
	__builtin___clear_cache(code, code + PAGE);
	if (mprotect(code, PAGE, PROT_READ | PROT_EXEC))
		return 9;
	if (how && !strcmp(how, "node"))
		write_map(code, "LazyCompile:*collate ", "LazyCompile:*spin ");
	else if (how && asked && strcmp(asked, "0") != 0) {
		tell_sonde();
		write_map(code, "py::make.<locals>.collate:", "py::spin:");
	}
	memcpy(&call, &code, sizeof(call));
	memcpy(&spin, &(char *){ code + SPIN_AT }, sizeof(spin));
	gpu_begin();
	call(getenv("HOST_MADE_LEVELS") ? obtain_below : obtain_block);
	until = now_ms() + (ms ? strtol(ms, NULL, 10) : 0);
	while (now_ms() < until)
		spin(1000000);
	say("launches 0\n");
	if (end && !strcmp(end, "kill"))
		(void)raise(SIGKILL);
	return 0;
}
