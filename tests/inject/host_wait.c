/* host_wait.c - programs that wait for a kernel that never ends, or that fails. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/puppet_cuda.h"
#include "inject/host.h"

static void *stream;

static void work(void)
{
	for (int i = 0; i < 5; i++) {
		(void)cuLaunchKernel("before", 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
		(void)cuLaunchKernel("plain_name", 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
		(void)cuStreamSynchronize(stream);
	}
}

/* The main thread waits for its own stream, and not in vain. */
static void *wait_on(void *unused)
{
	work();
	range_push("all_reduce");
	(void)cuLaunchKernel("before", 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
	(void)cuLaunchKernel("hangs", 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
	(void)cuLaunchKernel("plain_name", 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
	range_pop();
	(void)cuStreamSynchronize(stream);
	say("it came back\n");
	return unused;
}

/* HOST_END: "kill", "abort", "exit", "stay"; HOST_MS: after so long. */
int host_hang(void)
{
	const char *end = getenv("HOST_END"), *ms = getenv("HOST_MS");
	pthread_t thread;

	gpu_begin();
	(void)cuStreamCreate(&stream, 0);
	if (!end || pthread_create(&thread, NULL, wait_on, NULL))
		return 9;
	nap_ms(100);
	(void)cuStreamSynchronize(NULL);
	say("launches 11\n");
	nap_ms(ms ? (unsigned int)strtoul(ms, NULL, 10) : 200);
	if (!strcmp(end, "abort"))
		abort();
	if (strcmp(end, "stay") != 0 && strcmp(end, "exit") != 0)
		(void)raise(SIGKILL);
	for (int i = 0; i < 300 && !strcmp(end, "stay"); i++)
		nap_ms(100);
	exit(4);
}

/* The kernel's error is met where the host waits next, and by all that waits then. */
int host_fault(void)
{
	int got[4];

	gpu_begin();
	(void)cuStreamCreate(&stream, 0);
	work();
	(void)cuLaunchKernel("faults", 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
	got[0] = cuStreamSynchronize(stream);
	got[1] = cudaDeviceSynchronize();
	got[2] = cuStreamSynchronize(stream);
	got[3] = cuCtxSynchronize();
	say("results %d %d %d %d\nlaunches 10\n", got[0], got[1], got[2], got[3]);
	return 3;
}

/* A stream waits for another one, for the default stream, and for events that were never
 * recorded. */
int host_events(void)
{
	void *waiting, *events[2];

	gpu_begin();
	(void)cuStreamCreate(&stream, 0);
	(void)cuStreamCreate(&waiting, 0);
	(void)cuEventCreate(&events[0], 0);
	(void)cuEventCreate(&events[1], 0);
	(void)cuStreamWaitEvent(waiting, events[1], 0);
	for (int i = 0; i < 10; i++) {
		void *on = i < 7 ? stream : NULL;

		(void)cuLaunchKernel("produce", 1, 1, 1, 32, 1, 1, 0, on, NULL, NULL);
		(void)cuEventRecord(events[0], on);
		(void)cuStreamWaitEvent(waiting, events[0], 0);
		(void)cuLaunchKernel("consume", 1, 1, 1, 32, 1, 1, 0, waiting, NULL, NULL);
	}
	/* Another event, where the first one was. */
	(void)cuEventDestroy_v2(events[0]);
	(void)cuEventCreate(&events[0], 0);
	(void)cuStreamWaitEvent(waiting, events[0], 0);
	(void)cuStreamSynchronize(waiting);
	say("launches 20\n");
	return 0;
}
