/*
 * nvml_spec.h - how the arguments of NVIDIA's management library lie in memory,
 * as far as the puppet and the recorder need to know.
 *
 * A spec is a list of words, one for each argument (`s` takes two):
 *
 *	d  device            D  where a device goes      u  number of 32 bits
 *	U  number of 64 bits t  text                     s  text buffer and its length
 *	g  GPM sample or event set   G  where one goes   c  count, in and out
 *	F  fields (after u)  A  rows (size follows)      P  process uses, new form
 *	M  GPM request       I  PCI information          E  event
 *	>... what comes out, =... what goes in and out: w 32 bits, q 64 bits,
 *	     v version word (left as it is), _ padding of 4 bytes
 */
#pragma once

#include <stddef.h>
#include <string.h>

#define NVML_SPECS(X)                                              \
	X(nvmlInit_v2, "")                                         \
	X(nvmlInitWithFlags, "u")                                  \
	X(nvmlShutdown, "")                                        \
	X(nvmlDeviceGetCount_v2, ">w")                             \
	X(nvmlDeviceGetHandleByIndex_v2, "u D")                    \
	X(nvmlDeviceGetHandleByPciBusId_v2, "t D")                 \
	X(nvmlDeviceGetHandleByUUID, "t D")                        \
	X(nvmlSystemGetDriverVersion, "s")                         \
	X(nvmlSystemGetNVMLVersion, "s")                           \
	X(nvmlSystemGetCudaDriverVersion_v2, ">w")                 \
	X(nvmlSystemGetCudaDriverVersion, ">w")                    \
	X(nvmlDeviceGetIndex, "d >w")                              \
	X(nvmlDeviceGetMinorNumber, "d >w")                        \
	X(nvmlDeviceGetName, "d s")                                \
	X(nvmlDeviceGetUUID, "d s")                                \
	X(nvmlDeviceGetSerial, "d s")                              \
	X(nvmlDeviceGetPciInfo_v3, "d I")                          \
	X(nvmlDeviceGetCudaComputeCapability, "d >w >w")           \
	X(nvmlDeviceGetPowerUsage, "d >w")                         \
	X(nvmlDeviceGetEnforcedPowerLimit, "d >w")                 \
	X(nvmlDeviceGetPowerManagementDefaultLimit, "d >w")        \
	X(nvmlDeviceGetPowerManagementLimitConstraints, "d >w >w") \
	X(nvmlDeviceGetTotalEnergyConsumption, "d >q")             \
	X(nvmlDeviceGetTemperatureV, "d =vww")                     \
	X(nvmlDeviceGetTemperature, "d u >w")                      \
	X(nvmlDeviceGetTemperatureThreshold, "d u >w")             \
	X(nvmlDeviceGetMarginTemperature, "d =vw")                 \
	X(nvmlDeviceGetFanSpeed, "d >w")                           \
	X(nvmlDeviceGetUtilizationRates, "d >ww")                  \
	X(nvmlDeviceGetEncoderUtilization, "d >w >w")              \
	X(nvmlDeviceGetDecoderUtilization, "d >w >w")              \
	X(nvmlDeviceGetJpgUtilization, "d >w >w")                  \
	X(nvmlDeviceGetOfaUtilization, "d >w >w")                  \
	X(nvmlDeviceGetClockInfo, "d u >w")                        \
	X(nvmlDeviceGetMaxClockInfo, "d u >w")                     \
	X(nvmlDeviceGetCurrentClocksEventReasons, "d >q")          \
	X(nvmlDeviceGetCurrentClocksThrottleReasons, "d >q")       \
	X(nvmlDeviceGetPerformanceState, "d >w")                   \
	X(nvmlDeviceGetMemoryInfo_v2, "d =v_qqqq")                 \
	X(nvmlDeviceGetMemoryInfo, "d >qqq")                       \
	X(nvmlDeviceGetBAR1MemoryInfo, "d >qqq")                   \
	X(nvmlDeviceGetConfComputeProtectedMemoryUsage, "d >qqq")  \
	X(nvmlDeviceGetEccMode, "d >w >w")                         \
	X(nvmlDeviceGetTotalEccErrors, "d u u >q")                 \
	X(nvmlDeviceGetPcieReplayCounter, "d >w")                  \
	X(nvmlDeviceGetPcieThroughput, "d u >w")                   \
	X(nvmlDeviceGetCurrPcieLinkGeneration, "d >w")             \
	X(nvmlDeviceGetCurrPcieLinkWidth, "d >w")                  \
	X(nvmlDeviceGetMaxPcieLinkGeneration, "d >w")              \
	X(nvmlDeviceGetMaxPcieLinkWidth, "d >w")                   \
	X(nvmlDeviceGetPersistenceMode, "d >w")                    \
	X(nvmlDeviceGetComputeMode, "d >w")                        \
	X(nvmlDeviceGetVirtualizationMode, "d >w")                 \
	X(nvmlDeviceGetFieldValues, "d u F")                       \
	X(nvmlDeviceGetViolationStatus, "d u >qq")                 \
	X(nvmlDeviceGetSamples, "d u U >w c A16")                  \
	X(nvmlDeviceGetComputeRunningProcesses_v3, "d c A24")      \
	X(nvmlDeviceGetComputeRunningProcesses_v2, "d c A24")      \
	X(nvmlDeviceGetComputeRunningProcesses, "d c A16")         \
	X(nvmlDeviceGetGraphicsRunningProcesses_v3, "d c A24")     \
	X(nvmlDeviceGetGraphicsRunningProcesses_v2, "d c A24")     \
	X(nvmlDeviceGetGraphicsRunningProcesses, "d c A16")        \
	X(nvmlDeviceGetMPSComputeRunningProcesses_v3, "d c A24")   \
	X(nvmlDeviceGetMPSComputeRunningProcesses_v2, "d c A24")   \
	X(nvmlDeviceGetMPSComputeRunningProcesses, "d c A16")      \
	X(nvmlDeviceGetProcessesUtilizationInfo, "d P")            \
	X(nvmlDeviceGetProcessUtilization, "d A32 c U")            \
	X(nvmlDeviceGetMigMode, "d >w >w")                         \
	X(nvmlDeviceGetMaxMigDeviceCount, "d >w")                  \
	X(nvmlDeviceGetMigDeviceHandleByIndex, "d u D")            \
	X(nvmlDeviceGetGpuInstanceId, "d >w")                      \
	X(nvmlDeviceGetComputeInstanceId, "d >w")                  \
	X(nvmlGpmQueryDeviceSupport, "d =vw")                      \
	X(nvmlGpmSampleAlloc, "G")                                 \
	X(nvmlGpmSampleFree, "g")                                  \
	X(nvmlGpmSampleGet, "d g")                                 \
	X(nvmlGpmMigSampleGet, "d u g")                            \
	X(nvmlGpmMetricsGet, "M")                                  \
	X(nvmlDeviceGetSupportedEventTypes, "d >q")                \
	X(nvmlDeviceRegisterEvents, "d U g")                       \
	X(nvmlEventSetCreate, "G")                                 \
	X(nvmlEventSetWait_v2, "g E u")                            \
	X(nvmlEventSetFree, "g")

enum spec_call {
#define X(name, spec) SPEC_##name,
	NVML_SPECS(X)
#undef X
		SPEC_COUNT
};

enum { SPEC_ARGS = 6 };

/* Bytes of a >... or =... word. */
static inline size_t spec_bytes(const char *word)
{
	size_t bytes = 0;

	for (word++; *word && *word != ' '; word++)
		bytes += *word == 'q' ? 8 : 4;
	return bytes;
}

/* The next word of a spec; NULL at its end. */
static inline const char *spec_next(const char *word)
{
	const char *blank = strchr(word, ' ');

	return blank ? blank + 1 : NULL;
}
