#include <criterion/criterion.h>

#include "know/fault_line.h"
#include "know/kernel_line.h"
#include "read/reader.h"
#include "sink_record.h"

/* ---- what stands before the message ---- */

static struct kernel_line parsed(const char *text)
{
	static struct buf memory;
	struct kernel_line line;

	kernel_line_parse(str_of(text), &memory, &line);
	return line;
}

static void expect_line(const char *text, enum stamp_kind stamp, int64_t ns)
{
	struct kernel_line line = parsed(text);

	cr_assert(str_is(line.message, "NVRM: x"), "%s: message '%.*s'", text,
		  (int)line.message.len, line.message.at);
	cr_assert_eq(line.stamp, stamp, "%s: stamp %d", text, (int)line.stamp);
	cr_assert_eq(line.stamp_ns, ns, "%s: %lld", text, (long long)line.stamp_ns);
}

/* 2025-02-23 16:24:18 UTC, by date(1). */
#define WALL_NS (INT64_C(1740327858) * 1000000000)

Test(kernel_line, seconds_since_boot)
{
	expect_line("[  912.104] NVRM: x", STAMP_BOOT, 912104000000);
	expect_line("[171167.620236] NVRM: x", STAMP_BOOT, 171167620236000);
	expect_line("[  912.104][ T1234] NVRM: x", STAMP_BOOT, 912104000000);
	expect_line("<4>[  912.104] NVRM: x", STAMP_BOOT, 912104000000);
	expect_line("kern  :warn  : [  912.104] NVRM: x", STAMP_BOOT, 912104000000);
	expect_line("[  912.104] node1 kernel: NVRM: x", STAMP_BOOT, 912104000000);
	expect_line("4,1227,912104000,c;NVRM: x", STAMP_BOOT, 912104000000);
}

Test(kernel_line, wall_clocks_without_a_zone)
{
	expect_line("[Sun Feb 23 16:24:18 2025] NVRM: x", STAMP_LOCAL, WALL_NS);
	expect_line("kern  :warn  : [Sun Feb 23 16:24:18 2025] NVRM: x", STAMP_LOCAL, WALL_NS);
	expect_line("2025-02-23T16:24:18 node1 kernel: NVRM: x", STAMP_LOCAL, WALL_NS);
	expect_line("Feb 23 2025 16:24:18 node1 kernel: NVRM: x", STAMP_LOCAL, WALL_NS);
	expect_line("2025 Feb 23 16:24:18 node1 kernel: NVRM: x", STAMP_LOCAL, WALL_NS);
}

/* What int64 can't hold in ns is no time, and its line is a message. */
Test(kernel_line, seconds_that_are_too_many_are_none)
{
	expect_line("9223372035.5 node1 kernel: NVRM: x", STAMP_UTC, 9223372035500000000);
	cr_assert_eq(parsed("9223372036.5 node1 kernel: NVRM: x").stamp, STAMP_NONE);
	cr_assert_eq(parsed("9737426093.5 node1 kernel: NVRM: x").stamp, STAMP_NONE);
	cr_assert_eq(parsed("[9223372036.5] NVRM: x").stamp, STAMP_NONE);
}

Test(kernel_line, a_stamp_without_a_year_is_within_a_leap_year)
{
	/* 31 days of January and 22 of February before it */
	const int64_t ns = ((31 + 22) * INT64_C(86400) + 16 * 3600 + 24 * 60 + 18) * 1000000000;

	expect_line("Feb 23 16:24:18 node1 kernel: NVRM: x", STAMP_YEARLESS, ns);
	expect_line("Feb 23 16:24:18 node1 kernel: [  912.104] NVRM: x", STAMP_YEARLESS, ns);
	expect_line("Feb 23 16:24:18 node1 kernel[0]: NVRM: x", STAMP_YEARLESS, ns);
	expect_line("Feb 23 16:24:18.000000 node1 kernel: NVRM: x", STAMP_YEARLESS, ns);
}

Test(kernel_line, zones_are_taken_off)
{
	expect_line("2025-02-23T16:24:18,000000+00:00 NVRM: x", STAMP_UTC, WALL_NS);
	expect_line("kern  :warn  : 2025-02-23T17:24:18.0+01:00 NVRM: x", STAMP_UTC, WALL_NS);
	expect_line("2025-02-23T10:54:18-0530 node1 kernel: [    1.5] NVRM: x", STAMP_UTC, WALL_NS);
	expect_line("2025-02-23T16:24:18Z node1 kernel: NVRM: x", STAMP_UTC, WALL_NS);
	expect_line("Sun 2025-02-23 16:24:18 UTC node1 kernel: NVRM: x", STAMP_UTC, WALL_NS);
	expect_line("1740327858.000000 node1 kernel: NVRM: x", STAMP_UTC, WALL_NS);
	expect_line("{\"__REALTIME_TIMESTAMP\":\"1740327858000000\",\"_TRANSPORT\":\"kernel\","
		    "\"PRIORITY\":4,\"MESSAGE\":\"NVRM: x\"}",
		    STAMP_UTC, WALL_NS);
	expect_line("{\"MESSAGE\":[78,86,82,77,58,32,120],\"_TRANSPORT\":\"kernel\","
		    "\"__REALTIME_TIMESTAMP\":\"1740327858000000\"}",
		    STAMP_UTC, WALL_NS);
	cr_assert_eq(parsed("2025-02-23T10:54:18-0530 n kernel: x").day_s,
		     10 * 3600 + 54 * 60 + 18);
}

Test(kernel_line, other_programs_can_not_pose_as_the_kernel)
{
	static const char *const forged[] = {
		"Feb 23 16:24:18 node1 sshd[12]: NVRM: Xid (PCI:0000:9b:00): 79, x",
		"user  :notice: [  912.104] NVRM: Xid (PCI:0000:9b:00): 79, x",
		"12,1227,912104000,c;NVRM: Xid (PCI:0000:9b:00): 79, x",
		"{\"_TRANSPORT\":\"syslog\",\"MESSAGE\":\"NVRM: Xid (PCI:0000:9b:00): 79, x\"}",
	};

	for (size_t i = 0; i < sizeof(forged) / sizeof(*forged); i++) {
		struct kernel_line line = parsed(forged[i]);

		cr_assert(line.foreign, "%s", forged[i]);
		cr_assert_eq(line.message.len, 0);
	}
}

/* ---- messages ---- */

static struct fault_parser parser;

static struct fault fault_in(const char *message)
{
	struct fault fault;

	cr_assert_eq(fault_line_parse(&parser, str_of(message), &fault), FAULT_LINE_FAULT, "%s",
		     message);
	return fault;
}

Test(fault_line, page_fault)
{
	struct fault fault = fault_in(
		"NVRM: Xid (PCI:0000:9b:00): 31, pid=40213, name=train, Ch 00000018, intr "
		"00000000. MMU "
		"Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f12_34567000. Fault is of type "
		"FAULT_PDE ACCESS_TYPE_VIRT_READ");

	cr_assert_eq(fault.kind, FAULT_XID);
	cr_assert_eq(fault.number, 31);
	cr_assert_str_eq(fault.pci, "0000:9b:00.0");
	cr_assert_eq(fault.pid, 40213);
	cr_assert_str_eq(fault.process, "train");
	cr_assert_eq(fault.address, 0x7f1234567000);
	cr_assert_str_eq(fault.event, "FAULT_PDE");
	cr_assert(!fault_has(&fault, FAULT_PREVIOUS));
}

Test(fault_line, unknown_processes_stay_unknown)
{
	struct fault fault = fault_in("NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', "
				      "name=<unknown>, GPU has fallen off the bus.");

	cr_assert(!fault_has(&fault, FAULT_PID));
	cr_assert_str_eq(fault.process, "");
	cr_assert_str_eq(fault.text, "GPU has fallen off the bus.");
}

Test(fault_line, mig_instances)
{
	struct fault fault = fault_in("NVRM: Xid (PCI:0000:9b:00 GPU-I:05): 94, pid=7194, name=x, "
				      "Contained: CE User Channel (0x9). RST: No, D-RST: No");

	cr_assert_eq(fault.gpu_instance, 5);
	cr_assert(!fault_has(&fault, FAULT_COMPUTE_INSTANCE));
	fault = fault_in("NVRM: Xid (PCI:0000:9b:00 GPU-I:05 GPU-CI:01): 94, pid=7194, name=x, y");
	cr_assert_eq(fault.compute_instance, 1);
	cr_assert_eq(fault.number, 94);
}

Test(fault_line, places_as_older_drivers_write_them)
{
	cr_assert_eq(fault_in("NVRM: Xid (0000:03:00): 14, Channel 00000001").number, 14);
	cr_assert_eq(fault_in("NVRM: Xid PCI:0000:01:00: 43, Ch 00000018").number, 43);
	cr_assert_str_eq(fault_in("NVRM: Xid (PCI:0018:01:00): 79, x").pci, "0018:01:00.0");
}

Test(fault_line, a_previous_xid)
{
	struct fault fault = fault_in("NVRM: Xid (PCI:0000:9b:00): 45, pid=7194, name=x, Ch "
				      "00000008 caused by previous Xid 94");

	cr_assert(fault_has(&fault, FAULT_PREVIOUS));
	cr_assert_eq(fault.previous, 94);
}

Test(fault_line, nvlink_words_are_decoded)
{
	struct fault fault = fault_in(
		"NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 "
		"0x00000000 0x0 0x0 0x0 0x0)");

	cr_assert_str_eq(fault.event, "NETIR_LINK_EVT");
	cr_assert_eq(fault.link, 8);
	cr_assert_eq(fault.fatal, 1);
	cr_assert_eq(fault.unit, 4);
	cr_assert_eq(fault.status, 0);
	cr_assert_eq(fault.word_count, 6);
	fault = fault_in("NVRM: Xid (PCI:0018:01:00): 145, pid=876767, name=w, RLW_RXPIPE Nonfatal "
			 "XC0 i0 Link -1 (0x0409a0c2 0x00000008");
	cr_assert_eq(fault.unit, 0); /* six bits of 0x40 */
	cr_assert_eq(fault.link, -1);
	cr_assert_eq(fault.fatal, 0);
	cr_assert_eq(fault.status, 8);
	fault = fault_in("NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 "
			 "(0x021425c6 0x00000000)");
	cr_assert_eq(fault.unit, 33);
	cr_assert_eq(fault.fatal, 1);
	/* cut off within the first word's neighbour */
	fault = fault_in("NVRM: Xid (PCI:0018:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406");
	cr_assert_eq(fault.word_count, 1);
	cr_assert(!fault_has(&fault, FAULT_STATUS));
}

Test(fault_line, recovery_actions)
{
	struct fault fault =
		fault_in("NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed "
			 "from 0x0 (None) to 0x1 (GPU Reset Required)");

	cr_assert_eq(fault.action_from, 0);
	cr_assert_eq(fault.action_to, 1);
	cr_assert_str_eq(fault.action_before, "None");
	cr_assert_str_eq(fault.event, "GPU Reset Required");
}

Test(fault_line, switches)
{
	struct fault fault =
		fault_in("nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, "
			 "Link 32 egress non-posted PRIV error (First)");

	cr_assert_eq(fault.kind, FAULT_SXID);
	cr_assert_eq(fault.number, 12028);
	cr_assert_eq(fault.switch_index, 3);
	cr_assert_eq(fault.fatal, 0);
	cr_assert_eq(fault.link, 32);
	cr_assert_eq(fault.first, 1);
	fault = fault_in("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM "
			 "Fault Up");
	cr_assert_eq(fault.fatal, 1);
	cr_assert_eq(fault.first, 0);
}

Test(fault_line, off_the_bus_in_two_ways)
{
	struct fault fault = fault_in("NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.");

	cr_assert_eq(fault.kind, FAULT_OFF_BUS);
	cr_assert_str_eq(fault.pci, "0000:9b:00.0");
	cr_assert_eq(fault_line_parse(&parser, STR("NVRM: The NVIDIA GPU 0000:18:00.0"), &fault),
		     FAULT_LINE_PART);
	(void)fault_line_parse(
		&parser, STR("NVRM: (PCI ID: 10de:2330) installed in this system has"), &fault);
	fault = fault_in("NVRM: fallen off the bus and is not responding to commands.");
	cr_assert_eq(fault.kind, FAULT_OFF_BUS);
	cr_assert_str_eq(fault.pci, "0000:18:00.0");
}

Test(fault_line, two_versions)
{
	struct fault fault;

	cr_assert_eq(fault_line_parse(&parser,
				      STR("NVRM: API mismatch: the client has the version "
					  "535.129.03, but"),
				      &fault),
		     FAULT_LINE_PART);
	fault = fault_in("NVRM: this kernel module has the version 535.104.05.  Please");
	cr_assert_eq(fault.kind, FAULT_MISMATCH);
	cr_assert_str_eq(fault.client, "535.129.03");
	cr_assert_str_eq(fault.module, "535.104.05");
	cr_assert_eq(fault_line_parse(&parser,
				      STR("NVRM: make sure that this kernel module and all NVIDIA "
					  "driver"),
				      &fault),
		     FAULT_LINE_NONE);
	(void)fault_line_parse(
		&parser, STR("NVRM: API mismatch: the client 'nvidia-smi' (pid 4711)"), &fault);
	(void)fault_line_parse(&parser,
			       STR("NVRM: has the version 550.54.14, but this kernel module has"),
			       &fault);
	fault = fault_in("NVRM: the version 550.54.15.  Please make sure that this kernel");
	cr_assert_str_eq(fault.client, "550.54.14");
	cr_assert_str_eq(fault.module, "550.54.15");
	cr_assert_eq(fault.pid, 4711);
	cr_assert_str_eq(fault.process, "nvidia-smi");
}

Test(fault_line, a_mismatch_whose_end_never_comes_is_told_at_the_end)
{
	struct fault fault;

	(void)fault_line_parse(&parser, STR("NVRM: API mismatch: the client has the version 1.2"),
			       &fault);
	cr_assert_eq(fault_line_end(&parser, &fault), FAULT_LINE_FAULT);
	cr_assert_str_eq(fault.client, "1.2");
	cr_assert_str_eq(fault.module, "");
	cr_assert_eq(fault_line_end(&parser, &fault), FAULT_LINE_NONE);
}

Test(fault_line, out_of_memory)
{
	struct fault fault = fault_in("Out of memory: Killed process 4711 (python) total-vm:400kB, "
				      "anon-rss:300kB, file-rss:1kB, shmem-rss:0kB, UID:0");

	cr_assert_eq(fault.kind, FAULT_OOM);
	cr_assert_eq(fault.pid, 4711);
	cr_assert_str_eq(fault.process, "python");
	cr_assert_eq(fault.memory_kb, 300);
	cr_assert_eq(fault.in_cgroup, 0);
	(void)fault_line_parse(&parser,
			       STR("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,"
				   "task_memcg=/kubepods/pod1,task=python,pid=77,uid=0"),
			       &fault);
	fault = fault_in("Memory cgroup out of memory: Killed process 77 (a (b) c) total-vm:1kB, "
			 "anon-rss:9kB");
	cr_assert_eq(fault.in_cgroup, 1);
	cr_assert_str_eq(fault.cgroup, "/kubepods/pod1");
	cr_assert_str_eq(fault.process, "a (b) c");
}

Test(fault_line, memory_repair)
{
	struct fault fault =
		fault_in("NVRM: Xid (PCI:0000:9b:00): 63, Row Remapper: New row marked "
			 "for remapping, reset gpu to activate.");

	cr_assert_str_eq(fault.event, "row remap");
	fault = fault_in(
		"NVRM: Xid (PCI:0000:9b:00): 63, Dynamic Page Retirement: New retired page, "
		"reboot to activate (0x00000000001d1234).");
	cr_assert_str_eq(fault.event, "page retirement");
	cr_assert_eq(fault.address, 0x1d1234);
}

Test(fault_line, rate_limits_versions_and_identities)
{
	struct fault fault = fault_in("NVRM: Rate limiting GSP RPC error prints for GPU at "
				      "PCI:0000:9b:00 (printing 1 of every 30).  The GPU likely "
				      "needs to be reset.");

	cr_assert_eq(fault.kind, FAULT_RATE_LIMIT);
	cr_assert_eq(fault.every, 30);
	cr_assert_str_eq(fault.pci, "0000:9b:00.0");
	fault = fault_in("NVRM: GPU at PCI:0000:9b:00: GPU-11111111-2222-3333-4444-555555555555");
	cr_assert_eq(fault.kind, FAULT_IDENTITY);
	cr_assert_str_eq(fault.uuid, "GPU-11111111-2222-3333-4444-555555555555");
	fault = fault_in("NVRM: GPU Board Serial Number: 1650124014249");
	cr_assert_str_eq(fault.serial, "1650124014249");
	cr_assert_str_eq(fault.pci, "0000:9b:00.0");
	fault = fault_in("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19");
	cr_assert_str_eq(fault.module, "535.129.03");
	fault = fault_in(
		"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.45.04  Release");
	cr_assert_str_eq(fault.module, "595.45.04");
}

Test(fault_line, what_cannot_be_read_is_told_from_what_is_none)
{
	struct fault fault;

	cr_assert_eq(fault_line_parse(&parser, STR("NVRM: Xid error: xyz"), &fault),
		     FAULT_LINE_BROKEN);
	cr_assert_eq(fault_line_parse(&parser, STR("NVRM: Xid (invalid): some error"), &fault),
		     FAULT_LINE_BROKEN);
	cr_assert_eq(fault_line_parse(&parser, STR("NVRM: Xid"), &fault), FAULT_LINE_BROKEN);
	cr_assert_eq(fault_line_parse(&parser, STR("NVRM: GPU4 RPC history (CPU -> GSP):"), &fault),
		     FAULT_LINE_NONE);
	cr_assert_eq(fault_line_parse(&parser, STR("clocksource: Long readout"), &fault),
		     FAULT_LINE_NONE);
}

Test(fault, detail_comes_back_as_the_fault_that_it_was)
{
	struct fault fault = fault_in(
		"NVRM: Xid (PCI:0018:01:00): 145, pid=876767, name=w;x, RLW_RXPIPE Nonfatal XC0 i0 "
		"Link 13 (0x0409a0c2 0x00000008 0x1 0x0 0x00100000 0x4)");
	struct fault back;
	struct buf text = { 0 };

	fault.has_time = true;
	fault_detail(&fault, &text);
	cr_assert(fault_from_detail((struct str){ text.at, text.len }, &back));
	cr_assert_eq(back.have, fault.have);
	cr_assert_eq(back.link, 13);
	cr_assert_eq(back.words[4], 0x100000);
	cr_assert_str_eq(back.process, "w,x");
	cr_assert_str_eq(back.text, fault.text);
	cr_assert(back.has_time);
	buf_done(&text);
}

/* ---- what two sources both tell ---- */

static bool told(struct fault_memory *memory, enum fault_origin origin, int64_t number, int64_t ns)
{
	struct fault fault = {
		.kind = FAULT_XID, .origin = origin, .number = number, .time_ns = ns
	};

	memcpy(fault.pci, "0000:9b:00.0", 13);
	return fault_known(memory, &fault);
}

Test(fault_memory, one_fault_of_two_sources_counts_once)
{
	struct fault_memory memory = { 0 };

	cr_assert(!told(&memory, FAULT_FROM_LOG, 31, 1000));
	cr_assert(told(&memory, FAULT_FROM_NVML, 31, 1000 + FAULT_SAME_NS));
	cr_assert(!told(&memory, FAULT_FROM_NVML, 31, 1001 + FAULT_SAME_NS));
	cr_assert(!told(&memory, FAULT_FROM_NVML, 79, 1000));
}

Test(fault_memory, what_nvml_tells_late_may_be_as_old_as_its_last_look)
{
	struct fault_memory memory = { 0 };
	struct fault fault = { .kind = FAULT_XID,
			       .origin = FAULT_FROM_NVML,
			       .number = 31,
			       .time_ns = INT64_C(60000000000),
			       .early_ns = INT64_C(5000000000) };

	memcpy(fault.pci, "0000:9b:00.0", 13);
	cr_assert(!told(&memory, FAULT_FROM_LOG, 31, INT64_C(51000000000)), "too old");
	cr_assert(!told(&memory, FAULT_FROM_LOG, 31, INT64_C(52500000000)));
	cr_assert(fault_known(&memory, &fault));
	cr_assert(!fault_known(&memory, &fault), "one stands for one");
	cr_assert(told(&memory, FAULT_FROM_LOG, 31, INT64_C(55500000000)), "told the other way");
}

Test(fault_memory, repeats_of_one_source_are_faults_each)
{
	struct fault_memory memory = { 0 };

	cr_assert(!told(&memory, FAULT_FROM_LOG, 13, 1));
	cr_assert(!told(&memory, FAULT_FROM_LOG, 13, 2));
	cr_assert(told(&memory, FAULT_FROM_NVML, 13, 3));
	cr_assert(told(&memory, FAULT_FROM_NVML, 13, 4));
	cr_assert(!told(&memory, FAULT_FROM_NVML, 13, 5));
}

/* ---- files ---- */

static struct record *read_text(const char *text, struct err *err, int *ret_status)
{
	struct record *record = record_new();
	OWN(input_closep) struct input *input = input_memory("kern.log", text, strlen(text));

	(void)session_source(record->sink.session, "kernel_log", "kern.log");
	*ret_status = reader_kernel_log.read(input, &record->sink, 0, err);
	return record;
}

static struct record *read_log(const char *text)
{
	struct err err = { 0 };
	int status;
	struct record *record = read_text(text, &err, &status);

	cr_assert_eq(status, 0, "%s", err.line);
	return record;
}

Test(kernel_log, faults_become_marks_of_their_card)
{
	OWN(record_freep)
	struct record *record = read_log(
		"[  912.104] NVRM: GPU at PCI:0000:9b:00: "
		"GPU-11111111-2222-3333-4444-555555555555\n"
		"[  912.105] NVRM: Xid (PCI:0000:9b:00): 31, pid=40213, name=train, Ch 00000018\n"
		"[  980.001] NVRM: Xid (PCI:0000:9b:00): 79, pid=40213, name=train, GPU has fallen "
		"off the bus.\n"
		"[  990.000] Out of memory: Killed process 12 (python) total-vm:1kB\n"
		"[  991.000] usb 1-1: reset\n");
	const struct session *session = record->sink.session;

	cr_assert_eq(record->marks.count, 3);
	cr_assert_eq(record->marks.at[0].kind, MARK_XID);
	cr_assert_eq(record->marks.at[1].time_ns - record->marks.at[0].time_ns, 67896000000);
	cr_assert_eq(record->marks.at[2].kind, MARK_OOM);
	cr_assert_eq(session->devices.count, 1);
	cr_assert_str_eq(session_text(session, session->devices.at[0].uuid),
			 "GPU-11111111-2222-3333-4444-555555555555");
	cr_assert_str_eq(session_text(session, session->devices.at[0].pci_bus), "0000:9b:00.0");
	cr_assert_eq(session->lanes.at[record->marks.at[0].lane].kind, LANE_BOARD);
	cr_assert_eq(session->lanes.at[record->marks.at[2].lane].device, SESSION_NONE);
	cr_assert_str_eq(session_text(session, record->marks.at[1].name), "Xid 79");
	cr_assert_eq(session->losses.at[0].count[LOSS_seen], 5);
	cr_assert(!session->sources.at[0].has_utc);
}

Test(kernel_log, a_zone_places_the_file_in_utc)
{
	OWN(record_freep)
	struct record *record =
		read_log("2025-02-23T16:24:18,000000+00:00 NVRM: Xid (PCI:0000:9b:00): 79, x\n"
			 "2025-02-23T16:24:19,500000+00:00 NVRM: Xid (PCI:0000:9b:00): 154, y\n");
	const struct source *source = &record->sink.session->sources.at[0];

	cr_assert(source->has_utc);
	cr_assert_eq(record->marks.at[0].time_ns + source->utc_offset_ns, WALL_NS);
	cr_assert_eq(record->marks.at[1].time_ns, 1500000000);
}

Test(kernel_log, the_year_turns_once)
{
	OWN(record_freep)
	struct record *record =
		read_log("Dec 31 23:59:58 n kernel: NVRM: Xid (PCI:0000:9b:00): 79, x\n"
			 "Jan  1 00:00:03 n kernel: NVRM: Xid (PCI:0000:9b:00): 45, x\n");

	cr_assert_eq(record->marks.at[1].time_ns - record->marks.at[0].time_ns, 5000000000);
}

Test(kernel_log, a_restart_does_not_turn_time_back)
{
	OWN(record_freep)
	struct record *record = read_log("[  900.0] NVRM: Xid (PCI:0000:9b:00): 79, x\n"
					 "[    1.0] NVRM: Xid (PCI:0000:9b:00): 45, x\n"
					 "[    3.0] NVRM: Xid (PCI:0000:9b:00): 45, x\n");

	cr_assert_eq(record->marks.at[1].time_ns, record->marks.at[0].time_ns);
	cr_assert_eq(record->marks.at[2].time_ns - record->marks.at[0].time_ns, 2000000000);
}

Test(kernel_log, losses_are_counted)
{
	OWN(record_freep)
	struct record *record =
		read_log("4,100,1000,-;NVRM: Xid (PCI:0000:01:00): 43, pid=1, name=a, Ch 00000018\n"
			 " SUBSYSTEM=pci\n"
			 "4,104,2000,-;NVRM: Xid (nonsense): 43\n");
	const int64_t *loss = record->sink.session->losses.at[0].count;

	cr_assert_eq(record->marks.count, 1);
	cr_assert_eq(loss[LOSS_seen], 2);
	cr_assert_eq(loss[LOSS_dropped], 3);
	cr_assert_eq(loss[LOSS_malformed], 1);
}

Test(kernel_log, a_log_without_faults_is_a_log)
{
	OWN(record_freep)
	struct record *record =
		read_log("[    1.0] usb 1-1: new device\n[    2.0] eth0: link up\n");

	cr_assert_eq(record->marks.count, 0);
}

Test(kernel_log, other_files_are_refused)
{
	struct err err = { 0 };
	int status;

	OWN(record_freep)
	struct record *record = read_text("Dear diary,\ntoday nothing happened.\n", &err, &status);
	cr_assert_eq(record->marks.count, 0);
	cr_assert_eq(status, ERR_FORMAT);
	cr_assert_str_eq(err.line, "kern.log: holds no line of a kernel log");
}

static int sure_of(const char *text)
{
	return reader_kernel_log.probe(text, strlen(text));
}

Test(kernel_log, the_probe_goes_by_what_only_the_kernel_writes)
{
	cr_assert_gt(sure_of("NVRM: Xid (PCI:0000:01:00): 43, Ch 00000018\n"), 80);
	cr_assert_gt(sure_of("[    1.0] usb 1-1: new device\n"), 50);
	cr_assert_eq(sure_of("2025-02-23T16:24:18Z web GET /index.html\n"), 0);
	cr_assert_eq(sure_of("{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"a\"}]}\n"), 0);
	cr_assert_eq(sure_of("timestamp, name\n2026/11/30 03:27:55.539, NVIDIA H200\n"), 0);
}
