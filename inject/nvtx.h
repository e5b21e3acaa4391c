/*
 * nvtx.h - the little of NVTX's injection interface that is used, in our own
 * words; checked against the real header where it is installed.
 *
 * The NVTX library in the host gives tables of pointers to its function
 * pointers; writing there makes its calls ours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef const void *nvtx_get_table(uint32_t id);

enum {
	NVTX_TABLE_CALLBACKS = 1,
	NVTX_MODULE_CORE = 1,
	NVTX_MODULE_CORE2 = 5,
};

struct nvtx_callbacks {
	uint64_t bytes;
	int (*function_table)(uint32_t module, void ****ret_table, unsigned int *ret_count);
};

/* X(index, name, our function): of NVTX_MODULE_CORE */
#define NVTX_CORE_LIST(X)    \
	X(1, MarkEx)         \
	X(2, MarkA)          \
	X(3, MarkW)          \
	X(4, RangeStartEx)   \
	X(5, RangeStartA)    \
	X(6, RangeStartW)    \
	X(7, RangeEnd)       \
	X(8, RangePushEx)    \
	X(9, RangePushA)     \
	X(10, RangePushW)    \
	X(11, RangePop)      \
	X(12, NameCategoryA) \
	X(13, NameCategoryW) \
	X(14, NameOsThreadA) \
	X(15, NameOsThreadW)

#define NVTX_CORE2_LIST(X)           \
	X(1, DomainMarkEx)           \
	X(2, DomainRangeStartEx)     \
	X(3, DomainRangeEnd)         \
	X(4, DomainRangePushEx)      \
	X(5, DomainRangePop)         \
	X(8, DomainNameCategoryA)    \
	X(9, DomainNameCategoryW)    \
	X(10, DomainRegisterStringA) \
	X(11, DomainRegisterStringW) \
	X(12, DomainCreateA)         \
	X(13, DomainCreateW)         \
	X(14, DomainDestroy)

enum nvtx_message_type { MESSAGE_CHAR = 1, MESSAGE_WCHAR = 2, MESSAGE_REGISTERED = 3 };

/* The colour is not recorded: what sonde draws has colours of its own. */
struct nvtx_event {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type; /* enum payload_kind; later NVTX has others, too */
	int32_t reserved;
	union {
		uint64_t u64;
		double f64;
	} payload;
	int32_t message_type; /* enum nvtx_message_type */
	union {
		const char *ascii;
		const void *other;
	} message;
};

/*
 * The payload extension: the same calls with blobs of data, and the library's own way to
 * be injected. NCCL ends some of its ranges by it (ncclCommInitRank), and a range whose end nobody
 * takes lasts as long as the process. What the blobs hold is not recorded but for the
 * name of an event.
 */
enum { NVTX_MODULE_PAYLOAD = 2 };

struct nvtx_extension_segment {
	size_t id, count;
	intptr_t *functions; /* for us to write to */
};

struct nvtx_extension {
	uint16_t version, size, module, compatible;
	size_t segment_count;
	struct nvtx_extension_segment *segments;
	void *export_function;
	const void *info;
};

/* X(index, our function): of NVTX_MODULE_PAYLOAD */
#define NVTX_PAYLOAD_LIST(X)        \
	X(0, PayloadSchemaRegister) \
	X(1, PayloadEnumRegister)   \
	X(2, MarkPayload)           \
	X(3, RangePushPayload)      \
	X(4, RangePopPayload)       \
	X(5, RangeStartPayload)     \
	X(6, RangeEndPayload)

struct nvtx_payload {
	uint64_t schema;
	size_t bytes; /* SIZE_MAX: as many as the schema says */
	const void *at;
};

struct nvtx_schema_entry {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t detail; /* of a string: its length in the blob; 0: it is a pointer */
	uint64_t offset;
	const void *semantics, *reserved;
};

enum {
	NVTX_ENTRY_MESSAGE = 1 << 10, /* the entry is the event's name */
	NVTX_ENTRY_PLAIN = 0x1fe,     /* flags that must not be set: pointers, offsets, arrays */
	NVTX_ENTRY_CSTRING = 75,
	NVTX_ENTRY_UTF8 = 76,
	NVTX_ENTRY_HANDLE = 80,
	NVTX_SCHEMA_ENTRIES = 1 << 4, /* of `fields` */
	NVTX_SCHEMA_COUNT = 1 << 5,
	NVTX_SCHEMA_ID = 1 << 8,
	NVTX_ENUM_ID = 1 << 5,
};

struct nvtx_schema {
	uint64_t fields;
	const char *name;
	uint64_t type, flags;
	const struct nvtx_schema_entry *entries;
	size_t count, bytes, alignment;
	uint64_t id;
	void *extension;
};

struct nvtx_enum {
	uint64_t fields;
	const char *name;
	const void *entries;
	size_t count, bytes;
	uint64_t id;
	void *extension;
};

/* The event with the name that a payload gives it, valid as long as `room`; NULL: none does.
 * [hot] */
struct nvtx_message_room {
	struct nvtx_event event;
	char text[256];
};
const struct nvtx_event *nvtx_message(const void *domain, const struct nvtx_payload *at,
				      size_t count, struct nvtx_message_room *room);

/* The schema's id: its own, or one that is free. */
uint64_t nvtx_schema_register(const void *domain, const struct nvtx_schema *schema);
uint64_t nvtx_enum_register(const struct nvtx_enum *from);

/* Make the calls of an extension ours; false: it is not one that is known. [setup] */
bool nvtx_attach_extension(const struct nvtx_extension *extension);

/* Make the calls of the NVTX library behind `get_table` ours. [setup] */
void nvtx_attach(nvtx_get_table *get_table);
