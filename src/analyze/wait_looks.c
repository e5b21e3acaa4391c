/* wait_looks.c - what was seen while a call waited for a device. */
#include "analyze/waits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/event.h"

/* A single sample can be of the time before. */
static const int64_t SAMPLES_LEAST = 2;
/* Samples of instructions come by the second: those of the first half of the wait can be of
 * what ran before. So many speak; a kernel is named that has nearly all of them. */
static const int64_t STALLS_LEAST = 100;
static const double STALLS_SHARE = 0.9;

const char *wait_keep(struct facts *facts, struct str text)
{
	char *copy = arena_alloc(&facts->arena, text.len + 1);

	memcpy(copy, text.at, text.len);
	copy[text.len] = 0;
	return copy;
}

/* "Stream Sync", "Context Sync": for which waits does one that returned say something? */
static bool speaks_for(const struct waits *waits, const struct wait_fact *fact,
		       const struct lane *lane, const char *name)
{
	const struct session *session = waits->facts->session;

	if (lane->source != fact->source)
		return false;
	if (!strcmp(name, "Stream Sync"))
		return fact->stream >= 0 && wait_is_for(fact, lane);
	if (strcmp(name, "Context Sync") != 0)
		return false;
	if (lane->kind == LANE_STREAM)
		return fact->context < 0 || lane->context == fact->context;
	/* It does not say of which context. */
	for (size_t i = 0; i < session->lanes.count; i++) {
		const struct lane *other = &session->lanes.at[i];

		if (other->kind == LANE_STREAM && other->source == fact->source &&
		    other->context != fact->context)
			return false;
	}
	return true;
}

static void take_returns(struct waits *waits, const struct store_batch *batch)
{
	const struct session *session = waits->facts->session;
	const struct lane *lane = &session->lanes.at[batch->lane];
	const int64_t *detail = batch->col[COL_detail];

	for (size_t i = 0; i < batch->count; i++) {
		const char *name = session_text(session, (uint32_t)batch->col[COL_name][i]);
		const char *text =
			detail ? intern_get(session->details, (uint32_t)detail[i], NULL) : NULL;
		int64_t start, end;

		if (text && !strncmp(text, "result=", 7))
			continue;
		timeline_time(waits->timeline, lane->source, batch->col[COL_start][i],
			      batch->col[COL_duration][i], &start, &end);
		for (size_t k = 0; k < waits->facts->waits.count; k++) {
			struct wait_fact *fact = &waits->facts->waits.at[k];

			if (end <= capped_add(fact->since_ns, fact->waited_ns) &&
			    (fact->returned_ns == FACT_UNKNOWN || start > fact->returned_ns) &&
			    speaks_for(waits, fact, lane, name))
				fact->returned_ns = start;
		}
	}
}

int wait_look_at_returns(struct waits *waits, struct err *err)
{
	const struct store_query query = {
		.kinds = STORE_BIT(STORE_sync),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_duration) | COL_BIT(COL_name) |
			   COL_BIT(COL_detail),
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int got = store_query_open(waits->store, &query, &cursor, err);

	while (got >= 0 && (got = store_next(cursor, &batch, err)) > 0) {
		if (batch.col[COL_name])
			take_returns(waits, &batch);
	}
	return got;
}

/* The last look at the thread while it waited. */
int wait_look_at_thread(struct waits *waits, size_t index, enum store_kind kind, struct err *err)
{
	struct wait_fact *fact = &waits->facts->waits.at[index];
	int64_t since_ns = waits->raw_ns.at[index];
	const struct store_query query = {
		.kinds = STORE_BIT(kind),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_detail),
		.one_lane = true,
		.lane = fact->lane,
		.one_window = true,
		.from_ns = since_ns,
		.to_ns = capped_add(capped_add(since_ns, fact->waited_ns), 1),
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	int64_t latest_ns = since_ns;
	struct store_batch batch;
	int got = fact->stack ? 0 : store_query_open(waits->store, &query, &cursor, err);

	while (cursor && got >= 0 && (got = store_next(cursor, &batch, err)) > 0) {
		if (batch.lane != fact->lane || !batch.col[COL_detail])
			continue;
		for (size_t i = 0; i < batch.count; i++) {
			int64_t ns = batch.col[COL_start][i];
			const char *text = intern_get(waits->facts->session->details,
						      (uint32_t)batch.col[COL_detail][i], NULL);
			struct str stack = str_of(text ? text : ""), word = str_cut(&stack, '=');

			if (ns < latest_ns || ns > query.to_ns || !str_is(word, "stack"))
				continue;
			latest_ns = ns;
			fact->stack = wait_keep(waits->facts, stack);
			fact->stack_is_python = kind == STORE_python_stack;
		}
	}
	return got;
}

struct mean {
	double sum;
	int64_t count;
};

/* How busy the devices were meanwhile. */
int wait_look_at_samples(struct waits *waits, struct err *err)
{
	const struct session *session = waits->facts->session;
	const struct store_query query = { .kinds = STORE_BIT(STORE_sample),
					   .columns = ~UINT64_C(0) };
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct mean *means = mem_zero((waits->facts->waits.count + 1) * sizeof(*means));
	struct store_batch batch;
	int got = store_query_open(waits->store, &query, &cursor, err);

	while (got >= 0 && (got = store_next(cursor, &batch, err)) > 0) {
		const struct lane *lane = &session->lanes.at[batch.lane];

		if (lane->kind != LANE_BOARD || !batch.samples)
			continue;
		for (size_t i = 0; i < batch.count; i++) {
			int64_t at, ignored;
			double util;

			if (!sample_get(&batch.samples[i], METRIC_util_pct, &util))
				continue;
			timeline_time(waits->timeline, lane->source, batch.samples[i].time_ns, 0,
				      &at, &ignored);
			for (size_t k = 0; k < waits->facts->waits.count; k++) {
				const struct wait_fact *fact = &waits->facts->waits.at[k];

				if (fact->device == lane->device && at > fact->since_ns &&
				    at - fact->since_ns <= fact->waited_ns) {
					means[k].sum += util;
					means[k].count++;
				}
			}
		}
	}
	for (size_t k = 0; k < waits->facts->waits.count; k++) {
		if (means[k].count >= SAMPLES_LEAST)
			waits->facts->waits.at[k].util_pct = means[k].sum / (double)means[k].count;
	}
	free(means);
	return got;
}

/* Of a wait: samples by function. */
struct sampled {
	struct map functions; /* -> samples */
	int64_t all;
};

static void take_stalls(const struct waits *waits, const struct store_batch *batch,
			struct sampled *sampled)
{
	const struct lane *lane = &waits->facts->session->lanes.at[batch->lane];

	for (size_t i = 0; i < batch->count; i++) {
		int64_t samples = batch->col[COL_samples][i], at, ignored;
		uint64_t function = (uint64_t)batch->col[COL_function][i];

		if (samples <= 0)
			continue;
		timeline_time(waits->timeline, lane->source, batch->col[COL_start][i], 0, &at,
			      &ignored);
		for (size_t k = 0; k < waits->facts->waits.count; k++) {
			const struct wait_fact *fact = &waits->facts->waits.at[k];
			const uint64_t *known;

			if (fact->source != lane->source || fact->device != lane->device ||
			    at < capped_add(fact->since_ns, fact->waited_ns / 2) ||
			    at > capped_add(fact->since_ns, fact->waited_ns))
				continue;
			known = map_find(&sampled[k].functions, function);
			map_put(&sampled[k].functions, function,
				(known ? *known : 0) + (uint64_t)samples);
			sampled[k].all = capped_add(sampled[k].all, samples);
		}
	}
}

static void name_sampled(const struct sampled *sampled, struct wait_fact *fact)
{
	const struct map *functions = &sampled->functions;

	if (sampled->all < STALLS_LEAST)
		return;
	for (size_t i = 0; i <= functions->mask; i++) {
		const struct map_slot *slot = &functions->slots[i];

		if (functions->used[i] &&
		    (double)slot->value >= STALLS_SHARE * (double)sampled->all) {
			fact->sampled = (uint32_t)slot->key;
			fact->sampled_count = (int64_t)slot->value;
			fact->samples = sampled->all;
		}
	}
}

int wait_look_at_stalls(struct waits *waits, struct err *err)
{
	const struct store_query query = {
		.kinds = STORE_BIT(STORE_stall),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_function) | COL_BIT(COL_samples),
	};
	size_t count = waits->facts->waits.count;
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct sampled *sampled = mem_zero((count + 1) * sizeof(*sampled));
	struct store_batch batch;
	int got = store_query_open(waits->store, &query, &cursor, err);

	while (got >= 0 && (got = store_next(cursor, &batch, err)) > 0) {
		if (batch.col[COL_function] && batch.col[COL_samples])
			take_stalls(waits, &batch, sampled);
	}
	for (size_t i = 0; i < count; i++) {
		name_sampled(&sampled[i], &waits->facts->waits.at[i]);
		map_done(&sampled[i].functions);
	}
	free(sampled);
	return got;
}
