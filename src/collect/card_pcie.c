/*
 * Bytes over PCIe. The driver's counters have 32 bits, so at 60 GB/s they wrap 15
 * times a second. The rate of an interval is known if they can't have wrapped
 * in it, or if GPM, which has a rate of its own, says how often. Else the counters
 * are read twice within the round: that gives the rate of these milliseconds, and
 * no total.
 *
 * Rows of dmon, which are to cost little, ask neither GPM nor twice as long as the
 * traffic is calm: two differences one after the other of less than a 256th of
 * what the counter holds, and a second look now and then. Traffic that wraps would
 * have to come within that of a whole number of wraps, twice. What was read then is
 * the mean since the last reading, and holds for the rows between.
 *
 * Drivers before R555 have no such counters, only a call that blocks for the 20
 * ms that it measures, for each direction: it is made for one card a round, and
 * what it gave is repeated until the card's turn comes again.
 */
#include "collect/card.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "collect/collector.h"
#include "know/pcie.h"

enum { PCIE_BIT = 59 }; /* of unanswered[1], between fields and rings: rx, tx */

static const double WRAP = 4294967296.0;
/* Of a link that says nothing of itself: 16 lanes of 32 GT/s. */
static const double PEAK_UNTOLD = 64e9;
static const int64_t MEASURE_EVERY_NS = INT64_C(10) * 1000000000;
/* A reading of both counters is the dearest part of a row: 0.5 to 0.7 ms. */
static const int64_t ROW_EVERY_NS = INT64_C(1950) * 1000000;
static const double CALM_BYTES = 4294967296.0 / 256;
static const int64_t DOUBT_EVERY_NS = INT64_C(30) * 1000000000;

static const struct {
	uint32_t id;
	enum metric total, rate, gpm;
	uint32_t counter; /* of nvmlDeviceGetPcieThroughput */
} directions[CARD_PCIE] = {
	{ 198, METRIC_pcie_rx_bytes, METRIC_pcie_rx_bytes_s, METRIC_gpm_pcie_rx_bytes_s, 1 },
	{ 197, METRIC_pcie_tx_bytes, METRIC_pcie_tx_bytes_s, METRIC_gpm_pcie_tx_bytes_s, 0 },
};

/* Bytes a second that the link can carry one way. */
static double link_peak(const struct card *card)
{
	double gen, width, lane;

	if (!sample_get(&card->board.sample, METRIC_pcie_gen_max, &gen) ||
	    !sample_get(&card->board.sample, METRIC_pcie_width_max, &width))
		return PEAK_UNTOLD;
	lane = pcie_lane_bytes_s(gen);
	return isnan(lane) ? PEAK_UNTOLD : lane * width;
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

/* Whether a difference that may lack wraps is taken as it is. */
static bool is_calm(struct card_pcie *last, double bytes, int64_t time_ns)
{
	bool were_few = last->few;

	last->few = bytes < CALM_BYTES;
	return last->few && were_few && time_ns - last->window_ns < DOUBT_EVERY_NS;
}

static void put_mean(struct card *card, int d, double bytes_s)
{
	sample_set(&card->board.sample, directions[d].rate, bytes_s);
	card->pcie[d].has_mean = true;
	card->pcie[d].mean = bytes_s;
}

static void put_narrow(struct card *card, int d, uint32_t raw, int64_t time_ns)
{
	struct card_pcie *last = &card->pcie[d];
	struct board *board = &card->board;
	uint8_t origin = board->origin[directions[d].total];
	double seconds = (double)(time_ns - last->time_ns) / 1e9;
	bool later = last->have && seconds > 0, row = card->pcie_joined.have;
	double bytes = later ? bytes_since(card, d, raw, seconds) : 0;

	last->has_mean = false;
	board->origin[directions[d].rate] = last->have ? origin : ORIGIN_PENDING;
	if (isnan(bytes)) {
		last->lost = true;
		if (row && is_calm(last, (uint32_t)(raw - last->raw), time_ns)) {
			put_mean(card, d, (uint32_t)(raw - last->raw) / seconds);
		} else {
			card->pcie_again = true;
			board->origin[directions[d].rate] = ORIGIN_WRAPS;
		}
	} else if (later) {
		put_mean(card, d, bytes / seconds);
		last->total += bytes;
	} else {
		last->total = raw;
		card->pcie_again |= row;
	}
	if (last->lost)
		board->origin[directions[d].total] = ORIGIN_WRAPS;
	else
		sample_set(&board->sample, directions[d].total, last->total);
	last->have = true;
	last->raw = raw;
	last->time_ns = time_ns;
}

static int ask(struct cards *cards, struct card *card, struct nvml_field answers[CARD_PCIE])
{
	for (int d = 0; d < CARD_PCIE; d++)
		answers[d] = (struct nvml_field){ .id = directions[d].id };
	return NVML(&cards->nvml, nvmlDeviceGetFieldValues, card->device, CARD_PCIE, answers);
}

static bool is_refused_one(const struct card *card, int d)
{
	return card->unanswered[1] >> (PCIE_BIT + d) & 1;
}

static bool is_refused(const struct card *card)
{
	for (int d = 0; d < CARD_PCIE; d++) {
		if (!is_refused_one(card, d))
			return false;
	}
	return true;
}

int card_pcie_join(const struct cards *cards, const struct card *card, uint32_t groups,
		   struct nvml_field *ret_fields)
{
	if (!(groups & COLLECT_ROW) || is_refused(card) ||
	    (card->pcie_row_ns && cards->now_ns - card->pcie_row_ns < ROW_EVERY_NS))
		return 0;
	for (int d = 0; d < CARD_PCIE; d++)
		ret_fields[d] = (struct nvml_field){ .id = directions[d].id };
	return CARD_PCIE;
}

void card_pcie_joined(struct card *card, int status, const struct nvml_field *answers)
{
	card->pcie_joined.have = true;
	card->pcie_joined.status = status;
	card->pcie_joined.time_ns = clock_steady_ns();
	memcpy(card->pcie_joined.answers, answers, sizeof(card->pcie_joined.answers));
}

/* Whether they are asked by themselves. */
static bool is_asked(const struct card *card, uint32_t groups)
{
	uint8_t gpm = card->board.origin[METRIC_gpm_pcie_rx_bytes_s];
	bool told = origin_has((enum origin)gpm) || gpm == ORIGIN_PENDING;

	return groups & COLLECT_PCIE || (groups & COLLECT_PCIE_ELSE && !told);
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
	card->pcie[d].has_mean = sample_get(&card->board.sample, rate, &card->pcie[d].mean);
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

		card->board.origin[rate] = card->why[rate];
		if (card->pcie[d].has_measured)
			sample_set(&card->board.sample, rate, card->pcie[d].measured);
		else if (!card->pcie_measured_ns)
			card->board.origin[rate] = ORIGIN_PENDING;
	}
}

/* Between two readings for rows. */
static void hold(const struct cards *cards, struct card *card)
{
	const enum nvml_call call = NVML_CALL_nvmlDeviceGetFieldValues;

	for (int d = 0; d < CARD_PCIE; d++) {
		if (!card->pcie[d].has_mean)
			continue;
		sample_set(&card->board.sample, directions[d].rate, card->pcie[d].mean);
		card->board.origin[directions[d].rate] =
			cards->nvml.wrapped[call] ? ORIGIN_WRAPPER : ORIGIN_NVML;
	}
}

static void put_refused(struct cards *cards, struct card *card, int d, int status)
{
	enum metric total = directions[d].total, rate = directions[d].rate;

	/* What was read before holds no longer. */
	card->pcie[d].has_mean = false;
	card_answer(cards, card, total, NVML_CALL_nvmlDeviceGetFieldValues, status, 0);
	card->board.origin[rate] = card->why[total];
	if (card_is_final(status))
		card->unanswered[1] |= (uint64_t)1 << (PCIE_BIT + d);
}

/* `whole`: of the call. Each direction has a status of its own besides. */
static void put_both(struct cards *cards, struct card *card, int whole,
		     const struct nvml_field answers[CARD_PCIE], int64_t time_ns)
{
	for (int d = 0; d < CARD_PCIE; d++) {
		int status = whole ? whole : answers[d].status;

		if (is_refused_one(card, d)) {
			enum metric total = directions[d].total;

			card->board.origin[total] = card->why[total];
			card->board.origin[directions[d].rate] = card->why[total];
		} else if (status) {
			put_refused(cards, card, d,
				    status == NVML_INVALID && !whole ? NVML_NO_FUNCTION : status);
		} else {
			put(cards, card, d, &answers[d], time_ns);
		}
	}
}

void card_ask_pcie(struct cards *cards, struct card *card, uint32_t groups)
{
	struct nvml_field answers[CARD_PCIE];
	bool asked = is_asked(card, groups);
	int status;

	if (!asked && !(groups & COLLECT_ROW))
		return;
	if (is_refused(card)) {
		for (int d = 0; d < CARD_PCIE; d++)
			card->board.origin[directions[d].total] = card->why[directions[d].total];
	} else if (card->pcie_joined.have) {
		card->pcie_row_ns = cards->now_ns;
		put_both(cards, card, card->pcie_joined.status, card->pcie_joined.answers,
			 card->pcie_joined.time_ns);
	} else if (asked) {
		status = ask(cards, card, answers);
		put_both(cards, card, status, answers, clock_steady_ns());
	} else {
		hold(cards, card);
	}
	if (is_refused(card))
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

		uint8_t origin = card->board.origin[directions[d].rate];
		double bytes = (uint32_t)(answers[d].value.u32 - last->raw);

		if (answers[d].status || answers[d].type != NVML_U32 || seconds <= 0 ||
		    (origin != ORIGIN_WRAPS && origin != ORIGIN_PENDING))
			continue;
		sample_set(&card->board.sample, directions[d].rate, bytes / seconds);
		card->board.origin[directions[d].rate] =
			cards->nvml.wrapped[NVML_CALL_nvmlDeviceGetFieldValues] ? ORIGIN_WRAPPER
										: ORIGIN_NVML;
		last->raw = answers[d].value.u32;
		last->time_ns = time_ns;
		last->window_ns = time_ns;
		last->few = bytes / seconds < CALM_BYTES;
	}
}
