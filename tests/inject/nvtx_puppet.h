/*
 * nvtx_puppet.h - the few NVTX calls of host_nvtx.c, for machines without
 * NVIDIA's header: function pointers that the injection library may replace at
 * the first call. In our own words, after inject/nvtx.h.
 */
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

typedef const void *nvtxDomainHandle_t;
typedef uint64_t nvtxRangeId_t;

typedef struct {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payloadType, reserved;
	union {
		uint64_t ullValue;
		double dValue;
	} payload;
	int32_t messageType;
	union {
		const char *ascii;
		const wchar_t *unicode;
		const void *registered;
	} message;
} nvtxEventAttributes_t;

enum {
	NVTX_VERSION = 3,
	NVTX_EVENT_ATTRIB_STRUCT_SIZE = sizeof(nvtxEventAttributes_t),
	NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1,
	NVTX_PAYLOAD_TYPE_DOUBLE = 3,
	NVTX_MESSAGE_TYPE_ASCII = 1,
	NVTX_MESSAGE_TYPE_UNICODE = 2,
	NVTX_MESSAGE_TYPE_REGISTERED = 3,
	PUPPET_CORE = 16,
};

static void *puppet_core[PUPPET_CORE], *puppet_core2[PUPPET_CORE];
static void **puppet_core_at[PUPPET_CORE], **puppet_core2_at[PUPPET_CORE];

static int puppet_table(uint32_t module, void ****ret_table, unsigned int *ret_count)
{
	if (module != 1 && module != 5)
		return 0;
	for (int i = 1; i < PUPPET_CORE; i++) {
		puppet_core_at[i] = &puppet_core[i];
		puppet_core2_at[i] = &puppet_core2[i];
	}
	*ret_table = module == 1 ? puppet_core_at : puppet_core2_at;
	*ret_count = PUPPET_CORE;
	return 1;
}

static const void *puppet_export(uint32_t id)
{
	static const struct {
		size_t bytes;
		int (*table)(uint32_t, void ****, unsigned int *);
	} callbacks = { sizeof(callbacks), puppet_table };

	return id == 1 ? &callbacks : NULL;
}

/* The first call loads the library. */
static void puppet_nvtx(void)
{
	static int tried;
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library;
	int (*start)(const void *(*)(uint32_t)) = NULL;

	if (tried++ || !path)
		return;
	library = dlopen(path, RTLD_LAZY);
	if (library)
		*(void **)(void *)&start = dlsym(library, "InitializeInjectionNvtx2");
	if (start)
		(void)start(puppet_export);
}

#define PUPPET_CALL(table, index, type, none, ...) \
	(puppet_nvtx(), table[index] ? ((type)table[index])(__VA_ARGS__) : (none))

/* The same for calls that give nothing back. */
#define PUPPET_TELL(table, index, type, ...) \
	((void)(puppet_nvtx(), table[index] ? ((type)table[index])(__VA_ARGS__) : (void)0))

#define nvtxMarkA(text) PUPPET_TELL(puppet_core, 2, void (*)(const char *), text)
#define nvtxMarkW(text) PUPPET_TELL(puppet_core, 3, void (*)(const wchar_t *), text)
#define nvtxRangeStartEx(event) \
	PUPPET_CALL(puppet_core, 4, uint64_t (*)(const nvtxEventAttributes_t *), 0, event)
#define nvtxRangeStartA(text) PUPPET_CALL(puppet_core, 5, uint64_t (*)(const char *), 0, text)
#define nvtxRangeStartW(text) PUPPET_CALL(puppet_core, 6, uint64_t (*)(const wchar_t *), 0, text)
#define nvtxRangeEnd(id)      PUPPET_TELL(puppet_core, 7, void (*)(uint64_t), id)
#define nvtxRangePushEx(event) \
	PUPPET_CALL(puppet_core, 8, int (*)(const nvtxEventAttributes_t *), 0, event)
#define nvtxRangePushA(text) PUPPET_CALL(puppet_core, 9, int (*)(const char *), 0, text)
#define nvtxRangePushW(text) PUPPET_CALL(puppet_core, 10, int (*)(const wchar_t *), 0, text)
#define nvtxRangePop()       PUPPET_CALL(puppet_core, 11, int (*)(void), 0)
#define nvtxNameCategoryA(category, name) \
	PUPPET_TELL(puppet_core, 12, void (*)(uint32_t, const char *), category, name)
#define nvtxNameOsThreadA(thread, name) \
	PUPPET_TELL(puppet_core, 14, void (*)(uint32_t, const char *), thread, name)
#define nvtxNameOsThreadW(thread, name) \
	PUPPET_TELL(puppet_core, 15, void (*)(uint32_t, const wchar_t *), thread, name)
#define nvtxDomainMarkEx(domain, event)                                                     \
	PUPPET_TELL(puppet_core2, 1, void (*)(const void *, const nvtxEventAttributes_t *), \
		    domain, event)
#define nvtxDomainRangeStartEx(domain, event)                                                      \
	PUPPET_CALL(puppet_core2, 2, uint64_t (*)(const void *, const nvtxEventAttributes_t *), 0, \
		    domain, event)
#define nvtxDomainRangeEnd(domain, id) \
	PUPPET_TELL(puppet_core2, 3, void (*)(const void *, uint64_t), domain, id)
#define nvtxDomainRangePushEx(domain, event)                                                  \
	PUPPET_CALL(puppet_core2, 4, int (*)(const void *, const nvtxEventAttributes_t *), 0, \
		    domain, event)
#define nvtxDomainRangePop(domain) PUPPET_CALL(puppet_core2, 5, int (*)(const void *), 0, domain)
#define nvtxDomainNameCategoryW(domain, category, name)                                         \
	PUPPET_TELL(puppet_core2, 9, void (*)(const void *, uint32_t, const wchar_t *), domain, \
		    category, name)
#define nvtxDomainRegisterStringA(domain, text)                                                  \
	PUPPET_CALL(puppet_core2, 10, const void *(*)(const void *, const char *), NULL, domain, \
		    text)
#define nvtxDomainRegisterStringW(domain, text)                                             \
	PUPPET_CALL(puppet_core2, 11, const void *(*)(const void *, const wchar_t *), NULL, \
		    domain, text)
#define nvtxDomainCreateA(name) \
	PUPPET_CALL(puppet_core2, 12, const void *(*)(const char *), NULL, name)
#define nvtxDomainCreateW(name) \
	PUPPET_CALL(puppet_core2, 13, const void *(*)(const wchar_t *), NULL, name)

/* The payload extension, whose functions are loaded by its own first call. */
typedef const void *nvtxStringHandle_t;

typedef struct {
	uint64_t schemaId;
	size_t size;
	const void *payload;
} nvtxPayloadData_t;

typedef struct {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t arrayOrUnionDetail, offset;
	const void *semantics, *reserved;
} nvtxPayloadSchemaEntry_t;

typedef struct {
	uint64_t fieldMask;
	const char *name;
	uint64_t type, flags;
	const nvtxPayloadSchemaEntry_t *entries;
	size_t numEntries, payloadStaticSize, packAlign;
	uint64_t schemaId;
	void *extension;
} nvtxPayloadSchemaAttr_t;

enum {
	NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE = 1 << 10,
	NVTX_PAYLOAD_ENTRY_TYPE_UINT64 = 18,
	NVTX_PAYLOAD_ENTRY_TYPE_CSTRING = 75,
	NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8 = 76,
	NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE = 80,
	NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES = 1 << 4,
	NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES = 1 << 5,
	NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID = 1 << 8,
	NVTX_PAYLOAD_SCHEMA_ID_STATIC_START = 1 << 24,
	PUPPET_EXTENSION = 63,
};

static intptr_t puppet_extension[PUPPET_EXTENSION];

static void puppet_extend(void)
{
	static int tried;
	struct {
		size_t id, count;
		intptr_t *functions;
	} segment = { 0, PUPPET_EXTENSION, puppet_extension };
	struct {
		uint16_t version, size, module, compatible;
		size_t count;
		void *segments, *export;
		const void *info;
	} extension = { NVTX_VERSION, sizeof(extension), 2, 0x0104, 1, &segment, NULL, NULL };
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library;
	int (*start)(void *) = NULL;

	if (tried++ || !path)
		return;
	puppet_nvtx();
	library = dlopen(path, RTLD_LAZY);
	if (library)
		*(void **)(void *)&start = dlsym(library, "InitializeInjectionNvtxExtension");
	if (start)
		(void)start(&extension);
}

#define PUPPET_EXTENDED(index, type, none, ...) \
	(puppet_extend(),                       \
	 puppet_extension[index] ? ((type)puppet_extension[index])(__VA_ARGS__) : (none))

#define PUPPET_EXTENDED_TELL(index, type, ...) \
	((void)(puppet_extend(),               \
		puppet_extension[index] ? ((type)puppet_extension[index])(__VA_ARGS__) : (void)0))

#define nvtxPayloadSchemaRegister(domain, schema)                                                  \
	PUPPET_EXTENDED(0, uint64_t (*)(const void *, const nvtxPayloadSchemaAttr_t *), 0, domain, \
			schema)
#define nvtxMarkPayload(domain, data, count)                                                       \
	PUPPET_EXTENDED_TELL(2, void (*)(const void *, const nvtxPayloadData_t *, size_t), domain, \
			     data, count)
#define nvtxRangePushPayload(domain, data, count)                                               \
	PUPPET_EXTENDED(3, int (*)(const void *, const nvtxPayloadData_t *, size_t), 0, domain, \
			data, count)
#define nvtxRangePopPayload(domain, data, count)                                                \
	PUPPET_EXTENDED(4, int (*)(const void *, const nvtxPayloadData_t *, size_t), 0, domain, \
			data, count)
#define nvtxRangeStartPayload(domain, data, count)                                           \
	PUPPET_EXTENDED(5, uint64_t (*)(const void *, const nvtxPayloadData_t *, size_t), 0, \
			domain, data, count)
#define nvtxRangeEndPayload(domain, id, data, count)                                              \
	PUPPET_EXTENDED_TELL(6,                                                                   \
			     void (*)(const void *, uint64_t, const nvtxPayloadData_t *, size_t), \
			     domain, id, data, count)
