#include "smi_read.h"

#define HEAD                                        \
	"==============NVSMI LOG==============\n\n" \
	"Timestamp                 : Tue Sep  1 10:20:30 2026\n"

static const char two_gpus[] =
	HEAD "Driver Version            : 610.1 [Deprecated; use another]\n"
	     "Attached GPUs             : 2\n"
	     "GPU 00000000:83:00.0\n"
	     "    Product Name          : NVIDIA Example\n"
	     "    Clocks Event Reasons\n"
	     "        Idle              : Not Active\n"
	     "        SW Power Cap      : Active\n"
	     "        HW Slowdown       : Not Active\n"
	     "            HW Thermal Slowdown : Active\n"
	     "        SW Thermal Slowdown : Not Active\n"
	     "    FB Memory Usage\n"
	     "        Total             : 1000 MiB\n"
	     "        Used              : 10 MiB\n"
	     "    GPU Memory Power Readings \n"
	     "        Average Power Draw : 43.80 W\n"
	     "    GPU Power Readings\n"
	     "        Average Power Draw : 629.45 W\n"
	     "        Instantaneous Power Draw : 588.39 W\n"
	     "        GPU Ceiling Power Limit\n"
	     "            Current Power Limit : 700.00 W\n"
	     "    Processes\n"
	     "        Process ID        : 17\n"
	     "            Type          : C\n"
	     "            Name          : C:\\My Apps\\a : b.exe\n"
	     "            Used GPU Memory : Not available in WDDM driver model\n"
	     "        Process ID        : 18\n"
	     "            Type          : G\n"
	     "            Name          : /bin/x\n"
	     "            Used GPU Memory : 5 MiB\n"
	     "GPU 00000000:84:00.0\n"
	     "    Fan Speed             : N/A\n"
	     "    Utilization\n"
	     "        Gpu               : 3 %\n"
	     "    Processes             : None\n";

Test(smi_q, paths_tell_equal_names_apart)
{
	OWN(record_freep) struct record *r = smi_read(two_gpus);

	cr_assert_eq(smi_value(r, 0, METRIC_power_w), 629.45);
	cr_assert_eq(smi_value(r, 0, METRIC_power_limit_w), 700);
	cr_assert_eq(smi_value(r, 0, METRIC_mem_used_bytes), 10.0 * 1048576);
	cr_assert_eq(smi_value(r, 0, METRIC_clock_reasons), 0x44);
	cr_assert_str_eq(smi_env(r, "GPU Memory Power Readings / Average Power Draw"), "43.80 W");
	cr_assert_str_eq(smi_env(r, "driver"), "610.1");
}

Test(smi_q, processes_are_samples_of_their_own)
{
	OWN(record_freep) struct record *r = smi_read(two_gpus);

	cr_assert_eq(r->samples.count, 4);
	cr_assert_eq(smi_lane(r, 1)->kind, LANE_PROCESS);
	cr_assert_eq(smi_value(r, 1, METRIC_proc_mem_used_bytes), -1);
	cr_assert_eq(smi_value(r, 2, METRIC_proc_mem_used_bytes), 5.0 * 1048576);
	cr_assert_eq(smi_value(r, 3, METRIC_util_pct), 3);
	cr_assert_eq(smi_ordinal(r, 3), 1);
	cr_assert_str_eq(smi_env(r, "Processes / Process ID[2] / Name"), "/bin/x");
	cr_assert_str_eq(smi_env(r, "Processes / Process ID / Name"), "C:\\My Apps\\a : b.exe");
}

Test(smi_q, the_index_of_one_of_several_is_not_guessed)
{
	OWN(record_freep)
	struct record *r = smi_read(HEAD "Attached GPUs             : 4\n"
					 "GPU 00000000:84:00.0\n"
					 "    Fan Speed             : 30 %\n");

	cr_assert_eq(smi_ordinal(r, 0), -1);
	cr_assert(smi_noted(r, "shows 1 of 4 GPUs"));
}

Test(smi_q, a_loop_is_a_series)
{
	OWN(record_freep)
	struct record *r = smi_read(HEAD "GPU 00000000:84:00.0\n    Fan Speed : 30 %\n"
					 "==============NVSMI LOG==============\n"
					 "Timestamp : Tue Sep  1 10:20:35 2026\n"
					 "GPU 00000000:84:00.0\n    Fan Speed : 31 %\n");

	cr_assert_eq(r->samples.count, 2);
	cr_assert_eq(r->samples.at[1].time_ns, 5000000000LL);
	cr_assert_eq(smi_value(r, 1, METRIC_fan_pct), 31);
}

#define XML_GPU(fan)                                                                          \
	"<gpu id=\"00000000:83:00.0\"><uuid>GPU-a</uuid><fan_speed>" fan                      \
	"</fan_speed><processes><process_info><pid>7</pid><type>C</type>"                     \
	"<process_name>a&amp;b</process_name><used_memory>5 MiB</used_memory></process_info>" \
	"</processes><list><v>1</v><v>2</v></list><empty>\n</empty></gpu>"
#define XML(schema, second, fan)                                                                  \
	"<?xml version=\"1.0\" ?>\n" schema "<nvidia_smi_log><timestamp>Tue Sep  1 10:20:" second \
	" 2026</timestamp>"                                                                       \
	"<driver_version>595.1</driver_version><attached_gpus>1</attached_gpus>" XML_GPU(         \
		fan) "</nvidia_smi_log>\n"

Test(smi_xml, any_schema_and_none_are_read)
{
	static const char *const texts[] = {
		XML("", "30", "30 %"),
		XML("<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v9.dtd\">\n", "30", "30 %"),
		XML("<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v99.dtd\">\n", "30", "30 %"),
	};

	for (size_t i = 0; i < 3; i++) {
		OWN(record_freep) struct record *r = smi_read(texts[i]);

		cr_assert_eq(smi_value(r, 0, METRIC_fan_pct), 30);
		cr_assert_eq(smi_value(r, 1, METRIC_proc_mem_used_bytes), 5.0 * 1048576);
		cr_assert_str_eq(smi_env(r, "processes / process_info / process_name"), "a&b");
		cr_assert_str_eq(smi_env(r, "list / v[2]"), "2");
		cr_assert_str_eq(smi_env(r, "driver"), "595.1");
	}
}

Test(smi_xml, documents_behind_each_other_are_a_series)
{
	OWN(record_freep) struct record *r = smi_read(XML("", "30", "30 %") XML("", "32", "N/A"));

	cr_assert_eq(r->samples.count, 3);
	cr_assert_eq(r->samples.at[2].time_ns, 2000000000);
	cr_assert_str_eq(smi_env(r, "fan_speed"), "N/A");
}

Test(smi_xml, what_was_whole_before_a_cut_stays)
{
	OWN(record_freep)
	struct record *r = smi_read(
		"<nvidia_smi_log><gpu id=\"0000:83:00.0\"><fan_speed>30 %</fan_speed><uti");

	cr_assert_eq(smi_value(r, 0, METRIC_fan_pct), 30);
	cr_assert_eq(smi_loss(r, LOSS_truncated_bytes), 4);
	cr_assert(r->sink.session->sources.at[0].truncated);
}

Test(smi_xml, entities_are_refused)
{
	static const char text[] = "<!DOCTYPE nvidia_smi_log [<!ENTITY a \"b\">]>"
				   "<nvidia_smi_log><gpu id=\"0000:83:00.0\"><x>&a;</x></gpu>"
				   "</nvidia_smi_log>";
	OWN(record_freep) struct record *r = record_new();
	struct err err = { 0 };

	cr_assert_eq(smi_read_bytes(r, text, sizeof(text) - 1, &err), ERR_FORMAT);
	cr_assert(smi_noted(r, "declares entities"));
}

Test(smi_table, old_and_new_layouts_are_read)
{
	OWN(record_freep)
	struct record *r = smi_read(
		"Tue Sep  1 10:20:30 2026\n"
		"+---------------------------------------------------------------+\n"
		"| NVIDIA-SMI 418.43   Driver Version: 418.43   CUDA Version: 10.1 |\n"
		"| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
		"| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |\n"
		"|===============================+======================+======================|\n"
		"|   0  Example GPU ...     Off  | 00000000:0C:00.0  On |                  N/A |\n"
		"|ERR!   38C    P5    49W / 450W |   2021MiB / 23028MiB |      7%   E. Process |\n"
		"+-------------------------------+----------------------+----------------------+\n"
		"|   1  Example Two         On   | 00000000:0D:00.0 Off |                    4 |\n"
		"| 30%   39C    P0    N/A /  N/A |      1MiB / 23028MiB |      8%      Default |\n"
		"|                               |                      |             Disabled |\n"
		"+-------------------------------+----------------------+----------------------+\n"
		"| Processes:                                                       GPU Memory |\n"
		"|  GPU   GI   CI        PID   Type   Process name                  Usage      |\n"
		"|=============================================================================|\n"
		"|    0   N/A  N/A     40213      C   my app                          2000MiB |\n");
	const struct session *session = r->sink.session;

	cr_assert_eq(r->samples.count, 3);
	cr_assert_eq(smi_value(r, 0, METRIC_fan_pct), -1);
	cr_assert_eq(smi_value(r, 0, METRIC_power_limit_w), 450);
	cr_assert_eq(smi_value(r, 0, METRIC_util_pct), 7);
	cr_assert_eq(session->devices.at[0].name, 0);
	cr_assert_str_eq(session_text(session, session->devices.at[0].pci_bus), "0000:0c:00.0");
	cr_assert_eq(smi_value(r, 1, METRIC_power_w), -1);
	cr_assert_eq(smi_value(r, 1, METRIC_ecc_double), 4);
	cr_assert_eq(smi_value(r, 2, METRIC_proc_mem_used_bytes), 2000.0 * 1048576);
	cr_assert_str_eq(session_text(session, session->processes.at[0].name), "my app");
	cr_assert_str_eq(smi_env(r, "fan.speed"), "ERR!");
}

/* One device 0 with its limit and both sharers, GPU 1 apart. */
Test(smi_join, files_of_one_machine_name_the_same_cards)
{
	static const char *const files[] = { "dmon_power_wall.txt", "q-power.txt",
					     "pmon_two_processes.txt" };
	OWN(record_freep) struct record *r = record_new();
	size_t of_zero = 0;
	double limit = 0;

	for (size_t i = 0; i < 3; i++) {
		char path[512];
		struct err err = { 0 };
		uint32_t source;

		(void)snprintf(path, sizeof(path), SOURCE_DIR "/tests/truth/smi/%s", files[i]);
		cr_assert_eq(reader_import(path, &r->sink, &source, &err), 0, "%s", err.line);
	}
	cr_assert_eq(r->sink.session->devices.count, 2);
	for (size_t i = 0; i < r->samples.count; i++) {
		if (smi_ordinal(r, i) != 0)
			continue;
		of_zero += smi_lane(r, i)->kind == LANE_PROCESS;
		(void)sample_get(&r->samples.at[i], METRIC_power_limit_w, &limit);
	}
	cr_assert_eq(of_zero, 2);
	cr_assert_eq(limit, 700);
	cr_assert_eq(r->sink.session->processes.count, 2);
}

Test(smi_table, mig_devices_are_devices_with_memory_and_processes_of_their_own)
{
	OWN(record_freep)
	struct record *r = smi_read(
		"| NVIDIA-SMI 550.10   Driver Version: 550.10   CUDA Version: 12.4 |\n"
		"|   0  Example GPU         On   | 00000000:0C:00.0 Off |                   On |\n"
		"| N/A   38C    P0    90W / 400W |   5021MiB / 40960MiB |     N/A      Default |\n"
		"|                               |                      |              Enabled |\n"
		"+-------------------------------+----------------------+----------------------+\n"
		"| MIG devices:                                                                |\n"
		"| GPU  GI  CI  MIG |         Memory-Usage |        Vol|         Shared        |\n"
		"|      ID  ID  Dev |           BAR1-Usage | SM     Unc| CE  ENC  DEC  OFA  JPG|\n"
		"|==================+======================+===========+=======================|\n"
		"|  0    7   0   0  |   5000MiB /  9856MiB | 28      2 |  2   0    1    0    0 |\n"
		"|                  |      4MiB / 16383MiB |           |                       |\n"
		"+------------------+----------------------+-----------+-----------------------+\n"
		"|  0    8   0   1  |     12MiB /  9856MiB | 14      0 |  2   0    1    0    0 |\n"
		"|                  |      0MiB / 16383MiB |           |                       |\n"
		"+------------------+----------------------+-----------+-----------------------+\n"
		"|  0    9   0  99  |     12MiB /  9856MiB | 14      0 |  2   0    1    0    0 |\n"
		"| Processes:                                                       GPU Memory |\n"
		"|  GPU   GI   CI        PID   Type   Process name                  Usage      |\n"
		"|=============================================================================|\n"
		"|    0    7    0      40213      C   my app                          4990MiB |\n"
		"|    0   11    0      40214      C   other                              9MiB |\n");
	const struct session *session = r->sink.session;
	const struct device *devices = session->devices.at;
	uint32_t part;

	cr_assert_eq(r->samples.count, 5);
	cr_assert_eq(smi_value(r, 0, METRIC_mem_used_bytes), 5021.0 * 1048576);
	cr_assert_eq(devices[smi_lane(r, 0)->device].part, 0);
	part = smi_lane(r, 1)->device;
	cr_assert_str_eq(session_text(session, devices[part].part), "MIG 0");
	cr_assert_eq(devices[part].ordinal, 0);
	cr_assert_eq(devices[part].sm_count, 28);
	cr_assert_eq(smi_value(r, 1, METRIC_mem_used_bytes), 5000.0 * 1048576);
	cr_assert_eq(smi_value(r, 1, METRIC_mem_total_bytes), 9856.0 * 1048576);
	cr_assert_eq(smi_value(r, 1, METRIC_bar1_used_bytes), 4.0 * 1048576);
	cr_assert_eq(smi_value(r, 1, METRIC_ecc_double), 2);
	cr_assert_eq(smi_value(r, 1, METRIC_power_w), -1);
	cr_assert_eq(smi_value(r, 2, METRIC_mem_used_bytes), 12.0 * 1048576);
	/* No card has a MIG device 99; its text is kept. */
	cr_assert_eq(smi_loss(r, LOSS_dropped), 1);
	/* The process is of the part with its instances, or of one only it names. */
	cr_assert_eq(smi_lane(r, 3)->device, part);
	cr_assert_eq(smi_lane(r, 3)->kind, LANE_PROCESS);
	cr_assert_str_eq(session_text(session, devices[smi_lane(r, 4)->device].part), "GI 11 CI 0");
}
