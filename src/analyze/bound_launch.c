/*
 * The class that no hardware counter shows: a kernel that is shorter than what
 * the host needs to launch the next. It runs as fast as it may and the device
 * is idle all the same, so this stands above what the counters say.
 */
#include "analyze/bound.h"

#include <math.h>

/* Step 1 of doc/bound.md: the gap before a kernel is longer than the kernel. */
static const double GAP_SHARE = 0.5;
/* Of the kernel's launches that were recorded, as for the rule launch_bound. */
static const double COVERAGE_LEAST = 0.8;
/* Fewer launches are an anecdote; our choice. */
static const int64_t LAUNCHES_LEAST = 10;
static const double THRESHOLD_SHARE = 0.03;

/* Of kernel and gap together the gap's part; NAN unknown. */
static double gap_share(const struct kernel_fact *kernel)
{
	double gap = (double)kernel->launch_idle_ns, run = (double)kernel->sum_ns;

	if (kernel->launch_idle_ns == FACT_UNKNOWN || kernel->collective ||
	    kernel->count < LAUNCHES_LEAST || !(kernel->coverage >= COVERAGE_LEAST) ||
	    !(gap + run > 0))
		return NAN;
	return gap / (gap + run);
}

static void number(struct bound_fact *bound, const char *name, double value, const char *unit)
{
	*VEC_ADD(&bound->numbers) = (struct number){ name, value, unit };
}

static void judge(const struct facts *facts, struct kernel_fact *kernel, double share)
{
	struct bound_fact *bound = &kernel->bound;

	if (kernel->has_bound) {
		bound->runner_up = bound->bound;
		bound->runner_up_unit = bound->unit;
	} else {
		bound->runner_up_unit = "";
	}
	bound->bound = BOUND_LAUNCH;
	bound->unit = bound->next = "";
	bound->grade = share - GAP_SHARE < THRESHOLD_SHARE ? GRADE_MEDIUM : GRADE_HIGH;
	if (facts->host_time_inflated) {
		bound->grade--;
		bound->next = "record again with with_stack=False: stacks slow the launches";
	}
	bound->numbers.count = bound->notes.count = 0;
	number(bound, "kernels.mean_ns", (double)kernel->sum_ns / (double)kernel->count, "ns");
	number(bound, "kernels.launch_idle_ns / count",
	       (double)kernel->launch_idle_ns / (double)kernel->count, "ns");
	kernel->has_bound = true;
}

void bound_launch(struct facts *facts)
{
	for (size_t i = 0; i < facts->kernels.count; i++) {
		double share = gap_share(&facts->kernels.at[i]);

		if (share > GAP_SHARE)
			judge(facts, &facts->kernels.at[i], share);
	}
}
