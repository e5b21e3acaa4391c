#include "analyze/facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/bound.h"
#include "analyze/system.h"
#include "analyze/timeline.h"
#include "store/store.h"

const char *grade_name(enum grade grade)
{
	static const char *const names[] = { "none", "low", "medium", "high" };

	return names[grade];
}

const char *idle_name(enum idle_cause cause)
{
	static const char *const names[] = {
#define X(id, name, what) [IDLE_##id] = name,
		IDLE_LIST(X)
#undef X
	};

	return names[cause];
}

const char *limit_name(enum limit limit)
{
	static const char *const names[] = {
#define X(id, name) [LIMIT_##id] = name,
		LIMIT_LIST(X)
#undef X
	};

	return names[limit];
}

const char *phase_name(enum phase phase)
{
	static const char *const names[] = {
#define X(id, name) [PHASE_##id] = name,
		PHASE_LIST(X)
#undef X
	};

	return names[phase];
}

const char *bound_name(enum bound_class bound)
{
	static const char *const names[] = {
#define X(id, name) [BOUND_##id] = name,
		BOUND_LIST(X)
#undef X
	};

	return names[bound];
}

static void device_unknown(struct device_fact *fact, uint32_t device)
{
	fact->device = device;
	fact->waiting_ns = FACT_UNKNOWN;
	fact->late_p50_ns = FACT_UNKNOWN;
	fact->delay_p50_ns = FACT_UNKNOWN;
	fact->delay_p95_ns = FACT_UNKNOWN;
	fact->host_wait_ns = FACT_UNKNOWN;
	fact->queued_p50_ns = FACT_UNKNOWN;
	fact->queued_p95_ns = FACT_UNKNOWN;
	fact->queue_max = FACT_UNKNOWN;
	fact->queue_mean = NAN;
	fact->kernel_p50_ns = FACT_UNKNOWN;
	fact->launch_p50_ns = FACT_UNKNOWN;
	fact->launch_gap_p50_ns = FACT_UNKNOWN;
	fact->coverage = NAN;
	for (int i = 0; i < IDLE_COUNT; i++)
		fact->idle[i].cause = fact->steady.idle[i].cause = i;
	fact->system.interval_ns = FACT_UNKNOWN;
	fact->system.period_ns = FACT_UNKNOWN;
	fact->system.mem_growth_bytes_s = NAN;
	fact->system.mem_growth_bytes = NAN;
	fact->system.high_util_power_share = NAN;
	fact->system.high_util_sm_active_pct = NAN;
	fact->system.load_sm_mhz = NAN;
	fact->system.load_power_w = NAN;
	fact->system.load_temp_c = NAN;
	fact->system.ledger.reference_mhz = NAN;
	for (int i = 0; i < LIMIT_COUNT; i++)
		fact->system.ledger.row[i].mhz_lost = NAN;
}

int step_name_bytes(const char *name)
{
	size_t len = strlen(name), digits = len;

	while (digits && name[digits - 1] >= '0' && name[digits - 1] <= '9')
		digits--;
	return (int)(digits < len && digits > 1 && name[digits - 1] == '#' ? digits - 1 : len);
}

size_t steps_of(const struct step_facts *steps, uint32_t source)
{
	size_t count = 0;

	for (size_t i = 0; i < steps->step.count; i++)
		count += steps->step.at[i].source == source;
	return count;
}

struct judged device_judged(const struct device_fact *device)
{
	const struct steady_fact *steady = &device->steady;

	if (steady->has)
		return (struct judged){ .steady = true,
					.idle = steady->idle,
					.span_ns = steady->span_ns,
					.busy_ns = steady->busy_ns,
					.idle_ns = steady->idle_ns,
					.kernel_ns = steady->kernel_ns,
					.kernel_count = steady->kernel_count,
					.launch_sum_ns = steady->launch_sum_ns,
					.waiting_ns = steady->waiting_ns,
					.collective_ns = steady->collective_ns };
	return (struct judged){ .idle = device->idle,
				.span_ns = device->span_ns,
				.busy_ns = device->busy_ns,
				.idle_ns = device->idle_ns,
				.kernel_ns = device->kernel_ns,
				.kernel_count = device->kernel_count,
				.launch_sum_ns = device->launch_sum_ns,
				.waiting_ns = device->waiting_ns,
				.collective_ns = device->collective_ns };
}

int facts_build(struct store *store, struct facts **ret_facts, struct err *err)
{
	OWN(facts_freep) struct facts *facts = mem_zero(sizeof(*facts));

	facts->session = store_session(store);
	facts->path = store_path(store);
	facts->was_cut = store_was_cut(store);
	facts->host_inflation = NAN;
	for (uint32_t i = 0; i < facts->session->devices.count; i++)
		device_unknown(VEC_ADD(&facts->devices), i);
	if (analyze_timeline(store, facts, err) < 0 || analyze_host(store, facts, err) < 0 ||
	    analyze_faults(store, facts, err) < 0)
		return err->code;
	if (analyze_system(store, facts, err) < 0 ||
	    clock_facts(facts->timeline, store, facts, err) < 0)
		return err->code;
	link_facts(facts);
	if (wait_facts(facts->timeline, store, facts, err) < 0 ||
	    stream_wait_facts(facts->timeline, store, facts, err) < 0)
		return err->code;
	/* Ten million events are not needed any more. */
	timeline_free(facts->timeline);
	facts->timeline = NULL;
	if (analyze_counters(store, facts, err) < 0 || analyze_overhead(store, facts, err) < 0 ||
	    analyze_page_faults(store, facts, err) < 0 || analyze_stalls(store, facts, err) < 0 ||
	    analyze_queued(store, facts, err) < 0)
		return err->code;
	bound_launch(facts);
	analyze_step_marks(facts);
	facts->damaged_chunks = store_damage(store);
	*ret_facts = STEAL(facts);
	return 0;
}

static void device_done(struct device_fact *fact)
{
	for (int i = 0; i < IDLE_COUNT; i++) {
		VEC_DONE(&fact->idle[i].during);
		VEC_DONE(&fact->steady.idle[i].during);
		VEC_DONE(&fact->idle[i].board);
		VEC_DONE(&fact->steady.idle[i].board);
	}
	VEC_DONE(&fact->pauses);
	VEC_DONE(&fact->episodes);
	VEC_DONE(&fact->held);
}

static void steps_done(struct step_facts *steps)
{
	for (size_t i = 0; i < steps->step.count; i++)
		VEC_DONE(&steps->step.at[i].differs);
	VEC_DONE(&steps->step);
}

void facts_free(struct facts *facts)
{
	if (!facts)
		return;
	timeline_free(facts->timeline);
	for (size_t i = 0; i < facts->devices.count; i++)
		device_done(&facts->devices.at[i]);
	VEC_DONE(&facts->devices);
	for (size_t i = 0; i < facts->kernels.count; i++) {
		VEC_DONE(&facts->kernels.at[i].bound.numbers);
		VEC_DONE(&facts->kernels.at[i].bound.notes);
		VEC_DONE(&facts->kernels.at[i].stalls);
	}
	VEC_DONE(&facts->kernels);
	VEC_DONE(&facts->ops);
	VEC_DONE(&facts->copies);
	VEC_DONE(&facts->page_faults);
	VEC_DONE(&facts->calls);
	VEC_DONE(&facts->phases);
	VEC_DONE(&facts->readbacks);
	VEC_DONE(&facts->waits);
	VEC_DONE(&facts->stream_waits);
	steps_done(&facts->steps);
	steps_done(&facts->requests);
	for (size_t i = 0; i < facts->memory.count; i++) {
		VEC_DONE(&facts->memory.at[i].leaks);
		VEC_DONE(&facts->memory.at[i].sites);
	}
	VEC_DONE(&facts->memory);
	VEC_DONE(&facts->ranges);
	VEC_DONE(&facts->overheads);
	VEC_DONE(&facts->calibrations);
	VEC_DONE(&facts->callbacks);
	VEC_DONE(&facts->pc_samplings);
	VEC_DONE(&facts->processes);
	VEC_DONE(&facts->twins);
	VEC_DONE(&facts->faults);
	for (size_t i = 0; i < facts->fault_groups.count; i++) {
		VEC_DONE(&facts->fault_groups.at[i].processes);
		VEC_DONE(&facts->fault_groups.at[i].patterns);
	}
	VEC_DONE(&facts->fault_groups);
	VEC_DONE(&facts->clock_marks);
	intern_free(facts->fault_strings);
	arena_done(&facts->arena);
	free(facts);
}
