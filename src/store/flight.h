/*
 * flight.h - the last minutes of snapshots in memory, to be saved when something
 * strikes.
 *
 * Snapshots collect in a block; a full block is compressed and joins a queue
 * from which the oldest go, by age and by a fixed budget of bytes. Saving writes
 * a profile a block at a time, so that the program can go on measuring
 * meanwhile. Log lines are kept beside, the last of them. Nothing here grows
 * with time: boards are known by UUID, processes only by pid.
 *
 * Not thread safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "collect/board.h"
#include "model/event.h"
#include "model/session.h"

struct flight;

struct flight_opts {
	int64_t span_ns;     /* kept; 0: 10 minutes */
	size_t budget_bytes; /* of compressed blocks; 0: 6 MiB */
	int64_t interval_ns; /* between snapshots, as planned */
};

struct flight *flight_new(const struct flight_opts *opts);
void flight_free(struct flight *flight);
DEFINE_OWNED(flight, flight_free);

void flight_add(struct flight *flight, const struct snapshot *snapshot);

/* Something that belongs into the record as a mark: a fault of the kernel log,
 * say. `pci_bus` is "" where it is of no card. */
void flight_line(struct flight *flight, int64_t utc_ns, enum mark_kind kind, const char *pci_bus,
		 const char *text, const char *detail);

struct flight_state {
	int64_t snapshots, first_utc_ns, last_utc_ns; /* kept at present */
	size_t bytes;                                 /* of the blocks */
	int64_t dropped; /* snapshots that went by budget, not by age */
};
struct flight_state flight_state(const struct flight *flight);

/* Called with the session of the file when all events are in it: to name
 * processes, say. */
typedef void flight_describe(void *arg, struct session *session);

/* Begin to save what is kept now into a profile at `path`, which replaces one
 * that is there; `why` becomes a note. One at a time: ERR_BUSY. */
int flight_save(struct flight *flight, const char *path, const char *why, struct err *err);
bool flight_saving(const struct flight *flight);
/* The next piece: 1: there is more; 0: the profile is whole and at its place.
 * After a failure nothing is left of it. */
int flight_save_step(struct flight *flight, flight_describe *describe, void *arg, struct err *err);
