#include "analyze/bound.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* Below this the sampled shares say little: a share of a half has an error of
 * 3.5 points at 200 samples (binomial). */
static const double SAMPLES_ENOUGH = 200;

/* Reasons, by the names of the hardware counters; PC sampling spells two
 * otherwise. The grouping follows what a warp waits for: doc/bound.md. */
static const struct {
	const char *counter, *sampled;
	enum stall_group group;
} REASONS[] = {
	{ "long_scoreboard", "long_scoreboard", STALL_MEMORY },
	{ "lg_throttle", "lg_throttle", STALL_MEMORY },
	{ "tex_throttle", "tex_throttle", STALL_MEMORY },
	{ "membar", "membar", STALL_MEMORY },
	{ "drain", "drain", STALL_MEMORY },
	{ "short_scoreboard", "short_scoreboard", STALL_SHARED },
	{ "mio_throttle", "mio_throttle", STALL_SHARED },
	{ "barrier", "barrier", STALL_SYNC },
	{ "gmma", "warpgroup_arrive", STALL_SYNC },
	{ "sleeping", "sleeping", STALL_SYNC },
	{ "wait", "wait", STALL_DEPENDENCY },
	{ "dispatch_stall", "dispatch_stall", STALL_DEPENDENCY },
	{ "math_pipe_throttle", "math_pipe_throttle", STALL_DEPENDENCY },
	{ "no_instruction", "no_instructions", STALL_FETCH },
	{ "branch_resolving", "branch_resolving", STALL_FETCH },
	{ "imc_miss", "imc_miss", STALL_FETCH },
	{ "misc", "misc", STALL_OTHER },
};
enum { REASON_COUNT = sizeof(REASONS) / sizeof(REASONS[0]) };

const char *stall_group_name(enum stall_group group)
{
	static const char *const names[] = { "memory",     "shared", "sync",
					     "dependency", "fetch",  "other" };

	return names[group];
}

enum stall_group stall_group_of(const char *reason)
{
	for (size_t i = 0; i < REASON_COUNT; i++) {
		if (!strcmp(REASONS[i].counter, reason))
			return REASONS[i].group;
	}
	return STALL_OTHER;
}

static int by_share(const void *a, const void *b)
{
	double left = ((const struct stall_share *)a)->share;
	double right = ((const struct stall_share *)b)->share;

	return left < right ? 1 : left > right ? -1 : 0;
}

/* Values of "BEFORE reason AFTER"; their sum, NAN if none was measured. */
static double read_form(const struct metric_table *table, const char *before, const char *after,
			bool sampled, double values[REASON_COUNT])
{
	double sum = NAN;

	for (size_t i = 0; i < REASON_COUNT; i++) {
		char name[160];

		(void)snprintf(name, sizeof(name), "%s%s%s", before,
			       sampled ? REASONS[i].sampled : REASONS[i].counter, after);
		values[i] = metric_find_value(table, name);
		if (values[i] >= 0)
			sum = (isfinite(sum) ? sum : 0) + values[i];
	}
	return sum;
}

static void set_shares(const double values[REASON_COUNT], double sum, struct stall_list *stalls)
{
	for (size_t i = 0; i < REASON_COUNT; i++) {
		if (!(values[i] > 0) || !(sum > 0))
			continue;
		*VEC_ADD(&stalls->at) = (struct stall_share){ REASONS[i].counter, values[i] / sum };
		stalls->share[REASONS[i].group] += values[i] / sum;
	}
	if (stalls->at.count)
		qsort(stalls->at.at, stalls->at.count, sizeof(*stalls->at.at), by_share);
}

/* Samples of warps that could not issue; of files without that, of all. */
static double read_samples(const struct metric_table *table, double values[REASON_COUNT])
{
	static const char before[] = "smsp__pcsamp_warps_issue_stalled_";
	double sum = read_form(table, before, "_not_issued", true, values);

	return sum > 0 ? sum : read_form(table, before, "", true, values);
}

/* Of fewer samples the spread of a count is not that of the normal distribution on
 * which the next rests. */
static const double TOP_SAMPLES = 30;
const double STALL_SIGMAS = 2.576;

void stall_lead_read(const struct metric_table *table, double in_step, struct stall_lead *ret_lead)
{
	static const char before[] = "smsp__pcsamp_warps_issue_stalled_";
	const char *top = NULL;
	double values[REASON_COUNT], most, next = 0, issued, ready;
	double all = read_form(table, before, "", true, values);
	double lead;

	issued = metric_find_value(table, "smsp__pcsamp_warps_issue_stalled_selected");
	ready = metric_find_value(table, "smsp__pcsamp_warps_issue_stalled_not_selected");
	most = ready >= 0 ? ready : 0;
	if (most > 0)
		top = "not_selected";
	all = (all >= 0 ? all : 0) + most + (issued >= 0 ? issued : 0);
	for (size_t i = 0; i < REASON_COUNT; i++) {
		if (values[i] > most) {
			next = most;
			most = values[i];
			top = REASONS[i].counter;
		} else if (values[i] > next) {
			next = values[i];
		}
	}
	lead = most - next;
	*ret_lead = (struct stall_lead){
		.reason = all >= TOP_SAMPLES ? top : NULL,
		.samples = most,
		.all = all,
		/* The variance of the difference of two counts is their sum (Poisson), times the
		 * number of samples that speak as one. */
		.sure = lead * lead >= STALL_SIGMAS * STALL_SIGMAS * (most + next) * in_step,
	};
}

static double read_counters(const struct metric_table *table, double values[REASON_COUNT])
{
	static const struct {
		const char *before, *after;
	} forms[] = {
		{ "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio" },
		{ "smsp__average_warp_latency_issue_stalled_", ".ratio" },
		{ "smsp__warp_issue_stalled_", "_per_warp_active.pct" },
	};
	double sum = NAN;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && !(sum > 0); i++)
		sum = read_form(table, forms[i].before, forms[i].after, false, values);
	return sum;
}

void stall_list_read(const struct metric_table *table, struct stall_list *ret_stalls)
{
	double values[REASON_COUNT];
	double sum = read_samples(table, values);

	memset(ret_stalls, 0, sizeof(*ret_stalls));
	ret_stalls->samples = sum;
	if (!(sum >= SAMPLES_ENOUGH)) {
		double counted = read_counters(table, values);

		ret_stalls->samples = NAN;
		if (counted > 0) {
			sum = counted;
		} else if (sum > 0) {
			sum = ret_stalls->samples = read_samples(table, values);
			ret_stalls->few = true;
		}
	}
	if (sum > 0) {
		set_shares(values, sum, ret_stalls);
		return;
	}
	/* Section pages have no counters of stalls, but ncu's rule says the largest: a
	 * share of all warp time, so of the stalls it is at least that. */
	ret_stalls->samples = NAN;
	if (read_form(table, "CPIStall ", "", false, values) > 0)
		set_shares(values, 100, ret_stalls);
}

void stall_list_done(struct stall_list *stalls)
{
	VEC_DONE(&stalls->at);
}

const char *stall_of_message(const char *message, double *ret_share)
{
	/* Phrases of the rule CPIStall, ncu 2020 to 2025; the first that fits. */
	static const struct {
		const char *phrase, *reason;
	} phrases[] = {
		{ "scoreboard dependency on a L1TEX", "long_scoreboard" },
		{ "scoreboard dependency on an L1TEX", "long_scoreboard" },
		{ "scoreboard dependency on a MIO", "short_scoreboard" },
		{ "scoreboard dependency on an MIO", "short_scoreboard" },
		{ "at a CTA barrier", "barrier" },
		{ "MIO (memory input/output) instruction queue", "mio_throttle" },
		{ "local and global (LG)", "lg_throttle" },
		{ "fixed latency execution dependency", "wait" },
		{ "execution pipe to be available", "math_pipe_throttle" },
		{ "memory barrier", "membar" },
		{ "immediate constant cache", "imc_miss" },
		{ "branch target to be", "branch_resolving" },
		{ "fetched", "no_instruction" },
		{ "sleep", "sleeping" },
	};
	const char *about = strstr(message, "represents about ");
	const char *end = about ? strchr(about, '%') : NULL;
	double pct;

	if (!end || !str_to_f64((struct str){ about + 17, (size_t)(end - about) - 17 }, &pct))
		return NULL;
	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++) {
		if (!strstr(message, phrases[i].phrase))
			continue;
		*ret_share = pct / 100;
		return phrases[i].reason;
	}
	return NULL;
}
