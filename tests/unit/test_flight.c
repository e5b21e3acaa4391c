/* The last minutes in memory: limits, and what comes out of a save. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "random.h"
#include "store/flight.h"
#include "store/store.h"

static const int64_t MS = 1000000;
static const int64_t START_UTC = 1796025600LL * 1000000000;

static char path[64];

static void make_path(void)
{
	char name[] = "/tmp/sonde-flight-XXXXXX";
	int fd = mkstemp(name);

	cr_assert_geq(fd, 0);
	(void)close(fd);
	(void)unlink(name);
	(void)snprintf(path, sizeof(path), "%s.sonde", name);
}

static void remove_path(void)
{
	(void)unlink(path);
}

static void snapshot_at(struct snapshot *snapshot, size_t boards, int64_t number)
{
	while (snapshot->boards.count < boards) {
		struct board *board = VEC_ADD(&snapshot->boards);

		board->index = (uint32_t)snapshot->boards.count - 1;
		board->parent = -1;
		board->gpu_instance = board->compute_instance = -1;
		(void)snprintf(board->uuid, sizeof(board->uuid), "GPU-%u", board->index);
		(void)snprintf(board->pci_bus, sizeof(board->pci_bus), "0000:8%u:00.0",
			       board->index);
	}
	snapshot->monotonic_ns = number * 100 * MS;
	snapshot->utc_ns = START_UTC + snapshot->monotonic_ns;
	snapshot->processes.count = 0;
	for (size_t i = 0; i < boards; i++) {
		struct sample *sample = &snapshot->boards.at[i].sample;

		*sample = (struct sample){ .time_ns = snapshot->utc_ns };
		sample_set(sample, METRIC_power_w, (double)(number * 8 + (int64_t)i));
		sample_set(sample, METRIC_util_pct, floor(100 * random_unit()));
		sample_set(sample, METRIC_sm_mhz, 1400 + 15 * floor(30 * random_unit()));
		for (int m = METRIC_gr_active_pct; m <= METRIC_int_pct; m++)
			sample_set(sample, (enum metric)m, 100 * random_unit());
	}
	if (number % 10 == 0) {
		struct board_process *process = VEC_ADD(&snapshot->processes);

		process->pid = 4711;
		process->kinds = PROCESS_COMPUTE;
		process->gpu_instance = process->compute_instance = -1;
		sample_set(&process->sample, METRIC_proc_sm_pct, 40);
	}
}

static void save_all(struct flight *flight)
{
	struct err err = { 0 };
	int ret;

	cr_assert_eq(flight_save(flight, path, "a test", &err), 0, "%s", err.line);
	cr_assert_eq(flight_save(flight, path, "another", &err), ERR_BUSY);
	while ((ret = flight_save_step(flight, NULL, NULL, &err)) > 0)
		;
	cr_assert_eq(ret, 0, "%s", err.line);
	cr_assert_not(flight_saving(flight));
}

/* Samples of the profile, each with the power that its time says. */
static int64_t check(size_t boards, int64_t *ret_first)
{
	OWN(store_closep) struct store *store = NULL;
	const struct store_query query = { .kinds = STORE_BIT(STORE_sample) };
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	struct err err = { 0 };
	int64_t count = 0;

	*ret_first = INT64_MAX;
	cr_assert_eq(store_open(path, &store, &err), 0, "%s", err.line);
	cr_assert_eq(store_session(store)->devices.count, boards);
	cr_assert_eq(store_query_open(store, &query, &cursor, NULL), 0);
	while (store_next(cursor, &batch, NULL) > 0) {
		const struct lane *lane = &store_session(store)->lanes.at[batch.lane];

		for (size_t i = 0; lane->kind == LANE_BOARD && i < batch.count; i++) {
			int64_t number = (batch.samples[i].time_ns - START_UTC) / (100 * MS);
			int64_t board = store_session(store)->devices.at[lane->device].ordinal;
			double watts;

			cr_assert(sample_get(&batch.samples[i], METRIC_power_w, &watts));
			cr_assert_eq(watts, (double)(number * 8 + board));
			*ret_first = number < *ret_first ? number : *ret_first;
			count++;
		}
	}
	cr_assert_eq(store_damage(store), 0);
	return count;
}

Test(flight, what_is_saved_is_what_came_in, .init = make_path, .fini = remove_path)
{
	/* Below, at and above a block. */
	static const int64_t counts[] = { 1, 127, 128, 129, 300 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		OWN(flight_freep)
		struct flight *flight =
			flight_new(&(struct flight_opts){ .interval_ns = 100 * MS });
		struct snapshot snapshot = { 0 };
		int64_t first;

		for (int64_t n = 0; n < counts[i]; n++) {
			snapshot_at(&snapshot, 3, n);
			flight_add(flight, &snapshot);
		}
		cr_assert_eq(flight_state(flight).snapshots, counts[i]);
		save_all(flight);
		cr_assert_eq(check(3, &first), 3 * counts[i]);
		cr_assert_eq(first, 0);
		snapshot_done(&snapshot);
	}
}

Test(flight, lines_of_the_log_are_in_it, .init = make_path, .fini = remove_path)
{
	OWN(flight_freep)
	struct flight *flight = flight_new(&(struct flight_opts){ .interval_ns = 100 * MS });
	OWN(store_closep) struct store *store = NULL;
	struct snapshot snapshot = { 0 };

	flight_line(flight, START_UTC - 1, MARK_TEXT, "", "older than all that is kept", "");
	for (int64_t n = 0; n < 10; n++) {
		snapshot_at(&snapshot, 1, n);
		flight_add(flight, &snapshot);
	}
	flight_line(flight, START_UTC + 500 * MS, MARK_XID, "0000:80:00.0", "Xid 79", "");
	flight_line(flight, START_UTC + 600 * MS, MARK_OOM, "", "Out of memory", "");
	save_all(flight);
	cr_assert_eq(store_open(path, &store, NULL), 0);
	cr_assert_geq(store_count(store, STORE_mark), 2);
	cr_assert(intern_find(store_session(store)->strings, "Xid 79", 6, &(uint32_t){ 0 }));
	cr_assert_not(intern_find(store_session(store)->strings, "older than all that is kept", 27,
				  &(uint32_t){ 0 }));
	snapshot_done(&snapshot);
}

Test(flight, ten_minutes_of_eight_cards_at_10_Hz_fit_the_budget_and_twenty_do_not_grow,
     .init = make_path, .fini = remove_path)
{
	OWN(flight_freep)
	struct flight *flight = flight_new(&(struct flight_opts){ .interval_ns = 100 * MS });
	struct snapshot snapshot = { 0 };
	struct flight_state state;
	int64_t first;

	for (int64_t n = 0; n < 12000; n++) {
		snapshot_at(&snapshot, 8, n);
		flight_add(flight, &snapshot);
		state = flight_state(flight);
		cr_assert_leq(state.bytes, 6u << 20);
		cr_assert_leq(state.snapshots, 6000 + 2 * 128);
	}
	cr_assert_eq(state.dropped, 0);
	cr_assert_geq(state.snapshots, 6000 - 128);
	save_all(flight);
	cr_assert_eq(check(8, &first), 8 * state.snapshots);
	cr_assert_eq(first, 12000 - state.snapshots);
	snapshot_done(&snapshot);
}

Test(flight, a_small_budget_drops_the_oldest_and_counts_them, .init = make_path,
     .fini = remove_path)
{
	OWN(flight_freep)
	struct flight *flight = flight_new(
		&(struct flight_opts){ .interval_ns = 100 * MS, .budget_bytes = 256 << 10 });
	struct snapshot snapshot = { 0 };
	struct flight_state state;

	for (int64_t n = 0; n < 3000; n++) {
		snapshot_at(&snapshot, 8, n);
		flight_add(flight, &snapshot);
	}
	state = flight_state(flight);
	cr_assert_leq(state.bytes, 256 << 10);
	cr_assert_gt(state.dropped, 0);
	cr_assert_eq(state.dropped + state.snapshots, 3000);
	snapshot_done(&snapshot);
}

Test(flight, a_place_that_cannot_be_written_is_told, .init = make_path)
{
	OWN(flight_freep)
	struct flight *flight = flight_new(&(struct flight_opts){ .interval_ns = 100 * MS });
	struct err err = { 0 };

	cr_assert_lt(flight_save(flight, "/no/such/place.sonde", "a test", &err), 0);
	cr_assert_not_null(strstr(err.line, "/no/such/place.sonde"));
	cr_assert_not(flight_saving(flight));
}
