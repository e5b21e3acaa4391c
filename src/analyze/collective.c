/*
 * Collectives: kernels that may wait for other ranks.
 *
 * Known by the names that NCCL and RCCL give their device kernels. A collective
 * kernel spins until the last rank has come, so its length is transfer plus
 * waiting. Without the other ranks all one can say is that the same
 * collective of the same size or a larger one took less at its quickest: what
 * goes beyond is suspected to be waiting.
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

/* Collectives of one device, kind and size. */
struct group {
	uint64_t family;
	uint32_t device;
	int64_t elements;
	int64_t count, sum_ns, least_ns;
};

struct grouping {
	struct timeline *timeline;
	const bool *collective; /* by key */
	struct map slot;
	VEC(struct group) groups;
};

/* The number behind `key` in "key=value"; -1: it is not that, or no number. */
static int64_t number_of(struct str field, const char *key)
{
	int64_t number;

	if (!str_starts(field, key))
		return -1;
	field.at += strlen(key);
	field.len -= strlen(key);
	return str_to_i64(field, &number) && number >= 0 ? number : -1;
}

/* The kind of a collective and its size, out of "key=value;..." arguments; elements
 * -1 unknown. Sizes are elements: the type is part of the kind. */
static struct tl_collective detail_read(const char *detail)
{
	static const char *const kind[] = { "Collective name=", "dtype=", "Group size=",
					    "Process Group Ranks=" };
	static const char *const size[] = { "In msg nelems=", "Out msg nelems=" };
	struct tl_collective read = { .elements = -1 };
	struct str rest = str_of(detail);

	while (rest.len) {
		struct str field = str_trim(str_cut(&rest, ';'));
		int64_t ranks = number_of(field, "Group size=");

		for (size_t i = 0; i < sizeof(kind) / sizeof(*kind); i++)
			if (str_starts(field, kind[i]))
				read.family = hash_bytes(field.at, field.len, read.family);
		for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++)
			if (number_of(field, size[i]) > read.elements)
				read.elements = number_of(field, size[i]);
		if (ranks > 0)
			read.group_size = ranks;
	}
	return read;
}

static void group_op(struct grouping *grouping, uint32_t op, uint32_t detail)
{
	struct timeline *timeline = grouping->timeline;
	const struct tl_ops *ops = &timeline->ops;
	const struct session *session = timeline->session;
	uint32_t device = op_segment(timeline, op)->device;
	int64_t ns = op_ns(ops, op);
	struct tl_collective read = detail_read(intern_get(session->details, detail, NULL));
	uint64_t key, *slot;
	struct group *group;

	if (read.elements < 0) {
		*VEC_ADD(&timeline->unsized) =
			(struct tl_unsized){ op_start(ops, op), op,
					     op_segment(timeline, op)->lane };
		return;
	}
	read.family = hash_u64(read.family, session->keys.at[ops->key[op]].name);
	read.op = op;
	read.source = op_segment(timeline, op)->source;
	*VEC_ADD(&timeline->collectives) = read;
	key = hash_u64(hash_u64(read.family, device), (uint64_t)read.elements);
	slot = map_find(&grouping->slot, key);
	if (!slot) {
		map_put(&grouping->slot, key, grouping->groups.count);
		group = VEC_ADD(&grouping->groups);
		group->family = read.family;
		group->device = device;
		group->elements = read.elements;
		group->least_ns = ns;
	} else {
		group = &grouping->groups.at[*slot];
	}
	group->count++;
	group->sum_ns = capped_add(group->sum_ns, ns);
	if (ns < group->least_ns)
		group->least_ns = ns;
}

static int by_family(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->family != y->family)
		return x->family < y->family ? -1 : 1;
	return (x->elements < y->elements) - (x->elements > y->elements);
}

/* A smaller collective need not take longer than a larger one of its kind did. */
static void suspects(struct grouping *grouping, struct facts *facts)
{
	struct group *at = grouping->groups.at;
	size_t count = grouping->groups.count;

	/* Sizes are not recorded: nothing to compare. */
	for (size_t i = 0; i < facts->devices.count; i++)
		if (facts->devices.at[i].collective_ns > 0)
			facts->devices.at[i].collective_suspect_ns = FACT_UNKNOWN;
	for (size_t i = 0; i < count; i++)
		facts->devices.at[at[i].device].collective_suspect_ns = 0;
	if (count)
		qsort(at, count, sizeof(*at), by_family);
	for (size_t i = 0; i < count; i++) {
		struct device_fact *fact = &facts->devices.at[at[i].device];

		if (i && at[i - 1].device == at[i].device && at[i - 1].family == at[i].family &&
		    at[i - 1].least_ns < at[i].least_ns)
			at[i].least_ns = at[i - 1].least_ns;
		fact->collective_suspect_ns = capped_add(
			fact->collective_suspect_ns, at[i].sum_ns - at[i].count * at[i].least_ns);
	}
}

/* Where the kernel of a row is. Rows are asked for in ascending order. */
static uint32_t op_of_row(const struct tl_ops *ops, size_t *moved, uint32_t row)
{
	while (*moved < ops->moved.count && ops->moved.at[*moved].row < row)
		++*moved;
	return *moved < ops->moved.count && ops->moved.at[*moved].row == row
		       ? ops->moved.at[*moved].op
		       : row;
}

/* The kernel segments come back in the order in which they were loaded. */
static int group_all(struct grouping *grouping, struct store *store, struct err *err)
{
	struct store_query query = { .kinds = STORE_BIT(STORE_kernel),
				     .columns = COL_BIT(COL_detail) };
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct tl_ops *ops = &grouping->timeline->ops;
	size_t segment = 0, moved = 0;
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
			uint32_t op =
				op_of_row(ops, &moved, ops->segments.at[segment].first + seen++);

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
	suspects(&grouping, facts);
	facts->streams_uncompared = (int64_t)rank_names(timeline);
	rank_waiting(timeline, facts);
	map_done(&grouping.slot);
	VEC_DONE(&grouping.groups);
	free(collective);
	return result;
}
