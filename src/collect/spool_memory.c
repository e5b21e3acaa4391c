/*
 * spool_memory.c - records of memory: obtained and given back, pools, and what the driver
 * does for unified memory: it moves pages and serves page faults.
 */
#include <stdio.h>
#include <time.h>

#include "collect/spool_process.h"

/* CUpti_ActivityMemoryOperationType 1 obtained, 2 given back;
 * CUpti_ActivityMemoryKind 1 pageable, 2 pinned: host; 6 and 7 are the variables
 * of a module, which nobody allocates or gives back. */
int spooled_memory_record(struct spooled *p, const uint8_t *at, uint32_t bytes)
{
	struct alloc alloc = { .allocated_bytes = EVENT_UNKNOWN, .reserved_bytes = EVENT_UNKNOWN };
	uint64_t *site;

	TAKE(cupti_memory, memory);
	if ((memory.operation != 1 && memory.operation != 2) || memory.memory == 6 ||
	    memory.memory == 7)
		return 0;
	if (!spooled_times_good(p, memory.time, memory.time) || spooled_size(p, memory.bytes) < 0)
		return 0;
	alloc.time_ns = spooled_time(p, memory.time);
	alloc.address = memory.address;
	alloc.bytes = memory.operation == 1 ? (int64_t)memory.bytes : -(int64_t)memory.bytes;
	alloc.device = memory.memory == 1 || memory.memory == 2 ? -1 : (int64_t)memory.device;
	alloc.lane = spooled_memory(p, alloc.device, memory.context);
	if (memory.operation == 1 && (site = map_find(&p->asked, memory.correlation)))
		alloc.site = (uint32_t)*site;
	return sink_alloc(p->sink, &alloc, p->err);
}

/* CUpti_ActivityMemoryPoolOperationType, CUpti_ActivityMemoryPoolType */
int spooled_pool_record(struct spooled *p, const uint8_t *at, uint32_t bytes)
{
	static const char *const names[] = { NULL, "memory pool created", "memory pool destroyed",
					     "memory pool trimmed" };
	enum { POOL_LOCAL = 1 };
	struct mark mark = { .kind = MARK_POOL };

	TAKE(cupti_pool, pool);
	if (pool.operation < 1 || pool.operation > 3 ||
	    !spooled_times_good(p, pool.time, pool.time))
		return 0;
	mark.time_ns = spooled_time(p, pool.time);
	mark.lane = spooled_memory(p, pool.device, 0);
	mark.name = intern_text(p->sink->session->strings, names[pool.operation]);
	/* Of a pool of another process its size and threshold mean nothing. */
	if (pool.type == POOL_LOCAL)
		mark.detail = spooled_detail(p, "pool=0x%llx;bytes=%llu;threshold=%llu",
					     (unsigned long long)pool.address,
					     (unsigned long long)pool.bytes,
					     (unsigned long long)pool.threshold);
	else
		mark.detail = spooled_detail(p, "pool=0x%llx", (unsigned long long)pool.address);
	return sink_mark(p->sink, &mark, p->err);
}

/* Of a device as the process counts: it has no stream of the program. The driver has numbers
 * of its own for processors; where one that nobody knows comes and there is one device, it
 * is that. */
static uint32_t unified_lane(struct spooled *p, uint32_t device)
{
	bool strange = !map_find(&p->rows, device) && p->rows.count == 1 && map_find(&p->rows, 0);
	uint32_t lane = spooled_stream(p, strange ? 0 : device, 0, 0);

	p->sink->session->lanes.at[lane].name =
		intern_text(p->sink->session->strings, "unified memory");
	return lane;
}

/* CUPTI's header has all times of the CPU come from the timestamp callback; these the driver
 * takes, and nobody says that they are converted. What is behind 2001 since the epoch is no
 * time since the machine began. */
static uint64_t unified_ns(const struct spooled *p, uint64_t ns)
{
	static const uint64_t EPOCH_LEAST = UINT64_C(1000000000000000000);
	struct timespec real, steady;

	if (ns < EPOCH_LEAST || p->offset_ns)
		return ns;
	clock_gettime(CLOCK_MONOTONIC, &steady);
	clock_gettime(CLOCK_REALTIME, &real);
	return ns - ((uint64_t)real.tv_sec - (uint64_t)steady.tv_sec) * 1000000000 -
	       (uint64_t)real.tv_nsec + (uint64_t)steady.tv_nsec;
}

/* CUpti_ActivityUnifiedMemoryMigrationCause. What cudaMemPrefetchAsync moves is "asked for";
 * a prefetch is the driver's own guess. */
static int unified_move(struct spooled *p, const struct cupti_unified *unified)
{
	static const char *const why[] = { "",
					   " (asked for)",
					   " (page fault)",
					   " (prefetch)",
					   " (eviction)",
					   " (access counters)" };
	struct op op = { .kind = OP_MEMCPY, .host_memory = HOST_MEMORY_MANAGED };
	const char *way = "DtoD";
	uint32_t device = unified->to;
	char name[48];
	int len;

	if (!spooled_times_good(p, unified->start, unified->end))
		return 0;
	op.copy = COPY_DTOD;
	if (unified->counter == CUPTI_UNIFIED_HTOD) {
		op.copy = COPY_HTOD;
		way = "HtoD";
	} else if (unified->counter == CUPTI_UNIFIED_DTOH) {
		op.copy = COPY_DTOH;
		way = "DtoH";
		device = unified->from;
	}
	len = snprintf(name, sizeof(name), "Migration %s%s", way,
		       why[unified->flags < sizeof(why) / sizeof(why[0]) ? unified->flags : 0]);
	op.name = session_string(p->sink->session, name, (size_t)len);
	op.start_ns = spooled_time(p, unified->start);
	op.end_ns = spooled_time(p, unified->end);
	op.bytes = spooled_size(p, unified->value);
	op.lane = unified_lane(p, device);
	p->copies_seen++;
	return sink_op(p->sink, &op, p->err);
}

/* CUpti_ActivityUnifiedMemoryAccessType */
static const char *fault_name(const struct cupti_unified *unified)
{
	static const char *const gpu[] = { "GPU page faults", "GPU page faults (read)",
					   "GPU page faults (write)", "GPU page faults (atomic)",
					   "GPU page faults (prefetch)" };

	switch (unified->counter) {
	case CUPTI_UNIFIED_CPU_FAULT:
		return "CPU page faults";
	case CUPTI_UNIFIED_GPU_FAULT:
		return gpu[unified->flags < sizeof(gpu) / sizeof(gpu[0]) ? unified->flags : 0];
	case CUPTI_UNIFIED_THRASHING:
		return "thrashing";
	case CUPTI_UNIFIED_THROTTLING:
		return "throttling";
	case CUPTI_UNIFIED_REMOTE_MAP:
		return "remote mapping";
	default:
		return NULL;
	}
}

/* By CUPTI's header: of faults of the GPU `value` says how many, of one of the CPU it is the
 * instruction, of thrashing and mappings the bytes. The end of those that do not last
 * means nothing. */
int spooled_unified_record(struct spooled *p, const uint8_t *at, uint32_t bytes)
{
	struct range range = { .kind = RANGE_PAGE_FAULT, .external = 1 };
	const char *name;
	bool lasts;

	TAKE(cupti_unified, unified);
	unified.start = unified_ns(p, unified.start);
	unified.end = unified_ns(p, unified.end);
	if (unified.counter == CUPTI_UNIFIED_HTOD || unified.counter == CUPTI_UNIFIED_DTOH ||
	    unified.counter == CUPTI_UNIFIED_DTOD)
		return unified_move(p, &unified);
	name = fault_name(&unified);
	if (!name)
		return 0;
	lasts = unified.counter == CUPTI_UNIFIED_GPU_FAULT ||
		unified.counter == CUPTI_UNIFIED_THROTTLING;
	if (!spooled_times_good(p, unified.start, lasts ? unified.end : unified.start))
		return 0;
	range.start_ns = spooled_time(p, unified.start);
	range.end_ns = lasts ? spooled_time(p, unified.end) : range.start_ns;
	range.name = intern_text(p->sink->session->strings, name);
	if (unified.counter == CUPTI_UNIFIED_GPU_FAULT) {
		if (spooled_size(p, unified.value) > 0)
			range.external = unified.value;
		range.lane = unified_lane(p, unified.from);
	} else {
		/* Who fights over pages is a set of devices, who is throttled can be the
		 * CPU, and its faults are of no device. */
		range.lane = spooled_memory(p, -1, 0);
	}
	return sink_range(p->sink, &range, p->err);
}
