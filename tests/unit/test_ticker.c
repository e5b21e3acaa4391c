/* Snapshots as lines of dmon, CSV and JSON. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "present/ticker.h"
#include "smi_read.h"

static struct board *board_add(struct snapshot *snapshot, uint32_t index)
{
	struct board *board = VEC_ADD(&snapshot->boards);

	board->index = index;
	board->parent = -1;
	(void)snprintf(board->uuid, sizeof(board->uuid), "GPU-%u", index);
	(void)snprintf(board->name, sizeof(board->name), "NVIDIA H200");
	(void)snprintf(board->pci_bus, sizeof(board->pci_bus), "0000:0%u:00.0", index);
	return board;
}

static void set(struct board *board, enum metric metric, double value)
{
	sample_set(&board->sample, metric, value);
}

/* Everything that dmon shows, each with another value. */
static void fill(struct board *board)
{
	set(board, METRIC_power_w, 338.4);
	set(board, METRIC_temp_c, 50);
	set(board, METRIC_temp_mem_c, 45);
	set(board, METRIC_util_pct, 100);
	set(board, METRIC_mem_util_pct, 19);
	set(board, METRIC_enc_pct, 1);
	set(board, METRIC_dec_pct, 2);
	set(board, METRIC_jpg_pct, 3);
	set(board, METRIC_ofa_pct, 4);
	set(board, METRIC_mem_mhz, 3201);
	set(board, METRIC_sm_mhz, 1980);
	set(board, METRIC_reason_power_cap_us, 1e9);
	set(board, METRIC_reason_sw_thermal_us, 5);
	set(board, METRIC_reason_hw_thermal_us, 6);
	set(board, METRIC_mem_used_bytes, 3663 * 1048576.0);
	set(board, METRIC_bar1_used_bytes, 3664 * 1048576.0);
	set(board, METRIC_protected_used_bytes, 0);
	set(board, METRIC_ecc_single, 7);
	set(board, METRIC_ecc_double, 8);
	set(board, METRIC_pcie_replays, 9);
	set(board, METRIC_pcie_rx_bytes_s, 15.4e6);
	set(board, METRIC_pcie_tx_bytes_s, 12.6e6);
}

static const char HEADER[] =
	"# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk  pviol"
	"  tviol     fb   bar1   ccpm  sbecc  dbecc    pci  rxpci  txpci \n"
	"# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz      %"
	"   bool     MB     MB     MB   errs   errs   errs   MB/s   MB/s \n";

Test(ticker, dmon_has_the_lines_of_nvidia_smi_to_the_blank)
{
	OWN(ticker_freep) struct ticker *ticker = ticker_new(TICKER_DMON);
	struct snapshot snapshot = { .monotonic_ns = 1000000000 };
	struct buf out = { 0 }, expected = { 0 };
	struct board *board = board_add(&snapshot, 0);

	fill(board);
	(void)board_add(&snapshot, 1);
	ticker_add(ticker, &snapshot, &out);
	snapshot.monotonic_ns += 1000000000;
	set(&snapshot.boards.at[0], METRIC_reason_power_cap_us, 1e9 + 120000);
	set(&snapshot.boards.at[0], METRIC_reason_hw_thermal_us, 7);
	ticker_add(ticker, &snapshot, &out);
	buf_text(&expected, HEADER);
	/* Shares of time need a second reading. */
	buf_text(&expected, "    0    338     50     45    100     19      1      2      3      4"
			    "   3201   1980      -      -   3663   3664      0      7      8      9"
			    "     15     13 \n");
	buf_text(&expected, "    1      -      -      -      -      -      -      -      -      -"
			    "      -      -      -      -      -      -      -      -      -      -"
			    "      -      - \n");
	buf_text(&expected, "    0    338     50     45    100     19      1      2      3      4"
			    "   3201   1980     12      1   3663   3664      0      7      8      9"
			    "     15     13 \n");
	buf_text(&expected, "    1      -      -      -      -      -      -      -      -      -"
			    "      -      -      -      -      -      -      -      -      -      -"
			    "      -      - \n");
	cr_assert_str_eq(out.at, expected.at);
	buf_done(&out);
	buf_done(&expected);
	snapshot_done(&snapshot);
}

Test(ticker, our_own_reader_takes_dmon_lines)
{
	OWN(ticker_freep) struct ticker *ticker = ticker_new(TICKER_DMON);
	struct snapshot snapshot = { .monotonic_ns = 1000000000 };
	OWN(record_freep) struct record *record = NULL;
	struct buf out = { 0 };

	fill(board_add(&snapshot, 0));
	fill(board_add(&snapshot, 1));
	for (int i = 0; i < 50; i++) {
		ticker_add(ticker, &snapshot, &out);
		snapshot.monotonic_ns += 1000000000;
	}
	record = smi_read(out.at);
	cr_assert_eq(record->samples.count, 100);
	cr_assert_eq(smi_value(record, 99, METRIC_power_w), 338);
	cr_assert_eq(smi_value(record, 99, METRIC_power_violation_pct), 0);
	cr_assert_eq(smi_value(record, 99, METRIC_mem_used_bytes), 3663 * 1048576.0);
	cr_assert_eq(smi_value(record, 99, METRIC_pcie_tx_bytes_s), 13e6);
	/* The header came again. */
	cr_assert_not_null(strstr(out.at + sizeof(HEADER), "# gpu"));
	buf_done(&out);
	snapshot_done(&snapshot);
}

Test(ticker, dmon_counts_no_share_across_a_reset)
{
	OWN(ticker_freep) struct ticker *ticker = ticker_new(TICKER_DMON);
	struct snapshot snapshot = { .monotonic_ns = 1000000000 };
	struct buf out = { 0 };

	fill(board_add(&snapshot, 0));
	ticker_add(ticker, &snapshot, &out);
	snapshot.monotonic_ns += 1000000000;
	snapshot.generation++;
	set(&snapshot.boards.at[0], METRIC_reason_power_cap_us, 0);
	buf_clear(&out);
	ticker_add(ticker, &snapshot, &out);
	cr_assert_not_null(strstr(out.at, "   1980      -      -   3663"));
	buf_done(&out);
	snapshot_done(&snapshot);
}

Test(ticker, dmon_shows_cards_and_not_their_instances)
{
	OWN(ticker_freep) struct ticker *ticker = ticker_new(TICKER_DMON);
	struct snapshot snapshot = { 0 };
	struct buf out = { 0 };

	(void)board_add(&snapshot, 0);
	board_add(&snapshot, 1)->parent = 0;
	board_add(&snapshot, 2)->state = BOARD_GONE;
	ticker_add(ticker, &snapshot, &out);
	cr_assert_not_null(strstr(out.at, "\n    0  "));
	cr_assert_null(strstr(out.at, "\n    1  "));
	cr_assert_null(strstr(out.at, "\n    2  "));
	buf_done(&out);
	snapshot_done(&snapshot);
}

/* Cell `number` of a line. */
static struct str cell(struct str line, size_t number)
{
	struct str cell = str_cut(&line, ',');

	while (number--)
		cell = str_cut(&line, ',');
	return cell;
}

Test(ticker, csv_has_as_many_cells_in_each_line)
{
	OWN(ticker_freep) struct ticker *ticker = ticker_new(TICKER_CSV);
	struct snapshot snapshot = { .utc_ns = 1796026502125000000 };
	struct buf out = { 0 };
	struct str rest, header, row;
	size_t power = 0;

	fill(board_add(&snapshot, 0));
	(void)snprintf(snapshot.boards.at[0].name, 64, "odd, \"name\"");
	ticker_add(ticker, &snapshot, &out);
	ticker_add(ticker, &snapshot, &out);
	rest = str_of(out.at);
	header = str_cut(&rest, '\n');
	row = str_cut(&rest, '\n');
	while (!str_is(cell(header, power), "power_w"))
		power++;
	cr_assert(str_is(cell(row, power), "338.4"));
	cr_assert(str_is(cell(row, 0), "2026-11-30T08:15:02.125Z"));
	cr_assert(str_is(cell(row, 3), "odd   name "));
	for (size_t i = 0; i < header.len + 1; i++)
		power += i < header.len && header.at[i] == ',';
	for (size_t i = 0; i < row.len; i++)
		power -= row.at[i] == ',';
	cr_assert(str_is(cell(header, power), "power_w"));
	cr_assert(str_same(row, str_cut(&rest, '\n')));
	buf_done(&out);
	snapshot_done(&snapshot);
}

Test(ticker, jsonl_leaves_out_what_is_unknown)
{
	OWN(ticker_freep) struct ticker *ticker = ticker_new(TICKER_JSONL);
	struct snapshot snapshot = {
		.utc_ns = 1796026502125000000, .calls = 3, .wall_ns = 41, .cpu_ns = 40
	};
	struct buf out = { 0 };
	struct board_process *process;

	set(board_add(&snapshot, 0), METRIC_power_w, 338.5);
	set(&snapshot.boards.at[0], METRIC_temp_c, (double)NAN);
	process = VEC_ADD(&snapshot.processes);
	process->pid = 77;
	sample_set(&process->sample, METRIC_proc_sm_pct, 40);
	ticker_add(ticker, &snapshot, &out);
	cr_assert_str_eq(
		out.at,
		"{\"schema\":\"sonde.snapshot/1\",\"time\":\"2026-11-30T08:15:02.125Z\","
		"\"utc_ns\":1796026502125000000,\"boards\":[{\"index\":0,\"uuid\":\"GPU-0\","
		"\"name\":\"NVIDIA H200\",\"pci_bus\":\"0000:00:00.0\",\"state\":\"ok\","
		"\"power_w\":338.5}],\"processes\":[{\"board\":0,\"pid\":77,\"proc_sm_pct\":40}],"
		"\"cost\":{\"wall_ns\":41,\"cpu_ns\":40,\"calls\":3}}\n");
	buf_done(&out);
	snapshot_done(&snapshot);
}
