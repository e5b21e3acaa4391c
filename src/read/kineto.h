/*
 * kineto.h - what the parts of the Kineto reader share while a file is read.
 *
 * kineto_event.c takes the text of an event apart, kineto_model.c makes it an
 * event of the model, kineto_track.c knows which lane a (pid, tid) of the trace
 * is, kineto_meta.c reads what stands beside the events, kineto_xla.c knows the
 * form of XLA's traces, read_kineto.c drives. Nothing else includes this.
 *
 * All state is bounded, but for what lies in the session: nothing is kept for
 * an event once it went to the sink, except of the last one (its flow arrow
 * follows it) and of those that have begun and not ended.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/sink.h"
#include "read/kineto_event.h"
#include "read/reader.h"

enum kineto_made_kind { MADE_NOTHING, MADE_OP, MADE_CALL, MADE_RANGE, MADE_MARK };

/* An event of the model on its way to the sink. */
struct kineto_made {
	enum kineto_made_kind kind;
	union {
		struct op op;
		struct call call;
		struct range range;
		struct mark mark;
	};
};

/* A (pid, tid) of the trace. Texts are numbers far below zero there. */
struct kineto_track {
	int64_t pid, tid;
	uint32_t thread_lane; /* SESSION_NONE: not used yet */
	uint32_t stream_lane; /* last of those of (device, context, stream) */
	int64_t device, context, stream;
	uint32_t name;
	bool xla_stream;              /* its name says that it holds device work */
	VEC(struct kineto_made) open; /* begun with "B" */
};

/* A pid of the trace. */
struct kineto_pid {
	int64_t pid;
	uint32_t name, labels;
	bool is_device; /* XLA: "/device:GPU:0" */
	int64_t device; /* its ordinal */
};

struct kineto_cached {
	uint64_t hash;
	uint32_t id;
};

enum { KINETO_KEY_CACHE = 1 << 12, KINETO_TRACK_CACHE = 1 << 6 };

struct kineto {
	struct input *input;
	struct sink *sink;
	struct session *session;
	uint32_t source;
	struct err *err;
	struct kineto_parser *parser;
	struct kineto_event event;
	uint64_t seed;

	struct kineto_made held;
	int64_t held_pid, held_tid;
	/* Text of the event in the making or held; a number once it goes to the sink. */
	struct buf detail;
	uint64_t detail_asked;

	VEC(struct kineto_track) tracks;
	struct map track_index; /* hash of pid and tid */
	uint32_t track_cache[KINETO_TRACK_CACHE];
	VEC(struct kineto_pid) pids;
	struct map pid_index;
	size_t open_count; /* in all tracks */

	struct kineto_cached keys[KINETO_KEY_CACHE];
	struct buf text;

	int64_t loss[LOSS_COUNT];
	int64_t min_ns;
	int64_t at_zero; /* events whose time is 0 */
	bool has_base;
	bool schema;     /* "schemaVersion": Kineto wrote it */
	bool any_device; /* CUDA or HIP work */
	uint32_t maker;  /* string, of the accelerator; 0 unknown */
};

/* kineto_track.c. A track is good until the next one is asked for. */
struct kineto_track *kineto_track_get(struct kineto *k, const struct kineto_event *event);
struct kineto_pid *kineto_pid_get(struct kineto *k, int64_t pid);
uint32_t kineto_thread_lane(struct kineto *k, struct kineto_track *track);
/* Context -1: not in the event; the one seen on this track before is meant. */
uint32_t kineto_stream_lane(struct kineto *k, struct kineto_track *track, int64_t device,
			    int64_t context, int64_t stream);
/* "M" events: names of processes and threads. */
void kineto_name(struct kineto *k, const struct kineto_event *event);
/* After all events: give names to lanes and processes. */
void kineto_name_all(struct kineto *k);

/* kineto_model.c. 0 or a negative ERR_* of the sink. */
int kineto_event_take(struct kineto *k, const struct kineto_event *event);
/* The event held back, and what never ended. */
int kineto_flush(struct kineto *k);
uint32_t kineto_text(struct kineto *k, struct str raw, bool escaped);
/* The same for the name of an event. */
uint32_t kineto_event_name(struct kineto *k, const struct kineto_event *event);
void kineto_maker(struct kineto *k, const char *maker);

/* kineto_detail.c: arguments without a field as "key=value;..." into k->detail;
 * then its id, which empties it. Between the two, its place in the table comes
 * nearer: looking it up at once is a cache miss for each operator. */
void kineto_detail(struct kineto *k, const struct kineto_event *event, bool with_cat);
uint32_t kineto_detail_id(struct kineto *k);

/* kineto_xla.c: an event without category. */
void kineto_xla(struct kineto *k, const struct kineto_event *event, struct kineto_track *track,
		struct kineto_made *made);
void kineto_copy_name(struct str name, struct op *op);

/* kineto_meta.c: `value` is a whole JSON value. */
void kineto_meta(struct kineto *k, struct str key, struct str value);

/* read_kineto.c: as reader_kineto.read; `learn` off for tests. */
int kineto_read(struct input *input, struct sink *sink, uint32_t source, bool learn,
		struct err *err);
