/*
 * os_host.c - a program that blocks in every call that libsonde-osrt.so stands in
 * front of, is cancelled there, forks there, gets signals there.
 *
 *	os_host SCENARIO    prints the same with and without sonde
 *
 * `calls` needs 20 ms or more in each call that can be made to wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int ends[2], pair[2];

static struct timespec span(void)
{
	return (struct timespec){ 0, WAIT_MS * 1000000 };
}

static struct timespec soon(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_nsec += WAIT_MS * 1000000;
	if (now.tv_nsec >= 1000000000) {
		now.tv_sec++;
		now.tv_nsec -= 1000000000;
	}
	return now;
}

/* Not through libc: what a helper does is not what is measured. */
static void quiet_nap(void)
{
	struct timespec ts = span();

	(void)syscall(SYS_nanosleep, &ts, NULL);
}

static void *writes(void *user)
{
	quiet_nap();
	(void)syscall(SYS_write, *(int *)user, "x", 1);
	return NULL;
}

static void *unlocks(void *user)
{
	(void)user;
	pthread_mutex_lock(&mutex);
	(void)syscall(SYS_write, ends[1], "m", 1);
	quiet_nap();
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void *posts(void *user)
{
	(void)user;
	quiet_nap();
	sem_post(&semaphore);
	return NULL;
}

static void *signals(void *user)
{
	(void)user;
	quiet_nap();
	pthread_mutex_lock(&mutex);
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void *naps(void *user)
{
	quiet_nap();
	return user;
}

static void with(void *(*helper)(void *), void *user, pthread_t *ret_thread)
{
	if (pthread_create(ret_thread, NULL, helper, user))
		abort();
}

static void waits_for_descriptors(void)
{
	struct pollfd poll_for = { .fd = ends[0], .events = POLLIN };
	struct timeval tv = { 0, WAIT_MS * 1000 };
	struct timespec ts = span();
	struct epoll_event event = { .events = EPOLLIN };
	int file = epoll_create1(EPOLL_CLOEXEC);
	fd_set set;

	printf("poll %d\n", poll(&poll_for, 1, WAIT_MS));
	printf("ppoll %d\n", ppoll(&poll_for, 1, &ts, NULL));
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	printf("select %d\n", select(ends[0] + 1, &set, NULL, NULL, &tv));
	ts = span();
	printf("pselect %d\n", pselect(0, NULL, NULL, NULL, &ts, NULL));
	epoll_ctl(file, EPOLL_CTL_ADD, ends[0], &event);
	printf("epoll_wait %d\n", epoll_wait(file, &event, 1, WAIT_MS));
	printf("epoll_pwait %d\n", epoll_pwait(file, &event, 1, WAIT_MS, NULL));
	close(file);
}

static void waits_for_bytes(void)
{
	pthread_t thread;
	char byte = 0;

	with(writes, &ends[1], &thread);
	printf("read %zd %c\n", read(ends[0], &byte, 1), byte);
	printf("join %d\n", pthread_join(thread, NULL));
	with(writes, &pair[1], &thread);
	printf("recv %zd\n", recv(pair[0], &byte, 1, 0));
	pthread_join(thread, NULL);
	with(writes, &pair[1], &thread);
	printf("recvfrom %zd\n", recvfrom(pair[0], &byte, 1, 0, NULL, NULL));
	pthread_join(thread, NULL);
}

static void waits_for_threads(void)
{
	pthread_t thread;
	char byte;
	struct timespec until;

	with(unlocks, NULL, &thread);
	(void)syscall(SYS_read, ends[0], &byte, 1);
	printf("mutex %d\n", pthread_mutex_lock(&mutex));
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	with(posts, NULL, &thread);
	printf("sem %d\n", sem_wait(&semaphore));
	pthread_join(thread, NULL);
	until = soon();
	printf("sem_timedwait %d %d\n", sem_timedwait(&semaphore, &until), errno);
	pthread_mutex_lock(&mutex);
	with(signals, NULL, &thread);
	printf("cond %d\n", pthread_cond_wait(&condition, &mutex));
	until = soon();
	printf("cond_timedwait %d\n", pthread_cond_timedwait(&condition, &mutex, &until));
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	with(naps, NULL, &thread);
	printf("pthread_join %d\n", pthread_join(thread, NULL));
}

static void waits_for_time(void)
{
	struct timespec ts = span();

	printf("usleep %d\n", usleep(WAIT_MS * 1000));
	printf("nanosleep %d\n", nanosleep(&ts, NULL));
	printf("clock_nanosleep %d\n", clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL));
	printf("sleep %u\n", sleep(1));
	printf("sched_yield %d\n", sched_yield());
}

static void waits_for_children(void)
{
	int status = 0;

	for (int i = 0; i < 2; i++) {
		pid_t child = fork();

		if (child == 0) {
			quiet_nap();
			_exit(3);
		}
		printf("%s %d", i ? "wait4" : "waitpid",
		       child == (i ? wait4(child, &status, 0, NULL) : waitpid(child, &status, 0)));
		printf(" %d\n", WEXITSTATUS(status));
	}
}

static void uses_files(void)
{
	char name[] = "os_host.XXXXXX";
	int file = mkstemp(name), again, size = 0;
	void *at;

	again = open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
	printf("open %d %d\n", again, errno);
	printf("write %zd fsync %d fdatasync %d\n", write(file, "12345678", 8), fsync(file),
	       fdatasync(file));
	printf("pread %zd\n", pread(file, &size, 4, 2));
	at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("mmap %d munmap %d\n", at != MAP_FAILED, munmap(at, 1 << 20));
	printf("ioctl %d %d\n", ioctl(ends[0], FIONREAD, &size), size);
	close(file);
	unlink(name);
	file = openat(AT_FDCWD, name, O_CREAT | O_WRONLY, 0640);
	printf("openat %d\n", file >= 0 && unlink(name) == 0);
	close(file);
}

static int calls(void)
{
	waits_for_descriptors();
	waits_for_bytes();
	waits_for_threads();
	waits_for_time();
	waits_for_children();
	uses_files();
	return 7;
}

static void cleanup(void *user)
{
	(*(int *)user)++;
}

/* Blocks for ever in the call that `user` numbers. */
static void *blocks(void *user)
{
	int which = *(int *)user;
	struct timespec ts = { 1000, 0 };
	char byte;

	pthread_cleanup_push(cleanup, user);
	if (which == 0)
		(void)!read(ends[0], &byte, 1);
	else if (which == 10)
		(void)poll(NULL, 0, 1000000);
	else if (which == 20)
		(void)nanosleep(&ts, NULL);
	else if (which == 30)
		(void)sem_wait(&semaphore);
	else if (which == 40) {
		pthread_mutex_lock(&mutex);
		pthread_cond_wait(&condition, &mutex);
	} else
		(void)recv(pair[0], &byte, 1, 0);
	pthread_cleanup_pop(0);
	return NULL;
}

static int cancelled(void)
{
	for (int i = 0; i <= 50; i += 10) {
		int which = i;
		pthread_t thread;
		void *value;

		with(blocks, &which, &thread);
		quiet_nap();
		pthread_cancel(thread);
		pthread_join(thread, &value);
		printf("%d: cancelled %d, cleaned up %d\n", i, value == PTHREAD_CANCELED,
		       which - i);
		if (i == 40) /* it had the mutex again when it was cleaned up */
			printf("mutex %d\n", pthread_mutex_trylock(&mutex));
	}
	return 0;
}

static volatile sig_atomic_t rang;
static sigjmp_buf jump;
static bool jumps;

static void ring(int number)
{
	int saved_errno = errno;
	char byte;

	(void)number;
	rang = rang + 1;
	(void)!read(-1, &byte, 1); /* one of ours, from a handler */
	errno = saved_errno;
	if (jumps)
		siglongjmp(jump, 1);
}

static void alarm_soon(void)
{
	struct itimerval timer = { .it_value = { 0, WAIT_MS * 1000 } };

	(void)setitimer(ITIMER_REAL, &timer, NULL);
}

static int interrupted(void)
{
	struct sigaction action = { .sa_handler = ring };
	struct timespec ts = { 10, 0 }, left = { 0 };
	char byte;
	int ret;

	sigaction(SIGALRM, &action, NULL);
	alarm_soon();
	errno = 0;
	ret = (int)read(ends[0], &byte, 1);
	printf("read %d %d\n", ret, errno == EINTR);
	alarm_soon();
	errno = 0;
	ret = poll(NULL, 0, 10000);
	printf("poll %d %d\n", ret, errno == EINTR);
	alarm_soon();
	ret = clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &left);
	printf("clock_nanosleep %d %ld\n", ret == EINTR, (long)left.tv_sec);
	alarm_soon();
	printf("sleep %d\n", sleep(10) >= 9);
	alarm_soon();
	ret = sem_wait(&semaphore);
	printf("sem_wait %d %d\n", ret, errno == EINTR);
	jumps = true;
	for (volatile int i = 0; i < 3; i++) {
		alarm_soon();
		if (!sigsetjmp(jump, 1))
			(void)!read(ends[0], &byte, 1);
	}
	errno = 12345;
	usleep(WAIT_MS * 1000);
	printf("rang %d, errno %d\n", (int)rang, errno);
	return 0;
}

static int forked(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		usleep(WAIT_MS * 1000);
		usleep(WAIT_MS * 1000);
		_exit(5);
	}
	waitpid(child, &status, 0);
	printf("forked %d\n", WEXITSTATUS(status));
	fflush(stdout);
	child = vfork();
	if (child == 0) {
		usleep(WAIT_MS * 1000);
		usleep(WAIT_MS * 1000);
		_exit(6);
	}
	waitpid(child, &status, 0);
	printf("vforked %d\n", WEXITSTATUS(status));
	fflush(stdout);
	child = vfork();
	if (child == 0) {
		execlp("sleep", "sleep", "0.02", (char *)NULL);
		_exit(127);
	}
	waitpid(child, &status, 0);
	printf("vforked and replaced %d\n", WEXITSTATUS(status));
	return 0;
}

static int deadlocks(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t checked, again;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&checked, &attr);
	printf("%d", pthread_mutex_lock(&checked));
	printf(" %d\n", pthread_mutex_lock(&checked) == EDEADLK);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&again, &attr);
	printf("%d", pthread_mutex_lock(&again));
	printf(" %d", pthread_mutex_lock(&again));
	printf(" %d", pthread_mutex_unlock(&again));
	printf(" %d", pthread_mutex_unlock(&again));
	printf(" %d\n", pthread_mutex_unlock(&again) == EPERM);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} scenarios[] = {
		{ "calls", calls },   { "cancelled", cancelled }, { "interrupted", interrupted },
		{ "forked", forked }, { "deadlocks", deadlocks },
	};

	if (pipe(ends) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
	    sem_init(&semaphore, 0, 0) < 0)
		return 9;
	for (size_t i = 0; argc == 2 && i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (!strcmp(argv[1], scenarios[i].name))
			return scenarios[i].run();
	}
	return 2;
}
