#include "rules/tell_fault.h"

#include "base/i18n.h"
#include "base/units.h"

const char *tell_fault(struct findings *findings, const struct fault_group *group)
{
	struct buf text = { 0 };
	const char *title;

	fault_title(&group->first, &text);
	title = *group->meaning.name
			? finding_text(findings, "%s (%s)", _(text.at), group->meaning.name)
			: finding_text(findings, "%s", _(text.at));
	buf_done(&text);
	return title;
}

/* The first line of the group in its file. */
static int64_t line_of(const struct facts *facts, const struct fault_group *group)
{
	for (size_t i = 0; i < facts->faults.count; i++) {
		const struct fault_event *event = &facts->faults.at[i];

		if (&facts->fault_groups.at[event->group] == group)
			return event->line;
	}
	return 0;
}

const char *tell_fault_when(const struct facts *facts, struct findings *findings,
			    const struct fault_group *group)
{
	int64_t line = line_of(facts, group);
	struct unit_text after, span;
	const char *often;

	often = group->incidents > 1
			? finding_text(findings, _("%lld times (%lld lines)"),
				       (long long)group->incidents, (long long)group->count)
			: _("once");
	if (group->has_time && group->first_ns > 0)
		often = finding_text(findings, _("%s, first %s into the recording"), often,
				     units_ns(&after, group->first_ns));
	if (group->has_time && group->incidents > 1)
		often = finding_text(findings, _("%s, over %s"), often,
				     units_ns(&span, group->last_ns - group->first_ns));
	if (line)
		often = finding_text(findings, _("%s, line %lld"), often, (long long)line);
	return often;
}

const char *tell_fault_process(struct findings *findings, const struct fault_group *group)
{
	const struct fault_process *process;
	const char *text;

	if (!group->processes.count)
		return NULL;
	process = &group->processes.at[0];
	text = *process->name ? process->name : _("a process");
	if (process->pid >= 0)
		text = finding_text(findings, _("%s (pid %lld)"), text, (long long)process->pid);
	if (group->processes.count > 1)
		text = finding_text(findings,
				    ngettext("%s and %zu other", "%s and %zu others",
					     (unsigned long)(group->processes.count - 1)),
				    text, group->processes.count - 1);
	return text;
}
