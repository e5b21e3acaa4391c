/*
 * Values that a plain call gives. Most functions of the library give one
 * number: these are rows of a table. The others have a function each. A
 * question that the card does not answer is not put again until facts are
 * refreshed; it then gives the same reason for its metrics.
 */
#include "collect/card.h"

#include <string.h>

#include "collect/collector.h"

/* X(call, shape, kind, metric, unit of the driver in ours, group) */
#define NUMBERS(X)                                                                         \
	X(nvmlDeviceGetPowerUsage, PLAIN, 0, power_w, 1e-3, COLLECT_FAST)                  \
	X(nvmlDeviceGetClockInfo, OF_KIND, 1, sm_mhz, 1, COLLECT_FAST)                     \
	X(nvmlDeviceGetClockInfo, OF_KIND, 2, mem_mhz, 1, COLLECT_FAST)                    \
	X(nvmlDeviceGetClockInfo, OF_KIND, 0, graphics_mhz, 1, COLLECT_HEALTH)             \
	X(nvmlDeviceGetClockInfo, OF_KIND, 3, video_mhz, 1, COLLECT_HEALTH)                \
	X(nvmlDeviceGetEncoderUtilization, WITH_SECOND, 0, enc_pct, 1, COLLECT_FAST)       \
	X(nvmlDeviceGetDecoderUtilization, WITH_SECOND, 0, dec_pct, 1, COLLECT_FAST)       \
	X(nvmlDeviceGetJpgUtilization, WITH_SECOND, 0, jpg_pct, 1, COLLECT_FAST)           \
	X(nvmlDeviceGetOfaUtilization, WITH_SECOND, 0, ofa_pct, 1, COLLECT_FAST)           \
	X(nvmlDeviceGetPerformanceState, PLAIN, 0, pstate, 1, COLLECT_FAST)                \
	X(nvmlDeviceGetFanSpeed, PLAIN, 0, fan_pct, 1, COLLECT_HEALTH)                     \
	X(nvmlDeviceGetCurrPcieLinkGeneration, PLAIN, 0, pcie_gen, 1, COLLECT_HEALTH)      \
	X(nvmlDeviceGetCurrPcieLinkWidth, PLAIN, 0, pcie_width, 1, COLLECT_HEALTH)         \
	X(nvmlDeviceGetEnforcedPowerLimit, PLAIN, 0, power_limit_w, 1e-3, COLLECT_FRESH)   \
	X(nvmlDeviceGetPowerManagementDefaultLimit, PLAIN, 0, power_default_limit_w, 1e-3, \
	  CARD_RARE)                                                                       \
	X(nvmlDeviceGetMaxClockInfo, OF_KIND, 1, max_sm_mhz, 1, CARD_RARE)                 \
	X(nvmlDeviceGetMaxClockInfo, OF_KIND, 2, max_mem_mhz, 1, CARD_RARE)                \
	X(nvmlDeviceGetMaxPcieLinkGeneration, PLAIN, 0, pcie_gen_max, 1, CARD_RARE)        \
	X(nvmlDeviceGetMaxPcieLinkWidth, PLAIN, 0, pcie_width_max, 1, CARD_RARE)           \
	X(nvmlDeviceGetTemperatureThreshold, OF_KIND, 1, temp_slowdown_c, 1, CARD_RARE)    \
	X(nvmlDeviceGetTemperatureThreshold, OF_KIND, 0, temp_shutdown_c, 1, CARD_RARE)

static const struct number {
	struct nvml_u32 call;
	enum metric metric;
	double scale;
	uint32_t group;
} numbers[] = {
#define X(call, shape, kind, metric, scale, group) \
	{ { NVML_CALL_##call, NVML_##shape, kind }, METRIC_##metric, scale, group },
	NUMBERS(X)
#undef X
};

enum { NUMBER_COUNT = sizeof(numbers) / sizeof(numbers[0]) };

static int ask_utilization(struct cards *cards, struct card *card)
{
	struct nvml_utilization value = { 0 };
	enum nvml_call call = NVML_CALL_nvmlDeviceGetUtilizationRates;
	int status = NVML(&cards->nvml, nvmlDeviceGetUtilizationRates, card->device, &value);

	card_answer(cards, card, METRIC_util_pct, call, status, value.gpu);
	card_answer(cards, card, METRIC_mem_util_pct, call, status, value.memory);
	return status;
}

static int ask_temperature(struct cards *cards, struct card *card)
{
	struct nvml_temperature value = { NVML_VERSION(struct nvml_temperature, 1), 0, 0 };
	enum nvml_call call = NVML_CALL_nvmlDeviceGetTemperatureV;
	uint32_t celsius = 0;
	int status = NVML(&cards->nvml, nvmlDeviceGetTemperatureV, card->device, &value);

	if (status == NVML_NO_FUNCTION || status == NVML_WRONG_VERSION) {
		call = NVML_CALL_nvmlDeviceGetTemperature;
		status = NVML(&cards->nvml, nvmlDeviceGetTemperature, card->device, 0, &celsius);
		value.celsius = (int32_t)celsius;
	}
	card_answer(cards, card, METRIC_temp_c, call, status, value.celsius);
	return status;
}

static int ask_reasons(struct cards *cards, struct card *card)
{
	uint64_t bits = 0;
	enum nvml_call call = NVML_CALL_nvmlDeviceGetCurrentClocksEventReasons;
	int status =
		NVML(&cards->nvml, nvmlDeviceGetCurrentClocksEventReasons, card->device, &bits);

	if (status == NVML_NO_FUNCTION) {
		call = NVML_CALL_nvmlDeviceGetCurrentClocksThrottleReasons;
		status = NVML(&cards->nvml, nvmlDeviceGetCurrentClocksThrottleReasons, card->device,
			      &bits);
	}
	card_answer(cards, card, METRIC_clock_reasons, call, status, (double)bits);
	return status;
}

/* The older call counts what the driver keeps for itself as used. */
static int ask_memory(struct cards *cards, struct card *card)
{
	struct nvml_memory_v2 now = { .version = NVML_VERSION(struct nvml_memory_v2, 2) };
	struct nvml_memory old = { 0 };
	enum nvml_call call = NVML_CALL_nvmlDeviceGetMemoryInfo_v2;
	int status = NVML(&cards->nvml, nvmlDeviceGetMemoryInfo_v2, card->device, &now);

	if (status == NVML_NO_FUNCTION || status == NVML_WRONG_VERSION) {
		call = NVML_CALL_nvmlDeviceGetMemoryInfo;
		status = NVML(&cards->nvml, nvmlDeviceGetMemoryInfo, card->device, &old);
		now.total = old.total;
		now.free = old.free;
		now.used = old.used;
		card_answer(cards, card, METRIC_mem_reserved_bytes, call,
			    status ? status : NVML_NO_FUNCTION, 0);
	} else {
		card_answer(cards, card, METRIC_mem_reserved_bytes, call, status,
			    (double)now.reserved);
	}
	card_answer(cards, card, METRIC_mem_total_bytes, call, status, (double)now.total);
	card_answer(cards, card, METRIC_mem_free_bytes, call, status, (double)now.free);
	card_answer(cards, card, METRIC_mem_used_bytes, call, status, (double)now.used);
	return status;
}

static int ask_bar1(struct cards *cards, struct card *card)
{
	struct nvml_memory value = { 0 };
	enum nvml_call call = NVML_CALL_nvmlDeviceGetBAR1MemoryInfo;
	int status = NVML(&cards->nvml, nvmlDeviceGetBAR1MemoryInfo, card->device, &value);

	card_answer(cards, card, METRIC_bar1_total_bytes, call, status, (double)value.total);
	card_answer(cards, card, METRIC_bar1_used_bytes, call, status, (double)value.used);
	return status;
}

static int ask_protected(struct cards *cards, struct card *card)
{
	struct nvml_memory value = { 0 };
	int status = NVML(&cards->nvml, nvmlDeviceGetConfComputeProtectedMemoryUsage, card->device,
			  &value);

	card_answer(cards, card, METRIC_protected_used_bytes,
		    NVML_CALL_nvmlDeviceGetConfComputeProtectedMemoryUsage, status,
		    (double)value.used);
	return status;
}

/* Corrected and uncorrected; since the driver was loaded (0) or ever (1). */
static int ask_ecc(struct cards *cards, struct card *card, uint32_t since,
		   const enum metric metrics[2])
{
	const enum nvml_call call = NVML_CALL_nvmlDeviceGetTotalEccErrors;
	int status = NVML_OK;

	for (uint32_t i = 0; i < 2 && card->board.state != BOARD_LOST; i++) {
		uint64_t count = 0;

		if (!card_is_final(status))
			status = NVML(&cards->nvml, nvmlDeviceGetTotalEccErrors, card->device, i,
				      since, &count);
		card_answer(cards, card, metrics[i], call, status, (double)count);
	}
	return status;
}

static int ask_ecc_now(struct cards *cards, struct card *card)
{
	static const enum metric metrics[] = { METRIC_ecc_single, METRIC_ecc_double };

	return ask_ecc(cards, card, 0, metrics);
}

static int ask_ecc_ever(struct cards *cards, struct card *card)
{
	static const enum metric metrics[] = { METRIC_ecc_single_total, METRIC_ecc_double_total };

	return ask_ecc(cards, card, 1, metrics);
}

static int ask_margin(struct cards *cards, struct card *card)
{
	struct nvml_margin value = { NVML_VERSION(struct nvml_margin, 1), 0 };
	int status = NVML(&cards->nvml, nvmlDeviceGetMarginTemperature, card->device, &value);

	card_answer(cards, card, METRIC_temp_margin_c, NVML_CALL_nvmlDeviceGetMarginTemperature,
		    status, value.celsius);
	return status;
}

static int ask_limits(struct cards *cards, struct card *card)
{
	uint32_t low = 0, high = 0;
	enum nvml_call call = NVML_CALL_nvmlDeviceGetPowerManagementLimitConstraints;
	int status = NVML(&cards->nvml, nvmlDeviceGetPowerManagementLimitConstraints, card->device,
			  &low, &high);

	card_answer(cards, card, METRIC_power_min_limit_w, call, status, low / 1000.0);
	card_answer(cards, card, METRIC_power_max_limit_w, call, status, high / 1000.0);
	return status;
}

static const struct question {
	uint32_t group;
	bool of_instance; /* a MIG instance has its own */
	int (*ask)(struct cards *cards, struct card *card);
	enum metric metrics[4]; /* 0 ends it: METRIC_power_w is a number's */
} questions[] = {
	{ COLLECT_FAST, false, ask_utilization, { METRIC_util_pct, METRIC_mem_util_pct } },
	{ COLLECT_FAST, false, ask_temperature, { METRIC_temp_c } },
	{ COLLECT_FAST, false, ask_reasons, { METRIC_clock_reasons } },
	{ COLLECT_MEMORY,
	  true,
	  ask_memory,
	  { METRIC_mem_total_bytes, METRIC_mem_free_bytes, METRIC_mem_used_bytes,
	    METRIC_mem_reserved_bytes } },
	{ COLLECT_HEALTH | COLLECT_BAR1,
	  true,
	  ask_bar1,
	  { METRIC_bar1_total_bytes, METRIC_bar1_used_bytes } },
	{ COLLECT_HEALTH | COLLECT_BAR1, false, ask_protected, { METRIC_protected_used_bytes } },
	/* After the first, a call takes microseconds. */
	{ COLLECT_HEALTH | COLLECT_ROW,
	  false,
	  ask_ecc_now,
	  { METRIC_ecc_single, METRIC_ecc_double } },
	{ COLLECT_HEALTH,
	  false,
	  ask_ecc_ever,
	  { METRIC_ecc_single_total, METRIC_ecc_double_total } },
	{ COLLECT_FRESH, false, ask_margin, { METRIC_temp_margin_c } },
	{ CARD_RARE, false, ask_limits, { METRIC_power_min_limit_w, METRIC_power_max_limit_w } },
};

enum { QUESTION_COUNT = sizeof(questions) / sizeof(questions[0]) };

_Static_assert(NUMBER_COUNT + QUESTION_COUNT <= 64, "unanswered[0] has a bit for each");

enum origin card_origin(int status)
{
	switch (status) {
	case NVML_OK:
		return ORIGIN_NVML;
	case NVML_NOT_SUPPORTED:
		return ORIGIN_NOT_SUPPORTED;
	case NVML_NO_FUNCTION:
	case NVML_WRONG_VERSION:
		return ORIGIN_NO_FUNCTION;
	case NVML_NO_PERMISSION:
		return ORIGIN_NO_PERMISSION;
	case NVML_DEPRECATED:
		return ORIGIN_DEPRECATED;
	case NVML_LOST:
	case NVML_RESET_REQUIRED:
		return ORIGIN_LOST;
	default:
		return ORIGIN_FAILED;
	}
}

bool card_is_final(int status)
{
	return status == NVML_NOT_SUPPORTED || status == NVML_NO_FUNCTION ||
	       status == NVML_WRONG_VERSION || status == NVML_DEPRECATED;
}

void card_answer(struct cards *cards, struct card *card, enum metric metric, enum nvml_call call,
		 int status, double value)
{
	enum origin origin = card_origin(status);

	if (!status) {
		sample_set(&card->board.sample, metric, value);
		if (cards->nvml.wrapped[call])
			origin = ORIGIN_WRAPPER;
	}
	if (origin == ORIGIN_LOST) {
		card->board.state = BOARD_LOST;
		card->board.status = status;
	}
	card->board.origin[metric] = card->why[metric] = (uint8_t)origin;
}

double card_counter(struct cards *cards, struct card *card, struct card_counter *last,
		    enum metric total, enum metric rate, double value)
{
	double seconds = (double)(cards->now_ns - last->time_ns) / 1e9;
	uint8_t origin = total < METRIC_COUNT ? card->board.origin[total] : ORIGIN_NVML;
	bool usable = last->have && value >= last->value && seconds > 0;

	if (last->have && value < last->value)
		cards->generation++;
	if (rate < METRIC_COUNT) {
		card->board.origin[rate] = usable ? origin : ORIGIN_PENDING;
		if (usable)
			sample_set(&card->board.sample, rate, (value - last->value) / seconds);
	}
	*last = (struct card_counter){ true, value, cards->now_ns };
	return usable ? seconds : 0;
}

static void ask_numbers(struct cards *cards, struct card *card, uint32_t groups)
{
	for (size_t i = 0; i < NUMBER_COUNT; i++) {
		const struct number *number = &numbers[i];
		uint32_t value = 0;
		int status;

		if (!(number->group & groups) || card->board.state == BOARD_LOST)
			continue;
		if (card->unanswered[0] >> i & 1) {
			card->board.origin[number->metric] = card->why[number->metric];
			continue;
		}
		status = nvml_u32(&cards->nvml, &number->call, card->device, &value);
		card_answer(cards, card, number->metric, number->call.call, status,
			    value * number->scale);
		if (card_is_final(status))
			card->unanswered[0] |= (uint64_t)1 << i;
	}
}

void card_ask_values(struct cards *cards, struct card *card, uint32_t groups)
{
	if (!card->owner)
		ask_numbers(cards, card, groups);
	for (size_t i = 0; i < QUESTION_COUNT; i++) {
		const struct question *question = &questions[i];
		uint64_t bit = (uint64_t)1 << (NUMBER_COUNT + i);

		if (!(question->group & groups) || (card->owner && !question->of_instance) ||
		    card->board.state == BOARD_LOST)
			continue;
		if (!(card->unanswered[0] & bit)) {
			if (card_is_final(question->ask(cards, card)))
				card->unanswered[0] |= bit;
			continue;
		}
		for (size_t k = 0; k < 4 && (!k || question->metrics[k]); k++)
			card->board.origin[question->metrics[k]] = card->why[question->metrics[k]];
	}
}
