/* What stands when a round did not ask for it. */
#include <criterion/criterion.h>
#include <string.h>

#include "collect/collector.h"
#include "serve/picture.h"

static const int64_t SECOND = 1000000000;

static void snapshot_at(struct snapshot *snapshot, int64_t seconds)
{
	snapshot->boards.count = snapshot->processes.count = 0;
	snapshot->monotonic_ns = (100 + seconds) * SECOND;
	snapshot->groups = COLLECT_FAST;
	*VEC_ADD(&snapshot->boards) = (struct board){ .uuid = "GPU-1" };
}

static void put(struct snapshot *snapshot, enum metric metric, double value)
{
	sample_set(&snapshot->boards.at[0].sample, metric, value);
	snapshot->boards.at[0].origin[metric] = ORIGIN_NVML;
}

static double shown(const struct picture *picture, enum metric metric)
{
	double value;

	return board_get(&picture_snapshot(picture)->boards.at[0], metric, &value, NULL) ? value
											 : -1;
}

Test(picture, what_was_not_asked_stands_for_a_while)
{
	OWN(picture_freep) struct picture *picture = picture_new();
	struct snapshot snapshot = { 0 };

	cr_assert_null(picture_snapshot(picture));
	snapshot_at(&snapshot, 0);
	put(&snapshot, METRIC_power_w, 100);
	put(&snapshot, METRIC_ecc_single, 3);
	picture_see(picture, &snapshot);
	for (int i = 1; i <= 25; i++) {
		snapshot_at(&snapshot, i);
		put(&snapshot, METRIC_power_w, 100 + i);
		picture_see(picture, &snapshot);
		cr_assert_eq(shown(picture, METRIC_power_w), 100 + i);
		cr_assert_eq(shown(picture, METRIC_ecc_single), 3, "%d", i);
	}
	snapshot_at(&snapshot, 26);
	picture_see(picture, &snapshot);
	cr_assert_eq(shown(picture, METRIC_ecc_single), -1);
	snapshot_done(&snapshot);
}

Test(picture, a_value_that_is_no_longer_answered_goes_at_once)
{
	OWN(picture_freep) struct picture *picture = picture_new();
	struct snapshot snapshot = { 0 };

	snapshot_at(&snapshot, 0);
	put(&snapshot, METRIC_temp_c, 40);
	picture_see(picture, &snapshot);
	snapshot_at(&snapshot, 1);
	snapshot.boards.at[0].origin[METRIC_temp_c] = ORIGIN_FAILED;
	picture_see(picture, &snapshot);
	cr_assert_eq(shown(picture, METRIC_temp_c), -1);
	snapshot_done(&snapshot);
}

Test(picture, nothing_stands_over_a_lost_card_or_a_fresh_start)
{
	OWN(picture_freep) struct picture *picture = picture_new();
	struct snapshot snapshot = { 0 };

	snapshot_at(&snapshot, 0);
	put(&snapshot, METRIC_pcie_rx_bytes, 1e12);
	picture_see(picture, &snapshot);
	snapshot_at(&snapshot, 1);
	snapshot.boards.at[0].state = BOARD_LOST;
	picture_see(picture, &snapshot);
	cr_assert_eq(shown(picture, METRIC_pcie_rx_bytes), -1);
	snapshot_at(&snapshot, 2);
	put(&snapshot, METRIC_pcie_rx_bytes, 1e12);
	picture_see(picture, &snapshot);
	snapshot_at(&snapshot, 3);
	snapshot.generation++;
	picture_see(picture, &snapshot);
	cr_assert_eq(shown(picture, METRIC_pcie_rx_bytes), -1);
	snapshot_done(&snapshot);
}

Test(picture, processes_stand_until_they_are_listed_again)
{
	OWN(picture_freep) struct picture *picture = picture_new();
	struct snapshot snapshot = { 0 };

	snapshot_at(&snapshot, 0);
	snapshot.groups = COLLECT_PROCESSES;
	*VEC_ADD(&snapshot.processes) = (struct board_process){ .pid = 7 };
	picture_see(picture, &snapshot);
	snapshot_at(&snapshot, 4);
	picture_see(picture, &snapshot);
	cr_assert_eq(picture_snapshot(picture)->processes.count, 1);
	snapshot_at(&snapshot, 5);
	snapshot.groups = COLLECT_PROCESSES;
	picture_see(picture, &snapshot);
	cr_assert_eq(picture_snapshot(picture)->processes.count, 0);
	snapshot_done(&snapshot);
}
