/* host_process.c - programs that multiply, and programs that die. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake/puppet_cuda.h"
#include "inject/host.h"

static int status_of(pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* CUDA is dead in a child, NVTX is not; both are called there. */
static void live_on(void)
{
	for (int i = 0; i < 100; i++) {
		range_push("child");
		if (gpu_launch())
			_exit(20);
		mark("in the child");
		range_pop();
	}
}

int host_forked(void)
{
	pid_t child;

	gpu_begin();
	gpu_launches(100);
	child = fork();
	if (child == 0) {
		live_on();
		exit(3); /* with exit handlers: ours must keep still */
	}
	say("child %d\n", status_of(child));
	gpu_launches(100);
	return 0;
}

int host_fork_exec(void)
{
	pid_t child;

	gpu_begin();
	gpu_launches(10);
	child = fork();
	if (child == 0) {
		execl(host_self, host_self, "one", NULL);
		_exit(1);
	}
	say("child %d\n", status_of(child));
	return 0;
}

int host_cloned(void)
{
	pid_t child;

	gpu_begin();
	gpu_launches(100);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		live_on();
		_exit(4);
	}
	say("child %d\n", status_of(child));
	gpu_launches(100);
	return 0;
}

int host_vforked(void)
{
	pid_t child;

	gpu_begin();
	gpu_launches(100);
	child = vfork();
	if (child == 0) {
		execl(host_self, host_self, "one", NULL);
		_exit(1);
	}
	say("child %d\n", status_of(child));
	gpu_launches(100);
	return 0;
}

/* The command ends, what it started goes on: sonde stops listening to a
 * process that still writes. The pipe ends when the child does. */
int host_background(void)
{
	gpu_begin();
	gpu_launches(10);
	if (fork() == 0) {
		execl(host_self, host_self, "slow", NULL);
		_exit(1);
	}
	nap_ms(300);
	return 0;
}

int host_slow(void)
{
	unsigned int good = 0;

	gpu_begin();
	for (int i = 0; i < 1000; i++) {
		good += gpu_launch();
		nap_ms(1);
	}
	say("slow %u\n", good);
	return 0;
}

int host_quick_exit(void)
{
	gpu_begin();
	gpu_launches(100);
	_exit(7);
}

int host_aborted(void)
{
	gpu_begin();
	gpu_launches(100);
	abort();
}

int host_killed(void)
{
	gpu_begin();
	gpu_launches(100);
	(void)raise(SIGKILL);
	return 0;
}

int host_crashed(void)
{
	gpu_begin();
	gpu_launches(100);
	(void)raise(SIGSEGV);
	return 0;
}

/* Until somebody kills it; HOST_COUNT is a file of 8 bytes, the launches made. */
int host_forever(void)
{
	const char *path = getenv("HOST_COUNT");
	volatile uint64_t *count = MAP_FAILED;
	FILE *file = path ? fopen(path, "r+") : NULL;

	if (file)
		count = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	if (count == MAP_FAILED)
		return 1;
	gpu_begin();
	for (;;) {
		(void)gpu_launch();
		*count += 1;
		if (*count % 2000 == 0)
			nap_ms(1);
	}
}

static void *launch_on(void *unused)
{
	for (;;) {
		(void)gpu_launch();
		range_push("on and on");
		range_pop();
	}
	return unused;
}

int host_exit_threads(void)
{
	gpu_begin();
	for (int i = 0; i < 32; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, launch_on, NULL))
			return 1;
	}
	nap_ms(50);
	exit(5);
}

/* Recorded from a pipe's other end: ends with it. */
int host_wait(void)
{
	char byte;

	gpu_begin();
	gpu_launches(10);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
