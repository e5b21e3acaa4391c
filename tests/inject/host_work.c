/* host_work.c - programs that mean well: one thread, many, many contexts. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake/puppet_cuda.h"
#include "inject/host.h"

int host_one(void)
{
	gpu_begin();
	gpu_launches(1000);
	(void)cuCtxSynchronize();
	return 0;
}

/* Long enough for sonde to look whether it is alive. */
int host_slow_one(void)
{
	gpu_begin();
	gpu_launches(500);
	nap_ms(100);
	gpu_launches(500);
	return 0;
}

/* Of each kind something, with numbers that a test can expect. */
int host_work(void)
{
	static char there[1 << 16];
	uint64_t address;
	void *stream, *context;

	gpu_begin();
	(void)cuMemAlloc_v2(&address, sizeof(there));
	(void)cuStreamCreate(&stream, 0);
	for (int i = 0; i < 10; i++) {
		range_push("step");
		(void)cuMemcpyHtoD_v2(address, there, sizeof(there));
		(void)cuLaunchKernel("plain_name", 3, 1, 1, 64, 1, 1, 0, stream, NULL, NULL);
		(void)cudaLaunchKernel("_Z5scalePffi");
		(void)cuMemsetD8_v2(address, 0, 4096);
		(void)cuMemcpyDtoH_v2(there, address, 1024);
		(void)cuStreamSynchronize(stream);
		(void)cudaDeviceSynchronize();
		range_pop();
	}
	(void)cuStreamDestroy_v2(stream);
	(void)cuMemFree_v2(address);
	(void)cuCtxCreate_v2(&context, 0, 0);
	(void)cuCtxDestroy_v2(context);
	say("launches 20\n");
	return 0;
}

static void *launch_500(void *unused)
{
	for (int i = 0; i < 500; i++)
		(void)gpu_launch();
	return unused;
}

static void run_threads(unsigned int count, size_t stack, void *(*run)(void *))
{
	pthread_t threads[64];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	if (stack)
		pthread_attr_setstacksize(&attr, stack);
	for (unsigned int i = 0; i < count; i++) {
		if (pthread_create(&threads[i], &attr, run, NULL))
			abort();
	}
	for (unsigned int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attr);
}

int host_threads(void)
{
	gpu_begin();
	run_threads(8, 0, launch_500);
	say("launches 4000\n");
	return 0;
}

static void *wait_200(void *unused)
{
	void *stream;

	(void)cuStreamCreate(&stream, 0);
	for (int i = 0; i < 200; i++) {
		range_push("wait");
		(void)cuLaunchKernel("plain_name", 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
		(void)cuStreamSynchronize(stream);
		(void)cudaDeviceSynchronize();
		range_pop();
	}
	(void)cuStreamDestroy_v2(stream);
	return unused;
}

/* Threads that wait, each for a stream of its own, and a child for which CUDA is dead. */
int host_waits(void)
{
	pid_t child;

	gpu_begin();
	(void)cudaDeviceSynchronize();
	child = fork();
	if (child == 0) {
		(void)cuStreamSynchronize(NULL);
		(void)cudaDeviceSynchronize();
		_exit(0);
	}
	run_threads(4, 0, wait_200);
	(void)waitpid(child, NULL, 0);
	(void)cuStreamSynchronize(NULL);
	say("launches 800\n");
	return 0;
}

int host_contexts(void)
{
	void *context;

	gpu_begin();
	for (int i = 0; i < 100; i++) {
		(void)cuCtxCreate_v2(&context, 0, 0);
		(void)gpu_launch();
		(void)cuCtxDestroy_v2(context);
	}
	say("launches 100\n");
	return 0;
}

static void *small_work(void *unused)
{
	range_push("a range with a name of some length, to be copied on a stack of 16 KiB");
	for (int i = 0; i < 50; i++)
		(void)gpu_launch();
	mark("done");
	range_pop();
	return unused;
}

int host_small_stacks(void)
{
	gpu_begin();
	run_threads(32, 16384, small_work);
	say("launches 1600\n");
	return 0;
}

/* What our hooks do in between must not show in errno. */
int host_errno_kept(void)
{
	int bad = 0;

	gpu_begin();
	for (int i = 0; i < 1000; i++) {
		errno = i;
		range_push("errno");
		(void)gpu_launch();
		mark("x");
		range_pop();
		bad += errno != i;
	}
	say("errno changed %d times\nlaunches 1000\n", bad);
	return 0;
}

/* More records than any spool of a test holds. */
int host_many(void)
{
	gpu_begin();
	gpu_launches(20000);
	return 0;
}

int host_marks(void)
{
	gpu_begin();
	for (int i = 0; i < 300000; i++)
		mark("again and again");
	say("launches 0\n");
	return 0;
}

int host_long_texts(void)
{
	static char text[4001];

	gpu_begin();
	memset(text, 'x', sizeof(text) - 1);
	for (unsigned int i = 0; i < 3000; i++) {
		for (unsigned int k = 0, rest = i; k < 4; k++, rest /= 10)
			text[k] = (char)('0' + rest % 10);
		mark(text);
	}
	say("launches 0\n");
	return 0;
}

/* cudaProfilerStart to Stop; what is outside is not recorded with
 * --capture-range cudaProfilerApi. */
/* By name in the profile, which is why it is no part of its caller. */
static __attribute__((noinline)) int obtain_buffer(uint64_t *ret_address)
{
	int result = cudaMalloc(ret_address, 1 << 20);

	__asm__ volatile("" ::: "memory"); /* not by a jump */
	return result;
}

/* Of what is obtained by the runtime the profile knows where. */
int host_memory(void)
{
	uint64_t address;

	gpu_begin();
	for (int i = 0; i < 3; i++)
		(void)obtain_buffer(&address);
	(void)cuMemAlloc_v2(&address, 512);
	say("launches 0\n");
	return 0;
}

/* 50 launches and a nap before and behind of what is to be recorded. */
int host_profiler(void)
{
	gpu_begin();
	for (int i = 0; i < 50; i++)
		(void)gpu_launch();
	(void)cudaDeviceSynchronize();
	nap_ms(20);
	(void)cuProfilerStart();
	gpu_launches(70);
	(void)cudaDeviceSynchronize();
	nap_ms(20);
	nap_ms(20);
	(void)cuProfilerStop();
	(void)cudaDeviceSynchronize();
	for (int i = 0; i < 50; i++)
		(void)gpu_launch();
	nap_ms(20);
	return 0;
}
