/*
 * calls.c - CUDA's calls, which CUPTI knows by number: which of them are recorded,
 * and which call us back. [setup]
 *
 * What a number means differs between versions: all names are walked through.
 */
#include "inject/inject.h"

#include <string.h>

enum { CBID_MAX = 2000, HOLE_MAX = 16 };

/* Runtime and driver calls that matter: launches, copies, sets, waits, memory,
 * graphs, modules. Names begin so; "*" inside: anything. */
static const char *const API_PREFIXES[] = {
	"cudaLaunch",
	"cudaMemcpy",
	"cudaMemset",
	"cudaDeviceSynchronize",
	"cudaStreamSynchronize",
	"cudaEventSynchronize",
	"cudaStreamWaitEvent",
	"cudaEventRecord",
	"cudaMalloc",
	"cudaFree",
	"cudaHostAlloc",
	"cudaHostRegister",
	"cudaHostUnregister",
	"cudaGraphLaunch",
	"cudaGraphInstantiate",
	"cudaGraphExecUpdate",
	"cudaStreamCreate",
	"cudaStreamDestroy",
	"cudaStreamBeginCapture",
	"cudaStreamEndCapture",
	"cudaDeviceReset",
	"cudaMemPrefetch",
	"cudaProfilerSt",
	"cudaLibraryLoad",
	"cuLaunch",
	"cuMemcpy",
	"cuMemset",
	"cuCtxSynchronize",
	"cuStreamSynchronize",
	"cuEventSynchronize",
	"cuStreamWaitEvent",
	"cuEventRecord",
	"cuMemAlloc",
	"cuMemFree",
	"cuMemHostAlloc",
	"cuMemHostRegister",
	"cuMemMap",
	"cuMemCreate",
	"cuGraphLaunch",
	"cuGraphInstantiate",
	"cuGraphExecUpdate",
	"cuStreamCreate",
	"cuStreamDestroy",
	"cuModuleLoad",
	"cuLibraryLoad",
	"cuModuleUnload",
	"cuProfilerSt",
	"cuLinkComplete",
};

static bool begins_with_one_of(const char *name, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	return false;
}

static bool matters(const char *name)
{
	return begins_with_one_of(name, API_PREFIXES,
				  sizeof(API_PREFIXES) / sizeof(API_PREFIXES[0]));
}

static bool obtains_memory(const char *name)
{
	static const char *const prefixes[] = { "cudaMalloc", "cudaHostAlloc", "cuMemAlloc",
						"cuMemCreate", "cuMemHostAlloc" };

	return begins_with_one_of(name, prefixes, sizeof(prefixes) / sizeof(prefixes[0]));
}

static void record(struct inject *inject, uint32_t domain, uint32_t cbid, bool enable)
{
	if (domain == CUPTI_DOMAIN_RUNTIME)
		(void)inject->cupti.cuptiActivityEnableRuntimeApi(cbid, enable);
	else
		(void)inject->cupti.cuptiActivityEnableDriverApi(cbid, enable);
}

/* The names of what is recorded go into the segment. */
static void name_call(struct inject *inject, uint32_t domain, uint32_t cbid, const char *name)
{
	struct segment *segment = atomic_load(&inject->segment);
	struct segment_slot *slot = slot_take(segment);

	if (!slot)
		return;
	slot->value = (uint64_t)domain << 32 | cbid;
	slot->a = text_intern(segment, name, strlen(name));
	slot_commit(slot, SLOT_API_NAME);
}

/* Calls that sonde has to be there for. */
static void watch(struct inject *inject, uint32_t domain, uint32_t cbid, const char *name)
{
	bool memory = inject->trace >> TRACE_MEMORY & 1;
	bool event = inject->trace >> TRACE_EVENTS & inject->trace >> TRACE_SYNC & 1 &&
		     event_watch(inject, domain, cbid, name);

	if (memory && object_watch(inject, domain, cbid, name)) {
		/* object_called */
	} else if (inject->trace >> TRACE_SYNC & 1 && sync_watch(inject, domain, cbid, name)) {
		/* sync_called */
	} else if (event) {
		/* event_called */
	} else if (memory && obtains_memory(name)) {
		/* allocation_call */
	} else {
		if (domain != CUPTI_DOMAIN_DRIVER || !(inject->trace >> TRACE_RANGE_PROFILER & 1))
			return;
		if (!strcmp(name, "cuProfilerStart"))
			inject->start_cbid = cbid;
		else if (!strcmp(name, "cuProfilerStop"))
			inject->stop_cbid = cbid;
		else
			return;
	}
	(void)inject->cupti.cuptiEnableCallback(1, inject->subscriber, domain, cbid);
}

/* `api`: some calls are recorded; one by one where the version can. Callbacks stay on: to ask for
 * them anew while the program's threads are in those calls would be for nothing. */
static void walk(struct inject *inject, uint32_t domain, bool api, bool enable)
{
	bool first = enable && !inject->watching;
	bool all = inject->trace >> TRACE_API_ALL & 1;

	for (uint32_t cbid = 1, hole = 0; cbid < CBID_MAX && hole < HOLE_MAX; cbid++) {
		const char *name = NULL;

		if (inject->cupti.cuptiGetCallbackName(domain, cbid, &name) || !name) {
			hole++;
			continue;
		}
		hole = 0;
		if (api && (all || matters(name))) {
			record(inject, domain, cbid, enable);
			if (first)
				name_call(inject, domain, cbid, name);
		}
		if (first)
			watch(inject, domain, cbid, name);
	}
}

void calls_switch(struct inject *inject, bool enable)
{
	static const uint32_t domains[] = { CUPTI_DOMAIN_RUNTIME, CUPTI_DOMAIN_DRIVER };
	static const uint32_t kinds[] = { CUPTI_KIND_RUNTIME, CUPTI_KIND_DRIVER };
	bool api = inject->trace & ((uint64_t)1 << TRACE_CUDA | (uint64_t)1 << TRACE_API_ALL);
	bool singly = inject->cupti.cuptiActivityEnableRuntimeApi &&
		      inject->cupti.cuptiActivityEnableDriverApi;

	for (size_t i = 0; i < 2; i++) {
		walk(inject, domains[i], api && singly, enable);
		if (api && !singly)
			(void)(enable ? inject->cupti.cuptiActivityEnable(kinds[i])
				      : inject->cupti.cuptiActivityDisable(kinds[i]));
	}
	inject->watching |= enable;
}
