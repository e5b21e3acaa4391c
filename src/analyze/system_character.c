/*
 * What the utilisation of a device tells of its job, and whether memory grows.
 */
#include <math.h>
#include <stdlib.h>

#include "analyze/order.h"
#include "analyze/system.h"
#include "base/mem.h"

/* "Some work": below, a desktop or a monitor keeps a card. */
static const double BUSY_PCT = 10;

/* Fewer samples say nothing about a job. */
static const size_t CHARACTER_SAMPLES = 10;

/* Steady: busy nearly always, and the level varies little round its mean. */
static const double STEADY_BUSY_SHARE = 0.9;
static const double STEADY_VARIATION = 0.25;

/* Periodic: so much of the variance repeats after the period (0.5 is a
 * quarter of noise in amplitude), it falls well below that in between, and the
 * recording holds three periods: two may be chance. */
static const double PERIODIC_CORRELATION = 0.5;
static const double PERIODIC_DIP = 0.3;
static const size_t PERIODS_LEAST = 3;

/* The autocorrelation is quadratic: lags and samples looked at. */
static const size_t LAG_MOST = 2000;
static const size_t CORRELATED_MOST = 20000;

/* Pairs of points for slopes are quadratic too. */
enum { GROWTH_POINTS = 200 };
static const size_t GROWTH_SAMPLES = 20;

/* Less growth than this is allocators at work. */
static const double GROWTH_LEAST_BYTES = 64.0 * 1024 * 1024;
static const double GROWTH_LEAST_SHARE = 0.02;

/* Of all pairs of points, more rise than fall by this share (Kendall's tau;
 * equal ones count as neither): a plateau after a start has less. */
static const double GROWTH_TREND = 0.6;

/* The last third must still grow at this part of the whole slope: a job that
 * filled its caches and stopped is no leak. */
static const double GROWTH_LATE_SHARE = 0.25;

/* A fall to less than this part of what was in use: another job begins. */
static const double RESTART_SHARE = 0.5;

static double mean_of(const double *values, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += values[i];
	return sum / (double)count;
}

/* How alike the values are to themselves `lag` later: 1 the same, 0 not at all. */
static double correlation(const double *values, size_t count, double mean, size_t lag)
{
	double sum = 0, early = 0, late = 0;

	for (size_t i = 0; i + lag < count; i++) {
		double x = values[i] - mean, y = values[i + lag] - mean;

		sum += x * y;
		early += x * x;
		late += y * y;
	}
	return early > 0 && late > 0 ? sum / sqrt(early * late) : 0;
}

/* The lag at which the values repeat, 0 if they don't: the top of the first
 * hill of the autocorrelation beyond its first dip. Multiples of the period are
 * later hills. */
static size_t period_of(const double *values, size_t count)
{
	size_t lag_end = count / PERIODS_LEAST + 1, best = 0;
	double mean = mean_of(values, count), best_r = 0;
	bool dipped = false;

	if (lag_end > LAG_MOST)
		lag_end = LAG_MOST;
	for (size_t lag = 1; lag < lag_end; lag++) {
		double r = correlation(values, count, mean, lag);

		if (r < PERIODIC_CORRELATION - PERIODIC_DIP) {
			if (best)
				break;
			dipped = true;
		}
		if (dipped && r >= PERIODIC_CORRELATION && r > best_r) {
			best = lag;
			best_r = r;
		}
	}
	return best;
}

enum job_character system_character(const double *util_pct, size_t count, size_t *ret_period)
{
	size_t first = 0, last = count, busy = 0, span;
	const double *at;
	double mean, variance = 0;

	*ret_period = 0;
	if (count < CHARACTER_SAMPLES)
		return CHARACTER_UNKNOWN;
	for (size_t i = 0; i < count; i++)
		busy += util_pct[i] >= BUSY_PCT;
	if (!busy)
		return CHARACTER_IDLE;
	/* What the job did, without the idle time before and after it. */
	while (util_pct[first] < BUSY_PCT)
		first++;
	while (util_pct[last - 1] < BUSY_PCT)
		last--;
	at = &util_pct[first];
	span = last - first;
	if (span < CHARACTER_SAMPLES)
		return CHARACTER_BURSTY;
	mean = mean_of(at, span);
	for (size_t i = 0; i < span; i++)
		variance += (at[i] - mean) * (at[i] - mean);
	variance /= (double)span;
	if ((double)busy >= STEADY_BUSY_SHARE * (double)span &&
	    sqrt(variance) <= STEADY_VARIATION * mean)
		return CHARACTER_STEADY;
	if (span > CORRELATED_MOST) {
		at += span - CORRELATED_MOST;
		span = CORRELATED_MOST;
	}
	*ret_period = period_of(at, span);
	return *ret_period ? CHARACTER_PERIODIC : CHARACTER_BURSTY;
}

struct point {
	double s, bytes;
};

/* Theil-Sen: the median of the slopes of all pairs, which a few odd samples
 * don't move. *ret_trend: share of rising minus share of falling pairs. */
static double slope_of(const struct point *points, size_t count, double *ret_trend)
{
	OWN(own_freep) double *slopes = mem_alloc((count * count / 2 + 1) * sizeof(*slopes));
	size_t kept = 0;
	double trend = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++) {
			double rise = points[j].bytes - points[i].bytes;

			if (!(points[j].s > points[i].s))
				continue;
			slopes[kept++] = rise / (points[j].s - points[i].s);
			trend += (rise > 0) - (rise < 0);
		}
	*ret_trend = kept ? trend / (double)kept : 0;
	if (!kept)
		return 0;
	qsort(slopes, kept, sizeof(*slopes), order_doubles);
	return slopes[kept / 2];
}

/* The longest stretch without a fall by half: one job. */
static void one_job(const struct point *points, size_t count, size_t *ret_first, size_t *ret_count)
{
	size_t first = 0;

	*ret_first = 0;
	*ret_count = 0;
	for (size_t i = 1; i <= count; i++) {
		if (i < count && points[i].bytes >= RESTART_SHARE * points[i - 1].bytes)
			continue;
		if (i - first > *ret_count) {
			*ret_first = first;
			*ret_count = i - first;
		}
		first = i;
	}
}

static size_t thin_out(struct point *points, size_t count)
{
	if (count <= GROWTH_POINTS)
		return count;
	for (size_t i = 0; i < GROWTH_POINTS; i++)
		points[i] = points[i * (count - 1) / (GROWTH_POINTS - 1)];
	return GROWTH_POINTS;
}

void memory_growth(const int64_t *time_ns, const double *used_bytes, size_t count,
		   double *ret_bytes_s, double *ret_bytes)
{
	OWN(own_freep) struct point *points = mem_alloc((count + 1) * sizeof(*points));
	size_t kept = 0, first, length, third;
	double slope, late, trend, late_trend, grown;
	const struct point *job;

	*ret_bytes_s = NAN;
	*ret_bytes = NAN;
	for (size_t i = 0; i < count; i++)
		if (!isnan(used_bytes[i]))
			points[kept++] = (struct point){ (double)time_ns[i] / 1e9, used_bytes[i] };
	one_job(points, kept, &first, &length);
	if (length < GROWTH_SAMPLES)
		return;
	length = thin_out(&points[first], length);
	job = &points[first];
	third = length - length / 3;
	slope = slope_of(job, length, &trend);
	late = slope_of(&job[third], length - third, &late_trend);
	grown = slope * (job[length - 1].s - job[0].s);
	if (trend < GROWTH_TREND || late < GROWTH_LATE_SHARE * slope ||
	    grown < GROWTH_LEAST_BYTES || grown < GROWTH_LEAST_SHARE * job[length / 2].bytes)
		return;
	*ret_bytes_s = slope;
	*ret_bytes = grown;
}
