/*
 * top.h - one picture of the cards and of who uses them, as text and JSON.
 *
 * Utilisation says only that some kernel ran. So it never stands alone: SM
 * activity stands in front of it, or, on a card that does not tell it, the most
 * that power and memory use allow, marked as a guess.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "collect/host_load.h"
#include "collect/roster.h"
#include "present/present.h"

struct top_view {
	const struct snapshot *snapshot;
	const struct roster_row *rows;
	size_t row_count;
	const struct proc *openers; /* roster_openers */
	size_t opener_count;
	struct host_load host;
	double host_busy;    /* share of CPU time since the round before; NAN unknown */
	bool nested;         /* this shell has a PID namespace of its own */
	int64_t round_ns;    /* between the rounds that rates and GPM are of */
	const char *trouble; /* why there is nothing newer; NULL */
	/* What is to be seen, filled by top_select. */
	VEC(uint32_t) boards; /* places in snapshot.boards */
	VEC(uint32_t) shown;  /* places in rows, in order */
};

struct top_filter {
	const char *gpu; /* numbers, UUIDs (also their beginning) or bus addresses with ',' between;
			    NULL all */
	const char *user; /* name or number; NULL all */
	const char *pid;  /* numbers with ',' between; NULL all */
	const char *sort; /* "mem", "sm", "pid", "user"; NULL: by card, then memory */
};

/* Without a snapshot: ERR_USAGE for texts that can't be meant. With one:
 * ERR_MISSING for a GPU that is not there. */
int top_filter_check(const struct top_filter *filter, struct err *err);
int top_select(struct top_view *view, const struct top_filter *filter, struct err *err);
void top_view_done(struct top_view *view);

/* The most of the card's capacity that can be in use, in %, by what power and
 * memory use show; false: nothing to go by, or SM activity is measured. */
bool top_bound(const struct board *board, double *ret_pct);
/* Memory held, and no work for so long: 10 s. */
bool top_is_idle_holder(const struct roster_row *row);

/* What holds the clock down, one name a reason, of an NVML mask; NULL past the
 * last. Idle is no reason. Marked N_(). */
const char *top_clock_reason(uint64_t mask, size_t number);

void present_top(const struct top_view *view, const struct present_style *style, struct buf *out);
/* schema "sonde.top/1": doc/formats/top.md. One line if `compact`. */
void present_top_json(const struct top_view *view, bool compact, struct buf *out);
/* {"schema": "sonde.top/1", "error": line}, in one line: a round that failed. */
void present_top_json_error(const char *line, struct buf *out);
