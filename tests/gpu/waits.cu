/*
 * waits.cu - waits that do not come back well: waits hang | fault | events | records
 *
 * hang: a kernel spins for 20 s at most, and a thread waits for it; fault: a kernel writes
 * where it must not; events: a stream waits for another one, 100 times; records: what a
 * record of an event takes, in ns.
 */
#include <cstdio>
#include <cstring>
#include <ctime>
#include <thread>

static __global__ void work(float *at, int rounds)
{
	float sum = 0;

	for (int i = 0; i < rounds; i++)
		sum = sum * 0.5f + (float)i;
	*at = sum;
}

static __global__ void spins(long long cycles)
{
	long long begun = clock64();

	while (clock64() - begun < cycles)
		;
}

static __global__ void faults(float *at)
{
	at[threadIdx.x] = 1;
}

static double now_ns()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void hang(cudaStream_t stream, float *at)
{
	for (int i = 0; i < 5; i++) {
		work<<<1, 1, 0, stream>>>(at, 1000);
		cudaStreamSynchronize(stream);
	}
	std::thread([=] {
		work<<<1, 1, 0, stream>>>(at, 1000);
		spins<<<1, 1, 0, stream>>>(20LL * 1900000000);
		cudaStreamSynchronize(stream);
	}).join();
}

static int fault(cudaStream_t stream, float *at)
{
	work<<<1, 1, 0, stream>>>(at, 1000);
	cudaStreamSynchronize(stream);
	faults<<<1, 32, 0, stream>>>((float *)16);
	printf("%d", (int)cudaStreamSynchronize(stream));
	printf(" %d\n", (int)cudaDeviceSynchronize());
	return 0;
}

static void events(cudaStream_t stream, float *at)
{
	cudaStream_t other;
	cudaEvent_t event;

	cudaStreamCreate(&other);
	cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
	for (int i = 0; i < 100; i++) {
		work<<<1, 1, 0, stream>>>(at, 100000);
		cudaEventRecord(event, stream);
		cudaStreamWaitEvent(other, event, 0);
		work<<<1, 1, 0, other>>>(at + 1, 1000);
		cudaStreamSynchronize(other);
	}
}

static void records(cudaStream_t stream)
{
	double least = 1e18;
	cudaEvent_t event;

	cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
	for (int i = 0; i < 50; i++) {
		double begun = now_ns(), took;

		for (int k = 0; k < 2000; k++)
			cudaEventRecord(event, stream);
		took = (now_ns() - begun) / 2000;
		least = took < least ? took : least;
		cudaStreamSynchronize(stream);
	}
	printf("%.0f\n", least);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	cudaStream_t stream;
	float *at;

	if (cudaStreamCreate(&stream) || cudaMalloc(&at, 64))
		return 9;
	if (!strcmp(what, "hang"))
		hang(stream, at);
	else if (!strcmp(what, "fault"))
		return fault(stream, at);
	else if (!strcmp(what, "events"))
		events(stream, at);
	else if (!strcmp(what, "records"))
		records(stream);
	return 0;
}
