/*
 * GPM: counters of the whole card, without tracing anything. The driver gives
 * opaque samples; two of them, at least 100 ms apart, give the values between.
 * Each card has two that take turns, so a round allocates nothing.
 */
#include "collect/card.h"

#include "base/mem.h"
#include "collect/collector.h"

enum { GPM_APART_MS = 100 };

/* X(number, metric, unit of the driver in ours, group). MiB/s for what is a rate.
 * The driver takes 0.12 ms for each, so what no report shows has a group of its
 * own. */
#define GPM_METRICS(X)                                       \
	X(2, sm_active_pct, 1, COLLECT_GPM)                  \
	X(3, occupancy_pct, 1, COLLECT_GPM)                  \
	X(5, tensor_pct, 1, COLLECT_GPM)                     \
	X(10, dram_pct, 1, COLLECT_GPM)                      \
	X(20, gpm_pcie_tx_bytes_s, 1024 * 1024, COLLECT_GPM) \
	X(21, gpm_pcie_rx_bytes_s, 1024 * 1024, COLLECT_GPM) \
	X(60, nvlink_rx_bytes_s, 1024 * 1024, COLLECT_GPM)   \
	X(61, nvlink_tx_bytes_s, 1024 * 1024, COLLECT_GPM)   \
	X(1, gr_active_pct, 1, COLLECT_PIPES)                \
	X(4, int_pct, 1, COLLECT_PIPES)                      \
	X(6, dfma_tensor_pct, 1, COLLECT_PIPES)              \
	X(7, hmma_tensor_pct, 1, COLLECT_PIPES)              \
	X(9, imma_tensor_pct, 1, COLLECT_PIPES)              \
	X(11, fp64_pct, 1, COLLECT_PIPES)                    \
	X(12, fp32_pct, 1, COLLECT_PIPES)                    \
	X(13, fp16_pct, 1, COLLECT_PIPES)

static const struct {
	uint32_t id;
	enum metric metric;
	double scale;
	uint32_t group;
} metrics[] = {
#define X(id, metric, scale, group) { id, METRIC_##metric, scale, group },
	GPM_METRICS(X)
#undef X
};

enum { METRICS = sizeof(metrics) / sizeof(metrics[0]) };

_Static_assert((int)METRICS <= (int)NVML_GPM_ROOM, "the request has room for all");

/* Why there are no values. NVLink rates may be known from byte counters. */
static void put_origin(struct card *card, uint32_t groups, enum origin origin)
{
	double value;

	for (size_t i = 0; i < METRICS; i++)
		if (metrics[i].group & groups &&
		    !sample_get(&card->board.sample, metrics[i].metric, &value) &&
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

/* `which`: the rows that were asked, in the order of the answers. */
static void put_metrics(struct cards *cards, struct card *card, const uint8_t *which)
{
	const struct nvml_gpm_metrics *answers = cards->gpm;
	bool wrapped = cards->nvml.wrapped[NVML_CALL_nvmlGpmMetricsGet];

	for (uint32_t i = 0; i < answers->count; i++) {
		enum metric metric = metrics[which[i]].metric;
		bool ok = !answers->at[i].status && answers->at[i].value >= 0;

		if (ok)
			sample_set(&card->board.sample, metric,
				   answers->at[i].value * metrics[which[i]].scale);
		card->board.origin[metric] =
			(uint8_t)(!ok ? card_origin(answers->at[i].status ? answers->at[i].status
									  : NVML_NOT_READY)
				  : wrapped ? ORIGIN_WRAPPER
					    : ORIGIN_GPM);
	}
}

/* What lies between the two samples. */
static void ask_metrics(struct cards *cards, struct card *card, int before, uint32_t groups)
{
	uint8_t which[METRICS];
	double value;
	int status;

	if (!cards->gpm)
		cards->gpm = mem_zero(sizeof(*cards->gpm));
	cards->gpm->version = 1;
	cards->gpm->count = 0;
	cards->gpm->before = card->gpm[before];
	cards->gpm->after = card->gpm[!before];
	for (size_t i = 0; i < METRICS; i++) {
		/* The NVLink counters may have told already. */
		if (!(metrics[i].group & groups) ||
		    sample_get(&card->board.sample, metrics[i].metric, &value))
			continue;
		which[cards->gpm->count] = (uint8_t)i;
		cards->gpm->at[cards->gpm->count++].id = metrics[i].id;
	}
	status = NVML(&cards->nvml, nvmlGpmMetricsGet, cards->gpm);
	if (status)
		put_origin(card, groups, card_origin(status));
	else
		put_metrics(cards, card, which);
}

void card_ask_gpm(struct cards *cards, struct card *card, uint32_t groups)
{
	int before = card->gpm_newest, after = !before, status;
	int64_t apart_ns = cards->now_ns - card->gpm_ns[before];

	if (!card->board.gpm) {
		put_origin(card, groups, ORIGIN_NOT_SUPPORTED);
		return;
	}
	if (card->gpm_ns[before] && apart_ns < GPM_APART_MS * INT64_C(1000000)) {
		put_origin(card, groups, ORIGIN_PENDING);
		return;
	}
	status = take_sample(cards, card, after);
	if (status) {
		put_origin(card, groups, card_origin(status));
		return;
	}
	card->gpm_ns[after] = cards->now_ns;
	card->gpm_newest = after;
	if (!card->gpm_ns[before]) {
		put_origin(card, groups, ORIGIN_PENDING);
		return;
	}
	ask_metrics(cards, card, before, groups);
}
