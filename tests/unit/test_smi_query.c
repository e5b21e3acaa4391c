#include "smi_read.h"

#define UUID "GPU-11111111-2222-3333-4444-555555555555"

Test(smi_query, header_units_and_cell_units_mean_the_same)
{
	static const char *const texts[] = {
		"index, memory.used [MiB], power.draw [W], utilization.gpu [%], clocks.sm [MHz]\n"
		"1, 100 MiB, 411.90 W, 97 %, 1980 MHz\n",
		"index, memory.used [MiB], power.draw [W], utilization.gpu [%], clocks.sm [MHz]\n"
		"1, 100, 411.90, 97, 1980\n",
	};

	for (size_t i = 0; i < 2; i++) {
		OWN(record_freep) struct record *r = smi_read(texts[i]);

		cr_assert_eq(smi_ordinal(r, 0), 1);
		cr_assert_eq(smi_value(r, 0, METRIC_mem_used_bytes), 100.0 * 1048576);
		cr_assert_eq(smi_value(r, 0, METRIC_power_w), 411.90);
		cr_assert_eq(smi_value(r, 0, METRIC_util_pct), 97);
		cr_assert_eq(smi_value(r, 0, METRIC_sm_mhz), 1980);
	}
}

Test(smi_query, bracketed_texts_are_absent_and_their_reason_is_kept)
{
	OWN(record_freep)
	struct record *r = smi_read(
		"index, utilization.gpu [%], fan.speed [%], temperature.gpu, power.draw [W]\n"
		"0, [N/A], [Requested functionality has been deprecated], [GPU is lost], ERR!\n");

	cr_assert_eq(smi_value(r, 0, METRIC_util_pct), -1);
	cr_assert_eq(smi_value(r, 0, METRIC_fan_pct), -1);
	cr_assert_eq(smi_value(r, 0, METRIC_temp_c), -1);
	cr_assert_eq(smi_value(r, 0, METRIC_power_w), -1);
	cr_assert_str_eq(smi_env(r, "temperature.gpu"), "[GPU is lost]");
	cr_assert(smi_noted(r, "1 x deprecated"));
	cr_assert_eq(smi_loss(r, LOSS_malformed), 0);
}

Test(smi_query, a_loop_over_two_cards_is_a_series_each)
{
	OWN(record_freep)
	struct record *r = smi_read("timestamp, uuid, power.draw [W]\n"
				    "2026/09/01 10:20:30.100, " UUID ", 1 W\n"
				    "2026/09/01 10:20:30.104, GPU-b, 2 W\n"
				    "2026/09/01 10:20:30.600, " UUID ", 3 W\n"
				    "2026/09/01 10:20:30.604, GPU-b, 4 W\n");

	cr_assert_eq(r->sink.session->devices.count, 2);
	cr_assert_eq(r->samples.at[3].time_ns, 504000000);
	cr_assert_eq(smi_value(r, 3, METRIC_power_w), 4);
	cr_assert_eq(r->sink.session->sources.at[0].interval_ns, 504000000);
	cr_assert_not(r->sink.session->sources.at[0].has_utc);
}

Test(smi_query, commas_in_a_process_name_shift_nothing)
{
	OWN(record_freep)
	struct record *r = smi_read("gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n" UUID
				    ", 40213, /opt/my, app/train, v2, 8192 MiB\n");
	const struct session *session = r->sink.session;

	cr_assert_eq(smi_lane(r, 0)->kind, LANE_PROCESS);
	cr_assert_eq(smi_value(r, 0, METRIC_proc_mem_used_bytes), 8192.0 * 1048576);
	cr_assert_str_eq(session_text(session, session->processes.at[0].command),
			 "/opt/my, app/train, v2");
	cr_assert_str_eq(session_text(session, session->devices.at[0].uuid), UUID);
}

Test(smi_query, the_enforced_limit_is_the_one_in_force)
{
	OWN(record_freep)
	struct record *r = smi_read(
		"index, power.limit [W], enforced.power.limit [W]\n0, 700.00 W, 500.00 W\n");

	cr_assert_eq(smi_value(r, 0, METRIC_power_limit_w), 500);
	cr_assert_str_eq(smi_env(r, "power.limit"), "700.00 W");
}

Test(smi_query, reasons_are_nvml_bits)
{
	OWN(record_freep)
	struct record *r =
		smi_read("index, clocks_throttle_reasons.active\n0, 0x0000000000000024\n");

	cr_assert_eq(smi_value(r, 0, METRIC_clock_reasons), 0x24);
}

Test(smi_query, foreign_and_cut_lines_are_counted)
{
	OWN(record_freep)
	struct record *r = smi_read("index, power.draw [W], memory.used [MiB]\n"
				    "0, 1 W, 2 MiB\n"
				    "hello, you, there\n"
				    "0, 1 W, 2");

	cr_assert_eq(smi_loss(r, LOSS_dropped), 1);
	cr_assert_eq(smi_loss(r, LOSS_seen), 2);
	cr_assert(smi_noted(r, "hello, you, there"));
}

Test(smi_query, a_number_cut_at_the_end_of_the_file_is_not_a_value)
{
	static const char apps[] = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
				   "GPU-1, 17, app, 8192 MiB";
	OWN(record_freep) struct record *whole = smi_read(apps);
	OWN(record_freep) struct record *bare = smi_read("index, power.draw [W]\n0, 12");
	OWN(record_freep) struct record *owner = smi_read("index, pid\n0, 17\n0, 1");

	cr_expect_eq(smi_value(whole, 0, METRIC_proc_mem_used_bytes), 8192.0 * 1048576);
	for (size_t cut = 1; cut < 8; cut++) {
		char text[sizeof(apps)];
		OWN(record_freep) struct record *r = NULL;
		double value;

		memcpy(text, apps, sizeof(apps));
		text[sizeof(apps) - 1 - cut] = 0;
		r = smi_read(text);
		value = smi_value(r, 0, METRIC_proc_mem_used_bytes);
		cr_expect(value == -1 || value == 8192.0 * 1048576, "cut %zu: %g", cut, value);
	}
	cr_expect_eq(smi_value(bare, 0, METRIC_power_w), -1);
	cr_expect_eq(smi_loss(bare, LOSS_malformed), 1);
	cr_expect(bare->sink.session->sources.at[0].truncated);
	cr_expect_eq(owner->samples.count, 1);
}

Test(smi_query, no_header_is_told_plainly)
{
	static const char text[] = "2026/09/01 10:20:30.100, 0, 97 %\n";
	OWN(record_freep) struct record *r = record_new();
	struct err err = { 0 };

	cr_assert_eq(smi_read_bytes(r, text, sizeof(text) - 1, &err), ERR_FORMAT);
	cr_assert(strstr(err.line, "without its header line"), "%s", err.line);
}

Test(smi_query, a_csv_of_something_else_is_not_claimed)
{
	cr_assert_str_eq(smi_reader_of("date, price, volume\n1, 2, 3\n"), "none");
	cr_assert_str_eq(smi_reader_of("\"ID\",\"Process ID\"\n"), "none");
}
