/* When the monitor asks for what, and how it gives way. */
#include <criterion/criterion.h>

#include "collect/collector.h"
#include "serve/pace.h"

static const int64_t MS = 1000000;

/* Rounds of each kind and groups in `seconds`, each when it is due. */
struct counted {
	int rounds, asks, memory, counters, thermal, gpm, processes, rings, health, row, replays,
		bar1;
};

static struct counted run(struct pace *pace, int64_t from_ns, int64_t seconds)
{
	struct counted counted = { 0 };

	pace->next_round_ns = from_ns;
	pace->next_flight_ns = from_ns;
	while (pace_next(pace) < from_ns + seconds * 1000 * MS) {
		int64_t now_ns = pace_next(pace) + 300000;
		bool round;
		uint32_t groups = pace_ask(pace, now_ns, &round);

		counted.asks++;
		counted.rounds += round;
		counted.memory += (groups & COLLECT_MEMORY) != 0;
		counted.counters += (groups & COLLECT_COUNTERS) != 0;
		counted.thermal += (groups & COLLECT_THERMAL) != 0;
		counted.gpm += (groups & COLLECT_GPM) != 0;
		counted.row += (groups & COLLECT_ROW) != 0;
		counted.replays += (groups & COLLECT_REPLAYS) != 0;
		counted.bar1 += (groups & COLLECT_BAR1) != 0;
		counted.processes += (groups & COLLECT_PROCESSES) != 0;
		counted.rings += (groups & COLLECT_RINGS) != 0;
		counted.health += (groups & COLLECT_HEALTH) != 0;
		cr_assert(groups & COLLECT_FAST);
		cr_assert_gt(pace_next(pace), now_ns);
	}
	return counted;
}

Test(pace, five_seconds_ask_everything_but_health_each_time)
{
	struct pace pace = { .interval_ns = 5000 * MS };
	struct counted counted = run(&pace, 77000 * MS, 600);

	cr_assert_eq(counted.rounds, 120);
	cr_assert_eq(counted.asks, 120);
	cr_assert_eq(counted.counters, 120);
	cr_assert_eq(counted.gpm, 120);
	cr_assert_eq(counted.processes, 120);
	cr_assert_eq(counted.rings, 0);
	cr_assert_eq(counted.health, 60);
}

Test(pace, ten_a_second_ask_dear_groups_seldom)
{
	struct pace pace = { .interval_ns = 100 * MS, .needs = PACE_FILES };
	struct counted counted = run(&pace, 77000 * MS, 60);

	cr_assert_eq(counted.rounds, 600);
	cr_assert_eq(counted.memory, 60);
	cr_assert_eq(counted.counters, 60);
	cr_assert_eq(counted.thermal, 30);
	cr_assert_eq(counted.gpm, 30);
	cr_assert_eq(counted.processes, 12);
	cr_assert_eq(counted.health, 6);
	cr_assert_eq(counted.row + counted.replays + counted.bar1, 0);
}

Test(pace, a_flight_recorder_asks_between_the_rounds)
{
	struct pace pace = { .interval_ns = 5000 * MS, .flight_ns = 100 * MS };
	struct counted counted = run(&pace, 77000 * MS, 60);

	cr_assert_eq(counted.rounds, 12);
	cr_assert_eq(counted.asks, 600);
	cr_assert_eq(counted.counters, 60);
	cr_assert_eq(counted.rings, 30);
}

Test(pace, what_is_recorded_has_everything_beside_a_flight_recorder_too)
{
	struct pace pace = { .interval_ns = 5000 * MS, .flight_ns = 100 * MS };
	const uint32_t all = COLLECT_FAST | COLLECT_MEMORY | COLLECT_COUNTERS | COLLECT_THERMAL |
			     COLLECT_GPM | COLLECT_PROCESSES;

	pace.next_round_ns = pace.next_flight_ns = 5000 * MS;
	for (int i = 0; i < 3000; i++) {
		bool round;
		uint32_t groups = pace_ask(&pace, pace_next(&pace) + MS / 2, &round);

		cr_assert(!round || (groups & all) == all, "%d: %x", i, groups);
	}
}

Test(pace, dmon_rows_ask_for_their_columns_alone)
{
	struct pace pace = { .interval_ns = 1000 * MS, .needs = PACE_ROWS };
	struct counted counted = run(&pace, 77000 * MS, 60);

	cr_assert_eq(counted.rounds, 60);
	cr_assert_eq(counted.row, 60);
	cr_assert_eq(counted.memory, 60);
	cr_assert_eq(counted.replays, 6);
	cr_assert_eq(counted.bar1, 2);
	cr_assert_eq(counted.thermal, 6);
	cr_assert_eq(counted.counters + counted.gpm + counted.processes + counted.health, 0);
}

Test(pace, a_late_round_does_not_shift_those_that_follow)
{
	struct pace pace = { .interval_ns = 1000 * MS, .next_round_ns = 10000 * MS };
	bool round;

	(void)pace_ask(&pace, 12345 * MS, &round);
	cr_assert(round);
	cr_assert_eq(pace_next(&pace), 13000 * MS);
}

Test(pace, slow_calls_cost_processes_first_then_the_interval_and_come_back)
{
	struct pace pace = { .interval_ns = 1000 * MS };
	bool round;

	/* Two slow ones are chance. */
	cr_assert_not(pace_took(&pace, 101 * MS));
	cr_assert_not(pace_took(&pace, 101 * MS));
	cr_assert_not(pace_took(&pace, 99 * MS));
	cr_assert_not(pace_took(&pace, 101 * MS));
	cr_assert_not(pace_took(&pace, 101 * MS));
	cr_assert(pace_took(&pace, 101 * MS));
	cr_assert_eq(pace_level(&pace), 1);
	cr_assert_eq(pace_interval(&pace), 1000 * MS);
	cr_assert_not(pace_ask(&pace, 1000 * MS, &round) & COLLECT_PROCESSES);
	for (int i = 0; i < 3; i++)
		(void)pace_took(&pace, 101 * MS);
	cr_assert_eq(pace_interval(&pace), 2000 * MS);
	/* A tenth of two seconds is not slow any more. */
	for (int i = 0; i < 30; i++)
		cr_assert_not(pace_took(&pace, 101 * MS));
	for (int i = 0; i < 100; i++)
		(void)pace_took(&pace, 60000 * MS);
	cr_assert_eq(pace_interval(&pace), 60000 * MS);
	for (int i = 0; i < 300; i++)
		(void)pace_took(&pace, 1 * MS);
	cr_assert_eq(pace_level(&pace), 0);
	cr_assert(pace_ask(&pace, 200000 * MS, &round) & COLLECT_PROCESSES);
}
