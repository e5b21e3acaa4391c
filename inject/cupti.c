/* cupti.c - the libcupti that belongs to this process. */
#include "inject/inject.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Versions whose records this library knows (cuptiGetVersion): CUDA 12.0 is
 * 18, 12.9 is 27 and 28; from 13.0 on the number is major, minor, update. */
enum { VERSION_MIN = 18, VERSION_12_MAX = 99, VERSION_13_MIN = 130000, VERSION_13_MAX = 139999 };

struct loaded {
	char cupti[256];  /* a libcupti that is there already */
	char cudart[256]; /* pip puts libcupti beside the runtime */
};

static int look_at(struct dl_phdr_info *info, size_t size, void *user)
{
	struct loaded *loaded = user;
	const char *name = info->dlpi_name ? info->dlpi_name : "";
	const char *base = strrchr(name, '/');

	(void)size;
	base = base ? base + 1 : name;
	if (!strncmp(base, "libcupti.so", 11))
		snprintf(loaded->cupti, sizeof(loaded->cupti), "%s", name);
	if (!strncmp(base, "libcudart", 9) || !strncmp(base, "libcublas", 9))
		snprintf(loaded->cudart, sizeof(loaded->cudart), "%s", name);
	return 0;
}

/* .../nvidia/cuda_runtime/lib/libcudart.so.12 -> .../nvidia/cuda_cupti/lib,
 * .../nvidia/cu13/lib: beside it; .../cuda/lib64: its extras. */
static void *open_beside(const char *cudart)
{
	static const char *const places[] = { "%.*s/../../cuda_cupti/lib/libcupti.so.12",
					      "%.*s/libcupti.so.13", "%.*s/libcupti.so.12",
					      "%.*s/../extras/CUPTI/lib64/libcupti.so" };
	const char *slash = strrchr(cudart, '/');
	char path[512];
	void *handle = NULL;

	for (size_t i = 0; slash && !handle && i < sizeof(places) / sizeof(places[0]); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(path, sizeof(path), places[i], (int)(slash - cudart), cudart);
#pragma GCC diagnostic pop
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return handle;
}

static void *open_library(void)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12",
					     "/usr/local/cuda/lib64/libcupti.so",
					     "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so" };
	struct loaded loaded = { 0 };
	const char *asked = secure_getenv("SONDE_CUPTI");
	void *handle = NULL;

	dl_iterate_phdr(look_at, &loaded);
	if (loaded.cupti[0])
		return dlopen(loaded.cupti, RTLD_NOW | RTLD_LOCAL);
	if (asked && *asked)
		return dlopen(asked, RTLD_NOW | RTLD_LOCAL);
	if (loaded.cudart[0])
		handle = open_beside(loaded.cudart);
	for (size_t i = 0; !handle && i < sizeof(names) / sizeof(names[0]); i++)
		handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return handle;
}

static bool known(uint32_t version)
{
	return (version >= VERSION_MIN && version <= VERSION_12_MAX) ||
	       (version >= 120000 && version <= VERSION_13_MAX);
}

/* The driver has loaded us, or who asks has no devices yet. */
static void open_driver(struct inject *inject)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return;
	*(void **)(void *)&inject->cuDeviceGetUuid = dlsym(handle, "cuDeviceGetUuid");
	(void)dlclose(handle);
}

bool cupti_open(struct inject *inject)
{
	struct segment *segment = atomic_load(&inject->segment);
	void *handle = open_library();
	struct link_map *map = NULL;
	bool whole = true;

	if (!handle) {
		inject_off(inject, SEGMENT_REASON_NO_CUPTI, 0);
		return false;
	}
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map)
		snprintf(segment->cupti_path, sizeof(segment->cupti_path), "%s", map->l_name);
#define X(needed, name, arguments)                                    \
	*(void **)(void *)&inject->cupti.name = dlsym(handle, #name); \
	whole = whole && (!(needed) || inject->cupti.name);
	CUPTI_CALLS(X)
#undef X
	open_driver(inject);
	if (whole)
		(void)inject->cupti.cuptiGetVersion(&segment->cupti_version);
	if (!whole || !known(segment->cupti_version)) {
		inject_off(inject, SEGMENT_REASON_CUPTI_VERSION, segment->cupti_version);
		return false;
	}
	return true;
}
