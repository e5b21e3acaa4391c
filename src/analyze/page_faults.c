/*
 * page_faults.c - what the driver did for unified memory, by device and kind. Moved pages
 * are copies, and told with them.
 */
#include <stdlib.h>

#include "analyze/facts.h"
#include "base/capped.h"
#include "base/interval.h"
#include "store/store.h"

/* Groups of one device and kind, until their union is taken. */
struct kind {
	struct page_fault_fact fact;
	VEC(struct interval) groups;
};

struct kinds {
	VEC(struct kind) at;
};

static struct kind *kind_of(struct kinds *kinds, uint32_t device, uint32_t name)
{
	struct kind *kind;

	for (size_t i = 0; i < kinds->at.count; i++) {
		kind = &kinds->at.at[i];
		if (kind->fact.device == device && kind->fact.name == name)
			return kind;
	}
	kind = VEC_ADD(&kinds->at);
	kind->fact.device = device;
	kind->fact.name = name;
	return kind;
}

static void take(struct kinds *kinds, const struct store_batch *batch, uint32_t device)
{
	const int64_t *start = batch->col[COL_start], *ns = batch->col[COL_duration];
	const int64_t *name = batch->col[COL_name], *faults = batch->col[COL_faults];

	for (size_t i = 0; i < batch->count; i++) {
		struct kind *kind = kind_of(kinds, device, name ? (uint32_t)name[i] : 0);
		int64_t end;

		kind->fact.count++;
		if (faults && faults[i] > 0)
			kind->fact.faults = capped_add(kind->fact.faults, faults[i]);
		if (ns && ns[i] > 0 && !__builtin_add_overflow(start[i], ns[i], &end))
			*VEC_ADD(&kind->groups) = (struct interval){ start[i], end };
	}
}

static int by_time(const void *a, const void *b)
{
	const struct page_fault_fact *x = a, *y = b;

	if (x->union_ns != y->union_ns)
		return x->union_ns > y->union_ns ? -1 : 1;
	if (x->faults != y->faults)
		return x->faults > y->faults ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Of a device all together, as kinds can overlap. */
static void device_sums(struct kinds *kinds, struct facts *facts)
{
	for (uint32_t device = 0; device < facts->devices.count; device++) {
		struct device_fact *fact = &facts->devices.at[device];
		VEC(struct interval) all = { 0 };

		for (size_t i = 0; i < kinds->at.count; i++) {
			struct kind *kind = &kinds->at.at[i];

			if (kind->fact.device != device)
				continue;
			fact->page_faults = capped_add(fact->page_faults, kind->fact.faults);
			for (size_t k = 0; k < kind->groups.count; k++)
				*VEC_ADD(&all) = kind->groups.at[k];
		}
		fact->page_fault_ns = interval_length(all.at, interval_union(all.at, all.count));
		VEC_DONE(&all);
	}
}

int analyze_page_faults(struct store *store, struct facts *facts, struct err *err)
{
	const struct store_query query = {
		.kinds = STORE_BIT(STORE_page_fault),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_duration) | COL_BIT(COL_name) |
			   COL_BIT(COL_faults),
	};
	const struct session *session = store_session(store);
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct kinds kinds = { 0 };
	struct store_batch batch;
	int ret = store_query_open(store, &query, &cursor, err);

	while (ret >= 0 && (ret = store_next(cursor, &batch, err)) > 0)
		take(&kinds, &batch, session->lanes.at[batch.lane].device);
	device_sums(&kinds, facts);
	for (size_t i = 0; i < kinds.at.count; i++) {
		struct kind *kind = &kinds.at.at[i];
		size_t count = interval_union(kind->groups.at, kind->groups.count);

		kind->fact.union_ns = interval_length(kind->groups.at, count);
		*VEC_ADD(&facts->page_faults) = kind->fact;
		VEC_DONE(&kind->groups);
	}
	VEC_DONE(&kinds.at);
	if (facts->page_faults.count)
		qsort(facts->page_faults.at, facts->page_faults.count,
		      sizeof(*facts->page_faults.at), by_time);
	return ret < 0 ? ret : 0;
}
