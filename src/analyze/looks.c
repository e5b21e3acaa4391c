/*
 * looks.c - what threads were at when the recorder looked, some 50 times a second.
 *
 * A look is a moment, not a span: the gaps of a device are mostly shorter than the
 * time between two looks, and what a thread is at in a gap is not what it is at
 * before and after. So only looks that fall into idle time speak of it, and only
 * where they are enough.
 */
#include "analyze/timeline.h"

#include <stdlib.h>

/* Of fewer looks the most frequent state is chance: with 8, a state that is seen in
 * at least half of them holds a sixth of the time or more with 95 % certainty
 * (4 of 8, one-sided Clopper-Pearson bound 0.19). */
static const int64_t LOOKS_LEAST = 8;

static int by_lane_and_time(const void *a, const void *b)
{
	const struct tl_look *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return (x->time > y->time) - (x->time < y->time);
}

void looks_settle(struct timeline *timeline)
{
	if (timeline->looks.count)
		qsort(timeline->looks.at, timeline->looks.count, sizeof(*timeline->looks.at),
		      by_lane_and_time);
}

void looks_count(struct look_counts *counts, const struct timeline *timeline, uint32_t lane,
		 int64_t from, int64_t to)
{
	struct tl_look want = { .lane = lane, .time = from };
	size_t low = 0, high = timeline->looks.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_lane_and_time(&timeline->looks.at[middle], &want) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < timeline->looks.count; low++) {
		const struct tl_look *look = &timeline->looks.at[low];
		size_t i = 0;

		if (look->lane != lane || look->time >= to)
			return;
		while (i < counts->states.count && counts->states.at[i].name != look->name)
			i++;
		if (i == counts->states.count)
			VEC_ADD(&counts->states)->name = look->name;
		counts->states.at[i].count++;
		counts->all++;
	}
}

void looks_tell(struct look_counts *counts, struct idle_fact *idle)
{
	const struct look_count *most = NULL;

	for (size_t i = 0; i < counts->states.count; i++) {
		const struct look_count *state = &counts->states.at[i];

		if (!most || state->count > most->count)
			most = state;
	}
	if (most && counts->all >= LOOKS_LEAST && 2 * most->count >= counts->all) {
		idle->thread_state = most->name;
		idle->thread_looks = counts->all;
		idle->thread_state_looks = most->count;
	}
	VEC_DONE(&counts->states);
	counts->all = 0;
}
