/*
 * segment.h - the memory that a profiled process and sonde share.
 *
 * `sonde run` makes one memfd, sealed against resizing, with SEGMENT_COUNT
 * segments of equal size, and holds it. A process that the injection library
 * is loaded into claims one segment, maps it and fills it; sonde maps each
 * claimed segment, takes out what is finished and gives the room back. The
 * memfd outlives the process: what it wrote before SIGKILL is still there.
 *
 * A segment has a head (this header's struct segment), then
 *  - texts: kernel names, API names, NVTX messages; only ever added;
 *  - the ring: slots of 64 bytes, many writers, one reader; a slot's `kind` is
 *    stored last, so that what was never finished is skipped;
 *  - buffers, lent to CUPTI, which writes its activity records straight into
 *    them: the process copies nothing. A full buffer goes READY; sonde reads
 *    it, zeroes it and sets it FREE.
 *
 * Both sides are built from this header. The reader trusts nothing in here
 * but the memory's size: the process may have scribbled over it.
 *
 * Freestanding: no function of libc, so that inject/ may include it.
 * Times: ns of CLOCK_MONOTONIC where clock == SEGMENT_CLOCK_MONOTONIC.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SEGMENT_MAGIC 0x31676573646e6f73ull /* "sondseg1", little endian */

enum {
	SEGMENT_VERSION = 14,
	SEGMENT_COUNT_MAX = 256,
	SEGMENT_BUFFERS_MAX = 256,
	SEGMENT_NAMES = 1 << 14, /* slots of the table from name pointers to texts */
	SEGMENT_KINDS = 64,      /* activity kinds whose record size is known */
	SEGMENT_WAITS = 256,     /* threads that wait for the device at a time */
	SEGMENT_PAGE = 4096,
	SEGMENT_RANGE_MAX = 128, /* bytes of the name of a range, or of a domain, with its 0 */
};

/* Environment variable with the spool's path, set by sonde for its target. The
 * library opens it and claims a segment. */
#define SEGMENT_ENV "SONDE_SPOOL"
/* What to record: words of TRACE_LIST joined by ','; also range-nvtx=NAME and
 * range-domain=NAME, each shorter than SEGMENT_RANGE_MAX, pc-period=N, pc-memory=BYTES,
 * osrt-threshold=NS. */
#define SEGMENT_OPTIONS_ENV "SONDE_TRACE"

/* Who owns a segment. */
enum segment_state {
	SEGMENT_FREE,    /* zeroed, to be claimed */
	SEGMENT_CLAIMED, /* a process fills it */
	SEGMENT_ENDED,   /* the process said that it is done; the reader drains it */
};

/* Which libraries of ours fill a segment; bits. */
enum segment_user { SEGMENT_USER_INJECT = 1, SEGMENT_USER_HOST = 2 };

/* Why recording is off. */
enum segment_reason {
	SEGMENT_REASON_NONE,
	SEGMENT_REASON_NO_CUPTI,      /* no libcupti could be loaded */
	SEGMENT_REASON_CUPTI_VERSION, /* one that this library does not know */
	SEGMENT_REASON_SUBSCRIBED,    /* another tool holds CUPTI */
	SEGMENT_REASON_OTHER_TOOL,    /* another tool is at work: `other_tool` */
	SEGMENT_REASON_CALL_FAILED,   /* a CUPTI call failed; `detail` has its result */
	SEGMENT_REASON_YIELDED,       /* the target asked for CUPTI itself */
};

/* What recording does without; the rest is on. Several may be missing. */
enum segment_lack {
	LACK_PC_SAMPLING, /* it could not be enabled */
	LACK_PC_CONTEXTS, /* contexts beyond the first of a card are not sampled */
	LACK_UNIFIED,     /* unified memory is not recorded */
	LACK_QUEUED,      /* launches have no time at which they were queued */
	LACK_COUNT
};

/* X(id, word in SEGMENT_OPTIONS_ENV): what the library can record. torch-ops: NVTX ranges
 * have names without what PyTorch adds to each call's. */
#define TRACE_LIST(X)                                                                          \
	X(TRACE_CUDA, "cuda")       /* kernels, copies, sets, the calls that matter */         \
	X(TRACE_KERNEL, "kernel")   /* kernels alone */                                        \
	X(TRACE_API_ALL, "api-all") /* all runtime and driver calls */                         \
	X(TRACE_NVTX, "nvtx")                                                                  \
	X(TRACE_TORCH_OPS, "torch-ops")                                                        \
	X(TRACE_MEMORY, "memory")   /* allocations, pools */                                   \
	X(TRACE_SYNC, "sync")       /* what synchronising calls wait for */                    \
	X(TRACE_EVENTS, "events")   /* with sync: which stream another one waits for */        \
	X(TRACE_UNIFIED, "unified") /* faults and migrations of unified memory */              \
	X(TRACE_GRAPH, "graph")     /* a CUDA graph as one block instead of its nodes */       \
	X(TRACE_QUEUED, "queued")   /* when launches were queued and submitted */              \
	X(TRACE_PC, "pc")           /* continuous PC sampling */                               \
	X(TRACE_OSRT, "osrt")       /* calls of the system that block: libsonde-osrt.so */     \
	X(TRACE_PAUSED, "paused")   /* begin paused: a range, of what is below, turns it on */ \
	X(TRACE_RANGE_PROFILER, "range-profiler") /* cudaProfilerStart turns it on */

enum trace {
#define X(id, word) id,
	TRACE_LIST(X)
#undef X
		TRACE_COUNT
};

enum segment_clock { SEGMENT_CLOCK_UNKNOWN, SEGMENT_CLOCK_MONOTONIC, SEGMENT_CLOCK_REALTIME };

enum segment_want {
	WANT_FLUSH = 1,
	WANT_STOP = 2,
	WANT_START = 4,
	WANT_QUIET = 8 /* with WANT_STOP: calls are not recorded either */
};

/* Whether sonde lets anything be recorded at all, whatever the program's ranges say. */
enum segment_closed {
	CLOSED_NOT,
	CLOSED_NOW,   /* before --delay, after --duration or an interrupt */
	CLOSED_MOMENT /* of --calibrate: NVTX goes on */
};

enum buffer_state {
	BUFFER_FREE,    /* zeroed */
	BUFFER_FILLING, /* lent to CUPTI */
	BUFFER_READY,   /* `valid` bytes of records; names are text ids */
};

struct segment_buffer {
	_Atomic uint32_t state;
	uint32_t thread; /* that asked for it */
	_Atomic uint64_t valid;
	_Atomic uint64_t order; /* counts up as buffers are handed out */
};

/* From a pointer that CUPTI puts into records to the text behind it. */
struct segment_name {
	_Atomic uint64_t pointer; /* 0: free */
	_Atomic uint32_t text;    /* offset in the texts; 0: not yet written */
};

/* Where in the names a key is looked for, and how far on. */
enum { NAME_PROBES = 32 };

static inline uint32_t segment_name_at(uint64_t key)
{
	return (uint32_t)((key ^ key >> 29) * 0x9e3779b97f4a7c15ull >> 40);
}

enum { TEXT_MAX = 4096 }; /* longer texts are cut */

/* A text: its length, then its bytes, padded to 4. Offset 0 is not a text. */
struct segment_text {
	_Atomic uint32_t len; /* stored last */
	char at[];
};

/* What a program makes and has to destroy itself. */
enum object_kind { OBJECT_EVENT, OBJECT_GRAPH, OBJECT_GRAPH_EXEC, OBJECT_KINDS };

/* What a synchronising call waits for. */
enum sync_kind { SYNC_EVENT, SYNC_STREAM_WAIT, SYNC_STREAM, SYNC_CONTEXT, SYNC_KINDS };

/* Streams by handle, where CUPTI is not asked for the number: the legacy and the
 * per-thread default stream have these, whatever the program passed. 0: none. */
enum { HANDLE_DEFAULT = 1, HANDLE_THREAD = 2 };

/* 0 is either default stream, by how the program was compiled. */
static inline uint64_t handle_or_default(uint64_t handle, bool per_thread)
{
	if (handle)
		return handle;
	return per_thread ? HANDLE_THREAD : HANDLE_DEFAULT;
}

/* What NVTX events carry beside their text; numbered as NVTX does. */
enum payload_kind {
	PAYLOAD_NONE,
	PAYLOAD_U64,
	PAYLOAD_I64,
	PAYLOAD_F64,
	PAYLOAD_U32,
	PAYLOAD_I32,
	PAYLOAD_F32
};

/* What a slot of the ring says. */
enum slot_kind {
	SLOT_NONE,
	SLOT_PUSH,     /* a = message, b = domain; x[0] = category, 0 none;
			x[1] = enum payload_kind, x[2..3] = its bytes */
	SLOT_POP,      /* b = domain */
	SLOT_START,    /* value = range id; the rest as SLOT_PUSH */
	SLOT_END,      /* value = range id */
	SLOT_MARK,     /* as SLOT_PUSH */
	SLOT_API_NAME, /* value = domain << 32 | cbid; a = name */
	SLOT_THREAD,   /* a = name of the thread */
	SLOT_STREAM, /* value = stream id; x[0] = context; x[1]: 1 made, 0 destroyed; x[2] = device,
			~0 unknown; x[3..4] = handle; a = call stack of its making, as inject/site.c
			writes it
		      */
	SLOT_SITE,   /* value = correlation of a call that obtains memory; a = call stack */
	SLOT_MODULE, /* value = cubin CRC; x[0] = module, x[1] = context, x[2]: 1 loaded, 0 gone;
			x[3] = bytes of the cubin */
	SLOT_PC,     /* value = pc offset; a = function, b = reason; x[0] = samples,
			x[1] = context, x[2..3] = cubin CRC, x[4] = device */
	SLOT_STALL_NAME,   /* value = index; a = name */
	SLOT_GATE,         /* value = enum gate */
	SLOT_OBJECT,       /* value = handle; x[0] = context; x[1] = enum object_kind; x[2]: 1 made,
			  0 destroyed; a = call stack of its making */
	SLOT_CONTEXT_GONE, /* value = context, with all that was made in it */
	SLOT_OS,           /* call of the system: value = start, time_ns is its end; a = name */
	SLOT_SYNC,         /* synchronising call: value = start, time_ns is its end; a = enum
			sync_kind; b = correlation; x[0] = context, x[1] = stream, x[2] = device,
			x[3..4] = handle of the stream, x[5] = what the call returned, x[6] = its
			domain, x[7] = its cbid. Of one that failed x[1] and x[2] are ~0 */
	SLOT_WAITS_FOR,    /* before the SLOT_SYNC of a stream that waits for an event: b =
			correlation of that call; of the event's last record: value = handle of its
			stream, x[0] = context, x[1] = correlation, x[2] = stream, ~0 unknown */
	SLOT_DEVICE,       /* value = device as CUDA counts in the process; x[0..3] = its UUID.
			CUPTI's record of it lies in the buffer of the thread that made the context,
			and those of other threads can come before it */
	SLOT_CATEGORY,     /* value = domain << 32 | category of NVTX; a = its name */
};

/* Recording is paused; goes on; is paused, and NVTX goes on: in a moment of --calibrate, and
 * after a step back. */
enum gate { GATE_OFF, GATE_ON, GATE_PART };

struct segment_slot {
	_Atomic uint32_t kind;
	uint32_t thread;
	uint64_t time_ns;
	uint64_t value;
	uint32_t a, b;
	uint32_t x[8];
};
_Static_assert(sizeof(struct segment_slot) == 64, "a slot is a cache line");

/*
 * A thread is in a call that waits for the device: beside the ring, as a call that never
 * returns makes no slot. Whose thread it is comes first, since_ns last; both are cleared
 * when the call returns.
 */
struct segment_wait {
	_Atomic uint32_t thread; /* 0: free */
	uint32_t kind;           /* enum sync_kind */
	_Atomic uint64_t since_ns;
	uint64_t handle; /* of the stream */
	uint32_t context, correlation, domain, cbid;
	uint32_t unused[6];
};
_Static_assert(sizeof(struct segment_wait) == 64, "a cache line: threads do not share one");

/* Counted by the process. */
struct segment_counts {
	_Atomic uint64_t buffers_asked;
	_Atomic uint64_t records_dropped; /* in those, and as CUPTI reports; of these: */
	_Atomic uint64_t kernels_dropped, calls_dropped; /* in those */
	_Atomic uint64_t cupti_dropped;                  /* of CUPTI's, which names no kind */
	_Atomic uint64_t slots_dropped;                  /* the ring was full */
	_Atomic uint64_t slots_nested;                   /* from inside one of our own functions */
	_Atomic uint64_t texts_dropped;                  /* no room */
	_Atomic uint64_t waits_dropped;                  /* found no room while they lasted */
	_Atomic uint64_t callbacks, callback_ns;         /* of CUPTI, and the time in them */
	/* Taken; of these dropped by the card, and in kernels that are not the user's. */
	_Atomic uint64_t pc_samples, pc_dropped, pc_other;
};

/* When PC samples were taken that count, of any context: beside the ring, as a slot that
 * finds no room is dropped, and what says that sampling ended must not be. A window that
 * ends leaves since_ns before it gets into covered_ns: where the process is killed in
 * between, it is in neither. */
struct segment_pc {
	_Atomic uint64_t first_ns;   /* since when at all; 0: never */
	_Atomic uint64_t since_ns;   /* of the window that is open; 0: none is */
	_Atomic uint64_t covered_ns; /* of those that are over */
	_Atomic uint32_t period;     /* 2^n cycles */
	_Atomic uint32_t contexts;   /* that were sampled; of these: */
	_Atomic uint32_t full;       /* the memory for samples was: from then on there are none */
	_Atomic uint32_t failed; /* from then on CUPTI gave none; `result` has the last reason */
	_Atomic uint32_t result;
};

struct segment {
	uint64_t magic;
	uint32_t version;
	uint32_t head_bytes; /* sizeof(struct segment), rounded to pages */
	/* Layout, set by sonde; offsets from the start of the segment. */
	uint64_t bytes;
	uint64_t texts_at, texts_bytes;
	uint64_t ring_at, ring_slots; /* a power of two */
	uint64_t buffers_at, buffer_bytes;
	uint64_t overflow_bytes; /* lent beyond the segment at a time, at most */
	uint32_t buffer_count, index;
	/* Set by the process. */
	_Atomic uint32_t state;
	_Atomic uint32_t users;        /* enum segment_user, or-ed */
	_Atomic uint32_t paused;       /* 1: outside of the range that is to be recorded */
	_Atomic uint32_t ranges_begun; /* of those that are to be recorded, so often */
	_Atomic uint32_t closed; /* enum segment_closed: set by sonde, first as the spool's head
				    has it */
	_Atomic uint32_t reason;
	_Atomic uint32_t reason_detail;
	_Atomic uint32_t lacks;                   /* bits of enum segment_lack */
	_Atomic uint32_t lack_detail[LACK_COUNT]; /* CUPTI's result; 0: it has no such call */
	uint32_t pid;                             /* as the process sees itself */
	uint64_t image;       /* of this program in this process: exec makes another */
	uint64_t start_ticks; /* field 22 of /proc/self/stat: tells a reused pid */
	uint32_t cupti_version;
	uint32_t clock;
	uint32_t world_rank, world_size; /* from the environment; ~0 unknown */
	char cupti_path[256];
	char command[64]; /* /proc/self/comm */
	char other_tool[64];
	struct segment_counts counts;
	struct segment_pc pc;
	_Atomic uint64_t texts_used;
	_Atomic uint64_t ring_head; /* next slot to write */
	_Atomic uint64_t ring_tail; /* next slot to read; set by sonde */
	_Atomic uint64_t order;     /* of buffers */
	/* When CUPTI was last told to hand over all it has, ended or not, and did: what was
	 * launched before has its record. 0: never. */
	_Atomic uint64_t flushed_ns;
	_Atomic uint32_t wanted; /* enum segment_want, or-ed: set by sonde, cleared when done */
	_Atomic uint32_t
		record_bytes[SEGMENT_KINDS]; /* size of a record of each kind; 0: not seen */
	struct segment_wait waits[SEGMENT_WAITS];
	struct segment_buffer buffers[SEGMENT_BUFFERS_MAX];
	struct segment_name names[SEGMENT_NAMES];
};

/* In the file of each library that fills segments, found by its word: which. Neither is ever
 * changed, as a sonde of another build looks for it. */
#define SEGMENT_MARK_WORD "sonde segment mark:"

struct segment_mark {
	char word[sizeof(SEGMENT_MARK_WORD)];
	uint32_t version;
};

/* The spool's first SPOOL_HEAD bytes; segments follow, `segment_bytes` each. */
#define SPOOL_MAGIC 0x31306c6f6f707373ull

struct spool_head {
	/* Where they are in every version, as libraries of other builds leave their word here. */
	uint64_t magic;
	uint32_t version;
	_Atomic uint32_t stranger; /* the version of a library of another build; 0: none came */
	/* Of this version. */
	uint32_t count;
	uint64_t segment_bytes;
	_Atomic uint32_t owner[SEGMENT_COUNT_MAX]; /* pid, as /proc has it, that claimed it;
						      0: free */
	_Atomic uint32_t unserved;                 /* processes that found none free */
	_Atomic uint32_t unserved_host;            /* the same, for calls of the system alone */
	_Atomic uint32_t closed;                   /* for segments that are claimed from now on */
};

enum { SPOOL_HEAD = 4096 };
_Static_assert(sizeof(struct spool_head) <= SPOOL_HEAD, "one page");

static inline struct segment_slot *segment_ring(struct segment *segment)
{
	return (struct segment_slot *)(void *)((char *)segment + segment->ring_at);
}

static inline uint8_t *segment_buffer(struct segment *segment, uint32_t index)
{
	return (uint8_t *)segment + segment->buffers_at + index * segment->buffer_bytes;
}
