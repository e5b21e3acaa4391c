#include <stdlib.h>

#include "base/mem.h"
#include "store/internal.h"
#include "store/sql_table.h"

/* Reading and nothing else: no ATTACH, no PRAGMA, no writing, no extension. */
static int authorize(void *arg, int action, const char *a, const char *b, const char *c,
		     const char *d)
{
	(void)arg;
	(void)a;
	(void)c;
	(void)d;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		return b && !sqlite3_stricmp(b, "load_extension") ? SQLITE_DENY : SQLITE_OK;
	default:
		return SQLITE_DENY;
	}
}

/* What a step failed with: the query's own fault, or the file's. */
static int step_error(const struct store *store, int code, struct err *err)
{
	switch (code & 0xff) {
	case SQLITE_ERROR:
	case SQLITE_TOOBIG:
	case SQLITE_MISMATCH:
	case SQLITE_CONSTRAINT:
		return err_set(err, ERR_USAGE, "%s", sqlite3_errmsg(store->db));
	default:
		return store_sql_error(store, err);
	}
}

/* Bytes that are no text, as SQL spells them. */
static const char *blob_text(sqlite3_stmt *stmt, int column, struct buf *out)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *at = sqlite3_column_blob(stmt, column);
	int len = sqlite3_column_bytes(stmt, column);

	buf_clear(out);
	buf_text(out, "x'");
	for (int i = 0; i < len; i++) {
		buf_char(out, digits[at[i] >> 4]);
		buf_char(out, digits[at[i] & 15]);
	}
	buf_char(out, '\'');
	return out->at;
}

static int show_rows(const struct store *store, sqlite3_stmt *stmt, store_sql_row *row, void *arg,
		     struct err *err)
{
	int columns = sqlite3_column_count(stmt);
	const char **names = mem_zero((size_t)columns * sizeof(*names));
	const char **values = mem_zero((size_t)columns * sizeof(*values));
	bool *numbers = mem_zero((size_t)columns * sizeof(*numbers));
	struct buf *blobs = mem_zero((size_t)columns * sizeof(*blobs));
	int ret;
	int code;

	for (int i = 0; i < columns; i++)
		names[i] = sqlite3_column_name(stmt, i);
	ret = columns ? row(arg, columns, names, NULL, NULL) : 0;
	while (!ret && (code = sqlite3_step(stmt)) != SQLITE_DONE) {
		if (code != SQLITE_ROW) {
			ret = step_error(store, code, err);
			break;
		}
		for (int i = 0; i < columns; i++) {
			int type = sqlite3_column_type(stmt, i);

			numbers[i] = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
			values[i] = type == SQLITE_BLOB
					    ? blob_text(stmt, i, &blobs[i])
					    : (const char *)sqlite3_column_text(stmt, i);
		}
		ret = row(arg, columns, names, values, numbers);
	}
	for (int i = 0; i < columns; i++)
		buf_done(&blobs[i]);
	free(blobs);
	free(names);
	free(values);
	free(numbers);
	return ret < 0 ? ret : 0;
}

static int query_all(struct store *store, const char *query, store_sql_row *row, void *arg,
		     struct err *err)
{
	const char *rest = query;
	int ret = 0;

	while (ret >= 0 && *rest) {
		sqlite3_stmt *stmt;

		if (sqlite3_prepare_v2(store->db, rest, -1, &stmt, &rest) != SQLITE_OK)
			return err_set(err, ERR_USAGE, "%s", sqlite3_errmsg(store->db));
		if (!stmt)
			break;
		/* VACUUM asks no authorizer. */
		if (!sqlite3_stmt_readonly(stmt)) {
			(void)sqlite3_finalize(stmt);
			return err_set(err, ERR_USAGE, "not authorized");
		}
		ret = show_rows(store, stmt, row, arg, err);
		(void)sqlite3_finalize(stmt);
	}
	return ret;
}

int store_sql(const char *path, const char *query, store_sql_row *row, void *arg, struct err *err)
{
	OWN(store_closep) struct store *store = NULL;
	struct sql_table *tables;
	int ret = store_open(path, &store, err);

	if (ret < 0)
		return ret;
	tables = sql_tables_new();
	sql_tables_add(store, tables);
	/* What a hostile query may ask of memory. */
	(void)sqlite3_limit(store->db, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
	(void)sqlite3_limit(store->db, SQLITE_LIMIT_EXPR_DEPTH, 200);
	(void)sqlite3_set_authorizer(store->db, authorize, NULL);
	ret = query_all(store, query, row, arg, err);
	(void)sqlite3_set_authorizer(store->db, NULL, NULL);
	if (ret >= 0 && store->damage)
		ret = err_set(err, ERR_FORMAT, "%s: parts of it are damaged and were left out",
			      store->path);
	/* The modules' tables go after the connection that uses them. */
	store_close(STEAL(store));
	sql_tables_free(tables);
	return ret;
}
