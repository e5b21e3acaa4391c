#include "read/smi_fields.h"

#include <stdio.h>
#include <strings.h>

#include "model/note.h"

#define M(metric) METRIC_##metric

/* dmon(1 row a GPU): MB are MiB there. GPM columns are those of --gpm-metrics. */
static const struct smi_field dmon_fields[] = {
	{ .name = "pwr", M(power_w), "W" },
	{ .name = "temp", M(temp_c), "C" }, /* before memory temperature was told apart */
	{ .name = "gtemp", M(temp_c), "C" },
	{ .name = "mtemp", M(temp_mem_c), "C" },
	{ .name = "sm", M(util_pct), "%" },
	{ .name = "mem", M(mem_util_pct), "%" },
	{ .name = "enc", M(enc_pct), "%" },
	{ .name = "dec", M(dec_pct), "%" },
	{ .name = "jpg", M(jpg_pct), "%" },
	{ .name = "ofa", M(ofa_pct), "%" },
	{ .name = "mclk", M(mem_mhz), "MHz" },
	{ .name = "pclk", M(sm_mhz), "MHz" },
	{ .name = "pviol", M(power_violation_pct), "%" },
	{ .name = "tviol", M(thermal_violation), "bool" },
	{ .name = "fb", M(mem_used_bytes), "MiB" },
	{ .name = "bar1", M(bar1_used_bytes), "MiB" },
	{ .name = "ccpm", M(protected_used_bytes), "MiB" },
	{ .name = "sbecc", M(ecc_single), "errs" },
	{ .name = "dbecc", M(ecc_double), "errs" },
	{ .name = "pci", M(pcie_replays), "errs" },
	{ .name = "rxpci", M(pcie_rx_bytes_s), "MB/s" },
	{ .name = "txpci", M(pcie_tx_bytes_s), "MB/s" },
	{ .name = "gract", M(gr_active_pct), "%" },
	{ .name = "smutil", M(sm_active_pct), "%" },
	{ .name = "smocc", M(occupancy_pct), "%" },
	{ .name = "intact", M(int_pct), "%" },
	{ .name = "mmaact", M(tensor_pct), "%" },
	{ .name = "dfmaact", M(dfma_tensor_pct), "%" },
	{ .name = "hmmaact", M(hmma_tensor_pct), "%" },
	{ .name = "hmmat", M(hmma_tensor_pct), "%" },
	{ .name = "immaact", M(imma_tensor_pct), "%" },
	{ .name = "dram", M(dram_pct), "%" },
	{ .name = "fp64", M(fp64_pct), "%" },
	{ .name = "fp32", M(fp32_pct), "%" },
	{ .name = "fp16", M(fp16_pct), "%" },
	{ .name = "pcitx", M(gpm_pcie_tx_bytes_s), "MiB/s" },
	{ .name = "pcirx", M(gpm_pcie_rx_bytes_s), "MiB/s" },
	{ .name = "nvlrx", M(nvlink_rx_bytes_s), "MiB/s" },
	{ .name = "nvltx", M(nvlink_tx_bytes_s), "MiB/s" },
	{ 0 },
};

static const struct smi_field pmon_fields[] = {
	{ .name = "sm", M(proc_sm_pct), "%" },
	{ .name = "mem", M(proc_mem_pct), "%" },
	{ .name = "enc", M(proc_enc_pct), "%" },
	{ .name = "dec", M(proc_dec_pct), "%" },
	{ .name = "jpg", M(proc_jpg_pct), "%" },
	{ .name = "ofa", M(proc_ofa_pct), "%" },
	{ .name = "fb", M(proc_mem_used_bytes), "MiB" },
	{ .name = "ccpm", M(proc_protected_bytes), "MiB" },
	{ 0 },
};

static const struct smi_field apps_fields[] = {
	{ .name = "used_gpu_memory", M(proc_mem_used_bytes), "MiB" },
	{ .name = "used_memory", M(proc_mem_used_bytes), "MiB", 1 },
	{ .name = "used_gpu_cc_protected_memory", M(proc_protected_bytes), "MiB" },
	{ 0 },
};

/* Bits: nvmlClocksEventReason* of nvml.h. Names differ by form in prefix and
 * in blanks only; "display clocks" lost its s in -q. */
#define REASONS(X)                            \
	X("idle", 0x1)                        \
	X("gpu_idle", 0x1)                    \
	X("applications_clocks_setting", 0x2) \
	X("sw_power_cap", 0x4)                \
	X("hw_slowdown", 0x8)                 \
	X("sync_boost", 0x10)                 \
	X("sw_thermal_slowdown", 0x20)        \
	X("hw_thermal_slowdown", 0x40)        \
	X("hw_power_brake_slowdown", 0x80)    \
	X("display_clock_setting", 0x100)     \
	X("display_clocks_setting", 0x100)

/* With fewer reasons told, a mask would say "no" where nobody knows: power
 * cap, hardware slowdown, software thermal slowdown. */
enum { REASONS_NEEDED = 0x4 | 0x8 | 0x20 };

static const struct smi_field reason_fields[] = {
#define X(text, bit) \
	{ .name = text, .metric = M(clock_reasons), .unit = "", .rank = 1, .reason = bit },
	REASONS(X)
#undef X
		{ 0 },
};

static const struct smi_field query_fields[] = {
	{ .name = "power.draw", M(power_w), "W" },
	{ .name = "power.draw.average", M(power_w), "W", 1 },
	{ .name = "power.draw.instant", M(power_w), "W", 2 },
	{ .name = "enforced.power.limit", M(power_limit_w), "W" },
	{ .name = "power.limit", M(power_limit_w), "W", 1 },
	{ .name = "power.default_limit", M(power_default_limit_w), "W" },
	{ .name = "power.max_limit", M(power_max_limit_w), "W" },
	{ .name = "temperature.gpu", M(temp_c), "C" },
	{ .name = "temperature.memory", M(temp_mem_c), "C" },
	{ .name = "fan.speed", M(fan_pct), "%" },
	{ .name = "utilization.gpu", M(util_pct), "%" },
	{ .name = "utilization.memory", M(mem_util_pct), "%" },
	{ .name = "utilization.encoder", M(enc_pct), "%" },
	{ .name = "utilization.decoder", M(dec_pct), "%" },
	{ .name = "utilization.jpeg", M(jpg_pct), "%" },
	{ .name = "utilization.ofa", M(ofa_pct), "%" },
	{ .name = "clocks.current.sm", M(sm_mhz), "MHz" },
	{ .name = "clocks.sm", M(sm_mhz), "MHz", 1 },
	{ .name = "clocks.current.graphics", M(graphics_mhz), "MHz" },
	{ .name = "clocks.gr", M(graphics_mhz), "MHz", 1 },
	{ .name = "clocks.current.memory", M(mem_mhz), "MHz" },
	{ .name = "clocks.mem", M(mem_mhz), "MHz", 1 },
	{ .name = "clocks.current.video", M(video_mhz), "MHz" },
	{ .name = "clocks.video", M(video_mhz), "MHz", 1 },
	{ .name = "clocks.max.sm", M(max_sm_mhz), "MHz" },
	{ .name = "clocks.max.memory", M(max_mem_mhz), "MHz" },
	{ .name = "clocks.max.mem", M(max_mem_mhz), "MHz", 1 },
	{ .name = "clocks_event_reasons.active", M(clock_reasons), "bits" },
	{ .name = "clocks_throttle_reasons.active", M(clock_reasons), "bits" },
	{ .name = "clocks_event_reasons_counters.sw_power_cap", M(reason_power_cap_us), "us" },
	{ .name = "clocks_event_reasons_counters.sync_boost", M(reason_sync_boost_us), "us" },
	{ .name = "clocks_event_reasons_counters.sw_thermal_slowdown",
	  M(reason_sw_thermal_us),
	  "us" },
	{ .name = "clocks_event_reasons_counters.hw_thermal_slowdown",
	  M(reason_hw_thermal_us),
	  "us" },
	{ .name = "clocks_event_reasons_counters.hw_power_brake_slowdown",
	  M(reason_power_brake_us),
	  "us" },
	{ .name = "memory.used", M(mem_used_bytes), "MiB" },
	{ .name = "memory.free", M(mem_free_bytes), "MiB" },
	{ .name = "memory.reserved", M(mem_reserved_bytes), "MiB" },
	{ .name = "memory.total", M(mem_total_bytes), "MiB" },
	{ .name = "protected_memory.used", M(protected_used_bytes), "MiB" },
	{ .name = "ecc.errors.corrected.volatile.total", M(ecc_single), "" },
	{ .name = "ecc.errors.uncorrected.volatile.total", M(ecc_double), "" },
	{ .name = "remapped_rows.correctable", M(remapped_corrected), "" },
	{ .name = "remapped_rows.uncorrectable", M(remapped_uncorrected), "" },
	{ .name = "remapped_rows.pending", M(remapped_pending), "bool" },
	{ .name = "pcie.link.gen.current", M(pcie_gen), "" },
	{ .name = "pcie.link.gen.gpucurrent", M(pcie_gen), "", 1 },
	{ .name = "pcie.link.gen.max", M(pcie_gen_max), "" },
	{ .name = "pcie.link.gen.gpumax", M(pcie_gen_max), "", 1 },
	{ .name = "pcie.link.width.current", M(pcie_width), "" },
	{ .name = "pcie.link.width.max", M(pcie_width_max), "" },
	{ .name = "pstate", M(pstate), "" },
	{ 0 },
};

/* "Power Readings" became "GPU Power Readings" with driver 535; limits moved a
 * level down with 610. Power Draw was split into mean and instant with 545. */
#define Q_POWER(section)                                                                     \
	{ .name = section " / Power Draw", M(power_w), "W" },                                \
		{ .name = section " / Average Power Draw", M(power_w), "W", 1 },             \
		{ .name = section " / Instantaneous Power Draw", M(power_w), "W", 2 },       \
		{ .name = section " / Current Power Limit", M(power_limit_w), "W" },         \
		{ .name = section " / Enforced Power Limit", M(power_limit_w), "W", 1 },     \
		{ .name = section " / Power Limit", M(power_limit_w), "W", 2 },              \
		{ .name = section " / Default Power Limit", M(power_default_limit_w), "W" }, \
		{ .name = section " / Max Power Limit", M(power_max_limit_w), "W" },         \
		{ .name = section " / GPU Ceiling Power Limit / Current Power Limit",        \
		  M(power_limit_w),                                                          \
		  "W" },                                                                     \
	{                                                                                    \
		.name = section " / GPU Ceiling Power Limit / Default Power Limit",          \
		M(power_default_limit_w), "W"                                                \
	}

static const struct smi_field q_fields[] = {
	Q_POWER("GPU Power Readings"),
	Q_POWER("Power Readings"),
	{ .name = "Temperature / GPU Current Temp", M(temp_c), "C" },
	{ .name = "Temperature / Memory Current Temp", M(temp_mem_c), "C" },
	{ .name = "Temperature / GPU Slowdown Temp", M(temp_slowdown_c), "C" },
	{ .name = "Fan Speed", M(fan_pct), "%" },
	{ .name = "Performance State", M(pstate), "" },
	{ .name = "Utilization / GPU", M(util_pct), "%" },
	{ .name = "Utilization / Memory", M(mem_util_pct), "%" },
	{ .name = "Utilization / Encoder", M(enc_pct), "%" },
	{ .name = "Utilization / Decoder", M(dec_pct), "%" },
	{ .name = "Utilization / JPEG", M(jpg_pct), "%" },
	{ .name = "Utilization / OFA", M(ofa_pct), "%" },
	{ .name = "Clocks / SM", M(sm_mhz), "MHz" },
	{ .name = "Clocks / Graphics", M(graphics_mhz), "MHz" },
	{ .name = "Clocks / Memory", M(mem_mhz), "MHz" },
	{ .name = "Clocks / Video", M(video_mhz), "MHz" },
	{ .name = "Max Clocks / SM", M(max_sm_mhz), "MHz" },
	{ .name = "Max Clocks / Memory", M(max_mem_mhz), "MHz" },
	{ .name = "Clocks Event Reasons Counters / SW Power Capping",
	  M(reason_power_cap_us),
	  "us" },
	{ .name = "Clocks Event Reasons Counters / Sync Boost", M(reason_sync_boost_us), "us" },
	{ .name = "Clocks Event Reasons Counters / SW Thermal Slowdown",
	  M(reason_sw_thermal_us),
	  "us" },
	{ .name = "Clocks Event Reasons Counters / HW Thermal Slowdown",
	  M(reason_hw_thermal_us),
	  "us" },
	{ .name = "Clocks Event Reasons Counters / HW Power Braking",
	  M(reason_power_brake_us),
	  "us" },
	{ .name = "FB Memory Usage / Total", M(mem_total_bytes), "MiB" },
	{ .name = "FB Memory Usage / Reserved", M(mem_reserved_bytes), "MiB" },
	{ .name = "FB Memory Usage / Used", M(mem_used_bytes), "MiB" },
	{ .name = "FB Memory Usage / Free", M(mem_free_bytes), "MiB" },
	{ .name = "BAR1 Memory Usage / Total", M(bar1_total_bytes), "MiB" },
	{ .name = "BAR1 Memory Usage / Used", M(bar1_used_bytes), "MiB" },
	{ .name = "Conf Compute Protected Memory Usage / Used", M(protected_used_bytes), "MiB" },
	{ .name = "ECC Errors / Volatile / Single Bit / Total", M(ecc_single), "" },
	{ .name = "ECC Errors / Volatile / Double Bit / Total", M(ecc_double), "" },
	{ .name = "ECC Errors / Volatile / SRAM Correctable", M(ecc_single), "", 0, true },
	{ .name = "ECC Errors / Volatile / DRAM Correctable", M(ecc_single), "", 0, true },
	{ .name = "ECC Errors / Volatile / SRAM Uncorrectable", M(ecc_double), "", 0, true },
	{ .name = "ECC Errors / Volatile / SRAM Uncorrectable Parity", M(ecc_double), "", 0, true },
	{ .name = "ECC Errors / Volatile / SRAM Uncorrectable SEC-DED",
	  M(ecc_double),
	  "",
	  0,
	  true },
	{ .name = "ECC Errors / Volatile / DRAM Uncorrectable", M(ecc_double), "", 0, true },
	{ .name = "Remapped Rows / Correctable Error", M(remapped_corrected), "" },
	{ .name = "Remapped Rows / Uncorrectable Error", M(remapped_uncorrected), "" },
	{ .name = "Remapped Rows / Pending", M(remapped_pending), "bool" },
	{ .name = "PCI / Replays Since Reset", M(pcie_replays), "" },
	{ .name = "PCI / Tx Throughput", M(pcie_tx_bytes_s), "KB/s" },
	{ .name = "PCI / Rx Throughput", M(pcie_rx_bytes_s), "KB/s" },
	{ .name = "PCI / GPU Link Info / PCIe Generation / Current", M(pcie_gen), "" },
	{ .name = "PCI / GPU Link Info / PCIe Generation / Max", M(pcie_gen_max), "" },
	{ .name = "PCI / GPU Link Info / Link Width / Current", M(pcie_width), "" },
	{ .name = "PCI / GPU Link Info / Link Width / Max", M(pcie_width_max), "" },
	{ .name = "Processes / Process ID / Used GPU Memory", M(proc_mem_used_bytes), "MiB" },
	{ .name = "Processes / Process ID / Used GPU CC Protected Memory",
	  M(proc_protected_bytes),
	  "MiB" },
	{ 0 },
};

#define XML_POWER(section)                                                                   \
	{ .name = section " / power_draw", M(power_w), "W" },                                \
		{ .name = section " / average_power_draw", M(power_w), "W", 1 },             \
		{ .name = section " / instant_power_draw", M(power_w), "W", 2 },             \
		{ .name = section " / current_power_limit", M(power_limit_w), "W" },         \
		{ .name = section " / enforced_power_limit", M(power_limit_w), "W", 1 },     \
		{ .name = section " / power_limit", M(power_limit_w), "W", 2 },              \
		{ .name = section " / default_power_limit", M(power_default_limit_w), "W" }, \
	{                                                                                    \
		.name = section " / max_power_limit", M(power_max_limit_w), "W"              \
	}

#define XML_PCI      "pci / pci_gpu_link_info / "
#define XML_COUNTERS "clocks_event_reasons_counters / clocks_event_reasons_counters_"

static const struct smi_field xml_fields[] = {
	XML_POWER("gpu_power_readings"),
	XML_POWER("power_readings"),
	XML_POWER("gpu_power_readings / gpu_ceiling_power_limit"),
	{ .name = "temperature / gpu_temp", M(temp_c), "C" },
	{ .name = "temperature / memory_temp", M(temp_mem_c), "C" },
	{ .name = "temperature / gpu_temp_slow_threshold", M(temp_slowdown_c), "C" },
	{ .name = "fan_speed", M(fan_pct), "%" },
	{ .name = "performance_state", M(pstate), "" },
	{ .name = "utilization / gpu_util", M(util_pct), "%" },
	{ .name = "utilization / memory_util", M(mem_util_pct), "%" },
	{ .name = "utilization / encoder_util", M(enc_pct), "%" },
	{ .name = "utilization / decoder_util", M(dec_pct), "%" },
	{ .name = "utilization / jpeg_util", M(jpg_pct), "%" },
	{ .name = "utilization / ofa_util", M(ofa_pct), "%" },
	{ .name = "clocks / sm_clock", M(sm_mhz), "MHz" },
	{ .name = "clocks / graphics_clock", M(graphics_mhz), "MHz" },
	{ .name = "clocks / mem_clock", M(mem_mhz), "MHz" },
	{ .name = "clocks / video_clock", M(video_mhz), "MHz" },
	{ .name = "max_clocks / sm_clock", M(max_sm_mhz), "MHz" },
	{ .name = "max_clocks / mem_clock", M(max_mem_mhz), "MHz" },
	{ .name = XML_COUNTERS "sw_power_cap", M(reason_power_cap_us), "us" },
	{ .name = XML_COUNTERS "sync_boost", M(reason_sync_boost_us), "us" },
	{ .name = XML_COUNTERS "sw_therm_slowdown", M(reason_sw_thermal_us), "us" },
	{ .name = XML_COUNTERS "hw_therm_slowdown", M(reason_hw_thermal_us), "us" },
	{ .name = XML_COUNTERS "hw_power_brake", M(reason_power_brake_us), "us" },
	{ .name = "fb_memory_usage / total", M(mem_total_bytes), "MiB" },
	{ .name = "fb_memory_usage / reserved", M(mem_reserved_bytes), "MiB" },
	{ .name = "fb_memory_usage / used", M(mem_used_bytes), "MiB" },
	{ .name = "fb_memory_usage / free", M(mem_free_bytes), "MiB" },
	{ .name = "bar1_memory_usage / total", M(bar1_total_bytes), "MiB" },
	{ .name = "bar1_memory_usage / used", M(bar1_used_bytes), "MiB" },
	{ .name = "cc_protected_memory_usage / used", M(protected_used_bytes), "MiB" },
	{ .name = "ecc_errors / volatile / single_bit / total", M(ecc_single), "" },
	{ .name = "ecc_errors / volatile / double_bit / total", M(ecc_double), "" },
	{ .name = "ecc_errors / volatile / sram_correctable", M(ecc_single), "", 0, true },
	{ .name = "ecc_errors / volatile / dram_correctable", M(ecc_single), "", 0, true },
	{ .name = "ecc_errors / volatile / sram_uncorrectable", M(ecc_double), "", 0, true },
	{ .name = "ecc_errors / volatile / sram_uncorrectable_parity", M(ecc_double), "", 0, true },
	{ .name = "ecc_errors / volatile / sram_uncorrectable_secded", M(ecc_double), "", 0, true },
	{ .name = "ecc_errors / volatile / dram_uncorrectable", M(ecc_double), "", 0, true },
	{ .name = "remapped_rows / remapped_row_corr", M(remapped_corrected), "" },
	{ .name = "remapped_rows / remapped_row_unc", M(remapped_uncorrected), "" },
	{ .name = "remapped_rows / remapped_row_pending", M(remapped_pending), "bool" },
	{ .name = "pci / replay_counter", M(pcie_replays), "" },
	{ .name = "pci / tx_util", M(pcie_tx_bytes_s), "KB/s" },
	{ .name = "pci / rx_util", M(pcie_rx_bytes_s), "KB/s" },
	{ .name = XML_PCI "pcie_gen / current_link_gen", M(pcie_gen), "" },
	{ .name = XML_PCI "pcie_gen / max_link_gen", M(pcie_gen_max), "" },
	{ .name = XML_PCI "link_widths / current_link_width", M(pcie_width), "" },
	{ .name = XML_PCI "link_widths / max_link_width", M(pcie_width_max), "" },
	{ .name = "processes / process_info / used_memory", M(proc_mem_used_bytes), "MiB" },
	{ .name = "processes / process_info / cc_protected_memory",
	  M(proc_protected_bytes),
	  "MiB" },
	{ 0 },
};

static const struct smi_field *const forms[] = {
	[SMI_DMON] = dmon_fields, [SMI_PMON] = pmon_fields, [SMI_QUERY] = query_fields,
	[SMI_Q] = q_fields,       [SMI_XML] = xml_fields,   [SMI_APPS] = apps_fields,
};

static bool same_name(const char *name, struct str text, bool fold)
{
	if (strlen(name) != text.len)
		return false;
	return fold ? !strncasecmp(name, text.at, text.len) : !memcmp(name, text.at, text.len);
}

/* Blanks are underscores. */
static bool same_reason(const char *name, struct str text)
{
	if (strlen(name) != text.len)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.at[i] == ' ' ? '_' : text.at[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c | 32);
		if (c != name[i])
			return false;
	}
	return true;
}

static const struct smi_field *find_reason(struct str name)
{
	static const char *const sections[] = {
		"Clocks Event Reasons / ",
		"Clocks Throttle Reasons / ",
		"clocks_event_reasons / clocks_event_reason_",
		"clocks_throttle_reasons / clocks_throttle_reason_",
		"clocks_event_reasons.",
		"clocks_throttle_reasons.",
	};
	static const char nested[] = "HW Slowdown / ";

	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		if (!str_starts(name, sections[i]))
			continue;
		name.at += strlen(sections[i]);
		name.len -= strlen(sections[i]);
		if (str_starts(name, nested)) {
			name.at += sizeof(nested) - 1;
			name.len -= sizeof(nested) - 1;
		}
		for (const struct smi_field *field = reason_fields; field->name; field++) {
			if (same_reason(field->name, name))
				return field;
		}
		return NULL;
	}
	return NULL;
}

const struct smi_field *smi_field_find(enum smi_form form, struct str name)
{
	for (const struct smi_field *field = forms[form]; field->name; field++) {
		if (same_name(field->name, name, form != SMI_XML))
			return field;
	}
	return form == SMI_QUERY || form == SMI_Q || form == SMI_XML ? find_reason(name) : NULL;
}

const char *smi_missing(struct str text)
{
	static const struct {
		const char *text, *why;
	} words[] = {
		{ "-", NOTE_NO_VALUE },
		{ "N/A", NOTE_NOT_AVAILABLE },
		{ "Not Found", NOTE_NOT_FOUND },
		{ "Function Not Found", NOTE_NO_FUNCTION },
		{ "Not Supported", NOTE_NOT_SUPPORTED },
		{ "Unknown Error", NOTE_UNKNOWN_ERROR },
		{ "Unknown", NOTE_UNKNOWN },
		{ "ERR!", NOTE_DRIVER_ERROR },
		{ "GPU is lost", NOTE_GPU_LOST },
		{ "GPU requires reset", NOTE_GPU_RESET },
		{ "Insufficient Permissions", NOTE_FORBIDDEN },
		{ "Requested functionality has been deprecated", NOTE_DEPRECATED },
		{ "Not available in WDDM driver model", NOTE_NOT_IN_WDDM },
		{ "No data", NOTE_NO_DATA },
	};

	text = str_trim(text);
	if (!text.len)
		return NOTE_EMPTY;
	if (text.len > 1 && text.at[0] == '[' && text.at[text.len - 1] == ']') {
		text.at++;
		text.len -= 2;
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
			if (same_name(words[i].text, text, true))
				return words[i].why;
		}
		return NOTE_BRACKETS;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (same_name(words[i].text, text, true))
			return words[i].why;
	}
	return NULL;
}

/* nvidia-smi says MB and means MiB; its rates are decimal. */
static const struct {
	const char *text, *base;
	double factor;
} units[] = {
	{ "", "", 1 },
	{ "W", "W", 1 },
	{ "mW", "W", 1e-3 },
	{ "C", "C", 1 },
	{ "%", "%", 1 },
	{ "GPM:%", "%", 1 },
	{ "MHz", "MHz", 1 },
	{ "us", "us", 1 },
	{ "ms", "us", 1e3 },
	{ "B", "B", 1 },
	{ "KiB", "B", 1024 },
	{ "KB", "B", 1024 },
	{ "MiB", "B", 1048576 },
	{ "MB", "B", 1048576 },
	{ "GiB", "B", 1073741824 },
	{ "GB", "B", 1073741824 },
	{ "B/s", "B/s", 1 },
	{ "KB/s", "B/s", 1e3 },
	{ "MB/s", "B/s", 1e6 },
	{ "GB/s", "B/s", 1e9 },
	{ "KiB/s", "B/s", 1024 },
	{ "MiB/s", "B/s", 1048576 },
	{ "GPM:MiB/s", "B/s", 1048576 },
	{ "GiB/s", "B/s", 1073741824 },
	{ "GPM:GiB/s", "B/s", 1073741824 },
	{ "errs", "count", 1 },
	{ "bool", "bool", 1 },
	{ "bits", "bits", 1 },
	{ "x", "lanes", 1 },
};

/* What one of `unit` is in the metric's own unit; 0: another kind of thing. */
static double unit_factor(struct str unit, const char *wanted)
{
	bool countable = !strcmp(wanted, "count") || !strcmp(wanted, "lanes") ||
			 !strcmp(wanted, "bool") || !strcmp(wanted, "bits");

	if (!unit.len)
		return countable || !*wanted ? 1 : 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (str_is(unit, units[i].text))
			return !strcmp(units[i].base, wanted) ? units[i].factor : 0;
	}
	return 0;
}

static bool number_word(enum metric metric, struct str text, double *ret_value)
{
	uint64_t bits;

	if (!strcmp(metric_unit(metric), "bits"))
		return str_starts(text, "0x") && str_to_hex(text, &bits) &&
		       (*ret_value = (double)bits, true);
	if (metric == METRIC_pstate)
		return text.len > 1 && text.at[0] == 'P' &&
		       str_to_u64((struct str){ text.at + 1, text.len - 1 }, &bits) && bits < 64 &&
		       (*ret_value = (double)bits, true);
	if (strcmp(metric_unit(metric), "bool") != 0)
		return false;
	*ret_value = str_is(text, "Yes") || str_is(text, "Active") || str_is(text, "1");
	return *ret_value != 0 || str_is(text, "No") || str_is(text, "Not Active") ||
	       str_is(text, "0");
}

bool smi_number(const struct smi_field *field, struct str text, struct str unit, double *ret_value)
{
	struct str number, own;
	double factor;

	text = str_trim(text);
	if (number_word(field->metric, text, ret_value))
		return true;
	own = text;
	while (own.len && ((own.at[0] >= '0' && own.at[0] <= '9') || own.at[0] == '.' ||
			   own.at[0] == '-' || own.at[0] == '+')) {
		own.at++;
		own.len--;
	}
	number = (struct str){ text.at, text.len - own.len };
	own = str_trim(own);
	if (!own.len)
		own = unit.len ? unit : str_of(field->unit);
	factor = unit_factor(own, metric_unit(field->metric));
	if (!(factor > 0) || !str_to_f64(number, ret_value))
		return false;
	*ret_value *= factor;
	return metric_possible(field->metric, *ret_value);
}

static enum smi_put put_reason(struct smi_values *values, const struct smi_field *field,
			       struct str text)
{
	bool active = str_is(text, "Active");

	if (!active && !str_is(text, "Not Active"))
		return SMI_PUT_MALFORMED;
	values->reasons_known |= field->reason;
	if (active)
		values->reasons |= field->reason;
	return SMI_PUT_VALUE;
}

enum smi_put smi_values_put(struct smi_values *values, const struct smi_field *field,
			    struct str text, struct str unit, const char **ret_why)
{
	enum metric metric = field->metric;
	double value, before = 0;
	bool have;

	text = str_trim(text);
	*ret_why = smi_missing(text);
	if (*ret_why) {
		values->partial[metric] |= field->add;
		return SMI_PUT_MISSING;
	}
	if (field->reason)
		return put_reason(values, field, text);
	if (!smi_number(field, text, unit, &value)) {
		values->partial[metric] |= field->add;
		return SMI_PUT_MALFORMED;
	}
	have = sample_get(&values->sample, metric, &before);
	if (have && field->add)
		value += before;
	else if (have && values->rank[metric] <= field->rank)
		return SMI_PUT_VALUE;
	sample_set(&values->sample, metric, value);
	values->rank[metric] = field->rank;
	return SMI_PUT_VALUE;
}

void smi_values_end(struct smi_values *values)
{
	double value;

	for (size_t i = 0; i < METRIC_COUNT; i++) {
		if (values->partial[i])
			values->sample.have[i / 64] &= ~((uint64_t)1 << (i % 64));
	}
	if ((values->reasons_known & REASONS_NEEDED) == REASONS_NEEDED &&
	    !sample_get(&values->sample, METRIC_clock_reasons, &value))
		sample_set(&values->sample, METRIC_clock_reasons, values->reasons);
}

bool smi_bus(struct str text, char ret_bus[32])
{
	struct str rest = str_trim(text), domain = str_cut(&rest, ':'), bus = str_cut(&rest, ':');
	struct str device = str_cut(&rest, '.');
	uint64_t part[4];

	if (!str_to_hex(domain, &part[0]) || !str_to_hex(bus, &part[1]) ||
	    !str_to_hex(device, &part[2]) || !str_to_hex(rest, &part[3]) || part[0] > 0xffffffff ||
	    part[1] > 0xff || part[2] > 0x1f || part[3] > 7)
		return false;
	(void)snprintf(ret_bus, 32, "%04llx:%02llx:%02llx.%llx", (unsigned long long)part[0],
		       (unsigned long long)part[1], (unsigned long long)part[2],
		       (unsigned long long)part[3]);
	return true;
}
