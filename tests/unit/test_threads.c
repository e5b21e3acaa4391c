/* Threads as an invented /proc shows them. */
#include "collect/threads.h"
#include "proc_tree.h"
#include "sink_record.h"

static struct proc_tree tree;

static void put(const char *dir, const char *name, const char *text)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	tree_file(&tree, path, text);
}

/* Process 41, "a (b) c", with its first thread and, in a lane of its own, 42. */
static struct sink *program(void)
{
	struct sink *sink;
	struct session *session;
	struct lane lane = {
		.kind = LANE_THREAD, .device = SESSION_NONE, .context = -1, .stream = -1, .tid = 42
	};

	tree_make(&tree);
	sink = &record_new()->sink;
	session = sink->session;
	lane.source = session_source(session, "cuda", "it");
	lane.process = session_process(session, lane.source, 41);
	session->processes.at[lane.process].name = intern_text(session->strings, "a (b) c");
	(void)session_lane(session, &lane);
	put("proc/41/task/41", "stat", "41 (a (b) c) S 1 41\n");
	put("proc/41/task/41", "syscall", "202 0x1 0x2\n");
	put("proc/41/task/42", "stat", "42 (loader) R 1 41\n");
	put("proc/41/task/42", "syscall", "running\n");
	put("proc/41/task/42", "schedstat", "1000 500 7\n");
	return sink;
}

static const char *state(struct sink *sink, int64_t tid, int64_t start_ns)
{
	struct record *record = record_of(sink);

	for (size_t i = 0; i < record->ranges.count; i++) {
		const struct range *range = &record->ranges.at[i];

		if (range->start_ns == start_ns && range->kind == RANGE_STATE &&
		    sink->session->lanes.at[range->lane].tid == tid)
			return session_text(sink->session, range->name);
	}
	return "";
}

enum { FIRST = 1000000000, SECOND = FIRST + 500000000, THIRD = SECOND + 500000000 };

#ifdef __x86_64__ /* 202 is futex, 74 fsync */

Test(threads, a_look_is_a_range_until_the_next)
{
	struct sink *sink = program();
	struct threads *threads = threads_new(tree.root, NULL, sink);
	struct err err = { 0 };

	cr_assert_eq(threads_tick(threads, FIRST, &err), 0);
	cr_assert_eq(record_of(sink)->ranges.count, 0);
	put("proc/41/task/41", "stat", "41 (a (b) c) D 1 41\n");
	put("proc/41/task/41", "syscall", "74 0x1 0x2\n");
	put("proc/41/task/42", "schedstat", "1100 900 8\n");
	cr_assert_eq(threads_tick(threads, SECOND, &err), 0);
	cr_assert_str_eq(state(sink, 41, FIRST), "waiting: futex");
	cr_assert_str_eq(state(sink, 42, FIRST), "running");
	cr_assert_eq(record_of(sink)->ranges.at[0].end_ns, SECOND);
	cr_assert_eq(threads_finish(threads, THIRD, &err), 0);
	cr_assert_str_eq(state(sink, 41, SECOND), "uninterruptible: fsync");
	cr_assert_str_eq(state(sink, 42, SECOND), "runnable");
	cr_assert_eq(record_of(sink)->ranges.count, 4);
	threads_free(threads);
	record_free(record_of(sink));
	tree_remove(&tree);
}

#endif

Test(threads, looks_come_no_closer_than_the_interval)
{
	struct sink *sink = program();
	struct threads *threads = threads_new(tree.root, NULL, sink);
	struct err err = { 0 };

	for (int64_t ns = FIRST; ns < FIRST + 19000000; ns += 1000000)
		cr_assert_eq(threads_tick(threads, ns, &err), 0);
	cr_assert_eq(record_of(sink)->ranges.count, 0);
	threads_free(threads);
	record_free(record_of(sink));
	tree_remove(&tree);
}

Test(threads, what_is_out_of_reach_or_strange_is_left_out)
{
	struct sink *sink = program();
	struct threads *threads = threads_new(tree.root, NULL, sink);
	struct err err = { 0 };

	put("proc/41/task/41", "syscall", "");
	put("proc/41/task/42", "stat", "rubbish");
	cr_assert_eq(threads_tick(threads, FIRST, &err), 0);
	put("proc/41/task/41", "stat", "41 (a (b) c) X 1 41\n");
	cr_assert_eq(threads_tick(threads, SECOND, &err), 0);
	cr_assert_eq(threads_tick(threads, THIRD, &err), 0);
	cr_assert_eq(record_of(sink)->ranges.count, 1);
	cr_assert_str_eq(state(sink, 41, FIRST), "waiting");
	threads_free(threads);
	record_free(record_of(sink));
	tree_remove(&tree);
}

/* PyTorch, vLLM and others name their processes once they run. */
Test(threads, a_process_that_calls_itself_otherwise_is_still_the_same)
{
	struct sink *sink = program();
	struct threads *threads = threads_new(tree.root, NULL, sink);
	struct err err = { 0 };

	sink->session->processes.at[0].start_ticks = 777;
	put("proc/41/task/41", "stat",
	    "41 (pt_main_thread) S 1 41 41 0 -1 4 1 0 0 0 1 2 0 0 20 0 9 0 777 8192 1\n");
	cr_assert_eq(threads_tick(threads, FIRST, &err), 0);
	cr_assert_eq(threads_tick(threads, SECOND, &err), 0);
	cr_assert_gt(record_of(sink)->ranges.count, 0);
	threads_free(threads);
	record_free(record_of(sink));
	tree_remove(&tree);
}

Test(threads, a_stranger_of_the_same_name_is_left_alone)
{
	struct sink *sink = program();
	struct threads *threads = threads_new(tree.root, NULL, sink);
	struct err err = { 0 };

	sink->session->processes.at[0].start_ticks = 777;
	put("proc/41/task/41", "stat",
	    "41 (a (b) c) S 1 41 41 0 -1 4 1 0 0 0 1 2 0 0 20 0 9 0 778 8192 1\n");
	cr_assert_eq(threads_tick(threads, FIRST, &err), 0);
	cr_assert_eq(threads_tick(threads, SECOND, &err), 0);
	cr_assert_eq(record_of(sink)->ranges.count, 0);
	threads_free(threads);
	record_free(record_of(sink));
	tree_remove(&tree);
}

Test(threads, a_stranger_with_the_number_is_left_alone)
{
	struct sink *sink = program();
	struct threads *threads = threads_new(tree.root, NULL, sink);
	struct err err = { 0 };

	put("proc/41/task/41", "stat", "41 (postgres) S 1 41\n");
	cr_assert_eq(threads_tick(threads, FIRST, &err), 0);
	cr_assert_eq(threads_tick(threads, SECOND, &err), 0);
	cr_assert_eq(record_of(sink)->ranges.count, 0);
	threads_free(threads);
	record_free(record_of(sink));
	tree_remove(&tree);
}

/* 64 are watched; the first and 42 among them. */
Test(threads, those_beyond_the_limit_are_counted_and_told)
{
	struct sink *sink = program();
	struct threads *threads = threads_new(tree.root, NULL, sink);
	struct session *session = sink->session;
	struct lane lane = session->lanes.at[0];
	char dir[64], stat[64];
	struct err err = { 0 };

	for (lane.tid = 100; lane.tid < 180; lane.tid++) {
		(void)snprintf(dir, sizeof(dir), "proc/41/task/%lld", (long long)lane.tid);
		(void)snprintf(stat, sizeof(stat), "%lld (w) R 1 41\n", (long long)lane.tid);
		put(dir, "stat", stat);
		(void)session_lane(session, &lane);
	}
	cr_assert_geq(threads_tick(threads, FIRST, &err), 0);
	cr_assert_geq(threads_finish(threads, SECOND, &err), 0);
	cr_assert_eq(session->notes.count, 1);
	cr_assert_str_eq(session_text(session, session->notes.at[0].text),
			 "18 threads more than 64 made calls at a time: what they were at is not "
			 "recorded");
	threads_free(threads);
	record_free(record_of(sink));
	tree_remove(&tree);
}
