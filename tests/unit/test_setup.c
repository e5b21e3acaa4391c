#include "trace_builder.h"

/* A start of `setup_us` with module loads of `load_us` each, every 1,000 us, and a
 * kernel after each; then `count` kernels of 50 us, one every 100 us. */
static int64_t program(struct trace *trace, int64_t setup_us, int64_t load_us, int count)
{
	int64_t at = 0;

	trace_call(trace, 1, "cudaMalloc", 0, 10);
	for (at = 20; at < setup_us; at += 1000) {
		trace_call(trace, 1, "cuLibraryLoadData", at, at + load_us);
		trace_launch(trace, 1, at + load_us + 10, at + load_us + 20, at + load_us + 30);
	}
	for (int i = 0; i < count; i++)
		trace_launch(trace, 1, at + 100 * i, at + 100 * i + 10, at + 100 * i + 60);
	return at + 10;
}

static int64_t idle_sum(const struct idle_fact *idle)
{
	int64_t sum = 0;

	for (int i = 0; i < IDLE_COUNT; i++)
		sum += idle[i].ns;
	return sum;
}

Test(setup, a_start_full_of_loading_is_left_out_and_said)
{
	struct trace trace = trace_new();
	int64_t steady_us = program(&trace, 20000, 500, 80);
	const struct device_fact *device = trace_analyze(&trace);

	cr_assert(device->steady.has);
	/* The kernel behind the last load, which takes no load any more. */
	cr_assert_eq(device->steady.start_ns, (steady_us - 10 - 1000 + 520) * 1000);
	cr_assert_eq(device->steady.kernel_count, 81);
	cr_assert_eq(device->steady.busy_ns, (80 * 50 + 10) * 1000);
	cr_assert_eq(device->steady.idle_ns, device->steady.span_ns - device->steady.busy_ns);
	cr_assert_eq(idle_sum(device->steady.idle), device->steady.idle_ns);
	cr_assert_eq(idle_sum(device->idle), device->idle_ns);
	cr_assert_eq(device->steady.idle[IDLE_SETUP].ns, 0);
	cr_assert_eq(device->setup.part_ns[SETUP_LOAD], 20 * 500 * 1000);
	cr_assert_eq(device->setup.part_ns[SETUP_MEMORY], 10 * 1000);
	cr_assert_eq(device->setup.ns, device->steady.start_ns - device->window_start_ns);
	trace_done(&trace);
}

/* Profiler steps: one while it loads, which is long, and one later that is. */
Test(setup, steps_of_the_start_are_told_to_be)
{
	struct trace trace = trace_new();
	int64_t steady_us = program(&trace, 20000, 500, 200) - 10;
	const struct step_facts *steps;

	trace_range(&trace, 1, RANGE_STEP, "ProfilerStep", 100, steady_us - 100);
	for (int i = 0; i < 20; i++)
		trace_range(&trace, 1, RANGE_STEP, "ProfilerStep", steady_us + 1000 * i,
			    steady_us + 1000 * i + (i == 10 ? 1990 : 990));
	cr_assert(trace_analyze(&trace)->steady.has);
	steps = &trace.facts->steps;
	cr_assert_eq(steps->step.count, 21);
	for (size_t i = 0; i < steps->step.count; i++) {
		cr_assert_eq(steps->step.at[i].setup, i == 0, "step %zu", i);
		cr_assert_eq(steps->step.at[i].outlier, i == 0 || i == 11, "step %zu", i);
	}
	trace_done(&trace);
}

Test(setup, without_loading_nothing_is_left_out)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	for (int i = 0; i < 300; i++)
		trace_launch(&trace, 1, 100 * i, 100 * i + 10, 100 * i + 60);
	/* A host that is away is no set-up. */
	trace_launch(&trace, 1, 90000, 90010, 90060);
	device = trace_analyze(&trace);
	cr_assert_not(device->steady.has);
	cr_assert_eq(device->idle[IDLE_SETUP].ns, 0);
	cr_assert_eq(device_judged(device).span_ns, device->span_ns);
	trace_done(&trace);
}

Test(setup, one_late_load_moves_nothing)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	program(&trace, 20000, 500, 300);
	trace_call(&trace, 1, "cuLibraryLoadData", 50100, 51000);
	trace_launch(&trace, 1, 51010, 51020, 51070);
	device = trace_analyze(&trace);
	cr_assert(device->steady.has);
	cr_assert_lt(device->steady.start_ns, 21000 * 1000);
	cr_assert_gt(device->steady.idle[IDLE_SETUP].ns, 0);
	trace_done(&trace);
}

Test(setup, a_short_start_stays_in)
{
	struct trace trace = trace_new();

	program(&trace, 3000, 500, 300); /* under a tenth of the span */
	cr_assert_not(trace_analyze(&trace)->steady.has);
	trace_done(&trace);
}

Test(setup, a_program_that_loads_to_its_end_has_no_steady_part)
{
	struct trace trace = trace_new();

	program(&trace, 20000, 500, 5); /* 20 of 25 kernels run while it loads */
	cr_assert_not(trace_analyze(&trace)->steady.has);
	trace_done(&trace);
}

/* The data comes, the host makes something for 400 ms, then the kernels run. */
static void upload_first(struct trace *trace, bool from_the_start)
{
	uint64_t id;

	if (from_the_start)
		trace_call(trace, 1, "cudaMalloc", 0, 50);
	id = trace_call(trace, 1, "cudaMemcpyAsync", 100, 110);
	trace_copy(trace, 7, COPY_HTOD, HOST_MEMORY_PINNED, 1 << 20, 120, 220, id);
	for (int i = 0; i < 300; i++)
		trace_launch(trace, 1, 400000 + 100 * i, 400010 + 100 * i, 400060 + 100 * i);
}

Test(setup, what_precedes_the_first_kernel_of_a_process_is_its_start)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	upload_first(&trace, true);
	device = trace_analyze(&trace);
	cr_assert(device->steady.has);
	cr_assert_eq(device->steady.start_ns, INT64_C(400010) * 1000);
	trace_done(&trace);
}

Test(setup, a_recording_that_began_in_the_middle_has_no_start)
{
	struct trace trace = trace_new();

	upload_first(&trace, false);
	cr_assert_not(trace_analyze(&trace)->steady.has);
	trace_done(&trace);
}

/* Plain and slow: from every end of a load, how much loading is left? */
static int64_t reference(const int64_t *start, const int64_t *end, int count, int64_t from,
			 int64_t until)
{
	for (int c = -1; c < count; c++) {
		int64_t at = c < 0 ? from : end[c], left = 0;

		if (at < from)
			continue;
		for (int i = 0; i < count; i++)
			if (end[i] > at)
				left += end[i] - (start[i] > at ? start[i] : at);
		if ((double)left <= 0.05 * (double)(until - at))
			return at;
	}
	return until;
}

Test(setup, the_steady_part_begins_where_plain_arithmetic_says)
{
	unsigned seed = 7;

	for (int round = 0; round < 40; round++) {
		int64_t start[30], end[30], at = 1000;
		struct trace trace = trace_new();
		const struct device_fact *device;
		int loads = 5 + rand_r(&seed) % 25;

		trace_launch(&trace, 1, 0, 10, 20);
		for (int i = 0; i < loads; i++) {
			start[i] = at + rand_r(&seed) % 3000;
			end[i] = start[i] + 1 + rand_r(&seed) % 2000;
			trace_call(&trace, 1, "cuModuleLoadData", start[i], end[i]);
			at = end[i] + rand_r(&seed) % 500;
		}
		for (int64_t t = 30; t < 100000; t += 37)
			trace_launch(&trace, 2, t, t + 10, t + 20);
		device = trace_analyze(&trace);
		if (device->steady.has) {
			int64_t last =
				device->window_start_ns + device->before_ns + device->span_ns;
			int64_t from = reference(start, end, loads, 10, last / 1000);

			cr_assert_geq(device->steady.start_ns, from * 1000);
			cr_assert_lt(device->steady.start_ns, (from + 38) * 1000);
		}
		trace_done(&trace);
	}
}

/* An upload while the host does nothing else, and one in part while it loads. */
Test(setup, what_the_device_did_before_is_not_the_hosts_own_work)
{
	struct trace trace = trace_new();
	const struct device_fact *device;

	trace_call(&trace, 1, "cudaMalloc", 0, 8000);
	trace_host(&trace, 1, CALL_OVERHEAD, "Resource", 7000, 7900);
	trace_copy(&trace, 7, COPY_HTOD, HOST_MEMORY_PINNED, 1 << 20, 8200, 9200,
		   trace_call(&trace, 1, "cudaMemcpyAsync", 8100, 8110));
	trace_copy(&trace, 7, COPY_HTOD, HOST_MEMORY_PINNED, 1 << 20, 9400, 9900,
		   trace_call(&trace, 1, "cudaMemcpyAsync", 9300, 9310));
	trace_call(&trace, 1, "cuLibraryLoadData", 9800, 10800);
	for (int i = 0; i < 100; i++)
		trace_launch(&trace, 1, 11000 + 100 * i, 11010 + 100 * i, 11060 + 100 * i);
	device = trace_analyze(&trace);
	cr_assert(device->steady.has);
	cr_assert_eq(device->setup.part_ns[SETUP_CONTEXT], 8000 * 1000);
	cr_assert_eq(device->setup.part_ns[SETUP_MEMORY], 0);
	cr_assert_eq(device->setup.part_ns[SETUP_LOAD], 1000 * 1000);
	cr_assert_eq(device->setup.part_ns[SETUP_BUSY], (1000 + 400) * 1000);
	cr_assert_eq(device->setup.other_ns, (11010 - 8000 - 1000 - 1400) * 1000);
	trace_done(&trace);
}

static int64_t context_ns_of(const struct trace *trace, const char *name)
{
	for (size_t i = 0; i < trace->facts->calls.count; i++)
		if (!strcmp(session_text(trace->store->session, trace->facts->calls.at[i].name),
			    name))
			return trace->facts->calls.at[i].context_ns;
	return -1;
}

/* CUPTI's work for a context lies in the call that made it, of the runtime and the driver;
 * that for the end of one is short. */
Test(setup, a_call_that_made_a_context_is_told_by_cuptis_work_in_it)
{
	struct trace trace = trace_new();

	trace_call(&trace, 1, "cudaGetDeviceCount", 0, 10);
	trace_call(&trace, 1, "cudaFree", 100, 100100);
	trace_call(&trace, 1, "cuDevicePrimaryCtxRetain", 200, 100000);
	trace_host(&trace, 1, CALL_OVERHEAD, "Resource", 99000, 99600);
	trace_host(&trace, 1, CALL_OVERHEAD, "Resource", 99600, 99990);
	trace_call(&trace, 1, "cudaFree", 100200, 100300);
	trace_launch(&trace, 1, 100400, 100410, 100420);
	trace_call(&trace, 1, "cudaDeviceReset", 101000, 102000);
	trace_host(&trace, 1, CALL_OVERHEAD, "Resource", 101100, 101140);
	trace_analyze(&trace);
	cr_assert_eq(context_ns_of(&trace, "cudaFree"), 100000 * 1000);
	cr_assert_eq(context_ns_of(&trace, "cuDevicePrimaryCtxRetain"), 0);
	cr_assert_eq(context_ns_of(&trace, "cudaGetDeviceCount"), 0);
	cr_assert_eq(context_ns_of(&trace, "cudaDeviceReset"), 0);
	trace_done(&trace);
}
