/* What recording costs, from windows in which it was off: collect/spool_quiet.c. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "segment_bench.h"

static struct bench bench;

static const char *calibration(void)
{
	const struct session *session = bench.record->sink.session;

	for (size_t i = 0; i < session->envs.count; i++) {
		if (!strcmp(session_text(session, session->envs.at[i].key), "calibration"))
			return session_text(session, session->envs.at[i].value);
	}
	return "";
}

/* Recorded windows of 1000 ns with a launch each 10 ns, quiet ones of 400 ns with one
 * each 4 ns. */
struct quiet_run {
	int windows;
	int lag_ns;      /* from a launch to its kernel */
	int lost;        /* launches in the middle of window 2 that have no record */
	int idle;        /* window behind which nothing is launched in the pause; 0: none */
	uint64_t silent; /* bits: windows of which no launch has one */
	bool shuffled;   /* records in no order */
};

static void run_in_windows(struct quiet_run run)
{
	struct spool_opts opts = {
		.segments = 1, .buffer_bytes = 1 << 20, .buffers = 4, .calibrates = true
	};
	struct cupti_kernel kernel = { .kind = CUPTI_KIND_CONCURRENT_KERNEL };
	struct err err = { 0 };

	memset(&bench, 0, sizeof(bench));
	cr_assert(bench_open(&bench, &opts));
	bench_claim(&bench);
	kernel.name = bench_text(&bench, "k");
	for (int i = 0; i < run.windows; i++) {
		uint64_t from = 1000 + (uint64_t)i * 1400;

		bench_slot(&bench, SLOT_GATE, (struct segment_slot){ .time_ns = from, .value = 1 });
		bench_slot(&bench, SLOT_GATE, (struct segment_slot){ .time_ns = from + 1000 });
	}
	for (int n = 0; n < run.windows * 100; n++) {
		/* 37 and 100 have no common divisor, nor have 37 and the windows tried. */
		int at = run.shuffled ? n * 37 % (run.windows * 100) : n;
		int i = at / 100, k = at % 100;

		kernel.grid_id = 1 + i * 200 + k - (run.idle && i > run.idle ? 100 : 0);
		kernel.start = kernel.end = (uint64_t)(1000 + i * 1400 + k * 10 + run.lag_ns);
		if (!(run.silent >> i & 1) && (i != 2 || k < 50 || k >= 50 + run.lost))
			bench_record(&bench, (uint32_t)n % 4, &kernel, sizeof(kernel), 216);
	}
	cr_assert_geq(spool_take(bench.spool, &bench.record->sink, &err), 0, "%s", err.line);
}

#define RUN_IN_WINDOWS(...) run_in_windows((struct quiet_run){ __VA_ARGS__ })

static const char QUIET_COST[] = "ps_low=6000;ps=6000;ps_high=6000;ppm_low=600000;ppm=600000;"
				 "ppm_high=600000";

static void costs_are(int windows, int launches)
{
	char text[256];

	snprintf(text, sizeof(text), "windows=%d;launches=%d;%s", windows, launches, QUIET_COST);
	cr_assert_str_eq(calibration(), text);
	bench_close(&bench);
}

Test(spool_quiet, what_a_launch_costs_is_the_difference_to_quiet_windows)
{
	RUN_IN_WINDOWS(.windows = 9);
	costs_are(8, 1700);
}

Test(spool_quiet, kernels_that_begin_behind_their_window_or_come_in_no_order_are_of_it)
{
	RUN_IN_WINDOWS(.windows = 9, .lag_ns = 390);
	costs_are(8, 1700);
	RUN_IN_WINDOWS(.windows = 9, .lag_ns = 1390);
	costs_are(8, 1700);
	RUN_IN_WINDOWS(.windows = 9, .shuffled = true);
	costs_are(8, 1700);
}

Test(spool_quiet, records_that_were_lost_in_a_window_are_no_pause)
{
	RUN_IN_WINDOWS(.windows = 9, .lost = 1);
	costs_are(8, 1700);
	RUN_IN_WINDOWS(.windows = 9, .lost = 30, .shuffled = true);
	costs_are(8, 1700);
}

Test(spool_quiet, a_window_without_launches_says_nothing_of_the_pauses_beside_it)
{
	RUN_IN_WINDOWS(.windows = 9, .silent = 1 << 4);
	costs_are(6, 1700);
	/* At an end it is as if it were not there. */
	RUN_IN_WINDOWS(.windows = 9, .silent = 1 | 1 << 8);
	costs_are(6, 1300);
}

Test(spool_quiet, launches_of_windows_with_an_idle_pause_between_them_are_told_apart)
{
	RUN_IN_WINDOWS(.windows = 9, .idle = 3);
	costs_are(7, 1600);
	RUN_IN_WINDOWS(.windows = 9, .idle = 3, .lag_ns = 390);
	costs_are(7, 1600);
	RUN_IN_WINDOWS(.windows = 9, .idle = 3, .shuffled = true);
	costs_are(7, 1600);
}

Test(spool_quiet, few_windows_tell_nothing_and_why)
{
	RUN_IN_WINDOWS(.windows = 3);
	cr_assert_str_eq(calibration(), "");
	cr_assert_not_null(strstr(spool_complaint(bench.spool, 0), "too few windows"));
	bench_close(&bench);
	RUN_IN_WINDOWS(.windows = 9, .silent = 1 << 2 | 1 << 4 | 1 << 6);
	cr_assert_str_eq(calibration(), "");
	cr_assert_not_null(strstr(spool_complaint(bench.spool, 0),
				  "6 of 9 windows had launches, and 2 pauses between them"));
	bench_close(&bench);
}
