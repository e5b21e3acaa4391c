/* What a finding advises fits the program that was recorded, and who recorded it. */
#include "rule_bench.h"

#include "rules/advise.h"

enum { MS = 1000000 };

/* A timeline of a second that is idle for 900 ms for one cause. */
static struct device_fact *timeline(struct rule_bench *bench, enum idle_cause cause)
{
	struct device_fact *fact = bench_init(bench);

	bench->facts.has_timeline = true;
	fact->has_timeline = true;
	fact->span_ns = 1000 * MS;
	fact->idle_ns = fact->idle[cause].ns = 900 * MS;
	fact->busy_ns = fact->kernel_ns = 100 * MS;
	fact->coverage = 1;
	fact->kernel_count = fact->launch_count = 1000;
	return fact;
}

static void recorded(struct rule_bench *bench, const char *reader, const char *process)
{
	uint32_t source = session_source(bench->session, reader, process);
	uint32_t row = session_process(bench->session, source, 100);

	bench->session->processes.at[row].name = bench_text(bench, process);
}

static void kernel(struct rule_bench *bench, const char *name)
{
	(void)session_key(bench->session, &(struct kernel_key){ .name = bench_text(bench, name) });
}

static bool says(const struct finding *finding, const char *part)
{
	bool found = strstr(finding->claim, part) != NULL;

	for (size_t i = 0; i < finding->advice.count; i++)
		found = found || strstr(finding->advice.at[i], part);
	for (size_t i = 0; i < finding->next.count; i++)
		found = found || strstr(finding->next.at[i], part);
	return found;
}

static void during(struct rule_bench *bench, enum idle_cause cause, struct during during)
{
	*VEC_ADD(&bench->facts.devices.at[0].idle[cause].during) = during;
}

Test(advice, an_interpreter_or_a_frameworks_kernels_make_a_framework)
{
	static const char *const processes[] = { "python", "python3.12", "pt_main_thread" };

	for (size_t i = 0; i < sizeof(processes) / sizeof(*processes); i++) {
		struct rule_bench bench = { 0 };

		(void)bench_init(&bench);
		recorded(&bench, READER_CUDA, processes[i]);
		cr_assert_eq(program_of(&bench.facts), PROGRAM_FRAMEWORK, "%s", processes[i]);
		bench_done(&bench);
	}
}

Test(advice, a_process_with_a_name_of_its_own_is_known_by_its_kernels)
{
	struct rule_bench bench = { 0 };

	(void)bench_init(&bench);
	/* A trace that does not say whose it is. */
	cr_assert_eq(program_of(&bench.facts), PROGRAM_FRAMEWORK);
	cr_assert_not(recorded_by_run(&bench.facts));
	recorded(&bench, READER_CUDA, "solver");
	cr_assert(recorded_by_run(&bench.facts));
	cr_assert_eq(program_of(&bench.facts), PROGRAM_NATIVE);
	/* What else runs beside it is not what was recorded. */
	recorded(&bench, READER_PROC, "python3");
	cr_assert_eq(program_of(&bench.facts), PROGRAM_NATIVE);
	kernel(&bench, "void at::native::vectorized_elementwise_kernel<4>(int)");
	cr_assert_eq(program_of(&bench.facts), PROGRAM_FRAMEWORK);
	bench_done(&bench);
}

Test(advice, to_a_program_of_cuda_names_no_call_of_a_framework)
{
	struct rule_bench bench = { 0 };

	(void)timeline(&bench, IDLE_LAUNCH_RATE);
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert(says(first(&bench), "torch"));
	recorded(&bench, READER_CUDA, "solver");
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert_not(says(first(&bench), "torch"));
	cr_assert(says(first(&bench), "cudaStreamBeginCapture"));
	bench_done(&bench);
}

Test(advice, on_a_loader_is_a_thread_where_there_is_no_DataLoader)
{
	struct rule_bench bench = { 0 };

	(void)timeline(&bench, IDLE_HOST_LATE);
	during(&bench, IDLE_HOST_LATE,
	       (struct during){ .kind = ACTIVITY_RANGE,
				.name = bench_text(&bench, "load data"),
				.phase = PHASE_LOADER,
				.ns = 800 * MS });
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert(says(first(&bench), "num_workers"));
	cr_assert(says(first(&bench), "py-spy"));
	recorded(&bench, READER_CUDA, "solver");
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_not(says(first(&bench), "num_workers"));
	cr_assert_not(says(first(&bench), "py-spy"));
	cr_assert_not(says(first(&bench), "tensor"));
	cr_assert(says(first(&bench), "cudaMallocHost"));
	/* Where the stacks were sampled nobody needs another tool for them. */
	cr_assert(says(first(&bench), "perf record"));
	bench.facts.devices.at[0].idle[IDLE_HOST_LATE].cpu = bench_text(&bench, "inflate");
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_not(says(first(&bench), "perf record"));
	bench_done(&bench);
}

Test(advice, on_a_call_of_cuda_that_takes_long_is_no_advice_on_the_hosts_work)
{
	struct rule_bench bench = { 0 };
	struct idle_fact *idle = &timeline(&bench, IDLE_HOST_LATE)->idle[IDLE_HOST_LATE];

	during(&bench, IDLE_HOST_LATE,
	       (struct during){ .kind = ACTIVITY_CALL,
				.name = bench_text(&bench, "cudaMalloc"),
				.phase = PHASE_OTHER,
				.ns = 500 * MS });
	idle->thread_state = "running";
	idle->thread_ns = 900 * MS;
	idle->thread_state_ns = 890 * MS;
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert(says(first(&bench), "it ran, most of the time in cudaMalloc"));
	cr_assert_not(says(first(&bench), "did something itself"));
	cr_assert(says(first(&bench), "allocates memory"));
	cr_assert_not(says(first(&bench), "Move that work"));
	cr_assert_not(says(first(&bench), "record_function"));
	/* In less than half of the time: the rest is the host's own. */
	idle->during.at[0].ns = 400 * MS;
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert(says(first(&bench), "did something itself"));
	cr_assert(says(first(&bench), "Move that work"));
	/* A call of the system's is none of CUDA's. */
	idle->during.at[0] = (struct during){ .kind = ACTIVITY_CALL,
					      .name = bench_text(&bench, "usleep"),
					      .phase = PHASE_OTHER,
					      .ns = 800 * MS };
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_not(says(first(&bench), "allocates memory"));
	bench_done(&bench);
}

Test(advice, where_kernels_come_from_graphs_is_not_to_use_graphs)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_LAUNCH_RATE);

	fact->kernel_count = 1999;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert(says(first(&bench), "Launch many kernels at once"));
	fact->kernel_count = 2000;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert_not(says(first(&bench), "Launch many kernels at once"));
	cr_assert(says(first(&bench), "Put more into each CUDA graph"));
	bench_done(&bench);
}

Test(advice, on_low_utilisation_asks_for_what_is_not_recorded_yet)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = bench_init(&bench);

	fact->has_system = true;
	fact->system.high_util_samples = 10;
	fact->system.high_util_power_share = 0.2;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 1);
	cr_assert(says(first(&bench), "dmon --gpm-metrics"));
	cr_assert(says(first(&bench), "sonde run -- COMMAND"));
	fact->system.metric[METRIC_sm_active_pct].count = 10;
	fact->system.high_util_sm_active_pct = 8;
	fact->has_timeline = true;
	recorded(&bench, READER_CUDA, "solver");
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 1);
	cr_assert_not(says(first(&bench), "dmon --gpm-metrics"));
	cr_assert_not(says(first(&bench), "import"));
	cr_assert(says(first(&bench), "--pc-sampling on"));
	bench_done(&bench);
}

Test(advice, on_a_card_that_hangs_is_not_to_give_it_more_to_do)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = bench_init(&bench);

	fact->has_system = true;
	fact->system.high_util_samples = 10;
	fact->system.high_util_sm_active_pct = 1;
	*VEC_ADD(&bench.facts.waits) = (struct wait_fact){ .end = WAIT_OPEN, .device = 0 };
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 0);
	bench.facts.waits.at[0].end = WAIT_FAILED;
	cr_assert_eq(found_by(&bench, &rule_low_utilisation_trap), 1);
	VEC_DONE(&bench.facts.waits);
	bench_done(&bench);
}

Test(advice, what_recording_did_itself_is_not_laid_on_the_program)
{
	struct rule_bench bench = { 0 };

	(void)timeline(&bench, IDLE_HOST_LATE);
	*VEC_ADD(&bench.facts.callbacks) = (struct callback_fact){ .count = 10, .sum_ns = 89 * MS };
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_not(says(first(&bench), "callbacks"));
	bench.facts.callbacks.at[0].sum_ns = 90 * MS;
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert(says(first(&bench), "callbacks in the program took 90.0 ms"));
	cr_assert_not(says(first(&bench), "--pc-sampling"));
	VEC_DONE(&bench.facts.callbacks);
	bench_done(&bench);
}

Test(advice, slow_launches_under_pc_sampling_are_in_part_its_doing)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_LAUNCH_RATE);

	*VEC_ADD(&bench.facts.pc_samplings) = (struct pc_sampling_fact){ .covered_ns = 1000 * MS };
	fact->launch_count = fact->kernel_count = 89999;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert_eq(first(&bench)->grade, GRADE_HIGH);
	fact->launch_count = fact->kernel_count = 90000;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert_eq(first(&bench)->grade, GRADE_MEDIUM);
	cr_assert(says(first(&bench), "PC sampling was on"));
	cr_assert(says(first(&bench), "without --pc-sampling"));
	/* It was asked for and did not work. */
	bench.facts.pc_samplings.at[0].covered_ns = 0;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert_eq(first(&bench)->grade, GRADE_HIGH);
	VEC_DONE(&bench.facts.pc_samplings);
	bench_done(&bench);
}

Test(advice, on_what_is_left_behind_asks_the_profile_for_its_kind)
{
	struct rule_bench bench = { 0 };
	struct memory_fact *memory;

	(void)bench_init(&bench);
	memory = VEC_ADD(&bench.facts.memory);
	memory->device = 0;
	for (size_t i = 0; i < HELD_KINDS; i++)
		memory->objects[i].live = FACT_UNKNOWN;
	memory->objects[HELD_EVENT].live = memory->objects[HELD_EVENT].leaked = 39;
	cr_assert_eq(found_by(&bench, &rule_leak), 1);
	cr_assert(says(first(&bench), "event created"));
	cr_assert_not(says(first(&bench), "FROM alloc"));
	bench_done(&bench);
}

Test(advice, on_copies_of_the_set_up_is_but_a_note)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_HOST_LATE);

	*VEC_ADD(&bench.facts.copies) = (struct copy_fact){
		.kind = COPY_HTOD,
		.pageable = 1,
		.count = 10,
		.bytes = 1 << 28,
		.sum_ns = 90 * MS,
		.union_ns = 90 * MS,
		.gbps = 3,
	};
	fact->steady = (struct steady_fact){
		.has = true, .span_ns = 100 * MS, .busy_ns = 90 * MS, .kernel_ns = 89 * MS
	};
	cr_assert_eq(found_by(&bench, &rule_pageable_copy), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	fact->steady.kernel_ns = 90 * MS;
	cr_assert_eq(found_by(&bench, &rule_pageable_copy), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	cr_assert(says(first(&bench), "this is of the set-up"));
	bench_done(&bench);
}

Test(advice, on_copies_reads_memory_and_steps_fits_a_program_of_cuda)
{
	struct rule_bench bench = { 0 };
	struct memory_fact *memory;

	(void)timeline(&bench, IDLE_SYNC_BLOCKED);
	recorded(&bench, READER_CUDA, "solver");
	*VEC_ADD(&bench.facts.copies) = (struct copy_fact){
		.kind = COPY_HTOD,
		.pageable = 1,
		.count = 10,
		.bytes = 1 << 28,
		.sum_ns = 90 * MS,
		.union_ns = 90 * MS,
		.gbps = 3,
	};
	cr_assert_eq(found_by(&bench, &rule_pageable_copy), 1);
	cr_assert(says(first(&bench), "cudaHostRegister"));
	cr_assert_not(says(first(&bench), "tensor"));
	*VEC_ADD(&bench.facts.readbacks) = (struct readback_fact){
		.count = 10,
		.blocked_ns = 50 * MS,
		.idle_ns = 50 * MS,
		.per_step = NAN,
	};
	cr_assert_eq(found_by(&bench, &rule_sync_readback), 1);
	cr_assert(says(first(&bench), "cudaEventRecord"));
	cr_assert_not(says(first(&bench), "torch"));
	memory = VEC_ADD(&bench.facts.memory);
	memory->steps = 20;
	memory->growth_bytes_per_step = 1 << 20;
	cr_assert_eq(found_by(&bench, &rule_memory_growth), 1);
	cr_assert_not(says(first(&bench), "torch"));
	cr_assert_not(says(first(&bench), "tensor"));
	bench_done(&bench);
}
