/*
 * inject.h - what the files of libsonde-inject.so share.
 *
 * The library lives in somebody else's process. Every function is one of
 *   [setup]  runs once; may fail, silently
 *   [hot]    runs inside the host's calls: no malloc, lock, stdio, getenv,
 *            assert; bounded loops; cannot fail, can drop and count
 *   [final]  runs at exit with luck; nothing depends on it
 *   [thread] runs in our own thread, which has all signals blocked
 *
 * All mutable state is in *inject, on pages that the kernel zeroes in a forked
 * child (MADV_WIPEONFORK): there segment is NULL, which is off.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/cupti_abi.h"
#include "wire/segment.h"

typedef void cupti_buffer_asked(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records);
typedef void cupti_buffer_done(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			       size_t valid);
typedef void cupti_callback_fn(void *user, uint32_t domain, uint32_t cbid, const void *data);
typedef uint64_t cupti_clock(void);

/* X(needed, name, arguments): resolved in the libcupti of the process. */
#define CUPTI_CALLS(X)                                                                         \
	X(1, cuptiGetVersion, (uint32_t * ret_version))                                        \
	X(1, cuptiSubscribe, (void **ret_subscriber, cupti_callback_fn *callback, void *user)) \
	X(1, cuptiUnsubscribe, (void *subscriber))                                             \
	X(1, cuptiEnableCallback,                                                              \
	  (uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid))                 \
	X(1, cuptiGetCallbackName, (uint32_t domain, uint32_t cbid, const char **ret_name))    \
	X(1, cuptiActivityRegisterCallbacks,                                                   \
	  (cupti_buffer_asked * asked, cupti_buffer_done * done))                              \
	X(1, cuptiActivityEnable, (uint32_t kind))                                             \
	X(1, cuptiActivityDisable, (uint32_t kind))                                            \
	X(1, cuptiActivityFlushAll, (uint32_t flag))                                           \
	X(1, cuptiActivityGetNextRecord, (uint8_t * buffer, size_t valid, void **record))      \
	X(1, cuptiActivityGetNumDroppedRecords,                                                \
	  (void *context, uint32_t stream, size_t *ret_dropped))                               \
	X(0, cuptiActivitySetAttribute, (uint32_t attribute, size_t * bytes, void *value))     \
	X(0, cuptiActivityFlushPeriod, (uint32_t ms))                                          \
	X(0, cuptiActivityRegisterTimestampCallback, (cupti_clock * clock))                    \
	X(0, cuptiSetThreadIdType, (uint32_t type))                                            \
	X(0, cuptiActivityEnableRuntimeApi, (uint32_t cbid, uint8_t enable))                   \
	X(0, cuptiActivityEnableDriverApi, (uint32_t cbid, uint8_t enable))                    \
	X(0, cuptiActivityEnableLatencyTimestamps, (uint8_t enable))                           \
	X(0, cuptiActivityConfigureUnifiedMemoryCounter, (void *config, uint32_t count))       \
	X(0, cuptiGetContextId, (void *context, uint32_t *ret_id))                             \
	X(0, cuptiGetStreamId, (void *context, void *stream, uint32_t *ret_id))                \
	X(0, cuptiGetStreamIdEx,                                                               \
	  (void *context, void *stream, uint8_t per_thread, uint32_t *ret_id))                 \
	X(0, cuptiGetDeviceId, (void *context, uint32_t *ret_id))                              \
	X(0, cuptiGetCubinCrc, (struct cupti_crc_params * params))                             \
	X(0, cuptiPCSamplingEnable, (struct cupti_pc_params * params))                         \
	X(0, cuptiPCSamplingGetNumStallReasons, (struct cupti_pc_params * params))             \
	X(0, cuptiPCSamplingGetStallReasons, (struct cupti_pc_params * params))                \
	X(0, cuptiPCSamplingSetConfigurationAttribute, (struct cupti_pc_params * params))      \
	X(0, cuptiPCSamplingGetData, (struct cupti_pc_params * params))

struct cupti_calls {
#define X(needed, name, arguments) uint32_t(*name) arguments;
	CUPTI_CALLS(X)
#undef X
};

enum { PC_CONTEXTS_MAX = 64 };
enum { CALLS_MAX = 2048 }; /* callback numbers of a domain, at most */

/* What call stacks are taken for: each has a share of its own. */
enum site_of { SITE_MEMORY, SITE_OBJECT, SITE_COUNT };
enum { SITES_KNOWN = 1024 };

struct site_known {
	_Atomic uint64_t hash; /* ^ text */
	_Atomic uint32_t text;
};

enum { EVENTS_KNOWN = 1 << 12 };

/* The last record of an event, by its hash: event.c. */
struct event_record {
	_Atomic uint64_t stream, which; /* handle; context << 32 | correlation of the call */
	_Atomic uint64_t check;         /* of these and the event */
};

struct pc_context; /* pcsamp.c */

struct pc {
	struct pc_context *_Atomic contexts[PC_CONTEXTS_MAX];
	_Atomic uint64_t devices; /* a bit for each of which a context is sampled */
	_Atomic bool counts;      /* what is sampled; false: recording is paused */
	uint32_t period;          /* 2^period cycles */
	uint64_t turn_ns;         /* since when it ought to be the other; 0: it is right */
	uint64_t drained_ns;
	_Atomic bool telling; /* who has the next two, and the segment's window */
	uint32_t counted;     /* contexts whose samples count */
	uint64_t until_ns;    /* the latest end among those that counted in this window */
};

/* Why our thread keeps away from CUPTI. */
enum leaving { STAYING, LEAVING_YIELDED, LEAVING_EXIT };

struct inject {
	struct segment *_Atomic segment; /* NULL: off */
	uint64_t trace;                  /* bits of enum trace */
	uint32_t pid;
	struct cupti_calls cupti;
	uint32_t (*cuDeviceGetUuid)(void *ret_uuid, int device); /* of the driver, if it can */
	void *subscriber;
	_Atomic bool active;             /* recording goes on: kinds are enabled */
	_Atomic bool switching;          /* a thread is about to change that */
	_Atomic bool unified;            /* records of unified memory can be had */
	_Atomic bool unified_asked;      /* for them, with the first context */
	_Atomic uint32_t leaving;        /* enum leaving: the thread keeps away */
	_Atomic uint32_t wake;           /* counts up when the thread has something to do */
	_Atomic bool may_flush, flushed; /* at exit: by the thread, which may hang */
	bool has_thread;
	bool quiet;             /* calls are off, too */
	bool watching;          /* callbacks are asked for, and calls have names */
	_Atomic bool in_thread; /* the thread is inside CUPTI */
	_Atomic uint64_t overflow_bytes;
	uint32_t start_cbid, stop_cbid; /* cuProfilerStart, cuProfilerStop; 0: not asked for */
	char range[SEGMENT_RANGE_MAX];  /* NVTX range that recording is limited to; "" none */
	char range_domain[SEGMENT_RANGE_MAX]; /* that it has to be in; "" the default one */
	bool has_range_domain;                /* else any domain's range counts */
	_Atomic uint32_t ranges_open;         /* of those, in all threads */
	int (*unwind)(int (*step)(void *context, void *user), void *user);
	uintptr_t (*unwind_ip)(void *context);
	uint64_t sites_begun_ns;
	_Atomic uint64_t sites_ns[SITE_COUNT]; /* spent on call stacks so far */
	struct site_known sites[SITES_KNOWN];  /* by hash of their addresses: site.c */
	uint32_t pc_period;                    /* 2^n cycles; 0 default */
	uint64_t pc_hardware_bytes;
	uint8_t object_calls[2][CALLS_MAX]; /* object.c: of driver and runtime */
	uint8_t sync_calls[2][CALLS_MAX];   /* sync.c */
	uint8_t event_calls[CALLS_MAX];     /* event.c: of the driver */
	struct event_record events[EVENTS_KNOWN];
	_Atomic uintptr_t object_told; /* object.c: handle and kind that the driver made last */
	uint64_t os_threshold_ns;      /* calls of the system below it are not recorded */
	struct pc pc;
};

extern struct inject *inject_state __attribute__((visibility("hidden")));

/* claim.c [setup]: `bytes` of state, which begins with a struct inject, with the
 * options of the environment, and the segment of this process; NULL: not ours to
 * record. No segment: none was free. */
struct inject *inject_new(size_t bytes, enum segment_user user, struct segment **ret_segment);

/* [hot] On entry: are we on, and not inside ourselves? errno is kept. */
struct hook {
	struct segment *segment;
	int saved_errno;
	bool nested; /* inside ourselves: segment is NULL, and it was counted */
};

struct hook hook_enter(void);
void hook_leave(struct hook *hook);
#define HOOK __attribute__((cleanup(hook_leave))) struct hook hook = hook_enter()

/* [hot] CLOCK_MONOTONIC in ns. */
uint64_t inject_now(void);
/* [hot] The caller's kernel thread id, cached per thread. */
uint32_t inject_thread(void);

/* texts.c [hot]: id of the text; 0 if there is no room. */
uint32_t text_add(struct segment *segment, const char *at, size_t len);
/* The text behind a pointer that stays valid for the call; remembers it. */
uint32_t text_of_pointer(struct segment *segment, const char *pointer);
/* The same text twice gives one id (as long as its table has room). */
uint32_t text_intern(struct segment *segment, const char *at, size_t len);

/* ring.c [hot]: a slot to fill, or NULL (counted). slot_commit stores the kind. */
struct segment_slot *slot_take(struct segment *segment);
void slot_commit(struct segment_slot *slot, enum slot_kind kind);

/* activity.c */
int activity_start(struct inject *inject); /* [setup] */
/* [setup] With the segment, before CUPTI: NVTX may be all that there is. */
void activity_begin(struct inject *inject);
/* [setup], [thread], callbacks: recording goes on or pauses, as the segment's `paused` and
 * `closed` say. What is in buffers still has to be flushed, not from a callback. */
void activity_follow(struct inject *inject);
/* In a callback, or a call of NVTX: the range that is to be recorded begins or ends. */
void activity_range(struct inject *inject, bool inside);
/* [setup] in a callback: there is a context now, which unified memory needs. */
void activity_unified(struct inject *inject);
/* Disable for good: also what stays on while recording is paused. */
void activity_off(struct inject *inject);
/* [setup], [thread], [final] Hands over what CUPTI has, also of what has not ended. */
void activity_flush(struct inject *inject);

/* [hot] What the context is on; UINT32_MAX: CUPTI does not say. */
static inline uint32_t context_device(const struct inject *inject, void *context)
{
	uint32_t device = UINT32_MAX;

	return inject->cupti.cuptiGetDeviceId && !inject->cupti.cuptiGetDeviceId(context, &device)
		       ? device
		       : UINT32_MAX;
}

/* calls.c [setup]: recording of CUDA's calls that matter, on or off. On: also the
 * callbacks for those that obtain memory and for cudaProfilerStart and -Stop. */
void calls_switch(struct inject *inject, bool enable);

/* Is it this call, "EventCreate", of the driver or the runtime, of whatever version? */
static inline bool call_is(const char *name, const char *stem)
{
	size_t prefix = strncmp(name, "cuda", 4) ? 2 : 4;
	size_t len = strcspn(name, "_"); /* "_v2", "_ptsz" */

	return len > prefix && strlen(stem) == len - prefix &&
	       !memcmp(stem, name + prefix, len - prefix);
}

/* cupti.c [setup]: find and open libcupti, fill inject->cupti. False: reason set. */
bool cupti_open(struct inject *inject);
/* [setup] Callbacks: contexts, modules, profiler start and stop. */
void resource_callback(void *user, uint32_t domain, uint32_t cbid, const void *data);

/* pcsamp.c */
void pc_context_created(struct inject *inject, void *context);   /* [setup] in a callback */
void pc_context_destroyed(struct inject *inject, void *context); /* [setup] in a callback */
void pc_setup(struct inject *inject);
void pc_follow(struct inject *inject); /* [thread] at each tick */
void pc_drain(struct inject *inject);  /* [thread] */
void pc_end(struct inject *inject);    /* [setup], [final]: for the last time; takes up to 0.6 s */

/* site.c [setup] */
void site_prepare(struct inject *inject);
/* From a loaded object's first page to behind its last byte; equal: it has none. */
void site_extent(const struct dl_phdr_info *object, uintptr_t *ret_start, uintptr_t *ret_end);
/* In a callback of a CUDA call: text of the host's call stack; 0: none. */
uint32_t site_here(struct inject *inject, struct segment *segment, enum site_of of);

/* object.c [setup]: is it a call that makes or destroys events or graphs? Then it
 * wants a callback. */
bool object_watch(struct inject *inject, uint32_t domain, uint32_t cbid, const char *name);
/* In a callback of a CUDA call: it was one of those. */
bool object_called(struct inject *inject, struct segment *segment, uint32_t domain, uint32_t cbid,
		   const struct cupti_callback *call);

/* sync.c [setup]: is it a call that waits for the device? Then it wants a callback. */
bool sync_watch(struct inject *inject, uint32_t domain, uint32_t cbid, const char *name);
/* [hot] In a callback of a CUDA call: it was one of those. */
bool sync_called(struct inject *inject, struct segment *segment, uint32_t domain, uint32_t cbid,
		 const struct cupti_callback *call);

/* event.c [setup]: is it a call that records or destroys events? Then it wants a callback. */
bool event_watch(struct inject *inject, uint32_t domain, uint32_t cbid, const char *name);
/* [hot] In a callback of a CUDA call: it was one of those, and object_called wants none of it. */
bool event_called(struct inject *inject, uint32_t domain, uint32_t cbid,
		  const struct cupti_callback *call);
/* [hot] Where it was recorded last; false: not known. *ret_which: as in the record. */
bool event_find(struct inject *inject, uint64_t event, uint64_t *ret_stream, uint64_t *ret_which);

/* other.c [setup]: is another profiler or debugger at work here, and by what does it show? */
bool other_tool_here(char *ret_name, size_t bytes);

/* yield.c [setup]: notice when the host asks for CUPTI itself, and step back. */
void yield_watch(struct inject *inject);

/* thread.c */
void thread_start(struct inject *inject); /* [setup] */
/* [setup], [final] From now on the thread stays out of CUPTI; true if it is out. */
bool thread_keep_out(struct inject *inject, enum leaving why);
/* [final] A last flush, by the thread: one that hangs must not hang the exit. */
void thread_flush(struct inject *inject);

/* state.c: why CUPTI is off - NVTX goes on -, or what we do without. The first reason of each
 * stays. */
void inject_off(struct inject *inject, enum segment_reason reason, uint32_t detail);
void inject_lacks(struct inject *inject, enum segment_lack lack, uint32_t detail);
