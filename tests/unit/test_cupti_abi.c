/*
 * Our declarations of CUPTI and NVTX against the real headers, where those are:
 * each field that sonde reads has the same place and size, and records of the
 * oldest version we know are no shorter than ours.
 */
#include <criterion/criterion.h>

#include "inject/nvtx.h"
#include "wire/segment.h"
#include "layout.h"
#include "wire/cupti_abi.h"

#if __has_include(<cupti_pcsampling.h>)
#include <cupti.h>
#include <cupti_pcsampling.h>

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 their_kernel;
typedef CUpti_ActivityMemcpy6 their_memcpy;
#else
typedef CUpti_ActivityKernel9 their_kernel;
typedef CUpti_ActivityMemcpy5 their_memcpy;
#endif

#define KERNEL(field, theirs)                                         \
	SAME_FIELD(struct cupti_kernel, field, their_kernel, theirs); \
	SAME_FIELD(struct cupti_kernel, field, CUpti_ActivityKernel9, theirs)
BEGINS(struct cupti_kernel, CUpti_ActivityKernel9);
KERNEL(kind, kind);
KERNEL(registers, registersPerThread);
KERNEL(start, start);
KERNEL(end, end);
KERNEL(device, deviceId);
KERNEL(context, contextId);
KERNEL(stream, streamId);
KERNEL(grid[0], gridX);
KERNEL(grid[2], gridZ);
KERNEL(block[0], blockX);
KERNEL(block[2], blockZ);
KERNEL(static_shared, staticSharedMemory);
KERNEL(dynamic_shared, dynamicSharedMemory);
KERNEL(correlation, correlationId);
KERNEL(name, name);
KERNEL(queued, queued);
KERNEL(submitted, submitted);
KERNEL(graph_node, graphNodeId);
KERNEL(graph, graphId);
KERNEL(cluster[0], clusterX);
KERNEL(cluster[2], clusterZ);

#define MEMCPY(field, theirs)                                         \
	SAME_FIELD(struct cupti_memcpy, field, their_memcpy, theirs); \
	SAME_FIELD(struct cupti_memcpy, field, CUpti_ActivityMemcpy5, theirs)
BEGINS(struct cupti_memcpy, CUpti_ActivityMemcpy5);
MEMCPY(copy, copyKind);
MEMCPY(from, srcKind);
MEMCPY(to, dstKind);
MEMCPY(bytes, bytes);
MEMCPY(start, start);
MEMCPY(end, end);
MEMCPY(device, deviceId);
MEMCPY(stream, streamId);
MEMCPY(correlation, correlationId);
MEMCPY(graph_node, graphNodeId);

BEGINS(struct cupti_memcpy_peer, CUpti_ActivityMemcpyPtoP4);
SAME_FIELD(struct cupti_memcpy_peer, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
SAME_FIELD(struct cupti_memcpy_peer, start, CUpti_ActivityMemcpyPtoP4, start);
SAME_FIELD(struct cupti_memcpy_peer, stream, CUpti_ActivityMemcpyPtoP4, streamId);
SAME_FIELD(struct cupti_memcpy_peer, from, CUpti_ActivityMemcpyPtoP4, srcKind);
SAME_FIELD(struct cupti_memcpy_peer, end, CUpti_ActivityMemcpyPtoP4, end);
SAME_FIELD(struct cupti_memcpy_peer, device, CUpti_ActivityMemcpyPtoP4, deviceId);
SAME_FIELD(struct cupti_memcpy_peer, context, CUpti_ActivityMemcpyPtoP4, contextId);
SAME_FIELD(struct cupti_memcpy_peer, from_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
SAME_FIELD(struct cupti_memcpy_peer, to_device, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
SAME_FIELD(struct cupti_memcpy_peer, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME_FIELD(struct cupti_memcpy_peer, graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);

BEGINS(struct cupti_memset, CUpti_ActivityMemset4);
SAME_FIELD(struct cupti_memset, bytes, CUpti_ActivityMemset4, bytes);
SAME_FIELD(struct cupti_memset, start, CUpti_ActivityMemset4, start);
SAME_FIELD(struct cupti_memset, end, CUpti_ActivityMemset4, end);
SAME_FIELD(struct cupti_memset, device, CUpti_ActivityMemset4, deviceId);
SAME_FIELD(struct cupti_memset, context, CUpti_ActivityMemset4, contextId);
SAME_FIELD(struct cupti_memset, stream, CUpti_ActivityMemset4, streamId);
SAME_FIELD(struct cupti_memset, correlation, CUpti_ActivityMemset4, correlationId);
SAME_FIELD(struct cupti_memset, memory, CUpti_ActivityMemset4, memoryKind);
SAME_FIELD(struct cupti_memset, graph_node, CUpti_ActivityMemset4, graphNodeId);

SAME_SIZE(struct cupti_api, CUpti_ActivityAPI);
SAME_FIELD(struct cupti_api, cbid, CUpti_ActivityAPI, cbid);
SAME_FIELD(struct cupti_api, start, CUpti_ActivityAPI, start);
SAME_FIELD(struct cupti_api, process, CUpti_ActivityAPI, processId);
SAME_FIELD(struct cupti_api, thread, CUpti_ActivityAPI, threadId);
SAME_FIELD(struct cupti_api, correlation, CUpti_ActivityAPI, correlationId);
SAME_FIELD(struct cupti_api, result, CUpti_ActivityAPI, returnValue);

BEGINS(struct cupti_overhead, CUpti_ActivityOverhead2);
SAME_SIZE(struct cupti_overhead, CUpti_ActivityOverhead); /* up to 12.1 */
SAME_FIELD(struct cupti_overhead, overhead, CUpti_ActivityOverhead2, overheadKind);
SAME_FIELD(struct cupti_overhead, object_kind, CUpti_ActivityOverhead2, objectKind);
SAME_FIELD(struct cupti_overhead, object, CUpti_ActivityOverhead2, objectId);
SAME_FIELD(struct cupti_overhead, start, CUpti_ActivityOverhead2, start);
SAME_FIELD(struct cupti_overhead, end, CUpti_ActivityOverhead2, end);

BEGINS(struct cupti_graph, CUpti_ActivityGraphTrace);
SAME_FIELD(struct cupti_graph, correlation, CUpti_ActivityGraphTrace, correlationId);
SAME_FIELD(struct cupti_graph, start, CUpti_ActivityGraphTrace, start);
SAME_FIELD(struct cupti_graph, device, CUpti_ActivityGraphTrace, deviceId);
SAME_FIELD(struct cupti_graph, graph, CUpti_ActivityGraphTrace, graphId);
SAME_FIELD(struct cupti_graph, stream, CUpti_ActivityGraphTrace, streamId);

BEGINS(struct cupti_unified, CUpti_ActivityUnifiedMemoryCounter2);
SAME_FIELD(struct cupti_unified, counter, CUpti_ActivityUnifiedMemoryCounter2, counterKind);
SAME_FIELD(struct cupti_unified, value, CUpti_ActivityUnifiedMemoryCounter2, value);
SAME_FIELD(struct cupti_unified, address, CUpti_ActivityUnifiedMemoryCounter2, address);
SAME_FIELD(struct cupti_unified, from, CUpti_ActivityUnifiedMemoryCounter2, srcId);
SAME_FIELD(struct cupti_unified, process, CUpti_ActivityUnifiedMemoryCounter2, processId);

SAME_FIELD(struct cupti_unified, start, CUpti_ActivityUnifiedMemoryCounter2, start);
SAME_FIELD(struct cupti_unified, to, CUpti_ActivityUnifiedMemoryCounter2, dstId);
SAME_FIELD(struct cupti_unified, flags, CUpti_ActivityUnifiedMemoryCounter2, flags);

BEGINS(struct cupti_pool, CUpti_ActivityMemoryPool2);
SAME_FIELD(struct cupti_pool, operation, CUpti_ActivityMemoryPool2, memoryPoolOperationType);
SAME_FIELD(struct cupti_pool, device, CUpti_ActivityMemoryPool2, deviceId);
SAME_FIELD(struct cupti_pool, address, CUpti_ActivityMemoryPool2, address);
SAME_FIELD(struct cupti_pool, bytes, CUpti_ActivityMemoryPool2, size);
SAME_FIELD(struct cupti_pool, time, CUpti_ActivityMemoryPool2, timestamp);

BEGINS(struct cupti_memory, CUpti_ActivityMemory3);
SAME_FIELD(struct cupti_memory, operation, CUpti_ActivityMemory3, memoryOperationType);
SAME_FIELD(struct cupti_memory, memory, CUpti_ActivityMemory3, memoryKind);
SAME_FIELD(struct cupti_memory, correlation, CUpti_ActivityMemory3, correlationId);
SAME_FIELD(struct cupti_memory, address, CUpti_ActivityMemory3, address);
SAME_FIELD(struct cupti_memory, bytes, CUpti_ActivityMemory3, bytes);
SAME_FIELD(struct cupti_memory, time, CUpti_ActivityMemory3, timestamp);
SAME_FIELD(struct cupti_memory, device, CUpti_ActivityMemory3, deviceId);
SAME_FIELD(struct cupti_memory, stream, CUpti_ActivityMemory3, streamId);

BEGINS(struct cupti_context, CUpti_ActivityContext);
SAME_FIELD(struct cupti_context, context, CUpti_ActivityContext, contextId);
SAME_FIELD(struct cupti_context, device, CUpti_ActivityContext, deviceId);

SAME_FIELD(struct cupti_jit, entry, CUpti_ActivityJit2, jitEntryType);
SAME_FIELD(struct cupti_jit, operation, CUpti_ActivityJit2, jitOperationType);
SAME_FIELD(struct cupti_jit, start, CUpti_ActivityJit2, start);
SAME_FIELD(struct cupti_jit, correlation, CUpti_ActivityJit2, correlationId);
SAME_FIELD(struct cupti_jit, thread, CUpti_ActivityJit2, threadId);
_Static_assert(offsetof(struct cupti_jit, process) == sizeof(CUpti_ActivityJit), "");
SAME_FIELD(struct cupti_jit, operation, CUpti_ActivityJit, jitOperationType);
SAME_FIELD(struct cupti_jit, start, CUpti_ActivityJit, start);
SAME_FIELD(struct cupti_jit, end, CUpti_ActivityJit, end);
SAME_FIELD(struct cupti_jit, correlation, CUpti_ActivityJit, correlationId);

#define DEVICE(field, theirs)                                                  \
	SAME_FIELD(struct cupti_device, field, CUpti_ActivityDevice5, theirs); \
	SAME_FIELD(struct cupti_device, field, CUpti_ActivityDevice4, theirs)
BEGINS(struct cupti_device, CUpti_ActivityDevice4);
DEVICE(memory_bytes, globalMemorySize);
DEVICE(warp_threads, numThreadsPerWarp);
DEVICE(sms, numMultiprocessors);
DEVICE(warps_per_sm, maxWarpsPerMultiprocessor);
DEVICE(shared_per_sm, maxSharedMemoryPerMultiprocessor);
DEVICE(registers_per_sm, maxRegistersPerMultiprocessor);
DEVICE(cc_major, computeCapabilityMajor);
DEVICE(id, id);
DEVICE(uuid, uuid);
DEVICE(name, name);
DEVICE(visible, isCudaVisible);

SAME_SIZE(struct cupti_pc_stall, CUpti_PCSamplingStallReason);
SAME_FIELD(struct cupti_pc_stall, samples, CUpti_PCSamplingStallReason, samples);
SAME_FIELD(struct cupti_pc, cubin_crc, CUpti_PCSamplingPCData, cubinCrc);
SAME_FIELD(struct cupti_pc, offset, CUpti_PCSamplingPCData, pcOffset);
SAME_FIELD(struct cupti_pc, function, CUpti_PCSamplingPCData, functionName);
SAME_FIELD(struct cupti_pc, stall_count, CUpti_PCSamplingPCData, stallReasonCount);
SAME_FIELD(struct cupti_pc, stalls, CUpti_PCSamplingPCData, stallReason);
SAME_FIELD(struct cupti_pc_data, room, CUpti_PCSamplingData, collectNumPcs);
SAME_FIELD(struct cupti_pc_data, total, CUpti_PCSamplingData, totalSamples);
SAME_FIELD(struct cupti_pc_data, dropped, CUpti_PCSamplingData, droppedSamples);
SAME_FIELD(struct cupti_pc_data, count, CUpti_PCSamplingData, totalNumPcs);
SAME_FIELD(struct cupti_pc_data, remaining, CUpti_PCSamplingData, remainingNumPcs);
SAME_FIELD(struct cupti_pc_data, at, CUpti_PCSamplingData, pPcData);
SAME_FIELD(struct cupti_pc_data, other_kernels, CUpti_PCSamplingData, nonUsrKernelsTotalSamples);
SAME_SIZE(struct cupti_pc_setting, CUpti_PCSamplingConfigurationInfo);
_Static_assert(offsetof(struct cupti_pc_params, u) == CUpti_PCSamplingEnableParamsSize, "");
_Static_assert(offsetof(struct cupti_pc_params, v) == CUpti_PCSamplingGetDataParamsSize, "");
_Static_assert(offsetof(struct cupti_pc_params, v) == CUpti_PCSamplingGetNumStallReasonsParamsSize,
	       "");
_Static_assert(offsetof(struct cupti_pc_params, names) ==
		       CUpti_PCSamplingConfigurationInfoParamsSize,
	       "");
_Static_assert(sizeof(struct cupti_pc_params) == CUpti_PCSamplingGetStallReasonsParamsSize, "");
_Static_assert(sizeof(struct cupti_crc_params) == CUpti_GetCubinCrcParamsSize, "");

SAME_FIELD(struct cupti_resource, context, CUpti_ResourceData, context);
SAME_FIELD(struct cupti_resource, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME_FIELD(struct cupti_module, bytes, CUpti_ModuleResourceData, cubinSize);
SAME_FIELD(struct cupti_module, cubin, CUpti_ModuleResourceData, pCubin);
SAME_FIELD(struct cupti_callback, site, CUpti_CallbackData, callbackSite);
SAME_FIELD(struct cupti_callback, context_id, CUpti_CallbackData, contextUid);
SAME_FIELD(struct cupti_callback, correlation, CUpti_CallbackData, correlationId);

/* CUPTI writes the newest version of a record that it knows, and GetNextRecord steps over the
 * rest: what is read of the oldest lies in the same place in the newest, of CUDA 13.0. */
#if CUPTI_API_VERSION >= 130000
#define UNIFIED(field, theirs) \
	SAME_FIELD(struct cupti_unified, field, CUpti_ActivityUnifiedMemoryCounter3, theirs)
UNIFIED(counter, counterKind);
UNIFIED(value, value);
UNIFIED(start, start);
UNIFIED(end, end);
UNIFIED(address, address);
UNIFIED(from, srcId);
UNIFIED(to, dstId);
UNIFIED(process, processId);
UNIFIED(flags, flags);
#define MEMORY(field, theirs) SAME_FIELD(struct cupti_memory, field, CUpti_ActivityMemory4, theirs)
MEMORY(operation, memoryOperationType);
MEMORY(memory, memoryKind);
MEMORY(correlation, correlationId);
MEMORY(address, address);
MEMORY(bytes, bytes);
MEMORY(time, timestamp);
MEMORY(device, deviceId);
MEMORY(stream, streamId);
#define POOL(field, theirs) SAME_FIELD(struct cupti_pool, field, CUpti_ActivityMemoryPool3, theirs)
POOL(operation, memoryPoolOperationType);
POOL(type, memoryPoolType);
POOL(device, deviceId);
POOL(address, address);
POOL(bytes, size);
POOL(threshold, releaseThreshold);
POOL(time, timestamp);
#define OVERHEAD(field, theirs) \
	SAME_FIELD(struct cupti_overhead, field, CUpti_ActivityOverhead3, theirs)
OVERHEAD(overhead, overheadKind);
OVERHEAD(object_kind, objectKind);
OVERHEAD(object, objectId);
OVERHEAD(start, start);
OVERHEAD(end, end);
#define GRAPH(field, theirs) \
	SAME_FIELD(struct cupti_graph, field, CUpti_ActivityGraphTrace2, theirs)
GRAPH(correlation, correlationId);
GRAPH(start, start);
GRAPH(end, end);
GRAPH(device, deviceId);
GRAPH(graph, graphId);
GRAPH(context, contextId);
GRAPH(stream, streamId);
SAME_FIELD(struct cupti_context, context, CUpti_ActivityContext3, contextId);
SAME_FIELD(struct cupti_context, device, CUpti_ActivityContext3, deviceId);
#endif

/* The sizes of spool_records.c, by which a process that died young is read. */
#define TAKES(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
TAKES(CUpti_ActivityKernel9, 208);
TAKES(CUpti_ActivityMemcpy5, 88);
TAKES(CUpti_ActivityMemcpyPtoP4, 96);
TAKES(CUpti_ActivityMemset4, 88);
TAKES(CUpti_ActivityMemory3, 120);
TAKES(CUpti_ActivityMemoryPool2, 72);
TAKES(CUpti_ActivityUnifiedMemoryCounter2, 64);
TAKES(CUpti_ActivityOverhead2, 48);
TAKES(CUpti_ActivityGraphTrace, 48);
TAKES(CUpti_ActivityContext, 16);
TAKES(CUpti_ActivityDevice4, 176);
TAKES(CUpti_ActivityDevice5, 184);
TAKES(CUpti_ActivityJit, 64);
TAKES(CUpti_ActivityJit2, 72);
TAKES(CUpti_ActivityAPI, 40);
#if CUPTI_API_VERSION >= 130000
TAKES(CUpti_ActivityKernel10, 216);
TAKES(CUpti_ActivityMemcpy6, 96);
TAKES(CUpti_ActivityMemory4, 128);
TAKES(CUpti_ActivityMemoryPool3, 80);
TAKES(CUpti_ActivityUnifiedMemoryCounter3, 104);
TAKES(CUpti_ActivityOverhead, 40);
TAKES(CUpti_ActivityOverhead3, 56);
TAKES(CUpti_ActivityGraphTrace2, 56);
TAKES(CUpti_ActivityContext2, 24);
TAKES(CUpti_ActivityContext3, 32);
#endif

/* inject/activity.c has it on its stack. */
struct config {
	uint32_t scope, counter, device, enable;
};
SAME_SIZE(struct config, CUpti_ActivityUnifiedMemoryCounterConfig);
SAME_FIELD(struct config, counter, CUpti_ActivityUnifiedMemoryCounterConfig, kind);
SAME_FIELD(struct config, device, CUpti_ActivityUnifiedMemoryCounterConfig, deviceId);
SAME_FIELD(struct config, enable, CUpti_ActivityUnifiedMemoryCounterConfig, enable);

SAME_FIELD(struct cupti_resource, stream, CUpti_ResourceData, resourceHandle.stream);
SAME_FIELD(struct cupti_module, id, CUpti_ModuleResourceData, moduleId);
SAME_FIELD(struct cupti_callback, params, CUpti_CallbackData, functionParams);
SAME_FIELD(struct cupti_callback, result, CUpti_CallbackData, functionReturnValue);
SAME_FIELD(struct cupti_callback, context, CUpti_CallbackData, context);

#define NUMBER(ours, theirs) cr_assert_eq((int)(ours), (int)(theirs), #ours)

Test(cupti_abi, numbers_are_those_of_the_real_header)
{
	NUMBER(CUPTI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
	NUMBER(CUPTI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
	NUMBER(CUPTI_KIND_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
	NUMBER(CUPTI_KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
	NUMBER(CUPTI_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
	NUMBER(CUPTI_KIND_DEVICE, CUPTI_ACTIVITY_KIND_DEVICE);
	NUMBER(CUPTI_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_CONTEXT);
	NUMBER(CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	NUMBER(CUPTI_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
	NUMBER(CUPTI_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
	NUMBER(CUPTI_KIND_UNIFIED_MEMORY, CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
	NUMBER(CUPTI_UNIFIED_HTOD, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD);
	NUMBER(CUPTI_UNIFIED_DTOH, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH);
	NUMBER(CUPTI_UNIFIED_CPU_FAULT,
	       CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT);
	NUMBER(CUPTI_UNIFIED_GPU_FAULT, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT);
	NUMBER(CUPTI_UNIFIED_THRASHING, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING);
	NUMBER(CUPTI_UNIFIED_THROTTLING, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING);
	NUMBER(CUPTI_UNIFIED_REMOTE_MAP, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP);
	NUMBER(CUPTI_UNIFIED_DTOD, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD);
	NUMBER(CUPTI_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY2);
	NUMBER(CUPTI_KIND_MEMORY_POOL, CUPTI_ACTIVITY_KIND_MEMORY_POOL);
	NUMBER(CUPTI_KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
	NUMBER(CUPTI_KIND_JIT, CUPTI_ACTIVITY_KIND_JIT);
	NUMBER(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
	NUMBER(CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
	NUMBER(CUPTI_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
	NUMBER(CUPTI_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
	NUMBER(CUPTI_CONTEXT_DESTROY, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
	NUMBER(CUPTI_STREAM_CREATED, CUPTI_CBID_RESOURCE_STREAM_CREATED);
	NUMBER(CUPTI_STREAM_DESTROY, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING);
	NUMBER(CUPTI_MODULE_LOADED, CUPTI_CBID_RESOURCE_MODULE_LOADED);
	NUMBER(CUPTI_MODULE_UNLOAD, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
	NUMBER(CUPTI_SITE_ENTER, CUPTI_API_ENTER);
	NUMBER(CUPTI_SITE_EXIT, CUPTI_API_EXIT);
	NUMBER(CUPTI_ATTR_DEVICE_BUFFER_SIZE, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
	NUMBER(CUPTI_ATTR_ZEROED_BUFFER, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
	NUMBER(CUPTI_ATTR_PER_THREAD_BUFFER, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
	NUMBER(CUPTI_RESULT_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
	NUMBER(CUPTI_RESULT_MAX_LIMIT, CUPTI_ERROR_MAX_LIMIT_REACHED);
	NUMBER(CUPTI_RESULT_HARDWARE_BUSY, CUPTI_ERROR_HARDWARE_BUSY);
	NUMBER(CUPTI_RESULT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
	NUMBER(CUPTI_RESULT_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	NUMBER(CUPTI_PC_PERIOD, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD);
	NUMBER(CUPTI_PC_SCRATCH_BYTES,
	       CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE);
	NUMBER(CUPTI_PC_HARDWARE_BYTES,
	       CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE);
	NUMBER(CUPTI_PC_MODE, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE);
	NUMBER(CUPTI_PC_FORMAT, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT);
	NUMBER(CUPTI_PC_BUFFER, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);
}
#endif

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

#define NVTX(field, theirs) SAME_FIELD(struct nvtx_event, field, nvtxEventAttributes_t, theirs)
SAME_SIZE(struct nvtx_event, nvtxEventAttributes_t);
NVTX(version, version);
NVTX(size, size);
NVTX(category, category);
NVTX(color_type, colorType);
NVTX(color, color);
NVTX(payload_type, payloadType);
NVTX(payload, payload);
NVTX(message_type, messageType);
NVTX(message, message);
SAME_SIZE(struct nvtx_callbacks, NvtxExportTableCallbacks);
SAME_FIELD(struct nvtx_callbacks, function_table, NvtxExportTableCallbacks, GetModuleFunctionTable);

#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExtPayload.h>

SAME_SIZE(struct nvtx_extension, nvtxExtModuleInfo_t);
SAME_FIELD(struct nvtx_extension, module, nvtxExtModuleInfo_t, moduleId);
SAME_FIELD(struct nvtx_extension, segments, nvtxExtModuleInfo_t, segments);
SAME_SIZE(struct nvtx_extension_segment, nvtxExtModuleSegment_t);
SAME_FIELD(struct nvtx_extension_segment, functions, nvtxExtModuleSegment_t, functionSlots);
SAME_SIZE(struct nvtx_payload, nvtxPayloadData_t);
SAME_FIELD(struct nvtx_payload, bytes, nvtxPayloadData_t, size);
SAME_FIELD(struct nvtx_payload, at, nvtxPayloadData_t, payload);
SAME_SIZE(struct nvtx_schema_entry, nvtxPayloadSchemaEntry_t);
SAME_FIELD(struct nvtx_schema_entry, type, nvtxPayloadSchemaEntry_t, type);
SAME_FIELD(struct nvtx_schema_entry, detail, nvtxPayloadSchemaEntry_t, arrayOrUnionDetail);
SAME_FIELD(struct nvtx_schema_entry, offset, nvtxPayloadSchemaEntry_t, offset);
SAME_SIZE(struct nvtx_schema, nvtxPayloadSchemaAttr_t);
SAME_FIELD(struct nvtx_schema, entries, nvtxPayloadSchemaAttr_t, entries);
SAME_FIELD(struct nvtx_schema, count, nvtxPayloadSchemaAttr_t, numEntries);
SAME_FIELD(struct nvtx_schema, id, nvtxPayloadSchemaAttr_t, schemaId);
SAME_SIZE(struct nvtx_enum, nvtxPayloadEnumAttr_t);
SAME_FIELD(struct nvtx_enum, id, nvtxPayloadEnumAttr_t, schemaId);

#define EXTENSION_SLOT(index, name) cr_assert_eq(index, NVTX3EXT_CBID_nvtx##name);

Test(nvtx_abi, numbers_of_the_payload_extension_are_those_of_the_real_header)
{
	cr_assert_eq(NVTX_MODULE_PAYLOAD, NVTX_EXT_PAYLOAD_MODULEID);
	cr_assert_eq(NVTX_ENTRY_MESSAGE, NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE);
	cr_assert_eq(NVTX_ENTRY_CSTRING, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING);
	cr_assert_eq(NVTX_ENTRY_UTF8, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8);
	cr_assert_eq(NVTX_ENTRY_HANDLE, NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE);
	cr_assert_eq(NVTX_SCHEMA_ENTRIES, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES);
	cr_assert_eq(NVTX_SCHEMA_COUNT, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES);
	cr_assert_eq(NVTX_SCHEMA_ID, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID);
	cr_assert_eq(NVTX_ENUM_ID, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID);
	NVTX_PAYLOAD_LIST(EXTENSION_SLOT)
}
#endif

Test(nvtx_abi, numbers_are_those_of_the_real_header)
{
	cr_assert_eq(NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
	cr_assert_eq(NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
	cr_assert_eq(NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
	cr_assert_eq(PAYLOAD_NONE, NVTX_PAYLOAD_UNKNOWN);
	cr_assert_eq(PAYLOAD_U64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
	cr_assert_eq(PAYLOAD_I64, NVTX_PAYLOAD_TYPE_INT64);
	cr_assert_eq(PAYLOAD_F64, NVTX_PAYLOAD_TYPE_DOUBLE);
	cr_assert_eq(PAYLOAD_U32, NVTX_PAYLOAD_TYPE_UNSIGNED_INT32);
	cr_assert_eq(PAYLOAD_I32, NVTX_PAYLOAD_TYPE_INT32);
	cr_assert_eq(PAYLOAD_F32, NVTX_PAYLOAD_TYPE_FLOAT);
#define X(index, name) cr_assert_eq((index), NVTX_CBID_CORE_##name, #name);
	NVTX_CORE_LIST(X)
#undef X
#define X(index, name) cr_assert_eq((index), NVTX_CBID_CORE2_##name, #name);
	NVTX_CORE2_LIST(X)
#undef X
}
#endif

Test(cupti_abi, declares_whole_records)
{
	cr_assert_eq(sizeof(struct cupti_api) % 8, 0);
	cr_assert_eq(sizeof(struct nvtx_event), 48);
}
