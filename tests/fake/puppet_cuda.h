/*
 * puppet_cuda.h - puppets of NVIDIA's driver and of its tracing library.
 *
 * libcuda.so.1 (puppet_cuda.c) has the few functions that the host programs of
 * tests/inject call. Its cuInit loads CUDA_INJECTION64_PATH as the driver's does.
 * Work is done at once; kernels of a stream follow each other in time. A kernel called
 * "hangs" never ends, nor does what follows it on its stream: who waits for it waits on.
 * After one called "faults" all that waits fails. Neither has times: see below.
 *
 * libcupti.so.13 (puppet_cupti.c) is told by libcuda of what happens, and makes
 * records of it. PUPPET_CUPTI says how it behaves, words joined by ',':
 *
 *	version=N    what cuptiGetVersion gives; below 130000 it is a 12.x: a kernel's record is
 *	             shorter, and one buffer is for all threads; below 26 (12.8) others are, too
 *	no-worker    full buffers are handed over by whoever fills or flushes them, not by a
 *	             thread of CUPTI's own, which has a buffer for what that costs
 *	no-overhead  no records of what CUPTI's own work costs
 *	inner-numbers  the driver's calls inside the runtime's have numbers and records of their own
 *	subscribed   somebody else is subscribed already
 *	no-stamp     no timestamp callback: times are CLOCK_REALTIME
 *	hang-exit    a forced flush never returns once exit has begun
 *	register=N   cuptiActivityRegisterCallbacks fails with N
 *	queued=N     times of the queue are refused with N
 *	pc-enable=N, pc-data=N   these fail with N (35: no rights; 8: no memory)
 *	pc-good=N    the latter only after it gave samples of a context N times
 *	pc-full=N    after so many samples (at 2^20 cycles) of a context the hardware
 *	             buffer is full: GetData fails with 8
 *	pc-again=N   after it failed N times so, it has room again
 *	trace-cost=NS what each launch takes longer while kernels are recorded
 *	no-numbers   launches have none
 *
 * As CUPTI 13.0 on an H200: a kernel has its record from its launch on, in front of that of the
 * call. That of one that does not end is marked so, and its buffer is handed over by a forced
 * flush alone, the kernel then without times. One that fails takes the times of all
 * kernels that were not handed over.
 *
 * libcupti.so.12 in the folder `old` is the same without the functions that
 * sonde can do without. libcupti.so.13 in the folder `replay` plays what was recorded in a
 * program instead: replay_cupti.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum puppet_what {
	PUPPET_API,
	PUPPET_KERNEL,
	PUPPET_COPY,
	PUPPET_SET,
	PUPPET_MEMORY,
	PUPPET_CONTEXT,
	PUPPET_STREAM,
	PUPPET_MODULE,
	PUPPET_GRAPH, /* launched: behind its kernels */
};

/* Times: CLOCK_MONOTONIC. */
struct puppet_event {
	enum puppet_what what;
	uint32_t domain, cbid, correlation, thread; /* of a call: 1 driver, 2 runtime */
	uint32_t begin; /* of a call: entered; of a context, stream or module: made */
	bool inner;     /* a driver's call inside one of the runtime's, whose number it has */
	uint64_t start, end;
	uint32_t context_id, stream_id, module_id, device;
	void *context, *stream;
	const char *name;
	int32_t grid[3], block[3], shared;
	uint64_t bytes, address;
	uint64_t node; /* of a graph */
	uint32_t graph;
	int64_t grid_number; /* counts launches, recorded or not */
	uint8_t copy, from, to;
	const void *params; /* of a call: its parameters, a word each */
	int result;
};

typedef void puppet_tool(const struct puppet_event *event);
/* By libcupti; NULL: nobody listens any more. */
void puppet_attach(puppet_tool *tool);

/* X(cbid, name): calls that the puppet makes, with the numbers that CUPTI has. */
#define PUPPET_DRIVER_CALLS(X)      \
	X(1, cuInit)                \
	X(17, cuCtxSynchronize)     \
	X(27, cuModuleLoadData)     \
	X(30, cuModuleUnload)       \
	X(118, cuEventCreate)       \
	X(120, cuEventRecord)       \
	X(119, cuStreamCreate)      \
	X(124, cuStreamSynchronize) \
	X(127, cuStreamDestroy)     \
	X(243, cuMemAlloc_v2)       \
	X(245, cuMemFree_v2)        \
	X(249, cuMemsetD8_v2)       \
	X(276, cuMemcpyHtoD_v2)     \
	X(278, cuMemcpyDtoH_v2)     \
	X(307, cuLaunchKernel)      \
	X(295, cuStreamWaitEvent)   \
	X(311, cuProfilerStart)     \
	X(312, cuProfilerStop)      \
	X(325, cuEventDestroy_v2)   \
	X(497, cuStreamEndCapture)  \
	X(501, cuGraphCreate)       \
	X(514, cuGraphLaunch)       \
	X(516, cuGraphExecDestroy)  \
	X(517, cuGraphDestroy)      \
	X(643, cuGraphInstantiateWithFlags)

#define PUPPET_RUNTIME_CALLS(X)             \
	X(20, cudaMalloc_v3020)             \
	X(31, cudaMemcpy_v3020)             \
	X(133, cudaEventCreate_v3020)       \
	X(136, cudaEventDestroy_v3020)      \
	X(164, cudaDeviceReset_v3020)       \
	X(165, cudaDeviceSynchronize_v3020) \
	X(211, cudaLaunchKernel_v7000)

/* The driver's and the runtime's functions; results as theirs, 0 good. */
int cuInit(unsigned int flags);
int cuDeviceGetUuid(void *ret_uuid, int device);
int cuCtxCreate_v2(void **ret_context, unsigned int flags, int device);
/* Of the calling thread. */
int cuCtxSetCurrent(void *context);
int cuCtxDestroy_v2(void *context);
int cuCtxSynchronize(void);
int cuModuleLoadData(void **ret_module, const void *image);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **ret_function, void *module, const char *name);
int cuLaunchKernel(const void *function, unsigned int gx, unsigned int gy, unsigned int gz,
		   unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
		   void *stream, void **params, void **extra);
int cuMemAlloc_v2(uint64_t *ret_address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t bytes);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
int cuStreamCreate(void **ret_stream, unsigned int flags);
int cuStreamDestroy_v2(void *stream);
int cuStreamSynchronize(void *stream);
int cuProfilerStart(void);
int cuProfilerStop(void);
int cudaLaunchKernel(const void *function);
int cudaDeviceSynchronize(void);
int cudaMalloc(uint64_t *ret_address, size_t bytes);
/* They call the driver's inside, as the runtime's do. */
int cudaEventCreate(void **ret_event);
int cudaEventDestroy(void *event);
int cudaDeviceReset(void);
int cuEventCreate(void **ret_event, unsigned int flags);
int cuEventDestroy_v2(void *event);
int cuEventRecord(void *event, void *stream);
/* The stream goes on when what was on the event's stream is done. */
int cuStreamWaitEvent(void *stream, void *event, unsigned int flags);
/* A graph is some launches of one kernel, which a capture counts. */
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **ret_graph);
int cuGraphCreate(void **ret_graph, unsigned int flags);
int cuGraphInstantiateWithFlags(void **ret_exec, void *graph, unsigned long long flags);
int cuGraphLaunch(void *exec, void *stream);
int cuGraphExecDestroy(void *exec);
int cuGraphDestroy(void *graph);
