/*
 * tell_fault.h - what the rules on faults say in the same words.
 */
#pragma once

#include "rules/rule.h"

/* "Xid 79 (GPU_HAS_FALLEN_OFF_THE_BUS)" */
const char *tell_fault(struct findings *findings, const struct fault_group *group);
/* "3 times, first after 12.1 s", "once (line 12)": how often and when. */
const char *tell_fault_when(const struct facts *facts, struct findings *findings,
			    const struct fault_group *group);
/* "train (pid 12)", "train (pid 12) and 2 others"; NULL unknown. */
const char *tell_fault_process(struct findings *findings, const struct fault_group *group);
