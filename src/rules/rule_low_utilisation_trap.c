#include "base/i18n.h"
#include "base/units.h"
#include "rules/advise.h"
#include "rules/tell.h"

#include <math.h>

/* So many samples at 95 % utilisation and more, before their median counts. */
static const int64_t HIGH_UTIL_SAMPLES = 5;

/* Busy SMs while "busy": DCGM's guidance calls below half ineffective. */
static const double SM_ACTIVE_PCT = 50;

/* Power against the limit, where nothing better was sampled: a rule of thumb,
 * so the finding gets a low grade. doc/rules/low_utilisation_trap.md */
static const double POWER_SHARE = 0.6;

/* From the timeline: busy nearly always, but with kernels whose blocks can't
 * reach half of the SMs for half of the time. */
static const double BUSY_SHARE = 0.9;
static const double GRID_SHARE = 0.5;
static const double SMALL_TIME_SHARE = 0.5;
/* A shorter recording is a few launches, not a load. */
static const int64_t SPAN_LEAST_NS = 1000000;

/* What would say more: what is not in the recording yet. */
static void advise_measuring(const struct facts *facts, const struct device_fact *device,
			     struct finding *finding)
{
	if (!device->system.metric[METRIC_sm_active_pct].count)
		finding_next(finding, _("nvidia-smi dmon --gpm-metrics 2,3,5,10 -d 1 (Hopper and "
					"later: SM activity, occupancy, tensor, DRAM)"));
	if (!device->has_timeline)
		finding_next(finding, _("sonde run -- COMMAND records which kernels they are"));
	else if (!recorded_by_run(facts) || !facts->pc_samplings.count)
		finding_next(finding, _("sonde run --pc-sampling on -- COMMAND tells what the "
					"warps of each kernel wait for"));
	if (device->has_timeline)
		finding_next(finding,
			     _("sonde sql PROFILE \"SELECT name, grid, block, count(*), "
			       "sum(duration_ns) FROM kernel GROUP BY 1, 2, 3 ORDER BY 5 DESC "
			       "LIMIT 20\""));
}

static void advice(const struct facts *facts, const struct device_fact *device,
		   struct finding *finding)
{
	finding_advice(finding, _("Don't judge by utilisation: it says that some kernel ran. Look "
				  "at SM activity, occupancy or the work done per second"));
	finding_advice(
		finding,
		_("Give the card more at once: a bigger batch, larger grids, work on several "
		  "streams, fused small kernels; or share it, by MPS or MIG, with other jobs"));
	advise_measuring(facts, device, finding);
}

static void of_samples(const struct facts *facts, const struct rule *rule,
		       const struct device_fact *device, struct findings *findings)
{
	const struct system_facts *system = &device->system;
	bool by_activity = system->high_util_sm_active_pct < SM_ACTIVE_PCT;
	const char *where = tell_device(facts, findings, device->device);
	struct finding *finding = finding_add(findings, rule, SEVERITY_WARN);
	struct unit_text share;

	finding->device = device->device;
	if (by_activity)
		finding->claim =
			finding_text(findings,
				     _("In %lld samples %s shows 95 %% utilisation and more, but "
				       "in the middle of them only %.0f %% of its SMs had work."),
				     (long long)system->high_util_samples, where,
				     system->high_util_sm_active_pct);
	else
		finding->claim = finding_text(
			findings,
			_("In %lld samples %s shows 95 %% utilisation and more, but draws only %s "
			  "of its power limit: kernels run, and most of the chip seems to rest."),
			(long long)system->high_util_samples, where,
			units_share(&share, system->high_util_power_share));
	if (!by_activity) {
		finding->severity = SEVERITY_NOTE;
		finding->grade = GRADE_LOW;
		finding->runner_up = _("memory-bound kernels draw less power than dense arithmetic "
				       "with all SMs at work");
	}
	finding_evidence(finding, "high_util_samples", (double)system->high_util_samples, "count",
			 where);
	finding_evidence(finding, "sm_active_pct", system->high_util_sm_active_pct, "%", where);
	finding_evidence(finding, "power_share", 100 * system->high_util_power_share, "%", where);
	advice(facts, device, finding);
}

/* The part of kernel time in kernels with fewer blocks than half of the SMs;
 * NAN where grids or SMs are not known. */
static double small_grid_share(const struct facts *facts, const struct device_fact *device,
			       int64_t sms)
{
	int64_t known_ns = 0, small_ns = 0;

	for (size_t i = 0; i < facts->kernels.count; i++) {
		const struct kernel_fact *kernel = &facts->kernels.at[i];
		const struct kernel_key *key;
		double blocks;

		if (kernel->device != device->device || kernel->collective ||
		    kernel->key >= facts->session->keys.count)
			continue;
		key = &facts->session->keys.at[kernel->key];
		blocks = (double)key->grid[0] * key->grid[1] * key->grid[2];
		if (blocks <= 0)
			continue;
		known_ns = capped_add(known_ns, kernel->sum_ns);
		if (blocks < GRID_SHARE * (double)sms)
			small_ns = capped_add(small_ns, kernel->sum_ns);
	}
	return known_ns > 0 ? (double)small_ns / (double)known_ns : NAN;
}

static void of_timeline(const struct facts *facts, const struct rule *rule,
			const struct device_fact *device, struct findings *findings)
{
	struct finding *finding;
	struct unit_text busy, small;
	const char *where;
	double share;
	int64_t sms;

	if (!device->has_timeline || !facts->session || device->span_ns < SPAN_LEAST_NS ||
	    device->device >= facts->session->devices.count ||
	    share_of(device->kernel_ns, device->span_ns) < BUSY_SHARE)
		return;
	sms = facts->session->devices.at[device->device].sm_count;
	if (sms <= 0)
		return;
	share = small_grid_share(facts, device, sms);
	/* Several small kernels side by side may fill it together. */
	if (!(share >= SMALL_TIME_SHARE) ||
	    share_of(device->stream_overlap_ns, device->kernel_ns) >= SMALL_TIME_SHARE)
		return;
	where = tell_device(facts, findings, device->device);
	finding = finding_add(findings, rule, SEVERITY_WARN);
	finding->device = device->device;
	finding->claim = finding_text(
		findings,
		_("%s is busy for %s of the span, so utilisation shows about that; but %s of the "
		  "kernel time is in grids of fewer blocks than half of its %lld SMs."),
		where, units_share(&busy, share_of(device->kernel_ns, device->span_ns)),
		units_share(&small, share), (long long)sms);
	finding_evidence(finding, "kernel_ns", (double)device->kernel_ns, "ns", where);
	finding_evidence(finding, "small_grid_share", 100 * share, "%", where);
	finding_evidence(finding, "sm_count", (double)sms, "count", where);
	advice(facts, device, finding);
}

/* A kernel that never ends keeps utilisation high by itself: rule_open_wait tells of it. */
static bool hangs(const struct facts *facts, uint32_t device)
{
	for (size_t i = 0; i < facts->waits.count; i++)
		if (facts->waits.at[i].end == WAIT_OPEN && facts->waits.at[i].device == device)
			return true;
	return false;
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->devices.count; i++) {
		const struct device_fact *device = &facts->devices.at[i];
		const struct system_facts *system = &device->system;
		bool sampled = !isnan(system->high_util_sm_active_pct);

		of_timeline(facts, rule, device, findings);
		if (!device->has_system || system->high_util_samples < HIGH_UTIL_SAMPLES ||
		    hangs(facts, device->device))
			continue;
		if (system->high_util_sm_active_pct < SM_ACTIVE_PCT ||
		    (!sampled && system->high_util_power_share < POWER_SHARE))
			of_samples(facts, rule, device, findings);
		else if (!sampled && isnan(system->high_util_power_share))
			findings_abstain(findings, rule,
					 _("%s: utilisation is high, but neither SM activity nor "
					   "power with its limit was recorded"),
					 tell_device(facts, findings, device->device));
	}
}

const struct rule rule_low_utilisation_trap = {
	.id = "low_utilisation_trap",
	.title = N_("High utilisation, little work"),
	.why = N_("Utilisation is the share of time in which some kernel ran: one block on one SM "
		  "gives 100 %."),
	.layer = LAYER_SYSTEM,
	.apply = apply,
};
