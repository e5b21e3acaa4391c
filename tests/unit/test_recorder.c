/* A directory of recordings: hours, retention, two recorders, a full disk, a clock
 * that is set, and a day of eight cards that stays small. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "random.h"
#include "recording_bench.h"
#include "store/recorder.h"
#include "store/store.h"

static const int64_t S = 1000000000;
/* 2026-11-30T07:59:50Z */
static const int64_t START = 1796025590LL * 1000000000;

static struct temp_folder folder;

/* In memory if that is to be had: a day syncs ten thousand times. */
static void make_dir(void)
{
	temp_make(&folder, "/dev/shm");
}

static void remove_dir(void)
{
	temp_remove(&folder);
}

static char told[4096];

static void keep_line(void *arg, const char *line)
{
	size_t len = strlen(told);

	(void)arg;
	(void)snprintf(told + len, sizeof(told) - len, "%s\n", line);
}

static struct recorder *open_recorder(const char *host, int64_t keep_ns, int64_t keep_bytes,
				      int64_t utc_ns)
{
	struct recorder *recorder = NULL;
	struct err err = { 0 };
	const struct recorder_opts opts = { .dir = folder.path,
					    .host = host,
					    .keep_ns = keep_ns,
					    .keep_bytes = keep_bytes,
					    .utc_ns = utc_ns,
					    .tell = keep_line };

	cr_assert_eq(recorder_open(&opts, &recorder, &err), 0, "%s", err.line);
	return recorder;
}

/* What a loaded card says: everything moves, as sensors do. */
static void board_sample(uint32_t lane, int64_t utc_ns, struct sample *sample)
{
	double t = (double)(utc_ns / S % 100000);

	*sample = (struct sample){ .lane = lane, .time_ns = utc_ns };
	sample_set(sample, METRIC_power_w, 600 + 90 * random_unit());
	sample_set(sample, METRIC_power_limit_w, 700);
	sample_set(sample, METRIC_temp_c, floor(50 + 10 * random_unit()));
	sample_set(sample, METRIC_temp_mem_c, floor(60 + 6 * random_unit()));
	sample_set(sample, METRIC_util_pct, floor(90 + 10 * random_unit()));
	sample_set(sample, METRIC_mem_util_pct, floor(40 + 20 * random_unit()));
	sample_set(sample, METRIC_sm_mhz, 1400 + 15 * floor(30 * random_unit()));
	sample_set(sample, METRIC_mem_mhz, 3201);
	sample_set(sample, METRIC_clock_reasons, random_unit() < 0.5 ? 4 : 0);
	sample_set(sample, METRIC_reason_power_cap_us, t * 1e5 + floor(1000 * random_unit()));
	sample_set(sample, METRIC_mem_used_bytes, 1048576 * floor(60000 + 100 * random_unit()));
	sample_set(sample, METRIC_mem_free_bytes, 1048576 * floor(80000 + 100 * random_unit()));
	sample_set(sample, METRIC_pcie_rx_bytes_s, 3e8 * random_unit());
	sample_set(sample, METRIC_pcie_tx_bytes_s, 1e8 * random_unit());
	for (int m = METRIC_gr_active_pct; m <= METRIC_int_pct; m++)
		sample_set(sample, (enum metric)m, 100 * random_unit());
}

/* One snapshot of `boards` cards; false: the disk refuses. */
static bool snapshot(struct recorder *recorder, int boards, int64_t utc_ns, int64_t monotonic_ns)
{
	bool fresh;
	struct sink *sink = recorder_sink(recorder, utc_ns, monotonic_ns, &fresh);
	struct err err = { 0 };
	int ret = 0;

	if (!sink)
		return false;
	if (fresh)
		describe_boards(sink->session, (uint32_t)boards);
	for (int i = 0; ret >= 0 && i < boards; i++) {
		struct sample sample;

		board_sample((uint32_t)i, utc_ns, &sample);
		ret = sink_sample(sink, &sample, &err);
	}
	recorder_commit(recorder, ret < 0 ? &err : NULL);
	return !recorder_state(recorder).refused;
}

/* Names in the directory, without host, one after the other; and their samples. */
static int64_t list(struct buf *names)
{
	struct recorder_files files = { 0 };
	int64_t samples = 0;

	buf_clear(names);
	cr_assert_eq(recorder_list(folder.path, NULL, &files, NULL), 0);
	for (size_t i = 0; i < files.at.count; i++) {
		OWN(store_closep) struct store *store = NULL;
		struct err err = { 0 };

		buf_printf(names, "%s ", strrchr(files.at.at[i].path, '/') + 1);
		cr_assert_eq(store_open(files.at.at[i].path, &store, &err), 0, "%s", err.line);
		samples += store_count(store, STORE_sample);
	}
	recorder_files_done(&files);
	return samples;
}

Test(recorder, a_file_an_hour_named_by_host_and_utc, .init = make_dir, .fini = remove_dir)
{
	OWN(recorder_closep) struct recorder *recorder = open_recorder("node-7", 0, 0, START);
	struct buf names = { 0 };

	for (int64_t t = 0; t < 4000; t += 10)
		cr_assert(snapshot(recorder, 1, START + t * S, t * S));
	cr_assert_eq(recorder_finish(recorder, NULL), 0);
	cr_assert_eq(list(&names), 400);
	cr_assert_str_eq(names.at, "node-7-20261130T075950Z.sonde node-7-20261130T080000Z.sonde "
				   "node-7-20261130T090000Z.sonde ");
	buf_done(&names);
}

Test(recorder, a_second_one_on_the_directory_is_refused_with_the_pid, .init = make_dir,
     .fini = remove_dir)
{
	OWN(recorder_closep) struct recorder *first = open_recorder("a", 0, 0, START);
	struct recorder *second = NULL;
	const struct recorder_opts opts = { .dir = folder.path, .host = "a" };
	struct err err = { 0 };
	char expected[160];

	cr_assert_not_null(first);
	cr_assert_eq(recorder_open(&opts, &second, &err), ERR_BUSY);
	(void)snprintf(expected, sizeof(expected),
		       "%s: another sonde monitor records there (pid %ld)", folder.path,
		       (long)getpid());
	cr_assert_str_eq(err.line, expected);
	cr_assert_null(second);
}

Test(recorder, what_a_killed_one_left_is_closed_at_the_start, .init = make_dir, .fini = remove_dir)
{
	struct buf names = { 0 };
	OWN(recorder_closep) struct recorder *next = NULL;
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct recorder *recorder = open_recorder("a", 0, 0, START);

		for (int64_t t = 20; t < 50; t++)
			(void)snapshot(recorder, 2, START + t * S, t * S);
		(void)raise(SIGKILL);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	next = open_recorder("a", 0, 0, START + 50 * S);
	cr_assert_eq(list(&names), 60);
	cr_assert_str_eq(names.at, "a-20261130T080010Z.sonde ");
	cr_assert_not_null(strstr(told, "closed what an earlier recording left"));
	/* The same second again: another name. */
	cr_assert(snapshot(next, 2, START + 20 * S, S));
	cr_assert_eq(recorder_finish(next, NULL), 0);
	cr_assert_eq(list(&names), 62);
	cr_assert_str_eq(names.at, "a-20261130T080010Z.sonde a-20261130T080010Z-2.sonde ");
	buf_done(&names);
}

/* `name` in the directory with `text` in it. */
static void put_file(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", folder.path, name);
	file = fopen(path, "we");
	cr_assert_not_null(file);
	(void)fputs(text, file);
	(void)fclose(file);
}

static bool is_there(const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", folder.path, name);
	return access(path, F_OK) == 0;
}

Test(recorder, age_removes_what_it_wrote_and_nothing_else, .init = make_dir, .fini = remove_dir)
{
	OWN(recorder_closep) struct recorder *recorder = NULL;

	recorder = open_recorder("other", 0, 0, START);
	cr_assert(snapshot(recorder, 1, START, 0));
	cr_assert_eq(recorder_finish(recorder, NULL), 0);
	recorder_close(STEAL(recorder));
	put_file("a-20200101T000000Z.sonde", "has the name, is none of ours");
	put_file("notes.txt", "mine");
	recorder = open_recorder("a", 5 * 3600 * S, 0, START);
	for (int64_t hour = 0; hour < 12; hour++)
		cr_assert(snapshot(recorder, 1, START + hour * 3600 * S, hour * 3600 * S));
	cr_assert_eq(recorder_finish(recorder, NULL), 0);
	cr_assert(is_there("other-20261130T075950Z.sonde"));
	cr_assert(is_there("a-20200101T000000Z.sonde"));
	cr_assert(is_there("notes.txt"));
	/* 07:59:50 is the first, 18:00:00 the last, begun at 18:59:50: six hours
	 * before that is 12:59:50. */
	cr_assert_not(is_there("a-20261130T120000Z.sonde"));
	cr_assert(is_there("a-20261130T130000Z.sonde"));
	cr_assert(is_there("a-20261130T180000Z.sonde"));
}

Test(recorder, size_removes_the_oldest_first, .init = make_dir, .fini = remove_dir)
{
	OWN(recorder_closep) struct recorder *recorder = open_recorder("a", 0, 400 * 1024, START);
	struct recorder_files files = { 0 };
	int64_t bytes = 0;

	for (int64_t t = 0; t < 10 * 3600; t += 60)
		cr_assert(snapshot(recorder, 1, START + t * S, t * S));
	cr_assert_eq(recorder_list(folder.path, "a", &files, NULL), 0);
	for (size_t i = 0; i < files.at.count; i++)
		bytes += files.at.at[i].bytes;
	cr_assert_leq(bytes, 500 * 1024);
	cr_assert_geq(files.at.count, 2);
	cr_assert(files.at.at[files.at.count - 1].is_part);
	cr_assert_not(is_there("a-20261130T075950Z.sonde"));
	recorder_files_done(&files);
}

Test(recorder, a_clock_that_is_set_begins_a_new_file, .init = make_dir, .fini = remove_dir)
{
	OWN(recorder_closep) struct recorder *recorder = open_recorder("a", 0, 0, START);
	struct buf names = { 0 };

	for (int64_t t = 20; t < 60; t++)
		cr_assert(snapshot(recorder, 1, START + t * S, t * S));
	for (int64_t t = 60; t < 90; t++)
		cr_assert(snapshot(recorder, 1, START + (t - 45) * S, t * S));
	cr_assert_eq(recorder_finish(recorder, NULL), 0);
	cr_assert_eq(list(&names), 70);
	cr_assert_str_eq(names.at, "a-20261130T080005Z.sonde a-20261130T080010Z.sonde ");
	cr_assert_str_eq(told, "the clock was set back by 45.0 s: a new file begins\n");
	buf_done(&names);
}

/* In a child: what it may write to a file is limited, and then is not. */
static int full_disk(void)
{
	struct recorder *recorder = open_recorder("a", 0, 0, START);
	struct rlimit limit;
	int64_t t = 20;

	(void)signal(SIGXFSZ, SIG_IGN);
	(void)getrlimit(RLIMIT_FSIZE, &limit);
	for (; t < 30; t++)
		if (!snapshot(recorder, 8, START + t * S, t * S))
			return 1;
	limit.rlim_cur = 4096;
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	for (bool kept = true; t < 60 && kept; t++)
		kept = snapshot(recorder, 8, START + t * S, t * S);
	if (!recorder_state(recorder).refused)
		return 2;
	for (; t < 100; t++)
		if (snapshot(recorder, 8, START + t * S, t * S))
			return 3;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	for (; t < 140; t++)
		(void)snapshot(recorder, 8, START + t * S, t * S);
	if (recorder_state(recorder).refused || recorder_finish(recorder, NULL) < 0)
		return 4;
	if (recorder_state(recorder).lost + recorder_state(recorder).snapshots != 120)
		return 5;
	if (!strstr(told, "cannot record: ") || !strstr(told, "recording goes on; "))
		return 6;
	/* One line at its beginning, one at its end. */
	for (const char *at = told; (at = strstr(at, "cannot record: ")); at++)
		if (strstr(at + 1, "cannot record: "))
			return 7;
	return recorder_state(recorder).lost < 30 ? 8 : 0;
}

Test(recorder, a_full_disk_is_told_once_and_got_over, .init = make_dir, .fini = remove_dir)
{
	struct buf names = { 0 };
	int64_t samples;
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(full_disk());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "%d: %s", WEXITSTATUS(status), told);
	/* What was recorded before is there, and what came after. */
	samples = list(&names);
	cr_assert_geq(samples, 8 * 10 + 8 * 20);
	cr_assert_null(strstr(names.at, ".part"));
	buf_done(&names);
}

Test(recorder, a_day_of_eight_cards_is_below_20_MB_and_memory_does_not_grow, .init = make_dir,
     .fini = remove_dir)
{
	OWN(recorder_closep) struct recorder *recorder = open_recorder("a", 0, 0, START);
	struct recorder_files files = { 0 };
	int64_t bytes = 0;
	size_t early = 0;

	for (int64_t t = 0; t < 86400; t += 5) {
		cr_assert(snapshot(recorder, 8, START + t * S, t * S));
		if (t == 3 * 3600)
			early = mallinfo2().uordblks;
	}
	/* Same place in the hour as `early`. */
	for (int64_t t = 86400; t <= 24 * 3600 + 3 * 3600; t += 5)
		cr_assert(snapshot(recorder, 8, START + t * S, t * S));
	cr_assert_leq(mallinfo2().uordblks, early + 65536);
	cr_assert_eq(recorder_finish(recorder, NULL), 0);
	cr_assert_eq(recorder_list(folder.path, "a", &files, NULL), 0);
	for (size_t i = 0; i < files.at.count; i++)
		bytes += files.at.at[i].bytes;
	bytes = bytes * 24 / 27;
	cr_log_info("a day: %lld bytes", (long long)bytes);
	cr_assert_leq(bytes, 20000000, "%lld bytes a day", (long long)bytes);
	recorder_files_done(&files);
}
