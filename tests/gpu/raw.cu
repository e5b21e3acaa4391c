/*
 * A program for run_raw.sh: one after another, few times, what sonde has seen on puppets
 * only. Each part begins with a line on stdout.
 */
#include <cstdio>

#include <cuda.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#define CHECK(call)                                                                                    \
	do {                                                                                           \
		cudaError_t error = (call);                                                            \
		if (error != cudaSuccess)                                                              \
			printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error));          \
	} while (0)
#define DRIVER(call)                                                                                   \
	do {                                                                                           \
		CUresult error = (call);                                                               \
		if (error != CUDA_SUCCESS)                                                             \
			printf("%s:%d: driver %d\n", __FILE__, __LINE__, (int)error);                  \
	} while (0)

__global__ void add_one(float *x, size_t n)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
		x[i] += 1;
}

static int prefetch(float *x, size_t bytes)
{
#if CUDART_VERSION >= 13000
	cudaMemLocation to = { cudaMemLocationTypeDevice, 0 };

	return cudaMemPrefetchAsync(x, bytes, to, 0, 0);
#else
	return cudaMemPrefetchAsync(x, bytes, 0, 0);
#endif
}

static void managed()
{
	size_t n = 2 << 20; /* 8 MiB */
	float *x = NULL;

	puts("managed");
	CHECK(cudaMallocManaged(&x, n * 4));
	for (int turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < n; i++)
			x[i] = 1;
		if (turn && prefetch(x, n * 4))
			puts("no prefetch");
		add_one<<<64, 256>>>(x, n);
		CHECK(cudaDeviceSynchronize());
	}
	printf("sum %.0f\n", (double)x[0] + x[n - 1]);
	CHECK(cudaFree(x));
}

/* By the runtime, by the driver, from a pool. */
static void memory()
{
	cudaMemPoolProps props = {};
	cudaMemPool_t pool;
	cudaStream_t stream;
	CUdeviceptr block = 0;
	void *at = NULL;

	puts("memory");
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&at, 3 << 20));
	CHECK(cudaFree(at));
	DRIVER(cuMemAlloc(&block, 5 << 20));
	DRIVER(cuMemFree(block));
	CHECK(cudaMallocHost(&at, 1 << 20));
	CHECK(cudaFreeHost(at));
	CHECK(cudaMallocAsync(&at, 7 << 20, stream));
	CHECK(cudaFreeAsync(at, stream));
	DRIVER(cuMemAllocAsync(&block, 9 << 20, stream));
	DRIVER(cuMemFreeAsync(block, stream));
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	CHECK(cudaMemPoolCreate(&pool, &props));
	CHECK(cudaMallocFromPoolAsync(&at, 11 << 20, pool, stream));
	CHECK(cudaFreeAsync(at, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemPoolTrimTo(pool, 0));
	CHECK(cudaMemPoolDestroy(pool));
	CHECK(cudaStreamDestroy(stream));
}

/* Waits, also in a capture, also by handles of default streams. */
static void waits(float *x)
{
	cudaStream_t stream, other;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	cudaEvent_t event;

	puts("waits");
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamCreate(&other));
	CHECK(cudaEventCreate(&event));
	add_one<<<1, 32, 0, stream>>>(x, 32);
	CHECK(cudaEventRecord(event, stream));
	CHECK(cudaStreamWaitEvent(other, event, 0));
	CHECK(cudaEventSynchronize(event));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaStreamSynchronize(0));
	CHECK(cudaStreamSynchronize(cudaStreamPerThread));
	DRIVER(cuStreamSynchronize(stream));
	DRIVER(cuCtxSynchronize());
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	add_one<<<1, 32, 0, stream>>>(x, 32);
	CHECK(cudaEventRecord(event, stream));
	CHECK(cudaStreamWaitEvent(other, event, 0));
	add_one<<<1, 32, 0, other>>>(x, 32);
	CHECK(cudaEventRecord(event, other));
	CHECK(cudaStreamWaitEvent(stream, event, 0));
	CHECK(cudaStreamEndCapture(stream, &graph)); /* says so if a call of ours broke it */
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaEventDestroy(event));
	CHECK(cudaStreamDestroy(other));
	CHECK(cudaStreamDestroy(stream));
}

/* More launches than the command buffer takes. */
static void full(float *x)
{
	puts("full");
	for (int i = 0; i < 5000; i++)
		add_one<<<1, 32>>>(x, 32);
	CHECK(cudaDeviceSynchronize());
}

int main()
{
	int devices = 0;
	float *x = NULL;

	CHECK(cudaDeviceSynchronize()); /* before there is a context */
	CHECK(cudaGetDeviceCount(&devices));
	CHECK(cudaMalloc(&x, 4096));
	managed();
	memory();
	nvtxRangePushW(L"weit \u00fcber \u7b49\u5f85");
	waits(x);
	nvtxRangePop();
	full(x);
	for (int device = 1; device < devices && device < 2; device++) {
		float *y = NULL;

		puts("second card");
		CHECK(cudaSetDevice(device));
		CHECK(cudaMalloc(&y, 4096));
		waits(y);
		CHECK(cudaSetDevice(0));
		waits(x);
	}
	puts("end");
	return 0;
}
