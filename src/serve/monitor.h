/*
 * monitor.h - the always-on recorder: rounds of questions to the driver, on and
 * on, into files, lines, metrics and a flight recorder.
 *
 * It goes on where it can: without a driver it waits for one, a driver that
 * hangs is told once and asked again, a disk that is full is got over, calls
 * that get slow make it ask less. SIGINT and SIGTERM end it, with files
 * finished; SIGHUP does nothing; a reader of its lines that goes away ends it
 * too. These signals are blocked in the caller from then on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "collect/board.h"
#include "present/ticker.h"

struct monitor_opts {
	int64_t interval_ns;
	int64_t count; /* rounds; 0: until it is told to end */
	/* files */
	const char *dir; /* NULL: none */
	int64_t keep_ns, keep_bytes;
	bool flight; /* needs dir */
	/* lines */
	bool has_form;
	enum ticker_form form;
	/* metrics: exporter.h */
	const char *listen; /* NULL: none */
	const char *listen_names;
	bool dcgm_names, processes;
	/* the driver: collector.h */
	const char *library, *root;
	bool wake;
	bool costs;             /* of each call, at the end */
	const char *kernel_log; /* a file to follow; NULL: /dev/kmsg, then the usual files */
	/* Lines of the form; a failure ends the monitor. */
	int (*print)(void *arg, struct buf *out, struct err *err);
	/* A line about the monitor itself. */
	void (*tell)(void *arg, const char *line);
	void *arg;
};

/* What it took. */
struct monitor_cost {
	int64_t rounds, snapshots; /* asked; answered */
	int64_t wall_ns;
	int64_t own_cpu_ns, driver_cpu_ns; /* of this process, of the one that asks the driver */
	int64_t rss_bytes, driver_rss_bytes;
	char slowest[48]; /* call */
	int64_t slowest_ns;
	VEC(struct call_cost) calls; /* dearest first */
};
void monitor_cost_done(struct monitor_cost *cost);

/* Until the end. ERR_MISSING, ERR_BUSY: the first round failed, and there are
 * neither files nor metrics to wait for it. */
int monitor_run(const struct monitor_opts *opts, struct monitor_cost *ret_cost, struct err *err);
