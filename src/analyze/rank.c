/*
 * Ranks that wait for each other, when all of them are in one profile.
 *
 * The collectives of a family (same kernel, collective, type and group) come in
 * the same order on every rank, so the n-th of one rank is the n-th of all.
 * It can end nowhere before the last rank has come, and ends everywhere at
 * nearly the same time: the median difference of the ends is the offset of two
 * clocks, and what is left of the differences bounds the error. A rank waits
 * from its own start to the latest start; less than that error is not told.
 */
#include "analyze/timeline.h"

#include <stdlib.h>

#include "analyze/order.h"

/* Fewer collectives say nothing about clocks. */
static const size_t MATCHED_LEAST = 3;

/* The collectives of one family on one rank: a run of timeline.collectives. */
struct member {
	size_t first;
	int64_t offset_ns;
};

struct family {
	const struct timeline *timeline;
	VEC(struct member) members;
	size_t count; /* collectives a rank */
	int64_t error_ns;
};

struct waits {
	VEC(struct interval) at;
	VEC(int64_t) late_ns; /* behind the first rank, a collective each */
	int64_t last;         /* collectives to which this rank came last */
	bool compared;
};

static int by_family(const void *a, const void *b)
{
	const struct tl_collective *x = a, *y = b;

	if (x->family != y->family)
		return x->family < y->family ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

static int64_t end_of(const struct family *family, size_t member, size_t i)
{
	const struct timeline *timeline = family->timeline;
	size_t at = family->members.at[member].first + i;

	return op_end(&timeline->ops, timeline->collectives.at[at].op);
}

static const struct tl_collective *nth(const struct family *family, size_t member, size_t i)
{
	return &family->timeline->collectives.at[family->members.at[member].first + i];
}

/* Split [from, to), all of one family, by rank; false if the ranks do not match. */
static bool family_split(struct family *family, size_t from, size_t to)
{
	const struct tl_collective *at = family->timeline->collectives.at;
	const struct session *session = family->timeline->session;

	family->members.count = 0;
	for (size_t i = from; i < to; i++)
		if (i == from || at[i - 1].source != at[i].source)
			*VEC_ADD(&family->members) = (struct member){ .first = i };
	if (family->members.count < 2 || (int64_t)family->members.count != at[from].group_size)
		return false;
	family->count = (to - from) / family->members.count;
	if (family->count < MATCHED_LEAST)
		return false;
	for (size_t m = 0; m < family->members.count; m++) {
		size_t first = family->members.at[m].first;

		if (first != from + m * family->count ||
		    session->sources.at[at[first].source].rank < 0)
			return false;
		for (size_t i = 0; i < family->count; i++)
			if (at[first + i].elements != at[from + i].elements)
				return false;
	}
	return true;
}

/* Clocks against that of the first rank, and the error that remains. */
static void family_clocks(struct family *family)
{
	int64_t *differences = mem_alloc(family->count * sizeof(*differences));

	family->error_ns = 0;
	for (size_t m = 1; m < family->members.count; m++) {
		int64_t offset, error;

		for (size_t i = 0; i < family->count; i++)
			differences[i] = end_of(family, m, i) - end_of(family, 0, i);
		order_values(differences, family->count);
		offset = differences[family->count / 2];
		for (size_t i = 0; i < family->count; i++)
			differences[i] = llabs(differences[i] - offset);
		order_values(differences, family->count);
		error = differences[family->count * 9 / 10];
		family->members.at[m].offset_ns = offset;
		if (error > family->error_ns)
			family->error_ns = error;
	}
	free(differences);
}

static void family_waits(const struct family *family, struct waits *waits)
{
	const struct timeline *timeline = family->timeline;

	for (size_t i = 0; i < family->count; i++) {
		int64_t latest = INT64_MIN, first = INT64_MAX;
		size_t last = 0;

		for (size_t m = 0; m < family->members.count; m++) {
			int64_t start =
				nth(family, m, i)->start_ns - family->members.at[m].offset_ns;

			if (start > latest) {
				latest = start;
				last = m;
			}
			if (start < first)
				first = start;
		}
		for (size_t m = 0; m < family->members.count; m++) {
			const struct tl_collective *at = nth(family, m, i);
			int64_t ns = latest + family->members.at[m].offset_ns - at->start_ns;
			int64_t length = op_end(&timeline->ops, at->op) - at->start_ns;
			struct waits *device = &waits[op_segment(timeline, at->op)->device];

			device->compared = true;
			*VEC_ADD(&device->late_ns) = latest - first - ns;
			device->last += m == last && latest - first > family->error_ns;
			if (ns > length)
				ns = length;
			if (ns > family->error_ns)
				*VEC_ADD(&device->at) =
					(struct interval){ at->start_ns, at->start_ns + ns };
		}
	}
}

static bool is_collective_op(const struct timeline *timeline, uint32_t op, const bool *collective)
{
	return op_segment(timeline, op)->kind == STORE_kernel &&
	       timeline->ops.key[op] < timeline->session->keys.count &&
	       collective[timeline->ops.key[op]];
}

/* What of the waiting (a set) is waiting only: nothing else runs on the device. */
static int64_t waits_alone(const struct timeline *timeline, uint32_t index,
			   const struct interval *at, size_t count, const bool *collective)
{
	const struct tl_device *device = &timeline->devices[index];
	int64_t alone = interval_length(at, count), until = INT64_MIN;
	size_t next = 0;

	for (size_t i = 0; i < device->count && next < count; i++) {
		uint32_t op = device_op(device, i);
		int64_t start = op_start(&timeline->ops, op), end = op_end(&timeline->ops, op);

		if (is_collective_op(timeline, op, collective))
			continue;
		/* Only what no earlier op has taken away. */
		if (start < until)
			start = until;
		if (end > until)
			until = end;
		while (next < count && at[next].end <= start)
			next++;
		for (size_t k = next; k < count && at[k].start < end; k++) {
			int64_t from = at[k].start > start ? at[k].start : start;
			int64_t to = at[k].end < end ? at[k].end : end;

			if (to > from)
				alone -= to - from;
		}
	}
	return alone;
}

/* By key of a kernel: the caller frees it. */
static bool *collectives_of(const struct session *session, const struct facts *facts)
{
	bool *collective = mem_zero(session->keys.count + 1);

	for (size_t i = 0; i < facts->kernels.count; i++)
		if (facts->kernels.at[i].key < session->keys.count)
			collective[facts->kernels.at[i].key] |= facts->kernels.at[i].collective;
	return collective;
}

static void devices_out(struct timeline *timeline, struct facts *facts, struct waits *waits)
{
	const struct session *session = timeline->session;
	bool *collective = collectives_of(session, facts);

	for (uint32_t i = 0; i < session->devices.count; i++) {
		struct device_fact *fact = &facts->devices.at[i];

		if (!waits[i].compared)
			continue;
		waits[i].at.count = interval_union(waits[i].at.at, waits[i].at.count);
		fact->waiting_ns =
			waits_alone(timeline, i, waits[i].at.at, waits[i].at.count, collective);
		fact->working_ns = fact->busy_ns - fact->waiting_ns;
		fact->compared_count = (int64_t)waits[i].late_ns.count;
		fact->compared_last = waits[i].last;
		order_values(waits[i].late_ns.at, waits[i].late_ns.count);
		fact->late_p50_ns = waits[i].late_ns.at[(waits[i].late_ns.count - 1) / 2];
		for (size_t k = 0; k < waits[i].at.count; k++)
			*VEC_ADD(&timeline->devices[i].waits) = waits[i].at.at[k];
	}
	free(collective);
}

static int64_t collective_after(const struct timeline *timeline, uint32_t index, int64_t from,
				const bool *collective)
{
	const struct tl_device *device = &timeline->devices[index];
	struct cover cover = { 0 };

	for (size_t i = 0; i < device->count; i++) {
		uint32_t op = device_op(device, i);
		int64_t start = op_start(&timeline->ops, op), end = op_end(&timeline->ops, op);

		if (end > from && is_collective_op(timeline, op, collective))
			cover_add(&cover, start > from ? start : from, end);
	}
	return cover_total(&cover);
}

void rank_steady(const struct timeline *timeline, struct facts *facts)
{
	bool *collective = collectives_of(timeline->session, facts);

	for (uint32_t i = 0; i < facts->devices.count; i++) {
		struct device_fact *fact = &facts->devices.at[i];
		const struct tl_device *device = &timeline->devices[i];
		VEC(struct interval) after = { 0 };

		fact->steady.waiting_ns = FACT_UNKNOWN;
		if (!fact->steady.has || fact->collective_ns <= 0)
			continue;
		fact->steady.collective_ns =
			collective_after(timeline, i, fact->steady.start_ns, collective);
		if (fact->waiting_ns == FACT_UNKNOWN)
			continue;
		for (size_t k = 0; k < device->waits.count; k++) {
			struct interval at = device->waits.at[k];

			at.start =
				at.start > fact->steady.start_ns ? at.start : fact->steady.start_ns;
			if (at.start < at.end)
				*VEC_ADD(&after) = at;
		}
		fact->steady.waiting_ns =
			waits_alone(timeline, i, after.at, after.count, collective);
		VEC_DONE(&after);
	}
	free(collective);
}

void rank_waiting(struct timeline *timeline, struct facts *facts)
{
	struct tl_collective *at = timeline->collectives.at;
	size_t count = timeline->collectives.count, devices = timeline->session->devices.count;
	struct family family = { .timeline = timeline };
	struct waits *waits;

	if (!count)
		return;
	waits = mem_zero((devices + 1) * sizeof(*waits));
	for (size_t i = 0; i < count; i++)
		at[i].start_ns = op_start(&timeline->ops, at[i].op);
	qsort(at, count, sizeof(*at), by_family);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && at[to].family == at[from].family;)
			to++;
		if (!family_split(&family, from, to))
			continue;
		family_clocks(&family);
		family_waits(&family, waits);
	}
	devices_out(timeline, facts, waits);
	for (size_t i = 0; i < devices; i++) {
		VEC_DONE(&waits[i].at);
		VEC_DONE(&waits[i].late_ns);
	}
	VEC_DONE(&family.members);
	free(waits);
}
