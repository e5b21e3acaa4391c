/*
 * Values that come by number, many in one call. What a card has once refused is
 * left out of the batch. Counters become rates here.
 */
#include "collect/card.h"

#include <math.h>
#include <string.h>

#include "collect/collector.h"

enum { ALL_LINKS = UINT32_MAX };

/* X(number, scope, metric, unit of the driver in ours, rate, group) */
#define FIELDS(X)                                                                     \
	X(74, 0, reason_power_cap_us, 1e-3, COUNT, COLLECT_COUNTERS | COLLECT_ROW)    \
	X(76, 0, reason_sync_boost_us, 1e-3, COUNT, COLLECT_COUNTERS)                 \
	X(269, 0, reason_sw_thermal_us, 1e-3, COUNT, COLLECT_THERMAL)                 \
	X(270, 0, reason_hw_thermal_us, 1e-3, COUNT, COLLECT_THERMAL)                 \
	X(271, 0, reason_power_brake_us, 1e-3, COUNT, COLLECT_THERMAL)                \
	X(139, ALL_LINKS, nvlink_rx_bytes, 1024, nvlink_rx_bytes_s, COLLECT_COUNTERS) \
	X(138, ALL_LINKS, nvlink_tx_bytes, 1024, nvlink_tx_bytes_s, COLLECT_COUNTERS) \
	X(82, 0, temp_mem_c, 1, COUNT, COLLECT_COUNTERS | COLLECT_ROW)                \
	X(186, 0, power_instant_w, 1e-3, COUNT, COLLECT_COUNTERS)                     \
	X(94, 0, pcie_replays, 1, COUNT, COLLECT_HEALTH | COLLECT_REPLAYS)            \
	X(91, 0, nvlink_links, 1, COUNT, COLLECT_HEALTH)                              \
	X(90, 0, nvlink_mbytes_s, 1, COUNT, COLLECT_HEALTH)                           \
	X(142, 0, remapped_corrected, 1, COUNT, COLLECT_HEALTH)                       \
	X(143, 0, remapped_uncorrected, 1, COUNT, COLLECT_HEALTH)                     \
	X(144, 0, remapped_pending, 1, COUNT, COLLECT_HEALTH)                         \
	X(145, 0, remapped_failed, 1, COUNT, COLLECT_HEALTH)                          \
	X(29, 0, retired_single, 1, COUNT, COLLECT_HEALTH)                            \
	X(30, 0, retired_double, 1, COUNT, COLLECT_HEALTH)                            \
	X(31, 0, retired_pending, 1, COUNT, COLLECT_HEALTH)                           \
	X(230, 0, recovery_action, 1, COUNT, COLLECT_HEALTH)

/* The first CARD_COUNTERS rows are counters. */
static const struct field {
	uint32_t id, scope;
	enum metric metric;
	double scale;
	enum metric rate; /* METRIC_COUNT: none */
	uint32_t group;
} fields[] = {
#define X(id, scope, metric, scale, rate, group) \
	{ id, scope, METRIC_##metric, scale, METRIC_##rate, group },
	FIELDS(X)
#undef X
};

enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

_Static_assert((int)FIELD_COUNT <= 62 - (int)CARD_PCIE - (int)CARD_RINGS,
	       "unanswered[1] has a bit for each");

static double field_value(const struct nvml_field *field)
{
	switch (field->type) {
	case NVML_F64:
		return field->value.f64;
	case NVML_U32:
		return field->value.u32;
	case NVML_ULONG:
		return (double)field->value.ul;
	case NVML_I64:
		return (double)field->value.i64;
	case NVML_I32:
		return field->value.i32;
	case NVML_U16:
		return field->value.u16;
	default:
		return (double)field->value.u64;
	}
}

/* Share of the interval in which the power limit held the clock back: what
 * nvidia-smi dmon shows as pviol. From two readings of a time counter in us. */
static void put_violation(struct card *card, double before_us, double after_us, double seconds)
{
	double pct = (after_us - before_us) / (seconds * 1e4);

	sample_set(&card->board.sample, METRIC_power_violation_pct, pct > 100 ? 100 : pct);
	card->board.origin[METRIC_power_violation_pct] =
		card->board.origin[METRIC_reason_power_cap_us];
}

static void put(struct cards *cards, struct card *card, size_t i, const struct nvml_field *answer)
{
	const struct field *field = &fields[i];
	double value = answer->status ? 0 : field_value(answer) * field->scale;
	double before, seconds;

	card_answer(cards, card, field->metric, NVML_CALL_nvmlDeviceGetFieldValues, answer->status,
		    value);
	if (field->rate < METRIC_COUNT)
		card->board.origin[field->rate] = card->why[field->rate] =
			card->board.origin[field->metric];
	if (card_is_final(answer->status))
		card->unanswered[1] |= (uint64_t)1 << i;
	if (answer->status || i >= CARD_COUNTERS)
		return;
	before = card->counters[i].value;
	seconds = card_counter(cards, card, &card->counters[i], field->metric, field->rate, value);
	if (field->metric == METRIC_reason_power_cap_us && seconds > 0)
		put_violation(card, before, value, seconds);
	else if (field->metric == METRIC_reason_power_cap_us)
		card->board.origin[METRIC_power_violation_pct] = ORIGIN_PENDING;
}

/* Before the fields of 12.9 there was one call for each kind of slowdown; of
 * that the time under the power limit (policy 0) is asked. */
static void ask_old_violation(struct cards *cards, struct card *card)
{
	struct nvml_violation violation = { 0 };
	struct nvml_field answer = { .type = NVML_U64 };

	answer.status =
		NVML(&cards->nvml, nvmlDeviceGetViolationStatus, card->device, 0, &violation);
	answer.value.u64 = violation.violation_ns;
	if (!answer.status)
		put(cards, card, 0, &answer);
}

/* One bit: a thermal limit holds the clock back now, or did since the counters were
 * last looked at. */
static void put_thermal(struct card *card)
{
	double reasons = 0;
	const uint64_t thermal = 0x20 | 0x40; /* software, hardware */

	if (!sample_get(&card->board.sample, METRIC_clock_reasons, &reasons))
		return;
	sample_set(&card->board.sample, METRIC_thermal_violation,
		   ((uint64_t)reasons & thermal) || card->thermal_grew);
	card->board.origin[METRIC_thermal_violation] = card->board.origin[METRIC_clock_reasons];
}

/* The batch of all that is not known to be refused. */
static void ask_fields(struct cards *cards, struct card *card, uint32_t groups)
{
	struct nvml_field answers[FIELD_COUNT + CARD_PCIE];
	uint8_t which[FIELD_COUNT];
	int count = 0, joined, status;

	memset(answers, 0, sizeof(answers));
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		if (!(fields[i].group & groups))
			continue;
		if (card->unanswered[1] >> i & 1) {
			card->board.origin[fields[i].metric] = card->why[fields[i].metric];
			if (fields[i].rate < METRIC_COUNT)
				card->board.origin[fields[i].rate] = card->why[fields[i].metric];
			continue;
		}
		answers[count].id = fields[i].id;
		answers[count].scope = fields[i].scope;
		which[count++] = (uint8_t)i;
	}
	joined = card_pcie_join(cards, card, groups, &answers[count]);
	if (!count && !joined)
		return;
	status =
		NVML(&cards->nvml, nvmlDeviceGetFieldValues, card->device, count + joined, answers);
	if (joined)
		card_pcie_joined(card, status, &answers[count]);
	for (int i = 0; i < count && card->board.state != BOARD_LOST; i++) {
		if (status)
			answers[i].status = status;
		/* A driver that does not know the number says invalid argument. */
		else if (answers[i].status == NVML_INVALID)
			answers[i].status = NVML_NO_FUNCTION;
		put(cards, card, which[i], &answers[i]);
	}
}

void card_ask_fields(struct cards *cards, struct card *card, uint32_t groups)
{
	const struct card_counter *sw = &card->counters[2], *hw = &card->counters[3];
	double before_us = sw->have && hw->have ? sw->value + hw->value : INFINITY;

	ask_fields(cards, card, groups);
	if (card->board.state == BOARD_LOST)
		return;
	if (groups & COLLECT_THERMAL)
		card->thermal_grew = sw->value + hw->value > before_us;
	if (groups & (COLLECT_COUNTERS | COLLECT_ROW) && card->unanswered[1] & 1)
		ask_old_violation(cards, card);
	if (groups & (COLLECT_COUNTERS | COLLECT_ROW | COLLECT_THERMAL))
		put_thermal(card);
}
