/* What the kernel writes into a ring, invented, and what becomes of it. */
#include "collect/perf_thread.h"

#include <criterion/criterion.h>
#include <pthread.h>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/perf_watch.h"
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

struct echo {
	int in[2], out[2];
	int64_t tid;
};

/* Gives back what it gets: a switch or two each time. */
static void *echo(void *at)
{
	struct echo *echo = at;
	char c = 0;

	echo->tid = syscall(SYS_gettid);
	do
		cr_assert_eq(write(echo->out[1], &c, 1), 1);
	while (read(echo->in[0], &c, 1) == 1);
	return NULL;
}

static void ask(struct echo *at, int times)
{
	char c = 0;

	for (int i = 0; i < times; i++) {
		cr_assert_eq(write(at->in[1], &c, 1), 1);
		cr_assert_eq(read(at->out[0], &c, 1), 1);
	}
}

/* With the clock standing still a budget is all there is. */
static void watch_echo(struct perf_watch *watch, struct echo *at, int64_t now_ns)
{
	struct err err = { 0 };

	for (int i = 0; i < 5 && !perf_watch_limited(watch); i++) {
		cr_assert(perf_watch_exact(watch));
		ask(at, 1500);
		cr_assert_eq(perf_watch_feed(watch, now_ns, &err), 1);
	}
	cr_assert(perf_watch_limited(watch), "samples");
	cr_assert(perf_watch_exact(watch), "but not yet the switches");
	for (int i = 0; i < 10 && perf_watch_exact(watch); i++) {
		ask(at, 1500);
		cr_assert_eq(perf_watch_feed(watch, now_ns, &err), 1);
	}
	cr_assert_not(perf_watch_exact(watch));
	cr_assert_gt(perf_watch_seen(watch), 0);
	cr_assert_eq(perf_watch_feed(watch, now_ns + 9000000000, &err), 1);
	cr_assert_not(perf_watch_exact(watch));
	cr_assert_eq(perf_watch_feed(watch, now_ns + 10000000000, &err), 1);
	cr_assert(perf_watch_exact(watch), "another chance");
}

Test(perf, a_thread_that_switches_often_is_left_alone_for_a_time)
{
	struct echo at = { 0 };
	struct perf_watch_opts opts = { .sink = &record_new()->sink, .samples_hz = 99 };
	struct lane lane = { .kind = LANE_THREAD, .device = SESSION_NONE };
	struct perf_watch *watch = NULL;
	int64_t now_ns = 1000000000000;
	struct err err = { 0 };
	pthread_t thread;
	char c;

	cr_assert(!pipe(at.in) && !pipe(at.out));
	cr_assert_eq(pthread_create(&thread, NULL, echo, &at), 0);
	cr_assert_eq(read(at.out[0], &c, 1), 1);
	opts.tid = at.tid;
	lane.source = session_source(opts.sink->session, "cuda", "it");
	opts.lane = session_lane(opts.sink->session, &lane);
	/* A container's seccomp profile may forbid it: osrt_refused shows what then. */
	if (perf_watch_new(&opts, now_ns, &watch, &err) == 0)
		watch_echo(watch, &at, now_ns);
	close(at.in[1]);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	while (watch && perf_watch_feed(watch, now_ns + 10000000000, &err) == 1)
		sched_yield();
	cr_assert_eq(watch ? perf_watch_finish(watch, now_ns + 10000000000, &err) : 0, 0);
	perf_watch_free(watch);
	record_free(record_of(opts.sink));
}
