/* What the kernel writes into a ring, invented, and what becomes of it. */
#include "collect/perf_thread.h"

#include <criterion/criterion.h>

#include <linux/perf_event.h>
#include <unistd.h>

#include "sink_record.h"

enum { RING = 4096 };

struct rig {
	struct perf_event_mmap_page page;
	_Alignas(8) char data[RING];
};

static struct rig rig;

static void put(uint32_t type, uint16_t misc, const uint64_t *words, size_t count)
{
	struct perf_event_header head = { .type = type,
					  .misc = misc,
					  .size = (uint16_t)(sizeof(head) + 8 * count) };
	const char *from = (const char *)&head;

	for (size_t i = 0; i < head.size; i++) {
		if (i == sizeof(head))
			from = (const char *)words - sizeof(head);
		rig.data[rig.page.data_head++ % RING] = from[i];
	}
}

static void switched(bool out, bool preempted, uint64_t ns)
{
	put(PERF_RECORD_SWITCH, (uint16_t)((out ? 1 << 13 : 0) | (preempted ? 1 << 14 : 0)), &ns,
	    1);
}

Test(perf, records_go_round_the_ring)
{
	struct perf_ring *ring = perf_ring_over(&rig.page, rig.data, RING);
	uint64_t sample[] = { 77, 4, (uint64_t)-512, 0x1000, 0x2000, 0x3000 };
	struct perf_record record;

	rig.page.data_head = rig.page.data_tail = RING - 12;
	cr_assert_not(perf_ring_next(ring, &record));
	put(PERF_RECORD_SAMPLE, 0, sample, 6);
	put(PERF_RECORD_COMM, 0, sample, 3);
	put(PERF_RECORD_LOST, 0, (uint64_t[]){ 1, 9 }, 2);
	switched(true, true, 80);
	cr_assert(perf_ring_next(ring, &record));
	cr_assert_eq(record.kind, PERF_SAMPLED);
	cr_assert_eq(record.time_ns, 77);
	cr_assert_eq(record.frames, 3);
	cr_assert_eq(record.frame[0], 0x1000);
	cr_assert(perf_ring_next(ring, &record));
	cr_assert_eq(record.kind, PERF_LOST);
	cr_assert_eq(record.lost, 9);
	cr_assert(perf_ring_next(ring, &record));
	cr_assert_eq(record.kind, PERF_PREEMPTED);
	cr_assert_not(perf_ring_next(ring, &record));
	cr_assert_eq(rig.page.data_tail, rig.page.data_head);
	perf_ring_close(ring);
}

Test(perf, a_ring_of_rubbish_ends)
{
	struct perf_ring *ring = perf_ring_over(&rig.page, rig.data, RING);
	struct perf_record record;
	uint64_t seed = 1;

	for (int round = 0; round < 2000; round++) {
		int found = 0;

		for (size_t i = 0; i < RING; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			rig.data[i] = (char)(seed >> 57 ? seed >> 56 & 15 : seed >> 40);
		}
		rig.page.data_head = rig.page.data_tail + seed % RING;
		while (perf_ring_next(ring, &record)) {
			cr_assert_leq(record.frames, PERF_FRAMES_MAX);
			cr_assert_lt(++found, RING);
		}
		/* A rest that is less than a header is not there yet. */
		cr_assert_lt(rig.page.data_head - rig.page.data_tail, 8);
		rig.page.data_tail = rig.page.data_head;
	}
	perf_ring_close(ring);
}

static struct perf_thread *thread_new(struct sink **ret_sink)
{
	struct lane lane = { .kind = LANE_THREAD, .tid = 5, .device = SESSION_NONE };

	*ret_sink = &record_new()->sink;
	lane.source = session_source((*ret_sink)->session, "cuda", "it");
	return perf_thread_new(perf_ring_over(&rig.page, rig.data, RING),
			       session_lane((*ret_sink)->session, &lane), *ret_sink, NULL);
}

static void expect(struct sink *sink, size_t at, const char *name, int64_t start, int64_t end)
{
	const struct range *range = &record_of(sink)->ranges.at[at];

	cr_assert_lt(at, record_of(sink)->ranges.count);
	cr_assert_eq(range->kind, RANGE_STATE_EXACT);
	cr_assert_str_eq(session_text(sink->session, range->name), name);
	cr_assert_eq(range->start_ns, start);
	cr_assert_eq(range->end_ns, end);
}

Test(perf, states_reach_from_switch_to_switch)
{
	struct sink *sink;
	struct perf_thread *thread = thread_new(&sink);
	struct err err = { 0 };

	switched(false, false, 100);
	switched(true, true, 130);
	switched(false, false, 150);
	switched(true, false, 200);
	cr_assert_eq(perf_thread_take(thread, 100, &err), 4);
	cr_assert(perf_thread_wants_look(thread, 201));
	cr_assert_not(perf_thread_wants_look(thread, 200));
	perf_thread_looked(thread, intern_text(sink->session->strings, "waiting: futex"), 250);
	cr_assert_not(perf_thread_wants_look(thread, 300));
	switched(false, false, 900);
	cr_assert_eq(perf_thread_take(thread, 100, &err), 1);
	cr_assert_eq(perf_thread_settle(thread, 900, 950, &err), 0);
	cr_assert_eq(perf_thread_settle(thread, 901, 950, &err), 0);
	cr_assert_eq(record_of(sink)->ranges.count, 5);
	expect(sink, 0, "running", 100, 130);
	expect(sink, 1, "runnable", 130, 150);
	expect(sink, 2, "running", 150, 200);
	expect(sink, 3, "waiting: futex", 200, 900);
	expect(sink, 4, "running", 900, 950);
	perf_thread_free(thread);
	record_free(record_of(sink));
}

Test(perf, where_records_are_lost_no_state_is_told)
{
	struct sink *sink;
	struct perf_thread *thread = thread_new(&sink);
	struct err err = { 0 };

	switched(false, false, 100);
	put(PERF_RECORD_LOST, 0, (uint64_t[]){ 1, 40 }, 2);
	switched(true, false, 500);
	switched(false, false, 600);
	cr_assert_eq(perf_thread_take(thread, 100, &err), 4);
	cr_assert_eq(perf_thread_lost(thread), 40);
	cr_assert_eq(perf_thread_lost(thread), 0);
	cr_assert_eq(record_of(sink)->ranges.count, 1);
	expect(sink, 0, "waiting", 500, 600);
	perf_thread_free(thread);
	record_free(record_of(sink));
}

Test(perf, a_look_before_any_record_is_the_state)
{
	struct sink *sink;
	struct perf_thread *thread = thread_new(&sink);
	struct err err = { 0 };

	cr_assert(perf_thread_wants_look(thread, 0));
	perf_thread_looked(thread, intern_text(sink->session->strings, "waiting: poll"), 10);
	cr_assert_eq(perf_thread_settle(thread, INT64_MAX, 90, &err), 0);
	expect(sink, 0, "waiting: poll", 10, 90);
	perf_thread_free(thread);
	record_free(record_of(sink));
}

static int leaf_here(int n)
{
	return n + (int)getpid();
}

Test(perf, addresses_become_names)
{
	struct symbols *symbols = symbols_new();
	struct perf_stack *stack = perf_stack_new("", getpid(), symbols);
	uint64_t frames[] = { (uint64_t)(uintptr_t)&leaf_here,
			      (uint64_t)(uintptr_t)&perf_ring_open + 1, 0x10,
			      (uint64_t)(uintptr_t)&leaf_here };
	struct buf leaf = { 0 }, chain = { 0 };

	perf_stack_name(stack, frames, 4, 1, &leaf, &chain);
	cr_assert_str_eq(leaf.at, "leaf_here");
	cr_assert_str_eq(chain.at, "leaf_here < perf_ring_open");
	buf_clear(&leaf);
	frames[0] = 0x20;
	perf_stack_name(stack, frames, 4, 2, &leaf, &chain);
	cr_assert_eq(leaf.len, 0);
	buf_done(&leaf);
	buf_done(&chain);
	perf_stack_free(stack);
	symbols_free(symbols);
}
