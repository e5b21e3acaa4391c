/*
 * internal.h - what the files of store/ share: the open database and its
 * tables. Internal to store/.
 */
#pragma once

#include <sqlite3.h>

#include "base/vec.h"
#include "store/chunk.h"
#include "store/layout.h"
#include "store/store.h"

/* "SOND" */
enum { STORE_APPLICATION_ID = 0x534f4e44 };
/* A reader refuses another major and takes any minor. */
enum { STORE_MAJOR = 1, STORE_MINOR = 0 };

/* One row of the chunk table, without its blob. */
struct chunk_head {
	int64_t rowid;
	enum store_kind kind;
	uint32_t lane;
	int64_t first_ns, last_ns; /* least start, greatest end */
	uint32_t count;
	uint32_t checksum; /* CRC-32 of the blob */
	int64_t bytes;
	bool damaged; /* found so and counted, however often it is asked for */
};

/* What of the session the file has already. Rows that may change are kept as
 * they were written. */
enum { SAVED_TABLES = 9 };
struct saved {
	uint32_t strings;
	size_t rows[SAVED_TABLES];
	char *copy[SAVED_TABLES];
};
void saved_done(struct saved *saved);

struct writer;

struct store {
	sqlite3 *db;
	char *path;
	struct session *session;
	struct writer *writer; /* NULL: opened for reading */
	struct chunk_codec *codec;
	/* reading: */
	VEC(struct chunk_head) chunks; /* in order of lane, kind, first start */
	sqlite3_stmt *fetch;
	bool was_cut;
	int64_t damage;
	bool session_damaged;
};

/* The error of the last SQLite call as a line about the file. */
int store_sql_error(const struct store *store, struct err *err);
int store_exec(const struct store *store, const char *sql, struct err *err);
int store_prepare(const struct store *store, const char *sql, sqlite3_stmt **ret, struct err *err);
/* Step to SQLITE_DONE, then reset. */
int store_step_done(const struct store *store, sqlite3_stmt *stmt, struct err *err);

/* tables.c: the session's small tables. */
int tables_create(const struct store *store, struct err *err);
/* Append what is new, replace what may have been completed. */
int tables_save(const struct store *store, struct saved *saved, struct err *err);
/* Whatever can be read; sets session_damaged if that is not all. */
int tables_load(struct store *store, struct err *err);

/* The blob of a chunk, checked against its checksum, appended to `out`: 1;
 * 0: damaged; negative: ERR_IO. */
int chunk_fetch(struct store *store, const struct chunk_head *head, struct buf *out,
		struct err *err);

/* The chunk at index `head` of store->chunks, whatever the query's window:
 * as store_next, 0 if it is damaged. */
int store_query_one(struct store_cursor *cursor, size_t head, struct store_batch *ret_batch,
		    struct err *err);
