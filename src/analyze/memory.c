/*
 * Device memory as the framework's allocator told it.
 */
#include "analyze/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/order.h"
#include "base/str.h"

/* Fewer steps than this show no trend. */
enum { GROWTH_STEPS = 4 };

struct history {
	struct memory_fact fact;
	VEC(struct tl_level) levels;
	uint32_t source;
};

/* The row of a process's device; SESSION_NONE. */
static uint32_t device_of(const struct session *session, uint32_t source, int64_t ordinal)
{
	for (uint32_t i = 0; i < session->devices.count; i++) {
		const struct device *device = &session->devices.at[i];

		if (device->scope == DEVICE_OF_SOURCE && device->source == source &&
		    device->ordinal == ordinal)
			return i;
	}
	return SESSION_NONE;
}

static int by_time(const void *a, const void *b)
{
	const struct tl_level *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

static void history_batch(struct timeline *timeline, const struct store_batch *batch,
			  struct history *histories)
{
	const struct session *session = timeline->session;
	uint32_t source = session->lanes.at[batch->lane].source, device = SESSION_NONE;
	const int64_t *bytes = batch->col[COL_bytes], *ordinal = batch->col[COL_device];
	const int64_t *allocated = batch->col[COL_allocated], *reserved = batch->col[COL_reserved];
	int64_t known = -1, ignored;

	for (size_t i = 0; ordinal && i < batch->count; i++) {
		struct history *history;

		if (ordinal[i] < 0)
			continue;
		if (ordinal[i] != known)
			device = device_of(session, source, ordinal[i]);
		known = ordinal[i];
		if (device == SESSION_NONE)
			continue;
		history = &histories[device];
		history->source = source;
		history->fact.alloc_count += bytes && bytes[i] > 0;
		history->fact.free_count += bytes && bytes[i] < 0;
		if (reserved && reserved[i] > history->fact.reserved_peak_bytes)
			history->fact.reserved_peak_bytes = reserved[i];
		if (allocated && allocated[i] != EVENT_UNKNOWN) {
			struct tl_level *level = VEC_ADD(&history->levels);

			timeline_time(timeline, source, batch->col[COL_start][i], 0, &level->time,
				      &ignored);
			level->bytes = allocated[i];
			if (allocated[i] > history->fact.peak_bytes)
				history->fact.peak_bytes = allocated[i];
		}
	}
}

double step_growth(const struct tl_level *levels, size_t count, const struct step_facts *steps,
		   uint32_t source)
{
	size_t level = 0, known = 0, grown = 0;
	double result = NAN;
	int64_t *at_end;

	if (steps->step.count < GROWTH_STEPS || !count)
		return NAN;
	at_end = mem_alloc(steps->step.count * sizeof(*at_end));
	for (size_t i = 0; i < steps->step.count; i++) {
		if (steps->step.at[i].source != source)
			continue;
		while (level < count && levels[level].time <= steps->step.at[i].end_ns)
			level++;
		if (level)
			at_end[known++] = levels[level - 1].bytes;
	}
	for (size_t i = 1; i < known; i++) {
		at_end[i - 1] = at_end[i] - at_end[i - 1];
		grown += at_end[i - 1] > 0;
	}
	if (known >= GROWTH_STEPS && grown * 2 > known - 1) {
		order_values(at_end, known - 1);
		result = (double)at_end[(known - 1) / 2];
	}
	free(at_end);
	return result;
}

bool is_block_by_block(const struct session *session, uint32_t source)
{
	return source < session->sources.count &&
	       !strcmp(session_text(session, session->sources.at[source].reader), READER_CUDA);
}

bool memory_was_recorded(const struct session *session)
{
	for (size_t i = 0; i < session->envs.count; i++) {
		const struct env *env = &session->envs.at[i];
		struct str rest = str_of(session_text(session, env->value));

		if (strcmp(session_text(session, env->key), "trace") != 0)
			continue;
		while (rest.len)
			if (str_is(str_cut(&rest, ','), "memory"))
				return true;
		return false;
	}
	return true;
}

void memory_unknown(struct memory_fact *memory, uint32_t device)
{
	*memory = (struct memory_fact){ .device = device,
					.peak_bytes = FACT_UNKNOWN,
					.live_bytes = FACT_UNKNOWN,
					.reserved_peak_bytes = FACT_UNKNOWN,
					.growth_bytes_per_step = NAN };
	for (size_t i = 0; i < HELD_KINDS; i++)
		memory->objects[i].live = FACT_UNKNOWN;
}

int memory_facts(struct timeline *timeline, struct store *store, struct facts *facts,
		 struct err *err)
{
	struct store_query query = {
		.kinds = STORE_BIT(STORE_alloc),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_bytes) | COL_BIT(COL_allocated) |
			   COL_BIT(COL_reserved) | COL_BIT(COL_device),
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	const struct session *session = timeline->session;
	struct history *histories = mem_zero((session->devices.count + 1) * sizeof(*histories));
	struct store_batch batch;
	int got;

	for (uint32_t i = 0; i < session->devices.count; i++)
		memory_unknown(&histories[i].fact, i);
	got = store_query_open(store, &query, &cursor, err);
	while (got >= 0 && (got = store_next(cursor, &batch, err)) > 0)
		if (!is_block_by_block(session, session->lanes.at[batch.lane].source))
			history_batch(timeline, &batch, histories);
	for (uint32_t i = 0; i < session->devices.count; i++) {
		struct history *history = &histories[i];

		if (history->levels.count) {
			qsort(history->levels.at, history->levels.count,
			      sizeof(*history->levels.at), by_time);
			history->fact.live_bytes =
				history->levels.at[history->levels.count - 1].bytes;
		}
		history->fact.growth_bytes_per_step = step_growth(
			history->levels.at, history->levels.count, &facts->steps, history->source);
		history->fact.steps = steps_of(&facts->steps, history->source);
		if (history->fact.alloc_count + history->fact.free_count)
			*VEC_ADD(&facts->memory) = history->fact;
		VEC_DONE(&history->levels);
	}
	free(histories);
	return got;
}
