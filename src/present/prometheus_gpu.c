#include <string.h>

#include "base/str.h"
#include "present/prometheus_part.h"

/*
 * One row is one value of a board. Rows of one family stand together and differ
 * in a label. The factor to the base unit follows from the metric's own unit.
 */
struct row {
	const char *family;
	enum prom_type type;
	const char *label, *value;
	enum metric metric;
	const char *help;
};

#define GAUGE(family, metric, help)                                   \
	{                                                             \
		family, PROM_GAUGE, NULL, NULL, METRIC_##metric, help \
	}
#define COUNTER(family, metric, help)                                   \
	{                                                               \
		family, PROM_COUNTER, NULL, NULL, METRIC_##metric, help \
	}
#define GAUGE_OF(family, label, value, metric, help)                    \
	{                                                               \
		family, PROM_GAUGE, label, value, METRIC_##metric, help \
	}
#define COUNTER_OF(family, label, value, metric, help)                    \
	{                                                                 \
		family, PROM_COUNTER, label, value, METRIC_##metric, help \
	}

#define UTILISATION  "Share of time in which the engine was busy."
#define THROTTLE     "Time for which the clock was held down, by reason."
#define ECC          "ECC errors since the driver was loaded."
#define ECC_LIFE     "ECC errors of the card's life."
#define ROWS         "Memory rows replaced after errors."
#define PAGES        "Memory pages retired after errors."
#define PCIE_BYTES   "Bytes sent (tx) or received (rx) over PCIe."
#define PCIE_RATE    "PCIe rate by performance monitoring (GPM)."
#define NVLINK_BYTES "Bytes sent (tx) or received (rx) over NVLink."
#define NVLINK_RATE  "NVLink rate."
#define TENSOR       "Share of time in which the tensor pipes worked on this type (GPM)."
#define PIPE         "Share of time in which the pipe worked (GPM)."

static const struct row rows[] = {
	GAUGE("sonde_gpu_power_watts", power_w, "Board power."),
	GAUGE("sonde_gpu_power_instant_watts", power_instant_w, "Board power at this instant."),
	GAUGE("sonde_gpu_power_limit_watts", power_limit_w, "Power limit in force."),
	GAUGE("sonde_gpu_power_default_limit_watts", power_default_limit_w, "Default power limit."),
	GAUGE("sonde_gpu_power_max_limit_watts", power_max_limit_w, "Highest power limit."),
	GAUGE("sonde_gpu_power_min_limit_watts", power_min_limit_w, "Lowest power limit."),
	COUNTER("sonde_gpu_energy_joules", energy_j, "Energy since the driver was loaded."),
	GAUGE("sonde_gpu_temperature_celsius", temp_c, "GPU temperature."),
	GAUGE("sonde_gpu_memory_temperature_celsius", temp_mem_c, "Memory temperature."),
	GAUGE("sonde_gpu_temperature_slowdown_celsius", temp_slowdown_c,
	      "Temperature at which the clock is cut."),
	GAUGE("sonde_gpu_temperature_shutdown_celsius", temp_shutdown_c,
	      "Temperature at which the card turns itself off."),
	GAUGE("sonde_gpu_temperature_margin_celsius", temp_margin_c,
	      "Degrees left before the clock is cut."),
	GAUGE("sonde_gpu_fan_speed_ratio", fan_pct, "Fan speed as a share of the highest."),
	GAUGE("sonde_gpu_utilization_ratio", util_pct,
	      "Share of time in which some kernel ran, however small; not how full the GPU was."),
	GAUGE("sonde_gpu_memory_utilization_ratio", mem_util_pct,
	      "Share of time in which device memory was accessed; not how full it is."),
	GAUGE_OF("sonde_gpu_engine_utilization_ratio", "engine", "encoder", enc_pct, UTILISATION),
	GAUGE_OF("sonde_gpu_engine_utilization_ratio", "engine", "decoder", dec_pct, UTILISATION),
	GAUGE_OF("sonde_gpu_engine_utilization_ratio", "engine", "jpeg", jpg_pct, UTILISATION),
	GAUGE_OF("sonde_gpu_engine_utilization_ratio", "engine", "optical_flow", ofa_pct,
		 UTILISATION),
	GAUGE("sonde_gpu_sm_clock_hertz", sm_mhz, "SM clock."),
	GAUGE("sonde_gpu_graphics_clock_hertz", graphics_mhz, "Graphics clock."),
	GAUGE("sonde_gpu_memory_clock_hertz", mem_mhz, "Memory clock."),
	GAUGE("sonde_gpu_video_clock_hertz", video_mhz, "Video clock."),
	GAUGE("sonde_gpu_sm_clock_max_hertz", max_sm_mhz, "Highest SM clock."),
	GAUGE("sonde_gpu_memory_clock_max_hertz", max_mem_mhz, "Highest memory clock."),
	GAUGE("sonde_gpu_performance_state", pstate, "Performance state; 0 is the fastest."),
	COUNTER_OF("sonde_gpu_throttle_seconds", "reason", "sw_power_cap", reason_power_cap_us,
		   THROTTLE),
	COUNTER_OF("sonde_gpu_throttle_seconds", "reason", "sync_boost", reason_sync_boost_us,
		   THROTTLE),
	COUNTER_OF("sonde_gpu_throttle_seconds", "reason", "sw_thermal", reason_sw_thermal_us,
		   THROTTLE),
	COUNTER_OF("sonde_gpu_throttle_seconds", "reason", "hw_thermal", reason_hw_thermal_us,
		   THROTTLE),
	COUNTER_OF("sonde_gpu_throttle_seconds", "reason", "hw_power_brake", reason_power_brake_us,
		   THROTTLE),
	GAUGE("sonde_gpu_memory_used_bytes", mem_used_bytes, "Device memory in use."),
	GAUGE("sonde_gpu_memory_free_bytes", mem_free_bytes, "Device memory free."),
	GAUGE("sonde_gpu_memory_reserved_bytes", mem_reserved_bytes,
	      "Device memory kept by the driver."),
	GAUGE("sonde_gpu_memory_size_bytes", mem_total_bytes, "Device memory."),
	GAUGE("sonde_gpu_bar1_used_bytes", bar1_used_bytes, "BAR1 in use."),
	GAUGE("sonde_gpu_bar1_size_bytes", bar1_total_bytes, "BAR1."),
	COUNTER_OF("sonde_gpu_ecc_errors", "type", "corrected", ecc_single, ECC),
	COUNTER_OF("sonde_gpu_ecc_errors", "type", "uncorrected", ecc_double, ECC),
	COUNTER_OF("sonde_gpu_ecc_lifetime_errors", "type", "corrected", ecc_single_total,
		   ECC_LIFE),
	COUNTER_OF("sonde_gpu_ecc_lifetime_errors", "type", "uncorrected", ecc_double_total,
		   ECC_LIFE),
	GAUGE_OF("sonde_gpu_remapped_rows", "cause", "corrected", remapped_corrected, ROWS),
	GAUGE_OF("sonde_gpu_remapped_rows", "cause", "uncorrected", remapped_uncorrected, ROWS),
	GAUGE("sonde_gpu_row_remap_pending", remapped_pending,
	      "1: a row replacement waits for a reset."),
	GAUGE("sonde_gpu_row_remap_failed", remapped_failed, "1: a row could not be replaced."),
	GAUGE_OF("sonde_gpu_retired_pages", "cause", "corrected", retired_single, PAGES),
	GAUGE_OF("sonde_gpu_retired_pages", "cause", "uncorrected", retired_double, PAGES),
	GAUGE("sonde_gpu_page_retirement_pending", retired_pending,
	      "1: a page retirement waits for a reset."),
	GAUGE("sonde_gpu_recovery_action", recovery_action,
	      "What the driver says mends the card: 0 nothing, 1 reset, 2 reboot, 3 drain, "
	      "4 drain and reset."),
	COUNTER("sonde_gpu_pcie_replays", pcie_replays, "PCIe packets sent again."),
	COUNTER_OF("sonde_gpu_pcie_bytes", "direction", "rx", pcie_rx_bytes, PCIE_BYTES),
	COUNTER_OF("sonde_gpu_pcie_bytes", "direction", "tx", pcie_tx_bytes, PCIE_BYTES),
	GAUGE_OF("sonde_gpu_pcie_throughput_bytes_per_second", "direction", "rx",
		 gpm_pcie_rx_bytes_s, PCIE_RATE),
	GAUGE_OF("sonde_gpu_pcie_throughput_bytes_per_second", "direction", "tx",
		 gpm_pcie_tx_bytes_s, PCIE_RATE),
	GAUGE("sonde_gpu_pcie_link_generation", pcie_gen, "PCIe generation in use."),
	GAUGE("sonde_gpu_pcie_link_generation_max", pcie_gen_max, "Highest PCIe generation."),
	GAUGE("sonde_gpu_pcie_link_lanes", pcie_width, "PCIe lanes in use."),
	GAUGE("sonde_gpu_pcie_link_lanes_max", pcie_width_max, "Highest number of PCIe lanes."),
	GAUGE("sonde_gpu_nvlink_links", nvlink_links, "NVLink links."),
	COUNTER_OF("sonde_gpu_nvlink_bytes", "direction", "rx", nvlink_rx_bytes, NVLINK_BYTES),
	COUNTER_OF("sonde_gpu_nvlink_bytes", "direction", "tx", nvlink_tx_bytes, NVLINK_BYTES),
	GAUGE_OF("sonde_gpu_nvlink_throughput_bytes_per_second", "direction", "rx",
		 nvlink_rx_bytes_s, NVLINK_RATE),
	GAUGE_OF("sonde_gpu_nvlink_throughput_bytes_per_second", "direction", "tx",
		 nvlink_tx_bytes_s, NVLINK_RATE),
	GAUGE("sonde_gpu_graphics_active_ratio", gr_active_pct,
	      "Share of time in which the graphics or compute engine was busy (GPM)."),
	GAUGE("sonde_gpu_sm_active_ratio", sm_active_pct,
	      "SMs with work, mean over time and SMs (GPM)."),
	GAUGE("sonde_gpu_sm_occupancy_ratio", occupancy_pct,
	      "Warps resident, of the most that fit (GPM)."),
	GAUGE("sonde_gpu_tensor_active_ratio", tensor_pct,
	      "Share of time in which the tensor pipes worked (GPM)."),
	GAUGE_OF("sonde_gpu_tensor_type_active_ratio", "type", "fp64", dfma_tensor_pct, TENSOR),
	GAUGE_OF("sonde_gpu_tensor_type_active_ratio", "type", "half", hmma_tensor_pct, TENSOR),
	GAUGE_OF("sonde_gpu_tensor_type_active_ratio", "type", "integer", imma_tensor_pct, TENSOR),
	GAUGE("sonde_gpu_dram_active_ratio", dram_pct,
	      "Share of time in which the memory interface moved data (GPM)."),
	GAUGE_OF("sonde_gpu_pipe_active_ratio", "pipe", "fp64", fp64_pct, PIPE),
	GAUGE_OF("sonde_gpu_pipe_active_ratio", "pipe", "fp32", fp32_pct, PIPE),
	GAUGE_OF("sonde_gpu_pipe_active_ratio", "pipe", "fp16", fp16_pct, PIPE),
	GAUGE_OF("sonde_gpu_pipe_active_ratio", "pipe", "integer", int_pct, PIPE),
};

/* Bits of METRIC_clock_reasons; NVML reference, nvmlClocksEventReasons. */
static const struct {
	unsigned int bit;
	const char *word;
} clock_reasons[] = {
	{ 0, "idle" },        { 1, "application_clocks" }, { 2, "sw_power_cap" },
	{ 3, "hw_slowdown" }, { 4, "sync_boost" },         { 5, "sw_thermal" },
	{ 6, "hw_thermal" },  { 7, "hw_power_brake" },     { 8, "display_clocks" },
};

static double in_base_unit(enum metric metric, double value)
{
	const char *unit = metric_unit(metric);

	/* Divided rather than multiplied: 57 / 100 is the double nearest to 0.57. */
	if (!strcmp(unit, "%"))
		return value / 100;
	if (!strcmp(unit, "us"))
		return value / 1e6;
	if (!strcmp(unit, "MHz") || !strcmp(unit, "MB/s"))
		return value * 1e6;
	return value;
}

const struct board *prometheus_card(const struct snapshot *snapshot, const struct board *board)
{
	bool instance = board->parent >= 0 && (size_t)board->parent < snapshot->boards.count;

	return instance ? &snapshot->boards.at[board->parent] : board;
}

void prometheus_board_labels(const struct snapshot *snapshot, const struct board *board,
			     struct prom_labels *ret)
{
	const struct board *card = prometheus_card(snapshot, board);

	prom_labels_i64(ret, "gpu", card->index);
	prom_labels_text(ret, "uuid", board->uuid);
	prom_labels_text(ret, "pci_bus", card->pci_bus);
	if (card == board)
		return;
	prom_labels_text(ret, "mig_profile", board->mig_profile);
	if (board->gpu_instance >= 0)
		prom_labels_i64(ret, "gpu_instance", board->gpu_instance);
	if (board->compute_instance >= 0)
		prom_labels_i64(ret, "compute_instance", board->compute_instance);
}

static void put_row(struct prom *prom, const struct snapshot *snapshot,
		    const struct prom_labels *labels, const struct row *row)
{
	double value;

	prom_family(prom, row->family, row->type, row->help);
	for (size_t i = 0; i < snapshot->boards.count; i++) {
		const struct board *board = &snapshot->boards.at[i];

		if (board->state != BOARD_GONE && board_get(board, row->metric, &value, NULL))
			prom_sample_with(prom, &labels[i], row->label, row->value,
					 in_base_unit(row->metric, value));
	}
}

static void put_clock_reasons(struct prom *prom, const struct snapshot *snapshot,
			      const struct prom_labels *labels)
{
	double value;

	prom_family(prom, "sonde_gpu_clock_reason", PROM_GAUGE,
		    "1: this is a reason for the clock as it is now. Not each one is a fault.");
	for (size_t i = 0; i < snapshot->boards.count; i++) {
		const struct board *board = &snapshot->boards.at[i];

		if (board->state == BOARD_GONE ||
		    !board_get(board, METRIC_clock_reasons, &value, NULL) || value < 0 ||
		    value >= 0x1p63)
			continue;
		for (size_t j = 0; j < sizeof(clock_reasons) / sizeof(clock_reasons[0]); j++)
			prom_sample_with(prom, &labels[i], "reason", clock_reasons[j].word,
					 (uint64_t)value >> clock_reasons[j].bit & 1);
	}
}

static void put_states(struct prom *prom, const struct snapshot *snapshot,
		       const struct prom_labels *labels)
{
	prom_family(prom, "sonde_gpu_up", PROM_GAUGE, "0: the card is lost, or no longer there.");
	for (size_t i = 0; i < snapshot->boards.count; i++) {
		enum board_state state = snapshot->boards.at[i].state;

		prom_sample(prom, &labels[i], state == BOARD_OK || state == BOARD_ASLEEP);
	}
	prom_family(prom, "sonde_gpu_asleep", PROM_GAUGE,
		    "1: the card is suspended and was left alone.");
	for (size_t i = 0; i < snapshot->boards.count; i++)
		prom_sample(prom, &labels[i], snapshot->boards.at[i].state == BOARD_ASLEEP);
}

static void put_modes(struct prom *prom, const struct snapshot *snapshot,
		      const struct prom_labels *labels)
{
	prom_family(prom, "sonde_gpu_mode", PROM_GAUGE,
		    "Persistence, MIG and ECC mode: 1 on; compute mode: 0 default, 2 prohibited, "
		    "3 exclusive; virtualization: 0 none, 1 pass-through, 2 guest, 3 and 4 host.");
	for (size_t i = 0; i < snapshot->boards.count; i++) {
		const struct board *board = &snapshot->boards.at[i];
		const struct {
			const char *word;
			int32_t value;
		} modes[] = {
			{ "persistence", board->persistence },
			{ "mig", board->mig_mode },
			{ "ecc", board->ecc_mode },
			{ "compute", board->compute_mode },
			{ "virtualization", board->virtualization },
		};

		for (size_t j = 0; j < sizeof(modes) / sizeof(modes[0]); j++) {
			if (board->state != BOARD_GONE && modes[j].value >= 0)
				prom_sample_with(prom, &labels[i], "mode", modes[j].word,
						 modes[j].value);
		}
	}
}

static void put_info(struct prom *prom, const struct snapshot *snapshot)
{
	prom_family(prom, "sonde_gpu", PROM_INFO, "What card it is.");
	for (size_t i = 0; i < snapshot->boards.count; i++) {
		const struct board *board = &snapshot->boards.at[i];
		struct prom_labels labels = { 0 };
		struct buf capability = { 0 };

		if (board->cc_major > 0)
			buf_printf(&capability, "%d.%d", board->cc_major, board->cc_minor);
		prometheus_board_labels(snapshot, board, &labels);
		prom_labels_text(&labels, "name", board->name);
		prom_labels_text(&labels, "compute_capability", capability.at);
		prom_sample(prom, &labels, 1);
		prom_labels_done(&labels);
		buf_done(&capability);
	}
}

void prometheus_boards(struct prom *prom, const struct snapshot *snapshot,
		       const struct prom_labels *labels)
{
	put_info(prom, snapshot);
	put_states(prom, snapshot, labels);
	put_modes(prom, snapshot, labels);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		put_row(prom, snapshot, labels, &rows[i]);
	put_clock_reasons(prom, snapshot, labels);
}
