#include <math.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/kernel_time.h"

/* A fifth of the sectors thrown away: "waste modifiers" of doc/bound.md.
 * doc/rules/uncoalesced.md */
static const double EXCESS_SHARE = 0.20;
static const double EXCESS_WARN_SHARE = 0.50;

/* Scattered addresses: nearly a sector for each thread that takes part ... */
static const double SCATTER_SECTORS_A_THREAD = 0.85;
/* ... of which no cache has seen the neighbours: misses are the rule ... */
static const double SCATTER_HIT_PCT = 50;
/* ... while loads are most of the waiting, and the memory path has not half of
 * the load from which on it counts as busy (60: ncu's SOLBottleneck). */
static const double SCATTER_STALL_SHARE = 0.50;
static const double SCATTER_LOAD_PCT = 30;

/* Only where the memory path is what the kernel waits for. */
static bool waits_for_memory(const struct kernel_fact *kernel)
{
	return kernel_bound_by(kernel, BOUND_DRAM, NULL) ||
	       kernel_bound_by(kernel, BOUND_L2, NULL) || kernel_bound_by(kernel, BOUND_L1, NULL) ||
	       kernel_bound_by(kernel, BOUND_LATENCY, "memory");
}

/*
 * Threads that walk lists, trees or tables have addresses that no order of loops
 * makes neighbours. They differ from a bad order by what follows: with a bad
 * order the rest of a sector is used a little later and found in a cache, or
 * the sectors are so many that a path is full of them.
 */
static bool is_scattered(const struct kernel_fact *kernel)
{
	const struct kernel_counters *counters = &kernel->counters;
	double threads = counters->threads_per_instruction;
	double sectors = SCATTER_SECTORS_A_THREAD * (threads > 0 ? threads : 32);

	return kernel_bound_by(kernel, BOUND_LATENCY, "memory") &&
	       counters->sectors_per_request_load >= sectors &&
	       counters->l1_hit_pct < SCATTER_HIT_PCT && counters->l2_hit_pct < SCATTER_HIT_PCT &&
	       counters->memory_pct < SCATTER_LOAD_PCT &&
	       kernel_stall(kernel, "long_scoreboard") >= SCATTER_STALL_SHARE;
}

static bool concerns(const struct facts *facts, uint32_t index)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];

	return kernel->has_counters && waits_for_memory(kernel) &&
	       kernel->counters.excess_sector_share >= EXCESS_SHARE;
}

/* No order is proposed and no time promised: the pattern may be the task's. */
static void tell_scattered(const struct facts *facts, const struct rule *rule, uint32_t index,
			   struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;
	const char *where = kernel_where(facts, kernel, findings);
	struct finding *finding = kernel_finding(facts, rule, index, SEVERITY_NOTE, findings);
	struct unit_text share;

	finding->title = _("Loads at scattered addresses wait for each other");
	finding->claim = finding_text(
		findings,
		_("Each thread of a warp in %s loads from a place of its own (%.0f sectors a "
		  "request), the caches have not seen the neighbours, and memory is at %s of its "
		  "peak: addresses follow from data, as in lists, trees and tables, and few loads "
		  "are in flight."),
		where, counters->sectors_per_request_load,
		units_share(&share, counters->memory_pct / 100));
	finding_evidence(finding, "counters.sectors_per_request_load",
			 counters->sectors_per_request_load, "sectors", where);
	finding_evidence(finding, "l1tex__t_sector_hit_rate.pct", counters->l1_hit_pct, "%", where);
	finding_evidence(finding, "lts__t_sector_hit_rate.pct", counters->l2_hit_pct, "%", where);
	finding_evidence(finding, "counters.memory_pct", counters->memory_pct, "%", where);
	kernel_numbers(kernel, finding, where);
	finding_advice(finding, _("Have more loads in flight: more warps, several independent "
				  "chains or lookups for each thread, the next one begun before "
				  "this one is used"));
	finding_advice(finding, _("Pack what is used together into one sector of 32 bytes, and "
				  "number or sort the items in the order in which they are "
				  "visited"));
	finding_advice(finding, _("If the addresses are a plain stride after all, swap loops or "
				  "indices so that thread i accesses element i"));
	finding_next(finding, _("ncu --section SourceCounters --section MemoryWorkloadAnalysis: "
				"which lines have excess sectors"));
}

static void tell(const struct facts *facts, const struct rule *rule, uint32_t index,
		 struct findings *findings)
{
	const struct kernel_fact *kernel = &facts->kernels.at[index];
	const struct kernel_counters *counters = &kernel->counters;
	const char *where;
	struct finding *finding;
	struct unit_text share;

	if (is_scattered(kernel)) {
		tell_scattered(facts, rule, index, findings);
		return;
	}
	where = kernel_where(facts, kernel, findings);
	finding = kernel_finding(facts, rule, index,
				 kernel->counters.excess_sector_share >= EXCESS_WARN_SHARE
					 ? SEVERITY_WARN
					 : SEVERITY_NOTE,
				 findings);
	finding->claim = finding_text(
		findings,
		_("%s of the 32-byte sectors that %s asks for carry nothing it uses: neighbouring "
		  "threads access addresses that do not lie side by side."),
		units_share(&share, counters->excess_sector_share), where);
	kernel_impact(facts, kernel, finding, counters->excess_sector_share);
	kernel_numbers(kernel, finding, where);
	finding_evidence(finding, "counters.excess_sector_share",
			 100 * counters->excess_sector_share, "%", where);
	if (isfinite(counters->sectors_per_request_load))
		finding_evidence(finding, "counters.sectors_per_request_load",
				 counters->sectors_per_request_load, "sectors", where);
	finding_advice(finding, _("Let thread i of a warp access element i: swap loops or indices, "
				  "or lay the data out as a structure of arrays"));
	finding_advice(finding, _("Where the order is given, read rows into shared memory "
				  "coalesced and take them from there in the other order"));
	finding_advice(finding, _("Then widen the accesses (float4): fewer requests for the same "
				  "bytes"));
	finding_next(finding, _("ncu --section SourceCounters --section MemoryWorkloadAnalysis: "
				"which lines have excess sectors"));
}

const struct rule rule_uncoalesced = {
	.id = "uncoalesced",
	.title = N_("Loads ask for sectors that are thrown away"),
	.why = N_("Memory moves in sectors of 32 bytes. A full warp needs 4 sectors for 32-bit "
		  "accesses, 8 for 64-bit and 16 for 128-bit; scattered addresses cost up to one a "
		  "thread."),
	.layer = LAYER_KERNEL,
	.concerns = concerns,
	.tell = tell,
};
