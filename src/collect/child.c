#include "collect/child.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collect/card.h"

/* Names, limits and the list of cards change seldom. */
static const int64_t FIND_EVERY_NS = INT64_C(60) * 1000000000;
static const int64_t HEALTH_EVERY_NS = INT64_C(5) * 1000000000;
/* Long against a call of the driver, and too short for a counter of 32 bits to
 * wrap at what any link carries. */
static const int64_t WINDOW_NS = INT64_C(10) * 1000000;

/* All of it or nothing; false when the other end is gone. */
static bool send_all(int fd, struct iovec *parts, size_t count)
{
	while (count) {
		struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };
		ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return false;
		while (count && (size_t)sent >= parts->iov_len) {
			sent -= (ssize_t)parts->iov_len;
			parts++;
			count--;
		}
		if (count) {
			parts->iov_base = (char *)parts->iov_base + sent;
			parts->iov_len -= (size_t)sent;
		}
	}
	return true;
}

static bool send_answer(int fd, struct answer *answer)
{
	struct snapshot *snapshot = &answer->snapshot;
	struct iovec parts[] = {
		{ answer, sizeof(*answer) },
		{ snapshot->boards.at, snapshot->boards.count * sizeof(*snapshot->boards.at) },
		{ snapshot->processes.at,
		  snapshot->processes.count * sizeof(*snapshot->processes.at) },
		{ snapshot->points.at, snapshot->points.count * sizeof(*snapshot->points.at) },
		{ snapshot->events.at, snapshot->events.count * sizeof(*snapshot->events.at) },
		{ snapshot->costs.at, snapshot->costs.count * sizeof(*snapshot->costs.at) },
	};

	answer->magic = ANSWER_MAGIC;
	return send_all(fd, parts, sizeof(parts) / sizeof(parts[0]));
}

/* No value of a card that is not there is worth anything. */
static void blank(struct board *board, enum origin origin)
{
	memset(&board->sample, 0, sizeof(board->sample));
	memset(board->origin, (int)origin, sizeof(board->origin));
}

/* First in a round: what it leaves is facts and health, to be repeated. */
static void ask_health(struct cards *cards, struct card *card)
{
	struct board *board = &card->board;

	if (card->health_ns && cards->now_ns - card->health_ns < HEALTH_EVERY_NS) {
		board->sample = card->health;
		memcpy(board->origin, card->health_origin, sizeof(board->origin));
		return;
	}
	card_ask_values(cards, card, COLLECT_HEALTH);
	if (board->state == BOARD_OK && !card->owner)
		card_ask_fields(cards, card, COLLECT_HEALTH);
	if (board->state != BOARD_OK)
		return;
	card->health_ns = cards->now_ns;
	card->health = board->sample;
	memcpy(card->health_origin, board->origin, sizeof(board->origin));
}

/* Asked afresh each time. */
enum {
	VALUES = COLLECT_FAST | COLLECT_MEMORY | COLLECT_ROW | COLLECT_BAR1,
	FIELDS = COLLECT_COUNTERS | COLLECT_ROW | COLLECT_THERMAL | COLLECT_REPLAYS,
};

static void ask_board(struct cards *cards, uint32_t place, uint32_t groups,
		      struct snapshot *snapshot)
{
	struct card *card = &cards->at.at[place];
	struct board *board = &card->board;

	if (groups & COLLECT_HEALTH || card->struck)
		groups &= ~(uint32_t)(COLLECT_REPLAYS | COLLECT_BAR1);
	if (board->state == BOARD_OK && (groups & COLLECT_HEALTH || card->struck))
		ask_health(cards, card);
	if (board->state == BOARD_OK)
		card_ask_values(cards, card, groups & VALUES);
	if (board->state == BOARD_OK && groups & FIELDS && !card->owner)
		card_ask_fields(cards, card, groups & FIELDS);
	if (board->state == BOARD_OK && groups & COLLECT_GPM)
		card_ask_gpm(cards, card, groups);
	if (board->state == BOARD_OK && !card->owner)
		card_ask_pcie(cards, card, groups);
	if (board->state == BOARD_OK && groups & COLLECT_GPM && !card->owner)
		card_put_pcie(card);
	if (board->state == BOARD_OK && groups & COLLECT_RINGS && !card->owner)
		card_ask_rings(cards, place, snapshot);
	if (board->state == BOARD_OK && groups & COLLECT_ENERGY && !card->owner)
		card_ask_energy(cards, card, snapshot, place);
	if (board->state == BOARD_OK && groups & COLLECT_PROCESSES)
		card_ask_processes(cards, place, snapshot);
}

/* A second look at PCIe counters that may have wrapped since the round before:
 * all cards after one wait. */
static void ask_again(struct cards *cards)
{
	bool any = false;
	int64_t left_ns, last_ns = 0;

	for (size_t i = 0; i < cards->at.count; i++) {
		const struct card *card = &cards->at.at[i];

		if (!card->pcie_again || card->board.state != BOARD_OK)
			continue;
		any = true;
		for (int d = 0; d < CARD_PCIE; d++)
			if (card->pcie[d].time_ns > last_ns)
				last_ns = card->pcie[d].time_ns;
	}
	left_ns = last_ns + WINDOW_NS - clock_steady_ns();
	if (any && left_ns > 0) {
		(void)nanosleep(&(struct timespec){ 0, (long)left_ns }, NULL);
		cards->waited_ns += left_ns;
	}
	for (size_t i = 0; any && i < cards->at.count; i++)
		if (cards->at.at[i].pcie_again && cards->at.at[i].board.state == BOARD_OK)
			card_ask_pcie_again(cards, &cards->at.at[i]);
}

static void put_board(struct cards *cards, struct card *card, struct snapshot *snapshot)
{
	struct board *board = &card->board;
	double action;

	if (board->state != BOARD_OK)
		blank(board, board->state == BOARD_LOST ? ORIGIN_LOST : ORIGIN_ASLEEP);
	if (sample_get(&board->sample, METRIC_recovery_action, &action))
		board->recovery_action = card->facts.recovery_action = (int32_t)action;
	board->sample.time_ns = cards->utc_ns;
	*VEC_ADD(&snapshot->boards) = *board;
}

static void put_costs(const struct nvml *nvml, struct snapshot *snapshot)
{
	for (int i = 0; i < NVML_CALL_COUNT; i++) {
		struct call_cost *cost;

		if (!nvml->cost[i].count)
			continue;
		cost = VEC_ADD(&snapshot->costs);
		(void)snprintf(cost->name, sizeof(cost->name), "%s",
			       nvml_call_name((enum nvml_call)i));
		cost->count = nvml->cost[i].count;
		cost->failed = nvml->cost[i].failed;
		cost->total_ns = nvml->cost[i].total_ns;
		cost->max_ns = nvml->cost[i].max_ns;
	}
}

static int64_t rss_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long size = 0, resident = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%ld %ld", &size, &resident) != 2)
		resident = 0;
	(void)fclose(file);
	return resident * sysconf(_SC_PAGESIZE);
}

static void put_library(struct cards *cards, struct snapshot *snapshot)
{
	const struct nvml *nvml = &cards->nvml;

	memcpy(snapshot->driver, nvml->driver, sizeof(snapshot->driver));
	memcpy(snapshot->cuda, nvml->cuda, sizeof(snapshot->cuda));
	memcpy(snapshot->nvml, nvml->library_version, sizeof(snapshot->nvml));
	memcpy(snapshot->library, nvml->file, sizeof(snapshot->library));
	memcpy(snapshot->wrapper, nvml->wrapper, sizeof(snapshot->wrapper));
	snapshot->calls = nvml->calls;
	(void)snprintf(snapshot->slowest, sizeof(snapshot->slowest), "%s",
		       nvml_call_name(nvml->slowest));
	snapshot->slowest_ns = nvml->slowest_ns;
	snapshot->generation = cards->generation;
	snapshot->junk_rows = cards->junk_rows;
}

/* A card that answered this library once and is lost for good, as far as it
 * can tell: only opening the library anew can find it again. */
static bool has_lost(const struct cards *cards)
{
	for (size_t i = 0; i < cards->at.count; i++)
		if (cards->at.at[i].device && cards->at.at[i].board.state == BOARD_LOST)
			return true;
	return false;
}

/* One round; NVML's status of what made it impossible. */
static int take(struct cards *cards, uint32_t groups, struct answer *answer)
{
	struct snapshot *snapshot = &answer->snapshot;
	int64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	bool due;

	cards->now_ns = clock_steady_ns();
	cards->utc_ns = clock_ns(CLOCK_REALTIME);
	cards->waited_ns = 0;
	cards->nvml.calls = 0;
	cards->nvml.slowest_ns = 0;
	cards->junk_rows = 0;
	snapshot->utc_ns = cards->utc_ns;
	snapshot->monotonic_ns = cards->now_ns;
	snapshot->groups = groups;
	due = !cards->found_ns || groups & COLLECT_FRESH ||
	      cards->now_ns - cards->found_ns >= FIND_EVERY_NS;
	if (due) {
		bool lost = cards->found_ns && has_lost(cards);
		int status = card_find(cards, groups & COLLECT_FRESH);

		if (status)
			return status;
		answer->leaves = lost;
	}
	for (uint32_t i = 0; i < cards->at.count; i++)
		card_begin(&cards->at.at[i]);
	if (groups & COLLECT_EVENTS)
		card_ask_events(cards, snapshot);
	for (uint32_t i = 0; i < cards->at.count; i++)
		ask_board(cards, i, groups, snapshot);
	ask_again(cards);
	for (uint32_t i = 0; i < cards->at.count; i++)
		put_board(cards, &cards->at.at[i], snapshot);
	answer->leaves &= has_lost(cards);
	put_library(cards, snapshot);
	if (groups & COLLECT_COSTS) {
		put_costs(&cards->nvml, snapshot);
		snapshot->rss_bytes = rss_bytes();
	}
	snapshot->wall_ns = clock_steady_ns() - cards->now_ns - cards->waited_ns;
	snapshot->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	return 0;
}

static void fail(struct answer *answer, int status, const char *line)
{
	answer->failed = answer->leaves = 1;
	answer->status = status;
	(void)snprintf(answer->line, sizeof(answer->line), "%s", line);
}

/* Memory of arrays is kept for the next round. */
static void clear_answer(struct answer *answer)
{
	struct snapshot *snapshot = &answer->snapshot, kept = { 0 };

	kept.boards = snapshot->boards;
	kept.processes = snapshot->processes;
	kept.points = snapshot->points;
	kept.events = snapshot->events;
	kept.costs = snapshot->costs;
	kept.boards.count = kept.processes.count = kept.points.count = 0;
	kept.events.count = kept.costs.count = 0;
	memset(answer, 0, sizeof(*answer));
	*snapshot = kept;
}

void child_run(int fd, const struct collector_opts *opts)
{
	struct cards cards = { .root = opts->root ? opts->root : "", .wake = opts->wake };
	struct answer *answer = mem_zero(sizeof(*answer));
	uint32_t groups = 0;
	bool open = false;

	while (recv(fd, &groups, sizeof(groups), MSG_WAITALL) == (ssize_t)sizeof(groups)) {
		struct err err = { 0 };
		int status = 0;

		clear_answer(answer);
		if (!open) {
			if (nvml_open(&cards.nvml, opts->library, &status, &err) < 0) {
				fail(answer, status, err.line);
			}
			open = true;
		}
		if (!answer->failed) {
			status = take(&cards, groups, answer);
			if (status) {
				(void)err_set(&err, ERR_MISSING, "NVML: %s (%d)",
					      nvml_status_text(status), status);
				fail(answer, status, err.line);
			}
		}
		if (!send_answer(fd, answer) || answer->leaves)
			break;
	}
	cards_done(&cards);
	snapshot_done(&answer->snapshot);
	free(answer);
}
