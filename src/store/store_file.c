#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/writer.h"

/* A finishing writer renames the part away under a waiting one: then the next
 * part is tried. */
static const int LOCK_TRIES = 8;

/* The descriptor still has the name. Between our open and our lock another
 * writer may have finished: then we hold its profile, which must stay whole. */
static bool still_named(int fd, const char *name)
{
	struct stat held, named;

	return fstat(fd, &held) == 0 && lstat(name, &named) == 0 && held.st_ino == named.st_ino &&
	       held.st_dev == named.st_dev;
}

/* PATH.part, open and locked; `create`: O_CREAT or 0. */
static int lock_part(const char *part, int create, int *ret_fd, struct err *err)
{
	*ret_fd = -1;
	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		int fd = open(part, O_RDWR | create | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (fd < 0)
			return err_errno(err, "%s", part);
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			(void)close(fd);
			break;
		}
		if (still_named(fd, part)) {
			*ret_fd = fd;
			return 0;
		}
		(void)close(fd);
	}
	return err_set(err, ERR_BUSY, "%s: another process is writing it", part);
}

static void unlink_sides(const char *part)
{
	/* A copy is made by the holder of the part alone: one that is still there
	 * is of a writer that died. */
	static const char *const sides[] = { "-wal", "-shm", "-copy" };

	for (size_t i = 0; i < 3; i++) {
		struct buf side = { 0 };

		buf_printf(&side, "%s%s", part, sides[i]);
		(void)unlink(side.at);
		buf_done(&side);
	}
}

/* Hold PATH.part for us alone. A part that nobody holds is what a killed
 * writer left: it makes way. */
static int take_part(struct writer *writer, struct err *err)
{
	const char *part = writer->part;
	int ret = lock_part(part, O_CREAT, &writer->fd, err);

	if (ret < 0)
		return ret;
	if (ftruncate(writer->fd, 0) < 0)
		return err_errno(err, "%s", part);
	unlink_sides(part);
	return 0;
}

/* What a killed import wrote is in the file without any syncing. Where the
 * machine itself stops the import is done again, which a recording can't be:
 * only the whole profile is synced, before it takes its name. */
static int create_tables(struct store *store, struct err *err)
{
	char sql[256];
	int ret;

	(void)snprintf(sql, sizeof(sql), "PRAGMA application_id=%d; PRAGMA user_version=%d;",
		       STORE_APPLICATION_ID, STORE_MAJOR * 1000 + STORE_MINOR);
	ret = store_exec(store,
			 store->writer->recording
				 ? "PRAGMA page_size=4096; PRAGMA cache_size=-256;"
				   "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
				   "PRAGMA wal_autocheckpoint=128;"
				 : "PRAGMA page_size=8192; PRAGMA synchronous=OFF;"
				   "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=2000;",
			 err);
	if (ret >= 0)
		ret = store_exec(store, sql, err);
	if (ret >= 0)
		ret = tables_create(store, err);
	if (ret >= 0)
		ret = store_exec(store, "INSERT INTO meta VALUES('finished',0);", err);
	if (ret >= 0 && store->writer->recording)
		ret = store_exec(store, "INSERT INTO meta VALUES('recording',1);", err);
	return ret;
}

/* 80 MB: large chunks, few of them early. */
static const size_t IMPORT_BUDGET_BYTES = 80u << 20;
/* Eight boards with a few processes have chunks of some hundred rows, in a monitor of
 * less than 16 MiB; a thousand processes write theirs early. */
enum { RECORDING_ROWS_MAX = 512 };
static const size_t RECORDING_BUDGET_BYTES = 5u << 19;

static int create(const char *path, bool recording, struct store **ret_store, struct err *err)
{
	OWN(store_closep) struct store *store = mem_zero(sizeof(*store));
	struct writer *writer = mem_zero(sizeof(*writer));
	struct buf part = { 0 };
	int ret;

	store->writer = writer;
	store->path = mem_text(path);
	store->session = session_new();
	buf_printf(&part, "%s.part", path);
	writer->part = part.at;
	writer->store = store;
	writer->sink = (struct sink){ &writer_ops, store->session };
	writer->next_rowid = 1;
	writer->recording = recording;
	writer->rows_max = recording ? RECORDING_ROWS_MAX : CHUNK_ROWS_MAX;
	writer->budget_bytes = recording ? RECORDING_BUDGET_BYTES : IMPORT_BUDGET_BYTES;
	writer_start(writer);
	writer->packer = packer_new(writer->rows_max);
	ret = take_part(writer, err);
	if (ret < 0)
		return ret;
	/* One thread uses it: no locks for each value of each row. */
	if (sqlite3_open_v2(writer->part, &store->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX,
			    NULL) != SQLITE_OK)
		ret = store_sql_error(store, err);
	if (ret >= 0)
		ret = create_tables(store, err);
	if (ret >= 0)
		ret = store_prepare(store, "INSERT OR REPLACE INTO chunk VALUES(?,?,?,?,?,?,?,?,?)",
				    &writer->insert, err);
	if (ret >= 0)
		ret = store_prepare(store, "DELETE FROM chunk WHERE id=?", &writer->remove, err);
	if (ret < 0) {
		store_discard(STEAL(store)); /* nothing is in it yet */
		return ret;
	}
	*ret_store = STEAL(store);
	return 0;
}

int store_create(const char *path, struct store **ret_store, struct err *err)
{
	return create(path, false, ret_store, err);
}

int store_create_recording(const char *path, struct store **ret_store, struct err *err)
{
	return create(path, true, ret_store, err);
}

int store_flush(struct store *store, struct err *err)
{
	return writer_write_tails(store->writer, err);
}

int store_flush_durably(struct store *store, struct err *err)
{
	/* A chunk that filled since the last flush has begun one, in which the pragma
	 * is refused. */
	int ret = store->writer->in_transaction ? writer_commit(store->writer, err) : 0;

	if (ret >= 0)
		ret = store_exec(store, "PRAGMA synchronous=FULL;", err);
	if (ret >= 0)
		ret = writer_write_tails(store->writer, err);
	if (ret >= 0)
		ret = store_exec(store, "PRAGMA synchronous=NORMAL;", err);
	return ret;
}

/* Somebody reads PATH.part, so it can't leave WAL mode: a copy without it takes
 * its place, and the reader keeps what it opened. */
static int move_copy(struct store *store, struct err *err)
{
	struct buf copy = { 0 };
	sqlite3_stmt *stmt = NULL;
	OWN(own_closep) int fd = -1;
	int ret;

	buf_printf(&copy, "%s.part-copy", store->path);
	(void)unlink(copy.at);
	fd = open(copy.at, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ret = fd < 0 ? err_errno(err, "%s", copy.at)
		     : store_prepare(store, "VACUUM INTO ?", &stmt, err);
	if (ret >= 0) {
		(void)sqlite3_bind_text(stmt, 1, copy.at, -1, SQLITE_STATIC);
		ret = store_step_done(store, stmt, err);
	}
	(void)sqlite3_finalize(stmt);
	if (ret >= 0 && ((fsync(fd) < 0 && errno != EINVAL) || rename(copy.at, store->path) < 0))
		ret = err_errno(err, "%s", store->path);
	if (ret >= 0) {
		(void)sqlite3_close(store->db);
		store->db = NULL;
		(void)unlink(store->writer->part);
		unlink_sides(store->writer->part);
		store->writer->finished = true;
	} else {
		(void)unlink(copy.at);
	}
	buf_done(&copy);
	return ret;
}

int store_finish(struct store *store, struct err *err)
{
	struct writer *writer = store->writer;
	int ret;

	session_settle(store->session);
	ret = writer_write_all(writer, err);
	if (ret >= 0) {
		char sql[128];

		(void)snprintf(sql, sizeof(sql),
			       "REPLACE INTO meta VALUES('finished',1),"
			       "('zero_utc_ns',%lld);",
			       (long long)store->session->zero_utc_ns);
		ret = store_exec(store, sql, err);
	}
	if (ret >= 0)
		ret = writer_commit(writer, err);
	pack_ahead_stop(writer->ahead);
	writer->ahead = NULL;
	(void)sqlite3_finalize(writer->insert);
	(void)sqlite3_finalize(writer->remove);
	writer->insert = writer->remove = NULL;
	if (ret >= 0)
		ret = store_exec(store, "PRAGMA journal_mode=DELETE;", err);
	/* Small tails left holes. Where there is no room for the copy, they stay. */
	if (ret >= 0 && writer->recording)
		(void)store_exec(store, "VACUUM;", NULL);
	if (ret == ERR_BUSY)
		return move_copy(store, err);
	if (ret < 0)
		return ret;
	(void)sqlite3_close(store->db);
	store->db = NULL;
	if (fsync(writer->fd) < 0 && errno != EINVAL)
		return err_errno(err, "%s", writer->part);
	if (rename(writer->part, store->path) < 0)
		return err_errno(err, "%s", store->path);
	writer->finished = true;
	return 0;
}

struct session *store_session(struct store *store)
{
	return store->session;
}

struct sink *store_sink(struct store *store)
{
	return &store->writer->sink;
}

static void writer_free(struct writer *writer)
{
	if (!writer)
		return;
	pack_ahead_stop(writer->ahead);
	pack_job_done(&writer->job);
	packer_free(writer->packer);
	for (size_t i = 0; i < writer->rows.count; i++)
		free(writer->rows.at[i].at);
	VEC_DONE(&writer->rows);
	VEC_DONE(&writer->by_lane);
	(void)sqlite3_finalize(writer->insert);
	(void)sqlite3_finalize(writer->remove);
	saved_done(&writer->saved);
	free(writer->places);
}

void store_close(struct store *store)
{
	struct writer *writer;

	if (!store)
		return;
	writer = store->writer;
	writer_free(writer);
	(void)sqlite3_finalize(store->fetch);
	(void)sqlite3_close(store->db);
	/* Not before SQLite is done: closing any descriptor of a file gives up
	 * all locks that the process has on it. */
	if (writer) {
		own_closep(&writer->fd);
		free(writer->part);
		free(writer);
	}
	chunk_codec_free(store->codec);
	session_free(store->session);
	VEC_DONE(&store->chunks);
	free(store->path);
	free(store);
}

void store_discard(struct store *store)
{
	if (store && store->writer && !store->writer->finished && store->writer->fd >= 0) {
		const char *part = store->writer->part;
		struct buf side = { 0 };

		for (int i = 0; i < 3; i++) {
			buf_clear(&side);
			buf_printf(&side, "%s%s", part, i == 0 ? "" : i == 1 ? "-wal" : "-shm");
			(void)unlink(side.at);
		}
		buf_done(&side);
	}
	store_close(store);
}

static int64_t number_of(const struct store *store, const char *sql)
{
	sqlite3_stmt *stmt;
	int64_t value = 0;

	if (store_prepare(store, sql, &stmt, NULL) < 0)
		return 0;
	if (sqlite3_step(stmt) == SQLITE_ROW)
		value = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return value;
}

/* Out of WAL mode, which also takes in what the -wal holds. 0: nothing in it. */
static int settle_part(const char *part, struct err *err)
{
	struct store store = { .path = (char *)(uintptr_t)part };
	int ret = 1;

	if (sqlite3_open_v2(part, &store.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, NULL) !=
	    SQLITE_OK)
		ret = store_sql_error(&store, err);
	(void)sqlite3_db_config(store.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(store.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	if (ret > 0 && store_exec(&store, "SELECT count(*) FROM sqlite_schema;", err) < 0)
		ret = err ? err->code : ERR_FORMAT;
	if (ret > 0 && !number_of(&store, "SELECT count(*) FROM chunk;"))
		ret = 0;
	else if (ret > 0 && store_exec(&store, "PRAGMA journal_mode=DELETE;", err) < 0)
		ret = err ? err->code : ERR_IO;
	(void)sqlite3_close(store.db);
	return ret;
}

int store_recover(const char *path, struct err *err)
{
	OWN(own_closep) int fd = -1;
	struct buf part = { 0 };
	int ret;

	buf_printf(&part, "%s.part", path);
	ret = lock_part(part.at, 0, &fd, err);
	if (ret >= 0)
		ret = settle_part(part.at, err);
	if (ret == 0) {
		(void)unlink(part.at);
		unlink_sides(part.at);
	}
	if (ret > 0 && ((fsync(fd) < 0 && errno != EINVAL) || rename(part.at, path) < 0))
		ret = err_errno(err, "%s", path);
	if (ret > 0)
		unlink_sides(part.at);
	buf_done(&part);
	return ret == ERR_MISSING ? 0 : ret;
}

bool store_is_recording(const char *path)
{
	OWN(store_closep) struct store *store = mem_zero(sizeof(*store));

	store->path = mem_text(path);
	if (sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW, NULL) !=
	    SQLITE_OK)
		return false;
	(void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return number_of(store, "PRAGMA application_id") == STORE_APPLICATION_ID &&
	       number_of(store, "SELECT value FROM meta WHERE key='recording'") == 1;
}
