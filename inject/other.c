/*
 * other.c - [setup] is another tool at work on this process? Then CUPTI is its.
 *
 * It shows by this process or one above it, a variable that it sets, an object that it
 * has loaded, or an injection library that somebody put into the environment. Where we
 * are not sure that we are alone we stay off: a tool that loses CUPTI to us ends
 * its program (seen with ncu 2025.3.1).
 */
#include "inject/inject.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/other_tools.h"

enum { ANCESTORS_MAX = 32, OBJECTS_BYTES = 128 << 10 };

/* Where who asks is told what it is. */
struct found {
	char *name;
	size_t bytes;
};

static bool say(struct found *found, const char *name)
{
	(void)snprintf(found->name, found->bytes, "%s", name);
	return true;
}

static unsigned long digits_at(const char *at)
{
	unsigned long number = 0;

	for (; *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (unsigned long)(*at - '0');
	return number;
}

/* Name and parent of a process; 0: it is out of sight. */
static unsigned long parent_of(unsigned long pid, char ret_name[32])
{
	char path[48], line[512];
	ssize_t len;
	const char *begin, *end;
	int file;

	(void)snprintf(path, sizeof(path), "/proc/%lu/stat", pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	len = file < 0 ? -1 : read(file, line, sizeof(line) - 1);
	if (file >= 0)
		close(file);
	if (len <= 0)
		return 0;
	line[len] = 0;
	begin = strchr(line, '(');
	end = strrchr(line, ')');
	if (!begin || !end || end < begin)
		return 0;
	(void)snprintf(ret_name, 32, "%.*s", (int)(end - begin - 1), begin + 1);
	return end[1] == ' ' && end[2] && end[3] == ' ' ? digits_at(end + 4) : 0;
}

/* The tool itself uses CUDA, too: to list the cards, or to ask what they count. */
static bool is_tool_or_below(struct found *found)
{
	unsigned long pid = (unsigned long)getpid();
	char name[32];

	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		const char *tool;

		pid = parent_of(pid, name);
		tool = pid ? other_tool_named(name) : NULL;
		if (tool)
			return say(found, tool);
	}
	return false;
}

/* A debugger that is attached, not above us. */
static bool is_debugged(struct found *found)
{
	char text[2048], name[32];
	int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t len = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
	const char *line, *tool;
	unsigned long tracer;

	if (file >= 0)
		close(file);
	if (len <= 0)
		return false;
	text[len] = 0;
	line = strstr(text, "TracerPid:\t");
	tracer = line ? digits_at(line + 11) : 0;
	if (!tracer || !parent_of(tracer, name))
		return false;
	tool = other_tool_named(name);
	return tool && say(found, tool);
}

static bool has_variable(struct found *found)
{
	static const char *const names[] = {
		"NV_TPS_LAUNCH_TOKEN",
		"NV_NSIGHT_INJECTION_PORT_BASE",
		"NV_NSIGHT_INJECTION_PORT_RANGE_BEGIN",
		"NSYS_PROFILING_SESSION_ID",
		"QUADD_INJECTION_PROXY",
		"CUDBG_APICLIENT_PID",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (secure_getenv(names[i]))
			return say(found, names[i]);
	}
	return false;
}

struct objects {
	char *names; /* one behind the other, each with its NUL */
	size_t used;
};

static int take_object(struct dl_phdr_info *info, size_t size, void *user)
{
	struct objects *objects = user;
	const char *name = info->dlpi_name ? info->dlpi_name : "";
	size_t len = strlen(name) + 1;

	(void)size;
	if (len > 1 && objects->used + len <= OBJECTS_BYTES) {
		memcpy(objects->names + objects->used, name, len);
		objects->used += len;
	}
	return 0;
}

struct holder {
	const char *path;
	uintptr_t address;
};

static int is_holder(struct dl_phdr_info *info, size_t size, void *user)
{
	const struct holder *holder = user;
	uintptr_t start, end;

	(void)size;
	site_extent(info, &start, &end);
	return holder->address >= start && holder->address < end && info->dlpi_name &&
	       !strcmp(info->dlpi_name, holder->path);
}

/* The object itself, not one that it needs. */
static bool defines(const char *path, const char *symbol)
{
	void *handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL);
	struct holder holder = { path, handle ? (uintptr_t)dlsym(handle, symbol) : 0 };
	bool its = holder.address && dl_iterate_phdr(is_holder, &holder);

	if (handle)
		(void)dlclose(handle);
	return its;
}

/* Is the object one of those listed, by its path or, as the loader searches for it,
 * by its name? */
static bool is_listed(const char *list, const char *path, const char *base)
{
	while (list && *list) {
		size_t len = strcspn(list, ": ");
		const char *name = memchr(list, '/', len) ? path : base;

		if (len && strlen(name) == len && !memcmp(list, name, len))
			return true;
		list += len + (list[len] != 0);
	}
	return false;
}

/* Has an object an entry for the driver, and did somebody put it there as a tool? The
 * entry alone says nothing: libtorch_cpu has libkineto's, which nobody calls. */
static bool has_entry(const char *path, const char *base)
{
	if (!strncmp(base, "libcudart", 9) || !strncmp(base, "libcuda.so", 10) ||
	    !strncmp(base, "libcupti", 8) || !strncmp(base, "libsonde-", 9))
		return false;
	return (is_listed(secure_getenv("LD_PRELOAD"), path, base) ||
		is_listed(secure_getenv("CUDA_INJECTION64_PATH"), path, base)) &&
	       defines(path, "InitializeInjection");
}

static bool has_object(struct found *found)
{
	static const char *const tools[] = { "libTreeLauncher",   "libInterceptorInjection",
					     "libToolsInjection", "libsanitizer-collection",
					     "libcuda-injection", "libcuinj64",
					     "libaccinj64" };
	struct objects objects = { .names = calloc(1, OBJECTS_BYTES) };
	bool is = false;

	if (!objects.names)
		return false;
	(void)dl_iterate_phdr(take_object, &objects);
	for (size_t at = 0; at < objects.used && !is; at += strlen(objects.names + at) + 1) {
		const char *path = objects.names + at, *slash = strrchr(path, '/');
		const char *base = slash ? slash + 1 : path;

		for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]) && !is; i++)
			is = !strncmp(base, tools[i], strlen(tools[i]));
		is = (is || has_entry(path, base)) && say(found, base);
	}
	free(objects.names);
	return is;
}

bool other_tool_here(char *ret_name, size_t bytes)
{
	struct found found = { ret_name, bytes };

	return has_variable(&found) || has_object(&found) || is_tool_or_below(&found) ||
	       is_debugged(&found);
}
