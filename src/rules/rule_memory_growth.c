#include "base/i18n.h"
#include "base/units.h"
#include "rules/advise.h"
#include "rules/tell.h"

#include <math.h>

/* The framework's own count of allocated bytes: steady growth over so many
 * steps, and so much in each. Warming up takes a few steps. */
static const size_t STEPS_LEAST = 20;
static const double GROWTH_BYTES_PER_STEP = 64.0 * 1024;

static const struct advice ADVICE[] = {
	{ N_("Look for tensors that are kept: losses or outputs in a list (use .detach() or "
	     ".item()), state that holds its graph, caches without a bound, hooks, exceptions "
	     "that keep frames"),
	  N_("Look for what a step obtains and does not give back (cudaMalloc, cudaMallocAsync "
	     "without cudaFree), and for caches without a bound") },
	{ N_("If the framework's own count stays flat while the card's grows: fragmentation "
	     "(PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True), new streams or graphs, or a "
	     "library outside the framework"),
	  N_("If what the program obtains stays flat while the card's count grows: new streams, "
	     "events or graphs, modules loaded again, or a library's work space") },
};

static const struct advice NEXT = {
	N_("torch.cuda.memory._record_memory_history() and _dump_snapshot(\"snapshot.pickle\") "
	   "show each block with its stack"),
	N_("sonde run -- COMMAND says what is held at the end, and which code obtained it"),
};

static void advice(const struct facts *facts, struct finding *finding)
{
	advise(facts, finding, ADVICE, sizeof(ADVICE) / sizeof(*ADVICE));
	if (program_of(facts) == PROGRAM_FRAMEWORK || !recorded_by_run(facts))
		advise_next(facts, finding, NEXT);
}

static const char *time_left(const struct device_fact *device, struct findings *findings,
			     double bytes_s)
{
	const struct metric_stats *used = &device->system.metric[METRIC_mem_used_bytes];
	const struct metric_stats *total = &device->system.metric[METRIC_mem_total_bytes];
	double left_s;
	struct unit_text text;

	if (!used->count || !total->count || !(total->last > used->last))
		return "";
	left_s = (total->last - used->last) / bytes_s;
	/* In a century it is no news. */
	if (!(left_s < 3e9))
		return "";
	return finding_text(findings, _(" At this rate the card is full in %s."),
			    units_ns(&text, whole_of(left_s * 1e9)));
}

static void of_device(const struct facts *facts, const struct rule *rule,
		      const struct device_fact *device, struct findings *findings)
{
	const struct system_facts *system = &device->system;
	struct finding *finding = finding_add(findings, rule, SEVERITY_WARN);
	struct unit_text grown, minute;
	const char *where = tell_device(facts, findings, device->device);

	finding->device = device->device;
	finding->claim = finding_text(
		findings, _("Memory in use on %s grew steadily by %s, %s a minute (%s).%s"), where,
		units_bytes(&grown, whole_of(system->mem_growth_bytes)),
		units_bytes(&minute, whole_of(60 * system->mem_growth_bytes_s)),
		tell_file(facts, system->source),
		time_left(device, findings, system->mem_growth_bytes_s));
	finding_evidence(finding, "mem_growth_bytes", system->mem_growth_bytes, "B", where);
	finding_evidence(finding, "mem_growth_bytes_s", system->mem_growth_bytes_s, "B/s", where);
	if (system->interval_assumed)
		finding_lose_grade(finding);
	advice(facts, finding);
}

static void of_process(const struct facts *facts, const struct rule *rule,
		       const struct process_fact *process, struct findings *findings)
{
	struct finding *finding = finding_add(findings, rule, SEVERITY_WARN);
	const struct process *row = &facts->session->processes.at[process->process];
	struct unit_text grown, minute;
	const char *where = finding_text(findings, _("pid %lld"), (long long)row->pid);

	finding->device = process->device;
	finding->claim = finding_text(
		findings,
		_("The memory of process %lld (%s) on %s grew steadily by %s, %s a minute."),
		(long long)row->pid, tell_name(facts, row->name),
		tell_device(facts, findings, process->device),
		units_bytes(&grown, whole_of(process->mem_growth_bytes)),
		units_bytes(&minute, whole_of(60 * process->mem_growth_bytes_s)));
	finding_evidence(finding, "mem_growth_bytes", process->mem_growth_bytes, "B", where);
	finding_evidence(finding, "mem_growth_bytes_s", process->mem_growth_bytes_s, "B/s", where);
	advice(facts, finding);
}

static const char *where_of(const struct facts *facts, const struct memory_fact *memory,
			    struct findings *findings)
{
	return memory->device == SESSION_NONE ? _("the host")
					      : tell_device(facts, findings, memory->device);
}

static void of_allocator(const struct facts *facts, const struct rule *rule,
			 const struct memory_fact *memory, struct findings *findings)
{
	struct finding *finding;
	struct unit_text bytes;
	const char *where;

	if (memory->steps < STEPS_LEAST) {
		findings_abstain(findings, rule,
				 ngettext("%s: allocations grow from step to step, but %zu step is "
					  "too few to call it a leak (%zu are needed)",
					  "%s: allocations grow from step to step, but %zu steps "
					  "are too few to call it a leak (%zu are needed)",
					  memory->steps),
				 where_of(facts, memory, findings), memory->steps, STEPS_LEAST);
		return;
	}
	finding = finding_add(findings, rule, SEVERITY_WARN);
	where = where_of(facts, memory, findings);
	finding->device = memory->device;
	finding->claim = finding_text(
		findings,
		memory->sites.count ? _("What the program holds on %s grows by %s in each step, "
					"over %zu steps.")
				    : _("What the framework has allocated on %s grows by %s in "
					"each step, over %zu steps."),
		where, units_bytes(&bytes, whole_of(memory->growth_bytes_per_step)), memory->steps);
	finding_evidence(finding, "growth_bytes_per_step", memory->growth_bytes_per_step, "B",
			 where);
	advice(facts, finding);
}

static void apply(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	for (size_t i = 0; i < facts->devices.count; i++)
		if (facts->devices.at[i].system.mem_growth_bytes > 0)
			of_device(facts, rule, &facts->devices.at[i], findings);
	for (size_t i = 0; i < facts->processes.count; i++)
		if (facts->processes.at[i].mem_growth_bytes > 0 && facts->session &&
		    facts->processes.at[i].process < facts->session->processes.count)
			of_process(facts, rule, &facts->processes.at[i], findings);
	for (size_t i = 0; i < facts->memory.count; i++)
		/* Where the blocks are known that stay behind, rule_leak says more. */
		if (facts->memory.at[i].growth_bytes_per_step >= GROWTH_BYTES_PER_STEP &&
		    !facts->memory.at[i].leaks.count)
			of_allocator(facts, rule, &facts->memory.at[i], findings);
}

const struct rule rule_memory_growth = {
	.id = "memory_growth",
	.title = N_("GPU memory keeps growing"),
	.why = N_("Memory that grows by the same amount all the time is never given back, and ends "
		  "the job when the card is full."),
	.layer = LAYER_SYSTEM,
	.apply = apply,
};
