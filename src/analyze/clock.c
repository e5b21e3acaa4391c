/*
 * Kernels and the SM clock that was sampled beside them: what a launch takes in
 * cycles, which a clock that moves does not change for work within the SMs,
 * and which kernels ran while a limit held the clock down.
 */
#include <math.h>
#include <stdlib.h>

#include "analyze/timeline.h"
#include "model/metric.h"

/* A clock is believed for so long after it was read: it moves within tenths of
 * seconds, and a recording samples every 100 ms or once a second. */
static const int64_t CLOCK_AGE_NS = 1000000000;
/* Launches on either side before two means are compared. */
static const int64_t COMPARED_LEAST = 3;
enum { HELD_KERNELS = 3 };

struct point {
	int64_t time;
	double mhz;
};

struct sum {
	double cycles, known_ns, held_ns, free_ns;
	int64_t known, held, free;
};

struct points {
	VEC(struct point) at;
};

static int load(struct timeline *timeline, struct store *store, struct points *points,
		struct err *err)
{
	struct store_query query = { .kinds = STORE_BIT(STORE_sample) };
	const struct session *session = timeline->session;
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int got = store_query_open(store, &query, &cursor, err);

	while (got >= 0 && (got = store_next(cursor, &batch, err)) > 0) {
		const struct lane *lane = &session->lanes.at[batch.lane];

		if (lane->kind != LANE_BOARD || lane->device >= session->devices.count ||
		    !batch.samples || !session->sources.at[lane->source].has_utc)
			continue;
		for (size_t i = 0; i < batch.count; i++) {
			struct point point;
			int64_t ignored;

			if (!sample_get(&batch.samples[i], METRIC_sm_mhz, &point.mhz) ||
			    !(point.mhz > 0))
				continue;
			timeline_time(timeline, lane->source, batch.samples[i].time_ns, 0,
				      &point.time, &ignored);
			*VEC_ADD(&points[lane->device].at) = point;
		}
	}
	return got;
}

static int by_time(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

static bool held_at(const struct device_fact *fact, int64_t time)
{
	for (size_t i = 0; i < fact->episodes.count; i++)
		if (time >= fact->episodes.at[i].start_ns && time < fact->episodes.at[i].end_ns)
			return true;
	return false;
}

static void take(struct sum *sum, double ns, double mhz, bool held)
{
	sum->known++;
	sum->known_ns += ns;
	sum->cycles += ns * mhz / 1000;
	sum->held += held;
	sum->free += !held;
	*(held ? &sum->held_ns : &sum->free_ns) += ns;
}

/* The kernels with most time while the clock was held, the longest first. */
static void held_add(struct device_fact *fact, uint32_t key, const struct sum *sum)
{
	struct held_kernel kernel = {
		.key = key, .count = sum->held, .ns = (int64_t)sum->held_ns, .slower = NAN
	};
	size_t at = fact->held.count;

	if (!sum->held)
		return;
	if (sum->held >= COMPARED_LEAST && sum->free >= COMPARED_LEAST && sum->free_ns > 0)
		kernel.slower =
			sum->held_ns / (double)sum->held / (sum->free_ns / (double)sum->free);
	if (at < HELD_KERNELS)
		*VEC_ADD(&fact->held) = kernel;
	else if (fact->held.at[--at].ns >= kernel.ns)
		return;
	for (; at > 0 && fact->held.at[at - 1].ns < kernel.ns; at--)
		fact->held.at[at] = fact->held.at[at - 1];
	fact->held.at[at] = kernel;
}

static void device_clock(struct timeline *timeline, struct facts *facts, uint32_t index,
			 const struct points *points, struct sum *sums)
{
	const struct tl_device *device = &timeline->devices[index];
	const struct tl_ops *ops = &timeline->ops;
	struct device_fact *fact = &facts->devices.at[index];
	size_t next = 0;

	for (size_t i = 0; i < device->count; i++) {
		uint32_t op = device_op(device, i);
		int64_t ns = op_ns(ops, op), middle = op_start(ops, op) + ns / 2;

		const struct tl_segment *segment = op_segment(timeline, op);

		/* Without an origin its times are on no clock but its own. */
		if (segment->kind != STORE_kernel ||
		    !timeline->session->sources.at[segment->source].has_utc)
			continue;
		while (next < points->at.count && points->at.at[next].time <= op_start(ops, op))
			next++;
		if (next && middle - points->at.at[next - 1].time <= CLOCK_AGE_NS)
			take(&sums[ops->key[op]], (double)ns, points->at.at[next - 1].mhz,
			     held_at(fact, middle));
	}
	for (size_t i = 0; i < facts->kernels.count; i++) {
		struct kernel_fact *kernel = &facts->kernels.at[i];
		struct sum *sum = &sums[kernel->key];

		if (kernel->device != index || !kernel->count || !sum->known)
			continue;
		kernel->mean_cycles = sum->cycles / (double)sum->known;
		kernel->sm_mhz = sum->known_ns > 0 ? sum->cycles / sum->known_ns * 1000 : NAN;
		held_add(fact, kernel->key, sum);
		*sum = (struct sum){ 0 };
	}
}

int clock_facts(struct timeline *timeline, struct store *store, struct facts *facts,
		struct err *err)
{
	size_t count = timeline->session->devices.count;
	struct points *points = mem_zero((count + 1) * sizeof(*points));
	struct sum *sums = mem_zero((timeline->session->keys.count + 1) * sizeof(*sums));
	int ret;

	for (size_t i = 0; i < facts->kernels.count; i++)
		facts->kernels.at[i].mean_cycles = facts->kernels.at[i].sm_mhz = NAN;
	ret = load(timeline, store, points, err);
	for (uint32_t i = 0; i < count && i < facts->devices.count; i++) {
		if (points[i].at.count)
			qsort(points[i].at.at, points[i].at.count, sizeof(struct point), by_time);
		if (ret >= 0 && points[i].at.count && facts->devices.at[i].has_timeline)
			device_clock(timeline, facts, i, &points[i], sums);
		VEC_DONE(&points[i].at);
	}
	free(points);
	free(sums);
	return ret;
}
