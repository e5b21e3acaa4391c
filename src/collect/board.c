#include "collect/board.h"

#include <string.h>

static const struct {
	const char *id;
	const char *word;
	bool has;
} origins[ORIGIN_COUNT] = {
#define X(id, word, has) [ORIGIN_##id] = { #id, word, has },
	ORIGIN_LIST(X)
#undef X
};

const char *origin_word(enum origin origin)
{
	return origins[origin].word;
}

const char *origin_name(enum origin origin)
{
	return origins[origin].id;
}

bool origin_has(enum origin origin)
{
	return origins[origin].has;
}

void snapshot_done(struct snapshot *snapshot)
{
	VEC_DONE(&snapshot->boards);
	VEC_DONE(&snapshot->processes);
	VEC_DONE(&snapshot->points);
	VEC_DONE(&snapshot->events);
	VEC_DONE(&snapshot->costs);
	*snapshot = (struct snapshot){ 0 };
}

bool board_get(const struct board *board, enum metric metric, double *ret_value,
	       enum origin *ret_origin)
{
	double value;
	bool has = sample_get(&board->sample, metric, &value);

	if (has && ret_value)
		*ret_value = value;
	if (ret_origin)
		*ret_origin = (enum origin)board->origin[metric];
	return has;
}

bool board_event_fault(const struct snapshot *snapshot, const struct board_event *event,
		       struct fault *ret_fault)
{
	const struct board *board;

	if (event->type != EVENT_XID || event->board >= snapshot->boards.count ||
	    event->data > INT32_MAX)
		return false;
	board = &snapshot->boards.at[event->board];
	*ret_fault = (struct fault){ .kind = FAULT_XID,
				     .origin = FAULT_FROM_NVML,
				     .has_time = true,
				     .time_ns = snapshot->utc_ns,
				     .early_ns = snapshot->utc_ns - event->since_ns,
				     .have = FAULT_HAS(FAULT_NUMBER),
				     .number = (int64_t)event->data };
	memcpy(ret_fault->pci, board->pci_bus, sizeof(board->pci_bus));
	memcpy(ret_fault->uuid, board->uuid, sizeof(board->uuid));
	if (event->gpu_instance >= 0) {
		ret_fault->gpu_instance = event->gpu_instance;
		ret_fault->have |= FAULT_HAS(FAULT_GPU_INSTANCE);
	}
	if (event->compute_instance >= 0) {
		ret_fault->compute_instance = event->compute_instance;
		ret_fault->have |= FAULT_HAS(FAULT_COMPUTE_INSTANCE);
	}
	return true;
}

const char *board_event_words(uint32_t type)
{
	static const struct {
		uint32_t type;
		const char *words;
	} list[] = {
#define X(id, bit, words) { bit, words },
		EVENT_LIST(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (list[i].type == type)
			return list[i].words;
	return "event";
}
