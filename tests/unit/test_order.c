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
		int64_t start[COUNT], ns[COUNT];
		struct spans spans = { 0 };

		spans_room(&spans, 0, COUNT);
		for (uint32_t i = 0; i < COUNT; i++) {
			list[i] = i;
			start[i] = random_below(50);
			ns[i] = random_below(10);
		}
		spans_put_many(&spans, 0, start, 0, ns, COUNT);
		order_sort(list, COUNT, &spans, true);
		spans_done(&spans);
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
		uint32_t whole[COUNT], by_part[COUNT];
		struct spans spans = { 0 };
		int64_t now = 0;
		struct order_part *parts;
		size_t count;

		random_state = seed;
		spans_room(&spans, 0, COUNT);
		for (uint32_t i = 0; i < COUNT; i++) {
			whole[i] = by_part[i] = i;
			/* Few or many steps back, short or long ones. */
			now += random_below((int64_t)seed % 40 + 2) ? random_below(20)
								    : -random_below(60);
			spans_put(&spans, i, now, random_below(3));
		}
		order_sort(whole + 10, COUNT - 20, &spans, true);
		count = order_parts(&spans, 10, COUNT - 10, &parts);
		in_place += COUNT - 20;
		for (size_t p = 0; p < count; p++) {
			cr_assert_lt(parts[p].first, parts[p].last);
			cr_assert(!p || parts[p - 1].last <= parts[p].first);
			in_place -= parts[p].last - parts[p].first;
			order_sort(by_part + parts[p].first, parts[p].last - parts[p].first, &spans,
				   true);
		}
		cr_assert_arr_eq(whole, by_part, sizeof(whole));
		free(parts);
		spans_done(&spans);
	}
	cr_assert_gt(in_place, 100 * COUNT);
}

static int64_t odd_time(void)
{
	static const int64_t odd[] = { 0, SPAN_FAR - 1, SPAN_FAR, INT64_MAX / 4 };

	return odd[random_below(4)] + random_below(3);
}

/* Starts that jump, and events that last: what 32 bits can't hold. */
Test(order, spans_keep_what_was_put)
{
	enum { COUNT = 2000, FIRST = 700 };

	for (random_state = 1; random_state < 100; random_state++) {
		int64_t start[COUNT], ns[COUNT], now = 0;
		struct spans spans = { 0 };

		spans_room(&spans, 0, FIRST);
		for (int i = 0; i < COUNT; i++) {
			now = random_below(50) ? now + random_below(1000) : odd_time() - odd_time();
			start[i] = now;
			ns[i] = random_below(20) ? random_below(100) : odd_time();
		}
		for (size_t i = 0; i < 100; i++)
			spans_put(&spans, i, start[i] + 5, ns[i]);
		spans_put_many(&spans, 100, start + 100, 5, ns + 100, FIRST - 100);
		spans_room(&spans, FIRST, COUNT);
		spans_put_many(&spans, FIRST, start + FIRST, 5, ns + FIRST, COUNT - FIRST);
		/* Again, elsewhere in their blocks. */
		for (size_t i = 0; i < 50; i++)
			spans_put(&spans, i, start[i] - SPAN_FAR, ns[i]);
		for (size_t i = 0; i < COUNT; i++) {
			int64_t moved = i < 50 ? -(int64_t)SPAN_FAR : 5;

			cr_assert_eq(spans_start(&spans, i), start[i] + moved);
			cr_assert_eq(spans_ns(&spans, i), ns[i]);
			cr_assert_eq(spans_end(&spans, i), start[i] + moved + ns[i]);
		}
		spans_done(&spans);
	}
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
		cr_assert(!count ||
			  call_start(calls, in_order[count - 1]) < call_start(calls, call) ||
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
		cr_assert_eq(launches_before(timeline, &timeline->devices[device], &hint, asked,
					     call_start(calls, asked)),
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
