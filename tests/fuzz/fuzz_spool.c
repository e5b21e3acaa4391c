/*
 * Any bytes as what a profiled process left in its segment: the head behind the
 * layout, the table of names, the ring, the texts and the buffers. The first five
 * pairs of bytes are the parts' lengths, in units of 8 bytes.
 */
#include <stdint.h>
#include <string.h>

#include "segment_bench.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The head, field by field: a layout that changes leaves inputs what they are. A new field
 * comes last but for `counts`, which grows. */
#define FIELD(name)                                                                    \
	{                                                                              \
		offsetof(struct segment, name), sizeof(((struct segment *)NULL)->name) \
	}
static const struct field {
	size_t at, bytes;
} fields[] = {
	FIELD(state),       FIELD(reason),      FIELD(reason_detail),
	FIELD(texts_used),  FIELD(ring_head),   FIELD(ring_tail),
	FIELD(order),       FIELD(wanted),      FIELD(record_bytes),
	FIELD(buffers),     FIELD(users),       FIELD(paused),
	FIELD(image),       FIELD(start_ticks), FIELD(cupti_version),
	FIELD(head_bytes),  FIELD(clock),       FIELD(world_rank),
	FIELD(world_size),  FIELD(cupti_path),  FIELD(command),
	FIELD(other_tool),  FIELD(pc),          FIELD(lacks),
	FIELD(lack_detail), FIELD(counts),      FIELD(closed),
};

struct rest {
	const uint8_t *at;
	size_t size;
};

static void copy_part(struct rest *rest, uint32_t units, void *to, size_t room)
{
	size_t bytes = (size_t)units * 8;

	if (bytes > rest->size)
		bytes = rest->size;
	memcpy(to, rest->at, bytes < room ? bytes : room);
	rest->at += bytes;
	rest->size -= bytes;
}

static void copy_head(struct rest *rest, uint32_t units, struct segment *segment)
{
	struct rest head = { rest->at, (size_t)units * 8 };

	if (head.size > rest->size)
		head.size = rest->size;
	rest->at += head.size;
	rest->size -= head.size;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		size_t bytes = fields[i].bytes < head.size ? fields[i].bytes : head.size;

		memcpy((char *)segment + fields[i].at, head.at, bytes);
		head.at += bytes;
		head.size -= bytes;
	}
}

/* What a sink may rely on. */
static void check(const struct record *record)
{
	const struct session *session = record->sink.session;

	for (size_t i = 0; i < record->ops.count; i++) {
		const struct op *op = &record->ops.at[i];

		if (op->end_ns < op->start_ns || op->lane >= session->lanes.count ||
		    op->bytes < EVENT_UNKNOWN ||
		    (op->kind == OP_KERNEL && op->key >= session->keys.count))
			abort();
		(void)strlen(session_text(session, op->name));
	}
	for (size_t i = 0; i < record->calls.count; i++) {
		if (record->calls.at[i].end_ns < record->calls.at[i].start_ns ||
		    record->calls.at[i].lane >= session->lanes.count)
			abort();
	}
	for (size_t i = 0; i < record->ranges.count; i++) {
		if (record->ranges.at[i].end_ns < record->ranges.at[i].start_ns)
			abort();
	}
	for (size_t i = 0; i < record->marks.count; i++) {
		if (record->marks.at[i].time_ns < 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint32_t dead_pid;
	struct spool_opts opts = { .segments = 1, .buffer_bytes = 4096, .buffers = 2 };
	struct bench bench = { .pid = dead_pid };
	struct segment *segment;
	struct spool_status status;
	uint16_t units[5];
	struct rest rest = { data + sizeof(units), size - sizeof(units) };
	struct err err = { 0 };

	if (size < sizeof(units))
		return 0;
	memcpy(units, data, sizeof(units));
	if (!bench_open(&bench, &opts))
		abort();
	dead_pid = bench.pid;
	segment = bench.segment;
	/* In this order the buffers' bytes are the input's tail. */
	copy_head(&rest, units[0], segment);
	copy_part(&rest, units[1], segment->names, sizeof(segment->names));
	copy_part(&rest, units[2], segment_ring(segment), 1 << 16);
	copy_part(&rest, units[3], (char *)segment + segment->texts_at, 1 << 16);
	copy_part(&rest, units[4], segment_buffer(segment, 0), 2 * 4096);
	segment->pid = bench.pid;
	atomic_store(&bench.head->owner[0], bench.pid);
	if (atomic_load(&segment->state) == SEGMENT_FREE)
		atomic_store(&segment->state, SEGMENT_CLAIMED);
	(void)spool_take(bench.spool, &bench.record->sink, &err);
	(void)spool_finish(bench.spool, &bench.record->sink, &err);
	spool_status(bench.spool, &status);
	check(bench.record);
	bench_close(&bench);
	return 0;
}
