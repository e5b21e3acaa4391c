/*
 * The child asks one thing after the other and writes each answer at once, so
 * that what hangs or crashes costs only itself and what comes after it.
 */
#include "collect/probe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "collect/child_text.h"
#include "collect/probe_cupti.h"

enum { ACTIVITY_CONCURRENT_KERNEL = 10, DEVICE_CC_MAJOR = 75, DEVICE_CC_MINOR = 76 };

/* What is asked of libcuda and libcupti; CUresult and CUptiResult are ints. */
#define CUDA_CALLS(X)                                                \
	X(cuInit, (unsigned int flags))                              \
	X(cuDeviceGet, (int *device, int ordinal))                   \
	X(cuDeviceGetAttribute, (int *value, int which, int device)) \
	X(cuDevicePrimaryCtxRetain, (void **context, int device))    \
	X(cuCtxSetCurrent, (void *context))

#define CUPTI_CALLS(X)                                                               \
	X(cuptiGetVersion, (uint32_t * version))                                     \
	X(cuptiActivityEnable, (int kind))                                           \
	X(cuptiActivityDisable, (int kind))                                          \
	X(cuptiProfilerInitialize, (struct cupti_plain * params))                    \
	X(cuptiDeviceGetChipName, (struct cupti_chip * params))                      \
	X(cuptiProfilerGetCounterAvailability, (struct cupti_availability * params)) \
	X(cuptiPCSamplingEnable, (struct cupti_context * params))                    \
	X(cuptiPCSamplingDisable, (struct cupti_context * params))                   \
	X(cuptiPmSamplingEnable, (struct cupti_pm_enable * params))                  \
	X(cuptiPmSamplingDisable, (struct cupti_pm_object * params))

/* A function that is not there is NULL. */
struct calls {
#define X(name, args) int(*name) args;
	CUDA_CALLS(X)
	CUPTI_CALLS(X)
#undef X
};

struct asking {
	const char *cupti;
	int fd;
	struct calls calls;
	void *context;
};

static void say(const struct asking *asking, const char *key, long long value)
{
	(void)dprintf(asking->fd, "%s %lld\n", key, value);
}

/* dlsym gives a void *, which ISO C keeps apart from functions. */
static void resolve(void *library, const char *name, void *ret_function)
{
	void *address = dlsym(library, name);

	memcpy(ret_function, &address, sizeof(address));
}

static bool load(struct asking *asking)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	void *cupti = cuda ? dlopen(asking->cupti, RTLD_NOW) : NULL;

	if (!cuda || !cupti) {
		(void)dprintf(asking->fd, "missing %s\n", cuda ? "libcupti" : "libcuda.so.1");
		return false;
	}
#define X(name, args) resolve(cuda, #name, &asking->calls.name);
	CUDA_CALLS(X)
#undef X
#define X(name, args) resolve(cupti, #name, &asking->calls.name);
	CUPTI_CALLS(X)
#undef X
	return true;
}

static bool start_cuda(struct asking *asking)
{
	const struct calls *calls = &asking->calls;
	int device = 0, value = 0, result;

	if (!calls->cuInit || !calls->cuDeviceGet || !calls->cuDeviceGetAttribute ||
	    !calls->cuDevicePrimaryCtxRetain || !calls->cuCtxSetCurrent) {
		(void)dprintf(asking->fd, "missing functions of libcuda\n");
		return false;
	}
	say(asking, "cuda_init", result = calls->cuInit(0));
	if (result || (result = calls->cuDeviceGet(&device, 0))) {
		say(asking, "cuda_context", result);
		return false;
	}
	if (!calls->cuDeviceGetAttribute(&value, DEVICE_CC_MAJOR, device))
		say(asking, "cc_major", value);
	if (!calls->cuDeviceGetAttribute(&value, DEVICE_CC_MINOR, device))
		say(asking, "cc_minor", value);
	result = calls->cuDevicePrimaryCtxRetain(&asking->context, device);
	if (!result)
		result = calls->cuCtxSetCurrent(asking->context);
	say(asking, "cuda_context", result);
	return !result;
}

static void ask_counters(struct asking *asking)
{
	struct cupti_availability params = { .size = sizeof(params), .context = asking->context };
	int result = asking->calls.cuptiProfilerGetCounterAvailability(&params);

	if (!result && params.image_size && params.image_size < 64 << 20) {
		params.image = calloc(1, params.image_size);
		if (params.image)
			result = asking->calls.cuptiProfilerGetCounterAvailability(&params);
		free(params.image);
	}
	say(asking, "counters", result);
}

/* PC and PM sampling exclude each other on a card: one after the other. */
static void ask_sampling(struct asking *asking)
{
	const struct calls *calls = &asking->calls;

	if (calls->cuptiPCSamplingEnable && calls->cuptiPCSamplingDisable) {
		struct cupti_context params = { .size = sizeof(params),
						.context = asking->context };
		int result = calls->cuptiPCSamplingEnable(&params);

		say(asking, "pc_sampling", result);
		if (!result)
			(void)calls->cuptiPCSamplingDisable(&params);
	}
	if (calls->cuptiPmSamplingEnable && calls->cuptiPmSamplingDisable) {
		struct cupti_pm_enable params = { .size = sizeof(params) };
		int result = calls->cuptiPmSamplingEnable(&params);
		struct cupti_pm_object object = { .size = sizeof(object), .object = params.object };

		say(asking, "pm_sampling", result);
		if (!result)
			(void)calls->cuptiPmSamplingDisable(&object);
	}
}

static void ask(int fd, void *arg)
{
	struct asking *asking = arg;
	struct cupti_plain plain = { .size = sizeof(plain) };
	struct cupti_chip chip = { .size = sizeof(chip) };
	const struct calls *calls = &asking->calls;
	uint32_t version = 0;

	asking->fd = fd;
	if (!load(asking) || !start_cuda(asking))
		return;
	if (calls->cuptiGetVersion && !calls->cuptiGetVersion(&version))
		say(asking, "cupti_version", version);
	if (calls->cuptiActivityEnable && calls->cuptiActivityDisable) {
		int result = calls->cuptiActivityEnable(ACTIVITY_CONCURRENT_KERNEL);

		say(asking, "activity", result);
		if (!result)
			(void)calls->cuptiActivityDisable(ACTIVITY_CONCURRENT_KERNEL);
	}
	if (!calls->cuptiProfilerInitialize)
		return;
	/* Before this the other calls of that family crash (seen on an H200). */
	if (calls->cuptiProfilerInitialize(&plain))
		return;
	if (calls->cuptiDeviceGetChipName && !calls->cuptiDeviceGetChipName(&chip) && chip.name)
		(void)dprintf(fd, "chip %s\n", chip.name);
	if (calls->cuptiProfilerGetCounterAvailability)
		ask_counters(asking);
	ask_sampling(asking);
}

static void take(struct probe *probe, struct str key, struct str value)
{
	static const struct {
		const char *key;
		size_t offset;
	} fields[] = {
#define FIELD(name) { #name, offsetof(struct probe, name) }
		FIELD(cuda_init), FIELD(cuda_context), FIELD(cupti_version),
		FIELD(cc_major),  FIELD(cc_minor),     FIELD(activity),
		FIELD(counters),  FIELD(pc_sampling),  FIELD(pm_sampling),
#undef FIELD
	};
	int64_t number;

	if (str_is(key, "chip"))
		(void)snprintf(probe->chip, sizeof(probe->chip), "%.*s", (int)value.len, value.at);
	if (str_is(key, "missing"))
		(void)snprintf(probe->missing, sizeof(probe->missing), "%.*s", (int)value.len,
			       value.at);
	if (!str_to_i64(value, &number) || number < 0 || number > INT32_MAX)
		return;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		int small = (int)number;

		if (str_is(key, fields[i].key))
			memcpy((char *)probe + fields[i].offset, &small, sizeof(small));
	}
}

void probe_none(struct probe *ret_probe)
{
	*ret_probe = (struct probe){ .cuda_init = PROBE_NOT_TRIED,
				     .cuda_context = PROBE_NOT_TRIED,
				     .activity = PROBE_NOT_TRIED,
				     .counters = PROBE_NOT_TRIED,
				     .pc_sampling = PROBE_NOT_TRIED,
				     .pm_sampling = PROBE_NOT_TRIED };
}

int probe_run(const char *cupti, int64_t limit_ms, struct probe *ret_probe, struct err *err)
{
	struct asking asking = { .cupti = cupti };
	struct buf out = { 0 };
	struct str rest;
	int status;

	probe_none(ret_probe);
	status = child_text(ask, &asking, limit_ms, &out, err);
	rest = str_of(out.at ? out.at : "");
	while (rest.at && rest.len) {
		struct str line = str_cut(&rest, '\n'), key = str_cut(&line, ' ');

		take(ret_probe, key, line);
	}
	buf_done(&out);
	return status;
}

const char *probe_cupti_result(int result)
{
	/* cupti_result.h of CUDA 13.0 */
	static const struct {
		int number;
		const char *name;
	} names[] = {
		{ 1, "INVALID_PARAMETER" },
		{ 7, "INVALID_OPERATION" },
		{ 8, "OUT_OF_MEMORY" },
		{ 9, "HARDWARE" },
		{ 11, "API_NOT_IMPLEMENTED" },
		{ 14, "NOT_COMPATIBLE" },
		{ 15, "NOT_INITIALIZED" },
		{ 23, "DISABLED" },
		{ 26, "HARDWARE_BUSY" },
		{ 27, "NOT_SUPPORTED" },
		{ 33, "VIRTUALIZED_DEVICE_NOT_SUPPORTED" },
		{ 35, "INSUFFICIENT_PRIVILEGES" },
		{ 36, "OLD_PROFILER_API_INITIALIZED" },
		{ 38, "LEGACY_PROFILER_NOT_SUPPORTED" },
		{ 39, "MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" },
		{ 40, "VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES" },
		{ 41, "CONFIDENTIAL_COMPUTING_NOT_SUPPORTED" },
		{ 42, "CMP_DEVICE_NOT_SUPPORTED" },
		{ 43, "MIG_DEVICE_NOT_SUPPORTED" },
		{ 44, "SLI_DEVICE_NOT_SUPPORTED" },
		{ 45, "WSL_DEVICE_NOT_SUPPORTED" },
		{ 46, "INVALID_CHIP_NAME" },
		{ 999, "UNKNOWN" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (names[i].number == result)
			return names[i].name;
	}
	return "unknown result";
}
