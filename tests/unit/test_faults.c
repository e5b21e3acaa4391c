/* Faults: roles, incidents, patterns, steps, and the rules that tell of them. */
#include <criterion/criterion.h>

#include <math.h>

#include "memory_store.h"
#include "model/fault.h"
#include "read/reader.h"
#include "rules/rule.h"

#define SAYS(text, part) \
	cr_assert_not_null(strstr((text), (part)), "\"%s\" is not in: %s", (part), (text))
#define SILENT(text, part) \
	cr_assert_null(strstr((text), (part)), "\"%s\" is in: %s", (part), (text))

/* Of the one case that runs in this process. */
static struct store *store;
static struct facts *facts;
static struct findings findings;

static void import(const char *text)
{
	OWN(input_closep) struct input *input = input_memory("kern.log", text, strlen(text));
	struct err err = { 0 };
	uint32_t source;

	if (!store)
		store = memory_store_new();
	source = session_source(store->session, "kernel_log", "kern.log");
	cr_assert_eq(reader_kernel_log.read(input, &store->sink, source, &err), 0, "%s", err.line);
}

static void analyze(const char *text)
{
	struct err err = { 0 };

	import(text);
	session_settle(store->session);
	cr_assert_eq(facts_build(store, &facts, &err), 0, "%s", err.line);
}

static const struct fault_group *group_of(int64_t number)
{
	for (size_t i = 0; i < facts->fault_groups.count; i++) {
		if (facts->fault_groups.at[i].first.number == number)
			return &facts->fault_groups.at[i];
	}
	cr_assert_fail("no fault with number %d", (int)number);
	return NULL;
}

static bool has_pattern(const struct fault_group *group, enum fault_pattern_kind kind)
{
	for (size_t i = 0; i < group->patterns.count; i++) {
		if (group->patterns.at[i].kind == kind)
			return true;
	}
	return false;
}

static const struct finding *told(const struct rule *rule)
{
	findings_done(&findings);
	memset(&findings, 0, sizeof(findings));
	rule_apply(facts, rule, &findings);
	return findings.at.count ? &findings.at.at[0] : NULL;
}

static void xid(struct buf *log, double at_s, int number, const char *text)
{
	buf_printf(log, "[%.6f] NVRM: Xid (PCI:0000:9b:00): %d, %s\n", at_s, number, text);
}

/* ---- roles ---- */

Test(faults, a_clean_up_follows_its_cause)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, MMU Fault\n"
		"[10.1] NVRM: Xid (PCI:0000:9b:00): 45, pid=7, name=a, Ch 00000008\n"
		"[10.2] NVRM: Xid (PCI:0000:9b:00): 43, pid=7, name=a, Ch 00000008\n");
	cr_assert_eq(group_of(31)->role[FAULT_ROLE_CAUSE], 1);
	cr_assert_eq(group_of(45)->role[FAULT_ROLE_CONSEQUENCE], 1);
	cr_assert_eq(group_of(43)->role[FAULT_ROLE_CONSEQUENCE], 1);
	cr_assert_eq(group_of(43)->caused_by, (uint32_t)(group_of(31) - facts->fault_groups.at));
	cr_assert_not_null(told(&rule_gpu_fault));
	cr_assert_eq(findings.at.count, 1, "one incident is one finding");
	SAYS(findings.at.at[0].claim, "In its wake: Xid 45, Xid 43.");
}

Test(faults, a_clean_up_alone_is_no_fault)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 45, pid=7, name=a, Ch 00000008\n");
	cr_assert_eq(group_of(45)->role[FAULT_ROLE_CLEANUP], 1);
	cr_assert_null(told(&rule_gpu_fault));
}

Test(faults, what_comes_later_than_an_incident_lasts_is_another)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 48, DBE\n"
		"[20.0] NVRM: Xid (PCI:0000:9b:00): 63, Row Remapper\n"
		"[30.1] NVRM: Xid (PCI:0000:9b:00): 45, Ch 00000008\n");
	cr_assert_eq(group_of(63)->role[FAULT_ROLE_CONSEQUENCE], 1, "within 10 s");
	cr_assert_eq(group_of(45)->role[FAULT_ROLE_CLEANUP], 1, "after more than 10 s");
	cr_assert_eq(facts->fault_incidents, 2);
}

Test(faults, after_a_stopped_channel_the_next_fault_is_a_new_incident)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 13, Graphics Exception\n"
		"[10.1] NVRM: Xid (PCI:0000:9b:00): 13, Graphics Exception\n"
		"[10.2] NVRM: Xid (PCI:0000:9b:00): 43, pid=1, name=a, Ch 1\n"
		"[11.1] NVRM: Xid (PCI:0000:9b:00): 13, Graphics Exception\n"
		"[11.2] NVRM: Xid (PCI:0000:9b:00): 43, pid=2, name=a, Ch 1\n"
		"[12.3] NVRM: Xid (PCI:0000:9b:00): 13, Graphics Exception\n");
	cr_assert_eq(group_of(13)->count, 4);
	cr_assert_eq(group_of(13)->role[FAULT_ROLE_REPEAT], 2, "0.9 s after the stop: the same");
	cr_assert_eq(group_of(13)->incidents, 2, "1.1 s after the stop: another");
}

Test(faults, processes_that_fault_at_once_are_two_causes)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, MMU Fault\n"
		"[10.1] NVRM: Xid (PCI:0000:9b:00): 31, pid=8, name=b, MMU Fault\n"
		"[10.2] NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, MMU Fault\n");
	cr_assert_eq(group_of(31)->role[FAULT_ROLE_CAUSE], 2);
	cr_assert_eq(group_of(31)->role[FAULT_ROLE_REPEAT], 1);
	cr_assert_str_eq(group_of(31)->processes.at[0].name, "a");
	cr_assert_eq(group_of(31)->processes.at[0].count, 2);
}

Test(faults, cards_do_not_explain_each_other)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, MMU Fault\n"
		"[10.1] NVRM: Xid (PCI:0000:18:00): 45, pid=7, name=a, Ch 00000008\n");
	cr_assert_eq(group_of(45)->role[FAULT_ROLE_CLEANUP], 1);
}

Test(faults, a_named_previous_xid_wins_over_the_nearest)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 94, Contained\n"
		"[10.1] NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, MMU Fault\n"
		"[10.2] NVRM: Xid (PCI:0000:9b:00): 45, Ch 8 caused by previous Xid 94\n");
	cr_assert_eq(group_of(45)->caused_by, (uint32_t)(group_of(94) - facts->fault_groups.at));
}

Test(faults, a_previous_xid_that_is_not_there_is_told)
{
	analyze("[10.2] NVRM: Xid (PCI:0000:9b:00): 45, Ch 8 caused by previous Xid 94\n");
	cr_assert_eq(group_of(45)->previous, 94);
	SAYS(told(&rule_gpu_fault)->claim, "names Xid 94 as its cause, whose line is not there");
}

Test(faults, all_that_comes_from_a_lost_card_is_its_wake)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 79, pid=7, name=a, GPU has fallen off the "
		"bus.\n"
		"[10.1] NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.\n"
		"[16.0] NVRM: Xid (PCI:0000:9b:00): 119, pid=9, name=b, Timeout\n"
		"[17.0] NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 "
		"(None) to 0x2 (Node Reboot Required)\n");
	cr_assert_eq(group_of(119)->role[FAULT_ROLE_CONSEQUENCE], 1);
	cr_assert_eq(told(&rule_gpu_fault)->severity, SEVERITY_BAD);
	cr_assert_eq(findings.at.count, 1);
	SAYS(findings.at.at[0].claim, "In its wake: GPU off the bus, Xid 119");
}

Test(faults, the_drivers_own_advice_comes_first)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, MMU Fault\n"
		"[10.1] NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 "
		"(None) to 0x2 (Node Reboot Required)\n");
	cr_assert_eq(told(&rule_gpu_fault)->severity, SEVERITY_BAD, "an action that is fatal");
	SAYS(findings.at.at[0].advice.at[0], "reboot the machine");
}

Test(faults, without_times_near_lines_are_one_incident)
{
	struct buf log = { 0 };

	buf_text(&log, "NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, MMU Fault\n");
	for (int i = 0; i < 19; i++)
		buf_text(&log, "NVRM: GPU4 RPC history (CPU -> GSP):\n");
	buf_text(&log, "NVRM: Xid (PCI:0000:9b:00): 45, pid=7, name=a, Ch 8\n");
	for (int i = 0; i < 20; i++)
		buf_text(&log, "NVRM: GPU4 RPC history (CPU -> GSP):\n");
	buf_text(&log, "NVRM: Xid (PCI:0000:9b:00): 45, pid=7, name=a, Ch 8\n");
	analyze(log.at);
	cr_assert_eq(group_of(45)->role[FAULT_ROLE_CONSEQUENCE], 1, "20 lines on");
	cr_assert_eq(group_of(45)->role[FAULT_ROLE_CLEANUP], 1, "21 lines on");
	cr_assert(!group_of(45)->has_time);
	buf_done(&log);
}

Test(faults, a_rate_limit_makes_counts_lower_bounds)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 119, pid=9, name=b, Timeout\n"
		"[10.0] NVRM: Xid (PCI:0000:9b:00): 31, pid=9, name=b, MMU Fault\n"
		"[11.0] NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00 "
		"(printing 1 of every 30).\n");
	cr_assert(group_of(119)->lower_bound);
	cr_assert(!group_of(31)->lower_bound, "only RPC errors are limited");
}

/* ---- patterns ---- */

/* `count` incidents an hour and a bit apart. */
static void series(int count, int number, const char *const *texts, int text_count, double even)
{
	static const double uneven[] = { 0, 5000, 1300, 700, 9000, 4000, 100, 8000 };
	struct buf log = { 0 };

	for (int i = 0; i < count; i++)
		xid(&log, 100 + i * 36000.0 + (even > 0 ? 0 : uneven[i % 8]), number,
		    texts[i % text_count]);
	analyze(log.at);
	buf_done(&log);
}

static const char *const ONE[] = { "pid=7, name=a, MMU Fault" };
static const char *const TWO[] = { "pid=7, name=a, MMU Fault", "pid=8, name=b, MMU Fault" };

Test(patterns, five_incidents_of_one_process)
{
	series(5, 31, ONE, 1, 0);
	cr_assert(has_pattern(group_of(31), FAULT_PATTERN_PROCESS));
	SAYS(told(&rule_gpu_fault)->claim, "All 5 incidents whose process is known are of a.");
}

Test(patterns, four_are_too_few_to_say)
{
	series(4, 31, ONE, 1, 0);
	cr_assert(!has_pattern(group_of(31), FAULT_PATTERN_PROCESS));
	cr_assert(has_pattern(group_of(31), FAULT_PATTERN_TOO_FEW));
	cr_assert_eq(group_of(31)->patterns.at[0].least, 5);
}

Test(patterns, two_processes_are_none)
{
	series(6, 31, TWO, 2, 0);
	cr_assert(!has_pattern(group_of(31), FAULT_PATTERN_PROCESS));
	cr_assert(has_pattern(group_of(31), FAULT_PATTERN_NONE));
	SAYS(told(&rule_gpu_fault)->claim, "6 incidents show no pattern");
}

Test(patterns, six_that_come_evenly)
{
	series(6, 31, TWO, 2, 1);
	cr_assert(has_pattern(group_of(31), FAULT_PATTERN_INTERVAL));
	SAYS(told(&rule_gpu_fault)->claim, "every 10.0 h");
}

Test(patterns, five_that_come_evenly_are_too_few)
{
	series(5, 31, TWO, 2, 1);
	cr_assert(!has_pattern(group_of(31), FAULT_PATTERN_INTERVAL));
}

static const char *const SAME_SM[] = {
	"Graphics SM Warp Exception on (GPC 1, TPC 2, SM 0): Illegal Instruction"
};
static const char *const TWO_SMS[] = {
	"Graphics SM Warp Exception on (GPC 1, TPC 2, SM 0): Illegal Instruction",
	"Graphics SM Warp Exception on (GPC 4, TPC 2, SM 0): Illegal Instruction",
};

Test(patterns, one_sm_speaks_for_the_board)
{
	series(5, 13, SAME_SM, 1, 0);
	cr_assert(has_pattern(group_of(13), FAULT_PATTERN_PLACE));
	cr_assert_eq(told(&rule_gpu_fault)->severity, SEVERITY_BAD);
	SAYS(findings.at.at[0].claim, "All 5 incidents are on GPC 1 TPC 2 SM 0.");
	SAYS(findings.at.at[0].advice.at[0], "Test the board");
}

Test(patterns, several_sms_speak_for_the_program)
{
	series(6, 13, TWO_SMS, 2, 0);
	cr_assert(!has_pattern(group_of(13), FAULT_PATTERN_PLACE));
	cr_assert_eq(told(&rule_gpu_fault)->severity, SEVERITY_WARN);
}

static const int SPREAD[] = { 1, 13, 4, 22, 9, 18, 7, 15 };

/* One a day at hours of the day around `hour`, `spread` hours wide. */
static void days(int count, int hour, int spread)
{
	struct buf log = { 0 };

	for (int i = 0; i < count; i++)
		buf_printf(&log,
			   "Mar %2d %02d:%02d:00 n kernel: NVRM: Xid (PCI:0000:9b:00): 31, pid=%d, "
			   "name=p%d, MMU Fault\n",
			   i + 1, (hour + SPREAD[i % 8] * spread / 24) % 24, SPREAD[i % 8], i,
			   i % 3);
	analyze(log.at);
	buf_done(&log);
}

Test(patterns, eight_at_one_time_of_the_day)
{
	days(8, 23, 3);
	cr_assert(has_pattern(group_of(31), FAULT_PATTERN_DAYTIME));
	cr_assert_lt(group_of(31)->patterns.at[group_of(31)->patterns.count - 1].p, 0.01);
	/* Around midnight: a mean of hours would say noon. */
	cr_assert(group_of(31)->patterns.at[group_of(31)->patterns.count - 1].value < 3 * 3600 ||
		  group_of(31)->patterns.at[group_of(31)->patterns.count - 1].value > 22 * 3600);
}

Test(patterns, seven_are_too_few_for_a_time_of_the_day)
{
	days(7, 23, 3);
	cr_assert(!has_pattern(group_of(31), FAULT_PATTERN_DAYTIME));
}

Test(patterns, spread_over_the_day_is_no_time_of_the_day)
{
	days(8, 0, 24);
	cr_assert(!has_pattern(group_of(31), FAULT_PATTERN_DAYTIME));
}

/* ---- how bad ---- */

Test(gpu_fault, what_is_to_be_counted_warns_when_it_comes_back)
{
	struct buf log = { 0 };

	xid(&log, 10, 121, "C2C");
	xid(&log, 100, 121, "C2C");
	analyze(log.at);
	cr_assert_eq(told(&rule_gpu_fault)->severity, SEVERITY_NOTE);
	buf_done(&log);
}

Test(gpu_fault, three_times_is_back_again)
{
	struct buf log = { 0 };

	xid(&log, 10, 121, "C2C");
	xid(&log, 100, 121, "C2C");
	xid(&log, 200, 121, "C2C");
	analyze(log.at);
	cr_assert_eq(told(&rule_gpu_fault)->severity, SEVERITY_WARN);
	buf_done(&log);
}

Test(gpu_fault, the_line_of_a_link_says_how_bad_it_is)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 "
		"(0x0409a0c2 0x8)\n");
	cr_assert_eq(told(&rule_gpu_fault)->severity, SEVERITY_NOTE);
}

Test(gpu_fault, one_fatal_line_of_a_link_is_enough)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 "
		"(0x0409a0c2 0x8)\n"
		"[11.0] NVRM: Xid (PCI:0000:9b:00): 145, RLW_RXPIPE Fatal XC0 i0 Link 13 "
		"(0x0409a0c2 0x8)\n");
	cr_assert_eq(told(&rule_gpu_fault)->severity, SEVERITY_BAD);
}

Test(gpu_fault, switches_are_told_by_line_and_catalogue)
{
	analyze("[10.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 x\n"
		"[10.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 y\n");
	cr_assert_eq(told(&rule_gpu_fault)->severity, SEVERITY_BAD);
	SAYS(findings.at.at[0].title, "SXid 20034 (DLPL_LTSSM_FAULT_UP) on NVSwitch 0000:05:00.0");
	cr_assert_eq(findings.at.at[1].severity, SEVERITY_NOTE);
}

Test(gpu_fault, an_unknown_number_is_told_with_less_certainty)
{
	analyze("[10.0] NVRM: Xid (PCI:0000:9b:00): 99999, what\n");
	cr_assert_eq(told(&rule_gpu_fault)->severity, SEVERITY_NOTE);
	cr_assert_eq(findings.at.at[0].grade, GRADE_MEDIUM);
	SAYS(findings.at.at[0].claim, "in no catalogue");
}

Test(gpu_fault, more_kinds_than_findings_are_counted)
{
	struct buf log = { 0 };

	for (int i = 0; i < 8; i++)
		xid(&log, 100.0 * (i + 1), 99990 + i, "what");
	analyze(log.at);
	(void)told(&rule_gpu_fault);
	cr_assert_eq(findings.at.count, 6);
	SAYS(findings.abstained.at[0], "2 further kinds of fault");
	buf_done(&log);
}

Test(gpu_fault, a_log_without_faults_has_no_finding)
{
	analyze("[10.0] usb 1-1: reset\n");
	cr_assert_null(told(&rule_gpu_fault));
	cr_assert_null(told(&rule_host_oom));
	cr_assert_null(told(&rule_driver_mismatch));
}

Test(host_oom, names_the_process_and_whose_limit_it_was)
{
	analyze("[10.0] oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/kubepods/p,task=a,pid=7\n"
		"[10.0] Memory cgroup out of memory: Killed process 7 (a) total-vm:1kB, "
		"anon-rss:2097152kB\n");
	SAYS(told(&rule_host_oom)->claim, "killed a (pid 7)");
	SAYS(findings.at.at[0].claim, "2.00 GiB");
	SAYS(findings.at.at[0].claim, "(/kubepods/p)");
	cr_assert_null(told(&rule_gpu_fault));
}

Test(host_oom, the_machines_own_memory_is_no_limit_of_a_container)
{
	analyze("[10.0] Out of memory: Killed process 7 (a) total-vm:1kB, anon-rss:2kB\n");
	SILENT(told(&rule_host_oom)->claim, "container");
}

Test(driver_mismatch, names_both_versions)
{
	analyze("[1.0] NVRM: API mismatch: the client has the version 1.2, but\n"
		"[1.0] NVRM: this kernel module has the version 1.3.  Please\n");
	SAYS(told(&rule_driver_mismatch)->claim, "library of 1.2 met the kernel module of 1.3");
}

/* ---- steps ---- */

/* Ten steps of 100 ms from `WALL`, the sixth of 900 ms, in a trace in UTC. */
#define WALL_S 1740327858

static void trace(bool utc)
{
	struct session *session;
	struct lane lane = { .kind = LANE_THREAD, .device = SESSION_NONE, .context = -1 };
	struct range range = { .kind = RANGE_STEP };
	struct err err = { 0 };

	store = memory_store_new();
	session = store->session;
	lane.source = session_source(session, "kineto", "trace.json");
	lane.process = session_process(session, lane.source, 1);
	lane.stream = -1;
	lane.tid = 1;
	session->sources.at[lane.source].has_utc = utc;
	session->sources.at[lane.source].utc_offset_ns = WALL_S * INT64_C(1000000000);
	session->sources.at[lane.source].mapping_error_ns = 1000;
	range.lane = session_lane(session, &lane);
	range.name = session_string(session, "step", 4);
	for (int i = 0; i < 10; i++) {
		range.start_ns = range.end_ns;
		range.end_ns += i == 5 ? 900000000 : 100000000;
		cr_assert_eq(sink_range(&store->sink, &range, &err), 0);
	}
}

Test(steps, a_fault_in_an_outlier_step_is_named_there)
{
	trace(true);
	analyze("2025-02-23T16:24:18,900000+00:00 NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, "
		"x\n");
	cr_assert_eq(facts->steps.step.count, 10);
	cr_assert(facts->steps.step.at[5].outlier);
	SAYS(facts->steps.step.at[5].differs.at[0], "Xid 31 on GPU 0000:9b:00.0 400 ms into it");
	cr_assert_eq(facts->steps.step.at[4].differs.count, 0);
	SAYS(told(&rule_step_outliers)->claim, "Xid 31");
}

/* Two kernels with 1.3 s between them; the fault comes 400 ms into that gap. */
Test(steps, a_fault_in_the_longest_gap_is_named_at_its_cause)
{
	struct lane lane = { .kind = LANE_STREAM, .process = SESSION_NONE, .tid = -1 };
	struct kernel_key key = { .shared_bytes = -1 };
	struct device device = { .scope = DEVICE_OF_SOURCE };
	struct op op = { .kind = OP_KERNEL, .bytes = EVENT_UNKNOWN };
	const struct idle_fact *idle;

	trace(true);
	lane.device = session_device(store->session, &device);
	op.lane = session_lane(store->session, &lane);
	op.key = session_key(store->session, &key);
	for (int i = 0; i < 2; i++) {
		op.start_ns = i * INT64_C(1400000000);
		op.end_ns = op.start_ns + 100000000;
		cr_assert_eq(sink_op(&store->sink, &op, NULL), 0);
	}
	analyze("2025-02-23T16:24:18,500000+00:00 NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, "
		"x\n");
	idle = &facts->devices.at[0].idle[IDLE_UNATTRIBUTED];
	cr_assert_eq(idle->longest_ns, 1300000000);
	cr_assert_eq(idle->board.count, 1);
	SAYS(idle->board.at[0], "Xid 31 on GPU 0000:9b:00.0 400 ms into it");
	cr_assert_eq(facts->devices.at[0].idle[IDLE_HOST_LATE].board.count, 0);
}

Test(steps, a_fault_seconds_later_is_not)
{
	trace(true);
	analyze("2025-02-23T16:24:20,900000+00:00 NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, "
		"x\n");
	for (size_t i = 0; i < facts->steps.step.at[5].differs.count; i++)
		SILENT(facts->steps.step.at[5].differs.at[i], "Xid");
}

Test(steps, clocks_that_can_not_be_compared_name_nothing)
{
	trace(false);
	analyze("2025-02-23T16:24:18,900000+00:00 NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, "
		"x\n");
	for (size_t i = 0; i < facts->steps.step.at[5].differs.count; i++)
		SILENT(facts->steps.step.at[5].differs.at[i], "Xid");
}
