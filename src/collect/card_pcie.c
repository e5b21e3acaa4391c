/*
 * Bytes over PCIe. The driver's counters have 32 bits, so at 60 GB/s they wrap 15
 * times a second. The rate of an interval is known if they can't have wrapped
 * in it, or if GPM, which has a rate of its own, says how often. Else the counters
 * are read twice within the round: that gives the rate of these milliseconds, and
 * no total.
 *
 * Drivers before R555 have no such counters, only a call that blocks for the 20
 * ms that it measures, for each direction: it is made for one card a round, and
 * what it gave is repeated until the card's turn comes again.
 */
#include "collect/card.h"

#include <math.h>

#include "collect/collector.h"

enum { PCIE_BIT = 60 }; /* of unanswered[1], between fields and rings */

static const double WRAP = 4294967296.0;
static const int64_t MEASURE_EVERY_NS = INT64_C(10) * 1000000000;

static const struct {
	uint32_t id;
	enum metric total, rate, gpm;
	uint32_t counter; /* of nvmlDeviceGetPcieThroughput */
} directions[CARD_PCIE] = {
	{ 198, METRIC_pcie_rx_bytes, METRIC_pcie_rx_bytes_s, METRIC_gpm_pcie_rx_bytes_s, 1 },
	{ 197, METRIC_pcie_tx_bytes, METRIC_pcie_tx_bytes_s, METRIC_gpm_pcie_tx_bytes_s, 0 },
};

/* Bytes a second that the link can carry one way, before any overhead. */
static double link_peak(const struct card *card)
{
	static const double lane[] = { 0, 0.25e9, 0.5e9, 1e9, 2e9, 4e9, 8e9, 16e9 };
	double gen = 0, width = 0;

	if (!sample_get(&card->board.sample, METRIC_pcie_gen_max, &gen) ||
	    !sample_get(&card->board.sample, METRIC_pcie_width_max, &width) || gen < 1 || gen > 7)
		return 64e9;
	return lane[(int)gen] * width;
}

/* Bytes since the last reading; NAN if the counter may have wrapped unseen. */
static double bytes_since(const struct card *card, int d, uint32_t raw, double seconds)
{
	double bytes = (uint32_t)(raw - card->pcie[d].raw), gpm;

	if (link_peak(card) * seconds < WRAP)
		return bytes;
	if (!sample_get(&card->board.sample, directions[d].gpm, &gpm))
		return NAN;
	return bytes + WRAP * fmax(0, round((gpm * seconds - bytes) / WRAP));
}

static void put_narrow(struct card *card, int d, uint32_t raw, int64_t time_ns)
{
	struct card_pcie *last = &card->pcie[d];
	struct board *board = &card->board;
	uint8_t origin = board->origin[directions[d].total];
	double seconds = (double)(time_ns - last->time_ns) / 1e9;
	double bytes = last->have && seconds > 0 ? bytes_since(card, d, raw, seconds) : 0;

	board->origin[directions[d].rate] = last->have ? origin : ORIGIN_PENDING;
	if (isnan(bytes)) {
		last->lost = true;
		card->pcie_again = true;
		board->origin[directions[d].rate] = ORIGIN_WRAPS;
	} else if (last->have && seconds > 0) {
		sample_set(&board->sample, directions[d].rate, bytes / seconds);
		last->total += bytes;
	} else {
		last->total = raw;
	}
	if (last->lost)
		board->origin[directions[d].total] = ORIGIN_WRAPS;
	else
		sample_set(&board->sample, directions[d].total, last->total);
	last->have = true;
	last->raw = raw;
	last->time_ns = time_ns;
}

/* The directions that are asked in this round; answers of the others stay empty. */
static int ask(struct cards *cards, struct card *card, struct nvml_field answers[CARD_PCIE])
{
	struct nvml_field asked[CARD_PCIE] = { 0 };
	int count = 0, status;

	for (int d = 0; d < CARD_PCIE; d++)
		if (card->pcie_asked >> d & 1)
			asked[count++].id = directions[d].id;
	status = NVML(&cards->nvml, nvmlDeviceGetFieldValues, card->device, count, asked);
	count = 0;
	for (int d = 0; d < CARD_PCIE; d++)
		if (card->pcie_asked >> d & 1)
			answers[d] = asked[count++];
	return status;
}

static uint32_t directions_of(const struct card *card, uint32_t groups)
{
	uint8_t gpm = card->board.origin[METRIC_gpm_pcie_rx_bytes_s];
	bool told = origin_has((enum origin)gpm) || gpm == ORIGIN_PENDING;

	if (groups & COLLECT_PCIE || (groups & COLLECT_PCIE_ELSE && !told))
		return 3;
	return (groups & COLLECT_PCIE_RX ? 1 : 0) | (groups & COLLECT_PCIE_TX ? 2 : 0);
}

static void put(struct cards *cards, struct card *card, int d, const struct nvml_field *answer,
		int64_t time_ns)
{
	const enum nvml_call call = NVML_CALL_nvmlDeviceGetFieldValues;
	enum metric total = directions[d].total, rate = directions[d].rate;

	card->board.origin[total] = cards->nvml.wrapped[call] ? ORIGIN_WRAPPER : ORIGIN_NVML;
	if (answer->type == NVML_U32) {
		put_narrow(card, d, answer->value.u32, time_ns);
		return;
	}
	sample_set(&card->board.sample, total, (double)answer->value.u64);
	(void)card_counter(cards, card, &card->pcie[d].wide, total, rate,
			   (double)answer->value.u64);
}

static void measure(struct cards *cards, struct card *card)
{
	const enum nvml_call call = NVML_CALL_nvmlDeviceGetPcieThroughput;
	int64_t start_ns;

	if (cards->pcie_measured_ns == cards->now_ns ||
	    (card->pcie_measured_ns && cards->now_ns - card->pcie_measured_ns < MEASURE_EVERY_NS))
		return;
	cards->pcie_measured_ns = card->pcie_measured_ns = cards->now_ns;
	start_ns = clock_steady_ns();
	for (int d = 0; d < CARD_PCIE && card->board.state != BOARD_LOST; d++) {
		uint32_t kib_s = 0;
		int status = NVML(&cards->nvml, nvmlDeviceGetPcieThroughput, card->device,
				  directions[d].counter, &kib_s);

		card_answer(cards, card, directions[d].rate, call, status, kib_s * 1024.0);
		card->pcie[d].has_measured = !status;
		card->pcie[d].measured = kib_s * 1024.0;
		if (card_is_final(status)) {
			card->pcie_measured_ns = INT64_MAX / 2;
			break;
		}
	}
	/* It sleeps; that the driver is slow is another matter. */
	cards->waited_ns += clock_steady_ns() - start_ns;
}

/* Rates without counters. */
static void put_measured(struct cards *cards, struct card *card)
{
	measure(cards, card);
	for (int d = 0; d < CARD_PCIE; d++) {
		enum metric rate = directions[d].rate;

		if (!(card->pcie_asked >> d & 1))
			continue;
		card->board.origin[rate] = card->why[rate];
		if (card->pcie[d].has_measured)
			sample_set(&card->board.sample, rate, card->pcie[d].measured);
		else if (!card->pcie_measured_ns)
			card->board.origin[rate] = ORIGIN_PENDING;
	}
}

void card_ask_pcie(struct cards *cards, struct card *card, uint32_t groups)
{
	struct nvml_field answers[CARD_PCIE];
	const enum nvml_call call = NVML_CALL_nvmlDeviceGetFieldValues;
	bool skip = card->unanswered[1] >> PCIE_BIT & 1;
	int64_t time_ns;
	int status;

	card->pcie_asked = directions_of(card, groups);
	if (!card->pcie_asked)
		return;
	status = skip ? NVML_OK : ask(cards, card, answers);
	time_ns = clock_steady_ns();
	for (int d = 0; d < CARD_PCIE; d++) {
		enum metric total = directions[d].total, rate = directions[d].rate;

		if (!(card->pcie_asked >> d & 1))
			continue;
		if (skip) {
			card->board.origin[total] = card->why[total];
			continue;
		}
		if (!status)
			status = answers[d].status == NVML_INVALID ? NVML_NO_FUNCTION
								   : answers[d].status;
		if (status) {
			card_answer(cards, card, total, call, status, 0);
			card->board.origin[rate] = card->why[total];
			if (card_is_final(status))
				card->unanswered[1] |= (uint64_t)1 << PCIE_BIT;
			continue;
		}
		put(cards, card, d, &answers[d], time_ns);
	}
	if (card->unanswered[1] >> PCIE_BIT & 1)
		put_measured(cards, card);
}

void card_put_pcie(struct card *card)
{
	struct board *board = &card->board;
	double rate;

	for (int d = 0; d < CARD_PCIE; d++) {
		if (board->origin[directions[d].rate] != ORIGIN_NONE)
			continue;
		board->origin[directions[d].rate] = board->origin[directions[d].gpm];
		if (sample_get(&board->sample, directions[d].gpm, &rate))
			sample_set(&board->sample, directions[d].rate, rate);
	}
}

void card_ask_pcie_again(struct cards *cards, struct card *card)
{
	struct nvml_field answers[CARD_PCIE];
	int64_t time_ns;

	if (ask(cards, card, answers))
		return;
	time_ns = clock_steady_ns();
	for (int d = 0; d < CARD_PCIE; d++) {
		struct card_pcie *last = &card->pcie[d];
		double seconds = (double)(time_ns - last->time_ns) / 1e9;

		if (!(card->pcie_asked >> d & 1) || answers[d].status ||
		    answers[d].type != NVML_U32 || seconds <= 0 ||
		    card->board.origin[directions[d].rate] != ORIGIN_WRAPS)
			continue;
		sample_set(&card->board.sample, directions[d].rate,
			   (uint32_t)(answers[d].value.u32 - last->raw) / seconds);
		card->board.origin[directions[d].rate] =
			cards->nvml.wrapped[NVML_CALL_nvmlDeviceGetFieldValues] ? ORIGIN_WRAPPER
										: ORIGIN_NVML;
		last->raw = answers[d].value.u32;
		last->time_ns = time_ns;
	}
}
