#include "serve/picture.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "collect/collector.h"

/* Longer than what is asked seldom takes to come again, every ten seconds and a
 * round; younger than what Prometheus takes for stale. */
static const int64_t KEPT_NS = 25 * INT64_C(1000000000);

/* When each value was measured. */
struct age {
	int64_t ns[METRIC_COUNT];
};

struct picture {
	bool seen;
	struct snapshot shown;
	VEC(struct age) ages; /* same places as the boards */
	int64_t processes_ns; /* when they were listed */
};

struct picture *picture_new(void)
{
	return mem_zero(sizeof(struct picture));
}

void picture_free(struct picture *picture)
{
	if (!picture)
		return;
	snapshot_done(&picture->shown);
	VEC_DONE(&picture->ages);
	free(picture);
}

/* Where `old` has what the new board was not asked. */
static void keep(struct board *board, struct age *age, const struct board *old,
		 const struct age *old_age, int64_t now_ns)
{
	double value;

	for (int m = 0; m < METRIC_COUNT; m++) {
		if (board->origin[m] != ORIGIN_NONE || now_ns - old_age->ns[m] > KEPT_NS ||
		    !board_get(old, (enum metric)m, &value, NULL))
			continue;
		sample_set(&board->sample, (enum metric)m, value);
		board->origin[m] = old->origin[m];
		age->ns[m] = old_age->ns[m];
	}
}

/* The same cards in the same places. */
static bool same_boards(const struct snapshot *a, const struct snapshot *b)
{
	if (a->boards.count != b->boards.count)
		return false;
	for (size_t i = 0; i < a->boards.count; i++)
		if (strcmp(a->boards.at[i].uuid, b->boards.at[i].uuid) != 0)
			return false;
	return true;
}

static void see_boards(struct picture *picture, const struct snapshot *snapshot, bool same)
{
	int64_t now_ns = snapshot->monotonic_ns;

	if (!same) {
		picture->shown.boards.count = picture->ages.count = 0;
		for (size_t i = 0; i < snapshot->boards.count; i++) {
			(void)VEC_ADD(&picture->shown.boards);
			(void)VEC_ADD(&picture->ages);
		}
	}
	for (size_t i = 0; i < snapshot->boards.count; i++) {
		struct board *shown = &picture->shown.boards.at[i], board = snapshot->boards.at[i];
		struct age *old = &picture->ages.at[i], age;

		for (int m = 0; m < METRIC_COUNT; m++)
			age.ns[m] = now_ns;
		if (same && board.state == BOARD_OK && shown->state == BOARD_OK)
			keep(&board, &age, shown, old, now_ns);
		*shown = board;
		*old = age;
	}
}

static void see_processes(struct picture *picture, const struct snapshot *snapshot, bool same)
{
	bool asked = snapshot->groups & COLLECT_PROCESSES;

	if (!asked && same && snapshot->monotonic_ns - picture->processes_ns <= KEPT_NS)
		return;
	picture->processes_ns = snapshot->monotonic_ns;
	picture->shown.processes.count = 0;
	for (size_t i = 0; i < snapshot->processes.count; i++)
		*VEC_ADD(&picture->shown.processes) = snapshot->processes.at[i];
}

void picture_see(struct picture *picture, const struct snapshot *snapshot)
{
	struct snapshot *shown = &picture->shown, kept = *shown;
	bool same = picture->seen && shown->generation == snapshot->generation &&
		    same_boards(shown, snapshot);

	*shown = *snapshot;
	shown->boards = kept.boards;
	shown->processes = kept.processes;
	shown->points = kept.points; /* nobody looks at these in a picture */
	shown->events = kept.events;
	shown->costs = kept.costs;
	see_boards(picture, snapshot, same);
	see_processes(picture, snapshot, same);
	picture->seen = true;
}

const struct snapshot *picture_snapshot(const struct picture *picture)
{
	return picture->seen ? &picture->shown : NULL;
}
