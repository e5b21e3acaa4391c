/* host_objects.c - programs with events and graphs, and with devices that are reset. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake/puppet_cuda.h"
#include "inject/host.h"

/* A call stack names them: neither inlined nor made a copy of. */
#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noipa))
#endif

static APART void make_events(unsigned int left)
{
	void *event;

	for (unsigned int i = 0; i < 3; i++) {
		(void)cudaEventCreate(&event);
		if (i >= left)
			(void)cudaEventDestroy(event);
	}
}

static APART void *capture(void)
{
	void *graph;

	(void)cuStreamBeginCapture_v2(NULL, 0);
	(void)gpu_launch();
	(void)gpu_launch();
	(void)cuStreamEndCapture(NULL, &graph);
	return graph;
}

static APART void *instantiate(void *graph)
{
	void *exec;

	(void)cuGraphInstantiateWithFlags(&exec, graph, 0);
	return exec;
}

/* Each step leaves an event, a graph and an executable graph behind. */
int host_leaks(void)
{
	gpu_begin();
	for (int i = 0; i < 20; i++) {
		void *graph, *exec;

		range_push("step");
		make_events(1);
		graph = capture();
		exec = instantiate(graph);
		(void)cuGraphLaunch(exec, NULL);
		exec = instantiate(graph);
		(void)cuGraphExecDestroy(exec);
		for (int k = 0; k < 8; k++)
			(void)gpu_launch();
		(void)cuCtxSynchronize();
		nap_ms(5);
		range_pop();
	}
	say("launches %d\n", 20 * 10);
	return 0;
}

/* 500 launches of a graph of two kernels. */
int host_graphs(void)
{
	void *graph, *exec;

	gpu_begin();
	graph = capture();
	exec = instantiate(graph);
	for (int i = 0; i < 500; i++)
		(void)cuGraphLaunch(exec, NULL);
	(void)cuGraphExecDestroy(exec);
	(void)cuGraphDestroy(graph);
	say("launches 1000\n");
	return 0;
}

/* The device is reset under what is recorded, and used again. */
int host_reset(void)
{
	for (int i = 0; i < 30; i++) {
		void *event, *stream;

		gpu_begin();
		(void)cudaEventCreate(&event);
		(void)cuStreamCreate(&stream, 0);
		gpu_launches(100);
		(void)cudaDeviceReset();
	}
	return 0;
}

static unsigned int steady(unsigned int ms)
{
	unsigned int good = 0;

	for (unsigned int i = 0; i < ms; i++) {
		for (int k = 0; k < 5; k++)
			good += gpu_launch();
		nap_ms(1);
	}
	return good;
}

/* 5 launches a millisecond or so, long enough for what is switched by time. */
int host_steady(void)
{
	gpu_begin();
	say("launches %u\n", steady(5000));
	return 0;
}

/* cudaProfilerStart to Stop in the middle. */
int host_steady_range(void)
{
	unsigned int good;

	gpu_begin();
	(void)steady(300);
	(void)cuProfilerStart();
	good = steady(300);
	(void)cuProfilerStop();
	(void)steady(300);
	say("launches %u\n", good);
	return 0;
}

static void *on_device(void *user)
{
	int *device = user;
	void *context;

	if (cuCtxCreate_v2(&context, 0, *device) || cuCtxSetCurrent(context))
		abort();
	*device = 0;
	for (int i = 0; i < 250; i++)
		*device += gpu_launch();
	return NULL;
}

/* A thread for each of four devices. */
int host_devices(void)
{
	int devices[4] = { 0, 1, 2, 3 };
	pthread_t threads[4];

	gpu_begin();
	for (int i = 0; i < 4; i++) {
		if (pthread_create(&threads[i], NULL, on_device, &devices[i]))
			abort();
	}
	for (int i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
	say("launches %d\n", devices[0] + devices[1] + devices[2] + devices[3]);
	return 0;
}

/* More contexts at a time than there is room to sample. */
int host_many_contexts(void)
{
	static void *contexts[100];

	gpu_begin();
	for (int i = 0; i < 100; i++) {
		(void)cuCtxCreate_v2(&contexts[i], 0, i % 8);
		(void)cuCtxSetCurrent(contexts[i]);
		gpu_launches(10);
	}
	for (int i = 0; i < 100; i += 2)
		(void)cuCtxDestroy_v2(contexts[i]);
	(void)cuCtxSetCurrent(contexts[1]);
	gpu_launches(10);
	return 0;
}

/* The same process goes on as another program. */
int host_exec_self(void)
{
	gpu_begin();
	gpu_launches(100);
	execl(host_self, host_self, "one", NULL);
	return 1;
}

static void *many_launches(void *user)
{
	unsigned long *good = user;

	for (int i = 0; i < 200000; i++)
		*good += gpu_launch();
	return NULL;
}

/* Several threads as fast as they can: more than the reader may keep up with. */
int host_storm_launches(void)
{
	unsigned long good[4] = { 0 };
	pthread_t threads[4];

	gpu_begin();
	for (int i = 0; i < 4; i++) {
		if (pthread_create(&threads[i], NULL, many_launches, &good[i]))
			abort();
	}
	for (int i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
	say("launches %lu\n", good[0] + good[1] + good[2] + good[3]);
	return 0;
}
