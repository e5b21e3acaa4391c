#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/i18n.h"
#include "golden.h"
#include "made_facts.h"
#include "present/present.h"

static const struct rule RULE_STARVED = {
	.id = "gpu_starved", .title = "starved", .why = "", .layer = LAYER_TIMELINE
};
static const struct rule RULE_POWER = {
	.id = "power_wall", .title = "power", .why = "", .layer = LAYER_SYSTEM
};
static const struct rule RULE_COALESCE = {
	.id = "uncoalesced", .title = "coalesce", .why = "", .layer = LAYER_KERNEL
};

static const char LONG_KERNEL[] =
	"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
	"std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, "
	"3ul>)";

static void add_timeline(struct made *made)
{
	struct facts *facts = &made->facts;
	uint32_t gpu = made_device(made, 0, "NVIDIA H200");
	struct device_fact *device = made_device_fact(made, gpu);
	struct during *during;

	facts->has_timeline = true;
	facts->start_ns = 0;
	facts->end_ns = 330000000;
	device->has_timeline = true;
	device->window_ns = 330000000;
	device->before_ns = 10000000;
	device->after_ns = 7000000;
	device->span_ns = 313000000;
	device->busy_ns = 20500000;
	device->working_ns = 20500000;
	device->idle_ns = 292500000;
	device->kernel_ns = 19038267;
	device->kernel_sum_ns = 19043611;
	device->copy_ns = 1400000;
	device->kernel_count = 1200;
	device->coverage = 0.98;
	device->delay_p50_ns = 8200;
	device->delay_p95_ns = 91000;
	device->small_kernels = 800;
	device->small_kernel_ns = 4000000;
	device->idle[IDLE_HOST_LATE] = (struct idle_fact){
		.cause = IDLE_HOST_LATE, .ns = 250000000, .count = 120, .longest_ns = 51100000
	};
	during = VEC_ADD(&device->idle[IDLE_HOST_LATE].during);
	during->kind = ACTIVITY_RANGE;
	during->phase = PHASE_LOADER;
	during->name = made_string(made, "enumerate(DataLoader)#_SingleProcessDataLoaderIter"
					 ".__next__");
	during->ns = 220000000;
	during = VEC_ADD(&device->idle[IDLE_HOST_LATE].during);
	during->kind = ACTIVITY_OP;
	during->phase = PHASE_OTHER;
	during->name = made_string(made, "aten::copy_");
	during->ns = 12000000;
	device->idle[IDLE_SYNC_BLOCKED] = (struct idle_fact){
		.cause = IDLE_SYNC_BLOCKED, .ns = 42000000, .count = 16, .longest_ns = 9000000
	};
	device->idle[IDLE_UNATTRIBUTED] = (struct idle_fact){
		.cause = IDLE_UNATTRIBUTED, .ns = 500000, .count = 3, .longest_ns = 300000
	};
	made_kernel(made, gpu, LONG_KERNEL, 600, 9000)->share = 0.28;
	made_kernel(made, gpu, "ampere_sgemm_128x64_nn", 100, 80000);
	made_kernel(made, gpu,
		    "void (anonymous namespace)::softmax_warp_forward<float, 8>(float*, int)", 100,
		    12000);
	made_kernel(made, gpu, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", 4,
		    120000)
		->collective = true;
	session_loss(made->session, 0, LOSS_seen, 42166);
}

static void add_tables(struct made *made)
{
	struct facts *facts = &made->facts;

	*VEC_ADD(&facts->ops) = (struct op_fact){ .name = made_string(made, "aten::convolution"),
						  .count = 96,
						  .cpu_self_ns = 1200000,
						  .cpu_total_ns = 9100000,
						  .gpu_self_ns = 0,
						  .gpu_total_ns = 6400000,
						  .phase = PHASE_FORWARD };
	*VEC_ADD(&facts->ops) = (struct op_fact){ .name = made_string(made, "数据增强::旋转"),
						  .count = 8,
						  .cpu_self_ns = 1100000,
						  .cpu_total_ns = 1100000,
						  .gpu_self_ns = FACT_UNKNOWN,
						  .gpu_total_ns = FACT_UNKNOWN,
						  .phase = PHASE_OTHER };
	*VEC_ADD(&facts->copies) = (struct copy_fact){ .device = 0,
						       .kind = COPY_HTOD,
						       .pageable = 1,
						       .count = 8,
						       .bytes = 12584960,
						       .sum_ns = 1200000,
						       .union_ns = 1200000,
						       .gbps = 10.5,
						       .link_peak_gbps = 63 };
	*VEC_ADD(&facts->copies) = (struct copy_fact){ .device = 0,
						       .kind = COPY_DTOH,
						       .pageable = -1,
						       .count = 16,
						       .bytes = 64,
						       .sum_ns = 24000,
						       .union_ns = 24000,
						       .gbps = NAN,
						       .link_peak_gbps = NAN,
						       .tiny_count = 16 };
	*VEC_ADD(&facts->calls) = (struct call_fact){
		.name = made_string(made, "cudaLaunchKernel"),
		.count = 1200,
		.sum_ns = 9600000,
		.max_ns = 110000,
	};
	*VEC_ADD(&facts->calls) = (struct call_fact){
		.name = made_string(made, "cudaStreamSynchronize"),
		.count = 16,
		.sum_ns = 8800000,
		.max_ns = 2000000,
		.synchronising = true,
	};
	*VEC_ADD(&facts->phases) = (struct phase_fact){ .phase = PHASE_LOADER,
							.count = 4,
							.wall_ns = 230000000,
							.gpu_ns = 0,
							.idle_ns = 220000000 };
	facts->steps.source = "profiler steps";
	facts->steps.name = made_string(made, "ProfilerStep");
	facts->steps.p50_ns = 75000000;
	facts->steps.p95_ns = facts->steps.p99_ns = 91000000;
	for (int i = 0; i < 4; i++)
		*VEC_ADD(&facts->steps.step) =
			(struct step){ .start_ns = i * 75000000, .end_ns = (i + 1) * 75000000 };
	facts->steps.step.at[2].outlier = true;
	*VEC_ADD(&facts->steps.step.at[2].differs) = "idle 12.1 ms more";
}

static void add_findings(struct made *made)
{
	struct finding *finding = made_finding(made, &RULE_STARVED, SEVERITY_BAD);

	finding->title = "The GPU waits for the data loader";
	finding->claim = "In 250 ms of 313 ms nothing was queued on GPU 0, and for 220 ms of that "
			 "the launching thread was inside the data loader.";
	finding->impact_low_ns = 200000000;
	finding->impact_high_ns = 250000000;
	finding->impact_share = 0.8;
	finding->coverage = 0.98;
	*VEC_ADD(&finding->evidence) =
		(struct evidence){ "idle.host_late", 250000000, "ns", "device 0" };
	*VEC_ADD(&finding->evidence) = (struct evidence){ "phases.loader", 0.88, "share", "" };
	*VEC_ADD(&finding->advice) = "Let worker processes load: num_workers=8, "
				     "persistent_workers=True.";
	*VEC_ADD(&finding->advice) = "Pin the memory and prefetch two batches.";
	*VEC_ADD(&finding->next) = "sonde sql PROFILE \"select name, sum(duration_ns) from op "
				   "group by name\"";
	finding->runner_up = "sync_readback";
	finding = made_finding(made, &RULE_COALESCE, SEVERITY_WARN);
	finding->title = "Loads ask for sectors that are thrown away";
	finding->claim = "28 of 32 bytes fetched are not used.";
	finding->grade = GRADE_MEDIUM;
	finding->held_back = true;
	finding->held_back_why = "held back: \"What is coarser\" explains more of the time; "
				 "mend that first";
	*VEC_ADD(&made->findings.abstained) = "launch_bound: only 41 % of launches matched";
}

static struct made *whole(void)
{
	struct made *made = made_new("kineto", "train_slow.json.gz");

	add_timeline(made);
	add_tables(made);
	add_findings(made);
	return made;
}

static struct made *board_only(void)
{
	struct made *made = made_new("smi_dmon", "dmon.txt");
	struct device_fact *device = made_device_fact(made, made_device(made, 0, ""));
	struct finding *finding;

	device->has_system = true;
	device->system.samples = 181;
	device->system.interval_ns = 1000000000;
	device->system.interval_assumed = true;
	device->system.character = CHARACTER_BURSTY;
	made_metric(device, METRIC_util_pct, 181, 0, 43.5, 100);
	made_metric(device, METRIC_power_w, 181, 76, 322, 693);
	made_metric(device, METRIC_sm_mhz, 181, 345, 1700, 1980);
	made_metric(device, METRIC_temp_c, 181, 30, 41, 56);
	*VEC_ADD(&device->episodes) = (struct episode){ .reason = "power",
							.start_ns = 120000000000,
							.end_ns = 150000000000,
							.first_sample = 120,
							.last_sample = 150,
							.mhz_lost = 480,
							.mhz_before = 1980,
							.mhz_in = 1500,
							.power_w = 691,
							.temp_c = NAN };
	finding = made_finding(made, &RULE_POWER, SEVERITY_WARN);
	finding->title = "GPU 0 runs into its power limit";
	finding->claim = "From sample 120 to 150 the SM clock was at 1500 instead of 1980 MHz.";
	return made;
}

static struct made *counters_only(void)
{
	struct made *made = made_new("ncu_csv", "cases_raw.csv.gz");
	uint32_t gpu = made_device(made, 0, "NVIDIA H200");
	struct kernel_fact *kernel =
		made_kernel(made, gpu, "copy_strided(float*, const float*)", 0, 0);

	kernel->counter_launches = 1;
	kernel->has_bound = kernel->has_counters = true;
	kernel->bound = (struct bound_fact){ .bound = BOUND_L2,
					     .unit = "lts",
					     .grade = GRADE_HIGH,
					     .runner_up_unit = "",
					     .next = "" };
	kernel->counters.duration_ns = 171000;
	kernel->counters.sm_pct = 25.2;
	kernel->counters.memory_pct = 93;
	kernel->counters.dram_pct = 24;
	*VEC_ADD(&kernel->stalls) = (struct stall_share){ "long_scoreboard", 0.9 };
	kernel = made_kernel(made, gpu, "one_block(float*)", 0, 0);
	kernel->counter_launches = 1;
	kernel->has_bound = true;
	kernel->bound = (struct bound_fact){ .bound = BOUND_SMALL_GRID,
					     .unit = "",
					     .grade = GRADE_MEDIUM,
					     .runner_up_unit = "",
					     .next = "" };
	return made;
}

static struct made *host_only(void)
{
	struct made *made = made_new("kineto", "cpu.json");

	made->facts.has_timeline = made->facts.no_device_activity = true;
	made->session->sources.at[0].no_device_activity = true;
	*VEC_ADD(&made->facts.ops) = (struct op_fact){ .name = made_string(made, "aten::mm"),
						       .count = 5,
						       .cpu_self_ns = 120000,
						       .cpu_total_ns = 130000,
						       .gpu_self_ns = FACT_UNKNOWN,
						       .gpu_total_ns = FACT_UNKNOWN };
	session_loss(made->session, 0, LOSS_seen, 75);
	return made;
}

static struct buf text_of(struct made *made, struct present_style style)
{
	struct buf out = { 0 };

	present_text(&made->facts, &made->findings, &style, &out);
	made_keep(out.at);
	return out;
}

static struct buf json_of(struct made *made)
{
	struct buf out = { 0 };

	present_json(&made->facts, &made->findings, &out);
	made_keep(out.at);
	return out;
}

#define GOLDEN(name, made, ...)                                                          \
	Test(present, name)                                                              \
	{                                                                                \
		struct buf out = text_of(made(), (struct present_style){ __VA_ARGS__ }); \
                                                                                         \
		check_golden(#name ".txt", &out);                                        \
	}

GOLDEN(a_whole_report, whole, .columns = 80, .utf8 = true)
GOLDEN(a_report_in_ascii, whole, .columns = 80)
GOLDEN(a_report_on_a_wide_terminal, whole, .columns = 120, .utf8 = true)
GOLDEN(a_report_in_colour, whole, .columns = 80, .utf8 = true, .colour = true)
GOLDEN(samples_of_the_board_alone, board_only, .columns = 80, .utf8 = true)
GOLDEN(counters_alone, counters_only, .columns = 80, .utf8 = true)
GOLDEN(a_trace_of_the_host_alone, host_only, .columns = 80, .utf8 = true)

/* Every metric at once, each as wide as it gets. */
static struct made *all_metrics(void)
{
	struct made *made = made_new("smi_dmon", "dmon.txt");
	struct device_fact *device = made_device_fact(made, made_device(made, 0, ""));

	device->has_system = true;
	device->system.samples = 100;
	for (int i = 0; i < METRIC_COUNT; i++) {
		const char *unit = metric_unit(i);
		double value = !strcmp(unit, "B")     ? 1.5e11
			       : !strcmp(unit, "B/s") ? 1.23e8
			       : !strcmp(unit, "MHz") ? 1980
						      : 88.8;

		made_metric(device, i, 100, value * 0.999, value, value);
	}
	return made;
}

Test(present, labels_of_metrics_are_never_shortened)
{
	static const char *const langs[] = { "en", "zh" };
	struct present_style style = { .columns = 80, .utf8 = true };

	for (size_t i = 0; i < sizeof(langs) / sizeof(*langs); i++) {
		struct buf out;

		cr_assert(i18n_choose(langs[i]), "%s", langs[i]);
		out = text_of(all_metrics(), style);
		cr_assert_not_null(strstr(out.at, i ? "板卡功率" : "board power"));
		cr_assert_null(strstr(out.at, "…"), "%s", out.at);
	}
}

Test(present, what_never_changes_takes_no_row)
{
	struct made *made = board_only();
	struct device_fact *device = &made->facts.devices.at[0];
	struct buf text;

	made_metric(device, METRIC_power_limit_w, 181, 700, 700, 700);
	made_metric(device, METRIC_pcie_gen, 181, 5, 5, 5);
	made_metric(device, METRIC_sm_active_pct, 1, 8, 8, 8);
	text = text_of(made, (struct present_style){ .columns = 100, .utf8 = true });
	cr_assert_not_null(strstr(text.at, "\n  board power "));
	cr_assert_null(strstr(text.at, "700 W  "));
	cr_assert_not_null(strstr(text.at, "The same in all samples: power limit 700 W; PCIe "
					   "generation 5."),
			   "%s", text.at);
	cr_assert_not_null(strstr(text.at, "Sampled once: SMs with work 8 %."));
}

/* A line may be longer than the page only if it holds one word that is. */
static void check_width(const struct buf *out, int columns)
{
	char *text = out->at;

	for (char *line = strtok_r(text, "\n", &text); line; line = strtok_r(NULL, "\n", &text)) {
		const char *word = line + strspn(line, " ");

		if (present_width(line) > columns)
			cr_assert_null(strchr(word, ' '), "%d cells: %s", present_width(line),
				       line);
	}
}

Test(present, no_line_is_wider_than_the_page)
{
	static struct made *(*const all[])(void) = { whole, board_only, counters_only, host_only };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		for (int columns = 60; columns < 140; columns++) {
			struct present_style style = { .columns = columns, .utf8 = columns % 2 };
			struct buf out = text_of(all[i](), style);

			check_width(&out, columns);
			buf_done(&out);
		}
	}
}

/* Names as long as C++ makes them, and longer words than a line. */
static struct made *seen_at(void)
{
	static const char template[] = "at::native::(anonymous namespace)::cpu_masked_fill_kernel_"
				       "impl<float, bool>(at::TensorIterator&)";
	struct made *made = made_new("cuda", "train.prof");
	struct idle_fact *idle;
	char word[201];

	add_timeline(made);
	(void)memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = 0;
	idle = made->facts.devices.at[0].idle;
	for (int cause = 0; cause < IDLE_COUNT; cause++) {
		if (!idle[cause].ns)
			continue;
		idle[cause].thread_state =
			cause == IDLE_HOST_LATE
				? arena_printf(&made->facts.arena, "waiting: %s", word)
				: "waiting: futex";
		idle[cause].thread_looks = idle[cause].thread_state_looks = INT32_MAX;
		idle[cause].python = made_string(made, word);
		idle[cause].python_looks = idle[cause].python_function_looks = 472;
		idle[cause].cpu = made_string(made, cause == IDLE_HOST_LATE ? template : word);
		idle[cause].cpu_samples = idle[cause].cpu_function_samples = 472;
		*VEC_ADD(&idle[cause].board) = "Xid 79, the card has fallen off the bus, on a card "
					       "with a long name, 3 ms into it";
	}
	return made;
}

Test(present, a_function_that_is_known_in_two_ways_is_shown_once)
{
	struct present_style style = { .columns = 100, .utf8 = true };

	for (int same = 0; same < 2; same++) {
		struct made *made = seen_at();
		struct idle_fact *idle = made->facts.devices.at[0].idle;
		struct buf out;

		for (int cause = 0; cause < IDLE_COUNT; cause++) {
			idle[cause].python = made_string(made, "collate data.py:41");
			idle[cause].cpu = made_string(made, "collate data.py");
			idle[cause].cpu_is_python = same;
		}
		out = text_of(made, style);
		cr_assert(strstr(out.at, "in Python: collate data.py:41"));
		cr_assert_eq(strstr(out.at, "on a core: ") == NULL, same);
		buf_done(&out);
	}
}

Test(present, a_finding_on_programs_alone_is_the_verdict)
{
	struct made *made = made_new("smi_pmon", "pmon.txt");
	struct finding *finding = finding_add(&made->findings, &RULE_POWER, SEVERITY_WARN);
	struct buf out;

	finding->claim = "two on one";
	out = text_of(made, (struct present_style){ .columns = 80 });
	cr_assert_null(strstr(out.at, "Nothing that can be judged"), "%s", out.at);
	cr_assert_not_null(strstr(out.at, "> power.\n"), "%s", out.at);
	buf_done(&out);
}

Test(present, steps_go_by_what_their_names_have_in_common)
{
	cr_assert_eq(step_name_bytes("ProfilerStep#3"), 12);
	cr_assert_eq(step_name_bytes("step 3"), 6);
	cr_assert_eq(step_name_bytes("#3"), 2);
	cr_assert_eq(step_name_bytes(""), 0);
}

Test(present, how_often_a_thread_was_seen_stays_on_the_page)
{
	static const char *const langs[] = { "en", "zh" };
	static const char *const often[] = { ", in 472 of 472 looks", "472 次" };
	static const char *const words[] = { "it waited for another", "在等另一个" };

	for (size_t i = 0; i < sizeof(langs) / sizeof(*langs); i++) {
		cr_assert(i18n_choose(langs[i]), "%s", langs[i]);
		for (int columns = 60; columns < 140; columns += 5) {
			struct present_style style = { .columns = columns, .utf8 = true };
			struct buf out = text_of(seen_at(), style);

			cr_assert_not_null(strstr(out.at, often[i]), "%s", out.at);
			cr_assert_not_null(strstr(out.at, words[i]), "%s", out.at);
			for (char *text = out.at, *line; (line = strtok_r(text, "\n", &text));)
				cr_assert_leq(present_width(line), columns, "%s", line);
			buf_done(&out);
		}
	}
}

Test(present, notes_are_in_the_readers_language)
{
	static const char *const langs[] = { "en", "zh" };
	static const char *const says[] = {
		"process 5: no PC sampling (CUPTI 10, no permission): no stall reasons",
		"进程 5：没有 PC 采样（CUPTI 10，没有权限）：没有停顿原因",
	};
	static const char other[] = "they said: so";
	struct present_style style = { .columns = 200, .utf8 = true };

	for (size_t i = 0; i < sizeof(langs) / sizeof(*langs); i++) {
		struct made *made = host_only();
		struct buf out;

		session_note(made->session, 0, "%s", says[0]);
		session_note(made->session, 0, "-q: values that are absent: %s",
			     "11 x not available, 10 x not found, 1 x so");
		session_note(made->session, 0, "%s", other);
		cr_assert(i18n_choose(langs[i]), "%s", langs[i]);
		out = text_of(made, style);
		cr_assert_not_null(strstr(out.at, says[i]), "%s", out.at);
		cr_assert_not_null(
			strstr(out.at, i ? "-q：缺少的值：11 个不可用，10 个未找到，1 个so"
					 : "11 x not available, 10 x not found, 1 x so"),
			"%s", out.at);
		cr_assert_not_null(strstr(out.at, other), "%s", out.at);
		buf_done(&out);
	}
}

Test(present, ascii_pages_hold_ascii_only)
{
	struct buf out = text_of(whole(), (struct present_style){ .columns = 80 });

	for (size_t i = 0; i < out.len; i++)
		cr_assert((unsigned char)out.at[i] < 0x80, "byte %zu", i);
}

Test(present, names_cannot_drive_the_terminal)
{
	struct made *made = host_only();
	struct buf out;

	made->facts.ops.at[0].name = made_string(made, "evil\33[2Jname\x9b");
	out = text_of(made, (struct present_style){ .columns = 80, .utf8 = true });
	cr_assert_null(strchr(out.at, '\33'));
	cr_assert_not_null(strstr(out.at, "evil?[2Jname?"));
}

Test(present, a_layer_shows_its_sections_and_findings_only)
{
	struct buf out = text_of(
		whole(), (struct present_style){ .columns = 80, .layers = 1 << LAYER_KERNEL });

	cr_assert_null(strstr(out.at, "data loader"));
	cr_assert_not_null(strstr(out.at, "ampere_sgemm"));
}

Test(present, top_limits_the_rows_and_says_how_many_more)
{
	struct buf out = text_of(whole(), (struct present_style){ .columns = 80, .top = 1 });

	cr_assert_null(strstr(out.at, "softmax_warp"));
	cr_assert_not_null(strstr(out.at, "and 3 more"));
}

Test(present, absent_is_left_out_of_json_and_a_dash_in_text)
{
	struct buf json = json_of(whole());
	struct buf text = text_of(whole(), (struct present_style){ .columns = 80, .utf8 = true });
	char *row;

	cr_assert_null(strstr(json.at, "waiting_ns"));
	cr_assert_null(strstr(json.at, "queue_max"));
	cr_assert_null(strstr(json.at, "\"system\""));
	cr_assert_null(strstr(json.at, "null"));
	cr_assert_not_null(strstr(json.at, "\"link_peak_gbps\": 63"));
	row = strstr(text.at, "device to host");
	cr_assert_not_null(row);
	*strchr(row, '\n') = 0;
	cr_assert_not_null(strstr(row, " - "), "%s", row);
}

/* As `sonde run` leaves it: a source of its own for processes that were only seen. */
static struct made *run_with(const char *other, int64_t other_pid)
{
	struct made *made = made_new(READER_CUDA, "solver (pid 100)");
	struct session *session = made->session;
	uint32_t seen = session_source(session, READER_PROC, "other processes");
	uint32_t row;

	add_timeline(made);
	session_env(session, 0, SESSION_NONE, STR("command"), STR("./solver"));
	(void)session_process(session, 0, 100);
	row = session_process(session, seen, other_pid);
	session->processes.at[row].name = made_string(made, other);
	return made;
}

static const struct present_style PLAIN = { .columns = 100, .utf8 = true, .layers = ~0U };

Test(present, a_process_that_calls_itself_nothing_goes_by_its_number)
{
	struct buf text = text_of(run_with("", 101), PLAIN);

	cr_assert_not_null(strstr(text.at, "process 101, without CUDA or NVTX"), "%s", text.at);
}

Test(present, a_process_that_was_seen_before_it_used_the_card_is_told_once)
{
	struct buf text = text_of(run_with("solver", 100), PLAIN);

	cr_assert_null(strstr(text.at, "without CUDA"), "%s", text.at);
}

Test(present, a_run_without_work_of_a_gpu_is_not_told_to_use_another_tool)
{
	struct made *made = host_only();
	struct buf text;

	text = text_of(made, PLAIN);
	cr_assert_not_null(strstr(text.at, "ProfilerActivity"));
	session_env(made->session, 0, SESSION_NONE, STR("command"), STR("./solver"));
	text = text_of(made, PLAIN);
	cr_assert_null(strstr(text.at, "ProfilerActivity"));
	cr_assert_not_null(strstr(text.at, "No operation of a GPU is in this recording"));
}

Test(present, a_kernel_that_starts_before_its_launch_returns_waits_for_nothing)
{
	struct made *made = whole();
	struct device_fact *device = &made->facts.devices.at[0];
	struct buf text;

	device->delay_p50_ns = 0;
	text = text_of(made, PLAIN);
	cr_assert_null(strstr(text.at, "median 0 ns"));
	cr_assert_not_null(strstr(text.at, "95 % within 91.0 us behind"), "%s", text.at);
	device->delay_p95_ns = 0;
	text = text_of(made, PLAIN);
	cr_assert_not_null(strstr(text.at, "The kernels had started when their launch returned."));
}

Test(present, graphs_that_are_recorded_as_one_are_no_zero_kernels)
{
	struct made *made = whole();
	struct device_fact *device = &made->facts.devices.at[0];
	struct buf text;

	device->graph_count = 20000;
	text = text_of(made, PLAIN);
	cr_assert_not_null(strstr(text.at, "1,200 kernels, 20,000 graphs"));
	device->kernel_count = 0;
	text = text_of(made, PLAIN);
	cr_assert_null(strstr(text.at, "0 kernels"));
	cr_assert_not_null(strstr(text.at, "   20,000 graphs"));
}

Test(present, what_stands_out_in_no_layer_is_not_said_of_one)
{
	struct made *made = made_new(READER_CUDA, "solver (pid 100)");
	struct present_style one = { .columns = 100, .utf8 = true, .layers = 1 << LAYER_KERNEL };
	struct buf text;

	add_timeline(made);
	text = text_of(made, one);
	cr_assert_not_null(strstr(text.at, "In this layer nothing stands out."));
	one.layers = 0;
	text = text_of(made, one);
	cr_assert_not_null(strstr(text.at, ". Nothing stands out."));
}

Test(present, what_a_context_took_is_not_laid_on_the_call_that_made_it)
{
	struct made *made = whole();
	struct buf text;

	*VEC_ADD(&made->facts.calls) = (struct call_fact){ .name = made_string(made, "cudaFree"),
							   .count = 3,
							   .sum_ns = 108000000,
							   .max_ns = 107000000,
							   .context_ns = 107000000 };
	text = text_of(made, PLAIN);
	cr_assert_not_null(
		strstr(text.at, "107 ms of cudaFree went into calls that made a context first."));
}

Test(present, a_table_of_phases_needs_one)
{
	struct made *made = whole();
	struct phase_fact other = { .phase = PHASE_OTHER, .wall_ns = FACT_UNKNOWN, .gpu_ns = 7 };
	struct buf text;

	*VEC_ADD(&made->facts.phases) = other;
	text = text_of(made, PLAIN);
	cr_assert_not_null(strstr(text.at, "\n  other            -          -"), "%s", text.at);
	made->facts.phases.at[0] = other;
	made->facts.phases.count = 1;
	text = text_of(made, PLAIN);
	cr_assert_null(strstr(text.at, "Phases"));
}

Test(present, what_hangs_is_told_before_what_had_ended)
{
	struct made *made = made_new(READER_CUDA, "solver (pid 100)");
	struct finding *finding = VEC_ADD(&made->findings.at);
	struct buf text;

	add_timeline(made);
	*finding = (struct finding){ .rule = &rule_open_wait,
				     .severity = SEVERITY_BAD,
				     .title = "cudaStreamSynchronize has not returned",
				     .claim = "" };
	text = text_of(made, PLAIN);
	cr_assert_not_null(strstr(text.at, "cudaStreamSynchronize has not returned. Before that: "
					   "GPU 0 was busy"),
			   "%s", text.at);
}

Test(present, json_of_a_host_trace_has_no_device)
{
	struct buf json = json_of(host_only());

	cr_assert_not_null(strstr(json.at, "\"no_device_activity\": true"));
	cr_assert_not_null(strstr(json.at, "\"devices\": []"));
	cr_assert_null(strstr(json.at, "busy_ns"));
	cr_assert_null(strstr(json.at, "gpu_total_ns"));
}

Test(present, impact_is_a_range)
{
	struct buf json = json_of(whole());
	const char *at = strstr(json.at, "\"impact_ns\"");

	cr_assert_not_null(at);
	at = strstr(at, "200000000");
	cr_assert_not_null(at);
	cr_assert_not_null(strstr(at, "250000000"));
	cr_assert_null(strstr(at + 9, "impact_ns"));
}

Test(present, a_cost_says_of_which_time_it_is_a_share)
{
	static const struct {
		enum stretch of;
		const char *text, *json;
	} cases[] = {
		{ STRETCH_SPAN, "up to 80 % of the span\n", "\"span\"" },
		{ STRETCH_WHOLE, "up to 80 % of the whole span, set-up included\n", "\"span\"" },
		{ STRETCH_STEADY, "up to 80 % of the steady part\n", "\"steady\"" },
		{ STRETCH_STEPS, "up to 80 % of the time in steps\n", "\"steps\"" },
		{ STRETCH_SAMPLES, "up to 80 % of the time that was sampled\n", "\"samples\"" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct made *made = whole();
		const char *at;

		made->findings.at.at[0].impact_of = cases[i].of;
		cr_assert_not_null(strstr(text_of(made, (struct present_style){ .columns = 80 }).at,
					  cases[i].text));
		at = strstr(json_of(made).at, "\"impact_of\":");
		cr_assert_not_null(at);
		cr_assert_eq(strncmp(at + 12 + strspn(at + 12, " "), cases[i].json,
				     strlen(cases[i].json)),
			     0, "%.40s", at);
	}
}

Test(present, what_to_run_next_can_be_typed)
{
	struct made *made = whole();
	struct buf out = text_of(made, (struct present_style){ .columns = 80 });

	cr_assert_not_null(strstr(out.at, "sonde sql run.sonde \"select"));
	cr_assert_null(strstr(out.at, "PROFILE"));
	made->facts.path = "my run.sonde";
	out = text_of(made, (struct present_style){ .columns = 80 });
	cr_assert_not_null(strstr(out.at, "sonde sql PROFILE \"select"));
}

Test(present, a_report_of_a_trace_says_what_a_profile_is)
{
	struct made *made = whole();
	struct buf out;

	made->facts.path = "trace.json.gz";
	out = text_of(made, (struct present_style){ .columns = 80 });
	cr_assert_not_null(strstr(out.at, "sonde sql PROFILE \"select"));
	cr_assert_not_null(strstr(out.at, "PROFILE is what 'sonde import FILE...'"));
}

Test(present, width_counts_cells)
{
	cr_assert_eq(present_width("abc"), 3);
	cr_assert_eq(present_width("内核"), 4);
	cr_assert_eq(present_width("e\xcc\x81"), 1);
	cr_assert_eq(present_width("\xff"), -1);
	cr_assert_eq(present_width("\xe5\x86"), -1);
}

Test(present, context_switches_are_counted_apart_from_records_of_the_device)
{
	struct made *made = host_only();
	uint32_t perf = session_source(made->session, READER_PERF, "context switches");
	struct buf text, json;

	session_loss(made->session, perf, LOSS_seen, 900000);
	session_loss(made->session, perf, LOSS_dropped, 31);
	text = text_of(made, (struct present_style){ .columns = 80 });
	json = json_of(made);
	cr_assert_not_null(strstr(text.at, "  75  records in the file"));
	cr_assert_not_null(strstr(text.at, "900,000  context switches and samples of threads"));
	cr_assert_not_null(strstr(text.at, "31  more of these found no room"));
	cr_assert_null(strstr(text.at, "records that could not be used"));
	cr_assert_not_null(strstr(json.at, "\"seen\": 75,"));
}
