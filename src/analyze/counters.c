#include <math.h>
#include <stdlib.h>

#include "analyze/bound.h"
#include "base/map.h"
#include "store/store.h"

/*
 * Hardware metrics of launches to facts of kernels. Rows of (key, name, unit,
 * value) are sorted by key, device and name; of several launches of a key each
 * metric counts with its median. Messages of another tool's rules stand in for
 * metrics that its page leaves out: "CPIStall barrier" is the share that such
 * a message gives.
 */
struct reading {
	uint32_t key, device, name, unit;
	double value;
};

struct readings {
	VEC(struct reading) at;
};

static uint32_t device_of(const struct session *session, uint32_t lane)
{
	uint32_t device = session->lanes.at[lane].device;

	return device == SESSION_NONE ? 0 : device;
}

static int read_counters(struct store *store, struct readings *readings, struct map *keys,
			 struct err *err)
{
	const struct store_query query = {
		.kinds = STORE_BIT(STORE_counter),
		.columns = COL_BIT(COL_launch) | COL_BIT(COL_key) | COL_BIT(COL_name) |
			   COL_BIT(COL_unit) | COL_BIT(COL_value),
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int ret = store_query_open(store, &query, &cursor, err);

	while (ret >= 0 && (ret = store_next(cursor, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.count; i++) {
			uint64_t launch =
				(uint64_t)batch.lane << 32 | (uint32_t)batch.col[COL_launch][i];

			map_put(keys, launch, (uint64_t)batch.col[COL_key][i]);
			if (!isfinite(batch.value[i]))
				continue;
			*VEC_ADD(&readings->at) = (struct reading){
				.key = (uint32_t)batch.col[COL_key][i],
				.device = device_of(store_session(store), batch.lane),
				.name = (uint32_t)batch.col[COL_name][i],
				.unit = (uint32_t)batch.col[COL_unit][i],
				.value = batch.value[i],
			};
		}
	}
	return ret;
}

static void take_message(struct session *session, struct readings *readings, uint32_t key,
			 uint32_t device, const char *message)
{
	char name[64];
	double share;
	const char *reason = stall_of_message(message, &share);

	if (!reason)
		return;
	(void)snprintf(name, sizeof(name), "CPIStall %s", reason);
	*VEC_ADD(&readings->at) = (struct reading){
		.key = key,
		.device = device,
		.name = intern_text(session->strings, name),
		.unit = intern_text(session->strings, "%"),
		.value = share * 100,
	};
}

/* A rule's mark carries the number of its launch as time, and the message as
 * detail. */
static int read_messages(struct store *store, struct readings *readings, const struct map *keys,
			 struct err *err)
{
	const struct store_query query = {
		.kinds = STORE_BIT(STORE_mark),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_detail) | COL_BIT(COL_subkind),
	};
	struct session *session = store_session(store);
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int ret = store_query_open(store, &query, &cursor, err);

	while (ret >= 0 && (ret = store_next(cursor, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.count; i++) {
			uint64_t launch =
				(uint64_t)batch.lane << 32 | (uint32_t)batch.col[COL_start][i];
			const uint64_t *key = map_find(keys, launch);

			if (batch.col[COL_subkind][i] != MARK_RULE || !key)
				continue;
			take_message(session, readings, (uint32_t)*key,
				     device_of(session, batch.lane),
				     intern_get(session->details,
						(uint32_t)batch.col[COL_detail][i], NULL));
		}
	}
	return ret;
}

static int by_kernel_and_name(const void *a, const void *b)
{
	const struct reading *x = a;
	const struct reading *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

/* The readings of one kernel as a table; returns the most launches that one
 * metric has. */
static int64_t fill_table(const struct session *session, const struct reading *at, size_t count,
			  struct metric_table *table)
{
	int64_t launches = 0;

	for (size_t i = 0; i < count;) {
		size_t n = 1;
		double median;

		while (i + n < count && at[i + n].name == at[i].name &&
		       at[i + n].unit == at[i].unit)
			n++;
		median = (at[i + (n - 1) / 2].value + at[i + n / 2].value) / 2;
		metric_table_add(table, session_text(session, at[i].name),
				 session_text(session, at[i].unit), median);
		launches = (int64_t)n > launches ? (int64_t)n : launches;
		i += n;
	}
	metric_table_sort(table);
	return launches;
}

/* Tools differ in what they call shared memory of a launch, so the kernel of
 * a timeline is found by name, grid and block. */
static bool same_launch(const struct kernel_key *a, const struct kernel_key *b)
{
	return a->name == b->name && !memcmp(a->grid, b->grid, sizeof(a->grid)) &&
	       !memcmp(a->block, b->block, sizeof(a->block));
}

static struct kernel_fact *fact_of(struct facts *facts, uint32_t key, uint32_t device)
{
	const struct session *session = facts->session;
	struct kernel_fact *fact;

	if (key >= session->keys.count)
		return NULL;
	for (size_t i = 0; i < facts->kernels.count; i++) {
		fact = &facts->kernels.at[i];
		if (fact->key == key ||
		    same_launch(&session->keys.at[fact->key], &session->keys.at[key]))
			return fact;
	}
	fact = VEC_ADD(&facts->kernels);
	fact->key = key;
	fact->device = device;
	fact->share = NAN;
	fact->coverage = NAN;
	fact->mean_cycles = fact->sm_mhz = NAN;
	fact->min_ns = fact->max_ns = fact->mean_ns = FACT_UNKNOWN;
	fact->launch_idle_ns = FACT_UNKNOWN;
	return fact;
}

static void judge(struct facts *facts, const struct reading *at, size_t count)
{
	struct kernel_fact *fact = fact_of(facts, at->key, at->device);
	struct metric_table table = { 0 };
	struct stall_list stalls = { 0 };

	if (!fact || fact->has_counters)
		return;
	fact->counter_launches = fill_table(facts->session, at, count, &table);
	kernel_counters_read(&table, &fact->counters);
	fact->has_counters = true;
	bound_decide(&table, &facts->arena, &fact->bound);
	fact->has_bound = true;
	stall_list_read(&table, &stalls);
	for (size_t i = 0; i < stalls.at.count; i++)
		*VEC_ADD(&fact->stalls) = stalls.at.at[i];
	stall_list_done(&stalls);
	metric_table_done(&table);
}

/* Kernels of the timeline first, by their time there; then by their time in
 * the counters. */
static int by_time(const void *a, const void *b)
{
	const struct kernel_fact *x = a;
	const struct kernel_fact *y = b;
	double dx = x->counters.duration_ns, dy = y->counters.duration_ns;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns > y->sum_ns ? -1 : 1;
	dx = isfinite(dx) ? dx : 0;
	dy = isfinite(dy) ? dy : 0;
	return dx != dy ? (dx > dy ? -1 : 1) : (x->key > y->key) - (x->key < y->key);
}

int analyze_counters(struct store *store, struct facts *facts, struct err *err)
{
	struct readings readings = { 0 };
	struct map keys = { 0 };
	int ret = read_counters(store, &readings, &keys, err);

	if (ret >= 0)
		ret = read_messages(store, &readings, &keys, err);
	if (readings.at.count)
		qsort(readings.at.at, readings.at.count, sizeof(*readings.at.at),
		      by_kernel_and_name);
	for (size_t i = 0; ret >= 0 && i < readings.at.count;) {
		size_t n = 1;

		while (i + n < readings.at.count &&
		       readings.at.at[i + n].key == readings.at.at[i].key &&
		       readings.at.at[i + n].device == readings.at.at[i].device)
			n++;
		judge(facts, &readings.at.at[i], n);
		i += n;
	}
	if (ret >= 0 && readings.at.count)
		qsort(facts->kernels.at, facts->kernels.count, sizeof(*facts->kernels.at), by_time);
	VEC_DONE(&readings.at);
	map_done(&keys);
	return ret < 0 ? ret : 0;
}
