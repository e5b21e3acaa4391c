#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "collector_bench.h"

Test(collector, values_of_a_card_come_in_our_units)
{
	struct world world = { 0 };
	OWN(collector_closep) struct collector *collector = open_world(&world, "@h200.nvml");
	struct snapshot snapshot = { 0 };
	const struct board *board;

	take(collector, &snapshot);
	cr_assert_eq(snapshot.boards.count, 1);
	cr_assert_str_eq(snapshot.driver, "580.159.04");
	cr_assert_str_eq(snapshot.cuda, "13.0");
	cr_assert_str_eq(snapshot.wrapper, "");
	board = &snapshot.boards.at[0];
	cr_assert_str_eq(board->name, "NVIDIA H200");
	cr_assert_str_eq(board->pci_bus, "0000:83:00.0");
	cr_assert_eq(board->cc_major, 9);
	cr_assert_eq(board->mig_mode, 0);
	cr_assert_eq(board->persistence, 1);
	cr_assert_eq(board->recovery_action, 0);
	cr_assert(board->gpm);
	expect(board, METRIC_power_w, 412);
	expect(board, METRIC_power_instant_w, 415);
	expect(board, METRIC_power_limit_w, 700);
	expect(board, METRIC_power_min_limit_w, 200);
	expect(board, METRIC_temp_c, 58);
	expect(board, METRIC_temp_mem_c, 66);
	expect(board, METRIC_sm_mhz, 1755);
	expect(board, METRIC_max_sm_mhz, 1980);
	expect(board, METRIC_util_pct, 97);
	expect(board, METRIC_mem_used_bytes, 64511803392.0);
	expect(board, METRIC_reason_power_cap_us, 1e6);
	expect(board, METRIC_ecc_double, 0);
	expect(board, METRIC_pcie_gen_max, 5);
	expect_none(board, METRIC_fan_pct, ORIGIN_NOT_SUPPORTED);
	expect_none(board, METRIC_sm_active_pct, ORIGIN_PENDING);
	expect_none(board, METRIC_pcie_rx_bytes_s, ORIGIN_PENDING);
	expect_none(board, METRIC_power_violation_pct, ORIGIN_PENDING);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, rates_and_gpm_need_two_rounds)
{
	struct world world = { 0 };
	OWN(collector_closep) struct collector *collector = open_world(&world, "@h200.nvml");
	struct snapshot snapshot = { 0 };
	double value = 0;
	enum origin origin;

	take(collector, &snapshot);
	wait_ms(120);
	take(collector, &snapshot);
	expect(&snapshot.boards.at[0], METRIC_sm_active_pct, 94.25);
	expect(&snapshot.boards.at[0], METRIC_gpm_pcie_rx_bytes_s, 300.0 * 1024 * 1024);
	cr_assert(board_get(&snapshot.boards.at[0], METRIC_dram_pct, &value, &origin));
	cr_assert_eq(origin, ORIGIN_GPM);
	cr_assert(board_get(&snapshot.boards.at[0], METRIC_pcie_rx_bytes_s, &value, NULL));
	cr_assert(value > 155e6 && value < 620e6, "%g", value);
	expect(&snapshot.boards.at[0], METRIC_power_violation_pct, 0);
	cr_assert(board_get(&snapshot.boards.at[0], METRIC_energy_j, &value, &origin));
	cr_assert_eq(origin, ORIGIN_RING);
	cr_assert(value > 5000 && value < 5400, "%g", value);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, ring_points_come_once_each_and_in_order)
{
	struct world world = { 0 };
	OWN(collector_closep) struct collector *collector = open_world(&world, "@h200.nvml");
	struct snapshot snapshot = { 0 };
	struct err err = { 0 };
	int64_t last_ns = 0;

	for (int round = 0; round < 3; round++) {
		cr_assert_eq(collector_ask(collector, COLLECT_RINGS | COLLECT_FRESH, &err), 0);
		take(collector, &snapshot);
		cr_assert(snapshot.points.count > 0);
		for (size_t i = 0; i < snapshot.points.count; i++) {
			if (snapshot.points.at[i].metric != METRIC_power_w)
				continue;
			cr_assert(snapshot.points.at[i].utc_ns > last_ns);
			last_ns = snapshot.points.at[i].utc_ns;
			cr_assert_float_eq(snapshot.points.at[i].value, 412, 1e-9);
		}
		wait_ms(50);
	}
	cr_assert_eq(collector_ask(collector, COLLECT_RINGS, &err), 0);
	take(collector, &snapshot);
	cr_assert_eq(snapshot.points.count, 0, "not so soon again");
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, only_what_was_asked_is_asked)
{
	struct world world = { 0 };
	OWN(collector_closep) struct collector *collector = open_world(&world, "@h200.nvml");
	struct snapshot snapshot = { 0 };
	struct err err = { 0 };

	take(collector, &snapshot);
	cr_assert_eq(collector_ask(collector, COLLECT_FAST, &err), 0);
	cr_assert_neq(collector_fd(collector), -1);
	cr_assert_gt(collector_deadline_ns(collector), 0);
	take(collector, &snapshot);
	cr_assert_eq(snapshot.groups, COLLECT_FAST);
	expect(&snapshot.boards.at[0], METRIC_power_w, 412);
	expect(&snapshot.boards.at[0], METRIC_power_limit_w, 700);
	expect_none(&snapshot.boards.at[0], METRIC_ecc_single, ORIGIN_NONE);
	expect_none(&snapshot.boards.at[0], METRIC_pcie_rx_bytes, ORIGIN_NONE);
	cr_assert_eq(snapshot.processes.count, 0);
	cr_assert_eq(snapshot.costs.count, 0);
	cr_assert_lt(snapshot.calls, 20);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, an_old_driver_lacks_functions_and_says_so)
{
	struct world world = { .opts.library = FAKE_DIR "/old/libnvidia-ml.so.1" };
	OWN(collector_closep)
	struct collector *collector =
		open_world(&world, "nvmlSystemGetDriverVersion 450.80.02\n"
				   "nvmlSystemGetCudaDriverVersion 11000\n"
				   "gpu\nname Tesla T4\nuuid GPU-old\nbus 0000:00:04.0\n"
				   "nvmlDeviceGetPowerUsage 27000\n"
				   "nvmlDeviceGetTemperature.0 44\n"
				   "nvmlDeviceGetMemoryInfo 16000 15000 1000\n"
				   "nvmlDeviceGetCurrentClocksThrottleReasons 4\n"
				   "nvmlDeviceGetViolationStatus.0 5 7000000\n"
				   "process 12 C 1000\n");
	struct snapshot snapshot = { 0 };
	const struct board *board;
	double value = 0;

	take(collector, &snapshot);
	board = &snapshot.boards.at[0];
	cr_assert_str_eq(snapshot.cuda, "11.0");
	expect(board, METRIC_power_w, 27);
	expect(board, METRIC_temp_c, 44);
	expect(board, METRIC_mem_used_bytes, 1000);
	expect(board, METRIC_clock_reasons, 4);
	expect(board, METRIC_reason_power_cap_us, 7000);
	expect_none(board, METRIC_mem_reserved_bytes, ORIGIN_NO_FUNCTION);
	expect_none(board, METRIC_energy_j, ORIGIN_NO_FUNCTION);
	expect_none(board, METRIC_sm_active_pct, ORIGIN_NOT_SUPPORTED);
	cr_assert_eq(snapshot.processes.count, 1);
	cr_assert_eq(snapshot.processes.at[0].pid, 12);
	cr_assert(sample_get(&snapshot.processes.at[0].sample, METRIC_proc_mem_used_bytes, &value));
	cr_assert_eq(value, 1000);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, a_laptop_that_answers_nothing_is_still_a_card)
{
	struct world world = { 0 };
	OWN(collector_closep)
	struct collector *collector =
		open_world(&world, "gpu\nname NVIDIA GeForce RTX 3050 Laptop GPU\nuuid GPU-l\n"
				   "nvmlDeviceGetUtilizationRates 3 1\n");
	struct snapshot snapshot = { 0 };
	uint32_t first;

	take(collector, &snapshot);
	first = snapshot.calls;
	cr_assert_eq(snapshot.boards.at[0].state, BOARD_OK);
	expect(&snapshot.boards.at[0], METRIC_util_pct, 3);
	expect_none(&snapshot.boards.at[0], METRIC_power_w, ORIGIN_NOT_SUPPORTED);
	expect_none(&snapshot.boards.at[0], METRIC_temp_c, ORIGIN_NOT_SUPPORTED);
	take(collector, &snapshot);
	expect_none(&snapshot.boards.at[0], METRIC_power_w, ORIGIN_NOT_SUPPORTED);
	cr_assert_lt(snapshot.calls, first / 2, "%u of %u", snapshot.calls, first);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, mig_instances_are_boards_with_memory_gpm_and_processes)
{
	struct world world = { 0 };
	OWN(collector_closep)
	struct collector *collector = open_world(
		&world, "gpu\nname NVIDIA H100\nuuid GPU-m\nbus 0000:83:00.0\n"
			"nvmlDeviceGetMigMode 1 1\nnvmlDeviceGetPowerUsage 90000\ngpm 2 50\n"
			"mig 5 0\nname NVIDIA H100 MIG 1g.10gb\nuuid MIG-a\n"
			"nvmlDeviceGetMemoryInfo_v2 10000 10 9000 990\ngpm 2 71\n"
			"process 77 C 500\n"
			"mig 6 0\nname NVIDIA H100 MIG 2g.20gb\nuuid MIG-b\n"
			"nvmlDeviceGetMemoryInfo_v2 20000 10 19000 990\n");
	struct snapshot snapshot = { 0 };
	const struct board *instance;

	take(collector, &snapshot);
	wait_ms(120);
	take(collector, &snapshot);
	cr_assert_eq(snapshot.boards.count, 3);
	instance = &snapshot.boards.at[1];
	cr_assert_eq(snapshot.boards.at[0].mig_mode, 1);
	cr_assert_eq(instance->parent, 0);
	cr_assert_str_eq(instance->mig_profile, "1g.10gb");
	cr_assert_str_eq(instance->uuid, "MIG-a");
	cr_assert_str_eq(instance->pci_bus, "0000:83:00.0");
	expect(instance, METRIC_mem_total_bytes, 10000);
	expect(instance, METRIC_sm_active_pct, 71);
	expect_none(instance, METRIC_power_w, ORIGIN_NONE);
	expect(&snapshot.boards.at[0], METRIC_power_w, 90);
	cr_assert_eq(snapshot.processes.count, 1);
	cr_assert_eq(snapshot.processes.at[0].board, 1);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, junk_rows_of_process_use_are_left_out_and_counted)
{
	struct world world = { 0 };
	OWN(collector_closep)
	struct collector *collector =
		open_world(&world, "gpu\nname X\nuuid GPU-x\n"
				   "process 10 C 100 50 20 0 0\nprocess 11 CG 200\n"
				   "use 0 0 5 5\nuse 10 -99999999 5 5\nuse 12345 0 9 9\n"
				   "use 10 5 3710 0\n");
	struct snapshot snapshot = { 0 };
	double value = 0;

	take(collector, &snapshot);
	cr_assert_eq(snapshot.processes.count, 2);
	cr_assert_eq(snapshot.junk_rows, 3);
	take(collector, &snapshot);
	cr_assert_eq(snapshot.junk_rows, 3, "of one round, not of all");
	cr_assert_eq(snapshot.processes.at[0].kinds, PROCESS_COMPUTE);
	cr_assert(sample_get(&snapshot.processes.at[0].sample, METRIC_proc_sm_pct, &value));
	cr_assert_eq(value, 50);
	cr_assert_eq(snapshot.processes.at[1].kinds, PROCESS_COMPUTE | PROCESS_GRAPHICS);
	cr_assert(sample_get(&snapshot.processes.at[1].sample, METRIC_proc_sm_pct, &value));
	cr_assert_eq(value, 0);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, process_rows_of_drivers_535_43_to_535_85_are_longer)
{
	struct world world = { 0 };
	OWN(collector_closep)
	struct collector *collector =
		open_world(&world, "nvmlSystemGetDriverVersion 535.54.03\nstride 32\n"
				   "gpu\nname X\nuuid GPU-x\n"
				   "process 10 C 100\nprocess 11 C 200\nprocess 12 C 300\n");
	struct snapshot snapshot = { 0 };
	double value = 0;

	take(collector, &snapshot);
	cr_assert_eq(snapshot.processes.count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(snapshot.processes.at[i].pid, 10 + i);
		cr_assert_eq(snapshot.processes.at[i].gpu_instance, -1);
		cr_assert(sample_get(&snapshot.processes.at[i].sample, METRIC_proc_mem_used_bytes,
				     &value));
		cr_assert_eq(value, 100 * (i + 1));
	}
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, a_thousand_processes_fit)
{
	struct world world = { 0 };
	struct buf script = { 0 };
	OWN(collector_closep) struct collector *collector = NULL;
	struct snapshot snapshot = { 0 };

	buf_text(&script, "gpu\nname X\nuuid GPU-x\n");
	for (int i = 0; i < 1000; i++)
		buf_printf(&script, "process %d C 1000 1 1 0 0\n", i + 100);
	collector = open_world(&world, script.at);
	take(collector, &snapshot);
	cr_assert_eq(snapshot.processes.count, 1000);
	cr_assert_eq(snapshot.processes.at[999].pid, 1099);
	snapshot_done(&snapshot);
	buf_done(&script);
	world_done(&world);
}

Test(collector, no_permission_is_not_not_supported)
{
	struct world world = { 0 };
	OWN(collector_closep)
	struct collector *collector =
		open_world(&world, "gpu\nname X\nuuid GPU-x\nnvmlDeviceGetPowerUsage !4\n"
				   "nvmlDeviceGetTemperatureV !999\nfield 82 !4\n"
				   "nvmlDeviceGetFanSpeed !26\n");
	struct snapshot snapshot = { 0 };
	const struct board *board;

	take(collector, &snapshot);
	board = &snapshot.boards.at[0];
	expect_none(board, METRIC_power_w, ORIGIN_NO_PERMISSION);
	expect_none(board, METRIC_temp_mem_c, ORIGIN_NO_PERMISSION);
	expect_none(board, METRIC_temp_c, ORIGIN_FAILED);
	expect_none(board, METRIC_fan_pct, ORIGIN_DEPRECATED);
	snapshot_done(&snapshot);
	world_done(&world);
}

static int spare(pid_t pid, int signal)
{
	(void)pid;
	(void)signal;
	return 0;
}

Test(collector, a_hung_driver_costs_one_deadline_and_one_child)
{
	struct world world = { .opts.deadline_ns = 300000000 };
	struct collector *collector = open_world(&world, "@h200.nvml");
	struct snapshot snapshot = { 0 };
	struct err err = { 0 };
	pid_t first = collector_pid(collector);

	take(collector, &snapshot);
	world_set(&world, "@h200.nvml\nhang nvmlDeviceGetPowerUsage\n");
	cr_assert_eq(collector_take(collector, &snapshot, &err), ERR_BUSY);
	cr_assert_not_null(strstr(err.line, "gave no answer within 0.3 s"), "%s", err.line);
	cr_assert_eq(collector_state(collector), COLLECTOR_HUNG);
	cr_assert_eq(collector_hung(collector), 1);
	cr_assert_eq(kill(first, 0), -1, "the child is gone");
	cr_assert_gt(collector_cpu_ns(collector), 0, "what it took is not");
	cr_assert_eq(snapshot.boards.count, 1, "the last snapshot stays");
	world_set(&world, "@h200.nvml\n");
	take(collector, &snapshot);
	cr_assert_eq(collector_state(collector), COLLECTOR_OK);
	cr_assert_eq(collector_started(collector), 2);
	cr_assert_eq(snapshot.generation, 1, "counters may have started again");
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, children_that_hang_again_and_again_are_not_replaced_at_once)
{
	struct world world = { .opts.deadline_ns = 50000000 };
	struct collector *collector = open_world(&world, "hang nvmlInit_v2\ngpu\n");
	struct snapshot snapshot = { 0 };
	struct err err = { 0 };

	for (int i = 0; i < 10; i++)
		cr_assert_eq(collector_take(collector, &snapshot, &err), ERR_BUSY);
	cr_assert_eq(collector_started(collector), 2);
	collector_close(collector);
	world_done(&world);
}

Test(collector, a_child_that_cannot_be_killed_is_abandoned_and_not_replaced)
{
	struct world world = { .opts.deadline_ns = 100000000, .opts.kill = spare };
	struct collector *collector =
		open_world(&world, "hang nvmlDeviceGetUtilizationRates\ngpu\nuuid GPU-x\n");
	struct snapshot snapshot = { 0 };
	struct err err = { 0 };
	pid_t stuck = collector_pid(collector);

	cr_assert_eq(collector_take(collector, &snapshot, &err), ERR_BUSY);
	cr_assert_eq(collector_state(collector), COLLECTOR_ABANDONED);
	cr_assert_not_null(strstr(err.line, "can't be ended"), "%s", err.line);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(collector_take(collector, &snapshot, &err), ERR_BUSY);
	cr_assert_eq(collector_started(collector), 1);
	cr_assert_eq(collector_hung(collector), 1);
	/* What it hung on ends. */
	cr_assert_eq(kill(stuck, SIGKILL), 0);
	cr_assert_eq(waitid(P_PID, (id_t)stuck, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	world_set(&world, "gpu\nuuid GPU-x\n");
	take(collector, &snapshot);
	cr_assert_eq(collector_started(collector), 2);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, a_crash_in_the_library_is_not_ours)
{
	struct world world = { 0 };
	struct collector *collector = open_world(&world, "crash nvmlDeviceGetName\ngpu\n");
	struct snapshot snapshot = { 0 };
	struct err err = { 0 };

	cr_assert_eq(collector_take(collector, &snapshot, &err), ERR_IO);
	cr_assert_eq(collector_state(collector), COLLECTOR_DIED);
	world_set(&world, "gpu\nuuid GPU-x\n");
	take(collector, &snapshot);
	cr_assert_eq(snapshot.boards.count, 1);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, a_lost_card_keeps_its_name_and_comes_back)
{
	struct world world = { 0 };
	struct collector *collector = open_world(&world, "@h200.nvml\ngpu\nlike 0\nuuid GPU-b\n");
	struct snapshot snapshot = { 0 };

	take(collector, &snapshot);
	cr_assert_eq(snapshot.boards.count, 2);
	world_set(&world, "@h200.nvml\nlost\ngpu\nlike 0\nlost 15\nuuid GPU-b\n");
	world_set(&world, "@h200.nvml\ngpu\nlike 0\nlost 15\nuuid GPU-b\n");
	take(collector, &snapshot);
	cr_assert_eq(snapshot.boards.at[0].state, BOARD_OK);
	cr_assert_eq(snapshot.boards.at[1].state, BOARD_LOST);
	cr_assert_eq(snapshot.boards.at[1].status, 15);
	expect_none(&snapshot.boards.at[1], METRIC_power_w, ORIGIN_LOST);
	expect_none(&snapshot.boards.at[1], METRIC_power_limit_w, ORIGIN_LOST);
	cr_assert_str_eq(snapshot.boards.at[1].uuid, "GPU-b");
	world_set(&world, "@h200.nvml\ngpu\nlike 0\nuuid GPU-b\n");
	take(collector, &snapshot);
	cr_assert_eq(snapshot.boards.at[1].state, BOARD_OK);
	expect(&snapshot.boards.at[1], METRIC_power_w, 412);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, a_card_that_is_no_longer_listed_is_shown_as_gone)
{
	struct world world = { 0 };
	struct collector *collector = open_world(&world, "@h200.nvml\ngpu\nlike 0\nuuid GPU-b\n");
	struct snapshot snapshot = { 0 };
	struct err err = { 0 };

	take(collector, &snapshot);
	world_set(&world, "@h200.nvml\n");
	cr_assert_eq(collector_ask(collector, COLLECT_ALL | COLLECT_FRESH, &err), 0);
	take(collector, &snapshot);
	cr_assert_eq(snapshot.boards.count, 2);
	cr_assert_eq(snapshot.boards.at[1].state, BOARD_GONE);
	cr_assert_str_eq(snapshot.boards.at[1].uuid, "GPU-b");
	expect_none(&snapshot.boards.at[1], METRIC_power_w, ORIGIN_LOST);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, no_driver_is_told_with_the_drivers_number)
{
	struct world world = { 0 };
	struct collector *collector = open_world(&world, "nvmlInit_v2 !18\n");
	struct snapshot snapshot = { 0 };
	struct err err = { 0 };

	cr_assert_eq(collector_take(collector, &snapshot, &err), ERR_MISSING);
	cr_assert_eq(collector_state(collector), COLLECTOR_NO_DRIVER);
	cr_assert_eq(collector_status(collector), 18);
	cr_assert_str_eq(err.line,
			 "NVML: the library and the loaded driver differ in version (18)");
	/* Asked again at once the answer is the same, without another child. */
	cr_assert_eq(collector_take(collector, &snapshot, &err), ERR_MISSING);
	cr_assert_eq(collector_started(collector), 1);
	collector_close(collector);
	world.opts.library = "/no/such/library.so";
	cr_assert_eq(collector_open(&world.opts, &collector, &err), 0);
	cr_assert_eq(collector_take(collector, &snapshot, &err), ERR_MISSING);
	cr_assert_eq(collector_status(collector), 12);
	cr_assert_not_null(strstr(err.line, "/no/such/library.so"), "%s", err.line);
	collector_close(collector);
	world_done(&world);
}

Test(collector, counters_that_go_backwards_begin_a_new_generation)
{
	struct world world = { 0 };
	struct collector *collector = open_world(&world, "@h200.nvml\nfield 74 5000000\n");
	struct snapshot snapshot = { 0 };

	take(collector, &snapshot);
	cr_assert_eq(snapshot.generation, 0);
	world_set(&world, "@h200.nvml\nfield 74 10\n");
	take(collector, &snapshot);
	cr_assert_gt(snapshot.generation, 0);
	expect_none(&snapshot.boards.at[0], METRIC_power_violation_pct, ORIGIN_PENDING);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, signals_for_the_program_do_not_end_the_child)
{
	struct world world = { 0 };
	struct collector *collector = open_world(&world, "@h200.nvml\n");
	struct snapshot snapshot = { 0 };
	pid_t child = collector_pid(collector);

	take(collector, &snapshot);
	cr_assert_eq(kill(child, SIGINT), 0);
	cr_assert_eq(kill(child, SIGTERM), 0);
	cr_assert_eq(kill(child, SIGHUP), 0);
	take(collector, &snapshot);
	cr_assert_eq(collector_pid(collector), child);
	collector_close(collector);
	cr_assert_eq(kill(child, 0), -1);
	cr_assert_eq(errno, ESRCH);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, wraps_of_pcie_counters_are_counted_where_gpm_tells_them)
{
	struct world world = { 0 };
	/* 50,000 MiB/s: twelve wraps a second. */
	struct collector *collector = open_world(&world, "@h200.nvml\nfield 198 5+52428800000\n"
							 "gpm 21 50000\n");
	struct snapshot snapshot = { 0 };
	double value = 0;

	take(collector, &snapshot);
	wait_ms(250);
	take(collector, &snapshot);
	cr_assert(board_get(&snapshot.boards.at[0], METRIC_pcie_rx_bytes_s, &value, NULL));
	/* The counter and the clock are not read at one instant; uncounted wraps
	 * would leave less than 18e9. */
	cr_assert(value > 30e9 && value < 90e9, "%g", value);
	cr_assert(board_get(&snapshot.boards.at[0], METRIC_pcie_rx_bytes, &value, NULL));
	cr_assert_gt(value, 10e9);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, without_gpm_a_doubtful_interval_is_not_used)
{
	enum { BYTES = 100000000 }; /* from one reading to the next, however long that takes */
	struct world world = { .opts.groups = COLLECT_FAST | COLLECT_PCIE };
	struct collector *collector = open_world(&world, "@h200.nvml\nfield 198 5++100000000\n");
	struct snapshot snapshot = { 0 };
	double value = 0;

	take(collector, &snapshot);
	wait_ms(250);
	take(collector, &snapshot);
	/* The rate of some milliseconds within the round, at least 5, and no total. */
	cr_assert(board_get(&snapshot.boards.at[0], METRIC_pcie_rx_bytes_s, &value, NULL));
	cr_assert(value > 0 && value <= BYTES / 0.005, "%g", value);
	expect_none(&snapshot.boards.at[0], METRIC_pcie_rx_bytes, ORIGIN_WRAPS);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(collector, health_is_repeated_for_some_rounds)
{
	struct world world = { 0 };
	struct collector *collector = open_world(&world, "@h200.nvml\n");
	struct snapshot snapshot = { 0 };
	struct err err = { 0 };

	take(collector, &snapshot);
	world_set(&world, "@h200.nvml\nfield 94 7\n");
	take(collector, &snapshot);
	expect(&snapshot.boards.at[0], METRIC_pcie_replays, 0);
	expect(&snapshot.boards.at[0], METRIC_power_w, 412);
	cr_assert_eq(collector_ask(collector, COLLECT_ALL | COLLECT_FRESH, &err), 0);
	take(collector, &snapshot);
	expect(&snapshot.boards.at[0], METRIC_pcie_replays, 7);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

static void put_card(const struct world *world, const char *bus, const char *status)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/vendor", bus);
	put_file(world, path, "0x10de\n");
	(void)snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/class", bus);
	put_file(world, path, "0x030200\n");
	(void)snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/power/runtime_status", bus);
	put_file(world, path, status);
}

Test(collector, a_sleeping_card_is_left_alone)
{
	struct world world = { 0 };
	struct collector *collector =
		open_world(&world, "gpu\nname Awake\nuuid GPU-a\nbus 0000:01:00.0\n"
				   "nvmlDeviceGetPowerUsage 10000\n"
				   "gpu\nname Asleep\nuuid GPU-b\nbus 0000:02:00.0\n"
				   /* To touch it in any way is an error here. */
				   "crash nvmlDeviceGetUUID\ncrash nvmlDeviceGetPowerUsage\n");
	struct snapshot snapshot = { 0 };

	put_card(&world, "0000:01:00.0", "active\n");
	put_card(&world, "0000:02:00.0", "suspended\n");
	put_file(&world, "proc/driver/nvidia/gpus/0000:02:00.0/information",
		 "Model: \t\t NVIDIA GeForce\nGPU UUID: \t GPU-b\n");
	take(collector, &snapshot);
	cr_assert_eq(snapshot.boards.count, 2);
	cr_assert_str_eq(snapshot.boards.at[0].name, "Awake");
	expect(&snapshot.boards.at[0], METRIC_power_w, 10);
	cr_assert_eq(snapshot.boards.at[1].state, BOARD_ASLEEP);
	cr_assert_str_eq(snapshot.boards.at[1].name, "NVIDIA GeForce");
	cr_assert_str_eq(snapshot.boards.at[1].uuid, "GPU-b");
	expect_none(&snapshot.boards.at[1], METRIC_power_w, ORIGIN_ASLEEP);
	collector_close(collector);
	snapshot_done(&snapshot);
}

Test(collector, a_wrapper_that_answers_is_named)
{
	struct world world = { 0 };
	FILE *dump;
	char line[512];
	bool memory = false, power = false, named = false;

#ifdef __SANITIZE_ADDRESS__
	cr_skip_test("the sanitizer's runtime wants to be the first library");
#endif
	cr_assert_eq(setenv("LD_PRELOAD", FAKE_DIR "/libvgpu.so", 1), 0);
	world.opts.library = FAKE_DIR "/libnvidia-ml.so.1";
	/* The hook has to be there when the process starts: a fresh one. */
	world_set(&world, "@h200.nvml\n");
	(void)setenv("SONDE_NVML", world.opts.library, 1);
	dump = popen(FAKE_DIR "/../../collect_dump 1 1", "r");
	cr_assert_not_null(dump);
	while (fgets(line, sizeof(line), dump)) {
		memory |= strstr(line, " mem_total_bytes 1000 WRAPPER") != NULL;
		power |= strstr(line, " power_w 412 NVML") != NULL;
		named |= strstr(line, "/libvgpu.so") != NULL;
	}
	cr_assert_eq(pclose(dump), 0);
	cr_assert(memory);
	cr_assert(power);
	cr_assert(named);
	world_done(&world);
}

/* Recorded by tests/gpu/nvml.sh; what nvidia-smi said meanwhile is in measured.md. */
Test(collector, a_log_recorded_on_an_h200_gives_its_values_again)
{
	struct world world = { 0 };
	struct collector *collector =
		open_world(&world, "replay " SOURCE_DIR "/tests/fake/logs/h200_collector.log\n");
	struct snapshot snapshot = { 0 };
	double value = 0;

	take(collector, &snapshot);
	wait_ms(120);
	take(collector, &snapshot);
	cr_assert_str_eq(snapshot.driver, "580.159.04");
	cr_assert_eq(snapshot.boards.count, 1);
	cr_assert_str_eq(snapshot.boards.at[0].name, "NVIDIA H200");
	cr_assert_eq(snapshot.boards.at[0].virtualization, 1);
	expect(&snapshot.boards.at[0], METRIC_power_limit_w, 700);
	expect(&snapshot.boards.at[0], METRIC_mem_total_bytes, 143771.0 * 1024 * 1024);
	expect(&snapshot.boards.at[0], METRIC_clock_reasons, 4);
	cr_assert(board_get(&snapshot.boards.at[0], METRIC_util_pct, &value, NULL));
	cr_assert(value >= 99 && value <= 100, "%g", value);
	expect_none(&snapshot.boards.at[0], METRIC_nvlink_links, ORIGIN_NOT_SUPPORTED);
	cr_assert(board_get(&snapshot.boards.at[0], METRIC_power_w, &value, NULL));
	cr_assert(value > 600 && value < 720, "%g", value);
	cr_assert(board_get(&snapshot.boards.at[0], METRIC_sm_active_pct, &value, NULL));
	cr_assert(value > 80 && value < 100, "%g", value);
	cr_assert_eq(snapshot.processes.count, 1);
	cr_assert_eq(snapshot.processes.at[0].pid, 443);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}
