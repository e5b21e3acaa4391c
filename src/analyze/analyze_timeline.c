#include "analyze/timeline.h"

#include <stdlib.h>

static int kernels_by_sum(const void *a, const void *b)
{
	const struct kernel_fact *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns > y->sum_ns ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

static void whole(struct timeline *timeline, struct facts *facts)
{
	const struct session *session = timeline->session;
	bool first = true;

	for (uint32_t i = 0; i < session->sources.count; i++) {
		const struct source *source = &session->sources.at[i];
		int64_t start = timeline->window_start[i], end = timeline->window_end[i];

		facts->host_time_inflated |= source->with_stack;
		if (start > end)
			continue;
		if (first || start < facts->start_ns)
			facts->start_ns = start;
		if (first || end > facts->end_ns)
			facts->end_ns = end;
		first = false;
	}
	for (size_t i = 0; i < facts->devices.count; i++)
		facts->unmatched_ops += facts->devices.at[i].unmatched_ops;
	facts->has_timeline = timeline->ops.count || timeline->calls.count ||
			      timeline->lanes.count || timeline->ranges.count;
	facts->no_device_activity = facts->has_timeline && !timeline->ops.count;
}

int analyze_timeline(struct store *store, struct facts *facts, struct err *err)
{
	struct timeline *timeline = timeline_new(facts->session);

	facts->timeline = timeline;
	if (timeline_load_ops(timeline, store, err) < 0 ||
	    timeline_load_calls(timeline, store, err) < 0)
		return err->code;
	timeline_join(timeline);
	timeline_devices(timeline);
	if (frames_load(timeline, store, err) < 0)
		return err->code;
	pauses_settle(timeline);
	device_times(timeline, facts);
	whole(timeline, facts);
	/* It may be what can't be read. */
	facts->no_device_activity = facts->no_device_activity && !store_damage(store);
	call_facts(timeline, facts);
	if (collective_facts(timeline, store, facts, err) < 0)
		return err->code;
	if (facts->kernels.count)
		qsort(facts->kernels.at, facts->kernels.count, sizeof(*facts->kernels.at),
		      kernels_by_sum);
	return 0;
}

int analyze_host(struct store *store, struct facts *facts, struct err *err)
{
	struct timeline *timeline = facts->timeline;

	host_ops(timeline, facts);
	setup_facts(timeline, facts);
	rank_steady(timeline, facts);
	idle_facts(timeline, facts);
	step_facts_build(timeline, facts);
	readback_facts(timeline, facts);
	if (memory_facts(timeline, store, facts, err) < 0)
		return err->code;
	return block_facts(timeline, store, facts, err);
}
