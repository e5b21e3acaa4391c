#include "collect/child_text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { STATUS_NOT_STARTED = 127, REAP_TRIES = 50, REAP_STEP_MS = 10, NS_PER_MS = 1000000 };

_Noreturn static void in_child(void (*run)(int fd, void *arg), void *arg, int fd)
{
	int null = open("/dev/null", O_RDWR);

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDERR_FILENO);
	}
	/* What a library prints is not an answer. */
	if (null >= 0)
		(void)dup2(null, STDOUT_FILENO);
	run(fd, arg);
	_Exit(0);
}

/* Reads until the child closes its end. ERR_BUSY when the time is up. */
static int drain(int fd, int64_t until_ms, struct buf *out, struct err *err)
{
	for (;;) {
		struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
		int64_t left = until_ms - clock_steady_ns() / NS_PER_MS;
		char part[4096];
		ssize_t got;

		if (left <= 0)
			return err_set(err, ERR_BUSY, "no answer in time");
		if (poll(&poll_fd, 1, (int)left) <= 0)
			continue;
		got = read(fd, part, sizeof(part));
		if (got > 0)
			buf_add(out, part, (size_t)got);
		else if (!got || errno != EINTR)
			return 0;
		if (out->len > CHILD_TEXT_MAX)
			return err_set(err, ERR_LIMIT, "more than %d bytes of answer",
				       CHILD_TEXT_MAX);
	}
}

/* A child stuck in the driver can't be killed: it is left, not waited for. */
static int reap(pid_t pid, struct err *err)
{
	int status = 0;

	for (int i = 0; i < REAP_TRIES; i++) {
		struct timespec step = { .tv_nsec = REAP_STEP_MS * 1000000L };
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid && WIFSIGNALED(status))
			return err_set(err, ERR_IO, "died: signal %d", WTERMSIG(status));
		if (got == pid && WEXITSTATUS(status))
			return err_set(err, ERR_IO, "ended with status %d", WEXITSTATUS(status));
		if (got == pid || (got < 0 && errno != EINTR))
			return 0;
		(void)nanosleep(&step, NULL);
	}
	return err_set(err, ERR_BUSY, "hangs in the kernel, process %d", (int)pid);
}

int child_text(void (*run)(int fd, void *arg), void *arg, int64_t limit_ms, struct buf *out,
	       struct err *err)
{
	struct err ignored = { 0 };
	int ends[2], status, ended;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(err, "pipe");
	pid = fork();
	if (pid < 0) {
		(void)close(ends[0]);
		(void)close(ends[1]);
		return err_errno(err, "fork");
	}
	if (!pid)
		in_child(run, arg, ends[1]);
	(void)setpgid(pid, pid);
	(void)close(ends[1]);
	status = drain(ends[0], clock_steady_ns() / NS_PER_MS + limit_ms, out, err);
	(void)close(ends[0]);
	/* An orderly child may still be on its way out. */
	if (status < 0 || kill(-pid, 0) < 0)
		(void)kill(-pid, SIGKILL);
	ended = reap(pid, status < 0 ? &ignored : err);
	(void)kill(-pid, SIGKILL); /* what it left behind */
	buf_text(out, "");
	return status < 0 ? status : ended;
}

static void exec_program(int fd, void *arg)
{
	/* exec does not change what the pointers show. */
	char *const *argv = arg;

	if (dup2(fd, STDOUT_FILENO) < 0)
		_Exit(STATUS_NOT_STARTED);
	(void)execvp(argv[0], argv);
	_Exit(STATUS_NOT_STARTED);
}

int child_program(const char *const *argv, int64_t limit_ms, struct buf *out, struct err *err)
{
	union {
		const char *const *words;
		void *arg;
	} as = { .words = argv };

	return child_text(exec_program, as.arg, limit_ms, out, err);
}
