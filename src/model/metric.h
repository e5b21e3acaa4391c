/*
 * metric.h - what can be sampled of a device or a process, and a sample.
 *
 * X(id, unit, what). The id in lower case is the column name in SQL and JSON
 * and carries its unit. To add a metric: a line here and a line where it is
 * asked for. Sources: nvidia-smi(1) for dmon, pmon and query fields; NVML
 * reference for GPM.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define METRIC_LIST(X)                                                                   \
	X(power_w, "W", "board power")                                                   \
	X(power_limit_w, "W", "power limit in force")                                    \
	X(power_default_limit_w, "W", "default power limit")                             \
	X(power_max_limit_w, "W", "highest power limit")                                 \
	X(temp_c, "C", "GPU temperature")                                                \
	X(temp_mem_c, "C", "memory temperature")                                         \
	X(temp_slowdown_c, "C", "temperature at which the clock is cut")                 \
	X(fan_pct, "%", "fan speed")                                                     \
	X(util_pct, "%", "share of time in which some kernel ran")                       \
	X(mem_util_pct, "%", "share of time in which device memory was accessed")        \
	X(enc_pct, "%", "encoder utilisation")                                           \
	X(dec_pct, "%", "decoder utilisation")                                           \
	X(jpg_pct, "%", "JPEG engine utilisation")                                       \
	X(ofa_pct, "%", "optical flow utilisation")                                      \
	X(sm_mhz, "MHz", "SM clock")                                                     \
	X(graphics_mhz, "MHz", "graphics clock")                                         \
	X(mem_mhz, "MHz", "memory clock")                                                \
	X(video_mhz, "MHz", "video clock")                                               \
	X(max_sm_mhz, "MHz", "highest SM clock")                                         \
	X(max_mem_mhz, "MHz", "highest memory clock")                                    \
	X(power_violation_pct, "%", "share of time under the power limit")               \
	X(thermal_violation, "bool", "a thermal limit was in force")                     \
	X(clock_reasons, "bits", "clock event reasons, NVML bit mask")                   \
	X(reason_power_cap_us, "us", "time under the software power cap, total")         \
	X(reason_sync_boost_us, "us", "time under sync boost, total")                    \
	X(reason_sw_thermal_us, "us", "time in software thermal slowdown, total")        \
	X(reason_hw_thermal_us, "us", "time in hardware thermal slowdown, total")        \
	X(reason_power_brake_us, "us", "time under the power brake, total")              \
	X(mem_used_bytes, "B", "device memory in use")                                   \
	X(mem_free_bytes, "B", "device memory free")                                     \
	X(mem_reserved_bytes, "B", "device memory kept by the driver")                   \
	X(mem_total_bytes, "B", "device memory")                                         \
	X(bar1_used_bytes, "B", "BAR1 in use")                                           \
	X(bar1_total_bytes, "B", "BAR1")                                                 \
	X(protected_used_bytes, "B", "confidential-compute memory in use")               \
	X(ecc_single, "count", "corrected ECC errors")                                   \
	X(ecc_double, "count", "uncorrected ECC errors")                                 \
	X(remapped_corrected, "count", "rows remapped after corrected errors")           \
	X(remapped_uncorrected, "count", "rows remapped after uncorrected errors")       \
	X(remapped_pending, "bool", "a row remap waits for a reset")                     \
	X(pcie_replays, "count", "PCIe replays")                                         \
	X(pcie_rx_bytes_s, "B/s", "PCIe receive rate")                                   \
	X(pcie_tx_bytes_s, "B/s", "PCIe send rate")                                      \
	X(pcie_gen, "", "PCIe generation in use")                                        \
	X(pcie_gen_max, "", "highest PCIe generation")                                   \
	X(pcie_width, "lanes", "PCIe width in use")                                      \
	X(pcie_width_max, "lanes", "highest PCIe width")                                 \
	X(pstate, "", "performance state, 0 is fastest")                                 \
	X(gr_active_pct, "%", "GPM: graphics engine active")                             \
	X(sm_active_pct, "%", "GPM: SMs with a warp, mean over time and SMs")            \
	X(occupancy_pct, "%", "GPM: warps resident, of the most that fit")               \
	X(tensor_pct, "%", "GPM: tensor pipes active")                                   \
	X(dfma_tensor_pct, "%", "GPM: FP64 tensor active")                               \
	X(hmma_tensor_pct, "%", "GPM: half precision tensor active")                     \
	X(imma_tensor_pct, "%", "GPM: integer tensor active")                            \
	X(dram_pct, "%", "GPM: device memory interface active")                          \
	X(fp64_pct, "%", "GPM: FP64 pipe active")                                        \
	X(fp32_pct, "%", "GPM: FP32 pipe active")                                        \
	X(fp16_pct, "%", "GPM: FP16 pipe active")                                        \
	X(int_pct, "%", "GPM: integer pipe active")                                      \
	X(gpm_pcie_tx_bytes_s, "B/s", "GPM: PCIe send rate")                             \
	X(gpm_pcie_rx_bytes_s, "B/s", "GPM: PCIe receive rate")                          \
	X(nvlink_rx_bytes_s, "B/s", "NVLink receive rate")                               \
	X(nvlink_tx_bytes_s, "B/s", "NVLink send rate")                                  \
	X(proc_sm_pct, "%", "SM use of a process")                                       \
	X(proc_mem_pct, "%", "memory interface use of a process")                        \
	X(proc_enc_pct, "%", "encoder use of a process")                                 \
	X(proc_dec_pct, "%", "decoder use of a process")                                 \
	X(proc_jpg_pct, "%", "JPEG engine use of a process")                             \
	X(proc_ofa_pct, "%", "optical flow use of a process")                            \
	X(proc_mem_used_bytes, "B", "device memory of a process")                        \
	X(proc_protected_bytes, "B", "confidential-compute memory of a process")         \
	X(power_instant_w, "W", "board power at this instant")                           \
	X(power_min_limit_w, "W", "lowest power limit that can be set")                  \
	X(energy_j, "J", "energy since the driver was loaded, total")                    \
	X(temp_margin_c, "C", "degrees below the temperature at which the clock is cut") \
	X(temp_shutdown_c, "C", "temperature at which the card turns itself off")        \
	X(pcie_rx_bytes, "B", "received over PCIe, total")                               \
	X(pcie_tx_bytes, "B", "sent over PCIe, total")                                   \
	X(nvlink_rx_bytes, "B", "received over NVLink, total")                           \
	X(nvlink_tx_bytes, "B", "sent over NVLink, total")                               \
	X(nvlink_links, "count", "NVLink links")                                         \
	X(nvlink_mbytes_s, "MB/s", "speed of an NVLink link")                            \
	X(ecc_single_total, "count", "corrected ECC errors of the card's life")          \
	X(ecc_double_total, "count", "uncorrected ECC errors of the card's life")        \
	X(remapped_failed, "bool", "a row could not be remapped")                        \
	X(retired_single, "count", "pages retired after corrected errors")               \
	X(retired_double, "count", "pages retired after uncorrected errors")             \
	X(retired_pending, "bool", "a page retirement waits for a reset")                \
	X(recovery_action, "",                                                           \
	  "what the driver says mends the card: 0 nothing, 1 reset, "                    \
	  "2 reboot, 3 drain, 4 drain and reset")

enum metric {
#define X(id, unit, what) METRIC_##id,
	METRIC_LIST(X)
#undef X
		METRIC_COUNT
};

struct sample {
	uint32_t lane; /* LANE_BOARD or LANE_PROCESS */
	int64_t time_ns;
	uint64_t have[(METRIC_COUNT + 63) / 64]; /* bit per metric */
	double value[METRIC_COUNT];
};

static inline bool sample_get(const struct sample *sample, enum metric metric, double *ret_value)
{
	if (!(sample->have[metric / 64] >> (metric % 64) & 1))
		return false;
	*ret_value = sample->value[metric];
	return true;
}

static inline void sample_set(struct sample *sample, enum metric metric, double value)
{
	sample->have[metric / 64] |= (uint64_t)1 << (metric % 64);
	sample->value[metric] = value;
}

/* Name, unit and meaning, as in the list. */
const char *metric_name(enum metric metric);
const char *metric_unit(enum metric metric);
const char *metric_what(enum metric metric);

/* May a card say so? Wide enough for any. NVML is known to hand out rubbish of thousands of
 * percent for processes, and logs to hold all ones for what a driver did not know. */
bool metric_possible(enum metric metric, double value);
