#include "present/prometheus.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "know/know.h"
#include "present/prometheus_line.h"
#include "present/prometheus_part.h"

static void put_one(struct prom *prom, const char *name, enum prom_type type, const char *help,
		    double value)
{
	prom_family(prom, name, type, help);
	prom_sample(prom, NULL, value);
}

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static void put_build(struct prom *prom)
{
	prom_family(prom, "sonde_build", PROM_INFO, "What answers.");
	prom_sample_with(prom, NULL, "version", SONDE_VERSION, 1);
}

static void put_driver(struct prom *prom, const struct snapshot *snapshot)
{
	struct prom_labels labels = { 0 };

	put_one(prom, "sonde_driver_up", PROM_GAUGE,
		"0: the driver does not answer, or is not there.", snapshot != NULL);
	if (!snapshot)
		return;
	prom_labels_text(&labels, "driver", snapshot->driver);
	prom_labels_text(&labels, "cuda", snapshot->cuda);
	prom_labels_text(&labels, "nvml", snapshot->nvml);
	prom_labels_text(&labels, "wrapper", snapshot->wrapper);
	prom_family(prom, "sonde_driver", PROM_INFO,
		    "Versions of driver, of the newest CUDA it runs, and of its library.");
	prom_sample(prom, &labels, 1);
	prom_labels_done(&labels);
}

static void put_snapshot(struct prom *prom, const struct snapshot *snapshot)
{
	put_one(prom, "sonde_snapshot_timestamp_seconds", PROM_GAUGE,
		"When the values were asked for.", seconds(snapshot->utc_ns));
	put_one(prom, "sonde_snapshot_duration_seconds", PROM_GAUGE,
		"How long the driver took to answer.", seconds(snapshot->wall_ns));
	put_one(prom, "sonde_snapshot_cpu_seconds", PROM_GAUGE, "CPU time that these values cost.",
		seconds(snapshot->cpu_ns));
	put_one(prom, "sonde_snapshot_calls", PROM_GAUGE,
		"Calls of the driver's library for these values.", snapshot->calls);
	if (*snapshot->slowest) {
		prom_family(prom, "sonde_snapshot_slowest_call_seconds", PROM_GAUGE,
			    "The slowest of these calls.");
		prom_sample_with(prom, NULL, "call", snapshot->slowest,
				 seconds(snapshot->slowest_ns));
	}
	put_one(prom, "sonde_snapshot_junk_rows", PROM_GAUGE,
		"Rows of process use that can't be true and were left out.", snapshot->junk_rows);
}

static void put_own(struct prom *prom, const struct prometheus_own *own)
{
	if (own->start_utc_ns)
		put_one(prom, "sonde_self_start_timestamp_seconds", PROM_GAUGE,
			"When this exporter began.", seconds(own->start_utc_ns));
	if (own->interval_ns)
		put_one(prom, "sonde_self_interval_seconds", PROM_GAUGE,
			"Time between snapshots, as it is now.", seconds(own->interval_ns));
	put_one(prom, "sonde_self_cpu_seconds", PROM_COUNTER, "CPU time that this exporter took.",
		seconds(own->cpu_ns));
	prom_family(prom, "sonde_self_resident_memory_bytes", PROM_GAUGE,
		    "Memory of this exporter and of its helper.");
	if (own->rss_bytes)
		prom_sample_with(prom, NULL, "process", "sonde", (double)own->rss_bytes);
	if (own->collector_rss_bytes)
		prom_sample_with(prom, NULL, "process", "collector",
				 (double)own->collector_rss_bytes);
	put_one(prom, "sonde_self_snapshots", PROM_COUNTER, "Snapshots taken.",
		(double)own->snapshots);
	put_one(prom, "sonde_self_snapshot_failures", PROM_COUNTER, "Rounds that gave none.",
		(double)own->failures);
	put_one(prom, "sonde_self_collector_starts", PROM_COUNTER,
		"Helper processes started to talk to the driver.", (double)own->collectors);
	put_one(prom, "sonde_self_collector_hangs", PROM_COUNTER,
		"Helper processes lost to a driver call that did not return.", (double)own->hung);
	prom_family(prom, "sonde_self_http_requests", PROM_COUNTER,
		    "Requests, by what became of them.");
	prom_sample_with(prom, NULL, "result", "answered", (double)own->answered);
	prom_sample_with(prom, NULL, "result", "refused", (double)own->refused);
	put_one(prom, "sonde_self_http_connections", PROM_COUNTER, "Connections accepted.",
		(double)own->connections);
	prom_family(prom, "sonde_self_http_connections_cut", PROM_COUNTER,
		    "Connections ended by a time-out, or to make room for others.");
	prom_sample_with(prom, NULL, "cause", "expired", (double)own->expired);
	prom_sample_with(prom, NULL, "cause", "evicted", (double)own->evicted);
}

/* "0000:83:00.0" and "0000:83:00" are one card. */
static bool same_bus(const char *board, const char *fault)
{
	size_t len = strlen(fault);

	return len && !strncasecmp(board, fault, len) && (!board[len] || board[len] == '.');
}

/* "fatal", "error", "warn" or "info", so that an alert need not list numbers; ""
 * for a number that nobody has described. */
static const char *severity(uint32_t xid)
{
	struct know_hits hits;
	const char *column, *value;
	char text[24];

	(void)snprintf(text, sizeof(text), "Xid %u", xid);
	if (know_find(text, &hits, NULL) < 0 || !hits.exact)
		return "";
	for (size_t i = 0; know_field(&hits.at[0], i, &column, &value); i++) {
		if (!strcmp(column, "severity") && value)
			return value;
	}
	return "";
}

static void xid_labels(const struct snapshot *snapshot, const struct prometheus_xid *xid,
		       struct prom_labels *ret)
{
	const struct board *found = NULL;

	for (size_t i = 0; snapshot && !found && i < snapshot->boards.count; i++) {
		const struct board *board = &snapshot->boards.at[i];

		if (board->parent < 0 && same_bus(board->pci_bus, xid->pci_bus))
			found = board;
	}
	if (found)
		prometheus_board_labels(snapshot, found, ret);
	else
		prom_labels_text(ret, "pci_bus", xid->pci_bus);
	prom_labels_i64(ret, "xid", xid->xid);
	prom_labels_text(ret, "severity", severity(xid->xid));
}

static void put_xids(struct prom *prom, const struct prometheus_input *input, bool times)
{
	for (size_t i = 0; i < input->xid_count; i++) {
		const struct prometheus_xid *xid = &input->xids[i];
		struct prom_labels labels = { 0 };

		xid_labels(input->snapshot, xid, &labels);
		prom_sample(prom, &labels, times ? seconds(xid->last_utc_ns) : (double)xid->count);
		prom_labels_done(&labels);
	}
}

static void put_faults(struct prom *prom, const struct prometheus_input *input)
{
	prom_family(prom, "sonde_gpu_xid_errors", PROM_COUNTER,
		    "Xid errors since this exporter began, by number.");
	put_xids(prom, input, false);
	prom_family(prom, "sonde_gpu_xid_last_timestamp_seconds", PROM_GAUGE,
		    "When the card last reported this Xid.");
	put_xids(prom, input, true);
}

static void put_cards(struct prom *prom, const struct prometheus_input *input,
		      const struct prometheus_opts *opts)
{
	const struct snapshot *snapshot = input->snapshot;
	struct prom_labels *labels = mem_zero((snapshot->boards.count + 1) * sizeof(*labels));

	for (size_t i = 0; i < snapshot->boards.count; i++)
		prometheus_board_labels(snapshot, &snapshot->boards.at[i], &labels[i]);
	prometheus_boards(prom, snapshot, labels);
	prometheus_processes(prom, input, opts->processes, labels);
	if (opts->dcgm_names)
		prometheus_dcgm(prom, input);
	for (size_t i = 0; i < snapshot->boards.count; i++)
		prom_labels_done(&labels[i]);
	free(labels);
}

const char *prometheus_type(bool openmetrics)
{
	return openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
			   : "text/plain; version=0.0.4; charset=utf-8";
}

void prometheus_write(const struct prometheus_input *input, const struct prometheus_opts *opts,
		      struct buf *out)
{
	struct prom prom = { .out = out, .openmetrics = opts->openmetrics };

	put_build(&prom);
	put_driver(&prom, input->snapshot);
	if (input->snapshot)
		put_cards(&prom, input, opts);
	put_faults(&prom, input);
	if (input->snapshot)
		put_snapshot(&prom, input->snapshot);
	put_own(&prom, &input->own);
	prom_end(&prom);
}
