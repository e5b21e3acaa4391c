/* A recording in small pieces: what is flushed outlives a kill, and is small. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recording_bench.h"
#include "store/store.h"

static struct temp_folder folder;
static char path[96];

static void make_dir(void)
{
	temp_make(&folder, "/tmp");
	(void)snprintf(path, sizeof(path), "%s/a.sonde", folder.path);
}

static void remove_dir(void)
{
	temp_remove(&folder);
}

/* Sample number `i` of each board. */
static int push(struct store *store, uint32_t boards, int i, struct err *err)
{
	for (uint32_t lane = 0; lane < boards; lane++) {
		struct sample sample = { .lane = lane, .time_ns = i * 1000000000LL };

		sample_set(&sample, METRIC_power_w, 300 + i % 7 + lane * 0.001);
		sample_set(&sample, METRIC_reason_power_cap_us, 1e12 + i * 5000.0);
		if (i % 3)
			sample_set(&sample, METRIC_sm_mhz, 1980 - i % 5 * 15);
		if (sink_sample(store_sink(store), &sample, err) < 0)
			return err->code;
	}
	return 0;
}

/* `rounds` samples of each board from number `first` on, flushed each. */
static int record(struct store *store, uint32_t boards, int first, int rounds, struct err *err)
{
	for (int i = first; i < first + rounds; i++)
		if (push(store, boards, i, err) < 0 || store_flush(store, err) < 0)
			return err->code;
	return 0;
}

/* All samples are there, each once and in order, as record() made them. */
static void check(const char *file, uint32_t boards, int rounds, bool cut)
{
	OWN(store_closep) struct store *store = NULL;
	const struct store_query query = { .kinds = STORE_BIT(STORE_sample) };
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int next[8] = { 0 };
	struct err err = { 0 };

	cr_assert_eq(store_open(file, &store, &err), 0, "%s", err.line);
	cr_assert_eq(store_was_cut(store), cut);
	cr_assert_eq(store_query_open(store, &query, &cursor, NULL), 0);
	while (store_next(cursor, &batch, NULL) > 0) {
		for (size_t i = 0; i < batch.count; i++) {
			int at = next[batch.lane]++;
			double value;

			cr_assert_eq(batch.samples[i].time_ns, at * 1000000000LL);
			cr_assert(sample_get(&batch.samples[i], METRIC_power_w, &value));
			cr_assert_float_eq(value, 300 + at % 7 + batch.lane * 0.001, 1.0 / 128);
			cr_assert(
				sample_get(&batch.samples[i], METRIC_reason_power_cap_us, &value));
			cr_assert_eq(value, 1e12 + at * 5000.0);
			cr_assert_eq(sample_get(&batch.samples[i], METRIC_sm_mhz, &value),
				     at % 3 != 0);
		}
	}
	for (uint32_t lane = 0; lane < boards; lane++)
		cr_assert_eq(next[lane], rounds);
	cr_assert_eq(store_damage(store), 0);
}

Test(recording, what_is_flushed_in_pieces_comes_out_whole, .init = make_dir, .fini = remove_dir)
{
	/* Round the merging of small tails, and over the largest chunk. */
	static const int rounds[] = { 1, 16, 17, 18, 40, 511, 512, 513, 1100 };

	for (size_t i = 0; i < sizeof(rounds) / sizeof(*rounds); i++) {
		OWN(store_closep) struct store *store = NULL;
		struct err err = { 0 };

		cr_assert_eq(store_create_recording(path, &store, &err), 0, "%s", err.line);
		describe_boards(store_session(store), 3);
		cr_assert_eq(record(store, 3, 0, rounds[i], &err), 0, "%s", err.line);
		cr_assert_eq(store_finish(store, &err), 0, "%s", err.line);
		check(path, 3, rounds[i], false);
		cr_assert(store_is_recording(path));
	}
}

Test(recording, a_chunk_that_fills_before_a_durable_flush_is_kept, .init = make_dir,
     .fini = remove_dir)
{
	enum { ROUNDS = 1500 };
	OWN(store_closep) struct store *store = NULL;
	struct err err = { 0 };

	cr_assert_eq(store_create_recording(path, &store, &err), 0, "%s", err.line);
	describe_boards(store_session(store), 1);
	for (int i = 0; i < ROUNDS; i++) {
		cr_assert_eq(push(store, 1, i, &err), 0, "%s", err.line);
		cr_assert_eq(i % 7 ? 0 : store_flush_durably(store, &err), 0, "%d: %s", i,
			     err.line);
	}
	cr_assert_eq(store_finish(store, &err), 0, "%s", err.line);
	check(path, 1, ROUNDS, false);
}

/* A child that writes, flushes `rounds` samples, and is killed. */
static void killed_after(int rounds)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct store *store = NULL;
		struct err err = { 0 };

		if (store_create_recording(path, &store, &err) < 0)
			_exit(1);
		describe_boards(store_session(store), 2);
		if (record(store, 2, 0, rounds, &err) < 0)
			_exit(1);
		(void)raise(SIGKILL);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status));
}

Test(recording, a_killed_writer_loses_nothing_that_was_flushed, .init = make_dir,
     .fini = remove_dir)
{
	static const int rounds[] = { 1, 17, 530 };

	for (size_t i = 0; i < sizeof(rounds) / sizeof(*rounds); i++) {
		struct err err = { 0 };

		killed_after(rounds[i]);
		check(path, 2, rounds[i], true);
		cr_assert_eq(store_recover(path, &err), 1, "%s", err.line);
		check(path, 2, rounds[i], true);
		cr_assert(store_is_recording(path));
		cr_assert_eq(store_recover(path, &err), 0);
		cr_assert_eq(unlink(path), 0);
	}
}

Test(recording, an_empty_part_is_removed_and_a_foreign_one_stays, .init = make_dir,
     .fini = remove_dir)
{
	char part[112];
	struct err err = { 0 };
	struct stat st;
	FILE *file;

	(void)snprintf(part, sizeof(part), "%s.part", path);
	file = fopen(part, "we");
	cr_assert_not_null(file);
	(void)fclose(file);
	cr_assert_eq(store_recover(path, &err), 0, "%s", err.line);
	cr_assert_lt(stat(part, &st), 0);
	file = fopen(part, "we");
	cr_assert_not_null(file);
	for (int i = 0; i < 300; i++)
		(void)fputs("no profile at all ", file);
	(void)fclose(file);
	cr_assert_eq(store_recover(path, &err), ERR_FORMAT);
	cr_assert_eq(stat(part, &st), 0);
}

Test(recording, one_that_is_being_written_is_left_alone, .init = make_dir, .fini = remove_dir)
{
	OWN(store_closep) struct store *store = NULL;
	struct err err = { 0 };

	cr_assert_eq(store_create_recording(path, &store, &err), 0);
	describe_boards(store_session(store), 1);
	cr_assert_eq(record(store, 1, 0, 3, &err), 0);
	cr_assert_eq(store_recover(path, &err), ERR_BUSY);
	cr_assert_eq(record(store, 1, 3, 3, &err), 0, "%s", err.line);
	cr_assert_eq(store_finish(store, &err), 0, "%s", err.line);
	check(path, 1, 6, false);
}

Test(recording, an_ordinary_profile_is_no_recording, .init = make_dir, .fini = remove_dir)
{
	OWN(store_closep) struct store *store = NULL;
	struct err err = { 0 };

	cr_assert_eq(store_create(path, &store, &err), 0);
	describe_boards(store_session(store), 1);
	cr_assert_eq(record(store, 1, 0, 1, &err), 0);
	cr_assert_eq(store_finish(store, &err), 0);
	cr_assert_not(store_is_recording(path));
	cr_assert_not(store_is_recording(folder.path));
}
