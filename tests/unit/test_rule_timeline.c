/* The rules of the timeline layer, on both sides of each threshold, and the
 * order in which findings are told. */
#include "rule_bench.h"

enum { MS = 1000000 };

/* A timeline of a second, idle for `idle_ms` for one cause. */
static struct device_fact *timeline(struct rule_bench *bench, enum idle_cause cause,
				    int64_t idle_ms)
{
	struct device_fact *fact = bench_init(bench);

	bench->facts.has_timeline = true;
	fact->has_timeline = true;
	fact->span_ns = 1000 * MS;
	fact->coverage = 1;
	fact->idle[cause].ns = idle_ms * MS;
	fact->idle_ns = idle_ms * MS;
	fact->busy_ns = fact->span_ns - fact->idle_ns;
	fact->kernel_ns = fact->busy_ns;
	fact->kernel_count = 1000;
	fact->kernel_p50_ns = 5000;
	fact->launch_gap_p50_ns = 50000;
	fact->launch_sum_ns = 20 * MS;
	fact->launch_count = 1000;
	return fact;
}

static void set_idle(struct device_fact *fact, enum idle_cause cause, int64_t ns)
{
	fact->idle[cause].ns = ns;
	fact->idle_ns = ns;
	fact->busy_ns = fact->span_ns - ns;
}

static void during(struct rule_bench *bench, const char *name, enum phase phase, int64_t ms)
{
	*VEC_ADD(&bench->facts.devices.at[0].idle[IDLE_HOST_LATE].during) =
		(struct during){ .kind = ACTIVITY_RANGE,
				 .name = bench_text(bench, name),
				 .phase = phase,
				 .ns = ms * MS };
}

Test(gpu_starved, names_the_loader_and_gives_an_honest_range)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_HOST_LATE, 700);

	during(&bench, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", PHASE_LOADER,
	       600);
	during(&bench, "checkpoint", PHASE_OTHER, 50);
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_BAD);
	cr_assert_says(first(&bench)->title, "data loader");
	cr_assert_says(first(&bench)->claim, "_SingleProcessDataLoaderIter");
	cr_assert_says(first(&bench)->advice.at[0], "num_workers=4");
	/* One worker hides the 400 ms of the rest behind the 600 of loading. */
	cr_assert_eq(first(&bench)->impact_low_ns, 400 * MS);
	cr_assert_eq(first(&bench)->impact_high_ns, 700 * MS);
	fact->idle[IDLE_LAUNCH_RATE].ns = 100 * MS;
	bench.facts.host_time_inflated = true;
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_eq(first(&bench)->impact_high_ns, 800 * MS);
	bench_done(&bench);
}

Test(gpu_starved, advises_more_workers_only_where_there_are_some)
{
	struct rule_bench bench = { 0 };

	(void)timeline(&bench, IDLE_HOST_LATE, 700);
	during(&bench, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
	       PHASE_LOADER, 600);
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_says(first(&bench)->advice.at[0], "don't keep up");
	bench_done(&bench);
}

Test(gpu_starved, begins_at_a_tenth_of_the_span)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_HOST_LATE, 101);

	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	set_idle(fact, IDLE_HOST_LATE, 99 * MS);
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 0);
	set_idle(fact, IDLE_HOST_LATE, 501 * MS);
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_BAD);
	bench_done(&bench);
}

Test(gpu_starved, blames_the_loader_only_for_half_of_the_time_and_more)
{
	struct rule_bench bench = { 0 };

	(void)timeline(&bench, IDLE_HOST_LATE, 400);
	during(&bench, "evaluate", PHASE_OTHER, 201);
	during(&bench, "loading", PHASE_LOADER, 199);
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_silent(first(&bench)->title, "loader");
	cr_assert_says(first(&bench)->claim, "evaluate");
	bench.facts.devices.at[0].idle[IDLE_HOST_LATE].during.at[1].ns = 201 * MS;
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_says(first(&bench)->title, "loader");
	bench_done(&bench);
}

Test(gpu_starved, does_not_blame_a_loader_that_costs_next_to_nothing)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_HOST_LATE, 101);

	during(&bench, "loading", PHASE_LOADER, 60);
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_says(first(&bench)->title, "loader");
	fact->span_ns = 1250 * MS;
	set_idle(fact, IDLE_HOST_LATE, 126 * MS);
	fact->idle[IDLE_HOST_LATE].during.at[0].ns = 62 * MS;
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_silent(first(&bench)->title, "loader");
	bench_done(&bench);
}

Test(timeline_rules, abstain_with_a_line_below_the_stated_coverage)
{
	static const struct rule *const rules[] = { &rule_gpu_starved, &rule_launch_bound };
	static const enum idle_cause causes[] = { IDLE_HOST_LATE, IDLE_LAUNCH_RATE };

	for (size_t i = 0; i < 2; i++) {
		struct rule_bench bench = { 0 };
		struct device_fact *fact = timeline(&bench, causes[i], 500);

		fact->coverage = 0.81;
		cr_assert_eq(found_by(&bench, rules[i]), 1);
		cr_assert_eq(bench.findings.abstained.count, 0);
		fact->coverage = 0.79;
		cr_assert_eq(found_by(&bench, rules[i]), 0);
		cr_assert_eq(bench.findings.abstained.count, 1);
		cr_assert_says(bench.findings.abstained.at[0], rules[i]->id);
		cr_assert_says(bench.findings.abstained.at[0], "79 %");
		bench_done(&bench);
	}
}

Test(timeline_rules, lose_a_grade_and_say_so_when_stacks_were_recorded)
{
	static const struct rule *const rules[] = { &rule_gpu_starved, &rule_launch_bound };
	static const enum idle_cause causes[] = { IDLE_HOST_LATE, IDLE_LAUNCH_RATE };

	for (size_t i = 0; i < 2; i++) {
		struct rule_bench bench = { 0 };

		(void)timeline(&bench, causes[i], 500);
		during(&bench, "work", PHASE_OTHER, 300);
		cr_assert_eq(found_by(&bench, rules[i]), 1);
		cr_assert_eq(first(&bench)->grade, GRADE_HIGH);
		cr_assert_silent(first(&bench)->claim, "stacks");
		bench.facts.host_time_inflated = true;
		cr_assert_eq(found_by(&bench, rules[i]), 1);
		cr_assert_eq(first(&bench)->grade, GRADE_MEDIUM);
		cr_assert_says(first(&bench)->claim, "stacks");
		bench_done(&bench);
	}
}

Test(launch_bound, begins_at_a_tenth_of_the_span_and_subtracts_the_launch_calls)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_LAUNCH_RATE, 101);

	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert_eq(first(&bench)->impact_low_ns, 81 * MS);
	cr_assert_eq(first(&bench)->impact_high_ns, 101 * MS);
	cr_assert_says(first(&bench)->claim, "a launch comes every 50.0 us");
	cr_assert_str_neq(first(&bench)->evidence.at[1].metric, "idle.turnaround");
	cr_assert_says(first(&bench)->advice.at[0], "CUDA graphs");
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	set_idle(fact, IDLE_LAUNCH_RATE, 99 * MS);
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	set_idle(fact, IDLE_LAUNCH_RATE, 31 * MS);
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	set_idle(fact, IDLE_LAUNCH_RATE, 29 * MS);
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 0);
	bench_done(&bench);
}

Test(launch_bound, counts_what_the_device_takes_between_short_kernels)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_LAUNCH_RATE, 14);

	fact->kernel_count = 6040;
	fact->small_kernels = 6000;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 0);
	set_idle(fact, IDLE_DEPENDENCY, 30 * MS);
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 0, "waits for another stream");
	fact->idle[IDLE_DEPENDENCY].turnaround_ns = 5 * MS;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 0);
	fact->idle[IDLE_DEPENDENCY].turnaround_ns = 7 * MS;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	cr_assert_eq(first(&bench)->impact_high_ns, 21 * MS);
	cr_assert_says(first(&bench)->claim, "6,000 of 6,040 are shorter than 10.0 us");
	cr_assert_says(first(&bench)->claim, "14.0 ms as the next was not launched yet");
	cr_assert_says(first(&bench)->claim, "7.00 ms on the way");
	cr_assert_says(first(&bench)->title, "short kernels");
	cr_assert_str_eq(first(&bench)->evidence.at[1].metric, "idle.turnaround");
	fact->small_kernels = 3020;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 0, "half of them are long");
	bench_done(&bench);
}

/* The more is lost the more is told: no step at the threshold of launches alone. */
Test(launch_bound, a_note_of_short_kernels_counts_both)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_LAUNCH_RATE, 31);

	fact->small_kernels = 900;
	fact->idle[IDLE_DEPENDENCY].turnaround_ns = 20 * MS;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert_eq(first(&bench)->impact_high_ns, 51 * MS);
	set_idle(fact, IDLE_LAUNCH_RATE, 101 * MS);
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	cr_assert_eq(first(&bench)->impact_high_ns, 101 * MS);
	cr_assert_says(first(&bench)->claim, "a launch comes every");
	set_idle(fact, IDLE_LAUNCH_RATE, 29 * MS);
	fact->idle[IDLE_DEPENDENCY].turnaround_ns = 3 * MS;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 0,
		     "launches alone, nearly: from 3 %% on");
	bench_done(&bench);
}

Test(launch_bound, needs_fifty_launches)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_LAUNCH_RATE, 500);

	fact->launch_count = 49;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 0);
	fact->launch_count = 50;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	bench_done(&bench);
}

Test(launch_bound, waits_for_a_recording_without_stacks_while_the_host_is_late_for_longer)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_LAUNCH_RATE, 300);

	bench.facts.host_time_inflated = true;
	fact->idle[IDLE_HOST_LATE].ns = 299 * MS;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert_not(first(&bench)->held_back);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	fact->idle[IDLE_HOST_LATE].ns = 301 * MS;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert(first(&bench)->held_back);
	cr_assert_not_null(first(&bench)->held_back_why);
	bench.facts.host_time_inflated = false;
	cr_assert_eq(found_by(&bench, &rule_launch_bound), 1);
	cr_assert_not(first(&bench)->held_back);
	bench_done(&bench);
}

static void readback(struct rule_bench *bench, int64_t count, double per_step, int64_t idle_ms)
{
	struct readback_fact *fact = VEC_ADD(&bench->facts.readbacks);

	*fact = (struct readback_fact){ .count = count,
					.per_step = per_step,
					.blocked_ns = 2 * MS,
					.idle_ns = idle_ms * MS,
					.op = bench_text(bench, "aten::item") };
}

Test(sync_readback, counts_by_step_and_by_time)
{
	static const struct {
		double per_step;
		int64_t idle_ms;
		size_t found;
		enum severity severity;
	} cases[] = {
		{ 0.9, 1, 0, 0 }, { 1, 1, 1, SEVERITY_NOTE },    { 2, 1, 1, SEVERITY_WARN },
		{ NAN, 9, 0, 0 }, { NAN, 11, 1, SEVERITY_NOTE }, { NAN, 51, 1, SEVERITY_WARN },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rule_bench bench = { 0 };

		(void)timeline(&bench, IDLE_SYNC_BLOCKED, 100);
		readback(&bench, 8, cases[i].per_step, cases[i].idle_ms);
		cr_assert_eq(found_by(&bench, &rule_sync_readback), cases[i].found, "case %zu", i);
		if (cases[i].found) {
			cr_assert_eq(first(&bench)->severity, cases[i].severity, "case %zu", i);
			cr_assert_says(first(&bench)->claim, "aten::item");
			cr_assert_leq(first(&bench)->impact_high_ns, 100 * MS);
		}
		bench_done(&bench);
	}
}

static void copy(struct rule_bench *bench, int pageable, int64_t count, int64_t tiny, int64_t bytes,
		 int64_t sum_ns)
{
	*VEC_ADD(&bench->facts.copies) = (struct copy_fact){ .kind = COPY_HTOD,
							     .pageable = pageable,
							     .count = count,
							     .tiny_count = tiny,
							     .bytes = bytes,
							     .sum_ns = sum_ns,
							     .union_ns = sum_ns,
							     .gbps = (double)bytes / (double)sum_ns,
							     .link_peak_gbps = NAN };
}

Test(sync_readback, is_repeated_three_times_at_least)
{
	struct rule_bench bench = { 0 };

	(void)timeline(&bench, IDLE_SYNC_BLOCKED, 100);
	readback(&bench, 2, 2, 60);
	cr_assert_eq(found_by(&bench, &rule_sync_readback), 0);
	readback(&bench, 1, 1, 1);
	cr_assert_eq(found_by(&bench, &rule_sync_readback), 1);
	cr_assert_says(first(&bench)->claim, "3 times");
	bench_done(&bench);
}

Test(pageable_copy, wants_pageable_memory_bytes_and_time)
{
	static const struct {
		int pageable;
		int64_t tiny, bytes, ns;
		size_t found;
	} cases[] = {
		{ 1, 0, 1 << 20, 1 * MS, 1 },          { 0, 0, 1 << 20, 1 * MS, 0 },
		{ -1, 0, 1 << 20, 1 * MS, 0 },         { 1, 0, (1 << 20) - 1, 1 * MS, 0 },
		{ 1, 0, 1 << 20, 999 * MS / 1000, 0 }, { 1, 10, 1 << 20, 1 * MS, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rule_bench bench = { 0 };

		(void)timeline(&bench, IDLE_HOST_LATE, 100);
		copy(&bench, cases[i].pageable, 10, cases[i].tiny, cases[i].bytes, cases[i].ns);
		cr_assert_eq(found_by(&bench, &rule_pageable_copy), cases[i].found, "case %zu", i);
		bench_done(&bench);
	}
}

Test(pageable_copy, gains_at_least_what_pinned_copies_of_the_recording_are_faster)
{
	struct rule_bench bench = { 0 };

	(void)timeline(&bench, IDLE_HOST_LATE, 100);
	copy(&bench, 1, 10, 0, 100000000, 10 * MS);
	copy(&bench, 0, 10, 0, 100000000, 2 * MS);
	cr_assert_eq(found_by(&bench, &rule_pageable_copy), 1);
	cr_assert_eq(first(&bench)->impact_low_ns, 8 * MS);
	cr_assert_eq(first(&bench)->impact_high_ns, 10 * MS);
	bench_done(&bench);
}

/* Both ways at once: their sum is longer than the time there was. */
Test(pageable_copy, costs_no_more_than_the_span)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_HOST_LATE, 100);

	copy(&bench, 1, 10, 0, 100000000, 700 * MS);
	copy(&bench, 1, 10, 0, 100000000, 800 * MS);
	cr_assert_eq(found_by(&bench, &rule_pageable_copy), 1);
	cr_assert_eq(first(&bench)->impact_high_ns, fact->span_ns);
	cr_assert_eq(first(&bench)->impact_share, 1);
	cr_assert_eq(first(&bench)->impact_of, STRETCH_SPAN);
	bench_done(&bench);
}

/* Copies while the program sets up are in the whole span alone, gaps of its loop in
 * the steady part. */
Test(findings, a_share_is_of_a_stretch_that_holds_what_it_counts)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_HOST_LATE, 100);

	fact->steady.has = true;
	fact->steady.span_ns = 150 * MS;
	fact->steady.busy_ns = 50 * MS;
	fact->steady.idle_ns = 100 * MS;
	fact->steady.kernel_count = fact->kernel_count;
	fact->steady.idle[IDLE_HOST_LATE].ns = 100 * MS;
	copy(&bench, 1, 10, 0, 100000000, 400 * MS);
	cr_assert_eq(found_by(&bench, &rule_pageable_copy), 1);
	cr_assert_eq(first(&bench)->impact_of, STRETCH_WHOLE);
	cr_assert_float_eq(first(&bench)->impact_share, 0.4, 1e-9);
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_eq(first(&bench)->impact_of, STRETCH_STEADY);
	cr_assert_float_eq(first(&bench)->impact_share, 100. / 150, 1e-9);
	cr_assert_str_eq(stretch_name(STRETCH_WHOLE), "span");
	cr_assert_str_eq(stretch_name(STRETCH_STEADY), "steady");
	bench_done(&bench);
}

static void steps(struct rule_bench *bench, size_t count, int64_t outlier_ns)
{
	struct step_facts *facts = &bench->facts.steps;
	int64_t now = 0;

	facts->p50_ns = 10 * MS;
	facts->p95_ns = 10 * MS;
	for (size_t i = 0; i < count; i++) {
		struct step *step = VEC_ADD(&facts->step);
		bool outlier = outlier_ns && i == count - 1;

		step->start_ns = now;
		now += outlier ? outlier_ns : 10 * MS;
		step->end_ns = now;
		step->outlier = outlier;
		if (outlier)
			*VEC_ADD(&step->differs) = "idle 5 ms more";
	}
}

Test(step_outliers, of_the_set_up_are_no_finding)
{
	struct rule_bench bench = { 0 };

	(void)bench_init(&bench);
	steps(&bench, 10, 20 * MS);
	bench.facts.steps.step.at[9].setup = true;
	cr_assert_eq(found_by(&bench, &rule_step_outliers), 0);
	bench_done(&bench);
}

Test(step_outliers, need_five_steps_and_a_hundredth_of_the_time)
{
	static const struct {
		size_t count, found, abstained;
		int64_t outlier_ns;
	} cases[] = {
		{ 4, 0, 1, 20 * MS },   { 5, 1, 0, 20 * MS },  { 5, 0, 0, 0 },
		{ 101, 0, 0, 20 * MS }, { 90, 1, 0, 20 * MS }, { 0, 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rule_bench bench = { 0 };

		(void)bench_init(&bench);
		steps(&bench, cases[i].count, cases[i].outlier_ns);
		cr_assert_eq(found_by(&bench, &rule_step_outliers), cases[i].found, "case %zu", i);
		cr_assert_eq(bench.findings.abstained.count, cases[i].abstained, "case %zu", i);
		if (cases[i].found)
			cr_assert_says(first(&bench)->claim, "idle 5 ms more");
		bench_done(&bench);
	}
}

/* A starved second of which `upload_ms` end with an upload, in four steps. */
static struct device_fact *uploads(struct rule_bench *bench, int64_t upload_ms, int64_t count)
{
	struct device_fact *fact = timeline(bench, IDLE_HOST_LATE, 600);

	fact->idle[IDLE_HOST_LATE].upload_ns = upload_ms * MS;
	fact->idle[IDLE_HOST_LATE].upload_count = count;
	for (int i = 0; i < 4; i++)
		(void)VEC_ADD(&bench->facts.steps.step);
	return fact;
}

static bool is_likely_data(struct rule_bench *bench)
{
	cr_assert_eq(found_by(bench, &rule_gpu_starved), 1);
	return first(bench)->title && strstr(first(bench)->title, "likely for data");
}

Test(gpu_starved, a_loader_without_a_name_is_told_by_the_uploads_after_it)
{
	struct rule_bench bench = { 0 };
	struct idle_fact *idle = uploads(&bench, 301, 3)->idle;

	cr_assert(is_likely_data(&bench));
	cr_assert_eq(first(&bench)->grade, GRADE_LOW);
	cr_assert_not_null(first(&bench)->runner_up);
	idle->upload_ns = 299 * MS;
	cr_assert(!is_likely_data(&bench));
	idle->upload_ns = 301 * MS;
	idle->upload_count = 2;
	cr_assert(!is_likely_data(&bench));
	idle->upload_count = 3;
	/* Half of the steps and more must have one. */
	for (int i = 0; i < 3; i++)
		(void)VEC_ADD(&bench.facts.steps.step);
	cr_assert(!is_likely_data(&bench));
	idle->upload_count = 4;
	cr_assert(is_likely_data(&bench));
	/* Something else is known to fill the time. */
	during(&bench, "checkpoint", PHASE_OTHER, 301);
	cr_assert(!is_likely_data(&bench));
	cr_assert_says(first(&bench)->claim, "checkpoint");
	idle->during.at[0].ns = 299 * MS;
	cr_assert(is_likely_data(&bench));
	/* A range as long as a step names no work. */
	idle->during.at[0].ns = 301 * MS;
	bench.facts.steps.p50_ns = 100 * MS;
	*VEC_ADD(&bench.facts.ranges) = (struct range_fact){ .name = idle->during.at[0].name,
							     .count = 3,
							     .sum_ns = 299 * MS };
	cr_assert(!is_likely_data(&bench));
	bench.facts.ranges.at[0].sum_ns = 301 * MS;
	cr_assert(is_likely_data(&bench));
	VEC_DONE(&bench.facts.ranges);
	bench_done(&bench);
}

Test(gpu_starved, what_the_thread_waits_for_decides_the_advice)
{
	static const struct {
		const char *state, *claim, *advice;
	} cases[] = {
		{ "waiting: futex",
		  "waited for another thread or process (waiting: futex, in 9 of 10",
		  "num_workers towards" },
		{ "waiting: poll", "for a pipe or socket", "num_workers towards" },
		{ "uninterruptible: pread", "for storage", "Read ahead" },
		{ "runnable", "no core was free", "fewer workers" },
		{ "running", "it did something itself", "num_workers=4" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rule_bench bench = { 0 };
		struct idle_fact *idle = uploads(&bench, 500, 4)->idle;

		idle->thread_state = cases[i].state;
		idle->thread_looks = 10;
		idle->thread_state_looks = 9;
		idle->python = bench_text(&bench, "collate data.py:41");
		idle->python_looks = 10;
		idle->python_function_looks = 8;
		cr_assert(is_likely_data(&bench));
		cr_assert_eq(first(&bench)->grade, GRADE_MEDIUM);
		cr_assert_says(first(&bench)->claim, cases[i].claim);
		cr_assert_says(first(&bench)->claim, "collate data.py:41 in 8 of 10 looks");
		cr_assert_says(first(&bench)->advice.at[0], cases[i].advice);
		bench_done(&bench);
	}
}

/* Two of one name at least; one that came to use CUDA is none of them. */
static void workers(struct rule_bench *bench, int count)
{
	uint32_t others = session_source(bench->session, READER_PROC, "others");
	uint32_t cuda = session_source(bench->session, "cuda", "python (pid 99)");

	for (int i = 0; i <= count; i++) {
		uint32_t row = session_process(bench->session, others, 100 - i);

		bench->session->processes.at[row].name = bench_text(bench, "python: worker");
	}
	(void)session_process(bench->session, cuda, 100);
}

Test(gpu_starved, workers_that_a_thread_waited_for_have_a_name)
{
	static const struct {
		const char *state;
		int count;
		bool told;
	} cases[] = {
		{ "waiting: poll", 8, true },
		{ "waiting: futex", 2, true },
		{ "waiting: futex", 1, false },
		{ "running", 8, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rule_bench bench = { 0 };
		struct idle_fact *idle = uploads(&bench, 500, 4)->idle;
		char text[64];

		idle->thread_state = cases[i].state;
		idle->thread_looks = 10;
		idle->thread_state_looks = 9;
		workers(&bench, cases[i].count);
		cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
		snprintf(text, sizeof(text), "Beside it there were %d x python: worker.",
			 cases[i].count);
		cr_assert_eq(strstr(first(&bench)->claim, text) != NULL, cases[i].told, "%s",
			     first(&bench)->claim);
		bench_done(&bench);
	}
}

Test(gpu_starved, work_that_finds_no_core_is_not_to_be_moved)
{
	static const struct {
		const char *state, *advice;
	} cases[] = {
		{ "runnable", "fewer workers" },
		{ "uninterruptible: pread", "Read ahead" },
		{ "running", "Move that work" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rule_bench bench = { 0 };
		struct idle_fact *idle = timeline(&bench, IDLE_HOST_LATE, 600)->idle;

		idle->thread_state = cases[i].state;
		idle->thread_looks = 10;
		idle->thread_state_looks = 9;
		during(&bench, "checkpoint", PHASE_OTHER, 301);
		cr_assert(!is_likely_data(&bench));
		cr_assert_says(first(&bench)->advice.at[0], cases[i].advice);
		cr_assert_eq(first(&bench)->advice.count, 1);
		bench_done(&bench);
	}
}

Test(gpu_starved, a_call_of_a_moment_is_not_what_the_host_did)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_HOST_LATE, 600);

	during(&bench, "cudaStreamIsCapturing", PHASE_OTHER, 29);
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_says(first(&bench)->claim, "not in the recording");
	fact->idle[IDLE_HOST_LATE].during.at[0].ns = 31 * MS;
	fact->idle[IDLE_HOST_LATE].during.at[0].range = bench_text(&bench, "validate");
	cr_assert_eq(found_by(&bench, &rule_gpu_starved), 1);
	cr_assert_says(first(&bench)->claim, "cudaStreamIsCapturing inside validate");
	bench_done(&bench);
}

Test(collective_wait, is_a_suspicion_until_ranks_are_compared)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_HOST_LATE, 0);

	cr_assert_eq(found_by(&bench, &rule_collective_wait), 0);
	fact->collective_ns = 400 * MS;
	fact->collective_suspect_ns = 49 * MS;
	cr_assert_eq(found_by(&bench, &rule_collective_wait), 0);
	fact->collective_suspect_ns = 51 * MS;
	cr_assert_eq(found_by(&bench, &rule_collective_wait), 1);
	cr_assert_says(first(&bench)->claim, "Suspicion");
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	cr_assert_eq(first(&bench)->impact_low_ns, 0);
	fact->collective_suspect_ns = 101 * MS;
	cr_assert_eq(found_by(&bench, &rule_collective_wait), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	fact->waiting_ns = 49 * MS;
	cr_assert_eq(found_by(&bench, &rule_collective_wait), 0);
	fact->waiting_ns = 300 * MS;
	cr_assert_eq(found_by(&bench, &rule_collective_wait), 1);
	cr_assert(!strstr(first(&bench)->claim, "Suspicion"));
	cr_assert_eq(first(&bench)->grade, GRADE_HIGH);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	/* What a long start hides counts in the steady part. */
	fact->waiting_ns = 49 * MS;
	fact->steady = (struct steady_fact){ true, 0, 100 * MS, .waiting_ns = 45 * MS };
	cr_assert_eq(found_by(&bench, &rule_collective_wait), 1);
	cr_assert_says(first(&bench)->claim, "45.0 ms (45 % of the span)");
	cr_assert_eq(first(&bench)->impact_of, STRETCH_STEADY);
	bench_done(&bench);
}

Test(collective_wait, from_one_rank_rests_on_what_no_kernel_covers)
{
	struct rule_bench bench = { 0 };
	struct device_fact *fact = timeline(&bench, IDLE_HOST_LATE, 0);

	fact->collective_ns = 400 * MS;
	fact->collective_hidden_ns = 201 * MS;
	cr_assert_eq(found_by(&bench, &rule_collective_wait), 0);
	fact->collective_hidden_ns = 199 * MS;
	cr_assert_eq(found_by(&bench, &rule_collective_wait), 1);
	cr_assert_eq(first(&bench)->grade, GRADE_LOW);
	cr_assert_eq(first(&bench)->severity, SEVERITY_NOTE);
	fact->collective_ns = 800 * MS;
	cr_assert_eq(found_by(&bench, &rule_collective_wait), 1);
	cr_assert_eq(first(&bench)->severity, SEVERITY_WARN);
	bench_done(&bench);
}

static void nothing(const struct facts *facts, const struct rule *rule, struct findings *findings)
{
	(void)facts;
	(void)rule;
	(void)findings;
}

static const struct rule of_system = {
	.id = "s", .title = "system", .why = "", .layer = LAYER_SYSTEM, .apply = nothing
};
static const struct rule of_timeline = {
	.id = "t", .title = "timeline", .why = "", .layer = LAYER_TIMELINE, .apply = nothing
};
static const struct rule of_kernel = {
	.id = "k", .title = "kernel", .why = "", .layer = LAYER_KERNEL, .apply = nothing
};

static struct finding *add(struct findings *findings, const struct rule *rule, double share)
{
	struct finding *finding = finding_add(findings, rule, SEVERITY_WARN);

	if (share >= 0)
		finding_impact(finding, 0, (int64_t)(share * 1000), STRETCH_SPAN, 1000);
	return finding;
}

static const char *order_of(struct findings *findings)
{
	static char text[64];
	size_t len = 0;

	findings_order(findings);
	for (size_t i = 0; i < findings->at.count; i++) {
		text[len++] = findings->at.at[i].rule->id[0];
		if (findings->at.at[i].held_back)
			text[len++] = '-';
	}
	text[len] = '\0';
	findings_done(findings);
	memset(findings, 0, sizeof(*findings));
	return text;
}

Test(order, the_layer_that_explains_most_leads_and_holds_finer_ones_back)
{
	struct findings findings = { 0 };

	add(&findings, &of_kernel, 0.3);
	add(&findings, &of_timeline, 0.9);
	add(&findings, &of_system, 0.1);
	cr_assert_str_eq(order_of(&findings), "tsk-");
	add(&findings, &of_kernel, 0.9);
	add(&findings, &of_timeline, 0.3);
	cr_assert_str_eq(order_of(&findings), "kt");
	/* Little that is coarse holds nothing back. */
	add(&findings, &of_timeline, 0.19);
	add(&findings, &of_kernel, 0.1);
	cr_assert_str_eq(order_of(&findings), "tk");
	add(&findings, &of_timeline, 0.21);
	add(&findings, &of_kernel, 0.1);
	cr_assert_str_eq(order_of(&findings), "tk-");
}

Test(order, a_finding_without_a_time_is_held_back_by_most_of_the_time)
{
	struct findings findings = { 0 };

	add(&findings, &of_kernel, -1);
	add(&findings, &of_timeline, 0.49);
	cr_assert_str_eq(order_of(&findings), "tk");
	add(&findings, &of_kernel, -1);
	add(&findings, &of_timeline, 0.51);
	cr_assert_str_eq(order_of(&findings), "tk-");
	add(&findings, &of_kernel, -1);
	add(&findings, &of_system, -1);
	cr_assert_str_eq(order_of(&findings), "sk");
}

Test(order, another_device_holds_nothing_back)
{
	struct findings findings = { 0 };

	add(&findings, &of_timeline, 0.9)->device = 0;
	add(&findings, &of_kernel, 0.2)->device = 1;
	cr_assert_str_eq(order_of(&findings), "tk");
	add(&findings, &of_timeline, 0.9)->device = 0;
	add(&findings, &of_kernel, 0.2)->device = 0;
	cr_assert_str_eq(order_of(&findings), "tk-");
}

Test(order, is_the_rules_own_among_equals)
{
	struct findings findings = { 0 };
	char expected[41] = { 0 };

	for (int i = 0; i < 40; i++) {
		struct finding *finding = add(&findings, &of_timeline, 0.1);

		finding->kernel = (uint32_t)i;
		expected[i] = 't';
	}
	findings_order(&findings);
	for (uint32_t i = 0; i < 40; i++)
		cr_assert_eq(findings.at.at[i].kernel, i);
	cr_assert_str_eq(order_of(&findings), expected);
}
