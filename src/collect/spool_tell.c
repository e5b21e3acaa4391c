/* spool_tell.c - what a process's recording lacks, in lines for whoever started it. */
#include "collect/spool_process.h"
#include "model/note.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void spooled_complain(struct complaints *told, const struct spooled *p, const char *fmt, ...)
{
	struct complaint *complaint = VEC_ADD(&told->lines);
	char what[sizeof(complaint->line) - 32];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	snprintf(complaint->line, sizeof(complaint->line), NOTE_PROCESS, p->pid, what);
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
	spooled_complain(told, p, NOTE_OTHER_TOOL, named);
}

static const char *result_text(uint32_t result)
{
	return result == CUPTI_RESULT_PRIVILEGES      ? NOTE_NO_PERMISSION
	       : result == CUPTI_RESULT_HARDWARE_BUSY ? NOTE_COUNTERS_IN_USE
						      : "";
}

static void tell_of_no_sampling(struct complaints *told, const struct spooled *p, uint32_t result)
{
	spooled_complain(told, p, NOTE_NO_PC_SAMPLING, result, result_text(result));
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
		return spooled_complain(told, p, NOTE_NO_CUPTI);
	case SEGMENT_REASON_CUPTI_VERSION:
		return spooled_complain(told, p, NOTE_CUPTI_VERSION, detail);
	case SEGMENT_REASON_SUBSCRIBED:
		return spooled_complain(told, p, NOTE_CUPTI_HELD);
	case SEGMENT_REASON_OTHER_TOOL:
		return tell_of_tool(told, p);
	case SEGMENT_REASON_CALL_FAILED:
		return spooled_complain(told, p, NOTE_CUPTI_FAILED, detail);
	case SEGMENT_REASON_YIELDED:
		return spooled_complain(told, p, NOTE_YIELDED);
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
		return spooled_complain(told, p, NOTE_PC_CONTEXTS);
	case LACK_UNIFIED:
		return spooled_complain(told, p, NOTE_NO_UNIFIED, detail);
	case LACK_QUEUED:
		if (!detail)
			return spooled_complain(told, p, NOTE_NO_QUEUED);
		return spooled_complain(told, p, NOTE_QUEUED_REFUSED, detail);
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
	snprintf(complaint.line, sizeof(complaint.line), NOTE_STRANGER, version, SEGMENT_VERSION);
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
		spooled_complain(told, p, NOTE_RECORDS_LOST, all, kernels, calls,
				 all - cupti - kernels - calls, cupti);
	if (slots || nested)
		spooled_complain(told, p, NOTE_SLOTS_LOST, slots, nested);
	if (p->unnamed_samples)
		spooled_complain(told, p, NOTE_UNNAMED_SAMPLES, p->unnamed_samples);
	if (texts)
		spooled_complain(told, p, NOTE_TEXTS_LOST, texts);
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
		snprintf(full, sizeof(full), NOTE_IN_CONTEXTS, pc.full, pc.contexts);
		snprintf(failed, sizeof(failed), NOTE_IN_CONTEXTS, pc.failed, pc.contexts);
	}
	if (pc.dropped)
		spooled_complain(told, p, NOTE_PC_DROPPED, pc.dropped, pc.samples);
	if (pc.full && !pc.samples)
		spooled_complain(told, p, NOTE_PC_FULL_AT_ONCE, full);
	else if (pc.full)
		spooled_complain(told, p, NOTE_PC_FULL, full, (double)pc.covered_ns / 1e9,
				 (double)pc.span_ns / 1e9);
	if (pc.failed)
		spooled_complain(told, p, NOTE_PC_FAILED, failed, pc.result, result_text(pc.result),
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
		spooled_complain(told, p, NOTE_NO_COST, why);
	if (p->gated)
		spooled_complain(told, p, NOTE_COST_PAUSES);
}
