/*
 * nvml_layout.h - our declarations of the management library against NVIDIA's,
 * where those are installed: it compiles or it does not.
 *
 *	cc -std=c17 -fsyntax-only -x c -I src -I /usr/local/cuda/include tests/fake/nvml_layout.h
 */
#pragma once

#include "collect/board.h"
#include "collect/nvml_abi.h"

#if __has_include(<nvml.h>)
#include <nvml.h>
#endif

/* Older headers lack some of this. */
#ifdef NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN
#define HAVE_NVML 1

#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define AT(ours, our_field, theirs, their_field)                                     \
	_Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
			       sizeof(((ours *)0)->our_field) ==                     \
				       sizeof(((theirs *)0)->their_field),           \
		       #theirs "." #their_field)

SIZE(struct nvml_pci, nvmlPciInfo_t);
AT(struct nvml_pci, domain, nvmlPciInfo_t, domain);
AT(struct nvml_pci, bus, nvmlPciInfo_t, bus);
AT(struct nvml_pci, device, nvmlPciInfo_t, device);
AT(struct nvml_pci, bus_id, nvmlPciInfo_t, busId);
SIZE(struct nvml_utilization, nvmlUtilization_t);
AT(struct nvml_utilization, memory, nvmlUtilization_t, memory);
SIZE(struct nvml_memory, nvmlMemory_t);
AT(struct nvml_memory, total, nvmlMemory_t, total);
AT(struct nvml_memory, free, nvmlMemory_t, free);
AT(struct nvml_memory, used, nvmlMemory_t, used);
SIZE(struct nvml_memory, nvmlBAR1Memory_t);
AT(struct nvml_memory, total, nvmlBAR1Memory_t, bar1Total);
AT(struct nvml_memory, used, nvmlBAR1Memory_t, bar1Used);
SIZE(struct nvml_memory_v2, nvmlMemory_v2_t);
AT(struct nvml_memory_v2, reserved, nvmlMemory_v2_t, reserved);
AT(struct nvml_memory_v2, free, nvmlMemory_v2_t, free);
AT(struct nvml_memory_v2, used, nvmlMemory_v2_t, used);
SIZE(struct nvml_temperature, nvmlTemperature_v1_t);
AT(struct nvml_temperature, celsius, nvmlTemperature_v1_t, temperature);
SIZE(struct nvml_margin, nvmlMarginTemperature_v1_t);
AT(struct nvml_margin, celsius, nvmlMarginTemperature_v1_t, marginTemperature);
SIZE(struct nvml_field, nvmlFieldValue_t);
AT(struct nvml_field, scope, nvmlFieldValue_t, scopeId);
AT(struct nvml_field, type, nvmlFieldValue_t, valueType);
AT(struct nvml_field, status, nvmlFieldValue_t, nvmlReturn);
AT(struct nvml_field, value, nvmlFieldValue_t, value);
SIZE(struct nvml_sample, nvmlSample_t);
AT(struct nvml_sample, value, nvmlSample_t, sampleValue);
SIZE(struct nvml_violation, nvmlViolationTime_t);
AT(struct nvml_violation, violation_ns, nvmlViolationTime_t, violationTime);
SIZE(struct nvml_process_v1, nvmlProcessInfo_v1_t);
SIZE(struct nvml_process, nvmlProcessInfo_t);
AT(struct nvml_process, used_bytes, nvmlProcessInfo_t, usedGpuMemory);
AT(struct nvml_process, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
AT(struct nvml_process, compute_instance, nvmlProcessInfo_t, computeInstanceId);
SIZE(struct nvml_process_use, nvmlProcessUtilizationSample_t);
AT(struct nvml_process_use, time_us, nvmlProcessUtilizationSample_t, timeStamp);
AT(struct nvml_process_use, sm, nvmlProcessUtilizationSample_t, smUtil);
AT(struct nvml_process_use, decoder, nvmlProcessUtilizationSample_t, decUtil);
SIZE(struct nvml_process_use_v1, nvmlProcessUtilizationInfo_v1_t);
AT(struct nvml_process_use_v1, pid, nvmlProcessUtilizationInfo_v1_t, pid);
AT(struct nvml_process_use_v1, optical_flow, nvmlProcessUtilizationInfo_v1_t, ofaUtil);
SIZE(struct nvml_process_uses, nvmlProcessesUtilizationInfo_v1_t);
AT(struct nvml_process_uses, count, nvmlProcessesUtilizationInfo_v1_t, processSamplesCount);
AT(struct nvml_process_uses, last_seen_us, nvmlProcessesUtilizationInfo_v1_t, lastSeenTimeStamp);
AT(struct nvml_process_uses, at, nvmlProcessesUtilizationInfo_v1_t, procUtilArray);
SIZE(struct nvml_gpm_metric, nvmlGpmMetric_t);
AT(struct nvml_gpm_metric, status, nvmlGpmMetric_t, nvmlReturn);
AT(struct nvml_gpm_metric, value, nvmlGpmMetric_t, value);
AT(struct nvml_gpm_metrics, count, nvmlGpmMetricsGet_t, numMetrics);
AT(struct nvml_gpm_metrics, before, nvmlGpmMetricsGet_t, sample1);
AT(struct nvml_gpm_metrics, after, nvmlGpmMetricsGet_t, sample2);
_Static_assert(offsetof(struct nvml_gpm_metrics, at) == offsetof(nvmlGpmMetricsGet_t, metrics),
	       "GPM metrics");
SIZE(struct nvml_gpm_support, nvmlGpmSupport_t);
SIZE(struct nvml_event, nvmlEventData_t);
AT(struct nvml_event, type, nvmlEventData_t, eventType);
AT(struct nvml_event, data, nvmlEventData_t, eventData);
AT(struct nvml_event, gpu_instance, nvmlEventData_t, gpuInstanceId);
AT(struct nvml_event, compute_instance, nvmlEventData_t, computeInstanceId);

_Static_assert(NVML_VERSION(struct nvml_memory_v2, 2) == nvmlMemory_v2, "version of memory");
_Static_assert(NVML_VERSION(struct nvml_temperature, 1) == nvmlTemperature_v1, "of temperature");
_Static_assert(NVML_VERSION(struct nvml_margin, 1) == nvmlMarginTemperature_v1, "of margin");
_Static_assert(NVML_VERSION(struct nvml_process_uses, 1) == nvmlProcessesUtilizationInfo_v1,
	       "of process use");
_Static_assert((int)NVML_LOST == (int)NVML_ERROR_GPU_IS_LOST &&
		       (int)NVML_MISMATCH == (int)NVML_ERROR_LIB_RM_VERSION_MISMATCH &&
		       (int)NVML_NO_FUNCTION == (int)NVML_ERROR_FUNCTION_NOT_FOUND &&
		       (int)NVML_TOO_SMALL == (int)NVML_ERROR_INSUFFICIENT_SIZE &&
		       (int)NVML_DEPRECATED == (int)NVML_ERROR_DEPRECATED,
	       "statuses");
_Static_assert(NVML_FI_DEV_PCIE_COUNT_TX_BYTES == 197 && NVML_FI_DEV_PCIE_COUNT_RX_BYTES == 198 &&
		       NVML_FI_DEV_PERF_POLICY_POWER == 74 && NVML_FI_DEV_MEMORY_TEMP == 82 &&
		       NVML_FI_DEV_POWER_INSTANT == 186 &&
		       NVML_FI_DEV_GET_GPU_RECOVERY_ACTION == 230 &&
		       NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN == 269,
	       "numbers of fields");
_Static_assert((int)EVENT_XID == nvmlEventTypeXidCriticalError &&
		       (int)EVENT_ECC_DOUBLE == nvmlEventTypeDoubleBitEccError,
	       "events");
#ifdef nvmlEventTypeGpuRecoveryAction
_Static_assert((int)EVENT_UNAVAILABLE == nvmlEventTypeGpuUnavailableError &&
		       (int)EVENT_RECOVERY == nvmlEventTypeGpuRecoveryAction,
	       "newer events");
#endif
#else
#define HAVE_NVML 0
#endif

/* What holds without the header: sizes that versions are made of. */
_Static_assert(sizeof(struct nvml_memory_v2) == 40 && sizeof(struct nvml_temperature) == 12 &&
		       sizeof(struct nvml_margin) == 8 && sizeof(struct nvml_field) == 40 &&
		       sizeof(struct nvml_process) == 24 &&
		       sizeof(struct nvml_process_uses) == 24 &&
		       sizeof(struct nvml_gpm_metric) == 40 && sizeof(struct nvml_pci) == 68 &&
		       sizeof(struct nvml_event) == 32,
	       "layouts");
