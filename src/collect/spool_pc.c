/* spool_pc.c - PC samples of a process, and when it was sampled. */
#include <stdio.h>
#include <string.h>

#include "collect/spool_process.h"

int spooled_pc_sample(struct spooled *p, const struct segment_slot *slot)
{
	struct stall stall = { .samples = slot->x[0], .pc_offset = slot->value };
	uint64_t *reason = map_find(&p->reasons, slot->b);

	if (!reason)
		return 0;
	stall.lane = spooled_stream(p, slot->x[4], slot->x[1], 0);
	stall.time_ns = (int64_t)slot->time_ns;
	stall.function = spooled_kernel_name(p, slot->a);
	stall.reason = (uint32_t)*reason;
	p->samples_seen += slot->x[0];
	return sink_stall(p->sink, &stall, p->err);
}

/* Several contexts at a time are one: covered is what any of them covers. */
void spooled_pc_window(struct spooled *p, const struct segment_slot *slot)
{
	struct pc_windows *pc = &p->pc;
	int64_t ns = (int64_t)slot->time_ns;
	uint64_t *on = map_find(&pc->on, slot->x[0]);

	if (slot->b > PC_WHY_END || slot->x[1] > 31) {
		session_loss(p->sink->session, p->source, LOSS_malformed, 1);
		return;
	}
	if (!pc->first_ns)
		pc->first_ns = ns;
	pc->summary.period = slot->x[1];
	if (slot->value) {
		if (on && *on)
			return;
		map_put(&pc->on, slot->x[0], 1);
		if (!pc->count++)
			pc->since_ns = ns;
		return;
	}
	pc->summary.lost |= slot->b == PC_WHY_LOST;
	if (!on || !*on)
		return;
	*on = 0;
	if (!--pc->count && ns > pc->since_ns)
		pc->summary.covered_ns += ns - pc->since_ns;
}

bool spooled_pc_summary(struct spooled *p, int64_t end_ns, struct pc_summary *ret_summary)
{
	struct session *session = p->sink->session;
	struct pc_windows *pc = &p->pc;
	char text[160];
	int len;

	if (!pc->first_ns)
		return false;
	*ret_summary = pc->summary;
	if (pc->count)
		ret_summary->covered_ns += end_ns - pc->since_ns;
	ret_summary->span_ns = end_ns - pc->first_ns;
	len = snprintf(text, sizeof(text), "covered_ns=%lld;span_ns=%lld;period=%u",
		       (long long)ret_summary->covered_ns, (long long)ret_summary->span_ns,
		       ret_summary->period);
	session_env(session, p->source, SESSION_NONE, STR("pc_sampling_cost"),
		    (struct str){ text, (size_t)len });
	return true;
}
