/*
 * Ranks whose collectives are known by the names of their kernels alone, as in a
 * recording of `sonde run`: who waits for whom, and when nothing is said.
 */
#include <criterion/criterion.h>

#include <stdio.h>

#include "memory_store.h"
#include "random.h"

enum { US = 1000, STEP_US = 10000 };

struct job {
	struct store *store;
	struct facts *facts;
	uint32_t source[8], device[8];
	int ranks;
};

static struct job job_new(int ranks)
{
	struct job job = { .store = memory_store_new(), .ranks = ranks };
	struct session *session = job.store->session;

	for (int i = 0; i < ranks; i++) {
		struct device device = { .scope = DEVICE_OF_SOURCE, .ordinal = i };

		job.source[i] = session_source(session, "cuda", "invented");
		session->sources.at[job.source[i]].rank = i;
		session->sources.at[job.source[i]].world_size = ranks;
		session->sources.at[job.source[i]].has_utc = true;
		device.source = job.source[i];
		job.device[i] = session_device(session, &device);
	}
	return job;
}

static void kernel(struct job *job, int rank, int64_t stream, const char *name, int64_t start_us,
		   int64_t end_us)
{
	struct session *session = job->store->session;
	struct lane lane = { .kind = LANE_STREAM,
			     .source = job->source[rank],
			     .device = job->device[rank],
			     .process = SESSION_NONE,
			     .context = 1,
			     .stream = stream,
			     .tid = -1 };
	struct kernel_key key = { .name = session_string(session, name, strlen(name)),
				  .shared_bytes = -1 };
	struct op op = { .kind = OP_KERNEL,
			 .lane = session_lane(session, &lane),
			 .start_ns = start_us * US,
			 .end_ns = end_us * US,
			 .name = key.name,
			 .key = session_key(session, &key),
			 .bytes = EVENT_UNKNOWN };

	sink_op(&job->store->sink, &op, NULL);
}

/* A collective of ranks [from, to) that each enters at its own time and that ends
 * `length_us` after the last has come. */
static void collective(struct job *job, int from, int to, int64_t stream, const char *name,
		       const int64_t *enter_us, int64_t length_us)
{
	int64_t latest = enter_us[from];

	for (int i = from; i < to; i++)
		latest = enter_us[i] > latest ? enter_us[i] : latest;
	for (int i = from; i < to; i++)
		kernel(job, i, stream, name, enter_us[i], latest + length_us);
}

static void analyze(struct job *job)
{
	struct err err = { 0 };

	cr_assert_eq(facts_build(job->store, &job->facts, &err), 0, "%s", err.line);
}

static const struct device_fact *rank(const struct job *job, int i)
{
	return &job->facts->devices.at[job->device[i]];
}

static void job_done(struct job *job)
{
	facts_free(job->facts);
	store_close(job->store);
}

Test(rank_names, who_comes_early_waits_for_who_comes_last)
{
	for (random_state = 1; random_state < 60;) {
		uint64_t seed = random_state;
		int ranks = 2 + (int)random_below(6), late = (int)random_below(ranks);
		struct job job = job_new(ranks);
		int64_t waiting[8] = { 0 };

		for (int step = 0; step < 20; step++) {
			int64_t enter[8], latest = 0;

			for (int i = 0; i < ranks; i++) {
				enter[i] =
					step * STEP_US + random_below(100) + (i == late ? 3000 : 0);
				latest = enter[i] > latest ? enter[i] : latest;
			}
			for (int i = 0; i < ranks; i++)
				waiting[i] += latest - enter[i];
			collective(&job, 0, ranks, 9,
				   step % 2 ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)"
					    : "ncclDevKernel_AllGather_RING_LL(args)",
				   enter, 200);
		}
		analyze(&job);
		for (int i = 0; i < ranks; i++) {
			cr_assert_eq(rank(&job, i)->waiting_ns, waiting[i] * US, "seed %d rank %d",
				     (int)seed, i);
			cr_assert_eq(rank(&job, i)->compared_count, 20);
			cr_assert_eq(rank(&job, i)->compared_last, i == late ? 20 : 0);
		}
		cr_assert_geq(rank(&job, late)->late_p50_ns, 2900 * US);
		job_done(&job);
		random_state = seed + 1;
	}
}

Test(rank_names, two_groups_with_the_same_names_are_told_apart_by_time)
{
	struct job job = job_new(4);

	for (int step = 0; step < 20; step++) {
		int64_t at = step * STEP_US;
		int64_t enter[4] = { at, at + 500, at + 4000, at + 4900 };

		collective(&job, 0, 2, 9, "ncclDevKernel_AllReduce_Sum", enter, 100);
		collective(&job, 2, 4, 9, "ncclDevKernel_AllReduce_Sum", enter, 100);
	}
	analyze(&job);
	cr_assert_eq(rank(&job, 0)->waiting_ns, 20 * 500 * US);
	cr_assert_eq(rank(&job, 1)->waiting_ns, 0);
	cr_assert_eq(rank(&job, 2)->waiting_ns, 20 * 900 * US);
	cr_assert_eq(rank(&job, 1)->compared_last, 20);
	job_done(&job);
}

Test(rank_names, what_one_rank_lacks_at_the_end_is_left_out)
{
	struct job job = job_new(2);

	for (int step = 0; step < 20; step++) {
		int64_t enter[2] = { step * STEP_US, step * STEP_US + 400 };

		collective(&job, 0, step < 19 ? 2 : 1, 9, "ncclDevKernel_AllReduce_Sum", enter,
			   100);
	}
	analyze(&job);
	cr_assert_eq(rank(&job, 0)->waiting_ns, 19 * 400 * US);
	cr_assert_eq(rank(&job, 1)->compared_last, 19);
	job_done(&job);
}

static void loads(struct job *job, int of, int64_t start_us, int64_t end_us)
{
	struct session *session = job->store->session;
	struct lane lane = { .kind = LANE_THREAD,
			     .source = job->source[of],
			     .device = SESSION_NONE,
			     .process = SESSION_NONE,
			     .context = -1,
			     .stream = -1,
			     .tid = 1 };
	struct call call = { .kind = CALL_RUNTIME,
			     .lane = session_lane(session, &lane),
			     .start_ns = start_us * US,
			     .end_ns = end_us * US,
			     .name = session_string(session, "cuLibraryLoadData", 17),
			     .correlation = 1 };

	sink_call(&job->store->sink, &call, NULL);
}

/* A wait of 50 ms for the other rank's start, and others in the steps, one of them in part
 * before what is steady. */
Test(rank_names, waiting_is_told_of_the_steady_part_apart)
{
	struct job job = job_new(2);
	int64_t first[2] = { 10, 50010 };

	for (int i = 0; i < 2; i++) {
		loads(&job, i, 0, 5);
		loads(&job, i, 50000, 1000000);
	}
	collective(&job, 0, 2, 9, "ncclDevKernel_AllReduce_Sum", first, 100);
	for (int step = 0; step < 20; step++) {
		int64_t at = 1000100 + step * STEP_US, enter[2] = { at, at + 900 };

		collective(&job, 0, 2, 9, "ncclDevKernel_AllReduce_Sum", enter, 100);
	}
	analyze(&job);
	cr_assert(rank(&job, 0)->steady.has);
	cr_assert_eq(rank(&job, 0)->waiting_ns, (50000 + 20 * 900) * US);
	cr_assert_eq(rank(&job, 0)->steady.waiting_ns, 20 * 900 * US);
	cr_assert_eq(rank(&job, 0)->steady.collective_ns, 20 * 1000 * US);
	cr_assert_eq(rank(&job, 1)->steady.waiting_ns, 0);
	job_done(&job);
}

/* Another order, another time, one rank alone, a kind whose root need not wait. */
Test(rank_names, streams_that_are_too_many_are_counted)
{
	struct job job = job_new(1);

	for (int stream = 0; stream < 4100; stream++)
		for (int i = 0; i < 10; i++)
			kernel(&job, 0, stream, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 10 * i,
			       10 * i + 5);
	analyze(&job);
	cr_assert_eq(job.facts->streams_uncompared, 4);
	job_done(&job);
}

Test(rank_names, where_ranks_do_not_match_nothing_is_said)
{
	for (int way = 0; way < 5; way++) {
		struct job job = job_new(2);

		for (int step = 0; step < 20; step++) {
			int64_t at = step * STEP_US;
			bool odd = step % 2;

			kernel(&job, 0, 9,
			       way == 3 ? "ncclDevKernel_Broadcast_RING_LL"
			       : odd    ? "ncclDevKernel_AllReduce_Sum"
					: "ncclDevKernel_AllGather",
			       at, at + 500);
			if (way == 2 || (way == 4 && step > 14))
				continue;
			at += way == 1 ? 5000 : 0;
			kernel(&job, 1, 9,
			       way == 3            ? "ncclDevKernel_Broadcast_RING_LL"
			       : (way == 0) != odd ? "ncclDevKernel_AllReduce_Sum"
						   : "ncclDevKernel_AllGather",
			       at + 300, at + 500);
		}
		analyze(&job);
		cr_assert_eq(rank(&job, 0)->waiting_ns, FACT_UNKNOWN, "way %d", way);
		cr_assert_eq(rank(&job, 0)->compared_count, 0);
		cr_assert_gt(rank(&job, 0)->collective_ns, 0);
		job_done(&job);
	}
}
