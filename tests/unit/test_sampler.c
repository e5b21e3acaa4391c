#include <criterion/criterion.h>

#include "base/mem.h"
#include "collect/sampler.h"
#include "sink_record.h"

static struct board *add_board(struct snapshot *snapshot, const char *uuid, double watts)
{
	struct board *board = VEC_ADD(&snapshot->boards);

	board->index = (uint32_t)snapshot->boards.count - 1;
	board->parent = -1;
	(void)snprintf(board->uuid, sizeof(board->uuid), "%s", uuid);
	(void)snprintf(board->name, sizeof(board->name), "NVIDIA H200");
	(void)snprintf(board->pci_bus, sizeof(board->pci_bus), "0000:8%u:00.0", board->index);
	sample_set(&board->sample, METRIC_power_w, watts);
	board->origin[METRIC_power_w] = ORIGIN_NVML;
	board->origin[METRIC_fan_pct] = ORIGIN_NOT_SUPPORTED;
	return board;
}

struct bench {
	struct record *record;
	struct sampler *sampler;
	struct snapshot snapshot;
};

static void set_up(struct bench *bench)
{
	bench->record = record_new();
	bench->sampler = sampler_new(&bench->record->sink, 5000000000);
	bench->snapshot.utc_ns = 1700000000000000000;
	(void)snprintf(bench->snapshot.driver, sizeof(bench->snapshot.driver), "580.159.04");
}

static void push(struct bench *bench)
{
	struct err err = { 0 };

	cr_assert_eq(sampler_push(bench->sampler, &bench->snapshot, &err), 0, "%s", err.line);
	bench->snapshot.utc_ns += 5000000000;
}

static void tear_down(struct bench *bench)
{
	snapshot_done(&bench->snapshot);
	sampler_free(bench->sampler);
	record_free(bench->record);
}

static const char *text(const struct bench *bench, uint32_t id)
{
	return session_text(bench->record->sink.session, id);
}

Test(sampler, boards_and_processes_become_lanes_of_devices)
{
	struct bench bench = { 0 };
	const struct session *session;
	struct board_process *process;

	set_up(&bench);
	add_board(&bench.snapshot, "GPU-a", 100);
	add_board(&bench.snapshot, "GPU-b", 200);
	process = VEC_ADD(&bench.snapshot.processes);
	process->board = 1;
	process->pid = 77;
	process->kinds = PROCESS_COMPUTE | PROCESS_GRAPHICS;
	sample_set(&process->sample, METRIC_proc_sm_pct, 30);
	push(&bench);
	push(&bench);
	session = bench.record->sink.session;
	cr_assert_eq(session->devices.count, 2);
	cr_assert_eq(session->lanes.count, 3);
	cr_assert_eq(session->processes.count, 1);
	cr_assert_str_eq(text(&bench, session->processes.at[0].type), "C+G");
	cr_assert_eq(bench.record->samples.count, 6);
	cr_assert_eq(bench.record->samples.at[0].time_ns, 1700000000000000000);
	cr_assert_eq(session->lanes.at[bench.record->samples.at[2].lane].kind, LANE_PROCESS);
	cr_assert_eq(sampler_lane(bench.sampler, "0000:81:00"), bench.record->samples.at[1].lane);
	cr_assert_eq(sampler_lane(bench.sampler, "0000:99:00.0"), (uint32_t)SESSION_NONE);
	tear_down(&bench);
}

Test(sampler, a_change_of_clock_reasons_is_a_mark_and_idleness_is_none)
{
	struct bench bench = { 0 };
	struct board *board;

	set_up(&bench);
	board = add_board(&bench.snapshot, "GPU-a", 100);
	sample_set(&board->sample, METRIC_clock_reasons, 0x1);
	push(&bench);
	sample_set(&board->sample, METRIC_clock_reasons, 0x0);
	push(&bench);
	cr_assert_eq(bench.record->marks.count, 0);
	sample_set(&board->sample, METRIC_clock_reasons, 0x4);
	push(&bench);
	push(&bench);
	cr_assert_eq(bench.record->marks.count, 1);
	cr_assert_eq(bench.record->marks.at[0].kind, MARK_THROTTLE);
	cr_assert_str_eq(text(&bench, bench.record->marks.at[0].detail), "before=0x0;after=0x4");
	sample_set(&board->sample, METRIC_clock_reasons, 0x1);
	push(&bench);
	cr_assert_eq(bench.record->marks.count, 2);
	tear_down(&bench);
}

Test(sampler, loss_return_and_fresh_counters_are_marks)
{
	struct bench bench = { 0 };
	struct board *board;

	set_up(&bench);
	board = add_board(&bench.snapshot, "GPU-a", 100);
	push(&bench);
	board->state = BOARD_LOST;
	board->status = 15;
	board->sample = (struct sample){ 0 };
	push(&bench);
	cr_assert_eq(bench.record->samples.count, 1, "nothing is sampled of a lost card");
	board->state = BOARD_OK;
	board->status = 0;
	bench.snapshot.generation = 1;
	push(&bench);
	cr_assert_eq(bench.record->marks.count, 3);
	cr_assert_str_eq(text(&bench, bench.record->marks.at[0].name), "the card is lost");
	cr_assert_str_eq(text(&bench, bench.record->marks.at[0].detail), "status=15");
	cr_assert_str_eq(text(&bench, bench.record->marks.at[1].name), "counters start again");
	cr_assert_str_eq(text(&bench, bench.record->marks.at[2].name), "the card answers again");
	tear_down(&bench);
}

Test(sampler, the_reasons_of_absent_values_are_kept_once)
{
	struct bench bench = { 0 };
	const struct session *session;
	size_t found = 0;

	set_up(&bench);
	add_board(&bench.snapshot, "GPU-a", 100);
	for (int i = 0; i < 4; i++)
		push(&bench);
	session = bench.record->sink.session;
	for (size_t i = 0; i < session->envs.count; i++)
		if (!strcmp(text(&bench, session->envs.at[i].key), "origin / NOT_SUPPORTED")) {
			cr_assert_str_eq(text(&bench, session->envs.at[i].value), "fan_pct");
			found++;
		}
	cr_assert_eq(found, 1);
	tear_down(&bench);
}

Test(sampler, the_graphics_clock_stays_out_where_the_sm_clock_is_told)
{
	struct bench bench = { 0 };
	double mhz;

	set_up(&bench);
	sample_set(&add_board(&bench.snapshot, "GPU-a", 100)->sample, METRIC_graphics_mhz, 345);
	sample_set(&add_board(&bench.snapshot, "GPU-b", 100)->sample, METRIC_graphics_mhz, 345);
	sample_set(&bench.snapshot.boards.at[0].sample, METRIC_sm_mhz, 1980);
	push(&bench);
	cr_assert(!sample_get(&bench.record->samples.at[0], METRIC_graphics_mhz, &mhz));
	cr_assert(sample_get(&bench.record->samples.at[1], METRIC_graphics_mhz, &mhz));
	tear_down(&bench);
}

Test(sampler, what_the_driver_tells_is_a_mark_unless_it_is_an_xid)
{
	struct bench bench = { 0 };

	set_up(&bench);
	add_board(&bench.snapshot, "GPU-a", 100);
	*VEC_ADD(&bench.snapshot.events) = (struct board_event){ .type = EVENT_XID, .data = 79 };
	*VEC_ADD(&bench.snapshot.events) = (struct board_event){ .type = EVENT_ECC_DOUBLE };
	push(&bench);
	cr_assert_eq(bench.record->marks.count, 1);
	cr_assert_eq(bench.record->marks.at[0].kind, MARK_TEXT);
	cr_assert_str_eq(text(&bench, bench.record->marks.at[0].name), "double-bit ECC error");
	tear_down(&bench);
}
