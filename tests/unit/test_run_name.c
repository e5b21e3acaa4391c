#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/run_name.h"

static struct err err;
static char path[PATH_MAX];

static const char *named(const char *output, const char *command)
{
	cr_assert_eq(run_name(output, command, path, &err), 0, "%s", err.line);
	return path;
}

Test(run_name, expands_pid_host_and_environment)
{
	char wanted[512], host[256] = "";

	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(wanted, sizeof(wanted), "a-%ld-%s-7-%%.sonde", (long)getpid(), host);
	(void)setenv("RANK", "7", 1);
	cr_assert_str_eq(named("a-%p-%h-%q{RANK}-%%.sonde", "x"), wanted);
	(void)unsetenv("RANK");
	cr_assert_str_eq(named("a%q{RANK}", "x"), "a");
}

Test(run_name, refuses_what_it_does_not_know)
{
	cr_assert_eq(run_name("a%x", "c", path, &err), ERR_USAGE);
	cr_assert(strstr(err.line, "%x is none of"), "%s", err.line);
	cr_assert_eq(run_name("a%", "c", path, &err), ERR_USAGE);
	cr_assert_eq(run_name("a%q", "c", path, &err), ERR_USAGE);
	cr_assert_eq(run_name("a%q{HOME", "c", path, &err), ERR_USAGE);
	cr_assert_eq(run_name("", "c", path, &err), ERR_LIMIT);
}

Test(run_name, refuses_names_that_are_too_long)
{
	static char long_name[PATH_MAX + 2];
	static char long_variable[400] = "%q{";

	memset(long_name, 'a', sizeof(long_name) - 1);
	cr_assert_eq(run_name(long_name, "c", path, &err), ERR_LIMIT);
	long_name[PATH_MAX - 1] = 0;
	cr_assert_eq(run_name(long_name, "c", path, &err), 0);
	memset(long_variable + 3, 'V', 300);
	long_variable[303] = '}';
	cr_assert_eq(run_name(long_variable, "c", path, &err), ERR_LIMIT);
}

Test(run_name, takes_the_commands_name_and_never_one_that_exists)
{
	char place[] = "/tmp/run-name-XXXXXX";

	cr_assert_not_null(mkdtemp(place));
	cr_assert_eq(chdir(place), 0);
	cr_assert_str_eq(named(NULL, "/opt/bin/train.py"), "train.sonde");
	close(open("train.sonde", O_CREAT | O_WRONLY, 0600));
	cr_assert_str_eq(named(NULL, "./train.py"), "train-2.sonde");
	close(open("train-2.sonde", O_CREAT | O_WRONLY, 0600));
	cr_assert_str_eq(named(NULL, "train"), "train-3.sonde");
	cr_assert_str_eq(named(NULL, ".hidden"), ".hidden.sonde");
	(void)unlink("train.sonde");
	(void)unlink("train-2.sonde");
	(void)rmdir(place);
}
