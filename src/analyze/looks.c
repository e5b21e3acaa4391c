/*
 * looks.c - what threads were at: when the recorder looked, when a sample was
 * taken, or from one context switch to the next.
 *
 * A look is a moment, not a span: the gaps of a device are mostly shorter than the
 * time between two looks, and what a thread is at in a gap is not what it is at
 * before and after. So only looks that fall into idle time speak of it, and only
 * where they are enough. What switches say is true throughout, and its time in
 * the gaps is counted.
 */
#include "analyze/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* How many of so many looks must agree, and half of more: what they saw then holds a sixth
 * of the time or more with 95 % certainty (one-sided Clopper-Pearson bounds: 3 of 3: 0.37,
 * 3 of 5 and 4 of 8: 0.19). Of fewer the most frequent is chance. */
enum { LOOKS_LEAST = 3, LOOKS_MANY = 8 };
static const int64_t AGREE_LEAST[LOOKS_MANY] = { 0, 0, 0, 3, 3, 3, 4, 4 };
/* Of more names, which only an invented file has, lines are not summed up. */
static const size_t NAMES_MOST = 2048;

bool look_kind_of(enum store_kind kind, enum look_kind *ret_kind)
{
	switch (kind) {
	case STORE_state:
		*ret_kind = LOOK_STATE;
		return true;
	case STORE_state_exact:
		*ret_kind = LOOK_EXACT;
		return true;
	case STORE_cpu_stack:
		*ret_kind = LOOK_CPU;
		return true;
	case STORE_python_stack:
		*ret_kind = LOOK_PYTHON;
		return true;
	default:
		return false;
	}
}

static int by_lane_and_time(const void *a, const void *b)
{
	const struct tl_look *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return (x->time > y->time) - (x->time < y->time);
}

void looks_settle(struct timeline *timeline)
{
	for (int kind = 0; kind < LOOK_KIND_COUNT; kind++) {
		if (timeline->looks[kind].count)
			qsort(timeline->looks[kind].at, timeline->looks[kind].count,
			      sizeof(*timeline->looks[kind].at), by_lane_and_time);
	}
}

static void count(struct look_counts *counts, enum look_kind kind, uint32_t name, int64_t by)
{
	uint64_t key = (uint64_t)kind << 32 | name;
	uint64_t *at = map_find(&counts->at, key);
	size_t i = at ? *at : counts->seen.count;

	if (!at) {
		map_put(&counts->at, key, i);
		*VEC_ADD(&counts->seen) = (struct look_count){ .kind = kind, .name = name };
	}
	counts->seen.at[i].count = capped_add(counts->seen.at[i].count, by);
	counts->all[kind] = capped_add(counts->all[kind], by);
}

/* The first that is not before `want`. Gaps come in order of time, mostly of one
 * thread: it is not far from `hint`, where the last one was. */
static size_t look_from(const struct tl_look *looks, size_t count, const struct tl_look *want,
			size_t hint)
{
	size_t low = 0, high = count, step = 1;

	if (hint < count && by_lane_and_time(&looks[hint], want) < 0) {
		low = hint + 1;
		while (step < count - low && by_lane_and_time(&looks[low + step], want) < 0) {
			low += step + 1;
			step *= 2;
		}
		high = step < count - low ? low + step : count;
	} else {
		high = hint < count ? hint : count;
		while (step <= high && by_lane_and_time(&looks[high - step], want) >= 0) {
			high -= step;
			step *= 2;
		}
		low = step <= high ? high - step + 1 : 0;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_lane_and_time(&looks[middle], want) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void count_kind(struct look_counts *counts, const struct timeline *timeline,
		       enum look_kind kind, struct tl_look want, int64_t to)
{
	const struct tl_look *looks = timeline->looks[kind].at;
	size_t end = timeline->looks[kind].count;
	size_t low = look_from(looks, end, &want, counts->hint[kind]);
	int64_t from = want.time;

	counts->hint[kind] = low;
	/* The one before may reach into it. */
	if (kind == LOOK_EXACT && low && looks[low - 1].lane == want.lane)
		low--;
	for (; low < end && looks[low].lane == want.lane && looks[low].time < to; low++) {
		const struct tl_look *look = &looks[low];
		int64_t start = look->time > from ? look->time : from;
		int64_t until = look->end < to ? look->end : to;

		if (kind != LOOK_EXACT)
			count(counts, kind, look->name, 1);
		else if (until > start)
			count(counts, kind, look->name, until - start);
	}
}

void looks_count(struct look_counts *counts, const struct timeline *timeline, uint32_t lane,
		 int64_t from, int64_t to)
{
	struct tl_look want = { .lane = lane, .time = from };

	for (int kind = 0; kind < LOOK_KIND_COUNT; kind++) {
		if (timeline->looks[kind].count)
			count_kind(counts, timeline, (enum look_kind)kind, want, to);
	}
}

/* "collate data.py:41" without the line: a function is at many. */
static size_t function_length(const char *name)
{
	size_t len = strlen(name), digits = len;

	while (digits && name[digits - 1] >= '0' && name[digits - 1] <= '9')
		digits--;
	return digits < len && digits && name[digits - 1] == ':' ? digits - 1 : len;
}

/* A perf map knows no lines. */
static bool is_same_function(const char *a, const char *b)
{
	size_t len = function_length(a);

	return function_length(b) == len && !memcmp(a, b, len);
}

static int64_t function_count(const struct look_counts *counts, const struct session *session,
			      const struct look_count *of)
{
	const char *name = session_text(session, of->name);
	int64_t sum = 0;

	for (size_t i = 0; i < counts->seen.count; i++) {
		const struct look_count *seen = &counts->seen.at[i];
		const char *other = session_text(session, seen->name);

		if (seen->kind == of->kind && is_same_function(name, other))
			sum = capped_add(sum, seen->count);
	}
	return sum;
}

/* What was seen most, its most frequent line first; NULL: it is less than half. */
static const struct look_count *most_of(const struct look_counts *counts,
					const struct session *session, enum look_kind kind,
					int64_t *ret_count)
{
	const struct look_count *most = NULL;
	int64_t most_count = 0;

	for (size_t i = 0; i < counts->seen.count; i++) {
		const struct look_count *seen = &counts->seen.at[i];
		int64_t sum;

		if (seen->kind != kind)
			continue;
		sum = kind == LOOK_PYTHON && counts->seen.count <= NAMES_MOST
			      ? function_count(counts, session, seen)
			      : seen->count;
		if (sum > most_count || (sum == most_count && most && seen->count > most->count)) {
			most = seen;
			most_count = sum;
		}
	}
	*ret_count = most_count;
	return most && most_count >= counts->all[kind] - most_count ? most : NULL;
}

/* The state that holds for half and more; where waits for several things, or for what
 * was not asked, do so together, that it waits. NULL: none does. */
static const char *state_of(const struct look_counts *counts, const struct session *session,
			    enum look_kind kind, int64_t *ret_count)
{
	static const char waiting[] = "waiting";
	const struct look_count *most = most_of(counts, session, kind, ret_count);
	int64_t waits = 0;

	if (most)
		return session_text(session, most->name);
	for (size_t i = 0; i < counts->seen.count; i++) {
		const struct look_count *seen = &counts->seen.at[i];

		if (seen->kind == kind &&
		    str_starts(str_of(session_text(session, seen->name)), waiting))
			waits = capped_add(waits, seen->count);
	}
	*ret_count = waits;
	return waits && waits >= counts->all[kind] - waits ? waiting : NULL;
}

static bool enough(int64_t agree, int64_t all)
{
	return all >= LOOKS_LEAST && agree >= (all < LOOKS_MANY ? AGREE_LEAST[all] : all - agree);
}

static void tell_states(const struct look_counts *counts, const struct session *session,
			struct idle_fact *idle)
{
	int64_t ns, looks;
	const char *exact = state_of(counts, session, LOOK_EXACT, &ns);
	const char *look = state_of(counts, session, LOOK_STATE, &looks);

	/* A minor part of the time says nothing of the whole. */
	if (exact && counts->all[LOOK_EXACT] >= idle->ns / 2) {
		idle->thread_state = exact;
		idle->thread_ns = counts->all[LOOK_EXACT];
		idle->thread_state_ns = ns;
	} else if (look && enough(looks, counts->all[LOOK_STATE])) {
		idle->thread_state = look;
		idle->thread_looks = counts->all[LOOK_STATE];
		idle->thread_state_looks = looks;
	}
}

void looks_tell(struct look_counts *counts, const struct session *session, struct idle_fact *idle)
{
	const struct look_count *most;
	int64_t looks;

	tell_states(counts, session, idle);
	most = most_of(counts, session, LOOK_PYTHON, &looks);
	if (most && enough(looks, counts->all[LOOK_PYTHON])) {
		idle->python = most->name;
		idle->python_looks = counts->all[LOOK_PYTHON];
		idle->python_function_looks = looks;
	}
	most = most_of(counts, session, LOOK_CPU, &looks);
	if (most && enough(looks, counts->all[LOOK_CPU])) {
		idle->cpu = most->name;
		idle->cpu_samples = counts->all[LOOK_CPU];
		idle->cpu_function_samples = looks;
		idle->cpu_is_python =
			idle->python && is_same_function(session_text(session, idle->python),
							 session_text(session, idle->cpu));
	}
	map_done(&counts->at);
	VEC_DONE(&counts->seen);
	memset(counts->all, 0, sizeof(counts->all));
	memset(counts->hint, 0, sizeof(counts->hint));
}
