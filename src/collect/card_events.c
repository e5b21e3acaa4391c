/*
 * What the driver tells by itself: Xids above all. It keeps events for who has
 * registered, so a look each round misses none; nothing comes from before, and
 * with a card that falls off the bus the event may stay away, for which there
 * is the kernel log.
 *
 * Events of changed clocks would come by the dozen under load, each for a call
 * more, and say nothing that the clock reasons of each round don't.
 */
#include "collect/card.h"

#include "collect/collector.h"

static const uint64_t WANTED = 0
#define X(id, bit, words) | EVENT_##id
	EVENT_LIST(X)
#undef X
	;

/* The rest stays in the driver's queue for the next round. */
enum { EVENTS_A_ROUND = 64 };

/* A driver refuses a whole mask for one bit that it does not know. */
static void listen_to(struct cards *cards, struct card *card)
{
	uint64_t types = 0;

	card->listening = CARD_DEAF;
	if (NVML(&cards->nvml, nvmlDeviceGetSupportedEventTypes, card->device, &types) ||
	    !(types & WANTED))
		return;
	if (!NVML(&cards->nvml, nvmlDeviceRegisterEvents, card->device, types & WANTED,
		  cards->events))
		card->listening = CARD_LISTENS;
}

static int next_event(struct nvml *nvml, struct nvml_event_set *set, struct nvml_event *event)
{
	int status;

	*event = (struct nvml_event){ .gpu_instance = UINT32_MAX, .compute_instance = UINT32_MAX };
	status = NVML(nvml, nvmlEventSetWait_v2, set, event, 0);
	if (status == NVML_NO_FUNCTION)
		status = NVML(nvml, nvmlEventSetWait, set, event, 0);
	return status;
}

static void put_event(struct cards *cards, const struct nvml_event *event, int64_t since_ns,
		      struct snapshot *snapshot)
{
	for (size_t i = 0; i < cards->at.count; i++) {
		struct card *card = &cards->at.at[i];

		if (card->owner || !card->device || card->device != event->device)
			continue;
		*VEC_ADD(&snapshot->events) = (struct board_event){
			.board = (uint32_t)i,
			.type = (uint32_t)event->type,
			.data = event->data,
			.gpu_instance = (int32_t)event->gpu_instance,
			.compute_instance = (int32_t)event->compute_instance,
			.since_ns = since_ns,
		};
		/* What it is about shows in error counters and the recovery action. */
		card->struck = true;
		card->health_ns = 0;
		return;
	}
}

void card_ask_events(struct cards *cards, struct snapshot *snapshot)
{
	struct nvml_event event;
	int64_t since_ns = cards->events_ns ? cards->events_ns : cards->utc_ns;
	bool any = false;

	if (!cards->events && !cards->no_events)
		cards->no_events =
			NVML(&cards->nvml, nvmlEventSetCreate, &cards->events) || !cards->events;
	for (size_t i = 0; i < cards->at.count && !cards->no_events; i++) {
		struct card *card = &cards->at.at[i];

		if (card->device && !card->owner && card->listening == CARD_UNASKED)
			listen_to(cards, card);
		any |= card->listening == CARD_LISTENS;
	}
	cards->events_ns = cards->utc_ns;
	for (int i = 0; any && i < EVENTS_A_ROUND; i++) {
		if (next_event(&cards->nvml, cards->events, &event))
			return;
		put_event(cards, &event, since_ns, snapshot);
	}
}
