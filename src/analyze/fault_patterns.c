/*
 * What the incidents of one card and number have in common.
 *
 * Each test has a least count below which chance looks like order; which tests
 * were made and on how many incidents is kept, so that "no pattern" can be told
 * from "too few to say". doc/rules/gpu_fault.md has the numbers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/faults.h"

static const int64_t SAME_LEAST = 5;
static const int64_t INTERVAL_LEAST = 6;
static const double INTERVAL_VARIATION = 0.1;
static const int64_t DAYTIME_LEAST = 8;
static const int64_t DAYS_LEAST = 5;
static const double CHANCE = 0.01;

struct members {
	struct facts *facts;
	struct fault_group *group;
	const uint32_t *events; /* of the group, in order of time */
	size_t count;
	const uint32_t *process; /* by incident: named in some line of it; 0 */
};

static const struct fault_event *member(const struct members *members, size_t i)
{
	return &members->facts->faults.at[members->events[i]];
}

static bool is_head(const struct fault_event *event)
{
	return event->role != FAULT_ROLE_REPEAT;
}

static struct fault_pattern *add(struct members *members, enum fault_pattern_kind kind,
				 int64_t count, int64_t least)
{
	struct fault_pattern *pattern = VEC_ADD(&members->group->patterns);

	*pattern = (struct fault_pattern){
		.kind = kind, .what = "", .count = count, .least = least, .value = NAN, .p = NAN
	};
	return pattern;
}

/* Incidents whose process is known, if all name the same one. */
static void same_process(struct members *members)
{
	int64_t known = 0;
	uint32_t name = 0;

	for (size_t i = 0; i < members->count; i++) {
		const struct fault_event *event = member(members, i);
		uint32_t process = members->process[event->incident];

		if (!is_head(event) || !process)
			continue;
		if (known++ && process != name)
			return;
		name = process;
	}
	if (known >= SAME_LEAST)
		add(members, FAULT_PATTERN_PROCESS, known, SAME_LEAST)->what =
			intern_get(members->facts->fault_strings, name, NULL);
}

/* Share of the kernel time of the device that kernels of this name have. */
static double kernel_share(const struct facts *facts, uint32_t device, uint32_t name)
{
	double share = 0;

	for (size_t i = 0; i < facts->kernels.count; i++) {
		const struct kernel_fact *kernel = &facts->kernels.at[i];

		if (kernel->device == device && kernel->key < facts->session->keys.count &&
		    facts->session->keys.at[kernel->key].name == name && isfinite(kernel->share))
			share += kernel->share;
	}
	return share < 1 ? share : 1;
}

/* The same kernel each time, where chance would not have it so: the kernel's
 * share of the device's time to the power of the incidents. */
static void same_kernel(struct members *members)
{
	int64_t known = 0;
	uint32_t name = 0;
	struct fault_pattern *pattern;
	double p;

	for (size_t i = 0; i < members->count; i++) {
		const struct fault_event *event = member(members, i);

		if (!is_head(event) || !event->kernel)
			continue;
		if (known++ && event->kernel != name)
			return;
		name = event->kernel;
	}
	if (known < SAME_LEAST)
		return;
	p = pow(kernel_share(members->facts, members->group->device, name), (double)known);
	if (p > CHANCE)
		return;
	pattern = add(members, FAULT_PATTERN_KERNEL, known, SAME_LEAST);
	pattern->what = session_text(members->facts->session, name);
	pattern->p = p;
}

/* All lines, not only the first of each incident: an exception that was raised
 * on several SMs at once is no matter of one SM. */
static void same_place(struct members *members)
{
	struct arena *arena = &members->facts->arena;
	int64_t incidents = 0, place = -1;

	for (size_t i = 0; i < members->count; i++) {
		const struct fault_event *event = member(members, i);

		if (event->place < 0)
			continue;
		if (place >= 0 && event->place != place)
			return;
		place = event->place;
		incidents += is_head(event);
	}
	if (incidents < SAME_LEAST)
		return;
	add(members, FAULT_PATTERN_PLACE, incidents, SAME_LEAST)->what =
		fault_has(&members->group->first, FAULT_SM)
			? arena_printf(arena, "GPC %d TPC %d SM %d", (int)(place / 1000000),
				       (int)(place / 1000 % 1000), (int)(place % 1000))
			: arena_printf(arena, "link %d", (int)place);
}

/* Gaps between incidents that hardly differ. */
static void even_interval(struct members *members)
{
	double sum = 0, squares = 0, mean, deviation;
	int64_t last_ns = 0, heads = 0;

	for (size_t i = 0; i < members->count; i++) {
		const struct fault_event *event = member(members, i);

		if (!is_head(event))
			continue;
		if (!event->has_time)
			return;
		if (heads++) {
			double gap = (double)event->time_ns - (double)last_ns;

			sum += gap;
			squares += gap * gap;
		}
		last_ns = event->time_ns;
	}
	if (heads < INTERVAL_LEAST || sum <= 0)
		return;
	mean = sum / (double)(heads - 1);
	deviation = sqrt(fmax(0, squares / (double)(heads - 1) - mean * mean));
	if (deviation <= INTERVAL_VARIATION * mean)
		add(members, FAULT_PATTERN_INTERVAL, heads, INTERVAL_LEAST)->value = mean;
}

/* Rayleigh's test on the circle of 24 hours: how long is the mean of the
 * directions, and how likely is that without a preferred one. The
 * approximation of p is Zar's (Biostatistical Analysis, 27.1). */
static void day_time(struct members *members)
{
	double x = 0, y = 0, n, r, p, direction;
	int64_t known = 0, days = 0, last_day = 0;
	double first_day = 0;
	struct fault_pattern *pattern;

	for (size_t i = 0; i < members->count; i++) {
		const struct fault_event *event = member(members, i);
		double angle = (double)event->day_s / 86400 * 2 * M_PI;
		int64_t day;

		if (!is_head(event) || event->day_s < 0 || !event->has_time)
			continue;
		/* Midnight before it, in days since that of the first. */
		direction = ((double)event->time_ns / 1e9 - (double)event->day_s) / 86400;
		first_day = known ? first_day : direction;
		day = llround(direction - first_day);
		days += !known || day != last_day;
		last_day = day;
		known++;
		x += cos(angle);
		y += sin(angle);
	}
	if (known < DAYTIME_LEAST || days < DAYS_LEAST)
		return;
	n = (double)known;
	r = sqrt(x * x + y * y);
	p = exp(sqrt(1 + 4 * n + 4 * (n * n - r * r)) - (1 + 2 * n));
	if (p > CHANCE)
		return;
	direction = atan2(y, x);
	pattern = add(members, FAULT_PATTERN_DAYTIME, known, DAYTIME_LEAST);
	pattern->value = (direction < 0 ? direction + 2 * M_PI : direction) / (2 * M_PI) * 86400;
	pattern->p = p;
}

static void group_patterns(struct members *members)
{
	int64_t incidents = members->group->incidents;

	same_place(members);
	same_kernel(members);
	same_process(members);
	even_interval(members);
	day_time(members);
	if (!members->group->patterns.count)
		add(members, incidents >= SAME_LEAST ? FAULT_PATTERN_NONE : FAULT_PATTERN_TOO_FEW,
		    incidents, SAME_LEAST);
}

void fault_patterns(struct facts *facts)
{
	size_t count = facts->faults.count, groups = facts->fault_groups.count;
	uint32_t *process = mem_zero((facts->fault_incidents + 1) * sizeof(*process));
	uint32_t *order = mem_alloc((count + 1) * sizeof(*order));
	size_t *from = mem_zero((groups + 2) * sizeof(*from));

	/* Events by group: a counting sort keeps their order of time. */
	for (size_t i = 0; i < count; i++) {
		const struct fault_event *event = &facts->faults.at[i];

		from[event->group + 2]++;
		if (event->process && !process[event->incident])
			process[event->incident] = event->process;
	}
	for (size_t g = 2; g < groups + 2; g++)
		from[g] += from[g - 1];
	for (size_t i = 0; i < count; i++)
		order[from[facts->faults.at[i].group + 1]++] = (uint32_t)i;
	for (size_t g = 0; g < groups; g++) {
		struct members members = { .facts = facts,
					   .group = &facts->fault_groups.at[g],
					   .events = order + from[g],
					   .count = from[g + 1] - from[g],
					   .process = process };

		group_patterns(&members);
	}
	free(process);
	free(order);
	free(from);
}
