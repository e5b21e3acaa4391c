/*
 * nvml_abi.h - the part of NVIDIA's management library that we call.
 *
 * Our own declarations: sonde builds without the toolkit. Layouts are of the
 * 64-bit ABI and never change under one name; where a structure has a version,
 * the version word says which layout is meant. tests/unit/test_nvml_abi.c
 * compares them with nvml.h where that is installed. Meaning of each call and
 * field: NVML API reference.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum nvml_status {
	NVML_OK = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_TOO_SMALL = 7,
	NVML_NOT_LOADED = 9,
	NVML_TIMED_OUT = 10,
	NVML_NO_LIBRARY = 12,
	NVML_NO_FUNCTION = 13,
	NVML_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_BLOCKED = 17,
	NVML_MISMATCH = 18,
	NVML_WRONG_VERSION = 25,
	NVML_DEPRECATED = 26,
	NVML_NOT_READY = 27,
	NVML_NO_GPU = 28,
	NVML_UNKNOWN = 999,
};

struct nvml_device;     /* opaque */
struct nvml_gpm_sample; /* opaque */
struct nvml_event_set;  /* opaque */

#define NVML_VERSION(type, n) ((uint32_t)sizeof(type) | (uint32_t)(n) << 24)

struct nvml_pci { /* nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3 */
	char bus_id_short[16];
	uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

struct nvml_utilization {
	uint32_t gpu, memory; /* % */
};

struct nvml_memory { /* also BAR1 and protected memory */
	uint64_t total, free, used;
};

struct nvml_memory_v2 {
	uint32_t version;
	uint64_t total, reserved, free, used;
};

struct nvml_temperature {
	uint32_t version, sensor;
	int32_t celsius;
};

struct nvml_margin {
	uint32_t version;
	int32_t celsius;
};

union nvml_value {
	double f64;
	uint32_t u32;
	unsigned long ul;
	uint64_t u64;
	int64_t i64;
	int32_t i32;
	uint16_t u16;
};

enum nvml_value_type {
	NVML_F64 = 0,
	NVML_U32 = 1,
	NVML_ULONG = 2,
	NVML_U64 = 3,
	NVML_I64 = 4,
	NVML_I32 = 5,
	NVML_U16 = 6,
};

struct nvml_field {
	uint32_t id, scope;
	int64_t time_us, latency_us;
	uint32_t type; /* enum nvml_value_type */
	int32_t status;
	union nvml_value value;
};

struct nvml_sample {
	uint64_t time_us; /* since the epoch */
	union nvml_value value;
};

enum nvml_ring {
	NVML_RING_POWER = 0, /* mW */
	NVML_RING_GPU = 1,   /* % */
	NVML_RING_MEMORY = 2,
};

struct nvml_violation {
	uint64_t reference_us, violation_ns;
};

struct nvml_process_v1 {
	uint32_t pid;
	uint64_t used_bytes; /* all ones: unknown */
};

struct nvml_process { /* _v2 and _v3 */
	uint32_t pid;
	uint64_t used_bytes;
	uint32_t gpu_instance, compute_instance; /* all ones: none */
};

/* Drivers 535.43 to 535.85 fill lists with a longer element. */
enum { NVML_PROCESS_STRIDE = sizeof(struct nvml_process), NVML_PROCESS_STRIDE_535 = 32 };

struct nvml_process_use { /* nvmlProcessUtilizationSample_t */
	uint32_t pid;
	uint64_t time_us;
	uint32_t sm, memory, encoder, decoder; /* % */
};

struct nvml_process_use_v1 { /* nvmlProcessUtilizationInfo_v1_t */
	uint64_t time_us;
	uint32_t pid, sm, memory, encoder, decoder, jpeg, optical_flow;
};

struct nvml_process_uses { /* nvmlProcessesUtilizationInfo_v1_t */
	uint32_t version, count;
	uint64_t last_seen_us;
	struct nvml_process_use_v1 *at;
};

struct nvml_gpm_metric {
	uint32_t id;
	int32_t status;
	double value;
	char *short_name, *long_name, *unit;
};

/* The array is as long as `count` says; headers differ in how much they declare. */
enum { NVML_GPM_ROOM = 24 };

struct nvml_gpm_metrics {
	uint32_t version; /* 1, plain */
	uint32_t count;
	struct nvml_gpm_sample *before, *after;
	struct nvml_gpm_metric at[NVML_GPM_ROOM];
};

struct nvml_gpm_support {
	uint32_t version; /* 1, plain */
	uint32_t supported;
};

struct nvml_event { /* nvmlEventData_t */
	struct nvml_device *device;
	uint64_t type;                           /* one bit */
	uint64_t data;                           /* of an Xid its number */
	uint32_t gpu_instance, compute_instance; /* all ones: none; _v2 only */
};

#define NVML_DEVICE struct nvml_device *
#define NVML_EVENTS struct nvml_event_set *

/*
 * X(name, arguments). All return enum nvml_status as int. Only the first four
 * have to be there: a driver that lacks another answers as NVML_NO_FUNCTION.
 */
#define NVML_CALLS(X)                                                                          \
	X(nvmlInit_v2, (void))                                                                 \
	X(nvmlShutdown, (void))                                                                \
	X(nvmlDeviceGetCount_v2, (uint32_t *))                                                 \
	X(nvmlDeviceGetHandleByIndex_v2, (uint32_t, NVML_DEVICE *))                            \
	X(nvmlSystemGetDriverVersion, (char *, uint32_t))                                      \
	X(nvmlSystemGetNVMLVersion, (char *, uint32_t))                                        \
	X(nvmlSystemGetCudaDriverVersion_v2, (int *))                                          \
	X(nvmlSystemGetCudaDriverVersion, (int *))                                             \
	X(nvmlDeviceGetHandleByPciBusId_v2, (const char *, NVML_DEVICE *))                     \
	X(nvmlDeviceGetName, (NVML_DEVICE, char *, uint32_t))                                  \
	X(nvmlDeviceGetUUID, (NVML_DEVICE, char *, uint32_t))                                  \
	X(nvmlDeviceGetPciInfo_v3, (NVML_DEVICE, struct nvml_pci *))                           \
	X(nvmlDeviceGetCudaComputeCapability, (NVML_DEVICE, int *, int *))                     \
	X(nvmlDeviceGetPowerUsage, (NVML_DEVICE, uint32_t *))                                  \
	X(nvmlDeviceGetEnforcedPowerLimit, (NVML_DEVICE, uint32_t *))                          \
	X(nvmlDeviceGetPowerManagementDefaultLimit, (NVML_DEVICE, uint32_t *))                 \
	X(nvmlDeviceGetPowerManagementLimitConstraints, (NVML_DEVICE, uint32_t *, uint32_t *)) \
	X(nvmlDeviceGetTotalEnergyConsumption, (NVML_DEVICE, uint64_t *))                      \
	X(nvmlDeviceGetTemperatureV, (NVML_DEVICE, struct nvml_temperature *))                 \
	X(nvmlDeviceGetTemperature, (NVML_DEVICE, uint32_t, uint32_t *))                       \
	X(nvmlDeviceGetTemperatureThreshold, (NVML_DEVICE, uint32_t, uint32_t *))              \
	X(nvmlDeviceGetMarginTemperature, (NVML_DEVICE, struct nvml_margin *))                 \
	X(nvmlDeviceGetFanSpeed, (NVML_DEVICE, uint32_t *))                                    \
	X(nvmlDeviceGetUtilizationRates, (NVML_DEVICE, struct nvml_utilization *))             \
	X(nvmlDeviceGetEncoderUtilization, (NVML_DEVICE, uint32_t *, uint32_t *))              \
	X(nvmlDeviceGetDecoderUtilization, (NVML_DEVICE, uint32_t *, uint32_t *))              \
	X(nvmlDeviceGetJpgUtilization, (NVML_DEVICE, uint32_t *, uint32_t *))                  \
	X(nvmlDeviceGetOfaUtilization, (NVML_DEVICE, uint32_t *, uint32_t *))                  \
	X(nvmlDeviceGetClockInfo, (NVML_DEVICE, uint32_t, uint32_t *))                         \
	X(nvmlDeviceGetMaxClockInfo, (NVML_DEVICE, uint32_t, uint32_t *))                      \
	X(nvmlDeviceGetCurrentClocksEventReasons, (NVML_DEVICE, uint64_t *))                   \
	X(nvmlDeviceGetCurrentClocksThrottleReasons, (NVML_DEVICE, uint64_t *))                \
	X(nvmlDeviceGetPerformanceState, (NVML_DEVICE, uint32_t *))                            \
	X(nvmlDeviceGetMemoryInfo_v2, (NVML_DEVICE, struct nvml_memory_v2 *))                  \
	X(nvmlDeviceGetMemoryInfo, (NVML_DEVICE, struct nvml_memory *))                        \
	X(nvmlDeviceGetBAR1MemoryInfo, (NVML_DEVICE, struct nvml_memory *))                    \
	X(nvmlDeviceGetConfComputeProtectedMemoryUsage, (NVML_DEVICE, struct nvml_memory *))   \
	X(nvmlDeviceGetEccMode, (NVML_DEVICE, uint32_t *, uint32_t *))                         \
	X(nvmlDeviceGetTotalEccErrors, (NVML_DEVICE, uint32_t, uint32_t, uint64_t *))          \
	X(nvmlDeviceGetPcieReplayCounter, (NVML_DEVICE, uint32_t *))                           \
	X(nvmlDeviceGetCurrPcieLinkGeneration, (NVML_DEVICE, uint32_t *))                      \
	X(nvmlDeviceGetCurrPcieLinkWidth, (NVML_DEVICE, uint32_t *))                           \
	X(nvmlDeviceGetMaxPcieLinkGeneration, (NVML_DEVICE, uint32_t *))                       \
	X(nvmlDeviceGetMaxPcieLinkWidth, (NVML_DEVICE, uint32_t *))                            \
	X(nvmlDeviceGetPersistenceMode, (NVML_DEVICE, uint32_t *))                             \
	X(nvmlDeviceGetComputeMode, (NVML_DEVICE, uint32_t *))                                 \
	X(nvmlDeviceGetVirtualizationMode, (NVML_DEVICE, uint32_t *))                          \
	X(nvmlDeviceGetFieldValues, (NVML_DEVICE, int, struct nvml_field *))                   \
	X(nvmlDeviceGetViolationStatus, (NVML_DEVICE, uint32_t, struct nvml_violation *))      \
	X(nvmlDeviceGetSamples,                                                                \
	  (NVML_DEVICE, uint32_t, uint64_t, uint32_t *, uint32_t *, struct nvml_sample *))     \
	X(nvmlDeviceGetComputeRunningProcesses_v3, (NVML_DEVICE, uint32_t *, void *))          \
	X(nvmlDeviceGetComputeRunningProcesses_v2, (NVML_DEVICE, uint32_t *, void *))          \
	X(nvmlDeviceGetComputeRunningProcesses, (NVML_DEVICE, uint32_t *, void *))             \
	X(nvmlDeviceGetGraphicsRunningProcesses_v3, (NVML_DEVICE, uint32_t *, void *))         \
	X(nvmlDeviceGetGraphicsRunningProcesses_v2, (NVML_DEVICE, uint32_t *, void *))         \
	X(nvmlDeviceGetGraphicsRunningProcesses, (NVML_DEVICE, uint32_t *, void *))            \
	X(nvmlDeviceGetMPSComputeRunningProcesses_v3, (NVML_DEVICE, uint32_t *, void *))       \
	X(nvmlDeviceGetMPSComputeRunningProcesses_v2, (NVML_DEVICE, uint32_t *, void *))       \
	X(nvmlDeviceGetMPSComputeRunningProcesses, (NVML_DEVICE, uint32_t *, void *))          \
	X(nvmlDeviceGetProcessesUtilizationInfo, (NVML_DEVICE, struct nvml_process_uses *))    \
	X(nvmlDeviceGetProcessUtilization,                                                     \
	  (NVML_DEVICE, struct nvml_process_use *, uint32_t *, uint64_t))                      \
	X(nvmlDeviceGetMigMode, (NVML_DEVICE, uint32_t *, uint32_t *))                         \
	X(nvmlDeviceGetMaxMigDeviceCount, (NVML_DEVICE, uint32_t *))                           \
	X(nvmlDeviceGetMigDeviceHandleByIndex, (NVML_DEVICE, uint32_t, NVML_DEVICE *))         \
	X(nvmlDeviceGetGpuInstanceId, (NVML_DEVICE, uint32_t *))                               \
	X(nvmlDeviceGetComputeInstanceId, (NVML_DEVICE, uint32_t *))                           \
	X(nvmlGpmQueryDeviceSupport, (NVML_DEVICE, struct nvml_gpm_support *))                 \
	X(nvmlGpmSampleAlloc, (struct nvml_gpm_sample **))                                     \
	X(nvmlGpmSampleFree, (struct nvml_gpm_sample *))                                       \
	X(nvmlGpmSampleGet, (NVML_DEVICE, struct nvml_gpm_sample *))                           \
	X(nvmlGpmMigSampleGet, (NVML_DEVICE, uint32_t, struct nvml_gpm_sample *))              \
	X(nvmlGpmMetricsGet, (struct nvml_gpm_metrics *))                                      \
	X(nvmlDeviceGetPcieThroughput, (NVML_DEVICE, uint32_t, uint32_t *))                    \
	X(nvmlDeviceGetSupportedEventTypes, (NVML_DEVICE, uint64_t *))                         \
	X(nvmlDeviceRegisterEvents, (NVML_DEVICE, uint64_t, NVML_EVENTS))                      \
	X(nvmlEventSetCreate, (NVML_EVENTS *))                                                 \
	X(nvmlEventSetWait_v2, (NVML_EVENTS, struct nvml_event *, uint32_t))                   \
	X(nvmlEventSetWait, (NVML_EVENTS, struct nvml_event *, uint32_t))                      \
	X(nvmlEventSetFree, (NVML_EVENTS))

enum { NVML_CALLS_REQUIRED = 4 }; /* the first of the list */

enum nvml_call {
#define X(name, args) NVML_CALL_##name,
	NVML_CALLS(X)
#undef X
		NVML_CALL_COUNT
};
