#include "base/i18n.h"
#include "base/units.h"
#include "rules/advise.h"
#include "rules/tell.h"

#include <math.h>

/* Reading one value a step stops the host once a step; from there on it is
 * told. Less often (every tenth step, say) is ordinary logging. */
static const double READBACKS_PER_STEP = 1;
/* More than one a step is rarely meant. */
static const double READBACKS_PER_STEP_MANY = 2;

/* Repeated: one or two may be a check at the start. */
static const int64_t READBACKS_LEAST = 3;

/* Without steps, or when they are seldom: told if they cost so much. */
static const double READBACK_SHARE = 0.01;
static const double READBACK_WARN_SHARE = 0.05;

static const struct advice ADVICE[] = {
	{ N_("Don't read a loss or metric in each step: add it up in a tensor on the GPU "
	     "(loss.detach()) and call .item() every hundred steps"),
	  N_("Don't read a result in each step: add it up in memory of the GPU and copy it every "
	     "hundred steps") },
	{ N_("Watch for hidden reads: print of a tensor, float(), bool(), if tensor:, "
	     "tensor.nonzero(), masks as indices, .cpu(), gradient-norm checks"),
	  N_("Where each value is needed: cudaMemcpyAsync into pinned memory, cudaEventRecord "
	     "behind it, launch the next step, and only then wait for the event") },
};

static const struct advice NEXT = {
	N_("torch.cuda.set_sync_debug_mode(\"warn\") names each line that waits"),
	N_("sonde sql PROFILE \"SELECT start_ns, bytes, duration_ns, name FROM memcpy WHERE "
	   "bytes <= 64 ORDER BY start_ns LIMIT 20\""),
};

struct readbacks {
	int64_t count, blocked_ns, idle_ns;
	double per_step;
	uint32_t op;
};

static struct readbacks readbacks_of(const struct facts *facts, uint32_t device)
{
	struct readbacks sum = { .per_step = NAN };

	for (size_t i = 0; i < facts->readbacks.count; i++) {
		const struct readback_fact *at = &facts->readbacks.at[i];

		if (at->device != device)
			continue;
		if (!sum.op)
			sum.op = at->op;
		sum.count = capped_add(sum.count, at->count);
		sum.blocked_ns = capped_add(sum.blocked_ns, at->blocked_ns);
		sum.idle_ns = capped_add(sum.idle_ns, at->idle_ns);
		if (!isnan(at->per_step))
			sum.per_step = (isnan(sum.per_step) ? 0 : sum.per_step) + at->per_step;
	}
	return sum;
}

static const char *claim_of(const struct facts *facts, const struct device_fact *device,
			    const struct readbacks *sum, struct findings *findings)
{
	const char *where = tell_device(facts, findings, device->device);
	struct unit_text count, blocked, idle;

	if (isnan(sum->per_step))
		return finding_text(findings,
				    _("The host read tiny results back from %s %s times (%s) and "
				      "waited %s in all; the GPU then idled for %s."),
				    where, units_count(&count, sum->count),
				    tell_name(facts, sum->op), units_ns(&blocked, sum->blocked_ns),
				    units_ns(&idle, sum->idle_ns));
	return finding_text(findings,
			    _("The host read tiny results back from %s %s times (%s), %.3g a step, "
			      "and waited %s in all; the GPU then idled for %s."),
			    where, units_count(&count, sum->count), tell_name(facts, sum->op),
			    sum->per_step, units_ns(&blocked, sum->blocked_ns),
			    units_ns(&idle, sum->idle_ns));
}

static void tell(const struct facts *facts, const struct rule *rule,
		 const struct device_fact *device, const struct readbacks *sum,
		 struct findings *findings)
{
	bool many = sum->per_step >= READBACKS_PER_STEP_MANY ||
		    share_of(sum->idle_ns, device->span_ns) >= READBACK_WARN_SHARE;
	struct finding *finding = finding_add(findings, rule, many ? SEVERITY_WARN : SEVERITY_NOTE);
	const char *where = tell_device(facts, findings, device->device);
	/* What the host waits is gained only as far as the GPU idled with it. */
	int64_t wait_ns = sum->blocked_ns < device->idle_ns ? sum->blocked_ns : device->idle_ns;
	int64_t high_ns = capped_add(sum->idle_ns, wait_ns);

	if (high_ns > device->idle_ns)
		high_ns = device->idle_ns > sum->idle_ns ? device->idle_ns : sum->idle_ns;
	finding->device = device->device;
	finding->claim = claim_of(facts, device, sum, findings);
	finding_impact(finding, sum->idle_ns / 2, high_ns, whole_of_device(device),
		       device->span_ns);
	finding_evidence(finding, "readbacks.count", (double)sum->count, "count", where);
	finding_evidence(finding, "readbacks.per_step", sum->per_step, "count", where);
	finding_evidence(finding, "readbacks.blocked_ns", (double)sum->blocked_ns, "ns", where);
	finding_evidence(finding, "readbacks.idle_ns", (double)sum->idle_ns, "ns", where);
	advise(facts, finding, ADVICE, sizeof(ADVICE) / sizeof(*ADVICE));
	advise_next(facts, finding, NEXT);
	finding->coverage = isnan(device->coverage) ? 0 : device->coverage;
	tell_host_doubt(facts, findings, finding);
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];
		struct readbacks sum;

		if (!device->has_timeline || device->span_ns <= 0)
			continue;
		sum = readbacks_of(facts, device->device);
		if (sum.count < READBACKS_LEAST)
			continue;
		if (!tell_enough_launches(facts, rule, device, findings))
			continue;
		if (sum.per_step >= READBACKS_PER_STEP ||
		    share_of(sum.idle_ns, device->span_ns) >= READBACK_SHARE)
			tell(facts, rule, device, &sum, findings);
	}
}

const struct rule rule_sync_readback = {
	.id = "sync_readback",
	.title = N_("Reading tiny results stops the host"),
	.why = N_("A value that the host needs is there only when the GPU has done all work "
		  "before it; meanwhile nothing new is launched."),
	.layer = LAYER_TIMELINE,
	.apply = apply,
};
