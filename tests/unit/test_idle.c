#include "trace_builder.h"

#include <math.h>

static int64_t idle_us(const struct device_fact *device, enum idle_cause cause)
{
	cr_assert_eq(device->idle[cause].ns % 1000, 0);
	return device->idle[cause].ns / 1000;
}

static void all_idle_is(const struct device_fact *device, enum idle_cause cause)
{
	int64_t sum = 0;

	for (int i = 0; i < IDLE_COUNT; i++) {
		sum += device->idle[i].ns;
		if (i != (int)cause)
			cr_assert_eq(device->idle[i].ns, 0, "%s: %lld", idle_name(i),
				     (long long)device->idle[i].ns);
	}
	cr_assert_eq(sum, device->idle_ns);
	cr_assert_gt(sum, 0);
}

/* Kernels of 10 us that the host launches every 50 us. */
static void steady(struct trace *trace, int64_t from_us, int count)
{
	for (int i = 0; i < count; i++)
		trace_launch(trace, 1, from_us + 50 * i, from_us + 50 * i + 10,
			     from_us + 50 * i + 20);
}

Test(idle, launches_that_come_slower_than_kernels_run_are_launch_rate)
{
	struct trace trace = trace_new();

	steady(&trace, 0, 20);
	all_idle_is(trace_analyze(&trace), IDLE_LAUNCH_RATE);
	/* All of it before the one kernel, which is what binds it. */
	cr_assert_eq(trace.facts->kernels.at[0].launch_idle_ns, trace.facts->devices.at[0].idle_ns);
	cr_assert_eq(trace.facts->kernels.at[0].bound.bound, BOUND_LAUNCH);
	trace_done(&trace);
}

Test(idle, a_host_that_is_away_is_late_and_what_it_did_is_told)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	/* Queued work that fills the device, then 5 ms of something else. */
	for (int i = 0; i < 10; i++)
		trace_launch(&trace, 1, 10 * i, 20 + 100 * i, 120 + 100 * i);
	trace_host(&trace, 1, CALL_PYTHON, "wait_for_the_moon", 200, 6000);
	trace_launch(&trace, 1, 6020, 6030, 6130);
	device = trace_analyze(&trace);
	cr_assert_eq(idle_us(device, IDLE_HOST_LATE), 6020 - 1020);
	cr_assert_eq(idle_us(device, IDLE_LAUNCH_RATE), 10);
	cr_assert_eq(trace.facts->kernels.at[0].launch_idle_ns, 0); /* the host was late */
	cr_assert_eq(idle_us(device, IDLE_SYNC_BLOCKED), 0);
	cr_assert_eq(idle_us(device, IDLE_DEPENDENCY), 0);
	cr_assert_eq(device->idle_ns, 5010 * 1000);
	cr_assert_eq(device->idle[IDLE_HOST_LATE].count, 1);
	cr_assert_eq(device->idle[IDLE_HOST_LATE].longest_at_ns, 1020 * 1000);
	cr_assert_eq(device->idle[IDLE_HOST_LATE].during.count, 1);
	cr_assert_eq(device->idle[IDLE_HOST_LATE].during.at[0].ns, (6000 - 1020) * 1000);
	cr_assert_eq(device->idle[IDLE_HOST_LATE].during.at[0].kind, ACTIVITY_PYTHON);
	cr_assert_str_eq(
		session_text(trace.store->session, device->idle[IDLE_HOST_LATE].during.at[0].name),
		"wait_for_the_moon");
	trace_done(&trace);
}

Test(idle, work_that_was_queued_and_did_not_start_is_a_dependency)
{
	struct trace trace = trace_new();

	/* Everything was launched long before; the device makes breaks. */
	for (int i = 0; i < 10; i++)
		trace_launch(&trace, 1, 10 * i, 200 + 300 * i, 300 + 300 * i);
	all_idle_is(trace_analyze(&trace), IDLE_DEPENDENCY);
	trace_done(&trace);
}

Test(idle, a_wait_that_drains_the_queue_is_sync_blocked)
{
	struct trace trace = trace_new();

	/* Launch, wait for it, launch again at once: the break is the wait's. */
	for (int i = 0; i < 10; i++) {
		trace_launch(&trace, 1, 200 * i, 200 * i + 10, 200 * i + 150);
		trace_call(&trace, 1, "cudaStreamSynchronize", 200 * i + 6, 200 * i + 170);
	}
	all_idle_is(trace_analyze(&trace), IDLE_SYNC_BLOCKED);
	trace_done(&trace);
}

Test(idle, a_wait_does_not_answer_for_what_the_host_does_afterwards)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	trace_launch(&trace, 1, 0, 10, 1000);
	trace_call(&trace, 1, "cudaDeviceSynchronize", 6, 1020);
	trace_launch(&trace, 1, 9000, 9010, 9100);
	device = trace_analyze(&trace);
	cr_assert_eq(idle_us(device, IDLE_SYNC_BLOCKED), 20);
	cr_assert_eq(idle_us(device, IDLE_HOST_LATE), 9000 - 1020);
	cr_assert_eq(idle_us(device, IDLE_LAUNCH_RATE), 10);
	trace_done(&trace);
}

Test(idle, an_asynchronous_copy_is_no_wait_but_one_from_pageable_memory_is)
{
	for (int pageable = 0; pageable < 2; pageable++) {
		struct trace trace = trace_new();
		const struct device_fact *device;
		uint64_t id;

		trace_launch(&trace, 1, 0, 10, 50);
		id = trace_call(&trace, 1, "cudaMemcpyAsync", 60, 150);
		trace_copy(&trace, 7, COPY_HTOD,
			   pageable ? HOST_MEMORY_PAGEABLE : HOST_MEMORY_PINNED, 1000000, 140, 200,
			   id);
		device = trace_analyze(&trace);
		cr_assert_eq(idle_us(device, IDLE_SYNC_BLOCKED), pageable ? 80 : 0);
		cr_assert_eq(idle_us(device, IDLE_LAUNCH_RATE), pageable ? 10 : 90);
		trace_done(&trace);
	}
}

Test(idle, without_the_launching_call_the_recording_does_not_say)
{
	struct trace trace = trace_new();

	trace_kernel(&trace, 7, "a", 0, 10, 0);
	trace_kernel(&trace, 7, "a", 50, 60, 0);
	all_idle_is(trace_analyze(&trace), IDLE_UNATTRIBUTED);
	trace_done(&trace);
}

Test(idle, kernels_launched_before_the_recording_began_were_queued)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	trace.correlation = 1000;
	trace_kernel(&trace, 7, "a", 0, 10, 998);
	trace_kernel(&trace, 7, "a", 12, 20, 999);
	trace_launch(&trace, 1, 5, 22, 30);
	trace_kernel(&trace, 7, "a", 32, 40, 2000);
	device = trace_analyze(&trace);
	cr_assert_eq(device->unmatched_ops, 3);
	cr_assert_eq(device->launched_before, 2);
	cr_assert_float_eq(device->coverage, 0.25, 1e-9);
	cr_assert_eq(idle_us(device, IDLE_DEPENDENCY), 2);
	cr_assert_eq(idle_us(device, IDLE_UNATTRIBUTED), 2);
	trace_done(&trace);
}

Test(idle, the_loader_is_named_whatever_it_does_inside)
{
	struct trace trace = trace_new();
	const struct device_fact *device;
	const struct during *during;

	trace_launch(&trace, 1, 0, 10, 100);
	trace_range(&trace, 1, RANGE_STEP, "ProfilerStep#1", 0, 9000);
	trace_range(&trace, 1, RANGE_USER, "enumerate(DataLoader)#_Iter.__next__", 50, 8000);
	for (int i = 0; i < 70; i++)
		trace_host(&trace, 1, CALL_OP, "aten::randn", 100 + 100 * i, 180 + 100 * i);
	trace_launch(&trace, 1, 8100, 8110, 8200);
	device = trace_analyze(&trace);
	during = &device->idle[IDLE_HOST_LATE].during.at[0];
	cr_assert_str_eq(session_text(trace.store->session, during->name),
			 "enumerate(DataLoader)#_Iter.__next__");
	cr_assert_eq(during->phase, PHASE_LOADER);
	cr_assert_eq(during->ns, (8000 - 100) * 1000);
	trace_done(&trace);
}

Test(idle, a_quick_loader_between_launches_is_late_all_the_same)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	for (int i = 0; i < 20; i++) {
		trace_launch(&trace, 1, 100 * i, 100 * i + 10, 100 * i + 20);
		trace_range(&trace, 1, RANGE_USER, "enumerate(DataLoader)#x", 100 * i + 20,
			    100 * i + 90);
	}
	device = trace_analyze(&trace);
	cr_assert_eq(idle_us(device, IDLE_HOST_LATE), 19 * 70);
	cr_assert_eq(idle_us(device, IDLE_LAUNCH_RATE), 19 * 20);
	trace_done(&trace);
}

Test(idle, when_the_launching_thread_has_nothing_open_the_previous_one_is_asked)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	/* Thread 1 prepares for 3 ms and hands over to thread 2, which launches. */
	trace_launch(&trace, 1, 0, 10, 100);
	trace_host(&trace, 1, CALL_OP, "prepare", 20, 3000);
	trace_host(&trace, 2, CALL_OP, "backward_op", 3000, 3100);
	trace_launch(&trace, 2, 3050, 3060, 3100);
	device = trace_analyze(&trace);
	cr_assert_eq(device->idle[IDLE_HOST_LATE].during.count, 2);
	cr_assert_str_eq(
		session_text(trace.store->session, device->idle[IDLE_HOST_LATE].during.at[0].name),
		"prepare");
	cr_assert_eq(device->idle[IDLE_HOST_LATE].during.at[0].ns, 2900 * 1000);
	trace_done(&trace);
}

Test(idle, a_launch_call_that_takes_a_millisecond_and_more_is_a_late_host)
{
	struct trace trace = trace_new();
	const struct device_fact *device;
	uint64_t id;

	trace_launch(&trace, 1, 0, 10, 20);
	id = trace_call(&trace, 1, "cudaLaunchKernel", 30, 5030);
	trace_kernel(&trace, 7, "some_kernel", 5030, 5040, id);
	device = trace_analyze(&trace);
	cr_assert_eq(idle_us(device, IDLE_HOST_LATE), 5000);
	cr_assert_eq(idle_us(device, IDLE_LAUNCH_RATE), 10);
	cr_assert_eq(idle_us(device, IDLE_SETUP), 0);
	trace_done(&trace);
}

Test(idle, the_first_launch_of_a_kernel_that_takes_long_loads_it)
{
	struct trace trace = trace_new();
	const struct device_fact *device;
	uint64_t id;

	trace_launch(&trace, 1, 0, 10, 20);
	id = trace_call(&trace, 1, "cudaLaunchKernel", 30, 5030);
	trace_kernel(&trace, 7, "loaded_just_now", 5030, 5040, id);
	device = trace_analyze(&trace);
	cr_assert_eq(idle_us(device, IDLE_SETUP), 5000);
	cr_assert_eq(idle_us(device, IDLE_LAUNCH_RATE), 10);
	cr_assert_eq(idle_us(device, IDLE_HOST_LATE), 0);
	trace_done(&trace);
}

Test(idle, loading_and_compiling_are_set_up_whoever_asked)
{
	static const char *const names[] = { "cuLibraryLoadData", "cuModuleLoadData",
					     "Runtime Triggered Module Loading",
					     "Lazy function loading", "JIT compile" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct trace trace = trace_new();
		const struct device_fact *device;

		trace_launch(&trace, 1, 0, 10, 20);
		if (names[i][0] == 'c')
			trace_call(&trace, 1, names[i], 100, 3100);
		else
			trace_host(&trace, 1, CALL_OVERHEAD, names[i], 100, 3100);
		trace_launch(&trace, 1, 4000, 4010, 4100);
		device = trace_analyze(&trace);
		cr_assert_eq(idle_us(device, IDLE_SETUP), 3000, "%s", names[i]);
		cr_assert_eq(idle_us(device, IDLE_HOST_LATE), 3980 - 3000);
		trace_done(&trace);
	}
}

Test(idle, memory_obtained_in_the_loop_is_the_loops_fault)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	trace_launch(&trace, 1, 0, 10, 20);
	trace_call(&trace, 1, "cudaMalloc", 100, 3100);
	trace_launch(&trace, 1, 4000, 4010, 4100);
	device = trace_analyze(&trace);
	cr_assert_eq(idle_us(device, IDLE_SETUP), 0);
	cr_assert_eq(idle_us(device, IDLE_HOST_LATE), 3980);
	trace_done(&trace);
}

/* 5 ms of absence, with `looks` looks in it: `running` of them find it running. */
static struct trace looked_at(int looks, int running)
{
	struct trace trace = trace_new();

	for (int i = 0; i < 10; i++)
		trace_launch(&trace, 1, 10 * i, 20 + 100 * i, 120 + 100 * i);
	trace_launch(&trace, 1, 6020, 6030, 6130);
	for (int i = 0; i < looks; i++)
		trace_range(&trace, 1, RANGE_STATE, i < running ? "running" : "waiting: futex",
			    2000 + 100 * i, 2100 + 100 * i);
	/* Before the gap, and of a thread that launches nothing: these don't count. */
	for (int i = 0; i < 20; i++) {
		trace_range(&trace, 1, RANGE_STATE, "stopped", 200 + 10 * i, 210 + 10 * i);
		trace_range(&trace, 7, RANGE_STATE, "runnable", 2000 + 10 * i, 2010 + 10 * i);
	}
	return trace;
}

Test(idle, what_the_thread_was_at_in_most_looks_is_told)
{
	struct trace trace = looked_at(10, 3);
	const struct idle_fact *idle = &trace_analyze(&trace)->idle[IDLE_HOST_LATE];

	cr_assert_str_eq(idle->thread_state, "waiting: futex");
	cr_assert_eq(idle->thread_looks, 10);
	cr_assert_eq(idle->thread_state_looks, 7);
	cr_assert_eq(trace.facts->devices.at[0].idle[IDLE_LAUNCH_RATE].thread_state, NULL);
	trace_done(&trace);
}

/* The chance that of `all` looks `agree` or more see what holds a sixth of the time. */
static double chance(int agree, int all)
{
	double sum = 0;

	for (int k = agree; k <= all; k++) {
		double ways = 1;

		for (int i = 0; i < k; i++)
			ways = ways * (all - i) / (i + 1);
		sum += ways * pow(1. / 6, k) * pow(5. / 6, all - k);
	}
	return sum;
}

Test(idle, what_few_looks_saw_is_told_where_it_can_hardly_be_chance)
{
	for (int looks = 1; looks <= 12; looks++) {
		for (int waiting = (looks + 1) / 2; waiting <= looks; waiting++) {
			struct trace trace = looked_at(looks, looks - waiting);
			const char *state =
				trace_analyze(&trace)->idle[IDLE_HOST_LATE].thread_state;

			cr_assert_eq(state != NULL, looks > 2 && chance(waiting, looks) <= 0.05,
				     "%d of %d", waiting, looks);
			trace_done(&trace);
		}
	}
}

/* 5.92 ms of absence: the thread runs for 1 ms of it, then waits. */
Test(idle, switches_give_the_time_in_a_state)
{
	struct trace trace = looked_at(20, 20);
	const struct idle_fact *idle;

	trace_range(&trace, 1, RANGE_STATE_EXACT, "running", 500, 2020);
	trace_range(&trace, 1, RANGE_STATE_EXACT, "waiting: futex", 2020, 6010);
	trace_range(&trace, 1, RANGE_STATE_EXACT, "running", 6010, 9000);
	trace_range(&trace, 7, RANGE_STATE_EXACT, "runnable", 1000, 9000);
	idle = &trace_analyze(&trace)->idle[IDLE_HOST_LATE];
	cr_assert_str_eq(idle->thread_state, "waiting: futex");
	cr_assert_eq(idle->thread_state_ns, 3990000);
	cr_assert_eq(idle->thread_ns, idle->ns);
	cr_assert_eq(idle->thread_looks, 0);
	trace_done(&trace);
}

/* Short waits have no name of what they are for. */
Test(idle, waits_of_several_kinds_are_waiting_together)
{
	static const char *const states[] = { "waiting", "waiting: futex", "waiting: poll",
					      "running", "waiting" };

	for (int exact = 0; exact < 2; exact++) {
		struct trace trace = looked_at(0, 0);
		const struct idle_fact *idle;

		for (int i = 0; i < 40; i++)
			trace_range(&trace, 1, exact ? RANGE_STATE_EXACT : RANGE_STATE,
				    states[i % 5], 1100 + 100 * i, 1200 + 100 * i);
		idle = &trace_analyze(&trace)->idle[IDLE_HOST_LATE];
		cr_assert_not_null(idle->thread_state);
		cr_assert_str_eq(idle->thread_state, "waiting");
		cr_assert_eq(exact ? idle->thread_state_ns : idle->thread_state_looks,
			     exact ? 3200000 : 32);
		trace_done(&trace);
	}
}

/* A gap of two centuries, as only an invented file has it. */
Test(idle, states_of_more_than_half_of_all_time_are_counted)
{
	static const int64_t FAR_US = 3000000000000000;
	struct trace trace = trace_new();
	const struct device_fact *device;

	trace_launch(&trace, 1, -FAR_US, 10 - FAR_US, 20 - FAR_US);
	/* Twice: one over the other. */
	for (int i = 0; i < 2; i++)
		trace_range(&trace, 1, RANGE_STATE_EXACT, "waiting: futex", 30 - FAR_US,
			    FAR_US - 20);
	trace_launch(&trace, 1, FAR_US - 10, FAR_US, FAR_US + 10);
	device = trace_analyze(&trace);
	cr_assert_not_null(device->idle[IDLE_HOST_LATE].thread_state);
	cr_assert_str_eq(device->idle[IDLE_HOST_LATE].thread_state, "waiting: futex");
	trace_done(&trace);
}

Test(idle, states_of_a_minor_part_are_not_told)
{
	struct trace trace = looked_at(0, 0);

	trace_range(&trace, 1, RANGE_STATE_EXACT, "waiting: futex", 2020, 3000);
	cr_assert_eq(trace_analyze(&trace)->idle[IDLE_HOST_LATE].thread_state, NULL);
	trace_done(&trace);
}

/* Lines of one function count together, and the most frequent of them is told. */
Test(idle, the_python_function_in_most_looks_is_told)
{
	struct trace trace = looked_at(0, 0);
	const struct idle_fact *idle;

	for (int i = 0; i < 10; i++) {
		trace_range(&trace, 1, RANGE_PYTHON_STACK,
			    i < 4    ? "other loop.py:7"
			    : i == 4 ? "collate data.py:40"
			    : i < 8  ? "collate data.py:41"
				     : "collate data.py:412",
			    2000 + 100 * i, 2100 + 100 * i);
		trace_range(&trace, 1, RANGE_CPU_STACK,
			    i < 5   ? "copy"
			    : i < 7 ? "free"
				    : "alloc",
			    2000 + 100 * i, 2100 + 100 * i);
	}
	idle = &trace_analyze(&trace)->idle[IDLE_HOST_LATE];
	cr_assert_str_eq(session_text(trace.facts->session, idle->python), "collate data.py:41");
	cr_assert_eq(idle->python_looks, 10);
	cr_assert_eq(idle->python_function_looks, 6);
	cr_assert_str_eq(session_text(trace.facts->session, idle->cpu), "copy");
	cr_assert_eq(idle->cpu_function_samples, 5);
	trace_done(&trace);
}

/* A perf map has it without a line. */
static struct trace both_ways(const char *on_core)
{
	struct trace trace = looked_at(0, 0);

	for (int i = 0; i < 10; i++) {
		trace_range(&trace, 1, RANGE_PYTHON_STACK,
			    i < 5 ? "collate data.py:41" : "collate data.py:44", 2000 + 100 * i,
			    2100 + 100 * i);
		trace_range(&trace, 1, RANGE_CPU_STACK, on_core, 2000 + 100 * i, 2100 + 100 * i);
	}
	(void)trace_analyze(&trace);
	return trace;
}

Test(idle, a_function_that_both_its_stack_and_a_perf_map_name_is_known_as_one)
{
	static const char *const others[] = { "collate other.py", "collate data.pyx", "collate",
					      "copy" };
	struct trace trace = both_ways("collate data.py");

	cr_assert(trace.facts->devices.at[0].idle[IDLE_HOST_LATE].cpu_is_python);
	trace_done(&trace);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		trace = both_ways(others[i]);
		cr_assert_not(trace.facts->devices.at[0].idle[IDLE_HOST_LATE].cpu_is_python, "%s",
			      others[i]);
		trace_done(&trace);
	}
}

Test(idle, the_range_round_what_the_thread_does_goes_with_it)
{
	struct trace trace = trace_new();
	const struct device_fact *device;
	const struct during *during;

	trace_launch(&trace, 1, 0, 10, 20);
	trace_range(&trace, 1, RANGE_USER, "epoch", 0, 9000);
	trace_range(&trace, 1, RANGE_USER, "checkpoint", 1000, 8000);
	trace_host(&trace, 1, CALL_PYTHON, "pickle.dump", 1100, 7900);
	trace_launch(&trace, 1, 9000, 9010, 9020);
	device = trace_analyze(&trace);
	during = &device->idle[IDLE_HOST_LATE].during.at[0];
	cr_assert_str_eq(session_text(trace.store->session, during->name), "pickle.dump");
	cr_assert_str_eq(session_text(trace.store->session, during->range), "checkpoint");
	trace_done(&trace);
}

Test(idle, gaps_that_an_upload_of_data_ends_are_counted)
{
	struct trace trace = trace_new();
	const struct idle_fact *idle;
	uint64_t id;

	trace_launch(&trace, 1, 0, 10, 20);
	id = trace_call(&trace, 1, "cudaMemcpyAsync", 5000, 5010);
	trace_copy(&trace, 7, COPY_HTOD, HOST_MEMORY_PINNED, 4096, 5012, 5030, id);
	/* A single value is no data. */
	id = trace_call(&trace, 1, "cudaMemcpyAsync", 8000, 8010);
	trace_copy(&trace, 7, COPY_HTOD, HOST_MEMORY_PINNED, 4, 8012, 8030, id);
	trace_launch(&trace, 1, 12000, 12010, 12020);
	idle = &trace_analyze(&trace)->idle[IDLE_HOST_LATE];
	cr_assert_eq(idle->count, 3);
	cr_assert_eq(idle->upload_count, 1);
	cr_assert_eq(idle->upload_ns, (5000 - 20) * 1000);
	trace_done(&trace);
}

/* Queued kernels: what the device takes from one to the next, if they are short. */
Test(idle, from_one_short_kernel_to_the_next_is_a_turnaround)
{
	struct trace trace = trace_new();
	const struct idle_fact *idle;

	trace_launch(&trace, 1, 0, 100, 105);  /* short */
	trace_launch(&trace, 1, 10, 107, 109); /* at once: 2 us */
	trace_launch(&trace, 1, 20, 112, 140); /* 3 us; itself not short */
	trace_launch(&trace, 1, 30, 142, 144); /* after a long one */
	trace_launch(&trace, 1, 40, 158, 160); /* 14 us: it waited for something */
	trace_kernel(&trace, 8, "other", 163, 165,
		     trace_call(&trace, 1, "cudaLaunchKernel", 50, 55));
	trace_launch(&trace, 1, 60, 168, 170); /* another stream's before it */
	idle = &trace_analyze(&trace)->idle[IDLE_DEPENDENCY];
	cr_assert_eq(idle->turnaround_count, 2);
	cr_assert_eq(idle->turnaround_ns, 5000);
	cr_assert_eq(idle->ns, (2 + 3 + 2 + 14 + 3 + 3) * 1000);
	trace_done(&trace);
}

/* In a graph fewer launches would spare nothing. A kernel whose launch was late and that began 4 us
 * later than most do was not queued when the device ran dry. */
Test(idle, neither_graphs_nor_late_launches_have_turnarounds)
{
	struct trace trace = trace_new();
	const struct idle_fact *idle;
	uint64_t graph = trace_call(&trace, 1, "cudaGraphLaunch", 0, 5);

	trace_kernel(&trace, 7, "node", 100, 102, graph);
	trace_kernel(&trace, 7, "node", 103, 105, graph);
	trace_kernel(&trace, 7, "node", 106, 108, graph);
	trace_launch(&trace, 1, 400, 424, 426);
	idle = &trace_analyze(&trace)->idle[IDLE_DEPENDENCY];
	cr_assert_eq(idle->ns, (1 + 1 + 4) * 1000);
	cr_assert_eq(idle->turnaround_count, 0);
	cr_assert_eq(idle->turnaround_ns, 0);
	trace_done(&trace);
}

/* Many gaps of two threads in turn, and looks of both: counted as one by one. */
Test(idle, looks_are_counted_gap_by_gap)
{
	struct trace trace = trace_new();
	const struct idle_fact *idle;
	int64_t expected = 0, waiting = 0;

	for (int64_t i = 0; i < 400; i++) {
		int64_t at = 2000 * i, tid = i * i % 3 ? 1 : 2;

		trace_launch(&trace, tid, at, at + 10, at + 100);
		for (int64_t look = at; look < at + 2000; look += 130 + i % 7) {
			bool waits = (look / 130 + i) % 3 != 0;

			trace_range(&trace, 1, RANGE_STATE, waits ? "waiting" : "running", look,
				    look + 100);
			trace_range(&trace, 2, RANGE_STATE, waits ? "waiting" : "running", look,
				    look + 100);
		}
	}
	idle = &trace_analyze(&trace)->idle[IDLE_HOST_LATE];
	for (int64_t i = 0; i < 399; i++) {
		int64_t at = 2000 * i;

		for (int64_t look = at; look < at + 2000; look += 130 + i % 7) {
			bool waits = (look / 130 + i) % 3 != 0;

			if (look < at + 100)
				continue;
			expected++;
			waiting += waits;
		}
	}
	cr_assert_eq(idle->thread_looks, expected);
	cr_assert_eq(idle->thread_state_looks, waiting);
	trace_done(&trace);
}
