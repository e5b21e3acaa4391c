/*
 * Times, ops and queues against plain reference implementations on random
 * traces, and the cases that a reader of the numbers would ask about.
 */
#include "trace_builder.h"

#include <math.h>

#include "analyze/order.h"
#include "analyze/timeline.h"
#include "random.h"

enum { HORIZON = 400 };

/* What runs in each us of a small world. */
struct world {
	int kernels[HORIZON], copies[HORIZON], collectives[HORIZON], others[HORIZON];
	int streams[HORIZON][3];
	int first, last;
	int64_t kernel_sum;
};

static void world_add(struct world *world, int stream, int start, int end, bool copy,
		      bool collective)
{
	if (start < world->first)
		world->first = start;
	if (end > world->last)
		world->last = end;
	for (int t = start; t < end; t++) {
		world->streams[t][stream]++;
		(copy ? world->copies : world->kernels)[t]++;
		if (!copy)
			(collective ? world->collectives : world->others)[t]++;
	}
	if (!copy)
		world->kernel_sum += end - start;
}

static void random_ops(struct trace *trace, struct world *world)
{
	int count = 1 + (int)random_below(25);

	world->first = HORIZON;
	for (int i = 0; i < count; i++) {
		int start = (int)random_below(HORIZON - 40), end = start + (int)random_below(40);
		int stream = (int)random_below(3);
		bool copy = random_below(4) == 0, collective = random_below(4) == 0;
		uint64_t id = 0;

		if (random_below(5)) {
			int64_t called = random_below(start + 1);

			id = trace_call(trace, 1 + random_below(2), "cudaLaunchKernel", called,
					called + 1 + random_below(30));
		}
		if (copy)
			trace_copy(trace, stream, COPY_HTOD, random_below(3), 10, start, end, id);
		else
			trace_kernel(trace, stream, collective ? "ncclDevKernel_X" : "k", start,
				     end, id);
		world_add(world, stream, start, end, copy, !copy && collective);
	}
	for (int i = 0; i < 12; i++) {
		int64_t start = random_below(HORIZON), end = start + random_below(60);

		trace_host(trace, 1 + random_below(2), random_below(2) ? CALL_OP : CALL_PYTHON,
			   random_below(2) ? "f" : "g", start, end);
	}
	for (int i = 0; i < 4; i++) {
		int64_t start = random_below(HORIZON);

		trace_call(trace, 1 + random_below(2), "cudaStreamSynchronize", start,
			   start + random_below(30));
	}
}

static void check_world(const struct world *world, const struct device_fact *device)
{
	int64_t busy = 0, kernel = 0, copy = 0, both = 0, streams = 0, collective = 0, hidden = 0;

	for (int t = 0; t < HORIZON; t++) {
		int running = 0;

		for (int s = 0; s < 3; s++)
			running += world->streams[t][s] > 0;
		busy += running > 0;
		streams += running > 1;
		kernel += world->kernels[t] > 0;
		copy += world->copies[t] > 0;
		both += world->copies[t] > 0 && world->kernels[t] > 0;
		collective += world->collectives[t] > 0;
		hidden += world->collectives[t] > 0 && world->others[t] > 0;
	}
	cr_assert_eq(device->busy_ns, busy * 1000);
	cr_assert_eq(device->kernel_ns, kernel * 1000);
	cr_assert_eq(device->copy_ns, copy * 1000);
	cr_assert_eq(device->copy_overlap_ns, both * 1000);
	cr_assert_eq(device->stream_overlap_ns, streams * 1000);
	cr_assert_eq(device->collective_ns, collective * 1000);
	cr_assert_eq(device->collective_hidden_ns, hidden * 1000);
	cr_assert_eq(device->span_ns, (world->last - world->first) * 1000);
	cr_assert_eq(device->idle_ns, device->span_ns - device->busy_ns);
	cr_assert_eq(device->compute_idle_ns, device->span_ns - device->kernel_ns);
	cr_assert_eq(device->kernel_sum_ns, world->kernel_sum * 1000);
	cr_assert_eq(device->before_ns + device->span_ns + device->after_ns, device->window_ns);
}

Test(timeline, unions_and_overlaps_agree_with_counting_every_instant)
{
	for (random_state = 1; random_state < 300;) {
		uint64_t seed = random_state;
		struct world world = { 0 };
		struct trace trace = trace_new();

		random_ops(&trace, &world);
		check_world(&world, trace_analyze(&trace));
		trace_done(&trace);
		random_state = seed + 1;
	}
}

Test(timeline, every_idle_ns_has_exactly_one_cause)
{
	for (random_state = 1000; random_state < 1300;) {
		uint64_t seed = random_state;
		struct world world = { 0 };
		struct trace trace = trace_new();
		const struct device_fact *device;
		int64_t sum = 0;

		random_ops(&trace, &world);
		device = trace_analyze(&trace);
		for (int i = 0; i < IDLE_COUNT; i++) {
			const struct idle_fact *idle = &device->idle[i];
			int64_t during = 0;

			for (size_t k = 0; k < idle->during.count; k++)
				during += idle->during.at[k].ns;
			cr_assert_leq(during, idle->ns);
			cr_assert_geq(idle->ns, idle->longest_ns);
			cr_assert_eq(idle->ns > 0, idle->count > 0);
			sum += idle->ns;
		}
		cr_assert_eq(sum, device->idle_ns, "seed %llu", (unsigned long long)seed);
		trace_done(&trace);
		random_state = seed + 1;
	}
}

/* Most that is launched and not yet started, at every us. */
Test(timeline, queue_depth_agrees_with_counting)
{
	for (random_state = 2000; random_state < 2200;) {
		uint64_t seed = random_state;
		struct trace trace = trace_new();
		const struct device_fact *device;
		int depth[HORIZON] = { 0 }, most = 0, count = 1 + (int)random_below(20);
		int64_t sum = 0;

		for (int i = 0; i < count; i++) {
			int called = (int)random_below(200), start = called + (int)random_below(60);
			uint64_t id = trace_call(&trace, 1 + random_below(3), "cudaLaunchKernel",
						 called, called + 4);

			trace_kernel(&trace, random_below(2), "k", start, start + random_below(20),
				     id);
			for (int t = called + 4; t < start; t++)
				depth[t]++;
			sum += start > called + 4 ? start - called - 4 : 0;
		}
		for (int t = 0; t < HORIZON; t++)
			most = depth[t] > most ? depth[t] : most;
		device = trace_analyze(&trace);
		cr_assert_eq(device->queue_max, most, "seed %llu: %lld %d",
			     (unsigned long long)seed, (long long)device->queue_max, most);
		if (device->span_ns)
			cr_assert_float_eq(device->queue_mean,
					   (double)sum * 1000 / (double)device->span_ns, 1e-9);
		trace_done(&trace);
		random_state = seed + 1;
	}
}

struct reference_op {
	int name, start, end, parent;
};

/* Ops that nest, at random: children lie in their parents, siblings apart. */
static int nest(struct reference_op *ops, int count, int parent, int from, int to)
{
	while (to - from > 4 && count < 60) {
		int start = from + (int)random_below(4),
		    end = start + 2 + (int)random_below(to - start);

		if (end > to)
			end = to;
		if (end <= start)
			break;
		ops[count] = (struct reference_op){ (int)random_below(4), start, end, parent };
		count = nest(ops, count + 1, count, start, end);
		from = end;
	}
	return count;
}

static bool inside_same(const struct reference_op *ops, int i)
{
	for (int p = ops[i].parent; p >= 0; p = ops[p].parent)
		if (ops[p].name == ops[i].name)
			return true;
	return false;
}

static const struct op_fact *op_named(const struct trace *trace, const char *name)
{
	for (size_t i = 0; i < trace->facts->ops.count; i++)
		if (!strcmp(session_text(trace->store->session, trace->facts->ops.at[i].name),
			    name))
			return &trace->facts->ops.at[i];
	return NULL;
}

Test(timeline, self_and_total_times_agree_with_the_tree_they_came_from)
{
	static const char *const names[] = { "a", "b", "c", "d" };

	for (random_state = 3000; random_state < 3200;) {
		uint64_t seed = random_state;
		struct trace trace = trace_new();
		struct reference_op ops[64];
		int64_t self[4] = { 0 }, total[4] = { 0 }, gpu_self[4] = { 0 }, gpu[4] = { 0 };
		int count = nest(ops, 0, -1, 0, HORIZON);

		for (int i = 0; i < count; i++) {
			bool seen[4] = { false };
			int64_t gpu_us = random_below(20);
			uint64_t id;

			trace_host(&trace, 1, CALL_OP, names[ops[i].name], ops[i].start,
				   ops[i].end);
			self[ops[i].name] += ops[i].end - ops[i].start;
			if (ops[i].parent >= 0)
				self[ops[ops[i].parent].name] -= ops[i].end - ops[i].start;
			if (!inside_same(ops, i))
				total[ops[i].name] += ops[i].end - ops[i].start;
			/* A launch at the very end, where no child can be. */
			if (i + 1 < count && ops[i + 1].parent == i)
				continue;
			id = trace_call(&trace, 1, "cudaLaunchKernel", ops[i].end - 1, ops[i].end);
			trace_kernel(&trace, 1, "k", 500 + 20 * i, 500 + 20 * i + gpu_us, id);
			gpu_self[ops[i].name] += gpu_us;
			for (int p = i; p >= 0; p = ops[p].parent) {
				gpu[ops[p].name] += seen[ops[p].name] ? 0 : gpu_us;
				seen[ops[p].name] = true;
			}
		}
		trace_analyze(&trace);
		for (int n = 0; n < 4; n++) {
			const struct op_fact *fact = op_named(&trace, names[n]);

			if (!fact)
				continue;
			cr_assert_eq(fact->cpu_self_ns, self[n] * 1000, "seed %llu",
				     (unsigned long long)seed);
			cr_assert_eq(fact->cpu_total_ns, total[n] * 1000);
			cr_assert_eq(fact->gpu_self_ns, gpu_self[n] * 1000);
			cr_assert_eq(fact->gpu_total_ns, gpu[n] * 1000);
		}
		trace_done(&trace);
		random_state = seed + 1;
	}
}

Test(timeline, a_long_jump_of_correlations_does_not_hinder_the_join)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	for (int i = 0; i < 20; i++) {
		trace_launch(&trace, 1, 50 * i, 50 * i + 10, 50 * i + 20);
		trace.correlation = trace.correlation * 3 + 1000000007u;
	}
	device = trace_analyze(&trace);
	cr_assert_eq(device->unmatched_ops, 0);
	cr_assert_eq(device->launch_count, 20);
	cr_assert_eq(device->launch_gap_p50_ns, 50000);
	cr_assert_eq(device->delay_p50_ns, 5000);
	trace_done(&trace);
}

Test(timeline, kernels_of_one_stream_that_overlap_are_busy_once)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	trace_kernel(&trace, 7, "first", 0, 100, 0);
	trace_kernel(&trace, 7, "dependent launch", 90, 150, 0);
	device = trace_analyze(&trace);
	cr_assert_eq(device->kernel_sum_ns, 160000);
	cr_assert_eq(device->kernel_ns, 150000);
	cr_assert_eq(device->stream_overlap_ns, 0);
	trace_done(&trace);
}

Test(timeline, times_at_the_ends_of_int64_do_not_overflow)
{
	struct trace trace = trace_new();
	uint32_t stream = trace_stream(&trace, 1);
	int64_t edges[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX };

	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++) {
		struct op op = { .kind = OP_KERNEL, .lane = stream, .bytes = EVENT_UNKNOWN };
		struct memory_row *row;

		sink_op(&trace.store->sink, &op, NULL);
		row = &trace.store->rows.at[trace.store->rows.count - 1];
		row->col[COL_start] = edges[i];
		row->col[COL_duration] = edges[(i + 3) % 7];
	}
	cr_assert_geq(trace_analyze(&trace)->busy_ns, 0);
	trace_done(&trace);
}

static void collective(struct trace *trace, const char *detail, int64_t start_us, int64_t end_us)
{
	struct session *session = trace->store->session;
	struct kernel_key key = { .name = trace_text(trace, "ncclDevKernel_AllReduce()"),
				  .shared_bytes = -1 };
	struct op op = { .kind = OP_KERNEL,
			 .lane = trace_stream(trace, 9),
			 .start_ns = start_us * 1000,
			 .end_ns = end_us * 1000,
			 .name = key.name,
			 .key = session_key(session, &key),
			 .bytes = EVENT_UNKNOWN,
			 .detail = session_detail(session, detail, strlen(detail)) };

	sink_op(&trace->store->sink, &op, NULL);
}

Test(timeline, a_collective_is_suspect_beyond_the_quickest_of_its_size_or_larger)
{
	struct trace trace = trace_new();
	const char *small = "Collective name=allreduce;In msg nelems=100;dtype=Float";
	const char *large = "Collective name=allreduce;In msg nelems=900;dtype=Float";

	trace_kernel(&trace, 7, "gemm", 0, 100, 0);
	collective(&trace, small, 100, 150);
	collective(&trace, small, 200, 290);
	collective(&trace, large, 300, 320);
	collective(&trace, large, 400, 425);
	cr_assert_eq(trace_analyze(&trace)->collective_suspect_ns, (30 + 70 + 0 + 5) * 1000);
	trace_done(&trace);
}

Test(timeline, collectives_keep_their_sizes_where_chunks_of_a_stream_overlap)
{
	struct trace trace = trace_new();
	const char *small = "Collective name=allreduce;In msg nelems=100;dtype=Float";
	const char *large = "Collective name=allreduce;In msg nelems=900;dtype=Float";

	collective(&trace, small, 100, 150);
	collective(&trace, small, 200, 290);
	collective(&trace, large, 300, 320);
	collective(&trace, large, 400, 425);
	collective(&trace, large, 900, 930);
	/* The next chunk of the memory store. */
	collective(&trace, small, 500, 505);
	collective(&trace, large, 600, 640);
	cr_assert_eq(trace_analyze(&trace)->collective_suspect_ns,
		     (45 + 85 + 0 + 0 + 5 + 10 + 20) * 1000);
	trace_done(&trace);
}

/* Another rank, on a device and a stream of its own, whose clock is ahead. */
static void rank_begins(struct trace *trace, int64_t rank)
{
	struct session *session = trace->store->session;
	struct device device = { .scope = DEVICE_OF_SOURCE, .ordinal = rank };

	if (rank)
		trace->source = session_source(session, "kineto", "other.json");
	session->sources.at[trace->source].rank = rank;
	session->sources.at[trace->source].world_size = 2;
	device.source = trace->source;
	trace->device = session_device(session, &device);
}

Test(timeline, a_rank_waits_from_its_own_start_to_the_latest_whatever_its_clock_shows)
{
	enum { AHEAD = 5000 };
	const char *detail = "Collective name=allreduce;In msg nelems=9;Group size=2;dtype=Float";
	struct trace trace = trace_new();
	uint32_t first;

	rank_begins(&trace, 0);
	first = trace.device;
	for (int i = 0; i < 4; i++)
		collective(&trace, detail, 1000 * i + 100, 1000 * i + 600);
	/* Of the first wait 50 us are hidden under other work. */
	trace_kernel(&trace, 7, "gemm", 150, 200, 0);
	rank_begins(&trace, 1);
	for (int i = 0; i < 4; i++)
		collective(&trace, detail, AHEAD + 1000 * i + 500, AHEAD + 1000 * i + 600);
	trace_analyze(&trace);
	cr_assert_eq(trace.facts->devices.at[first].waiting_ns, (4 * 400 - 50) * 1000);
	cr_assert_eq(trace.facts->devices.at[trace.device].waiting_ns, 0);
	cr_assert_eq(trace.facts->devices.at[first].working_ns,
		     trace.facts->devices.at[first].busy_ns - 1550 * 1000);
	trace_done(&trace);
}

Test(timeline, with_a_rank_missing_waiting_is_unknown)
{
	const char *detail = "Collective name=allreduce;In msg nelems=9;Group size=3;dtype=Float";
	struct trace trace = trace_new();

	for (int rank = 0; rank < 2; rank++) {
		rank_begins(&trace, rank);
		for (int i = 0; i < 4; i++)
			collective(&trace, detail, 1000 * i + 100 * rank, 1000 * i + 600);
	}
	cr_assert_eq(trace_analyze(&trace)->waiting_ns, FACT_UNKNOWN);
	trace_done(&trace);
}

Test(timeline, without_sizes_nothing_is_suspected)
{
	struct trace trace = trace_new();

	collective(&trace, "", 100, 150);
	collective(&trace, "", 200, 290);
	cr_assert_eq(trace_analyze(&trace)->collective_suspect_ns, FACT_UNKNOWN);
	trace_done(&trace);
}

Test(timeline, a_trace_without_device_work_says_so)
{
	struct trace trace = trace_new();

	trace_host(&trace, 1, CALL_OP, "aten::mm", 0, 100);
	trace_analyze(&trace);
	cr_assert(trace.facts->has_timeline);
	cr_assert(trace.facts->no_device_activity);
	cr_assert_not(trace.facts->devices.at[0].has_timeline);
	trace_done(&trace);
}

Test(timeline, a_tiny_copy_is_a_readback_only_if_the_host_waits)
{
	for (int waits = 0; waits < 2; waits++) {
		struct trace trace = trace_new();
		uint64_t id;

		trace_host(&trace, 1, CALL_OP, "aten::item", 95, 140);
		trace_host(&trace, 1, CALL_OP, "aten::_local_scalar_dense", 96, 139);
		trace_launch(&trace, 1, 0, 10, 100);
		id = trace_call(&trace, 1, "cudaMemcpyAsync", 100, 110);
		trace_copy(&trace, 7, COPY_DTOH, HOST_MEMORY_PINNED, 4, 112, 114, id);
		if (waits)
			trace_call(&trace, 1, "cudaStreamSynchronize", 111, 130);
		trace_launch(&trace, 1, 150, 160, 200);
		trace_analyze(&trace);
		cr_assert_eq(trace.facts->readbacks.count, (size_t)waits);
		if (waits) {
			const struct readback_fact *at = &trace.facts->readbacks.at[0];

			cr_assert_eq(at->blocked_ns, (10 + 19) * 1000);
			cr_assert_eq(at->idle_ns, (160 - 114) * 1000);
			cr_assert_str_eq(session_text(trace.store->session, at->op), "aten::item");
			cr_assert(isnan(at->per_step));
		}
		trace_done(&trace);
	}
}

Test(timeline, steps_that_stand_out_say_what_differs)
{
	struct trace trace = trace_new();
	int64_t at = 0;

	for (int i = 0; i < 8; i++) {
		int64_t length = i == 5 ? 4000 : 1000 + 10 * i;

		trace_range(&trace, 1, RANGE_STEP, "ProfilerStep#1", at, at + length);
		trace_launch(&trace, 1, at + 10, at + 20, at + 520);
		if (i == 5)
			trace_range(&trace, 1, RANGE_USER, "data loading", at + 600, at + 3600);
		at += length;
	}
	trace_analyze(&trace);
	cr_assert_eq(trace.facts->steps.step.count, 8);
	cr_assert_str_eq(trace.facts->steps.source, "profiler steps");
	cr_assert_eq(trace.facts->steps.p99_ns, 4000 * 1000);
	for (int i = 0; i < 8; i++) {
		const struct step *step = &trace.facts->steps.step.at[i];

		cr_assert_eq(step->outlier, i == 5);
		cr_assert_eq(step->gpu_busy_ns, 500 * 1000);
		cr_assert_eq(step->kernel_count, 1);
	}
	cr_assert_eq(trace.facts->steps.step.at[5].differs.count, 2);
	cr_assert_str_eq(trace.facts->steps.step.at[5].differs.at[0], "loader 3.00 ms more");
	trace_done(&trace);
}

Test(timeline, a_repeated_range_serves_for_steps)
{
	struct trace trace = trace_new();

	for (int i = 0; i < 5; i++) {
		trace_range(&trace, 1, RANGE_USER, "iteration", 1000 * i, 1000 * i + 900);
		trace_range(&trace, 1, RANGE_USER, "inner", 1000 * i + 10, 1000 * i + 880);
		trace_launch(&trace, 1, 1000 * i + 20, 1000 * i + 30, 1000 * i + 40);
	}
	trace_analyze(&trace);
	cr_assert_eq(trace.facts->steps.step.count, 5);
	cr_assert_str_eq(session_text(trace.store->session, trace.facts->steps.name), "iteration");
	cr_assert_eq(trace.facts->steps.p50_ns, 900 * 1000);
	trace_done(&trace);
}

Test(timeline, phases_come_from_names_of_the_framework_and_of_ranges)
{
	cr_assert_eq(phase_of_name("enumerate(DataLoader)#_Iter.__next__", false), PHASE_LOADER);
	cr_assert_eq(phase_of_name("Optimizer.step#Adam.step", true), PHASE_OPTIMIZER);
	cr_assert_eq(phase_of_name("My Forward-pass", true), PHASE_FORWARD);
	cr_assert_eq(phase_of_name("My Forward-pass", false), PHASE_OTHER);
	cr_assert_eq(phase_of_name("straightforward", true), PHASE_OTHER);
	cr_assert_eq(phase_of_name("train/data_loading", true), PHASE_LOADER);
}

/* Two threads wait at once: that is one wait. What lies outside of the span is none. */
Test(timeline, the_host_waits_as_one)
{
	struct trace trace = trace_new();

	(void)trace_call(&trace, 2, "cudaDeviceSynchronize", 0, 50);
	trace_launch(&trace, 1, 90, 100, 200);
	(void)trace_call(&trace, 1, "cudaStreamSynchronize", 120, 210);
	(void)trace_call(&trace, 2, "cudaDeviceSynchronize", 150, 260);
	(void)trace_call(&trace, 1, "cudaMemcpyAsync", 300, 350);
	trace_launch(&trace, 1, 480, 500, 600);
	(void)trace_call(&trace, 1, "cudaDeviceSynchronize", 590, 900);
	cr_assert_eq(trace_analyze(&trace)->host_wait_ns, (260 - 120 + 10) * 1000);
	trace_done(&trace);
}

/* A thread that captures launches into a graph; another does not. One launch is lost. */
Test(timeline, launches_into_a_graph_that_is_captured_have_no_operation_to_lose)
{
	struct trace trace = trace_new();

	(void)trace_call(&trace, 1, "cudaStreamBeginCapture", 100, 101);
	(void)trace_call(&trace, 1, "cudaLaunchKernel", 110, 112);
	(void)trace_call(&trace, 1, "cudaLaunchKernel", 120, 122);
	(void)trace_call(&trace, 2, "cudaLaunchKernel", 125, 126);
	(void)trace_call(&trace, 1, "cudaStreamEndCapture", 130, 131);
	trace_launch(&trace, 1, 200, 210, 220);
	trace_analyze(&trace);
	cr_assert_eq(trace.facts->captured_calls, 2);
	cr_assert_eq(trace.facts->unmatched_calls, 1);
	trace_done(&trace);
}

Test(timeline, what_is_of_no_phase_has_no_time_of_its_own)
{
	struct trace trace = trace_new();

	trace_range(&trace, 1, RANGE_USER, "forward", 0, 100);
	trace_launch(&trace, 1, 10, 20, 30);
	trace_launch(&trace, 1, 200, 210, 220);
	trace_analyze(&trace);
	cr_assert_eq(trace.facts->phases.count, 2);
	cr_assert_eq(trace.facts->phases.at[0].wall_ns, 100 * 1000);
	cr_assert_eq(trace.facts->phases.at[1].phase, PHASE_OTHER);
	cr_assert_eq(trace.facts->phases.at[1].wall_ns, FACT_UNKNOWN);
	trace_done(&trace);
}

Test(timeline, synchronising_calls_are_known_in_all_their_versions)
{
	cr_assert(sync_call_name("cudaStreamSynchronize_ptsz"));
	cr_assert(sync_call_name("cuMemcpyDtoH_v2"));
	cr_assert(sync_call_name("cudaMemcpy"));
	cr_assert_not(sync_call_name("cudaMemcpyAsync"));
	cr_assert_not(sync_call_name("cudaMemcpy2DAsync"));
	cr_assert_not(sync_call_name("cudaStreamSynchronizer"));
}

Test(timeline, quantiles_are_exact_for_few_and_close_for_many)
{
	struct quantiles few = { 0 }, many = { 0 };

	for (int64_t i = 1; i <= 1000; i++)
		quantiles_add(&few, (i * 379) % 1001);
	cr_assert_eq(quantiles_get(&few, 0.5), 500);
	cr_assert_eq(quantiles_get(&few, 0.95), 950);
	cr_assert_eq(quantiles_get(&few, 1), 1000);
	for (int64_t i = 1; i <= 200000; i++)
		quantiles_add(&many, (i * 7919) % 200001);
	cr_assert_float_eq((double)quantiles_get(&many, 0.5), 100000, 100);
	quantiles_add(&many, INT64_MAX);
	cr_assert_gt(quantiles_get(&many, 1), INT64_MAX / 2);
	quantiles_done(&few);
	quantiles_done(&many);
}
