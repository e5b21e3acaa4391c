/*
 * spool_sync.c - what synchronising calls waited for: a call of its own kind, on the
 * stream where there is one.
 *
 * A stream belongs to a device, whose record can come later than the wait: without it
 * the device would be another one than the driver's samples know. Early waits are kept.
 */
#include <string.h>

#include "collect/spool_process.h"

enum { EARLY_MAX = 4096 };

static int put(struct spooled *p, const struct early_wait *wait)
{
	static const char *const names[SYNC_KINDS] = {
		[SYNC_EVENT] = "Event Sync",
		[SYNC_STREAM_WAIT] = "Stream Wait Event",
		[SYNC_STREAM] = "Stream Sync",
		[SYNC_CONTEXT] = "Context Sync",
	};
	struct call call = { .kind = CALL_SYNC, .correlation = wait->correlation };

	call.name = intern_text(p->sink->session->strings, names[wait->kind]);
	call.start_ns = wait->start_ns;
	call.end_ns = wait->end_ns;
	if (wait->stream == UINT32_MAX || wait->device == UINT32_MAX || !p->rows.count)
		call.lane = spooled_other(p, "synchronisation");
	else
		call.lane = spooled_stream(p, wait->device, wait->context, wait->stream);
	return sink_call(p->sink, &call, p->err);
}

int spooled_sync_slot(struct spooled *p, const struct segment_slot *slot)
{
	struct early_wait wait = { 0 };

	if (!slot->value || slot->value > slot->time_ns || slot->a >= SYNC_KINDS) {
		session_loss(p->sink->session, p->source, LOSS_malformed, 1);
		return 0;
	}
	wait.start_ns = (int64_t)slot->value;
	wait.end_ns = (int64_t)slot->time_ns;
	wait.kind = (enum sync_kind)slot->a;
	wait.correlation = slot->b;
	wait.context = slot->x[0];
	wait.stream = slot->x[1];
	wait.device = slot->x[2];
	if (!p->rows.count && p->early_waits.count < EARLY_MAX) {
		*VEC_ADD(&p->early_waits) = wait;
		return 0;
	}
	return put(p, &wait);
}

int spooled_early_waits(struct spooled *p, bool last)
{
	int ret = 0;

	if (!p->rows.count && !last)
		return 0;
	for (size_t i = 0; i < p->early_waits.count && ret >= 0; i++)
		ret = put(p, &p->early_waits.at[i]);
	p->early_waits.count = 0;
	return ret;
}
