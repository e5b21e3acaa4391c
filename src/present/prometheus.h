/*
 * prometheus.h - a snapshot as Prometheus text 0.0.4 or OpenMetrics 1.0.
 *
 * Names and units are an interface that dashboards and alerts rely on:
 * doc/formats/prometheus.md lists them; add, never rename. All values are in
 * base units, shares are 0..1. What was not measured has no line: no 0, no NaN.
 *
 * To add a value of the card: a line in prometheus_gpu.c and one in the page.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "collect/board.h"
#include "collect/proc.h"

/* How often a card has reported one Xid since the exporter began. */
struct prometheus_xid {
	char pci_bus[20]; /* as the kernel writes it; the function may be missing */
	uint32_t xid;
	uint64_t count;
	int64_t last_utc_ns;
};

/* What the exporter itself has done and cost since it began. */
struct prometheus_own {
	int64_t start_utc_ns;         /* 0 unknown */
	int64_t cpu_ns;               /* of this process and of its helpers so far */
	int64_t rss_bytes;            /* of this process; 0 unknown */
	int64_t collector_rss_bytes;  /* of the one that asks the driver */
	int64_t interval_ns;          /* between snapshots, as it is now; 0 unknown */
	uint64_t snapshots, failures; /* rounds that gave one, that gave none */
	uint64_t collectors, hung;    /* helper processes started, lost to a driver call */
	uint64_t answered, refused;   /* HTTP requests */
	uint64_t connections, expired, evicted; /* HTTP connections */
};

struct prometheus_input {
	const struct snapshot *snapshot; /* NULL: none, or one too old to be shown */
	/* Who a PID is; may be NULL, and may return NULL. */
	const struct proc *(*find_proc)(void *arg, int64_t pid);
	void *arg;
	const struct prometheus_xid *xids;
	size_t xid_count;
	struct prometheus_own own;
	const char *hostname; /* for the DCGM names; NULL unknown */
};

struct prometheus_opts {
	bool openmetrics; /* else text 0.0.4 */
	bool dcgm_names;  /* also the names that Grafana's board 12239 asks for */
	bool processes;   /* also users and command lines, which are private */
};

/* The Content-Type of what prometheus_write writes. */
const char *prometheus_type(bool openmetrics);

/* Append all of it to `out`. */
void prometheus_write(const struct prometheus_input *input, const struct prometheus_opts *opts,
		      struct buf *out);
