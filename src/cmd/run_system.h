/*
 * run_system.h - samples of the cards beside a run, into the same profile.
 *
 * Fast values (power, clocks, utilisation) ten times a second, SM active and the
 * like, memory and counters once a second, processes every five, and the
 * Xids that NVML tells; less where the driver is slow. A driver that does not
 * answer costs the samples, not the run.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "model/sink.h"

struct run_system;

/* Starts the child that asks the driver: before threads, before signals are
 * blocked. `library` as collector_opts. */
int run_system_open(const char *library, struct sink *sink, struct run_system **ret_system,
		    struct err *err);
void run_system_close(struct run_system *system);
DEFINE_OWNED(run_system, run_system_close);

/* Ask if it is time, take what has come; does not wait. Fails as the sink does. */
int run_system_tick(struct run_system *system, struct err *err);
/* Processor time of the children that asked, so far. */
int64_t run_system_cpu_ns(const struct run_system *system);
/* Why there are no samples, once; NULL. */
const char *run_system_complaint(const struct run_system *system);
