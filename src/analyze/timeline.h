/*
 * timeline.h - the events of a profile in memory, for the analyses only.
 *
 * Ten million kernels with their launches must fit in less than a gigabyte and
 * be gone through in a second: arrays of one field each, 32-bit indices, no
 * pointers. All times are on the session clock, limited to TIME_LIMIT_NS on
 * both sides so that differences can't overflow, and nothing ends before it
 * starts.
 *
 * Built in steps: timeline_load_ops, timeline_load_calls, timeline_join, then
 * frames_load. facts_build frees it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/facts.h"
#include "analyze/spans.h"
#include "base/capped.h"
#include "base/interval.h"
#include "base/map.h"
#include "store/store.h"

#define TIME_LIMIT_NS (INT64_MAX / 2)
/* No such index; launched before the recording began. */
#define TL_NONE   UINT32_MAX
#define TL_BEFORE (UINT32_MAX - 1)

/* Ops or calls of one lane and kind: a run of indices. */
struct tl_segment {
	uint32_t lane, device, source;
	enum store_kind kind;
	uint32_t first, count;
};

struct tl_copy {
	uint32_t op;   /* ascending */
	int64_t bytes; /* FACT_UNKNOWN */
	uint8_t kind, host_memory;
};

/* A copy of so much is a value that somebody reads or sets, not data. */
enum { TINY_COPY_BYTES = 64 };

/* A kernel whose row in the file comes as number `row` of all ops lies at `op`. */
struct tl_moved {
	uint32_t row, op;
};

/* Device work, in order of lane, kind and start. */
struct tl_ops {
	size_t count, room;
	struct spans spans;
	uint32_t *key;  /* kernel key; of others the name */
	uint32_t *call; /* the call that launched it, TL_NONE, TL_BEFORE; until the join the
			   correlation, see struct tl_wide */
	VEC(struct tl_segment) segments;
	VEC(struct tl_copy) copies;
	VEC(struct tl_moved) moved; /* kernels that are not where the file has them */
};

static inline int64_t op_start(const struct tl_ops *ops, size_t op)
{
	return spans_start(&ops->spans, op);
}

static inline int64_t op_ns(const struct tl_ops *ops, size_t op)
{
	return spans_ns(&ops->spans, op);
}

static inline int64_t op_end(const struct tl_ops *ops, size_t op)
{
	return spans_end(&ops->spans, op);
}

/* Of tl_calls.what: the host waits in it for the device (a synchronising call, or a copy
 * with pageable memory, which goes through a staging buffer); the rest is the number of
 * the name. What more names there were are unknown: the APIs have a few hundred. */
enum { CALL_WAITS = 1 << 15, CALL_NAMES_MOST = 1 << 15 };

/* Runtime and driver calls, in order of lane and start. */
struct tl_calls {
	size_t count, room;
	struct spans spans;
	uint16_t *what;
	VEC(uint32_t) names; /* by number; that of 0 is unknown */
	uint32_t *first_op;  /* the first op that it launched, TL_NONE; until the join the
				correlation */
	struct map gpu_ns;   /* of all ops that it launched, where it launched several */
	VEC(struct tl_segment) segments; /* one for each lane; kind without meaning */
};

static inline int64_t call_start(const struct tl_calls *calls, size_t call)
{
	return spans_start(&calls->spans, call);
}

static inline int64_t call_ns(const struct tl_calls *calls, size_t call)
{
	return spans_ns(&calls->spans, call);
}

static inline int64_t call_end(const struct tl_calls *calls, size_t call)
{
	return spans_end(&calls->spans, call);
}

static inline uint32_t call_name(const struct tl_calls *calls, size_t call)
{
	return calls->names.at[calls->what[call] & (CALL_WAITS - 1)];
}

static inline bool call_waits(const struct tl_calls *calls, size_t call)
{
	return calls->what[call] & CALL_WAITS;
}

/* A named interval on a thread: framework op, Python function, range. */
struct tl_frame {
	int64_t start, end;
	uint32_t name;
	uint8_t kind;  /* enum activity_kind */
	uint8_t phase; /* own; PHASE_OTHER: that of what is round it */
	uint8_t is_op; /* a framework operator */
	uint8_t flags; /* FRAME_* */
};

enum {
	FRAME_ANNOTATED = 1, /* the phase comes from a name that says so */
	FRAME_STEP = 2,
};

/* The frames of a lane, by start, longest first. */
struct tl_lane {
	uint32_t lane, source;
	struct tl_frame *frames;
	size_t frame_count;
	uint32_t first_call, call_count;
};

/* When recording was off, in order and apart: pauses.c. */
struct pauses {
	struct interval *at;
	int64_t *before_ns; /* length of all before */
	size_t count;
};

/*
 * Calls that launched something on a device: the first and the last of some that lie
 * close together in one thread and follow each other in time. A list of all launches of
 * a training would be a hundred times as long.
 */
struct tl_launches {
	uint32_t first, last;
};

/* The ops of a device by start. */
struct tl_device {
	uint32_t *order; /* NULL: they lie in order, from `first` on */
	uint32_t first;
	size_t count;
	VEC(struct tl_launches) launches; /* by start */
	size_t launch_count;
	struct pauses pauses;       /* of some source of its ops */
	VEC(struct interval) waits; /* in collectives for another rank, in order and apart */
};

/* What a thread was at, at one moment; LOOK_EXACT: up to `end`. */
struct tl_look {
	int64_t time, end;
	uint32_t lane, name;
};

enum look_kind {
	LOOK_STATE,
	LOOK_EXACT,
	LOOK_CPU,
	LOOK_PYTHON,
	LOOK_KIND_COUNT,
};

struct tl_range {
	int64_t start, end;
	uint32_t name, lane, source;
	enum range_kind kind;
};

struct tl_ranges {
	struct tl_range *at;
	size_t count, room;
};

/*
 * Correlations in 32 bits: CUPTI's are. Those of TL_WIDE and more are numbered
 * as they come, from TL_WIDE on.
 */
#define TL_WIDE UINT32_C(0xc0000000)

struct tl_wide {
	struct map number;    /* by correlation */
	VEC(uint64_t) values; /* by number - TL_WIDE */
};

/* A tiny copy to the host that the host waits for. */
struct tl_readback {
	uint32_t op;   /* ascending after readbacks_sort */
	uint32_t name; /* what is round it; 0 */
	int64_t blocked_ns, idle_ns;
};

/* A collective kernel, comparable with those of one family. */
struct tl_collective {
	uint64_t family; /* kernel, collective, type, group of ranks */
	int64_t elements;
	int64_t group_size; /* ranks that take part; 0 unknown */
	int64_t start_ns;
	uint32_t op, source;
};

/* One of which nothing but the kernel's name is known. */
struct tl_unsized {
	int64_t start_ns;
	uint32_t op, lane;
};

struct timeline {
	const struct session *session;
	int64_t *shift_ns; /* source time to session time, by source */
	struct tl_ops ops;
	struct tl_calls calls;
	struct tl_device *devices; /* as session.devices */
	uint32_t only_device;      /* of all ops, which then need not be asked for it; TL_NONE:
				      there are several */
	uint32_t name_count;       /* string ids are below this */
	struct tl_wide wide;
	const struct tl_segment **last_segment;     /* see op_segment */
	int64_t *source_calls;                      /* runtime and driver calls, by source */
	uint64_t *least_correlation;                /* of recorded calls, by source */
	VEC(struct tl_lane) lanes;                  /* threads with calls or frames */
	struct tl_ranges ranges;                    /* by start */
	VEC(struct tl_look) looks[LOOK_KIND_COUNT]; /* by lane and time */
	VEC(struct tl_collective) collectives;
	VEC(struct tl_unsized) unsized;
	VEC(struct tl_readback) readbacks;
	VEC(struct interval) loading;       /* when some thread loaded data */
	uint8_t *setup_of;                  /* enum setup_kind by name; after setup_facts */
	struct map first_launches;          /* calls that brought a kernel's code */
	struct pauses *pauses;              /* by source */
	int64_t *window_start, *window_end; /* by source; start > end: nothing recorded */
};

struct timeline *timeline_new(const struct session *session);
void timeline_free(struct timeline *timeline);
DEFINE_OWNED(timeline, timeline_free);

int timeline_load_ops(struct timeline *timeline, struct store *store, struct err *err);
int timeline_load_calls(struct timeline *timeline, struct store *store, struct err *err);
/* Ops to the calls that launched them, by (source, correlation). An op without
 * one was launched before the recording began if it runs in its stream before
 * any op whose call was recorded (streams keep the order of launches) and its
 * correlation, where it has one, is older than all recorded calls. */
void timeline_join(struct timeline *timeline);
/* Device by device: ops by start, launches by start. */
void timeline_devices(struct timeline *timeline);
/* For timeline_devices. */
void launches_find(struct timeline *timeline);

/* The calls that launched something on a device, one after another by start; set
 * timeline and device. */
struct launch_walk {
	const struct timeline *timeline;
	const struct tl_device *device;
	size_t at;
	uint32_t next; /* call to look at, in device->launches[at]; 0: its first */
};

/* TL_NONE: there are no more. */
uint32_t launches_next(struct launch_walk *walk);
/* The last launch on the device that began before `call` did, which began at `start`;
 * TL_NONE if there is none. *hint: where the last one asked for was, 0 at first. */
uint32_t launches_before(const struct timeline *timeline, const struct tl_device *device,
			 size_t *hint, uint32_t call, int64_t start);
/* Ranges, frames of every thread, windows of the sources. */
int frames_load(struct timeline *timeline, struct store *store, struct err *err);

/* After frames_load. */
void pauses_settle(struct timeline *timeline);
void pauses_done(struct pauses *pauses);
/* How long recording was off before the time. */
int64_t pauses_before(const struct pauses *pauses, int64_t time_ns);
/* The same between two times; most recordings have no pauses. */
static inline int64_t pauses_within(const struct pauses *pauses, int64_t from_ns, int64_t to_ns)
{
	if (!pauses->count || from_ns >= to_ns)
		return 0;
	return pauses_before(pauses, to_ns) - pauses_before(pauses, from_ns);
}
/* Was it off? *ret_until_ns: up to when that stays so. */
bool pauses_at(const struct pauses *pauses, int64_t time_ns, int64_t *ret_until_ns);

/* A start and a duration of a file on the session clock. */
void timeline_time(const struct timeline *timeline, uint32_t source, int64_t start,
		   int64_t duration, int64_t *ret_start, int64_t *ret_end);

/* A union of intervals that come in order of start, measured as they come. */
struct cover {
	int64_t from, until, total;
	bool open;
};

static inline void cover_add(struct cover *cover, int64_t start, int64_t end)
{
	if (cover->open && start <= cover->until) {
		if (end > cover->until)
			cover->until = end;
		return;
	}
	if (cover->open)
		cover->total += cover->until - cover->from;
	cover->from = start;
	cover->until = end;
	cover->open = true;
}

static inline int64_t cover_total(const struct cover *cover)
{
	return cover->open ? cover->total + cover->until - cover->from : 0;
}

/*
 * The time in which two or more groups (streams, kinds) have something
 * running, of intervals in order of start. Where an interval begins, all that
 * matters of the past is the latest end of any other group: two ends are kept.
 */
struct overlap {
	struct cover cover;
	int64_t end[2];
	uint32_t group;
	bool first, second;
};

static inline void overlap_add(struct overlap *overlap, uint32_t group, int64_t start, int64_t end)
{
	bool same = overlap->first && overlap->group == group;
	int64_t other = overlap->end[same];

	if ((same ? overlap->second : overlap->first) && other > start)
		cover_add(&overlap->cover, start, end < other ? end : other);
	if (!overlap->first || (!same && end > overlap->end[0])) {
		overlap->end[1] = overlap->end[0];
		overlap->second = overlap->first;
		overlap->end[0] = end;
		overlap->group = group;
		overlap->first = true;
	} else if (same) {
		if (end > overlap->end[0])
			overlap->end[0] = end;
	} else if (!overlap->second || end > overlap->end[1]) {
		overlap->end[1] = end;
		overlap->second = true;
	}
}

/* Where a lane is, going forward in time: what is open. */
struct open_frame {
	int64_t end;
	uint32_t name;
	uint32_t loader; /* name of the outermost loader round it; 0 */
	uint32_t range;  /* name of the innermost range of the user's that is open, it included */
	uint8_t kind, phase, sync, loader_kind;
};

struct cursor {
	const struct timeline *timeline;
	const struct tl_lane *lane;
	size_t frame;  /* the next one */
	uint32_t call; /* the next one */
	VEC(struct open_frame) stack;
	struct open_frame alone;      /* a call in which nothing opens */
	const struct open_frame *top; /* what is open */
	int64_t until;                /* nothing opens or closes before */
	int64_t then;                 /* after that nothing is open up to here */
};

void cursor_init(struct cursor *cursor, const struct timeline *timeline,
		 const struct tl_lane *lane);
void cursor_done(struct cursor *cursor);
/* For cursor_to: go on to where something opens or closes. */
void cursor_move(struct cursor *cursor, int64_t time_ns);

/* Go on to `time_ns`, which must not go back: cursor->top is what is open then, NULL if
 * nothing is; up to cursor->until that stays so (INT64_MAX: for good). */
static inline void cursor_to(struct cursor *cursor, int64_t time_ns)
{
	if (time_ns < cursor->until)
		return;
	if (time_ns >= cursor->then) {
		cursor_move(cursor, time_ns);
		return;
	}
	cursor->top = NULL;
	cursor->until = cursor->then;
}

/* Device time of all that a call launched. */
static inline int64_t call_gpu_ns(const struct timeline *timeline, uint32_t call)
{
	uint32_t op = timeline->calls.first_op[call];
	const uint64_t *sum;

	if (op == TL_NONE)
		return 0;
	sum = timeline->calls.gpu_ns.count ? map_find(&timeline->calls.gpu_ns, call) : NULL;
	return sum ? (int64_t)*sum : op_ns(&timeline->ops, op);
}

/* The parts of analyze_timeline and analyze_host. */
void device_times(struct timeline *timeline, struct facts *facts);
/* Calls by name, and what launching took by device. */
void call_facts(const struct timeline *timeline, struct facts *facts);
int collective_facts(struct timeline *timeline, struct store *store, struct facts *facts,
		     struct err *err);
/* What ranks in one profile waited for each other. */
void rank_waiting(struct timeline *timeline, struct facts *facts);
/* Of that, what lies in the steady part. */
void rank_steady(const struct timeline *timeline, struct facts *facts);
/* Into timeline.collectives: those of timeline.unsized whose ranks can be told. */
/* Returns the streams that were too many to compare. */
size_t rank_names(struct timeline *timeline);
bool collective_name(const char *name);
void host_ops(struct timeline *timeline, struct facts *facts);
/* Set-up, and the times of what is steady; idle_facts tells its idle time. */
void setup_facts(struct timeline *timeline, struct facts *facts);

/* Does the device run work of this source? */
bool device_runs(const struct timeline *timeline, uint32_t device, uint32_t source);
enum setup_kind setup_kind_of(const char *name);
void idle_facts(struct timeline *timeline, struct facts *facts);

/* looks.c: what was seen of threads while a device was idle for one cause. */
struct look_counts {
	struct map at; /* look_kind and name -> index into seen */
	VEC(struct look_count {
		enum look_kind kind;
		uint32_t name;
		int64_t count; /* looks; of LOOK_EXACT ns */
	})
	seen;
	int64_t all[LOOK_KIND_COUNT];
	size_t hint[LOOK_KIND_COUNT]; /* where the last look asked for was */
};
/* `kind`: of chunks; false: no look at a thread. */
bool look_kind_of(enum store_kind kind, enum look_kind *ret_kind);
void looks_settle(struct timeline *timeline);
void looks_count(struct look_counts *counts, const struct timeline *timeline, uint32_t lane,
		 int64_t from, int64_t to);
/* Into the fact, where they are enough; empties the counts. */
void looks_tell(struct look_counts *counts, const struct session *session, struct idle_fact *idle);
void step_facts_build(struct timeline *timeline, struct facts *facts);
/* The step that a time lies in, 0 for none and for the `first` of its source; steps are
 * in order of start, those of several processes side by side. */
int64_t step_at(const struct step_facts *steps, size_t first, uint32_t source, int64_t time_ns);
/* The units of launches that threads repeat, by start; without names. Returns how many
 * threads were too many to search, of processes in which no units were found. */
size_t step_units(const struct timeline *timeline, struct tl_ranges *ret_units);
int memory_facts(struct timeline *timeline, struct store *store, struct facts *facts,
		 struct err *err);
/* The same of processes that were recorded block by block. */
int block_facts(struct timeline *timeline, struct store *store, struct facts *facts,
		struct err *err);
/* After analyze_system. */
int clock_facts(struct timeline *timeline, struct store *store, struct facts *facts,
		struct err *err);
/* The source recorded the driver's allocations, not a framework's: blocks.c. */
bool is_block_by_block(const struct session *session, uint32_t source);
/* What a run was to record is in its profile; of old ones all that there is. */
bool memory_was_recorded(const struct session *session);
void memory_unknown(struct memory_fact *memory, uint32_t device);
/* How much is held, from then on. */
struct tl_level {
	int64_t time, bytes;
};
/* What a step of `source` leaves behind: the median of the differences between the
 * levels (in order of time) at the ends of steps, if most of them grow; NAN. */
double step_growth(const struct tl_level *levels, size_t count, const struct step_facts *steps,
		   uint32_t source);
void readback_facts(struct timeline *timeline, struct facts *facts);
int stream_wait_facts(struct timeline *timeline, struct store *store, struct facts *facts,
		      struct err *err);
int wait_facts(struct timeline *timeline, struct store *store, struct facts *facts,
	       struct err *err);

/* The phase that a name announces; PHASE_OTHER: none. `is_user`: a name that a
 * person gave, not the framework. */
enum phase phase_of_name(const char *name, bool is_user);
/* The phase of something with `own` phase inside something of phase `outer`: an
 * annotation says more than the structure inside it, and what the loader does
 * is loading, whatever it is. */
static inline enum phase phase_within(enum phase outer, enum phase own, bool annotated)
{
	if (own == PHASE_OTHER || outer == PHASE_LOADER)
		return outer;
	return annotated || outer == PHASE_OTHER ? own : outer;
}
/* A CUDA or HIP call that returns only when the device has come so far. */
bool sync_call_name(const char *name);
/* One that launches a kernel or a graph: its work on the device should be in the recording. */
bool launch_call_name(const char *name);
/* Between the begin and the end of a capture in a thread launches are put into a graph
 * and run nothing. All calls of a thread in turn: is one inside? `open` is 0 at first. */
enum capture_call { CAPTURE_NONE, CAPTURE_BEGINS, CAPTURE_ENDS };
enum capture_call capture_call_name(const char *name);
static inline bool capture_step(enum capture_call call, size_t *open)
{
	*open += call == CAPTURE_BEGINS;
	*open -= call == CAPTURE_ENDS && *open;
	return *open > 0;
}
/* Of an op that is a copy; NULL if it is none. */
struct tl_copy *copy_find(const struct tl_ops *ops, uint32_t op);
const struct tl_segment *segment_find(const struct timeline *timeline, uint32_t op);

/* The segment of an op. Asked for one op after another, hence the memory of where
 * the last one was: an array would cost four bytes an op. */
static inline const struct tl_segment *op_segment(const struct timeline *timeline, uint32_t op)
{
	const struct tl_segment *at = *timeline->last_segment;

	return at && op - at->first < at->count ? at : segment_find(timeline, op);
}

/* String: the kernel's name, or the op's own; 0. */
static inline uint32_t op_name(const struct timeline *timeline, uint32_t op)
{
	const struct session *session = timeline->session;
	uint32_t key = timeline->ops.key[op];

	if (op_segment(timeline, op)->kind != STORE_kernel)
		return key;
	return key < session->keys.count ? session->keys.at[key].name : 0;
}

/* The op at place `i` of the device's ops by start. */
static inline uint32_t device_op(const struct tl_device *device, size_t i)
{
	return device->order ? device->order[i] : device->first + (uint32_t)i;
}
