/* The reading side of the spool: records and slots of a made-up process as events. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "spool_bench.h"

TestSuite(spool, .init = open_bench, .fini = close_bench);

Test(spool, a_kernel_has_its_times_its_shape_and_its_plain_name)
{
	struct cupti_kernel kernel = { .kind = CUPTI_KIND_CONCURRENT_KERNEL,
				       .start = 1000,
				       .end = 1234,
				       .device = 1,
				       .context = 2,
				       .stream = 13,
				       .grid = { 5, 6, 7 },
				       .block = { 32, 2, 1 },
				       .cluster = { 2, 1, 1 },
				       .static_shared = 100,
				       .dynamic_shared = 28,
				       .registers = 40,
				       .correlation = 77,
				       .queued = 900,
				       .submitted = 950,
				       .graph_node = 9 };
	const struct kernel_key *key;
	const struct lane *lane;
	struct op *op;

	kernel.name = TEXT("_Z5scalePffi");
	PUT(0, kernel, 216);
	take();
	cr_assert_eq(bench.record->ops.count, 1);
	op = &bench.record->ops.at[0];
	cr_assert_eq(op->kind, OP_KERNEL);
	cr_assert_eq(op->start_ns, 1000);
	cr_assert_eq(op->end_ns, 1234);
	cr_assert_eq(op->queued_ns, 900);
	cr_assert_eq(op->correlation, 77);
	cr_assert_eq(op->graph_node, 9);
	cr_assert_str_eq(text(op->name), "scale(float*, float, int)");
	key = &bench.record->sink.session->keys.at[op->key];
	cr_assert_eq(key->grid[2], 7);
	cr_assert_eq(key->block[0], 32);
	cr_assert_eq(key->cluster[0], 2);
	cr_assert_eq(key->shared_bytes, 128);
	cr_assert_eq(key->registers, 40);
	lane = &bench.record->sink.session->lanes.at[op->lane];
	cr_assert_eq(lane->stream, 13);
	cr_assert_eq(lane->context, 2);
	cr_assert_eq(bench.record->sink.session->devices.at[lane->device].ordinal, 1);
}

/* CUPTI leaves what was there before in launches that it can't tell. */
Test(spool, a_launch_without_a_time_of_submission_has_none_of_queueing)
{
	static const uint64_t times[][2] = {
		{ 900, 0 }, { 900, 899 }, { 0, 950 }, { 1001, 1002 }, { 900, 1001 }
	};

	for (size_t i = 0; i < 5; i++) {
		struct cupti_kernel kernel = { .kind = CUPTI_KIND_CONCURRENT_KERNEL,
					       .start = 1000,
					       .end = 1234,
					       .queued = times[i][0],
					       .submitted = times[i][1] };

		PUT(0, kernel, 216);
	}
	take();
	cr_assert_eq(bench.record->ops.count, 5);
	for (size_t i = 0; i < 4; i++)
		cr_assert_eq(bench.record->ops.at[i].queued_ns, 0);
	/* Of one clock by interpolation and one as it is: a little late says nothing. */
	cr_assert_eq(bench.record->ops.at[4].queued_ns, 900);
}

Test(spool, records_of_any_size_follow_each_other)
{
	struct cupti_kernel kernel = { .kind = CUPTI_KIND_CONCURRENT_KERNEL, .start = 10 };
	struct cupti_memset set = {
		.kind = CUPTI_KIND_MEMSET, .bytes = 512, .start = 5, .end = 9, .memory = 3
	};

	kernel.name = TEXT("k");
	for (int i = 0; i < 10; i++) {
		kernel.end = 20 + (uint64_t)i;
		PUT(1, kernel, 208);
		PUT(1, set, 104);
	}
	take();
	cr_assert_eq(bench.record->ops.count, 20);
	cr_assert_eq(bench.record->ops.at[18].end_ns, 29);
	cr_assert_eq(bench.record->ops.at[19].bytes, 512);
	cr_assert_str_eq(text(bench.record->ops.at[19].name), "Memset (Device)");
	cr_assert_eq(loss(LOSS_malformed), 0);
}

Test(spool, copies_say_where_from_and_where_to)
{
	struct cupti_memcpy copy = { .kind = CUPTI_KIND_MEMCPY,
				     .copy = 1,
				     .from = 1,
				     .to = 3,
				     .bytes = 4096,
				     .start = 1,
				     .end = 2,
				     .correlation = 3 };
	struct cupti_memcpy_peer peer = {
		.kind = CUPTI_KIND_MEMCPY2, .from = 3, .to = 3, .bytes = 1, .start = 3, .end = 4
	};
	struct op *ops;

	PUT(0, copy, 96);
	copy.copy = 2;
	copy.from = 3;
	copy.to = 2;
	PUT(0, copy, 96);
	PUT(0, peer, 96);
	take();
	ops = bench.record->ops.at;
	cr_assert_eq(bench.record->ops.count, 3);
	cr_assert_str_eq(text(ops[0].name), "Memcpy HtoD (Pageable -> Device)");
	cr_assert_eq(ops[0].copy, COPY_HTOD);
	cr_assert_eq(ops[0].host_memory, HOST_MEMORY_PAGEABLE);
	cr_assert_eq(ops[0].bytes, 4096);
	cr_assert_str_eq(text(ops[1].name), "Memcpy DtoH (Device -> Pinned)");
	cr_assert_eq(ops[1].host_memory, HOST_MEMORY_PINNED);
	cr_assert_eq(ops[2].copy, COPY_PTOP);
}

Test(spool, a_call_that_failed_and_a_copy_between_cards_say_so)
{
	struct cupti_api api = { .kind = CUPTI_KIND_RUNTIME, .cbid = 20, .start = 1, .end = 2 };
	struct cupti_memcpy_peer copy = { .kind = CUPTI_KIND_MEMCPY2,
					  .bytes = 64,
					  .start = 5,
					  .end = 9,
					  .from_device = 1,
					  .to_device = 3 };

	api.process = bench.segment->pid;
	api.result = 2;
	PUT(0, api, 40);
	api.result = 600; /* not ready: an answer */
	PUT(0, api, 40);
	PUT(0, copy, 96);
	take();
	cr_assert_eq(bench.record->calls.count, 2);
	cr_assert_str_eq(text(bench.record->calls.at[0].detail), "result=2");
	cr_assert_eq(bench.record->calls.at[1].detail, 0);
	cr_assert_str_eq(text(bench.record->ops.at[0].detail), "from_device=1;to_device=3");
}

Test(spool, calls_have_the_names_that_the_ring_gave_without_versions)
{
	struct cupti_api api = { .kind = CUPTI_KIND_RUNTIME,
				 .cbid = 211,
				 .start = 50,
				 .end = 60,
				 .process = bench.pid,
				 .thread = 4711,
				 .correlation = 8 };

	SLOT(SLOT_API_NAME, .time_ns = 1, .value = (uint64_t)CUPTI_DOMAIN_RUNTIME << 32 | 211,
	     .a = TEXT("cudaLaunchKernel_v7000"));
	SLOT(SLOT_API_NAME, .time_ns = 1, .value = (uint64_t)CUPTI_DOMAIN_DRIVER << 32 | 276,
	     .a = TEXT("cuMemcpyHtoD_v2"));
	PUT(0, api, 40);
	api.kind = CUPTI_KIND_DRIVER;
	api.cbid = 276;
	PUT(0, api, 40);
	api.cbid = 5;
	PUT(0, api, 40);
	api.process++; /* a forked child's */
	PUT(0, api, 40);
	take();
	cr_assert_eq(bench.record->calls.count, 3);
	cr_assert_str_eq(text(bench.record->calls.at[0].name), "cudaLaunchKernel");
	cr_assert_eq(bench.record->calls.at[0].correlation, 8);
	cr_assert_eq(bench.record->sink.session->lanes.at[bench.record->calls.at[0].lane].tid,
		     4711);
	cr_assert_str_eq(text(bench.record->calls.at[1].name), "cuMemcpyHtoD_v2");
	cr_assert_str_eq(text(bench.record->calls.at[2].name), "driver call 5");
}

Test(spool, overheads_and_compilation_are_calls)
{
	struct cupti_overhead overhead = { .kind = CUPTI_KIND_OVERHEAD,
					   .overhead = 1 << 16,
					   .object_kind = 2,
					   .object = { 1, 99, 0 },
					   .start = 60,
					   .end = 70 };
	struct cupti_jit jit = {
		.kind = CUPTI_KIND_JIT, .operation = 3, .start = 80, .end = 90, .thread = 98
	};
	struct call *calls;

	PUT(0, overhead, 56);
	PUT(0, jit, 72);
	take();
	calls = bench.record->calls.at;
	cr_assert_eq(bench.record->calls.count, 2);
	cr_assert_str_eq(text(calls[0].name), "Buffer flush");
	cr_assert_eq(bench.record->sink.session->lanes.at[calls[0].lane].tid, 99);
	cr_assert_str_eq(text(calls[1].name), "JIT compile");
}

static const char *detail(size_t mark)
{
	return text(bench.record->marks.at[mark].detail);
}

static const char *env_of(const char *key)
{
	const struct session *session = bench.record->sink.session;

	for (size_t i = 0; i < session->envs.count; i++) {
		if (!strcmp(text(session->envs.at[i].key), key))
			return text(session->envs.at[i].value);
	}
	return "";
}

/* `*pc` in place of what the process told of its sampling. */
static void told_of_sampling(const struct segment_pc *pc)
{
	memcpy(&bench.segment->pc, pc, sizeof(*pc));
	take();
}

static bool complains(uint32_t number, const char *of)
{
	const char *line = spool_complaint(bench.spool, number);

	return line && strstr(line, of);
}

Test(spool, where_sampling_ran_over_it_is_told_how_long_it_was_on)
{
	atomic_store(&bench.segment->counts.pc_samples, 900);
	atomic_store(&bench.segment->counts.pc_dropped, 70);
	atomic_store(&bench.segment->counts.pc_other, 3);
	told_of_sampling(&(struct segment_pc){ .first_ns = 100,
					       .covered_ns = 2100000000,
					       .period = 20,
					       .contexts = 1,
					       .full = 1 });
	cr_assert_eq(strncmp(env_of("pc_sampling_cost"), "covered_ns=2100000000;span_ns=", 30), 0,
		     "%s", env_of("pc_sampling_cost"));
	cr_assert_not_null(
		strstr(env_of("pc_sampling_cost"), ";period=20;samples=900;dropped=70;other=3"));
	cr_assert(complains(0, "70 of 900 PC samples were dropped on the card"));
	cr_assert(complains(
		1, "the memory for PC samples was full: stall reasons are of at most 2.1 s"));
	cr_assert_null(spool_complaint(bench.spool, 2));
	cr_assert_eq(loss(LOSS_malformed), 0);
	bench_claim(&bench);
	told_of_sampling(&(struct segment_pc){ .first_ns = 100, .contexts = 1, .full = 1 });
	cr_assert(complains(2, "PC samples was full before one could be read: there are no stall"));
}

Test(spool, sampling_that_failed_in_mid_run_is_no_sampling_only_without_a_sample)
{
	struct segment_pc pc = {
		.first_ns = 100, .covered_ns = 2100000000, .contexts = 2, .failed = 1, .result = 999
	};
	struct cupti_device device = { .kind = CUPTI_KIND_DEVICE };

	told_of_sampling(&pc);
	cr_assert(complains(0, "no PC sampling (CUPTI 999): no stall reasons"));
	bench_claim(&bench);
	PUT(0, device, 216);
	SLOT(SLOT_STALL_NAME, .time_ns = 1, .value = 17, .a = TEXT("wait"));
	SLOT(SLOT_PC, .time_ns = 2, .a = TEXT("k"), .b = 17, .x = { 5, 1 });
	told_of_sampling(&pc);
	cr_assert(complains(1, "PC sampling ended early in 1 of 2 contexts (CUPTI 999): stall "
			       "reasons are of 2.1 s"),
		  "%s", spool_complaint(bench.spool, 1));
	cr_assert_null(spool_complaint(bench.spool, 2));
}

/* What the process left there is not what it can have been. */
Test(spool, windows_of_sampling_that_cannot_be_are_counted_and_not_told)
{
	static const uint64_t never = UINT64_MAX / 2;
	struct segment_pc pc[] = {
		{ .first_ns = never, .contexts = 1, .full = 1 },
		{ .first_ns = 100, .covered_ns = never, .full = 1 },
		{ .first_ns = 100, .since_ns = 99, .full = 1 },
		{ .first_ns = 100, .since_ns = never, .full = 1 },
		{ .first_ns = 100, .since_ns = 200, .covered_ns = 101, .full = 1 },
		{ .first_ns = 100, .period = 32, .full = 1 },
	};

	for (size_t i = 0; i < sizeof(pc) / sizeof(pc[0]); i++) {
		told_of_sampling(&pc[i]);
		bench_claim(&bench);
		cr_assert_eq(loss(LOSS_malformed), (int64_t)i + 1);
	}
	cr_assert_null(spool_complaint(bench.spool, 0));
	cr_assert_str_eq(env_of("pc_sampling_cost"), "");
}

Test(spool, an_event_is_one_though_two_calls_tell_of_it_and_its_place_is_used_again)
{
	uint32_t site = TEXT("/bin/job\t10\n");

	/* The driver's call inside the runtime's. */
	SLOT(SLOT_OBJECT, .time_ns = 10, .value = 0xabc0, .a = site, .x = { 7, OBJECT_EVENT, 1 });
	SLOT(SLOT_OBJECT, .time_ns = 11, .value = 0xabc0, .a = site, .x = { 7, OBJECT_EVENT, 1 });
	/* A graph with the same address is another thing. */
	SLOT(SLOT_OBJECT, .time_ns = 12, .value = 0xabc0, .x = { 7, OBJECT_GRAPH, 1 });
	SLOT(SLOT_OBJECT, .time_ns = 20, .value = 0xabc0, .x = { 0, OBJECT_EVENT, 0 });
	SLOT(SLOT_OBJECT, .time_ns = 21, .value = 0xabc0, .x = { 7, OBJECT_EVENT, 0 });
	SLOT(SLOT_OBJECT, .time_ns = 30, .value = 0xdef0, .x = { 7, OBJECT_GRAPH_EXEC, 1 });
	take();
	cr_assert_eq(bench.record->marks.count, 4);
	cr_assert_eq(bench.record->marks.at[0].kind, MARK_OBJECT_MADE);
	cr_assert_str_eq(detail(0), "context=7;event=0;site=job+0x10 (job)");
	cr_assert_str_eq(detail(1), "context=7;graph=1");
	cr_assert_eq(bench.record->marks.at[2].kind, MARK_OBJECT_GONE);
	cr_assert_eq(bench.record->marks.at[2].time_ns, 20);
	cr_assert_str_eq(detail(2), "context=7;event=0");
	cr_assert_str_eq(detail(3), "context=7;graph_exec=0");
}

Test(spool, with_a_context_go_its_events)
{
	SLOT(SLOT_OBJECT, .time_ns = 10, .value = 1, .x = { 7, OBJECT_EVENT, 1 });
	SLOT(SLOT_OBJECT, .time_ns = 11, .value = 2, .x = { 8, OBJECT_EVENT, 1 });
	SLOT(SLOT_CONTEXT_GONE, .time_ns = 12, .value = 7);
	SLOT(SLOT_OBJECT, .time_ns = 13, .value = 1, .x = { 8, OBJECT_EVENT, 1 });
	SLOT(SLOT_OBJECT, .time_ns = 14, .value = 2, .x = { 8, OBJECT_KINDS, 1 });
	take();
	cr_assert_eq(bench.record->marks.count, 4);
	cr_assert_eq(bench.record->marks.at[2].kind, MARK_CONTEXT_GONE);
	cr_assert_str_eq(detail(2), "context=7;context=7");
	cr_assert_str_eq(detail(3), "context=8;event=0");
	cr_assert_eq(loss(LOSS_malformed), 1);
}

Test(spool, pushes_and_pops_nest_by_thread_and_domain)
{
	uint32_t domain = TEXT("library"), a = TEXT("a"), b = TEXT("b");
	struct range *ranges;

	SLOT(SLOT_PUSH, .thread = 1, .time_ns = 10, .a = a);
	SLOT(SLOT_PUSH, .thread = 2, .time_ns = 11, .a = b);
	SLOT(SLOT_PUSH, .thread = 1, .time_ns = 12, .a = b, .b = domain);
	SLOT(SLOT_POP, .thread = 1, .time_ns = 20);
	SLOT(SLOT_POP, .thread = 1, .time_ns = 30, .b = domain);
	SLOT(SLOT_POP, .thread = 2, .time_ns = 40);
	SLOT(SLOT_POP, .thread = 2, .time_ns = 50);
	take();
	ranges = bench.record->ranges.at;
	cr_assert_eq(bench.record->ranges.count, 3);
	cr_assert_str_eq(text(ranges[0].name), "a");
	cr_assert_eq(ranges[0].start_ns, 10);
	cr_assert_eq(ranges[0].end_ns, 20);
	cr_assert_str_eq(text(ranges[1].name), "library: b");
	cr_assert_eq(ranges[1].start_ns, 12);
	cr_assert_eq(ranges[2].end_ns, 40);
	cr_assert_eq(loss(LOSS_unmatched_ends), 1);
}

Test(spool, a_range_may_end_on_another_thread_or_never)
{
	SLOT(SLOT_START, .thread = 1, .time_ns = 10, .value = 1, .a = TEXT("request"));
	SLOT(SLOT_START, .thread = 1, .time_ns = 11, .value = 2, .a = TEXT("lost"));
	SLOT(SLOT_END, .thread = 2, .time_ns = 30, .value = 1);
	SLOT(SLOT_END, .thread = 2, .time_ns = 31, .value = 1);
	SLOT(SLOT_END, .thread = 2, .time_ns = 32, .value = 99);
	take();
	cr_assert_eq(bench.record->ranges.count, 2);
	cr_assert_str_eq(text(bench.record->ranges.at[0].name), "request");
	cr_assert_eq(bench.record->sink.session->lanes.at[bench.record->ranges.at[0].lane].tid, 1);
	cr_assert_eq(bench.record->ranges.at[0].end_ns, 30);
	/* Closed when the process ended. */
	cr_assert_str_eq(text(bench.record->ranges.at[1].name), "lost");
	cr_assert_gt(bench.record->ranges.at[1].end_ns, 1000);
	cr_assert_eq(loss(LOSS_unmatched_ends), 3);
}

Test(spool, ranges_that_ended_make_room_for_others)
{
	enum { MANY = 100000 };
	uint32_t name = TEXT("request");

	for (uint64_t i = 1; i <= MANY; i++) {
		SLOT(SLOT_START, .thread = 1, .time_ns = 2 * i, .value = i, .a = name);
		SLOT(SLOT_END, .thread = 1, .time_ns = 2 * i + 1, .value = i);
	}
	take();
	cr_assert_eq(bench.record->ranges.count, MANY);
	cr_assert_eq(loss(LOSS_unmatched_ends), 0);
}

Test(spool, marks_and_thread_names)
{
	SLOT(SLOT_MARK, .thread = 5, .time_ns = 10, .a = TEXT("here"));
	SLOT(SLOT_MARK, .thread = 5, .time_ns = 11);
	SLOT(SLOT_THREAD, .thread = 5, .time_ns = 12, .value = 5, .a = TEXT("loader"));
	take();
	cr_assert_eq(bench.record->marks.count, 2);
	cr_assert_str_eq(text(bench.record->marks.at[0].name), "here");
	cr_assert_eq(bench.record->marks.at[0].time_ns, 10);
	cr_assert_str_eq(text(bench.record->marks.at[1].name), "(no message)");
	cr_assert_str_eq(
		text(bench.record->sink.session->lanes.at[bench.record->marks.at[0].lane].name),
		"loader");
}

Test(spool, samples_name_their_reason_and_function)
{
	SLOT(SLOT_STALL_NAME, .time_ns = 1, .value = 17, .a = TEXT("long_scoreboard"));
	SLOT(SLOT_PC, .time_ns = 9, .value = 0x40, .a = TEXT("_Z5scalePffi"), .b = 17,
	     .x = { 12, 1, 0xc0c, 1 });
	take();
	cr_assert_eq(bench.record->stalls.count, 1);
	cr_assert_eq(bench.record->stalls.at[0].samples, 12);
	cr_assert_eq(bench.record->stalls.at[0].pc_offset, 0x40);
	cr_assert_eq(bench.record->stalls.at[0].cubin, 0x100000c0c);
	cr_assert_str_eq(text(bench.record->stalls.at[0].reason), "long_scoreboard");
	cr_assert_str_eq(text(bench.record->stalls.at[0].function), "scale(float*, float, int)");
}

Test(spool, what_was_being_written_when_the_process_died_is_read_as_far_as_it_goes)
{
	struct cupti_kernel kernel = { .kind = CUPTI_KIND_CONCURRENT_KERNEL, .start = 5, .end = 6 };
	uint32_t slot = segment_name_at(0x7f0012345678) % SEGMENT_NAMES;
	struct segment_name *entry = &bench.segment->names[slot];

	atomic_store(&entry->pointer, 0x7f0012345678);
	atomic_store(&entry->text, TEXT("seen_before"));
	kernel.name = 0x7f0012345678; /* CUPTI's pointer still */
	PUT(0, kernel, 216);
	kernel.name = 0x7f0087654321;
	PUT(0, kernel, 216);
	atomic_store(&bench.segment->buffers[0].state, BUFFER_FILLING);
	SLOT(SLOT_NONE, .time_ns = 3); /* taken, never finished */
	SLOT(SLOT_MARK, .time_ns = 4, .a = TEXT("after it"));
	take();
	cr_assert_eq(bench.record->ops.count, 2);
	cr_assert_str_eq(text(bench.record->ops.at[0].name), "seen_before");
	cr_assert_str_eq(text(bench.record->ops.at[1].name), "(kernel without a name)");
	cr_assert_eq(bench.record->marks.count, 1);
	cr_assert_eq(loss(LOSS_dropped), 1);
}

Test(spool, what_can_not_be_is_counted_and_left_out)
{
	struct cupti_kernel backwards = { .kind = CUPTI_KIND_CONCURRENT_KERNEL,
					  .start = 50,
					  .end = 6 };
	struct cupti_kernel never = { .kind = CUPTI_KIND_CONCURRENT_KERNEL };
	struct cupti_memcpy huge = {
		.kind = CUPTI_KIND_MEMCPY, .bytes = UINT64_MAX, .start = 1, .end = 2
	};

	PUT(0, backwards, 216);
	PUT(0, never, 216);
	PUT(0, huge, 96);
	SLOT(SLOT_MARK, .time_ns = UINT64_MAX);
	SLOT(99, .time_ns = 5);
	take();
	cr_assert_eq(bench.record->marks.count, 1);
	cr_assert_eq(bench.record->marks.at[0].kind, MARK_UNTIMED);
	cr_assert_eq(bench.record->ops.count, 1);
	cr_assert_eq(bench.record->ops.at[0].bytes, EVENT_UNKNOWN);
	cr_assert_eq(loss(LOSS_malformed), 3);
	cr_assert_eq(loss(LOSS_untimed), 1);
}

Test(spool, loss_that_the_process_counted_is_told_once)
{
	struct spool_status status;

	atomic_store(&bench.segment->users, SEGMENT_USER_INJECT);
	atomic_store(&bench.segment->counts.records_dropped, 5);
	atomic_store(&bench.segment->counts.slots_dropped, 2);
	atomic_store(&bench.segment->counts.slots_nested, 1);
	atomic_store(&bench.segment->counts.texts_dropped, 12);
	take();
	take();
	cr_assert_eq(loss(LOSS_dropped), 8);
	spool_status(bench.spool, &status);
	cr_assert_eq(status.dropped, 8);
	cr_assert_eq(status.processes, 1);
	cr_assert_eq(status.live, 0);
	cr_assert(complains(2, "12 texts found no room"));
}

/* A path can have anything but a NUL in it; the segment is what the program left there. */
Test(spool, call_stacks_of_odd_paths_and_rubbish_are_survived)
{
	static const struct {
		const char *stack, *site;
	} cases[] = {
		{ "/bin/a\tb\t1f\n", "a\tb+0x1f (a\tb)" },
		{ "/bin/a\nb\t1f\n", "b+0x1f (b)" },
		{ "relative/prog\t10\n", "prog+0x10 (prog)" },
		{ "/proc/self/fd/0\t10\n", "0+0x10 (0)" },
		{ "/dev/fd/0\t10\n", "0+0x10 (0)" },
		{ "/x\tffffffffffffffff\n", "x+0xffffffffffffffff (x)" },
		{ "/x\tfffffffffffffffff\n", NULL },
		{ "/x\t\n\n\t\n\t10\n/x\tzz\n/x", NULL },
		{ "/dir/\t10\n", "+0x10 ()" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t site = TEXT(cases[i].stack);

		SLOT(SLOT_OBJECT, .time_ns = 10, .value = 0xa000 + i, .a = site,
		     .x = { 7, OBJECT_EVENT, 1 });
	}
	take();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char wanted[128];

		(void)snprintf(wanted, sizeof(wanted), "context=7;event=%zu%s%s", i,
			       cases[i].site ? ";site=" : "", cases[i].site ? cases[i].site : "");
		cr_assert_str_eq(detail(i), wanted);
	}
}

Test(spool, a_process_that_gave_up_says_why)
{
	static const struct {
		enum segment_reason reason;
		uint32_t detail;
		const char *says;
	} reasons[] = {
		{ SEGMENT_REASON_NO_CUPTI, 0, "no libcupti was found" },
		{ SEGMENT_REASON_CUPTI_VERSION, 140000, "CUPTI version 140000" },
		{ SEGMENT_REASON_SUBSCRIBED, 39, "another tool holds CUPTI" },
		{ SEGMENT_REASON_CALL_FAILED, 999, "CUPTI failed (999)" },
		{ SEGMENT_REASON_YIELDED, 0, "asked for CUPTI itself" },
	};

	for (uint32_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		atomic_store(&bench.segment->reason_detail, reasons[i].detail);
		atomic_store(&bench.segment->reason, reasons[i].reason);
		take();
		cr_assert(strstr(spool_complaint(bench.spool, i), reasons[i].says), "%s",
			  spool_complaint(bench.spool, i));
		bench_claim(&bench);
	}
	cr_assert_null(spool_complaint(bench.spool, sizeof(reasons) / sizeof(reasons[0])));
}

/* Each takes only a part away: one does not hide the other. */
Test(spool, all_that_a_process_does_without_is_told_once)
{
	bench.pid = (uint32_t)getpid(); /* goes on */
	bench_claim(&bench);
	atomic_store(&bench.segment->lack_detail[LACK_UNIFIED], 15);
	atomic_store(&bench.segment->lack_detail[LACK_PC_SAMPLING], 35);
	atomic_store(&bench.segment->lacks, 1u << LACK_UNIFIED | 1u << LACK_PC_SAMPLING);
	take();
	take();
	cr_assert(complains(0, "no PC sampling (CUPTI 35, no permission)"));
	cr_assert(complains(1, "CUPTI refused records of unified memory (15)"));
	cr_assert_null(spool_complaint(bench.spool, 2));
	atomic_fetch_or(&bench.segment->lacks, ~0u << LACK_PC_CONTEXTS);
	take();
	cr_assert(complains(2, "of the first context on each card"));
	cr_assert(complains(3, "this CUPTI does not tell when launches were queued"));
	cr_assert_null(spool_complaint(bench.spool, 4));
}

Test(spool, samples_whose_reason_has_no_name_are_lost_and_counted)
{
	struct cupti_device device = { .kind = CUPTI_KIND_DEVICE };

	PUT(0, device, 216);
	SLOT(SLOT_STALL_NAME, .time_ns = 1, .value = 17, .a = TEXT("wait"));
	SLOT(SLOT_PC, .time_ns = 2, .a = TEXT("k"), .b = 17, .x = { 5, 1 });
	SLOT(SLOT_PC, .time_ns = 3, .a = TEXT("k"), .b = 18, .x = { 7, 1 });
	take();
	cr_assert_eq(loss(LOSS_dropped), 1, "slots");
	cr_assert(complains(0, "7 PC samples were lost: the name of their reason found no room"));
	cr_assert_null(spool_complaint(bench.spool, 1));
}

/* The process can have written anything into the path. */
Test(spool, the_environment_says_which_cupti_it_was)
{
	struct segment *segment = bench.segment;

	take();
	cr_assert_str_eq(env_of("cupti"), "");
	bench_claim(&bench);
	segment->cupti_version = 130001;
	snprintf(segment->cupti_path, sizeof(segment->cupti_path), "/opt/libcupti.so.13");
	take();
	cr_assert_str_eq(env_of("cupti"), "13.0.1 /opt/libcupti.so.13");
}

Test(spool, a_cupti_with_rubbish_for_a_path_is_cut)
{
	bench.segment->cupti_version = 26;
	memset(bench.segment->cupti_path, 'x', sizeof(bench.segment->cupti_path));
	take();
	cr_assert_eq(strncmp(env_of("cupti"), "API 26 xxx", 10), 0);
	cr_assert_eq(strlen(env_of("cupti")), 7 + sizeof(bench.segment->cupti_path) - 1);
}

/* The tool and what it starts are many processes. Rubbish in place of its name, and a
 * name that another line happens to hold, are no reason to be silent. */
Test(spool, another_tool_is_told_once_by_its_whole_name)
{
	static const char *const tools[] = { "ncu", "", "nsys", "CUPTI", "ncu", "", "process" };
	static const char *const told[] = { "(ncu)", "(unnamed)", "(nsys)", "(CUPTI)",
					    "(process)" };

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		snprintf(bench.segment->other_tool, sizeof(bench.segment->other_tool), "%s",
			 tools[i]);
		atomic_store(&bench.segment->reason, SEGMENT_REASON_OTHER_TOOL);
		take();
		bench_claim(&bench);
	}
	for (uint32_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		cr_assert(strstr(spool_complaint(bench.spool, i), told[i]), "%s",
			  spool_complaint(bench.spool, i));
	cr_assert_null(spool_complaint(bench.spool, sizeof(told) / sizeof(told[0])));
}

Test(spool, room_of_a_process_that_ended_is_there_for_the_next)
{
	SLOT(SLOT_MARK, .time_ns = 4, .a = TEXT("first"));
	take();
	cr_assert_eq(atomic_load(&bench.head->owner[0]), 0);
	cr_assert_eq(atomic_load(&bench.segment->ring_head), 0);
	cr_assert_eq(atomic_load(&bench.segment->state), SEGMENT_FREE);
	bench_claim(&bench);
	SLOT(SLOT_MARK, .time_ns = 5, .a = TEXT("second"));
	take();
	cr_assert_eq(bench.record->marks.count, 2);
	cr_assert_str_eq(text(bench.record->marks.at[1].name), "second");
	cr_assert_eq(bench.record->sink.session->sources.count, 2);
}

Test(spool, times_from_the_epoch_are_put_on_the_steady_clock)
{
	struct timespec real, steady;
	struct cupti_kernel kernel = { .kind = CUPTI_KIND_CONCURRENT_KERNEL };
	int64_t off;

	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_MONOTONIC, &steady);
	bench.segment->clock = SEGMENT_CLOCK_REALTIME;
	kernel.start = (uint64_t)real.tv_sec * 1000000000 + (uint64_t)real.tv_nsec;
	kernel.end = kernel.start + 500;
	PUT(0, kernel, 216);
	take();
	cr_assert_eq(bench.record->ops.count, 1);
	off = bench.record->ops.at[0].start_ns -
	      ((int64_t)steady.tv_sec * 1000000000 + steady.tv_nsec);
	cr_assert_lt(off < 0 ? -off : off, 1000000000);
	cr_assert_eq(bench.record->ops.at[0].end_ns - bench.record->ops.at[0].start_ns, 500);
}

/* Of a process that goes on nothing is taken away: it still writes there. */
Test(spool, a_process_that_outlives_the_command_keeps_its_segment)
{
	atomic_store(&bench.head->owner[0], (uint32_t)getpid());
	atomic_store(&bench.segment->buffers[2].state, BUFFER_FILLING);
	SLOT(SLOT_MARK, .time_ns = 4, .a = TEXT("alive"));
	atomic_store(&bench.segment->counts.callbacks, 3);
	atomic_store(&bench.segment->counts.callback_ns, 90);
	cr_assert_geq(spool_finish(bench.spool, &bench.record->sink, &err), 0);
	cr_assert_eq(bench.record->marks.count, 1);
	cr_assert(strstr(spool_complaint(bench.spool, 0), "still runs"));
	cr_assert_str_eq(env_of("callback_cost"), "callbacks=3;ns=90");
	cr_assert_eq(atomic_load(&bench.segment->buffers[2].state), BUFFER_FILLING);
	cr_assert_eq(bench.segment->magic, SEGMENT_MAGIC);
	cr_assert_eq(bench.segment->buffer_bytes, 8192);
	cr_assert_neq(atomic_load(&bench.head->owner[0]), 0);
}

static void is_called(const char *name)
{
	const struct session *session = bench.record->sink.session;
	char file[64];

	(void)snprintf(file, sizeof(file), "%s (pid %u)", name, bench.pid);
	cr_assert_str_eq(session_text(session, session->processes.at[0].name), name);
	cr_assert_str_eq(session_text(session, session->sources.at[0].file), file);
}

/* The name that the process took last is told; that of a program which exec put in its
 * place is another's. */
Test(spool, a_process_is_told_by_the_name_it_took_last, .timeout = 60)
{
	int go[2], done[2];
	pid_t pid;
	char byte;

	cr_assert_eq(pipe2(go, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(done, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		(void)prctl(PR_SET_NAME, "EngineCore");
		(void)!write(done[1], "x", 1);
		(void)!read(go[0], &byte, 1);
		(void)dup2(go[0], STDIN_FILENO);
		execlp("cat", "cat", NULL);
		_exit(127);
	}
	(void)close(done[1]);
	(void)close(go[0]);
	atomic_store(&bench.head->owner[0], (uint32_t)pid);
	cr_assert_eq(read(done[0], &byte, 1), 1);
	take();
	is_called("EngineCore");
	/* exec closes the other end of `done`. */
	cr_assert_eq(write(go[1], "x", 1), 1);
	cr_assert_eq(read(done[0], &byte, 1), 0);
	take();
	is_called("EngineCore");
	(void)close(go[1]);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

/* Progress that is told by the name must not fill the memory and the profile. */
Test(spool, names_without_end_are_few_strings_and_the_last_one_is_told, .timeout = 60)
{
	enum { NAMES = 200 };
	const struct session *session = bench.record->sink.session;
	int go[2], done[2];
	char byte, name[16];
	pid_t pid;

	cr_assert_eq(pipe2(go, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(done, O_CLOEXEC), 0);
	pid = fork();
	for (int i = 0; !pid && read(go[0], &byte, 1) == 1; i++) {
		(void)snprintf(name, sizeof(name), "step %d", i);
		(void)prctl(PR_SET_NAME, name);
		(void)!write(done[1], "x", 1);
	}
	if (!pid)
		_exit(0);
	atomic_store(&bench.head->owner[0], (uint32_t)pid);
	for (int i = 0; i < NAMES; i++) {
		cr_assert_eq(write(go[1], "x", 1), 1);
		cr_assert_eq(read(done[0], &byte, 1), 1);
		take();
	}
	cr_assert_lt(intern_count(session->strings), NAMES);
	cr_assert_geq(spool_finish(bench.spool, &bench.record->sink, &err), 0);
	is_called("step 199");
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

/* CUPTI records calls all along: only the slots tell which are of a pause. */
Test(spool, calls_outside_of_what_the_gates_open_are_left_out)
{
	struct cupti_api api = { .kind = CUPTI_KIND_RUNTIME, .cbid = 211, .process = bench.pid };

	SLOT(SLOT_GATE, .time_ns = 100, .value = 1);
	SLOT(SLOT_GATE, .time_ns = 200, .value = 0);
	SLOT(SLOT_GATE, .time_ns = 300, .value = 1);
	for (uint64_t start_ns = 50; start_ns < 400; start_ns += 100) {
		api.start = start_ns;
		api.end = start_ns + 1;
		PUT(0, api, 40);
	}
	take();
	cr_assert_eq(bench.record->calls.count, 2);
	cr_assert_eq(bench.record->calls.at[0].start_ns, 150);
	cr_assert_eq(bench.record->calls.at[1].start_ns, 350);
	/* The pause is in the profile; before the first window is none. */
	cr_assert_eq(bench.record->ranges.count, 1);
	cr_assert_eq(bench.record->ranges.at[0].kind, RANGE_PAUSED);
	cr_assert_eq(bench.record->ranges.at[0].start_ns, 200);
	cr_assert_eq(bench.record->ranges.at[0].end_ns, 300);
}
