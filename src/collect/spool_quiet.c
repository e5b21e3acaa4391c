/*
 * spool_quiet.c - what recording costs, from windows in which it was off.
 *
 * The driver numbers the launches of a context. Numbers that no record has were
 * launched while recording was off: a hole for each quiet window. Its length over the
 * window's is what a launch takes without us, and the numbers between two holes over
 * the time between two windows are what it takes with us. Each window is compared with
 * the ones beside it; the median and the quartiles of those differences are told.
 *
 * Records that were lost make holes, too. So a run of numbers goes by time to the
 * window that it was launched in, all runs of a window count as one, and a window of
 * which no launch is known says nothing of the holes beside it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collect/spool_process.h"
#include "model/note.h"

enum { CONTEXTS_MAX = 16, RUNS_MAX = 1 << 16, WINDOWS_LEAST = 4, LAUNCHES_LEAST = 100 };

static struct context_grids *grids_of(struct spooled *p, uint32_t context)
{
	struct context_grids *grids;

	for (size_t i = p->grids.count; i-- > 0;) {
		if (p->grids.at[i].context == context)
			return &p->grids.at[i];
	}
	if (p->grids.count == CONTEXTS_MAX)
		return NULL;
	grids = VEC_ADD(&p->grids);
	grids->context = context;
	return grids;
}

/* The number of runs that begin at or before the number. */
static size_t runs_before(const struct context_grids *grids, int64_t number)
{
	size_t low = 0, high = grids->runs.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (grids->runs.at[middle].from <= number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t greatest(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The last window that began by then; `count`: none. */
static size_t window_at(const struct open_gate *open, size_t count, int64_t ns)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (open[middle].from_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : count;
}

/* Kernels of numbers that follow each other: is there a pause between them in which the
 * program launched nothing? The second is of another window, then. */
static bool is_apart(const struct spooled *p, int64_t first_ns, int64_t second_ns)
{
	const struct open_gate *open = p->gates.at;
	size_t at = window_at(open, p->gates.count, second_ns);

	return at && at < p->gates.count && first_ns < open[at].from_ns &&
	       second_ns - first_ns >= open[at].from_ns - open[at - 1].to_ns;
}

static void insert(const struct spooled *p, struct context_grids *grids, int64_t number,
		   int64_t start_ns)
{
	size_t at = runs_before(grids, number);
	struct grid_run *runs = grids->runs.at, *before = at ? &runs[at - 1] : NULL;
	bool joins = at < grids->runs.count && runs[at].from == number + 1 &&
		     !is_apart(p, start_ns, runs[at].first_ns);

	if (before && (before->to >= number ||
		       (before->to == number - 1 && !is_apart(p, before->last_ns, start_ns)))) {
		before->first_ns = least(before->first_ns, start_ns);
		before->last_ns = greatest(before->last_ns, start_ns);
		if (before->to >= number)
			return;
		before->to = number;
		if (!joins)
			return;
		before->to = runs[at].to;
		before->first_ns = least(before->first_ns, runs[at].first_ns);
		before->last_ns = greatest(before->last_ns, runs[at].last_ns);
		memmove(&runs[at], &runs[at + 1], (grids->runs.count - at - 1) * sizeof(*runs));
		grids->runs.count--;
	} else if (joins) {
		runs[at].from = number;
		runs[at].first_ns = least(runs[at].first_ns, start_ns);
		runs[at].last_ns = greatest(runs[at].last_ns, start_ns);
	} else if (grids->runs.count < RUNS_MAX) {
		(void)VEC_ADD(&grids->runs);
		runs = grids->runs.at;
		memmove(&runs[at + 1], &runs[at], (grids->runs.count - 1 - at) * sizeof(*runs));
		runs[at] = (struct grid_run){ number, number, start_ns, start_ns };
	}
}

/* A pause while contexts are made and modules come says nothing of what recording costs, and who
 * switches CUPTI then is where nobody else has been. */
bool spooled_is_settled(const struct spooled *p)
{
	static const int64_t SETTLED_NS = 1000000000;

	return p->set_up_ns && clock_steady_ns() - p->set_up_ns >= SETTLED_NS;
}

void spooled_quiet_kernel(struct spooled *p, const struct cupti_kernel *kernel)
{
	struct context_grids *grids = p->calibrates ? grids_of(p, kernel->context) : NULL;

	if (!grids || kernel->grid_id <= 0 || kernel->graph_node || kernel->grid_id == INT64_MAX)
		return;
	insert(p, grids, kernel->grid_id, spooled_time(p, kernel->start));
}

/* Of the context that launches most. */
static const struct context_grids *most_of(const struct spooled *p)
{
	const struct context_grids *most = NULL;
	int64_t numbers = 0;

	for (size_t i = 0; i < p->grids.count; i++) {
		const struct context_grids *grids = &p->grids.at[i];
		size_t count = grids->runs.count;
		int64_t span = count ? grids->runs.at[count - 1].to - grids->runs.at[0].from : -1;

		if (span >= numbers) {
			most = grids;
			numbers = span;
		}
	}
	return most;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct costs {
	size_t count;
	double *ns, *share; /* of each window */
	int64_t launches;   /* from the first to the last window */
};

/* What was launched in each window; from 0: not known. A kernel starts after its
 * launch, later by its queue at most, which is short beside a window. */
static struct grid_run *runs_of_windows(const struct spooled *p, const struct context_grids *grids)
{
	size_t count = p->gates.count;
	struct grid_run *windows = mem_zero((count + 1) * sizeof(*windows));

	for (size_t i = 0; i < grids->runs.count; i++) {
		const struct grid_run *run = &grids->runs.at[i];
		struct grid_run *window = &windows[window_at(p->gates.at, count, run->first_ns)];

		window->from = window->from ? least(window->from, run->from) : run->from;
		window->to = run->to > window->to ? run->to : window->to;
	}
	return windows;
}

/* `open` windows of recording, the hole behind each of them but the last. */
static void compare(const struct grid_run *runs, const struct open_gate *open, size_t count,
		    struct costs *costs)
{
	costs->launches = runs[count - 1].to - runs[0].from + 1;
	for (size_t i = 0; i + 1 < count; i++) {
		int64_t hole = runs[i + 1].from - runs[i].to - 1;
		int64_t with = 0, with_ns = 0;
		double quiet, traced;

		if (!runs[i].from || !runs[i + 1].from)
			continue;
		/* The first and the last run begin and end where the program does. */
		for (size_t k = i; k <= i + 1; k++) {
			if (k == 0 || k + 1 == count)
				continue;
			with += runs[k].to - runs[k].from + 1;
			with_ns += open[k].to_ns - open[k].from_ns;
		}
		if (hole < LAUNCHES_LEAST || with < LAUNCHES_LEAST)
			continue;
		quiet = (double)(open[i + 1].from_ns - open[i].to_ns) / (double)hole;
		traced = (double)with_ns / (double)with;
		costs->ns[costs->count] = traced - quiet;
		costs->share[costs->count++] = (traced - quiet) / traced;
	}
}

static void tell(struct spooled *p, struct costs *costs)
{
	size_t low = costs->count / 4, high = costs->count - 1 - low, middle = costs->count / 2;
	char text[320];
	int len;

	qsort(costs->ns, costs->count, sizeof(*costs->ns), by_value);
	qsort(costs->share, costs->count, sizeof(*costs->share), by_value);
	len = snprintf(text, sizeof(text),
		       "windows=%zu;launches=%" PRId64
		       ";ps_low=%.0f;ps=%.0f;ps_high=%.0f;ppm_low=%.0f;ppm=%.0f;ppm_high=%.0f",
		       costs->count, costs->launches, costs->ns[low] * 1e3, costs->ns[middle] * 1e3,
		       costs->ns[high] * 1e3, costs->share[low] * 1e6, costs->share[middle] * 1e6,
		       costs->share[high] * 1e6);
	session_env(p->sink->session, p->source, SESSION_NONE, STR("calibration"),
		    (struct str){ text, (size_t)len });
}

static const char *too_few(struct spooled *p, const struct grid_run *runs, size_t windows,
			   size_t compared)
{
	size_t known = 0;

	for (size_t i = 0; i < windows; i++)
		known += runs[i].from != 0;
	snprintf(p->quiet_why, sizeof(p->quiet_why), NOTE_COST_FEW, known, windows, compared,
		 WINDOWS_LEAST);
	return p->quiet_why;
}

const char *spooled_quiet_summary(struct spooled *p)
{
	const struct context_grids *grids = most_of(p);
	size_t from = 0, to = p->gates.count;
	struct costs costs = { 0 };
	struct grid_run *runs;
	const char *why = NULL;

	if (!grids || !grids->runs.count)
		return NOTE_COST_NUMBERS;
	runs = runs_of_windows(p, grids);
	/* Before the first kernel and after the last there is nothing to compare. */
	while (from < to && !runs[from].from)
		from++;
	while (to > from && !runs[to - 1].from)
		to--;
	if (to - from < WINDOWS_LEAST + 1) {
		free(runs);
		return NOTE_COST_SHORT;
	}
	costs.ns = mem_zero((to - from) * sizeof(*costs.ns));
	costs.share = mem_zero((to - from) * sizeof(*costs.share));
	compare(&runs[from], &p->gates.at[from], to - from, &costs);
	if (costs.count < WINDOWS_LEAST)
		why = too_few(p, &runs[from], to - from, costs.count);
	else
		tell(p, &costs);
	free(runs);
	free(costs.ns);
	free(costs.share);
	return why;
}
