/* spool_pc.c - PC samples of a process, and when it was sampled. */
#include <stdio.h>

#include "base/clock.h"
#include "collect/spool_process.h"

int spooled_pc_sample(struct spooled *p, const struct segment_slot *slot)
{
	struct stall stall = { .samples = slot->x[0], .pc_offset = slot->value };
	uint64_t *reason = map_find(&p->reasons, slot->b);

	if (!reason) { /* its name found no room in the ring */
		p->unnamed_slots++;
		p->unnamed_samples += slot->x[0];
		session_loss(p->sink->session, p->source, LOSS_dropped, 1);
		return 0;
	}
	stall.lane = spooled_stream(p, slot->x[4], slot->x[1], 0);
	stall.time_ns = (int64_t)slot->time_ns;
	stall.function = spooled_kernel_name(p, slot->a);
	stall.reason = (uint32_t)*reason;
	stall.cubin = (uint64_t)slot->x[3] << 32 | slot->x[2];
	p->samples_seen += slot->x[0];
	return sink_stall(p->sink, &stall, p->err);
}

bool spooled_pc_summary(struct spooled *p, struct pc_summary *ret_summary)
{
	enum { PERIOD_MAX = 31 };
	const struct segment_pc *pc = &p->segment->pc;
	/* In this order a window that ends meanwhile is not counted twice. */
	uint64_t covered = atomic_load(&pc->covered_ns);
	uint64_t since = atomic_load(&pc->since_ns), first = atomic_load(&pc->first_ns);
	uint32_t period = atomic_load(&pc->period);
	uint64_t end = (uint64_t)clock_steady_ns(); /* now: none began later */
	char text[192];
	int len;

	if (!first)
		return false;
	if (period > PERIOD_MAX || first > end || since > end || (since && since < first) ||
	    covered > (since ? since : end) - first) {
		session_loss(p->sink->session, p->source, LOSS_malformed, 1);
		return false;
	}
	*ret_summary = (struct pc_summary){
		.covered_ns = (int64_t)(covered + (since ? end - since : 0)),
		.span_ns = (int64_t)(end - first),
		.samples = atomic_load(&p->segment->counts.pc_samples),
		.dropped = atomic_load(&p->segment->counts.pc_dropped),
		.other = atomic_load(&p->segment->counts.pc_other),
		.contexts = atomic_load(&pc->contexts),
		.full = atomic_load(&pc->full),
		.failed = atomic_load(&pc->failed),
		.result = atomic_load(&pc->result),
	};
	len = snprintf(
		text, sizeof(text),
		"covered_ns=%lld;span_ns=%lld;period=%u;samples=%llu;dropped=%llu;other=%llu",
		(long long)ret_summary->covered_ns, (long long)ret_summary->span_ns, period,
		(unsigned long long)ret_summary->samples, (unsigned long long)ret_summary->dropped,
		(unsigned long long)ret_summary->other);
	session_env(p->sink->session, p->source, SESSION_NONE, STR("pc_sampling_cost"),
		    (struct str){ text, (size_t)len });
	return true;
}
