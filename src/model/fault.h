/*
 * fault.h - what the driver, the kernel or NVML says went wrong, as one shape.
 *
 * A fault is plain data without pointers, so it may go through a pipe. It is
 * made of a line of the kernel log (know/fault_line.h) or of an NVML event.
 * All-zero is a fault of which nothing is known: integers count only with
 * their FAULT_HAS_* bit, an empty text is unknown.
 *
 * In a profile a fault is a mark on the board lane of its device (or on a lane
 * of no device): its kind is fault_mark_kind, its name fault_title, its detail
 * fault_detail. fault_from_detail is the way back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "model/event.h"
#include "model/sink.h"

/* X(id, name). Only the first four mean a GPU or a switch that failed. */
#define FAULT_KIND_LIST(X)                                                                        \
	X(XID, "xid")               /* the driver's numbered errors of a GPU */                   \
	X(SXID, "sxid")             /* those of an NVSwitch */                                    \
	X(OFF_BUS, "off_bus")       /* "fallen off the bus", told without a number */             \
	X(INIT, "init")             /* the driver could not start a GPU */                        \
	X(MISMATCH, "api_mismatch") /* library and kernel module are of two versions */           \
	X(OOM, "oom")               /* the kernel killed a process for want of host memory */     \
	X(RATE_LIMIT, "rate_limit") /* from here on the driver prints only some of its lines */   \
	X(IDENTITY, "identity")     /* no fault: which UUID or serial number a PCI address has */ \
	X(DRIVER, "driver")         /* no fault: the version of the kernel module */

enum fault_kind {
	FAULT_NONE,
#define X(id, name) FAULT_##id,
	FAULT_KIND_LIST(X)
#undef X
		FAULT_KIND_COUNT
};
const char *fault_kind_name(enum fault_kind kind);

/* Who said it: the same fault may come from several. */
enum fault_origin { FAULT_FROM_LOG, FAULT_FROM_NVML, FAULT_ORIGIN_COUNT };

/* X(id, name, field): integers that may be unknown. */
#define FAULT_NUMBER_LIST(X)                                                                    \
	X(NUMBER, "number", number)         /* of the Xid or SXid */                            \
	X(PID, "pid", pid)                  /* of the process the fault is laid to */           \
	X(GPU_INSTANCE, "gi", gpu_instance) /* of MIG */                                        \
	X(COMPUTE_INSTANCE, "ci", compute_instance)                                             \
	X(PREVIOUS, "previous", previous)   /* "caused by previous Xid N" */                    \
	X(LINK, "link", link)               /* NVLink; -1: the line says that it is none */     \
	X(UNIT, "unit", unit)               /* NVLink 5: what in the link, from word 0 */       \
	X(STATUS, "status", status)         /* NVLink 5: word 1 */                              \
	X(FATAL, "fatal", fatal)            /* 1 or 0, as the line says */                      \
	X(FIRST, "first", first)            /* SXid: the first error of its port */             \
	X(SWITCH, "switch", switch_index)   /* N of nvidia-nvswitchN */                         \
	X(ACTION_FROM, "from", action_from) /* recovery action before */                        \
	X(ACTION_TO, "to", action_to)       /* and after */                                     \
	X(EVERY, "every", every)            /* rate limit: one of so many is printed */         \
	X(GPC, "gpc", gpc)                  /* the SM that raised an exception */               \
	X(TPC, "tpc", tpc)                                                                      \
	X(SM, "sm", sm)                                                                         \
	X(ADDRESS, "address", address)          /* of a page fault or a retired page */         \
	X(MEMORY_KB, "kb", memory_kb)           /* OOM: resident memory that the process had */ \
	X(IN_CGROUP, "cgroup_limit", in_cgroup) /* OOM: 1, the limit of a container was hit */  \
	X(DAY_S, "day_s", day_s)                /* second of the day in the log's own zone */   \
	X(LINE, "line", line)                   /* number of the line in its file, from 1 */

enum fault_number {
#define X(id, name, field) FAULT_##id,
	FAULT_NUMBER_LIST(X)
#undef X
		FAULT_NUMBER_COUNT
};
#define FAULT_HAS(number) (1u << (number))

enum { FAULT_TEXT_MAX = 320, FAULT_WORDS = 6 };

struct fault {
	enum fault_kind kind;
	enum fault_origin origin;
	bool has_time; /* else time_ns is that of the line before it that had one */
	int64_t time_ns;
	int64_t early_ns; /* it may have happened so much before time_ns; not in the profile */
	uint32_t have;    /* FAULT_HAS */
#define X(id, name, field) int64_t field;
	FAULT_NUMBER_LIST(X)
#undef X
	char pci[24]; /* as struct device has it: "0000:9b:00.0" */
	char uuid[96];
	char process[64]; /* name of the process */
	char event[32];   /* NVLink 5: "RLW_RXPIPE"; recovery: name of the new action */
	char action_before[32];
	char client[40], module[40]; /* versions of a mismatch; module alone: DRIVER */
	char serial[40];
	char cgroup[96];
	uint32_t word_count;
	uint32_t words[FAULT_WORDS]; /* NVLink 5 */
	char text[FAULT_TEXT_MAX];   /* what follows the parts above */
};

static inline bool fault_has(const struct fault *fault, enum fault_number number)
{
	return fault->have >> number & 1;
}

/* "Xid 79", "SXid 12028", "GPU off the bus", ...: in English, for _(). */
void fault_title(const struct fault *fault, struct buf *out);

/* "fault=xid;number=79;pid=12;...;text=REST" and back; unknown keys are skipped. False: it
 * names no kind. */
void fault_detail(const struct fault *fault, struct buf *out);
bool fault_from_detail(struct str detail, struct fault *ret_fault);

enum mark_kind fault_mark_kind(enum fault_kind kind);

/* Push the fault as a mark of `source`: makes or completes the device, the
 * process and the lane. Identities complete their device and are no mark; a
 * driver's version becomes environment. */
int fault_push(struct sink *sink, uint32_t source, const struct fault *fault, struct err *err);

/*
 * Faults lately seen, to tell what two sources both report.
 *
 * All-zero is the initial state.
 */
enum { FAULT_MEMORY = 64 };

struct fault_memory {
	struct fault_memory_row {
		enum fault_kind kind;
		int64_t number, time_ns, early_ns;
		char pci[24];
		uint32_t origins; /* bits */
	} at[FAULT_MEMORY];
	uint32_t next;
};

/* Remember `fault` (time_ns must be on one clock for all of them). True: an
 * other source told the same fault within FAULT_SAME_NS and what early_ns of
 * either leaves open, so this is no new one. What one source repeats is never taken for the same.
 */
bool fault_known(struct fault_memory *memory, const struct fault *fault);
extern const int64_t FAULT_SAME_NS;
