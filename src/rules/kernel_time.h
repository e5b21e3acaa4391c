/*
 * kernel_time.h - what the rules about single kernels share: a finding on a
 * kernel, its name, and the time that a share of it is.
 */
#pragma once

#include "rules/rule.h"

/* A finding on facts.kernels[index], with its device and the grade of its
 * verdict. */
struct finding *kernel_finding(const struct facts *facts, const struct rule *rule, uint32_t index,
			       enum severity severity, struct findings *findings);

/* The function's name without its arguments; "unnamed". */
const char *kernel_where(const struct facts *facts, const struct kernel_fact *kernel,
			 struct findings *findings);

/* Impact from nothing to `share` (0..1; NAN: unknown) of all launches in the
 * timeline, or of one launch where only counters were taken. */
void kernel_impact(const struct facts *facts, const struct kernel_fact *kernel,
		   struct finding *finding, double share);

/* The numbers that decided the kernel's verdict, under NVIDIA's names; without
 * those that the finding has. */
void kernel_numbers(const struct kernel_fact *kernel, struct finding *finding, const char *where);

/* The part of stalled warps that wait for `reason`; 0 if it was not seen. */
double kernel_stall(const struct kernel_fact *kernel, const char *reason);

/* Is the verdict `bound`, on that unit where `unit` is not NULL? */
bool kernel_bound_by(const struct kernel_fact *kernel, enum bound_class bound, const char *unit);
