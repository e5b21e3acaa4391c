/*
 * spool_records.c - CUPTI's activity records as events.
 *
 * Kinds are those of wire/cupti_abi.h; what a later CUPTI adds is skipped by
 * its size. The meaning of enumerators: CUPTI reference, "Activity API".
 */
#include <string.h>
#include <time.h>

#include "collect/spool_process.h"

/* Larger than any record; smaller than this is none. */
enum { RECORD_MAX = 1024, RECORD_MIN = 16 };

/* What records have taken since CUDA 12.0, the newest first: tests/unit/test_cupti_abi.c. */
static const struct {
	uint8_t kind, bytes[3];
} SIZES[] = {
	{ CUPTI_KIND_CONCURRENT_KERNEL, { 216, 208 } },
	{ CUPTI_KIND_KERNEL, { 216, 208 } },
	{ CUPTI_KIND_RUNTIME, { 40 } },
	{ CUPTI_KIND_DRIVER, { 40 } },
	{ CUPTI_KIND_MEMCPY, { 96, 88 } },
	{ CUPTI_KIND_MEMCPY2, { 96 } },
	{ CUPTI_KIND_MEMSET, { 88 } },
	{ CUPTI_KIND_DEVICE, { 184, 176 } },
	{ CUPTI_KIND_CONTEXT, { 32, 24, 16 } },
	{ CUPTI_KIND_OVERHEAD, { 56, 48, 40 } },
	{ CUPTI_KIND_UNIFIED_MEMORY, { 104, 64 } },
	{ CUPTI_KIND_MEMORY2, { 128, 120 } },
	{ CUPTI_KIND_MEMORY_POOL, { 80, 72 } },
	{ CUPTI_KIND_GRAPH_TRACE, { 56, 48 } },
	{ CUPTI_KIND_JIT, { 72, 64 } },
};

/* Place in SIZES; -1: no kind that we ask for. */
static int sizes_of(const uint8_t *at)
{
	uint32_t kind;

	memcpy(&kind, at, sizeof(kind));
	kind &= ~CUPTI_KIND_OPEN;
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
		if (SIZES[i].kind == kind)
			return (int)i;
	}
	return -1;
}

/* How many records follow each other from here on, up to `depth`, if their sizes are taken
 * as suits that best. */
static int followers(const uint8_t *at, uint64_t left, int depth)
{
	int sizes = left < 8 || !depth ? -1 : sizes_of(at);
	int best = 0;

	for (int i = 0; sizes >= 0 && i < 3 && SIZES[sizes].bytes[i]; i++) {
		uint32_t bytes = SIZES[sizes].bytes[i];
		int count = bytes > left ? 0 : 1 + followers(at + bytes, left - bytes, depth - 1);

		best = count > best ? count : best;
	}
	return best;
}

/* Of a process that died before it learned its sizes, as one does that lives for less than a
 * second: the first records are of its device and context, and all lie behind them. The
 * size is right behind which most records follow, as a small number can look like a
 * kind; where that does not tell, the newest. */
static uint32_t guessed_bytes(const uint8_t *at, uint64_t left)
{
	enum { DEPTH = 5 };
	int sizes = sizes_of(at), most = -1;
	uint32_t best = 0;

	for (int i = 0; sizes >= 0 && i < 3 && SIZES[sizes].bytes[i]; i++) {
		uint32_t bytes = SIZES[sizes].bytes[i];
		int count = bytes > left ? 0 : followers(at + bytes, left - bytes, DEPTH);

		if (count > most) {
			most = count;
			best = bytes;
		}
	}
	return best;
}

static uint32_t record_bytes(const struct spooled *p, uint32_t kind, const uint8_t *at,
			     uint64_t left)
{
	uint32_t bytes = kind < SEGMENT_KINDS ? atomic_load(&p->segment->record_bytes[kind]) : 0;

	if (!bytes)
		bytes = guessed_bytes(at, left);
	return bytes >= RECORD_MIN && bytes <= RECORD_MAX && bytes % 8 == 0 ? bytes : 0;
}

static uint32_t key_of(struct spooled *p, const struct cupti_kernel *kernel, uint32_t name)
{
	struct kernel_key key = { .name = name, .theoretical_occupancy_pct = -1 };
	uint32_t slot = (name * 31u + (uint32_t)kernel->grid[0] * 7u + (uint32_t)kernel->block[0]) %
			(sizeof(p->keys) / sizeof(p->keys[0]));

	memcpy(key.grid, kernel->grid, sizeof(key.grid));
	memcpy(key.block, kernel->block, sizeof(key.block));
	for (int i = 0; i < 3; i++)
		key.cluster[i] = (int32_t)kernel->cluster[i];
	key.shared_bytes = (int64_t)kernel->static_shared + kernel->dynamic_shared;
	key.registers = kernel->registers;
	if (!kernel_key_same(&key, &p->keys[slot].key)) {
		p->keys[slot].key = key;
		p->keys[slot].id = session_key(p->sink->session, &key);
	}
	return p->keys[slot].id;
}

/* CUPTI leaves a stale time in launches that it can't tell, with no time of submission: seen
 * of nodes of CUDA graphs (tmc/gputrace, GB10_PROFILING_TOOLCHAIN.md, driver 580.95). */
static int64_t queued(const struct spooled *p, const struct cupti_kernel *kernel)
{
	if (!kernel->queued || kernel->submitted < kernel->queued || kernel->queued > kernel->start)
		return 0;
	return spooled_time(p, kernel->queued);
}

/* Times that are not known are no wrong ones. */
static bool usable(struct spooled *p, uint64_t start, uint64_t end)
{
	return spooled_is_untimed(start, end) || spooled_times_good(p, start, end);
}

/* An operation that is known but for its times, which are usable; counted in *seen. */
static int put(struct spooled *p, struct op *op, uint64_t start, uint64_t end, int64_t *seen)
{
	if (spooled_is_untimed(start, end)) {
		spooled_untimed(p, op, start);
		return 0;
	}
	op->start_ns = spooled_time(p, start);
	op->end_ns = spooled_time(p, end);
	(*seen)++;
	return sink_op(p->sink, op, p->err);
}

static int take_kernel(struct spooled *p, const uint8_t *at, uint32_t bytes)
{
	struct op op = { .kind = OP_KERNEL, .bytes = EVENT_UNKNOWN };

	TAKE(cupti_kernel, kernel);
	if (!usable(p, kernel.start, kernel.end))
		return 0;
	op.name = kernel.name > UINT32_MAX ? spooled_pointer_name(p, kernel.name)
					   : spooled_kernel_name(p, kernel.name);
	if (!op.name)
		op.name = intern_text(p->sink->session->strings, KERNEL_WITHOUT_NAME);
	op.key = key_of(p, &kernel, op.name);
	op.lane = spooled_stream(p, kernel.device, kernel.context, kernel.stream);
	op.correlation = kernel.correlation;
	op.graph_node = kernel.graph_node;
	if (!spooled_is_untimed(kernel.start, kernel.end)) {
		op.queued_ns = queued(p, &kernel);
		spooled_quiet_kernel(p, &kernel);
	}
	return put(p, &op, kernel.start, kernel.end, &p->kernels_seen);
}

/* CUpti_ActivityMemcpyKind */
static enum copy_kind copy_kind(uint8_t kind)
{
	static const enum copy_kind kinds[] = { COPY_UNKNOWN, COPY_HTOD, COPY_DTOH, COPY_HTOD,
						COPY_DTOH,    COPY_DTOD, COPY_DTOD, COPY_DTOD,
						COPY_DTOD,    COPY_HTOH, COPY_PTOP };

	return kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind] : COPY_UNKNOWN;
}

/* CUpti_ActivityMemoryKind: 1 pageable, 2 pinned, 5 managed. */
static enum host_memory host_memory(uint8_t from, uint8_t to)
{
	const uint8_t ends[2] = { from, to };

	for (int i = 0; i < 2; i++) {
		if (ends[i] == 1)
			return HOST_MEMORY_PAGEABLE;
		if (ends[i] == 2)
			return HOST_MEMORY_PINNED;
		if (ends[i] == 5)
			return HOST_MEMORY_MANAGED;
	}
	return HOST_MEMORY_UNKNOWN;
}

static const char *memory_word(uint8_t kind)
{
	static const char *const words[] = { "Unknown", "Pageable", "Pinned", "Device",
					     "Array",   "Managed",  "Device", "Managed" };

	return kind < sizeof(words) / sizeof(words[0]) ? words[kind] : "Unknown";
}

/* "Memcpy HtoD (Pageable -> Device)", as other tools call it. */
static uint32_t copy_name(struct spooled *p, enum copy_kind kind, uint8_t from, uint8_t to)
{
	static const char *const kinds[] = { "", " HtoD", " DtoH", " DtoD", " HtoH", " PtoP" };
	char name[64];
	int len = snprintf(name, sizeof(name), "Memcpy%s (%s -> %s)", kinds[kind],
			   memory_word(from), memory_word(to));

	return session_string(p->sink->session, name, (size_t)len);
}

static int take_memcpy(struct spooled *p, const uint8_t *at, uint32_t bytes)
{
	struct op op = { .kind = OP_MEMCPY };

	TAKE(cupti_memcpy, copy);
	if (!usable(p, copy.start, copy.end))
		return 0;
	op.copy = copy_kind(copy.copy);
	op.host_memory = host_memory(copy.from, copy.to);
	op.name = copy_name(p, op.copy, copy.from, copy.to);
	op.lane = spooled_stream(p, copy.device, copy.context, copy.stream);
	op.bytes = spooled_size(p, copy.bytes);
	op.correlation = copy.correlation;
	op.graph_node = copy.graph_node;
	return put(p, &op, copy.start, copy.end, &p->copies_seen);
}

static int take_memcpy_peer(struct spooled *p, const uint8_t *at, uint32_t bytes)
{
	struct op op = { .kind = OP_MEMCPY, .copy = COPY_PTOP };

	TAKE(cupti_memcpy_peer, copy);
	if (!usable(p, copy.start, copy.end))
		return 0;
	op.name = copy_name(p, COPY_PTOP, copy.from, copy.to);
	op.detail =
		spooled_detail(p, "from_device=%u;to_device=%u", copy.from_device, copy.to_device);
	op.lane = spooled_stream(p, copy.device, copy.context, copy.stream);
	op.bytes = spooled_size(p, copy.bytes);
	op.correlation = copy.correlation;
	op.graph_node = copy.graph_node;
	return put(p, &op, copy.start, copy.end, &p->copies_seen);
}

static int take_memset(struct spooled *p, const uint8_t *at, uint32_t bytes)
{
	struct op op = { .kind = OP_MEMSET };

	TAKE(cupti_memset, set);
	if (!usable(p, set.start, set.end))
		return 0;
	op.name = intern_text(p->sink->session->strings,
			      set.memory == 3 || set.memory == 6 ? "Memset (Device)" : "Memset");
	op.lane = spooled_stream(p, set.device, set.context, set.stream);
	op.bytes = spooled_size(p, set.bytes);
	op.correlation = set.correlation;
	op.graph_node = set.graph_node;
	return put(p, &op, set.start, set.end, &p->sets_seen);
}

static int take_graph(struct spooled *p, const uint8_t *at, uint32_t bytes)
{
	struct op op = { .kind = OP_GRAPH, .bytes = EVENT_UNKNOWN };
	char name[32];
	int len;

	TAKE(cupti_graph, graph);
	if (!usable(p, graph.start, graph.end))
		return 0;
	len = snprintf(name, sizeof(name), "CUDA graph %u", graph.graph);
	op.name = session_string(p->sink->session, name, (size_t)len);
	op.lane = spooled_stream(p, graph.device, graph.context, graph.stream);
	op.correlation = graph.correlation;
	return put(p, &op, graph.start, graph.end, &p->graphs_seen);
}

static int take_api(struct spooled *p, const uint8_t *at, uint32_t bytes, bool driver)
{
	struct call call = { .kind = driver ? CALL_DRIVER : CALL_RUNTIME };

	TAKE(cupti_api, api);
	/* A forked child's calls can end in its parent's buffers. */
	if (api.process != p->pid || !spooled_times_good(p, api.start, api.end))
		return 0;
	call.start_ns = spooled_time(p, api.start);
	if (!spooled_is_open(p, call.start_ns))
		return 0;
	call.end_ns = spooled_time(p, api.end);
	call.lane = spooled_thread(p, api.thread);
	call.name = spooled_api(p, driver ? CUPTI_DOMAIN_DRIVER : CUPTI_DOMAIN_RUNTIME, api.cbid);
	call.correlation = api.correlation;
	/* CUresult or cudaError_t; 600 is "not ready", an answer. */
	if (api.result && api.result != 600)
		call.detail = spooled_detail(p, "result=%u", api.result);
	p->calls_seen++;
	if (call.end_ns > p->latest_ns)
		p->latest_ns = call.end_ns;
	return sink_call(p->sink, &call, p->err);
}

/* CUpti_ActivityOverheadKind: a bit each. */
static const char *overhead_name(uint32_t kind)
{
	switch (kind) {
	case 1:
		return "Driver compiler";
	case 1 << 16:
		return "Buffer flush";
	case 2 << 16:
		return "Instrumentation";
	case 3 << 16:
		return "Resource";
	case 4 << 16:
		return "Runtime triggered module loading";
	case 5 << 16:
		return "Lazy function loading";
	case 6 << 16:
		return "Command buffer full";
	case 7 << 16:
		return "Activity buffer request";
	case 8 << 16:
		return "UVM activity initialisation";
	default:
		return "CUPTI overhead";
	}
}

static int take_overhead(struct spooled *p, const uint8_t *at, uint32_t bytes)
{
	struct call call = { .kind = CALL_OVERHEAD };
	enum { OBJECT_THREAD = 2 };

	TAKE(cupti_overhead, overhead);
	if (!spooled_times_good(p, overhead.start, overhead.end))
		return 0;
	call.name = intern_text(p->sink->session->strings, overhead_name(overhead.overhead));
	call.start_ns = spooled_time(p, overhead.start);
	call.end_ns = spooled_time(p, overhead.end);
	call.lane = overhead.object_kind == OBJECT_THREAD ? spooled_thread(p, overhead.object[1])
							  : spooled_other(p, "CUPTI");
	return sink_call(p->sink, &call, p->err);
}

static int take_jit(struct spooled *p, const uint8_t *at, uint32_t bytes)
{
	static const char *const operations[] = { "JIT", "JIT cache load", "JIT cache store",
						  "JIT compile" };
	struct call call = { .kind = CALL_OVERHEAD };
	struct cupti_jit jit = { 0 };

	memcpy(&jit, at, bytes < sizeof(jit) ? bytes : sizeof(jit));
	if (bytes < offsetof(struct cupti_jit, process) ||
	    !spooled_times_good(p, jit.start, jit.end))
		return 0;
	call.name = intern_text(p->sink->session->strings,
				operations[jit.operation < 4 ? jit.operation : 0]);
	call.start_ns = spooled_time(p, jit.start);
	call.end_ns = spooled_time(p, jit.end);
	call.lane = jit.thread ? spooled_thread(p, jit.thread) : spooled_other(p, "JIT");
	call.correlation = jit.correlation;
	return sink_call(p->sink, &call, p->err);
}

static uint32_t uuid_text(struct session *session, const uint8_t *uuid)
{
	char text[48];
	int len = snprintf(text, sizeof(text), "GPU-");

	for (int i = 0; i < 16; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%02x",
				i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	return session_string(session, text, (size_t)len);
}

/* By UUID it can be a row that the driver's samples made. */
void spooled_device_slot(struct spooled *p, const struct segment_slot *slot)
{
	struct session *session = p->sink->session;
	struct device facts = { .scope = DEVICE_OF_SOURCE, .source = p->source };
	uint8_t uuid[16];

	if (slot->value > UINT32_MAX || map_find(&p->rows, slot->value))
		return;
	memcpy(uuid, slot->x, sizeof(uuid));
	facts.ordinal = (int64_t)slot->value;
	facts.uuid = uuid_text(session, uuid);
	map_put(&p->rows, slot->value, session_device(session, &facts));
}

static int take_device(struct spooled *p, const uint8_t *at, uint32_t bytes)
{
	struct session *session = p->sink->session;
	struct device facts = { .scope = DEVICE_OF_SOURCE, .source = p->source };
	uint64_t *row;

	TAKE(cupti_device, device);
	row = map_find(&p->rows, device.id);
	facts.ordinal = device.id;
	/* It stays the one that its slot said it is. */
	facts.uuid = row ? session->devices.at[*row].uuid : uuid_text(session, device.uuid);
	/* CUPTI's pointer still, where it held the buffer to the end. */
	if (device.name <= UINT32_MAX)
		facts.name = spooled_text(p, (uint32_t)device.name);
	facts.maker = intern_text(session->strings, "NVIDIA");
	facts.sm_count = device.sms;
	facts.memory_bytes = (int64_t)device.memory_bytes;
	facts.cc_major = device.cc_major;
	facts.cc_minor = device.cc_minor;
	facts.warps_per_sm = device.warps_per_sm;
	if (device.warps_per_sm <= UINT16_MAX && device.warp_threads <= UINT16_MAX)
		facts.threads_per_sm = (int64_t)device.warps_per_sm * device.warp_threads;
	facts.regs_per_sm = device.registers_per_sm;
	facts.shared_per_sm = device.shared_per_sm;
	/* By UUID it can be a row that the driver's samples made. */
	map_put(&p->rows, device.id, session_device(session, &facts));
	return 0;
}

static int take_context(struct spooled *p, const uint8_t *at, uint32_t bytes)
{
	TAKE(cupti_context, context);
	map_put(&p->devices, context.context, context.device);
	return 0;
}

static int take(struct spooled *p, uint32_t kind, const uint8_t *at, uint32_t bytes)
{
	switch (kind) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
	case CUPTI_KIND_KERNEL:
		return take_kernel(p, at, bytes);
	case CUPTI_KIND_RUNTIME:
	case CUPTI_KIND_DRIVER:
		return take_api(p, at, bytes, kind == CUPTI_KIND_DRIVER);
	case CUPTI_KIND_MEMCPY:
		return take_memcpy(p, at, bytes);
	case CUPTI_KIND_MEMCPY2:
		return take_memcpy_peer(p, at, bytes);
	case CUPTI_KIND_MEMSET:
		return take_memset(p, at, bytes);
	case CUPTI_KIND_GRAPH_TRACE:
		return take_graph(p, at, bytes);
	case CUPTI_KIND_OVERHEAD:
		return take_overhead(p, at, bytes);
	case CUPTI_KIND_JIT:
		return take_jit(p, at, bytes);
	case CUPTI_KIND_MEMORY2:
		return spooled_memory_record(p, at, bytes);
	case CUPTI_KIND_MEMORY_POOL:
		return spooled_pool_record(p, at, bytes);
	case CUPTI_KIND_UNIFIED_MEMORY:
		return spooled_unified_record(p, at, bytes);
	case CUPTI_KIND_DEVICE:
		return take_device(p, at, bytes);
	case CUPTI_KIND_CONTEXT:
		return take_context(p, at, bytes);
	default:
		return 0;
	}
}

/* Versions without the timestamp callback count from the epoch. */
static void learn_clock(struct spooled *p)
{
	struct timespec real, steady;

	if (p->offset_ns || p->segment->clock != SEGMENT_CLOCK_REALTIME)
		return;
	clock_gettime(CLOCK_MONOTONIC, &steady);
	clock_gettime(CLOCK_REALTIME, &real);
	p->offset_ns =
		((int64_t)real.tv_sec - steady.tv_sec) * 1000000000 + real.tv_nsec - steady.tv_nsec;
}

/* Device work, of which a record can be there before it has ended. */
static bool is_device_work(uint32_t kind)
{
	return kind == CUPTI_KIND_CONCURRENT_KERNEL || kind == CUPTI_KIND_KERNEL ||
	       kind == CUPTI_KIND_MEMCPY || kind == CUPTI_KIND_MEMCPY2 ||
	       kind == CUPTI_KIND_MEMSET || kind == CUPTI_KIND_GRAPH_TRACE;
}

int spooled_records(struct spooled *p, const uint8_t *buffer, uint64_t valid, bool unfinished)
{
	int64_t malformed = p->malformed;
	int64_t seen = 0;
	int ret = 0;

	learn_clock(p);
	for (uint64_t at = 0; at + 8 <= valid && ret >= 0;) {
		uint32_t kind, bytes;
		bool open;

		memcpy(&kind, buffer + at, sizeof(kind));
		if (!kind && unfinished)
			break; /* behind the last record */
		open = kind & CUPTI_KIND_OPEN;
		kind &= ~CUPTI_KIND_OPEN;
		bytes = record_bytes(p, kind, buffer + at, valid - at);
		if (!bytes || bytes > valid - at) {
			p->malformed += !unfinished;
			break;
		}
		if (!open || is_device_work(kind))
			ret = take(p, kind, buffer + at, bytes);
		at += bytes;
		seen++;
	}
	session_loss(p->sink->session, p->source, LOSS_seen, seen);
	if (p->malformed > malformed)
		session_loss(p->sink->session, p->source,
			     unfinished ? LOSS_dropped : LOSS_malformed, p->malformed - malformed);
	return ret;
}

void spooled_kernel_pointers(struct spooled *p, const uint8_t *buffer, uint64_t valid,
			     void (*found)(struct spooled *, uint64_t pointer))
{
	uint32_t kind, bytes;

	for (uint64_t at = 0; at + 8 <= valid; at += bytes) {
		struct cupti_kernel kernel;

		memcpy(&kind, buffer + at, sizeof(kind));
		kind &= ~CUPTI_KIND_OPEN;
		bytes = kind ? record_bytes(p, kind, buffer + at, valid - at) : 0;
		if (!bytes || bytes > valid - at)
			return;
		if ((kind != CUPTI_KIND_CONCURRENT_KERNEL && kind != CUPTI_KIND_KERNEL) ||
		    bytes < sizeof(kernel))
			continue;
		memcpy(&kernel, buffer + at, sizeof(kernel));
		if (kernel.name > UINT32_MAX)
			found(p, kernel.name);
	}
}
