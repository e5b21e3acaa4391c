#include "analyze/untimed.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/str.h"
#include "model/event.h"

static uint64_t key_of(uint32_t where, uint64_t what)
{
	uint64_t key[2] = { where, what };

	return hash_bytes(key, sizeof(key), 0);
}

/* "op=kernel;correlation=7;...": see event.h. */
static uint64_t correlation_of(const char *detail)
{
	struct str rest = str_of(detail ? detail : "");
	uint64_t correlation = 0;

	while (rest.len) {
		struct str value = str_cut(&rest, ';'), word = str_cut(&value, '=');

		if (str_is(word, "correlation") && str_to_u64(value, &correlation))
			return correlation;
	}
	return 0;
}

static void take_marks(const struct timeline *timeline, const struct store_batch *batch,
		       struct untimed_ops *ops)
{
	const struct session *session = timeline->session;
	const int64_t *kind = batch->col[COL_subkind], *detail = batch->col[COL_detail];

	for (size_t i = 0; kind && i < batch->count; i++) {
		struct untimed_op op = { .source = session->lanes.at[batch->lane].source,
					 .lane = batch->lane,
					 .name = (uint32_t)batch->col[COL_name][i],
					 .call_lane = SESSION_NONE };

		if (kind[i] != MARK_UNTIMED)
			continue;
		if (detail)
			op.correlation = correlation_of(
				intern_get(session->details, (uint32_t)detail[i], NULL));
		*VEC_ADD(&ops->at) = op;
	}
}

/* `asked`: source and correlation -> place in ops. */
static void take_calls(const struct timeline *timeline, const struct store_batch *batch,
		       const struct map *asked, struct untimed_ops *ops)
{
	uint32_t source = timeline->session->lanes.at[batch->lane].source;
	const int64_t *id = batch->col[COL_correlation];

	for (size_t i = 0; id && i < batch->count; i++) {
		const uint64_t *at = map_find(asked, key_of(source, (uint64_t)id[i]));
		int64_t ignored;

		if (!at || !id[i])
			continue;
		ops->at.at[*at].call_lane = batch->lane;
		timeline_time(timeline, source, batch->col[COL_start][i], 0,
			      &ops->at.at[*at].call_ns, &ignored);
	}
}

static int by_launch(const void *a, const void *b)
{
	const struct untimed_op *x = a, *y = b;

	if ((x->call_lane == SESSION_NONE) != (y->call_lane == SESSION_NONE))
		return x->call_lane == SESSION_NONE ? 1 : -1;
	if (x->call_lane != SESSION_NONE && x->call_ns != y->call_ns)
		return x->call_ns < y->call_ns ? -1 : 1;
	return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static int load_marks(const struct timeline *timeline, struct store *store, struct untimed_ops *ops,
		      struct err *err)
{
	const struct store_query query = {
		.kinds = STORE_BIT(STORE_mark),
		.columns = COL_BIT(COL_name) | COL_BIT(COL_subkind) | COL_BIT(COL_detail),
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int got = store_query_open(store, &query, &cursor, err);

	while (got >= 0 && (got = store_next(cursor, &batch, err)) > 0) {
		if (batch.col[COL_name])
			take_marks(timeline, &batch, ops);
	}
	return got;
}

static int load_calls(const struct timeline *timeline, struct store *store, struct untimed_ops *ops,
		      struct err *err)
{
	const struct store_query query = {
		.kinds = STORE_BIT(STORE_runtime) | STORE_BIT(STORE_driver),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_correlation),
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct map asked = { 0 };
	struct store_batch batch;
	int got = store_query_open(store, &query, &cursor, err);

	for (size_t i = 0; i < ops->at.count; i++)
		map_put(&asked, key_of(ops->at.at[i].source, ops->at.at[i].correlation), i);
	while (got >= 0 && (got = store_next(cursor, &batch, err)) > 0)
		take_calls(timeline, &batch, &asked, ops);
	map_done(&asked);
	return got;
}

int untimed_load(const struct timeline *timeline, struct store *store, struct untimed_ops *ret_ops,
		 struct err *err)
{
	int ret = load_marks(timeline, store, ret_ops, err);

	if (ret < 0 || !ret_ops->at.count)
		return ret < 0 ? ret : 0;
	ret = load_calls(timeline, store, ret_ops, err);
	qsort(ret_ops->at.at, ret_ops->at.count, sizeof(*ret_ops->at.at), by_launch);
	for (size_t i = 0; i < ret_ops->at.count; i++) {
		const struct untimed_op *op = &ret_ops->at.at[i];

		if (op->call_lane != SESSION_NONE)
			map_put(&ret_ops->by_call, key_of(op->call_lane, (uint64_t)op->call_ns), i);
	}
	return ret < 0 ? ret : 0;
}

void untimed_done(struct untimed_ops *ops)
{
	map_done(&ops->by_call);
	VEC_DONE(&ops->at);
}

const struct untimed_op *untimed_find(const struct untimed_ops *ops, uint32_t lane,
				      int64_t start_ns)
{
	const uint64_t *at =
		ops->at.count ? map_find(&ops->by_call, key_of(lane, (uint64_t)start_ns)) : NULL;

	return at ? &ops->at.at[*at] : NULL;
}
