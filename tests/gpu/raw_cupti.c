/*
 * What CUPTI itself says, as it says it: for run_raw.sh. Loaded by CUDA_INJECTION64_PATH, it
 * asks for what `sonde run` asks for, in the same moments, and writes each answer, callback and
 * record to RAW as a line of "name key=value ...". It judges nothing.
 *
 * UNIFIED=context: unified memory is configured with the first context, else as we begin, and
 * then only enabled again. A line is written at once: the last one says where it hung.
 */
#include <cupti.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 1 << 20, LINES = 4000 };

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
typedef CUpti_ActivityMemory4 memory_record;
typedef CUpti_ActivityMemoryPool3 pool_record;
typedef CUpti_ActivityUnifiedMemoryCounter3 unified_record;
typedef CUpti_ActivityOverhead3 overhead_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemory3 memory_record;
typedef CUpti_ActivityMemoryPool2 pool_record;
typedef CUpti_ActivityUnifiedMemoryCounter2 unified_record;
typedef CUpti_ActivityOverhead2 overhead_record;
#endif

static FILE *raw;
static CUpti_SubscriberHandle subscriber;
static int told[128]; /* by kind */
static size_t stride[128];

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#define SAY(...) fprintf(raw, __VA_ARGS__)
#define LL(x)    ((unsigned long long)(x))

static void say_kernel(const kernel_record *k)
{
	SAY("kernel correlation=%u start=%llu end=%llu queued=%llu submitted=%llu stream=%u "
	    "graph=%u node=%llu name=%s\n",
	    k->correlationId, LL(k->start), LL(k->end), LL(k->queued), LL(k->submitted),
	    k->streamId, k->graphId, LL(k->graphNodeId), k->name ? k->name : "-");
}

static void say_unified(const unified_record *u)
{
	SAY("unified counter=%d value=%llu start=%llu end=%llu address=%llx from=%u to=%u "
	    "stream=%u process=%u flags=%u\n",
	    (int)u->counterKind, LL(u->value), LL(u->start), LL(u->end), LL(u->address), u->srcId,
	    u->dstId, u->streamId, u->processId, u->flags);
}

static void say_memory(const memory_record *m)
{
	SAY("memory operation=%d kind=%d correlation=%u address=%llx bytes=%llu time=%llu "
	    "device=%u context=%u stream=%u "
	    "async=%u pool=%llx pool_type=%d pool_bytes=%llu utilised=%llu\n",
	    (int)m->memoryOperationType, (int)m->memoryKind, m->correlationId, LL(m->address),
	    LL(m->bytes), LL(m->timestamp), m->deviceId, m->contextId, m->streamId, m->isAsync,
	    LL(m->memoryPoolConfig.address), (int)m->memoryPoolConfig.memoryPoolType,
	    LL(m->memoryPoolConfig.pool.size), LL(m->memoryPoolConfig.utilizedSize));
}

static void say_pool(const pool_record *p)
{
	SAY("pool operation=%d type=%d correlation=%u device=%u address=%llx bytes=%llu "
	    "threshold=%llu time=%llu utilised=%llu\n",
	    (int)p->memoryPoolOperationType, (int)p->memoryPoolType, p->correlationId, p->deviceId,
	    LL(p->address), LL(p->size), LL(p->releaseThreshold), LL(p->timestamp),
	    LL(p->utilizedSize));
}

static void say_overhead(const overhead_record *o)
{
	SAY("overhead kind=%d object=%d thread=%u start=%llu end=%llu", (int)o->overheadKind,
	    (int)o->objectKind, o->objectId.pt.threadId, LL(o->start), LL(o->end));
#if CUPTI_API_VERSION >= 130000
	SAY(" correlation=%u data=%p", o->correlationId, o->overheadData);
	if (o->overheadKind == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL && o->overheadData) {
		const CUpti_ActivityOverheadCommandBufferFullData *full = o->overheadData;

		SAY(" length=%u channel=%u type=%u room=%zu", full->commandBufferLength,
		    full->channelID, full->channelType, malloc_usable_size(o->overheadData));
		free(o->overheadData); /* ours, as the header has it */
	}
#endif
	SAY("\n");
}

static void say_api(const CUpti_ActivityAPI *a)
{
	const char *name = NULL;
	int driver = a->kind == CUPTI_ACTIVITY_KIND_DRIVER;

	cuptiGetCallbackName(driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API,
			     a->cbid, &name);
	SAY("%s correlation=%u start=%llu end=%llu thread=%u result=%u name=%s\n",
	    driver ? "driver" : "runtime", a->correlationId, LL(a->start), LL(a->end), a->threadId,
	    a->returnValue, name ? name : "-");
}

static void say(const void *record, CUpti_ActivityKind kind)
{
	switch (kind) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
	case CUPTI_ACTIVITY_KIND_KERNEL:
		say_kernel(record);
		break;
	case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER:
		say_unified(record);
		break;
	case CUPTI_ACTIVITY_KIND_MEMORY2:
		say_memory(record);
		break;
	case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
		say_pool(record);
		break;
	case CUPTI_ACTIVITY_KIND_OVERHEAD:
		say_overhead(record);
		break;
	case CUPTI_ACTIVITY_KIND_RUNTIME:
	case CUPTI_ACTIVITY_KIND_DRIVER:
		say_api(record);
		break;
	default:
		SAY("record kind=%d\n", (int)kind);
	}
}

static void CUPTIAPI asked(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = aligned_alloc(8, BYTES);
	*size = BYTES;
	*records = 0;
	memset(*buffer, 0, BYTES);
}

static void CUPTIAPI done(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
			  size_t valid)
{
	CUpti_Activity *record = NULL, *last = NULL;

	(void)context;
	(void)stream;
	(void)size;
	flockfile(raw);
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
		unsigned kind = (unsigned)record->kind;

		if (last && (unsigned)last->kind < 128)
			stride[last->kind] = (size_t)((uint8_t *)record - (uint8_t *)last);
		last = record;
		if (kind < 128 && told[kind]++ < LINES)
			say(record, record->kind);
	}
	if (last && (unsigned)last->kind < 128)
		stride[last->kind] = (size_t)(buffer + valid - (uint8_t *)last);
	funlockfile(raw);
	free(buffer);
}

static int late(void)
{
	const char *unified = getenv("UNIFIED");

	return unified && !strcmp(unified, "context");
}

static void configure(const char *when)
{
	CUpti_ActivityUnifiedMemoryCounterConfig config[8];
	CUptiResult all, four;

	memset(config, 0, sizeof(config));
	for (int i = 0; i < 8; i++) {
		config[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
		config[i].kind = (CUpti_ActivityUnifiedMemoryCounterKind)(i + 1);
		config[i].enable = 1;
	}
	all = cuptiActivityConfigureUnifiedMemoryCounter(config, 8);
	four = all ? cuptiActivityConfigureUnifiedMemoryCounter(config, 4) : all;
	SAY("configured when=%s all=%d four=%d\n", when, (int)all, (int)four);
	SAY("configure when=%s all=%d four=%d enable=%d\n", when, (int)all, (int)four,
	    (int)cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
}

static void module(CUpti_CallbackId cbid, const CUpti_ModuleResourceData *m)
{
	unsigned first = 0;

	if (m->pCubin && m->cubinSize >= sizeof(first))
		memcpy(&first, m->pCubin, sizeof(first));
	SAY("module what=%d id=%u bytes=%zu at=%p first=%08x\n", (int)cbid, m->moduleId,
	    m->cubinSize, (const void *)m->pCubin, first);
}

/* A call of the program: with the number that its record will have, and, where a stream comes
 * first, what CUPTI says it is. */
static void call(CUpti_CallbackDomain domain, const CUpti_CallbackData *data)
{
	static const char *const of_stream[] = { "StreamSynchronize", "StreamWaitEvent" };
	const char *name = data->functionName ? data->functionName : "-";
	int result = data->callbackSite == CUPTI_API_EXIT && data->functionReturnValue
			     ? *(const int *)data->functionReturnValue
			     : -1;

	SAY("call domain=%d site=%d correlation=%u context=%u has_context=%d time=%llu result=%d",
	    (int)domain, (int)data->callbackSite, data->correlationId, data->contextUid,
	    data->context != NULL, LL(now()), result);
	for (int i = 0; i < 2 && data->callbackSite == CUPTI_API_EXIT && data->context; i++) {
		uint32_t id = 0;
		CUstream stream;

		if (!strstr(name, of_stream[i]))
			continue;
		stream = *(const CUstream *)data->functionParams;
		SAY(" stream_result=%d",
		    (int)cuptiGetStreamIdEx(data->context, (size_t)stream <= 2 ? NULL : stream,
					    (size_t)stream == 2, &id));
		SAY(" stream=%u", id);
	}
	SAY(" name=%s\n", name);
}

static void CUPTIAPI called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
			    const void *data)
{
	static int contexts;

	(void)user;
	flockfile(raw);
	if (domain != CUPTI_CB_DOMAIN_RESOURCE)
		call(domain, data);
	else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED && !contexts++ && late())
		configure("context");
	else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED && contexts == 1)
		SAY("again enable=%d\n",
		    (int)cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
	else if (cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED ||
		 cbid == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING)
		module(cbid, ((const CUpti_ResourceData *)data)->resourceDescriptor);
	funlockfile(raw);
}

static void watch(CUpti_CallbackDomain domain)
{
	static const char *const of[] = {
		"Malloc",           "MemAlloc",          "MemPool",
		"MemCreate",        "StreamSynchronize", "StreamWaitEvent",
		"EventSynchronize", "DeviceSynchronize", "CtxSynchronize",
		"EventCreate",      "Capture",           "GraphInstantiate"
	};

	for (uint32_t cbid = 1; cbid < 1200; cbid++) {
		const char *name = NULL;

		if (cuptiGetCallbackName(domain, cbid, &name) || !name)
			continue;
		for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
			if (strstr(name, of[i]))
				(void)cuptiEnableCallback(1, subscriber, domain, cbid);
		}
	}
}

static void at_exit(void)
{
	SAY("flush result=%d time=%llu\n", (int)cuptiActivityFlushAll(1), LL(now()));
	for (int i = 0; i < 128; i++) {
		if (told[i])
			SAY("size kind=%d bytes=%zu records=%d\n", i, stride[i], told[i]);
	}
	fflush(raw);
}

int InitializeInjection(void);

int InitializeInjection(void)
{
	static const CUpti_ActivityKind kinds[] = {
		CUPTI_ACTIVITY_KIND_MEMCPY,
		CUPTI_ACTIVITY_KIND_MEMSET,
		CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		CUPTI_ACTIVITY_KIND_DEVICE,
		CUPTI_ACTIVITY_KIND_CONTEXT,
		CUPTI_ACTIVITY_KIND_OVERHEAD,
		CUPTI_ACTIVITY_KIND_JIT,
		CUPTI_ACTIVITY_KIND_MEMORY2,
		CUPTI_ACTIVITY_KIND_MEMORY_POOL,
		CUPTI_ACTIVITY_KIND_RUNTIME,
		CUPTI_ACTIVITY_KIND_DRIVER,
	};
	uint32_t version = 0;

	raw = fopen(getenv("RAW") ? getenv("RAW") : "/dev/stderr", "we");
	if (!raw)
		return 0;
	setvbuf(raw, NULL, _IOLBF, BUFSIZ);
	cuptiGetVersion(&version);
	SAY("begin version=%u time=%llu subscribe=%d\n", version, LL(now()),
	    (int)cuptiSubscribe(&subscriber, called, NULL));
	SAY("clock result=%d\n", (int)cuptiActivityRegisterTimestampCallback(now));
	SAY("register result=%d\n", (int)cuptiActivityRegisterCallbacks(asked, done));
	if (!late())
		configure("start");
	SAY("latency result=%d\n", (int)cuptiActivityEnableLatencyTimestamps(1));
	for (uint32_t cbid = CUPTI_CBID_RESOURCE_CONTEXT_CREATED;
	     cbid <= CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING; cbid++)
		(void)cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, cbid);
	watch(CUPTI_CB_DOMAIN_RUNTIME_API);
	watch(CUPTI_CB_DOMAIN_DRIVER_API);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		CUptiResult result = cuptiActivityEnable(kinds[i]);

		if (result)
			SAY("enable kind=%d result=%d\n", (int)kinds[i], (int)result);
	}
	atexit(at_exit);
	return 1;
}
