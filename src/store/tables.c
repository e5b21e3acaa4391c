#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/internal.h"

/*
 * The session's tables, each described by its columns: SQL type and where the
 * field lies in the C row. String ids are stored as ids into table `string`.
 */
enum field_kind { FIELD_I64, FIELD_I32, FIELD_U32, FIELD_BOOL };

struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	bool later; /* the first files had none: absent is 0 */
};

struct table {
	const char *name;
	size_t row_size;
	const struct field *fields;
	size_t count;
	bool append_only;
};

#define I64(type, f)                                           \
	{                                                      \
#f, FIELD_I64, offsetof(struct type, f), false \
	}
#define U32(type, f)                                           \
	{                                                      \
#f, FIELD_U32, offsetof(struct type, f), false \
	}
#define BOOL(type, f)                                           \
	{                                                       \
#f, FIELD_BOOL, offsetof(struct type, f), false \
	}
#define ENUM(type, f)                                          \
	{                                                      \
#f, FIELD_U32, offsetof(struct type, f), false \
	}
#define DIM(f, i, suffix)                                                                 \
	{                                                                                 \
#f "_" suffix, FIELD_I32, offsetof(struct kernel_key, f) + 4 * (i), false \
	}

static const struct field source_fields[] = {
	U32(source, reader),
	U32(source, file),
	BOOL(source, has_utc),
	I64(source, utc_offset_ns),
	I64(source, mapping_error_ns),
	I64(source, interval_ns),
	BOOL(source, interval_assumed),
	I64(source, first_ns),
	I64(source, last_ns),
	I64(source, rank),
	I64(source, world_size),
	BOOL(source, with_stack),
	BOOL(source, truncated),
	BOOL(source, no_device_activity),
	U32(source, accelerator),
};
static const struct field device_fields[] = {
	ENUM(device, scope),
	U32(device, source),
	I64(device, ordinal),
	U32(device, uuid),
	U32(device, name),
	U32(device, pci_bus),
	U32(device, maker),
	I64(device, sm_count),
	I64(device, memory_bytes),
	I64(device, cc_major),
	I64(device, cc_minor),
	I64(device, warps_per_sm),
	I64(device, threads_per_sm),
	I64(device, regs_per_sm),
	I64(device, shared_per_sm),
	{ .name = "part", FIELD_U32, offsetof(struct device, part), .later = true },
};
static const struct field process_fields[] = {
	U32(process, source),  I64(process, pid),  U32(process, name),
	U32(process, command), U32(process, type),
};
static const struct field lane_fields[] = {
	ENUM(lane, kind),   U32(lane, source), U32(lane, device), U32(lane, process),
	I64(lane, context), I64(lane, stream), I64(lane, tid),    U32(lane, name),
};
static const struct field key_fields[] = {
	U32(kernel_key, name),
	DIM(grid, 0, "x"),
	DIM(grid, 1, "y"),
	DIM(grid, 2, "z"),
	DIM(block, 0, "x"),
	DIM(block, 1, "y"),
	DIM(block, 2, "z"),
	DIM(cluster, 0, "x"),
	DIM(cluster, 1, "y"),
	DIM(cluster, 2, "z"),
	I64(kernel_key, shared_bytes),
	{ "registers", FIELD_I32, offsetof(struct kernel_key, registers), false },
	{ "theoretical_occupancy_pct", FIELD_I32,
	  offsetof(struct kernel_key, theoretical_occupancy_pct), false },
};
static const struct field env_fields[] = {
	U32(env, source),
	U32(env, device),
	U32(env, key),
	U32(env, value),
};
static const struct field note_fields[] = { U32(note, source), U32(note, text) };
static const struct field missing_fields[] = { { "text", FIELD_U32, 0, false } };
static const struct field loss_fields[] = { U32(loss_row, source),
#define X(id, what)                                                         \
	{ #id, FIELD_I64, offsetof(struct loss_row, count) + 8 * LOSS_##id, \
	  LOSS_##id == LOSS_untimed },
					    LOSS_LIST(X)
#undef X
};

#define TABLE(name, type, fields, append)                                                \
	{                                                                                \
		name, sizeof(type), fields, sizeof(fields) / sizeof((fields)[0]), append \
	}

enum { SOURCE, DEVICE, PROCESS, LANE, KEY, ENV, NOTE, MISSING, LOSS, TABLE_COUNT };
static const struct table tables[TABLE_COUNT] = {
	[SOURCE] = TABLE("source", struct source, source_fields, false),
	[DEVICE] = TABLE("device", struct device, device_fields, false),
	[PROCESS] = TABLE("process", struct process, process_fields, false),
	[LANE] = TABLE("lane", struct lane, lane_fields, false),
	[KEY] = TABLE("kernel_key", struct kernel_key, key_fields, true),
	[ENV] = TABLE("env", struct env, env_fields, true),
	[NOTE] = TABLE("note", struct note, note_fields, true),
	[MISSING] = TABLE("missing_column", uint32_t, missing_fields, true),
	[LOSS] = TABLE("loss", struct loss_row, loss_fields, false),
};

/* Rows of table `t` in the session: where, and how many. */
static char *rows_of(struct session *session, int t, size_t *ret_count)
{
	switch (t) {
#define CASE(id, vec)                            \
	case id:                                 \
		*ret_count = session->vec.count; \
		return (char *)session->vec.at;
		CASE(SOURCE, sources)
		CASE(DEVICE, devices)
		CASE(PROCESS, processes)
		CASE(LANE, lanes)
		CASE(KEY, keys)
		CASE(ENV, envs)
		CASE(NOTE, notes)
		CASE(MISSING, missing_columns)
		CASE(LOSS, losses)
#undef CASE
	default:
		*ret_count = 0;
		return NULL;
	}
}

/* A cleared row at the end of table `t`. */
static char *add_row(struct session *session, int t)
{
	switch (t) {
	case SOURCE:
		return (char *)VEC_ADD(&session->sources);
	case DEVICE:
		return (char *)VEC_ADD(&session->devices);
	case PROCESS:
		return (char *)VEC_ADD(&session->processes);
	case LANE:
		return (char *)VEC_ADD(&session->lanes);
	case KEY:
		return (char *)VEC_ADD(&session->keys);
	case ENV:
		return (char *)VEC_ADD(&session->envs);
	case NOTE:
		return (char *)VEC_ADD(&session->notes);
	case MISSING:
		return (char *)VEC_ADD(&session->missing_columns);
	default:
		return (char *)VEC_ADD(&session->losses);
	}
}

int tables_create(const struct store *store, struct err *err)
{
	struct buf sql = { 0 };
	int ret;

	buf_text(&sql, "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
		       "CREATE TABLE string(id INTEGER PRIMARY KEY, text TEXT NOT NULL);"
		       "CREATE TABLE chunk(id INTEGER PRIMARY KEY, kind TEXT NOT NULL,"
		       " lane INTEGER NOT NULL, first_ns INTEGER NOT NULL,"
		       " last_ns INTEGER NOT NULL, count INTEGER NOT NULL,"
		       " checksum INTEGER NOT NULL, bytes INTEGER NOT NULL, data BLOB NOT NULL);"
		       "CREATE VIEW chunk_size AS SELECT kind, sum(count) AS count,"
		       " sum(bytes) AS bytes FROM chunk GROUP BY kind;");
	for (int t = 0; t < TABLE_COUNT; t++) {
		buf_printf(&sql, "CREATE TABLE %s(id INTEGER PRIMARY KEY", tables[t].name);
		for (size_t i = 0; i < tables[t].count; i++)
			buf_printf(&sql, ", \"%s\" INTEGER", tables[t].fields[i].name);
		buf_text(&sql, ");");
	}
	ret = store_exec(store, sql.at, err);
	buf_done(&sql);
	return ret;
}

static int64_t get_field(const char *row, const struct field *field)
{
	switch (field->kind) {
	case FIELD_I64:
		return *(const int64_t *)(const void *)(row + field->offset);
	case FIELD_I32:
		return *(const int32_t *)(const void *)(row + field->offset);
	case FIELD_U32:
		return *(const uint32_t *)(const void *)(row + field->offset);
	default:
		return *(const bool *)(row + field->offset);
	}
}

static void set_field(char *row, const struct field *field, int64_t value)
{
	switch (field->kind) {
	case FIELD_I64:
		*(int64_t *)(void *)(row + field->offset) = value;
		break;
	case FIELD_I32:
		*(int32_t *)(void *)(row + field->offset) = (int32_t)value;
		break;
	case FIELD_U32:
		*(uint32_t *)(void *)(row + field->offset) = (uint32_t)value;
		break;
	default:
		*(bool *)(row + field->offset) = value != 0;
		break;
	}
}

_Static_assert((int)SAVED_TABLES == (int)TABLE_COUNT, "internal.h counts the tables");

void saved_done(struct saved *saved)
{
	for (int t = 0; t < TABLE_COUNT; t++)
		free(saved->copy[t]);
	memset(saved, 0, sizeof(*saved));
}

/* Padding may differ between equal rows: then a row is written once more. */
static bool is_saved(const struct saved *saved, int t, size_t row, const char *rows)
{
	size_t size = tables[t].row_size;

	return row < saved->rows[t] &&
	       (tables[t].append_only ||
		!memcmp(rows + row * size, saved->copy[t] + row * size, size));
}

static void keep_saved(struct saved *saved, int t, size_t from, const char *rows, size_t count)
{
	size_t size = tables[t].row_size;

	if (!tables[t].append_only) {
		saved->copy[t] = mem_resize(saved->copy[t], count * size);
		memcpy(saved->copy[t] + from * size, rows + from * size, (count - from) * size);
	}
	saved->rows[t] = count;
}

static int save_rows(const struct store *store, int t, struct saved *saved, struct err *err)
{
	const struct table *table = &tables[t];
	struct buf sql = { 0 };
	sqlite3_stmt *stmt;
	size_t count, from = 0;
	const char *rows = rows_of(store->session, t, &count);
	int ret;

	if (table->append_only)
		from = saved->rows[t];
	while (from < count && is_saved(saved, t, from, rows))
		from++;
	if (from >= count)
		return 0;
	buf_printf(&sql, "INSERT OR REPLACE INTO %s VALUES(?", table->name);
	for (size_t i = 0; i < table->count; i++)
		buf_text(&sql, ",?");
	buf_char(&sql, ')');
	ret = store_prepare(store, sql.at, &stmt, err);
	buf_done(&sql);
	for (size_t row = from; ret >= 0 && row < count; row++) {
		if (is_saved(saved, t, row, rows))
			continue;
		(void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)row);
		for (size_t i = 0; i < table->count; i++)
			(void)sqlite3_bind_int64(
				stmt, (int)i + 2,
				get_field(rows + row * table->row_size, &table->fields[i]));
		ret = store_step_done(store, stmt, err);
	}
	(void)sqlite3_finalize(stmt);
	if (ret >= 0)
		keep_saved(saved, t, from, rows, count);
	return ret;
}

static int save_strings(const struct store *store, struct saved *saved, struct err *err)
{
	uint32_t count = intern_count(store->session->strings);
	sqlite3_stmt *stmt;
	int ret;

	if (saved->strings >= count)
		return 0;
	ret = store_prepare(store, "INSERT OR REPLACE INTO string VALUES(?,?)", &stmt, err);
	for (uint32_t id = saved->strings; ret >= 0 && id < count; id++) {
		size_t len;
		const char *text = intern_get(store->session->strings, id, &len);

		(void)sqlite3_bind_int64(stmt, 1, id);
		(void)sqlite3_bind_text(stmt, 2, text, (int)len, SQLITE_STATIC);
		ret = store_step_done(store, stmt, err);
	}
	(void)sqlite3_finalize(stmt);
	saved->strings = count;
	return ret;
}

int tables_save(const struct store *store, struct saved *saved, struct err *err)
{
	int ret = save_strings(store, saved, err);

	for (int t = 0; ret >= 0 && t < TABLE_COUNT; t++)
		ret = save_rows(store, t, saved, err);
	return ret;
}

/* In brackets: of a missing column in double quotes SQLite makes a text. */
static int select_rows(struct store *store, const struct table *table, bool later,
		       sqlite3_stmt **ret_stmt, struct err *err)
{
	struct buf sql = { 0 };
	int ret;

	buf_text(&sql, "SELECT id");
	for (size_t i = 0; i < table->count; i++) {
		if (table->fields[i].later && !later)
			buf_text(&sql, ", 0");
		else
			buf_printf(&sql, ", [%s]", table->fields[i].name);
	}
	buf_printf(&sql, " FROM %s ORDER BY id", table->name);
	ret = store_prepare(store, sql.at, ret_stmt, err);
	buf_done(&sql);
	return ret;
}

/* Ids must count up from 0: the first that does not ends the table. */
static int load_rows(struct store *store, int t, struct err *err)
{
	const struct table *table = &tables[t];
	sqlite3_stmt *stmt;
	int64_t expected = 0;
	int ret;

	if (select_rows(store, table, true, &stmt, err) < 0 &&
	    select_rows(store, table, false, &stmt, err) < 0) {
		store->session_damaged = true;
		return 0;
	}
	while ((ret = sqlite3_step(stmt)) == SQLITE_ROW) {
		char *row;

		if (sqlite3_column_int64(stmt, 0) != expected++) {
			store->session_damaged = true;
			break;
		}
		row = add_row(store->session, t);
		for (size_t i = 0; i < table->count; i++)
			set_field(row, &table->fields[i], sqlite3_column_int64(stmt, (int)i + 1));
	}
	if (ret != SQLITE_ROW && ret != SQLITE_DONE)
		store->session_damaged = true;
	(void)sqlite3_finalize(stmt);
	return 0;
}

static int load_strings(struct store *store, struct err *err)
{
	sqlite3_stmt *stmt;
	uint32_t expected = 0;
	int ret = store_prepare(store, "SELECT id, text FROM string ORDER BY id", &stmt, err);

	if (ret < 0) {
		store->session_damaged = true;
		return 0;
	}
	while ((ret = sqlite3_step(stmt)) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_blob(stmt, 1);
		size_t len = (size_t)sqlite3_column_bytes(stmt, 1);

		if (sqlite3_column_int64(stmt, 0) != expected ||
		    intern_add(store->session->strings, text ? text : "", text ? len : 0) !=
			    expected) {
			store->session_damaged = true;
			break;
		}
		expected++;
	}
	if (ret != SQLITE_ROW && ret != SQLITE_DONE)
		store->session_damaged = true;
	(void)sqlite3_finalize(stmt);
	return 0;
}

/* Indices in the rows of a hostile file must stay inside the tables. */
static void check_references(struct store *store)
{
	struct session *session = store->session;

	for (size_t i = 0; i < session->lanes.count; i++) {
		struct lane *lane = &session->lanes.at[i];

		if (lane->source >= session->sources.count)
			lane->source = 0;
		if (lane->device != SESSION_NONE && lane->device >= session->devices.count)
			lane->device = SESSION_NONE;
		if (lane->process != SESSION_NONE && lane->process >= session->processes.count)
			lane->process = SESSION_NONE;
	}
	for (size_t i = 0; i < session->devices.count; i++) {
		if (session->devices.at[i].source >= session->sources.count)
			session->devices.at[i].source = 0;
	}
	for (size_t i = 0; i < session->processes.count; i++) {
		if (session->processes.at[i].source >= session->sources.count)
			session->processes.at[i].source = 0;
	}
	for (size_t i = 0; i < session->envs.count; i++) {
		struct env *env = &session->envs.at[i];

		if (env->source >= session->sources.count)
			env->source = 0;
		if (env->device != SESSION_NONE && env->device >= session->devices.count)
			env->device = SESSION_NONE;
	}
	for (size_t i = 0; i < session->notes.count; i++) {
		if (session->notes.at[i].source >= session->sources.count)
			session->notes.at[i].source = 0;
	}
}

int tables_load(struct store *store, struct err *err)
{
	int ret = load_strings(store, err);

	for (int t = 0; ret >= 0 && t < TABLE_COUNT; t++)
		ret = load_rows(store, t, err);
	/* What follows indexes sources and losses alike. */
	if (!store->session->sources.count)
		(void)session_source(store->session, "unknown", store->path);
	while (store->session->losses.count < store->session->sources.count)
		(void)VEC_ADD(&store->session->losses);
	store->session->losses.count = store->session->sources.count;
	for (size_t i = 0; i < store->session->losses.count; i++)
		store->session->losses.at[i].source = (uint32_t)i;
	check_references(store);
	return ret;
}
