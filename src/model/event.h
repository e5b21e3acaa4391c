/*
 * event.h - the few things that everything recorded becomes.
 *
 * Times are int64 ns on the clock of the event's source (session.h maps a
 * source's clock to the session's). `lane`, `name` and the like are ids that
 * session.h gave out. Fields that are unknown keep their NONE value: 0 for
 * string ids and correlations, EVENT_UNKNOWN where 0 has a meaning.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define EVENT_UNKNOWN INT64_MIN

/* Something on a device with a start and an end; its lane is a stream. */
enum op_kind {
	OP_KERNEL,
	OP_MEMCPY,
	OP_MEMSET,
	OP_GRAPH, /* a CUDA graph traced as one block */
	OP_OTHER, /* device work that is none of these (other accelerators) */
};

/* Of a program that was killed before the name was handed over. */
#define KERNEL_WITHOUT_NAME "(kernel without a name)"

/* Which ends a copy has. */
enum copy_kind {
	COPY_UNKNOWN,
	COPY_HTOD,
	COPY_DTOH,
	COPY_DTOD,
	COPY_HTOH,
	COPY_PTOP,
};

/* What kind of host memory took part in a copy. */
enum host_memory {
	HOST_MEMORY_UNKNOWN,
	HOST_MEMORY_PAGEABLE,
	HOST_MEMORY_PINNED,
	HOST_MEMORY_MANAGED,
};

struct op {
	enum op_kind kind;
	uint32_t lane;
	int64_t start_ns;
	int64_t end_ns;
	uint32_t name;        /* string; of kernels the canonical demangled name */
	uint32_t key;         /* kernel key, for OP_KERNEL */
	uint64_t correlation; /* the call that launched it; 0: none recorded */
	uint64_t external;    /* framework op that it belongs to; 0: none */
	uint64_t graph_node;  /* 0: not in a CUDA graph */
	int64_t bytes;        /* copies and sets; EVENT_UNKNOWN */
	enum copy_kind copy;
	enum host_memory host_memory;
	int64_t queued_ns; /* 0: not recorded */
	uint32_t detail;   /* session_detail: further arguments as "key=value", ';' between */
	uint32_t flow;     /* 1: the trace has a flow arrow that ends here and says
			      nothing but this correlation */
};

/* Something on a host thread; its lane is a thread. */
enum call_kind {
	CALL_RUNTIME,  /* CUDA runtime API */
	CALL_DRIVER,   /* CUDA driver API */
	CALL_OP,       /* framework operator */
	CALL_PYTHON,   /* Python function, from a trace with stacks */
	CALL_OVERHEAD, /* the profiler itself */
	CALL_SYNC,     /* the wait of a synchronising call, as the trace shows it */
	CALL_OS,       /* operating system runtime */
	CALL_OTHER,
};

struct call {
	enum call_kind kind;
	uint32_t lane;
	int64_t start_ns;
	int64_t end_ns;
	uint32_t name;
	uint64_t correlation;
	uint64_t external;
	uint64_t sequence; /* of autograd: forward and backward of one op share it; 0: none */
	uint32_t parent;   /* forward thread of a backward op; 0: none */
	uint32_t detail;   /* shapes and the like, as with op */
	uint32_t flow;     /* 1: a flow arrow starts here, as with op */
};

/* A named interval a person or a framework made. */
enum range_kind {
	RANGE_USER,   /* record_function, NVTX push and pop */
	RANGE_STEP,   /* a profiler step */
	RANGE_DEVICE, /* a user range as projected on the device: no device work */
	RANGE_SPAN,   /* the recording itself */
	RANGE_COLLECTIVE,
	RANGE_STATE,        /* what the thread was at when it was looked at, at the start; up to the
			       next look: "running", "waiting: futex" */
	RANGE_STATE_EXACT,  /* the same from context switches: true from start to end */
	RANGE_CPU_STACK,    /* the function on a core when a sample was taken, at the start; up
			       to the next sample or to where the thread left the core; detail:
			       "stack=f < g < main" */
	RANGE_PYTHON_STACK, /* the innermost Python function when it was looked at, at the start;
			       up to the next look: "collate data.py:41"; detail as above */
	RANGE_PAUSED,       /* recording was off between two of its windows; NVTX may go on */
	RANGE_PAGE_FAULT,   /* of unified memory: `external` faults, served together; on a stream's
			       lane of the device, or another lane: of the CPU, or no fault but what
			       the driver does about them */
};

struct range {
	enum range_kind kind;
	uint32_t lane;
	int64_t start_ns;
	int64_t end_ns;
	uint32_t name;
	uint64_t external;
	uint32_t detail;
};

/* One end of an arrow. Arrows that repeat a correlation are a flag on their op
 * and call instead. */
enum link_kind {
	LINK_LAUNCH,
	LINK_FORWARD_BACKWARD,
	LINK_OTHER = 3, /* as in profiles */
};

struct link {
	enum link_kind kind;
	uint32_t lane;
	int64_t time_ns;
	uint64_t id;
	uint32_t is_end; /* 0: the arrow starts here, 1: it ends here */
};

/* Memory obtained (bytes > 0) or given back (bytes < 0). */
struct alloc {
	uint32_t lane;
	int64_t time_ns;
	uint64_t address;
	int64_t bytes;
	int64_t allocated_bytes; /* in all after this; EVENT_UNKNOWN */
	int64_t reserved_bytes;  /* EVENT_UNKNOWN */
	int64_t device;          /* ordinal in the process; EVENT_UNKNOWN; -1 host */
	uint32_t site;           /* string: where in the program it was asked for; 0 unknown */
};

/* Values of a device or process at one time: see metric.h for struct sample. */

/* Counts of (function, pc offset, reason) from PC sampling. */
struct stall {
	uint32_t lane;
	int64_t time_ns;
	uint32_t function;
	uint64_t pc_offset;
	uint64_t cubin; /* CRC of the cubin that the function is of, as CUPTI takes it; 0 unknown */
	uint32_t reason;
	int64_t samples;
};

/* One hardware metric of one launch. */
struct counter {
	uint32_t lane;  /* a LANE_LAUNCHES lane of the device */
	int64_t launch; /* number of the launch in its source; from 0 */
	uint32_t key;   /* kernel key */
	uint32_t name;  /* string: the metric's name, verbatim */
	uint32_t unit;  /* string, verbatim; "" none */
	double value;
	uint32_t text; /* string: a value that is no number; then value is NAN */
};

/* An instant. */
enum mark_kind {
	MARK_TEXT,     /* whatever the trace says */
	MARK_THROTTLE, /* clock event reasons changed */
	MARK_XID,      /* Xid and SXid: see fault.h */
	MARK_OOM,
	MARK_RULE,        /* advice of another tool, carried over */
	MARK_FAULT,       /* of the driver or the machine, without an Xid: see fault.h */
	MARK_STREAM_MADE, /* detail: "context=C;stream=S;site=WHERE" */
	MARK_STREAM_GONE,
	MARK_OBJECT_MADE, /* as of streams; WORD=N, of event, graph, graph_exec */
	MARK_OBJECT_GONE,
	MARK_CONTEXT_GONE, /* with all that was made in it: "context=C;..." */
	MARK_MODULE,       /* loaded or unloaded: "context=C;module=M;bytes=B;crc=..." */
	MARK_POOL,         /* of memory, made, trimmed, destroyed: "pool=ADDRESS;bytes=B;..." */
	MARK_WAIT_OPEN,    /* on a thread, when it began: a call that waits for a device had not
			      returned when the process ended, or we: "call=NAME;waited_ns=N;
			      context=C;correlation=N;stream=S;device=D;handover=W"; S: also
			      "default"; W: what CUPTI had of the process came "all", is "lost"
			      with it, or is still "held" there */
	MARK_WAIT_FAILED,  /* the same, when it returned an error: "...;result=700" */
	MARK_UNTIMED,      /* on a stream: an operation of which CUPTI had no times, as it had not
			      ended, or its context failed; name: the op's; when it began, or
			      else the last that is known of the process; "op=kernel;
			      correlation=N;grid=X,Y,Z;block=X,Y,Z", or memcpy, memset, graph */
};

struct mark {
	enum mark_kind kind;
	uint32_t lane;
	int64_t time_ns;
	uint32_t name;
	uint32_t detail;
};
