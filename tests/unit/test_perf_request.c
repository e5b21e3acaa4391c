/* Perf maps that a run asked for, in an invented /tmp with invented processes. */
#include "collect/perf_request.h"

#include <fcntl.h>

#include "base/buf.h"

#include "proc_tree.h"

static const char PYTHONS[] = "10 b py::collate:/home/me/data.py\n";

struct rig {
	struct proc_tree tree;
	struct perf_request *request;
	struct perf_request_counts counts;
};

static void start(struct rig *rig)
{
	struct err err = { 0 };

	tree_make(&rig->tree);
	tree_file(&rig->tree, "tmp/perf-1.map", PYTHONS);
	cr_assert_eq(perf_request_open(rig->tree.root, &rig->request, &err), 0, "%s", err.line);
}

/* A process with this environment, a text beside the mark, and these arguments, words by '|'. */
static void process(struct rig *rig, int pid, const char *environment, const char *arguments)
{
	struct buf text = { 0 };
	char path[64];

	buf_printf(&text, "HOME=/|%s|PYTHONPERFSUPPORT=1|",
		   environment ? environment : perf_request_mark(rig->request));
	for (char *at = text.at; (at = strchr(at, '|')); at++)
		*at = 0;
	(void)snprintf(path, sizeof(path), "proc/%d/environ", pid);
	tree_bytes(&rig->tree, path, text.at, text.len);
	buf_clear(&text);
	buf_text(&text, arguments);
	for (char *at = text.at; (at = strchr(at, '|')); at++)
		*at = 0;
	(void)snprintf(path, sizeof(path), "proc/%d/cmdline", pid);
	tree_bytes(&rig->tree, path, text.at, text.len + 1);
	buf_done(&text);
}

static bool is_there(struct rig *rig, const char *name)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/tmp/%s", rig->tree.root, name);
	return access(path, F_OK) == 0;
}

static void stop(struct rig *rig)
{
	rig->counts = perf_request_close(rig->request);
	cr_assert(is_there(rig, "perf-1.map"), "it was there before");
}

/* As the start-up module does. */
static void tell(const struct rig *rig, const char *pid)
{
	int to =
		open(strchr(perf_request_mark(rig->request), '/'), O_WRONLY | O_APPEND | O_CLOEXEC);

	cr_assert(to >= 0 && write(to, pid, strlen(pid)) == (ssize_t)strlen(pid));
	(void)close(to);
}

Test(perf_request, a_map_that_it_caused_is_removed)
{
	struct rig rig = { 0 };

	start(&rig);
	process(&rig, 77, NULL, "python|train.py|-X|ray");
	tree_file(&rig.tree, "tmp/perf-77.map", PYTHONS);
	process(&rig, 78, NULL, "python");
	tree_file(&rig.tree, "tmp/perf-78.map", "");
	stop(&rig);
	cr_assert_not(is_there(&rig, "perf-77.map"));
	cr_assert_not(is_there(&rig, "perf-78.map"), "killed before its first line");
	cr_assert_eq(rig.counts.seen, 2);
	cr_assert_eq(rig.counts.removed, 2);
	cr_assert_eq(rig.counts.unsure, 0);
	tree_remove(&rig.tree);
}

Test(perf_request, maps_of_others_stay)
{
	struct rig rig = { 0 };
	static const char *const names[] = { "perf-2.map", "perf-3.map",   "perf-4.map",
					     "perf-5.map", "perf-077.map", "perf-77.map.old",
					     "perf-.map",  "perf-77x.map" };

	start(&rig);
	process(&rig, 77, NULL, "python");
	process(&rig, 2, "SONDE_PERF_MAP=/proc/1/fd/1", "python");
	process(&rig, 3, NULL, "python|-X|perf|train.py");
	process(&rig, 4, NULL, "python|-Xperf_jit");
	process(&rig, 5, NULL, "node");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "tmp/%s", names[i]);
		tree_file(&rig.tree, path, i == 3 ? "10 b LazyCompile:*collate\n" : PYTHONS);
	}
	stop(&rig);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_assert(is_there(&rig, names[i]), "%s", names[i]);
	cr_assert_eq(rig.counts.removed, 0);
	tree_remove(&rig.tree);
}

Test(perf_request, of_a_process_that_has_gone_its_own_word_counts)
{
	struct rig rig = { 0 };

	start(&rig);
	tell(&rig, "77\n");
	tell(&rig, "rubbish\n-5\n99999999999999999999\n");
	tree_file(&rig.tree, "tmp/perf-77.map", PYTHONS);
	tree_file(&rig.tree, "tmp/perf-78.map", PYTHONS);
	tree_file(&rig.tree, "tmp/perf-79.map", "10 b node\n");
	stop(&rig);
	cr_assert_not(is_there(&rig, "perf-77.map"));
	cr_assert(is_there(&rig, "perf-78.map"));
	cr_assert(is_there(&rig, "perf-79.map"));
	cr_assert_eq(rig.counts.seen, 1);
	cr_assert_eq(rig.counts.unsure, 1);
	tree_remove(&rig.tree);
}

Test(perf_request, links_and_folders_of_the_name_stay)
{
	struct rig rig = { 0 };

	start(&rig);
	process(&rig, 77, NULL, "python");
	process(&rig, 78, NULL, "python");
	tree_file(&rig.tree, "tmp/other", PYTHONS);
	tree_link(&rig.tree, "tmp/perf-77.map", "other");
	tree_file(&rig.tree, "tmp/perf-78.map/file", PYTHONS);
	stop(&rig);
	cr_assert(is_there(&rig, "perf-77.map"));
	cr_assert(is_there(&rig, "perf-78.map/file"));
	cr_assert(is_there(&rig, "other"));
	cr_assert_eq(rig.counts.seen, 0);
	tree_remove(&rig.tree);
}

Test(perf_request, without_a_folder_to_watch_it_is_refused)
{
	struct perf_request *request = NULL;
	struct err err = { 0 };

	cr_assert_lt(perf_request_open("/no/such", &request, &err), 0);
	cr_assert_null(request);
	cr_assert(strstr(err.line, "/no/such/tmp"), "%s", err.line);
}
