#include <criterion/criterion.h>
#include <inttypes.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "read/kineto.h"
#include "read/reader.h"
#include "sink_record.h"

static struct err err;

static int read_into(struct record *record, struct str text, bool learn)
{
	OWN(input_closep) struct input *input = input_memory("invented", text.at, text.len);
	uint32_t source = session_source(record->sink.session, "kineto", "invented");

	return kineto_read(input, &record->sink, source, learn, &err);
}

static struct record *read_text(const char *text)
{
	struct record *record = record_new();

	cr_assert_eq(read_into(record, str_of(text), true), 0, "%s", err.line);
	return record;
}

/* Events inside the usual frame. */
static struct record *read_events(const char *events)
{
	struct buf text = { 0 };
	struct record *record;

	buf_printf(&text, "{\"schemaVersion\": 1, \"traceEvents\": [%s]}", events);
	record = read_text(text.at);
	buf_done(&text);
	return record;
}

static int64_t loss(const struct record *record, enum loss id)
{
	return record->sink.session->losses.at[0].count[id];
}

static const char *text(const struct record *record, uint32_t id)
{
	return session_text(record->sink.session, id);
}

static const struct lane *lane(const struct record *record, uint32_t id)
{
	return &record->sink.session->lanes.at[id];
}

#define KERNEL                                                                             \
	"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 7, "   \
	"\"ts\": 100.001, \"dur\": 2.500, \"args\": {\"External id\": 9, \"queued\": 0, "  \
	"\"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": 55, "              \
	"\"registers per thread\": 32, \"shared memory\": 1024, \"blocks per SM\": 0.5, "  \
	"\"grid\": [4, 5, 6], \"block\": [128, 1, 1], \"est. achieved occupancy %\": 40, " \
	"\"graph id\": 3, \"graph node id\": 77, \"priority\": -1}}"

Test(kineto, a_kernel_keeps_its_shape_and_its_nanoseconds)
{
	OWN(record_freep) struct record *record = read_events(KERNEL);
	const struct op *op = &record->ops.at[0];
	const struct kernel_key *key = &record->sink.session->keys.at[op->key];

	cr_assert_eq(record->ops.count, 1);
	cr_expect_eq(op->kind, OP_KERNEL);
	cr_expect_eq(op->start_ns, 100001);
	cr_expect_eq(op->end_ns, 102501);
	cr_expect_eq(op->correlation, 55);
	cr_expect_eq(op->external, 9);
	cr_expect_eq(op->graph_node, 77);
	cr_expect_eq(key->grid[2], 6);
	cr_expect_eq(key->block[0], 128);
	cr_expect_eq(key->shared_bytes, 1024);
	cr_expect_eq(key->registers, 32);
	cr_expect_eq(key->theoretical_occupancy_pct, 40);
	cr_expect_str_eq(text(record, op->detail), "graph id=3;priority=-1");
	cr_expect_eq(lane(record, op->lane)->kind, LANE_STREAM);
	cr_expect_eq(lane(record, op->lane)->context, 1);
	cr_expect_eq(lane(record, op->lane)->stream, 7);
}

Test(kineto, times_are_read_by_digit_where_a_double_would_round)
{
	OWN(record_freep)
	struct record *record =
		read_events("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
			    "\"ts\":9007199254740.993,\"dur\":0.001},"
			    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
			    "\"ts\":1610366387140599,\"dur\":14},"
			    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
			    "\"ts\":12.5,\"dur\":1.0},"
			    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
			    "\"ts\":\"7.25\",\"dur\":1e3}");

	cr_assert_eq(record->calls.count, 4);
	cr_expect_eq(record->calls.at[0].start_ns, 9007199254740993);
	cr_expect_eq(record->calls.at[0].end_ns, 9007199254740994);
	cr_expect_eq(record->calls.at[1].start_ns, 1610366387140599000);
	cr_expect_eq(record->calls.at[2].start_ns, 12500);
	cr_expect_eq(record->calls.at[2].end_ns, 13500);
	cr_expect_eq(record->calls.at[3].start_ns, 7250);
	cr_expect_eq(record->calls.at[3].end_ns, 1007250);
}

Test(kineto, keys_behind_the_events_count_too)
{
	OWN(record_freep)
	struct record *record = read_text(
		"{\"traceEvents\": [" KERNEL "], \"baseTimeNanoseconds\": 1700000000000000000,\n"
		"\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8},\n"
		"\"with_stack\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA X\", "
		"\"numSms\": 10, \"maxThreadsPerMultiprocessor\": 2048, \"warpSize\": 32}],\n"
		"\"INFO\": [\"Record counts: Out-of-range = 12, Blocklisted = 0\"]}");
	const struct session *session = record->sink.session;

	cr_expect(session->sources.at[0].has_utc);
	cr_expect_eq(session->sources.at[0].utc_offset_ns, 1700000000000000000);
	cr_expect_eq(session->sources.at[0].rank, 3);
	cr_expect_eq(session->sources.at[0].world_size, 8);
	cr_expect(session->sources.at[0].with_stack);
	cr_expect_str_eq(text(record, session->sources.at[0].accelerator), "NVIDIA");
	cr_expect_eq(session->devices.count, 1);
	cr_expect_eq(session->devices.at[0].sm_count, 10);
	cr_expect_eq(session->devices.at[0].warps_per_sm, 64);
	cr_expect_eq(loss(record, LOSS_outside_window), 12);
	cr_expect_eq(session->notes.count, 1);
}

Test(kineto, absolute_times_without_a_base_are_utc)
{
	OWN(record_freep)
	struct record *record =
		read_events("{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"a\",\"pid\":1,"
			    "\"tid\":\"12\",\"ts\":1610366387140599,\"dur\":14}");

	cr_expect(record->sink.session->sources.at[0].has_utc);
	cr_expect_eq(record->sink.session->sources.at[0].utc_offset_ns, 0);
	cr_expect_eq(lane(record, record->calls.at[0].lane)->tid, 12);
}

Test(kineto, an_arrow_that_repeats_its_event_becomes_a_flag)
{
	OWN(record_freep)
	struct record *record = read_events(
		"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":5,"
		"\"tid\":5,\"ts\":1.000,\"dur\":1,\"args\":{\"cbid\":211,\"correlation\":55}},"
		"{\"ph\":\"s\",\"id\":55,\"pid\":5,\"tid\":5,\"ts\":1.000,\"cat\":\"ac2g\","
		"\"name\":\"ac2g\"}," KERNEL ","
		"{\"ph\":\"f\",\"id\":55,\"pid\":0,\"tid\":7,\"ts\":100.001,\"cat\":\"ac2g\","
		"\"name\":\"ac2g\",\"bp\":\"e\"},"
		"{\"ph\":\"f\",\"id\":56,\"pid\":0,\"tid\":7,\"ts\":100.001,\"cat\":\"ac2g\","
		"\"name\":\"ac2g\",\"bp\":\"e\"},"
		"{\"ph\":\"s\",\"id\":4,\"pid\":5,\"tid\":5,\"ts\":3,\"cat\":\"fwdbwd\","
		"\"name\":\"fwdbwd\"}");

	cr_assert_eq(record->ops.count, 1);
	cr_assert_eq(record->calls.count, 1);
	cr_assert_eq(record->links.count, 2);
	cr_expect_eq(record->ops.at[0].flow, 1);
	cr_expect_eq(record->calls.at[0].flow, 1);
	cr_expect_str_eq(text(record, record->calls.at[0].detail), "cbid=211");
	cr_expect_eq(record->links.at[0].kind, LINK_LAUNCH);
	cr_expect_eq(record->links.at[0].is_end, 1);
	cr_expect_eq(record->links.at[1].kind, LINK_FORWARD_BACKWARD);
	cr_expect_eq(record->links.at[1].id, 4);
}

Test(kineto, a_copy_tells_its_ends_and_its_memory)
{
	OWN(record_freep)
	struct record *record = read_events(
		"{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (Pageable -> "
		"Device)\","
		"\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":1,\"args\":{\"device\":0,\"context\":1,"
		"\"stream\":7,\"correlation\":3,\"bytes\":4096,"
		"\"memory bandwidth (GB/s)\":4.096}},"
		"{\"ph\":\"X\",\"cat\":\"gpu_memset\",\"name\":\"Memset (Device)\","
		"\"pid\":0,\"tid\":7,\"ts\":3,\"dur\":1,\"args\":{\"device\":0,\"context\":1,"
		"\"stream\":7,\"bytes\":8}},"
		"{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"CopyDeviceToHost\","
		"\"pid\":0,\"tid\":7,\"ts\":5,\"dur\":1,\"args\":{\"device\":0,\"stream\":7}}");

	cr_assert_eq(record->ops.count, 3);
	cr_expect_eq(record->ops.at[0].copy, COPY_HTOD);
	cr_expect_eq(record->ops.at[0].host_memory, HOST_MEMORY_PAGEABLE);
	cr_expect_eq(record->ops.at[0].bytes, 4096);
	cr_expect_eq(record->ops.at[0].detail, 0);
	cr_expect_eq(record->ops.at[1].kind, OP_MEMSET);
	cr_expect_eq(record->ops.at[1].bytes, 8);
	cr_expect_eq(record->ops.at[2].copy, COPY_DTOH);
	cr_expect_eq(record->ops.at[2].bytes, EVENT_UNKNOWN);
	cr_expect_eq(record->ops.at[2].lane, record->ops.at[0].lane);
}

Test(kineto, begin_and_end_make_one_event_and_what_is_left_is_counted)
{
	OWN(record_freep)
	struct record *record = read_events(
		"{\"ph\":\"B\",\"cat\":\"cpu_op\",\"name\":\"outer\",\"pid\":1,\"tid\":1,\"ts\":1,"
		"\"args\":{\"Input Dims\":[[2]]}},"
		"{\"ph\":\"B\",\"cat\":\"cpu_op\",\"name\":\"inner\",\"pid\":1,\"tid\":1,\"ts\":2},"
		"{\"ph\":\"B\",\"cat\":\"cpu_op\",\"name\":\"elsewhere\",\"pid\":1,\"tid\":2,"
		"\"ts\":2},"
		"{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3,\"args\":{\"late\":\"yes\"}},"
		"{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":5},"
		"{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":6}");

	cr_assert_eq(record->calls.count, 2);
	cr_expect_str_eq(text(record, record->calls.at[0].name), "inner");
	cr_expect_eq(record->calls.at[0].end_ns, 3000);
	cr_expect_str_eq(text(record, record->calls.at[0].detail), "late=yes");
	cr_expect_str_eq(text(record, record->calls.at[1].name), "outer");
	cr_expect_eq(record->calls.at[1].start_ns, 1000);
	cr_expect_eq(record->calls.at[1].end_ns, 5000);
	cr_expect_str_eq(text(record, record->calls.at[1].detail), "Input Dims=[[2]]");
	cr_expect_eq(loss(record, LOSS_unmatched_ends), 2);
	cr_assert_eq(record->marks.count, 1);
	cr_expect_str_eq(text(record, record->marks.at[0].name), "elsewhere");
}

Test(kineto, names_may_hold_escapes_control_characters_and_stray_quotes)
{
	OWN(record_freep)
	struct record *record = read_events(
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\\\"b\\\\c\\u00e9\\ud83d\\ude00\","
		"\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\x01\tb\",\"pid\":1,\"tid\":1,"
		"\"ts\":1,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"f(\"x\", \"y\")\",\"pid\":1,"
		"\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{\"Concrete Inputs\":[\"a\"b\", \"c\"]}}");

	cr_assert_eq(record->calls.count, 3);
	cr_expect_str_eq(text(record, record->calls.at[0].name), "a\"b\\c\xc3\xa9\xf0\x9f\x98\x80");
	cr_expect_str_eq(text(record, record->calls.at[1].name), "a\x01\tb");
	cr_expect_str_eq(text(record, record->calls.at[2].name), "f(\"x\", \"y\")");
	cr_expect_str_eq(text(record, record->calls.at[2].detail),
			 "Concrete Inputs=[\"a\"b\", \"c\"]");
	cr_expect_eq(loss(record, LOSS_malformed), 0);
}

Test(kineto, infinity_as_text_stays_and_is_not_a_number)
{
	OWN(record_freep)
	struct record *record = read_events(
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":1,"
		"\"dur\":1,\"args\":{\"device\":0,\"stream\":7,\"blocks per SM\":\"inf\","
		"\"warps per SM\":Infinity,\"est. achieved occupancy %\":NaN}}");

	cr_assert_eq(record->ops.count, 1);
	cr_expect_str_eq(text(record, record->ops.at[0].detail),
			 "blocks per SM=inf;warps per SM=Infinity;est. achieved occupancy %=NaN");
	cr_expect_eq(record->sink.session->keys.at[0].theoretical_occupancy_pct, -1);
}

Test(kineto, steps_annotations_and_spans_are_ranges_and_no_device_work)
{
	OWN(record_freep)
	struct record *record = read_events(
		KERNEL
		","
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#3\",\"pid\":1,"
		"\"tid\":1,\"ts\":1,\"dur\":9},"
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"mine\",\"pid\":1,"
		"\"tid\":1,\"ts\":1,\"dur\":9},"
		"{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"mine\",\"pid\":0,"
		"\"tid\":7,\"ts\":100,\"dur\":9},"
		"{\"ph\":\"X\",\"cat\":\"Trace\",\"ts\":1,\"dur\":300,\"pid\":\"Spans\","
		"\"tid\":\"PyTorch Profiler\",\"name\":\"PyTorch Profiler (0)\","
		"\"args\":{\"Op count\":0}},"
		"{\"name\":\"Record Window End\",\"ph\":\"i\",\"s\":\"g\",\"pid\":\"\","
		"\"tid\":\"\",\"ts\":400}");

	cr_assert_eq(record->ops.count, 1);
	cr_assert_eq(record->ranges.count, 4);
	cr_expect_eq(record->ranges.at[0].kind, RANGE_STEP);
	cr_expect_eq(record->ranges.at[1].kind, RANGE_USER);
	cr_expect_eq(record->ranges.at[2].kind, RANGE_DEVICE);
	cr_expect_eq(record->ranges.at[2].lane, record->ops.at[0].lane);
	cr_expect_eq(record->ranges.at[3].kind, RANGE_SPAN);
	cr_expect_eq(lane(record, record->ranges.at[3].lane)->kind, LANE_OTHER);
	cr_expect_str_eq(text(record, lane(record, record->ranges.at[3].lane)->name),
			 "PyTorch Profiler");
	cr_assert_eq(record->marks.count, 1);
	cr_expect_str_eq(text(record, record->marks.at[0].name), "Record Window End");
}

Test(kineto, memory_events_are_allocations)
{
	OWN(record_freep)
	struct record *record = read_events(
		"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\","
		"\"pid\":1,\"tid\":1,\"ts\":5,\"args\":{\"Total Reserved\":100,"
		"\"Total Allocated\":60,\"Bytes\":-40,\"Device Id\":2,\"Device Type\":1,"
		"\"Addr\":140019052174848,\"Ev Idx\":7}},"
		"{\"ph\":\"i\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":6,"
		"\"args\":{\"Device Type\":0,\"Device Id\":-1,\"Bytes\":4}}");

	cr_assert_eq(record->allocs.count, 2);
	cr_expect_eq(record->allocs.at[0].bytes, -40);
	cr_expect_eq(record->allocs.at[0].device, 2);
	cr_expect_eq(record->allocs.at[0].address, 140019052174848);
	cr_expect_eq(record->allocs.at[0].allocated_bytes, 60);
	cr_expect_eq(record->allocs.at[1].device, -1);
	cr_expect_eq(record->allocs.at[1].allocated_bytes, EVENT_UNKNOWN);
}

Test(kineto, another_accelerator_is_named_and_its_work_is_no_kernel)
{
	OWN(record_freep)
	struct record *record = read_events(
		"{\"ph\":\"X\",\"cat\":\"mtia_ccp_events\",\"name\":\"dma_request\",\"pid\":17,"
		"\"tid\":35,\"ts\":1,\"dur\":1,\"args\":{\"correlation\":2,\"stream\":101,"
		"\"direction\":\"HOST_TO_DEVICE\",\"size\":1371}},"
		"{\"ph\":\"X\",\"cat\":\"mtia_runtime\",\"name\":\"recordEvent\",\"pid\":8,"
		"\"tid\":8,\"ts\":1,\"dur\":1,\"args\":{\"correlation\":2}}");
	const struct source *source = &record->sink.session->sources.at[0];

	cr_assert_eq(record->ops.count, 1);
	cr_expect_eq(record->ops.at[0].kind, OP_OTHER);
	cr_expect_eq(record->ops.at[0].bytes, EVENT_UNKNOWN);
	cr_expect_eq(record->calls.at[0].kind, CALL_OTHER);
	cr_expect(source->no_device_activity);
	cr_expect_str_eq(text(record, source->accelerator), "MTIA");
}

Test(kineto, a_host_only_trace_says_so)
{
	OWN(record_freep)
	struct record *record =
		read_events("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
			    "\"ts\":1,\"dur\":1}");

	cr_expect(record->sink.session->sources.at[0].no_device_activity);
	cr_expect_eq(record->sink.session->sources.at[0].accelerator, 0);
}

Test(kineto, hip_calls_mean_amd)
{
	OWN(record_freep)
	struct record *record = read_events(
		KERNEL
		",{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"hipLaunchKernel\",\"pid\":1,"
		"\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{\"correlation\":55}}");
	const struct source *source = &record->sink.session->sources.at[0];

	cr_expect_str_eq(text(record, source->accelerator), "AMD");
	cr_expect_not(source->no_device_activity);
}

Test(kineto, xla_streams_hold_kernels_and_its_other_rows_do_not)
{
	OWN(record_freep)
	struct record *record = read_text(
		"{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},"
		"\"traceEvents\":["
		"{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\","
		"\"args\":{\"name\":\"/device:GPU:2\"}},"
		"{\"ph\":\"M\",\"pid\":1,\"tid\":14,\"name\":\"thread_name\","
		"\"args\":{\"name\":\"Stream #13(compute)\"}},"
		"{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_name\","
		"\"args\":{\"name\":\"XLA Ops\"}},"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":14,\"ts\":10.125,\"dur\":2.5,"
		"\"name\":\"fusion_1\",\"args\":{\"correlation_id\":\"31\",\"kernel_details\":"
		"\"regs:32 static_shared:16 dynamic_shared:4 grid:8,2,1 block:256,1,1 "
		"occ_pct:50\"}},"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":14,\"ts\":13,\"dur\":1,\"name\":\"MemcpyH2D\","
		"\"args\":{\"memcpy_details\":\"kind_src:pinned kind_dst:device size:64 dest:0 "
		"async:1\"}},"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":10,\"dur\":3,\"name\":\"fusion.1\"},"
		"{\"ph\":\"X\",\"pid\":7,\"tid\":3,\"ts\":9,\"dur\":1,"
		"\"name\":\"cuLaunchKernel\",\"args\":{\"correlation_id\":\"31\"}},"
		"{}]}");
	const struct op *op = &record->ops.at[0];
	const struct kernel_key *key;

	cr_assert_eq(record->ops.count, 2);
	cr_assert_eq(record->ranges.count, 1);
	cr_assert_eq(record->calls.count, 1);
	key = &record->sink.session->keys.at[op->key];
	cr_expect_eq(op->kind, OP_KERNEL);
	cr_expect_eq(op->correlation, 31);
	cr_expect_eq(key->grid[1], 2);
	cr_expect_eq(key->shared_bytes, 20);
	cr_expect_eq(key->registers, 32);
	cr_expect_eq(lane(record, op->lane)->stream, 13);
	cr_expect_eq(record->sink.session->devices.at[0].ordinal, 2);
	cr_expect_eq(record->ops.at[1].copy, COPY_HTOD);
	cr_expect_eq(record->ops.at[1].bytes, 64);
	cr_expect_eq(record->ops.at[1].host_memory, HOST_MEMORY_PINNED);
	cr_expect_eq(record->ranges.at[0].kind, RANGE_DEVICE);
	cr_expect_eq(record->calls.at[0].kind, CALL_DRIVER);
	cr_expect_eq(loss(record, LOSS_seen), 7);
	cr_expect_not(record->sink.session->sources.at[0].no_device_activity);
}

Test(kineto, an_array_alone_is_a_trace)
{
	OWN(record_freep) struct record *record = read_text("\xef\xbb\xbf [" KERNEL "]");

	cr_expect_eq(record->ops.count, 1);
	cr_expect_not(record->sink.session->sources.at[0].truncated);
}

Test(kineto, names_come_from_metadata_events_wherever_they_stand)
{
	OWN(record_freep)
	struct record *record = read_events(
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":10,\"tid\":11,\"ts\":1,"
		"\"dur\":1}," KERNEL ","
		"{\"name\":\"process_name\",\"ph\":\"M\",\"ts\":1,\"pid\":10,\"tid\":0,"
		"\"args\":{\"name\":\"python\"}},"
		"{\"name\":\"process_labels\",\"ph\":\"M\",\"ts\":1,\"pid\":10,\"tid\":0,"
		"\"args\":{\"labels\":\"CPU\"}},"
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"ts\":1,\"pid\":10,\"tid\":11,"
		"\"args\":{\"name\":\"thread 11 (main)\"}},"
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"ts\":1,\"pid\":0,\"tid\":7,"
		"\"args\":{\"name\":\"stream 7 \"}}");
	const struct session *session = record->sink.session;

	cr_expect_str_eq(text(record, lane(record, record->calls.at[0].lane)->name),
			 "thread 11 (main)");
	cr_expect_str_eq(text(record, lane(record, record->ops.at[0].lane)->name), "stream 7 ");
	cr_assert_eq(session->processes.count, 1);
	cr_expect_str_eq(text(record, session->processes.at[0].name), "python");
}

Test(kineto, a_file_cut_anywhere_keeps_what_was_whole)
{
	static const char whole[] = "{\"traceEvents\": [" KERNEL ",\n" KERNEL ",\n" KERNEL "\n]}";
	size_t one = strlen(KERNEL);
	size_t first = strlen("{\"traceEvents\": [");

	for (size_t len = first + one; len < sizeof(whole) - 2; len++) {
		OWN(record_freep) struct record *record = record_new();
		OWN(own_freep) char *copy = mem_copy(whole, len);
		size_t want = 1 + (len - first - one) / (one + 2);

		cr_assert_eq(read_into(record, (struct str){ copy, len }, true), 0, "%zu: %s", len,
			     err.line);
		cr_assert_eq(record->ops.count, want > 3 ? 3 : want, "cut at %zu: %zu", len,
			     record->ops.count);
		cr_assert(record->sink.session->sources.at[0].truncated);
		cr_assert_not(record->sink.session->sources.at[0].no_device_activity);
		if (len == first + one + 2 + 40)
			cr_expect_eq(loss(record, LOSS_truncated_bytes), 40);
	}
}

Test(kineto, damage_costs_the_damaged_record_only)
{
	OWN(record_freep)
	struct record *record = read_events(
		KERNEL ", {\"ph\":\"X\",\"cat\":\"kernel\",\"name\" \"k\", oops}, " KERNEL
		       ", {\"ph\":\"X\",\"name\":\"no time\"}, null, 12, " KERNEL
		       ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
		       "\"ts\":99999999999999999999999,\"dur\":1}");

	cr_expect_eq(record->ops.count, 3);
	cr_expect_eq(loss(record, LOSS_seen), 8, "%d %d %d", (int)loss(record, LOSS_seen),
		     (int)loss(record, LOSS_malformed), (int)loss(record, LOSS_dropped));
	cr_expect_eq(loss(record, LOSS_malformed), 2);
	cr_expect_eq(loss(record, LOSS_dropped), 5);
	cr_expect_not(record->sink.session->sources.at[0].truncated);
}

Test(kineto, times_below_the_base_and_ends_before_starts_are_counted)
{
	OWN(record_freep)
	struct record *record = read_text(
		"{\"baseTimeNanoseconds\": 1700000000000000000, \"traceEvents\": ["
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0,"
		"\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":0.000,"
		"\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"c\",\"pid\":1,\"tid\":1,\"ts\":9,"
		"\"dur\":-2},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"d\",\"pid\":1,\"tid\":1,"
		"\"ts\":9223372036854775.807,\"dur\":9223372036854775.807}]}");

	cr_expect_eq(record->calls.count, 4);
	cr_expect_eq(loss(record, LOSS_clamped), 2);
	cr_expect_eq(loss(record, LOSS_negative), 1);
	cr_expect_eq(record->calls.at[3].end_ns, INT64_MAX);
}

Test(kineto, what_is_no_trace_is_refused_in_one_line)
{
	static const char *const texts[] = { "",          "   ",
					     "hello",     "{}",
					     "[1, 2, 3]", "{\"a\": 1}",
					     "{\"a\": ",  "{\"traceEvents\": {}}",
					     "\x00\x01",  "{\"traceEvents\": [{\"ph\": \"X" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		OWN(record_freep) struct record *record = record_new();

		cr_expect_eq(read_into(record, str_of(texts[i]), true), ERR_FORMAT, "%s", texts[i]);
		cr_expect(str_starts(str_of(err.line), "invented: "), "%s", err.line);
	}
}

Test(kineto, a_million_brackets_need_no_stack)
{
	struct buf buf = { 0 };
	OWN(record_freep) struct record *record = record_new();

	buf_text(&buf, "{\"traceEvents\": [" KERNEL ", {\"ph\":\"X\",\"args\":{\"a\":");
	for (int i = 0; i < 1000000; i++)
		buf_char(&buf, i % 2 ? '{' : '[');
	cr_expect_eq(read_into(record, (struct str){ buf.at, buf.len }, true), 0);
	cr_expect_eq(record->ops.count, 1);
	cr_expect(loss(record, LOSS_truncated_bytes) > 1000000);
	buf_done(&buf);
}

Test(kineto, the_probe_goes_by_content)
{
	static const char array[] = " [{\"ph\": \"X\"}]";
	static const char object[] = "{\"schemaVersion\": 1, \"traceEvents\": [";

	cr_expect(reader_kineto.probe(array, strlen(array)) > 50);
	cr_expect(reader_kineto.probe(object, strlen(object)) > 90);
	cr_expect_eq(reader_kineto.probe("[1, 2]", 6), 0);
	cr_expect_eq(reader_kineto.probe("gpu pwr", 7), 0);
	cr_expect_eq(reader_kineto.probe("", 0), 0);
}

/* Small and odd changes to a trace, as a broken writer or disk makes them. */
static void mutate(struct buf *trace, uint64_t *random)
{
	static const char odd[] = "\"\\{}[],: 0.9e-n\n\tX\x80";

	for (int i = 0; i < 4; i++) {
		size_t at, len;

		*random = *random * 6364136223846793005u + 1442695040888963407u;
		at = (size_t)(*random >> 33) % (trace->len - 16);
		len = 1 + (*random >> 20) % 12;
		if (*random >> 60 & 1)
			trace->at[at] = odd[(*random >> 40) % (sizeof(odd) - 1)];
		else if (*random >> 61 & 1)
			memmove(trace->at + at, trace->at + at + len, trace->len - at - len);
		else
			memmove(trace->at + at + len, trace->at + at, trace->len - at - len);
	}
}

#define SAME(name)                                                                         \
	cr_assert_eq(a->name##s.count, b->name##s.count, "seed %d", seed);                 \
	cr_assert(!a->name##s.count || !memcmp(a->name##s.at, b->name##s.at,               \
					       a->name##s.count * sizeof(*a->name##s.at)), \
		  "seed %d", seed)

Test(kineto, the_learned_way_and_the_general_way_agree_on_damaged_traces)
{
	static const char *const files[] = { "compact", "pretty", "odd", "begin_end", "xla" };

	for (int seed = 0; seed < 1500; seed++) {
		OWN(record_freep) struct record *a = record_new();
		OWN(record_freep) struct record *b = record_new();
		char path[512];
		struct buf trace = { 0 };
		uint64_t random = (uint64_t)seed * 0x9e3779b97f4a7c15u;
		FILE *file;

		(void)snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/kineto/%s", SOURCE_DIR,
			       files[seed % 5]);
		file = fopen(path, "rb");
		cr_assert_not_null(file);
		trace.len = fread(buf_room(&trace, 16384), 1, 16384, file);
		(void)fclose(file);
		if (seed >= 5)
			mutate(&trace, &random);
		cr_assert_eq(read_into(a, (struct str){ trace.at, trace.len }, true),
			     read_into(b, (struct str){ trace.at, trace.len }, false));
		SAME(op);
		SAME(call);
		SAME(range);
		SAME(link);
		SAME(alloc);
		SAME(mark);
		cr_assert(!memcmp(a->sink.session->losses.at, b->sink.session->losses.at,
				  sizeof(struct loss_row)),
			  "seed %d", seed);
		buf_done(&trace);
	}
}
