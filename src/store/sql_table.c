#include <stdlib.h>

#include "base/mem.h"
#include "store/internal.h"
#include "store/sql_table.h"

/*
 * Each kind of event is an eponymous virtual table. A row is (chunk, number in
 * it); its columns are the chunk's, then what lane and key stand for. Scans go
 * chunk by chunk and skip chunks outside a constraint on start_ns. An equality
 * on correlation, which is how launches and kernels are joined, uses an index
 * of (correlation, row) that the first such search of a table builds.
 */
static const uint32_t CACHE_CHUNKS = 8;

struct sql_chunk {
	size_t head; /* index into store->chunks + 1; 0: empty */
	uint64_t used;
	struct store_batch batch;
	struct store_cursor *cursor;
	struct intern *details; /* taken from the session: the next chunk has others */
};

struct posting {
	uint64_t correlation;
	uint32_t head;
	uint32_t row;
};

struct sql_table {
	sqlite3_vtab base;
	struct store *store;
	enum store_kind kind;
	VEC(struct posting) index;
	bool indexed;
	struct sql_chunk cache[8];
	uint64_t clock;
};

struct sql_cursor {
	sqlite3_vtab_cursor base;
	size_t head; /* into store->chunks */
	uint32_t row;
	bool by_index;
	size_t posting;
	uint64_t correlation;
	int64_t from_ns, to_ns;
	struct sql_chunk *chunk;
	bool end;
};

/* Columns behind those of the chunk. */
enum extra {
	EXTRA_NAME,
	EXTRA_END,
	EXTRA_SOURCE,
	EXTRA_DEVICE,
	EXTRA_CONTEXT,
	EXTRA_STREAM,
	EXTRA_PID,
	EXTRA_TID,
	EXTRA_GRID,
	EXTRA_BLOCK,
	EXTRA_UNIT,
	EXTRA_TEXT,
	EXTRA_DETAIL,
	EXTRA_COPY,
	EXTRA_LANE,
	EXTRA_COUNT
};

static const char *const extra_names[EXTRA_COUNT] = {
	"name", "end_ns", "source", "device", "context", "stream", "pid",  "tid",
	"grid", "block",  "unit",   "text",   "detail",  "kind",   "lane",
};

/* What a chunk column is called in SQL; ids of texts get a suffix. */
static const char *sql_name(enum store_kind kind, int i)
{
	const char *name = layout_column_name(kind, i);

	if (!strcmp(name, "start"))
		return "start_ns";
	if (!strcmp(name, "duration"))
		return "duration_ns";
	if (!strcmp(name, "queued"))
		return "queued_ns";
	if (!strcmp(name, "device"))
		return "device_ordinal";
	return name;
}

static bool is_text_id(const char *name)
{
	return !strcmp(name, "name") || !strcmp(name, "unit") || !strcmp(name, "text") ||
	       !strcmp(name, "detail");
}

static bool has_extra(enum store_kind kind, enum extra extra)
{
	switch (extra) {
	case EXTRA_NAME:
		return layout_find(kind, COL_name) >= 0;
	case EXTRA_END:
		return layout_find(kind, COL_duration) >= 0;
	case EXTRA_GRID:
	case EXTRA_BLOCK:
		return layout_find(kind, COL_key) >= 0;
	case EXTRA_UNIT:
		return layout_find(kind, COL_unit) >= 0;
	case EXTRA_TEXT:
		return layout_find(kind, COL_text) >= 0;
	case EXTRA_DETAIL:
		return layout_find(kind, COL_detail) >= 0;
	case EXTRA_COPY:
		return kind == STORE_memcpy;
	default:
		return true;
	}
}

static int sql_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
		       sqlite3_vtab **ret, char **ret_error)
{
	struct sql_table *table = aux;
	struct buf sql = { 0 };
	int code;

	(void)argc;
	(void)argv;
	(void)ret_error;
	buf_text(&sql, "CREATE TABLE x(");
	for (int i = 0; i < layout_of(table->kind)->count; i++) {
		const char *name = sql_name(table->kind, i);

		buf_printf(&sql, "%s\"%s%s\"", i ? ", " : "", name, is_text_id(name) ? "_id" : "");
	}
	for (int e = 0; e < EXTRA_COUNT; e++) {
		if (has_extra(table->kind, (enum extra)e))
			buf_printf(&sql, ", \"%s\"", extra_names[e]);
	}
	buf_char(&sql, ')');
	code = sqlite3_declare_vtab(db, sql.at);
	buf_done(&sql);
	*ret = &table->base;
	return code;
}

static int sql_disconnect(sqlite3_vtab *base)
{
	(void)base; /* tables live as long as the query */
	return SQLITE_OK;
}

enum { PLAN_SCAN = 0, PLAN_CORRELATION = 1, PLAN_FROM = 2, PLAN_TO = 4 };

static int sql_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct sql_table *table = (const struct sql_table *)(const void *)base;
	int correlation = layout_find(table->kind, COL_correlation);
	int plan = PLAN_SCAN;
	int arg = 0;

	for (int pass = 0; pass < 3; pass++) {
		for (int i = 0; i < info->nConstraint; i++) {
			const struct sqlite3_index_constraint *c = &info->aConstraint[i];
			bool take = false;

			if (!c->usable)
				continue;
			if (pass == 0 && correlation >= 0 && c->iColumn == correlation &&
			    c->op == SQLITE_INDEX_CONSTRAINT_EQ && !(plan & PLAN_CORRELATION)) {
				plan |= PLAN_CORRELATION;
				take = true;
			} else if (pass == 1 && c->iColumn == 0 && layout_of(table->kind)->sorted &&
				   !(plan & (PLAN_CORRELATION | PLAN_FROM)) &&
				   (c->op == SQLITE_INDEX_CONSTRAINT_GE ||
				    c->op == SQLITE_INDEX_CONSTRAINT_GT)) {
				plan |= PLAN_FROM;
				take = true;
			} else if (pass == 2 && c->iColumn == 0 && layout_of(table->kind)->sorted &&
				   !(plan & (PLAN_CORRELATION | PLAN_TO)) &&
				   (c->op == SQLITE_INDEX_CONSTRAINT_LE ||
				    c->op == SQLITE_INDEX_CONSTRAINT_LT)) {
				plan |= PLAN_TO;
				take = true;
			}
			if (take)
				info->aConstraintUsage[i].argvIndex = ++arg;
		}
	}
	info->idxNum = plan;
	info->estimatedCost = plan & PLAN_CORRELATION ? 10 : plan ? 1e5 : 1e7;
	info->estimatedRows = plan & PLAN_CORRELATION ? 2 : plan ? 10000 : 1000000;
	return SQLITE_OK;
}

static int sql_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	struct sql_cursor *cursor = mem_zero(sizeof(*cursor));

	(void)base;
	*ret = &cursor->base;
	return SQLITE_OK;
}

static int sql_close(sqlite3_vtab_cursor *base)
{
	free(base);
	return SQLITE_OK;
}

static struct sql_table *table_of(sqlite3_vtab_cursor *base)
{
	return (struct sql_table *)(void *)base->pVtab;
}

/* One chunk, decoded whole; NULL if it is damaged. A cursor of its own whose
 * window is this chunk alone keeps the columns alive. */
static struct sql_chunk *load_chunk(struct sql_table *table, size_t head)
{
	struct store_query query = { .kinds = STORE_BIT(table->kind), .columns = ~(uint64_t)0 };
	struct sql_chunk *oldest = &table->cache[0];
	struct sql_chunk *chunk;

	for (uint32_t i = 0; i < CACHE_CHUNKS; i++) {
		chunk = &table->cache[i];
		if (chunk->head == head + 1) {
			chunk->used = ++table->clock;
			return chunk;
		}
		if (chunk->used < oldest->used)
			oldest = chunk;
	}
	store_query_close(oldest->cursor);
	intern_free(oldest->details);
	memset(oldest, 0, sizeof(*oldest));
	(void)store_query_open(table->store, &query, &oldest->cursor, NULL);
	oldest->used = ++table->clock;
	if (store_query_one(oldest->cursor, head, &oldest->batch, NULL) <= 0)
		return NULL;
	oldest->details = table->store->session->details;
	table->store->session->details = intern_new();
	oldest->head = head + 1;
	return oldest;
}

static int by_correlation(const void *a, const void *b)
{
	const struct posting *x = a;
	const struct posting *y = b;

	if (x->correlation != y->correlation)
		return x->correlation < y->correlation ? -1 : 1;
	if (x->head != y->head)
		return x->head < y->head ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static void build_index(struct sql_table *table)
{
	struct store_query query = { .kinds = STORE_BIT(table->kind),
				     .columns = COL_BIT(COL_correlation) };
	OWN(store_query_closep) struct store_cursor *cursor = NULL;

	if (table->indexed)
		return;
	table->indexed = true;
	(void)store_query_open(table->store, &query, &cursor, NULL);
	for (size_t head = 0; head < table->store->chunks.count; head++) {
		struct store_batch batch;

		if (table->store->chunks.at[head].kind != table->kind ||
		    store_query_one(cursor, head, &batch, NULL) <= 0)
			continue;
		for (size_t i = 0; i < batch.count; i++)
			*VEC_ADD(&table->index) =
				(struct posting){ (uint64_t)batch.col[COL_correlation][i],
						  (uint32_t)head, (uint32_t)i };
	}
	if (table->index.count)
		qsort(table->index.at, table->index.count, sizeof(*table->index.at),
		      by_correlation);
}

/* To the first posting from cursor->posting on whose chunk can be read, or the
 * end. */
static void show_posting(struct sql_table *table, struct sql_cursor *cursor)
{
	for (; cursor->posting < table->index.count; cursor->posting++) {
		const struct posting *posting = &table->index.at[cursor->posting];

		if (posting->correlation != cursor->correlation)
			break;
		cursor->head = posting->head;
		cursor->row = posting->row;
		cursor->chunk = load_chunk(table, posting->head);
		cursor->end = false;
		if (cursor->chunk)
			return;
	}
	cursor->end = true;
}

/* To the first row of the next chunk that may hold one, from cursor->head on. */
static void show_chunk(struct sql_table *table, struct sql_cursor *cursor)
{
	const struct store *store = table->store;

	cursor->row = 0;
	for (; cursor->head < store->chunks.count; cursor->head++) {
		const struct chunk_head *head = &store->chunks.at[cursor->head];

		if (head->kind != table->kind || head->first_ns > cursor->to_ns ||
		    head->last_ns < cursor->from_ns)
			continue;
		cursor->chunk = load_chunk(table, cursor->head);
		if (cursor->chunk)
			return;
	}
	cursor->end = true;
}

static int sql_filter(sqlite3_vtab_cursor *base, int plan, const char *text, int argc,
		      sqlite3_value **argv)
{
	struct sql_cursor *cursor = (struct sql_cursor *)(void *)base;
	struct sql_table *table = table_of(base);
	int arg = 0;

	(void)text;
	(void)argc;
	cursor->end = false;
	cursor->by_index = plan & PLAN_CORRELATION;
	cursor->from_ns = INT64_MIN;
	cursor->to_ns = INT64_MAX;
	if (cursor->by_index) {
		size_t low = 0, high;

		build_index(table);
		high = table->index.count;
		cursor->correlation = (uint64_t)sqlite3_value_int64(argv[0]);
		while (low < high) {
			size_t mid = low + (high - low) / 2;

			if (table->index.at[mid].correlation < cursor->correlation)
				low = mid + 1;
			else
				high = mid;
		}
		cursor->posting = low;
		show_posting(table, cursor);
		return SQLITE_OK;
	}
	/* SQLite checks the bound itself again: whole chunks are good enough. */
	if (plan & PLAN_FROM)
		cursor->from_ns = sqlite3_value_int64(argv[arg++]);
	if (plan & PLAN_TO)
		cursor->to_ns = sqlite3_value_int64(argv[arg]);
	cursor->head = 0;
	show_chunk(table, cursor);
	return SQLITE_OK;
}

static int sql_next(sqlite3_vtab_cursor *base)
{
	struct sql_cursor *cursor = (struct sql_cursor *)(void *)base;
	struct sql_table *table = table_of(base);

	if (cursor->by_index) {
		cursor->posting++;
		show_posting(table, cursor);
	} else if (++cursor->row >= table->store->chunks.at[cursor->head].count) {
		cursor->head++;
		show_chunk(table, cursor);
	}
	return SQLITE_OK;
}

static int sql_eof(sqlite3_vtab_cursor *base)
{
	return ((struct sql_cursor *)(void *)base)->end;
}

static void result_i64(sqlite3_context *ctx, int64_t value, int64_t unknown)
{
	if (value == unknown)
		sqlite3_result_null(ctx);
	else
		sqlite3_result_int64(ctx, value);
}

static void result_text(sqlite3_context *ctx, const struct intern *texts, int64_t id)
{
	size_t len;
	const char *text;

	if (!id) {
		sqlite3_result_null(ctx);
		return;
	}
	text = intern_get(texts, (uint32_t)id, &len);
	sqlite3_result_text(ctx, text, (int)len, SQLITE_TRANSIENT);
}

static void result_dim(sqlite3_context *ctx, const int32_t dim[3])
{
	char text[48];

	(void)snprintf(text, sizeof(text), "%dx%dx%d", dim[0], dim[1], dim[2]);
	sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
}

/* A column of the chunk; samples have theirs in structs. */
static void result_own(sqlite3_context *ctx, const struct store_batch *batch, int i, size_t row)
{
	enum store_column column;

	if (batch->kind == STORE_sample) {
		const struct sample *sample = &batch->samples[row];
		double value;

		if (i == 0)
			sqlite3_result_int64(ctx, sample->time_ns);
		else if (i <= 2)
			sqlite3_result_int64(ctx, (int64_t)sample->have[i - 1]);
		else if (sample_get(sample, (enum metric)(i - 3), &value))
			sqlite3_result_double(ctx, value);
		else
			sqlite3_result_null(ctx);
		return;
	}
	column = layout_of(batch->kind)->column[i];
	if (column == COL_value)
		sqlite3_result_double(ctx, batch->value[row]); /* NAN becomes NULL */
	else
		result_i64(ctx, batch->col[column][row], EVENT_UNKNOWN);
}

static void result_lane(sqlite3_context *ctx, const struct session *session, uint32_t lane_id,
			enum extra extra)
{
	const struct lane *lane = &session->lanes.at[lane_id];

	switch (extra) {
	case EXTRA_SOURCE:
		sqlite3_result_int64(ctx, lane->source);
		break;
	case EXTRA_DEVICE:
		if (lane->device == SESSION_NONE)
			sqlite3_result_null(ctx);
		else
			result_i64(ctx, session->devices.at[lane->device].ordinal, -1);
		break;
	case EXTRA_CONTEXT:
		result_i64(ctx, lane->context, -1);
		break;
	case EXTRA_STREAM:
		result_i64(ctx, lane->stream, -1);
		break;
	case EXTRA_PID:
		if (lane->process == SESSION_NONE)
			sqlite3_result_null(ctx);
		else
			sqlite3_result_int64(ctx, session->processes.at[lane->process].pid);
		break;
	case EXTRA_TID:
		result_i64(ctx, lane->tid, -1);
		break;
	default:
		sqlite3_result_int64(ctx, lane_id);
		break;
	}
}

static void result_extra(sqlite3_context *ctx, struct store *store, const struct store_batch *batch,
			 enum extra extra, size_t row)
{
	static const char *const copies[] = { NULL, "HtoD", "DtoH", "DtoD", "HtoH", "PtoP" };
	const struct session *session = store->session;
	const int64_t *key = batch->col[COL_key];
	int64_t copy;

	switch (extra) {
	case EXTRA_NAME:
		result_text(ctx, session->strings, batch->col[COL_name][row]);
		break;
	case EXTRA_UNIT:
		result_text(ctx, session->strings, batch->col[COL_unit][row]);
		break;
	case EXTRA_TEXT:
		result_text(ctx, session->strings, batch->col[COL_text][row]);
		break;
	case EXTRA_DETAIL:
		sqlite3_result_null(ctx);
		break;
	case EXTRA_END:
		sqlite3_result_int64(ctx, (int64_t)((uint64_t)batch->col[COL_start][row] +
						    (uint64_t)batch->col[COL_duration][row]));
		break;
	case EXTRA_GRID:
	case EXTRA_BLOCK:
		if (!session->keys.count ||
		    (batch->kind != STORE_kernel && batch->kind != STORE_counter))
			sqlite3_result_null(ctx);
		else if (extra == EXTRA_GRID)
			result_dim(ctx, session->keys.at[key[row]].grid);
		else
			result_dim(ctx, session->keys.at[key[row]].block);
		break;
	case EXTRA_COPY:
		copy = batch->col[COL_copy][row];
		if (copy > 0 && copy < 6)
			sqlite3_result_text(ctx, copies[copy], -1, SQLITE_STATIC);
		break;
	default:
		result_lane(ctx, session, batch->lane, extra);
		break;
	}
}

static int sql_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int i)
{
	struct sql_cursor *cursor = (struct sql_cursor *)(void *)base;
	struct sql_table *table = table_of(base);
	int own = layout_of(table->kind)->count;
	struct sql_chunk *chunk = load_chunk(table, cursor->head);

	if (!chunk)
		return SQLITE_CORRUPT_VTAB;
	if (i < own) {
		result_own(ctx, &chunk->batch, i, cursor->row);
		return SQLITE_OK;
	}
	i -= own;
	for (int e = 0; e < EXTRA_COUNT; e++) {
		if (!has_extra(table->kind, (enum extra)e) || i--)
			continue;
		if (e == EXTRA_DETAIL)
			result_text(ctx, chunk->details, chunk->batch.col[COL_detail][cursor->row]);
		else
			result_extra(ctx, table->store, &chunk->batch, (enum extra)e, cursor->row);
		break;
	}
	return SQLITE_OK;
}

static int sql_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	const struct sql_cursor *cursor = (const struct sql_cursor *)(const void *)base;

	*ret = (sqlite3_int64)((uint64_t)cursor->head << 16 | cursor->row);
	return SQLITE_OK;
}

static const sqlite3_module sql_module = {
	.xConnect = sql_connect,
	.xBestIndex = sql_best_index,
	.xDisconnect = sql_disconnect,
	.xOpen = sql_open,
	.xClose = sql_close,
	.xFilter = sql_filter,
	.xNext = sql_next,
	.xEof = sql_eof,
	.xColumn = sql_column,
	.xRowid = sql_rowid,
};

void sql_tables_add(struct store *store, struct sql_table *tables)
{
	for (int kind = 0; kind < STORE_KIND_COUNT; kind++) {
		const char *name = layout_kind_name((enum store_kind)kind);
		struct buf touch = { 0 };

		tables[kind].store = store;
		tables[kind].kind = (enum store_kind)kind;
		(void)sqlite3_create_module(store->db, name, &sql_module, &tables[kind]);
		/* Connects the table now, while declaring one is still allowed. */
		buf_printf(&touch, "SELECT 1 FROM \"%s\" LIMIT 0", name);
		(void)store_exec(store, touch.at, NULL);
		buf_done(&touch);
	}
}

struct sql_table *sql_tables_new(void)
{
	return mem_zero(STORE_KIND_COUNT * sizeof(struct sql_table));
}

void sql_tables_free(struct sql_table *tables)
{
	for (int kind = 0; kind < STORE_KIND_COUNT; kind++) {
		for (uint32_t i = 0; i < CACHE_CHUNKS; i++) {
			store_query_close(tables[kind].cache[i].cursor);
			intern_free(tables[kind].cache[i].details);
		}
		VEC_DONE(&tables[kind].index);
	}
	free(tables);
}
