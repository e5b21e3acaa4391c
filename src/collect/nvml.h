/*
 * nvml.h - the management library, opened.
 *
 * Finds and opens libnvidia-ml.so.1, looks its functions up, and keeps what
 * each has cost. Call through NVML(): a function that this driver lacks gives
 * NVML_NO_FUNCTION, so that callers try the newest name first and need no
 * other case for old drivers. Only the collector's child opens it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/nvml_abi.h"

struct nvml_cost {
	uint64_t count, failed;
	int64_t total_ns, max_ns;
};

struct nvml {
	void *handle;
	bool initialized;
	int driver_major, driver_minor; /* 535, 104 of "535.104.05"; 0 unknown */
	char driver[32], library_version[32], cuda[16];
	char file[256];
	char wrapper[256];             /* file that answers for the library; "" none */
	bool wrapped[NVML_CALL_COUNT]; /* the wrapper answers this one */
	struct nvml_cost cost[NVML_CALL_COUNT];
	/* of this round: the caller clears them */
	uint32_t calls;
	enum nvml_call slowest;
	int64_t slowest_ns;
#define X(name, args) int(*name) args;
	NVML_CALLS(X)
#undef X
};

/* Open `path`, or if NULL $SONDE_NVML, or else the usual places, and initialise.
 * ERR_MISSING with *ret_status if there is no library or it can't start. */
int nvml_open(struct nvml *nvml, const char *path, int *ret_status, struct err *err);
void nvml_close(struct nvml *nvml);

/* "GPU is lost", ...: NVML's own meaning of a status, in English. */
const char *nvml_status_text(int status);
const char *nvml_call_name(enum nvml_call call);

/* Functions that give one uint32_t, called by their number. */
enum nvml_shape {
	NVML_PLAIN,       /* (device, &value) */
	NVML_OF_KIND,     /* (device, kind, &value) */
	NVML_WITH_SECOND, /* (device, &value, &something) */
};

struct nvml_u32 {
	enum nvml_call call;
	enum nvml_shape shape;
	uint32_t kind;
};

int nvml_u32(struct nvml *nvml, const struct nvml_u32 *what, struct nvml_device *device,
	     uint32_t *ret_value);

/* For the macro. */
void nvml_count(struct nvml *nvml, enum nvml_call call, int64_t start_ns, int status);

/* NVML(nvml, nvmlDeviceGetPowerUsage, device, &mw): its status. */
#define NVML(nvml, name, ...)                                                     \
	__extension__({                                                           \
		int status_ = NVML_NO_FUNCTION;                                   \
		if ((nvml)->name) {                                               \
			int64_t start_ns_ = clock_steady_ns();                    \
			status_ = (nvml)->name(__VA_ARGS__);                      \
			nvml_count((nvml), NVML_CALL_##name, start_ns_, status_); \
		}                                                                 \
		status_;                                                          \
	})
