/*
 * collector.h - snapshots of the cards, from a child that talks to the driver.
 *
 * A driver call can hang for ever, in a way that no signal ends. So the library
 * is opened only in a forked child, which answers each question with a snapshot
 * over a socket; this side waits with a deadline. A child that is late is
 * killed and replaced; one that can't be killed is abandoned, reported, and not
 * replaced before it is gone. The child never prints, ignores SIGINT, SIGTERM
 * and SIGHUP (it ends when this side does), and closes every descriptor of ours.
 *
 * Open it early: the child begins with the memory this process has then.
 *
 * Simple use:                          With an event loop:
 *
 *	collector_open(&opts, &c, err)      collector_open(&opts, &c, err)
 *	collector_take(c, &snap, err)       timer: collector_ask(c, groups, err)
 *	...                                 collector_fd(c) readable, or deadline:
 *	collector_close(c)                          collector_take(c, &snap, err)
 *
 * Rates, GPM and process use are of the time between two rounds: a program that
 * shows one picture takes two, at least 100 ms apart.
 *
 * Not thread safe; fork before threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/own.h"
#include "collect/board.h"

/*
 * What to ask in a round, with the CPU time it costs for one H200 (doc/measured.md).
 * What changes slowly is not asked again in every round: HEALTH values are
 * repeated for 5 s, limits and lists of cards for a minute, highest clocks and
 * thresholds for ten. Who stores what a round says asks for HEALTH less often than
 * that, so that no old value is taken for a new one.
 */
enum collect_group {
	COLLECT_FAST = 1 << 0,      /* power, temperature, utilisation, clocks, clock reasons:
				       0.1 ms */
	COLLECT_COUNTERS = 1 << 1,  /* time under the power limit, NVLink bytes, memory
				       temperature: less than 0.1 ms */
	COLLECT_HEALTH = 1 << 2,    /* ECC, remapped rows, replays, link, BAR1, fan: 3 ms */
	COLLECT_GPM = 1 << 3,       /* SM active, occupancy, tensor, DRAM, PCIe, NVLink: 1.2 ms */
	COLLECT_PROCESSES = 1 << 4, /* lists of processes 0.1 ms, their use 2.4 ms */
	COLLECT_RINGS = 1 << 5,  /* the driver's own history: 1.5 ms every 2 s, 3 ms every 10 s */
	COLLECT_ENERGY = 1 << 6, /* read once a minute (8 ms), integrated between */
	COLLECT_COSTS = 1 << 7,  /* snapshot.costs and rss_bytes */
	COLLECT_FRESH = 1 << 8, /* ask again what would be repeated: cards, limits, health. 15 ms */
	COLLECT_MEMORY = 1 << 9,   /* of the card: 0.1 ms at rest, 0.4 ms while it is allocated */
	COLLECT_THERMAL = 1 << 10, /* time in thermal slowdown and under the power brake: 0.4 ms */
	/* PCIe bytes and their rate by counter: 0.4 ms; twice that and 10 ms of
	 * waiting where only GPM could tell how often it wrapped, and is not asked. Drivers before
	 * R555 have no counter: 40 ms of waiting, for one card a round, each every 10 s. */
	COLLECT_PCIE = 1 << 11,
	COLLECT_PCIE_ELSE = 1 << 12, /* the same, of cards where GPM, asked too, does not tell */
	COLLECT_PIPES = 1 << 13,     /* with GPM: what it can tell beside: 1 ms */
	/* For a row of `nvidia-smi dmon -s pucvmet` beside FAST and MEMORY, and no
	 * value more: time under the power limit, memory temperature, ECC errors (10 us
	 * in all) and PCIe rates, which are read every 2 s (0.7 ms; where they are not
	 * calm 0.5 ms more, for a rate of 10 ms as dmon has one of 20 ms); replays (0.1
	 * ms); BAR1 and protected memory (0.45 ms). */
	COLLECT_ROW = 1 << 14,
	COLLECT_REPLAYS = 1 << 15,
	COLLECT_BAR1 = 1 << 16,
	/* What the driver tells by itself since the round before, from the first one on
	 * that asks for it: Xids; one call. */
	COLLECT_EVENTS = 1 << 18,
	COLLECT_DMON = COLLECT_FAST | COLLECT_MEMORY | COLLECT_ROW | COLLECT_REPLAYS |
		       COLLECT_BAR1 | COLLECT_THERMAL,
	/* All but the costs. */
	COLLECT_ALL = COLLECT_FAST | COLLECT_COUNTERS | COLLECT_HEALTH | COLLECT_GPM |
		      COLLECT_PROCESSES | COLLECT_RINGS | COLLECT_ENERGY | COLLECT_MEMORY |
		      COLLECT_THERMAL | COLLECT_PCIE | COLLECT_PIPES,
};

struct collector_opts {
	const char *library; /* file to open; NULL: $SONDE_NVML, then the usual places */
	const char *root;    /* in place of "/" for /sys and /proc; NULL */
	uint32_t groups;     /* for collector_take without collector_ask; 0: COLLECT_ALL */
	int64_t deadline_ns; /* for an answer; 0: 10 s (a card without persistence mode takes
				seconds to wake) */
	bool wake;           /* ask cards that sleep, too */
	int (*kill)(pid_t pid, int signal); /* for tests; NULL: kill(2) */
};

enum collector_state {
	COLLECTOR_OK,        /* the last round gave a snapshot */
	COLLECTOR_STARTING,  /* nothing asked yet */
	COLLECTOR_NO_DRIVER, /* no library, no driver, mismatch, no permission: `status` */
	COLLECTOR_HUNG, /* no answer in time; the child was killed, the next round has another */
	COLLECTOR_ABANDONED, /* no answer, and the child can't be killed */
	COLLECTOR_DIED,      /* the child died (crash in the library); the next round has another */
};

struct collector;

/* Start the child; the driver is first asked in the first round. ERR_IO: no
 * process or socket to be had. Strings of `opts` must outlive the collector. */
int collector_open(const struct collector_opts *opts, struct collector **ret_collector,
		   struct err *err);
/* NULL is a no-op. Does not wait for a child that hangs. */
void collector_close(struct collector *collector);
DEFINE_OWNED(collector, collector_close);

/* Send the question for one round and return. A no-op while one is open.
 * Fails as collector_take does. */
int collector_ask(struct collector *collector, uint32_t groups, struct err *err);

/*
 * The answer, asking first if nothing was asked. Waits until the deadline of
 * the question. `snapshot` is overwritten (start with all-zero, reuse it,
 * snapshot_done at the end); after a failure it is unchanged.
 *
 * ERR_MISSING: no driver (collector_state, collector_status); asking again is
 * cheap and finds one that appears. ERR_BUSY: hung or abandoned, or restarting
 * too soon after several failures; the line tells a person what to do, and is
 * worth showing once for each change of collector_state. ERR_IO: the child died.
 */
int collector_take(struct collector *collector, struct snapshot *snapshot, struct err *err);

/* Readable when collector_take would not wait; -1 while there is no child. Ask
 * again after each call of the above: a new child has a new descriptor. */
int collector_fd(const struct collector *collector);
/* CLOCK_MONOTONIC time at which collector_take gives up; 0: nothing asked. */
int64_t collector_deadline_ns(const struct collector *collector);

enum collector_state collector_state(const struct collector *collector);
/* NVML's number of the last failure to start (9 driver not loaded, 12 library
 * not found, 18 driver and library differ, ...); 0 none. */
int collector_status(const struct collector *collector);
/* Children started so far, and ended because they hung. */
uint32_t collector_started(const struct collector *collector);
uint32_t collector_hung(const struct collector *collector);
/* The child, for accounts of our own cost; -1 none. */
pid_t collector_pid(const struct collector *collector);
/* Processor time of all children so far. */
int64_t collector_cpu_ns(const struct collector *collector);
