#include "base/thread.h"

#include <sched.h>
#include <signal.h>

bool thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int ret;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(ret_thread, NULL, run, arg);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !ret;
}

bool thread_has_cpus(void)
{
	cpu_set_t cpus;

	/* Fails where there are more CPUs than the set has room for. */
	return sched_getaffinity(0, sizeof(cpus), &cpus) < 0 || CPU_COUNT(&cpus) > 1;
}
