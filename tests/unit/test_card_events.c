/* What the driver tells by itself, and cards of which it tells little. */
#include "collector_bench.h"

static void ask_events(struct collector *collector, struct snapshot *snapshot)
{
	struct err err = { 0 };

	cr_assert_eq(collector_ask(collector, COLLECT_FAST | COLLECT_EVENTS, &err), 0, "%s",
		     err.line);
	take(collector, snapshot);
}

Test(card_events, an_xid_comes_once_and_becomes_a_fault_of_its_card)
{
	struct world world = { 0 };
	struct collector *collector = open_world(&world, "@h200.nvml\n");
	struct snapshot snapshot = { 0 };
	struct fault fault;
	int64_t before_ns;

	ask_events(collector, &snapshot);
	cr_assert_eq(snapshot.events.count, 0);
	before_ns = snapshot.utc_ns;
	world_set(&world, "@h200.nvml\nevent 8 31\nevent 8 94 5 2\n");
	ask_events(collector, &snapshot);
	cr_assert_eq(snapshot.events.count, 2);
	cr_assert_eq(snapshot.events.at[0].since_ns, before_ns);
	cr_assert(board_event_fault(&snapshot, &snapshot.events.at[0], &fault));
	cr_assert_eq(fault.kind, FAULT_XID);
	cr_assert_eq(fault.origin, FAULT_FROM_NVML);
	cr_assert_eq(fault.number, 31);
	cr_assert_eq(fault.time_ns, snapshot.utc_ns);
	cr_assert_eq(fault.time_ns - fault.early_ns, before_ns);
	cr_assert_str_eq(fault.pci, "0000:83:00.0");
	cr_assert_not(fault_has(&fault, FAULT_GPU_INSTANCE));
	cr_assert(board_event_fault(&snapshot, &snapshot.events.at[1], &fault));
	cr_assert_eq(fault.gpu_instance, 5);
	cr_assert_eq(fault.compute_instance, 2);
	ask_events(collector, &snapshot);
	cr_assert_eq(snapshot.events.count, 0, "each comes once");
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(card_events, an_event_makes_health_be_read_anew)
{
	struct world world = { 0 };
	struct collector *collector = open_world(&world, "@h200.nvml\n");
	struct snapshot snapshot = { 0 };
	struct fault fault;

	take(collector, &snapshot);
	ask_events(collector, &snapshot);
	world_set(&world, "@h200.nvml\nevent 0x8000 0\nfield 230 1\n");
	ask_events(collector, &snapshot);
	cr_assert_eq(snapshot.events.count, 1);
	cr_assert_not(board_event_fault(&snapshot, &snapshot.events.at[0], &fault));
	cr_assert_eq(snapshot.boards.at[0].recovery_action, 1);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(card_events, a_card_without_events_is_left_alone)
{
	struct world world = { 0 };
	struct collector *collector =
		open_world(&world, "gpu\nname X\nuuid GPU-x\nbus 0000:01:00.0\nevent 8 13\n");
	struct snapshot snapshot = { 0 };

	ask_events(collector, &snapshot);
	ask_events(collector, &snapshot);
	cr_assert_eq(snapshot.events.count, 0);
	cr_assert_eq(snapshot.boards.at[0].state, BOARD_OK);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(card_pcie, without_counters_the_rate_is_measured_for_one_card_a_round)
{
	struct world world = { .opts.groups = COLLECT_PCIE };
	struct collector *collector = open_world(
		&world, "gpu\nname A\nuuid GPU-a\nbus 0000:01:00.0\n"
			"nvmlDeviceGetPcieThroughput.0 100\nnvmlDeviceGetPcieThroughput.1 200\n"
			"gpu\nlike 0\nuuid GPU-b\nbus 0000:02:00.0\n"
			"gpu\nname C\nuuid GPU-c\nbus 0000:03:00.0\n");
	struct snapshot snapshot = { 0 };

	take(collector, &snapshot);
	expect(&snapshot.boards.at[0], METRIC_pcie_tx_bytes_s, 102400);
	expect(&snapshot.boards.at[0], METRIC_pcie_rx_bytes_s, 204800);
	expect_none(&snapshot.boards.at[0], METRIC_pcie_rx_bytes, ORIGIN_NOT_SUPPORTED);
	expect_none(&snapshot.boards.at[1], METRIC_pcie_rx_bytes_s, ORIGIN_PENDING);
	take(collector, &snapshot);
	expect(&snapshot.boards.at[0], METRIC_pcie_rx_bytes_s, 204800);
	expect(&snapshot.boards.at[1], METRIC_pcie_rx_bytes_s, 204800);
	take(collector, &snapshot);
	expect_none(&snapshot.boards.at[2], METRIC_pcie_rx_bytes_s, ORIGIN_NOT_SUPPORTED);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(card_proc, a_card_lost_from_the_start_is_named_by_the_kernel_module)
{
	struct world world = { 0 };
	struct collector *collector = open_world(
		&world,
		"gpu\nname A\nuuid GPU-a\nbus 0000:01:00.0\ngpu\nnohandle\ngpu\nnohandle\n");
	struct snapshot snapshot = { 0 };

	put_file(&world, "proc/driver/nvidia/gpus/0000:03:00.0/information",
		 "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-?\n");
	put_file(&world, "proc/driver/nvidia/gpus/0000:02:00.0/information",
		 "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-b\n");
	put_file(&world, "proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t A\n");
	take(collector, &snapshot);
	cr_assert_eq(snapshot.boards.count, 3);
	for (int i = 1; i < 3; i++)
		cr_assert_eq(snapshot.boards.at[i].state, BOARD_LOST);
	cr_assert_str_eq(snapshot.boards.at[1].pci_bus, "0000:02:00.0");
	cr_assert_str_eq(snapshot.boards.at[1].name, "NVIDIA H100");
	cr_assert_str_eq(snapshot.boards.at[1].uuid, "GPU-b");
	cr_assert_str_eq(snapshot.boards.at[2].pci_bus, "0000:03:00.0");
	cr_assert_str_eq(snapshot.boards.at[2].name, "NVIDIA H200");
	cr_assert_str_eq(snapshot.boards.at[2].uuid, "");
	collector_close(collector);
	snapshot_done(&snapshot);
}
