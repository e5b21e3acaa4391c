/* puppet_cupti.c - CUPTI's puppet: activity records and callbacks. See puppet_cuda.h. */
#include "fake/puppet_cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fake/puppet_cuda.h"

typedef void asked_fn(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records);
typedef void done_fn(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);
typedef void callback_fn(void *user, uint32_t domain, uint32_t cbid, const void *data);

enum {
	KINDS = 64,
	CBIDS = 700,
	QUEUE = 1024,
	LANES = 512,
	HOLES = 64,
	CUPTI_12_8 = 26,
	CUPTI_13 = 130000
};
enum overhead { FLUSH = 1, INSTRUMENTATION = 2, RESOURCE = 3, BUFFER_REQUEST = 7 };

/* A buffer that is being filled: of one thread, or of all. */
struct lane {
	uint32_t thread;
	uint8_t *buffer;
	size_t bytes, valid;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static int pid; /* that lock belongs to */
static bool kinds[KINDS];
static bool apis[3][CBIDS];
static bool callbacks[4][CBIDS];
static asked_fn *asked;
static done_fn *done;
static callback_fn *callback;
static void *callback_user;
static struct lane lanes[LANES], queue[QUEUE];
static size_t lane_count, queued, delivered;
static bool has_worker;
static _Atomic uint32_t worker_tid;
static int64_t clock_offset_ns;
static _Atomic size_t dropped;
static _Atomic bool leaving;
static bool has_context, unified_set, too_early, latency;

static uint32_t version(void)
{
	uint32_t asked_for = puppet_word("version");

	return asked_for ? asked_for : 130001;
}

/* Sizes of records in CUPTI 13.0 and 12.8, as a card gave them (tests/fake/logs), and before,
 * where they were smaller, by its headers. */
static size_t bytes_of(uint32_t kind)
{
	bool old = version() < CUPTI_12_8;

	switch (kind) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
		return version() < CUPTI_13 ? 208 : 216;
	case CUPTI_KIND_MEMCPY:
		return old ? 88 : 96;
	case CUPTI_KIND_MEMSET:
		return 88;
	case CUPTI_KIND_MEMORY2:
		return old ? 120 : 128;
	case CUPTI_KIND_DEVICE:
		return old ? 176 : 184;
	case CUPTI_KIND_CONTEXT:
		return old ? 16 : 32;
	case CUPTI_KIND_GRAPH_TRACE:
		return old ? 48 : 56;
	case CUPTI_KIND_UNIFIED_MEMORY:
		return old ? 64 : 104;
	case CUPTI_KIND_OVERHEAD:
		return old ? 48 : 56;
	case CUPTI_KIND_JIT:
		return old ? 64 : 72;
	case CUPTI_KIND_MEMORY_POOL:
		return old ? 72 : 80;
	default:
		return 40;
	}
}

static void append(uint32_t kind, const void *record, size_t used, uint32_t thread);

static uint64_t stamp(uint64_t ns)
{
	return ns + (uint64_t)clock_offset_ns;
}

static bool enabled(uint32_t kind)
{
	return kind < KINDS && kinds[kind];
}

/* That something of CUPTI's own took 100 ns of this thread. */
static void put_overhead(enum overhead what, uint32_t thread)
{
	enum { OBJECT_THREAD = 2 };
	struct cupti_overhead record = { .kind = CUPTI_KIND_OVERHEAD,
					 .overhead = (uint32_t)what << 16,
					 .object_kind = OBJECT_THREAD };
	struct timespec now;

	if (!enabled(record.kind) || puppet_word("no-overhead"))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	record.object[0] = (uint32_t)getpid();
	record.object[1] = thread;
	record.end = stamp((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
	record.start = record.end - 100;
	append(record.kind, &record, sizeof(record), thread);
}

/* Hands a buffer over; the lock is not held while the tool's function runs. */
static void hand_over(struct lane lane)
{
	if (has_worker) {
		if (queued - delivered < QUEUE)
			queue[queued++ % QUEUE] = lane;
		pthread_cond_signal(&work);
		return;
	}
	pthread_mutex_unlock(&lock);
	done(NULL, 0, lane.buffer, lane.bytes, lane.valid);
	pthread_mutex_lock(&lock);
}

/* What handing it over cost goes into a buffer of this thread's own. */
static void *worker(void *unused)
{
	uint32_t me = (uint32_t)syscall(SYS_gettid);

	(void)unused;
	atomic_store(&worker_tid, me);
	pthread_mutex_lock(&lock);
	for (;;) {
		struct lane lane;

		while (delivered == queued) {
			pthread_cond_broadcast(&idle);
			pthread_cond_wait(&work, &lock);
		}
		lane = queue[delivered % QUEUE];
		pthread_mutex_unlock(&lock);
		done(NULL, 0, lane.buffer, lane.bytes, lane.valid);
		if (version() >= CUPTI_13 && lane.thread != me)
			put_overhead(FLUSH, me);
		pthread_mutex_lock(&lock);
		delivered++;
	}
	return NULL;
}

static struct lane *lane_of(uint32_t thread)
{
	if (version() < CUPTI_13)
		thread = 0;
	for (size_t i = 0; i < lane_count; i++) {
		if (lanes[i].thread == thread)
			return &lanes[i];
	}
	if (lane_count == LANES)
		return &lanes[0];
	lanes[lane_count].thread = thread;
	return &lanes[lane_count++];
}

/* A child that was forked while somebody held the lock must not wait for it. */
static bool enter(void)
{
	if (pid != getpid())
		return pthread_mutex_trylock(&lock) == 0;
	pthread_mutex_lock(&lock);
	return true;
}

/* A record whose first `used` bytes are at `record`. In a new buffer what it cost to ask for that
 * comes next. */
static void append(uint32_t kind, const void *record, size_t used, uint32_t thread)
{
	size_t bytes = bytes_of(kind);
	bool is_new = false;
	struct lane *lane;

	if (!asked || !enter())
		return;
	lane = lane_of(thread);
	if (lane->buffer && lane->bytes - lane->valid < bytes) {
		struct lane full = *lane;

		puppet_fill_holes();
		lane->buffer = NULL;
		hand_over(full);
	}
	if (!lane->buffer) {
		uint8_t *buffer = NULL;
		size_t size = 0, most = 0;

		pthread_mutex_unlock(&lock);
		asked(&buffer, &size, &most);
		pthread_mutex_lock(&lock);
		if (lane->buffer) { /* one buffer for all: another thread was faster */
			struct lane spare = { .buffer = buffer, .bytes = size };

			if (buffer)
				hand_over(spare);
		} else {
			lane->buffer = buffer;
			lane->bytes = size;
			lane->valid = 0;
			is_new = buffer != NULL;
		}
	}
	if (!lane->buffer || lane->bytes - lane->valid < bytes) {
		atomic_fetch_add(&dropped, 1);
	} else {
		memset(lane->buffer + lane->valid, 0, bytes);
		memcpy(lane->buffer + lane->valid, record, used < bytes ? used : bytes);
		lane->valid += bytes;
	}
	pthread_mutex_unlock(&lock);
	if (is_new)
		put_overhead(BUFFER_REQUEST, thread);
}

/* The driver's puppet has the number first in its context. */
uint32_t cuptiGetContextId(void *context, uint32_t *ret_id)
{
	if (!context)
		return RESULT_INVALID_PARAMETER;
	memcpy(ret_id, context, sizeof(*ret_id));
	return 0;
}

/* Of a call, and of what it makes happen. */
static uint32_t number_of(const struct puppet_event *event)
{
	enum { APART = 1 << 24 };

	return event->correlation + (event->inner && puppet_word("inner-numbers") ? APART : 0);
}

/* A call inside another is called back for and has no record; where the whole kind is enabled it
 * has one, as nobody has seen. */
static void put_api(const struct puppet_event *event)
{
	struct cupti_api record = { .kind = event->domain == 1 ? CUPTI_KIND_DRIVER
							       : CUPTI_KIND_RUNTIME };

	if (callbacks[event->domain][event->cbid] && callback) {
		struct cupti_callback call = { .site = !event->begin,
					       .correlation = number_of(event),
					       .params = event->params,
					       .result = (void *)(uintptr_t)&event->result,
					       .context = event->context };

		if (event->context)
			(void)cuptiGetContextId(event->context, &call.context_id);
		callback(callback_user, event->domain, event->cbid, &call);
	}
	if (event->begin || !(enabled(record.kind) || apis[event->domain][event->cbid]))
		return;
	if (event->inner && !enabled(record.kind) && !puppet_word("inner-numbers"))
		return;
	record.cbid = event->cbid;
	record.start = stamp(event->start);
	record.end = stamp(event->end);
	record.process = (uint32_t)getpid();
	record.thread = event->thread;
	record.correlation = number_of(event);
	append(record.kind, &record, sizeof(record), event->thread);
}

/* With the word "unified": what a kernel that touches a page of the host's makes happen.
 * Invented by CUPTI's header. */
static void put_unified(const struct puppet_event *event)
{
	struct cupti_unified record = { .kind = CUPTI_KIND_UNIFIED_MEMORY };

	if (!enabled(record.kind) || !unified_set)
		return;
	record.process = (uint32_t)getpid();
	record.start = stamp(event->start);
	record.end = record.start + 20;
	record.counter = CUPTI_UNIFIED_GPU_FAULT;
	record.flags = 2;
	record.value = 7;
	record.from = event->device;
	append(record.kind, &record, sizeof(record), event->thread);
	record.counter = CUPTI_UNIFIED_HTOD;
	record.value = 65536;
	record.from = UINT32_MAX;
	record.to = event->device;
	append(record.kind, &record, sizeof(record), event->thread);
	record.counter = CUPTI_UNIFIED_CPU_FAULT;
	record.value = 0x55d0c0ffee10; /* the instruction */
	record.end = 0;
	append(record.kind, &record, sizeof(record), event->thread);
}

/* The context failed: times that were not handed over are lost. */
static void lose_times(void)
{
	for (size_t i = 0; i < lane_count; i++) {
		uint32_t kind;

		for (size_t at = 0; lanes[i].buffer && at < lanes[i].valid; at += bytes_of(kind)) {
			struct cupti_kernel *kernel = (void *)(lanes[i].buffer + at);

			kind = kernel->kind;
			if (kind == CUPTI_KIND_CONCURRENT_KERNEL)
				kernel->start = kernel->end = 0;
		}
	}
}

/* The last record of the thread but, in a new buffer, for what that cost. */
static void make_hole(const struct cupti_kernel *record, uint32_t thread)
{
	struct lane *lane = lane_of(thread);
	size_t back = bytes_of(record->kind);

	while (lane->buffer && back <= lane->valid &&
	       !puppet_hole(lane->buffer + lane->valid - back, record))
		back += bytes_of(CUPTI_KIND_OVERHEAD);
}

/* A kernel that does not end, or fails. */
static void put_untimed(const struct puppet_event *event, struct cupti_kernel *record)
{
	record->start = record->end = record->queued = record->submitted = 0;
	record->completed = 0;
	append(record->kind, record, sizeof(*record), event->thread);
	pthread_mutex_lock(&lock);
	if (event->result)
		lose_times();
	else
		make_hole(record, event->thread);
	pthread_mutex_unlock(&lock);
}

static void put_kernel(const struct puppet_event *event)
{
	static unsigned int kernels;
	struct cupti_kernel record = { .kind = CUPTI_KIND_CONCURRENT_KERNEL, .registers = 32 };
	bool untold;

	puppet_sampled(event->context, event->name);
	if (!enabled(record.kind) || (event->graph && enabled(CUPTI_KIND_GRAPH_TRACE)))
		return;
	record.start = stamp(event->start);
	record.end = record.completed = stamp(event->end);
	record.context = event->context_id;
	record.device = event->device;
	record.stream = event->stream_id;
	record.graph = event->graph;
	record.graph_node = event->node;
	/* Of a node of a graph CUPTI can't tell, and leaves what was there; with the word "untold"
	 * so of every other kernel. */
	untold = event->node || (puppet_word("untold") && kernels++ % 2);
	record.queued = latency ? record.start - (untold ? 1000000000 : 700) : 0;
	record.submitted = latency && !untold ? record.start - 300 : 0;
	record.grid_id = puppet_word("no-numbers") ? 0 : event->grid_number;
	puppet_wait_ns(puppet_word("trace-cost"));
	memcpy(record.grid, event->grid, sizeof(record.grid));
	memcpy(record.block, event->block, sizeof(record.block));
	record.dynamic_shared = event->shared;
	record.correlation = event->correlation;
	record.name = (uint64_t)(uintptr_t)event->name;
	if (!event->start) {
		put_untimed(event, &record);
		return;
	}
	append(record.kind, &record, sizeof(record), event->thread);
	put_unified(event);
}

static void put_graph(const struct puppet_event *event)
{
	struct cupti_graph record = { .kind = CUPTI_KIND_GRAPH_TRACE };

	record.start = stamp(event->start);
	record.end = stamp(event->end);
	record.context = event->context_id;
	record.device = event->device;
	record.stream = event->stream_id;
	record.graph = event->graph;
	record.correlation = event->correlation;
	if (enabled(record.kind))
		append(record.kind, &record, sizeof(record), event->thread);
}

static void put_copy(const struct puppet_event *event)
{
	struct cupti_memcpy record = { .kind = CUPTI_KIND_MEMCPY };

	record.copy = event->copy;
	record.from = event->from;
	record.to = event->to;
	record.bytes = event->bytes;
	record.start = stamp(event->start);
	record.end = stamp(event->end);
	record.context = event->context_id;
	record.device = event->device;
	record.stream = event->stream_id;
	record.correlation = event->correlation;
	if (enabled(record.kind))
		append(record.kind, &record, sizeof(record), event->thread);
}

static void put_set(const struct puppet_event *event)
{
	struct cupti_memset record = { .kind = CUPTI_KIND_MEMSET, .memory = 3 };

	record.bytes = event->bytes;
	record.start = stamp(event->start);
	record.end = stamp(event->end);
	record.context = event->context_id;
	record.device = event->device;
	record.stream = event->stream_id;
	record.correlation = event->correlation;
	if (enabled(record.kind))
		append(record.kind, &record, sizeof(record), event->thread);
}

static void put_memory(const struct puppet_event *event)
{
	struct cupti_memory record = { .kind = CUPTI_KIND_MEMORY2, .memory = 3 };

	record.operation = event->begin ? 1 : 2;
	record.address = event->address;
	record.bytes = event->bytes;
	record.time = stamp(event->start);
	record.process = (uint32_t)getpid();
	record.context = event->context_id;
	record.device = event->device;
	record.stream = UINT32_MAX;
	record.correlation = number_of(event);
	if (enabled(record.kind))
		append(record.kind, &record, sizeof(record), event->thread);
}

/* A device once, and its first context. */
static void put_device(const struct puppet_event *event)
{
	static _Atomic uint32_t told;
	struct cupti_context context = { .kind = CUPTI_KIND_CONTEXT, .api = 1 };
	struct cupti_device device = { .kind = CUPTI_KIND_DEVICE };

	device.memory_bytes = (uint64_t)80 << 30;
	device.sms = 132;
	device.warp_threads = 32;
	device.warps_per_sm = 64;
	device.cc_major = 9;
	memset(device.uuid, 0xab, sizeof(device.uuid));
	device.uuid[0] = (uint8_t)event->device;
	device.id = event->device;
	device.name = (uint64_t)(uintptr_t) "Puppet H200";
	context.context = event->context_id;
	context.device = event->device;
	if (enabled(CUPTI_KIND_DEVICE) &&
	    !(atomic_fetch_or(&told, 1u << event->device) >> event->device & 1))
		append(CUPTI_KIND_DEVICE, &device, sizeof(device), event->thread);
	if (enabled(CUPTI_KIND_CONTEXT))
		append(CUPTI_KIND_CONTEXT, &context, sizeof(context), event->thread);
	put_overhead(INSTRUMENTATION, event->thread);
	put_overhead(RESOURCE, event->thread);
}

static void put_resource(const struct puppet_event *event)
{
	struct cupti_module module = { event->module_id, event->bytes, event->name };
	struct cupti_resource resource = { event->context, event->stream, &module };
	uint32_t cbid = event->begin ? CUPTI_MODULE_LOADED : CUPTI_MODULE_UNLOAD;

	if (event->what == PUPPET_CONTEXT) {
		has_context = true;
		cbid = event->begin ? CUPTI_CONTEXT_CREATED : CUPTI_CONTEXT_DESTROY;
		if (event->begin)
			put_device(event);
	} else if (event->what == PUPPET_STREAM) {
		cbid = event->begin ? CUPTI_STREAM_CREATED : CUPTI_STREAM_DESTROY;
	}
	if (callbacks[CUPTI_DOMAIN_RESOURCE][cbid] && callback)
		callback(callback_user, CUPTI_DOMAIN_RESOURCE, cbid, &resource);
	if (cbid == CUPTI_CONTEXT_DESTROY && event->what == PUPPET_CONTEXT)
		puppet_sampled_gone(event->context);
}

static void listen(const struct puppet_event *event)
{
	static void (*const put[])(const struct puppet_event *) = {
		[PUPPET_API] = put_api,         [PUPPET_KERNEL] = put_kernel,
		[PUPPET_COPY] = put_copy,       [PUPPET_SET] = put_set,
		[PUPPET_MEMORY] = put_memory,   [PUPPET_CONTEXT] = put_resource,
		[PUPPET_STREAM] = put_resource, [PUPPET_MODULE] = put_resource,
		[PUPPET_GRAPH] = put_graph,
	};

	put[event->what](event);
}

static void leave(void)
{
	atomic_store(&leaving, true);
}

static int64_t epoch_offset(void)
{
	struct timespec real, steady;

	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_MONOTONIC, &steady);
	return (int64_t)(real.tv_sec - steady.tv_sec) * 1000000000 + real.tv_nsec - steady.tv_nsec;
}

static void attach(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void (*attach_to)(puppet_tool *) = NULL;

	if (driver)
		*(void **)(void *)&attach_to = dlsym(driver, "puppet_attach");
	if (attach_to)
		attach_to(listen);
	if (!pid)
		clock_offset_ns = epoch_offset();
	pid = getpid();
	(void)atexit(leave);
}

uint32_t cuptiGetVersion(uint32_t *ret_version)
{
	*ret_version = version();
	return 0;
}

uint32_t cuptiSubscribe(void **ret_subscriber, callback_fn *new_callback, void *user)
{
	if (callback || puppet_word("subscribed"))
		return CUPTI_RESULT_SUBSCRIBERS;
	callback = new_callback;
	callback_user = user;
	*ret_subscriber = &callback;
	attach();
	return 0;
}

uint32_t cuptiUnsubscribe(void *subscriber)
{
	if (subscriber != &callback)
		return RESULT_INVALID_PARAMETER;
	callback = NULL;
	memset(callbacks, 0, sizeof(callbacks));
	return 0;
}

uint32_t cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid)
{
	if (subscriber != &callback || domain > 3 || cbid >= CBIDS)
		return RESULT_INVALID_PARAMETER;
	callbacks[domain][cbid] = enable;
	return 0;
}

uint32_t cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **ret_name)
{
	static char fillers[3][CBIDS][24];

	if (domain < 1 || domain > 2 || !cbid || cbid >= (domain == 1 ? 660u : 480u))
		return RESULT_INVALID_PARAMETER;
#define X(number, name)            \
	if (cbid == (number)) {    \
		*ret_name = #name; \
		return 0;          \
	}
	if (domain == 1) {
		PUPPET_DRIVER_CALLS(X)
	} else {
		PUPPET_RUNTIME_CALLS(X)
	}
#undef X
	(void)snprintf(fillers[domain][cbid], sizeof(fillers[0][0]), "cuPuppet%u_v%u", cbid,
		       domain);
	*ret_name = fillers[domain][cbid];
	return 0;
}

uint32_t cuptiActivityRegisterCallbacks(asked_fn *new_asked, done_fn *new_done)
{
	pthread_t thread;

	if (puppet_word("register"))
		return puppet_word("register");
	if (!asked)
		attach();
	pthread_mutex_lock(&lock);
	asked = new_asked;
	done = new_done;
	if (!puppet_word("no-worker") && !has_worker)
		has_worker = pthread_create(&thread, NULL, worker, NULL) == 0;
	pthread_mutex_unlock(&lock);
	return 0;
}

uint32_t cuptiActivityEnable(uint32_t kind)
{
	if (kind >= KINDS)
		return RESULT_INVALID_KIND;
	/* Configured or asked for too early, as CUPTI 13.0 on an H200: refused ever after. */
	if (kind == CUPTI_KIND_UNIFIED_MEMORY && (too_early |= !has_context))
		return RESULT_NOT_READY;
	kinds[kind] = true;
	return 0;
}

uint32_t cuptiActivityDisable(uint32_t kind)
{
	if (kind >= KINDS)
		return RESULT_INVALID_KIND;
	kinds[kind] = false;
	return 0;
}

/* With the lock: buffers of the program's threads, or that of CUPTI's own, which those fill. */
static void hand_over_all(bool own)
{
	for (size_t i = 0; i < lane_count; i++) {
		struct lane full = lanes[i];

		if (!full.buffer || puppet_has_hole(full.buffer, full.bytes) ||
		    (full.thread && full.thread == atomic_load(&worker_tid)) != own)
			continue;
		lanes[i].buffer = NULL;
		hand_over(full);
	}
	while (has_worker && delivered < queued)
		pthread_cond_wait(&idle, &lock);
}

uint32_t cuptiActivityFlushAll(uint32_t flag)
{
	if (pid != getpid() && pid)
		return RESULT_UNKNOWN;
	while (flag && atomic_load(&leaving) && puppet_word("hang-exit"))
		(void)pause();
	if (!done)
		return 0;
	pthread_mutex_lock(&lock);
	if (flag)
		puppet_fill_holes();
	hand_over_all(false);
	hand_over_all(true);
	pthread_mutex_unlock(&lock);
	return 0;
}

uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at = *record;
	uint32_t kind;

	if (at) {
		memcpy(&kind, at, sizeof(kind));
		at += bytes_of(kind);
	} else {
		at = buffer;
	}
	if (at >= buffer + valid)
		return CUPTI_RESULT_MAX_LIMIT;
	*record = at;
	return 0;
}

uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *ret_dropped)
{
	(void)context;
	(void)stream;
	*ret_dropped = atomic_exchange(&dropped, 0);
	return 0;
}

uint32_t cuptiActivitySetAttribute(uint32_t attribute, size_t *bytes, void *value)
{
	(void)attribute;
	return bytes && value ? 0 : RESULT_INVALID_PARAMETER;
}

uint32_t cuptiActivityFlushPeriod(uint32_t ms)
{
	(void)ms;
	return 0;
}

uint32_t cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void))
{
	if (puppet_word("no-stamp"))
		return RESULT_NOT_SUPPORTED;
	clock_offset_ns = 0;
	return clock && clock() ? 0 : RESULT_INVALID_PARAMETER;
}

uint32_t cuptiSetThreadIdType(uint32_t type)
{
	return type <= 1 ? 0 : RESULT_INVALID_PARAMETER;
}

static uint32_t enable_api(uint32_t domain, uint32_t cbid, uint8_t enable)
{
	if (cbid >= CBIDS)
		return RESULT_INVALID_PARAMETER;
	apis[domain][cbid] = enable;
	return 0;
}

uint32_t cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
	return enable_api(1, cbid, enable);
}

uint32_t cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
	return enable_api(2, cbid, enable);
}

uint32_t cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
	latency = enable && !puppet_word("queued");
	return puppet_word("queued");
}

uint32_t cuptiActivityConfigureUnifiedMemoryCounter(void *config, uint32_t count)
{
	(void)config;
	(void)count;
	if (!puppet_word("unified"))
		return RESULT_NOT_SUPPORTED;
	too_early |= !has_context;
	unified_set = true;
	return 0;
}

uint32_t cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *ret_id)
{
	struct { /* as its context begins: puppet_call.h */
		uint32_t id, device, null;
	} of;

	if (!context)
		return RESULT_INVALID_PARAMETER;
	memcpy(&of, context, sizeof(of));
	of.null += per_thread;
	memcpy(ret_id, stream ? stream : &of.null, sizeof(*ret_id));
	return 0;
}

uint32_t cuptiGetStreamId(void *context, void *stream, uint32_t *ret_id)
{
	return cuptiGetStreamIdEx(context, stream, 0, ret_id);
}

uint32_t cuptiGetDeviceId(void *context, uint32_t *ret_id)
{
	if (!context || puppet_word("no-device"))
		return RESULT_INVALID_PARAMETER;
	memcpy(ret_id, (const char *)context + sizeof(*ret_id), sizeof(*ret_id));
	return 0;
}
