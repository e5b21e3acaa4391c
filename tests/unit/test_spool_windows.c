/* When recording was on, as the process and the spool have it. */
#include <stdatomic.h>
#include <unistd.h>

#include "spool_bench.h"

TestSuite(spool_windows, .init = open_bench, .fini = close_bench);

/* Ranges and marks that touch no window are dropped; a moment of --calibrate is none. */
Test(spool_windows, have_the_ranges_that_touch_them)
{
	uint32_t name = TEXT("r");
	static const struct {
		uint64_t from, to;
		bool kept;
	} ranges[] = { { 10, 90, false },   { 50, 150, true },   { 90, 450, true },
		       { 210, 290, false }, { 250, 310, true },  { 420, 430, true },
		       { 560, 590, false }, { 610, 700, false }, { 390, 640, true } };
	size_t kept = 0;

	bench_claim(&bench);
	SLOT(SLOT_GATE, .time_ns = 1, .value = GATE_OFF);
	for (uint64_t ns = 100; ns < 500; ns += 200) {
		SLOT(SLOT_GATE, .time_ns = ns, .value = GATE_ON);
		SLOT(SLOT_GATE, .time_ns = ns + 100, .value = ns == 100 ? GATE_OFF : GATE_PART);
	}
	SLOT(SLOT_GATE, .time_ns = 500, .value = GATE_ON);
	SLOT(SLOT_GATE, .time_ns = 550, .value = GATE_OFF);
	SLOT(SLOT_GATE, .time_ns = 600, .value = GATE_OFF); /* again: changes nothing */
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		SLOT(SLOT_START, .time_ns = ranges[i].from, .value = i + 1, .a = name);
		SLOT(SLOT_END, .time_ns = ranges[i].to, .value = i + 1);
		kept += ranges[i].kept;
	}
	SLOT(SLOT_MARK, .time_ns = 250, .a = name);
	SLOT(SLOT_MARK, .time_ns = 450, .a = name);
	SLOT(SLOT_MARK, .time_ns = 580, .a = name);
	take();
	for (size_t i = 0; i < bench.record->ranges.count; i++) {
		const struct range *range = &bench.record->ranges.at[i];
		bool found = range->kind == RANGE_PAUSED;

		for (size_t k = 0; k < sizeof(ranges) / sizeof(ranges[0]); k++)
			found |= ranges[k].kept && (int64_t)ranges[k].from == range->start_ns &&
				 (int64_t)ranges[k].to == range->end_ns;
		cr_assert(found, "%lld to %lld", (long long)range->start_ns,
			  (long long)range->end_ns);
	}
	cr_assert_eq(bench.record->ranges.count, kept + 2);
	cr_assert_eq(bench.record->marks.count, 1);
	cr_assert_eq(bench.record->marks.at[0].time_ns, 450);
}

/* The head is what a process looks at that claims a segment now. */
Test(spool_windows, are_told_to_who_comes_later)
{
	struct spool_head *head = bench.head;

	cr_assert_eq(atomic_load(&head->closed), CLOSED_NOT);
	spool_ask_quiet(bench.spool);
	cr_assert_eq(atomic_load(&head->closed), CLOSED_NOT, "but for a moment");
	spool_ask_stop(bench.spool);
	cr_assert_eq(atomic_load(&head->closed), CLOSED_NOW);
	/* This one had claimed before. */
	bench.pid = (uint32_t)getpid();
	bench_claim(&bench);
	take();
	cr_assert_eq(atomic_load(&bench.segment->closed), CLOSED_NOW);
	cr_assert(atomic_load(&bench.segment->wanted) & WANT_STOP);
}

/* A process without CUPTI tells of no windows: the spool's own hold. */
Test(spool_windows, of_the_spool_hold_where_the_process_has_none)
{
	bench_claim(&bench);
	spool_ask_stop(bench.spool);
	SLOT(SLOT_PUSH, .time_ns = 10, .a = TEXT("around the end"));
	SLOT(SLOT_PUSH, .time_ns = INT64_MAX - 3, .a = TEXT("behind it"));
	SLOT(SLOT_POP, .time_ns = INT64_MAX - 2);
	SLOT(SLOT_MARK, .time_ns = INT64_MAX - 2, .a = TEXT("too late"));
	SLOT(SLOT_MODULE, .time_ns = INT64_MAX - 2, .x = { 1, 2, 1, 3 });
	SLOT(SLOT_POP, .time_ns = INT64_MAX - 1);
	take();
	cr_assert_eq(bench.record->ranges.count, 1);
	cr_assert_str_eq(text(bench.record->ranges.at[0].name), "around the end");
	cr_assert_eq(bench.record->marks.count, 0);
}

/* libsonde-osrt.so goes by `closed`, the other library does what is wanted. */
Test(spool_windows, stop_and_start_reach_both_libraries)
{
	atomic_store(&bench.head->owner[0], (uint32_t)getpid());
	spool_ask_stop(bench.spool);
	take();
	cr_assert_eq(atomic_load(&bench.segment->closed), CLOSED_NOW);
	cr_assert_eq(atomic_exchange(&bench.segment->wanted, 0), WANT_STOP);
	spool_ask_start(bench.spool);
	take();
	cr_assert_eq(atomic_load(&bench.segment->closed), CLOSED_NOT);
	cr_assert_eq(atomic_exchange(&bench.segment->wanted, 0), WANT_START);
}
