/* PCIe rates of rows: read every two seconds, and twice where they may have wrapped. */
#include "collector_bench.h"
#include "warped_clock.h"

struct rows {
	struct world world;
	struct collector *collector;
	struct snapshot snapshot;
};

static void start(struct rows *rows, const char *script)
{
	clock_warp();
	rows->world.opts.groups = COLLECT_DMON;
	rows->collector = open_world(&rows->world, script);
}

static void end(struct rows *rows)
{
	collector_close(rows->collector);
	snapshot_done(&rows->snapshot);
	world_done(&rows->world);
}

/* A second later; -1: no rate. */
static double next_rate(struct rows *rows, enum metric metric)
{
	double value = -1;

	*ahead_ns += 1000000000;
	take(rows->collector, &rows->snapshot);
	(void)board_get(&rows->snapshot.boards.at[0], metric, &value, NULL);
	return value;
}

Test(card_pcie, calm_traffic_has_the_mean_since_the_last_reading_in_each_row)
{
	struct rows rows = { 0 };

	start(&rows, "@h200.nvml\nfield 198 5+2000000\nfield 197 5+1000000\n");
	cr_assert_geq(next_rate(&rows, METRIC_pcie_rx_bytes_s), 0, "the first row has a look");
	cr_assert_lt(next_rate(&rows, METRIC_pcie_rx_bytes_s), 0, "which is of its time only");
	for (int i = 0; i < 28; i++) {
		double rate = next_rate(&rows, METRIC_pcie_rx_bytes_s);

		cr_assert_float_eq(rate, 2e6, 1e4, "row %d: %g", i, rate);
		expect_none(&rows.snapshot.boards.at[0], METRIC_pcie_rx_bytes,
			    i % 2 ? ORIGIN_NONE : ORIGIN_WRAPS);
	}
	end(&rows);
}

Test(card_pcie, the_doubt_is_cleared_now_and_then)
{
	struct rows rows = { 0 };
	int looks = 0;

	/* Eight wraps between two readings, to the byte: calm, as it seems. */
	start(&rows, "@h200.nvml\nfield 198 0+17179869184\n");
	for (int i = 0; i < 120; i++)
		looks += next_rate(&rows, METRIC_pcie_rx_bytes_s) > 10e9;
	cr_assert_geq(looks, 4, "%d", looks);
	end(&rows);
}

Test(card_pcie, traffic_that_may_wrap_is_looked_at_twice_and_not_held)
{
	struct rows rows = { 0 };

	start(&rows, "@h200.nvml\nfield 198 0+50000000000\n");
	for (int i = 0; i < 20; i++) {
		double rate = next_rate(&rows, METRIC_pcie_rx_bytes_s);

		if (i % 2)
			cr_assert_lt(rate, 0, "row %d: %g", i, rate);
		else
			cr_assert(rate > 48e9 && rate < 52e9, "row %d: %g", i, rate);
	}
	end(&rows);
}

Test(card_pcie, a_link_that_cannot_wrap_in_two_seconds_needs_one_look)
{
	struct rows rows = { 0 };

	start(&rows, "@h200.nvml\nnvmlDeviceGetMaxPcieLinkGeneration 1\n"
		     "nvmlDeviceGetMaxPcieLinkWidth 4\nfield 198 0+900000000\n");
	(void)next_rate(&rows, METRIC_pcie_rx_bytes_s);
	(void)next_rate(&rows, METRIC_pcie_rx_bytes_s);
	for (int i = 0; i < 8; i++) {
		double rate = next_rate(&rows, METRIC_pcie_rx_bytes_s);

		cr_assert_float_eq(rate, 9e8, 1e7, "row %d: %g", i, rate);
	}
	end(&rows);
}

Test(card_pcie, a_driver_without_the_counters_is_measured)
{
	struct rows rows = { 0 };

	start(&rows, "gpu\nname A\nuuid GPU-a\nbus 0000:01:00.0\n"
		     "nvmlDeviceGetPcieThroughput.0 100\nnvmlDeviceGetPcieThroughput.1 200\n");
	for (int i = 0; i < 4; i++)
		cr_assert_float_eq(next_rate(&rows, METRIC_pcie_rx_bytes_s), 204800, 1e-6);
	end(&rows);
}

Test(card_pcie, a_card_lost_between_two_rows_has_no_rate)
{
	struct rows rows = { 0 };

	start(&rows, "@h200.nvml\nfield 198 5+2000000\n");
	for (int i = 0; i < 4; i++)
		(void)next_rate(&rows, METRIC_pcie_rx_bytes_s);
	world_set(&rows.world, "@h200.nvml\nlost\n");
	cr_assert_lt(next_rate(&rows, METRIC_pcie_rx_bytes_s), 0);
	cr_assert_eq(rows.snapshot.boards.at[0].state, BOARD_LOST);
	end(&rows);
}

Test(card_pcie, one_direction_that_is_refused_leaves_the_other)
{
	struct rows rows = { 0 };

	start(&rows, "@h200.nvml\nfield 198 !3\nfield 197 5+1000000\n");
	(void)next_rate(&rows, METRIC_pcie_tx_bytes_s);
	(void)next_rate(&rows, METRIC_pcie_tx_bytes_s);
	for (int i = 0; i < 6; i++) {
		double rate = next_rate(&rows, METRIC_pcie_tx_bytes_s);

		cr_assert_float_eq(rate, 1e6, 1e4, "row %d: %g", i, rate);
		expect_none(&rows.snapshot.boards.at[0], METRIC_pcie_rx_bytes_s,
			    i % 2 ? ORIGIN_NONE : ORIGIN_NOT_SUPPORTED);
	}
	end(&rows);
}

Test(card_pcie, no_mean_outlives_a_reading_that_failed)
{
	struct rows rows = { 0 };

	start(&rows, "@h200.nvml\nfield 198 5+2000000\nfield 197 5+1000000\n");
	for (int i = 0; i < 4; i++)
		(void)next_rate(&rows, METRIC_pcie_rx_bytes_s);
	/* 999: nobody knows why. */
	world_set(&rows.world, "@h200.nvml\nfield 198 !999\nfield 197 5+1000000\n");
	(void)next_rate(&rows, METRIC_pcie_rx_bytes_s);
	for (int i = 0; i < 4; i++)
		cr_assert_lt(next_rate(&rows, METRIC_pcie_rx_bytes_s), 0, "row %d", i);
	end(&rows);
}
