#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* Where L1 misses more than it hits and L2 does too, what is read again comes
 * from device memory again. A half is the point where misses are the rule.
 * doc/rules/low_cache_reuse.md */
static const double HIT_LOW_PCT = 50;
/* The same bytes moved this many times between L1 and L2 or the SM and L1 are
 * traffic that tiling would save; a stream that is used once stays below. */
static const double REREAD_RATIO = 3;

static double traffic_ratio(const struct kernel_counters *counters)
{
	return counters->l1_bytes > 0 && counters->dram_bytes > 0
		       ? counters->l1_bytes / counters->dram_bytes
		       : NAN;
}

/* The data path is full of bytes that were fetched before, or caches miss what
 * is used again. */
static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;
	bool memory = kernel_bound_by(kernel, BOUND_DRAM, NULL) ||
		      kernel_bound_by(kernel, BOUND_L2, NULL);

	return kernel->has_counters && memory && counters->l1_hit_pct < HIT_LOW_PCT &&
	       counters->l2_hit_pct < HIT_LOW_PCT && traffic_ratio(counters) >= REREAD_RATIO;
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;
	const char *where = kernel_where(facts, kernel, findings);
	struct finding *finding = kernel_finding(facts, rule, index, SEVERITY_NOTE, findings);
	struct unit_text share;
	double ratio = traffic_ratio(counters);

	finding->claim = finding_text(
		findings,
		_("%s moves %.1f times as many bytes through L1 as device memory gives, and L1 "
		  "finds "
		  "only %s of what it is asked for: data are fetched again instead of kept."),
		where, ratio, units_share(&share, counters->l1_hit_pct / 100));
	kernel_impact(facts, kernel, finding, 1 - 1 / ratio);
	kernel_numbers(kernel, finding, where);
	finding_evidence(finding, "l1tex__t_sector_hit_rate.pct", counters->l1_hit_pct, "%", where);
	finding_evidence(finding, "lts__t_sector_hit_rate.pct", counters->l2_hit_pct, "%", where);
	finding_advice(finding, _("Work in tiles: read a part once into shared memory or registers "
				  "and use it as often as it is needed there"));
	finding_advice(finding,
		       _("Judge by traffic and time, not by the hit rate of L1: with tiles "
			 "the reuse moves to shared memory and the rate often falls"));
	finding_next(finding, _("ncu --section MemoryWorkloadAnalysis_Tables: traffic between the "
				"levels"));
}

const struct rule rule_low_cache_reuse = {
	.id = "low_cache_reuse",
	.title = N_("Data are fetched again instead of kept"),
	.why = N_("Each level of the memory is several times faster than the next; bytes that are "
		  "used again should not come from further away again."),
	.layer = LAYER_KERNEL,
	.concerns = concerns,
	.tell = tell,
};
