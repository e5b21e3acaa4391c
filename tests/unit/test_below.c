/* Is a tool below the command? Of an invented /proc: collect/below.c. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "collect/below.h"

enum { COMMAND = 10, TOOL = 12, ENOUGH_LOOKS = 20 };

static char root[] = "/tmp/sonde-below-XXXXXX";
static struct below *below;
static int last_pid = 100;

static void put(const char *name, const char *text, size_t len)
{
	struct buf path = { 0 };
	FILE *file;

	buf_printf(&path, "%s/proc/%s", root, name);
	file = fopen(path.at, "we");
	cr_assert_not_null(file, "%s", path.at);
	cr_assert_eq(fwrite(text, 1, len, file), len);
	cr_assert_eq(fclose(file), 0);
	buf_done(&path);
}

static void make_folder(const char *name)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/proc/%s", root, name);
	(void)mkdir(path.at, 0700);
	buf_done(&path);
}

/* As a process that begins: the last pid counts on. */
static void process(int pid, const char *comm, const char *children, const char *variable)
{
	char name[64], text[256];

	snprintf(name, sizeof(name), "%d/task/%d", pid, pid);
	for (char *slash = name; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		make_folder(name);
		*slash = '/';
	}
	make_folder(name);
	snprintf(name, sizeof(name), "%d/comm", pid);
	snprintf(text, sizeof(text), "%s\n", comm);
	put(name, text, strlen(text));
	snprintf(name, sizeof(name), "%d/task/%d/children", pid, pid);
	put(name, children, strlen(children));
	snprintf(name, sizeof(name), "%d/environ", pid);
	memcpy(text, "A=b", 4);
	snprintf(text + 4, sizeof(text) - 4, "%s", variable);
	put(name, text, 4 + strlen(variable) + 1);
	snprintf(text, sizeof(text), "0.10 0.20 0.30 2/300 %d\n", ++last_pid);
	put("loadavg", text, strlen(text));
}

static void begin(void)
{
	char path[64];

	cr_assert_not_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/proc", root);
	cr_assert_eq(mkdir(path, 0700), 0);
	process(COMMAND, "sh", "", "");
	below = below_new(root, COMMAND, "ncu", "INJECTION");
}

static void end(void)
{
	char command[64];

	below_free(below);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	cr_assert_eq(system(command), 0);
}

TestSuite(below, .init = begin, .fini = end);

static bool is_found(void)
{
	for (int i = 0; i < ENOUGH_LOOKS; i++)
		below_look(below);
	return below_found(below);
}

Test(below, a_tool_with_the_variable_is_found_where_a_child_starts_it)
{
	process(11, "bash", "12 ", "");
	process(TOOL, "ncu", "", "INJECTION=/library");
	cr_assert(!is_found());
	process(COMMAND, "sh", "11 ", "");
	cr_assert(is_found());
}

Test(below, the_process_itself_can_become_the_tool)
{
	process(COMMAND, "ncu", "", "INJECTION=/library");
	cr_assert(is_found());
}

Test(below, without_the_variable_it_is_of_no_interest)
{
	process(COMMAND, "sh", "12 13 14 15 ", "INJECTION=/library");
	process(TOOL, "ncu", "", "INJECTION64=/library");
	process(13, "nsys", "", "INJECTION=/library");
	process(14, "ncurses", "", "INJECTION=/library");
	process(15, "ncu", "", "");
	cr_assert(!is_found());
	process(15, "ncu", "", "INJECTION=/library"); /* what a process began with stays */
	cr_assert(!is_found());
}

Test(below, a_name_or_an_environment_that_comes_late_is_seen)
{
	process(COMMAND, "sh", "12 13 ", "");
	process(TOOL, "sh", "", "INJECTION=/library");
	process(13, "ncu", "", "");
	put("13/environ", "", 0);
	for (int i = 0; i < 4; i++)
		below_look(below);
	cr_assert(!below_found(below));
	put("12/comm", "ncu\n", 4);
	cr_assert(is_found());
}

Test(below, nothing_is_read_where_no_process_began)
{
	process(COMMAND, "sh", "12 ", "");
	process(TOOL, "sh", "", "INJECTION=/library");
	for (int i = 0; i < 100; i++)
		below_look(below);
	put("12/comm", "ncu\n", 4);
	cr_assert(!is_found());
	process(13, "sleep", "", "");
	cr_assert(is_found());
}

Test(below, processes_that_end_give_their_place_to_others)
{
	struct buf children = { 0 };
	char name[64];

	for (int pid = 1000; pid < 1600; pid++)
		buf_printf(&children, "%d ", pid); /* none of them is there any more */
	process(COMMAND, "sh", children.at, "");
	for (int i = 0; i < 2000; i++) {
		if (i == 1000)
			process(COMMAND, "sh", "12 ", "");
		if (i == 1000)
			process(TOOL, "ncu", "", "INJECTION=/library");
		if (i == 500)
			process(COMMAND, "sh", "-3 x 10 99999999999 10", "");
		below_look(below);
	}
	cr_assert(below_found(below));
	buf_done(&children);
	snprintf(name, sizeof(name), "%s/proc/%d/comm", root, COMMAND);
	cr_assert_eq(unlink(name), 0);
	cr_assert(is_found());
}

Test(below, no_proc_and_no_process_are_nothing)
{
	struct below *none = below_new("/no/such/root", COMMAND, "ncu", "INJECTION");

	below_look(NULL);
	cr_assert(!below_found(NULL));
	for (int i = 0; i < ENOUGH_LOOKS; i++)
		below_look(none);
	cr_assert(!below_found(none));
	below_free(none);
	below_free(NULL);
}

static void called(int pid, const char *comm, const char *command, size_t len, int start)
{
	char name[32], text[256];

	snprintf(name, sizeof(name), "%d/comm", pid);
	snprintf(text, sizeof(text), "%s\n", comm);
	put(name, text, strlen(text));
	snprintf(name, sizeof(name), "%d/cmdline", pid);
	put(name, command, len);
	snprintf(name, sizeof(name), "%d/stat", pid);
	snprintf(text, sizeof(text), "%d (%s) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 %d 0 0\n", pid,
		 comm, start);
	put(name, text, strlen(text));
}

#define WORDS(text) text, sizeof(text)

/* A worker that has done nothing but load data has a name all the same; one that is in the
 * recording is not told again. */
Test(below, processes_of_which_nothing_is_recorded_are_told_by_the_last_name)
{
	struct session *session = session_new();
	uint32_t source = session_source(session, "cuda", "train");
	uint32_t trainer = session_process(session, source, 11);
	const struct process *rows;
	char path[64];

	session->processes.at[trainer].start_ticks = 500;
	process(COMMAND, "sh", "11 ", "");
	called(COMMAND, "sh", WORDS("sh\0-c\0python train.py"), 499);
	process(11, "python", "12 13 14 ", "");
	called(11, "python", WORDS("/usr/bin/python\0train.py"), 500);
	process(12, "python", "", "");
	called(12, "python", WORDS("/usr/bin/python\0train.py"), 501);
	process(13, "x", "", "");
	called(13, "a\033[1mb\nc", "", 0, 502);
	for (int i = 0; i < 60; i++)
		below_look(below);
	/* One that is over before its name can have settled is none. */
	process(14, "sed", "", "");
	called(14, "sed", WORDS("sed"), 503);
	below_look(below);
	snprintf(path, sizeof(path), "%s/proc/14/comm", root);
	cr_assert_eq(unlink(path), 0);
	/* Nothing begins any more; the name comes late. */
	called(12, "pt_data_worker", WORDS("/usr/bin/python\0train.py"), 501);
	for (int i = 0; i < 1000; i++)
		below_look(below);
	below_tell(below, session, INT64_MAX);
	cr_assert_eq(session->processes.count, 1);
	below_tell(below, session, 0);
	below_tell(below, session, 0);
	rows = session->processes.at;
	cr_assert_eq(session->processes.count, 4);
	cr_assert_str_eq(session_text(session, session->sources.at[rows[1].source].reader), "proc");
	for (size_t i = 1; i < 4; i++) {
		const char *name = session_text(session, rows[i].name);

		if (rows[i].pid == COMMAND)
			cr_assert_str_eq(name, "sh");
		else if (rows[i].pid == 12)
			cr_assert_str_eq(name, "python: pt_data_worker");
		else
			cr_assert_str_eq(name, "a?[1mb");
		if (rows[i].pid == 12)
			cr_assert_str_eq(session_text(session, rows[i].command),
					 "/usr/bin/python train.py");
	}
	session_free(session);
}

Test(below, a_session_without_processes_gets_them)
{
	struct session *session = session_new();

	process(COMMAND, "sh", "11 ", "");
	called(COMMAND, "sh", WORDS("sh\0script"), 499);
	process(11, "sleep", "", "");
	called(11, "sleep", WORDS("sleep\0009"), 500);
	for (int i = 0; i < 60; i++)
		below_look(below);
	below_tell(below, session, 0);
	cr_assert_eq(session->processes.count, 2);
	session_free(session);
}

/* By prctl(PR_SET_NAME, ""), as an idle worker may. */
Test(below, a_process_may_have_an_empty_name)
{
	struct session *session = session_new();

	process(COMMAND, "sh", "11 ", "");
	called(COMMAND, "sh", WORDS("sh\0script"), 499);
	process(11, "", "", "");
	called(11, "", WORDS("worker"), 500);
	for (int i = 0; i < 60; i++)
		below_look(below);
	below_tell(below, session, 0);
	cr_assert_eq(session->processes.count, 2);
	cr_assert_eq(session->processes.at[1].start_ticks, 500);
	session_free(session);
}
