#include "collect/perf_watch.h"

#include <stdlib.h>

#include "base/mem.h"

/* Records a second that cost some 0.4 % of a core, two a switch; as many at once are let
 * through. */
static const int64_t RECORDS_SAMPLED = 5000;
static const int64_t RECORDS_SWITCHES = 10000;
static const int64_t CHANCE_NS = 10000000000;
/* Taken at a time; more are not worth our time. */
enum { RECORDS_MOST = 1024 };
/* What lasts longer is put into the profile piece by piece: we may be killed. */
static const int64_t SETTLE_NS = 500000000;

enum tier { TIER_SAMPLES, TIER_SWITCHES, TIER_NONE };

struct perf_watch {
	struct perf_watch_opts opts;
	struct perf_thread *thread; /* NULL: TIER_NONE */
	enum tier tier;
	int64_t budget, filled_ns, chance_ns, fed_ns;
	int64_t seen, lost;
	bool limited;
};

static int64_t allowance(const struct perf_watch *watch)
{
	return watch->tier == TIER_SAMPLES ? RECORDS_SAMPLED : RECORDS_SWITCHES;
}

static int enter(struct perf_watch *watch, enum tier tier, int64_t now_ns, struct err *err)
{
	struct perf_opts opts = { .switches = true };
	struct perf_ring *ring;

	perf_thread_free(watch->thread);
	watch->thread = NULL;
	watch->tier = TIER_NONE;
	watch->chance_ns = now_ns + CHANCE_NS;
	if (tier == TIER_NONE)
		return 0;
	if (tier == TIER_SAMPLES)
		opts.samples_hz = watch->opts.samples_hz;
	if (perf_ring_open(watch->opts.tid, &opts, &ring, err) < 0)
		return err->code;
	watch->thread = perf_thread_new(ring, watch->opts.lane, watch->opts.sink,
					opts.samples_hz ? watch->opts.stack : NULL);
	watch->tier = tier;
	watch->budget = allowance(watch);
	watch->filled_ns = now_ns;
	watch->fed_ns = now_ns;
	return 0;
}

static enum tier best(const struct perf_watch *watch)
{
	return watch->opts.samples_hz ? TIER_SAMPLES : TIER_SWITCHES;
}

int perf_watch_new(const struct perf_watch_opts *opts, int64_t now_ns,
		   struct perf_watch **ret_watch, struct err *err)
{
	OWN(perf_watch_freep) struct perf_watch *watch = mem_zero(sizeof(*watch));

	watch->opts = *opts;
	if (enter(watch, best(watch), now_ns, err) < 0)
		return err->code;
	*ret_watch = STEAL(watch);
	return 0;
}

void perf_watch_free(struct perf_watch *watch)
{
	if (!watch)
		return;
	perf_thread_free(watch->thread);
	free(watch);
}

/* False: the thread costs too much as it is. */
static bool afford(struct perf_watch *watch, int64_t records, int64_t now_ns)
{
	int64_t most = allowance(watch), ns = now_ns - watch->filled_ns;

	if (ns > 1000000000)
		ns = 1000000000;
	if (ns > 0) {
		watch->budget += ns * most / 1000000000;
		watch->filled_ns = now_ns;
	}
	if (watch->budget > most)
		watch->budget = most;
	watch->budget -= records;
	return watch->budget >= 0;
}

static int take(struct perf_watch *watch, size_t most, int64_t *ret_records, struct err *err)
{
	int taken = perf_thread_take(watch->thread, most, err);
	int64_t lost = perf_thread_lost(watch->thread);

	watch->seen += taken > 0 ? taken : 0;
	watch->lost += lost;
	*ret_records = taken + lost;
	return taken;
}

int perf_watch_feed(struct perf_watch *watch, int64_t now_ns, struct err *err)
{
	struct err ignored = { 0 };
	int64_t records;
	int taken;

	if (!watch->thread) {
		if (now_ns >= watch->chance_ns)
			(void)enter(watch, best(watch), now_ns, &ignored);
		return 1;
	}
	if (perf_thread_ended(watch->thread)) {
		/* When it ended it does not say: not before we last saw it. */
		taken = take(watch, SIZE_MAX, &records, err);
		return taken < 0 ? taken
				 : perf_thread_settle(watch->thread, INT64_MAX, watch->fed_ns, err);
	}
	taken = take(watch, RECORDS_MOST, &records, err);
	if (taken < 0)
		return taken;
	if (!afford(watch, records, now_ns)) {
		watch->limited = true;
		(void)enter(watch, watch->tier == TIER_SAMPLES ? TIER_SWITCHES : TIER_NONE, now_ns,
			    &ignored);
		return 1;
	}
	watch->fed_ns = now_ns;
	if (taken < RECORDS_MOST &&
	    perf_thread_settle(watch->thread, now_ns - SETTLE_NS, now_ns, err) < 0)
		return err->code;
	return 1;
}

bool perf_watch_exact(const struct perf_watch *watch)
{
	return watch->thread != NULL;
}

bool perf_watch_limited(const struct perf_watch *watch)
{
	return watch->limited;
}

bool perf_watch_wants_look(const struct perf_watch *watch, int64_t before_ns)
{
	return watch->thread && perf_thread_wants_look(watch->thread, before_ns);
}

int perf_watch_looked(struct perf_watch *watch, uint32_t state, int64_t seen_ns, struct err *err)
{
	int64_t records;
	int taken = take(watch, RECORDS_MOST, &records, err);

	/* What was seen holds if the thread has not moved meanwhile. */
	if (!records && state)
		perf_thread_looked(watch->thread, state, seen_ns);
	return taken;
}

int perf_watch_finish(struct perf_watch *watch, int64_t now_ns, struct err *err)
{
	return watch->thread ? perf_thread_settle(watch->thread, INT64_MAX, now_ns, err) : 0;
}

int64_t perf_watch_seen(struct perf_watch *watch)
{
	int64_t seen = watch->seen;

	watch->seen = 0;
	return seen;
}

int64_t perf_watch_lost(struct perf_watch *watch)
{
	int64_t lost = watch->lost;

	watch->lost = 0;
	return lost;
}
