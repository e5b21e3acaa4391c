/*
 * spool_sync.c - what synchronising calls waited for: a call of its own kind, on the
 * stream where there is one.
 *
 * A stream belongs to a device, whose record can come later than the wait: without it
 * the device would be another one than the driver's samples know. Early waits are kept.
 */
#include "collect/spool_process.h"

#include <string.h>

enum { EARLY_MAX = 4096 };

/* Devices come one by one: that another is known says nothing. */
static bool is_early(struct spooled *p, const struct early_wait *wait)
{
	return wait->stream != UINT32_MAX && wait->device != UINT32_MAX &&
	       !map_find(&p->rows, wait->device);
}

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
	if (wait->result)
		call.detail = spooled_detail(p, "result=%u", wait->result);
	/* The words of Kineto's traces. */
	if (wait->on_record && wait->on_stream != UINT32_MAX)
		call.detail =
			spooled_detail(p, "wait_on_stream=%u;wait_on_cuda_event_record_corr_id=%u",
				       wait->on_stream, wait->on_record);
	if (wait->stream == UINT32_MAX || !map_find(&p->rows, wait->device))
		call.lane = spooled_other(p, "synchronisation");
	else
		call.lane = spooled_stream(p, wait->device, wait->context, wait->stream);
	return sink_call(p->sink, &call, p->err);
}

void spooled_waits_for_slot(struct spooled *p, const struct segment_slot *slot)
{
	uint32_t stream = slot->x[2];

	if (stream == UINT32_MAX)
		stream = spooled_stream_number(p, slot->x[0], slot->value);
	p->waits_for[slot->b % WAITS_FOR_MAX] = (struct early_wait){ .correlation = slot->b,
								     .on_stream = stream,
								     .on_record = slot->x[1] };
}

static void find_event(const struct spooled *p, struct early_wait *wait)
{
	const struct early_wait *found = &p->waits_for[wait->correlation % WAITS_FOR_MAX];

	if (wait->kind != SYNC_STREAM_WAIT || !wait->correlation ||
	    found->correlation != wait->correlation)
		return;
	wait->on_stream = found->on_stream;
	wait->on_record = found->on_record;
}

int spooled_sync_slot(struct spooled *p, const struct segment_slot *slot)
{
	struct early_wait wait = { 0 };
	uint64_t handle;
	int ret;

	if (!slot->value || slot->value > slot->time_ns || slot->a >= SYNC_KINDS) {
		session_loss(p->sink->session, p->source, LOSS_malformed, 1);
		return 0;
	}
	wait.start_ns = (int64_t)slot->value;
	if (!spooled_is_open(p, wait.start_ns))
		return 0;
	wait.end_ns = (int64_t)slot->time_ns;
	wait.kind = (enum sync_kind)slot->a;
	wait.correlation = slot->b;
	wait.context = slot->x[0];
	wait.stream = slot->x[1];
	wait.device = slot->x[2];
	wait.result = slot->x[5];
	memcpy(&handle, &slot->x[3], sizeof(handle));
	if (wait.result) {
		ret = spooled_failed_wait(p, slot);
		return ret < 0 ? ret : put(p, &wait);
	}
	find_event(p, &wait);
	if (wait.device != UINT32_MAX)
		map_put(&p->devices, wait.context, wait.device);
	if (wait.stream != UINT32_MAX)
		spooled_know_stream(p, wait.context, handle, wait.stream);
	if (p->early_waits.count < EARLY_MAX && is_early(p, &wait)) {
		*VEC_ADD(&p->early_waits) = wait;
		return 0;
	}
	return put(p, &wait);
}

int spooled_early_waits(struct spooled *p, bool last)
{
	size_t kept = 0;
	int ret = 0;

	for (size_t i = 0; i < p->early_waits.count && ret >= 0; i++) {
		struct early_wait wait = p->early_waits.at[i];

		if (!last && is_early(p, &wait))
			p->early_waits.at[kept++] = wait;
		else
			ret = put(p, &wait);
	}
	p->early_waits.count = kept;
	return ret;
}
