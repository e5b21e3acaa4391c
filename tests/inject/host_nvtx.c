/*
 * host_nvtx.c - NVTX calls: by NVIDIA's header where it is installed, else by
 * a puppet of what it does (tests/inject/nvtx_puppet.h).
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExtPayload.h>
#else
#include "inject/nvtx_puppet.h"
#endif

#include "inject/host.h"

void range_push(const char *name)
{
	(void)nvtxRangePushA(name);
}

void range_pop(void)
{
	(void)nvtxRangePop();
}

void mark(const char *name)
{
	nvtxMarkA(name);
}

static void *end_it(void *range)
{
	nvtxRangeEnd(*(nvtxRangeId_t *)range);
	return NULL;
}

static void end_elsewhere(nvtxRangeId_t range)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, end_it, &range))
		(void)pthread_join(thread, NULL);
}

/* Registered in `domain`, or as wide text. */
static nvtxEventAttributes_t outer_of(nvtxDomainHandle_t domain)
{
	nvtxEventAttributes_t outer = { 0 };

	outer.version = NVTX_VERSION;
	outer.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	outer.messageType = domain ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_TYPE_UNICODE;
	if (domain)
		outer.message.registered = nvtxDomainRegisterStringA(domain, "outer");
	else
		outer.message.unicode = L"outer";
	return outer;
}

void outer_edge(char byte)
{
	static nvtxDomainHandle_t domain;
	static nvtxRangeId_t first, second, wide, other;
	nvtxEventAttributes_t plain = outer_of(NULL), registered;

	if (!domain)
		domain = nvtxDomainCreateA("library");
	registered = outer_of(domain);
	if (byte == 'o')
		range_push("outer");
	else if (byte == 'c')
		range_pop();
	else if (byte == 'a')
		first = nvtxRangeStartA("outer");
	else if (byte == 'b')
		nvtxRangeEnd(first);
	else if (byte == 'f')
		second = nvtxRangeStartA("outer");
	else if (byte == 'g')
		end_elsewhere(second);
	else if (byte == 'w')
		wide = nvtxRangeStartEx(&plain);
	else if (byte == 'v')
		nvtxRangeEnd(wide);
	else if (byte == 'i')
		other = nvtxDomainRangeStartEx(domain, &registered);
	else if (byte == 'j')
		nvtxDomainRangeEnd(domain, other);
	else if (byte == 'p')
		(void)nvtxDomainRangePushEx(domain, &registered);
	else if (byte == 'q')
		(void)nvtxDomainRangePop(domain);
}

/* A pop belongs to a push with wide text, too. */
static void wide_calls(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateW(L"wide library \u00e9");
	nvtxEventAttributes_t attributes = { 0 };

	(void)nvtxRangePushA("around");
	(void)nvtxRangePushW(L"wide push");
	(void)nvtxRangePop();
	nvtxRangeEnd(nvtxRangeStartW(L"wide start"));
	nvtxMarkW(L"wide mark");
	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	attributes.message.registered = nvtxDomainRegisterStringW(domain, L"wide registered");
	nvtxDomainMarkEx(domain, &attributes);
	nvtxNameOsThreadW(0, L"not a thread either");
	(void)nvtxRangePop();
}

/* The same number is another category in another domain. */
static void categories(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("sorted");
	nvtxEventAttributes_t attributes = { 0 };

	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
	attributes.message.ascii = "batch";
	nvtxNameCategoryA(7, "load; all");
	nvtxDomainNameCategoryW(domain, 7, L"\u5b58");
	attributes.category = 7;
	attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
	attributes.payload.ullValue = UINT64_MAX;
	(void)nvtxRangePushEx(&attributes);
	(void)nvtxRangePop();
	attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	attributes.payload.dValue = -0.1;
	(void)nvtxDomainRangePushEx(domain, &attributes);
	(void)nvtxDomainRangePop(domain);
	attributes.payloadType = 0;
	attributes.category = 8;
	nvtxDomainMarkEx(domain, &attributes);
}

/* As NCCL: a range is pushed as ever and popped with a payload. Then names in payloads. */
static void payloads(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("blobs");
	struct {
		uint64_t bytes;
		const char *name;
	} blob = { 4096, "named by a pointer" };
	struct {
		char name[16];
		nvtxStringHandle_t handle;
	} other = { "in the blob", nvtxDomainRegisterStringA(domain, "by a handle") };
	const nvtxPayloadSchemaEntry_t pointer[] = {
		{ .type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "size" },
		{ .flags = NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE,
		  .type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING,
		  .offset = sizeof(uint64_t) },
	};
	const nvtxPayloadSchemaEntry_t embedded = {
		.flags = NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE,
		.type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8,
		.arrayOrUnionDetail = sizeof(other.name),
	};
	const nvtxPayloadSchemaEntry_t handle = {
		.flags = NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE,
		.type = NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE,
	};
	nvtxPayloadSchemaAttr_t schema = {
		.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID,
		.entries = pointer,
		.numEntries = 2,
		.schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 7,
	};
	nvtxPayloadData_t data = { 0, sizeof(blob), &blob };
	nvtxEventAttributes_t attributes = { 0 };
	nvtxRangeId_t range;

	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
	attributes.message.ascii = "popped with a payload";
	(void)nvtxDomainRangePushEx(domain, &attributes);
	data.schemaId = nvtxPayloadSchemaRegister(domain, &schema);
	(void)nvtxRangePopPayload(domain, &data, 1);
	(void)nvtxRangePushPayload(domain, &data, 1);
	(void)nvtxRangePopPayload(domain, &data, 1);
	data.size = sizeof(blob.bytes); /* too short for its name */
	(void)nvtxRangePushPayload(domain, &data, 1);
	(void)nvtxRangePopPayload(domain, &data, 1);
	schema.fieldMask &= ~(uint64_t)NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
	schema.entries = &embedded;
	schema.numEntries = 1;
	data = (nvtxPayloadData_t){ nvtxPayloadSchemaRegister(domain, &schema), sizeof(other),
				    &other };
	range = nvtxRangeStartPayload(domain, &data, 1);
	nvtxRangeEndPayload(domain, range, &data, 1);
	schema.entries = &handle;
	data = (nvtxPayloadData_t){ nvtxPayloadSchemaRegister(domain, &schema),
				    sizeof(other.handle), &other.handle };
	nvtxMarkPayload(domain, &data, 1);
}

/* One of each. */
int host_nvtx(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
	nvtxEventAttributes_t attributes = { 0 };

	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	(void)nvtxRangePushA("outer");
	(void)nvtxRangePushA("inner");
	attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	attributes.message.registered = nvtxDomainRegisterStringA(domain, "registered");
	(void)nvtxDomainRangePushEx(domain, &attributes);
	(void)nvtxRangePop(); /* inner: levels are each domain's own */
	(void)nvtxDomainRangePop(domain);
	attributes.messageType = NVTX_MESSAGE_TYPE_UNICODE;
	attributes.message.unicode = L"wide \u4e2d \u00e9";
	(void)nvtxRangePushEx(&attributes);
	(void)nvtxRangePop();
	(void)nvtxRangePop();
	(void)nvtxRangePop(); /* one too many */
	end_elsewhere(nvtxRangeStartA("handed over"));
	nvtxMarkA("here");
	nvtxNameOsThreadA(0, "not a thread");
	wide_calls();
	categories();
	payloads();
	(void)nvtxRangePushA("never popped");
	say("launches 0\n");
	return 0;
}

/* As PyTorch's emit_nvtx: a name for each call, and the program's own among them. */
int host_nvtx_ops(void)
{
	enum { CALLS = 10000 };
	char name[64];

	for (int i = 0; i < CALLS; i++) {
		range_push("load, decode");
		snprintf(name, sizeof(name), "aten::mul, seq = %d, op_id = %d", i / 2, i + 1);
		range_push(name);
		snprintf(name, sizeof(name), "aten::empty, op_id = %d, sizes = [[], [%d, 2]]",
			 i + 2, i);
		range_push(name);
		range_pop();
		range_pop();
		range_pop();
	}
	say("launches 0\n");
	return 0;
}

/* A child that is forked in a range, and is the first to use CUDA. */
int host_nvtx_forked(void)
{
	int status = -1;
	pid_t child;

	range_push("outer");
	child = fork();
	if (!child) {
		gpu_begin();
		range_push("outer");
		for (int i = 0; i < 10; i++)
			(void)gpu_launch();
		range_pop();
		return 0;
	}
	(void)waitpid(child, &status, 0);
	range_pop();
	say("child %d\n", status);
	return 0;
}
