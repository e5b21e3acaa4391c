/* host_hostile.c - programs that pull the ground away from under a library. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "fake/puppet_cuda.h"
#include "inject/host.h"

static void close_all(void)
{
	for (int fd = 0; fd < 1024; fd++) {
		if (fd != STDOUT_FILENO)
			(void)close(fd);
	}
}

/* And take their numbers for files of its own. */
int host_descriptors(void)
{
	char byte = 0;

	gpu_begin();
	gpu_launches(100);
	close_all();
	for (int i = 0; i < 64; i++)
		(void)open("/dev/null", O_WRONLY);
	gpu_launches(100);
	for (int fd = 3; fd < 60; fd++) {
		if (write(fd, &byte, 1) != 1)
			say("somebody took descriptor %d\n", fd);
	}
	return 0;
}

int host_closed_first(void)
{
	close_all();
	gpu_begin();
	gpu_launches(100);
	return 0;
}

/* A root without /proc, /dev and libraries. */
static int change_root(void)
{
	char path[] = "/tmp/host-XXXXXX";

	if (!mkdtemp(path) || chdir(path) < 0 || rmdir(path) < 0 || chroot(".") < 0) {
		say("no rights\n");
		return 77;
	}
	return 0;
}

int host_rooted(void)
{
	int no = 0;

	gpu_begin();
	gpu_launches(100);
	no = change_root();
	if (no)
		return no;
	gpu_launches(100);
	nap_ms(60); /* our thread looks round */
	return 0;
}

int host_rooted_first(void)
{
	int no = change_root();

	if (no)
		return no;
	gpu_begin();
	for (int i = 0; i < 100; i++)
		(void)gpu_launch();
	return 0;
}

/* No HOME, no TMPDIR, a working directory that can't be written. */
int host_homeless(void)
{
	(void)unsetenv("HOME");
	(void)unsetenv("TMPDIR");
	if (chdir("/proc/self") < 0)
		return 1;
	gpu_begin();
	gpu_launches(100);
	return 0;
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
	(void)number;
	range_push("signal");
	mark("signal");
	range_pop();
	alarms++;
}

int host_storm(void)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { 0 };
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

	gpu_begin();
	/* The first call of NVTX loads the tool, and NVTX's own header lets a handler that comes
	 * meanwhile wait for that, for ever. */
	mark("first");
	(void)sigaction(SIGALRM, &action, NULL);
	(void)setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 20000 || alarms < 100; i++) {
		range_push("main");
		mark("main");
		range_pop();
	}
	(void)setitimer(ITIMER_REAL, &never, NULL);
	gpu_launches(100);
	return 0;
}

/* With more rights than its caller: the environment is not to be trusted. The
 * driver would not load us; who does it nevertheless must find us off. */
int host_secure(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	int (*start)(void) = NULL;

	if (!getauxval(AT_SECURE)) {
		say("no rights\n");
		return 77;
	}
	if (library)
		*(void **)(void *)&start = dlsym(library, "InitializeInjection");
	if (start)
		(void)start();
	gpu_begin();
	for (int i = 0; i < 10; i++)
		(void)gpu_launch();
	return 0;
}

/* Has an entry for the driver in a library that is no tool, as PyTorch has; and finds
 * no error of ours where it asks for its own. */
int host_torch(void)
{
	void *library = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_GLOBAL);

	say("libtorch_cpu is %s\n", library ? "here" : "missing");
	gpu_begin();
	say("an error is %s\n", dlerror() ? "left" : "not left");
	gpu_launches(50);
	return 0;
}

/* Reaches CUPTI by dlsym: refused while sonde holds it, and none the worse. */
int host_by_dlsym(void)
{
	void *library, *subscriber = NULL;
	unsigned int (*subscribe)(void **, void *, void *) = NULL;
	unsigned int result = 1;

	gpu_begin();
	gpu_launches(50);
	library = dlopen("libcupti.so.13", RTLD_NOW);
	if (library)
		*(void **)(void *)&subscribe = dlsym(library, "cuptiSubscribe");
	if (subscribe)
		result = subscribe(&subscriber, (void *)say, NULL);
	say("subscribing is %s\n", result == 0 || result == 39 ? "answered" : "broken");
	gpu_launches(50);
	return 0;
}
