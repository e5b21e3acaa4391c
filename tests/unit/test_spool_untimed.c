/* Device work of which CUPTI has no times: it is told, and is no operation. */
#include "spool_bench.h"

TestSuite(spool_untimed, .init = open_bench, .fini = close_bench);

static struct cupti_kernel kernel(uint64_t start, uint64_t end, uint32_t correlation)
{
	return (struct cupti_kernel){ .kind = CUPTI_KIND_CONCURRENT_KERNEL,
				      .start = start,
				      .end = end,
				      .context = 1,
				      .stream = 13,
				      .grid = { 4, 2, 1 },
				      .block = { 32, 1, 1 },
				      .correlation = correlation,
				      .name = TEXT("_Z6faultsPf") };
}

static const char *detail(size_t mark)
{
	return text(bench.record->marks.at[mark].detail);
}

Test(spool_untimed, kernels_copies_and_sets_become_marks_on_their_stream)
{
	const struct session *session = bench.record->sink.session;
	struct cupti_api call = { .kind = CUPTI_KIND_RUNTIME,
				  .start = 30,
				  .end = 40,
				  .process = bench.segment->pid,
				  .thread = 7,
				  .correlation = 8 };
	struct cupti_kernel good = kernel(10, 20, 7), never = kernel(0, 0, 8);
	struct cupti_kernel begun = kernel(15, 0, 9);
	struct cupti_memcpy copy = { .kind = CUPTI_KIND_MEMCPY,
				     .copy = 1,
				     .from = 2,
				     .to = 3,
				     .context = 1,
				     .stream = 14,
				     .correlation = 10,
				     .bytes = 64 };
	struct cupti_memset set = { .kind = CUPTI_KIND_MEMSET,
				    .memory = 3,
				    .context = 1,
				    .stream = 14,
				    .correlation = 11 };

	PUT(0, good, 216);
	PUT(0, never, 216);
	PUT(0, begun, 216);
	PUT(0, copy, 96);
	PUT(0, set, 88);
	PUT(0, call, 40);
	take();
	cr_assert_eq(bench.record->ops.count, 1, "none of them counts for no time");
	cr_assert_eq(loss(LOSS_untimed), 4);
	cr_assert_eq(loss(LOSS_malformed), 0);
	cr_assert_eq(bench.record->marks.count, 4);
	for (size_t i = 0; i < 4; i++)
		cr_assert_eq(bench.record->marks.at[i].kind, MARK_UNTIMED);
	cr_assert_str_eq(text(bench.record->marks.at[0].name), "faults(float*)");
	cr_assert_str_eq(detail(0), "op=kernel;correlation=8;grid=4,2,1;block=32,1,1");
	cr_assert_eq(session->lanes.at[bench.record->marks.at[0].lane].stream, 13);
	cr_assert_eq(bench.record->marks.at[0].time_ns, 40, "the last that is known");
	cr_assert_eq(bench.record->marks.at[1].time_ns, 15, "it began, and did not end");
	cr_assert_str_eq(text(bench.record->marks.at[2].name), "Memcpy HtoD (Pinned -> Device)");
	cr_assert_str_eq(detail(2), "op=memcpy;correlation=10");
	cr_assert_str_eq(text(bench.record->marks.at[3].name), "Memset (Device)");
	cr_assert_str_eq(detail(3), "op=memset;correlation=11");
}

/* A context that fails takes the times of a second's launches: the last are what may have
 * failed. */
Test(spool_untimed, of_very_many_the_last_are_kept_and_all_are_counted)
{
	enum { MOST = 16384, ALL = MOST + 40 };
	struct cupti_kernel never = kernel(0, 0, 0);

	bench.pid = (uint32_t)getpid(); /* it lives: there is more to come */
	bench_claim(&bench);
	for (uint32_t i = 1; i <= ALL; i++) {
		never.correlation = i;
		PUT(0, never, 216);
		if (i % 32 && i < ALL)
			continue;
		take();
		atomic_store(&bench.segment->buffers[0].valid, 0);
	}
	cr_assert_eq(bench.record->marks.count, 0);
	cr_assert_geq(spool_finish(bench.spool, &bench.record->sink, &err), 0);
	cr_assert_eq(loss(LOSS_untimed), ALL);
	cr_assert_eq(bench.record->marks.count, MOST);
	cr_assert_str_eq(detail(0), "op=kernel;correlation=41;grid=4,2,1;block=32,1,1");
	cr_assert_str_eq(detail(MOST - 1), "op=kernel;correlation=16424;grid=4,2,1;block=32,1,1");
}
