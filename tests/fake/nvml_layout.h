/*
 * nvml_layout.h - our declarations of the management library against NVIDIA's,
 * where those are installed: it compiles or it does not.
 *
 *	cc -std=c17 -fsyntax-only -x c -I src -I tests -I /usr/local/cuda/include
 *tests/fake/nvml_layout.h
 */
#pragma once

#include "collect/board.h"
#include "collect/nvml_abi.h"
#include "layout.h"

#if __has_include(<nvml.h>)
#include <nvml.h>
#endif

/* Older headers lack some of this. */
#ifdef NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN
#define HAVE_NVML 1

SAME_SIZE(struct nvml_pci, nvmlPciInfo_t);
SAME_FIELD(struct nvml_pci, domain, nvmlPciInfo_t, domain);
SAME_FIELD(struct nvml_pci, bus, nvmlPciInfo_t, bus);
SAME_FIELD(struct nvml_pci, device, nvmlPciInfo_t, device);
SAME_FIELD(struct nvml_pci, bus_id, nvmlPciInfo_t, busId);
SAME_SIZE(struct nvml_utilization, nvmlUtilization_t);
SAME_FIELD(struct nvml_utilization, memory, nvmlUtilization_t, memory);
SAME_SIZE(struct nvml_memory, nvmlMemory_t);
SAME_FIELD(struct nvml_memory, total, nvmlMemory_t, total);
SAME_FIELD(struct nvml_memory, free, nvmlMemory_t, free);
SAME_FIELD(struct nvml_memory, used, nvmlMemory_t, used);
SAME_SIZE(struct nvml_memory, nvmlBAR1Memory_t);
SAME_FIELD(struct nvml_memory, total, nvmlBAR1Memory_t, bar1Total);
SAME_FIELD(struct nvml_memory, used, nvmlBAR1Memory_t, bar1Used);
SAME_SIZE(struct nvml_memory_v2, nvmlMemory_v2_t);
SAME_FIELD(struct nvml_memory_v2, reserved, nvmlMemory_v2_t, reserved);
SAME_FIELD(struct nvml_memory_v2, free, nvmlMemory_v2_t, free);
SAME_FIELD(struct nvml_memory_v2, used, nvmlMemory_v2_t, used);
SAME_SIZE(struct nvml_temperature, nvmlTemperature_v1_t);
SAME_FIELD(struct nvml_temperature, celsius, nvmlTemperature_v1_t, temperature);
SAME_SIZE(struct nvml_margin, nvmlMarginTemperature_v1_t);
SAME_FIELD(struct nvml_margin, celsius, nvmlMarginTemperature_v1_t, marginTemperature);
SAME_SIZE(struct nvml_field, nvmlFieldValue_t);
SAME_FIELD(struct nvml_field, scope, nvmlFieldValue_t, scopeId);
SAME_FIELD(struct nvml_field, type, nvmlFieldValue_t, valueType);
SAME_FIELD(struct nvml_field, status, nvmlFieldValue_t, nvmlReturn);
SAME_FIELD(struct nvml_field, value, nvmlFieldValue_t, value);
SAME_SIZE(struct nvml_sample, nvmlSample_t);
SAME_FIELD(struct nvml_sample, value, nvmlSample_t, sampleValue);
SAME_SIZE(struct nvml_violation, nvmlViolationTime_t);
SAME_FIELD(struct nvml_violation, violation_ns, nvmlViolationTime_t, violationTime);
SAME_SIZE(struct nvml_process_v1, nvmlProcessInfo_v1_t);
SAME_SIZE(struct nvml_process, nvmlProcessInfo_t);
SAME_FIELD(struct nvml_process, used_bytes, nvmlProcessInfo_t, usedGpuMemory);
SAME_FIELD(struct nvml_process, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
SAME_FIELD(struct nvml_process, compute_instance, nvmlProcessInfo_t, computeInstanceId);
SAME_SIZE(struct nvml_process_use, nvmlProcessUtilizationSample_t);
SAME_FIELD(struct nvml_process_use, time_us, nvmlProcessUtilizationSample_t, timeStamp);
SAME_FIELD(struct nvml_process_use, sm, nvmlProcessUtilizationSample_t, smUtil);
SAME_FIELD(struct nvml_process_use, decoder, nvmlProcessUtilizationSample_t, decUtil);
SAME_SIZE(struct nvml_process_use_v1, nvmlProcessUtilizationInfo_v1_t);
SAME_FIELD(struct nvml_process_use_v1, pid, nvmlProcessUtilizationInfo_v1_t, pid);
SAME_FIELD(struct nvml_process_use_v1, optical_flow, nvmlProcessUtilizationInfo_v1_t, ofaUtil);
SAME_SIZE(struct nvml_process_uses, nvmlProcessesUtilizationInfo_v1_t);
SAME_FIELD(struct nvml_process_uses, count, nvmlProcessesUtilizationInfo_v1_t, processSamplesCount);
SAME_FIELD(struct nvml_process_uses, last_seen_us, nvmlProcessesUtilizationInfo_v1_t,
	   lastSeenTimeStamp);
SAME_FIELD(struct nvml_process_uses, at, nvmlProcessesUtilizationInfo_v1_t, procUtilArray);
SAME_SIZE(struct nvml_gpm_metric, nvmlGpmMetric_t);
SAME_FIELD(struct nvml_gpm_metric, status, nvmlGpmMetric_t, nvmlReturn);
SAME_FIELD(struct nvml_gpm_metric, value, nvmlGpmMetric_t, value);
SAME_FIELD(struct nvml_gpm_metrics, count, nvmlGpmMetricsGet_t, numMetrics);
SAME_FIELD(struct nvml_gpm_metrics, before, nvmlGpmMetricsGet_t, sample1);
SAME_FIELD(struct nvml_gpm_metrics, after, nvmlGpmMetricsGet_t, sample2);
SAME_PLACE(struct nvml_gpm_metrics, at, nvmlGpmMetricsGet_t, metrics);
SAME_SIZE(struct nvml_gpm_support, nvmlGpmSupport_t);
SAME_SIZE(struct nvml_event, nvmlEventData_t);
SAME_FIELD(struct nvml_event, type, nvmlEventData_t, eventType);
SAME_FIELD(struct nvml_event, data, nvmlEventData_t, eventData);
SAME_FIELD(struct nvml_event, gpu_instance, nvmlEventData_t, gpuInstanceId);
SAME_FIELD(struct nvml_event, compute_instance, nvmlEventData_t, computeInstanceId);

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
