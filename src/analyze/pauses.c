/*
 * When recording was off between its windows (--calibrate, several --capture-range):
 * what the device and the host did then is not known, so it is neither idle nor busy
 * and in no span. Of a device it is the time in which some source of its work was off.
 */
#include "analyze/timeline.h"

#include <stdlib.h>

static void settle(struct pauses *pauses)
{
	int64_t sum_ns = 0;

	pauses->count = interval_union(pauses->at, pauses->count);
	pauses->before_ns = mem_alloc((pauses->count + 1) * sizeof(*pauses->before_ns));
	for (size_t i = 0; i < pauses->count; i++) {
		pauses->before_ns[i] = sum_ns;
		sum_ns += pauses->at[i].end - pauses->at[i].start;
	}
}

static void add_source(struct pauses *pauses, const struct pauses *of)
{
	pauses->at = mem_resize(pauses->at, (pauses->count + of->count) * sizeof(*pauses->at));
	for (size_t i = 0; i < of->count; i++)
		pauses->at[pauses->count++] = of->at[i];
}

static void device_pauses(struct timeline *timeline, uint32_t device, uint32_t *seen_for)
{
	struct pauses *pauses = &timeline->devices[device].pauses;

	for (size_t i = 0; i < timeline->ops.segments.count; i++) {
		const struct tl_segment *segment = &timeline->ops.segments.at[i];

		if (segment->device != device || seen_for[segment->source] == device + 1)
			continue;
		seen_for[segment->source] = device + 1;
		if (timeline->pauses[segment->source].count)
			add_source(pauses, &timeline->pauses[segment->source]);
	}
	if (pauses->count)
		settle(pauses);
}

void pauses_settle(struct timeline *timeline)
{
	const struct session *session = timeline->session;
	uint32_t *seen_for;
	size_t *room;
	bool any = false;

	timeline->pauses = mem_zero((session->sources.count + 1) * sizeof(*timeline->pauses));
	room = mem_zero((session->sources.count + 1) * sizeof(*room));
	for (size_t i = 0; i < timeline->ranges.count; i++) {
		const struct tl_range *range = &timeline->ranges.at[i];
		struct pauses *pauses = &timeline->pauses[range->source];

		if (range->kind != RANGE_PAUSED)
			continue;
		any = true;
		if (pauses->count == room[range->source]) {
			room[range->source] += room[range->source] / 2 + 16;
			pauses->at =
				mem_resize(pauses->at, room[range->source] * sizeof(*pauses->at));
		}
		pauses->at[pauses->count++] = (struct interval){ range->start, range->end };
	}
	free(room);
	if (!any)
		return;
	for (size_t i = 0; i < session->sources.count; i++)
		if (timeline->pauses[i].count)
			settle(&timeline->pauses[i]);
	seen_for = mem_zero((session->sources.count + 1) * sizeof(*seen_for));
	for (uint32_t i = 0; i < session->devices.count; i++)
		if (timeline->devices[i].count)
			device_pauses(timeline, i, seen_for);
	free(seen_for);
}

void pauses_done(struct pauses *pauses)
{
	free(pauses->at);
	free(pauses->before_ns);
}

/* How many begin at or before the time. */
static size_t begun(const struct pauses *pauses, int64_t time_ns)
{
	size_t low = 0, high = pauses->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pauses->at[middle].start <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int64_t pauses_before(const struct pauses *pauses, int64_t time_ns)
{
	size_t count = begun(pauses, time_ns);
	const struct interval *last = count ? &pauses->at[count - 1] : NULL;

	if (!last)
		return 0;
	return pauses->before_ns[count - 1] + (time_ns < last->end ? time_ns : last->end) -
	       last->start;
}

bool pauses_at(const struct pauses *pauses, int64_t time_ns, int64_t *ret_until_ns)
{
	size_t count = begun(pauses, time_ns);

	if (count && pauses->at[count - 1].end > time_ns) {
		*ret_until_ns = pauses->at[count - 1].end;
		return true;
	}
	*ret_until_ns = count < pauses->count ? pauses->at[count].start : INT64_MAX;
	return false;
}
