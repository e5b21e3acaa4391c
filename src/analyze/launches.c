/*
 * The calls that launched something on a device, in order of start.
 *
 * Threads launch in turns: what is kept is where each turn begins and ends. What a
 * thread calls between two launches that does not launch is passed over when one goes
 * through a turn; a turn ends where there is much of it, so that looking back is short.
 */
#include "analyze/timeline.h"

#include <stdlib.h>

#include "analyze/array.h"
#include "analyze/order.h"

/* Threads that are merged as they come: each costs a look for every turn. */
enum { THREADS_MOST = 8 };

/* From one launch of a turn to the next. */
enum { DISTANCE_MOST = 16 };

/* Where a thread's calls are on the way: the next one that launched something. */
struct launcher {
	int64_t start;
	uint32_t at, last;
};

static void next_launch(const struct tl_calls *calls, struct launcher *launcher)
{
	while (launcher->at < launcher->last && calls->first_op[launcher->at] == TL_NONE)
		launcher->at++;
	launcher->start =
		launcher->at < launcher->last ? call_start(calls, launcher->at) : INT64_MAX;
}

static inline struct tl_device *launch_device(const struct timeline *timeline, uint32_t call)
{
	uint32_t only = timeline->only_device;

	return &timeline->devices[only != TL_NONE
					  ? only
					  : op_segment(timeline, timeline->calls.first_op[call])
						    ->device];
}

/* Of a device that has launches. */
static inline bool is_launch(const struct timeline *timeline, const struct tl_device *device,
			     uint32_t call)
{
	return timeline->calls.first_op[call] != TL_NONE &&
	       (timeline->only_device != TL_NONE || launch_device(timeline, call) == device);
}

/* Can the turn that ends with one call go on with another? Not across threads: there
 * times jump back. */
static bool goes_on(const struct tl_calls *calls, uint32_t last, uint32_t call)
{
	if (call <= last || call - last > DISTANCE_MOST)
		return false;
	for (int64_t now = call_start(calls, last); last < call; last++) {
		int64_t next = call_start(calls, last + 1);

		if (next < now)
			return false;
		now = next;
	}
	return true;
}

static void add_launch(struct timeline *timeline, uint32_t call)
{
	struct tl_device *device = launch_device(timeline, call);
	size_t count = device->launches.count;

	device->launch_count++;
	if (count && goes_on(&timeline->calls, device->launches.at[count - 1].last, call))
		device->launches.at[count - 1].last = call;
	else
		*VEC_ADD(&device->launches) = (struct tl_launches){ call, call };
}

/* The calls of a thread are in order. Of equal ones the first thread's is first. */
static void merge(struct timeline *timeline)
{
	const struct tl_calls *calls = &timeline->calls;
	struct launcher launchers[THREADS_MOST] = { 0 };
	size_t count = calls->segments.count;

	for (size_t s = 0; s < count; s++) {
		const struct tl_segment *segment = &calls->segments.at[s];

		launchers[s].at = segment->first;
		launchers[s].last = segment->first + segment->count;
		next_launch(calls, &launchers[s]);
	}
	for (;;) {
		size_t least = 0;
		int64_t until = INT64_MAX - 1;

		for (size_t i = 1; i < count; i++)
			if (launchers[i].start < launchers[least].start)
				least = i;
		for (size_t i = 0; i < count; i++)
			if (i != least && launchers[i].start - (i < least) < until)
				until = launchers[i].start - (i < least);
		/* No call starts at INT64_MAX: TIME_LIMIT_NS. */
		if (!count || launchers[least].start == INT64_MAX)
			break;
		while (launchers[least].start <= until) {
			add_launch(timeline, launchers[least].at++);
			next_launch(calls, &launchers[least]);
		}
	}
}

static void sort(struct timeline *timeline)
{
	const struct tl_calls *calls = &timeline->calls;
	uint32_t *list = array_new(calls->count * sizeof(*list));
	size_t count = 0;

	for (uint32_t i = 0; i < calls->count; i++)
		if (calls->first_op[i] != TL_NONE)
			list[count++] = i;
	order_sort(list, count, &calls->spans, false);
	for (size_t i = 0; i < count; i++)
		add_launch(timeline, list[i]);
	free(list);
}

void launches_find(struct timeline *timeline)
{
	if (timeline->calls.segments.count > THREADS_MOST)
		sort(timeline);
	else
		merge(timeline);
}

uint32_t launches_next(struct launch_walk *walk)
{
	for (; walk->at < walk->device->launches.count; walk->at++, walk->next = 0) {
		const struct tl_launches *turn = &walk->device->launches.at[walk->at];
		uint32_t call = walk->next > turn->first ? walk->next : turn->first;

		while (call <= turn->last && !is_launch(walk->timeline, walk->device, call))
			call++;
		walk->next = call + 1;
		if (call <= turn->last)
			return call;
	}
	return TL_NONE;
}

/* The first turn that does not begin before `start`: look around where we were. */
static size_t turn_after(const struct tl_calls *calls, const struct tl_device *device, size_t hint,
			 int64_t start)
{
	const struct tl_launches *turns = device->launches.at;
	size_t count = device->launches.count, step = 1, low = hint, high = hint;

	if (hint >= count || call_start(calls, turns[hint].first) >= start) {
		for (; low > 0 && call_start(calls, turns[low - 1].first) >= start; step *= 2) {
			high = low - 1;
			low = low > step ? low - step : 0;
		}
	} else {
		low = hint + 1;
		high = low;
		for (; high < count && call_start(calls, turns[high].first) < start; step *= 2) {
			low = high + 1;
			high = low + step;
		}
		if (high > count)
			high = count;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (call_start(calls, turns[middle].first) < start)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t launches_before(const struct timeline *timeline, const struct tl_device *device,
			 size_t *hint, uint32_t call, int64_t start)
{
	const struct tl_calls *calls = &timeline->calls;
	const struct tl_launches *turn = *hint ? &device->launches.at[*hint - 1] : NULL;
	uint32_t low, high;

	/* Mostly it is in the same turn, and what is before it began before. */
	if (turn && call > turn->first && call <= turn->last &&
	    call_start(calls, call - 1) < start) {
		low = high = call - 1;
	} else {
		*hint = turn_after(calls, device, *hint, start);
		if (!*hint)
			return TL_NONE;
		low = device->launches.at[*hint - 1].first;
		high = device->launches.at[*hint - 1].last;
	}
	/* `low` begins before; what is behind `high` does not. */
	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;

		if (call_start(calls, middle) < start)
			low = middle;
		else
			high = middle - 1;
	}
	while (!is_launch(timeline, device, low))
		low--;
	return low;
}
