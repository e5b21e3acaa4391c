/* System samples: statistics, episodes, character, growth, sharing. */
#include <criterion/criterion.h>

#include <math.h>

#include "analyze/system.h"
#include "memory_store.h"
#include "random.h"

struct bench {
	struct store *store;
	uint32_t source;
	uint32_t device;
	uint32_t board;
	int64_t now_ns;
};

static void bench_source(struct bench *bench, const char *file)
{
	struct session *session = bench->store->session;
	struct lane lane = { .kind = LANE_BOARD, .process = SESSION_NONE, .context = -1 };

	bench->source = session_source(session, "smi_dmon", file);
	session->sources.at[bench->source].interval_ns = 1000000000;
	session->sources.at[bench->source].interval_assumed = true;
	bench->device = session_device(
		session, &(struct device){ .scope = DEVICE_OF_SMI, .source = bench->source });
	lane.source = bench->source;
	lane.device = bench->device;
	lane.stream = -1;
	lane.tid = -1;
	bench->board = session_lane(session, &lane);
	bench->now_ns = 0;
}

static struct bench bench_new(void)
{
	struct bench bench = { .store = memory_store_new() };

	bench_source(&bench, "samples.txt");
	return bench;
}

#define VALUES(...)             \
	(const double[])        \
	{                       \
		__VA_ARGS__, -1 \
	}

/* One second of the board: pairs of metric and value, ended by -1. */
static void second(struct bench *bench, const double *pairs)
{
	struct sample sample = { .lane = bench->board, .time_ns = bench->now_ns };

	for (; pairs[0] >= 0; pairs += 2)
		sample_set(&sample, (enum metric)pairs[0], pairs[1]);
	cr_assert_eq(sink_sample(&bench->store->sink, &sample, NULL), 0);
	bench->now_ns += 1000000000;
}

static void used(struct bench *bench, int64_t pid, double sm_pct, int64_t time_ns, const char *type)
{
	struct session *session = bench->store->session;
	struct lane lane = { .kind = LANE_PROCESS, .source = bench->source };
	struct sample sample = { .time_ns = time_ns };

	lane.device = bench->device;
	lane.process = session_process(session, bench->source, pid);
	session->processes.at[lane.process].type = session_string(session, type, strlen(type));
	sample.lane = session_lane(session, &lane);
	if (sm_pct >= 0)
		sample_set(&sample, METRIC_proc_sm_pct, sm_pct);
	cr_assert_eq(sink_sample(&bench->store->sink, &sample, NULL), 0);
}

static struct facts *facts_of(struct bench *bench)
{
	struct facts *facts = NULL;
	struct err err = { 0 };

	cr_assert_eq(facts_build(bench->store, &facts, &err), 0, "%s", err.line);
	return facts;
}

static void done(struct bench *bench, struct facts *facts)
{
	facts_free(facts);
	store_close(bench->store);
}

Test(system, statistics_leave_out_what_was_not_measured)
{
	double values[] = { NAN, 4, 1, NAN, 3, 2, NAN };
	struct metric_stats stats;

	stats_of(values, 7, &stats);
	cr_assert_eq(stats.count, 4);
	cr_assert_eq(stats.min, 1);
	cr_assert_eq(stats.max, 4);
	cr_assert_eq(stats.mean, 2.5);
	cr_assert_eq(stats.median, 2.5);
	cr_assert_eq(stats.p95, 4);
	cr_assert_eq(stats.last, 2);
	stats_of(values, 0, &stats);
	cr_assert_eq(stats.count, 0);
}

static void power_second(struct bench *bench, double violation_pct, double mhz, double watts)
{
	second(bench, VALUES(METRIC_power_violation_pct, violation_pct, METRIC_sm_mhz, mhz,
			     METRIC_power_w, watts, METRIC_util_pct, 100, METRIC_temp_c, 50));
}

Test(system, a_power_wall_is_told_by_samples_depth_and_reason)
{
	struct bench bench = bench_new();
	struct facts *facts;
	const struct episode *episode;

	for (int i = 0; i < 5; i++)
		power_second(&bench, 0, 1900, 400);
	for (int i = 0; i < 4; i++)
		power_second(&bench, 100, 1500 + i, 690);
	power_second(&bench, 0, 1900, 400);
	facts = facts_of(&bench);
	cr_assert_eq(facts->devices.at[0].episodes.count, 1);
	episode = &facts->devices.at[0].episodes.at[0];
	cr_assert_str_eq(episode->reason, "power");
	cr_assert_eq(episode->first_sample, 5);
	cr_assert_eq(episode->last_sample, 8);
	cr_assert_eq(episode->start_ns, 5000000000);
	cr_assert_eq(episode->end_ns, 9000000000);
	cr_assert_eq(episode->mhz_before, 1900);
	cr_assert_eq(episode->mhz_lost, 1900 - 1501.5);
	cr_assert_eq(episode->power_w, 690);
	cr_assert_not(episode->by_plateau);
	done(&bench, facts);
}

Test(system, a_violation_shorter_than_a_tenth_is_none)
{
	struct bench bench = bench_new();
	struct facts *facts;

	power_second(&bench, 0, 1900, 400);
	power_second(&bench, 9, 1500, 690);
	power_second(&bench, 0, 1900, 400);
	power_second(&bench, 0, 1900, 400);
	power_second(&bench, 11, 1500, 690);
	facts = facts_of(&bench);
	cr_assert_eq(facts->devices.at[0].episodes.count, 1);
	cr_assert_eq(facts->devices.at[0].episodes.at[0].first_sample, 4);
	done(&bench, facts);
}

Test(system, one_sample_without_the_reason_does_not_end_an_episode_two_do)
{
	struct bench bench = bench_new();
	static const int violation[] = { 100, 0, 100, 0, 0, 100 };
	struct facts *facts;

	for (size_t i = 0; i < 6; i++)
		power_second(&bench, violation[i], 1500, 690);
	facts = facts_of(&bench);
	cr_assert_eq(facts->devices.at[0].episodes.count, 2);
	cr_assert_eq(facts->devices.at[0].episodes.at[0].last_sample, 2);
	cr_assert_eq(facts->devices.at[0].episodes.at[1].first_sample, 5);
	/* Nothing was seen above the clock in it: its depth is unknown. */
	cr_assert(isnan(facts->devices.at[0].episodes.at[0].mhz_lost));
	done(&bench, facts);
}

Test(system, the_limit_in_another_file_explains_power_without_violations)
{
	for (int with_limit = 0; with_limit < 2; with_limit++) {
		struct bench bench = bench_new();
		struct facts *facts;

		for (int i = 0; i < 6; i++)
			second(&bench,
			       VALUES(METRIC_clock_reasons, 0, METRIC_power_w, i < 3 ? 300 : 485,
				      METRIC_sm_mhz, i < 3 ? 1900 : 1600));
		if (with_limit) {
			bench_source(&bench, "limits.txt");
			second(&bench, VALUES(METRIC_power_limit_w, 500, METRIC_power_w, 80));
		}
		facts = facts_of(&bench);
		cr_assert_eq(facts->devices.count, 1);
		cr_assert_eq(facts->devices.at[0].system.samples, 6);
		cr_assert_eq(facts->devices.at[0].episodes.count, with_limit ? 1 : 0);
		if (with_limit)
			cr_assert_eq(facts->devices.at[0].system.metric[METRIC_power_limit_w].last,
				     500);
		done(&bench, facts);
	}
}

Test(system, clock_event_bits_name_their_reason)
{
	static const struct {
		int bits;
		const char *reason;
	} cases[] = {
		{ 0x4, "power" },        { 0x20, "thermal" },    { 0x40, "thermal" },
		{ 0x80, "power_brake" }, { 0x10, "sync_boost" }, { 0x8, "unknown" },
		{ 0x88, "power_brake" }, { 0x44, "thermal" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench bench = bench_new();
		struct facts *facts;

		second(&bench, VALUES(METRIC_clock_reasons, cases[i].bits, METRIC_sm_mhz, 900));
		facts = facts_of(&bench);
		cr_assert_eq(facts->devices.at[0].episodes.count, 1);
		cr_assert_str_eq(facts->devices.at[0].episodes.at[0].reason, cases[i].reason);
		done(&bench, facts);
	}
	/* Idle, application clocks and display clocks hold nothing back. */
	for (int bits = 0; bits < 3; bits++) {
		struct bench bench = bench_new();
		struct facts *facts;

		second(&bench, VALUES(METRIC_clock_reasons, bits == 2 ? 0x100 : bits + 1,
				      METRIC_sm_mhz, 900));
		facts = facts_of(&bench);
		cr_assert_eq(facts->devices.at[0].episodes.count, 0);
		done(&bench, facts);
	}
}

Test(system, counters_of_limited_time_tell_the_stretch_between_two_samples)
{
	struct bench bench = bench_new();
	static const double total_us[] = { 0, 0, 50000, 250000, 900000, 900000, 0 };
	struct facts *facts;

	for (size_t i = 0; i < 7; i++)
		second(&bench, VALUES(METRIC_reason_power_cap_us, total_us[i], METRIC_sm_mhz, 1500,
				      METRIC_max_sm_mhz, 2000));
	facts = facts_of(&bench);
	cr_assert_eq(facts->devices.at[0].episodes.count, 1);
	cr_assert_eq(facts->devices.at[0].episodes.at[0].first_sample, 3);
	cr_assert_eq(facts->devices.at[0].episodes.at[0].last_sample, 4);
	done(&bench, facts);
}

Test(system, a_clock_that_falls_under_load_is_told_only_where_no_limit_is_reported)
{
	for (int reported = 0; reported < 2; reported++) {
		struct bench bench = bench_new();
		struct facts *facts;

		for (int i = 0; i < 8; i++) {
			struct sample sample = { .lane = bench.board, .time_ns = bench.now_ns };

			bench.now_ns += 1000000000;
			sample_set(&sample, METRIC_util_pct, 100);
			sample_set(&sample, METRIC_sm_mhz, i < 4 ? 1900 : 1600);
			sample_set(&sample, METRIC_power_w, i < 4 ? 300 : 450);
			if (reported)
				sample_set(&sample, METRIC_power_violation_pct, 0);
			cr_assert_eq(sink_sample(&bench.store->sink, &sample, NULL), 0);
		}
		facts = facts_of(&bench);
		cr_assert_eq(facts->devices.at[0].episodes.count, reported ? 0 : 1);
		if (!reported) {
			cr_assert(facts->devices.at[0].episodes.at[0].by_plateau);
			cr_assert_str_eq(facts->devices.at[0].episodes.at[0].reason, "power");
		}
		done(&bench, facts);
	}
}

Test(system, without_utilisation_the_highest_power_is_the_sign_of_load)
{
	static const double watts[] = { 80, 300, 450, 451, 449, 80 };
	static const double mhz[] = { 345, 1900, 1600, 1600, 1600, 345 };
	struct bench bench = bench_new();
	struct facts *facts;

	for (size_t i = 0; i < 6; i++)
		second(&bench, VALUES(METRIC_power_w, watts[i], METRIC_sm_mhz, mhz[i]));
	facts = facts_of(&bench);
	cr_assert_eq(facts->devices.at[0].episodes.count, 1);
	cr_assert_eq(facts->devices.at[0].episodes.at[0].first_sample, 2);
	cr_assert_eq(facts->devices.at[0].episodes.at[0].last_sample, 4);
	done(&bench, facts);
}

/* The plain reading of the definition: runs of samples with a violation, those
 * with one sample between them joined. */
Test(system, episodes_agree_with_a_plain_search)
{
	for (random_state = 1; random_state < 400;) {
		uint64_t seed = random_state;
		struct bench bench = bench_new();
		struct facts *facts;
		bool limited[60];
		size_t expected = 0, seen = 0;

		random_state *= 77777;
		for (size_t i = 0; i < 60; i++) {
			limited[i] = random_unit() < 0.4;
			power_second(&bench, limited[i] ? 100 : 0, 1500, 600);
		}
		facts = facts_of(&bench);
		for (size_t i = 0; i < 60; i++)
			if (limited[i] && (i < 1 || !limited[i - 1]) && (i < 2 || !limited[i - 2]))
				expected++;
		cr_assert_eq(facts->devices.at[0].episodes.count, expected, "seed %d", (int)seed);
		for (size_t i = 0; i < expected; i++) {
			const struct episode *at = &facts->devices.at[0].episodes.at[i];

			cr_assert(limited[at->first_sample] && limited[at->last_sample]);
			for (int64_t k = at->first_sample; k <= at->last_sample; k++)
				seen += limited[k];
		}
		for (size_t i = 0; i < 60; i++)
			seen -= limited[i];
		cr_assert_eq(seen, 0);
		done(&bench, facts);
		random_state = seed + 13;
	}
}

static enum job_character character_of(const double *util, size_t count, size_t *period)
{
	return system_character(util, count, period);
}

Test(system, the_period_of_a_square_wave_is_found_under_noise)
{
	random_state = 5;
	for (size_t period = 4; period <= 40; period += 3) {
		double util[240];
		size_t found;

		for (size_t i = 0; i < 240; i++)
			util[i] = (i % period < period / 2 ? 90 : 20) + 10 * random_unit();
		cr_assert_eq(character_of(util, 240, &found), CHARACTER_PERIODIC);
		cr_assert_leq(found > period ? found - period : period - found, 1, "%zu for %zu",
			      found, period);
	}
}

Test(system, noise_has_no_period)
{
	random_state = 9;
	for (int round = 0; round < 30; round++) {
		double util[200];
		size_t found;

		for (size_t i = 0; i < 200; i++)
			util[i] = random_unit() < 0.5 ? 95 : 5;
		cr_assert_eq(character_of(util, 200, &found), CHARACTER_BURSTY);
		cr_assert_eq(found, 0);
	}
}

Test(system, steady_and_idle_jobs_are_called_so_and_few_samples_nothing)
{
	double util[100];
	size_t found;

	for (size_t i = 0; i < 100; i++)
		util[i] = i < 20 || i >= 90 ? 0 : 85 + (double)(i % 3);
	cr_assert_eq(character_of(util, 100, &found), CHARACTER_STEADY);
	cr_assert_eq(character_of(&util[20], 9, &found), CHARACTER_UNKNOWN);
	for (size_t i = 0; i < 100; i++)
		util[i] = 9;
	cr_assert_eq(character_of(util, 100, &found), CHARACTER_IDLE);
}

static double growth_of(const double *used_bytes, size_t count)
{
	OWN(own_freep) int64_t *time_ns = mem_alloc(count * sizeof(*time_ns));
	double bytes_s, bytes;

	for (size_t i = 0; i < count; i++)
		time_ns[i] = (int64_t)i * 1000000000;
	memory_growth(time_ns, used_bytes, count, &bytes_s, &bytes);
	cr_assert_eq(isnan(bytes), isnan(bytes_s));
	return bytes_s;
}

static const double MIB = 1024.0 * 1024;

Test(system, a_leak_is_measured_through_outliers)
{
	double used_bytes[300];

	random_state = 3;
	for (size_t i = 0; i < 300; i++)
		used_bytes[i] = 4000 * MIB + 2 * MIB * (double)i + 20 * MIB * random_unit() +
				(i % 50 == 7 ? 900 * MIB : 0);
	cr_assert_float_eq(growth_of(used_bytes, 300), 2 * MIB, 0.2 * MIB);
}

Test(system, a_start_a_plateau_and_small_growth_are_no_leak)
{
	double used_bytes[300];

	for (size_t i = 0; i < 300; i++)
		used_bytes[i] = i < 100 ? 60 * MIB * (double)i : 6000 * MIB;
	cr_assert(isnan(growth_of(used_bytes, 300)));
	for (size_t i = 0; i < 300; i++)
		used_bytes[i] = 100 * MIB + 0.2 * MIB * (double)i;
	cr_assert(isnan(growth_of(used_bytes, 300)), "under 64 MiB in all");
	for (size_t i = 0; i < 300; i++)
		used_bytes[i] = 20000 * MIB + 1 * MIB * (double)i;
	cr_assert(isnan(growth_of(used_bytes, 300)), "under 2 %% of what is in use");
	for (size_t i = 0; i < 300; i++)
		used_bytes[i] = 5000 * MIB + 5 * MIB * (double)i;
	cr_assert(isnan(growth_of(used_bytes, 19)), "too few samples");
	cr_assert_not(isnan(growth_of(used_bytes, 300)));
}

Test(system, a_job_that_ends_does_not_hide_the_growth_of_the_next)
{
	double used_bytes[200];

	for (size_t i = 0; i < 200; i++)
		used_bytes[i] = i < 40 ? 9000 * MIB : 1000 * MIB + 10 * MIB * (double)i;
	cr_assert_float_eq(growth_of(used_bytes, 200), 10 * MIB, MIB);
}

Test(system, two_compute_processes_in_one_round_share_the_card)
{
	struct bench bench = bench_new();
	struct facts *facts;

	used(&bench, 11, 60, 0, "C");
	used(&bench, 12, 40, 0, "C");
	used(&bench, 11, 98, 1000000000, "C");
	used(&bench, 12, 4, 1000000000, "C");
	used(&bench, 11, 97, 2000000000, "C");
	used(&bench, 13, 50, 2000000000, "G");
	used(&bench, 14, -1, 2000000000, "C");
	facts = facts_of(&bench);
	cr_assert_eq(facts->devices.at[0].process_rounds, 3);
	cr_assert_eq(facts->devices.at[0].shared_rounds, 1);
	cr_assert_eq(facts->processes.count, 4);
	cr_assert_eq(facts->processes.at[0].shared_rounds, 1);
	cr_assert_eq(facts->processes.at[0].solo_rounds, 2);
	cr_assert_eq(facts->processes.at[0].sm_pct_shared, 60);
	cr_assert_eq(facts->processes.at[0].sm_pct_solo, 97.5);
	cr_assert(isnan(facts->processes.at[3].sm_pct_mean));
	done(&bench, facts);
}

Test(system, hostile_times_and_values_harm_nobody)
{
	struct bench bench = bench_new();
	static const int64_t times[] = { INT64_MIN, 0, 5, -7, INT64_MAX, INT64_MAX };
	static const double values[] = { 1e308, -1e308, INFINITY, NAN, 1e19, -3 };
	struct facts *facts;

	bench.store->session->sources.at[0].interval_ns = INT64_MAX;
	for (size_t i = 0; i < 60; i++) {
		struct sample sample = { .lane = bench.board, .time_ns = times[i % 6] };

		for (int m = 0; m < METRIC_COUNT; m++)
			sample_set(&sample, (enum metric)m, values[(i + (size_t)m) % 6]);
		cr_assert_eq(sink_sample(&bench.store->sink, &sample, NULL), 0);
		used(&bench, (int64_t)(i % 3), values[i % 6], times[i % 6], "C");
	}
	facts = facts_of(&bench);
	cr_assert_eq(facts->devices.at[0].system.samples, 60);
	done(&bench, facts);
}

/* --- the throttle ledger --- */

/* A second in which the power cap's counter moved by `cap_us`. */
static void capped(struct bench *bench, double *total_us, double cap_us, double mhz)
{
	*total_us += cap_us;
	second(bench, VALUES(METRIC_reason_power_cap_us, *total_us, METRIC_sm_mhz, mhz));
}

Test(system, the_ledger_has_seconds_and_lost_clock_by_reason)
{
	struct bench bench = bench_new();
	struct facts *facts;
	const struct ledger *ledger;
	double total_us = 1e9;

	for (int i = 0; i < 10; i++)
		capped(&bench, &total_us, 0, 2000);
	for (int i = 0; i < 10; i++)
		capped(&bench, &total_us, 1e6, 1500);
	facts = facts_of(&bench);
	ledger = &facts->devices.at[0].system.ledger;
	cr_assert_eq(ledger->row[LIMIT_POWER].means, LEDGER_COUNTER);
	cr_assert_eq(ledger->row[LIMIT_POWER].ns, 10000000000);
	cr_assert_eq(ledger->observed_ns, 19000000000);
	cr_assert_eq(ledger->reference_mhz, 2000);
	/* The first limited second has 1750 MHz, the nine others 1500. */
	cr_assert_eq(ledger->row[LIMIT_POWER].lost_ns, 125000000 + 9 * 250000000LL);
	cr_assert_float_eq(ledger->row[LIMIT_POWER].mhz_lost, 475, 1e-6);
	cr_assert_eq(ledger->row[LIMIT_HW_THERMAL].means, LEDGER_UNKNOWN);
	done(&bench, facts);
}

Test(system, a_ledger_counts_through_a_gap_without_guessing_the_clock)
{
	struct bench bench = bench_new();
	struct facts *facts;
	const struct ledger_row *row;
	double total_us = 0;

	for (int i = 0; i < 10; i++)
		capped(&bench, &total_us, 0, 2000);
	bench.now_ns += 60 * 1000000000LL;
	capped(&bench, &total_us, 30e6, 1500);
	facts = facts_of(&bench);
	row = &facts->devices.at[0].system.ledger.row[LIMIT_POWER];
	cr_assert_eq(row->ns, 30000000000);
	cr_assert_eq(row->clocked_ns, 0);
	cr_assert_eq(row->lost_ns, 0);
	cr_assert(isnan(row->mhz_lost));
	done(&bench, facts);
}

Test(system, a_counter_that_began_again_counts_from_there)
{
	struct bench bench = bench_new();
	struct facts *facts;
	double total_us = 5e6;

	capped(&bench, &total_us, 0, 2000);
	capped(&bench, &total_us, 500000, 2000);
	total_us = 0;
	capped(&bench, &total_us, 200000, 2000);
	capped(&bench, &total_us, 0, 2000);
	facts = facts_of(&bench);
	cr_assert_eq(facts->devices.at[0].system.ledger.row[LIMIT_POWER].ns, 700000000);
	cr_assert_eq(facts->devices.at[0].system.ledger.resets, 1);
	done(&bench, facts);
}

Test(system, a_ledger_says_by_what_means)
{
	struct bench bench = bench_new();
	struct facts *facts;
	const struct ledger *ledger;

	for (int i = 0; i < 5; i++)
		second(&bench, VALUES(METRIC_power_violation_pct, 40, METRIC_clock_reasons, 0x40));
	facts = facts_of(&bench);
	ledger = &facts->devices.at[0].system.ledger;
	cr_assert_eq(ledger->row[LIMIT_POWER].means, LEDGER_SHARE);
	cr_assert_eq(ledger->row[LIMIT_POWER].ns, 1600000000);
	cr_assert_eq(ledger->row[LIMIT_HW_THERMAL].means, LEDGER_SAMPLED);
	cr_assert_eq(ledger->row[LIMIT_HW_THERMAL].ns, 4000000000);
	cr_assert_eq(ledger->row[LIMIT_SW_THERMAL].means, LEDGER_SAMPLED);
	cr_assert_eq(ledger->row[LIMIT_SW_THERMAL].ns, 0);
	done(&bench, facts);
}

Test(system, counters_that_are_read_seldom_count_the_whole_time_between)
{
	struct bench bench = bench_new();
	struct facts *facts;
	const struct ledger *ledger;

	/* Ten samples a reading; in the third stretch the cap held for a fifth. */
	for (int i = 0; i <= 50; i++) {
		double total_us = i < 30 ? 1e6 : 3e6;

		if (i % 10)
			second(&bench, VALUES(METRIC_sm_mhz, i > 20 && i <= 30 ? 1500 : 2000,
					      METRIC_clock_reasons, 0));
		else
			second(&bench,
			       VALUES(METRIC_reason_power_cap_us, total_us, METRIC_sm_mhz,
				      i > 20 && i <= 30 ? 1500 : 2000, METRIC_clock_reasons, 0));
	}
	facts = facts_of(&bench);
	ledger = &facts->devices.at[0].system.ledger;
	cr_assert_eq(ledger->row[LIMIT_POWER].means, LEDGER_COUNTER);
	cr_assert_eq(ledger->row[LIMIT_POWER].ns, 2000000000);
	cr_assert_eq(ledger->observed_ns, 50000000000);
	/* 9.5 of 10 seconds at a quarter below. */
	cr_assert_float_eq((double)ledger->row[LIMIT_POWER].lost_ns, 2e9 * 0.25 * 0.95, 10);
	cr_assert_eq(facts->devices.at[0].episodes.count, 1);
	cr_assert_eq(facts->devices.at[0].episodes.at[0].first_sample, 21);
	cr_assert_eq(facts->devices.at[0].episodes.at[0].last_sample, 30);
	done(&bench, facts);
}

/* The definition, on counters in whole microseconds: limits of random length in
 * milliseconds of random clock, one by one. */
Test(system, ledgers_agree_with_a_count_of_milliseconds)
{
	static const enum metric counter[2] = { METRIC_reason_power_cap_us,
						METRIC_reason_sw_thermal_us };

	random_state = 3;
	for (int round = 0; round < 40; round++) {
		struct bench bench = bench_new();
		struct facts *facts;
		const struct ledger *ledger;
		double total_us[2] = { 0 }, limited_ms[40][2] = { { 0 } }, mhz[40];
		double expected_ns[2] = { 0 }, expected_lost[2] = { 0 };

		for (int i = 0; i < 40; i++) {
			struct sample sample = { .lane = bench.board, .time_ns = bench.now_ns };

			mhz[i] = i ? 1000 + floor(900 * random_unit()) : 2000;
			for (int k = 0; k < 2; k++) {
				limited_ms[i][k] =
					random_unit() < 0.5 ? 0 : floor(1000 * random_unit());
				total_us[k] += i ? 1000 * limited_ms[i][k] : 0;
				sample_set(&sample, counter[k], total_us[k]);
			}
			sample_set(&sample, METRIC_sm_mhz, mhz[i]);
			cr_assert_eq(sink_sample(&bench.store->sink, &sample, NULL), 0);
			bench.now_ns += 1000000000;
		}
		for (int i = 1; i < 40; i++) {
			double both = limited_ms[i][0] + limited_ms[i][1];
			double lost = 1 - (mhz[i - 1] + mhz[i]) / 2 / 2000;

			for (int k = 0; k < 2; k++) {
				expected_ns[k] += 1e6 * limited_ms[i][k];
				expected_lost[k] += 1e6 * limited_ms[i][k] * lost *
						    (both > 1000 ? 1000 / both : 1);
			}
		}
		facts = facts_of(&bench);
		ledger = &facts->devices.at[0].system.ledger;
		for (int k = 0; k < 2; k++) {
			const struct ledger_row *row =
				&ledger->row[k ? LIMIT_SW_THERMAL : LIMIT_POWER];

			cr_assert_float_eq((double)row->ns, expected_ns[k], 100);
			cr_assert_float_eq((double)row->lost_ns, expected_lost[k], 100);
		}
		done(&bench, facts);
	}
}

/* --- processes over time --- */

Test(system, shares_of_processes_agree_with_a_plain_sum)
{
	random_state = 11;
	for (int round = 0; round < 20; round++) {
		struct bench bench = bench_new();
		struct facts *facts;
		double sum[3] = { 0 }, slot[3][PROCESS_SLOTS] = { { 0 } }, all = 0;
		int count[3][PROCESS_SLOTS] = { { 0 } };

		for (int i = 0; i < 120; i++) {
			for (int64_t pid = 0; pid < 3; pid++) {
				double pct = floor(100 * random_unit());

				/* The third comes late. */
				if (pid == 2 && i < 60)
					continue;
				used(&bench, pid + 1, pct, i * 1000000000LL, "C");
				sum[pid] += pct;
				slot[pid][i * PROCESS_SLOTS / 120] += pct;
				count[pid][i * PROCESS_SLOTS / 120]++;
			}
			second(&bench, VALUES(METRIC_power_w, 300));
		}
		facts = facts_of(&bench);
		for (int i = 0; i < 3; i++)
			all += sum[i];
		cr_assert_eq(facts->processes.count, 3);
		for (int i = 0; i < 3; i++) {
			const struct process_fact *fact = &facts->processes.at[i];

			cr_assert_float_eq((double)fact->sm_ns, sum[i] * 1e7, 10);
			cr_assert_float_eq(fact->sm_share, sum[i] / all, 1e-6);
			for (int k = 0; k < PROCESS_SLOTS; k++) {
				cr_assert_eq(isnan(fact->slot_pct[k]), !count[i][k]);
				if (count[i][k])
					cr_assert_float_eq(fact->slot_pct[k],
							   slot[i][k] / count[i][k], 1e-6);
			}
			cr_assert_eq(fact->first_ns, i == 2 ? 60000000000 : 0);
			cr_assert_eq(fact->last_ns, 119000000000);
		}
		done(&bench, facts);
	}
}

Test(system, processes_that_are_asked_seldom_have_no_gaps)
{
	struct bench bench = bench_new();
	struct facts *facts;

	for (int i = 0; i < 60; i++) {
		if (i % 20 == 0)
			used(&bench, 1, 50 + i, i * 1000000000LL, "C");
		second(&bench, VALUES(METRIC_power_w, 300));
	}
	facts = facts_of(&bench);
	cr_assert_eq(facts->processes.count, 1);
	/* Each sample stands for the 20 seconds before; after the last is nothing. */
	for (int k = 0; k < PROCESS_SLOTS; k++) {
		double wanted = k == 0 ? 50 : k <= 20 * PROCESS_SLOTS / 60 ? 70 : 90;

		if (k > 40 * PROCESS_SLOTS / 60)
			cr_assert(isnan(facts->processes.at[0].slot_pct[k]), "%d", k);
		else
			cr_assert_eq(facts->processes.at[0].slot_pct[k], wanted, "%d: %g", k,
				     facts->processes.at[0].slot_pct[k]);
	}
	done(&bench, facts);
}

/* --- twins --- */

/* `count` cards under load at these clocks, 20 samples each. */
static struct facts *twins_of(struct bench *bench, const double *mhz, size_t count,
			      const char *odd_name)
{
	struct session *session;

	*bench = (struct bench){ .store = memory_store_new() };
	session = bench->store->session;
	bench->source = session_source(session, "nvml", "this machine");
	for (size_t i = 0; i < count; i++) {
		struct device device = { .scope = DEVICE_OF_SMI,
					 .source = bench->source,
					 .ordinal = (int64_t)i };
		const char *name = odd_name && i == 0 ? odd_name : "NVIDIA H200";
		struct lane lane = { .kind = LANE_BOARD,
				     .source = bench->source,
				     .process = SESSION_NONE,
				     .context = -1,
				     .stream = -1,
				     .tid = -1 };

		device.name = session_string(session, name, strlen(name));
		lane.device = session_device(session, &device);
		bench->board = session_lane(session, &lane);
		bench->now_ns = 0;
		for (int k = 0; k < 20; k++)
			second(bench, VALUES(METRIC_util_pct, 99, METRIC_sm_mhz,
					     mhz[i] + k % 3 * 15, METRIC_power_w, 600));
	}
	return facts_of(bench);
}

Test(system, one_of_eight_cards_that_is_slow_is_named)
{
	static const double mhz[] = { 1965, 1980, 1965, 1410, 1950, 1965, 1980, 1965 };
	struct bench bench;
	struct facts *facts = twins_of(&bench, mhz, 8, NULL);

	cr_assert_eq(facts->twins.count, 1);
	cr_assert_eq(facts->twins.at[0].device, 3);
	cr_assert_eq(facts->twins.at[0].metric, METRIC_sm_mhz);
	cr_assert(facts->twins.at[0].under_load);
	cr_assert_eq(facts->twins.at[0].value, 1425);
	cr_assert_eq(facts->twins.at[0].median, 1980);
	cr_assert_eq(facts->twins.at[0].twins, 8);
	done(&bench, facts);
}

Test(system, twins_that_scatter_or_are_too_few_or_of_another_name_name_nobody)
{
	static const double scatter[] = { 1965, 1700, 1550, 1410, 1800, 1900, 1500, 1620 };
	static const double two[] = { 1965, 1410 };
	static const double close[] = { 1965, 1965, 1965, 1965, 1950 };
	static const double odd[] = { 1410, 1965, 1965, 1965 };
	struct bench bench;
	struct facts *facts = twins_of(&bench, scatter, 8, NULL);

	cr_assert_eq(facts->twins.count, 0);
	done(&bench, facts);
	facts = twins_of(&bench, two, 2, NULL);
	cr_assert_eq(facts->twins.count, 0);
	done(&bench, facts);
	facts = twins_of(&bench, close, 5, NULL);
	cr_assert_eq(facts->twins.count, 0);
	done(&bench, facts);
	facts = twins_of(&bench, odd, 4, "NVIDIA L4");
	cr_assert_eq(facts->twins.count, 0);
	done(&bench, facts);
}
