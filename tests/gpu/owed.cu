/*
 * Programs for run_owed.sh, each of which says what it did:
 *
 *	owed leaks STEPS        an event, a graph and an executable graph left in each step
 *	owed events N           so many made, recorded and destroyed: what each takes
 *	owed graphs N           a graph of 20 kernels, launched N times
 *	owed threads T SECONDS  T threads, each with a stream, launch as fast as they can
 *	owed reset N            the device is reset N times, between launches
 */
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#define CHECK(call)                                                                        \
	do {                                                                               \
		cudaError_t error = (call);                                                \
		if (error != cudaSuccess) {                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
			exit(1);                                                           \
		}                                                                          \
	} while (0)

__global__ void tiny(float *x)
{
	x[threadIdx.x] += 1;
}

static std::atomic<long> launches;

static void launch(float *x, cudaStream_t stream)
{
	tiny<<<1, 32, 0, stream>>>(x);
	launches++;
}

static float *memory()
{
	float *x;

	CHECK(cudaMalloc(&x, 4096));
	return x;
}

static __attribute__((noinline)) void leave_event(int)
{
	cudaEvent_t event;

	CHECK(cudaEventCreate(&event));
}

static __attribute__((noinline)) cudaGraph_t capture(float *x, cudaStream_t stream, int kernels)
{
	cudaGraph_t graph;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < kernels; i++)
		tiny<<<1, 32, 0, stream>>>(x);
	CHECK(cudaStreamEndCapture(stream, &graph));
	return graph;
}

static __attribute__((noinline)) cudaGraphExec_t instantiate(cudaGraph_t graph)
{
	cudaGraphExec_t exec;

	CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

static void leaks(int steps)
{
	float *x = memory();
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	for (int i = 0; i < steps; i++) {
		cudaEvent_t event;

		nvtxRangePushA("step");
		leave_event(i);
		CHECK(cudaEventCreate(&event)); /* this one is given back */
		cudaGraphExec_t exec = instantiate(capture(x, stream, 2));
		CHECK(cudaGraphLaunch(exec, stream));
		launches += 2;
		for (int k = 0; k < 50; k++)
			launch(x, stream);
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaEventDestroy(event));
		std::this_thread::sleep_for(std::chrono::milliseconds(5));
		nvtxRangePop();
	}
}

static void graphs(int count)
{
	float *x = memory();
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	cudaGraph_t graph = capture(x, stream, 20);
	cudaGraphExec_t exec = instantiate(graph);
	for (int i = 0; i < count; i++) {
		CHECK(cudaGraphLaunch(exec, stream));
		launches += 20;
	}
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* Calls that call sonde back. */
static void events(int count)
{
	cudaStream_t stream;

	CHECK(cudaFree(0));
	CHECK(cudaStreamCreate(&stream));
	auto begin = std::chrono::steady_clock::now();
	for (int i = 0; i < count; i++) {
		cudaEvent_t event;

		CHECK(cudaEventCreate(&event));
		CHECK(cudaEventRecord(event, stream));
		CHECK(cudaEventDestroy(event));
	}
	std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - begin;
	printf("%d events %.3f us each\n", count, us.count() / count);
}

static void work(double seconds)
{
	auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
	float *x = memory();
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	do {
		for (int i = 0; i < 1000; i++)
			launch(x, stream);
	} while (std::chrono::steady_clock::now() < end);
	CHECK(cudaStreamSynchronize(stream));
}

static void threads(int count, double seconds)
{
	std::vector<std::thread> all;

	for (int i = 0; i < count; i++)
		all.emplace_back(work, seconds);
	for (auto &thread : all)
		thread.join();
}

static void reset(int count)
{
	for (int i = 0; i < count; i++) {
		cudaEvent_t event;
		float *x = memory();

		CHECK(cudaEventCreate(&event));
		for (int k = 0; k < 1000; k++)
			launch(x, 0);
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaDeviceReset());
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int number = argc > 2 ? atoi(argv[2]) : 20;

	if (!strcmp(what, "leaks"))
		leaks(number);
	else if (!strcmp(what, "graphs"))
		graphs(number);
	else if (!strcmp(what, "threads"))
		threads(number, argc > 3 ? atof(argv[3]) : 60);
	else if (!strcmp(what, "events"))
		events(number);
	else if (!strcmp(what, "reset"))
		reset(number);
	else
		return 2;
	printf("launches %ld\n", launches.load());
	return 0;
}
