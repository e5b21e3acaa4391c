#include "collect/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

extern char **environ;

struct launch {
	pid_t pid;
	int signals;  /* signalfd */
	int terminal; /* the one that controls us; -1 none */
	sigset_t before;
	void (*child_before)(int);
	bool has_terminal; /* the program is the terminal's foreground group */
	bool interrupted;
	bool ended;
};

/* From the background, too: SIGTTOU would stop us. */
static bool give_terminal(const struct launch *launch, pid_t group)
{
	sigset_t set, before;
	bool given;

	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, &before);
	given = launch->terminal >= 0 && tcsetpgrp(launch->terminal, group) == 0;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return given;
}

static const int PASSED[] = { SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };

static sigset_t watched(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTSTP);
	for (size_t i = 0; i < sizeof(PASSED) / sizeof(PASSED[0]); i++)
		sigaddset(&set, PASSED[i]);
	return set;
}

/* In the child: become the program. What went wrong goes into the pipe. */
static void become(const struct launch_opts *opts, const struct launch *launch, int report)
{
	int code;

	(void)setpgid(0, 0);
	for (const char *const *env = opts->env; env && *env; env++)
		(void)putenv((char *)(uintptr_t)*env);
	(void)signal(SIGCHLD, launch->child_before);
	sigprocmask(SIG_SETMASK, &launch->before, NULL);
	execvp(opts->argv[0], (char *const *)(uintptr_t)opts->argv);
	code = errno;
	(void)!write(report, &code, sizeof(code));
	_exit(127);
}

int launch_start(const struct launch_opts *opts, struct launch **ret_launch, struct err *err)
{
	OWN(launch_freep) struct launch *launch = mem_zero(sizeof(*launch));
	sigset_t set = watched();
	int ends[2], code = 0;

	launch->signals = -1;
	launch->terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	sigprocmask(SIG_BLOCK, &set, &launch->before);
	/* Ignored, as some parents leave it, the kernel would keep the program's end from us. */
	launch->child_before = signal(SIGCHLD, SIG_DFL);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(err, "%s", opts->argv[0]);
	launch->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	launch->pid = launch->signals < 0 ? -1 : fork();
	if (launch->pid == 0)
		become(opts, launch, ends[1]);
	close(ends[1]);
	if (launch->pid < 0) {
		close(ends[0]);
		return err_errno(err, "%s", opts->argv[0]);
	}
	(void)setpgid(launch->pid, launch->pid);
	if (read(ends[0], &code, sizeof(code)) == sizeof(code)) {
		close(ends[0]);
		(void)waitpid(launch->pid, NULL, 0);
		launch->ended = true;
		errno = code;
		return err_errno(err, "%s", opts->argv[0]);
	}
	close(ends[0]);
	*ret_launch = STEAL(launch);
	return 0;
}

void launch_free(struct launch *launch)
{
	if (!launch)
		return;
	if (launch->has_terminal)
		(void)give_terminal(launch, getpgrp());
	if (launch->terminal >= 0)
		close(launch->terminal);
	if (launch->signals >= 0)
		close(launch->signals);
	(void)signal(SIGCHLD, launch->child_before);
	sigprocmask(SIG_SETMASK, &launch->before, NULL);
	free(launch);
}

int launch_failed_status(const struct err *err)
{
	return err->code == ERR_MISSING ? 127 : 126;
}

pid_t launch_pid(const struct launch *launch)
{
	return launch->pid;
}

static void pass(const struct launch *launch, int signal_number)
{
	if (!launch->ended)
		(void)kill(-launch->pid, signal_number);
}

/* We stop as well, so that the shell above sees a stopped job, and take the
 * program along when we go on. */
static void stop_with_it(struct launch *launch)
{
	bool had = launch->has_terminal;

	if (had)
		(void)give_terminal(launch, getpgrp());
	(void)raise(SIGSTOP);
	launch->has_terminal = had && tcgetpgrp(launch->terminal) == getpgrp() &&
			       give_terminal(launch, launch->pid);
	(void)kill(-launch->pid, SIGCONT);
}

/* Stopped by SIGTTIN or SIGTTOU it wants the terminal, which is ours to give if
 * we are in front. Stopped by SIGTSTP it got the key itself. Anything else is
 * between the program and who stopped it. */
static void stopped(struct launch *launch, int by)
{
	if (by == SIGTTIN || by == SIGTTOU) {
		if (launch->terminal < 0)
			return;
		if (tcgetpgrp(launch->terminal) != getpgrp()) {
			stop_with_it(launch);
		} else if (give_terminal(launch, launch->pid)) {
			launch->has_terminal = true;
			(void)kill(-launch->pid, SIGCONT);
		}
	} else if (by == SIGTSTP && launch->has_terminal) {
		stop_with_it(launch);
	}
}

static void reap(struct launch *launch, struct launch_news *news)
{
	int status;

	while (!launch->ended &&
	       waitpid(launch->pid, &status, WNOHANG | WUNTRACED) == launch->pid) {
		if (WIFSTOPPED(status)) {
			stopped(launch, WSTOPSIG(status));
			continue;
		}
		launch->ended = news->ended = true;
		news->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
		news->status = news->signal ? 128 + news->signal : WEXITSTATUS(status);
	}
}

static void handle(struct launch *launch, int number, struct launch_news *news)
{
	if (number == SIGCHLD) {
		reap(launch, news);
	} else if (number == SIGINT) {
		news->interrupted = true;
		if (launch->interrupted)
			pass(launch, SIGINT);
		launch->interrupted = true;
	} else if (number == SIGTSTP) {
		pass(launch, SIGSTOP);
		(void)raise(SIGSTOP);
		pass(launch, SIGCONT);
	} else {
		pass(launch, number);
	}
}

void launch_wait(struct launch *launch, int ms, struct launch_news *ret_news)
{
	struct pollfd poll_for = { .fd = launch->signals, .events = POLLIN };
	struct signalfd_siginfo info;

	*ret_news = (struct launch_news){ 0 };
	if (poll(&poll_for, 1, ms) <= 0)
		return;
	while (read(launch->signals, &info, sizeof(info)) == sizeof(info))
		handle(launch, (int)info.ssi_signo, ret_news);
}
