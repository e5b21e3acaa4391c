/* puppet_cuda.c - the driver's puppet: see puppet_cuda.h. */
#include "fake/puppet_cuda.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NOT_INITIALIZED = 3, INVALID_VALUE = 1, KERNEL_NS = 500, FUNCTIONS_MAX = 64 };

struct context {
	uint32_t id;
};

struct stream {
	uint32_t id;
	_Atomic uint64_t free_ns;
};

struct module {
	uint32_t id;
	size_t count;
	char *functions[FUNCTIONS_MAX];
};

static puppet_tool *_Atomic tool;
static _Atomic int initialised; /* the pid it was in */
static _Atomic uint32_t correlations, ids;
static _Atomic uint64_t addresses = 0x7f0000000000;
static struct context *_Atomic current;
static struct stream default_stream = { .id = 7 };

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

static void tell(const struct puppet_event *event)
{
	puppet_tool *now = atomic_load(&tool);

	if (now)
		now(event);
}

/* A call in flight. CUDA does not survive fork: in a child all fail, and are
 * traced all the same. */
struct call {
	struct puppet_event event;
	bool alive;
};

static struct call call_begin(uint32_t domain, uint32_t cbid)
{
	struct call call = { .alive = atomic_load(&initialised) == getpid() };

	call.event.what = PUPPET_API;
	call.event.domain = domain;
	call.event.cbid = cbid;
	call.event.begin = 1;
	call.event.correlation = atomic_fetch_add(&correlations, 1) + 1;
	call.event.thread = (uint32_t)syscall(SYS_gettid);
	call.event.start = now_ns();
	call.event.context = atomic_load(&current);
	tell(&call.event);
	return call;
}

static int call_end(struct call *call, int result)
{
	call->event.begin = 0;
	call->event.end = now_ns();
	tell(&call->event);
	return call->alive ? result : NOT_INITIALIZED;
}

#define DRIVER(cbid) struct call call = call_begin(1, cbid)

/* What the call makes happen; its own times are filled in later. */
static struct puppet_event event_of(const struct call *call, enum puppet_what what)
{
	struct puppet_event event = { .what = what, .correlation = call->event.correlation };
	struct context *context = atomic_load(&current);

	event.context = context;
	event.context_id = context ? context->id : 0;
	event.stream_id = default_stream.id;
	event.thread = call->event.thread;
	event.start = event.end = now_ns();
	return event;
}

static void run_on(struct stream *stream, struct puppet_event *event, uint64_t ns)
{
	uint64_t free_ns = atomic_load(&stream->free_ns), start;

	do {
		start = now_ns() > free_ns ? now_ns() : free_ns;
	} while (!atomic_compare_exchange_weak(&stream->free_ns, &free_ns, start + ns));
	event->stream_id = stream->id;
	event->stream = stream;
	event->start = start;
	event->end = start + ns;
	tell(event);
}

int cuInit(unsigned int flags)
{
	const char *path = secure_getenv("CUDA_INJECTION64_PATH");
	int none = 0;

	if (flags)
		return INVALID_VALUE;
	if (!atomic_compare_exchange_strong(&initialised, &none, getpid()))
		return none == getpid() ? 0 : NOT_INITIALIZED;
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

int cuCtxCreate_v2(void **ret_context, unsigned int flags, int device)
{
	struct call call = { .alive = atomic_load(&initialised) == getpid() };
	struct context *context;
	struct puppet_event event;

	if (flags || device)
		return INVALID_VALUE;
	if (!call.alive)
		return NOT_INITIALIZED;
	context = calloc(1, sizeof(*context));
	if (!context)
		return 2;
	context->id = atomic_fetch_add(&ids, 1) + 1;
	atomic_store(&current, context);
	event = event_of(&call, PUPPET_CONTEXT);
	event.begin = 1;
	tell(&event);
	*ret_context = context;
	return 0;
}

int cuCtxDestroy_v2(void *context)
{
	struct call call = { .alive = atomic_load(&initialised) == getpid() };
	struct puppet_event event = event_of(&call, PUPPET_CONTEXT);

	if (!call.alive)
		return NOT_INITIALIZED;
	event.context = context;
	event.context_id = ((struct context *)context)->id;
	tell(&event);
	if (atomic_load(&current) == context)
		atomic_store(&current, NULL);
	free(context);
	return 0;
}

static void synchronise(const struct call *call)
{
	struct puppet_event event = event_of(call, PUPPET_SYNC);

	tell(&event);
}

int cuCtxSynchronize(void)
{
	DRIVER(17);

	synchronise(&call);
	return call_end(&call, 0);
}

int cuModuleLoadData(void **ret_module, const void *image)
{
	DRIVER(27);
	struct puppet_event event = event_of(&call, PUPPET_MODULE);
	struct module *module = calloc(1, sizeof(*module));

	if (!module)
		return 2;
	module->id = event.module_id = atomic_fetch_add(&ids, 1) + 1;
	event.begin = 1;
	event.name = image;
	event.bytes = strlen(image);
	tell(&event);
	*ret_module = module;
	return call_end(&call, 0);
}

/* Names of functions stay: records that were not read yet point to them. */
int cuModuleUnload(void *at)
{
	DRIVER(30);
	struct puppet_event event = event_of(&call, PUPPET_MODULE);
	struct module *module = at;

	event.module_id = module->id;
	event.name = "";
	tell(&event);
	free(module);
	return call_end(&call, 0);
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

static void launch(const struct call *call, const void *function, const unsigned int *shape,
		   struct stream *stream)
{
	struct puppet_event event = event_of(call, PUPPET_KERNEL);

	if (!call->alive)
		return;
	event.name = function;
	for (int i = 0; i < 3; i++) {
		event.grid[i] = (int32_t)shape[i];
		event.block[i] = (int32_t)shape[3 + i];
	}
	event.shared = (int32_t)shape[6];
	run_on(stream, &event, KERNEL_NS);
}

int cuLaunchKernel(const void *function, unsigned int gx, unsigned int gy, unsigned int gz,
		   unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
		   void *stream, void **params, void **extra)
{
	DRIVER(307);
	unsigned int shape[] = { gx, gy, gz, bx, by, bz, shared };

	(void)params;
	(void)extra;
	launch(&call, function, shape, stream ? stream : &default_stream);
	return call_end(&call, 0);
}

int cudaLaunchKernel(const void *function)
{
	struct call call = call_begin(2, 211);
	static const unsigned int shape[] = { 1, 1, 1, 32, 1, 1, 0 };

	launch(&call, function, shape, &default_stream);
	return call_end(&call, 0);
}

int cudaDeviceSynchronize(void)
{
	struct call call = call_begin(2, 165);

	synchronise(&call);
	return call_end(&call, 0);
}

static void memory(const struct call *call, uint64_t address, size_t bytes, bool obtained)
{
	struct puppet_event event = event_of(call, PUPPET_MEMORY);

	event.address = address;
	event.bytes = bytes;
	event.begin = obtained;
	tell(&event);
}

int cuMemAlloc_v2(uint64_t *ret_address, size_t bytes)
{
	DRIVER(243);

	*ret_address = atomic_fetch_add(&addresses, (bytes + 511) & ~(size_t)511);
	memory(&call, *ret_address, bytes, true);
	return call_end(&call, 0);
}

int cudaMalloc(uint64_t *ret_address, size_t bytes)
{
	struct call call = call_begin(2, 20);

	*ret_address = atomic_fetch_add(&addresses, (bytes + 511) & ~(size_t)511);
	memory(&call, *ret_address, bytes, true);
	return call_end(&call, 0);
}

int cuMemFree_v2(uint64_t address)
{
	DRIVER(245);

	memory(&call, address, 4096, false);
	return call_end(&call, 0);
}

int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t bytes)
{
	DRIVER(249);
	struct puppet_event event = event_of(&call, PUPPET_SET);

	(void)value;
	event.address = address;
	event.bytes = bytes;
	run_on(&default_stream, &event, 100);
	return call_end(&call, 0);
}

static void copy(const struct call *call, size_t bytes, uint8_t kind, uint8_t from, uint8_t to)
{
	struct puppet_event event = event_of(call, PUPPET_COPY);

	event.bytes = bytes;
	event.copy = kind;
	event.from = from;
	event.to = to;
	run_on(&default_stream, &event, 1000);
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
	DRIVER(276);

	(void)to;
	(void)from;
	copy(&call, bytes, 1, 1, 3); /* pageable -> device */
	return call_end(&call, 0);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
	DRIVER(278);

	(void)from;
	memset(to, 0, bytes);
	copy(&call, bytes, 2, 3, 2); /* device -> pinned */
	return call_end(&call, 0);
}

int cuStreamCreate(void **ret_stream, unsigned int flags)
{
	DRIVER(119);
	struct puppet_event event = event_of(&call, PUPPET_STREAM);
	struct stream *stream = calloc(1, sizeof(*stream));

	(void)flags;
	if (!stream)
		return 2;
	stream->id = event.stream_id = atomic_fetch_add(&ids, 1) + 10;
	event.stream = stream;
	event.begin = 1;
	tell(&event);
	*ret_stream = stream;
	return call_end(&call, 0);
}

int cuStreamDestroy_v2(void *at)
{
	DRIVER(127);
	struct puppet_event event = event_of(&call, PUPPET_STREAM);
	struct stream *stream = at;

	event.stream = stream;
	event.stream_id = stream->id;
	tell(&event);
	free(stream);
	return call_end(&call, 0);
}

int cuStreamSynchronize(void *stream)
{
	DRIVER(124);

	(void)stream;
	synchronise(&call);
	return call_end(&call, 0);
}

int cuProfilerStart(void)
{
	DRIVER(311);

	return call_end(&call, 0);
}

int cuProfilerStop(void)
{
	DRIVER(312);

	return call_end(&call, 0);
}
