#include "collect/watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* NVML reference, nvmlClocksEventReasons. */
enum { BIT_IDLE = 0x1, BIT_SW_THERMAL = 0x20, BIT_HW_THERMAL = 0x40 };

/* A cliff is a clock below this part of what it was. The power limit alone took
 * an H200 from 1980 to 1440 MHz, 0.73; a fault or an external brake goes far
 * below. */
static const double CLIFF_SHARE = 0.6;
/* So long, so that one odd reading is none, ... */
static const int64_t CLIFF_NS = 1000000000;
/* ... after so long a time under load, which makes the clock before known. */
static const int64_t LOAD_NS = 5 * 1000000000LL;
static const double LOAD_PCT = 50;
/* The clock before is a mean that forgets with this time. */
static const double MEMORY_S = 30;

/* Heat that comes and goes is one strike. */
static const int64_t QUIET_NS = 60 * 1000000000LL;

enum { BOARDS_MAX = 256 };

struct seen {
	char uuid[96];
	enum board_state state;
	/* under load */
	int64_t load_ns; /* since when; 0: not */
	int64_t low_ns;  /* since when the clock is low; 0: not */
	bool cliff_told;
	double mhz; /* the mean; 0: none yet */
	int64_t last_ns;
	int64_t hot_ns; /* last time it was slowed by heat; 0: never */
};

struct watch {
	VEC(struct seen) boards;
};

static const struct {
	const char *word, *what;
} kinds[TRIGGER_COUNT] = {
#define X(id, word, what) [TRIGGER_##id] = { word, what },
	TRIGGER_LIST(X)
#undef X
};

const char *trigger_word(enum trigger_kind kind)
{
	return kinds[kind].word;
}

const char *trigger_what(enum trigger_kind kind)
{
	return kinds[kind].what;
}

struct watch *watch_new(void)
{
	return mem_zero(sizeof(struct watch));
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	VEC_DONE(&watch->boards);
	free(watch);
}

static struct seen *seen_of(struct watch *watch, const struct board *board)
{
	struct seen *seen;

	for (size_t i = 0; i < watch->boards.count; i++)
		if (!strcmp(watch->boards.at[i].uuid, board->uuid))
			return &watch->boards.at[i];
	if (watch->boards.count == BOARDS_MAX)
		return NULL;
	seen = VEC_ADD(&watch->boards);
	memcpy(seen->uuid, board->uuid, sizeof(seen->uuid));
	return seen;
}

static bool strike(struct trigger *ret, enum trigger_kind kind, const struct board *board)
{
	ret->kind = kind;
	memcpy(ret->pci_bus, board->pci_bus, sizeof(ret->pci_bus));
	return true;
}

static bool lost(struct seen *seen, const struct board *board, struct trigger *ret)
{
	bool was = seen->state == BOARD_LOST;

	seen->state = board->state;
	if (board->state != BOARD_LOST || was)
		return false;
	(void)snprintf(ret->text, sizeof(ret->text), "GPU %u: lost, the driver says %d",
		       board->index, board->status);
	return strike(ret, TRIGGER_LOST, board);
}

static bool hot(struct seen *seen, const struct board *board, int64_t now_ns, struct trigger *ret)
{
	double reasons, temp_c, mhz;
	bool quiet = !seen->hot_ns || now_ns - seen->hot_ns > QUIET_NS;
	int len;

	if (!board_get(board, METRIC_clock_reasons, &reasons, NULL) || reasons < 0 ||
	    !((uint64_t)reasons & (BIT_SW_THERMAL | BIT_HW_THERMAL)))
		return false;
	seen->hot_ns = now_ns;
	if (!quiet)
		return false;
	len = snprintf(ret->text, sizeof(ret->text), "GPU %u: %s thermal slowdown", board->index,
		       (uint64_t)reasons & BIT_HW_THERMAL ? "hardware" : "software");
	if (board_get(board, METRIC_temp_c, &temp_c, NULL))
		len += snprintf(ret->text + len, sizeof(ret->text) - (size_t)len, ", %.0f C",
				temp_c);
	if (board_get(board, METRIC_sm_mhz, &mhz, NULL))
		(void)snprintf(ret->text + len, sizeof(ret->text) - (size_t)len,
			       ", SM clock %.0f MHz", mhz);
	return strike(ret, TRIGGER_THERMAL, board);
}

static void forget_load(struct seen *seen)
{
	seen->load_ns = 0;
	seen->low_ns = 0;
}

/* Takes the clock into the mean, which a fall does not move. */
static void remember(struct seen *seen, double mhz, int64_t now_ns)
{
	double span_s = (double)(now_ns - seen->last_ns) / 1e9;
	double weight = seen->mhz > 0 ? 1 - exp(-span_s / MEMORY_S) : 1;

	seen->mhz += weight * (mhz - seen->mhz);
	seen->low_ns = 0;
	seen->cliff_told = false;
}

static bool cliff(struct seen *seen, const struct board *board, int64_t now_ns, struct trigger *ret)
{
	double util_pct, mhz, reasons = 0;

	(void)board_get(board, METRIC_clock_reasons, &reasons, NULL);
	if (!board_get(board, METRIC_util_pct, &util_pct, NULL) ||
	    !board_get(board, METRIC_sm_mhz, &mhz, NULL) || util_pct < LOAD_PCT ||
	    (reasons >= 0 && (uint64_t)reasons & BIT_IDLE)) {
		forget_load(seen);
		seen->last_ns = now_ns;
		return false;
	}
	if (!seen->load_ns)
		seen->load_ns = now_ns;
	if (seen->mhz <= 0 || mhz >= CLIFF_SHARE * seen->mhz)
		remember(seen, mhz, now_ns);
	else if (!seen->low_ns)
		seen->low_ns = now_ns;
	seen->last_ns = now_ns;
	if (!seen->low_ns || seen->cliff_told || now_ns - seen->low_ns < CLIFF_NS ||
	    now_ns - seen->load_ns < LOAD_NS)
		return false;
	seen->cliff_told = true;
	(void)snprintf(ret->text, sizeof(ret->text),
		       "GPU %u: SM clock %.0f MHz under load, %.0f MHz before", board->index, mhz,
		       seen->mhz);
	return strike(ret, TRIGGER_CLOCK, board);
}

bool watch_see(struct watch *watch, const struct snapshot *snapshot, struct trigger *ret)
{
	bool struck = false;

	for (size_t i = 0; i < snapshot->boards.count; i++) {
		const struct board *board = &snapshot->boards.at[i];
		struct seen *seen = seen_of(watch, board);
		struct trigger trigger = { .utc_ns = snapshot->utc_ns };
		int64_t now_ns = snapshot->monotonic_ns;
		bool now;

		if (!seen)
			continue;
		/* All of them, so that each keeps its memory. */
		now = lost(seen, board, &trigger);
		now |= hot(seen, board, now_ns, &trigger);
		now |= cliff(seen, board, now_ns, &trigger);
		if (now && !struck)
			*ret = trigger;
		struck |= now;
	}
	return struck;
}
