/* spool_tell.c - what a process's recording lacks, in lines for whoever started it. */
#include "collect/spool_process.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void spooled_complain(struct complaints *told, const struct spooled *p, const char *fmt, ...)
{
	struct complaint *complaint = VEC_ADD(&told->lines);
	int len = snprintf(complaint->line, sizeof(complaint->line), "process %u: ", p->pid);
	va_list args;

	va_start(args, fmt);
	vsnprintf(complaint->line + len, sizeof(complaint->line) - (size_t)len, fmt, args);
	va_end(args);
	session_note(p->sink->session, p->source, "%s", complaint->line);
}

/* The tool and the programs that it starts are many processes: one line for all. */
static void tell_of_tool(struct complaints *told, const struct spooled *p)
{
	char tool[sizeof(p->segment->other_tool)] = "", named[sizeof(tool) + 2];

	memcpy(tool, p->segment->other_tool, sizeof(tool) - 1);
	snprintf(named, sizeof(named), "(%s)", *tool ? tool : "unnamed"); /* scribbled over */
	for (size_t i = 0; i < told->lines.count; i++) {
		if (strstr(told->lines.at[i].line, named))
			return;
	}
	spooled_complain(told, p,
			 "another tool is at work there %s: its GPU activity is not recorded",
			 named);
}

static const char *result_text(uint32_t result)
{
	return result == CUPTI_RESULT_PRIVILEGES      ? ", no permission"
	       : result == CUPTI_RESULT_HARDWARE_BUSY ? ", the counters are in use"
						      : "";
}

static void tell_of_no_sampling(struct complaints *told, const struct spooled *p, uint32_t result)
{
	spooled_complain(told, p, "no PC sampling (CUPTI %u%s): no stall reasons", result,
			 result_text(result));
}

/* Why the process recorded less, once. */
void spooled_look_at_reason(struct complaints *told, struct spooled *p)
{
	uint32_t reason = atomic_load(&p->segment->reason);
	uint32_t detail = atomic_load(&p->segment->reason_detail);

	if (reason == p->reason)
		return;
	p->reason = reason;
	switch (reason) {
	case SEGMENT_REASON_NO_CUPTI:
		return spooled_complain(told, p,
					"no libcupti was found: GPU activity is not recorded "
					"(set SONDE_CUPTI=PATH, or install cuda-cupti)");
	case SEGMENT_REASON_CUPTI_VERSION:
		return spooled_complain(
			told, p,
			"CUPTI version %u is not one of 12.0 to 13.x: GPU activity is "
			"not recorded",
			detail);
	case SEGMENT_REASON_SUBSCRIBED:
		return spooled_complain(told, p,
					"another tool holds CUPTI in this process: GPU activity "
					"is not recorded");
	case SEGMENT_REASON_OTHER_TOOL:
		return tell_of_tool(told, p);
	case SEGMENT_REASON_CALL_FAILED:
		return spooled_complain(told, p, "CUPTI failed (%u): GPU activity is not recorded",
					detail);
	case SEGMENT_REASON_YIELDED:
		return spooled_complain(told, p,
					"the program asked for CUPTI itself: from then on its "
					"GPU activity is not recorded");
	default:
		return;
	}
}

static void tell_of_lack(struct complaints *told, const struct spooled *p, enum segment_lack lack,
			 uint32_t detail)
{
	switch (lack) {
	case LACK_PC_SAMPLING:
		return tell_of_no_sampling(told, p, detail);
	case LACK_PC_CONTEXTS:
		return spooled_complain(told, p,
					"PC sampling is of the first context on each card: its "
					"others have no stall reasons");
	case LACK_UNIFIED:
		return spooled_complain(told, p,
					"CUPTI refused records of unified memory (%u): its faults "
					"and moves are not recorded",
					detail);
	case LACK_QUEUED:
		if (!detail)
			return spooled_complain(told, p,
						"this CUPTI does not tell when launches were "
						"queued");
		return spooled_complain(
			told, p, "CUPTI refused to tell when launches were queued (%u)", detail);
	default:
		return;
	}
}

void spooled_look_at_lacks(struct complaints *told, struct spooled *p)
{
	uint32_t news = atomic_load(&p->segment->lacks) & ~p->lacks;

	p->lacks |= news;
	for (uint32_t i = 0; i < LACK_COUNT; i++) {
		if (news >> i & 1)
			tell_of_lack(told, p, i, atomic_load(&p->segment->lack_detail[i]));
	}
}

void spooled_look_at_stranger(struct complaints *told, struct session *session, uint32_t version)
{
	struct complaint complaint = { 0 };

	if (!version)
		return;
	snprintf(complaint.line, sizeof(complaint.line),
		 "the library in a process is of another build of sonde (version %u, not %d): "
		 "nothing of it is recorded",
		 version, SEGMENT_VERSION);
	for (size_t i = 0; i < told->lines.count; i++) {
		if (!strcmp(told->lines.at[i].line, complaint.line))
			return;
	}
	*VEC_ADD(&told->lines) = complaint;
	session_note(session, SESSION_NONE, "%s", complaint.line);
}

/* Which records were lost: launches, or what hardly matters. */
static void sum_up_loss(struct complaints *told, struct spooled *p)
{
	const struct segment_counts *counts = &p->segment->counts;
	uint64_t all = atomic_load(&counts->records_dropped);
	uint64_t kernels = atomic_load(&counts->kernels_dropped);
	uint64_t calls = atomic_load(&counts->calls_dropped);
	uint64_t cupti = atomic_load(&counts->cupti_dropped);
	uint64_t slots = atomic_load(&counts->slots_dropped);
	uint64_t nested = atomic_load(&counts->slots_nested);
	uint64_t texts = atomic_load(&counts->texts_dropped);

	if (all && all >= cupti && kernels <= all - cupti && calls <= all - cupti - kernels)
		spooled_complain(told, p,
				 "%" PRIu64 " records were lost: %" PRIu64 " of kernels, %" PRIu64
				 " of calls, %" PRIu64 " of others, %" PRIu64
				 " by CUPTI, which names no kind",
				 all, kernels, calls, all - cupti - kernels - calls, cupti);
	if (slots || nested)
		spooled_complain(told, p,
				 "%" PRIu64
				 " ranges, marks, waits and sites were lost, their ring was full; "
				 "%" PRIu64 " calls came from inside sonde's own functions",
				 slots, nested);
	if (p->unnamed_samples)
		spooled_complain(told, p,
				 "%" PRId64
				 " PC samples were lost: the name of their reason found no room",
				 p->unnamed_samples);
	if (texts)
		spooled_complain(told, p,
				 "%" PRIu64
				 " texts found no room: ranges, marks or call stacks are "
				 "without their names",
				 texts);
}

/* Sampling ended before the program did: for which part of the time its reasons hold. */
static void sum_up_sampling(struct complaints *told, struct spooled *p)
{
	char full[48] = "", failed[48] = "";
	struct pc_summary pc;

	if (!spooled_pc_summary(p, &pc))
		return;
	if (pc.failed && !p->samples_seen)
		return tell_of_no_sampling(told, p, pc.result);
	if (pc.contexts > 1) {
		snprintf(full, sizeof(full), " in %u of %u contexts", pc.full, pc.contexts);
		snprintf(failed, sizeof(failed), " in %u of %u contexts", pc.failed, pc.contexts);
	}
	if (pc.dropped)
		spooled_complain(told, p,
				 "%" PRIu64 " of %" PRIu64
				 " PC samples were dropped on the card: stall reasons are of the "
				 "others (a longer --pc-period makes fewer samples)",
				 pc.dropped, pc.samples);
	if (pc.full)
		spooled_complain(
			told, p,
			"the memory for PC samples was full%s: stall reasons are of %.1f s of "
			"%.1f s (a longer --pc-period makes fewer samples)",
			full, (double)pc.covered_ns / 1e9, (double)pc.span_ns / 1e9);
	if (pc.failed)
		spooled_complain(told, p,
				 "PC sampling ended early%s (CUPTI %u%s): stall reasons are of "
				 "%.1f s of %.1f s",
				 failed, pc.result, result_text(pc.result),
				 (double)pc.covered_ns / 1e9, (double)pc.span_ns / 1e9);
}

/* What is known when the process ends, or is let go. */
void spooled_sum_up(struct complaints *told, struct spooled *p)
{
	sum_up_loss(told, p);
	sum_up_sampling(told, p);
}

void spooled_sum_up_quiet(struct complaints *told, struct spooled *p)
{
	const char *why = spooled_quiet_summary(p);

	if (why)
		spooled_complain(told, p, "what recording costs can't be told: %s", why);
	if (p->gated)
		spooled_complain(told, p,
				 "recording paused to see what it costs: counts and times leave "
				 "those windows out");
}
