/*
 * sampler.h - snapshots into a sink, as a recording that report reads.
 *
 * Makes a source "nvml", a device for each board (by UUID), a LANE_BOARD lane
 * for each board and a LANE_PROCESS lane for each process on it, envs (driver,
 * cuda, origins that are not the usual), samples, and marks: MARK_THROTTLE
 * where the clock reasons of a board changed, MARK_TEXT where a board was lost,
 * came back, its counters started again, the driver did not answer, or told something
 * that is no Xid (those are the caller's: board_event_fault). Times are UTC ns.
 *
 * Names of processes are not its business: whoever knows them (proc.h) completes
 * session->processes rows of this source.
 *
 * One sampler for one sink; when a recording goes on in another file, end it
 * and make another.
 */
#pragma once

#include "base/err.h"
#include "base/own.h"
#include "collect/board.h"
#include "model/sink.h"

struct sampler;

/* `interval_ns`: between snapshots, as planned; 0 unknown. */
struct sampler *sampler_new(struct sink *sink, int64_t interval_ns);
void sampler_free(struct sampler *sampler);
DEFINE_OWNED(sampler, sampler_free);

/* Push what `snapshot` says. Fails as the sink does. */
int sampler_push(struct sampler *sampler, const struct snapshot *snapshot, struct err *err);

/* A round without values: counted as lost, with a mark where the silence begins
 * or its reason changes, and where it ends. `why`: a line for people. */
int sampler_silence(struct sampler *sampler, int64_t utc_ns, const char *why, struct err *err);

/* The source, for further events of the same recording (Xid marks, notes). */
uint32_t sampler_source(const struct sampler *sampler);
/* The board's lane; SESSION_NONE if no snapshot had it. By the kernel's bus
 * address, 0000:83:00.0 (function may be missing). */
uint32_t sampler_lane(const struct sampler *sampler, const char *pci_bus);
