/* What is left of a process that died before any of its buffers was full. */
#include <stdio.h>

#include "spool_bench.h"

TestSuite(spool_young, .init = open_bench, .fini = close_bench);

/* Before its first buffer was full, a process knows no size of a record; those of its device
 * and context come first. */
static void dies_young(uint32_t device, uint32_t context, uint32_t kernel, uint32_t memory)
{
	struct cupti_device of = {
		.kind = CUPTI_KIND_DEVICE, .id = 1, .sms = 132, .name = 0x7f0012345678
	};
	struct cupti_context in = { .kind = CUPTI_KIND_CONTEXT, .context = 2, .device = 1 };
	struct cupti_api call = {
		.kind = CUPTI_KIND_RUNTIME, .start = 3, .end = 4, .process = bench.segment->pid
	};
	struct cupti_kernel work = {
		.kind = CUPTI_KIND_CONCURRENT_KERNEL, .start = 5, .end = 6, .device = 1
	};
	struct cupti_memory got = { .kind = CUPTI_KIND_MEMORY2,
				    .operation = 1,
				    .memory = 3,
				    .bytes = 640,
				    .time = 7,
				    .device = 1 };

	PUT(0, of, device);
	PUT(0, in, context);
	PUT(0, call, 40);
	PUT(0, got, memory);
	PUT(0, work, kernel);
	PUT(0, work, kernel);
	atomic_store(&bench.segment->buffers[0].state, BUFFER_FILLING);
	for (uint32_t kind = 0; kind < SEGMENT_KINDS; kind++)
		atomic_store(&bench.segment->record_bytes[kind], 0);
	take();
	cr_assert_eq(bench.record->sink.session->devices.count, 1);
	cr_assert_eq(bench.record->sink.session->devices.at[0].sm_count, 132);
	cr_assert_eq(bench.record->sink.session->devices.at[0].name, 0);
	cr_assert_eq(bench.record->calls.count, 1);
	cr_assert_eq(bench.record->allocs.count, 1);
	cr_assert_eq(bench.record->ops.count, 2);
	cr_assert_eq(loss(LOSS_malformed), 0);
}

Test(spool_young, a_process_that_died_young_is_read_by_the_sizes_of_its_version)
{
	dies_young(184, 32, 216, 128); /* 13.0 */
}

Test(spool_young, a_process_that_died_young_is_read_by_the_sizes_of_an_older_version)
{
	dies_young(176, 16, 208, 120); /* 12.0 */
}

/* A kernel has its record from its launch on, in front of that of the call. This is of one that
 * spun on an H200: all of it is there but the times. */
Test(spool_young, what_lies_behind_a_kernel_that_never_ended_is_read)
{
	struct cupti_api call = { .kind = CUPTI_KIND_RUNTIME,
				  .start = 3,
				  .end = 4,
				  .process = bench.segment->pid,
				  .thread = 7,
				  .correlation = 14 };
	struct cupti_kernel work = {
		.kind = CUPTI_KIND_CONCURRENT_KERNEL, .start = 5, .end = 6, .correlation = 14
	};
	struct cupti_kernel spins = { .kind = CUPTI_KIND_CONCURRENT_KERNEL | CUPTI_KIND_OPEN,
				      .registers = 16,
				      .context = 1,
				      .stream = 13,
				      .grid = { 1, 1, 1 },
				      .block = { 1, 1, 1 },
				      .correlation = 15,
				      .grid_id = 7,
				      .name = 0x7fa220006850 };
	struct cupti_overhead other = { .kind = CUPTI_KIND_OVERHEAD | CUPTI_KIND_OPEN };

	PUT(0, work, 216);
	PUT(0, call, 40);
	PUT(0, spins, 216);
	PUT(0, other, 56);
	call.correlation = 15;
	PUT(0, call, 40);
	atomic_store(&bench.segment->buffers[0].state, BUFFER_FILLING);
	for (uint32_t kind = 0; kind < SEGMENT_KINDS; kind++)
		atomic_store(&bench.segment->record_bytes[kind], 0);
	take();
	cr_assert_eq(bench.record->calls.count, 2);
	cr_assert_eq(bench.record->calls.at[1].correlation, 15);
	cr_assert_eq(bench.record->ops.count, 1);
	cr_assert_eq(bench.record->marks.count, 1);
	cr_assert_eq(bench.record->marks.at[0].kind, MARK_UNTIMED);
	cr_assert_str_eq(text(bench.record->marks.at[0].name), KERNEL_WITHOUT_NAME);
	cr_assert_str_eq(text(bench.record->marks.at[0].detail),
			 "op=kernel;correlation=15;grid=1,1,1;block=1,1,1");
	cr_assert_eq(loss(LOSS_untimed), 1);
	cr_assert_eq(loss(LOSS_malformed), 0);
	cr_assert_eq(loss(LOSS_dropped), 0);
}

/* The buffer itself, as CUPTI 13.0 held it (tests/gpu/held.py): a kernel and its call, what they
 * cost, the one that spins and its call. */
Test(spool_young, a_buffer_that_CUPTI_held_on_an_H200_is_read)
{
	FILE *file = fopen(SOURCE_DIR "/tests/fake/logs/h200_hang_buffer.bin", "rb");

	cr_assert(file);
	bench.pid = 643;
	bench_claim(&bench);
	cr_assert_eq(fread(segment_buffer(bench.segment, 0), 1, 640, file), 640);
	(void)fclose(file);
	for (uint32_t kind = 0; kind < SEGMENT_KINDS; kind++)
		atomic_store(&bench.segment->record_bytes[kind], 0);
	atomic_store(&bench.segment->buffers[0].state, BUFFER_FILLING);
	take();
	cr_assert_eq(bench.record->ops.count, 1);
	cr_assert_eq(bench.record->ops.at[0].correlation, 14);
	cr_assert_eq(bench.record->ops.at[0].end_ns - bench.record->ops.at[0].start_ns, 3136);
	cr_assert_eq(bench.record->calls.at[bench.record->calls.count - 1].correlation, 15);
	cr_assert_str_eq(text(bench.record->marks.at[0].detail),
			 "op=kernel;correlation=15;grid=1,1,1;block=1,1,1");
	cr_assert_eq(loss(LOSS_untimed), 1);
	cr_assert_eq(loss(LOSS_malformed) + loss(LOSS_dropped), 0);
}
