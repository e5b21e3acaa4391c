/*
 * Which line is the cause, and which only its wake.
 *
 * Lines are gone through in order of time, with one open incident for each
 * card. An incident remembers the lines in it that were not repeats, up to
 * HEADS_MAX, as candidates for what later lines follow.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/faults.h"

/* Lines further apart are not one incident. The slowest chains that are: a
 * time-out of the GSP (Xid 119) is printed every 6 s. */
static const int64_t INCIDENT_NS = INT64_C(10000000000);
/* After a channel was stopped (43, 45) the story is over: what comes a second
 * later is the next one. */
static const int64_t AFTER_STOP_NS = INT64_C(1000000000);
/* The same where there are no times. */
static const int64_t INCIDENT_LINES = 20;

enum { HEADS_MAX = 32 };

struct incident {
	bool open, stopped;
	uint32_t number;
	uint32_t last; /* event */
	uint32_t heads[HEADS_MAX];
	uint32_t head_count;
};

static const struct fault *fault_of(const struct facts *facts, const struct fault_event *event)
{
	return &facts->fault_groups.at[event->group].first;
}

static bool goes_on(const struct facts *facts, const struct incident *incident,
		    const struct fault_event *event)
{
	const struct fault_event *last = &facts->faults.at[incident->last];
	const struct fault *fault = fault_of(facts, event);
	int64_t gap;

	if (!incident->open)
		return false;
	if (!last->has_time || !event->has_time)
		return last->source == event->source && event->line - last->line <= INCIDENT_LINES;
	if (__builtin_sub_overflow(event->time_ns, last->time_ns, &gap))
		return false;
	if (incident->stopped && !fault_is_aftermath(fault) &&
	    !(fault->kind == FAULT_XID && fault->number == 43))
		return gap <= AFTER_STOP_NS;
	return gap <= INCIDENT_NS;
}

static bool stops(const struct fault *fault)
{
	return fault->kind == FAULT_XID && (fault->number == 43 || fault->number == 45);
}

/* Two processes that fault at once are two causes. */
static bool other_process(const struct fault_event *a, const struct fault_event *b)
{
	return a->pid >= 0 && b->pid >= 0 && a->pid != b->pid;
}

/* "caused by previous Xid N". */
static bool by_name(struct facts *facts, const struct incident *incident, struct fault_event *event)
{
	if (event->previous < 0)
		return false;
	event->role = FAULT_ROLE_CONSEQUENCE;
	for (uint32_t i = incident->head_count; i-- > 0;) {
		const struct fault *head = fault_of(facts, &facts->faults.at[incident->heads[i]]);

		if (head->kind == FAULT_XID && head->number == event->previous) {
			event->cause = incident->heads[i];
			return true;
		}
	}
	facts->fault_groups.at[event->group].previous = event->previous;
	return true;
}

static bool by_repeat(const struct facts *facts, const struct incident *incident,
		      struct fault_event *event)
{
	for (uint32_t i = incident->head_count; i-- > 0;) {
		const struct fault_event *head = &facts->faults.at[incident->heads[i]];

		if (head->group != event->group ||
		    (other_process(head, event) && !fault_is_aftermath(fault_of(facts, event))))
			continue;
		event->role = FAULT_ROLE_REPEAT;
		event->cause = incident->heads[i];
		return true;
	}
	return false;
}

/* The nearest line before it that can have brought it about; one of the same
 * process goes before. */
static bool by_wake(const struct facts *facts, const struct incident *incident,
		    struct fault_event *event)
{
	uint32_t best = FAULT_NO_INDEX;

	for (uint32_t i = incident->head_count; i-- > 0;) {
		const struct fault_event *head = &facts->faults.at[incident->heads[i]];

		if (!fault_follows(fault_of(facts, event), fault_of(facts, head)))
			continue;
		if (best == FAULT_NO_INDEX || (head->pid >= 0 && head->pid == event->pid &&
					       facts->faults.at[best].pid != event->pid))
			best = incident->heads[i];
	}
	if (best == FAULT_NO_INDEX)
		return false;
	event->role = FAULT_ROLE_CONSEQUENCE;
	event->cause = best;
	return true;
}

static void judge(struct facts *facts, struct incident *incident, uint32_t index)
{
	struct fault_event *event = &facts->faults.at[index];

	if (!by_repeat(facts, incident, event) && !by_name(facts, incident, event) &&
	    !by_wake(facts, incident, event))
		event->role = fault_is_aftermath(fault_of(facts, event)) ? FAULT_ROLE_CLEANUP
									 : FAULT_ROLE_CAUSE;
	if (event->role != FAULT_ROLE_REPEAT && incident->head_count < HEADS_MAX)
		incident->heads[incident->head_count++] = index;
}

static void count(struct facts *facts, const struct fault_event *event)
{
	struct fault_group *group = &facts->fault_groups.at[event->group];

	group->count++;
	group->role[event->role]++;
	group->incidents += event->role != FAULT_ROLE_REPEAT;
	if (!event->has_time)
		return;
	if (!group->has_time || event->time_ns < group->first_ns)
		group->first_ns = event->time_ns;
	if (!group->has_time || event->time_ns > group->last_ns)
		group->last_ns = event->time_ns;
	group->has_time = true;
}

static void count_process(struct facts *facts, const struct fault_event *event)
{
	struct fault_group *group = &facts->fault_groups.at[event->group];
	const char *name = intern_get(facts->fault_strings, event->process, NULL);
	struct fault_process *process;

	if (event->pid < 0 && !event->process)
		return;
	for (size_t i = 0; i < group->processes.count; i++) {
		process = &group->processes.at[i];
		if (!strcmp(process->name, name)) {
			process->count++;
			process->pid = event->pid;
			return;
		}
	}
	/* A hostile log has a new name in each line. */
	if (group->processes.count >= 64)
		return;
	process = VEC_ADD(&group->processes);
	*process = (struct fault_process){ .name = name, .pid = event->pid, .count = 1 };
}

static int by_count(const void *a, const void *b)
{
	const struct fault_process *x = a, *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

/* Up to what follows nothing. Causes come before what follows them. */
static uint32_t root_of(const struct facts *facts, const struct fault_event *event)
{
	uint32_t at = event->cause;

	while (facts->faults.at[at].cause != FAULT_NO_INDEX)
		at = facts->faults.at[at].cause;
	return at;
}

/* The group that most lines of a group follow in the end. */
static void group_causes(struct facts *facts)
{
	int64_t *votes = mem_zero((facts->fault_groups.count + 1) * sizeof(*votes));

	for (size_t i = 0; i < facts->faults.count; i++) {
		const struct fault_event *event = &facts->faults.at[i];
		struct fault_group *group = &facts->fault_groups.at[event->group];
		uint32_t cause;

		if (event->role != FAULT_ROLE_CONSEQUENCE || event->cause == FAULT_NO_INDEX)
			continue;
		cause = facts->faults.at[root_of(facts, event)].group;
		/* Majority vote: the counter of the present candidate. */
		if (group->caused_by == FAULT_NO_INDEX || !votes[event->group])
			group->caused_by = cause;
		votes[event->group] += group->caused_by == cause ? 1 : -1;
	}
	free(votes);
}

/* "Rate limiting GSP RPC error prints": what is printed less often from here on. */
static bool is_limited(const struct fault_group *group, const struct fault_group *limit)
{
	if (group->first.kind != FAULT_XID || group->device != limit->device)
		return false;
	return !strstr(limit->first.text, "GSP") || group->first.number == 119 ||
	       group->first.number == 120;
}

static void rate_limits(struct facts *facts)
{
	for (size_t i = 0; i < facts->fault_groups.count; i++) {
		const struct fault_group *limit = &facts->fault_groups.at[i];

		for (size_t k = 0;
		     limit->first.kind == FAULT_RATE_LIMIT && k < facts->fault_groups.count; k++)
			facts->fault_groups.at[k].lower_bound |=
				is_limited(&facts->fault_groups.at[k], limit);
	}
}

void fault_roles(struct facts *facts)
{
	size_t devices = facts->session->devices.count;
	struct incident *open = mem_zero((devices + 1) * sizeof(*open));

	for (size_t i = 0; i < facts->faults.count; i++) {
		struct fault_event *event = &facts->faults.at[i];
		uint32_t device = facts->fault_groups.at[event->group].device;
		struct incident *incident = &open[device < devices ? device : devices];

		if (!goes_on(facts, incident, event))
			*incident = (struct incident){ .open = true,
						       .number = facts->fault_incidents++ };
		event->incident = incident->number;
		judge(facts, incident, (uint32_t)i);
		incident->last = (uint32_t)i;
		incident->stopped = incident->stopped || stops(fault_of(facts, event));
		count(facts, event);
		count_process(facts, event);
	}
	free(open);
	for (size_t i = 0; i < facts->fault_groups.count; i++) {
		struct fault_group *group = &facts->fault_groups.at[i];

		if (group->processes.count)
			qsort(group->processes.at, group->processes.count,
			      sizeof(*group->processes.at), by_count);
	}
	group_causes(facts);
	rate_limits(facts);
}
