#include <math.h>
#include <string.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* Where L1 misses more than it hits, what is read again comes from further away
 * again. A half is the point where misses are the rule. L2 may well hit: it is
 * L2 that the bytes then come from again. doc/rules/low_cache_reuse.md */
static const double HIT_LOW_PCT = 50;
/* The same bytes moved this many times are traffic that tiling would save; a
 * stream that is used once stays below. */
static const double REREAD_RATIO = 3;
/* Sectors thrown away swell the traffic of L1 without any byte read twice: from
 * here on that is what the rule uncoalesced tells. */
static const double EXCESS_SHARE = 0.20;
/* "Waste modifiers" of doc/bound.md: from here on it is spilled registers, or
 * conflicts of banks, that fill the path. */
static const double LOCAL_SHARE = 0.05;
static const double CONFLICT_SHARE = 0.10;
/* With as many atomic operations the traffic of L2 is not reading again. */
static const double ATOMIC_SHARE = 0.5;

/* Which path is full of bytes that come again. */
enum path { PATH_NONE, PATH_DRAM, PATH_L2, PATH_L1, PATH_SHARED };

static double ratio_of(double part, double whole)
{
	return part > 0 && whole > 0 ? part / whole : NAN;
}

static enum path path_of(const struct kernel_fact *kernel)
{
	if (kernel_bound_by(kernel, BOUND_DRAM, NULL))
		return PATH_DRAM;
	/* One slice is hot by one address, not by traffic. */
	if (kernel_bound_by(kernel, BOUND_L2, NULL))
		return kernel_bound_by(kernel, BOUND_L2, "L2 slice") ? PATH_NONE : PATH_L2;
	if (kernel_bound_by(kernel, BOUND_L1, "shared memory"))
		return PATH_SHARED;
	if (kernel_bound_by(kernel, BOUND_L1, "l1tex data pipe") ||
	    kernel_bound_by(kernel, BOUND_L1, "l1tex"))
		return PATH_L1;
	return PATH_NONE;
}

/* How often the path moves the same bytes; NAN: unknown, or another rule's. */
static double reread(const struct kernel_counters *counters, enum path path)
{
	switch (path) {
	case PATH_DRAM:
	case PATH_L2:
		if (!(counters->l1_hit_pct < HIT_LOW_PCT) || counters->atomic_share >= ATOMIC_SHARE)
			return NAN;
		return ratio_of(counters->l1_bytes, counters->dram_bytes);
	case PATH_L1:
		if (counters->local_share >= LOCAL_SHARE)
			return NAN;
		/* Of 100 sectors asked for those that miss are new. */
		return ratio_of(100, 100 - counters->l1_hit_pct);
	case PATH_SHARED:
		return counters->bank_conflict_share >= CONFLICT_SHARE ? NAN
								       : counters->shared_reread;
	default:
		return NAN;
	}
}

static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];

	return kernel->has_counters && kernel->counters.excess_sector_share < EXCESS_SHARE &&
	       reread(&kernel->counters, path_of(kernel)) >= REREAD_RATIO;
}

/* The part of the time after which something else binds: even a path without
 * any traffic saves no more. NAN: unknown. */
static double spare_share(const struct kernel_counters *counters, enum path path)
{
	const double loads[] = { counters->dram_pct, counters->l2_pct, counters->l1_pct };
	size_t own = path == PATH_DRAM ? 0 : path == PATH_L2 ? 1 : 2;
	double next = fmax(counters->issue_pct, counters->fma_pct);

	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		if (i != own)
			next = fmax(next, loads[i]);
	}
	return loads[own] > 0 ? fmax(1 - next / loads[own], 0) : NAN;
}

static void evidence(const struct kernel_counters *counters, enum path path,
		     struct finding *finding, const char *where)
{
	if (isfinite(counters->l1_hit_pct))
		finding_evidence(finding, "l1tex__t_sector_hit_rate.pct", counters->l1_hit_pct, "%",
				 where);
	if (path == PATH_SHARED)
		finding_evidence(finding, "counters.shared_reread", counters->shared_reread, "",
				 where);
	if (path != PATH_DRAM && path != PATH_L2)
		return;
	if (isfinite(counters->l2_hit_pct))
		finding_evidence(finding, "lts__t_sector_hit_rate.pct", counters->l2_hit_pct, "%",
				 where);
	finding_evidence(finding, "counters.l1_bytes", counters->l1_bytes, "B", where);
	finding_evidence(finding, "counters.dram_bytes", counters->dram_bytes, "B", where);
}

static const char *claim(const struct kernel_counters *counters, enum path path, const char *where,
			 struct findings *findings)
{
	double ratio = reread(counters, path);
	struct unit_text share;

	if (path == PATH_L1)
		return finding_text(findings,
				    _("The data path of L1 is what %s waits for, and on average it "
				      "passes each byte that L1 fetches %.1f times: what is used "
				      "again could stay in registers."),
				    where, ratio);
	if (path == PATH_SHARED)
		return finding_text(findings,
				    _("The path of shared memory is what %s waits for, and each "
				      "value that it loads from global memory is read there %.1f "
				      "times: what is used again could stay in registers."),
				    where, ratio);
	return finding_text(
		findings,
		_("%s moves %.1f times as many bytes through L1 as device memory gives, and L1 "
		  "finds "
		  "only %s of what it is asked for: data are fetched again instead of kept."),
		where, ratio, units_share(&share, counters->l1_hit_pct / 100));
}

static void advise(struct finding *finding, enum path path)
{
	if (path == PATH_L1 || path == PATH_SHARED) {
		finding_advice(finding,
			       _("Let each thread compute a small block of results (2x2 to 8x8) "
				 "and keep what they share in registers: one load then serves "
				 "several operations"));
		finding_advice(finding, _("Load wider (float4; ldmatrix for tensor cores): fewer "
					  "passes for the same bytes"));
		finding_advice(finding, _("For products of matrices use cuBLAS or CUTLASS, which "
					  "do both"));
		return;
	}
	finding_advice(finding, _("Work in tiles: read a part once into shared memory or registers "
				  "and use it as often as it is needed there"));
	finding_advice(finding,
		       _("Judge by traffic and time, not by the hit rate of L1: with tiles "
			 "the reuse moves to shared memory and the rate often falls"));
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;
	enum path path = path_of(kernel);
	const char *where = kernel_where(facts, kernel, findings);
	struct finding *finding = kernel_finding(facts, rule, index, SEVERITY_NOTE, findings);
	double share = spare_share(counters, path);

	finding->claim = claim(counters, path, where, findings);
	/* What L2 caught never went to device memory: how much of the rest comes again
	 * the counters do not say. */
	if (path == PATH_DRAM) {
		finding_lose_grade(finding);
		finding_next(finding,
			     _("Compare the bytes from device memory with the size of the arrays: "
			       "if they are equal, each is fetched once and tiles save nothing"));
	} else {
		share = fmin(share, 1 - 1 / reread(counters, path));
	}
	kernel_impact(facts, kernel, finding, share);
	evidence(counters, path, finding, where);
	kernel_numbers(kernel, finding, where);
	advise(finding, path);
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
