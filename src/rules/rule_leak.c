#include "base/i18n.h"
#include "base/units.h"
#include "rules/tell.h"

static const char *where_of(const struct facts *facts, const struct memory_fact *memory,
			    struct findings *findings)
{
	return memory->device == SESSION_NONE ? _("the host")
					      : tell_device(facts, findings, memory->device);
}

static struct finding *begin(const struct rule *rule, const struct memory_fact *memory,
			     struct findings *findings)
{
	struct finding *finding = finding_add(findings, rule, SEVERITY_WARN);

	finding->device = memory->device;
	/* What is obtained once a step may be meant to stay: a log, a cache. */
	finding->grade = GRADE_MEDIUM;
	finding_next(finding,
		     _("sonde sql PROFILE \"SELECT bytes, count(*) FROM alloc GROUP BY bytes "
		       "ORDER BY 2 DESC LIMIT 20\""));
	return finding;
}

static void tell_blocks(const struct facts *facts, const struct rule *rule,
			const struct memory_fact *memory, struct findings *findings)
{
	const struct leak_fact *most = &memory->leaks.at[0];
	const char *where = where_of(facts, memory, findings);
	struct finding *finding = begin(rule, memory, findings);
	struct unit_text bytes, block, count;
	int64_t all = 0, blocks = 0;

	for (size_t i = 0; i < memory->leaks.count; i++) {
		const struct leak_fact *leak = &memory->leaks.at[i];

		all = sum_of(all, whole_of((double)leak->block_bytes * (double)leak->count));
		blocks += leak->count;
		if ((double)leak->block_bytes * (double)leak->count >
		    (double)most->block_bytes * (double)most->count)
			most = leak;
	}
	finding->title = _("Memory is obtained again and again and never given back");
	finding->claim =
		finding_text(findings,
			     _("%s of memory of %s were left at the end, obtained over and over "
			       "while it ran: %s blocks of %s most of all."),
			     units_bytes(&bytes, all), where, units_count(&count, most->count),
			     units_bytes(&block, most->block_bytes));
	finding_evidence(finding, "memory.leaks.bytes", (double)all, "B", where);
	finding_evidence(finding, "memory.leaks.count", (double)blocks, "count", where);
	finding_evidence(finding, "memory.live_bytes", (double)memory->live_bytes, "B", where);
	if (most->site)
		finding_evidence(finding, "memory.leaks.block_bytes", (double)most->block_bytes,
				 "B", session_text(facts->session, most->site));
	finding_advice(finding,
		       _("Give back what a step obtains (cudaFree, cudaFreeHost) before the "
			 "next one, or obtain it once and use it again"));
	finding_advice(finding,
		       _("In a framework: look for tensors that are kept from step to step, "
			 "and caches without a bound"));
}

static void tell_streams(const struct facts *facts, const struct rule *rule,
			 const struct memory_fact *memory, struct findings *findings)
{
	const char *where = where_of(facts, memory, findings);
	struct finding *finding = begin(rule, memory, findings);
	struct unit_text leaked, live;

	finding->title = _("Streams are made again and again and never destroyed");
	finding->claim = finding_text(findings,
				      _("%s streams of %s that were made while it ran, again and "
					"again, were left at the end (%s in all)."),
				      units_count(&leaked, memory->streams_leaked), where,
				      units_count(&live, memory->streams_live));
	finding_evidence(finding, "memory.streams_leaked", (double)memory->streams_leaked, "count",
			 where);
	finding_evidence(finding, "memory.streams_live", (double)memory->streams_live, "count",
			 where);
	finding_advice(finding,
		       _("Make streams once and use them again; destroy those of a step with "
			 "cudaStreamDestroy"));
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->memory.count; i++) {
		const struct memory_fact *memory = &facts->memory.at[i];

		if (memory->leaks.count)
			tell_blocks(facts, rule, memory, findings);
		if (memory->streams_live != FACT_UNKNOWN && memory->streams_leaked)
			tell_streams(facts, rule, memory, findings);
	}
}

const struct rule rule_leak = {
	.id = "leak",
	.title = N_("Something is obtained again and again and never given back"),
	.why = N_("What every step leaves behind fills the card in the end."),
	.layer = LAYER_TIMELINE,
	.apply = apply,
};
