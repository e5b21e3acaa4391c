/* puppet_cuda.c - the driver's puppet: see puppet_cuda.h. */
#include "fake/puppet_call.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FUNCTIONS_MAX = 64, DEVICES = 8 };

struct module {
	uint32_t id;
	size_t count;
	char *image, *functions[FUNCTIONS_MAX];
	struct puppet_context *context; /* NULL: none, or it is no more */
	struct module *next;
};

static puppet_tool *_Atomic tool;
static _Atomic int initialised; /* the pid it was in */
static _Atomic uint32_t correlations, ids;
static _Atomic uint64_t launches_made;
static _Atomic uint64_t addresses = 0x7f0000000000;
static struct puppet_context *_Atomic current;
static __thread struct puppet_context *chosen;            /* by cuCtxSetCurrent */
static struct puppet_stream default_stream = { .id = 7 }; /* without a context */
static _Atomic uint32_t contexts_made;
static pthread_mutex_t modules_lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *modules;
static __thread uint32_t outer; /* number of the runtime's call that this thread is in */
static _Atomic(struct puppet_stream *) hung; /* a kernel on it does not end */
static _Atomic int failed;                   /* what all that waits gets from then on */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void puppet_attach(puppet_tool *new_tool)
{
	atomic_store(&tool, new_tool);
}

void puppet_tell(const struct puppet_event *event)
{
	puppet_tool *now = atomic_load(&tool);

	if (now)
		now(event);
}

static struct puppet_context *context_now(void)
{
	return chosen ? chosen : atomic_load(&current);
}

struct puppet_call puppet_begin(uint32_t domain, uint32_t cbid, const void *params)
{
	struct puppet_call call = { .alive = atomic_load(&initialised) == getpid() };

	call.event.what = PUPPET_API;
	call.event.domain = domain;
	call.event.cbid = cbid;
	call.event.begin = 1;
	call.event.params = params;
	call.event.inner = domain == 1 && outer;
	call.event.correlation = call.event.inner ? outer : atomic_fetch_add(&correlations, 1) + 1;
	if (domain == 2)
		outer = call.event.correlation;
	call.event.thread = (uint32_t)syscall(SYS_gettid);
	call.event.start = now_ns();
	call.event.context = context_now();
	puppet_tell(&call.event);
	return call;
}

int puppet_end(struct puppet_call *call, int result)
{
	call->event.begin = 0;
	call->event.result = call->alive ? result : PUPPET_NOT_INITIALIZED;
	call->event.end = now_ns();
	puppet_tell(&call->event);
	if (call->event.domain == 2)
		outer = 0;
	return call->event.result;
}

#define DRIVER(cbid) struct puppet_call call = puppet_begin(1, cbid, NULL)

/* What the call makes happen; its own times are filled in later. */
struct puppet_event puppet_event_of(const struct puppet_call *call, enum puppet_what what)
{
	struct puppet_event event = { .what = what, .correlation = call->event.correlation };
	struct puppet_context *context = context_now();

	event.context = context;
	event.context_id = context ? context->id : 0;
	event.device = context ? context->device : 0;
	event.stream_id = puppet_stream(NULL)->id;
	event.thread = call->event.thread;
	event.start = event.end = now_ns();
	return event;
}

void puppet_run_on(struct puppet_stream *stream, struct puppet_event *event, uint64_t ns)
{
	uint64_t free_ns = atomic_load(&stream->free_ns), start;

	do {
		start = now_ns() > free_ns ? now_ns() : free_ns;
	} while (!atomic_compare_exchange_weak(&stream->free_ns, &free_ns, start + ns));
	event->stream_id = stream->id;
	event->stream = stream;
	event->start = start;
	event->end = start + ns;
	puppet_tell(event);
}

uint32_t puppet_new_id(void)
{
	return atomic_fetch_add(&ids, 1) + 1;
}

struct puppet_stream *puppet_stream(void *stream)
{
	struct puppet_context *context = context_now();

	return stream ? stream : context ? &context->null : &default_stream;
}

int cuInit(unsigned int flags)
{
	const char *path = secure_getenv("CUDA_INJECTION64_PATH");
	int none = 0;

	if (flags)
		return PUPPET_INVALID_VALUE;
	if (!atomic_compare_exchange_strong(&initialised, &none, getpid()))
		return none == getpid() ? 0 : PUPPET_NOT_INITIALIZED;
	if (path) {
		void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		int (*start)(void) = NULL;

		if (library)
			*(void **)(void *)&start = dlsym(library, "InitializeInjection");
		if (start)
			(void)start();
		if (library && getenv("PUPPET_DLCLOSE"))
			(void)dlclose(library);
	}
	return 0;
}

/* As CUPTI's record has it; of a log that is played only that says which card it was. */
int cuDeviceGetUuid(void *ret_uuid, int device)
{
	if (device < 0 || device >= DEVICES || getenv("PUPPET_LOG"))
		return PUPPET_INVALID_VALUE;
	memset(ret_uuid, 0xab, 16);
	*(unsigned char *)ret_uuid = (unsigned char)device;
	return 0;
}

int cuCtxCreate_v2(void **ret_context, unsigned int flags, int device)
{
	struct puppet_call call = { .alive = atomic_load(&initialised) == getpid() };
	struct puppet_context *context;
	struct puppet_event event;

	if (flags || device < 0 || device >= DEVICES)
		return PUPPET_INVALID_VALUE;
	if (!call.alive)
		return PUPPET_NOT_INITIALIZED;
	context = calloc(1, sizeof(*context));
	if (!context)
		return 2;
	context->id = atomic_fetch_add(&ids, 1) + 1;
	context->device = (uint32_t)device;
	/* As on a card: each has seven of its own. */
	context->null.id = 7 * (atomic_fetch_add(&contexts_made, 1) + 1);
	atomic_store(&current, context);
	event = puppet_event_of(&call, PUPPET_CONTEXT);
	event.begin = 1;
	puppet_tell(&event);
	*ret_context = context;
	return 0;
}

int cuCtxSetCurrent(void *context)
{
	chosen = context;
	return 0;
}

static void module_gone(const struct puppet_call *call, const struct module *module)
{
	struct puppet_event event = puppet_event_of(call, PUPPET_MODULE);

	event.context = module->context;
	event.module_id = module->id;
	event.name = module->image;
	event.bytes = strlen(module->image);
	puppet_tell(&event);
}

/* They go behind their context. Whoever made them may still unload them. */
static void modules_gone(const struct puppet_call *call, const struct puppet_context *context)
{
	struct module *module;

	do {
		pthread_mutex_lock(&modules_lock);
		for (module = modules; module && module->context != context; module = module->next)
			;
		pthread_mutex_unlock(&modules_lock);
		if (module)
			module_gone(call, module);
		if (module)
			module->context = NULL;
	} while (module);
}

int cuCtxDestroy_v2(void *context)
{
	struct puppet_call call = { .alive = atomic_load(&initialised) == getpid() };
	struct puppet_event event = puppet_event_of(&call, PUPPET_CONTEXT);

	if (!call.alive)
		return PUPPET_NOT_INITIALIZED;
	event.context = context;
	event.context_id = ((struct puppet_context *)context)->id;
	puppet_tell(&event);
	modules_gone(&call, context);
	if (atomic_load(&current) == context)
		atomic_store(&current, NULL);
	free(context);
	return 0;
}

/* For a stream, or for all. */
static int wait_for(const struct puppet_stream *stream)
{
	const struct puppet_stream *at = atomic_load(&hung);

	while (at && (!stream || stream == at))
		(void)pause();
	return atomic_load(&failed);
}

int cuCtxSynchronize(void)
{
	DRIVER(17);

	return puppet_end(&call, wait_for(NULL));
}

int cuModuleLoadData(void **ret_module, const void *image)
{
	DRIVER(27);
	struct puppet_event event = puppet_event_of(&call, PUPPET_MODULE);
	struct module *module = calloc(1, sizeof(*module));

	if (!module)
		return 2;
	module->id = event.module_id = atomic_fetch_add(&ids, 1) + 1;
	module->image = strdup(image);
	module->context = context_now();
	pthread_mutex_lock(&modules_lock);
	module->next = modules;
	modules = module;
	pthread_mutex_unlock(&modules_lock);
	event.begin = 1;
	event.name = image;
	event.bytes = strlen(image);
	puppet_tell(&event);
	*ret_module = module;
	return puppet_end(&call, 0);
}

/* Names of functions stay: records that were not read yet point to them. */
int cuModuleUnload(void *at)
{
	DRIVER(30);
	struct module *module = at;

	pthread_mutex_lock(&modules_lock);
	for (struct module **link = &modules; *link; link = &(*link)->next) {
		if (*link == module) {
			*link = module->next;
			break;
		}
	}
	pthread_mutex_unlock(&modules_lock);
	if (module->context)
		module_gone(&call, module);
	free(module->image);
	free(module);
	return puppet_end(&call, 0);
}

int cuModuleGetFunction(void **ret_function, void *at, const char *name)
{
	struct module *module = at;

	for (size_t i = 0; i < module->count; i++) {
		if (!strcmp(module->functions[i], name)) {
			*ret_function = module->functions[i];
			return 0;
		}
	}
	if (module->count == FUNCTIONS_MAX)
		return 500;
	*ret_function = module->functions[module->count++] = strdup(name);
	return 0;
}

/* Kernels of these names do not end, or end badly: they have no times. */
static bool is_ill(const char *function, struct puppet_stream *stream)
{
	if (!strcmp(function, "hangs"))
		atomic_store(&hung, stream);
	else if (!strcmp(function, "faults"))
		atomic_store(&failed, PUPPET_ILLEGAL_ADDRESS);
	else
		return atomic_load(&hung) == stream;
	return true;
}

static void launch(const struct puppet_call *call, const void *function, const unsigned int *shape,
		   struct puppet_stream *stream)
{
	struct puppet_event event = puppet_event_of(call, PUPPET_KERNEL);

	if (!call->alive || puppet_captured(function, shape))
		return;
	event.name = function;
	event.grid_number = 1 + (int64_t)atomic_fetch_add(&launches_made, 1);
	for (int i = 0; i < 3; i++) {
		event.grid[i] = (int32_t)shape[i];
		event.block[i] = (int32_t)shape[3 + i];
	}
	event.shared = (int32_t)shape[6];
	if (is_ill(function, stream)) {
		event.stream_id = stream->id;
		event.start = event.end = 0;
		event.result = atomic_load(&failed);
		puppet_tell(&event);
		return;
	}
	puppet_run_on(stream, &event, PUPPET_KERNEL_NS);
}

int cuLaunchKernel(const void *function, unsigned int gx, unsigned int gy, unsigned int gz,
		   unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
		   void *stream, void **params, void **extra)
{
	DRIVER(307);
	unsigned int shape[] = { gx, gy, gz, bx, by, bz, shared };

	(void)params;
	(void)extra;
	launch(&call, function, shape, puppet_stream(stream));
	return puppet_end(&call, 0);
}

int cudaLaunchKernel(const void *function)
{
	struct puppet_call call = puppet_begin(2, 211, NULL);
	static const unsigned int shape[] = { 1, 1, 1, 32, 1, 1, 0 };

	launch(&call, function, shape, puppet_stream(NULL));
	return puppet_end(&call, 0);
}

/* The current context goes, and all that is in it. */
int cudaDeviceReset(void)
{
	struct puppet_call call = puppet_begin(2, 164, NULL);
	void *context = atomic_load(&current);

	return puppet_end(&call, context ? cuCtxDestroy_v2(context) : 0);
}

int cudaDeviceSynchronize(void)
{
	struct puppet_call call = puppet_begin(2, 165, NULL);

	return puppet_end(&call, cuCtxSynchronize());
}

static void memory(const struct puppet_call *call, uint64_t address, size_t bytes, bool obtained)
{
	struct puppet_event event = puppet_event_of(call, PUPPET_MEMORY);

	event.domain = call->event.domain;
	event.inner = call->event.inner;
	event.address = address;
	event.bytes = bytes;
	event.begin = obtained;
	puppet_tell(&event);
}

int cuMemAlloc_v2(uint64_t *ret_address, size_t bytes)
{
	DRIVER(243);

	*ret_address = atomic_fetch_add(&addresses, (bytes + 511) & ~(size_t)511);
	memory(&call, *ret_address, bytes, true);
	return puppet_end(&call, 0);
}

int cudaMalloc(uint64_t *ret_address, size_t bytes)
{
	struct puppet_call call = puppet_begin(2, 20, NULL);
	struct puppet_call inside = puppet_begin(1, 243, NULL); /* the driver's */

	*ret_address = atomic_fetch_add(&addresses, (bytes + 511) & ~(size_t)511);
	memory(&inside, *ret_address, bytes, true);
	(void)puppet_end(&inside, 0);
	return puppet_end(&call, 0);
}

int cuMemFree_v2(uint64_t address)
{
	DRIVER(245);

	memory(&call, address, 4096, false);
	return puppet_end(&call, 0);
}

int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t bytes)
{
	DRIVER(249);
	struct puppet_event event = puppet_event_of(&call, PUPPET_SET);

	(void)value;
	event.address = address;
	event.bytes = bytes;
	puppet_run_on(puppet_stream(NULL), &event, 100);
	return puppet_end(&call, 0);
}

static void copy(const struct puppet_call *call, size_t bytes, uint8_t kind, uint8_t from,
		 uint8_t to)
{
	struct puppet_event event = puppet_event_of(call, PUPPET_COPY);

	event.bytes = bytes;
	event.copy = kind;
	event.from = from;
	event.to = to;
	puppet_run_on(puppet_stream(NULL), &event, 1000);
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
	DRIVER(276);

	(void)to;
	(void)from;
	copy(&call, bytes, 1, 1, 3); /* pageable -> device */
	return puppet_end(&call, 0);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
	DRIVER(278);

	(void)from;
	memset(to, 0, bytes);
	copy(&call, bytes, 2, 3, 2); /* device -> pinned */
	return puppet_end(&call, 0);
}

int cuStreamCreate(void **ret_stream, unsigned int flags)
{
	DRIVER(119);
	struct puppet_event event = puppet_event_of(&call, PUPPET_STREAM);
	struct puppet_stream *stream = calloc(1, sizeof(*stream));

	(void)flags;
	if (!stream)
		return 2;
	stream->id = event.stream_id = atomic_fetch_add(&ids, 1) + 10;
	event.stream = stream;
	event.begin = 1;
	puppet_tell(&event);
	*ret_stream = stream;
	return puppet_end(&call, 0);
}

int cuStreamDestroy_v2(void *at)
{
	DRIVER(127);
	struct puppet_event event = puppet_event_of(&call, PUPPET_STREAM);
	struct puppet_stream *stream = at;

	event.stream = stream;
	event.stream_id = stream->id;
	puppet_tell(&event);
	free(stream);
	return puppet_end(&call, 0);
}

int cuStreamSynchronize(void *stream)
{
	const void *params[] = { stream };
	struct puppet_call call = puppet_begin(1, 124, params);

	return puppet_end(&call, wait_for(puppet_stream(stream)));
}

int cuProfilerStart(void)
{
	DRIVER(311);

	return puppet_end(&call, 0);
}

int cuProfilerStop(void)
{
	DRIVER(312);

	return puppet_end(&call, 0);
}
