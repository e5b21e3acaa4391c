#include "analyze/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static int kernels_by_sum(const void *a, const void *b)
{
	const struct kernel_fact *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns > y->sum_ns ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

static int calls_by_sum(const void *a, const void *b)
{
	const struct call_fact *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns > y->sum_ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Calls whose work on the device should be in the recording. */
static bool launch_name(const char *name)
{
	static const char *const starts[] = {
		"cudaLaunchKernel",          "cuLaunchKernel",        "cudaLaunchCooperativeKernel",
		"cuLaunchCooperativeKernel", "cudaGraphLaunch",       "cuGraphLaunch",
		"hipLaunchKernel",           "hipModuleLaunchKernel", "hipExtLaunchKernel",
		"hipExtModuleLaunchKernel",  "hipGraphLaunch"
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (str_starts(str_of(name), starts[i]))
			return true;
	return false;
}

static void call_facts(struct timeline *timeline, struct facts *facts)
{
	const struct session *session = timeline->session;
	const struct tl_calls *calls = &timeline->calls;
	uint32_t *slot = mem_zero((timeline->name_count + 1) * sizeof(*slot));
	VEC(int64_t) without_op = { 0 };

	for (size_t i = 0; i < calls->count; i++) {
		uint32_t name = call_name(calls, i);
		int64_t ns = call_ns(calls, i);
		struct call_fact *fact;

		if (!slot[name]) {
			fact = VEC_ADD(&facts->calls);
			fact->name = name;
			fact->synchronising = sync_call_name(session_text(session, name));
			*VEC_ADD(&without_op) = 0;
			slot[name] = (uint32_t)facts->calls.count;
		}
		fact = &facts->calls.at[slot[name] - 1];
		fact->count++;
		fact->sum_ns = capped_add(fact->sum_ns, ns);
		if (ns > fact->max_ns)
			fact->max_ns = ns;
		without_op.at[slot[name] - 1] += calls->first_op[i] == TL_NONE;
	}
	for (size_t i = 0; i < facts->calls.count; i++)
		if (launch_name(session_text(session, facts->calls.at[i].name)))
			facts->unmatched_calls += without_op.at[i];
	VEC_DONE(&without_op);
	free(slot);
	if (facts->calls.count)
		qsort(facts->calls.at, facts->calls.count, sizeof(*facts->calls.at), calls_by_sum);
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
	idle_facts(timeline, facts);
	step_facts_build(timeline, facts);
	readback_facts(timeline, facts);
	if (memory_facts(timeline, store, facts, err) < 0)
		return err->code;
	return block_facts(timeline, store, facts, err);
}
