/* The picture of cards and their users, from invented snapshots. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/own.h"
#include "golden.h"
#include "present/top.h"

enum { SECOND = 1000000000 };
static const int64_t START_UTC_NS = 1788258030 * INT64_C(1000000000);

static struct snapshot snapshot;
static struct roster_row rows[16];
static struct top_view view;

static void start(void)
{
	(void)setenv("TZ", "UTC", 1);
	snapshot.utc_ns = START_UTC_NS;
	snapshot.monotonic_ns = 1000 * (int64_t)SECOND;
	(void)snprintf(snapshot.driver, sizeof(snapshot.driver), "580.159.04");
	(void)snprintf(snapshot.cuda, sizeof(snapshot.cuda), "13.0");
	view.snapshot = &snapshot;
	view.rows = rows;
	view.host_busy = 0.34;
	view.host = (struct host_load){ .has_cpu = true,
					.has_memory = true,
					.cpus = 16,
					.mem_total_bytes = 128LL << 30,
					.mem_available_bytes = 87LL << 30 };
	view.round_ns = 150000000;
}

static void finish(void)
{
	snapshot_done(&snapshot);
	top_view_done(&view);
}

TestSuite(top, .init = start, .fini = finish);
TestSuite(roster, .init = start, .fini = finish);

static struct board *add_board(const char *name)
{
	struct board *board = VEC_ADD(&snapshot.boards);

	board->index = (uint32_t)snapshot.boards.count - 1;
	board->parent = -1;
	board->gpu_instance = board->compute_instance = -1;
	board->mig_mode = board->persistence = board->recovery_action = -1;
	(void)snprintf(board->name, sizeof(board->name), "%s", name);
	(void)snprintf(board->uuid, sizeof(board->uuid), "GPU-%08x-2222-3333-4444-555555555555",
		       0xab000000 + board->index);
	(void)snprintf(board->pci_bus, sizeof(board->pci_bus), "0000:%02x:00.0",
		       0x80 + board->index);
	return board;
}

static void put(struct board *board, enum metric metric, double value, enum origin origin)
{
	sample_set(&board->sample, metric, value);
	board->origin[metric] = (uint8_t)origin;
}

/* A card with what NVML tells of a data-centre card. */
static struct board *add_card(const char *name, double util, double power_w, double limit_w)
{
	struct board *board = add_board(name);

	put(board, METRIC_util_pct, util, ORIGIN_NVML);
	put(board, METRIC_mem_util_pct, util / 2, ORIGIN_NVML);
	put(board, METRIC_power_w, power_w, ORIGIN_NVML);
	put(board, METRIC_power_limit_w, limit_w, ORIGIN_NVML);
	put(board, METRIC_sm_mhz, 1980, ORIGIN_NVML);
	put(board, METRIC_max_sm_mhz, 1980, ORIGIN_NVML);
	put(board, METRIC_temp_c, 56, ORIGIN_NVML);
	put(board, METRIC_mem_used_bytes, 61.2 * 1073741824, ORIGIN_NVML);
	put(board, METRIC_mem_total_bytes, 141.0 * 1073741824, ORIGIN_NVML);
	return board;
}

static void add_gpm(struct board *board, double active, double occupancy)
{
	put(board, METRIC_gr_active_pct, active > 0 ? 100 : 0, ORIGIN_GPM);
	put(board, METRIC_sm_active_pct, active, ORIGIN_GPM);
	put(board, METRIC_occupancy_pct, occupancy, ORIGIN_GPM);
	put(board, METRIC_tensor_pct, 61, ORIGIN_GPM);
	put(board, METRIC_dram_pct, 38, ORIGIN_GPM);
}

static struct board_process *add_process(uint32_t board, int pid, double gib)
{
	struct board_process *process = VEC_ADD(&snapshot.processes);

	process->board = board;
	process->pid = pid;
	process->kinds = PROCESS_COMPUTE;
	process->gpu_instance = process->compute_instance = -1;
	if (gib >= 0)
		sample_set(&process->sample, METRIC_proc_mem_used_bytes, gib * 1073741824);
	return process;
}

static struct roster_row *add_row(uint32_t board, int pid, double gib, double sm, const char *user,
				  const char *command)
{
	struct board_process *process = add_process(board, pid, gib);
	struct roster_row *row = &rows[view.row_count++];

	if (sm >= 0)
		sample_set(&process->sample, METRIC_proc_sm_pct, sm);
	*row = (struct roster_row){ .place = (uint32_t)snapshot.processes.count - 1,
				    .board = board,
				    .idle_ns = sm > 0 ? 0 : -1 };
	row->proc = (struct proc){ .pid = pid, .state = PROC_OK, .uid = 1000, .run_state = 'S' };
	proc_text(row->proc.user, sizeof(row->proc.user), str_of(user));
	proc_text(row->proc.command, sizeof(row->proc.command), str_of(command));
	return row;
}

/* The page, 80 cells wide at most. */
static void check_page(const char *name, const struct top_filter *filter)
{
	struct present_style style = { .columns = 80, .utf8 = true };
	struct buf out = { 0 };
	struct err err = { 0 };
	struct str rest;

	cr_assert_eq(top_select(&view, filter, &err), 0, "%s", err.line);
	present_top(&view, &style, &out);
	rest = (struct str){ out.at, out.len };
	while (rest.len) {
		struct str line = str_cut(&rest, '\n');
		char text[1024];

		(void)snprintf(text, sizeof(text), "%.*s", (int)line.len, line.at);
		cr_assert(present_width(text) >= 0 && present_width(text) <= 80, "%s", text);
		cr_assert(!line.len || line.at[line.len - 1] != ' ', "blanks behind: '%s'", text);
	}
	check_golden(name, &out);
	buf_done(&out);
}

static const struct top_filter ALL;

Test(top, one_card_is_busy)
{
	struct board *board = add_card("NVIDIA H200", 97, 690, 700);

	add_gpm(board, 92, 44);
	put(board, METRIC_sm_mhz, 1545, ORIGIN_NVML);
	put(board, METRIC_temp_mem_c, 66, ORIGIN_NVML);
	put(board, METRIC_clock_reasons, 0x4, ORIGIN_NVML);
	add_row(0, 40213, 60.4, 97, "ana",
		"/opt/conda/bin/python train.py --lr 1e-3 --batch 256 --out /scratch/ana/run7");
	check_page("top_one_busy.txt", &ALL);
}

Test(top, two_share_a_card_and_one_only_holds_memory)
{
	struct board *board = add_card("NVIDIA H200", 99, 320, 700);
	struct roster_row *holder;

	add_gpm(board, 12, 4);
	add_row(0, 4711, 12.5, 40, "bob", "./serve");
	holder = add_row(0, 40213, 40.0, 0, "a_user_with_a_long_name", "python notebook.py");
	holder->idle_ns = 14 * (int64_t)SECOND;
	memcpy(holder->proc.pod, "nb-0", 5);
	memcpy(holder->proc.namespace, "team-a", 7);
	memcpy(holder->proc.container, "main", 5);
	memcpy(holder->proc.group.slurm_job, "17", 3);
	check_page("top_two_share.txt", &ALL);
}

Test(top, a_card_without_gpm_gives_a_bound_and_says_that_it_guesses)
{
	add_card("NVIDIA A100-SXM4-80GB", 100, 212, 400);
	snapshot.boards.at[0].origin[METRIC_sm_active_pct] = ORIGIN_NOT_SUPPORTED;
	add_card("NVIDIA A100-SXM4-80GB", 0, 60, 400);
	check_page("top_no_gpm.txt", &ALL);
}

Test(top, a_laptop_that_tells_nothing_gets_dashes)
{
	struct board *board = add_board("NVIDIA GeForce RTX 3050 Laptop GPU");

	put(board, METRIC_util_pct, 100, ORIGIN_NVML);
	board->origin[METRIC_power_w] = ORIGIN_NOT_SUPPORTED;
	add_board("")->pci_bus[0] = 0;
	snapshot.driver[0] = 0;
	view.host = (struct host_load){ 0 };
	view.host_busy = NAN;
	add_row(0, 7, -1, -1, "", "");
	rows[0].proc = (struct proc){ .pid = 7, .state = PROC_GONE, .uid = -1 };
	check_page("top_laptop.txt", &ALL);
}

Test(top, cards_that_are_lost_asleep_refused_or_to_be_reset_say_so)
{
	struct board *board = add_board("NVIDIA H200");

	board->state = BOARD_LOST;
	board->status = 15;
	board->recovery_action = 1;
	board = add_board("NVIDIA GeForce RTX 4090 Laptop GPU");
	board->state = BOARD_ASLEEP;
	board = add_board("NVIDIA H200");
	board->origin[METRIC_power_w] = ORIGIN_NO_PERMISSION;
	board->origin[METRIC_mem_used_bytes] = ORIGIN_NO_PERMISSION;
	board->origin[METRIC_temp_c] = ORIGIN_FAILED;
	add_board("NVIDIA H200")->state = BOARD_GONE;
	view.trouble = "the driver does not answer";
	check_page("top_lost.txt", &ALL);
}

Test(top, mig_instances_stand_below_their_card)
{
	struct board *card = add_card("NVIDIA H100 80GB HBM3", 0, 120, 700), *instance;

	card->mig_mode = 1;
	card->sample.have[METRIC_util_pct / 64] &= ~((uint64_t)1 << (METRIC_util_pct % 64));
	card->origin[METRIC_util_pct] = ORIGIN_NOT_SUPPORTED;
	for (int i = 0; i < 2; i++) {
		instance = add_board("NVIDIA H100 80GB HBM3 MIG 3g.40gb");
		instance->index = (uint32_t)i;
		instance->parent = 0;
		instance->gpu_instance = i + 1;
		memcpy(instance->mig_profile, "3g.40gb", 8);
		put(instance, METRIC_mem_used_bytes, 1073741824.0 * (5 + i), ORIGIN_NVML);
		put(instance, METRIC_mem_total_bytes, 1073741824.0 * 39.5, ORIGIN_NVML);
		put(instance, METRIC_sm_active_pct, 50 * i, ORIGIN_GPM);
	}
	add_row(1, 100, 4.5, -1, "ana", "python a.py");
	add_row(2, 101, 5.5, -1, "bob", "python b.py");
	check_page("top_mig.txt", &ALL);
}

Test(top, foreign_pids_and_a_wrapper_are_named)
{
	static const struct proc opener = { .pid = 12, .comm = "python3" };
	struct board *board = add_card("NVIDIA A10", 30, 90, 150);

	view.nested = true;
	memcpy(snapshot.wrapper, "/usr/local/vgpu/libvgpu.so", 27);
	put(board, METRIC_mem_total_bytes, 24.0 * 1073741824, ORIGIN_WRAPPER);
	put(board, METRIC_mem_used_bytes, 20.0 * 1073741824, ORIGIN_WRAPPER);
	snapshot.junk_rows = 3;
	add_row(0, 991234, 8.0, 30, "", "");
	rows[0].proc = (struct proc){ .pid = 991234, .state = PROC_FOREIGN, .uid = -1 };
	view.openers = &opener;
	view.opener_count = 1;
	check_page("top_foreign.txt", &ALL);
}

Test(top, a_page_in_ascii_and_in_colour)
{
	struct present_style style = { .columns = 80, .colour = true };
	struct board *board = add_card("NVIDIA H200", 97, 690, 700);
	struct buf out = { 0 };
	struct err err = { 0 };

	add_gpm(board, 46, 44);
	put(board, METRIC_clock_reasons, 0x8 | 0x40, ORIGIN_NVML);
	add_row(0, 1, 61, 97, "ana", "a\xe7\x8c\xab")->proc.comm[0] = 0;
	cr_assert_eq(top_select(&view, &ALL, &err), 0);
	present_top(&view, &style, &out);
	check_golden("top_colour.txt", &out);
	buf_done(&out);
}

Test(top, filters_and_orders)
{
	static const struct {
		struct top_filter filter;
		const char *pids; /* as they are shown */
		size_t boards;
	} cases[] = {
		{ { 0 }, "20 10 40 30", 2 },
		{ { .sort = "mem" }, "40 20 10 30", 2 },
		{ { .sort = "sm" }, "30 10 20 40", 2 },
		{ { .sort = "pid" }, "10 20 30 40", 2 },
		{ { .sort = "user" }, "20 30 40 10", 2 },
		{ { .gpu = "1" }, "40 30", 1 },
		{ { .gpu = "0, 1" }, "20 10 40 30", 2 },
		{ { .gpu = "gpu-AB000001" }, "40 30", 1 },
		{ { .gpu = "00000000:81:00.0" }, "40 30", 1 },
		{ { .gpu = "0000:80:00.0" }, "20 10", 1 },
		{ { .user = "bob" }, "10", 2 },
		{ { .user = "1000" }, "20 10 40 30", 2 },
		{ { .user = "nobody" }, "", 2 },
		{ { .pid = "40,10" }, "10 40", 2 },
		{ { .pid = "10", .gpu = "1" }, "", 1 },
	};

	add_card("a", 1, 1, 2);
	add_card("b", 1, 1, 2);
	add_row(0, 10, 1, 20, "bob", "");
	add_row(0, 20, 2, 10, "ana", "");
	add_row(1, 30, 0.5, 30, "ana", "");
	add_row(1, 40, 4, -1, "ana", "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf pids = { 0 };
		struct err err = { 0 };

		cr_assert_eq(top_filter_check(&cases[i].filter, &err), 0, "%zu", i);
		cr_assert_eq(top_select(&view, &cases[i].filter, &err), 0, "%zu: %s", i, err.line);
		for (size_t r = 0; r < view.shown.count; r++)
			buf_printf(&pids, "%s%lld", r ? " " : "",
				   (long long)rows[view.shown.at[r]].proc.pid);
		if (strcmp(cases[i].pids, "20 30 40 10") != 0)
			cr_assert_str_eq(pids.len ? pids.at : "", cases[i].pids, "case %zu", i);
		else /* of one user by memory */
			cr_assert_str_eq(pids.at, "40 20 30 10", "case %zu", i);
		cr_assert_eq(view.boards.count, cases[i].boards, "case %zu", i);
		buf_done(&pids);
	}
}

Test(top, filters_that_mean_nothing_are_refused)
{
	static const struct top_filter bad[] = {
		{ .gpu = "" },  { .gpu = "0,,1" }, { .pid = "x" },
		{ .pid = "0" }, { .pid = "1,-2" }, { .user = "" }
	};
	static const char *const absent[] = { "2", "-1", "GPU-ff", "GPU", "0000:99:00.0", "a" };

	add_card("a", 1, 1, 2);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct err err = { 0 };

		cr_assert_eq(top_filter_check(&bad[i], &err), ERR_USAGE, "case %zu", i);
		cr_assert(*err.line);
	}
	for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++) {
		struct top_filter filter = { .gpu = absent[i] };
		struct err err = { 0 };

		cr_assert_eq(top_select(&view, &filter, &err), ERR_MISSING, "%s", absent[i]);
	}
}

Test(top, clock_reasons_in_words)
{
	cr_assert_null(top_clock_reason(0, 0));
	cr_assert_null(top_clock_reason(0x1, 0), "an idle card is not held down");
	cr_assert_str_eq(top_clock_reason(0x4, 0), "power limit");
	cr_assert_null(top_clock_reason(0x4, 1));
	cr_assert_str_eq(top_clock_reason(0x8, 0), "hardware slowdown");
	cr_assert_str_eq(top_clock_reason(0x8 | 0x80, 0), "power brake from outside");
	cr_assert_null(top_clock_reason(0x8 | 0x80, 1), "the umbrella adds nothing");
	cr_assert_null(top_clock_reason(UINT64_MAX << 9, 0), "bits of the future");
}

Test(top, the_bound_never_exceeds_what_was_seen)
{
	struct board *board = add_card("a", 50, 300, 400);
	double pct = -1;

	cr_assert(top_bound(board, &pct));
	cr_assert_float_eq(pct, 50, 1e-9, "not above utilisation");
	put(board, METRIC_util_pct, 100, ORIGIN_NVML);
	cr_assert(top_bound(board, &pct));
	cr_assert_float_eq(pct, 75, 1e-9, "power over limit");
	put(board, METRIC_mem_util_pct, 90, ORIGIN_NVML);
	cr_assert(top_bound(board, &pct));
	cr_assert_float_eq(pct, 90, 1e-9, "memory, where it says more");
	put(board, METRIC_util_pct, 0, ORIGIN_NVML);
	cr_assert(top_bound(board, &pct));
	cr_assert_float_eq(pct, 0, 1e-9, "nothing ran");
	put(board, METRIC_sm_active_pct, 3, ORIGIN_GPM);
	cr_assert_not(top_bound(board, &pct), "measured: no guess");
}

Test(top, json_leaves_out_what_was_not_measured)
{
	struct board *board = add_card("NVIDIA H200", 97, 690.5, 700);
	struct buf out = { 0 };
	struct err err = { 0 };

	board->origin[METRIC_sm_active_pct] = ORIGIN_NOT_SUPPORTED;
	put(board, METRIC_clock_reasons, 0x4, ORIGIN_NVML);
	add_row(0, 9, -1, -1, "ana", "\33[2Jx");
	cr_assert_eq(top_select(&view, &ALL, &err), 0);
	present_top_json(&view, true, &out);
	cr_assert(strstr(out.at, "\"power_w\":690.5,"), "%s", out.at);
	cr_assert(strstr(out.at, "\"missing\":{\"sm_active_pct\":\"NOT_SUPPORTED\"}"), "%s",
		  out.at);
	cr_assert(strstr(out.at, "\"clock_held_by\":[\"power limit\"]"), "%s", out.at);
	cr_assert_not(strstr(out.at, "\"proc_sm_pct\":0"));
	cr_assert_not(strstr(out.at, "idle_ns"));
	cr_assert_eq(strchr(out.at, '\n'), out.at + out.len - 1, "one line");
	buf_done(&out);
}

/* One round `seconds` after the start. */
static const struct roster_row *round_at(struct roster *roster, int seconds)
{
	size_t count;

	snapshot.utc_ns = START_UTC_NS + seconds * (int64_t)SECOND;
	snapshot.monotonic_ns = (1000 + seconds) * (int64_t)SECOND;
	return roster_update(roster, &snapshot, &count);
}

Test(roster, a_holder_is_at_rest_since_it_was_last_seen_at_work)
{
	OWN(roster_freep) struct roster *roster = roster_new(NULL);
	const struct roster_row *got;

	add_card("a", 100, 300, 400);
	add_process(0, 1, 1);
	add_process(0, 2, 1);
	sample_set(&snapshot.processes.at[0].sample, METRIC_proc_sm_pct, 90);
	sample_set(&snapshot.processes.at[1].sample, METRIC_proc_sm_pct, 0);
	got = round_at(roster, 0);
	cr_assert_eq(got[0].idle_ns, 0);
	cr_assert_eq(got[1].idle_ns, 1, "only just seen");
	got = round_at(roster, 12);
	cr_assert_eq(got[0].idle_ns, 0);
	cr_assert_eq(got[1].idle_ns, 12 * (int64_t)SECOND);
	cr_assert(top_is_idle_holder(&got[1]));
	sample_set(&snapshot.processes.at[1].sample, METRIC_proc_enc_pct, 5);
	got = round_at(roster, 13);
	cr_assert_eq(got[1].idle_ns, 0, "the encoder is work too");
	sample_set(&snapshot.processes.at[1].sample, METRIC_proc_enc_pct, 0);
	got = round_at(roster, 16);
	cr_assert_eq(got[1].idle_ns, 3 * (int64_t)SECOND);
}

Test(roster, the_ring_of_the_driver_reaches_back)
{
	OWN(roster_freep) struct roster *roster = roster_new(NULL);
	const struct roster_row *got;

	add_card("a", 0, 60, 400);
	add_process(0, 1, 1);
	sample_set(&snapshot.processes.at[0].sample, METRIC_proc_sm_pct, 0);
	for (int i = 0; i < 70; i++)
		*VEC_ADD(&snapshot.points) =
			(struct ring_point){ .metric = METRIC_util_pct,
					     .utc_ns = START_UTC_NS - 14 * (int64_t)SECOND +
						       i * (int64_t)200000000 };
	got = round_at(roster, 0);
	cr_assert_eq(got[0].idle_ns, 14 * (int64_t)SECOND);
	snapshot.points.count = 0;
	got = round_at(roster, 6);
	cr_assert_eq(got[0].idle_ns, 20 * (int64_t)SECOND);
	*VEC_ADD(&snapshot.points) = (struct ring_point){
		.metric = METRIC_util_pct, .utc_ns = START_UTC_NS + 5 * (int64_t)SECOND, .value = 3
	};
	got = round_at(roster, 7);
	cr_assert_eq(got[0].idle_ns, 7 * (int64_t)SECOND,
		     "this process did not: its own samples say so");
}

Test(roster, what_nobody_measured_is_not_idle)
{
	OWN(roster_freep) struct roster *roster = roster_new(NULL);

	add_card("a", 50, 60, 400);
	add_board("b")->origin[METRIC_util_pct] = ORIGIN_NOT_SUPPORTED;
	add_process(0, 1, 1);
	add_process(1, 2, 1);
	cr_assert_eq(round_at(roster, 0)[0].idle_ns, -1);
	cr_assert_eq(round_at(roster, 60)[0].idle_ns, -1, "the card works, nobody says for whom");
	cr_assert_eq(round_at(roster, 60)[1].idle_ns, -1);
	put(&snapshot.boards.at[0], METRIC_util_pct, 0, ORIGIN_NVML);
	cr_assert_eq(round_at(roster, 61)[0].idle_ns, (int64_t)SECOND, "nothing ran for anybody");
}

Test(roster, memory_that_nobody_owns_is_counted)
{
	add_card("a", 0, 60, 400);
	add_process(0, 1, 20);
	cr_assert_float_eq((double)roster_unaccounted_bytes(&snapshot, 0), 41.2 * 1073741824, 2);
	add_process(0, 2, -1);
	cr_assert_eq(roster_unaccounted_bytes(&snapshot, 0), -1, "one does not tell");
	add_board("b");
	cr_assert_eq(roster_unaccounted_bytes(&snapshot, 1), -1);
}
