#include <string.h>

#include "base/i18n.h"
#include "base/units.h"
#include "rules/advise.h"
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

		all = capped_add(all, whole_of((double)leak->block_bytes * (double)leak->count));
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
	advise(facts, finding,
	       &(struct advice){ N_("In a framework: look for tensors that are kept from step to "
				    "step, and caches without a bound"),
				 NULL },
	       1);
	finding_next(finding,
		     _("sonde sql PROFILE \"SELECT bytes, name, count(*) FROM alloc GROUP BY 1, 2 "
		       "ORDER BY 3 DESC LIMIT 20\""));
}

/* By enum held_kind. */
static const struct {
	const char *title, *advice, *leaked, *live;
	const char *mark; /* what the profile calls each one that is made */
} OBJECTS[HELD_KINDS] = {
	{ N_("Streams are made again and again and never destroyed"),
	  N_("Make streams once and use them again; destroy those of a step with "
	     "cudaStreamDestroy"),
	  "memory.streams_leaked", "memory.streams_live", "stream created" },
	{ N_("CUDA events are made again and again and never destroyed"),
	  N_("Keep events and record them again; destroy those of a step with cudaEventDestroy"),
	  "memory.events_leaked", "memory.events_live", "event created" },
	{ N_("CUDA graphs are made again and again and never destroyed"),
	  N_("Destroy a graph with cudaGraphDestroy once it is instantiated"),
	  "memory.graphs_leaked", "memory.graphs_live", "graph created" },
	{ N_("CUDA graphs are instantiated again and again and never destroyed"),
	  N_("Update an executable graph (cudaGraphExecUpdate) instead of making another one, or "
	     "destroy it with cudaGraphExecDestroy"),
	  "memory.graph_execs_leaked", "memory.graph_execs_live", "graph instantiated" },
};

static const char *claim_of(enum held_kind kind, const char *leaked, const char *where,
			    const char *live, struct findings *findings)
{
	switch (kind) {
	case HELD_STREAM:
		return finding_text(findings,
				    _("%s streams of %s that were made while it ran, again and "
				      "again, were left at the end (%s in all)."),
				    leaked, where, live);
	case HELD_EVENT:
		return finding_text(findings,
				    _("%s CUDA events of %s that were made while it ran, again "
				      "and again, were left at the end (%s in all)."),
				    leaked, where, live);
	case HELD_GRAPH:
		return finding_text(findings,
				    _("%s CUDA graphs of %s that were made while it ran, again "
				      "and again, were left at the end (%s in all)."),
				    leaked, where, live);
	default:
		return finding_text(findings,
				    _("%s executable graphs of %s that were instantiated while it "
				      "ran, again and again, were left at the end (%s in all)."),
				    leaked, where, live);
	}
}

static void tell_objects(const struct facts *facts, const struct rule *rule,
			 const struct memory_fact *memory, enum held_kind kind,
			 struct findings *findings)
{
	const struct object_fact *object = &memory->objects[kind];
	const char *where = where_of(facts, memory, findings);
	struct finding *finding = begin(rule, memory, findings);
	struct unit_text leaked, live;

	finding->title = _(OBJECTS[kind].title);
	finding->claim = claim_of(kind, units_count(&leaked, object->leaked), where,
				  units_count(&live, object->live), findings);
	finding_evidence(finding, OBJECTS[kind].leaked, (double)object->leaked, "count",
			 object->site ? object->site : where);
	finding_evidence(finding, OBJECTS[kind].live, (double)object->live, "count", where);
	finding_advice(finding, _(OBJECTS[kind].advice));
	finding_next(finding,
		     finding_text(findings,
				  _("sonde sql PROFILE \"SELECT detail, start_ns FROM mark WHERE "
				    "name = '%s' ORDER BY start_ns DESC LIMIT 20\""),
				  OBJECTS[kind].mark));
}

/* PyTorch keeps events that nobody uses, and makes one where none is left: until as many were
 * in use at once as ever will be, some are made now and then. One a step is another matter. */
static bool may_be_pool(const struct facts *facts, const struct object_fact *object)
{
	return object->site && strstr(object->site, "c10::cuda::CUDAEvent") &&
	       object->leaked < (int64_t)facts->steps.step.count;
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->memory.count; i++) {
		const struct memory_fact *memory = &facts->memory.at[i];

		if (memory->leaks.count)
			tell_blocks(facts, rule, memory, findings);
		for (int kind = 0; kind < HELD_KINDS; kind++) {
			if (memory->objects[kind].live != FACT_UNKNOWN &&
			    memory->objects[kind].leaked &&
			    !may_be_pool(facts, &memory->objects[kind]))
				tell_objects(facts, rule, memory, (enum held_kind)kind, findings);
		}
	}
}

const struct rule rule_leak = {
	.id = "leak",
	.title = N_("Something is obtained again and again and never given back"),
	.why = N_("What every step leaves behind fills the card in the end."),
	.layer = LAYER_TIMELINE,
	.apply = apply,
};
