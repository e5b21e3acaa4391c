/* The live kernel log: files that grow and are rotated, records, fallback. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/kernel_log.h"
#include "temp_folder.h"

#define XID_LINE(number) "[   12.5] NVRM: Xid (PCI:0000:9b:00): " number ", x\n"

static struct temp_folder folder;
static char path[96];

static void setup(void)
{
	temp_make(&folder, "/tmp");
	(void)snprintf(path, sizeof(path), "%s/kern.log", folder.path);
}

static void teardown(void)
{
	temp_remove(&folder);
}

TestSuite(kernel_log_live, .init = setup, .fini = teardown);

static void append(const char *text)
{
	FILE *file = fopen(path, "ae");

	cr_assert_not_null(file);
	cr_assert_geq(fputs(text, file), 0);
	cr_assert_eq(fclose(file), 0);
}

static struct kernel_log *follow(bool from_start)
{
	const char *const files[] = { path, NULL };
	struct kernel_log_opts opts = { .kmsg = "", .files = files, .from_start = from_start };
	struct kernel_log *log = NULL;
	struct err err = { 0 };

	cr_assert_eq(kernel_log_open(&opts, &log, &err), 0, "%s", err.line);
	return log;
}

static int64_t next(struct kernel_log *log)
{
	struct fault fault;
	struct err err = { 0 };
	int got = kernel_log_take(log, &fault, &err);

	cr_assert_geq(got, 0, "%s", err.line);
	return got ? fault.number : -1;
}

Test(kernel_log_live, only_what_comes_after_opening_counts)
{
	OWN(kernel_log_closep) struct kernel_log *log = NULL;

	append(XID_LINE("31"));
	log = follow(false);
	cr_assert_eq(next(log), -1);
	append(XID_LINE("79") "[ 13.0] usb\n" XID_LINE("154"));
	cr_assert_eq(next(log), 79);
	cr_assert_eq(next(log), 154);
	cr_assert_eq(next(log), -1);
}

Test(kernel_log_live, half_a_line_waits_for_its_end)
{
	OWN(kernel_log_closep) struct kernel_log *log = NULL;

	append("");
	log = follow(true);
	append("[   12.5] NVRM: Xid (PCI:0000:9b:00): 7");
	cr_assert_eq(next(log), -1);
	append("9, x\n");
	cr_assert_eq(next(log), 79);
}

Test(kernel_log_live, a_renamed_file_is_read_to_its_end_then_the_new_one)
{
	OWN(kernel_log_closep) struct kernel_log *log = NULL;
	char old[128];

	append(XID_LINE("31"));
	log = follow(true);
	cr_assert_eq(next(log), 31);
	append(XID_LINE("45"));
	(void)snprintf(old, sizeof(old), "%s.1", path);
	cr_assert_eq(rename(path, old), 0);
	append(XID_LINE("79"));
	cr_assert_eq(next(log), 45);
	cr_assert_eq(next(log), 79);
	cr_assert_eq(next(log), -1);
}

Test(kernel_log_live, a_file_that_was_cut_is_read_from_its_start)
{
	OWN(kernel_log_closep) struct kernel_log *log = NULL;

	append(XID_LINE("31") XID_LINE("31"));
	log = follow(true);
	cr_assert_eq(next(log), 31);
	cr_assert_eq(next(log), 31);
	cr_assert_eq(next(log), -1);
	cr_assert_eq(truncate(path, 0), 0);
	append(XID_LINE("79"));
	cr_assert_eq(next(log), 79);
}

Test(kernel_log_live, a_line_without_end_costs_that_line)
{
	OWN(kernel_log_closep) struct kernel_log *log = NULL;

	append("");
	log = follow(true);
	for (int i = 0; i < 100; i++) {
		char block[1025];

		memset(block, 'x', 1024);
		block[1024] = 0;
		append(block);
		cr_assert_eq(next(log), -1);
	}
	append("\n" XID_LINE("79"));
	cr_assert_eq(next(log), 79);
}

Test(kernel_log_live, overwritten_records_are_counted)
{
	struct kernel_log_opts opts = { .kmsg = path, .from_start = true };
	OWN(kernel_log_closep) struct kernel_log *log = NULL;
	struct err err = { 0 };
	struct fault fault;

	append("4,100,1000000,-;NVRM: Xid (PCI:0000:9b:00): 31, x\n SUBSYSTEM=pci\n"
	       "4,104,2000000,-;NVRM: Xid (PCI:0000:9b:00): 79, x\n");
	cr_assert_eq(kernel_log_open(&opts, &log, &err), 0, "%s", err.line);
	cr_assert_eq(next(log), 31);
	cr_assert_eq(kernel_log_take(log, &fault, &err), 1);
	cr_assert(fault.has_time);
	cr_assert_eq(kernel_log_lost(log), 3);
}

Test(kernel_log_live, what_is_closed_to_us_is_named_and_the_file_is_taken)
{
	const char *const files[] = { path, NULL };
	struct kernel_log_opts opts = { .kmsg = "/no/such/kmsg", .files = files };
	OWN(kernel_log_closep) struct kernel_log *log = NULL;
	struct err err = { 0 };

	append("");
	cr_assert_eq(kernel_log_open(&opts, &log, &err), 0, "%s", err.line);
	cr_assert_str_eq(kernel_log_name(log), path);
	cr_assert_str_eq(kernel_log_reason(log), "/no/such/kmsg: No such file or directory");
	cr_assert_eq(kernel_log_fd(log), -1);
}

Test(kernel_log_live, no_log_at_all_is_one_line)
{
	const char *const files[] = { "/no/such/file", NULL };
	struct kernel_log_opts opts = { .kmsg = "/no/such/kmsg", .files = files };
	struct kernel_log *log = NULL;
	struct err err = { 0 };

	cr_assert_eq(kernel_log_open(&opts, &log, &err), ERR_MISSING);
	cr_assert_str_eq(err.line,
			 "no kernel log can be read: /no/such/kmsg: No such file or directory");
	cr_assert_null(log);
}

/* A journalctl of this test, found before the real one; what it says first. */
static void make_journalctl(const char *says)
{
	char file[128], dirs[1024];
	FILE *out;

	(void)snprintf(file, sizeof(file), "%s/journalctl", folder.path);
	out = fopen(file, "we");
	cr_assert_not_null(out);
	(void)fprintf(out, "#!/bin/sh\n%s", says);
	cr_assert_eq(fclose(out), 0);
	cr_assert_eq(chmod(file, 0700), 0);
	(void)snprintf(dirs, sizeof(dirs), "%s:/usr/bin:/bin", folder.path);
	(void)setenv("PATH", dirs, 1);
}

static struct kernel_log *journal(void)
{
	const char *const files[] = { "/no/such/kern.log", NULL };
	struct kernel_log_opts opts = { .kmsg = "/no/such/kmsg", .files = files, .journal = true };
	struct kernel_log *log = NULL;
	struct err err = { 0 };

	cr_assert_eq(kernel_log_open(&opts, &log, &err), 0, "%s", err.line);
	cr_assert_str_eq(kernel_log_name(log), "journalctl");
	return log;
}

static int next_of_journal(struct kernel_log *log, struct fault *fault, struct err *err)
{
	struct pollfd ready = { .fd = kernel_log_fd(log), .events = POLLIN };
	int got = 0;

	while (!got && poll(&ready, 1, 10000) > 0)
		got = kernel_log_take(log, fault, err);
	return got;
}

Test(kernel_log_live, the_journal_tells_and_ends_although_signals_are_blocked)
{
	struct kernel_log *log;
	struct fault fault;
	struct err err = { 0 };
	sigset_t all;

	make_journalctl("echo '{\"__REALTIME_TIMESTAMP\":\"1796043604000000\",\"MESSAGE\":"
			"\"NVRM: Xid (PCI:0000:9b:00): 79, x\"}'\nexec sleep 1000\n");
	(void)sigfillset(&all);
	cr_assert_eq(sigprocmask(SIG_BLOCK, &all, NULL), 0);
	log = journal();
	cr_assert_eq(next_of_journal(log, &fault, &err), 1, "%s", err.line);
	cr_assert_eq(fault.number, 79);
	cr_assert_eq(fault.time_ns, INT64_C(1796043604000000000));
	kernel_log_close(log); /* would wait for the sleeper */
}

Test(kernel_log_live, a_journal_that_may_not_be_read_has_ended)
{
	OWN(kernel_log_closep) struct kernel_log *log = NULL;
	struct fault fault;
	struct err err = { 0 };

	make_journalctl("echo 'No journal files were opened due to insufficient permissions.' >&2\n"
			"exit 1\n");
	log = journal();
	cr_assert_eq(next_of_journal(log, &fault, &err), ERR_IO);
	cr_assert_str_eq(err.line, "journalctl has ended");
}

/* The one of this machine, where we may read it. */
Test(kernel_log_live, the_real_kernel_log_is_read_to_its_end)
{
	struct kernel_log_opts opts = { .from_start = true };
	OWN(kernel_log_closep) struct kernel_log *log = NULL;
	struct err err = { 0 };
	struct fault fault;
	int got;

	if (access("/dev/kmsg", R_OK) < 0)
		cr_skip_test("/dev/kmsg may not be read here");
	cr_assert_eq(kernel_log_open(&opts, &log, &err), 0, "%s", err.line);
	if (*kernel_log_reason(log))
		cr_skip_test("%s", kernel_log_reason(log));
	while ((got = kernel_log_take(log, &fault, &err)) > 0)
		cr_assert_gt(fault.time_ns, 0);
	cr_assert_eq(got, 0, "%s", err.line);
	cr_assert_eq(kernel_log_lost(log), 0);
}
