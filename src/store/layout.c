#include "store/layout.h"

#include <string.h>

#define OP_COLUMNS                                                                \
	13, { COL_start,    COL_duration,   COL_name,  COL_key,  COL_correlation, \
	      COL_external, COL_graph_node, COL_bytes, COL_copy, COL_host_memory, \
	      COL_queued,   COL_detail,     COL_flow },                           \
		true
#define CALL_COLUMNS                                                                \
	9, { COL_start,    COL_duration, COL_name,   COL_correlation, COL_external, \
	     COL_sequence, COL_parent,   COL_detail, COL_flow },                    \
		true
#define STACK_COLUMNS 4, { COL_start, COL_duration, COL_name, COL_detail }, true

static const struct layout layouts[STORE_KIND_COUNT] = {
	[STORE_kernel] = { "kernel", OP_COLUMNS },
	[STORE_memcpy] = { "memcpy", OP_COLUMNS },
	[STORE_memset] = { "memset", OP_COLUMNS },
	[STORE_graph] = { "graph", OP_COLUMNS },
	[STORE_device_other] = { "device_other", OP_COLUMNS },
	[STORE_runtime] = { "runtime", CALL_COLUMNS },
	[STORE_driver] = { "driver", CALL_COLUMNS },
	[STORE_op] = { "op", CALL_COLUMNS },
	[STORE_python] = { "python", CALL_COLUMNS },
	[STORE_overhead] = { "overhead", CALL_COLUMNS },
	[STORE_sync] = { "sync", CALL_COLUMNS },
	[STORE_os] = { "os", CALL_COLUMNS },
	[STORE_call_other] = { "call_other", CALL_COLUMNS },
	[STORE_range] = { "range",
			  6,
			  { COL_start, COL_duration, COL_name, COL_external, COL_detail,
			    COL_subkind },
			  true },
	[STORE_state] = { "state", 3, { COL_start, COL_duration, COL_name }, true },
	[STORE_state_exact] = { "state_exact", 3, { COL_start, COL_duration, COL_name }, true },
	[STORE_cpu_stack] = { "cpu_stack", STACK_COLUMNS },
	[STORE_python_stack] = { "python_stack", STACK_COLUMNS },
	[STORE_page_fault] = { "page_fault",
			       4,
			       { COL_start, COL_duration, COL_name, COL_faults },
			       true },
	[STORE_link] = { "link", 4, { COL_start, COL_id, COL_is_end, COL_subkind }, true },
	[STORE_alloc] = { "alloc",
			  7,
			  { COL_start, COL_address, COL_bytes, COL_allocated, COL_reserved,
			    COL_device, COL_name },
			  true },
	[STORE_sample] = { "sample", 3 + METRIC_COUNT, { COL_start }, true },
	[STORE_stall] = { "stall",
			  6,
			  { COL_start, COL_function, COL_pc_offset, COL_reason, COL_samples,
			    COL_cubin },
			  true },
	[STORE_counter] = { "counter",
			    6,
			    { COL_launch, COL_key, COL_name, COL_unit, COL_value, COL_text },
			    false },
	[STORE_mark] = { "mark", 4, { COL_start, COL_name, COL_detail, COL_subkind }, true },
};

static const char *const column_names[STORE_COLUMN_COUNT] = {
#define X(column) [COL_##column] = #column,
	STORE_COLUMN_LIST(X)
#undef X
};

_Static_assert(sizeof(((struct sample *)0)->have) == 2 * sizeof(uint64_t),
	       "samples have two words of presence bits: columns have0 and have1");

const struct layout *layout_of(enum store_kind kind)
{
	return &layouts[kind];
}

const char *layout_column_name(enum store_kind kind, int i)
{
	static const char *const have[] = { "have0", "have1" };

	if (kind != STORE_sample || i == 0)
		return column_names[layouts[kind].column[i]];
	return i <= 2 ? have[i - 1] : metric_name((enum metric)(i - 3));
}

bool layout_is_double(enum store_kind kind, int i)
{
	if (kind == STORE_sample)
		return i > 2;
	return layouts[kind].column[i] == COL_value;
}

int layout_find(enum store_kind kind, enum store_column column)
{
	int count = kind == STORE_sample ? 1 : layouts[kind].count;

	for (int i = 0; i < count; i++) {
		if (layouts[kind].column[i] == column)
			return i;
	}
	return -1;
}

bool layout_kind_find(const char *name, enum store_kind *ret_kind)
{
	for (int i = 0; i < STORE_KIND_COUNT; i++) {
		if (!strcmp(layouts[i].name, name)) {
			*ret_kind = (enum store_kind)i;
			return true;
		}
	}
	return false;
}

const char *layout_kind_name(enum store_kind kind)
{
	return layouts[kind].name;
}

enum store_kind layout_op_kind(enum op_kind kind)
{
	static const enum store_kind kinds[] = {
		[OP_KERNEL] = STORE_kernel,      [OP_MEMCPY] = STORE_memcpy,
		[OP_MEMSET] = STORE_memset,      [OP_GRAPH] = STORE_graph,
		[OP_OTHER] = STORE_device_other,
	};

	return kinds[kind];
}

enum store_kind layout_call_kind(enum call_kind kind)
{
	static const enum store_kind kinds[] = {
		[CALL_RUNTIME] = STORE_runtime,
		[CALL_DRIVER] = STORE_driver,
		[CALL_OP] = STORE_op,
		[CALL_PYTHON] = STORE_python,
		[CALL_OVERHEAD] = STORE_overhead,
		[CALL_SYNC] = STORE_sync,
		[CALL_OS] = STORE_os,
		[CALL_OTHER] = STORE_call_other,
	};

	return kinds[kind];
}

/* Wraps for hostile times, as does the reader's addition. */
static int64_t span(int64_t start, int64_t end)
{
	return (int64_t)((uint64_t)end - (uint64_t)start);
}

void layout_op(const struct op *op, uint32_t name, int64_t *row)
{
	*row++ = op->start_ns;
	*row++ = span(op->start_ns, op->end_ns);
	*row++ = name;
	*row++ = op->key;
	*row++ = (int64_t)op->correlation;
	*row++ = (int64_t)op->external;
	*row++ = (int64_t)op->graph_node;
	*row++ = op->bytes;
	*row++ = op->copy;
	*row++ = op->host_memory;
	*row++ = op->queued_ns;
	*row++ = op->detail;
	*row = op->flow;
}

void layout_call(const struct call *call, int64_t *row)
{
	*row++ = call->start_ns;
	*row++ = span(call->start_ns, call->end_ns);
	*row++ = call->name;
	*row++ = (int64_t)call->correlation;
	*row++ = (int64_t)call->external;
	*row++ = (int64_t)call->sequence;
	*row++ = call->parent;
	*row++ = call->detail;
	*row = call->flow;
}

enum store_kind layout_range_kind(enum range_kind kind)
{
	switch (kind) {
	case RANGE_STATE:
		return STORE_state;
	case RANGE_STATE_EXACT:
		return STORE_state_exact;
	case RANGE_CPU_STACK:
		return STORE_cpu_stack;
	case RANGE_PYTHON_STACK:
		return STORE_python_stack;
	case RANGE_PAGE_FAULT:
		return STORE_page_fault;
	default:
		return STORE_range;
	}
}

void layout_range(const struct range *range, int64_t *row)
{
	enum store_kind kind = layout_range_kind(range->kind);

	*row++ = range->start_ns;
	*row++ = span(range->start_ns, range->end_ns);
	*row++ = range->name;
	if (kind == STORE_cpu_stack || kind == STORE_python_stack)
		*row = range->detail;
	if (kind == STORE_page_fault)
		*row = (int64_t)range->external;
	if (kind != STORE_range)
		return;
	*row++ = (int64_t)range->external;
	*row++ = range->detail;
	*row = range->kind;
}

void layout_link(const struct link *link, int64_t *row)
{
	*row++ = link->time_ns;
	*row++ = (int64_t)link->id;
	*row++ = link->is_end;
	*row = link->kind;
}

void layout_alloc(const struct alloc *alloc, int64_t *row)
{
	*row++ = alloc->time_ns;
	*row++ = (int64_t)alloc->address;
	*row++ = alloc->bytes;
	*row++ = alloc->allocated_bytes;
	*row++ = alloc->reserved_bytes;
	*row++ = alloc->device;
	*row = alloc->site;
}

void layout_sample(const struct sample *sample, int64_t *row)
{
	*row++ = sample->time_ns;
	*row++ = (int64_t)sample->have[0];
	*row++ = (int64_t)sample->have[1];
	for (int i = 0; i < METRIC_COUNT; i++, row++) {
		*row = 0;
		if (sample->have[i / 64] >> (i % 64) & 1)
			memcpy(row, &sample->value[i], sizeof(*row));
	}
}

void layout_stall(const struct stall *stall, int64_t *row)
{
	*row++ = stall->time_ns;
	*row++ = stall->function;
	*row++ = (int64_t)stall->pc_offset;
	*row++ = stall->reason;
	*row++ = stall->samples;
	*row = (int64_t)stall->cubin;
}

void layout_counter(const struct counter *counter, int64_t *row)
{
	*row++ = counter->launch;
	*row++ = counter->key;
	*row++ = counter->name;
	*row++ = counter->unit;
	memcpy(row++, &counter->value, sizeof(counter->value));
	*row = counter->text;
}

void layout_mark(const struct mark *mark, int64_t *row)
{
	*row++ = mark->time_ns;
	*row++ = mark->name;
	*row++ = mark->detail;
	*row = mark->kind;
}
