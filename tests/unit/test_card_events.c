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

/* Calls of the round, by name. */
static uint64_t calls(struct collector *collector, const char *name)
{
	struct snapshot snapshot = { 0 };
	struct err err = { 0 };
	uint64_t count = 0;

	cr_assert_eq(collector_ask(collector, COLLECT_FAST | COLLECT_COSTS, &err), 0);
	take(collector, &snapshot);
	for (size_t i = 0; i < snapshot.costs.count; i++)
		if (!strcmp(snapshot.costs.at[i].name, name))
			count = snapshot.costs.at[i].count;
	snapshot_done(&snapshot);
	return count;
}

/* Three rounds in this world; how many events came, and how often the driver was
 * asked for one. */
static void listen(const char *script, const char *then, size_t events, uint64_t waits)
{
	struct world world = { 0 };
	struct collector *collector = open_world(&world, script);
	struct snapshot snapshot = { 0 };
	size_t came = 0;
	uint64_t asked;

	ask_events(collector, &snapshot);
	world_set(&world, then);
	for (int i = 0; i < 2; i++) {
		ask_events(collector, &snapshot);
		came += snapshot.events.count;
		cr_assert_eq(snapshot.boards.at[0].state, BOARD_OK);
	}
	asked = calls(collector, "nvmlEventSetWait_v2");
	cr_assert_eq(came, events, "%zu", came);
	cr_assert_eq(asked, waits, "%llu", (unsigned long long)asked);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

#define CARD                                          \
	"gpu\nname X\nuuid GPU-x\nbus 0000:01:00.0\n" \
	"nvmlDeviceGetPowerUsage 1000\n"              \
	"nvmlDeviceGetSupportedEventTypes 0xc01f\n"

Test(card_events, without_an_event_set_the_rest_goes_on)
{
	listen("nvmlEventSetCreate !3\n" CARD, "nvmlEventSetCreate !3\n" CARD "event 8 79\n", 0, 0);
}

Test(card_events, no_permission_to_register_is_asked_once)
{
	listen("@h200.nvml\nnvmlDeviceRegisterEvents !4\n",
	       "@h200.nvml\nnvmlDeviceRegisterEvents !4\nevent 8 79\n", 0, 0);
}

Test(card_events, types_that_nobody_wants_are_not_registered)
{
	/* P-state and clock changes alone. */
	listen("@h200.nvml\nnvmlDeviceGetSupportedEventTypes 0x14\n",
	       "@h200.nvml\nnvmlDeviceGetSupportedEventTypes 0x14\nevent 8 79\n", 0, 0);
}

Test(card_events, a_driver_that_fails_to_wait_ends_the_look_and_not_the_round)
{
	listen("nvmlEventSetWait_v2 !999\n" CARD, "nvmlEventSetWait_v2 !999\n" CARD "event 8 79\n",
	       0, 3);
}

Test(card_events, more_than_a_round_takes_come_in_the_next)
{
	struct world world = { 0 };
	struct collector *collector = open_world(&world, "@h200.nvml\n");
	struct snapshot snapshot = { 0 };
	struct buf script = { 0 };

	ask_events(collector, &snapshot);
	buf_text(&script, "@h200.nvml\n");
	for (int i = 0; i < 70; i++)
		buf_printf(&script, "event 8 %d\n", 100 + i);
	world_set(&world, script.at);
	ask_events(collector, &snapshot);
	cr_assert_eq(snapshot.events.count, 64);
	cr_assert_eq(snapshot.events.at[63].data, 163);
	ask_events(collector, &snapshot);
	cr_assert_eq(snapshot.events.count, 6);
	cr_assert_eq(snapshot.events.at[5].data, 169);
	buf_done(&script);
	collector_close(collector);
	snapshot_done(&snapshot);
	world_done(&world);
}

Test(card_events, the_xid_of_a_card_that_falls_off_the_bus_still_comes)
{
	struct world world = { 0 };
	struct collector *collector = open_world(&world, "@h200.nvml\n");
	struct snapshot snapshot = { 0 };
	struct fault fault;

	ask_events(collector, &snapshot);
	world_set(&world, "@h200.nvml\nlost 15\nevent 8 79\n");
	ask_events(collector, &snapshot);
	cr_assert_eq(snapshot.events.count, 1);
	cr_assert_eq(snapshot.boards.at[0].state, BOARD_LOST);
	cr_assert(board_event_fault(&snapshot, &snapshot.events.at[0], &fault));
	cr_assert_eq(fault.number, 79);
	cr_assert_str_eq(fault.pci, "0000:83:00.0");
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
