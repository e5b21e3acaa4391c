#include "base/i18n.h"
#include "base/units.h"
#include "model/event.h"
#include "rules/advise.h"
#include "rules/tell.h"

#include <math.h>

/* A single large copy is slower from pageable memory, but only repeated or
 * large traffic is worth a change: in all so many bytes, and so much of the
 * span. doc/rules/pageable_copy.md */
static const int64_t PAGEABLE_BYTES = 1 << 20;
static const double PAGEABLE_SHARE = 0.001;
static const double PAGEABLE_WARN_SHARE = 0.05;

static const struct advice ADVICE[] = {
	{ N_("Use pinned memory: DataLoader(pin_memory=True), or tensor.pin_memory() once for "
	     "a buffer that is used again; then .to(device, non_blocking=True)"),
	  N_("Use pinned memory: cudaMallocHost once for a buffer that is used again, or "
	     "cudaHostRegister for one that is there; then cudaMemcpyAsync on a stream") },
	{ N_("Pin what is reused, not everything: pinned memory can't be swapped out and is slow "
	     "to get"),
	  N_("Pin what is reused, not everything: pinned memory can't be swapped out and is slow "
	     "to get") },
};

struct copies {
	int64_t count, bytes, sum_ns, union_ns;
	double pinned_gbps; /* of pinned copies the same way in this recording; NAN */
};

static bool is_host_copy(const struct copy_fact *copy)
{
	return copy->kind == COPY_HTOD || copy->kind == COPY_DTOH;
}

static struct copies pageable_of(const struct facts *facts, uint32_t device)
{
	struct copies sum = { .pinned_gbps = NAN };

	for (size_t i = 0; i < facts->copies.count; i++) {
		const struct copy_fact *copy = &facts->copies.at[i];

		if (copy->device != device || !is_host_copy(copy))
			continue;
		if (copy->pageable == 0 && copy->bytes >= PAGEABLE_BYTES)
			sum.pinned_gbps = fmax(sum.pinned_gbps, copy->gbps);
		/* A copy of a few bytes costs its latency, pinned or not. */
		if (copy->pageable != 1 || copy->tiny_count == copy->count)
			continue;
		sum.count = capped_add(sum.count, copy->count);
		sum.bytes = capped_add(sum.bytes, copy->bytes);
		sum.sum_ns = capped_add(sum.sum_ns, copy->sum_ns);
		sum.union_ns = capped_add(sum.union_ns, copy->union_ns);
	}
	return sum;
}

/* Data that is brought once, before the loop, or copies that hide under kernels. */
static bool costs_nothing_steady(const struct device_fact *device)
{
	const struct steady_fact *steady = &device->steady;

	return steady->has &&
	       share_of(steady->busy_ns - steady->kernel_ns, steady->span_ns) < PAGEABLE_SHARE;
}

static void tell(const struct facts *facts, const struct rule *rule,
		 const struct device_fact *device, const struct copies *sum,
		 struct findings *findings)
{
	double share = share_of(sum->union_ns, device->span_ns);
	bool once = costs_nothing_steady(device);
	struct finding *finding =
		finding_add(findings, rule,
			    share >= PAGEABLE_WARN_SHARE && !once ? SEVERITY_WARN : SEVERITY_NOTE);
	const char *where = tell_device(facts, findings, device->device);
	struct unit_text count, bytes, ns, rate;
	double rate_gbps = (double)sum->bytes / (double)(sum->sum_ns > 0 ? sum->sum_ns : 1);
	int64_t low_ns = 0;

	/* At the rate that pinned copies reached here; all of it if they overlap
	 * with kernels. */
	if (sum->pinned_gbps > rate_gbps)
		low_ns = sum->union_ns -
			 (int64_t)((double)sum->union_ns * rate_gbps / sum->pinned_gbps);
	finding->device = device->device;
	finding->claim = finding_text(
		findings,
		_("%s copies between pageable host memory and %s moved %s in %s (%s). Each goes "
		  "through a staging buffer of the driver and holds the host up."),
		units_count(&count, sum->count), where, units_bytes(&bytes, sum->bytes),
		units_ns(&ns, sum->sum_ns), units_rate(&rate, rate_gbps * 1e9));
	if (once)
		finding->claim = finding_text(findings,
					      _("%s In the steady part copies take next to no time "
						"of their own: this is of the set-up."),
					      finding->claim);
	finding_impact(finding, low_ns, sum->union_ns, whole_of_device(device), device->span_ns);
	finding_evidence(finding, "copies.pageable.count", (double)sum->count, "count", where);
	finding_evidence(finding, "copies.pageable.bytes", (double)sum->bytes, "B", where);
	finding_evidence(finding, "copies.pageable.sum_ns", (double)sum->sum_ns, "ns", where);
	finding_evidence(finding, "copies.pageable.gbps", rate_gbps, "GB/s", where);
	finding_evidence(finding, "copies.pinned.gbps", sum->pinned_gbps, "GB/s", where);
	advise(facts, finding, ADVICE, sizeof(ADVICE) / sizeof(*ADVICE));
	finding_next(finding, _("sonde sql PROFILE \"SELECT name, count(*), "
				"sum(bytes), sum(duration_ns) FROM memcpy GROUP BY name\""));
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];
		struct copies sum;

		if (!device->has_timeline || device->span_ns <= 0)
			continue;
		sum = pageable_of(facts, device->device);
		if (sum.bytes >= PAGEABLE_BYTES &&
		    share_of(sum.union_ns, device->span_ns) >= PAGEABLE_SHARE)
			tell(facts, rule, device, &sum, findings);
	}
}

const struct rule rule_pageable_copy = {
	.id = "pageable_copy",
	.title = N_("Copies from pageable memory"),
	.why = N_("The copy engine can only reach memory that is pinned; from other memory the "
		  "driver copies twice, and the call waits."),
	.layer = LAYER_TIMELINE,
	.apply = apply,
};
