#include "serve/pace.h"

#include "collect/collector.h"

/* A round may take the driver a tenth of the time, as tails may of the store. */
static const int64_t SLOW_PART = 10;
/* Well below that again: it may come back. */
static const int64_t QUICK_PART = 40;
/* One slow call is chance (a card that wakes); so many rounds are not. */
enum { SLOW_ROUNDS = 3, QUICK_ROUNDS = 12, LEVEL_MOST = 10 };
static const int64_t SLOWEST_NS = 60 * 1000000000LL;

enum { SECOND = 1000, ANY = PACE_FILES | PACE_ROWS | PACE_METRICS | PACE_RUN };

/*
 * Not more often than this, however short the interval is. What the groups cost
 * is in collector.h; the sum of a second at ten rounds is to stay below 5 ms, and
 * that of a dmon row below 1.2 ms (tests/unit/test_cost.c adds it up).
 */
static const struct plan {
	uint32_t group, needs;
	int32_t every_ms; /* 0: each time */
	bool dear;        /* left out first when the driver is slow */
} plans[] = {
	{ COLLECT_FAST, ANY, 0, false },
	{ COLLECT_MEMORY, ANY, 1 * SECOND, false },
	{ COLLECT_COUNTERS, ANY & ~PACE_ROWS, 1 * SECOND, false },
	{ COLLECT_THERMAL, ANY & ~PACE_ROWS, 2 * SECOND, false },
	{ COLLECT_HEALTH, ANY & ~PACE_ROWS, 10 * SECOND, false },
	{ COLLECT_ROW, PACE_ROWS, 0, false },
	{ COLLECT_REPLAYS | COLLECT_THERMAL, PACE_ROWS, 10 * SECOND, false },
	/* What is mapped of a card changes when programs come and go. */
	{ COLLECT_BAR1, PACE_ROWS, 30 * SECOND, false },
	/* GPM goes with what stands in for it. */
	{ COLLECT_GPM | COLLECT_PCIE_ELSE, PACE_RUN, 1 * SECOND, false },
	{ COLLECT_GPM | COLLECT_PCIE_ELSE, PACE_FILES | PACE_METRICS, 2 * SECOND, false },
	{ COLLECT_GPM | COLLECT_PIPES | COLLECT_PCIE, PACE_METRICS, 5 * SECOND, false },
	/* The driver keeps them: asked so often, none is missed. */
	{ COLLECT_EVENTS, ANY & ~PACE_ROWS, 1 * SECOND, false },
	{ COLLECT_PROCESSES, ANY & ~PACE_ROWS, 5 * SECOND, true },
};

/* The shortest ring holds 2.4 s of power: doc/measured.md. It is finer than the
 * flight recorder's rounds, which alone keep its points. */
static const struct plan rings = { COLLECT_RINGS, ANY, 2 * SECOND, true };

enum { PLANS = sizeof(plans) / sizeof(plans[0]) };

_Static_assert((int)PLANS < (int)PACE_PLANS, "one more is for the rings");

int64_t pace_interval(const struct pace *pace)
{
	int64_t interval_ns = pace->interval_ns;

	for (int i = 1; i < pace->level && interval_ns < SLOWEST_NS; i++)
		interval_ns *= 2;
	return interval_ns < SLOWEST_NS || pace->interval_ns > SLOWEST_NS ? interval_ns
									  : SLOWEST_NS;
}

int pace_level(const struct pace *pace)
{
	return pace->level;
}

static int64_t flight_interval(const struct pace *pace)
{
	int64_t factor = pace->interval_ns ? pace_interval(pace) / pace->interval_ns : 1;

	return pace->flight_ns * (factor ? factor : 1);
}

int64_t pace_next(const struct pace *pace)
{
	if (pace->flight_ns && pace->next_flight_ns < pace->next_round_ns)
		return pace->next_flight_ns;
	return pace->next_round_ns;
}

/* The next one after now, on the grid that *next is on: a late round does not
 * shift those that follow. */
static void advance(int64_t *next_ns, int64_t every_ns, int64_t now_ns)
{
	*next_ns = *next_ns ? *next_ns + every_ns : now_ns + every_ns;
	if (*next_ns <= now_ns)
		*next_ns += (now_ns - *next_ns) / every_ns * every_ns + every_ns;
}

/* Rounds are a little early or late. */
static const int64_t JITTER_NS = 50000000;

static bool due(struct pace *pace, int64_t *next_ns, const struct plan *plan, int64_t now_ns)
{
	int64_t every_ns = plan->every_ms * INT64_C(1000000);

	if (!(plan->needs & (pace->needs ? pace->needs : PACE_FILES)) ||
	    (plan->dear && pace->level))
		return false;
	if (!every_ns)
		return true;
	if (now_ns < *next_ns - JITTER_NS)
		return false;
	advance(next_ns, every_ns, now_ns);
	return true;
}

uint32_t pace_ask(struct pace *pace, int64_t now_ns, bool *ret_round)
{
	uint32_t groups = 0;

	*ret_round = now_ns >= pace->next_round_ns;
	if (*ret_round)
		advance(&pace->next_round_ns, pace_interval(pace), now_ns);
	if (pace->flight_ns && now_ns >= pace->next_flight_ns)
		advance(&pace->next_flight_ns, flight_interval(pace), now_ns);
	for (int i = 0; i < PLANS; i++) {
		if (*ret_round && due(pace, &pace->next_ns[0][i], &plans[i], now_ns))
			groups |= plans[i].group;
		if (pace->flight_ns && due(pace, &pace->next_ns[1][i], &plans[i], now_ns))
			groups |= plans[i].group;
	}
	if (pace->flight_ns && due(pace, &pace->next_ns[1][PLANS], &rings, now_ns))
		groups |= COLLECT_RINGS;
	return groups;
}

bool pace_took(struct pace *pace, int64_t wall_ns)
{
	int64_t period_ns = pace->flight_ns && pace->flight_ns < pace->interval_ns
				    ? flight_interval(pace)
				    : pace_interval(pace);

	pace->slow = wall_ns > period_ns / SLOW_PART ? pace->slow + 1 : 0;
	pace->quick = wall_ns < period_ns / QUICK_PART ? pace->quick + 1 : 0;
	if (pace->slow >= SLOW_ROUNDS && pace->level < LEVEL_MOST) {
		pace->level++;
		pace->slow = pace->quick = 0;
		return true;
	}
	if (pace->quick >= QUICK_ROUNDS && pace->level) {
		pace->level--;
		pace->slow = pace->quick = 0;
		return true;
	}
	return false;
}
