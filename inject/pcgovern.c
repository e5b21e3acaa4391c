/*
 * pcgovern.c - when PC sampling is on, and how often it samples.
 *
 * It follows the recording's windows. Where it makes more samples than are of use,
 * or CUPTI loses some, the period grows and sampling begins anew. What it costs is
 * measured: CUPTI does more work in each launch while it samples, so the median
 * time in calls that launch, with sampling and without (a short probe after the
 * first half second), times the rate of launches is the share of the time that it
 * takes. Above COST_PERMILLE it is switched off for good, and the profile says so.
 *
 * [thread], but what says otherwise.
 */
#include "inject/inject.h"

enum {
	PERIOD = 20, /* 2^20 cycles; see pcsamp.c */
	PERIOD_MAX = 31,
	COST_PERMILLE = 30, /* of the time */
	RESTARTS_MAX = 8,   /* after so many runs over it is given up */
	ON_LEAST = 1000,    /* launches that a median is taken of */
	OFF_LEAST = 500,
	LOOKS = 2, /* in a row above the bound, a second each */
};

static const uint64_t SAMPLES_PER_S = 500000;
static const uint64_t PROBE_AFTER_NS = 500000000, PROBE_NS = 100000000;
static const uint64_t PROBE_MOST_NS = 1000000000; /* fewer launches cost nothing */
static const uint64_t LOOK_NS = 1000000000;
/* CUPTI begins and ends in the midst of calls. */
static const uint64_t SWITCH_NS = 2000000;

enum { PHASE_WAIT, PHASE_FIRST, PHASE_PROBE, PHASE_STEADY, PHASE_OFF };

static void toggle(struct inject *inject, bool on)
{
	uint32_t at = atomic_load(&inject->pc.toggles);

	inject->pc.toggle[at % PC_TOGGLES].on = on;
	atomic_store(&inject->pc.toggle[at % PC_TOGGLES].ns, inject_now());
	atomic_store(&inject->pc.toggles, at + 1);
}

/* [setup] */
void pc_govern_start(struct inject *inject)
{
	inject->pc.period = inject->pc_period ? inject->pc_period : PERIOD;
	if (!(inject->trace >> TRACE_PC & 1) || !atomic_load(&inject->active))
		return;
	atomic_store(&inject->pc.on, true);
	toggle(inject, true);
	inject->pc.phase = PHASE_FIRST;
	inject->pc.since_ns = inject->pc.looked_ns = inject_now();
}

/* [setup] in a callback */
bool pc_govern_begin(struct inject *inject)
{
	return atomic_load(&inject->pc.on);
}

/* [hot] 1: sampling was on at that time, 0: off, -1: neither for sure. */
static int state_at(const struct inject *inject, uint64_t ns)
{
	uint32_t count = atomic_load(&inject->pc.toggles);

	for (uint32_t i = 0; i < PC_TOGGLES && i < count; i++) {
		const struct pc_toggle *toggle = &inject->pc.toggle[(count - 1 - i) % PC_TOGGLES];
		uint64_t since = atomic_load(&toggle->ns);

		if (ns >= since)
			return ns - since < SWITCH_NS ? -1 : toggle->on;
	}
	return -1;
}

/* [hot] */
static uint32_t bucket_of(uint64_t ns)
{
	uint64_t units = ns / 64 + 1;
	uint32_t octave = 63 - (uint32_t)__builtin_clzll(units);

	return octave < PC_BUCKETS / 16 ? octave * 16 + ((uint32_t)(units << 4 >> octave) & 15)
					: PC_BUCKETS - 1;
}

/* Where the bucket begins. */
static int64_t bucket_ns(int64_t bucket)
{
	return ((((16 + bucket % 16) << bucket / 16) >> 4) - 1) * 64;
}

/* [hot] */
void pc_launched(struct inject *inject, const struct cupti_api *api)
{
	uint32_t domain = api->kind == CUPTI_KIND_RUNTIME;
	int state = state_at(inject, api->start);
	struct pc_times *times = &inject->pc.times[state > 0][domain];

	if (state < 0 || api->end < api->start || api->cbid >= CALLS_MAX ||
	    !(inject->launches[domain][api->cbid / 8] >> api->cbid % 8 & 1))
		return;
	atomic_fetch_add_explicit(&times->bucket[bucket_of(api->end - api->start)], 1,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&times->count, 1, memory_order_relaxed);
}

static int64_t median_ns(const struct pc_times *times)
{
	uint64_t half = atomic_load(&times->count) / 2, below = 0;

	for (int64_t i = 0; i < PC_BUCKETS; i++) {
		uint64_t here = atomic_load(&times->bucket[i]);

		if (below + here > half)
			return bucket_ns(i) + (bucket_ns(i + 1) - bucket_ns(i)) *
						      (int64_t)(half - below) / (int64_t)here;
		below += here;
	}
	return bucket_ns(PC_BUCKETS);
}

/* The runtime's calls have the driver's inside: those that there are more of. */
static uint32_t domain_of(const struct inject *inject)
{
	return atomic_load(&inject->pc.times[1][1].count) >=
	       atomic_load(&inject->pc.times[1][0].count);
}

static bool measured(struct inject *inject)
{
	uint32_t domain = domain_of(inject);
	const struct pc_times *on = &inject->pc.times[1][domain];
	const struct pc_times *off = &inject->pc.times[0][domain];

	if (atomic_load(&on->count) < ON_LEAST || atomic_load(&off->count) < OFF_LEAST)
		return false;
	inject->pc.launch_ns = median_ns(on) - median_ns(off);
	return true;
}

static void off_for_good(struct inject *inject, enum pc_why why)
{
	atomic_store(&inject->pc.on, false);
	pc_switch(inject, false, why);
	toggle(inject, false);
	inject->pc.phase = PHASE_OFF;
}

/* Once for each second that it is on: too many samples, some lost, or too dear? */
static void look(struct inject *inject, uint64_t now)
{
	uint64_t ns = now - inject->pc.looked_ns;
	uint64_t launches = atomic_load(&inject->pc.times[1][domain_of(inject)].count);
	uint64_t samples, most = SAMPLES_PER_S * ns / 1000000000u;
	uint32_t period = inject->pc.period;
	bool lost;

	pc_drain(inject);
	samples = inject->pc.samples - inject->pc.samples_looked;
	lost = inject->pc.overrun || inject->pc.dropped > inject->pc.dropped_looked;
	if (inject->pc.launch_ns > 0)
		inject->pc.cost_permille =
			(uint32_t)((uint64_t)inject->pc.launch_ns *
				   (launches - inject->pc.launches_looked) * 1000 / ns);
	inject->pc.dear = inject->pc.cost_permille > COST_PERMILLE ? inject->pc.dear + 1 : 0;
	inject->pc.looked_ns = now;
	inject->pc.samples_looked = inject->pc.samples;
	inject->pc.dropped_looked = inject->pc.dropped;
	inject->pc.launches_looked = launches;
	if (inject->pc.dear >= LOOKS) {
		off_for_good(inject, PC_WHY_COST);
		return;
	}
	/* A period that was asked for stays as long as nothing is lost. */
	if (!inject->pc_period)
		for (; samples > most && period < PERIOD_MAX; samples /= 2)
			period++;
	if (lost && period == inject->pc.period && period < PERIOD_MAX)
		period++;
	if (period == inject->pc.period && !inject->pc.overrun)
		return;
	if (lost && ++inject->pc.restarts > RESTARTS_MAX) {
		off_for_good(inject, PC_WHY_LOST);
		return;
	}
	inject->pc.period = period;
	inject->pc.overrun = false;
	pc_restart(inject, lost ? PC_WHY_LOST : PC_WHY_VOLUME);
	inject->pc.samples_looked = inject->pc.samples;
	inject->pc.dropped_looked = inject->pc.dropped;
}

static void turn(struct inject *inject, uint32_t phase, bool on, enum pc_why why, uint64_t now)
{
	atomic_store(&inject->pc.on, on);
	pc_switch(inject, on, why);
	toggle(inject, on);
	inject->pc.phase = phase;
	/* Looks are at the time in which it was on, be the windows as short as they may. */
	if (on)
		inject->pc.looked_ns += now - inject->pc.since_ns;
	inject->pc.since_ns = now;
}

void pc_govern(struct inject *inject)
{
	uint64_t now = inject_now(), ns = now - inject->pc.since_ns;
	bool wanted = atomic_load(&inject->active);
	bool steps = atomic_load(&inject->segment)->clock == SEGMENT_CLOCK_MONOTONIC;

	if (!(inject->trace >> TRACE_PC & 1) || inject->pc.phase == PHASE_OFF)
		return;
	if (inject->pc.phase != PHASE_WAIT && !wanted) {
		turn(inject, PHASE_WAIT, false, PC_WHY_WANTED, now);
		return;
	}
	switch (inject->pc.phase) {
	case PHASE_WAIT:
		if (wanted)
			turn(inject, inject->pc.probed ? PHASE_STEADY : PHASE_FIRST, true,
			     PC_WHY_WANTED, now);
		break;
	case PHASE_FIRST:
		if (now - inject->pc.looked_ns > LOOK_NS)
			look(inject, now);
		if (ns > PROBE_AFTER_NS && steps &&
		    atomic_load(&inject->pc.times[1][domain_of(inject)].count) >= ON_LEAST &&
		    inject->pc.phase == PHASE_FIRST)
			turn(inject, PHASE_PROBE, false, PC_WHY_PROBE, now);
		break;
	case PHASE_PROBE:
		if (ns <= PROBE_NS)
			break;
		inject->pc.probed = measured(inject) || ns > PROBE_MOST_NS;
		if (!inject->pc.probed)
			(void)inject->cupti.cuptiActivityFlushAll(0);
		else
			turn(inject, PHASE_STEADY, true, PC_WHY_PROBE, now);
		break;
	default:
		if (now - inject->pc.looked_ns > LOOK_NS)
			look(inject, now);
		break;
	}
}
