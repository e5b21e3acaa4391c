/*
 * The throttle ledger: how long each limit was in force, and the clock it cost.
 *
 * Between two samples a limit was in force for as long as the driver's counter
 * of it moved; without a counter, for the driver's share of the interval; without
 * that, for the interval if its bit was set at the end. The clock meanwhile is
 * the mean of the two samples. Where limits overlap, so that their times add up
 * to more than the interval, each bears its part of the lost clock.
 *
 * Counters: NVML fields 74, 76, 269 to 271 and nvmlDeviceGetViolationStatus.
 */
#include <math.h>

#include "analyze/system.h"

/* NVML reference, nvmlClocksEventReasons. */
static const struct {
	enum metric counter;
	unsigned int bit;
} LIMITS[LIMIT_COUNT] = {
	[LIMIT_POWER] = { METRIC_reason_power_cap_us, 0x4 },
	[LIMIT_SW_THERMAL] = { METRIC_reason_sw_thermal_us, 0x20 },
	[LIMIT_HW_THERMAL] = { METRIC_reason_hw_thermal_us, 0x40 },
	[LIMIT_POWER_BRAKE] = { METRIC_reason_power_brake_us, 0x80 },
	[LIMIT_SYNC_BOOST] = { METRIC_reason_sync_boost_us, 0x10 },
};

/* What one interval says of one limit. */
struct stretch {
	enum ledger_means means;
	double ns;
	bool reset;
};

static struct stretch by_counter(const struct series *series, enum metric metric, size_t i,
				 double span_ns)
{
	double before = series_at(series, metric, i - 1), now = series_at(series, metric, i);
	struct stretch stretch = { .means = LEDGER_UNKNOWN };

	if (isnan(before) || isnan(now))
		return stretch;
	stretch.means = LEDGER_COUNTER;
	stretch.reset = now < before;
	/* A counter that began again counts from then on. */
	stretch.ns = fmin(span_ns, 1e3 * (stretch.reset ? now : now - before));
	return stretch;
}

static struct stretch limited_in(const struct series *series, enum limit limit, size_t i,
				 double span_ns, bool gap)
{
	struct stretch stretch = by_counter(series, LIMITS[limit].counter, i, span_ns);
	double share_pct =
		limit == LIMIT_POWER ? series_at(series, METRIC_power_violation_pct, i) : NAN;
	double mask = series_at(series, METRIC_clock_reasons, i);

	if (stretch.means != LEDGER_UNKNOWN || gap)
		return stretch;
	if (!isnan(share_pct)) {
		stretch.means = LEDGER_SHARE;
		stretch.ns = span_ns * fmax(0, fmin(100, share_pct)) / 100;
	} else if (mask >= 0 && mask <= UINT32_MAX) {
		stretch.means = LEDGER_SAMPLED;
		stretch.ns = (unsigned int)mask & LIMITS[limit].bit ? span_ns : 0;
	}
	return stretch;
}

/* Clock below the reference as a share of it; NAN unknown. */
static double lost_share(const struct series *series, double reference_mhz, size_t i)
{
	double before = series_at(series, METRIC_sm_mhz, i - 1);
	double now = series_at(series, METRIC_sm_mhz, i);
	double mhz = isnan(before) ? now : isnan(now) ? before : (before + now) / 2;

	if (isnan(mhz) || !(reference_mhz > 0))
		return NAN;
	return fmax(0, 1 - mhz / reference_mhz);
}

/* The weakest means that went into a row names it. */
static void add_means(struct ledger_row *row, enum ledger_means means)
{
	row->means = means > row->means ? means : row->means;
}

static void add_interval(const struct series *series, size_t i, double span_ns, bool gap,
			 double share, struct ledger *ledger)
{
	struct stretch stretch[LIMIT_COUNT];
	double sum_ns = 0;
	bool reset = false;

	for (int k = 0; k < LIMIT_COUNT; k++) {
		stretch[k] = limited_in(series, (enum limit)k, i, span_ns, gap);
		sum_ns += stretch[k].ns;
		reset |= stretch[k].reset;
	}
	ledger->resets += reset;
	for (int k = 0; k < LIMIT_COUNT; k++) {
		struct ledger_row *row = &ledger->row[k];
		double part_ns = stretch[k].ns;

		if (stretch[k].means == LEDGER_UNKNOWN)
			continue;
		add_means(row, stretch[k].means);
		row->ns += (int64_t)llround(part_ns);
		if (isnan(share) || gap || part_ns <= 0)
			continue;
		row->mhz_lost = isnan(row->mhz_lost) ? 0 : row->mhz_lost;
		row->mhz_lost += (share * ledger->reference_mhz - row->mhz_lost) * part_ns /
				 ((double)row->clocked_ns + part_ns);
		row->clocked_ns += (int64_t)llround(part_ns);
		if (sum_ns > span_ns)
			part_ns *= span_ns / sum_ns;
		row->lost_ns += (int64_t)llround(share * part_ns);
	}
}

static bool says_anything(const struct series *series, size_t i, bool gap)
{
	for (int k = 0; k < LIMIT_COUNT; k++)
		if (limited_in(series, (enum limit)k, i, 1, gap).means != LEDGER_UNKNOWN)
			return true;
	return false;
}

void system_ledger(const struct series *series, double reference_mhz, int64_t interval_ns,
		   struct ledger *ledger)
{
	if (isnan(ledger->reference_mhz) || reference_mhz > ledger->reference_mhz)
		ledger->reference_mhz = reference_mhz;
	for (size_t i = 1; i < series->count; i++) {
		double span_ns = (double)series->time_ns[i] - (double)series->time_ns[i - 1];
		bool gap = interval_ns > 0 && span_ns > GAP_INTERVALS * (double)interval_ns;

		if (span_ns <= 0 || !says_anything(series, i, gap))
			continue;
		ledger->observed_ns += (int64_t)span_ns;
		add_interval(series, i, span_ns, gap, lost_share(series, reference_mhz, i), ledger);
	}
}
