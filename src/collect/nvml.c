#include "collect/nvml.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* After the loader's own search. WSL keeps the library outside of it;
 * containers and Kubernetes nodes mount the driver where these say. */
static const char *const places[] = {
	"libnvidia-ml.so.1",
	"/usr/lib/wsl/lib/libnvidia-ml.so.1",
	"/usr/lib/wsl/drivers/*/libnvidia-ml.so.1",
	"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
	"/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
	"/usr/lib64/libnvidia-ml.so.1",
	"/usr/local/nvidia/lib64/libnvidia-ml.so.1",
	"/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
	"/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1",
	"/home/kubernetes/bin/nvidia/lib64/libnvidia-ml.so.1",
	"/run/opengl-driver/lib/libnvidia-ml.so.1",
};

static const char *const call_names[NVML_CALL_COUNT] = {
#define X(name, args) #name,
	NVML_CALLS(X)
#undef X
};

/* Where in struct nvml each function's pointer is. */
static const size_t slots[NVML_CALL_COUNT] = {
#define X(name, args) offsetof(struct nvml, name),
	NVML_CALLS(X)
#undef X
};

const char *nvml_call_name(enum nvml_call call)
{
	return call_names[call];
}

const char *nvml_status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} texts[] = {
		{ NVML_OK, "no failure" },
		{ NVML_UNINITIALIZED, "the library is not initialised" },
		{ NVML_INVALID, "an argument was refused" },
		{ NVML_NOT_SUPPORTED, "not supported by this card" },
		{ NVML_NO_PERMISSION, "no permission" },
		{ NVML_NOT_FOUND, "not found" },
		{ NVML_TOO_SMALL, "the answer did not fit" },
		{ NVML_NOT_LOADED, "the NVIDIA driver is not loaded" },
		{ NVML_TIMED_OUT, "the driver timed out" },
		{ NVML_NO_LIBRARY, "libnvidia-ml.so.1 was not found" },
		{ NVML_NO_FUNCTION, "the library lacks a function" },
		{ NVML_LOST, "the card fell off the bus or can't be reached" },
		{ NVML_RESET_REQUIRED, "the card needs a reset" },
		{ NVML_BLOCKED, "the operating system or a control group blocks the device" },
		{ NVML_MISMATCH, "the library and the loaded driver differ in version" },
		{ NVML_WRONG_VERSION, "the library refused the version of a structure" },
		{ NVML_DEPRECATED, "this driver no longer answers that" },
		{ NVML_NOT_READY, "the driver is not ready" },
		{ NVML_NO_GPU, "no GPU was found" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "the driver failed in a way it does not explain";
}

int nvml_u32(struct nvml *nvml, const struct nvml_u32 *what, struct nvml_device *device,
	     uint32_t *ret_value)
{
	int (*plain)(NVML_DEVICE, uint32_t *);
	int (*of_kind)(NVML_DEVICE, uint32_t, uint32_t *);
	int (*with_second)(NVML_DEVICE, uint32_t *, uint32_t *);
	const char *slot = (const char *)nvml + slots[what->call];
	int64_t start_ns;
	uint32_t second = 0;
	int status;

	memcpy(&plain, slot, sizeof(plain));
	if (!plain)
		return NVML_NO_FUNCTION;
	memcpy(&of_kind, slot, sizeof(of_kind));
	memcpy(&with_second, slot, sizeof(with_second));
	start_ns = clock_steady_ns();
	switch (what->shape) {
	case NVML_OF_KIND:
		status = of_kind(device, what->kind, ret_value);
		break;
	case NVML_WITH_SECOND:
		status = with_second(device, ret_value, &second);
		break;
	default:
		status = plain(device, ret_value);
	}
	nvml_count(nvml, what->call, start_ns, status);
	return status;
}

void nvml_count(struct nvml *nvml, enum nvml_call call, int64_t start_ns, int status)
{
	struct nvml_cost *cost = &nvml->cost[call];
	int64_t ns = clock_steady_ns() - start_ns;

	cost->count++;
	cost->failed += status != NVML_OK;
	cost->total_ns += ns;
	if (ns > cost->max_ns)
		cost->max_ns = ns;
	nvml->calls++;
	if (ns > nvml->slowest_ns) {
		nvml->slowest_ns = ns;
		nvml->slowest = call;
	}
}

/* `place` may be a pattern; the first match that opens. */
static void *open_place(const char *place)
{
	glob_t found = { 0 };
	void *handle = NULL;

	if (!strchr(place, '*'))
		return dlopen(place, RTLD_LAZY | RTLD_LOCAL);
	if (!glob(place, 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc && !handle; i++)
			handle = dlopen(found.gl_pathv[i], RTLD_LAZY | RTLD_LOCAL);
	globfree(&found);
	return handle;
}

/* A library that hooks dlsym hands out functions of its own, which lie in
 * another file than the one we opened. */
static void look_up(struct nvml *nvml)
{
	struct link_map *map = NULL;
	Dl_info info;
	void *at;

	if (!dlinfo(nvml->handle, RTLD_DI_LINKMAP, &map) && map)
		(void)snprintf(nvml->file, sizeof(nvml->file), "%s", map->l_name);
	for (size_t i = 0; i < NVML_CALL_COUNT; i++) {
		at = dlsym(nvml->handle, call_names[i]);
		memcpy((char *)nvml + slots[i], &at, sizeof(at));
		if (!at || !map || !dladdr(at, &info) ||
		    (uintptr_t)info.dli_fbase == (uintptr_t)map->l_addr)
			continue;
		nvml->wrapped[i] = true;
		(void)snprintf(nvml->wrapper, sizeof(nvml->wrapper), "%s",
			       info.dli_fname ? info.dli_fname : "?");
	}
}

static void read_versions(struct nvml *nvml)
{
	struct str rest, major;
	int64_t number = 0;
	int cuda = 0;

	(void)NVML(nvml, nvmlSystemGetDriverVersion, nvml->driver, sizeof(nvml->driver));
	(void)NVML(nvml, nvmlSystemGetNVMLVersion, nvml->library_version,
		   sizeof(nvml->library_version));
	nvml->driver[sizeof(nvml->driver) - 1] = 0;
	nvml->library_version[sizeof(nvml->library_version) - 1] = 0;
	if (NVML(nvml, nvmlSystemGetCudaDriverVersion_v2, &cuda) &&
	    NVML(nvml, nvmlSystemGetCudaDriverVersion, &cuda))
		cuda = 0;
	if (cuda > 0)
		(void)snprintf(nvml->cuda, sizeof(nvml->cuda), "%d.%d", cuda / 1000,
			       cuda % 1000 / 10);
	rest = str_of(nvml->driver);
	major = str_cut(&rest, '.');
	if (str_to_i64(major, &number) && number > 0 && number < 100000)
		nvml->driver_major = (int)number;
	if (str_to_i64(str_cut(&rest, '.'), &number) && number >= 0 && number < 100000)
		nvml->driver_minor = (int)number;
}

int nvml_open(struct nvml *nvml, const char *path, int *ret_status, struct err *err)
{
	int status;

	memset(nvml, 0, sizeof(*nvml));
	*ret_status = NVML_NO_LIBRARY;
	if (!path || !*path)
		path = getenv("SONDE_NVML");
	if (path && *path) {
		nvml->handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
		if (!nvml->handle)
			return err_set(err, ERR_MISSING, "%s", dlerror());
	}
	for (size_t i = 0; !nvml->handle && i < sizeof(places) / sizeof(places[0]); i++)
		nvml->handle = open_place(places[i]);
	if (!nvml->handle)
		return err_set(err, ERR_MISSING,
			       "no NVIDIA driver here: libnvidia-ml.so.1 was not found");
	look_up(nvml);
	if (!nvml->nvmlInit_v2 || !nvml->nvmlShutdown || !nvml->nvmlDeviceGetCount_v2 ||
	    !nvml->nvmlDeviceGetHandleByIndex_v2) {
		*ret_status = NVML_NO_FUNCTION;
		return err_set(err, ERR_MISSING, "%s is no management library of NVIDIA",
			       nvml->file);
	}
	status = NVML(nvml, nvmlInit_v2);
	*ret_status = status;
	if (status)
		return err_set(err, ERR_MISSING, "NVML: %s (%d)", nvml_status_text(status), status);
	nvml->initialized = true;
	read_versions(nvml);
	return 0;
}

void nvml_close(struct nvml *nvml)
{
	if (nvml->initialized)
		(void)NVML(nvml, nvmlShutdown);
	if (nvml->handle)
		(void)dlclose(nvml->handle);
	memset(nvml, 0, sizeof(*nvml));
}
