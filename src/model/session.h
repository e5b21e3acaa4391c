/*
 * session.h - what the events of a profile refer to.
 *
 * Sources, devices, processes, lanes, kernel keys, strings, environment and
 * losses: small tables that live in memory while a profile is written and
 * after it is opened. Ids are indices, handed out in order; rows are only
 * added and completed, never removed, so the store can append what is new.
 *
 * Clock: events carry their source's time. A source with a known origin has
 * utc_offset_ns, such that (source time + utc_offset_ns) is ns since the
 * epoch; session_time puts all such sources on one clock whose zero is
 * session.zero_utc_ns. A source without origin starts at its own zero.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/intern.h"
#include "base/own.h"
#include "base/str.h"
#include "base/vec.h"

enum { SESSION_NONE = UINT32_MAX }; /* no such row */

/* One imported file, or one collector. */
struct source {
	uint32_t reader; /* string: "kineto", "dmon", ... */
	uint32_t file;   /* string: path as given */
	bool has_utc;
	int64_t utc_offset_ns;
	int64_t mapping_error_ns;  /* bound on the error of that; EVENT_UNKNOWN */
	int64_t interval_ns;       /* between samples; 0 unknown */
	bool interval_assumed;     /* not in the file: the tool's default */
	int64_t first_ns, last_ns; /* of its events, kept by the sink; first > last: none */
	int64_t rank, world_size;  /* -1 unknown */
	bool with_stack;           /* Python stacks were recorded: host time is inflated */
	bool truncated;            /* the file ended early */
	bool no_device_activity;   /* read whole, and has no GPU event at all */
	uint32_t accelerator;      /* string: "NVIDIA", "AMD", "MTIA", ...; 0 unknown */
};

enum device_scope {
	DEVICE_OF_SOURCE, /* ordinal as one file or process counts */
	DEVICE_OF_SMI,    /* index as nvidia-smi counts on the imported machine: the nvidia-smi
			     files of one import share it */
};

struct device {
	enum device_scope scope;
	uint32_t source;                     /* first source that named it */
	int64_t ordinal;                     /* -1 unknown */
	uint32_t uuid, name, pci_bus, maker; /* strings, 0 unknown; bus as domain:bus:device.f,
						four hex digits of domain, lower case */
	uint32_t part; /* string: what part of the GPU it is, "MIG 1", "GI 7 CI 0"; 0: all of it */
	int64_t sm_count, memory_bytes, cc_major, cc_minor; /* 0 unknown; major may be -1.. */
	int64_t warps_per_sm, threads_per_sm, regs_per_sm, shared_per_sm; /* 0 unknown */
};

struct process {
	uint32_t source;
	int64_t pid;
	uint32_t name;    /* string: command */
	uint32_t command; /* string: full command line where known */
	uint32_t type;    /* string: "C", "G", "C+G", "M"; 0 unknown */
	/* Field 22 of /proc/PID/stat, which with the pid says who it is; 0: unknown. Of a
	 * process that is there: not kept in a profile. */
	uint64_t start_ticks;
};

enum lane_kind {
	LANE_STREAM,   /* device, context, stream */
	LANE_THREAD,   /* process, thread */
	LANE_BOARD,    /* the device as a whole: samples */
	LANE_PROCESS,  /* a process on a device: samples */
	LANE_LAUNCHES, /* launches of a device that have counters but no place in time */
	LANE_OTHER,
};

struct lane {
	enum lane_kind kind;
	uint32_t source;
	uint32_t device;         /* SESSION_NONE */
	uint32_t process;        /* SESSION_NONE */
	int64_t context, stream; /* -1 unknown */
	int64_t tid;             /* -1 unknown */
	uint32_t name;           /* string: thread or stream name; 0 unknown */
};

struct kernel_key {
	uint32_t name;                         /* string: canonical demangled name */
	int32_t grid[3], block[3], cluster[3]; /* 0 unknown; cluster 0 none */
	int64_t shared_bytes;                  /* static + dynamic; -1 unknown */
	/* attributes, of the first launch seen; -1 unknown */
	int32_t registers;
	int32_t theoretical_occupancy_pct; /* as the trace computed it */
};

/* What makes two launches those of one kernel. */
static inline bool kernel_key_same(const struct kernel_key *a, const struct kernel_key *b)
{
	return a->name == b->name && a->shared_bytes == b->shared_bytes &&
	       !memcmp(a->grid, b->grid, sizeof(a->grid)) &&
	       !memcmp(a->block, b->block, sizeof(a->block)) &&
	       !memcmp(a->cluster, b->cluster, sizeof(a->cluster));
}

/* Something known about the machine, a device or the recording. */
struct env {
	uint32_t source;
	uint32_t device; /* SESSION_NONE: of the machine or process */
	uint32_t key;    /* string: "driver", "cuda", "cupti", ... or the tool's own path of the
			    field, parts joined by " / " */
	uint32_t value;  /* string */
};

/* Loss, counted for each source. X(id, what) */
#define LOSS_LIST(X)                                                                   \
	X(seen, "records in the file")                                                 \
	X(dropped, "records that could not be used")                                   \
	X(malformed, "records with a field that could not be read")                    \
	X(untimed, "operations without times: not ended, or of a context that failed") \
	X(truncated_bytes, "bytes of an unfinished tail")                              \
	X(clamped, "records whose start was clamped to zero by the tool")              \
	X(outside_window, "records outside the recorded window")                       \
	X(negative, "records that end before they start")                              \
	X(unmatched_ends, "ends without a beginning, beginnings without an end")

enum loss {
#define X(id, what) LOSS_##id,
	LOSS_LIST(X)
#undef X
		LOSS_COUNT
};

/* What `sonde run` recorded of a program: its calls of CUDA and what came of them. */
#define READER_CUDA "cuda"
#define READER_PERF "perf"
/* Processes of a run of which nothing else is known. */
#define READER_PROC "proc"

struct loss_row {
	uint32_t source;
	int64_t count[LOSS_COUNT];
};

/* Diagnostics and provenance in words. */
struct note {
	uint32_t source;
	uint32_t text; /* string */
};

struct session {
	struct intern *strings;
	/* Texts of `detail` fields: too many to keep. The sink empties the table
	 * (details_generation counts that) once it has written what refers to it;
	 * an id is good for the next sink call only. Of an opened profile: the
	 * details of the last batch that was asked for them. */
	struct intern *details;
	uint64_t details_generation;
	int64_t zero_utc_ns; /* set by session_settle; 0 while unknown */
	VEC(struct source) sources;
	VEC(struct device) devices;
	VEC(struct process) processes;
	VEC(struct lane) lanes;
	VEC(struct kernel_key) keys;
	VEC(struct env) envs;
	VEC(struct loss_row) losses; /* one for each source, same index */
	VEC(struct note) notes;
	VEC(uint32_t) missing_columns; /* strings "source: column" that analyses would want */
	struct session_index *index;   /* for the find functions */
};

struct session *session_new(void);
void session_free(struct session *session);
DEFINE_OWNED(session, session_free);

/* A new source; its index. Ranks -1, error unknown, first > last. */
uint32_t session_source(struct session *session, const char *reader, const char *file);

/*
 * The device with these facts, made if need be. Same UUID: same device. Else
 * same PCI bus, where one of the two has no ordinal (DEVICE_OF_SMI). Else
 * same scope, ordinal and (for DEVICE_OF_SOURCE) source, unless a name, UUID
 * or bus that both have contradicts: then it is another device. What
 * `facts` knows and the row does not is added to the row.
 */
uint32_t session_device(struct session *session, const struct device *facts);

/* The process `pid` of this source (nvidia-smi sources share processes). */
uint32_t session_process(struct session *session, uint32_t source, int64_t pid);

/* The lane with this identity: kind, source, device, process, context, stream,
 * tid. A name completes it. Board and process lanes of a device of
 * DEVICE_OF_SMI are per source too: sources have different clocks. */
uint32_t session_lane(struct session *session, const struct lane *lane);

/* Identity: name, grid, block, cluster, shared_bytes. */
uint32_t session_key(struct session *session, const struct kernel_key *key);

/* Of a run: it is a process of which nothing is known but what it is called. */
bool session_process_is_bare(const struct session *session, uint32_t process);

void session_env(struct session *session, uint32_t source, uint32_t device, struct str key,
		 struct str value);
void session_loss(struct session *session, uint32_t source, enum loss loss, int64_t count);
/* Of the sources whose reader is READER_PERF, or of all the others: context switches of
 * threads are no records of what devices did. */
int64_t session_loss_sum(const struct session *session, enum loss loss, bool of_perf);
void session_note(struct session *session, uint32_t source, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void session_missing_column(struct session *session, uint32_t source, const char *column);

/* After all events: the session clock's zero from the sources that know UTC. */
void session_settle(struct session *session);

/* From the first to the last event of a source; saturates on hostile times. */
int64_t session_source_span(const struct source *source);

/* Source time to session time. */
int64_t session_time(const struct session *session, uint32_t source, int64_t ns);

static inline uint32_t session_string(struct session *session, const char *at, size_t len)
{
	return len ? intern_add(session->strings, at, len) : 0;
}

static inline uint32_t session_detail(struct session *session, const char *at, size_t len)
{
	return intern_add(session->details, at, len);
}

static inline const char *session_text(const struct session *session, uint32_t id)
{
	return intern_get(session->strings, id, NULL);
}
