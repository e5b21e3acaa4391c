/* The profile file: what goes in comes out, whatever happens to the file. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/chunk.h"
#include "store/store.h"
#include "temp_folder.h"

static struct temp_folder folder;
static char path[96];

static const char *temp_path(void)
{
	temp_make(&folder, "/tmp");
	(void)snprintf(path, sizeof(path), "%s/p.sonde", folder.path);
	return path;
}

static void remove_temp(void)
{
	temp_remove(&folder);
}

static uint64_t random_state = 88172645463325252u;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Of every size, extremes among them. */
static int64_t random_i64(void)
{
	switch (random_u64() % 8) {
	case 0:
		return INT64_MIN;
	case 1:
		return INT64_MAX;
	case 2:
		return 0;
	default:
		return (int64_t)random_u64() >> random_u64() % 64;
	}
}

Test(chunk, every_column_comes_back_equal)
{
	OWN(chunk_codec_freep) struct chunk_codec *codec = chunk_codec_new();
	static int64_t in[3000], out[3000];

	for (int round = 0; round < 300; round++) {
		size_t count = 1 + random_u64() % 3000;
		struct buf chunk = { 0 };
		int64_t walk = random_i64();

		for (size_t i = 0; i < count; i++) {
			walk = (int64_t)((uint64_t)walk + random_u64() % 5000);
			in[i] = round % 3 == 0   ? random_i64()
				: round % 3 == 1 ? walk
						 : (int64_t)(random_u64() % 40);
		}
		chunk_put(codec, &chunk, "a", in, count, false);
		chunk_put(codec, &chunk, "b", in, count, true);
		for (const char *name = "ab"; *name; name++) {
			char text[2] = { *name, 0 };

			cr_assert_geq(chunk_get(codec, (struct str){ chunk.at, chunk.len }, text,
						count, out),
				      0);
			cr_assert(!memcmp(in, out, count * sizeof(*in)));
		}
		cr_assert_eq(
			chunk_get(codec, (struct str){ chunk.at, chunk.len }, "none", count, out),
			0);
		buf_done(&chunk);
	}
}

Test(chunk, damage_is_noticed_or_harmless)
{
	OWN(chunk_codec_freep) struct chunk_codec *codec = chunk_codec_new();
	static int64_t in[500], out[70000];
	struct buf chunk = { 0 };

	for (int i = 0; i < 500; i++)
		in[i] = i * 1000 + (int64_t)(random_u64() % 777);
	chunk_put(codec, &chunk, "start", in, 500, false);
	chunk_put_bytes(codec, &chunk, "details", "one\0two", 8);
	for (int round = 0; round < 20000; round++) {
		struct buf text = { 0 };
		char *copy = malloc(chunk.len);
		size_t len = random_u64() % (chunk.len + 1);
		uint64_t hits = random_u64() % 4;
		int got;

		memcpy(copy, chunk.at, chunk.len);
		for (uint64_t n = hits; n; n--)
			copy[random_u64() % chunk.len] = (char)random_u64();
		got = chunk_get(codec, (struct str){ copy, len }, "start", 500, out);
		/* What was only cut is either all there or not there. */
		if (!hits)
			cr_assert(got == 1 ? !memcmp(out, in, sizeof(in)) : len < chunk.len);
		(void)chunk_get_bytes(codec, (struct str){ copy, len }, "details", &text);
		buf_done(&text);
		free(copy);
	}
	buf_done(&chunk);
}

/* A session with a stream and a thread, and kernel keys 0 and 1. */
static void fill_session(struct session *session)
{
	struct device device = { .ordinal = 0 };
	struct kernel_key key = { .grid = { 1, 1, 1 } };
	struct lane lane = { .kind = LANE_STREAM, .process = SESSION_NONE, .stream = 7, .tid = -1 };

	(void)session_source(session, "test", "a");
	device.uuid = intern_text(session->strings, "GPU-1");
	lane.device = session_device(session, &device);
	(void)session_lane(session, &lane);
	lane.kind = LANE_THREAD;
	lane.device = SESSION_NONE;
	lane.process = session_process(session, 0, 4711);
	lane.tid = 4712;
	(void)session_lane(session, &lane);
	key.name = intern_text(session->strings, "sgemm");
	(void)session_key(session, &key);
	key.name = intern_text(session->strings, "relu");
	(void)session_key(session, &key);
}

static uint64_t op_sum(uint64_t start, uint64_t end, uint64_t name, uint64_t correlation,
		       uint64_t bytes, const char *detail)
{
	uint64_t sum = start * 3 + end * 5 + name * 7 + correlation * 11 + bytes * 13;

	for (; *detail; detail++)
		sum = sum * 31 + (unsigned char)*detail;
	return sum * 0x9e3779b97f4a7c15u;
}

/* Write `count` random kernels; the sum over them. */
static uint64_t write_ops(struct store *store, int count, bool extreme)
{
	struct session *session = store_session(store);
	uint64_t sum = 0;
	int64_t time = 1000;

	for (int i = 0; i < count; i++) {
		char detail[32];
		struct op op = { .kind = OP_KERNEL, .key = (uint32_t)(random_u64() % 2) };

		time += (int64_t)(random_u64() % 9000) - 1000;
		op.start_ns = extreme ? random_i64() : time;
		op.end_ns = extreme ? random_i64() : time + (int64_t)(random_u64() % 100000);
		op.name = random_u64() % 9 ? session->keys.at[op.key].name
					   : intern_text(session->strings, "other");
		op.correlation = random_u64() >> (extreme ? 0 : 30);
		op.bytes = EVENT_UNKNOWN;
		(void)snprintf(detail, sizeof(detail), "shape=%d", (int)(random_u64() % 50));
		op.detail = session_detail(session, detail, strlen(detail));
		sum += op_sum((uint64_t)op.start_ns, (uint64_t)op.end_ns, op.name, op.correlation,
			      (uint64_t)op.bytes, detail);
		cr_assert_eq(sink_op(store_sink(store), &op, NULL), 0);
	}
	return sum;
}

static uint64_t read_ops(struct store *store, int64_t *ret_count)
{
	struct store_query query = { .kinds = STORE_BIT(STORE_kernel), .columns = ~(uint64_t)0 };
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	uint64_t sum = 0;

	*ret_count = 0;
	cr_assert_eq(store_query_open(store, &query, &cursor, NULL), 0);
	while (store_next(cursor, &batch, NULL) > 0) {
		for (size_t i = 0; i < batch.count; i++) {
			uint64_t start = (uint64_t)batch.col[COL_start][i];

			cr_assert(!i || batch.col[COL_start][i - 1] <= batch.col[COL_start][i]);
			sum += op_sum(start, start + (uint64_t)batch.col[COL_duration][i],
				      (uint64_t)batch.col[COL_name][i],
				      (uint64_t)batch.col[COL_correlation][i],
				      (uint64_t)batch.col[COL_bytes][i],
				      intern_get(store_session(store)->details,
						 (uint32_t)batch.col[COL_detail][i], NULL));
		}
		*ret_count += (int64_t)batch.count;
	}
	return sum;
}

Test(store, what_goes_in_comes_out, .fini = remove_temp)
{
	const char *at = temp_path();

	for (int extreme = 0; extreme < 2; extreme++) {
		OWN(store_closep) struct store *in = NULL;
		OWN(store_closep) struct store *out = NULL;
		uint64_t sum;
		int64_t count;
		struct err err = { 0 };

		cr_assert_eq(store_create(at, &in, &err), 0, "%s", err.line);
		fill_session(store_session(in));
		sum = write_ops(in, 150000, extreme);
		cr_assert_eq(store_finish(in, &err), 0, "%s", err.line);
		cr_assert_eq(store_open(at, &out, &err), 0, "%s", err.line);
		cr_assert_eq(read_ops(out, &count), sum);
		cr_assert_eq(count, 150000);
		cr_assert_eq(store_count(out, STORE_kernel), 150000);
		cr_assert_eq(store_damage(out), 0);
		cr_assert_not(store_was_cut(out));
		cr_assert_eq(store_session(out)->lanes.count, 2);
		cr_assert_str_eq(
			session_text(store_session(out), store_session(out)->devices.at[0].uuid),
			"GPU-1");
	}
}

Test(store, samples_keep_what_is_absent_absent, .fini = remove_temp)
{
	OWN(store_closep) struct store *in = NULL;
	OWN(store_closep) struct store *out = NULL;
	struct store_query query = { .kinds = STORE_BIT(STORE_sample) };
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct sample sample = { .time_ns = 5 };
	struct store_batch batch;
	double value;

	cr_assert_eq(store_create(temp_path(), &in, NULL), 0);
	fill_session(store_session(in));
	sample_set(&sample, METRIC_power_w, 411.5);
	sample_set(&sample, METRIC_proc_sm_pct, 0);
	cr_assert_eq(sink_sample(store_sink(in), &sample, NULL), 0);
	cr_assert_eq(store_finish(in, NULL), 0);
	cr_assert_eq(store_open(path, &out, NULL), 0);
	cr_assert_eq(store_query_open(out, &query, &cursor, NULL), 0);
	cr_assert_eq(store_next(cursor, &batch, NULL), 1);
	cr_assert_eq(batch.count, 1);
	cr_assert(sample_get(&batch.samples[0], METRIC_power_w, &value) && value == 411.5);
	cr_assert(sample_get(&batch.samples[0], METRIC_proc_sm_pct, &value) && value == 0);
	cr_assert_not(sample_get(&batch.samples[0], METRIC_temp_c, &value));
	cr_assert_eq(batch.samples[0].time_ns, 5);
}

Test(store, a_killed_writer_leaves_a_readable_part, .fini = remove_temp)
{
	const char *at = temp_path();
	OWN(store_closep) struct store *out = NULL;
	int64_t count;
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct store *in = NULL;

		if (store_create(at, &in, NULL) < 0)
			_exit(1);
		fill_session(store_session(in));
		(void)write_ops(in, 70000, false);
		if (store_flush(in, NULL) < 0)
			_exit(1);
		(void)write_ops(in, 10, false);
		(void)raise(SIGKILL);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status));
	cr_assert_eq(store_open(at, &out, NULL), 0);
	(void)read_ops(out, &count);
	cr_assert_eq(count, 70000);
	cr_assert(store_was_cut(out));
}

Test(store, the_second_writer_is_told, .fini = remove_temp)
{
	const char *at = temp_path();
	OWN(store_closep) struct store *first = NULL;
	struct err err = { 0 };
	int status;
	pid_t pid;

	cr_assert_eq(store_create(at, &first, NULL), 0);
	pid = fork();
	if (!pid) {
		struct store *second = NULL;

		_exit(store_create(at, &second, &err) == ERR_BUSY ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
}

/* Some of the second writers come when the first is about to finish: between its
 * open and its lock the name may pass to another file. */
Test(store, writers_that_race_leave_a_whole_profile, .fini = remove_temp)
{
	const char *at = temp_path();
	OWN(store_closep) struct store *out = NULL;
	struct err err = { 0 };
	int64_t count;

	for (int child = 0; child < 2; child++) {
		if (fork())
			continue;
		for (int round = 0; round < 40; round++) {
			struct store *in = NULL;
			int ret = store_create(at, &in, &err);

			if (ret == ERR_BUSY)
				continue;
			if (ret < 0)
				_exit(1);
			fill_session(store_session(in));
			(void)write_ops(in, 10, false);
			if (store_finish(in, &err) < 0)
				_exit(2);
			store_close(in);
		}
		_exit(0);
	}
	for (int child = 0; child < 2; child++) {
		int status;

		cr_assert_gt(wait(&status), 0);
		cr_expect_eq(status, 0, "status %d", status);
	}
	cr_assert_eq(store_open(at, &out, &err), 0, "%s", err.line);
	(void)read_ops(out, &count);
	cr_assert_eq(count, 10);
	cr_assert_not(store_was_cut(out));
}

Test(store, what_a_killed_copy_left_goes_with_the_next_writer, .fini = remove_temp)
{
	OWN(store_closep) struct store *in = NULL;
	char copy[112];
	int fd;

	(void)snprintf(copy, sizeof(copy), "%s.part-copy", temp_path());
	fd = open(copy, O_WRONLY | O_CREAT, 0600);
	cr_assert_geq(fd, 0);
	(void)close(fd);
	cr_assert_eq(store_create(path, &in, NULL), 0);
	cr_assert_eq(access(copy, F_OK), -1);
}

Test(store, a_reader_does_not_keep_the_writer_from_finishing, .fini = remove_temp)
{
	const char *at = temp_path();
	OWN(store_closep) struct store *in = NULL;
	OWN(store_closep) struct store *out = NULL;
	struct err err = { 0 };
	int64_t count;
	int ready[2], leave[2], start[2];
	char part[96], byte = 0;
	struct stat st;
	pid_t pid;

	/* Before SQLite opens anything here: its locks do not survive a fork. */
	cr_assert(pipe(ready) == 0 && pipe(leave) == 0 && pipe(start) == 0);
	pid = fork();
	if (!pid) {
		struct store *reader = NULL;

		(void)close(leave[1]);
		if (read(start[0], &byte, 1) != 1)
			_exit(1);
		byte = store_open(at, &reader, NULL) == 0;
		if (write(ready[1], &byte, 1) != 1 || read(leave[0], &byte, 1) != 0)
			_exit(1);
		_exit(0);
	}
	cr_assert_eq(store_create(at, &in, NULL), 0);
	fill_session(store_session(in));
	(void)write_ops(in, 1000, false);
	cr_assert_eq(store_flush(in, NULL), 0);
	cr_assert_eq(write(start[1], "", 1), 1);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	cr_assert_eq(byte, 1);
	(void)write_ops(in, 1000, false);
	cr_assert_eq(store_finish(in, &err), 0, "%s", err.line);
	(void)close(leave[1]);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_assert_eq(store_open(at, &out, &err), 0, "%s", err.line);
	(void)read_ops(out, &count);
	cr_assert_eq(count, 2000);
	cr_assert(!store_was_cut(out));
	cr_assert_eq(stat(at, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	(void)snprintf(part, sizeof(part), "%s.part", at);
	cr_assert_neq(stat(part, &st), 0);
}

static void patch_file(const char *at, long offset, const void *bytes, size_t len)
{
	int fd = open(at, O_WRONLY);

	cr_assert_eq(pwrite(fd, bytes, len, offset), (ssize_t)len);
	(void)close(fd);
}

Test(store, a_newer_major_version_is_refused_and_a_newer_minor_read, .fini = remove_temp)
{
	OWN(store_closep) struct store *in = NULL;
	OWN(store_closep) struct store *out = NULL;
	static const unsigned char minor[] = { 0, 0, 0x03, 0xf1 }; /* 1009 */
	static const unsigned char major[] = { 0, 0, 0x07, 0xd0 }; /* 2000 */
	struct err err = { 0 };

	cr_assert_eq(store_create(temp_path(), &in, NULL), 0);
	fill_session(store_session(in));
	(void)write_ops(in, 10, false);
	cr_assert_eq(store_finish(in, NULL), 0);
	patch_file(path, 60, minor, 4);
	cr_assert_eq(store_open(path, &out, &err), 0, "%s", err.line);
	store_close(STEAL(out));
	patch_file(path, 60, major, 4);
	cr_assert_eq(store_open(path, &out, &err), ERR_UNSUPPORTED);
	cr_assert(strstr(err.line, "format 2.0, this sonde reads 1.x"), "%s", err.line);
}

/* The first place of `text` in the file; fails if it has none. */
static long place_in_file(const char *at, const char *text)
{
	static char bytes[1 << 16];
	int fd = open(at, O_RDONLY);
	ssize_t len = read(fd, bytes, sizeof(bytes));
	const char *found;

	(void)close(fd);
	cr_assert_gt(len, 0);
	found = memmem(bytes, (size_t)len, text, strlen(text));
	cr_assert_not_null(found);
	return found - bytes;
}

Test(store, a_column_that_older_files_lack_is_unknown_in_them, .fini = remove_temp)
{
	OWN(store_closep) struct store *in = NULL;
	OWN(store_closep) struct store *out = NULL;
	struct device part = { .scope = DEVICE_OF_SMI, .ordinal = 3 };
	struct err err = { 0 };
	uint32_t id;

	cr_assert_eq(store_create(temp_path(), &in, NULL), 0);
	fill_session(store_session(in));
	part.part = intern_text(store_session(in)->strings, "MIG 1");
	id = session_device(store_session(in), &part);
	cr_assert_eq(store_finish(in, NULL), 0);
	cr_assert_eq(store_open(path, &out, &err), 0, "%s", err.line);
	cr_assert_str_eq(session_text(store_session(out), store_session(out)->devices.at[id].part),
			 "MIG 1");
	store_close(STEAL(out));
	/* As if the column had never been. */
	patch_file(path, place_in_file(path, "\"part\" INTEGER"), "\"prat\"", 6);
	cr_assert_eq(store_open(path, &out, &err), 0, "%s", err.line);
	cr_assert_eq(store_session(out)->devices.at[id].ordinal, 3);
	cr_assert_eq(store_session(out)->devices.at[id].part, 0);
	cr_assert_eq(store_damage(out), 0);
}

Test(store, a_cut_or_scribbled_file_gives_what_is_readable_or_one_line, .fini = remove_temp)
{
	OWN(store_closep) struct store *in = NULL;
	int opened = 0;
	struct stat st;

	cr_assert_eq(store_create(temp_path(), &in, NULL), 0);
	fill_session(store_session(in));
	(void)write_ops(in, 300000, false);
	cr_assert_eq(store_finish(in, NULL), 0);
	cr_assert_eq(stat(path, &st), 0);
	for (int i = 0; i < 60; i++) {
		char copy[112], command[256];
		OWN(store_closep) struct store *out = NULL;
		struct err err = { 0 };
		int64_t count;

		(void)snprintf(copy, sizeof(copy), "%s.x", path);
		(void)snprintf(command, sizeof(command), "cp '%s' '%s'", path, copy);
		cr_assert_eq(system(command), 0);
		if (i % 2) {
			cr_assert_eq(truncate(copy, (off_t)(random_u64() % (uint64_t)st.st_size)),
				     0);
		} else {
			for (int n = 0; n < 20; n++) {
				uint64_t junk = random_u64();

				patch_file(copy, (long)(random_u64() % (uint64_t)(st.st_size - 8)),
					   &junk, 8);
			}
		}
		if (store_open(copy, &out, &err) < 0) {
			cr_assert(err.line[0]);
			continue;
		}
		(void)read_ops(out, &count);
		cr_assert_leq(count, 300000);
		opened += count > 0;
	}
	cr_assert_gt(opened, 5, "only %d of 60 gave anything", opened);
}

/* No column is written where all is zero, and a chunk without any still counts. */
Test(store, rows_of_zeros_come_back, .fini = remove_temp)
{
	for (int before = 0; before < 2; before++) {
		OWN(store_closep) struct store *in = NULL;
		OWN(store_closep) struct store *out = NULL;
		struct store_query query = { .kinds = STORE_BIT(STORE_sample) };
		OWN(store_query_closep) struct store_cursor *cursor = NULL;
		struct sample nothing = { .lane = 0 };
		struct store_batch batch;
		struct err err = { 0 };

		cr_assert_eq(store_create(before ? path : temp_path(), &in, &err), 0);
		fill_session(store_session(in));
		/* With and without a blob that was written before it. */
		if (before)
			(void)write_ops(in, 10, false);
		cr_assert_eq(sink_sample(store_sink(in), &nothing, NULL), 0);
		cr_assert_eq(store_finish(in, &err), 0, "%s", err.line);
		cr_assert_eq(store_open(path, &out, &err), 0, "%s", err.line);
		cr_assert_eq(store_query_open(out, &query, &cursor, NULL), 0);
		cr_assert_eq(store_next(cursor, &batch, NULL), 1);
		cr_assert_eq(batch.count, 1);
		cr_assert_eq(store_damage(out), 0);
	}
}

static int keep_row(void *arg, int count, const char *const *names, const char *const *values,
		    const bool *numbers)
{
	char *text = arg;

	(void)names;
	(void)numbers;
	for (int i = 0; values && i < count; i++) {
		(void)strncat(text, values[i] ? values[i] : "NULL", 100);
		(void)strcat(text, "|");
	}
	return 0;
}

Test(store, sql_joins_kernels_with_their_launches, .fini = remove_temp)
{
	OWN(store_closep) struct store *in = NULL;
	char text[1000] = "";
	struct err err = { 0 };

	cr_assert_eq(store_create(temp_path(), &in, NULL), 0);
	fill_session(store_session(in));
	for (uint64_t i = 1; i <= 3; i++) {
		struct call call = { .lane = 1,
				     .start_ns = (int64_t)i * 10,
				     .end_ns = (int64_t)i * 10 + 5,
				     .correlation = i };
		struct op op = { .start_ns = (int64_t)i * 100,
				 .end_ns = (int64_t)i * 100 + 7,
				 .correlation = 4 - i,
				 .key = 1,
				 .bytes = EVENT_UNKNOWN };

		op.name = store_session(in)->keys.at[1].name;
		call.name = intern_text(store_session(in)->strings, "cudaLaunchKernel");
		cr_assert_eq(sink_call(store_sink(in), &call, NULL), 0);
		cr_assert_eq(sink_op(store_sink(in), &op, NULL), 0);
	}
	cr_assert_eq(store_finish(in, NULL), 0);
	cr_assert_eq(store_sql(path,
			       "SELECT k.start_ns, k.name, k.grid, k.stream, c.start_ns, c.name,"
			       " c.tid, k.bytes FROM kernel k JOIN runtime c"
			       " ON c.correlation = k.correlation WHERE k.start_ns > 150"
			       " ORDER BY 1",
			       keep_row, text, &err),
		     0, "%s", err.line);
	cr_assert_str_eq(text, "200|relu|1x1x1|7|20|cudaLaunchKernel|4712|NULL|"
			       "300|relu|1x1x1|7|10|cudaLaunchKernel|4712|NULL|");
}

static void forge(const char *sql)
{
	struct sqlite3 *db = NULL;

	cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
	cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
	(void)sqlite3_close(db);
}

Test(store, sql_gives_all_but_damaged_chunks_and_says_so, .fini = remove_temp)
{
	OWN(store_closep) struct store *in = NULL;
	char text[1000] = "";
	struct err err = { 0 };

	cr_assert_eq(store_create(temp_path(), &in, NULL), 0);
	fill_session(store_session(in));
	for (int i = 0; i < 2; i++) {
		struct op op = { .start_ns = 7 + i, .end_ns = 10 + i, .correlation = 4 };

		cr_assert_eq(sink_op(store_sink(in), &op, NULL), 0);
		op.lane = 1;
		cr_assert_eq(sink_op(store_sink(in), &op, NULL), 0);
	}
	cr_assert_eq(store_finish(in, NULL), 0);
	forge("UPDATE chunk SET checksum = checksum + 1 WHERE id = 2");
	cr_assert_eq(store_sql(path, "SELECT start_ns FROM kernel WHERE correlation = 4", keep_row,
			       text, &err),
		     ERR_FORMAT);
	cr_assert_str_eq(text, "7|8|");
	cr_assert(strstr(err.line, "left out"), "%s", err.line);
	text[0] = 0;
	cr_assert_eq(store_sql(path, "SELECT count(*) FROM lane", keep_row, text, &err), 0);
	cr_assert_str_eq(text, "2|");
}

/* The analyses look at the lane of each batch, and at its source. */
Test(store, a_batch_is_of_a_lane_and_a_source_that_are_there, .fini = remove_temp)
{
	static const char *const forged[] = { "UPDATE chunk SET lane = 5 WHERE id = 1",
					      "UPDATE chunk SET lane = 4294967296 WHERE id = 1",
					      "UPDATE chunk SET lane = -1 WHERE id = 1",
					      "UPDATE lane SET source = 77" };
	const struct store_query query = { .kinds = ~0U, .columns = ~UINT64_C(0) };

	for (size_t i = 0; i < sizeof(forged) / sizeof(*forged); i++) {
		OWN(store_query_closep) struct store_cursor *cursor = NULL;
		OWN(store_closep) struct store *in = NULL, *out = NULL;
		struct store_batch batch;
		int batches = 0;

		cr_assert_eq(store_create(i ? path : temp_path(), &in, NULL), 0);
		fill_session(store_session(in));
		for (uint32_t lane = 0; lane < 2; lane++) {
			struct op op = { .lane = lane, .start_ns = 7, .end_ns = 10 };

			cr_assert_eq(sink_op(store_sink(in), &op, NULL), 0);
		}
		cr_assert_eq(store_finish(in, NULL), 0);
		forge(forged[i]);
		cr_assert_eq(store_open(path, &out, NULL), 0);
		cr_assert_eq(store_query_open(out, &query, &cursor, NULL), 0);
		for (; store_next(cursor, &batch, NULL) > 0; batches++) {
			const struct session *session = store_session(out);

			cr_assert_lt(batch.lane, session->lanes.count);
			cr_assert_lt(session->lanes.at[batch.lane].source, session->sources.count);
		}
		cr_assert_eq(batches, i < 3 ? 1 : 2, "%s", forged[i]);
		cr_assert_eq(store_damage(out), i < 3, "%s", forged[i]);
	}
}

Test(store, tables_that_are_none_are_refused, .fini = remove_temp)
{
	static const char *const forged[] = {
		"ALTER TABLE string RENAME TO s;"
		"CREATE VIEW string AS WITH RECURSIVE n(id) AS (SELECT 0 UNION ALL SELECT id + 1"
		" FROM n) SELECT id, 'x' || id AS text FROM n",
		"DROP TABLE note; CREATE TABLE note(id INTEGER PRIMARY KEY, source INTEGER,"
		" text INTEGER AS (length(zeroblob(100000000))))",
	};

	for (size_t i = 0; i < 2; i++) {
		OWN(store_closep) struct store *in = NULL;
		OWN(store_closep) struct store *out = NULL;
		struct err err = { 0 };

		cr_assert_eq(store_create(i ? path : temp_path(), &in, NULL), 0);
		fill_session(store_session(in));
		cr_assert_eq(store_finish(in, NULL), 0);
		forge(forged[i]);
		cr_assert_eq(store_open(path, &out, &err), ERR_FORMAT, "%zu", i);
		cr_assert(strstr(err.line, "its tables"), "%s", err.line);
	}
}

Test(store, sql_only_reads, .fini = remove_temp)
{
	static const char *const bad[] = {
		"ATTACH 'x' AS y",
		"DELETE FROM lane",
		"PRAGMA user_version=3",
		"CREATE TABLE t(a)",
		"SELECT load_extension('x')",
		"nonsense",
		"VACUUM",
		"VACUUM INTO 'x'",
		"EXPLAIN DELETE FROM lane",
	};
	OWN(store_closep) struct store *in = NULL;
	char text[100] = "";

	cr_assert_eq(store_create(temp_path(), &in, NULL), 0);
	fill_session(store_session(in));
	cr_assert_eq(store_finish(in, NULL), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(store_sql(path, bad[i], keep_row, text, NULL), ERR_USAGE, "%s",
			     bad[i]);
}
