/*
 * Stretches in which a limit held the clock down.
 *
 * Each sample is judged alone: by what the driver says (violation time, clock
 * event reasons, their counters), else by power at the limit or temperature at
 * its limit together with a clock that is lower than before. Neighbouring
 * samples of one reason make an episode. Where a file says nothing about
 * limits, a clock that stays down under load is still told, and marked.
 *
 * Bits of the clock event reasons: nvml.h, nvmlClocksEventReason*.
 */
#include <math.h>
#include <string.h>

#include "analyze/system.h"
#include "base/mem.h"

enum {
	BIT_IDLE = 0x1,
	BIT_POWER_CAP = 0x4,
	BIT_HW_SLOWDOWN = 0x8,
	BIT_SYNC_BOOST = 0x10,
	BIT_SW_THERMAL = 0x20,
	BIT_HW_THERMAL = 0x40,
	BIT_POWER_BRAKE = 0x80,
};

/* A limit in force for less of a sample than this costs next to no clock. */
static const double LIMITED_SHARE = 0.1;

/* Power so close to the limit is at it: the board regulates a little below.
 * "power.draw >= 97 % of enforced limit", doc/rules/power_wall.md. */
static const double AT_LIMIT_SHARE = 0.97;

/* Within this of the temperature at which the clock is cut, in degrees. */
static const double NEAR_SLOWDOWN_C = 2;

/* A clock lower than the highest by less than this is jitter of a few steps of
 * 15 MHz: no loss without a reason that the driver gives. */
static const double LOST_SHARE = 0.03;

/* Without any reason given, the clock must be down by more, under load, for so
 * many samples, before we speak of it. */
static const double UNEXPLAINED_LOST_SHARE = 0.05;
static const size_t UNEXPLAINED_SAMPLES = 3;
static const double LOAD_UTIL_PCT = 50;

/* Samples without the reason that an episode may bridge. */
enum { BRIDGE_SAMPLES = 1 };

/* Samples that may lie between two readings of a counter: ten a second and one a
 * second, and some. */
static const size_t SPARSE_MOST = 32;

/* In order of precedence: the first that holds names the sample. */
enum why { WHY_NONE, WHY_BRAKE, WHY_THERMAL, WHY_POWER, WHY_SYNC_BOOST, WHY_UNKNOWN };

static const char *const WHY_NAME[] = {
	"", "power_brake", "thermal", "power", "sync_boost", "unknown",
};

struct judge {
	const struct series *series;
	const struct board_limits *limits;
	double reference_mhz; /* of a clock that nothing holds down; NAN */
	double highest_w;     /* in this series; NAN */
	bool limits_reported; /* violations, reasons or counters are in the file */
};

/* The part of the time since the sample before in which a counter of us ran. */
static double counter_share(const struct series *series, enum metric metric, size_t i)
{
	size_t from = i, to = i;
	double before, now, span_us;

	if (i == 0 || !series->col[metric])
		return 0;
	/* Counters may be read less often than the rest: a sample between two
	 * readings has the share of the time between them. */
	while (to + 1 < series->count && to - i < SPARSE_MOST && isnan(series->col[metric][to]))
		to++;
	do
		from--;
	while (from && i - from < SPARSE_MOST && isnan(series->col[metric][from]));
	before = series->col[metric][from];
	now = series->col[metric][to];
	span_us = ((double)series->time_ns[to] - (double)series->time_ns[from]) / 1e3;
	/* A counter that fell was reset with the driver. */
	if (!(now > before) || span_us <= 0 || series_broken(series, from, to))
		return 0;
	return (now - before) / span_us;
}

static bool counted(const struct series *series, enum metric metric, size_t i)
{
	return counter_share(series, metric, i) >= LIMITED_SHARE;
}

static double clock_lost(const struct judge *judge, size_t i)
{
	return 1 - series_at(judge->series, METRIC_sm_mhz, i) / judge->reference_mhz;
}

static bool power_limited(const struct judge *judge, size_t i, unsigned int bits)
{
	const struct series *series = judge->series;

	if (series_at(series, METRIC_power_violation_pct, i) >= 100 * LIMITED_SHARE)
		return true;
	if (bits & BIT_POWER_CAP || counted(series, METRIC_reason_power_cap_us, i))
		return true;
	return series_at(series, METRIC_power_w, i) >=
		       AT_LIMIT_SHARE * judge->limits->power_limit_w &&
	       clock_lost(judge, i) >= LOST_SHARE;
}

static bool thermal_limited(const struct judge *judge, size_t i, unsigned int bits)
{
	const struct series *series = judge->series;

	if (series_at(series, METRIC_thermal_violation, i) > 0)
		return true;
	if (bits & (BIT_SW_THERMAL | BIT_HW_THERMAL))
		return true;
	if (counted(series, METRIC_reason_sw_thermal_us, i) ||
	    counted(series, METRIC_reason_hw_thermal_us, i))
		return true;
	return series_at(series, METRIC_temp_c, i) >=
		       judge->limits->temp_slowdown_c - NEAR_SLOWDOWN_C &&
	       clock_lost(judge, i) >= LOST_SHARE;
}

/* Is the device at work? Without utilisation, as much power as ever says so. */
static bool loaded(const struct judge *judge, size_t i)
{
	double util_pct = series_at(judge->series, METRIC_util_pct, i);

	if (!isnan(util_pct))
		return util_pct >= LOAD_UTIL_PCT;
	return series_at(judge->series, METRIC_power_w, i) >= AT_LIMIT_SHARE * judge->highest_w;
}

/* Slower than seen before, under load, and nobody says why. */
static bool unexplained(const struct judge *judge, size_t i)
{
	return loaded(judge, i) && clock_lost(judge, i) >= UNEXPLAINED_LOST_SHARE;
}

static enum why why_at(const struct judge *judge, size_t i)
{
	const struct series *series = judge->series;
	double mask = series_at(series, METRIC_clock_reasons, i);
	unsigned int bits = mask >= 0 && mask <= UINT32_MAX ? (unsigned int)mask : 0;

	if (bits & BIT_POWER_BRAKE || counted(series, METRIC_reason_power_brake_us, i))
		return WHY_BRAKE;
	if (thermal_limited(judge, i, bits))
		return WHY_THERMAL;
	if (power_limited(judge, i, bits))
		return WHY_POWER;
	if (bits & BIT_SYNC_BOOST || counted(series, METRIC_reason_sync_boost_us, i))
		return WHY_SYNC_BOOST;
	if (bits & BIT_HW_SLOWDOWN)
		return WHY_UNKNOWN;
	/* The driver was asked and names no limit: then a lower clock is a
	 * setting, not a loss. */
	if (judge->limits_reported || bits & BIT_IDLE)
		return WHY_NONE;
	return unexplained(judge, i) ? WHY_UNKNOWN : WHY_NONE;
}

static double median_in(const struct series *series, enum metric metric, size_t first, size_t last)
{
	OWN(own_freep) double *values = NULL;

	if (!series->col[metric])
		return NAN;
	values = mem_copy(&series->col[metric][first], (last - first + 1) * sizeof(*values));
	return median_of(values, last - first + 1);
}

static double highest_in(const struct series *series, enum metric metric, size_t first, size_t last)
{
	double highest = NAN;

	for (size_t i = first; i <= last; i++)
		highest = fmax(highest, series_at(series, metric, i));
	return highest;
}

static void episode_add(const struct judge *judge, enum why why, size_t first, size_t last,
			int64_t interval_ns, struct device_fact *fact)
{
	const struct series *series = judge->series;
	struct episode at = {
		.reason = WHY_NAME[why],
		.source = series->source,
		.start_ns = series->time_ns[first],
		.end_ns = series->time_ns[last],
		.first_sample = (int64_t)series_number(series, first),
		.last_sample = (int64_t)series_number(series, last),
		.mhz_in = median_in(series, METRIC_sm_mhz, first, last),
		.mhz_before = judge->reference_mhz,
		.power_w = median_in(series, METRIC_power_w, first, last),
		.temp_c = highest_in(series, METRIC_temp_c, first, last),
	};

	if (why == WHY_UNKNOWN && !judge->limits_reported) {
		if (last - first + 1 < UNEXPLAINED_SAMPLES)
			return;
		at.by_plateau = true;
		/* As much power as it ever drew, and a falling clock: that is how
		 * a board looks that regulates its power. */
		if (at.power_w >= AT_LIMIT_SHARE * judge->highest_w)
			at.reason = WHY_NAME[WHY_POWER];
	}
	/* A sample stands for the interval that begins with it. */
	if (interval_ns > 0 && at.end_ns < INT64_MAX - interval_ns)
		at.end_ns += interval_ns;
	/* If nothing faster was seen, the depth is unknown, not nought. */
	at.mhz_lost = at.mhz_before > at.mhz_in ? at.mhz_before - at.mhz_in : NAN;
	*VEC_ADD(&fact->episodes) = at;
}

static bool any_reported(const struct series *series)
{
	return series->col[METRIC_power_violation_pct] || series->col[METRIC_clock_reasons] ||
	       series->col[METRIC_reason_power_cap_us];
}

/* The clock that the board would run at: the highest that was seen. If none
 * was seen outside the limits, what it can do at most says more. */
static double reference_clock(const struct judge *judge)
{
	double seen = judge->limits->highest_sm_mhz;
	double highest_free = NAN;

	for (size_t i = 0; i < judge->series->count; i++)
		if (why_at(judge, i) == WHY_NONE)
			highest_free =
				fmax(highest_free, series_at(judge->series, METRIC_sm_mhz, i));
	if (highest_free >= seen)
		return seen;
	return fmax(seen, judge->limits->max_sm_mhz);
}

static struct judge judge_of(const struct series *series, const struct board_limits *limits)
{
	struct judge judge = { .series = series, .limits = limits };

	judge.limits_reported = any_reported(series);
	judge.highest_w =
		series->count ? highest_in(series, METRIC_power_w, 0, series->count - 1) : NAN;
	judge.reference_mhz = limits->highest_sm_mhz;
	judge.reference_mhz = reference_clock(&judge);
	return judge;
}

double system_reference_mhz(const struct series *series, const struct board_limits *limits)
{
	return judge_of(series, limits).reference_mhz;
}

void system_episodes(const struct series *series, const struct board_limits *limits,
		     int64_t interval_ns, struct device_fact *fact)
{
	const struct judge judge = judge_of(series, limits);
	enum why open = WHY_NONE;
	size_t first = 0, last = 0;

	for (size_t i = 0; i < series->count; i++) {
		enum why why = why_at(&judge, i);

		if (open != WHY_NONE &&
		    (series_broken(series, last, i) ||
		     (why != open && (why != WHY_NONE || i - last > BRIDGE_SAMPLES)))) {
			episode_add(&judge, open, first, last, interval_ns, fact);
			open = WHY_NONE;
		}
		if (why == WHY_NONE)
			continue;
		if (open == WHY_NONE)
			first = i;
		open = why;
		last = i;
	}
	if (open != WHY_NONE)
		episode_add(&judge, open, first, last, interval_ns, fact);
}
