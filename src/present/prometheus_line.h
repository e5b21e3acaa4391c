/*
 * prometheus_line.h - lines of both text forms, and how they differ.
 *
 *	prom_family(&prom, "sonde_gpu_pcie_bytes", PROM_COUNTER, "Sent or received.");
 *	prom_labels_text(&labels, "gpu", "0");
 *	prom_sample(&prom, &labels, value);
 *
 * A family's heading is written with its first sample, so that a family
 * without samples leaves no trace. Private to present/.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum prom_type { PROM_GAUGE, PROM_COUNTER, PROM_INFO };

struct prom {
	struct buf *out;
	bool openmetrics;
	/* The family being written; texts are the caller's. */
	const char *name;
	enum prom_type type;
	const char *help;
	bool begun;
};

/* `name` is without "_total" and "_info", which samples of those types get. The
 * unit is the end of the name, where that is one. Nothing happens if it is the
 * family being written. */
void prom_family(struct prom *prom, const char *name, enum prom_type type, const char *help);

/* Labels, as the text between the braces. */
struct prom_labels {
	struct buf text;
};

void prom_labels_done(struct prom_labels *labels);
/* A label; an empty value is the same as none in both forms, and left out. */
void prom_labels_text(struct prom_labels *labels, const char *name, const char *value);
void prom_labels_i64(struct prom_labels *labels, const char *name, int64_t value);

/* A line of the family. `labels` may be NULL. Not finite: no line. */
void prom_sample(struct prom *prom, const struct prom_labels *labels, double value);
/* The same with one label more. */
void prom_sample_with(struct prom *prom, const struct prom_labels *labels, const char *name,
		      const char *value, double number);
/* OpenMetrics ends with a mark, so that a cut answer is seen. */
void prom_end(struct prom *prom);
