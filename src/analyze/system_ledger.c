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

/* From one sample to a later one. */
struct stretch {
	size_t first, last;
	double span_ns;
	bool gap;     /* not observed throughout */
	double share; /* clock below the reference, as a share of it; NAN unknown */
};

static double interval_of(const struct series *series, size_t i)
{
	return (double)series->time_ns[i] - (double)series->time_ns[i - 1];
}

static double clock_at(const struct series *series, size_t i)
{
	double before = series_at(series, METRIC_sm_mhz, i - 1);
	double now = series_at(series, METRIC_sm_mhz, i);

	return isnan(before) ? now : isnan(now) ? before : (before + now) / 2;
}

static struct stretch stretch_of(const struct series *series, double reference_mhz,
				 int64_t interval_ns, size_t first, size_t last)
{
	struct stretch stretch = { .first = first, .last = last, .share = NAN };
	double sum = 0, known_ns = 0;

	for (size_t i = first + 1; i <= last; i++) {
		double span_ns = interval_of(series, i), mhz = clock_at(series, i);

		stretch.span_ns += span_ns;
		stretch.gap |= interval_ns > 0 && span_ns > GAP_INTERVALS * (double)interval_ns;
		if (isnan(mhz) || !(reference_mhz > 0))
			continue;
		sum += span_ns * fmax(0, 1 - mhz / reference_mhz);
		known_ns += span_ns;
	}
	if (known_ns > 0 && !stretch.gap)
		stretch.share = sum / known_ns;
	return stretch;
}

/* Time under a limit in a stretch. */
struct limited {
	enum ledger_means means;
	double ns;
};

static struct limited by_counter(const struct series *series, enum metric metric,
				 const struct stretch *stretch, bool *ret_reset)
{
	double before = series_at(series, metric, stretch->first);
	double now = series_at(series, metric, stretch->last);

	if (isnan(before) || isnan(now))
		return (struct limited){ LEDGER_UNKNOWN, 0 };
	*ret_reset |= now < before;
	/* A counter that began again counts from then on. */
	return (struct limited){ LEDGER_COUNTER, fmin(stretch->span_ns,
						      1e3 * (now < before ? now : now - before)) };
}

static struct limited by_sample(const struct series *series, enum limit limit,
				const struct stretch *stretch)
{
	double mask = series_at(series, METRIC_clock_reasons, stretch->last);
	double share_pct = limit == LIMIT_POWER
				   ? series_at(series, METRIC_power_violation_pct, stretch->last)
				   : NAN;

	if (stretch->gap)
		return (struct limited){ LEDGER_UNKNOWN, 0 };
	if (!isnan(share_pct))
		return (struct limited){ LEDGER_SHARE,
					 stretch->span_ns * fmax(0, fmin(100, share_pct)) / 100 };
	if (!(mask >= 0 && mask <= UINT32_MAX))
		return (struct limited){ LEDGER_UNKNOWN, 0 };
	return (struct limited){ LEDGER_SAMPLED,
				 (unsigned int)mask & LIMITS[limit].bit ? stretch->span_ns : 0 };
}

/* The weakest means that went into a row names it. */
static void add_row(struct ledger_row *row, const struct limited *limited,
		    const struct stretch *stretch, double scale, double reference_mhz)
{
	row->means = limited->means > row->means ? limited->means : row->means;
	row->ns += (int64_t)llround(limited->ns);
	if (isnan(stretch->share) || limited->ns <= 0)
		return;
	row->mhz_lost = isnan(row->mhz_lost) ? 0 : row->mhz_lost;
	row->mhz_lost += (stretch->share * reference_mhz - row->mhz_lost) * limited->ns /
			 ((double)row->clocked_ns + limited->ns);
	row->clocked_ns += (int64_t)llround(limited->ns);
	row->lost_ns += (int64_t)llround(stretch->share * limited->ns * scale);
}

/* What the stretch says of the limits that have a counter, or of those that
 * have none. True: something. */
static bool add_stretch(const struct series *series, const struct stretch *stretch, bool counters,
			struct ledger *ledger)
{
	struct limited limited[LIMIT_COUNT] = { { LEDGER_UNKNOWN, 0 } };
	double sum_ns = 0, scale;
	bool any = false, reset = false;

	for (int k = 0; k < LIMIT_COUNT; k++) {
		if ((series->col[LIMITS[k].counter] != NULL) != counters)
			continue;
		limited[k] = counters ? by_counter(series, LIMITS[k].counter, stretch, &reset)
				      : by_sample(series, (enum limit)k, stretch);
		any |= limited[k].means != LEDGER_UNKNOWN;
		sum_ns += limited[k].ns;
	}
	ledger->resets += reset;
	scale = sum_ns > stretch->span_ns ? stretch->span_ns / sum_ns : 1;
	for (int k = 0; k < LIMIT_COUNT; k++)
		if (limited[k].means != LEDGER_UNKNOWN)
			add_row(&ledger->row[k], &limited[k], stretch, scale,
				ledger->reference_mhz);
	return any;
}

static bool has_counter(const struct series *series, size_t i)
{
	for (int k = 0; k < LIMIT_COUNT; k++)
		if (!isnan(series_at(series, LIMITS[k].counter, i)))
			return true;
	return false;
}

void system_ledger(const struct series *series, double reference_mhz, int64_t interval_ns,
		   struct ledger *ledger)
{
	double observed_ns = 0, counted_ns = 0;
	size_t counted = 0;
	bool begun = false;

	if (isnan(ledger->reference_mhz) || reference_mhz > ledger->reference_mhz)
		ledger->reference_mhz = reference_mhz;
	for (size_t i = 0; i < series->count; i++) {
		struct stretch stretch;

		begun &= !i || !series_broken(series, i - 1, i);
		if (i && interval_of(series, i) > 0 && !series_broken(series, i - 1, i)) {
			stretch = stretch_of(series, reference_mhz, interval_ns, i - 1, i);
			if (add_stretch(series, &stretch, false, ledger))
				observed_ns += stretch.span_ns;
		}
		/* Counters may be read less often than the rest. */
		if (!has_counter(series, i))
			continue;
		stretch = stretch_of(series, reference_mhz, interval_ns, begun ? counted : i, i);
		if (stretch.span_ns > 0 && add_stretch(series, &stretch, true, ledger))
			counted_ns += stretch.span_ns;
		counted = i;
		begun = true;
	}
	ledger->observed_ns += (int64_t)fmax(observed_ns, counted_ns);
}
