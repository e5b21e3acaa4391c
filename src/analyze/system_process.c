/*
 * Processes on a device, and whether two of them ran on it at once.
 *
 * The rows of one sampling have one time. A process counts in it if it is of
 * compute type (or of unknown type) and used the SMs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/system.h"

/* Less SM use than this is a context that breathes, or the rounding of the tool. */
static const double USES_SM_PCT = 5;

struct use {
	uint32_t device, source;
	int64_t time_ns;
	size_t process; /* index into facts.processes */
	double sm_pct;
};

static int by_round(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->process > y->process) - (x->process < y->process);
}

static bool same_round(const struct use *a, const struct use *b)
{
	return a->device == b->device && a->source == b->source && a->time_ns == b->time_ns;
}

static bool computes(const struct session *session, uint32_t process)
{
	const char *type;

	if (process >= session->processes.count)
		return false;
	type = session_text(session, session->processes.at[process].type);
	return strcmp(type, "G") != 0;
}

static struct process_fact *fact_of(struct facts *facts, const struct series *series)
{
	struct process_fact *fact;

	for (size_t i = 0; i < facts->processes.count; i++) {
		fact = &facts->processes.at[i];
		if (fact->device == series->device && fact->process == series->process)
			return fact;
	}
	fact = VEC_ADD(&facts->processes);
	*fact = (struct process_fact){
		.device = series->device,
		.process = series->process,
		.sm_pct_mean = NAN,
		.sm_pct_max = NAN,
		.mem_bytes = NAN,
		.mem_bytes_first = NAN,
		.mem_growth_bytes_s = NAN,
		.mem_growth_bytes = NAN,
		.sm_pct_shared = NAN,
		.sm_pct_solo = NAN,
		.first_ns = FACT_UNKNOWN,
		.last_ns = FACT_UNKNOWN,
		.sm_ns = FACT_UNKNOWN,
		.sm_share = NAN,
	};
	for (int i = 0; i < PROCESS_SLOTS; i++)
		fact->slot_pct[i] = NAN;
	return fact;
}

static void mean_add(double *mean, int64_t count_before, double value)
{
	*mean = count_before ? *mean + (value - *mean) / (double)(count_before + 1) : value;
}

static void memory_of(const struct series *series, struct process_fact *fact)
{
	const double *used = series->col[METRIC_proc_mem_used_bytes];

	if (!used)
		return;
	for (size_t i = 0; i < series->count; i++) {
		if (isnan(used[i]))
			continue;
		fact->mem_bytes = used[i];
		if (isnan(fact->mem_bytes_first))
			fact->mem_bytes_first = used[i];
	}
	if (isnan(fact->mem_growth_bytes))
		memory_growth(series->time_ns, used, series->count, &fact->mem_growth_bytes_s,
			      &fact->mem_growth_bytes);
}

/* One round: who used the SMs, and with whom. */
static void round_add(const struct use *uses, size_t count, struct facts *facts)
{
	struct device_fact *device = &facts->devices.at[uses[0].device];
	size_t users = 0;

	for (size_t i = 0; i < count; i++)
		users += !i || uses[i].process != uses[i - 1].process;
	device->process_rounds++;
	device->shared_rounds += users > 1;
	for (size_t i = 0; i < count; i++) {
		struct process_fact *fact = &facts->processes.at[uses[i].process];

		if (users > 1)
			mean_add(&fact->sm_pct_shared, fact->shared_rounds++, uses[i].sm_pct);
		else
			mean_add(&fact->sm_pct_solo, fact->solo_rounds++, uses[i].sm_pct);
	}
}

void system_processes(const struct series *series, size_t count, struct facts *facts)
{
	VEC(struct use) uses = { 0 };

	for (size_t k = 0; k < count; k++) {
		const struct series *at = &series[k];
		struct process_fact *fact;
		double sm_pct, sum = 0;
		int64_t known = 0;

		if (at->process == SESSION_NONE || at->device >= facts->devices.count)
			continue;
		fact = fact_of(facts, at);
		for (size_t i = 0; i < at->count; i++) {
			sm_pct = series_at(at, METRIC_proc_sm_pct, i);
			if (isnan(sm_pct))
				continue;
			known++;
			sum += sm_pct;
			fact->sm_pct_max = fmax(fact->sm_pct_max, sm_pct);
			if (sm_pct >= USES_SM_PCT && computes(facts->session, at->process))
				*VEC_ADD(&uses) =
					(struct use){ at->device, at->source, at->time_ns[i],
						      (size_t)(fact - facts->processes.at),
						      sm_pct };
		}
		fact->samples += (int64_t)at->count;
		if (known && isnan(fact->sm_pct_mean))
			fact->sm_pct_mean = sum / (double)known;
		memory_of(at, fact);
	}
	if (uses.count)
		qsort(uses.at, uses.count, sizeof(*uses.at), by_round);
	for (size_t i = 0, end; i < uses.count; i = end) {
		for (end = i + 1; end < uses.count && same_round(&uses.at[i], &uses.at[end]);)
			end++;
		round_add(&uses.at[i], end - i, facts);
	}
	VEC_DONE(&uses);
}
