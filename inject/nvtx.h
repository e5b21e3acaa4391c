/*
 * nvtx.h - the little of NVTX's injection interface that is used, in our own
 * words; checked against the real header where it is installed.
 *
 * The NVTX library in the host gives tables of pointers to its function
 * pointers; writing there makes its calls ours.
 */
#pragma once

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
	int32_t message_type; /* 1 char, 2 wchar_t, 3 registered */
	union {
		const char *ascii;
		const void *other;
	} message;
};

/* Make the calls of the NVTX library behind `get_table` ours. [setup] */
void nvtx_attach(nvtx_get_table *get_table);
