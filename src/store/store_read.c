#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "store/internal.h"

/* A chunk of 65,536 samples with every metric incompressible is below this. */
static const int64_t CHUNK_BYTES_MAX = 128u << 20;
/* Places in a damaged table where reading is taken up again. */
static const int RESUME_MAX = 4096;

int store_sql_error(const struct store *store, struct err *err)
{
	int code = store->db ? sqlite3_errcode(store->db) : SQLITE_NOMEM;
	const char *text = store->db ? sqlite3_errmsg(store->db) : "out of memory";

	switch (code & 0xff) {
	case SQLITE_NOTADB:
		return err_set(err, ERR_FORMAT, "%s: is not a sonde profile", store->path);
	case SQLITE_CORRUPT:
		return err_set(err, ERR_FORMAT, "%s: is damaged (%s)", store->path, text);
	case SQLITE_FULL:
		return err_set(err, ERR_IO, "%s: No space left on device", store->path);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(err, ERR_BUSY, "%s: another process is writing it", store->path);
	default:
		if (sqlite3_system_errno(store->db) == ENOSPC)
			return err_set(err, ERR_IO, "%s: No space left on device", store->path);
		return err_set(err, ERR_IO, "%s: %s", store->path, text);
	}
}

int store_exec(const struct store *store, const char *sql, struct err *err)
{
	if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return store_sql_error(store, err);
	return 0;
}

int store_prepare(const struct store *store, const char *sql, sqlite3_stmt **ret, struct err *err)
{
	*ret = NULL;
	if (sqlite3_prepare_v2(store->db, sql, -1, ret, NULL) != SQLITE_OK)
		return store_sql_error(store, err);
	return 0;
}

int store_step_done(const struct store *store, sqlite3_stmt *stmt, struct err *err)
{
	int ret = sqlite3_step(stmt);

	if (ret != SQLITE_DONE) {
		int code = store_sql_error(store, err);

		(void)sqlite3_reset(stmt);
		return code;
	}
	(void)sqlite3_reset(stmt);
	return 0;
}

/* The first 100 bytes are an SQLite header with our id. A file cut below that,
 * or of somebody else, is refused before SQLite sees it. */
static int check_header(const struct store *store, struct err *err)
{
	unsigned char head[100];
	OWN(own_closep) int fd = open(store->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	uint32_t id;
	struct stat st;

	if (fd < 0)
		return err_errno(err, "%s", store->path);
	if (fstat(fd, &st) < 0)
		return err_errno(err, "%s", store->path);
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_FORMAT, "%s: is a directory", store->path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_FORMAT, "%s: is not a file", store->path);
	if (!st.st_size)
		return err_set(err, ERR_FORMAT, "%s: is empty", store->path);
	if (read(fd, head, sizeof(head)) != (ssize_t)sizeof(head) ||
	    memcmp(head, "SQLite format 3", 16) != 0)
		return err_set(err, ERR_FORMAT, "%s: is not a sonde profile", store->path);
	id = (uint32_t)head[68] << 24 | (uint32_t)head[69] << 16 | (uint32_t)head[70] << 8 |
	     head[71];
	/* A recording whose first page is still in the -wal has no id here yet. */
	if (id && id != STORE_APPLICATION_ID)
		return err_set(err, ERR_FORMAT, "%s: is an SQLite file, but not a sonde profile",
			       store->path);
	return 0;
}

/* As an URI, with everything that has a meaning there escaped. */
static void file_uri(const char *path, bool immutable, struct buf *out)
{
	buf_text(out, "file:");
	for (; *path; path++) {
		if (*path == '?' || *path == '#' || *path == '%')
			buf_printf(out, "%%%02x", (unsigned char)*path);
		else
			buf_char(out, *path);
	}
	buf_text(out, immutable ? "?immutable=1" : "?mode=ro");
}

static bool has_wal(const char *path)
{
	struct buf wal = { 0 };
	bool has;

	buf_printf(&wal, "%s-wal", path);
	has = access(wal.at, F_OK) == 0;
	buf_done(&wal);
	return has;
}

static int open_database(struct store *store, bool immutable, bool salvage, struct err *err)
{
	struct buf uri = { 0 };
	int ret;

	(void)sqlite3_close(store->db);
	store->db = NULL;
	file_uri(store->path, immutable, &uri);
	ret = sqlite3_open_v2(uri.at, &store->db,
			      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
	buf_done(&uri);
	if (ret != SQLITE_OK)
		return store_sql_error(store, err);
	(void)sqlite3_busy_timeout(store->db, 2000);
	(void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	/* SQLite refuses a file that is shorter than its header says unless the
	 * schema is writable; the connection stays read-only. */
	(void)sqlite3_db_config(
		store->db, salvage ? SQLITE_DBCONFIG_WRITABLE_SCHEMA : SQLITE_DBCONFIG_DEFENSIVE, 1,
		NULL);
	(void)sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, (int)CHUNK_BYTES_MAX);
	(void)sqlite3_limit(store->db, SQLITE_LIMIT_ATTACHED, 0);
	/* One snapshot for as long as the store is open. */
	ret = store_exec(store, "BEGIN; SELECT count(*) FROM sqlite_schema;", err);
	return ret;
}

static int64_t pragma_number(const struct store *store, const char *sql)
{
	sqlite3_stmt *stmt;
	int64_t value = -1;

	if (store_prepare(store, sql, &stmt, NULL) < 0)
		return -1;
	if (sqlite3_step(stmt) == SQLITE_ROW)
		value = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return value;
}

/* Read-only media cannot hold the lock files of a WAL database; a damaged one
 * is read as far as it goes. */
static int connect(struct store *store, struct err *err)
{
	bool wal = has_wal(store->path);
	int ret = open_database(store, false, false, err);

	if (ret < 0 && ret != ERR_FORMAT && ret != ERR_BUSY && !wal)
		ret = open_database(store, true, false, err);
	if (ret == ERR_FORMAT) {
		store->was_cut = true;
		ret = open_database(store, !wal, true, err);
	}
	return ret;
}

static int check_version(struct store *store, struct err *err)
{
	int64_t version = pragma_number(store, "PRAGMA user_version");

	if (pragma_number(store, "PRAGMA application_id") != STORE_APPLICATION_ID)
		return err_set(err, ERR_FORMAT, "%s: is not a sonde profile", store->path);
	if (version / 1000 != STORE_MAJOR)
		return err_set(err, ERR_UNSUPPORTED,
			       "%s: is a profile of format %lld.%lld, this sonde reads %d.x",
			       store->path, (long long)(version / 1000),
			       (long long)(version % 1000), STORE_MAJOR);
	return 0;
}

/* Our tables must be plain ones: a view, a virtual table or a computed column
 * of a hostile file could make rows without end out of nothing. */
static int check_schema(const struct store *store, struct err *err)
{
	int64_t odd = pragma_number(
		store, "SELECT count(*) FROM sqlite_schema AS s WHERE lower(s.name) IN ('meta',"
		       "'string','chunk','source','device','process','lane','kernel_key','env',"
		       "'note','missing_column','loss') AND (s.type <> 'table' OR"
		       " ifnull(s.rootpage, 0) < 1 OR EXISTS (SELECT 1 FROM"
		       " pragma_table_xinfo(s.name) AS x WHERE x.hidden <> 0))");

	if (odd > 0)
		return err_set(err, ERR_FORMAT,
			       "%s: is damaged: its tables are not those of a profile",
			       store->path);
	return 0;
}

static int by_lane_kind_start(const void *a, const void *b)
{
	const struct chunk_head *x = a;
	const struct chunk_head *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns ? -1 : 1;
	return (x->rowid > y->rowid) - (x->rowid < y->rowid);
}

/* A row of the chunk table; kinds of a newer version are none of ours. */
static void take_head(struct store *store, sqlite3_stmt *stmt)
{
	const char *kind = (const char *)sqlite3_column_text(stmt, 1);
	struct chunk_head head = {
		.rowid = sqlite3_column_int64(stmt, 0),
		.first_ns = sqlite3_column_int64(stmt, 3),
		.last_ns = sqlite3_column_int64(stmt, 4),
		.checksum = (uint32_t)sqlite3_column_int64(stmt, 6),
		.bytes = sqlite3_column_int64(stmt, 7),
	};
	int64_t lane = sqlite3_column_int64(stmt, 2);
	int64_t count = sqlite3_column_int64(stmt, 5);

	if (!kind || !layout_kind_find(kind, &head.kind))
		return;
	if (lane < 0 || (uint64_t)lane >= store->session->lanes.count || count < 1 ||
	    count > CHUNK_ROWS_MAX || head.bytes < 0 || head.bytes > CHUNK_BYTES_MAX) {
		store->damage++;
		return;
	}
	head.lane = (uint32_t)lane;
	head.count = (uint32_t)count;
	*VEC_ADD(&store->chunks) = head;
}

/* All heads; behind a page that cannot be read, go on with the next id. */
static int load_heads(struct store *store, struct err *err)
{
	sqlite3_stmt *stmt;
	int64_t last = INT64_MIN;
	int ret = store_prepare(store,
				"SELECT id, kind, lane, first_ns, last_ns, count, checksum, bytes"
				" FROM chunk WHERE id > ? ORDER BY id",
				&stmt, err);

	if (ret < 0) {
		store->was_cut = true;
		store->damage++;
		return 0;
	}
	for (int resumed = 0; resumed < RESUME_MAX; resumed++) {
		int64_t from = last;

		(void)sqlite3_bind_int64(stmt, 1, last);
		while ((ret = sqlite3_step(stmt)) == SQLITE_ROW) {
			int64_t id = sqlite3_column_int64(stmt, 0);

			/* Pages that refer to each other show rows again and again. */
			if (last != INT64_MIN && id <= last)
				break;
			last = id;
			take_head(store, stmt);
		}
		if (ret == SQLITE_ROW) {
			store->damage++;
			break;
		}
		(void)sqlite3_reset(stmt);
		if (ret == SQLITE_DONE || last == INT64_MAX)
			break;
		/* One place, however many ids are tried until one behind it is found. */
		if (last != from || !resumed)
			store->damage++;
		last = last == INT64_MIN ? 0 : last + 1;
	}
	(void)sqlite3_finalize(stmt);
	if (store->chunks.count)
		qsort(store->chunks.at, store->chunks.count, sizeof(*store->chunks.at),
		      by_lane_kind_start);
	return 0;
}

static int load(struct store *store, struct err *err)
{
	int ret = check_version(store, err);

	if (ret < 0)
		return ret;
	ret = check_schema(store, err);
	if (ret >= 0)
		ret = tables_load(store, err);
	if (ret >= 0)
		ret = load_heads(store, err);
	if (ret < 0)
		return ret;
	if (pragma_number(store, "SELECT value FROM meta WHERE key='finished'") != 1 ||
	    store->session_damaged)
		store->was_cut = true;
	session_settle(store->session);
	/* A writer that was killed at once has left an empty profile, not a damaged one. */
	if (store->was_cut && (store->damage || store->session_damaged) && !store->chunks.count &&
	    !store->session->lanes.count)
		return err_set(err, ERR_FORMAT, "%s: is cut or damaged, nothing in it can be read",
			       store->path);
	return store_prepare(store, "SELECT data FROM chunk WHERE id = ?", &store->fetch, err);
}

/* PATH, or PATH.part while it is being written or after its writer died. */
static char *existing_path(const char *path)
{
	struct buf part = { 0 };

	if (access(path, F_OK) < 0) {
		buf_printf(&part, "%s.part", path);
		if (access(part.at, F_OK) == 0)
			return part.at;
		buf_done(&part);
	}
	return mem_text(path);
}

int store_open(const char *path, struct store **ret_store, struct err *err)
{
	OWN(store_closep) struct store *store = mem_zero(sizeof(*store));
	int ret;

	store->path = existing_path(path);
	store->session = session_new();
	store->codec = chunk_codec_new();
	ret = check_header(store, err);
	if (ret >= 0)
		ret = connect(store, err);
	if (ret >= 0)
		ret = load(store, err);
	if (ret < 0)
		return ret;
	*ret_store = STEAL(store);
	return 0;
}

bool store_was_cut(const struct store *store)
{
	return store->was_cut;
}

int64_t store_damage(const struct store *store)
{
	return store->damage;
}

const char *store_path(const struct store *store)
{
	return store->path;
}

int64_t store_count(struct store *store, enum store_kind kind)
{
	int64_t count = 0;

	for (size_t i = 0; i < store->chunks.count; i++)
		count += store->chunks.at[i].kind == kind ? store->chunks.at[i].count : 0;
	return count;
}

/* A fuzzer cannot guess checksums, and what lies behind them must hold too. */
static bool checks_out(const void *at, int len, uint32_t checksum)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	(void)at;
	(void)len;
	(void)checksum;
	return true;
#else
	return (uint32_t)crc32(0, at, (uInt)len) == checksum;
#endif
}

int chunk_fetch(struct store *store, const struct chunk_head *head, struct buf *out,
		struct err *err)
{
	int ret;

	(void)sqlite3_bind_int64(store->fetch, 1, head->rowid);
	ret = sqlite3_step(store->fetch);
	if (ret == SQLITE_ROW) {
		const void *at = sqlite3_column_blob(store->fetch, 0);
		int len = sqlite3_column_bytes(store->fetch, 0);

		/* SQLite has no address for a blob of no bytes. */
		ret = (at || !len) && len == head->bytes && checks_out(at, len, head->checksum);
		if (ret && len)
			buf_add(out, at, (size_t)len);
	} else if (ret == SQLITE_DONE || ret == SQLITE_CORRUPT) {
		ret = 0;
	} else {
		ret = store_sql_error(store, err);
	}
	(void)sqlite3_reset(store->fetch);
	return ret;
}
