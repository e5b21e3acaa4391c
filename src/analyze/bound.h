/*
 * bound.h - what binds a kernel, from a table of hardware metrics.
 *
 * Pure functions over a table of (name, unit, value): no store, no session.
 * Names are NVIDIA's, or "Section / Display Name" from section pages. The
 * procedure and where each threshold comes from: doc/bound.md.
 */
#pragma once

#include "analyze/facts.h"

struct metric_row {
	const char *name, *unit; /* verbatim */
	double value;            /* in that unit; NAN: no number */
};

/* One kernel's metrics: the median over its launches. Sorted by name. */
struct metric_table {
	VEC(struct metric_row) rows;
};

void metric_table_add(struct metric_table *table, const char *name, const char *unit, double value);
/* Before the first look-up. */
void metric_table_sort(struct metric_table *table);
void metric_table_done(struct metric_table *table);

/* NULL if the table has no such number. */
const struct metric_row *metric_row_find(const struct metric_table *table, const char *name);
/* The value in base units (ns, bytes, Hz, plain counts, percent); NAN. */
double metric_find_value(const struct metric_table *table, const char *name);
/* The first of several names, which end with NULL, that has a value. */
const struct metric_row *metric_row_first(const struct metric_table *table,
					  const char *const *names);
double metric_first(const struct metric_table *table, const char *const *names);

/* Groups of units that can bind on their own. */
enum unit_group { UNIT_DRAM, UNIT_L2, UNIT_L1, UNIT_MIO, UNIT_PIPE, UNIT_ISSUE, UNIT_GROUP_COUNT };

/* The busiest counter of a group. */
struct unit_load {
	double pct; /* of peak, while the SMs had work; NAN not measured */
	const char *unit;
	struct number number; /* as measured */
	bool headline;        /* a sum of units, not the unit's own counter */
};

struct unit_loads {
	struct unit_load group[UNIT_GROUP_COUNT];
	struct unit_load slice; /* the busiest L2 slice */
};

void unit_loads_read(const struct metric_table *table, const struct kernel_counters *counters,
		     struct unit_loads *ret_loads);
void kernel_counters_read(const struct metric_table *table, struct kernel_counters *ret_counters);

/* Groups of stall reasons; research names them in doc/bound.md. */
enum stall_group {
	STALL_MEMORY,
	STALL_SHARED,
	STALL_SYNC,
	STALL_DEPENDENCY,
	STALL_FETCH,
	STALL_OTHER,
	STALL_GROUP_COUNT
};
const char *stall_group_name(enum stall_group group);
/* STALL_OTHER for what is no reason. */
enum stall_group stall_group_of(const char *reason);

struct stall_list {
	VEC(struct stall_share) at; /* largest first; without selected and not_selected */
	double samples;             /* PC samples behind them; NAN: from counters */
	bool few;                   /* too few samples to rest a share on */
	double share[STALL_GROUP_COUNT];
};

/* What is told of PC samples holds with 99 % certainty: standard deviations. */
extern const double STALL_SIGMAS;

struct stall_lead {
	const char *reason;  /* that most samples name, "not_selected" among them; NULL: too few */
	double samples, all; /* of it; of all reasons */
	bool sure;           /* it leads by more than chance */
};

/* SMs that are sampled at the same moment may run in step: of `in_step` samples each
 * no more is known than of one. */
void stall_lead_read(const struct metric_table *table, double in_step, struct stall_lead *ret_lead);
void stall_list_read(const struct metric_table *table, struct stall_list *ret_stalls);
void stall_list_done(struct stall_list *stalls);
/* The reason that a CPIStall message of ncu speaks of and its share in 0..1;
 * NULL if it speaks of none. */
const char *stall_of_message(const char *message, double *ret_share);

/* The verdict. Texts that are made live in `arena`; the lists are the caller's
 * to release. */
void bound_decide(const struct metric_table *table, struct arena *arena,
		  struct bound_fact *ret_bound);

/* After bound_decide, of kernels in a timeline: where launches came so slowly that
 * the device was idle for longer than the kernel ran, that is the verdict, and
 * what the counters say is the runner-up. */
void bound_launch(struct facts *facts);

/* Thresholds that rules share. */
extern const double BOUND_HIGH_PCT, BOUND_BUSY_PCT, BOUND_STALL_SHARE, BOUND_TAIL_LOSS,
	BOUND_IDLE_SM_SHARE;
