#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/map.h"
#include "made_snapshot.h"
#include "present/prometheus.h"

static char *write_it(const struct prometheus_input *input, struct prometheus_opts opts)
{
	struct buf out = { 0 };

	prometheus_write(input, &opts, &out);
	return out.at;
}

/* Is `line` a whole line of `text`? */
static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++) {
		if ((at == text || at[-1] == '\n') && (at[len] == '\n' || !at[len]))
			return true;
	}
	return false;
}

#define CARD_0 "gpu=\"0\",uuid=\"GPU-00000000-made\",pci_bus=\"0000:80:00.0\""

static void expect_lines(const char *text, const char *const *lines)
{
	for (; *lines; lines++)
		cr_expect(has_line(text, *lines), "no line %s in\n%s", *lines, text);
}

Test(prometheus, values_are_in_base_units)
{
	static const char *const lines[] = {
		"# TYPE sonde_gpu_power_watts gauge",
		"sonde_gpu_power_watts{" CARD_0 "} 687.25",
		"sonde_gpu_utilization_ratio{" CARD_0 "} 0.57",
		"sonde_gpu_sm_clock_hertz{" CARD_0 "} 1545000000",
		"sonde_gpu_memory_used_bytes{" CARD_0 "} 68719476736",
		"# TYPE sonde_gpu_throttle_seconds_total counter",
		"sonde_gpu_throttle_seconds_total{" CARD_0 ",reason=\"sw_power_cap\"} 3",
		"sonde_gpu_throttle_seconds_total{" CARD_0 ",reason=\"hw_thermal\"} 0",
		"sonde_gpu_clock_reason{" CARD_0 ",reason=\"sw_power_cap\"} 1",
		"sonde_gpu_clock_reason{" CARD_0 ",reason=\"idle\"} 0",
		"sonde_gpu_pcie_bytes_total{" CARD_0 ",direction=\"tx\"} 7000000000",
		"sonde_gpu_mode{" CARD_0 ",mode=\"persistence\"} 1",
		"sonde_gpu_info{" CARD_0 ",name=\"NVIDIA H200\",compute_capability=\"9.0\"} 1",
		"sonde_gpu_process_memory_bytes{" CARD_0 ",pid=\"4000\"} 64000000000",
		"sonde_gpu_process_sm_utilization_ratio{" CARD_0 ",pid=\"4000\"} 0.57",
		"sonde_driver_info{driver=\"580.159.04\",cuda=\"13.0\"} 1",
		"sonde_snapshot_duration_seconds 0.0025",
		"sonde_build_info{version=\"" SONDE_VERSION "\"} 1",
		NULL,
	};
	struct snapshot snapshot = { 0 };
	struct prometheus_input input = { .snapshot = &snapshot };
	char *text;

	made_busy(&snapshot, 2, 0);
	text = write_it(&input, (struct prometheus_opts){ 0 });
	expect_lines(text, lines);
	free(text);
	snapshot_done(&snapshot);
}

Test(prometheus, what_was_not_measured_has_no_line)
{
	struct snapshot snapshot = { 0 };
	struct prometheus_input input = { .snapshot = &snapshot };
	char *text;

	made_set(made_board(&snapshot, 0), METRIC_temp_c, 0.0 / 0.0);
	text = write_it(&input, (struct prometheus_opts){ .dcgm_names = true });
	cr_expect(!strstr(text, "_watts"), "%s", text);
	cr_expect(!strstr(text, "celsius"), "%s", text);
	cr_expect(!strstr(text, "DCGM"), "%s", text);
	cr_expect(!strstr(text, "sonde_gpu_mode"), "%s", text);
	cr_expect(!strstr(text, "sonde_gpu_clock_reason"), "%s", text);
	cr_expect(has_line(text, "sonde_gpu_up{" CARD_0 "} 1"), "%s", text);
	free(text);
	snapshot_done(&snapshot);
}

Test(prometheus, without_a_driver_only_the_exporter_speaks)
{
	struct prometheus_input input = { .own.failures = 3 };
	char *text = write_it(&input, (struct prometheus_opts){ 0 });

	cr_expect(has_line(text, "sonde_driver_up 0"), "%s", text);
	cr_expect(has_line(text, "sonde_self_snapshot_failures_total 3"), "%s", text);
	cr_expect(!strstr(text, "sonde_gpu_"), "%s", text);
	free(text);
}

Test(prometheus, openmetrics_names_families_and_ends)
{
	static const char *const lines[] = {
		"# TYPE sonde_gpu_energy_joules counter",
		"# UNIT sonde_gpu_energy_joules joules",
		"sonde_gpu_energy_joules_total{" CARD_0 "} 1000000",
		"# TYPE sonde_gpu info",
		"# UNIT sonde_gpu_power_watts watts",
		NULL,
	};
	struct snapshot snapshot = { 0 };
	struct prometheus_input input = { .snapshot = &snapshot };
	char *text;

	made_busy(&snapshot, 1, 0);
	text = write_it(&input, (struct prometheus_opts){ .openmetrics = true });
	expect_lines(text, lines);
	cr_expect_str_eq(text + strlen(text) - 6, "# EOF\n");
	free(text);
	text = write_it(&input, (struct prometheus_opts){ 0 });
	cr_expect(!strstr(text, "EOF") && !strstr(text, "UNIT"));
	free(text);
	snapshot_done(&snapshot);
}

Test(prometheus, a_lost_card_is_down_and_one_that_is_gone_says_nothing_else)
{
	struct snapshot snapshot = { 0 };
	struct prometheus_input input = { .snapshot = &snapshot };
	char *text;

	made_busy(&snapshot, 2, 0);
	snapshot.boards.at[0].state = BOARD_GONE;
	snapshot.boards.at[1].state = BOARD_LOST;
	text = write_it(&input, (struct prometheus_opts){ .dcgm_names = true });
	cr_expect(has_line(text, "sonde_gpu_up{" CARD_0 "} 0"), "%s", text);
	cr_expect(!strstr(text, "sonde_gpu_power_watts{gpu=\"0\""), "%s", text);
	cr_expect(!strstr(text, "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\""), "%s", text);
	free(text);
	snapshot_done(&snapshot);
}

static const struct proc *find_made(void *arg, int64_t pid)
{
	struct proc *proc = arg;

	return pid == proc->pid ? proc : NULL;
}

Test(prometheus, commands_and_users_only_when_asked_for_and_escaped)
{
	struct proc proc = {
		.pid = 4000,
		.user = "mallory",
		.command = "a\"b\\c\nd \xff",
		.group.container_id = "0123",
		.pod = "train-0",
		.namespace = "ml",
	};
	struct snapshot snapshot = { 0 };
	struct prometheus_input input = { .snapshot = &snapshot,
					  .find_proc = find_made,
					  .arg = &proc };
	char *text;

	made_busy(&snapshot, 1, 0);
	text = write_it(&input, (struct prometheus_opts){ 0 });
	cr_expect(!strstr(text, "mallory") && !strstr(text, "command"), "%s", text);
	cr_expect(has_line(text, "sonde_gpu_process_memory_bytes{" CARD_0
				 ",pid=\"4000\",namespace=\"ml\",pod=\"train-0\","
				 "container=\"0123\"} 64000000000"),
		  "%s", text);
	free(text);
	text = write_it(&input, (struct prometheus_opts){ .processes = true });
	cr_expect(strstr(text, "user=\"mallory\",command=\"a\\\"b\\\\c\\nd \xef\xbf\xbd\"} 1\n"),
		  "%s", text);
	free(text);
	proc.state = PROC_FOREIGN;
	text = write_it(&input, (struct prometheus_opts){ .processes = true });
	cr_expect(!strstr(text, "mallory") && !strstr(text, "train-0"), "%s", text);
	free(text);
	snapshot_done(&snapshot);
}

Test(prometheus, an_instance_has_its_card_s_number_and_bus)
{
	struct snapshot snapshot = { 0 };
	struct prometheus_input input = { .snapshot = &snapshot };
	char *text;

	made_busy(&snapshot, 2, 0);
	made_set(made_instance(&snapshot, 1), METRIC_sm_active_pct, 25);
	text = write_it(&input, (struct prometheus_opts){ 0 });
	cr_expect(has_line(text, "sonde_gpu_sm_active_ratio{gpu=\"1\",uuid=\"MIG-made\","
				 "pci_bus=\"0000:81:00.0\",mig_profile=\"1g.18gb\","
				 "gpu_instance=\"7\",compute_instance=\"0\"} 0.25"),
		  "%s", text);
	free(text);
	snapshot.boards.at[2].parent = 99;
	free(write_it(&input, (struct prometheus_opts){ .dcgm_names = true }));
	snapshot_done(&snapshot);
}

Test(prometheus, the_six_dcgm_names_have_dcgm_s_labels_and_units)
{
	static const char *const names[] = {
		"DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE",
		"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED",  "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
	};
	static const double values[] = { 1545, 56, 687.25, 57, 65536, 0.71 };
	struct proc proc = { .pid = 4000, .pod = "train-0", .namespace = "ml", .container = "c" };
	struct snapshot snapshot = { 0 };
	struct prometheus_input input = {
		.snapshot = &snapshot, .find_proc = find_made, .arg = &proc, .hostname = "node-7"
	};
	char *text;

	made_busy(&snapshot, 1, 0);
	text = write_it(&input, (struct prometheus_opts){ 0 });
	cr_expect(!strstr(text, "DCGM"));
	free(text);
	text = write_it(&input, (struct prometheus_opts){ .dcgm_names = true });
	for (size_t i = 0; i < 6; i++) {
		struct buf line = { 0 };

		buf_printf(&line,
			   "%s{gpu=\"0\",UUID=\"GPU-00000000-made\","
			   "pci_bus_id=\"00000000:80:00.0\",device=\"nvidia0\","
			   "modelName=\"NVIDIA H200\",Hostname=\"node-7\",container=\"c\","
			   "namespace=\"ml\",pod=\"train-0\"} %g",
			   names[i], values[i]);
		cr_expect(has_line(text, line.at), "no %s in\n%s", line.at, text);
		buf_done(&line);
	}
	free(text);
	snapshot_done(&snapshot);
}

Test(prometheus, faults_find_their_card_with_and_without_function)
{
	static const struct prometheus_xid xids[] = {
		{ "0000:80:00", 79, 2, 1700000000500000000 },
		{ "0000:99:00.0", 31, 1, 1700000001000000000 },
		{ "0000:80:00.0", 99999, 1, 1700000001000000000 },
	};
	struct snapshot snapshot = { 0 };
	struct prometheus_input input = { .snapshot = &snapshot, .xids = xids, .xid_count = 3 };
	char *text;

	made_busy(&snapshot, 1, 0);
	text = write_it(&input, (struct prometheus_opts){ 0 });
	cr_expect(has_line(text, "sonde_gpu_xid_errors_total{" CARD_0
				 ",xid=\"79\",severity=\"fatal\"} 2"),
		  "%s", text);
	cr_expect(has_line(text, "sonde_gpu_xid_last_timestamp_seconds{" CARD_0
				 ",xid=\"79\",severity=\"fatal\"} 1700000000.5"),
		  "%s", text);
	cr_expect(has_line(text, "sonde_gpu_xid_errors_total{pci_bus=\"0000:99:00.0\",xid=\"31\","
				 "severity=\"error\"} 1"),
		  "%s", text);
	cr_expect(has_line(text, "sonde_gpu_xid_errors_total{" CARD_0 ",xid=\"99999\"} 1"), "%s",
		  text);
	free(text);
	snapshot_done(&snapshot);
}

/* Everything that can be shown at once. */
static void fill_all(struct snapshot *snapshot)
{
	struct board *board;

	made_busy(snapshot, 2, 0);
	board = &snapshot->boards.at[0];
	for (size_t i = 0; i < METRIC_COUNT; i++)
		made_set(board, (enum metric)i, 1);
	made_process(snapshot, 0, 4000, 1); /* a row that repeats another */
	made_process(snapshot, 77, 1, 1);   /* and one of no board */
	made_process(snapshot, 1, 5000, 1)->gpu_instance = 1;
	made_process(snapshot, 1, 5000, 1)->gpu_instance = 2;
}

/* Prometheus drops an answer that has one series twice or a family in two parts. */
static void check_unique(const char *text)
{
	char *copy = mem_text(text);
	struct str rest = str_of(copy);
	VEC(struct str) seen = { 0 };

	while (rest.len) {
		struct str line = str_cut(&rest, '\n');
		const char *end = memrchr(line.at, ' ', line.len);

		cr_assert(end, "%.*s", (int)line.len, line.at);
		if (!str_starts(line, "# HELP"))
			line.len = (size_t)(end - line.at);
		else
			line.len = (size_t)(strchr(line.at + 7, ' ') - line.at);
		for (size_t i = 0; i < seen.count; i++)
			cr_expect(!str_same(seen.at[i], line), "twice: %.*s", (int)line.len,
				  line.at);
		if (!str_starts(line, "# TYPE") && !str_starts(line, "# UNIT"))
			*VEC_ADD(&seen) = line;
	}
	VEC_DONE(&seen);
	free(copy);
}

Test(prometheus, no_series_comes_twice)
{
	struct proc proc = { .pid = 4000, .user = "u", .command = "c" };
	struct snapshot snapshot = { 0 };
	struct prometheus_input input = { .snapshot = &snapshot,
					  .find_proc = find_made,
					  .arg = &proc };

	fill_all(&snapshot);
	for (int i = 0; i < 2; i++) {
		char *text = write_it(&input, (struct prometheus_opts){
						      .openmetrics = i,
						      .dcgm_names = true,
						      .processes = true,
					      });

		check_unique(text);
		free(text);
	}
	snapshot_done(&snapshot);
}

Test(prometheus, the_page_lists_each_name)
{
	static const struct prometheus_xid xid = { "0000:80:00", 79, 2, 1 };
	struct proc proc = { .pid = 4000, .user = "u", .command = "c" };
	struct snapshot snapshot = { 0 };
	struct prometheus_input input = { .snapshot = &snapshot,
					  .find_proc = find_made,
					  .arg = &proc,
					  .xids = &xid,
					  .xid_count = 1,
					  .own = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } };
	FILE *file = fopen(SOURCE_DIR "/doc/formats/prometheus.md", "re");
	struct buf page = { 0 };
	char *text;

	cr_assert(file);
	page.len = fread(buf_room(&page, 1 << 20), 1, 1 << 20, file);
	buf_char(&page, '\n');
	(void)fclose(file);
	fill_all(&snapshot);
	text = write_it(&input, (struct prometheus_opts){ .dcgm_names = true, .processes = true });
	for (const char *at = text; (at = strstr(at, "# TYPE ")); at++) {
		struct buf name = { 0 };

		buf_printf(&name, "`%.*s`", (int)strcspn(at + 7, " "), at + 7);
		cr_expect(strstr(page.at, name.at), "%s is not in doc/formats/prometheus.md",
			  name.at);
		buf_done(&name);
	}
	free(text);
	buf_done(&page);
	snapshot_done(&snapshot);
}
