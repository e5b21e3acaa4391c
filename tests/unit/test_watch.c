/* When a flight record is worth saving: clock cliffs, heat, lost cards. */
#include <criterion/criterion.h>

#include "collect/watch.h"

static const int64_t S = 1000000000;

struct bench {
	struct watch *watch;
	struct snapshot snapshot;
	int64_t now_ns;
	int struck;
	struct trigger last;
};

static void see(struct bench *bench, double mhz, double util_pct, double reasons, double seconds)
{
	struct board *board;

	if (!bench->watch) {
		bench->watch = watch_new();
		board = VEC_ADD(&bench->snapshot.boards);
		board->index = 3;
		(void)snprintf(board->uuid, sizeof(board->uuid), "GPU-3");
		(void)snprintf(board->pci_bus, sizeof(board->pci_bus), "0000:83:00.0");
	}
	board = &bench->snapshot.boards.at[0];
	for (int64_t end_ns = bench->now_ns + (int64_t)(seconds * 1e9); bench->now_ns < end_ns;
	     bench->now_ns += S / 10) {
		board->sample = (struct sample){ 0 };
		sample_set(&board->sample, METRIC_sm_mhz, mhz);
		sample_set(&board->sample, METRIC_util_pct, util_pct);
		sample_set(&board->sample, METRIC_clock_reasons, reasons);
		sample_set(&board->sample, METRIC_temp_c, 88);
		bench->snapshot.monotonic_ns = bench->now_ns;
		bench->snapshot.utc_ns = bench->now_ns + 1000 * S;
		bench->struck += watch_see(bench->watch, &bench->snapshot, &bench->last);
	}
}

static void done(struct bench *bench)
{
	watch_free(bench->watch);
	snapshot_done(&bench->snapshot);
}

Test(watch, a_clock_cliff_strikes_once)
{
	struct bench bench = { 0 };

	see(&bench, 1980, 99, 0, 20);
	see(&bench, 1980 * 0.59, 99, 0, 0.9);
	cr_assert_eq(bench.struck, 0);
	see(&bench, 1980 * 0.59, 99, 0, 30);
	cr_assert_eq(bench.struck, 1);
	cr_assert_eq(bench.last.kind, TRIGGER_CLOCK);
	cr_assert_str_eq(bench.last.text, "GPU 3: SM clock 1168 MHz under load, 1980 MHz before");
	cr_assert_str_eq(bench.last.pci_bus, "0000:83:00.0");
	/* It recovers, and falls again. */
	see(&bench, 1980, 99, 0, 10);
	see(&bench, 600, 99, 0, 5);
	cr_assert_eq(bench.struck, 2);
	done(&bench);
}

Test(watch, the_power_wall_and_idling_are_no_cliffs)
{
	struct bench bench = { 0 };

	see(&bench, 1980, 99, 0, 20);
	see(&bench, 1440, 99, 4, 20);
	see(&bench, 345, 0, 1, 20);
	see(&bench, 345, 60, 1, 5);
	see(&bench, 1980, 99, 0, 20);
	/* One odd reading. */
	see(&bench, 345, 99, 0, 0.5);
	see(&bench, 1980, 99, 0, 5);
	cr_assert_eq(bench.struck, 0);
	done(&bench);
}

Test(watch, a_clock_that_is_low_from_the_start_of_a_short_load_is_none)
{
	struct bench bench = { 0 };

	see(&bench, 1980, 99, 0, 20);
	see(&bench, 345, 0, 1, 20);
	see(&bench, 345, 99, 0, 4.5);
	see(&bench, 1980, 99, 0, 10);
	cr_assert_eq(bench.struck, 0);
	done(&bench);
}

Test(watch, heat_strikes_once_until_it_was_cool_for_a_minute)
{
	struct bench bench = { 0 };

	see(&bench, 1980, 99, 0, 10);
	see(&bench, 1700, 99, 0x20, 5);
	cr_assert_eq(bench.struck, 1);
	cr_assert_eq(bench.last.kind, TRIGGER_THERMAL);
	cr_assert_str_eq(bench.last.text,
			 "GPU 3: software thermal slowdown, 88 C, SM clock 1700 MHz");
	see(&bench, 1980, 99, 0, 50);
	see(&bench, 1700, 99, 0x40, 5);
	cr_assert_eq(bench.struck, 1);
	see(&bench, 1980, 99, 0, 61);
	see(&bench, 1700, 99, 0x40, 5);
	cr_assert_eq(bench.struck, 2);
	done(&bench);
}

Test(watch, a_card_that_is_lost_strikes_once)
{
	struct bench bench = { 0 };

	see(&bench, 1980, 99, 0, 1);
	bench.snapshot.boards.at[0].state = BOARD_LOST;
	bench.snapshot.boards.at[0].status = 15;
	see(&bench, 0, 0, 0, 5);
	cr_assert_eq(bench.struck, 1);
	cr_assert_eq(bench.last.kind, TRIGGER_LOST);
	cr_assert_str_eq(bench.last.text, "GPU 3: lost, the driver says 15");
	done(&bench);
}
