/*
 * spool_process.h - one profiled process as the spool reads it. For spool*.c.
 *
 * Layout fields of the segment are not read back from it: `layout` is what we
 * wrote there.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "collect/maps.h"
#include "collect/perf_map_file.h"
#include "collect/spool.h"
#include "collect/symbols.h"
#include "wire/cupti_abi.h"
#include "wire/segment.h"

/* Of one process at a time: pushed on all threads; started. */
enum { OPEN_RANGES_MAX = 1024, STARTED_RANGES_MAX = 65536 };

/* Of a process's name, with its end. */
enum { NAME_BYTES = 64 };

/* What an NVTX event says beside its text: spool_nvtx.c. */
struct nvtx_says {
	uint32_t domain, category, payload_kind;
	uint64_t payload;
};

struct open_range {
	uint32_t thread;
	struct nvtx_says says;
	uint32_t name; /* string */
	bool open;     /* of started: else its place is free */
	uint64_t id;
	int64_t start_ns;
};

/* When recording was on. */
struct open_gate {
	int64_t from_ns, to_ns;
	bool part; /* NVTX goes on behind it, until the next */
};

/* An event or a graph: spool_objects.c. */
struct spooled_object {
	uint64_t handle;
	uint32_t context, kind;
	bool live;
	uint32_t next_free; /* of a place that is free: another one + 1 */
};

/* Launches of a context, by number: spool_quiet.c. */
struct grid_run {
	int64_t from, to;
	int64_t first_ns, last_ns; /* the earliest and the latest begin of its kernels */
};

struct context_grids {
	uint32_t context;
	VEC(struct grid_run) runs; /* in order, apart */
};

/* A wait before the record of its device: spool_sync.c. */
struct early_wait {
	int64_t start_ns, end_ns;
	enum sync_kind kind;
	uint32_t correlation, context, stream, device;
	uint32_t result; /* what the call returned; 0: good */
	/* Of a stream that waits for an event: where that was recorded. */
	uint32_t on_stream; /* ~0: not known */
	uint32_t on_record; /* correlation; 0: not known */
};

/* SLOT_WAITS_FOR, until the call's own slot comes, by its correlation. */
enum { WAITS_FOR_MAX = 64 };

/* A thread is in a call that waits for the device: spool_waits.c. */
struct open_wait {
	uint32_t thread, kind;
	int64_t since_ns;
	uint64_t handle; /* of the stream; 0: it is for none */
	uint32_t context, correlation, domain, cbid;
};

/* When PC samples were taken, and of how many contexts: spool_pc.c. */
struct pc_summary {
	int64_t covered_ns, span_ns;
	uint64_t samples, dropped, other; /* taken; as in struct segment_counts */
	uint32_t contexts, full, failed;  /* as in struct segment_pc */
	uint32_t result;                  /* of those that failed */
};

/* The range that recording is limited to, in all processes: spool_range.c. */
struct spooled_range {
	const char *wanted; /* as asked for, borrowed; NULL: there is none */
	bool named;         /* names of ranges come */
	bool looked;        /* a process came that would have seen it */
	bool opened;        /* recording began */
	uint64_t begun;     /* so often */
	struct map seen;    /* hash of a name and a domain that came */
	struct buf names;   /* the first of them, to be shown */
};

struct spooled {
	struct segment *segment;
	const struct segment *layout;
	struct sink *sink; /* during a call */
	struct err *err;
	uint32_t source, process;
	uint64_t number;         /* counts up as processes begin */
	uint32_t pid;            /* as the process sees itself */
	uint32_t outer_pid;      /* as we see it */
	char name[NAME_BYTES];   /* as it calls itself, or did before it was replaced */
	uint32_t renamed;        /* so often; up to RENAMES_MAX */
	uint64_t device, inode;  /* of the program's file; 0: unknown */
	int64_t offset_ns;       /* of records' times from CLOCK_MONOTONIC */
	uint64_t tail;           /* of the ring */
	struct map texts;        /* text id -> string */
	struct map kernels;      /* text id -> string of the demangled name */
	struct map lanes;        /* hash of what it is -> lane + 1 */
	struct map apis;         /* domain << 32 | cbid -> string */
	struct symbols *symbols; /* borrowed */
	struct maps_files files;
	struct perf_map_file *made; /* functions that the process made */
	struct map sites;           /* text of a call stack -> string */
	uint32_t sites_asked;       /* so often for one whose functions were not told yet */
	struct map asked;           /* correlation -> string of the site */
	struct map categories;      /* of NVTX: domain << 32 | category -> string */
	struct map reasons;         /* index of a stall reason -> string */
	struct map ranges;          /* range id -> index into open + 1 */
	struct map devices;         /* context -> device */
	struct map streams;         /* hash of context and handle -> stream */
	struct map rows;            /* device as the process counts -> session device */
	bool gated; /* recording was paused at some time: `gates` has when it was on */
	VEC(struct open_gate) gates;
	struct spooled_range *range; /* of the spool, borrowed */
	const struct open_gate
		*window; /* of the spool, borrowed: of processes without gates, too */
	VEC(struct early_wait) early_waits;
	struct early_wait waits_for[WAITS_FOR_MAX];
	VEC(struct open_range) pushed;  /* of all threads, in order */
	VEC(struct open_range) started; /* by range id */
	VEC(struct op) untimed; /* the last, in order from untimed_next on: spool_untimed.c */
	size_t untimed_next;
	int64_t latest_ns;  /* when the last call ended that is known */
	struct map held;    /* pointers to kernels' names -> string; 0: not read */
	int64_t held_ns;    /* when they were last looked for */
	struct map handles; /* handle and kind -> place in objects + 1; 0: gone */
	VEC(struct spooled_object) objects;
	uint32_t free_object; /* place + 1 */
	bool objects_full;
	size_t free_started; /* where to look for a free place */
	size_t open_started;
	struct {
		uint32_t text, string;
	} last_name;
	struct {
		struct kernel_key key;
		uint32_t id;
	} keys[64];
	bool calibrates;
	int64_t set_up_ns; /* when it last made a context or loaded a module; 0: not yet */
	VEC(struct context_grids) grids;
	char quiet_why[128]; /* what recording costs can't be told */
	int64_t stuck_ns;    /* since when the slot at `tail` is unfinished; 0: it isn't */
	int64_t kernels_seen, copies_seen, sets_seen, graphs_seen;
	int64_t calls_seen, ranges_seen, samples_seen;
	int64_t malformed;
	int64_t unnamed_slots, unnamed_samples; /* of PCs, whose reason has no name: lost */
	uint64_t told_dropped;                  /* loss that the session has already */
	uint32_t reason, lacks;                 /* that were told */
};

struct complaint {
	char line[256];
};

struct complaints {
	VEC(struct complaint) lines;
};

/* spool_tell.c: a line, also as a note of the session. */
void spooled_complain(struct complaints *told, const struct spooled *p, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Why the process recorded less, once. */
void spooled_look_at_reason(struct complaints *told, struct spooled *p);
void spooled_look_at_lacks(struct complaints *told, struct spooled *p);
/* A process has a library of another build, once; `version` 0: none has. */
void spooled_look_at_stranger(struct complaints *told, struct session *session, uint32_t version);
/* What is known when the process ends, or is let go. */
void spooled_sum_up(struct complaints *told, struct spooled *p);
void spooled_sum_up_quiet(struct complaints *told, struct spooled *p);

/* spool_describe.c: what it said of itself, into the environment. */
void spooled_describe(const struct spooled *p);

/* spool_text.c: string of a text in the segment; 0 if it can't be right. */
uint32_t spooled_text(struct spooled *p, uint32_t text);
/* The same, demangled. */
uint32_t spooled_kernel_name(struct spooled *p, uint64_t text);
uint32_t spooled_pointer_name(struct spooled *p, uint64_t pointer);
/* Of a text that is not in the segment. */
uint32_t spooled_plain_name(struct spooled *p, const char *text, size_t len);

/* Name of an API call: "cudaLaunchKernel". */
uint32_t spooled_api(struct spooled *p, uint32_t domain, uint32_t cbid);

/* A detail of the session. */
uint32_t spooled_detail(struct spooled *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "fill < load < main (train)": a call stack's functions, innermost first, and the
 * program's file. 0: none. */
uint32_t spooled_site(struct spooled *p, uint32_t text);

/* Lanes of the process. */
uint32_t spooled_stream(struct spooled *p, uint32_t device, uint32_t context, uint32_t stream);
uint32_t spooled_thread(struct spooled *p, uint32_t thread);
uint32_t spooled_other(struct spooled *p, const char *name);
/* Where allocations go: of a device as the process counts, -1 the host; of a context, with which
 * they go, 0 unknown. */
uint32_t spooled_memory(struct spooled *p, int64_t device, uint32_t context);

/* spool_slots.c: was recording on, at `ns` of the source's clock? */
bool spooled_is_open(const struct spooled *p, int64_t ns);

/* spool_records.c: `valid` bytes of activity records into the sink. `unfinished`:
 * CUPTI still held the buffer, records can be incomplete. */
int spooled_records(struct spooled *p, const uint8_t *buffer, uint64_t valid, bool unfinished);

/* The names of kernels in a buffer that are pointers yet. */
void spooled_kernel_pointers(struct spooled *p, const uint8_t *buffer, uint64_t valid,
			     void (*found)(struct spooled *, uint64_t pointer));
/* spool_held.c: reads those in buffers that CUPTI holds from the program, which must live. */
void spooled_look_at_held(struct spooled *p);

/* spool_untimed.c: has CUPTI no times of it, and not wrong ones? */
bool spooled_is_untimed(uint64_t start, uint64_t end);
/* Such an operation, but for its times; `start`, of the record: 0 unknown. */
void spooled_untimed(struct spooled *p, const struct op *op, uint64_t start);
/* Their marks, at the end of the process, or when it is let go. */
int spooled_untimed_marks(struct spooled *p);

/* spool_memory.c: what was obtained and given back, pools, and what unified memory did. */
int spooled_memory_record(struct spooled *p, const uint8_t *at, uint32_t bytes);
int spooled_pool_record(struct spooled *p, const uint8_t *at, uint32_t bytes);
int spooled_unified_record(struct spooled *p, const uint8_t *at, uint32_t bytes);

/* spool_nvtx.c */
struct nvtx_says spooled_nvtx_says(const struct segment_slot *slot);
/* "payload=7;category=load" as a detail of the session; 0: it says nothing. Details last
 * for one event: ask when it is told. */
uint32_t spooled_nvtx_detail(struct spooled *p, const struct nvtx_says *says);
void spooled_category_slot(struct spooled *p, const struct segment_slot *slot);
/* spool_slots.c: what is in the ring. */
int spooled_slots(struct spooled *p, bool last);
/* spool_range.c: a range that begins; the process ends, or is let go; the last one has. */
void spooled_range_saw(struct spooled *p, const struct segment_slot *slot);
void spooled_range_sum(const struct spooled *p);
void spooled_range_tell(struct spooled_range *range, struct complaints *told,
			struct session *session);
void spooled_range_done(struct spooled_range *range);
/* spool_pc.c */
int spooled_pc_sample(struct spooled *p, const struct segment_slot *slot);
/* How it went, also as a row of the environment. False: there was no sampling, or what
 * the segment says of it can't be (counted). */
bool spooled_pc_summary(struct spooled *p, struct pc_summary *ret_summary);

/* spool_quiet.c: has the process been set up for a while? */
bool spooled_is_settled(const struct spooled *p);
/* A kernel that was recorded; at the end what recording cost, into the environment. NULL, or why
 * it can't be told. */
void spooled_quiet_kernel(struct spooled *p, const struct cupti_kernel *kernel);
const char *spooled_quiet_summary(struct spooled *p);

/* spool_records.c: which card a device of the process is, before CUPTI's own record of it. */
void spooled_device_slot(struct spooled *p, const struct segment_slot *slot);

/* spool_objects.c: marks of what was made and destroyed. */
int spooled_stream_slot(struct spooled *p, const struct segment_slot *slot);
int spooled_module_slot(struct spooled *p, const struct segment_slot *slot);
int spooled_object_slot(struct spooled *p, const struct segment_slot *slot);
int spooled_context_gone(struct spooled *p, const struct segment_slot *slot);
/* spool_sync.c: what a call waited for; those of before the device's record. */
int spooled_sync_slot(struct spooled *p, const struct segment_slot *slot);
int spooled_early_waits(struct spooled *p, bool last);
void spooled_waits_for_slot(struct spooled *p, const struct segment_slot *slot);
/* spool_waits.c: the number of a stream that calls give by its handle. */
/* UINT32_MAX: not known. */
uint32_t spooled_stream_number(const struct spooled *p, uint32_t context, uint64_t handle);
void spooled_know_stream(struct spooled *p, uint32_t context, uint64_t handle, uint32_t stream);
/* A mark of a call that failed: its slot's fields are in bounds. */
int spooled_failed_wait(struct spooled *p, const struct segment_slot *slot);
/* Threads that wait for long get a lane, by which their stacks are looked at. */
void spooled_watch_waits(struct spooled *p);
/* What began and has no end, of a process that is over, or is let go and lives on: calls that
 * did not return, operations without times, ranges. */
int spooled_unended(struct spooled *p, bool lives);
/* Ranges that never ended, at the end of the process. */
int spooled_close_ranges(struct spooled *p, int64_t end_ns);

/* Of a record; the ring is CLOCK_MONOTONIC always. */
static inline int64_t spooled_time(const struct spooled *p, uint64_t ns)
{
	return (int64_t)(ns - (uint64_t)p->offset_ns);
}

/* A record of `type` at `at`, copied: the process may still write to it. */
#define TAKE(type, record)            \
	struct type record;           \
	if (bytes < sizeof(record)) { \
		p->malformed++;       \
		return 0;             \
	}                             \
	memcpy(&record, at, sizeof(record))

static inline bool spooled_times_good(struct spooled *p, uint64_t start, uint64_t end)
{
	if (start && end >= start && end < INT64_MAX)
		return true;
	p->malformed++;
	return false;
}

static inline int64_t spooled_size(struct spooled *p, uint64_t bytes)
{
	if (bytes < INT64_MAX)
		return (int64_t)bytes;
	p->malformed++;
	return EVENT_UNKNOWN;
}
