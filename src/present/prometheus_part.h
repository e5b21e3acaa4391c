/*
 * prometheus_part.h - the parts of what an exporter shows.
 *
 * Private to present/.
 */
#pragma once

#include "present/prometheus.h"
#include "present/prometheus_line.h"

/* Of each board of the snapshot, in its order: gpu, uuid, pci_bus and, of a MIG
 * instance, mig_profile, gpu_instance and compute_instance. */
void prometheus_board_labels(const struct snapshot *snapshot, const struct board *board,
			     struct prom_labels *ret);

/* The card of a MIG instance, else `board` itself. */
const struct board *prometheus_card(const struct snapshot *snapshot, const struct board *board);

/* Values of boards; `labels` has an element for each. */
void prometheus_boards(struct prom *prom, const struct snapshot *snapshot,
		       const struct prom_labels *labels);

/* What runs on them. */
void prometheus_processes(struct prom *prom, const struct prometheus_input *input, bool private,
			  const struct prom_labels *labels);

/* The six DCGM names, with DCGM's labels and units. */
void prometheus_dcgm(struct prom *prom, const struct prometheus_input *input);
