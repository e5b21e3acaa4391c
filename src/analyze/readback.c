#include "analyze/timeline.h"

#include <math.h>
#include <stdlib.h>

static int by_cost(const void *a, const void *b)
{
	const struct readback_fact *x = a, *y = b;

	if (x->blocked_ns + x->idle_ns != y->blocked_ns + y->idle_ns)
		return x->blocked_ns + x->idle_ns > y->blocked_ns + y->idle_ns ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

/* Read-backs are a phase by what they do, not by name. */
static void readback_phase(const struct timeline *timeline, struct facts *facts)
{
	const struct tl_ops *ops = &timeline->ops;
	struct phase_fact *fact;

	if (!timeline->readbacks.count)
		return;
	fact = VEC_ADD(&facts->phases);
	fact->phase = PHASE_READBACK;
	fact->name = facts->readbacks.at[0].op;
	for (size_t i = 0; i < timeline->readbacks.count; i++) {
		const struct tl_readback *at = &timeline->readbacks.at[i];

		fact->count++;
		fact->wall_ns = capped_add(fact->wall_ns, at->blocked_ns);
		fact->idle_ns = capped_add(fact->idle_ns, at->idle_ns);
		fact->gpu_ns = capped_add(fact->gpu_ns, op_ns(ops, at->op));
	}
}

/* By device and by what the program called. */
void readback_facts(struct timeline *timeline, struct facts *facts)
{
	for (size_t i = 0; i < timeline->readbacks.count; i++) {
		const struct tl_readback *at = &timeline->readbacks.at[i];
		uint32_t device = op_segment(timeline, at->op)->device;
		struct readback_fact *fact = NULL;

		for (size_t k = 0; k < facts->readbacks.count && !fact; k++)
			if (facts->readbacks.at[k].device == device &&
			    facts->readbacks.at[k].op == at->name)
				fact = &facts->readbacks.at[k];
		if (!fact) {
			fact = VEC_ADD(&facts->readbacks);
			fact->device = device;
			fact->op = at->name;
		}
		fact->count++;
		fact->blocked_ns = capped_add(fact->blocked_ns, at->blocked_ns);
		fact->idle_ns = capped_add(fact->idle_ns, at->idle_ns);
	}
	for (size_t i = 0; i < facts->readbacks.count; i++)
		facts->readbacks.at[i].per_step = facts->steps.step.count
							  ? (double)facts->readbacks.at[i].count /
								    (double)facts->steps.step.count
							  : NAN;
	if (facts->readbacks.count)
		qsort(facts->readbacks.at, facts->readbacks.count, sizeof(*facts->readbacks.at),
		      by_cost);
	readback_phase(timeline, facts);
}
