/* What the spool makes of memory, modules, pools, and pages that move. */
#include <stdlib.h>
#include <time.h>

#include "spool_bench.h"

TestSuite(spool_memory, .init = open_bench, .fini = close_bench);

Test(spool_memory, allocations_are_signed_and_host_memory_has_no_device)
{
	struct cupti_memory memory = { .kind = CUPTI_KIND_MEMORY2,
				       .operation = 1,
				       .memory = 3,
				       .address = 0x7000,
				       .bytes = 640,
				       .time = 12,
				       .device = 2 };

	PUT(0, memory, 128);
	memory.operation = 2;
	memory.memory = 2;
	PUT(0, memory, 128);
	memory.bytes = UINT64_MAX; /* can't be */
	PUT(0, memory, 128);
	take();
	cr_assert_eq(bench.record->allocs.count, 2);
	cr_assert_eq(bench.record->allocs.at[0].bytes, 640);
	cr_assert_eq(bench.record->allocs.at[0].device, 2);
	cr_assert_eq(bench.record->allocs.at[0].time_ns, 12);
	cr_assert_eq(bench.record->allocs.at[1].bytes, -640);
	cr_assert_eq(bench.record->allocs.at[1].device, -1);
	cr_assert_eq(loss(LOSS_malformed), 1);
}

/* By CUPTI's header. */
Test(spool_memory, unified_memory_moves_pages_and_serves_faults)
{
	struct cupti_unified unified = { .kind = CUPTI_KIND_UNIFIED_MEMORY,
					 .counter = CUPTI_UNIFIED_DTOH,
					 .value = 4096,
					 .start = 10,
					 .end = 30,
					 .from = 1,
					 .to = UINT32_MAX,
					 .flags = 2 };
	const struct session *session = bench.record->sink.session;
	const struct range *ranges;
	const struct op *op;

	PUT(0, unified, 104);
	unified.counter = CUPTI_UNIFIED_GPU_FAULT;
	unified.value = 37;
	unified.flags = 1;
	PUT(0, unified, 104);
	unified.counter = CUPTI_UNIFIED_THRASHING;
	unified.value = 99; /* means nothing, as the end does */
	unified.end = 0;
	PUT(0, unified, 104);
	unified.counter = CUPTI_UNIFIED_GPU_FAULT;
	PUT(0, unified, 104); /* ends before it begins */
	unified.counter = 77;
	PUT(0, unified, 104);
	take();
	op = bench.record->ops.at;
	ranges = bench.record->ranges.at;
	cr_assert_eq(bench.record->ops.count, 1);
	cr_assert_str_eq(text(op->name), "Migration DtoH (page fault)");
	cr_assert_eq(op->host_memory, HOST_MEMORY_MANAGED);
	cr_assert_eq(op->bytes, 4096);
	cr_assert_eq(op->end_ns, 30);
	cr_assert_str_eq(text(session->lanes.at[op->lane].name), "unified memory");
	cr_assert_eq(session->devices.at[session->lanes.at[op->lane].device].ordinal, 1);
	cr_assert_eq(bench.record->ranges.count, 2);
	cr_assert_eq(ranges[0].kind, RANGE_PAGE_FAULT);
	cr_assert_str_eq(text(ranges[0].name), "GPU page faults (read)");
	cr_assert_eq(ranges[0].external, 37);
	cr_assert_eq(ranges[0].lane, op->lane);
	cr_assert_str_eq(text(ranges[1].name), "thrashing");
	cr_assert_eq(ranges[1].external, 1);
	cr_assert_eq(ranges[1].end_ns, 10);
	cr_assert_eq(loss(LOSS_malformed), 1);
}

/* CUPTI's header: `value` is the program counter; bytes; and throttling has no device that
 * could be told from the CPU. */
Test(spool_memory, what_is_no_fault_of_the_gpu_is_one_of_its_kind_and_of_no_device)
{
	static const uint32_t counters[] = { CUPTI_UNIFIED_CPU_FAULT, CUPTI_UNIFIED_THROTTLING,
					     CUPTI_UNIFIED_REMOTE_MAP };
	struct cupti_unified unified = { .kind = CUPTI_KIND_UNIFIED_MEMORY,
					 .value = 0x7f00c0ffee,
					 .start = 10,
					 .end = 30,
					 .from = UINT32_MAX };
	const struct session *session = bench.record->sink.session;
	const struct range *range;

	for (size_t i = 0; i < 3; i++) {
		unified.counter = counters[i];
		PUT(0, unified, 104);
	}
	take();
	cr_assert_eq(bench.record->ranges.count, 3);
	cr_assert_eq(session->devices.count, 0);
	for (size_t i = 0; i < 3; i++) {
		range = &bench.record->ranges.at[i];
		cr_assert_eq(range->external, 1);
		cr_assert_eq(session->lanes.at[range->lane].device, SESSION_NONE);
		cr_assert_eq(range->end_ns, i == 1 ? 30 : 10);
	}
}

/* A page moves to device 1 of so many; the number of the one that it is told of. CUPTI's header
 * says CUDA's number; the driver counts processors, the CPU among them. */
static int64_t moved_to(uint32_t devices)
{
	struct cupti_device device = { .kind = CUPTI_KIND_DEVICE, .sms = 132 };
	struct cupti_unified unified = { .kind = CUPTI_KIND_UNIFIED_MEMORY,
					 .counter = CUPTI_UNIFIED_HTOD,
					 .value = 4096,
					 .start = 10,
					 .end = 30,
					 .to = 1 };
	const struct session *session = bench.record->sink.session;

	for (; device.id < devices; device.id++) {
		device.uuid[0] = (uint8_t)device.id;
		PUT(0, device, 184);
	}
	PUT(0, unified, 104);
	take();
	cr_assert_eq(bench.record->ops.count, 1);
	cr_assert_eq(session->devices.count, devices);
	return session->devices.at[session->lanes.at[bench.record->ops.at[0].lane].device].ordinal;
}

Test(spool_memory, the_only_device_is_the_one_whose_pages_move)
{
	cr_assert_eq(moved_to(1), 0);
}

Test(spool_memory, of_two_devices_it_is_the_one_that_cupti_says)
{
	cr_assert_eq(moved_to(2), 1);
}

/* The driver takes these times: where they are the epoch's, whatever the other records have. */
Test(spool_memory, times_of_unified_memory_can_be_of_the_epoch)
{
	struct timespec real, steady;
	struct cupti_unified unified = { .kind = CUPTI_KIND_UNIFIED_MEMORY,
					 .counter = CUPTI_UNIFIED_GPU_FAULT,
					 .value = 3 };
	int64_t off_ns;

	clock_gettime(CLOCK_MONOTONIC, &steady);
	clock_gettime(CLOCK_REALTIME, &real);
	unified.start = (uint64_t)real.tv_sec * 1000000000 + (uint64_t)real.tv_nsec;
	unified.end = unified.start + 1000;
	PUT(0, unified, 104);
	take();
	cr_assert_eq(bench.record->ranges.count, 1);
	off_ns = bench.record->ranges.at[0].start_ns -
		 ((int64_t)steady.tv_sec * 1000000000 + steady.tv_nsec);
	cr_assert_lt(llabs(off_ns), 1000000000);
}

Test(spool_memory, a_module_that_comes_or_goes_is_a_mark)
{
	SLOT(SLOT_MODULE, .time_ns = 10, .value = 0xc0c, .x = { 5, 1, 1, 4096 });
	SLOT(SLOT_MODULE, .time_ns = 20, .x = { 5, 1, 0, 4096 });
	take();
	cr_assert_eq(bench.record->marks.count, 2);
	cr_assert_str_eq(text(bench.record->marks.at[0].name), "module loaded");
	cr_assert(strstr(text(bench.record->marks.at[0].detail),
			 "context=1;module=5;bytes=4096;crc=0xc0c"));
	cr_assert_str_eq(text(bench.record->marks.at[1].name), "module unloaded");
	cr_assert_eq(bench.record->marks.at[1].time_ns, 20);
}

Test(spool_memory, a_memory_pool_is_a_mark)
{
	struct cupti_pool pool = { .kind = CUPTI_KIND_MEMORY_POOL,
				   .operation = 3,
				   .type = 1,
				   .device = 1,
				   .address = 0x7f00,
				   .bytes = 1 << 20,
				   .threshold = 5,
				   .time = 40 };

	PUT(0, pool, 80);
	pool.type = 2; /* imported: of its size CUPTI knows nothing */
	PUT(0, pool, 80);
	pool.operation = 9;
	PUT(0, pool, 80);
	take();
	cr_assert_eq(bench.record->marks.count, 2);
	cr_assert_null(strstr(text(bench.record->marks.at[1].detail), "bytes"));
	cr_assert_str_eq(text(bench.record->marks.at[0].name), "memory pool trimmed");
	cr_assert_eq(bench.record->marks.at[0].time_ns, 40);
	cr_assert(strstr(text(bench.record->marks.at[0].detail),
			 "pool=0x7f00;bytes=1048576;threshold=5"));
}
