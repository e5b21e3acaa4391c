/*
 * memory_store.h - a profile in memory, for tests of analyses.
 *
 * Stands in for src/store: it defines the store's functions that analyses call,
 * so that a test that includes it links none of the store. Events are pushed
 * through a sink, as a reader does. Chunks are small and may overlap in time,
 * as those of a real file may.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "analyze/facts.h"
#include "base/mem.h"
#include "store/store.h"

enum { MEMORY_CHUNK = 5 };

struct memory_row {
	enum store_kind kind;
	uint32_t lane;
	int64_t col[STORE_COLUMN_COUNT];
};

struct store {
	struct session *session;
	struct sink sink;
	VEC(struct memory_row) rows;
	VEC(struct sample) samples; /* COL_id of a sample's row is its index here */
	bool settled;
};

struct store_cursor {
	struct store *store;
	struct store_query query;
	size_t at;
	int64_t columns[STORE_COLUMN_COUNT][MEMORY_CHUNK];
	struct sample samples[MEMORY_CHUNK];
};

static struct store *memory_of(struct sink *sink)
{
	return (struct store *)(void *)((char *)sink - offsetof(struct store, sink));
}

static struct memory_row *memory_row(struct sink *sink, enum store_kind kind, uint32_t lane,
				     int64_t start, int64_t end)
{
	struct memory_row *row = VEC_ADD(&memory_of(sink)->rows);
	struct source *source = &sink->session->sources.at[sink->session->lanes.at[lane].source];

	row->kind = kind;
	row->lane = lane;
	row->col[COL_start] = start;
	row->col[COL_duration] = end - start;
	if (source->first_ns > source->last_ns) {
		source->first_ns = start;
		source->last_ns = end;
	}
	source->first_ns = start < source->first_ns ? start : source->first_ns;
	source->last_ns = end > source->last_ns ? end : source->last_ns;
	return row;
}

static int memory_op(struct sink *sink, const struct op *op, struct err *err)
{
	static const enum store_kind kinds[] = { STORE_kernel, STORE_memcpy, STORE_memset,
						 STORE_graph, STORE_device_other };
	struct memory_row *row =
		memory_row(sink, kinds[op->kind], op->lane, op->start_ns, op->end_ns);

	(void)err;
	row->col[COL_name] = op->name;
	row->col[COL_key] = op->key;
	row->col[COL_correlation] = (int64_t)op->correlation;
	row->col[COL_bytes] = op->bytes;
	row->col[COL_copy] = op->copy;
	row->col[COL_host_memory] = op->host_memory;
	row->col[COL_detail] = op->detail;
	return 0;
}

static int memory_call(struct sink *sink, const struct call *call, struct err *err)
{
	static const enum store_kind kinds[] = { STORE_runtime, STORE_driver,    STORE_op,
						 STORE_python,  STORE_overhead,  STORE_sync,
						 STORE_os,      STORE_call_other };
	struct memory_row *row =
		memory_row(sink, kinds[call->kind], call->lane, call->start_ns, call->end_ns);

	(void)err;
	row->col[COL_name] = call->name;
	row->col[COL_correlation] = (int64_t)call->correlation;
	row->col[COL_sequence] = (int64_t)call->sequence;
	row->col[COL_parent] = call->parent;
	row->col[COL_detail] = call->detail;
	return 0;
}

static int memory_range(struct sink *sink, const struct range *range, struct err *err)
{
	static const enum store_kind kinds[] = {
		[RANGE_STATE] = STORE_state,         [RANGE_STATE_EXACT] = STORE_state_exact,
		[RANGE_CPU_STACK] = STORE_cpu_stack, [RANGE_PYTHON_STACK] = STORE_python_stack,
		[RANGE_PAUSED] = STORE_range,        [RANGE_PAGE_FAULT] = STORE_page_fault
	};
	struct memory_row *row =
		memory_row(sink, range->kind < RANGE_STATE ? STORE_range : kinds[range->kind],
			   range->lane, range->start_ns, range->end_ns);

	(void)err;
	row->col[COL_name] = range->name;
	row->col[COL_subkind] = range->kind;
	row->col[COL_faults] = (int64_t)range->external;
	row->col[COL_detail] = range->detail;
	return 0;
}

static int memory_mark(struct sink *sink, const struct mark *mark, struct err *err)
{
	struct memory_row *row =
		memory_row(sink, STORE_mark, mark->lane, mark->time_ns, mark->time_ns);

	(void)err;
	row->col[COL_name] = mark->name;
	row->col[COL_detail] = mark->detail;
	row->col[COL_subkind] = mark->kind;
	return 0;
}

static int memory_alloc(struct sink *sink, const struct alloc *alloc, struct err *err)
{
	struct memory_row *row =
		memory_row(sink, STORE_alloc, alloc->lane, alloc->time_ns, alloc->time_ns);

	(void)err;
	row->col[COL_bytes] = alloc->bytes;
	row->col[COL_address] = (int64_t)alloc->address;
	row->col[COL_allocated] = alloc->allocated_bytes;
	row->col[COL_name] = alloc->site;
	row->col[COL_reserved] = alloc->reserved_bytes;
	row->col[COL_device] = alloc->device;
	return 0;
}

static int memory_stall(struct sink *sink, const struct stall *stall, struct err *err)
{
	struct memory_row *row =
		memory_row(sink, STORE_stall, stall->lane, stall->time_ns, stall->time_ns);

	(void)err;
	row->col[COL_function] = stall->function;
	row->col[COL_pc_offset] = (int64_t)stall->pc_offset;
	row->col[COL_reason] = stall->reason;
	row->col[COL_samples] = stall->samples;
	return 0;
}

static int memory_sample(struct sink *sink, const struct sample *sample, struct err *err)
{
	struct store *store = memory_of(sink);
	struct memory_row *row =
		memory_row(sink, STORE_sample, sample->lane, sample->time_ns, sample->time_ns);

	(void)err;
	row->col[COL_id] = (int64_t)store->samples.count;
	*VEC_ADD(&store->samples) = *sample;
	return 0;
}

static const struct sink_ops memory_ops = { .op = memory_op,
					    .call = memory_call,
					    .range = memory_range,
					    .alloc = memory_alloc,
					    .mark = memory_mark,
					    .stall = memory_stall,
					    .sample = memory_sample };

static struct store *memory_store_new(void)
{
	struct store *store = mem_zero(sizeof(*store));

	store->session = session_new();
	store->sink.ops = &memory_ops;
	store->sink.session = store->session;
	return store;
}

static int memory_order(const void *a, const void *b)
{
	const struct memory_row *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return 0;
}

static int memory_chunk_order(const void *a, const void *b)
{
	const struct memory_row *x = a, *y = b;

	return (x->col[COL_start] > y->col[COL_start]) - (x->col[COL_start] < y->col[COL_start]);
}

/* Rows that go together, at most MEMORY_CHUNK. */
static size_t memory_chunk(const struct store *store, size_t at)
{
	size_t count = 1;

	while (count < MEMORY_CHUNK && at + count < store->rows.count &&
	       !memory_order(&store->rows.at[at], &store->rows.at[at + count]))
		count++;
	return count;
}

/* By lane and kind in order of arrival, each chunk in order of start. */
static void memory_settle(struct store *store)
{
	size_t count = store->rows.count, groups = store->session->lanes.count * STORE_KIND_COUNT;
	struct memory_row *sorted;
	size_t *next; /* place of the next row of a lane and kind */

	if (store->settled || !count)
		return;
	sorted = mem_alloc(count * sizeof(*sorted));
	next = mem_zero((groups + 1) * sizeof(*next));
	for (size_t i = 0; i < count; i++)
		next[store->rows.at[i].lane * STORE_KIND_COUNT + store->rows.at[i].kind + 1]++;
	for (size_t i = 0; i < groups; i++)
		next[i + 1] += next[i];
	for (size_t i = 0; i < count; i++) {
		const struct memory_row *row = &store->rows.at[i];

		sorted[next[row->lane * STORE_KIND_COUNT + row->kind]++] = *row;
	}
	memcpy(store->rows.at, sorted, count * sizeof(*sorted));
	free(sorted);
	free(next);
	for (size_t i = 0; i < count;) {
		size_t chunk = memory_chunk(store, i);

		qsort(&store->rows.at[i], chunk, sizeof(*store->rows.at), memory_chunk_order);
		i += chunk;
	}
	store->settled = true;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	session_free(store->session);
	VEC_DONE(&store->rows);
	VEC_DONE(&store->samples);
	free(store);
}

struct session *store_session(struct store *store)
{
	return store->session;
}

bool store_was_cut(const struct store *store)
{
	(void)store;
	return false;
}

int64_t store_damage(const struct store *store)
{
	(void)store;
	return 0;
}

const char *store_path(const struct store *store)
{
	(void)store;
	return "memory";
}

int64_t store_count(struct store *store, enum store_kind kind)
{
	int64_t count = 0;

	for (size_t i = 0; i < store->rows.count; i++)
		count += store->rows.at[i].kind == kind;
	return count;
}

int store_query_open(struct store *store, const struct store_query *query,
		     struct store_cursor **ret_cursor, struct err *err)
{
	(void)err;
	memory_settle(store);
	*ret_cursor = mem_zero(sizeof(**ret_cursor));
	(*ret_cursor)->store = store;
	(*ret_cursor)->query = *query;
	return 0;
}

int store_next(struct store_cursor *cursor, struct store_batch *ret_batch, struct err *err)
{
	const struct store *store = cursor->store;
	const struct memory_row *rows;

	(void)err;
	while (cursor->at < store->rows.count &&
	       !(cursor->query.kinds & STORE_BIT(store->rows.at[cursor->at].kind)))
		cursor->at += memory_chunk(store, cursor->at);
	if (cursor->at >= store->rows.count)
		return 0;
	rows = &store->rows.at[cursor->at];
	memset(ret_batch, 0, sizeof(*ret_batch));
	ret_batch->kind = rows->kind;
	ret_batch->lane = rows->lane;
	ret_batch->count = memory_chunk(store, cursor->at);
	for (int c = 0; c < STORE_COLUMN_COUNT; c++) {
		if (!(cursor->query.columns & COL_BIT(c)))
			continue;
		for (size_t i = 0; i < ret_batch->count; i++)
			cursor->columns[c][i] = rows[i].col[c];
		ret_batch->col[c] = cursor->columns[c];
	}
	if (rows->kind == STORE_sample) {
		for (size_t i = 0; i < ret_batch->count; i++)
			cursor->samples[i] = store->samples.at[rows[i].col[COL_id]];
		ret_batch->samples = cursor->samples;
	}
	cursor->at += ret_batch->count;
	return 1;
}

void store_query_close(struct store_cursor *cursor)
{
	free(cursor);
}
