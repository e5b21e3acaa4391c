/*
 * What recording itself cost the host, by CUPTI's overhead records: those that
 * are the profiler's doing. Loading and compiling are in such records, too, but
 * the program would do that without us.
 */
#include <stdlib.h>
#include <strings.h>

#include "analyze/facts.h"
#include "base/interval.h"
#include "base/map.h"
#include "model/event.h"
#include "store/store.h"

/* CUpti_ActivityOverheadKind, CUPTI reference, as sonde and Kineto spell them. */
static const char *const OWN[] = {
	"Buffer flush",   "Instrumentation",
	"Resource",       "Activity buffer request",
	"CUPTI overhead", "UVM activity initialisation",
};

static bool is_own(const char *name)
{
	for (size_t i = 0; i < sizeof(OWN) / sizeof(*OWN); i++)
		if (!strcasecmp(name, OWN[i]))
			return true;
	return false;
}

struct overheads {
	struct facts *facts;
	struct map index;          /* name -> place in facts.overheads */
	VEC(struct interval) lane; /* our own, of the lane at hand */
};

static void lane_done(struct overheads *overheads)
{
	size_t count = interval_union(overheads->lane.at, overheads->lane.count);

	overheads->facts->own_ns += interval_length(overheads->lane.at, count);
	overheads->lane.count = 0;
}

static void take(struct overheads *overheads, uint32_t name, int64_t start, int64_t ns)
{
	struct facts *facts = overheads->facts;
	uint64_t *found = map_find(&overheads->index, name);
	struct overhead_fact *at;
	int64_t end;

	if (ns < 0 || __builtin_add_overflow(start, ns, &end))
		return;
	if (!found) {
		map_put(&overheads->index, name, facts->overheads.count);
		at = VEC_ADD(&facts->overheads);
		at->name = name;
		at->own = is_own(session_text(facts->session, name));
	} else {
		at = &facts->overheads.at[*found];
	}
	at->count++;
	if (__builtin_add_overflow(at->sum_ns, ns, &at->sum_ns))
		at->sum_ns = INT64_MAX;
	if (at->own)
		*VEC_ADD(&overheads->lane) = (struct interval){ start, end };
}

static int by_sum(const void *a, const void *b)
{
	const struct overhead_fact *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns > y->sum_ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

int analyze_overhead(struct store *store, struct facts *facts, struct err *err)
{
	const struct store_query query = {
		.kinds = STORE_BIT(STORE_overhead),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_duration) | COL_BIT(COL_name),
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct overheads overheads = { .facts = facts };
	uint32_t lane = SESSION_NONE;
	struct store_batch batch;
	int ret = store_query_open(store, &query, &cursor, err);

	while (ret >= 0 && (ret = store_next(cursor, &batch, err)) > 0) {
		if (batch.lane != lane)
			lane_done(&overheads);
		lane = batch.lane;
		for (size_t i = 0; i < batch.count; i++)
			take(&overheads, (uint32_t)batch.col[COL_name][i], batch.col[COL_start][i],
			     batch.col[COL_duration][i]);
	}
	lane_done(&overheads);
	own_cost_facts(facts->session, facts);
	if (facts->overheads.count)
		qsort(facts->overheads.at, facts->overheads.count, sizeof(*facts->overheads.at),
		      by_sum);
	VEC_DONE(&overheads.lane);
	map_done(&overheads.index);
	return ret < 0 ? ret : 0;
}
