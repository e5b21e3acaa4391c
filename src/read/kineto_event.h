/*
 * kineto_event.h - the text of one trace event, taken apart.
 *
 * Two ways lead to the same struct. The general one reads any JSON object. The
 * learned one knows layouts: writers repeat themselves to the byte between the
 * values, so the text between two values ("the gap", with its keys) is kept in
 * a tree as seen before, and an event that follows a known path costs a
 * comparison for each gap and a scan for each value. What does not follow falls
 * back to the general way, which teaches the tree. Both hand each value to the
 * same function with the same key, so they cannot disagree.
 *
 * Texts in the struct point into the caller's window.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/own.h"
#include "base/str.h"

/* What a value of a key is good for. */
enum kineto_type {
	KINETO_REST, /* no field: kept as text */
	KINETO_PH,
	KINETO_CAT,
	KINETO_NAME,
	KINETO_ID, /* number or text */
	KINETO_NS, /* microseconds in the file */
	KINETO_INT,
	KINETO_DIMS,   /* [x, y, z] */
	KINETO_DROP,   /* a number that follows from others or only counts */
	KINETO_IGNORE, /* says how to draw */
	KINETO_ARGS,
};

/* X(field, type, key): keys of an event ... */
#define KINETO_TOP_LIST(X)    \
	X(ph, PH, "ph")       \
	X(cat, CAT, "cat")    \
	X(name, NAME, "name") \
	X(pid, ID, "pid")     \
	X(tid, ID, "tid")     \
	X(id, ID, "id")       \
	X(ts, NS, "ts")       \
	X(dur, NS, "dur")     \
	X(scope, IGNORE, "s") \
	X(bind, IGNORE, "bp") \
	X(args, ARGS, "args")

/* ... and of its "args". */
#define KINETO_ARG_LIST(X)                             \
	X(external, INT, "External id")                \
	X(external, INT, "external id")                \
	X(correlation, INT, "correlation")             \
	X(correlation, INT, "correlation_id")          \
	X(device, INT, "device")                       \
	X(context, INT, "context")                     \
	X(stream, INT, "stream")                       \
	X(bytes, INT, "bytes")                         \
	X(bytes, INT, "Bytes")                         \
	X(grid, DIMS, "grid")                          \
	X(block, DIMS, "block")                        \
	X(cluster, DIMS, "cluster")                    \
	X(registers, INT, "registers per thread")      \
	X(shared, INT, "shared memory")                \
	X(occupancy, INT, "est. achieved occupancy %") \
	X(queued, INT, "queued")                       \
	X(graph_node, INT, "graph node id")            \
	X(sequence, INT, "Sequence number")            \
	X(forward, INT, "Fwd thread id")               \
	X(address, INT, "Addr")                        \
	X(allocated, INT, "Total Allocated")           \
	X(reserved, INT, "Total Reserved")             \
	X(device_type, INT, "Device Type")             \
	X(device_id, INT, "Device Id")                 \
	X(order, DROP, "Ev Idx")                       \
	X(order, DROP, "Record function id")           \
	X(order, DROP, "Python id")                    \
	X(order, DROP, "Python parent id")             \
	X(derived, DROP, "blocks per SM")              \
	X(derived, DROP, "warps per SM")               \
	X(derived, DROP, "memory bandwidth (GB/s)")    \
	X(derived, DROP, "external ts")                \
	X(derived, DROP, "sort_index")

/* Fields that are numbers: num[] and a bit in `have`. */
enum kineto_num {
	KINETO_ts,
	KINETO_dur,
	KINETO_external,
	KINETO_correlation,
	KINETO_device,
	KINETO_context,
	KINETO_stream,
	KINETO_bytes,
	KINETO_registers,
	KINETO_shared,
	KINETO_occupancy,
	KINETO_queued,
	KINETO_graph_node,
	KINETO_sequence,
	KINETO_forward,
	KINETO_address,
	KINETO_allocated,
	KINETO_reserved,
	KINETO_device_type,
	KINETO_device_id,
	KINETO_NUM_COUNT
};
enum kineto_dims { KINETO_grid, KINETO_block, KINETO_cluster, KINETO_DIMS_COUNT };
/* Their types say all. */
enum {
	KINETO_ph,
	KINETO_cat,
	KINETO_name,
	KINETO_scope,
	KINETO_bind,
	KINETO_args,
	KINETO_order,
	KINETO_derived,
};
enum kineto_ids { KINETO_pid, KINETO_tid, KINETO_id, KINETO_ID_COUNT };

struct kineto_key {
	struct str text;
	enum kineto_type type;
	uint32_t field;
	bool in_args;
};

/* A number, or else (at != NULL) a text. Neither: absent. */
struct kineto_id {
	bool known;
	int64_t number;
	struct str text;
};

/* An argument without a field of its own. */
struct kineto_rest {
	const struct kineto_key *key;
	struct str value; /* of strings without the quotes */
	bool is_string, escaped;
};

/* Categories with a meaning; old and new names. X(id, text) */
#define KINETO_CAT_LIST(X)                     \
	X(KERNEL, "kernel")                    \
	X(KERNEL, "Kernel")                    \
	X(MEMCPY, "gpu_memcpy")                \
	X(MEMCPY, "Memcpy")                    \
	X(MEMSET, "gpu_memset")                \
	X(MEMSET, "Memset")                    \
	X(RUNTIME, "cuda_runtime")             \
	X(RUNTIME, "Runtime")                  \
	X(DRIVER, "cuda_driver")               \
	X(OP, "cpu_op")                        \
	X(OP, "Operator")                      \
	X(OP, "operator")                      \
	X(PYTHON, "python_function")           \
	X(USER, "user_annotation")             \
	X(DEVICE_RANGE, "gpu_user_annotation") \
	X(OVERHEAD, "overhead")                \
	X(SYNC, "cuda_sync")                   \
	X(EVENT, "cuda_event")                 \
	X(SPAN, "Trace")                       \
	X(COLLECTIVE, "collective_comm")       \
	X(INSTANT, "cpu_instant_event")        \
	X(FLOW, "ac2g")                        \
	X(FLOW, "async")                       \
	X(FORWARD, "fwdbwd")                   \
	X(MTIA_OP, "mtia_ccp_events")          \
	X(MTIA_OP, "mtia_workloadd")           \
	X(MTIA_OP, "mtia_insight")             \
	X(MTIA_CALL, "mtia_runtime")           \
	X(HPU_OP, "hpu_op")                    \
	X(XPU_CALL, "xpu_runtime")             \
	X(XPU_CALL, "xpu_driver")              \
	X(PRIVATE_CALL, "privateuse1_runtime") \
	X(PRIVATE_CALL, "privateuse1_driver")

enum kineto_cat {
	KINETO_CAT_NONE,  /* no "cat" */
	KINETO_CAT_OTHER, /* one we know nothing of */
	KINETO_CAT_KERNEL,
	KINETO_CAT_MEMCPY,
	KINETO_CAT_MEMSET,
	KINETO_CAT_RUNTIME,
	KINETO_CAT_DRIVER,
	KINETO_CAT_OP,
	KINETO_CAT_PYTHON,
	KINETO_CAT_USER,
	KINETO_CAT_DEVICE_RANGE,
	KINETO_CAT_OVERHEAD,
	KINETO_CAT_SYNC,
	KINETO_CAT_EVENT,
	KINETO_CAT_SPAN,
	KINETO_CAT_COLLECTIVE,
	KINETO_CAT_INSTANT,
	KINETO_CAT_FLOW,
	KINETO_CAT_FORWARD,
	KINETO_CAT_MTIA_OP,
	KINETO_CAT_MTIA_CALL,
	KINETO_CAT_HPU_OP,
	KINETO_CAT_XPU_CALL,
	KINETO_CAT_PRIVATE_CALL,
};

enum { KINETO_REST_MAX = 64 };

struct kineto_event {
	char ph; /* 0: none */
	enum kineto_cat cat;
	struct str cat_text;
	struct str name; /* at == NULL: none */
	/* Where names are looked up, set by the caller: the parser asks for the place
	 * as soon as it meets the name, long before it is wanted. */
	const struct intern *strings;
	uint64_t name_asked;
	bool name_escaped;
	bool malformed; /* a field could not be read */
	bool empty;     /* an object without keys */
	struct kineto_id id[KINETO_ID_COUNT];
	uint32_t have;
	uint32_t have_dims;
	int64_t num[KINETO_NUM_COUNT];
	int32_t dims[KINETO_DIMS_COUNT][3];
	size_t rest_count;
	struct kineto_rest rest[KINETO_REST_MAX];
};

static inline bool kineto_has(const struct kineto_event *event, enum kineto_num field)
{
	return event->have >> field & 1;
}

static inline int64_t kineto_num(const struct kineto_event *event, enum kineto_num field,
				 int64_t otherwise)
{
	return kineto_has(event, field) ? event->num[field] : otherwise;
}

/* The argument with that key among the rest; NULL. */
const struct kineto_rest *kineto_rest_find(const struct kineto_event *event, const char *key);

enum kineto_parsed {
	KINETO_PARSED,
	KINETO_SHORT, /* ends before the event does */
	KINETO_BROKEN,
};

struct kineto_parser;

/* `learn` off: always the general way (tests compare). */
struct kineto_parser *kineto_parser_new(bool learn);
void kineto_parser_free(struct kineto_parser *parser);
DEFINE_OWNED(kineto_parser, kineto_parser_free);

/* The object that opens at `at`. *ret_next is behind it. */
enum kineto_parsed kineto_parse(struct kineto_parser *parser, const char *at, const char *end,
				struct kineto_event *event, const char **ret_next);

/* The first place from `start` on where an event seems to begin; NULL. */
const char *kineto_find_event(const char *start, const char *end);
