/*
 * queued.c - how long kernels were in the driver's queue, where that was asked for
 * (sonde run -t queued): from when CUPTI says that the launch was queued to the start.
 */
#include "analyze/facts.h"
#include "analyze/order.h"
#include "base/str.h"
#include "store/store.h"

/* Else no kernel has such a time, and ten million need not be looked at. */
static bool was_asked(const struct session *session)
{
	for (size_t i = 0; i < session->envs.count; i++) {
		const struct env *env = &session->envs.at[i];
		struct str words = str_of(session_text(session, env->value));

		if (!str_is(str_of(session_text(session, env->key)), "trace"))
			continue;
		while (words.len)
			if (str_is(str_cut(&words, ','), "queued"))
				return true;
	}
	return false;
}

static void take(struct quantiles *queued, struct device_fact *fact,
		 const struct store_batch *batch)
{
	const int64_t *start = batch->col[COL_start], *at = batch->col[COL_queued];

	for (size_t i = 0; at && i < batch->count; i++)
		if (at[i] > 0 && at[i] <= start[i]) {
			quantiles_add(queued, start[i] - at[i]);
			fact->queued_count++;
		}
}

int analyze_queued(struct store *store, struct facts *facts, struct err *err)
{
	const struct store_query query = {
		.kinds = STORE_BIT(STORE_kernel),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_queued),
	};
	const struct session *session = store_session(store);
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct quantiles *devices;
	struct store_batch batch;
	int ret;

	if (!was_asked(session))
		return 0;
	devices = mem_zero((facts->devices.count + 1) * sizeof(*devices));
	ret = store_query_open(store, &query, &cursor, err);
	while (ret >= 0 && (ret = store_next(cursor, &batch, err)) > 0) {
		uint32_t device = session->lanes.at[batch.lane].device;

		if (device < facts->devices.count)
			take(&devices[device], &facts->devices.at[device], &batch);
	}
	for (size_t i = 0; i < facts->devices.count; i++) {
		struct device_fact *fact = &facts->devices.at[i];

		fact->queued_p50_ns = quantiles_get(&devices[i], 0.5);
		fact->queued_p95_ns = quantiles_get(&devices[i], 0.95);
		quantiles_done(&devices[i]);
	}
	free(devices);
	return ret < 0 ? ret : 0;
}
