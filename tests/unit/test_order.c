/*
 * Orders of many events, and the launches of a device in order, against plain
 * reference implementations.
 */
#include "analyze/order.h"
#include "analyze/timeline.h"
#include "random.h"
#include "trace_builder.h"

Test(order, indices_are_sorted_by_start_then_longest_first)
{
	for (random_state = 4000; random_state < 4100;) {
		uint64_t seed = random_state;
		enum { COUNT = 200 };
		uint32_t list[COUNT];
		int64_t start[COUNT];
		uint32_t ns[COUNT];
		struct lengths lengths = { .at = ns };

		for (uint32_t i = 0; i < COUNT; i++) {
			list[i] = i;
			start[i] = random_below(50);
			lengths_put(&lengths, i, random_below(10));
		}
		order_sort(list, COUNT, start, &lengths);
		for (int i = 1; i < COUNT; i++) {
			uint32_t a = list[i - 1], b = list[i];

			cr_assert(start[a] < start[b] ||
				  (start[a] == start[b] &&
				   (ns[a] > ns[b] || (ns[a] == ns[b] && a < b))));
		}
		random_state = seed + 1;
	}
}

Test(order, parts_that_are_out_of_order_are_sorted_each_for_itself)
{
	enum { COUNT = 300 };
	size_t in_place = 0;

	for (uint64_t seed = 5000; seed < 5300; seed++) {
		uint32_t whole[COUNT], by_part[COUNT], ns[COUNT];
		int64_t start[COUNT], now = 0;
		struct lengths lengths = { .at = ns };
		struct order_part *parts;
		size_t count;

		random_state = seed;
		for (uint32_t i = 0; i < COUNT; i++) {
			whole[i] = by_part[i] = i;
			/* Few or many steps back, short or long ones. */
			now += random_below((int64_t)seed % 40 + 2) ? random_below(20)
								    : -random_below(60);
			start[i] = now;
			lengths_put(&lengths, i, random_below(3));
		}
		order_sort(whole + 10, COUNT - 20, start, &lengths);
		count = order_parts(start, &lengths, 10, COUNT - 10, &parts);
		in_place += COUNT - 20;
		for (size_t p = 0; p < count; p++) {
			cr_assert_lt(parts[p].first, parts[p].last);
			cr_assert(!p || parts[p - 1].last <= parts[p].first);
			in_place -= parts[p].last - parts[p].first;
			order_sort(by_part + parts[p].first, parts[p].last - parts[p].first, start,
				   &lengths);
		}
		cr_assert_arr_eq(whole, by_part, sizeof(whole));
		free(parts);
	}
	cr_assert_gt(in_place, 100 * COUNT);
}

Test(order, lengths_beyond_32_bits_are_kept)
{
	uint32_t at[4];
	const int64_t ns[4] = { 0, LENGTH_LONGER - 1, LENGTH_LONGER, INT64_MAX };
	struct lengths lengths = { .at = at };

	for (size_t i = 0; i < 4; i++)
		lengths_put(&lengths, i, ns[i]);
	for (size_t i = 0; i < 4; i++)
		cr_assert_eq(lengths_get(&lengths, i), ns[i]);
	cr_assert_eq(lengths.longer.count, 2);
	VEC_DONE(&lengths.longer);
}

static void random_launches(struct trace *trace, uint32_t other_device)
{
	int64_t threads = 1 + random_below(12), polls = random_below(4) * 10;
	uint32_t device = trace->device;

	for (int i = 0; i < 80; i++) {
		int64_t start = random_below(200), thread = random_below(threads);
		uint64_t id = trace_call(trace, thread, "cudaLaunchKernel", start, start + 1);

		trace->device = random_below(3) ? device : other_device;
		if (random_below(4))
			trace_kernel(trace, trace->device == device ? 7 : 8, "k", start + 5,
				     start + 6, id);
		for (int64_t p = random_below(polls + 1); p > 0; p--)
			trace_call(trace, thread, "cudaEventQuery", start + 1, start + 2);
	}
	trace->device = device;
}

static void check_launches(struct timeline *timeline, uint32_t device)
{
	struct launch_walk walk = { .timeline = timeline, .device = &timeline->devices[device] };
	const struct tl_calls *calls = &timeline->calls;
	uint32_t in_order[80], call;
	size_t count = 0, launched = 0, hint = 0;

	while ((call = launches_next(&walk)) != TL_NONE) {
		cr_assert_lt(count, 80);
		cr_assert_eq(op_segment(timeline, calls->first_op[call])->device, device);
		cr_assert(!count || call_start(calls, in_order[count - 1]) < call_start(calls, call) ||
			  (call_start(calls, in_order[count - 1]) == call_start(calls, call) &&
			   in_order[count - 1] < call));
		in_order[count++] = call;
	}
	for (uint32_t i = 0; i < calls->count; i++)
		launched += calls->first_op[i] != TL_NONE &&
			    op_segment(timeline, calls->first_op[i])->device == device;
	cr_assert_eq(count, launched);
	cr_assert_eq(count, timeline->devices[device].launch_count);
	for (int i = 0; i < 200; i++) {
		uint32_t asked = (uint32_t)random_below((int64_t)calls->count), before = TL_NONE;

		for (size_t k = 0; k < count; k++)
			if (call_start(calls, in_order[k]) < call_start(calls, asked))
				before = in_order[k];
		cr_assert_eq(launches_before(timeline, &timeline->devices[device], &hint, asked),
			     before);
	}
}

Test(order, launches_of_a_device_follow_each_other_whatever_thread_they_are_of)
{
	for (uint64_t seed = 7000; seed < 7200; seed++) {
		struct trace trace = trace_new();
		struct session *session = trace.store->session;
		struct device device = { .scope = DEVICE_OF_SOURCE, .ordinal = 1 };
		struct timeline *timeline;
		struct err err = { 0 };

		random_state = seed;
		device.source = trace.source;
		random_launches(&trace, session_device(session, &device));
		timeline = timeline_new(session);
		cr_assert_eq(timeline_load_ops(timeline, trace.store, &err), 0);
		cr_assert_eq(timeline_load_calls(timeline, trace.store, &err), 0);
		timeline_join(timeline);
		timeline_devices(timeline);
		for (uint32_t d = 0; d < session->devices.count; d++)
			check_launches(timeline, d);
		timeline_free(timeline);
		trace_done(&trace);
	}
}
