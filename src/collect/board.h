/*
 * board.h - what is known of the cards at one instant: plain data.
 *
 * A snapshot is what one round of questions to the driver gave. A board is a
 * card or a MIG instance; its values are a `struct sample` as everywhere else,
 * and beside each value stands its origin: who said it, or why there is none.
 * Nothing here points anywhere but the arrays of the snapshot, so that all of
 * it goes through a pipe.
 *
 * Ages: a snapshot holds what was asked in its round (collector.h, groups) and
 * facts that do not change by themselves (names, limits, highest clocks). Rates
 * and GPM values need two rounds; in the first their origin is ORIGIN_PENDING.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/own.h"
#include "base/vec.h"
#include "model/fault.h"
#include "model/metric.h"

/* Why there is, or is no, value. X(id, word, has a value) */
#define ORIGIN_LIST(X)                                                            \
	X(NONE, "not asked", false)                                               \
	X(NVML, "NVML", true)                                                     \
	X(GPM, "GPM", true)                                                       \
	X(RING, "driver's ring of samples", true) /* or integrated from it */     \
	X(WRAPPER, "answered by a wrapper", true) /* snapshot.wrapper names it */ \
	X(KERNEL, "kernel", true)                 /* /proc, /sys */               \
	X(PENDING, "needs a second reading", false)                               \
	X(WRAPS, "its counter wraps faster than it is read", false)               \
	X(NOT_SUPPORTED, "not supported by this card or driver", false)           \
	X(NO_FUNCTION, "the driver is too old", false)                            \
	X(NO_PERMISSION, "no permission", false)                                  \
	X(DEPRECATED, "no longer answered by this driver", false)                 \
	X(ASLEEP, "not asked: the card sleeps", false)                            \
	X(LOST, "the card is lost", false)                                        \
	X(FAILED, "the driver failed", false)

enum origin {
#define X(id, word, has) ORIGIN_##id,
	ORIGIN_LIST(X)
#undef X
		ORIGIN_COUNT
};

/* In English, for N_(); gettext has them. */
const char *origin_word(enum origin origin);
/* Short and fixed, for programs: "NVML", "NOT_SUPPORTED", ... */
const char *origin_name(enum origin origin);
/* Is there a value? */
bool origin_has(enum origin origin);

enum board_state {
	BOARD_OK,
	BOARD_ASLEEP, /* runtime suspend: left alone, only kernel facts */
	BOARD_LOST,   /* fell off the bus, or needs a reset: `status` */
	BOARD_GONE,   /* was there in an earlier round, is no longer listed */
};

struct board {
	uint32_t index; /* as nvidia-smi counts; of a MIG instance its number on the card */
	int32_t parent; /* -1, or for a MIG instance the place of its card in snapshot.boards */
	char uuid[96];
	char name[96];
	char pci_bus[20];                       /* 0000:83:00.0, as the kernel writes it */
	char mig_profile[32];                   /* "1g.18gb"; "" unless a MIG instance */
	int32_t gpu_instance, compute_instance; /* -1 unless a MIG instance */
	int32_t cc_major, cc_minor;             /* 0 unknown */
	/* The driver's numbers; -1 unknown. */
	int32_t mig_mode;        /* 0 off, 1 on */
	int32_t persistence;     /* 0 off, 1 on */
	int32_t compute_mode;    /* 0 default, 2 prohibited, 3 exclusive process */
	int32_t virtualization;  /* 0 none, 1 pass-through, 2 vGPU guest, 3, 4 vGPU host */
	int32_t ecc_mode;        /* 0 off, 1 on */
	int32_t recovery_action; /* 0 none, 1 GPU reset, 2 reboot, 3 drain P2P, 4 drain, reset */
	enum board_state state;
	int32_t status;       /* NVML's number of the failure that made it LOST; else 0 */
	bool gpm;             /* this card has GPM */
	struct sample sample; /* lane 0, time_ns as snapshot.utc_ns */
	/* enum origin. Of proc_sm_pct and the like: whether the card tells the use
	 * of its processes. If it does, a process without a value had none. */
	uint8_t origin[METRIC_COUNT];
};

enum process_kind {
	PROCESS_COMPUTE = 1,
	PROCESS_GRAPHICS = 2,
	PROCESS_MPS = 4,
};

/* One process on one board. */
struct board_process {
	uint32_t board; /* place in snapshot.boards */
	uint32_t kinds; /* enum process_kind, or-ed; 0: only seen in the use samples */
	int64_t pid;    /* as the driver says it: of the host's PID namespace */
	int32_t gpu_instance, compute_instance; /* -1 none */
	/* proc_* metrics: memory, and use since the round before or in the last
	 * second, whichever is longer; 0 of who did nothing, absent where the card
	 * does not tell (MIG). */
	struct sample sample;
};

/* A value of the driver's own history, finer than our rounds. Points come once
 * each, in order for one board and metric, and late: the ring of power (2.4 s
 * long) is read every 2 s, those of utilisation (14 s) every 10 s. */
struct ring_point {
	uint32_t board;
	uint32_t metric; /* METRIC_power_w (every 20 ms), METRIC_util_pct, METRIC_mem_util_pct */
	int64_t utc_ns;
	double value;
};

/* What the driver tells by itself; its own numbers. X(id, bit, in words) */
#define EVENT_LIST(X)                                             \
	X(XID, 0x8, "Xid")                                        \
	X(ECC_DOUBLE, 0x2, "double-bit ECC error")                \
	X(UNAVAILABLE, 0x4000, "the card is no longer available") \
	X(RECOVERY, 0x8000, "recovery action changed")

enum event_type {
#define X(id, bit, words) EVENT_##id = bit,
	EVENT_LIST(X)
#undef X
};

/* It has no time of its own: it happened after since_ns, at the latest at the
 * snapshot's utc_ns. */
struct board_event {
	uint32_t board; /* place in snapshot.boards: a card, also for its MIG instances */
	uint32_t type;  /* enum event_type */
	uint64_t data;  /* number of the Xid */
	int32_t gpu_instance, compute_instance; /* -1 none */
	int64_t since_ns;                       /* UTC */
};

/* What a function of the library has cost since the child started. */
struct call_cost {
	char name[48];
	uint64_t count, failed;
	int64_t total_ns, max_ns;
};

struct snapshot {
	int64_t utc_ns, monotonic_ns; /* when the round began */
	int64_t wall_ns, cpu_ns;      /* what the round took the child, its own waiting left out */
	int64_t rss_bytes;            /* of the child; 0 unknown */
	uint32_t groups;              /* that were asked, enum collect_group */
	uint32_t calls;               /* of the library in this round */
	char slowest[48];             /* of them */
	int64_t slowest_ns;
	/* Goes up when counters may have started again: driver loaded anew, child
	 * restarted, a counter seen to go backwards. */
	uint32_t generation;
	uint32_t junk_rows;       /* process use rows of this round that can't be true, left out */
	char driver[32];          /* "580.159.04" */
	char cuda[16];            /* "13.0": the newest CUDA this driver runs */
	char nvml[32];            /* version of the library; differs after half an upgrade */
	char library[256];        /* file that was loaded */
	char wrapper[256];        /* file that answers instead; "" none */
	VEC(struct board) boards; /* a card before its MIG instances */
	VEC(struct board_process) processes;
	VEC(struct ring_point) points;
	VEC(struct board_event) events; /* only with COLLECT_EVENTS; each comes once */
	VEC(struct call_cost) costs;    /* only with COLLECT_COSTS */
};

void snapshot_done(struct snapshot *snapshot);

/* The event as a fault, if it is one: an Xid. */
bool board_event_fault(const struct snapshot *snapshot, const struct board_event *event,
		       struct fault *ret_fault);
/* In English, for N_(). */
const char *board_event_words(uint32_t type);

/* `board`'s value; false if there is none, then *ret_origin says why. NULL is
 * allowed for either. */
bool board_get(const struct board *board, enum metric metric, double *ret_value,
	       enum origin *ret_origin);
