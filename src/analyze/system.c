#include "analyze/system.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/store.h"

/* "nvidia-smi says busy." */
static const double HIGH_UTIL_PCT = 95;
static const double BUSY_UTIL_PCT = 10;

/* Times of hostile files are cut to where differences and sums can't overflow;
 * 70 years are enough for others. */
#define SYSTEM_TIME_LIMIT_NS (INT64_MAX / 4)

static int64_t within_limits(int64_t ns)
{
	if (ns > SYSTEM_TIME_LIMIT_NS)
		return SYSTEM_TIME_LIMIT_NS;
	return ns < -SYSTEM_TIME_LIMIT_NS ? -SYSTEM_TIME_LIMIT_NS : ns;
}

struct system {
	VEC(struct series) series; /* one for each lane of samples */
};

static void system_done(struct system *system)
{
	for (size_t i = 0; i < system->series.count; i++)
		series_done(&system->series.at[i]);
	VEC_DONE(&system->series);
}

static struct series *series_of(struct system *system, const struct session *session, uint32_t lane)
{
	const struct lane *row = &session->lanes.at[lane];
	struct series *series;

	/* Chunks come in order of lane. */
	if (system->series.count && system->series.at[system->series.count - 1].lane == lane)
		return &system->series.at[system->series.count - 1];
	series = VEC_ADD(&system->series);
	series->lane = lane;
	series->device = row->device;
	series->source = row->source;
	series->process = row->kind == LANE_PROCESS ? row->process : SESSION_NONE;
	return series;
}

static int load(struct store *store, const struct session *session, struct system *system,
		struct err *err)
{
	const struct store_query query = { .kinds = STORE_BIT(STORE_sample),
					   .columns = COL_BIT(COL_start) };
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int got;

	if (store_query_open(store, &query, &cursor, err) < 0)
		return err_context(err, "samples");
	while ((got = store_next(cursor, &batch, err)) > 0) {
		const struct lane *lane = &session->lanes.at[batch.lane];
		struct series *series;

		if (!batch.samples || lane->device >= session->devices.count ||
		    (lane->kind != LANE_BOARD && lane->kind != LANE_PROCESS))
			continue;
		series = series_of(system, session, batch.lane);
		for (size_t i = 0; i < batch.count; i++)
			series_add(series, &batch.samples[i],
				   within_limits(session_time(session, lane->source,
							      batch.samples[i].time_ns)));
	}
	return got;
}

static bool of_board(const struct series *series, uint32_t device)
{
	return series->device == device && series->process == SESSION_NONE;
}

static int64_t numbers_in(const struct series *series, enum metric metric)
{
	int64_t count = 0;

	for (size_t i = 0; series->col[metric] && i < series->count; i++)
		count += !isnan(series->col[metric][i]);
	return count;
}

/* The file that says most about a metric of the device, the main one first. */
static const struct series *best_for(const struct system *system, const struct series *main_series,
				     enum metric metric)
{
	const struct series *best = main_series;
	int64_t most = numbers_in(main_series, metric);

	if (most)
		return best;
	for (size_t i = 0; i < system->series.count; i++) {
		const struct series *series = &system->series.at[i];
		int64_t count;

		if (!of_board(series, main_series->device))
			continue;
		count = numbers_in(series, metric);
		if (count > most) {
			most = count;
			best = series;
		}
	}
	return best;
}

static struct metric_stats stats_in(const struct series *series, enum metric metric)
{
	OWN(own_freep) double *values = NULL;
	struct metric_stats stats = { 0 };

	if (!series->col[metric])
		return stats;
	values = mem_copy(series->col[metric], series->count * sizeof(*values));
	stats_of(values, series->count, &stats);
	return stats;
}

/* The distance of neighbours in time that is met most in the middle. */
static int64_t spacing_of(const struct series *series)
{
	OWN(own_freep) double *steps = NULL;
	size_t count = 0;

	if (series->count < 2)
		return FACT_UNKNOWN;
	steps = mem_alloc(series->count * sizeof(*steps));
	for (size_t i = 1; i < series->count; i++)
		if (series->time_ns[i] > series->time_ns[i - 1])
			steps[count++] =
				(double)series->time_ns[i] - (double)series->time_ns[i - 1];
	return count ? (int64_t)median_of(steps, count) : FACT_UNKNOWN;
}

static void clock_facts(const struct session *session, const struct series *series,
			struct system_facts *ret)
{
	const struct source *source = &session->sources.at[series->source];

	ret->interval_assumed = source->interval_assumed;
	ret->has_clock = source->has_utc || (source->interval_ns > 0 && !source->interval_assumed);
	ret->first_ns = series->time_ns[0];
	ret->last_ns = series->time_ns[series->count - 1];
	ret->interval_ns =
		source->interval_ns > 0 ? within_limits(source->interval_ns) : spacing_of(series);
}

/* Medians over the samples in which utilisation says that the device is full. */
static void high_util_facts(const struct series *series, double limit_w, struct system_facts *ret)
{
	OWN(own_freep) double *power = mem_alloc(series->count * sizeof(*power));
	OWN(own_freep) double *active = mem_alloc(series->count * sizeof(*active));
	size_t count = 0;

	for (size_t i = 0; i < series->count; i++) {
		double own_limit_w = series_at(series, METRIC_power_limit_w, i);

		if (!(series_at(series, METRIC_util_pct, i) >= HIGH_UTIL_PCT))
			continue;
		if (isnan(own_limit_w))
			own_limit_w = limit_w;
		power[count] =
			own_limit_w > 0 ? series_at(series, METRIC_power_w, i) / own_limit_w : NAN;
		active[count++] = series_at(series, METRIC_sm_active_pct, i);
	}
	ret->high_util_samples = (int64_t)count;
	ret->high_util_power_share = median_of(power, count);
	ret->high_util_sm_active_pct = median_of(active, count);
}

/* "At work": below, a clock says little of what the card can do. */
static const double LOAD_UTIL_PCT = 50;

static double load_median(const struct series *series, enum metric metric, int64_t *ret_count)
{
	OWN(own_freep) double *values = mem_alloc(series->count * sizeof(*values));
	size_t count = 0;

	for (size_t i = 0; i < series->count; i++)
		if (series_at(series, METRIC_util_pct, i) >= LOAD_UTIL_PCT)
			values[count++] = series_at(series, metric, i);
	*ret_count = (int64_t)count;
	return median_of(values, count);
}

static void load_facts(const struct series *series, struct system_facts *ret)
{
	ret->load_sm_mhz = load_median(series, METRIC_sm_mhz, &ret->load_samples);
	ret->load_power_w = load_median(series, METRIC_power_w, &ret->load_samples);
	ret->load_temp_c = load_median(series, METRIC_temp_c, &ret->load_samples);
}

static void job_facts(const struct series *series, struct system_facts *ret)
{
	OWN(own_freep) double *util = mem_alloc(series->count * sizeof(*util));
	size_t count = 0, period = 0;

	for (size_t i = 0; i < series->count; i++) {
		double value = series_at(series, METRIC_util_pct, i);

		if (isnan(value))
			continue;
		util[count++] = value;
		ret->busy_samples += value >= BUSY_UTIL_PCT;
	}
	/* A period in samples is one in time only if all of them say something. */
	ret->character = system_character(util, count, &period);
	if (period && ret->interval_ns > 0 && ret->interval_ns < INT64_MAX / (int64_t)period)
		ret->period_ns = (int64_t)period * ret->interval_ns;
}

static struct board_limits limits_of(const struct system *system, const struct system_facts *facts,
				     uint32_t device)
{
	struct board_limits limits = { NAN, NAN, NAN, NAN };

#define LAST(field, metric_id)              \
	if (facts->metric[metric_id].count) \
		limits.field = facts->metric[metric_id].last;
	LAST(power_limit_w, METRIC_power_limit_w)
	LAST(max_sm_mhz, METRIC_max_sm_mhz)
	LAST(temp_slowdown_c, METRIC_temp_slowdown_c)
#undef LAST
	for (size_t i = 0; i < system->series.count; i++) {
		const struct series *series = &system->series.at[i];

		for (size_t k = 0; of_board(series, device) && k < series->count; k++)
			limits.highest_sm_mhz =
				fmax(limits.highest_sm_mhz, series_at(series, METRIC_sm_mhz, k));
	}
	return limits;
}

static const struct series *main_of(const struct system *system, uint32_t device)
{
	const struct series *most = NULL;

	for (size_t i = 0; i < system->series.count; i++) {
		const struct series *series = &system->series.at[i];

		if (of_board(series, device) && series->count &&
		    (!most || series->count > most->count))
			most = series;
	}
	return most;
}

static void device_facts(const struct system *system, const struct session *session,
			 struct device_fact *fact)
{
	const struct series *series = main_of(system, fact->device);
	struct system_facts *ret = &fact->system;
	struct board_limits limits;

	if (!series)
		return;
	fact->has_system = true;
	ret->source = series->source;
	ret->samples = (int64_t)series->count;
	ret->samples_outside = (int64_t)series->left_out;
	clock_facts(session, series, ret);
	for (int m = 0; m < METRIC_COUNT; m++)
		ret->metric[m] = stats_in(best_for(system, series, (enum metric)m), (enum metric)m);
	limits = limits_of(system, ret, fact->device);
	high_util_facts(series, limits.power_limit_w, ret);
	load_facts(series, ret);
	job_facts(series, ret);
	if (series->col[METRIC_mem_used_bytes])
		memory_growth(series->time_ns, series->col[METRIC_mem_used_bytes], series->count,
			      &ret->mem_growth_bytes_s, &ret->mem_growth_bytes);
	/* Other files of the device may have seen other stretches. */
	for (size_t i = 0; i < system->series.count; i++) {
		const struct series *at = &system->series.at[i];
		int64_t spacing_ns = spacing_of(at);

		if (!of_board(at, fact->device))
			continue;
		system_episodes(at, &limits, spacing_ns, fact);
		system_ledger(at, system_reference_mhz(at, &limits), spacing_ns, &ret->ledger);
	}
}

/* Processes over the time that the device was looked at. */
static void process_facts(const struct system *system, struct facts *facts)
{
	for (size_t i = 0; i < facts->processes.count; i++) {
		struct process_fact *fact = &facts->processes.at[i];
		const struct series *board = main_of(system, fact->device);
		int64_t from_ns = INT64_MAX, to_ns = INT64_MIN;

		for (size_t k = 0; k < system->series.count; k++) {
			const struct series *at = &system->series.at[k];

			if (at->device != fact->device || !at->count ||
			    (board && at->process == SESSION_NONE && at != board))
				continue;
			from_ns = at->time_ns[0] < from_ns ? at->time_ns[0] : from_ns;
			to_ns = at->time_ns[at->count - 1] > to_ns ? at->time_ns[at->count - 1]
								   : to_ns;
		}
		for (size_t k = 0; k < system->series.count; k++) {
			const struct series *at = &system->series.at[k];

			if (at->device == fact->device && at->process == fact->process)
				process_use(at, from_ns, to_ns + 1, fact);
		}
	}
	process_shares(facts);
}

/* What `sonde run` sampled while nothing was recorded (set-up before a capture
 * range, between two, the end of the program) says nothing of what the report speaks of. */
static void cut_to_window(const struct facts *facts, struct series *series)
{
	const struct session *session = facts->session;
	const struct device_fact *device;
	struct recorded recorded;
	int64_t interval_ns;

	if (series->device >= facts->devices.count || series->source >= session->sources.count ||
	    strcmp(session_text(session, session->sources.at[series->source].reader), "nvml") != 0)
		return;
	device = &facts->devices.at[series->device];
	interval_ns = within_limits(session->sources.at[series->source].interval_ns);
	recorded = (struct recorded){
		.from_ns = within_limits(device->window_start_ns),
		.to_ns = within_limits(device->window_start_ns) + within_limits(device->window_ns),
		.pauses = device->pauses.at,
		.pause_count = device->pauses.count,
	};
	if (device->has_timeline)
		series_cut(series, interval_ns, &recorded);
}

int analyze_system(struct store *store, struct facts *facts, struct err *err)
{
	const struct session *session = facts->session;
	struct system system = { 0 };
	int status = load(store, session, &system, err);

	if (status >= 0) {
		for (size_t i = 0; i < system.series.count; i++) {
			series_sort(&system.series.at[i]);
			cut_to_window(facts, &system.series.at[i]);
		}
		for (size_t i = 0; i < facts->devices.count; i++)
			device_facts(&system, session, &facts->devices.at[i]);
		system_processes(system.series.at, system.series.count, facts);
		process_facts(&system, facts);
		system_twins(facts);
	}
	system_done(&system);
	return status < 0 ? status : 0;
}
