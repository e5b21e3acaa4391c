/*
 * GPM: counters of the whole card, without tracing anything. The driver gives
 * opaque samples; two of them, at least 100 ms apart, give the values between.
 * Each card has two that take turns, so a round allocates nothing.
 */
#include "collect/card.h"

#include "base/mem.h"

enum { GPM_APART_MS = 100 };

/* X(number, metric, unit of the driver in ours). MiB/s for what is a rate. */
#define GPM_METRICS(X)                          \
	X(1, gr_active_pct, 1)                  \
	X(2, sm_active_pct, 1)                  \
	X(3, occupancy_pct, 1)                  \
	X(4, int_pct, 1)                        \
	X(5, tensor_pct, 1)                     \
	X(6, dfma_tensor_pct, 1)                \
	X(7, hmma_tensor_pct, 1)                \
	X(9, imma_tensor_pct, 1)                \
	X(10, dram_pct, 1)                      \
	X(11, fp64_pct, 1)                      \
	X(12, fp32_pct, 1)                      \
	X(13, fp16_pct, 1)                      \
	X(20, gpm_pcie_tx_bytes_s, 1024 * 1024) \
	X(21, gpm_pcie_rx_bytes_s, 1024 * 1024) \
	X(60, nvlink_rx_bytes_s, 1024 * 1024)   \
	X(61, nvlink_tx_bytes_s, 1024 * 1024)

static const struct {
	uint32_t id;
	enum metric metric;
	double scale;
} metrics[] = {
#define X(id, metric, scale) { id, METRIC_##metric, scale },
	GPM_METRICS(X)
#undef X
};

enum { METRICS = sizeof(metrics) / sizeof(metrics[0]) };

_Static_assert((int)METRICS <= (int)NVML_GPM_ROOM, "the request has room for all");

/* Why there are no values. NVLink rates may be known from byte counters. */
static void put_origin(struct card *card, enum origin origin)
{
	double value;

	for (size_t i = 0; i < METRICS; i++)
		if (!sample_get(&card->board.sample, metrics[i].metric, &value) &&
		    card->board.origin[metrics[i].metric] == ORIGIN_NONE)
			card->board.origin[metrics[i].metric] = (uint8_t)origin;
}

static int take_sample(struct cards *cards, struct card *card, int which)
{
	struct nvml *nvml = &cards->nvml;
	int status;

	if (!card->gpm[which]) {
		status = NVML(nvml, nvmlGpmSampleAlloc, &card->gpm[which]);
		if (status) {
			card->gpm[which] = NULL;
			return status;
		}
	}
	if (card->owner)
		return NVML(nvml, nvmlGpmMigSampleGet, card->owner,
			    (uint32_t)card->board.gpu_instance, card->gpm[which]);
	return NVML(nvml, nvmlGpmSampleGet, card->device, card->gpm[which]);
}

static void put_metrics(struct cards *cards, struct card *card)
{
	const struct nvml_gpm_metrics *answers = cards->gpm;
	bool wrapped = cards->nvml.wrapped[NVML_CALL_nvmlGpmMetricsGet];
	double value;

	for (size_t i = 0; i < METRICS; i++) {
		enum metric metric = metrics[i].metric;
		bool ok = !answers->at[i].status && answers->at[i].value >= 0;

		if (!ok && sample_get(&card->board.sample, metric, &value))
			continue; /* bytes of the NVLink counters */
		if (ok)
			sample_set(&card->board.sample, metric,
				   answers->at[i].value * metrics[i].scale);
		card->board.origin[metric] =
			(uint8_t)(!ok ? card_origin(answers->at[i].status ? answers->at[i].status
									  : NVML_NOT_READY)
				  : wrapped ? ORIGIN_WRAPPER
					    : ORIGIN_GPM);
	}
}

void card_ask_gpm(struct cards *cards, struct card *card)
{
	int before = card->gpm_newest, after = !before, status;
	int64_t apart_ns = cards->now_ns - card->gpm_ns[before];

	if (!card->board.gpm) {
		put_origin(card, ORIGIN_NOT_SUPPORTED);
		return;
	}
	if (card->gpm_ns[before] && apart_ns < GPM_APART_MS * INT64_C(1000000)) {
		put_origin(card, ORIGIN_PENDING);
		return;
	}
	status = take_sample(cards, card, after);
	if (status) {
		put_origin(card, card_origin(status));
		return;
	}
	card->gpm_ns[after] = cards->now_ns;
	card->gpm_newest = after;
	if (!card->gpm_ns[before]) {
		put_origin(card, ORIGIN_PENDING);
		return;
	}
	if (!cards->gpm)
		cards->gpm = mem_zero(sizeof(*cards->gpm));
	cards->gpm->version = 1;
	cards->gpm->count = METRICS;
	cards->gpm->before = card->gpm[before];
	cards->gpm->after = card->gpm[after];
	for (size_t i = 0; i < METRICS; i++)
		cards->gpm->at[i].id = metrics[i].id;
	status = NVML(&cards->nvml, nvmlGpmMetricsGet, cards->gpm);
	if (status)
		put_origin(card, card_origin(status));
	else
		put_metrics(cards, card);
}
