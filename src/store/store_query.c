#include <stdlib.h>

#include "base/mem.h"
#include "store/internal.h"

struct store_cursor {
	struct store *store;
	struct store_query query;
	size_t next;
	struct buf blob, details;
	int64_t *column[STORE_COLUMN_COUNT];
	double *value;
	struct sample *samples;
	uint32_t *detail_ids;
};

int store_query_open(struct store *store, const struct store_query *query,
		     struct store_cursor **ret_cursor, struct err *err)
{
	struct store_cursor *cursor = mem_zero(sizeof(*cursor));

	(void)err;
	cursor->store = store;
	cursor->query = *query;
	*ret_cursor = cursor;
	return 0;
}

void store_query_close(struct store_cursor *cursor)
{
	if (!cursor)
		return;
	for (int i = 0; i < STORE_COLUMN_COUNT; i++)
		free(cursor->column[i]);
	free(cursor->value);
	free(cursor->samples);
	free(cursor->detail_ids);
	buf_done(&cursor->blob);
	buf_done(&cursor->details);
	free(cursor);
}

static bool wanted(const struct store_query *query, const struct chunk_head *head)
{
	if (!(query->kinds & STORE_BIT(head->kind)) ||
	    (query->one_lane && head->lane != query->lane))
		return false;
	return !query->one_window ||
	       (head->first_ns < query->to_ns && head->last_ns >= query->from_ns);
}

static int64_t *room_for(struct store_cursor *cursor, enum store_column column)
{
	if (!cursor->column[column])
		cursor->column[column] = mem_alloc(CHUNK_ROWS_MAX * sizeof(int64_t));
	return cursor->column[column];
}

static struct str blob_of(const struct store_cursor *cursor)
{
	return (struct str){ cursor->blob.at, cursor->blob.len };
}

/* Numbers into the chunk's dictionary become ids of session->details, which
 * holds this chunk's texts alone. */
static int resolve_details(struct store_cursor *cursor, int64_t *column, size_t count)
{
	struct session *session = cursor->store->session;
	const char *at, *end;
	uint32_t known = 1;
	int ret;

	buf_clear(&cursor->details);
	ret = chunk_get_bytes(cursor->store->codec, blob_of(cursor), "details", &cursor->details);
	if (ret < 0)
		return ret;
	intern_free(session->details);
	session->details = intern_new();
	session->details_generation++;
	if (!cursor->detail_ids)
		cursor->detail_ids = mem_alloc((CHUNK_ROWS_MAX + 1) * sizeof(uint32_t));
	cursor->detail_ids[0] = 0;
	at = cursor->details.at;
	end = at ? at + cursor->details.len : NULL;
	while (at < end && known <= CHUNK_ROWS_MAX) {
		size_t len = strnlen(at, (size_t)(end - at));

		cursor->detail_ids[known++] = intern_add(session->details, at, len);
		at += len + 1;
	}
	for (size_t i = 0; i < count; i++) {
		if (column[i] < 0 || column[i] >= known)
			return -1;
		column[i] = cursor->detail_ids[column[i]];
	}
	return 0;
}

/* Ids that index the session's tables may come from a hostile file. */
static void bound_ids(int64_t *column, size_t count, size_t limit)
{
	for (size_t i = 0; i < count; i++)
		column[i] = column[i] >= 0 && (uint64_t)column[i] < limit ? column[i] : 0;
}

static int get_column(struct store_cursor *cursor, const struct chunk_head *head,
		      enum store_column column)
{
	const struct session *session = cursor->store->session;
	int64_t *values = room_for(cursor, column);
	int ret = chunk_get(cursor->store->codec, blob_of(cursor),
			    layout_column_name(head->kind, layout_find(head->kind, column)),
			    head->count, values);

	if (ret < 0)
		return ret;
	if (column == COL_key && !session->keys.count)
		memset(values, 0, head->count * sizeof(*values));
	else if (column == COL_key)
		bound_ids(values, head->count, session->keys.count);
	if (column == COL_detail)
		return resolve_details(cursor, values, head->count);
	return 0;
}

/* The name of a kernel is its key's, unless it has one of its own. */
static int kernel_names(struct store_cursor *cursor, const struct chunk_head *head)
{
	const struct session *session = cursor->store->session;
	int64_t *names = cursor->column[COL_name];
	const int64_t *keys;
	int ret = get_column(cursor, head, COL_key);

	if (ret < 0)
		return ret;
	keys = cursor->column[COL_key];
	for (size_t i = 0; i < head->count && session->keys.count; i++) {
		if (!names[i])
			names[i] = session->keys.at[keys[i]].name;
	}
	return 0;
}

static int get_samples(struct store_cursor *cursor, const struct chunk_head *head)
{
	const struct layout *layout = layout_of(STORE_sample);
	int64_t *values = room_for(cursor, COL_value);

	free(cursor->samples);
	cursor->samples = mem_zero(head->count * sizeof(*cursor->samples));
	for (int c = 0; c < layout->count; c++) {
		int ret = chunk_get(cursor->store->codec, blob_of(cursor),
				    layout_column_name(STORE_sample, c), head->count, values);

		if (ret < 0)
			return ret;
		for (size_t i = 0; i < head->count; i++) {
			struct sample *sample = &cursor->samples[i];

			sample->lane = head->lane;
			if (c == 0)
				sample->time_ns = values[i];
			else if (c <= 2)
				sample->have[c - 1] = (uint64_t)values[i];
			else
				memcpy(&sample->value[c - 3], &values[i], sizeof(double));
		}
	}
	return 0;
}

static int get_value(struct store_cursor *cursor, const struct chunk_head *head)
{
	int ret = get_column(cursor, head, COL_value);

	if (ret < 0)
		return ret;
	if (!cursor->value)
		cursor->value = mem_alloc(CHUNK_ROWS_MAX * sizeof(double));
	memcpy(cursor->value, cursor->column[COL_value], head->count * sizeof(double));
	return 0;
}

/* Decode what was asked for: 0, or negative if the chunk is damaged. */
static int decode(struct store_cursor *cursor, const struct chunk_head *head,
		  struct store_batch *batch)
{
	uint64_t columns = cursor->query.columns;
	int ret = 0;

	if (head->kind == STORE_kernel && cursor->query.keys_only)
		columns &= ~COL_BIT(COL_name);
	*batch = (struct store_batch){ .kind = head->kind,
				       .lane = head->lane,
				       .count = head->count };
	if (head->kind == STORE_sample) {
		ret = get_samples(cursor, head);
		batch->samples = cursor->samples;
		return ret;
	}
	for (int c = 0; ret >= 0 && c < STORE_COLUMN_COUNT; c++) {
		enum store_column column = (enum store_column)c;

		if (!(columns & COL_BIT(c)) || layout_find(head->kind, column) < 0)
			continue;
		if (column == COL_value) {
			ret = get_value(cursor, head);
			batch->value = cursor->value;
			continue;
		}
		ret = get_column(cursor, head, column);
		if (ret >= 0 && column == COL_name && head->kind == STORE_kernel)
			ret = kernel_names(cursor, head);
		batch->col[c] = cursor->column[c];
	}
	return ret;
}

int store_query_one(struct store_cursor *cursor, size_t head, struct store_batch *ret_batch,
		    struct err *err)
{
	struct store *store = cursor->store;
	struct chunk_head *chunk = &store->chunks.at[head];
	int ret;

	if (chunk->damaged)
		return 0;
	buf_clear(&cursor->blob);
	ret = chunk_fetch(store, chunk, &cursor->blob, err);
	if (ret < 0)
		return ret;
	if (ret > 0 && decode(cursor, chunk, ret_batch) >= 0)
		return 1;
	chunk->damaged = true;
	store->damage++;
	return 0;
}

int store_next(struct store_cursor *cursor, struct store_batch *ret_batch, struct err *err)
{
	const struct store *store = cursor->store;
	int ret = 0;

	while (!ret && cursor->next < store->chunks.count) {
		size_t head = cursor->next++;

		if (wanted(&cursor->query, &store->chunks.at[head]))
			ret = store_query_one(cursor, head, ret_batch, err);
	}
	return ret;
}
