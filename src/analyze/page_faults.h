/* page_faults.h - what the driver did for unified memory, by device and kind. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct facts;
struct store;

/* What the driver did for unified memory: page faults by who met them and how, and what it
 * does about pages that several fight for (CUPTI's records of unified memory). */
struct page_fault_fact {
	uint32_t device;       /* SESSION_NONE: of the CPU, or of no single device */
	uint32_t name;         /* string: "GPU page faults (read)" */
	int64_t count, faults; /* faults are served in groups: groups, faults in all */
	int64_t union_ns;      /* from when a group is begun with to when the device may go on */
};

/* Fills facts->page_faults and the sums of the devices. */
int analyze_page_faults(struct store *store, struct facts *facts, struct err *err);
