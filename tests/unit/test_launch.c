#include <criterion/criterion.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "collect/launch.h"

static struct err err;

static struct launch *start(const char *const *argv)
{
	static const char *const env[] = { "SONDE_LAUNCH_TEST=there", NULL };
	struct launch_opts opts = { .argv = argv, .env = env };
	struct launch *launch = NULL;

	cr_assert_eq(launch_start(&opts, &launch, &err), 0, "%s", err.line);
	return launch;
}

static struct launch *start_shell(const char *script)
{
	return start((const char *const[]){ "sh", "-c", script, NULL });
}

static struct launch_news wait_end(struct launch *launch)
{
	struct launch_news news;

	do
		launch_wait(launch, 1000, &news);
	while (!news.ended);
	return news;
}

static void expect_status(const char *script, int status, int signal_number)
{
	OWN(launch_freep) struct launch *launch = start_shell(script);
	struct launch_news news = wait_end(launch);

	cr_assert_eq(news.status, status, "%s: %d", script, news.status);
	cr_assert_eq(news.signal, signal_number);
}

Test(launch, gives_the_programs_own_status)
{
	expect_status("exit 0", 0, 0);
	expect_status("exit 42", 42, 0);
	expect_status("kill -9 $$", 137, SIGKILL);
	expect_status("kill -SEGV $$", 139, SIGSEGV);
	expect_status("test \"$SONDE_LAUNCH_TEST\" = there", 0, 0);
}

Test(launch, what_can_not_be_started_is_told_as_a_shell_does)
{
	const char *none[] = { "/no/such/program", NULL };
	const char *no_program[] = { "/etc/passwd", NULL };
	struct launch_opts opts = { .argv = none };
	struct launch *launch = NULL;

	cr_assert_eq(launch_start(&opts, &launch, &err), ERR_MISSING);
	cr_assert_eq(launch_failed_status(&err), 127);
	cr_assert_str_eq(err.line, "/no/such/program: No such file or directory");
	opts.argv = no_program;
	cr_assert_lt(launch_start(&opts, &launch, &err), 0);
	cr_assert_eq(launch_failed_status(&err), 126);
	cr_assert_null(launch);
}

/* The program is to find them as we did, blocked ones and ignored ones alike. */
Test(launch, leaves_signal_dispositions_and_masks_alone)
{
	(void)signal(SIGUSR1, SIG_IGN);
	expect_status("kill -USR1 $$; exit 3", 3, 0);
	(void)signal(SIGUSR1, SIG_DFL);
	expect_status("kill -USR1 $$; exit 3", 128 + SIGUSR1, SIGUSR1);
	expect_status("grep -q 'SigBlk:.*0000000000000000' /proc/self/status", 0, 0);
}

/* Asked of a program itself: a shell takes the signal for its own. SIGCHLD is bit 16. */
static void expect_ignored_children(bool ignored)
{
	OWN(launch_freep)
	struct launch *launch = start((const char *const[]){
		"grep", "-q", ignored ? "^SigIgn:.*[13579bdf]....$" : "^SigIgn:.*[02468ace]....$",
		"/proc/self/status", NULL });

	cr_assert_eq(wait_end(launch).status, 0);
}

/* A parent that never waits for its children leaves it so: the program inherits that, and its
 * end is seen all the same. */
Test(launch, a_program_below_a_parent_that_ignores_its_children_is_waited_for, .timeout = 20)
{
	(void)signal(SIGCHLD, SIG_IGN);
	expect_status("exit 3", 3, 0);
	expect_ignored_children(true);
	cr_assert_eq(signal(SIGCHLD, SIG_DFL), SIG_IGN);
	expect_ignored_children(false);
}

Test(launch, passes_signals_on_but_the_first_interrupt)
{
	OWN(launch_freep) struct launch *launch = NULL;
	struct launch_news news;
	char script[128], byte;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	(void)snprintf(script, sizeof(script),
		       "trap 'exit 8' INT; echo ready >&%d; while :; do sleep 0.02; done", ends[1]);
	/* dash has no descriptors of two digits. */
	launch = start((const char *const[]){ "bash", "-c", script, NULL });
	close(ends[1]);
	cr_assert_eq(read(ends[0], &byte, 1), 1);
	(void)raise(SIGINT);
	launch_wait(launch, 1000, &news);
	cr_assert(news.interrupted);
	cr_assert_not(news.ended);
	(void)raise(SIGINT);
	cr_assert_eq(wait_end(launch).status, 8);
}

Test(launch, passes_a_termination_on)
{
	OWN(launch_freep)
	struct launch *launch = start((const char *const[]){ "sleep", "100", NULL });

	(void)raise(SIGTERM);
	cr_assert_eq(wait_end(launch).signal, SIGTERM);
}

static char state_of(pid_t pid)
{
	char path[64], line[512] = "";
	char *at;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	(void)!fgets(line, sizeof(line), file);
	(void)fclose(file);
	at = strrchr(line, ')');
	return at && at[1] ? at[2] : 0;
}

static void wait_state(pid_t pid, char state)
{
	struct timespec tick = { 0, 5000000 };

	while (state_of(pid) && state_of(pid) != state)
		(void)nanosleep(&tick, NULL);
	cr_assert_eq(state_of(pid), state);
}

/* Somebody else stopped it: none of our business. */
Test(launch, a_program_that_was_stopped_is_waited_for)
{
	OWN(launch_freep)
	struct launch *launch = start((const char *const[]){ "sleep", "0.05", NULL });
	struct launch_news news;

	cr_assert_eq(kill(launch_pid(launch), SIGSTOP), 0);
	wait_state(launch_pid(launch), 'T');
	launch_wait(launch, 20, &news);
	cr_assert_not(news.ended);
	cr_assert_eq(state_of(launch_pid(launch)), 'T');
	cr_assert_eq(kill(launch_pid(launch), SIGCONT), 0);
	cr_assert_eq(wait_end(launch).status, 0);
}

/* In a session of its own with a terminal: runs `script` by launch, exits with
 * its status. */
static pid_t on_terminal(const char *script, int *ret_terminal)
{
	struct termios raw = { 0 };
	pid_t pid;

	cfmakeraw(&raw);
	raw.c_lflag |= ISIG | ICANON;
	raw.c_cc[VINTR] = 3;
	raw.c_cc[VSUSP] = 26;
	raw.c_cc[VEOF] = 4;
	pid = forkpty(ret_terminal, NULL, &raw, NULL);
	if (pid == 0) {
		struct launch *launch = start_shell(script);
		struct launch_news news = wait_end(launch);
		bool back;

		launch_free(launch);
		back = tcgetpgrp(STDIN_FILENO) == getpgrp();
		_exit(back ? news.status : 99);
	}
	cr_assert_gt(pid, 0);
	return pid;
}

static int status_of(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void type(int terminal, const char *keys)
{
	cr_assert_eq(write(terminal, keys, strlen(keys)), (ssize_t)strlen(keys));
}

/* Reads what the program prints until it has printed `text`. */
static void expect(int terminal, const char *text)
{
	static char seen[4096];
	size_t len = 0;
	ssize_t got;

	while (!strstr(seen, text) &&
	       (got = read(terminal, seen + len, sizeof(seen) - len - 1)) > 0) {
		len += (size_t)got;
		seen[len] = 0;
	}
	cr_assert(strstr(seen, text), "'%s' is not in '%s'", text, seen);
	memset(seen, 0, sizeof(seen));
}

Test(launch, a_program_that_reads_is_given_the_terminal)
{
	int terminal;
	pid_t pid = on_terminal("read line; test \"$line\" = hello && exit 5", &terminal);

	type(terminal, "hello\n");
	cr_assert_eq(status_of(pid), 5);
}

/* Its standard input is a file; it asks at the terminal all the same. */
Test(launch, a_program_that_asks_at_the_terminal_behind_its_input_is_given_it)
{
	int terminal;
	pid_t pid = on_terminal(
		"exec </dev/null; read line </dev/tty; test \"$line\" = yes && exit 6", &terminal);

	type(terminal, "yes\n");
	cr_assert_eq(status_of(pid), 6);
}

/* The key goes to the program; the shell above us has to see a stopped job. */
Test(launch, a_program_stopped_at_its_terminal_stops_us_and_goes_on_with_us)
{
	int terminal, status;
	pid_t pid = on_terminal("read line; echo ready; read line; exit 4", &terminal);

	type(terminal, "first\n");
	expect(terminal, "ready");
	type(terminal, "\032");
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
	cr_assert_eq(kill(pid, SIGCONT), 0);
	type(terminal, "second\n");
	cr_assert_eq(status_of(pid), 4);
}
