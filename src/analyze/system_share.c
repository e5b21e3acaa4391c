/*
 * Processes over time: how much SM time each had, and when.
 *
 * A sample stands for the interval that ends with it: the time since the sample
 * before, or where that is long ago, the usual spacing.
 */
#include <math.h>

#include "analyze/system.h"
#include "base/mem.h"

static double usual_spacing(const struct series *series)
{
	OWN(own_freep) double *steps = mem_alloc((series->count + 1) * sizeof(*steps));

	for (size_t i = 1; i < series->count; i++)
		steps[i - 1] = (double)series->time_ns[i] - (double)series->time_ns[i - 1];
	return series->count > 1 ? median_of(steps, series->count - 1) : NAN;
}

static int slot_of(int64_t time_ns, int64_t from_ns, int64_t to_ns)
{
	double share = ((double)time_ns - (double)from_ns) / ((double)to_ns - (double)from_ns);
	int slot = (int)(share * PROCESS_SLOTS);

	return slot < 0 ? 0 : slot >= PROCESS_SLOTS ? PROCESS_SLOTS - 1 : slot;
}

/* Of an interval that ends in `last`: without the slot that it begins in, which
 * the sample before stands for. */
static int first_slot(double start_ns, int last, int64_t from_ns, int64_t to_ns)
{
	int first;

	if (isnan(start_ns))
		return last;
	if (start_ns < (double)from_ns)
		return 0;
	first = slot_of((int64_t)start_ns, from_ns, to_ns) + 1;
	return first < last ? first : last;
}

static void widen(struct process_fact *fact, int64_t time_ns)
{
	if (fact->first_ns == FACT_UNKNOWN || time_ns < fact->first_ns)
		fact->first_ns = time_ns;
	if (fact->last_ns == FACT_UNKNOWN || time_ns > fact->last_ns)
		fact->last_ns = time_ns;
}

void process_use(const struct series *series, int64_t from_ns, int64_t to_ns,
		 struct process_fact *fact)
{
	double sum[PROCESS_SLOTS] = { 0 }, usual_ns = usual_spacing(series), used_ns = 0;
	int64_t count[PROCESS_SLOTS] = { 0 };
	bool any = false;

	for (size_t i = 0; i < series->count; i++) {
		double pct = series_at(series, METRIC_proc_sm_pct, i);
		double span_ns =
			i ? (double)series->time_ns[i] - (double)series->time_ns[i - 1] : usual_ns;
		int slot, first;

		widen(fact, series->time_ns[i]);
		if (isnan(pct) || to_ns <= from_ns)
			continue;
		if (span_ns > GAP_INTERVALS * usual_ns)
			span_ns = usual_ns;
		slot = slot_of(series->time_ns[i], from_ns, to_ns);
		first = first_slot((double)series->time_ns[i] - span_ns, slot, from_ns, to_ns);
		for (int k = first; k <= slot; k++) {
			sum[k] += pct;
			count[k]++;
		}
		if (isnan(span_ns))
			continue;
		any = true;
		used_ns += pct / 100 * span_ns;
	}
	/* Several files may tell of a process; the first that does, does. */
	if (any && fact->sm_ns == FACT_UNKNOWN && used_ns < 9e18)
		fact->sm_ns = (int64_t)used_ns;
	for (int i = 0; i < PROCESS_SLOTS; i++)
		if (count[i] && isnan(fact->slot_pct[i]))
			fact->slot_pct[i] = sum[i] / (double)count[i];
}

void process_shares(struct facts *facts)
{
	for (size_t i = 0; i < facts->processes.count; i++) {
		struct process_fact *fact = &facts->processes.at[i];
		double all_ns = 0;

		for (size_t k = 0; k < facts->processes.count; k++)
			if (facts->processes.at[k].device == fact->device &&
			    facts->processes.at[k].sm_ns != FACT_UNKNOWN)
				all_ns += (double)facts->processes.at[k].sm_ns;
		if (fact->sm_ns != FACT_UNKNOWN && all_ns > 0)
			fact->sm_share = (double)fact->sm_ns / all_ns;
	}
}
