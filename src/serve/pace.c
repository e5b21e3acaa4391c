#include "serve/pace.h"

#include "collect/collector.h"

/* A round may take the driver a tenth of the time, as tails may of the store. */
static const int64_t SLOW_PART = 10;
/* Well below that again: it may come back. */
static const int64_t QUICK_PART = 40;
/* One slow call is chance (a card that wakes); so many rounds are not. */
enum { SLOW_ROUNDS = 3, QUICK_ROUNDS = 12, LEVEL_MOST = 10 };
static const int64_t SLOWEST_NS = 60 * 1000000000LL;

/* Not more often than this, however short the interval is. */
static const int64_t COUNTERS_NS = 1000000000;
static const int64_t PROCESSES_NS = 1000000000;
/* The shortest ring holds 2.4 s of power: doc/measured.md. */
static const int64_t RINGS_NS = 2000000000;
static const int64_t HEALTH_NS = 60 * 1000000000LL;
/* A dmon row shows error counts: younger than this they are as good as new. */
static const int64_t SHOWN_HEALTH_NS = 5 * 1000000000LL;

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

static bool due(int64_t *next_ns, int64_t every_ns, int64_t now_ns)
{
	if (now_ns < *next_ns - JITTER_NS)
		return false;
	advance(next_ns, every_ns, now_ns);
	return true;
}

uint32_t pace_ask(struct pace *pace, int64_t now_ns, bool *ret_round)
{
	uint32_t groups = COLLECT_FAST | COLLECT_GPM;

	*ret_round = now_ns >= pace->next_round_ns;
	if (*ret_round)
		advance(&pace->next_round_ns, pace_interval(pace), now_ns);
	if (pace->flight_ns && now_ns >= pace->next_flight_ns)
		advance(&pace->next_flight_ns, flight_interval(pace), now_ns);
	if (due(&pace->next_counters_ns, COUNTERS_NS, now_ns))
		groups |= COLLECT_COUNTERS;
	if (pace->level < 1 && due(&pace->next_processes_ns, PROCESSES_NS, now_ns))
		groups |= COLLECT_PROCESSES;
	if (pace->flight_ns && pace->level < 1 && due(&pace->next_rings_ns, RINGS_NS, now_ns))
		groups |= COLLECT_RINGS;
	if (due(&pace->next_health_ns, pace->always & COLLECT_HEALTH ? SHOWN_HEALTH_NS : HEALTH_NS,
		now_ns))
		groups |= COLLECT_HEALTH;
	if (*ret_round)
		groups |= pace->always & ~(uint32_t)COLLECT_HEALTH;
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
