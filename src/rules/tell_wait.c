#include "rules/tell_wait.h"

#include <string.h>

#include "base/call_stack.h"
#include "base/i18n.h"
#include "base/units.h"
#include "rules/short_name.h"
#include "rules/tell.h"

/* Of a stack, innermost first: what fits a line and says where. */
enum { STACK_BYTES = 160 };

const char *tell_tid(const struct facts *facts, struct findings *findings, uint32_t lane)
{
	const struct session *session = facts->session;

	if (!session || lane >= session->lanes.count || session->lanes.at[lane].tid < 0)
		return _("unknown thread");
	return finding_text(findings, _("thread %lld"), (long long)session->lanes.at[lane].tid);
}

const char *tell_waiting(const struct facts *facts, struct findings *findings, uint32_t lane)
{
	const struct session *session = facts->session;
	const struct lane *row =
		session && lane < session->lanes.count ? &session->lanes.at[lane] : NULL;
	const struct process *process;
	const char *thread;

	if (!row)
		return _("unknown thread");
	thread = row->name ? finding_text(findings, _("thread %s (%lld)"),
					  session_text(session, row->name), (long long)row->tid)
			   : tell_tid(facts, findings, lane);
	if (row->process >= session->processes.count)
		return thread;
	process = &session->processes.at[row->process];
	return finding_text(findings, _("%s of %s (pid %lld)"), thread,
			    tell_name(facts, process->name), (long long)process->pid);
}

const char *tell_wait_call(const struct facts *facts, struct findings *findings,
			   const struct wait_fact *wait)
{
	const char *where = wait->device == SESSION_NONE
				    ? _("the GPU")
				    : tell_device(facts, findings, wait->device);

	if (wait->stream >= 0)
		return finding_text(findings, _("%s for stream %lld of %s"), wait->call,
				    (long long)wait->stream, where);
	if (wait->default_stream)
		return finding_text(findings, _("%s for the default stream of %s"), wait->call,
				    where);
	return finding_text(findings, _("%s for %s"), wait->call, where);
}

void tell_wait_stack(const struct wait_fact *wait, struct findings *findings,
		     struct finding *finding)
{
	struct buf stack = { 0 };
	size_t len, whole = 0;

	if (!wait->stack)
		return;
	if (wait->stack_is_python)
		buf_text(&stack, wait->stack);
	else
		short_stack_of_call(wait->stack, wait->call, &stack);
	len = stack.len;
	/* Whole functions. */
	for (const char *at = stack.at; len > STACK_BYTES && (at = stack_step(at)); at += 3) {
		if (at - stack.at > STACK_BYTES)
			break;
		whole = (size_t)(at - stack.at);
	}
	if (len > STACK_BYTES && whole)
		len = whole;
	if (stack.len)
		finding->claim = finding_text(
			findings,
			wait->stack_is_python ? _("%s Its Python stack then: %.*s%s.")
					      : _("%s Its stack then: %.*s%s."),
			finding->claim, (int)len, stack.at, stack.at[len] ? " < ..." : "");
	buf_done(&stack);
}

/* "12.1 s", as the report counts. */
static const char *when(const struct facts *facts, struct unit_text *text, int64_t ns)
{
	return units_ns(text, capped_add(ns, -facts->start_ns));
}

/* What its record says of one that has no times. */
static void tell_named(const struct facts *facts, const struct wait_fact *wait,
		       struct findings *findings, struct finding *finding)
{
	const char *which = wait->pending_count == 1 ? _("It is")
			    : wait->named_count < wait->pending_count
				    ? _("The first of them with a name is")
				    : _("The first of them is");

	if (wait->named)
		finding->claim = finding_text(findings, _("%s %s \"%s\"."), finding->claim, which,
					      tell_name(facts, wait->named));
}

static void tell_pending(const struct facts *facts, const struct wait_fact *wait,
			 struct findings *findings, struct finding *finding)
{
	struct unit_text at;
	const char *first;

	if (wait->pending_ns == FACT_UNKNOWN) {
		finding->claim = finding_text(
			findings,
			ngettext("%s %lld operation behind it has no end in the recording.",
				 "%s %lld operations behind it have no end in the recording.",
				 (unsigned long)wait->pending_count),
			finding->claim, (long long)wait->pending_count);
		return;
	}
	first = wait->pending_lane == wait->lane
			? _("by the same thread")
			: finding_text(findings, _("by %s"),
				       tell_waiting(facts, findings, wait->pending_lane));

	first = finding_text(findings, _("%s at %s"), first, when(facts, &at, wait->pending_ns));
	if (wait->pending_range)
		first = finding_text(findings, _("%s, in \"%s\""), first,
				     session_text(facts->session, wait->pending_range));
	finding->claim = finding_text(
		findings,
		ngettext("%s %lld launch behind it has no end in the recording: %s.",
			 "%s %lld launches behind it have no end in the recording, the first %s.",
			 (unsigned long)wait->pending_count),
		finding->claim, (long long)wait->pending_count, first);
	if (wait->likely)
		finding->claim = finding_text(
			findings,
			_("%s All %lld times before, \"%s\" came next there: most likely it is "
			  "that kernel."),
			finding->claim, (long long)wait->likely_count,
			tell_name(facts, wait->likely));
}

/* What the recording can't have: nothing follows from its absence. */
static void tell_unknown(const struct facts *facts, const struct wait_fact *wait,
			 struct findings *findings, struct finding *finding)
{
	struct unit_text at;
	const char *why = wait->handover == WAIT_HANDOVER_LOST
				  ? _("The process ended before CUPTI had handed over all records")
			  : wait->handover == WAIT_HANDOVER_HELD
				  ? _("CUPTI still held records when recording ended")
				  : _("Whether CUPTI had handed over all records is not known");

	if (wait->known_ns == FACT_UNKNOWN)
		finding->claim = finding_text(findings, _("%s %s: launches may be missing."),
					      finding->claim, why);
	else
		finding->claim =
			finding_text(findings, _("%s %s: launches after %s may be missing."),
				     finding->claim, why, when(facts, &at, wait->known_ns));
	if (wait->pending_count)
		finding->claim = finding_text(findings, _("%s What has no end may have ended."),
					      finding->claim);
}

void tell_wait_device(const struct facts *facts, const struct wait_fact *wait,
		      struct findings *findings, struct finding *finding)
{
	struct unit_text at;

	if (wait->last_op)
		finding->claim = finding_text(
			findings, _("%s What ended there last is \"%s\", at %s."), finding->claim,
			tell_name(facts, wait->last_op), when(facts, &at, wait->last_end_ns));
	else if (wait->returned_ns != FACT_UNKNOWN)
		finding->claim = finding_text(
			findings,
			_("%s A wait there returned well at %s: what was launched before had "
			  "ended."),
			finding->claim, when(facts, &at, wait->returned_ns));
	else
		finding->claim = finding_text(
			findings, _("%s Nothing had ended there that is in the recording."),
			finding->claim);
	if (wait->pending_count)
		tell_pending(facts, wait, findings, finding);
	tell_named(facts, wait, findings, finding);
	if (wait->end == WAIT_OPEN && wait->handover != WAIT_HANDOVER_ALL)
		tell_unknown(facts, wait, findings, finding);
	else if (wait->end == WAIT_OPEN && !wait->pending_count)
		finding->claim = finding_text(
			findings,
			_("%s No launch is without its end: it waits for what is not recorded, as "
			  "a copy, an event of another process or a function of the host."),
			finding->claim);
	if (wait->pending_count && wait->lost) {
		finding_lose_grade(finding);
		finding->claim = finding_text(
			findings, _("%s Records were lost (%lld): the kernel may be older."),
			finding->claim, (long long)wait->lost);
	}
}
