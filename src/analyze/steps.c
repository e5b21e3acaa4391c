/*
 * Steps and requests: what repeats, how long it takes, which ones stand out.
 *
 * Steps are the profiler's own; else the range of a thread's top level that
 * repeats and takes most time; else the launches that repeat. Requests are ranges that start and
 * end without a thread (NVTX start/end): they may overlap.
 */
#include "analyze/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/order.h"
#include "base/i18n.h"
#include "base/units.h"

/* A range that comes less often is no step. */
static const int64_t REPEATS_LEAST = 3;
/* A repeated range that covers less of the recording is not what it is about. */
static const double COVER_LEAST = 0.3;
/* Fewer steps have no usual length to stand out from. */
static const size_t OUTLIER_STEPS = 4;
/* An outlier takes half as long again as the median, which nobody would call
 * jitter, and is five times the median deviation away, which for a normal
 * distribution is 3.4 standard deviations: one in 3,000. */
static const double OUTLIER_RATIO = 1.5;
static const double OUTLIER_DEVIATIONS = 5;
/* What differs is told when it makes up this share of the excess. */
static const double DIFFERS_SHARE = 0.2;

struct candidate {
	uint32_t name, lane;
	int64_t count, sum_ns;
};

struct candidates {
	VEC(struct candidate) all;
};

struct steps {
	struct timeline *timeline;
	struct facts *facts;
	struct step_facts *out;
	VEC(uint32_t) sources; /* of each step */
	VEC(int64_t) loader_ns;
};

/* A step of which recording missed half is none; launches that repeat have missed
 * their end where anything is missing. */
static bool is_missed(const struct steps *steps, const struct tl_range *range, bool launches)
{
	int64_t off_ns =
		pauses_within(&steps->timeline->pauses[range->source], range->start, range->end);

	return launches ? off_ns > 0 : off_ns > (range->end - range->start) / 2;
}

static void step_add(struct steps *steps, const struct tl_range *range, bool launches)
{
	struct step *step;

	if (is_missed(steps, range, launches)) {
		steps->out->missed++;
		return;
	}
	step = VEC_ADD(&steps->out->step);
	step->start_ns = range->start;
	step->end_ns = range->end;
	step->name = range->name;
	step->source = range->source;
	*VEC_ADD(&steps->sources) = range->source;
	*VEC_ADD(&steps->loader_ns) = 0;
}

static void profiler_steps(struct steps *steps)
{
	const struct timeline *timeline = steps->timeline;

	for (size_t i = 0; i < timeline->ranges.count; i++)
		if (timeline->ranges.at[i].kind == RANGE_STEP)
			step_add(steps, &timeline->ranges.at[i], false);
	if (steps->out->step.count) {
		steps->out->source = N_("profiler steps");
		steps->out->name = steps->out->step.at[0].name;
	}
}

/* Count a range; candidates are few: a program has few names at the top. */
static void candidate_add(struct candidates *candidates, const struct tl_range *range)
{
	struct candidate *at = NULL;

	enum { CANDIDATES_LIMIT = 256 };

	for (size_t i = 0; i < candidates->all.count && !at; i++)
		if (candidates->all.at[i].name == range->name &&
		    candidates->all.at[i].lane == range->lane)
			at = &candidates->all.at[i];
	if (!at && candidates->all.count == CANDIDATES_LIMIT)
		return;
	if (!at) {
		at = VEC_ADD(&candidates->all);
		at->name = range->name;
		at->lane = range->lane;
	}
	at->count++;
	at->sum_ns = capped_add(at->sum_ns, range->end - range->start);
}

/* A user range of the kind that is looked for: `top` with nothing of the user's
 * round it on its thread, else one that has no thread. */
static bool eligible(const struct timeline *timeline, const struct tl_range *range, bool top,
		     int64_t *until)
{
	bool thread = timeline->session->lanes.at[range->lane].kind == LANE_THREAD;

	if (range->kind != RANGE_USER || thread != top)
		return false;
	if (!top)
		return true;
	if (range->start < until[range->lane])
		return false;
	until[range->lane] = range->end;
	return true;
}

static void repeated_ranges(struct steps *steps, bool top)
{
	const struct timeline *timeline = steps->timeline;
	size_t bytes = (timeline->session->lanes.count + 1) * sizeof(int64_t);
	int64_t *until = mem_alloc(bytes);
	int64_t all_ns = capped_add(steps->facts->end_ns, -steps->facts->start_ns);
	struct candidates candidates = { 0 };
	const struct candidate *best = NULL;

	memset(until, 0x80, bytes);
	for (size_t i = 0; i < timeline->ranges.count; i++)
		if (eligible(timeline, &timeline->ranges.at[i], top, until))
			candidate_add(&candidates, &timeline->ranges.at[i]);
	for (size_t i = 0; i < candidates.all.count; i++)
		if (candidates.all.at[i].count >= REPEATS_LEAST &&
		    (!best || candidates.all.at[i].sum_ns > best->sum_ns))
			best = &candidates.all.at[i];
	memset(until, 0x80, bytes);
	if (best && (!top || (double)best->sum_ns >= COVER_LEAST * (double)all_ns)) {
		for (size_t i = 0; i < timeline->ranges.count; i++) {
			const struct tl_range *range = &timeline->ranges.at[i];

			if (eligible(timeline, range, top, until) && range->name == best->name &&
			    range->lane == best->lane)
				step_add(steps, range, false);
		}
		steps->out->source = top ? N_("repeated range") : N_("start/end ranges");
		steps->out->name = best->name;
	}
	VEC_DONE(&candidates.all);
	free(until);
}

static void repeated_launches(struct steps *steps)
{
	struct tl_ranges units = { 0 };

	steps->facts->threads_unsearched = (int64_t)step_units(steps->timeline, &units);
	for (size_t i = 0; i < units.count; i++)
		step_add(steps, &units.at[i], true);
	if (units.count)
		steps->out->source = N_("repeated launches");
	VEC_DONE(&units);
}

/* Add a busy stretch of a device to the steps of `source` that it touches; steps
 * from *at on, which moves. Steps of requests may overlap, so it stops at the
 * first that begins later and goes back for none but those still open. */
static void busy_add(struct steps *steps, uint32_t source, size_t *at, int64_t from, int64_t to)
{
	struct step *step = steps->out->step.at;
	size_t count = steps->out->step.count;

	while (*at < count && (step[*at].end_ns <= from || steps->sources.at[*at] != source))
		(*at)++;
	for (size_t i = *at; i < count && step[i].start_ns < to; i++) {
		int64_t start = step[i].start_ns > from ? step[i].start_ns : from;
		int64_t end = step[i].end_ns < to ? step[i].end_ns : to;

		if (steps->sources.at[i] == source && end > start)
			step[i].gpu_busy_ns += end - start;
	}
}

static void device_steps(struct steps *steps, uint32_t source, const struct tl_device *device)
{
	const struct timeline *timeline = steps->timeline;
	const struct tl_ops *ops = &timeline->ops;
	size_t busy = 0, counted = 0;
	struct cover cover = { 0 };

	for (size_t i = 0; i < device->count; i++) {
		uint32_t op = device_op(device, i);
		const struct tl_segment *segment = op_segment(timeline, op);
		struct step *step = steps->out->step.at;

		if (segment->source != source)
			continue;
		if (cover.open && op_start(ops, op) > cover.until)
			busy_add(steps, source, &busy, cover.from, cover.until);
		cover_add(&cover, op_start(ops, op), op_end(ops, op));
		while (counted < steps->out->step.count &&
		       (step[counted].end_ns <= op_start(ops, op) ||
			steps->sources.at[counted] != source))
			counted++;
		if (counted < steps->out->step.count && segment->kind == STORE_kernel &&
		    step[counted].start_ns <= op_start(ops, op))
			step[counted].kernel_count++;
	}
	if (cover.open)
		busy_add(steps, source, &busy, cover.from, cover.until);
}

static void steps_gpu(struct steps *steps)
{
	const struct timeline *timeline = steps->timeline;
	size_t sources = timeline->session->sources.count;
	bool *has = mem_zero(sources + 1);

	for (size_t i = 0; i < steps->sources.count; i++)
		has[steps->sources.at[i]] = true;
	for (uint32_t source = 0; source < sources; source++)
		for (size_t d = 0; has[source] && d < timeline->session->devices.count; d++)
			if (timeline->devices[d].count)
				device_steps(steps, source, &timeline->devices[d]);
	for (size_t i = 0; i < steps->out->step.count; i++) {
		struct step *step = &steps->out->step.at[i];
		int64_t ns = step->end_ns - step->start_ns -
			     pauses_within(&timeline->pauses[step->source], step->start_ns,
					   step->end_ns);

		/* Several devices may be busier than one is long. */
		step->idle_ns = ns > step->gpu_busy_ns ? ns - step->gpu_busy_ns : 0;
	}
	free(has);
}

static void steps_loader(struct steps *steps)
{
	const struct timeline *timeline = steps->timeline;
	size_t first = 0;

	for (size_t i = 0; i < steps->out->step.count; i++) {
		const struct step *step = &steps->out->step.at[i];

		while (first < timeline->loading.count &&
		       timeline->loading.at[first].end <= step->start_ns)
			first++;
		for (size_t k = first;
		     k < timeline->loading.count && timeline->loading.at[k].start < step->end_ns;
		     k++) {
			const struct interval *at = &timeline->loading.at[k];
			int64_t start = at->start > step->start_ns ? at->start : step->start_ns;
			int64_t end = at->end < step->end_ns ? at->end : step->end_ns;

			if (end > start)
				steps->loader_ns.at[i] += end - start;
		}
	}
}

static int64_t median(int64_t *at, size_t count)
{
	order_values(at, count);
	return count ? at[(count - 1) / 2] + (at[count / 2] - at[(count - 1) / 2]) / 2 : 0;
}

static void differs(struct steps *steps, struct step *step, const char *what, int64_t ns,
		    int64_t usual_ns, int64_t excess_ns)
{
	struct unit_text text;

	if ((double)(ns - usual_ns) >= DIFFERS_SHARE * (double)excess_ns)
		*VEC_ADD(&step->differs) = arena_printf(&steps->facts->arena, _("%s %s more"), what,
							units_ns(&text, ns - usual_ns));
}

struct usual {
	int64_t ns, idle_ns, busy_ns, loader_ns, kernels;
};

static void outliers(struct steps *steps, const struct usual *usual, int64_t deviation_ns)
{
	for (size_t i = 0; i < steps->out->step.count; i++) {
		struct step *step = &steps->out->step.at[i];
		int64_t ns = step->end_ns - step->start_ns, excess = ns - usual->ns;
		int64_t kernels = step->kernel_count - usual->kernels;

		if ((double)ns <= OUTLIER_RATIO * (double)usual->ns ||
		    (double)excess <= OUTLIER_DEVIATIONS * (double)deviation_ns)
			continue;
		step->outlier = true;
		differs(steps, step, _("loader"), steps->loader_ns.at[i], usual->loader_ns, excess);
		differs(steps, step, _("idle"), step->idle_ns, usual->idle_ns, excess);
		differs(steps, step, _("GPU busy"), step->gpu_busy_ns, usual->busy_ns, excess);
		if ((double)kernels >= DIFFERS_SHARE * (double)usual->kernels && kernels > 0)
			*VEC_ADD(&step->differs) =
				arena_printf(&steps->facts->arena,
					     ngettext("%lld kernel more", "%lld kernels more",
						      (unsigned long)kernels),
					     (long long)kernels);
	}
}

#define MEDIAN_OF(expression)                      \
	__extension__({                            \
		for (size_t i = 0; i < count; i++) \
			values[i] = (expression);  \
		median(values, count);             \
	})

static void steps_judge(struct steps *steps)
{
	const struct step *step = steps->out->step.at;
	size_t count = steps->out->step.count;
	struct quantiles lengths = { 0 };
	int64_t *values = mem_alloc((count + 1) * sizeof(*values));
	struct usual usual;
	int64_t deviation;

	for (size_t i = 0; i < count; i++)
		quantiles_add(&lengths, step[i].end_ns - step[i].start_ns);
	steps->out->p50_ns = quantiles_get(&lengths, 0.5);
	steps->out->p95_ns = quantiles_get(&lengths, 0.95);
	steps->out->p99_ns = quantiles_get(&lengths, 0.99);
	quantiles_done(&lengths);
	usual.ns = MEDIAN_OF(step[i].end_ns - step[i].start_ns);
	usual.idle_ns = MEDIAN_OF(step[i].idle_ns);
	usual.busy_ns = MEDIAN_OF(step[i].gpu_busy_ns);
	usual.kernels = MEDIAN_OF(step[i].kernel_count);
	usual.loader_ns = MEDIAN_OF(steps->loader_ns.at[i]);
	deviation = MEDIAN_OF(llabs(step[i].end_ns - step[i].start_ns - usual.ns));
	if (count >= OUTLIER_STEPS)
		outliers(steps, &usual, deviation);
	free(values);
}

int64_t step_at(const struct step_facts *steps, size_t first, uint32_t source, int64_t time_ns)
{
	enum { BESIDE = 64 };
	const struct step *step = steps->step.at;
	size_t low = 0, high = steps->step.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (step[middle].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i > 1 && i + BESIDE > low; i--)
		if (step[i - 1].source == source && step[i - 1].end_ns > time_ns)
			return i - 1 == first ? 0 : (int64_t)i - 1;
	return 0;
}

/* What the first steps do once is no news about the others. */
static void steps_setup(struct steps *steps)
{
	const struct facts *facts = steps->facts;
	size_t sources = steps->timeline->session->sources.count;
	int64_t *steady_ns = mem_alloc((sources + 1) * sizeof(*steady_ns));

	for (uint32_t source = 0; source < sources; source++) {
		steady_ns[source] = INT64_MIN;
		for (uint32_t d = 0; d < facts->devices.count; d++) {
			const struct steady_fact *steady = &facts->devices.at[d].steady;

			if (steady->has && steady->start_ns > steady_ns[source] &&
			    device_runs(steps->timeline, d, source))
				steady_ns[source] = steady->start_ns;
		}
	}
	for (size_t i = 0; i < steps->out->step.count; i++) {
		struct step *step = &steps->out->step.at[i];

		step->setup = step->source < sources && step->start_ns < steady_ns[step->source];
	}
	free(steady_ns);
}

static void steps_finish(struct steps *steps)
{
	if (steps->out->step.count) {
		steps_setup(steps);
		steps_gpu(steps);
		steps_loader(steps);
		steps_judge(steps);
	}
	VEC_DONE(&steps->sources);
	VEC_DONE(&steps->loader_ns);
}

void step_facts_build(struct timeline *timeline, struct facts *facts)
{
	struct steps steps = { .timeline = timeline, .facts = facts, .out = &facts->steps };
	struct steps requests = { .timeline = timeline, .facts = facts, .out = &facts->requests };

	profiler_steps(&steps);
	if (!facts->steps.step.count)
		repeated_ranges(&steps, true);
	if (!facts->steps.step.count)
		repeated_launches(&steps);
	steps_finish(&steps);
	repeated_ranges(&requests, false);
	steps_finish(&requests);
}
