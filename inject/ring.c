/* ring.c - slots for what CUPTI's buffers don't carry: see segment.h. */
#include "inject/inject.h"

enum { TRIES = 64 };

/* [hot] */
struct segment_slot *slot_take(struct segment *segment)
{
	uint64_t head = atomic_load_explicit(&segment->ring_head, memory_order_relaxed);
	struct segment_slot *slot;

	for (int i = 0; i < TRIES; i++) {
		uint64_t tail = atomic_load_explicit(&segment->ring_tail, memory_order_acquire);

		if (head - tail >= segment->ring_slots)
			break;
		if (!atomic_compare_exchange_weak(&segment->ring_head, &head, head + 1))
			continue;
		slot = &segment_ring(segment)[head & (segment->ring_slots - 1)];
		slot->thread = inject_thread();
		slot->time_ns = inject_now();
		slot->value = 0;
		slot->a = slot->b = 0;
		return slot;
	}
	atomic_fetch_add_explicit(&segment->counts.slots_dropped, 1, memory_order_relaxed);
	return NULL;
}

/* [hot] */
void slot_commit(struct segment_slot *slot, enum slot_kind kind)
{
	atomic_store_explicit(&slot->kind, kind, memory_order_release);
}
