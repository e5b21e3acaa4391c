/*
 * roster.h - who uses which card: a snapshot joined with /proc, and since when
 * each holder of memory has been without work.
 *
 * "Without work" needs evidence: the driver's use samples of the process where
 * the card gives them, else the card's own utilisation (a card on which nothing
 * ran had nobody at work). The driver's ring of utilisation reaches back
 * further than our first round, so that even one shot can tell some seconds.
 * What nobody measured is unknown, not idle.
 *
 * Not thread safe. Results hold until the next update.
 */
#pragma once

#include <stdint.h>

#include "base/own.h"
#include "collect/board.h"
#include "collect/proc.h"

struct roster_row {
	uint32_t place; /* in snapshot.processes */
	uint32_t board; /* in snapshot.boards */
	struct proc proc;
	/* At least so long without work; 0: at work in the last round; -1 unknown. */
	int64_t idle_ns;
};

struct roster;

/* `procs` is borrowed; NULL: everybody is PROC_FOREIGN. */
struct roster *roster_new(struct procs *procs);
void roster_free(struct roster *roster);
DEFINE_OWNED(roster, roster_free);

/* One row for each process of the snapshot, in its order. */
const struct roster_row *roster_update(struct roster *roster, const struct snapshot *snapshot,
				       size_t *ret_count);

/* In a PID namespace of our own, when the driver's PIDs mean nothing here: who
 * of this namespace has an NVIDIA device open and is in no row. Of the last
 * update. */
const struct proc *roster_openers(const struct roster *roster, size_t *ret_count);

/* Memory of a card in use that no process of the snapshot accounts for, beyond
 * what is the driver's; -1 unknown (a process or the card does not tell). Of a
 * card with MIG instances: unknown. */
int64_t roster_unaccounted_bytes(const struct snapshot *snapshot, uint32_t board);
