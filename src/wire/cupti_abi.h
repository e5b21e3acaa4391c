/*
 * cupti_abi.h - the little of CUPTI's binary interface that sonde uses, in
 * its own words. Layouts are checked against the real headers where these are
 * installed (tests/unit/test_cupti_abi.c).
 *
 * Records grow at their end from version to version; what is declared here is
 * the part that CUPTI 12.0 to 13.x share. Their full size is learned at run
 * time (segment.h, record_bytes). All records are packed and begin with their
 * kind; strides are multiples of 8.
 */
#pragma once

#include <stdint.h>

enum cupti_kind {
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_KERNEL = 3, /* serialised */
	CUPTI_KIND_DRIVER = 4,
	CUPTI_KIND_RUNTIME = 5,
	CUPTI_KIND_DEVICE = 8,
	CUPTI_KIND_CONTEXT = 9,
	CUPTI_KIND_CONCURRENT_KERNEL = 10,
	CUPTI_KIND_OVERHEAD = 17,
	CUPTI_KIND_MEMCPY2 = 22, /* peer to peer */
	CUPTI_KIND_UNIFIED_MEMORY = 25,
	CUPTI_KIND_MEMORY2 = 49,
	CUPTI_KIND_MEMORY_POOL = 50,
	CUPTI_KIND_GRAPH_TRACE = 51,
	CUPTI_KIND_JIT = 52,
};

/* In the kind of a record whose device work has not ended, in a buffer that CUPTI holds: all but
 * the times is there from the launch on, in front of the record of the call (13.0, H200). */
#define CUPTI_KIND_OPEN UINT32_C(0x80000000)

#define CUPTI_RECORD __attribute__((packed, aligned(8)))

struct CUPTI_RECORD cupti_kernel {
	uint32_t kind;
	uint8_t cache_config, shared_config;
	uint16_t registers;
	uint32_t partitioned_requested, partitioned_executed;
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared, dynamic_shared;
	uint32_t local_per_thread, local_total;
	uint32_t correlation;
	int64_t grid_id;
	uint64_t name; /* pointer; a text id once the buffer is READY */
	uint64_t reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout_requested, carveout, padding;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shmem_limit_config;
	uint32_t graph;
	uint64_t access_policy;
	uint32_t channel, channel_type;
	uint32_t cluster[3];
	uint32_t cluster_policy;
	uint64_t local_total_v2;
};

struct CUPTI_RECORD cupti_memcpy {
	uint32_t kind;
	uint8_t copy, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t correlation, runtime_correlation;
	uint32_t pad;
	uint64_t reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
	uint32_t channel_type;
};

struct CUPTI_RECORD cupti_memcpy_peer {
	uint32_t kind;
	uint8_t copy, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t from_device, from_context, to_device, to_context;
	uint32_t correlation;
	uint64_t reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
};

struct CUPTI_RECORD cupti_memset {
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory;
	uint32_t pad;
	uint64_t reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
};

struct CUPTI_RECORD cupti_api {
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t process, thread;
	uint32_t correlation, result;
};

struct CUPTI_RECORD cupti_overhead {
	uint32_t kind, overhead;
	uint32_t object_kind;
	uint32_t object[3]; /* process, thread; or device, context, stream */
	uint64_t start, end;
};

struct CUPTI_RECORD cupti_graph {
	uint32_t kind, correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
};

/* What `counter` of a record of unified memory says. */
enum cupti_unified_counter {
	CUPTI_UNIFIED_HTOD = 1, /* bytes moved: `value` of them */
	CUPTI_UNIFIED_DTOH = 2,
	CUPTI_UNIFIED_CPU_FAULT = 3,
	CUPTI_UNIFIED_GPU_FAULT = 4, /* `value` faults, served together */
	CUPTI_UNIFIED_THRASHING = 5,
	CUPTI_UNIFIED_THROTTLING = 6,
	CUPTI_UNIFIED_REMOTE_MAP = 7,
	CUPTI_UNIFIED_DTOD = 8,
	CUPTI_UNIFIED_COUNTERS,
};

struct CUPTI_RECORD cupti_unified {
	uint32_t kind, counter;
	uint64_t value, start, end, address;
	uint32_t from, to, stream, process, flags, pad;
};

struct CUPTI_RECORD cupti_memory {
	uint32_t kind, operation, memory, correlation;
	uint64_t address, bytes, time, pc;
	uint32_t process, device, context, stream;
	uint64_t name;
	uint32_t async, pad;
};

struct CUPTI_RECORD cupti_pool {
	uint32_t kind, operation, type, correlation, process, device;
	uint64_t least_kept;
	uint64_t address, bytes, threshold, time;
};

struct CUPTI_RECORD cupti_context {
	uint32_t kind, context, device;
	uint16_t api, null_stream;
};

struct CUPTI_RECORD cupti_jit {
	uint32_t kind, entry, operation, device;
	uint64_t start, end;
	uint32_t correlation, padding;
	uint64_t operation_correlation, cache_bytes;
	uint64_t cache_path;
	uint32_t process, thread; /* from CUPTI 12.4 on */
};

struct CUPTI_RECORD cupti_device {
	uint32_t kind, flags;
	uint64_t memory_bandwidth, memory_bytes;
	uint32_t constant_bytes, l2_bytes, warp_threads, clock_khz, copy_engines;
	uint32_t sms, max_ipc, warps_per_sm, blocks_per_sm, shared_per_sm, registers_per_sm;
	uint32_t registers_per_block, shared_per_block, threads_per_block;
	uint32_t block_dim[3], grid_dim[3];
	uint32_t cc_major, cc_minor, id, ecc;
	uint8_t uuid[16];
	uint64_t name; /* pointer; a text id once the buffer is READY */
	uint8_t visible, mig, reserved[6];
};

/* PC sampling: structures carry their size, so one binary serves several
 * versions; only the sample's record grew, with CUDA 12.4. */
struct CUPTI_RECORD cupti_pc_stall {
	uint32_t reason, samples;
};

struct CUPTI_RECORD cupti_pc {
	uint64_t size, cubin_crc, offset;
	uint32_t function_index, pad;
	char *function; /* CUPTI's, shared by the PCs of a function */
	uint64_t stall_count;
	struct cupti_pc_stall *stalls;
	uint32_t correlation; /* from CUDA 12.4 on */
};

struct CUPTI_RECORD cupti_pc_data {
	uint64_t size, room;
	uint64_t total, dropped, count, remaining, range;
	struct cupti_pc *at;
	uint64_t other_kernels;
	uint8_t hardware_full;
};

enum cupti_pc_attribute {
	CUPTI_PC_PERIOD = 1,
	CUPTI_PC_SCRATCH_BYTES = 3,
	CUPTI_PC_HARDWARE_BYTES = 4,
	CUPTI_PC_MODE = 5, /* 1 continuous */
	CUPTI_PC_START_STOP = 6,
	CUPTI_PC_FORMAT = 7, /* 1 parsed */
	CUPTI_PC_BUFFER = 8,
	CUPTI_PC_WORKER_SLEEP = 9,
};

struct cupti_pc_setting {
	uint32_t attribute, status;
	union {
		uint64_t room[3];
		uint32_t u32;
		uint64_t size;
		void *pointer;
	} value;
};

/* Enable, Disable, Start, Stop: the first three fields. */
struct cupti_pc_params {
	uint64_t size;
	void *priv;
	void *context;
	union {
		uint64_t count;   /* SetConfigurationAttribute, GetStallReasons */
		uint64_t *counts; /* GetNumStallReasons */
		void *data;       /* GetData */
	} u;
	union {
		struct cupti_pc_setting *settings;
		uint32_t *indices;
	} v;
	char **names;
};

struct cupti_crc_params {
	uint64_t size, cubin_bytes;
	const void *cubin;
	uint64_t crc;
};

/* Callbacks. */
enum {
	CUPTI_DOMAIN_DRIVER = 1,
	CUPTI_DOMAIN_RUNTIME = 2,
	CUPTI_DOMAIN_RESOURCE = 3,
	CUPTI_CONTEXT_CREATED = 1,
	CUPTI_CONTEXT_DESTROY = 2,
	CUPTI_STREAM_CREATED = 3,
	CUPTI_STREAM_DESTROY = 4,
	CUPTI_MODULE_LOADED = 6,
	CUPTI_MODULE_UNLOAD = 7,
	CUPTI_SITE_ENTER = 0,
	CUPTI_SITE_EXIT = 1,
};

struct cupti_resource {
	void *context;
	void *stream;
	void *descriptor;
};

struct cupti_module {
	uint32_t id;
	uint64_t bytes;
	const char *cubin;
};

struct cupti_callback {
	uint32_t site;
	const char *function;
	const void *params;
	void *result;
	const char *symbol;
	void *context;
	uint32_t context_id;
	uint64_t *data;
	uint32_t correlation;
};

enum {
	CUPTI_ATTR_DEVICE_BUFFER_SIZE = 0,
	CUPTI_ATTR_ZEROED_BUFFER = 5,
	CUPTI_ATTR_PER_THREAD_BUFFER = 9,
};

enum {
	CUPTI_RESULT_OUT_OF_MEMORY = 8,
	CUPTI_RESULT_MAX_LIMIT = 12,
	CUPTI_RESULT_HARDWARE_BUSY = 26,
	CUPTI_RESULT_PRIVILEGES = 35,
	CUPTI_RESULT_SUBSCRIBERS = 39,
	CUPTI_RESULT_UNKNOWN = 999,
};
