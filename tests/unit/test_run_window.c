/* Samples of the cards beside a program: what was recorded of it decides which count. */
#include <criterion/criterion.h>

#include <math.h>

#include "memory_store.h"

enum { SECONDS = 10 };
static const int64_t SECOND_NS = 1000000000;

/* Ten seconds of a board, at work from the fourth to the sixth; its power limit is told
 * once, at the start. */
static uint32_t board(struct store *store, const char *reader)
{
	struct session *session = store->session;
	struct lane lane = { .kind = LANE_BOARD,
			     .source = session_source(session, reader, "the cards"),
			     .process = SESSION_NONE,
			     .context = -1,
			     .stream = -1,
			     .tid = -1 };
	struct device device = { .scope = DEVICE_OF_SMI, .source = lane.source };

	session->sources.at[lane.source].has_utc = true;
	session->sources.at[lane.source].interval_ns = SECOND_NS;
	lane.device = session_device(session, &device);
	for (int i = 0; i < SECONDS; i++) {
		struct sample sample = { .time_ns = i * SECOND_NS };

		sample.lane = session_lane(session, &lane);
		sample_set(&sample, METRIC_util_pct, i >= 4 && i <= 6 ? 90 : 0);
		if (!i)
			sample_set(&sample, METRIC_power_limit_w, 700);
		cr_assert_eq(sink_sample(&store->sink, &sample, NULL), 0);
	}
	return lane.device;
}

/* One kernel from 4.2 to 6 s: that is all that was recorded. */
static void kernel(struct store *store, uint32_t device)
{
	struct session *session = store->session;
	struct kernel_key key = { .name = session_string(session, "k", 1) };
	struct lane lane = { .kind = LANE_STREAM,
			     .source = session_source(session, "cuda", "invented"),
			     .device = device,
			     .process = SESSION_NONE,
			     .tid = -1 };
	struct op op = { .kind = OP_KERNEL,
			 .start_ns = 4 * SECOND_NS + SECOND_NS / 5,
			 .end_ns = 6 * SECOND_NS,
			 .bytes = EVENT_UNKNOWN };

	session->sources.at[lane.source].has_utc = true;
	op.lane = session_lane(session, &lane);
	op.key = session_key(session, &key);
	cr_assert_eq(sink_op(&store->sink, &op, NULL), 0);
}

Test(run_window, what_was_sampled_outside_the_recording_is_left_out)
{
	for (int run = 0; run < 2; run++) {
		OWN(store_closep) struct store *store = memory_store_new();
		OWN(facts_freep) struct facts *facts = NULL;
		uint32_t device = board(store, run ? "nvml" : "smi_dmon");
		const struct system_facts *system;
		struct err err = { 0 };

		kernel(store, device);
		cr_assert_eq(facts_build(store, &facts, &err), 0, "%s", err.line);
		system = &facts->devices.at[device].system;
		cr_assert_eq(system->samples, run ? 3 : SECONDS);
		cr_assert_eq(system->samples_outside, run ? 7 : 0);
		cr_assert_float_eq(system->metric[METRIC_util_pct].mean, run ? 90 : 27, 1e-9);
		/* In force, though it was told before. */
		cr_assert_eq(system->metric[METRIC_power_limit_w].count, 1);
		cr_assert_float_eq(system->metric[METRIC_power_limit_w].last, 700, 1e-9);
	}
}

/* `bytes` to the device in 2 ms, on a board whose link was seen as `gen` x `width` and
 * can be `gen_most` x `width`; 0: that is not known. */
static double link_peak(double gen, double gen_most, double width, int64_t bytes)
{
	OWN(store_closep) struct store *store = memory_store_new();
	OWN(facts_freep) struct facts *facts = NULL;
	struct session *session = store->session;
	uint32_t source = session_source(session, "smi_dmon", "samples.txt");
	struct device device = { .scope = DEVICE_OF_SMI, .source = source };
	struct lane board = { .kind = LANE_BOARD,
			      .source = source,
			      .process = SESSION_NONE,
			      .context = -1,
			      .stream = -1,
			      .tid = -1 };
	struct lane lane = board;
	struct op op = { .kind = OP_MEMCPY,
			 .copy = COPY_HTOD,
			 .start_ns = 1000,
			 .end_ns = 2001000,
			 .bytes = bytes };
	struct err err = { 0 };

	session->sources.at[source].interval_ns = SECOND_NS;
	session->sources.at[source].interval_assumed = true;
	board.device = lane.device = session_device(session, &device);
	lane.kind = LANE_STREAM;
	lane.context = 1;
	lane.stream = 7;
	op.lane = session_lane(session, &lane);
	cr_assert_eq(sink_op(&store->sink, &op, NULL), 0);
	for (int i = 0; i < 3; i++) {
		struct sample sample = { .time_ns = i * SECOND_NS };

		sample.lane = session_lane(session, &board);
		sample_set(&sample, METRIC_pcie_gen, i == 1 ? gen : 1);
		sample_set(&sample, METRIC_pcie_width, width);
		if (gen_most > 0) {
			sample_set(&sample, METRIC_pcie_gen_max, gen_most);
			sample_set(&sample, METRIC_pcie_width_max, width);
		}
		cr_assert_eq(sink_sample(&store->sink, &sample, NULL), 0);
	}
	cr_assert_eq(facts_build(store, &facts, &err), 0, "%s", err.line);
	cr_assert_eq(facts->copies.count, 1);
	return facts->copies.at[0].link_peak_gbps;
}

Test(run_window, copies_are_told_against_the_link_that_was_seen_at_its_most)
{
	/* As they are published for x16: 63.0 GB/s at 32 GT/s, 15.75 at 8, 4 at 2.5. */
	cr_assert_float_eq(link_peak(5, 5, 16, 100000000), 63.0, 0.05);
	cr_assert_float_eq(link_peak(3, 3, 16, 25000000), 15.75, 0.01);
	cr_assert_float_eq(link_peak(1, 1, 16, 6000000), 4.0, 1e-9);
	cr_assert_float_eq(link_peak(4, 4, 8, 25000000), 15.75, 0.01);
	/* Never seen awake, or nobody said what it can be: that is not the copy's link. */
	cr_assert(isnan(link_peak(1, 5, 16, 6000000)));
	cr_assert(isnan(link_peak(4, 5, 16, 50000000)));
	cr_assert(isnan(link_peak(5, 0, 16, 100000000)));
	/* Faster than the link that was seen: that was not the link of the copy. */
	cr_assert(isnan(link_peak(1, 1, 16, 100000000)));
	/* A generation that is in no specification yet. */
	cr_assert(isnan(link_peak(8, 8, 16, 25000000)));
}

/* A board that is asked ten times a second for ten seconds, each time under its power limit for
 * a tenth of a second as its counter has it, at work in the first and the last of them. */
static uint32_t watched_board(struct store *store)
{
	struct session *session = store->session;
	struct lane lane = { .kind = LANE_BOARD,
			     .source = session_source(session, "nvml", "the cards"),
			     .process = SESSION_NONE,
			     .context = -1,
			     .stream = -1,
			     .tid = -1 };
	struct device device = { .scope = DEVICE_OF_SMI, .source = lane.source };

	session->sources.at[lane.source].has_utc = true;
	session->sources.at[lane.source].interval_ns = SECOND_NS / 10;
	lane.device = session_device(session, &device);
	for (int i = 0; i < 100; i++) {
		struct sample sample = { .time_ns = i * (SECOND_NS / 10) };

		sample.lane = session_lane(session, &lane);
		sample_set(&sample, METRIC_util_pct, i < 10 || i >= 90 ? 80 : 0);
		sample_set(&sample, METRIC_reason_power_cap_us, i * 1e5);
		sample_set(&sample, METRIC_clock_reasons, 4);
		sample_set(&sample, METRIC_sm_mhz, 1500);
		if (i == 50)
			sample_set(&sample, METRIC_power_limit_w, 700);
		cr_assert_eq(sink_sample(&store->sink, &sample, NULL), 0);
	}
	return lane.device;
}

static void busy(struct store *store, uint32_t source, uint32_t device, int64_t from_ns,
		 int64_t to_ns)
{
	struct session *session = store->session;
	struct kernel_key key = { .name = session_string(session, "k", 1) };
	struct lane lane = { .kind = LANE_STREAM,
			     .source = source,
			     .device = device,
			     .process = SESSION_NONE,
			     .tid = -1 };
	struct op op = {
		.kind = OP_KERNEL, .start_ns = from_ns, .end_ns = to_ns, .bytes = EVENT_UNKNOWN
	};

	op.lane = session_lane(session, &lane);
	op.key = session_key(session, &key);
	cr_assert_eq(sink_op(&store->sink, &op, NULL), 0);
}

static void off(struct store *store, uint32_t source, int64_t from_ns, int64_t to_ns)
{
	struct session *session = store->session;
	struct lane lane = { .kind = LANE_OTHER,
			     .source = source,
			     .device = SESSION_NONE,
			     .process = SESSION_NONE,
			     .tid = -1 };
	struct range range = { .kind = RANGE_PAUSED, .start_ns = from_ns, .end_ns = to_ns };

	range.lane = session_lane(session, &lane);
	range.name = session_string(session, "off", 3);
	cr_assert_eq(sink_range(&store->sink, &range, NULL), 0);
}

Test(run_window, what_was_sampled_between_two_windows_is_left_out)
{
	OWN(store_closep) struct store *store = memory_store_new();
	OWN(facts_freep) struct facts *facts = NULL;
	uint32_t device = watched_board(store);
	uint32_t source = session_source(store->session, "cuda", "invented");
	const struct system_facts *system;
	const struct device_fact *fact;
	struct err err = { 0 };

	store->session->sources.at[source].has_utc = true;
	busy(store, source, device, 0, SECOND_NS);
	off(store, source, SECOND_NS, 9 * SECOND_NS);
	busy(store, source, device, 9 * SECOND_NS, 99 * (SECOND_NS / 10));
	cr_assert_eq(facts_build(store, &facts, &err), 0, "%s", err.line);
	fact = &facts->devices.at[device];
	system = &fact->system;
	cr_assert_eq(system->samples, 20);
	cr_assert_eq(system->samples_outside, 80);
	cr_assert_float_eq(system->metric[METRIC_util_pct].mean, 80, 1e-9);
	/* In force, though it was told between them. */
	cr_assert_float_eq(system->metric[METRIC_power_limit_w].last, 700, 1e-9);
	/* Each window's own time, and an episode for each, by the samples' own numbers. */
	cr_assert_eq(system->ledger.observed_ns, 2 * 9 * (SECOND_NS / 10));
	cr_assert_eq(system->ledger.row[LIMIT_POWER].ns, 2 * 9 * (SECOND_NS / 10));
	cr_assert_eq(fact->episodes.count, 2);
	cr_assert_eq(fact->episodes.at[0].last_sample, 9);
	cr_assert_eq(fact->episodes.at[1].first_sample, 90);
}

/* As --calibrate makes them: the program goes on as before. */
Test(run_window, what_was_sampled_in_a_moment_s_pause_counts)
{
	OWN(store_closep) struct store *store = memory_store_new();
	OWN(facts_freep) struct facts *facts = NULL;
	uint32_t device = watched_board(store);
	uint32_t source = session_source(store->session, "cuda", "invented");
	struct err err = { 0 };

	store->session->sources.at[source].has_utc = true;
	busy(store, source, device, 0, SECOND_NS);
	off(store, source, 2 * SECOND_NS, 2 * SECOND_NS + SECOND_NS / 4);
	busy(store, source, device, 9 * SECOND_NS, 99 * (SECOND_NS / 10));
	cr_assert_eq(facts_build(store, &facts, &err), 0, "%s", err.line);
	cr_assert_eq(facts->devices.at[device].system.samples, 100);
	cr_assert_eq(facts->devices.at[device].episodes.count, 1);
}
