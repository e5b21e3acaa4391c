/*
 * Outlier steps, and the longest gap of each idle cause, with the fault or the clock
 * change that fell into them.
 */
#include <math.h>
#include <string.h>

#include "analyze/faults.h"
#include "base/capped.h"
#include "base/i18n.h"
#include "base/units.h"

/* Names at one step; more would hide the rest. */
enum { NAMES_MAX = 3 };
/* A clock that was held down in more of the steps than this explains none. */
static const double USUAL_SHARE = 0.5;

/* Clocks that are further apart say nothing of a step. */
static const int64_t SLACK_MAX_NS = INT64_C(2000000000);

/* Does [from, to] of `source` touch the step, give or take what the clocks may
 * be apart? */
static bool touches(const struct session *session, const struct step *step, uint32_t source,
		    int64_t from, int64_t to)
{
	int64_t slack;

	if (!fault_comparable(session, source, step->source))
		return false;
	slack = fault_clock_error(session, source, step->source);
	if (slack > SLACK_MAX_NS)
		return false;
	return capped_sub(from, step->end_ns) <= slack && capped_sub(step->start_ns, to) <= slack;
}

static const char *device_text(struct facts *facts, uint32_t device)
{
	const struct device *row;

	if (device >= facts->session->devices.count)
		return "";
	row = &facts->session->devices.at[device];
	if (row->ordinal >= 0)
		return arena_printf(&facts->arena, _(" on GPU %lld"), (long long)row->ordinal);
	return row->pci_bus ? arena_printf(&facts->arena, _(" on GPU %s"),
					   session_text(facts->session, row->pci_bus))
			    : "";
}

/* In front of what differs in numbers. */
static void name_first(struct step *step, size_t place, const char *text)
{
	(void)VEC_ADD(&step->differs);
	memmove(&step->differs.at[place + 1], &step->differs.at[place],
		(step->differs.count - 1 - place) * sizeof(*step->differs.at));
	step->differs.at[place] = text;
}

static const char *fault_text(struct facts *facts, const struct fault_event *event,
			      const struct step *step)
{
	const struct fault_group *group = &facts->fault_groups.at[event->group];
	struct buf title = { 0 };
	struct unit_text after;
	const char *text;

	fault_title(&group->first, &title);
	text = arena_printf(&facts->arena, "%s%s", title.len ? _(title.at) : "",
			    device_text(facts, group->device));
	if (event->time_ns >= step->start_ns && event->time_ns <= step->end_ns)
		text = arena_printf(&facts->arena, _("%s %s into it"), text,
				    units_ns(&after, event->time_ns - step->start_ns));
	buf_done(&title);
	return text;
}

/* The first event that can touch the step. */
static size_t first_near(const struct facts *facts, const struct step *step)
{
	size_t low = 0, high = facts->faults.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (capped_sub(step->start_ns, facts->faults.at[middle].time_ns) > SLACK_MAX_NS)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t name_faults(struct facts *facts, struct step *step, size_t named)
{
	for (size_t i = first_near(facts, step); i < facts->faults.count && named < NAMES_MAX;
	     i++) {
		const struct fault_event *event = &facts->faults.at[i];

		if (capped_sub(event->time_ns, step->end_ns) > SLACK_MAX_NS)
			break;
		if (event->has_time && event->role != FAULT_ROLE_REPEAT &&
		    touches(facts->session, step, event->source, event->time_ns, event->time_ns))
			name_first(step, named++, fault_text(facts, event, step));
	}
	return named;
}

static bool is_usual(const struct facts *facts, const struct step_facts *steps,
		     const struct episode *episode)
{
	size_t touched = 0;

	for (size_t i = 0; i < steps->step.count; i++)
		touched += touches(facts->session, &steps->step.at[i], episode->source,
				   episode->start_ns, episode->end_ns);
	return (double)touched > USUAL_SHARE * (double)steps->step.count;
}

static const char *episode_text(struct facts *facts, uint32_t device, const struct episode *episode)
{
	const char *where = device_text(facts, device);

	if (isfinite(episode->mhz_in) && isfinite(episode->mhz_before))
		return arena_printf(&facts->arena,
				    _("clock%s held down (%s, %.0f instead of %.0f MHz)"), where,
				    episode->reason, episode->mhz_in, episode->mhz_before);
	return arena_printf(&facts->arena, _("clock%s held down (%s)"), where, episode->reason);
}

static size_t name_clocks(struct facts *facts, const struct step_facts *steps, struct step *step,
			  size_t named)
{
	for (size_t d = 0; d < facts->devices.count; d++) {
		struct device_fact *device = &facts->devices.at[d];

		for (size_t i = 0; i < device->episodes.count && named < NAMES_MAX; i++) {
			const struct episode *episode = &device->episodes.at[i];

			if (touches(facts->session, step, episode->source, episode->start_ns,
				    episode->end_ns) &&
			    !is_usual(facts, steps, episode))
				name_first(step, named++,
					   episode_text(facts, device->device, episode));
		}
	}
	for (size_t i = 0; i < facts->clock_marks.count && named < NAMES_MAX; i++) {
		const struct clock_mark *mark = &facts->clock_marks.at[i];

		if (touches(facts->session, step, mark->source, mark->time_ns, mark->time_ns))
			name_first(step, named++,
				   arena_printf(&facts->arena, _("clock reasons%s changed: %s"),
						device_text(facts, mark->device),
						session_text(facts->session, mark->name)));
	}
	return named;
}

/* The longest gap of a cause is looked at as a step of its own. */
static void idle_marks(struct facts *facts, const struct device_fact *device,
		       struct idle_fact *idle)
{
	struct step gap = { .start_ns = idle->longest_at_ns,
			    .end_ns = idle->longest_at_ns + idle->longest_ns };
	const struct session *session = facts->session;
	size_t named;

	if (device->device >= session->devices.count || !idle->longest_ns)
		return;
	gap.source = session->devices.at[device->device].source;
	if (gap.source >= session->sources.count)
		return;
	named = name_faults(facts, &gap, 0);
	/* Without steps nobody knows whether the clock is held down all the time. */
	if (facts->steps.step.count)
		(void)name_clocks(facts, &facts->steps, &gap, named);
	for (size_t i = 0; i < gap.differs.count; i++)
		*VEC_ADD(&idle->board) = gap.differs.at[i];
	VEC_DONE(&gap.differs);
}

void analyze_step_marks(struct facts *facts)
{
	struct step_facts *all[] = { &facts->steps, &facts->requests };

	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; i < all[s]->step.count; i++) {
			struct step *step = &all[s]->step.at[i];

			if (step->outlier && step->source < facts->session->sources.count)
				(void)name_clocks(facts, all[s], step, name_faults(facts, step, 0));
		}
	for (size_t i = 0; i < facts->devices.count; i++)
		for (int cause = 0; cause < IDLE_COUNT; cause++) {
			struct device_fact *device = &facts->devices.at[i];

			idle_marks(facts, device, &device->idle[cause]);
			idle_marks(facts, device, &device->steady.idle[cause]);
		}
}
