#include "base/i18n.h"
#include "base/units.h"
#include "model/event.h"
#include "rules/tell.h"

/* Time in which the driver serves page faults, of the span. doc/rules/page_faults.md */
static const double FAULT_SHARE = 0.01;
static const double FAULT_WARN_SHARE = 0.05;

static int64_t bytes_moved(const struct facts *facts, uint32_t device)
{
	int64_t bytes = 0;

	for (size_t i = 0; i < facts->copies.count; i++) {
		const struct copy_fact *copy = &facts->copies.at[i];

		if (copy->device == device && copy->managed)
			bytes = capped_add(bytes, copy->bytes);
	}
	return bytes;
}

static int64_t groups_of(const struct facts *facts, uint32_t device)
{
	int64_t count = 0;

	for (size_t i = 0; i < facts->page_faults.count; i++)
		if (facts->page_faults.at[i].device == device)
			count = capped_add(count, facts->page_faults.at[i].count);
	return count;
}

static void tell(const struct facts *facts, const struct rule *rule,
		 const struct device_fact *device, struct findings *findings)
{
	double share = share_of(device->page_fault_ns, device->span_ns);
	struct finding *finding = finding_add(
		findings, rule, share >= FAULT_WARN_SHARE ? SEVERITY_WARN : SEVERITY_NOTE);
	const char *where = tell_device(facts, findings, device->device);
	int64_t groups = groups_of(facts, device->device);
	int64_t bytes = bytes_moved(facts, device->device);
	struct unit_text faults, times, ns, percent, moved;

	finding->device = device->device;
	finding->claim = finding_text(
		findings,
		_("Kernels on %s met %s page faults of unified memory, which the driver served %s "
		  "times in %s (%s of the span); warps wait for their pages meanwhile. It moved "
		  "%s."),
		where, units_count(&faults, device->page_faults), units_count(&times, groups),
		units_ns(&ns, device->page_fault_ns), units_share(&percent, share),
		units_bytes(&moved, bytes));
	finding_impact(finding, 0, device->page_fault_ns, whole_of_device(device), device->span_ns);
	finding_evidence(finding, "page_faults", (double)device->page_faults, "count", where);
	finding_evidence(finding, "page_faults.groups", (double)groups, "count", where);
	finding_evidence(finding, "page_faults.union_ns", (double)device->page_fault_ns, "ns",
			 where);
	finding_evidence(finding, "copies.managed.bytes", (double)bytes, "B", where);
	finding_advice(finding, _("Bring the pages before the kernel needs them: "
				  "cudaMemPrefetchAsync on the kernel's stream"));
	finding_advice(finding, _("Tell the driver where data live: cudaMemAdvise (read mostly, "
				  "preferred location, accessed by), so that pages stay"));
	finding_advice(finding, _("What the GPU uses in each step belongs into memory of its own "
				  "(cudaMalloc and explicit copies)"));
	finding_next(finding, _("sonde sql PROFILE \"SELECT name, count(*), sum(faults), "
				"sum(duration_ns) FROM page_fault GROUP BY name\""));
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];

		if (device->has_timeline && device->span_ns > 0 &&
		    share_of(device->page_fault_ns, device->span_ns) >= FAULT_SHARE)
			tell(facts, rule, device, findings);
	}
}

const struct rule rule_page_faults = {
	.id = "page_faults",
	.title = N_("Kernels wait for pages of unified memory"),
	.why = N_("A page that is not on the GPU when a warp touches it has to be fetched by the "
		  "driver; the warp waits, and faults come in groups of tens of microseconds."),
	.layer = LAYER_TIMELINE,
	.apply = apply,
};
