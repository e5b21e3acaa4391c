/*
 * The driver's own history, and energy.
 *
 * Reading the energy counter takes milliseconds, so it is read once a minute;
 * between, power is integrated over the points of the ring where they reach
 * back far enough, else over our own rounds.
 */
#include "collect/card.h"

#include <math.h>

#include "collect/collector.h"

enum { RING_ROOM = 256, ENERGY_EVERY_S = 60 };

static const struct {
	enum nvml_ring ring;
	enum metric metric;
	double scale;
	int64_t every_s; /* well below its length: a reading costs milliseconds */
} rings[CARD_RINGS] = {
	{ NVML_RING_POWER, METRIC_power_w, 1e-3, 2 },
	{ NVML_RING_GPU, METRIC_util_pct, 1, 10 },
	{ NVML_RING_MEMORY, METRIC_mem_util_pct, 1, 10 },
};

static double sample_value(uint32_t type, const union nvml_value *value)
{
	switch (type) {
	case NVML_F64:
		return value->f64;
	case NVML_U32:
		return value->u32;
	case NVML_I32:
		return value->i32;
	case NVML_I64:
		return (double)value->i64;
	default:
		return (double)value->u64;
	}
}

static void ask_ring(struct cards *cards, uint32_t place, int r, struct snapshot *snapshot)
{
	struct card *card = &cards->at.at[place];
	struct nvml_sample samples[RING_ROOM];
	uint32_t count = RING_ROOM, type = NVML_U32;
	uint64_t seen = card->ring_seen_us[r];
	int status = NVML(&cards->nvml, nvmlDeviceGetSamples, card->device, rings[r].ring, seen,
			  &type, &count, samples);

	if (card_is_final(status))
		card->unanswered[1] |= (uint64_t)1 << (63 - r);
	if (status)
		return; /* nothing new, or none at all: the plain values are there */
	for (uint32_t i = 0; i < count && i < RING_ROOM; i++) {
		/* Slots that were never written have no time; what we have seen
		 * comes again from drivers that do not look at `seen`. */
		if (!samples[i].time_us || samples[i].time_us <= card->ring_seen_us[r] ||
		    samples[i].time_us > INT64_MAX / 1000)
			continue;
		card->ring_seen_us[r] = samples[i].time_us;
		*VEC_ADD(&snapshot->points) = (struct ring_point){
			.board = place,
			.metric = rings[r].metric,
			.utc_ns = (int64_t)samples[i].time_us * 1000,
			.value = sample_value(type, &samples[i].value) * rings[r].scale,
		};
	}
}

void card_ask_rings(struct cards *cards, uint32_t place, struct snapshot *snapshot)
{
	struct card *card = &cards->at.at[place];

	for (int r = 0; r < CARD_RINGS; r++) {
		int64_t age_ns = cards->now_ns - card->ring_read_ns[r];

		if (card->unanswered[1] >> (63 - r) & 1 ||
		    (card->ring_read_ns[r] && !(snapshot->groups & COLLECT_FRESH) &&
		     age_ns < rings[r].every_s * INT64_C(1000000000)))
			continue;
		card->ring_read_ns[r] = cards->now_ns;
		ask_ring(cards, place, r, snapshot);
	}
}

/* Power was `watts` at `ns` (monotonic). */
static void integrate(struct card *card, int64_t ns, double watts)
{
	if (card->power_ns && ns > card->power_ns)
		card->energy_j += (card->power_w + watts) / 2 * (double)(ns - card->power_ns) / 1e9;
	if (ns > card->power_ns) {
		card->power_ns = ns;
		card->power_w = watts;
	}
}

static void integrate_points(struct cards *cards, struct card *card,
			     const struct snapshot *snapshot, uint32_t place)
{
	double watts;

	for (size_t i = 0; i < snapshot->points.count; i++) {
		const struct ring_point *point = &snapshot->points.at[i];

		if (point->board == place && point->metric == METRIC_power_w)
			integrate(card, point->utc_ns - cards->utc_ns + cards->now_ns,
				  point->value);
	}
	if (sample_get(&card->board.sample, METRIC_power_w, &watts))
		integrate(card, cards->now_ns, watts);
}

void card_ask_energy(struct cards *cards, struct card *card, const struct snapshot *snapshot,
		     uint32_t place)
{
	const enum nvml_call call = NVML_CALL_nvmlDeviceGetTotalEnergyConsumption;
	int64_t age_ns = cards->now_ns - card->energy_read_ns;
	uint64_t mj = 0;
	int status = NVML_OK;

	if (card->energy_known)
		integrate_points(cards, card, snapshot, place);
	if (!card->energy_read_ns || age_ns >= ENERGY_EVERY_S * INT64_C(1000000000)) {
		card->energy_read_ns = cards->now_ns;
		status = NVML(&cards->nvml, nvmlDeviceGetTotalEnergyConsumption, card->device, &mj);
		card_answer(cards, card, METRIC_energy_j, call, status, (double)mj / 1e3);
		if (status) {
			card->energy_known = false;
			return;
		}
		if (card->energy_known && (double)mj / 1e3 < card->energy_read_j) {
			cards->generation++;
			card->energy_j = 0;
		}
		/* What was integrated may have run ahead: a total never falls. */
		card->energy_read_j = (double)mj / 1e3;
		card->energy_j = fmax(card->energy_j, card->energy_read_j);
		card->energy_known = true;
		card->power_ns = 0;
		integrate_points(cards, card, &(struct snapshot){ 0 }, place);
	}
	if (!card->energy_known) {
		card->board.origin[METRIC_energy_j] = card->why[METRIC_energy_j];
		return;
	}
	sample_set(&card->board.sample, METRIC_energy_j, card->energy_j);
	card->board.origin[METRIC_energy_j] =
		(uint8_t)(card->energy_read_ns == cards->now_ns ? ORIGIN_NVML : ORIGIN_RING);
}
