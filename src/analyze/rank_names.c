/*
 * rank_names.c - which collectives of which ranks belong together, where the
 * recording knows them by the name of their kernel alone: no size, no group.
 *
 * A communicator runs its collectives in one stream of each rank, in one order.
 * So two streams of different ranks are of one communicator if their kernels
 * have the same names in the same order, and if the n-th of both overlap in
 * time: a collective in which every rank needs data of every other can end
 * nowhere before all have begun. On one clock that is a hard test.
 */
#include "analyze/timeline.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/str.h"

/* Fewer pairs are chance. */
static const size_t PAIRS_LEAST = 3;
/* One rank may have been stopped a little before the other. */
static const double PAIRED_LEAST = 0.9;
/* CUPTI brings each device's clock to the host's; what is left between two of them
 * is below this, and what a late rank costs is above. */
static const int64_t CLOCKS_APART_NS = 50000;
/* Of the pairs must overlap: all, but for a stray one. */
static const double OVERLAP_LEAST = 0.95;

/* Each is compared with each: a file may have any number of them. */
static const size_t STREAMS_MOST = 4096;

/* The collectives of one stream: timeline.unsized[first .. first + count). */
struct stream {
	size_t first, count;
	uint32_t source;
	bool taken;
};

struct streams {
	const struct timeline *timeline;
	VEC(struct stream) at;
	VEC(size_t) members; /* of the communicator at hand */
	size_t left_out;
};

/* Each rank needs something of every other: it can't end before the last begins. */
static bool needs_all(const char *name)
{
	static const char *const kinds[] = { "AllReduce", "AllGather", "ReduceScatter", "AlltoAll",
					     "AllToAll" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (str_find(str_of(name), kinds[i]))
			return true;
	return false;
}

static uint32_t op_of(const struct streams *streams, const struct stream *stream, size_t i)
{
	return streams->timeline->unsized.at[stream->first + i].op;
}

static uint32_t name_of(const struct streams *streams, const struct stream *stream, size_t i)
{
	const struct timeline *timeline = streams->timeline;

	return timeline->session->keys.at[timeline->ops.key[op_of(streams, stream, i)]].name;
}

static int by_lane(const void *a, const void *b)
{
	const struct tl_unsized *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

/* The streams of sources that are ranks and have their place in time. */
static void streams_find(struct streams *streams)
{
	const struct timeline *timeline = streams->timeline;
	const struct session *session = timeline->session;
	const struct tl_unsized *at = timeline->unsized.at;

	for (size_t from = 0, to; from < timeline->unsized.count; from = to) {
		uint32_t source = session->lanes.at[at[from].lane].source;
		struct stream *stream;

		for (to = from + 1; to < timeline->unsized.count && at[to].lane == at[from].lane;)
			to++;
		if (source >= session->sources.count || session->sources.at[source].rank < 0 ||
		    !session->sources.at[source].has_utc || to - from < PAIRS_LEAST)
			continue;
		if (streams->at.count == STREAMS_MOST) {
			streams->left_out++;
			continue;
		}
		stream = VEC_ADD(&streams->at);
		stream->first = from;
		stream->count = to - from;
		stream->source = source;
	}
}

/* How many collectives the two have in common; 0: they are of two communicators. */
static size_t paired(const struct streams *streams, const struct stream *a, const struct stream *b)
{
	const struct timeline *timeline = streams->timeline;
	const struct tl_ops *ops = &timeline->ops;
	size_t count = a->count < b->count ? a->count : b->count;
	size_t more = a->count < b->count ? b->count : a->count;
	size_t asked = 0, overlap = 0;

	if ((double)count < PAIRED_LEAST * (double)more)
		return 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t x = op_of(streams, a, i), y = op_of(streams, b, i);

		if (name_of(streams, a, i) != name_of(streams, b, i))
			return 0;
		if (!needs_all(session_text(timeline->session, name_of(streams, a, i))))
			continue;
		asked++;
		overlap += op_start(ops, x) <= op_end(ops, y) + CLOCKS_APART_NS &&
			   op_start(ops, y) <= op_end(ops, x) + CLOCKS_APART_NS;
	}
	return asked >= PAIRS_LEAST && (double)overlap >= OVERLAP_LEAST * (double)asked ? count : 0;
}

/* All streams that pair with stream `index`, each with those found before it, one
 * of a rank; how many collectives all have in common. */
static size_t members_find(struct streams *streams, size_t index)
{
	size_t common = streams->at.at[index].count;

	streams->members.count = 0;
	*VEC_ADD(&streams->members) = index;
	for (size_t i = index + 1; i < streams->at.count; i++) {
		size_t count = streams->at.at[i].taken ? 0 : common;

		for (size_t m = 0; m < streams->members.count && count; m++) {
			const struct stream *member = &streams->at.at[streams->members.at[m]];
			size_t both = 0;

			if (member->source != streams->at.at[i].source)
				both = paired(streams, member, &streams->at.at[i]);
			count = both < count ? both : count;
		}
		if (!count)
			continue;
		common = count;
		*VEC_ADD(&streams->members) = i;
	}
	return common;
}

static void communicator_out(struct timeline *timeline, struct streams *streams, size_t common)
{
	uint64_t family = hash_u64(streams->members.at[0], timeline->collectives.count);

	for (size_t m = 0; m < streams->members.count; m++) {
		struct stream *stream = &streams->at.at[streams->members.at[m]];

		stream->taken = true;
		for (size_t i = 0; i < common; i++) {
			struct tl_collective *out;

			if (!needs_all(
				    session_text(timeline->session, name_of(streams, stream, i))))
				continue;
			out = VEC_ADD(&timeline->collectives);
			out->family = family;
			out->elements = -1;
			out->group_size = (int64_t)streams->members.count;
			out->op = op_of(streams, stream, i);
			out->source = stream->source;
		}
	}
}

size_t rank_names(struct timeline *timeline)
{
	struct streams streams = { .timeline = timeline };

	if (!timeline->unsized.count)
		return 0;
	qsort(timeline->unsized.at, timeline->unsized.count, sizeof(*timeline->unsized.at),
	      by_lane);
	streams_find(&streams);
	for (size_t i = 0; i < streams.at.count; i++) {
		size_t common = streams.at.at[i].taken ? 0 : members_find(&streams, i);

		if (common && streams.members.count > 1)
			communicator_out(timeline, &streams, common);
	}
	VEC_DONE(&streams.at);
	VEC_DONE(&streams.members);
	return streams.left_out;
}
