/* test_page_faults.c - what the driver did for unified memory, summed. */
#include "rule_bench.h"
#include "trace_builder.h"

static void fault(struct trace *trace, const char *name, uint64_t faults, int64_t start_us,
		  int64_t end_us)
{
	struct range range = { .kind = RANGE_PAGE_FAULT,
			       .lane = trace_stream(trace, 0),
			       .start_ns = start_us * 1000,
			       .end_ns = end_us * 1000,
			       .name = trace_text(trace, name),
			       .external = faults };

	sink_range(&trace->store->sink, &range, NULL);
}

/* A kernel that meets faults; then the host touches a page, which comes back. */
static struct trace touched(void)
{
	struct trace trace = trace_new();

	trace_launch(&trace, 1, 0, 10, 1000);
	fault(&trace, "GPU page faults (read)", 30, 100, 200);
	fault(&trace, "GPU page faults (write)", 5, 150, 250);
	fault(&trace, "GPU page faults (read)", 10, 300, 400);
	trace_copy(&trace, 0, COPY_HTOD, HOST_MEMORY_MANAGED, 1 << 20, 110, 190, 0);
	trace_copy(&trace, 0, COPY_DTOH, HOST_MEMORY_MANAGED, 1 << 19, 3000, 3100, 0);
	return trace;
}

Test(page_faults, groups_and_faults_are_summed_and_overlap_is_not)
{
	struct trace trace = touched();
	const struct device_fact *device = trace_analyze(&trace);
	const struct page_fault_fact *faults = trace.facts->page_faults.at;

	cr_assert_eq(device->page_faults, 45);
	cr_assert_eq(device->page_fault_ns, 250000);
	cr_assert_eq(trace.facts->page_faults.count, 2);
	cr_assert_eq(faults[0].count, 2);
	cr_assert_eq(faults[0].faults, 40);
	cr_assert_eq(faults[0].union_ns, 200000);
	cr_assert_eq(faults[1].union_ns, 100000);
	trace_done(&trace);
}

Test(page_faults, moved_pages_are_copies_of_their_own_kind_and_the_host_is_why_the_gpu_idled)
{
	struct trace trace = touched();
	const struct device_fact *device = trace_analyze(&trace);

	cr_assert_eq(trace.facts->copies.count, 2);
	for (size_t i = 0; i < 2; i++) {
		cr_assert(trace.facts->copies.at[i].managed);
		cr_assert_eq(trace.facts->copies.at[i].pageable, -1);
	}
	cr_assert_eq(device->idle[IDLE_HOST_LATE].ns, 2000000);
	cr_assert_eq(device->idle[IDLE_UNATTRIBUTED].ns, 0);
	cr_assert_eq(device->idle_ns, 2000000);
	trace_done(&trace);
}

Test(page_faults, are_a_finding_from_a_hundredth_of_the_span_on)
{
	struct rule_bench bench = { 0 };
	struct device_fact *device = bench_init(&bench);

	device->has_timeline = true;
	device->span_ns = 1000000000;
	device->page_faults = 12345;
	device->page_fault_ns = 9900000;
	*VEC_ADD(&bench.facts.page_faults) = (struct page_fault_fact){ .count = 300 };
	*VEC_ADD(&bench.facts.copies) = (struct copy_fact){ .managed = true, .bytes = 64 << 20 };
	cr_assert_eq(found_by(&bench, &rule_page_faults), 0);
	device->page_fault_ns = 10100000;
	cr_assert_eq(found_by(&bench, &rule_page_faults), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	cr_assert_says(first(&bench)->claim, "met 12,345 page faults");
	cr_assert_says(first(&bench)->claim, "300 times in 10.1 ms (1.0 % of the span)");
	cr_assert_says(first(&bench)->claim, "It moved 64.0 MiB");
	cr_assert_says(first(&bench)->advice.at[0], "cudaMemPrefetchAsync");
	cr_assert_eq(first(&bench)->impact_high_ns, 10100000);
	device->page_fault_ns = 51000000;
	cr_assert_eq(found_by(&bench, &rule_page_faults), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	bench_done(&bench);
}
