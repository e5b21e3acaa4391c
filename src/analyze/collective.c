/*
 * Collectives: kernels that may wait for other ranks.
 *
 * Known by the names that NCCL and RCCL give their device kernels. A collective
 * kernel spins until the last rank has come, so its length is transfer plus
 * waiting. Without the other ranks all one can say is that the same
 * collective of the same size took less at its quickest: what goes beyond is
 * suspected to be waiting.
 */
#include "analyze/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/str.h"

bool collective_name(const char *name)
{
	static const char *const starts[] = { "ncclDevKernel",     "ncclKernel",
					      "rcclGenericKernel", "rcclDevKernel",
					      "ncclSymkDevKernel", "ncclSymDevKernel" };
	struct str text = str_of(name);

	if (str_starts(text, "void ")) {
		text.at += 5;
		text.len -= 5;
	}
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (str_starts(text, starts[i]))
			return true;
	return false;
}

struct group {
	uint32_t device;
	int64_t count, sum_ns, least_ns;
};

struct grouping {
	struct timeline *timeline;
	const bool *collective; /* by key */
	struct map slot;
	VEC(struct group) groups;
};

/* What makes two collectives comparable, out of "key=value;..." arguments. */
static uint64_t detail_hash(const char *detail)
{
	static const char *const fields[] = { "Collective name=", "In msg nelems=",
					      "Out msg nelems=", "dtype=", "Group size=" };
	struct str rest = str_of(detail);
	uint64_t hash = 0;

	while (rest.len) {
		struct str field = str_trim(str_cut(&rest, ';'));

		for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
			if (str_starts(field, fields[i]))
				hash = hash_bytes(field.at, field.len, hash);
	}
	return hash;
}

static void group_op(struct grouping *grouping, uint32_t op, uint32_t detail)
{
	struct timeline *timeline = grouping->timeline;
	const struct tl_ops *ops = &timeline->ops;
	const struct session *session = timeline->session;
	uint32_t device = op_segment(timeline, op)->device;
	int64_t ns = ops->end[op] - ops->start[op];
	uint64_t key = detail_hash(session_text(session, detail)) * 31 +
		       session->keys.at[ops->key[op]].name;
	uint64_t *slot = map_find(&grouping->slot, key * 31 + device);
	struct group *group;

	if (!slot) {
		map_put(&grouping->slot, key * 31 + device, grouping->groups.count);
		group = VEC_ADD(&grouping->groups);
		group->device = device;
		group->least_ns = ns;
	} else {
		group = &grouping->groups.at[*slot];
	}
	group->count++;
	group->sum_ns = add_ns(group->sum_ns, ns);
	if (ns < group->least_ns)
		group->least_ns = ns;
}

/* The kernel segments come back in the order in which they were loaded. */
static int group_all(struct grouping *grouping, struct store *store, struct err *err)
{
	struct store_query query = { .kinds = STORE_BIT(STORE_kernel),
				     .columns = COL_BIT(COL_detail) };
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct tl_ops *ops = &grouping->timeline->ops;
	size_t segment = 0;
	uint32_t seen = 0;
	struct store_batch batch;
	int got;

	if (store_query_open(store, &query, &cursor, err) < 0)
		return err->code;
	while ((got = store_next(cursor, &batch, err)) > 0) {
		const int64_t *detail = batch.col[COL_detail];

		while (segment < ops->segments.count &&
		       (ops->segments.at[segment].kind != STORE_kernel ||
			ops->segments.at[segment].lane < batch.lane ||
			seen >= ops->segments.at[segment].count)) {
			segment++;
			seen = 0;
		}
		if (segment >= ops->segments.count || ops->segments.at[segment].lane != batch.lane)
			continue;
		for (size_t i = 0; i < batch.count && seen < ops->segments.at[segment].count; i++) {
			uint32_t op = ops->segments.at[segment].first + seen++;

			if (ops->key[op] < grouping->timeline->session->keys.count &&
			    grouping->collective[ops->key[op]])
				group_op(grouping, op, detail ? (uint32_t)detail[i] : 0);
		}
	}
	return got;
}

int collective_facts(struct timeline *timeline, struct store *store, struct facts *facts,
		     struct err *err)
{
	const struct session *session = timeline->session;
	struct grouping grouping = { .timeline = timeline };
	bool *collective = mem_zero(session->keys.count + 1);
	bool any = false;
	int result = 0;

	for (size_t i = 0; i < facts->kernels.count; i++) {
		collective[facts->kernels.at[i].key] |= facts->kernels.at[i].collective;
		any |= facts->kernels.at[i].collective;
	}
	grouping.collective = collective;
	if (any)
		result = group_all(&grouping, store, err);
	for (size_t i = 0; i < grouping.groups.count; i++) {
		const struct group *group = &grouping.groups.at[i];
		struct device_fact *fact = &facts->devices.at[group->device];

		/* One of its kind has nothing to be compared with. */
		if (group->count > 1)
			fact->collective_suspect_ns =
				add_ns(fact->collective_suspect_ns,
				       group->sum_ns - group->count * group->least_ns);
	}
	map_done(&grouping.slot);
	VEC_DONE(&grouping.groups);
	free(collective);
	return result;
}
