#include <criterion/criterion.h>

#include <stdio.h>
#include <unistd.h>

#include "counter_sink.h"
#include "read/ncu.h"

static const char RAW[] =
	"==PROF== Connected to process 7\n"
	"the program's own line, \"ID\"\n"
	"==PROF== Profiling \"scale\" - 0: 0%....100% - 9 passes\n"
	"\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel "
	"Name\",\"Context\",\"Stream\","
	"\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"gpu__time_duration.sum\","
	"\"launch__shared_mem_per_block_static\",\"launch__shared_mem_per_block_dynamic\","
	"\"launch__func_cache_config\",\"sm__warps_active.avg.per_cycle_active\","
	"\"thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg\"\n"
	"\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"ns\",\"byte/block\",\"byte/"
	"block\",\"\",\"warp\",\"\"\n"
	"\"0\",\"7\",\"prog\",\"node1\",\"scale(float *, \"\"T\"\")\",\"1\",\"13\",\"(256, 1, 1)\","
	"\"(40, 2, "
	"1)\",\"0\",\"8.6\",\"1,234,567\",\"128\",\"1,024\",\"CachePreferNone\",\"\",\"\"\n"
	"==PROF== Disconnected from process 7\n"
	"\"1\",\"7\",\"prog\",\"node1\",\"scale(float *, \"\"T\"\")\",\"1\",\"13\",\"(256, 1, 1)\","
	"\"(40, 2, 1)\",\"0\",\"8.6\",\"1,200.5\",\"128\",\"1,024\",\"CachePreferNone\",\"nan\","
	"\"<default domain>:step 3\"\n";

static struct counter_sink *read_bytes(const char *at, size_t len, int want)
{
	struct counter_sink *sink = counter_sink_new();
	OWN(input_closep) struct input *input = input_memory("case.csv", at, len);
	struct err err = { 0 };
	uint32_t source = session_source(sink->sink.session, "ncu_csv", "case.csv");
	int ret = reader_ncu_csv.read(input, &sink->sink, source, &err);

	cr_assert_eq(ret, want, "%d: %s", ret, err.line);
	return sink;
}

static struct counter_sink *read_text(const char *text)
{
	return read_bytes(text, strlen(text), 0);
}

static void expect(const struct counter_sink *sink, int64_t launch, const char *name, double value,
		   const char *unit)
{
	const struct counter *counter = counter_sink_find(sink, launch, name);

	cr_assert(counter, "launch %d has no %s", (int)launch, name);
	cr_expect_float_eq(counter->value, value, 1e-9 * (1 + fabs(value)), "%s is %g", name,
			   counter->value);
	cr_expect_str_eq(session_text(sink->sink.session, counter->unit), unit);
}

Test(ncu_csv, raw_page_gives_a_counter_for_each_metric_and_launch)
{
	OWN(counter_sink_freep) struct counter_sink *sink = read_text(RAW);
	struct session *session = sink->sink.session;
	const struct kernel_key *key = &session->keys.at[0];
	const struct lane *lane = &session->lanes.at[sink->counters.at[0].lane];

	expect(sink, 0, "gpu__time_duration.sum", 1234567, "ns");
	expect(sink, 1, "gpu__time_duration.sum", 1200.5, "ns");
	expect(sink, 1, "launch__shared_mem_per_block_dynamic", 1024, "byte/block");
	cr_expect_eq(session->keys.count, 1);
	cr_expect_str_eq(session_text(session, key->name), "scale(float *, \"T\")");
	cr_expect_eq(key->grid[0], 40);
	cr_expect_eq(key->grid[1], 2);
	cr_expect_eq(key->block[0], 256);
	cr_expect_eq(key->shared_bytes, 1152);
	cr_expect_eq(lane->kind, LANE_LAUNCHES);
	cr_expect_eq(lane->stream, 13);
	cr_expect_eq(session->devices.at[lane->device].cc_major, 8);
	cr_expect_eq(session->devices.at[lane->device].cc_minor, 6);
	cr_expect_eq(session->processes.at[lane->process].pid, 7);
	cr_expect_eq(session->losses.at[0].count[LOSS_seen], 2);
	cr_expect_eq(session->losses.at[0].count[LOSS_malformed], 0);
}

Test(ncu_csv, an_empty_cell_was_not_measured_and_text_stays_text)
{
	OWN(counter_sink_freep) struct counter_sink *sink = read_text(RAW);
	const struct counter *counter;

	cr_expect_null(counter_sink_find(sink, 0, "sm__warps_active.avg.per_cycle_active"));
	counter = counter_sink_find(sink, 1, "sm__warps_active.avg.per_cycle_active");
	cr_assert(counter);
	cr_expect(isnan(counter->value));
	counter = counter_sink_find(
		sink, 1,
		"thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg");
	cr_assert(counter);
	cr_expect_str_eq(session_text(sink->sink.session, counter->text),
			 "<default domain>:step 3");
	counter = counter_sink_find(sink, 0, "launch__func_cache_config");
	cr_expect_str_eq(session_text(sink->sink.session, counter->text), "CachePreferNone");
}

static const char DETAILS[] =
	"\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel "
	"Name\",\"Context\",\"Stream\","
	"\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"Section Name\",\"Metric Name\","
	"\"Metric Unit\",\"Metric Value\",\"Rule Name\",\"Rule Type\",\"Rule Description\","
	"\"Estimated Speedup Type\",\"Estimated Speedup\"\r\n"
	"\"0\",\"7\",\"prog\",\"h\",\"k\",\"1\",\"7\",\"(64, 1, 1)\",\"(9, 1, 1)\",\"1\",\"9.0\","
	"\"GPU Speed Of Light Throughput\",\"Memory "
	"Throughput\",\"%\",\"61.25\",\"\",\"\",\"\",\"\",\"\"\r\n"
	"\"0\",\"7\",\"prog\",\"h\",\"k\",\"1\",\"7\",\"(64, 1, 1)\",\"(9, 1, 1)\",\"1\",\"9.0\","
	"\"Command line profiler "
	"metrics\",\"dram__bytes_read.sum\",\"Mbyte\",\"3.50\",\"\",\"\",\"\",\"\",\"\"\r\n"
	"\"0\",\"7\",\"prog\",\"h\",\"k\",\"1\",\"7\",\"(64, 1, 1)\",\"(9, 1, 1)\",\"1\",\"9.0\","
	"\"Occupancy\",\"\",\"\",\"\",\"AchievedOccupancy\",\"OPT\",\"first line\nsecond, "
	"\"\"quoted\"\" line\","
	"\"global\",\"7.5\"\r\n"
	"\"1\",\"7\",\"prog\",\"h\",\"k\",\"1\",\"7\",\"(64, 1, 1)\",\"(9, 1, 1)\",\"1\",\"9.0\","
	"\"Launch Statistics\",\"# SMs\",\"SM\",\"114\",\"\",\"\",\"\",\"\",\"\"\r\n";

Test(ncu_csv, details_page_names_a_value_by_section_unless_it_is_a_metric)
{
	OWN(counter_sink_freep) struct counter_sink *sink = read_text(DETAILS);
	struct session *session = sink->sink.session;

	expect(sink, 0, "GPU Speed Of Light Throughput / Memory Throughput", 61.25, "%");
	expect(sink, 0, "dram__bytes_read.sum", 3.5, "Mbyte");
	expect(sink, 1, "Launch Statistics / # SMs", 114, "SM");
	cr_assert_eq(sink->marks.count, 1);
	cr_expect_eq(sink->marks.at[0].kind, MARK_RULE);
	cr_expect_str_eq(session_text(session, sink->marks.at[0].name), "AchievedOccupancy");
	cr_expect_str_eq(
		intern_get(session->details, sink->marks.at[0].detail, NULL),
		"OPT: first line\nsecond, \"quoted\" line [estimated global speedup 7.5 %]");
	cr_expect_eq(session->devices.at[0].ordinal, 1);
	cr_expect_eq(session->devices.at[0].sm_count, 114);
}

Test(ncu_csv, details_page_of_an_old_version_has_no_rule_columns_and_no_device)
{
	OWN(counter_sink_freep)
	struct counter_sink *sink = read_text("\"ID\",\"Process ID\",\"Process Name\",\"Host "
					      "Name\",\"Kernel Name\",\"Kernel Time\","
					      "\"Context\",\"Stream\",\"Section Name\",\"Metric "
					      "Name\",\"Metric Unit\",\"Metric Value\"\n"
					      "\"0\",\"9\",\"a\",\"h\",\"k\",\"2020-Mar-05 "
					      "10:47:31\",\"1\",\"7\",\"GPU Speed Of Light\","
					      "\"SOL SM\",\"%\",\"12.5\"\n"
					      "\"0\",\"9\",\"a\",\"h\",\"k\",\"2020-Mar-05 "
					      "10:47:31\",\"1\",\"7\",\"GPU Speed Of Light\","
					      "\"Duration\",\"usecond\",\"3.25\"\n");

	expect(sink, 0, "GPU Speed Of Light / SOL SM", 12.5, "%");
	expect(sink, 0, "GPU Speed Of Light / Duration", 3.25, "usecond");
	cr_expect(counter_sink_find(sink, 0, "Kernel Time"));
	cr_expect_eq(sink->sink.session->devices.at[0].ordinal, -1);
}

static const char REPORT[] =
	"==PROF== Disconnected from process 185\n"
	"[185] python3@127.0.0.1\n"
	"  void f<(int)4, g(int), h>(T1, T2) (864, 2, 1)x(256, 1, 1), Context 1, Stream 7, Device "
	"0, CC 8.0\n"
	"    Section: GPU Speed Of Light Throughput\n"
	"    ----------------------- ------------- ------------\n"
	"    Metric Name               Metric Unit Metric Value\n"
	"    ----------------------- ------------- ------------\n"
	"    DRAM Frequency          cycle/nsecond         1.21\n"
	"    Duration                      usecond        14.46\n"
	"    ----------------------- ------------- ------------\n"
	"    OPT   First half of the advice                    \n"
	"          and the second.                             \n"
	"    INF   Another.\n"
	"    Section: Launch Statistics\n"
	"    -------------------------------- --------------- ---------------\n"
	"    Metric Name                          Metric Unit    Metric Value\n"
	"    -------------------------------- --------------- ---------------\n"
	"    Function Cache Configuration                     CachePreferNone\n"
	"    Threads                                   thread          442368\n"
	"    -------------------------------- --------------- ---------------\n"
	"  k(int, const float *), 2020-Mar-05 10:47:31, Context 1, Stream 13\n"
	"    Section: GPU Speed Of Light\n"
	"    ------------------------------ --------------- ---------------\n"
	"    SOL FB                                       %           62.15\n"
	"    ------------------------------ --------------- ---------------\n";

Test(ncu_csv, text_report_is_read_by_its_lines_of_dashes)
{
	OWN(counter_sink_freep) struct counter_sink *sink = read_text(REPORT);
	struct session *session = sink->sink.session;
	const struct counter *counter;

	cr_expect_str_eq(session_text(session, session->keys.at[0].name),
			 "void f<(int)4, g(int), h>(T1, T2)");
	cr_expect_eq(session->keys.at[0].grid[0], 864);
	cr_expect_eq(session->keys.at[0].grid[1], 2);
	cr_expect_eq(session->keys.at[0].block[0], 256);
	cr_expect_eq(session->devices.at[0].cc_major, 8);
	expect(sink, 0, "GPU Speed Of Light Throughput / DRAM Frequency", 1.21, "cycle/nsecond");
	expect(sink, 0, "Launch Statistics / Threads", 442368, "thread");
	counter = counter_sink_find(sink, 0, "Launch Statistics / Function Cache Configuration");
	cr_expect_str_eq(session_text(session, counter->text), "CachePreferNone");
	cr_assert_eq(sink->marks.count, 2);
	cr_expect_str_eq(intern_get(session->details, sink->marks.at[0].detail, NULL),
			 "OPT: First half of the advice and the second.");
	cr_expect_str_eq(session_text(session, session->keys.at[1].name), "k(int, const float *)");
	expect(sink, 1, "GPU Speed Of Light / SOL FB", 62.15, "%");
}

Test(ncu_csv, every_cut_of_every_layout_reads_what_is_there)
{
	static const char *const whole[] = { RAW, DETAILS, REPORT };

	for (size_t i = 0; i < 3; i++) {
		OWN(counter_sink_freep) struct counter_sink *all = read_text(whole[i]);

		for (size_t len = 1; len < strlen(whole[i]); len += 3) {
			struct counter_sink *sink = counter_sink_new();
			OWN(input_closep) struct input *input = input_memory("cut", whole[i], len);
			struct err err = { 0 };
			int ret = reader_ncu_csv.read(
				input, &sink->sink,
				session_source(sink->sink.session, "ncu_csv", "cut"), &err);

			cr_expect(ret == 0 || ret == ERR_FORMAT);
			cr_expect_leq(sink->counters.count, all->counters.count, "cut %zu at %zu",
				      i, len);
			counter_sink_free(sink);
		}
	}
}

/* Of every cut: a number is that of the whole file or it is not there. */
Test(ncu_csv, a_number_that_was_cut_is_no_number)
{
	static const char *const whole[] = { RAW, DETAILS };
	static const char bare[] = "ID,Kernel Name,a__b.sum,c__d.sum\n,,,\n0,k,123,456\n";

	for (size_t i = 0; i < 3; i++) {
		const char *text = i < 2 ? whole[i] : bare;
		OWN(counter_sink_freep) struct counter_sink *all = read_text(text);

		for (size_t len = 1; len < strlen(text) - 3; len++) {
			struct counter_sink *sink = counter_sink_new();
			OWN(input_closep) struct input *input = input_memory("cut", text, len);

			(void)reader_ncu_csv.read(
				input, &sink->sink,
				session_source(sink->sink.session, "ncu_csv", "cut"), NULL);
			for (size_t k = 0; k < sink->counters.count; k++) {
				const struct counter *cut = &sink->counters.at[k];
				const struct counter *full = counter_sink_find(
					all, cut->launch,
					session_text(sink->sink.session, cut->name));

				cr_expect(full && (isnan(cut->value) || cut->value == full->value),
					  "cut %zu at %zu: %g", i, len, cut->value);
			}
			counter_sink_free(sink);
		}
	}
}

Test(ncu_csv, a_quote_that_is_never_closed_costs_one_record)
{
	OWN(counter_sink_freep)
	struct counter_sink *sink =
		read_text("\"ID\",\"Kernel Name\",\"a__b.sum\"\n\"\",\"\",\"\"\n"
			  "\"0\",\"k\",\"1\"\n"
			  "\"1\",\"k,\"2\"\n"
			  "\"2\",\"broken\n"
			  "\"3\",\"k\",\"4\"\n");

	cr_expect_eq(sink->sink.session->losses.at[0].count[LOSS_malformed], 2);
	expect(sink, 0, "a__b.sum", 1, "");
	expect(sink, 3, "a__b.sum", 4, "");
}

Test(ncu_csv, a_record_without_a_number_or_a_kernel_is_counted_as_dropped)
{
	OWN(counter_sink_freep)
	struct counter_sink *sink =
		read_text("\"ID\",\"Kernel Name\",\"a__b.sum\"\n\"\",\"\",\"\"\n"
			  "garbage\n\"0\",\"k\",\"1\"\n");

	cr_expect_eq(sink->sink.session->losses.at[0].count[LOSS_seen], 2);
	cr_expect_eq(sink->sink.session->losses.at[0].count[LOSS_dropped], 1);
	cr_expect_eq(sink->counters.count, 1);
}

Test(ncu_csv, a_run_without_kernels_says_what_ncu_said)
{
	static const char text[] = "==PROF== Connected to process 3\n"
				   "==ERROR== ERR_NVGPUCTRPERM - no permission\n";
	struct counter_sink *sink = counter_sink_new();
	OWN(input_closep) struct input *input = input_memory("x.csv", text, strlen(text));
	struct err err = { 0 };

	cr_expect_gt(reader_ncu_csv.probe(text, strlen(text)), 0);
	cr_expect_eq(reader_ncu_csv.read(input, &sink->sink,
					 session_source(sink->sink.session, "ncu_csv", "x.csv"),
					 &err),
		     ERR_FORMAT);
	cr_expect_str_eq(err.line, "x.csv: no kernel in it; ncu said: "
				   "==ERROR== ERR_NVGPUCTRPERM - no permission");
	counter_sink_free(sink);
}

Test(ncu_csv, numbers_of_every_locale_are_the_same_number)
{
	static const struct {
		const char *text;
		bool comma, ok;
		double value;
	} cases[] = {
		{ "1,234,567.5", false, true, 1234567.5 },
		{ "1.234.567,5", true, true, 1234567.5 },
		{ "1 234 567,5", true, true, 1234567.5 },
		{ "1\xe2\x80\xaf"
		  "234,5",
		  true, true, 1234.5 },
		{ "1'234.5", false, true, 1234.5 },
		{ "12", false, true, 12 },
		{ "-0.5", false, true, -0.5 },
		{ "1.5e+06", false, true, 1.5e6 },
		{ "12 (1; 2; 3)", false, true, 12 },
		{ "1,23", false, false, 0 },
		{ "(256, 1, 1)", false, false, 0 },
		{ "n/a", false, false, 0 },
		{ "nan", false, false, 0 },
		{ "1,2345", false, false, 0 },
		{ "", false, false, 0 },
		{ "1.2.3", false, false, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double value = 0;
		bool ok = ncu_number(str_of(cases[i].text), cases[i].comma, &value);

		cr_expect_eq(ok, cases[i].ok, "%s", cases[i].text);
		cr_expect(!ok || value == cases[i].value, "%s is %g", cases[i].text, value);
	}
}

Test(ncu_csv, the_decimal_sign_is_told_by_the_file)
{
	cr_expect(ncu_decimal_comma(str_of("\"a\",\"0,52\",\"1.234\"\n")));
	cr_expect_not(ncu_decimal_comma(str_of("\"a\",\"0.52\",\"1,234\"\n")));
	cr_expect_not(ncu_decimal_comma(str_of("\"1,234\",\"5\"\n")));
	cr_expect(ncu_decimal_comma(str_of("    Duration  usecond        14,46\n")));
}

Test(ncu_csv, other_texts_are_not_claimed)
{
	static const char *const others[] = {
		"{\"traceEvents\": []}",
		"timestamp, name, pci.bus_id\n",
		"ID,x\n1,2\n",
		"# gpu   pwr gtemp\n",
		"",
		"==x==",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect_eq(reader_ncu_csv.probe(others[i], strlen(others[i])), 0, "%s",
			     others[i]);
	cr_expect_eq(reader_ncu_csv.probe(RAW, strlen(RAW)), 95);
	cr_expect_eq(reader_ncu_csv.probe(REPORT, strlen(REPORT)), 90);
}

static struct counter_sink *read_file(const char *path)
{
	OWN(input_closep) struct input *input = NULL;
	struct counter_sink *sink = counter_sink_new();
	struct err err = { 0 };

	cr_assert_eq(input_open(path, &input, &err), 0, "%s", err.line);
	cr_assert_eq(reader_ncu_csv.read(input, &sink->sink,
					 session_source(sink->sink.session, "ncu_csv", path), &err),
		     0, "%s", err.line);
	return sink;
}

Test(ncu_csv, the_recorded_raw_page_is_read_whole)
{
	OWN(counter_sink_freep)
	struct counter_sink *sink = read_file(SOURCE_DIR "/tests/truth/ncu/cases_raw.csv.gz");
	const struct session *session = sink->sink.session;

	cr_expect_eq(session->keys.count, 21);
	cr_expect_eq(session->losses.at[0].count[LOSS_seen], 21);
	cr_expect_eq(session->losses.at[0].count[LOSS_malformed], 0);
	cr_expect_str_eq(session_text(session, session->devices.at[0].name), "NVIDIA H200");
	cr_expect_eq(session->devices.at[0].sm_count, 132);
	cr_expect_eq(session->keys.at[19].shared_bytes, 204800);
	expect(sink, 2, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 92.64,
	       "%");
	expect(sink, 0, "launch__grid_size", 2112, "");
}

Test(ncu_csv, the_recorded_details_page_is_read_whole)
{
	OWN(counter_sink_freep)
	struct counter_sink *sink = read_file(SOURCE_DIR "/tests/truth/ncu/cases_details.csv.gz");
	const struct session *session = sink->sink.session;

	cr_expect_eq(session->keys.count, 21);
	cr_expect_eq(session->losses.at[0].count[LOSS_seen], 2006);
	cr_expect_eq(sink->counters.count + sink->marks.count, 2006);
	cr_expect_eq(session->losses.at[0].count[LOSS_malformed], 0);
}

Test(ncu_csv, the_public_text_report_has_17_kernels_and_51_pieces_of_advice)
{
	const char *path = SOURCE_DIR "/../shared/public/ncu_csv/gpumode_lecture001_ncu_logs.txt";
	struct counter_sink *sink;
	size_t opt = 0;

	if (access(path, R_OK))
		cr_skip_test("the public file is not here");
	sink = read_file(path);
	for (size_t i = 0; i < sink->marks.count; i++)
		opt += !strncmp(
			intern_get(sink->sink.session->details, sink->marks.at[i].detail, NULL),
			"OPT: ", 5);
	cr_expect_eq(opt, 51);
	cr_expect_eq(sink->marks.count, 51);
	cr_expect_eq(sink->counters.at[sink->counters.count - 1].launch, 16);
	expect(sink, 0, "GPU Speed Of Light Throughput / Compute (SM) Throughput", 56.42, "%");
	expect(sink, 16, "Launch Statistics / Waves Per SM", 0.4, "");
	counter_sink_free(sink);
}

/* A table of one metric and one launch, whose kernel name is that long. */
static struct counter_sink *read_wide(size_t name_len)
{
	struct buf text = { 0 };
	struct counter_sink *sink;

	buf_text(&text,
		 "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"ns\"\n\"0\",\"");
	for (size_t i = 0; i < name_len; i++)
		buf_char(&text, 'k');
	buf_text(&text, "\",\"77\"\n");
	sink = read_bytes(text.at, text.len, 0);
	buf_done(&text);
	return sink;
}

Test(ncu_csv, a_row_of_some_megabytes_is_read_whole)
{
	OWN(counter_sink_freep) struct counter_sink *sink = read_wide(5 << 20);

	expect(sink, 0, "gpu__time_duration.sum", 77, "ns");
	cr_assert_eq(sink->sink.session->losses.at[0].count[LOSS_malformed], 0);
}

Test(ncu_csv, a_row_beyond_the_limit_says_so_with_its_line)
{
	OWN(counter_sink_freep) struct counter_sink *sink = read_wide(LINES_MAX + 10);
	const struct session *session = sink->sink.session;
	bool told = false;

	cr_assert_eq(session->losses.at[0].count[LOSS_malformed], 1);
	for (size_t i = 0; i < session->notes.count; i++)
		told |= strstr(session_text(session, session->notes.at[i].text),
			       "line 3 is longer than 16 MiB") != NULL;
	cr_assert(told);
}
