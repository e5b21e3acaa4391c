/*
 * made_snapshot.h - invented cards, processes and faults for whoever shows them.
 */
#pragma once

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "collect/board.h"
#include "collect/proc.h"

static inline void made_set(struct board *board, enum metric metric, double value)
{
	sample_set(&board->sample, metric, value);
	board->origin[metric] = ORIGIN_NVML;
}

/* A card that tells nothing but its name, as a laptop's does. */
static inline struct board *made_board(struct snapshot *snapshot, uint32_t index)
{
	struct board *board = VEC_ADD(&snapshot->boards);

	*board = (struct board){
		.index = index,
		.parent = -1,
		.gpu_instance = -1,
		.compute_instance = -1,
		.cc_major = 9,
		.mig_mode = -1,
		.persistence = -1,
		.compute_mode = -1,
		.virtualization = -1,
		.ecc_mode = -1,
		.recovery_action = -1,
	};
	for (size_t i = 0; i < METRIC_COUNT; i++)
		board->origin[i] = ORIGIN_NOT_SUPPORTED;
	(void)snprintf(board->uuid, sizeof(board->uuid), "GPU-0000000%u-made", index);
	(void)snprintf(board->name, sizeof(board->name), "NVIDIA H200");
	(void)snprintf(board->pci_bus, sizeof(board->pci_bus), "0000:8%u:00.0", index);
	return board;
}

static inline struct board_process *made_process(struct snapshot *snapshot, uint32_t board,
						 int64_t pid, double bytes)
{
	struct board_process *process = VEC_ADD(&snapshot->processes);

	*process = (struct board_process){
		.board = board,
		.pid = pid,
		.kinds = PROCESS_COMPUTE,
		.gpu_instance = -1,
		.compute_instance = -1,
	};
	sample_set(&process->sample, METRIC_proc_mem_used_bytes, bytes);
	return process;
}

/* `cards` busy cards; of the values, `step` moves the counters. */
static inline void made_busy(struct snapshot *snapshot, uint32_t cards, double step)
{
	snapshot->utc_ns = 1700000000000000000;
	snapshot->wall_ns = 2500000;
	snapshot->cpu_ns = 400000;
	snapshot->calls = 40;
	snapshot->slowest_ns = 1200000;
	snapshot->rss_bytes = 6 << 20;
	(void)snprintf(snapshot->slowest, sizeof(snapshot->slowest), "nvmlDeviceGetFieldValues");
	(void)snprintf(snapshot->driver, sizeof(snapshot->driver), "580.159.04");
	(void)snprintf(snapshot->cuda, sizeof(snapshot->cuda), "13.0");
	for (uint32_t i = 0; i < cards; i++) {
		struct board *board = made_board(snapshot, i);
		struct board_process *process = made_process(snapshot, i, 4000 + i, 64e9);

		board->persistence = 1;
		made_set(board, METRIC_power_w, 687.25);
		made_set(board, METRIC_power_limit_w, 700);
		made_set(board, METRIC_energy_j, 1e6 + 687 * step);
		made_set(board, METRIC_temp_c, 56 + i);
		made_set(board, METRIC_util_pct, 57);
		made_set(board, METRIC_sm_mhz, 1545);
		made_set(board, METRIC_max_sm_mhz, 1980);
		made_set(board, METRIC_sm_active_pct, 99.5);
		made_set(board, METRIC_tensor_pct, 71);
		made_set(board, METRIC_mem_used_bytes, 64 * 1073741824.0);
		made_set(board, METRIC_mem_total_bytes, 150754820096);
		made_set(board, METRIC_clock_reasons, 4);
		made_set(board, METRIC_reason_power_cap_us, 3e6 + 1e6 * step);
		made_set(board, METRIC_reason_hw_thermal_us, 0);
		made_set(board, METRIC_pcie_rx_bytes, 5e9 + 1e6 * step);
		made_set(board, METRIC_pcie_tx_bytes, 7e9 + 2e6 * step);
		made_set(board, METRIC_ecc_double, 0);
		sample_set(&process->sample, METRIC_proc_sm_pct, 57);
	}
}

/* A MIG instance of the card at `parent`. */
static inline struct board *made_instance(struct snapshot *snapshot, int32_t parent)
{
	struct board *board = made_board(snapshot, 0);

	board->parent = parent;
	board->gpu_instance = 7;
	board->compute_instance = 0;
	(void)snprintf(board->uuid, sizeof(board->uuid), "MIG-made");
	(void)snprintf(board->mig_profile, sizeof(board->mig_profile), "1g.18gb");
	return board;
}
