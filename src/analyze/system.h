/*
 * system.h - samples of devices and processes in memory, for analyze_system.
 *
 * A series holds what one source said about one device (or one process on it):
 * a column for each metric that occurs, NAN where a sample lacks it.
 */
#pragma once

#include "analyze/facts.h"

struct series {
	uint32_t lane, device, source, process;
	size_t count, room;
	size_t left_out;           /* samples that series_cut took away */
	size_t *number;            /* of each sample among all; NULL: none was taken away */
	int64_t *time_ns;          /* ascending */
	double *col[METRIC_COUNT]; /* NULL: never measured */
};

static inline double series_at(const struct series *series, enum metric metric, size_t i)
{
	return series->col[metric] ? series->col[metric][i] : __builtin_nan("");
}

static inline size_t series_number(const struct series *series, size_t i)
{
	return series->number ? series->number[i] : i;
}

/* Samples between the two were taken away: nothing is told of that time. */
static inline bool series_broken(const struct series *series, size_t first, size_t last)
{
	return series_number(series, last) - series_number(series, first) != last - first;
}

void series_add(struct series *series, const struct sample *sample, int64_t time_ns);
void series_sort(struct series *series);
void series_done(struct series *series);
/* The links' peaks into the copies; after the devices' samples. */
void link_facts(struct facts *facts);
/* Keep samples of which a part of the interval that begins with them lies in the recording
 * and in no pause, if any does; after series_sort. Pauses of up to GAP_INTERVALS are no break:
 * what is sampled in them goes on. What is asked for seldom (a limit, a link's width)
 * keeps its last value from outside. */
struct recorded {
	int64_t from_ns, to_ns;
	const struct interval *pauses;
	size_t pause_count;
};
void series_cut(struct series *series, int64_t interval_ns, const struct recorded *recorded);

/* Of the numbers among `values`, which it sorts. count 0: there are none. */
void stats_of(double *values, size_t count, struct metric_stats *ret);
/* Median of the numbers among `values`, which it sorts; NAN if there is none. */
double median_of(double *values, size_t count);

/* What other files say about the device; NAN unknown. */
struct board_limits {
	double power_limit_w, max_sm_mhz, highest_sm_mhz, temp_slowdown_c;
};

/* Stretches in which something held the clock down, added to fact->episodes. */
void system_episodes(const struct series *series, const struct board_limits *limits,
		     int64_t interval_ns, struct device_fact *fact);

/* The clock that the board would run at: the highest that was seen, or that it
 * can do if none was seen outside the limits. NAN unknown. */
double system_reference_mhz(const struct series *series, const struct board_limits *limits);

/* Time under each limit, added to the ledger. interval_ns: between samples;
 * a stretch of more than GAP_INTERVALS of it was not observed. */
enum { GAP_INTERVALS = 3 };
void system_ledger(const struct series *series, double reference_mhz, int64_t interval_ns,
		   struct ledger *ledger);

/* What kind of job the utilisation shows; *ret_period in samples, 0 unless periodic. */
enum job_character system_character(const double *util_pct, size_t count, size_t *ret_period);

/* Steady growth: bytes a second and over the whole; NAN both if there is none. */
void memory_growth(const int64_t *time_ns, const double *used_bytes, size_t count,
		   double *ret_bytes_s, double *ret_bytes);

/* process_fact for each process, and who shared a device. */
void system_processes(const struct series *series, size_t count, struct facts *facts);

/* How a process's use is spread over the device's recording [from_ns, to_ns),
 * added to *fact. */
void process_use(const struct series *series, int64_t from_ns, int64_t to_ns,
		 struct process_fact *fact);
/* Shares of each device's processes; after process_use of all series. */
void process_shares(struct facts *facts);

/* Cards that differ from the others of their name. */
void system_twins(struct facts *facts);
