#include "smi_read.h"

#define S 1000000000LL

Test(smi_dmon, a_row_is_a_sample_of_the_board)
{
	OWN(record_freep)
	struct record *r = smi_read(
		"# gpu    pwr  gtemp  mtemp     sm   mclk   pclk  pviol  tviol     fb  rxpci \n"
		"# Idx      W      C      C      %    MHz    MHz      %   bool     MB   MB/s \n"
		"    0    412     58     66     97   2619   1755     12      1  61230    310 \n");

	cr_assert_eq(r->samples.count, 1);
	cr_assert_eq(smi_lane(r, 0)->kind, LANE_BOARD);
	cr_assert_eq(r->sink.session->devices.at[0].scope, DEVICE_OF_SMI);
	cr_assert_eq(smi_value(r, 0, METRIC_power_w), 412);
	cr_assert_eq(smi_value(r, 0, METRIC_temp_mem_c), 66);
	cr_assert_eq(smi_value(r, 0, METRIC_sm_mhz), 1755);
	cr_assert_eq(smi_value(r, 0, METRIC_power_violation_pct), 12);
	cr_assert_eq(smi_value(r, 0, METRIC_thermal_violation), 1);
	cr_assert_eq(smi_value(r, 0, METRIC_mem_used_bytes), 61230.0 * 1048576);
	cr_assert_eq(smi_value(r, 0, METRIC_pcie_rx_bytes_s), 310e6);
}

Test(smi_dmon, the_order_of_columns_is_what_the_header_says)
{
	OWN(record_freep)
	struct record *r = smi_read("# gpu  rxpci  txpci  sbecc  dbecc    pci\n"
				    "    0      1      2      3      4      5\n"
				    "# gpu  sbecc  dbecc    pci  rxpci  txpci\n"
				    "    0      3      4      5      1      2\n");

	cr_assert_eq(r->samples.count, 2);
	for (size_t i = 0; i < 2; i++) {
		cr_assert_eq(smi_value(r, i, METRIC_pcie_rx_bytes_s), 1e6);
		cr_assert_eq(smi_value(r, i, METRIC_pcie_tx_bytes_s), 2e6);
		cr_assert_eq(smi_value(r, i, METRIC_ecc_single), 3);
		cr_assert_eq(smi_value(r, i, METRIC_ecc_double), 4);
		cr_assert_eq(smi_value(r, i, METRIC_pcie_replays), 5);
	}
	cr_assert(smi_noted(r, "columns change"));
}

Test(smi_dmon, old_columns_are_read_too)
{
	OWN(record_freep)
	struct record *r = smi_read("# gpu   pwr  temp    sm   mem   enc   dec  mclk  pclk\n"
				    "# Idx     W     C     %     %     %     %   MHz   MHz\n"
				    "    0    43    48     0     1     0     0  3505   936\n");

	cr_assert_eq(smi_value(r, 0, METRIC_temp_c), 48);
	cr_assert_eq(smi_value(r, 0, METRIC_temp_mem_c), -1);
	cr_assert_eq(smi_value(r, 0, METRIC_mem_mhz), 3505);
}

Test(smi_dmon, a_dash_is_absent_and_not_zero)
{
	OWN(record_freep)
	struct record *r = smi_read("# gpu    pwr  mtemp     sm\n"
				    "    0     70      -      -\n"
				    "    0     71     40      -\n");

	cr_assert_eq(smi_value(r, 0, METRIC_util_pct), -1);
	cr_assert_eq(smi_value(r, 0, METRIC_temp_mem_c), -1);
	cr_assert_eq(smi_value(r, 1, METRIC_temp_mem_c), 40);
	cr_assert(smi_misses(r, ": sm"));
	cr_assert_not(smi_misses(r, ": mtemp"));
	cr_assert(smi_noted(r, "3 x no value"));
}

Test(smi_dmon, without_stamps_a_round_over_the_gpus_is_a_second)
{
	OWN(record_freep)
	struct record *r = smi_read("# gpu    pwr\n"
				    "    0     70\n    1     71\n"
				    "    0     72\n    1     73\n");
	const struct source *source = &r->sink.session->sources.at[0];

	cr_assert_eq(r->samples.at[1].time_ns, 0);
	cr_assert_eq(r->samples.at[2].time_ns, S);
	cr_assert_eq(r->samples.at[3].time_ns, S);
	cr_assert_eq(smi_ordinal(r, 3), 1);
	cr_assert_eq(source->interval_ns, S);
	cr_assert(source->interval_assumed);
	cr_assert_not(source->has_utc);
}

Test(smi_dmon, stamps_are_times_on_a_clock_of_their_own)
{
	OWN(record_freep)
	struct record *r = smi_read("#Date        Time         gpu    pwr \n"
				    "#YYYYMMDD    HH:MM:SS     Idx      W \n"
				    " 20260228    23:59:58       0    405 \n"
				    " 20260301    00:00:03       0    406 \n");
	const struct source *source = &r->sink.session->sources.at[0];

	cr_assert_eq(r->samples.at[0].time_ns, 0);
	cr_assert_eq(r->samples.at[1].time_ns, 5 * S);
	cr_assert_eq(source->interval_ns, 5 * S);
	cr_assert_not(source->interval_assumed);
	cr_assert_not(source->has_utc);
	cr_assert_str_eq(smi_env(r, "local time of zero"), "2026-02-28 23:59:58.000");
}

Test(smi_dmon, a_time_without_date_goes_past_midnight)
{
	OWN(record_freep)
	struct record *r = smi_read("#Time         gpu    pwr\n"
				    " 23:59:59       0    405\n"
				    " 00:00:00       0    406\n");

	cr_assert_eq(r->samples.at[1].time_ns, S);
}

Test(smi_dmon, csv_with_and_without_units_reads_the_same)
{
	static const char *const texts[] = {
		"#Date, Time, gpu, pwr, fb\n#YYYYMMDD, HH:MM:SS, Idx, W, MB\n"
		" 20260901, 10:20:30, 1, 405, 7\n",
		"#Date, Time, gpu, pwr, fb\n 20260901, 10:20:30, 1, 405, 7\n",
	};

	for (size_t i = 0; i < 2; i++) {
		OWN(record_freep) struct record *r = smi_read(texts[i]);

		cr_assert_eq(smi_ordinal(r, 0), 1);
		cr_assert_eq(smi_value(r, 0, METRIC_power_w), 405);
		cr_assert_eq(smi_value(r, 0, METRIC_mem_used_bytes), 7.0 * 1048576);
	}
}

Test(smi_dmon, gpm_columns_have_their_own_units)
{
	OWN(record_freep)
	struct record *r = smi_read(
		"# gpu      gract     smutil      smocc     hmmaact     pcitx      nvlrx \n"
		"# Idx      GPM:%      GPM:%      GPM:%       GPM:%  GPM:MiB/s  GPM:MiB/s \n"
		"    0          -          -          -           -          -          - \n"
		"    0         99         94         61           7          8          2 \n");

	cr_assert_eq(smi_value(r, 0, METRIC_gr_active_pct), -1);
	cr_assert_eq(smi_value(r, 1, METRIC_sm_active_pct), 94);
	cr_assert_eq(smi_value(r, 1, METRIC_occupancy_pct), 61);
	cr_assert_eq(smi_value(r, 1, METRIC_hmma_tensor_pct), 7);
	cr_assert_eq(smi_value(r, 1, METRIC_gpm_pcie_tx_bytes_s), 8.0 * 1048576);
	cr_assert_eq(smi_value(r, 1, METRIC_nvlink_rx_bytes_s), 2.0 * 1048576);
}

Test(smi_dmon, lines_of_other_programs_are_counted)
{
	OWN(record_freep)
	struct record *r = smi_read("\xef\xbb\xbf"
				    "starting the monitor\r\n"
				    "# gpu    pwr     sm\r\n"
				    "    0     70      1\r\n\r\n"
				    "epoch 3 loss\r\n"
				    "# gpu    pwr     sm\r\n"
				    "    0     70    oops\r\n"
				    "    0     70      2      9\r\n");

	cr_assert_eq(r->samples.count, 2);
	cr_assert_eq(smi_loss(r, LOSS_seen), 2);
	cr_assert_eq(smi_loss(r, LOSS_dropped), 3);
	cr_assert_eq(smi_loss(r, LOSS_malformed), 1);
	cr_assert(smi_noted(r, "starting the monitor"));
	cr_assert_not(smi_noted(r, "columns change"));
}

Test(smi_dmon, more_than_all_of_the_time_is_no_value)
{
	OWN(record_freep)
	struct record *r = smi_read("# gpu    pwr     sm\n"
				    "    0     70  37100\n");

	cr_assert_eq(smi_value(r, 0, METRIC_util_pct), -1);
	cr_assert_eq(smi_loss(r, LOSS_malformed), 1);
}

/* All ones of 32 and 64 bits, and 1e23, are no temperature, clock, power or rate. */
Test(smi_dmon, what_no_card_can_have_is_no_value)
{
	static const enum metric refused[] = { METRIC_power_w, METRIC_temp_c, METRIC_sm_mhz,
					       METRIC_pcie_rx_bytes_s, METRIC_ecc_double };
	OWN(record_freep)
	struct record *most = smi_read("# gpu    pwr  gtemp   pclk     rxpci   dbecc\n"
				       "# Idx      W      C    MHz      MB/s    errs\n"
				       "    0  99999    999  99999  99999999  4294967296\n");
	OWN(record_freep)
	struct record *over = smi_read("# gpu    pwr  gtemp   pclk     rxpci   dbecc\n"
				       "# Idx      W      C    MHz      MB/s    errs\n"
				       "    0  4294967295  4294967295  4294967295  "
				       "18446744073709551615  18446744073709551615\n"
				       "    0  99999999999999999999999  -273  1e9  1e300  -1\n");

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		cr_expect_gt(smi_value(most, 0, refused[i]), 0, "%zu", i);
		cr_expect_eq(smi_value(over, 0, refused[i]), -1, "%zu", i);
		cr_expect_eq(smi_value(over, 1, refused[i]), -1, "%zu", i);
	}
	cr_expect_eq(smi_loss(most, LOSS_malformed), 0);
	cr_expect_eq(smi_loss(over, LOSS_malformed), 10);
}

Test(smi_dmon, a_number_cut_at_the_end_of_the_file_is_not_a_value)
{
	OWN(record_freep)
	struct record *r = smi_read("# gpu    pwr   pclk\n"
				    "    0    700   1980\n"
				    "    0    700   19");
	OWN(record_freep)
	struct record *whole = smi_read("# gpu    pwr   pclk\n"
					"    0    700   1980");

	cr_assert_eq(r->samples.count, 1);
	cr_assert_eq(smi_loss(r, LOSS_truncated_bytes), 17);
	cr_assert(r->sink.session->sources.at[0].truncated);
	cr_assert_eq(whole->samples.count, 1);
}

Test(smi_dmon, a_file_without_header_says_what_it_lacks)
{
	OWN(record_freep) struct record *r = record_new();
	struct err err = { 0 };
	OWN(input_closep) struct input *input = input_memory("x", " 0, 338, 50\n", 12);
	uint32_t source = session_source(r->sink.session, "smi_dmon", "x");

	cr_assert_eq(reader_smi_dmon.read(input, &r->sink, source, &err), ERR_FORMAT);
	cr_assert(strstr(err.line, "without a '# gpu' line the columns are not known"), "%s",
		  err.line);
}

Test(smi_dmon, a_unicode_redirect_of_windows_is_read)
{
	static const char text[] = "# gpu    pwr\n    0     70\n";
	char wide[2 * sizeof(text)] = "\xff\xfe";
	struct err err = { 0 };
	OWN(record_freep) struct record *r = record_new();

	for (size_t i = 0; i + 1 < sizeof(text); i++) {
		wide[2 + 2 * i] = text[i];
		wide[3 + 2 * i] = 0;
	}
	cr_assert_eq(smi_read_bytes(r, wide, sizeof(wide), &err), 0, "%s", err.line);
	cr_assert_eq(smi_value(r, 0, METRIC_power_w), 70);
}

Test(smi_dmon, nul_bytes_and_long_lines_cost_their_line)
{
	OWN(record_freep) struct record *r = record_new();
	struct buf text = { 0 };
	struct err err = { 0 };

	buf_text(&text, "# gpu    pwr\n");
	buf_add(&text, "    0\0    70\n", 13);
	for (int i = 0; i < 3000000; i++)
		buf_char(&text, 'x');
	buf_text(&text, "\n    0     71\n");
	cr_assert_eq(smi_read_bytes(r, text.at, text.len, &err), 0, "%s", err.line);
	cr_assert_eq(r->samples.count, 1);
	cr_assert_eq(smi_value(r, 0, METRIC_power_w), 71);
	cr_assert_eq(smi_loss(r, LOSS_dropped), 2);
	buf_done(&text);
}

Test(smi_pmon, processes_of_one_round_share_its_time)
{
	OWN(record_freep)
	struct record *r =
		smi_read("# gpu         pid   type     sm    mem    enc    command \n"
			 "# Idx           #    C/G      %      %      %    name \n"
			 "    0      40213     C     88     30      -    train worker   \n"
			 "    0      40214   C+G      -      -     12    NVIDIA Overlay.\n"
			 "    1          -     -      -      -      -    -              \n"
			 "    0      40213     C     80     30      -    train worker   \n"
			 "    1          -     -      -      -      -    -              \n");
	const struct session *session = r->sink.session;

	cr_assert_eq(r->samples.count, 3);
	cr_assert_eq(r->samples.at[1].time_ns, 0);
	cr_assert_eq(r->samples.at[2].time_ns, S);
	cr_assert_eq(smi_lane(r, 0)->kind, LANE_PROCESS);
	cr_assert_eq(smi_value(r, 0, METRIC_proc_sm_pct), 88);
	cr_assert_eq(smi_value(r, 1, METRIC_proc_sm_pct), -1);
	cr_assert_eq(smi_value(r, 1, METRIC_proc_enc_pct), 12);
	cr_assert_eq(session->processes.count, 2);
	cr_assert_str_eq(session_text(session, session->processes.at[0].name), "train worker");
	cr_assert_str_eq(session_text(session, session->processes.at[1].type), "C+G");
	cr_assert_eq(session->devices.count, 2);
	cr_assert_str_eq(smi_env(r, "pmon rounds without a process"), "2 of 2");
}

Test(smi_pmon, memory_columns_stand_before_the_command)
{
	OWN(record_freep)
	struct record *r = smi_read("# gpu         pid   type     fb   ccpm    command \n"
				    "# Idx           #    C/G     MB     MB    name \n"
				    "    0        499     C   3654      0    cases \n");

	cr_assert_eq(smi_value(r, 0, METRIC_proc_mem_used_bytes), 3654.0 * 1048576);
	cr_assert_eq(smi_value(r, 0, METRIC_proc_protected_bytes), 0);
}

Test(smi_pmon, csv_keeps_commas_of_the_command)
{
	OWN(record_freep)
	struct record *r = smi_read("#Date, Time, gpu, pid, type, sm, command\n"
				    " 20260901, 10:20:30, 0, 17, C, 5, a,b c\n"
				    " 20260901, 10:20:40, 0, 17, C, 6, a,b c\n");
	const struct session *session = r->sink.session;

	cr_assert_str_eq(session_text(session, session->processes.at[0].name), "a,b c");
	cr_assert_eq(r->samples.at[1].time_ns, 10 * S);
}

Test(smi_pmon, an_idle_card_alone_is_an_answer)
{
	OWN(record_freep)
	struct record *r = smi_read("# gpu   pid   type   sm    command\n"
				    "    0     -      -    -    -\n"
				    "    0     -      -    -    -\n");

	cr_assert_eq(r->samples.count, 0);
	cr_assert_eq(r->sink.session->devices.count, 1);
	cr_assert_str_eq(smi_env(r, "pmon rounds without a process"), "2 of 2");
}

Test(smi_pmon, dmon_and_pmon_are_told_apart)
{
	cr_assert_str_eq(smi_reader_of("# gpu  pwr\n    0   1\n"), "smi_dmon");
	cr_assert_str_eq(smi_reader_of("# gpu  pid  type  sm  command\n"), "smi_pmon");
	cr_assert_str_eq(smi_reader_of("# gpu budget for the year\n"), "none");
}

static const char *part_of(const struct record *r, size_t i)
{
	const struct session *session = r->sink.session;

	return session_text(session, session->devices.at[smi_lane(r, i)->device].part);
}

Test(smi_dmon, a_part_of_a_card_is_a_device_of_its_own)
{
	OWN(record_freep)
	struct record *r = smi_read("# gpu  mig    pwr     sm     fb\n"
				    "    0    -    438      -  71000\n"
				    "    0    0      -     30  40000\n"
				    "    0    1      -     60  31000\n"
				    "    0    -    440      -  71000\n"
				    "    0    0      -     31  40000\n"
				    "    0    1      -     61  31000\n");

	cr_assert_eq(r->samples.count, 6);
	cr_assert_eq(r->sink.session->devices.count, 3);
	cr_assert_str_eq(part_of(r, 0), "");
	cr_assert_str_eq(part_of(r, 1), "MIG 0");
	cr_assert_str_eq(part_of(r, 2), "MIG 1");
	cr_assert_eq(smi_ordinal(r, 2), 0);
	cr_assert_eq(smi_value(r, 2, METRIC_util_pct), 60);
	cr_assert_eq(smi_value(r, 2, METRIC_power_w), -1);
	/* One round of three rows, then the next. */
	cr_assert_eq(r->samples.at[2].time_ns, 0);
	cr_assert_eq(r->samples.at[3].time_ns, S);
	cr_assert_eq(smi_lane(r, 4)->device, smi_lane(r, 1)->device);
	cr_assert_eq(smi_loss(r, LOSS_dropped), 0);
}

Test(smi_dmon, parts_go_by_their_instances_where_that_is_all_there_is)
{
	OWN(record_freep)
	struct record *r = smi_read("# gpu     gi     ci     sm\n"
				    "    0      -      -     90\n"
				    "    0      7      0     10\n"
				    "    0     63      0     11\n"
				    "    0     64      0     12\n"
				    "    0      x      0     13\n"
				    "    1      7      0     14\n");

	cr_assert_eq(r->samples.count, 4);
	cr_assert_str_eq(part_of(r, 1), "GI 7 CI 0");
	cr_assert_str_eq(part_of(r, 2), "GI 63 CI 0");
	cr_assert_str_eq(part_of(r, 3), "GI 7 CI 0");
	cr_assert_neq(smi_lane(r, 1)->device, smi_lane(r, 3)->device);
	cr_assert_eq(smi_loss(r, LOSS_dropped), 2);
}

Test(smi_pmon, processes_of_two_parts_do_not_share)
{
	OWN(record_freep)
	struct record *r = smi_read("# gpu   mig        pid  type    sm   mem   command\n"
				    "# Idx     #          #   C/G     %     %   name\n"
				    "    0     0       1000     C    50    10   a\n"
				    "    0     1       1001     C    60    10   b\n"
				    "    0     0       1000     C    51    10   a\n"
				    "    0     1       1001     C    61    10   b\n");

	cr_assert_eq(r->samples.count, 4);
	cr_assert_str_eq(part_of(r, 0), "MIG 0");
	cr_assert_str_eq(part_of(r, 1), "MIG 1");
	cr_assert_eq(r->samples.at[1].time_ns, 0);
	cr_assert_eq(r->samples.at[2].time_ns, S);
}
