/*
 * Units of launches on random programs: what is repeated is found, with noise it
 * is found or left alone, and what is not repeated is never taken for a unit.
 */
#include <criterion/criterion.h>

#include "analyze/repeat.h"
#include "base/mem.h"
#include "random.h"
#include "trace_builder.h"

enum { WHATS = 4096, LONG_GAP_NS = 5000000 };

struct program {
	VEC(struct repeat_item) items;
	VEC(size_t) begins; /* where units begin, in truth */
};

static void launch(struct program *program, uint32_t what, uint32_t gap_ns)
{
	*VEC_ADD(&program->items) = (struct repeat_item){ what, gap_ns };
}

/* Per mille of launches that are left out, come twice, or are something else. */
static void noisy(struct program *program, uint32_t what, uint32_t gap_ns, uint32_t noise)
{
	uint32_t dice = random_below(3000);

	if (dice < noise)
		return;
	if (dice < 2 * noise)
		launch(program, what, gap_ns);
	else if (dice < 3 * noise)
		what = random_below(WHATS);
	launch(program, what, gap_ns);
}

/* A net: something at the start, `layers` times a layer, back again, an optimizer. */
struct net {
	uint32_t head[12], layer[24], back[24], tail[16];
	uint32_t heads, layer_length, back_length, tails, layers;
};

static struct net net_random(void)
{
	struct net net = { .heads = 6 + random_below(6),
			   .layer_length = 3 + random_below(21),
			   .tails = 6 + random_below(10),
			   .layers = 1 + random_below(12) };
	uint32_t kinds = 5 + random_below(60);

	net.back_length = random_below(3) ? net.layer_length : 0;
	/* The upload of a batch: nothing else is like it. */
	for (uint32_t i = 0; i < net.heads; i++)
		net.head[i] = i ? 100 + random_below(kinds) : 50;
	for (uint32_t i = 0; i < net.layer_length; i++)
		net.layer[i] = 200 + random_below(kinds);
	for (uint32_t i = 0; i < net.back_length; i++)
		net.back[i] = 300 + random_below(kinds);
	for (uint32_t i = 0; i < net.tails; i++)
		net.tail[i] = 400 + random_below(kinds);
	return net;
}

static void net_run(struct program *program, const struct net *net, uint32_t noise)
{
	*VEC_ADD(&program->begins) = program->items.count;
	for (uint32_t i = 0; i < net->heads; i++)
		noisy(program, net->head[i], i ? 5000 + random_below(5000) : LONG_GAP_NS, noise);
	for (uint32_t k = 0; k < net->layers; k++)
		for (uint32_t i = 0; i < net->layer_length; i++)
			noisy(program, net->layer[i], 5000 + random_below(5000), noise);
	for (uint32_t k = 0; k < net->layers; k++)
		for (uint32_t i = 0; i < net->back_length; i++)
			noisy(program, net->back[i], 5000 + random_below(5000), noise);
	for (uint32_t i = 0; i < net->tails; i++)
		noisy(program, net->tail[i], 5000 + random_below(5000), noise);
}

struct listed {
	struct repeat_source source;
	const struct program *program;
};

static void get(const struct repeat_source *source, size_t first, size_t count,
		struct repeat_item *ret_items)
{
	const struct program *program = ((const struct listed *)source)->program;

	cr_assert_leq(first + count, program->items.count);
	if (count)
		memcpy(ret_items, program->items.at + first, count * sizeof(*ret_items));
}

static size_t find(const struct program *program, struct repeat *repeat)
{
	struct listed listed = { { program->items.count, get }, program };

	repeat_find(&listed.source, WHATS, repeat);
	for (size_t i = 0; i < repeat->units.count; i++) {
		cr_assert_lt(repeat->units.at[i].first, repeat->units.at[i].end);
		cr_assert_leq(repeat->units.at[i].end, program->items.count);
		if (i)
			cr_assert_geq(repeat->units.at[i].first, repeat->units.at[i - 1].end);
	}
	return repeat->units.count;
}

static void program_done(struct program *program)
{
	VEC_DONE(&program->items);
	VEC_DONE(&program->begins);
}

Test(repeat, a_loop_is_found_and_begins_after_the_longest_absence)
{
	for (uint64_t seed = 1; seed < 400; seed++) {
		struct program program = { 0 };
		struct repeat repeat;
		uint32_t units;

		random_state = seed;
		units = 4 + random_below(60);
		struct net net = net_random();
		for (uint32_t i = 0; i < units; i++)
			net_run(&program, &net, 0);
		cr_assert_eq(find(&program, &repeat), units, "seed %d: %zu of %u", (int)seed,
			     repeat.units.count, units);
		for (uint32_t i = 0; i < units; i++)
			cr_assert_eq(repeat.units.at[i].first, program.begins.at[i], "seed %d",
				     (int)seed);
		repeat_done(&repeat);
		program_done(&program);
	}
}

Test(repeat, with_noise_a_loop_is_found_or_left_alone_but_not_mistaken)
{
	int found = 0, tried = 0;

	for (uint64_t seed = 1; seed < 400; seed++) {
		struct program program = { 0 };
		struct repeat repeat;
		uint32_t units, noise;

		random_state = seed * 7919;
		units = 8 + random_below(60);
		noise = 1 + random_below(30);
		struct net net = net_random();
		for (uint32_t i = 0; i < units; i++)
			net_run(&program, &net, noise);
		tried++;
		if (find(&program, &repeat)) {
			found++;
			cr_assert_leq(repeat.units.count, units, "seed %d", (int)seed);
			cr_assert_geq(3 * repeat.units.count, 2 * units, "seed %d: %zu of %u",
				      (int)seed, repeat.units.count, units);
		}
		repeat_done(&repeat);
		program_done(&program);
	}
	cr_assert_geq(10 * found, 7 * tried, "%d of %d", found, tried);
}

Test(repeat, what_is_not_repeated_is_no_unit)
{
	for (uint64_t seed = 1; seed < 1500; seed++) {
		struct program program = { 0 };
		struct repeat repeat;
		uint32_t count, kinds, way;

		random_state = seed * 104729;
		count = 8 + random_below(2500);
		kinds = 1 + random_below(40);
		way = random_below(3);
		for (uint32_t i = 0, what = 0; i < count; i++) {
			if (way == 0)
				what = random_below(kinds);
			else if (way == 1) /* few kinds are frequent */
				what = random_below(1 + random_below(kinds));
			else if (random_below(4)) /* the next one follows from this one, mostly */
				what = (what * 17 + 5 + random_below(3)) % kinds;
			else
				what = random_below(kinds);
			launch(&program, what, 1000 + random_below(100000));
		}
		cr_assert_eq(find(&program, &repeat), 0, "seed %d, way %u, %u kinds, %u: %zu %g",
			     (int)seed, way, kinds, count, repeat.units.count, repeat.score);
		repeat_done(&repeat);
		program_done(&program);
	}
}

Test(repeat, one_kernel_again_and_again_has_no_unit)
{
	struct program program = { 0 };
	struct repeat repeat;

	for (int i = 0; i < 70000; i++)
		launch(&program, 7, 1000);
	cr_assert_eq(find(&program, &repeat), 0);
	repeat_done(&repeat);
	program_done(&program);
}

Test(repeat, warm_up_and_evaluation_are_no_units)
{
	struct program program = { 0 };
	struct repeat repeat;
	struct net net, other;
	uint32_t before;

	random_state = 11;
	net = net_random();
	other = net_random();
	for (int i = 0; i < 300; i++)
		launch(&program, 2000 + random_below(50), 1000);
	before = (uint32_t)program.items.count;
	for (int i = 0; i < 60; i++) {
		net_run(&program, &net, 0);
		for (int k = 0; i == 30 && k < 3; k++)
			net_run(&program, &other, 0);
	}
	cr_assert_geq(find(&program, &repeat), 58);
	cr_assert_leq(repeat.units.count, 60);
	cr_assert_geq(repeat.units.at[0].first, before);
	repeat_done(&repeat);
	program_done(&program);
}

/* A loop in a trace without a single range, with a read-back at each step's end. */
static void loop(struct trace *trace, int steps, int step_us, int units_apart)
{
	for (int i = 0; i < steps; i++) {
		int64_t at = (int64_t)i * step_us;
		uint64_t id = trace_call(trace, 1, "cudaMemcpyAsync", at, at + 10);

		trace_copy(trace, 7, COPY_HTOD, HOST_MEMORY_PAGEABLE, 1 << 20, at + 10, at + 60,
			   id);
		for (int k = 0; k < 12; k++) {
			const char *name = k % 3 ? (k % 3 == 1 ? "b" : "c") : "a";

			id = trace_call(trace, 1, "cudaLaunchKernel", at + 70 + 10 * k,
					at + 75 + 10 * k);
			trace_kernel(trace, 7,
				     k == 11 ? "loss"
				     : k     ? name
					     : "embed",
				     at + 80 + 10 * k, at + 88 + 10 * k, id);
		}
		if (i % units_apart)
			continue;
		id = trace_call(trace, 1, "cudaMemcpyAsync", at + 200, at + 205);
		trace_copy(trace, 7, COPY_DTOH, HOST_MEMORY_PAGEABLE, 4, at + 206, at + 208, id);
		trace_call(trace, 1, "cudaStreamSynchronize", at + 206, at + 212);
	}
}

Test(repeat, steps_and_read_backs_a_step_are_known_without_ranges)
{
	struct trace trace = trace_new();

	loop(&trace, 20, 3000, 1);
	trace_analyze(&trace);
	cr_assert_str_eq(trace.facts->steps.source, "repeated launches");
	cr_assert_eq(trace.facts->steps.step.count, 20);
	cr_assert_eq(trace.facts->steps.p50_ns, 3000000);
	cr_assert_eq(trace.facts->readbacks.count, 1);
	cr_assert_float_eq(trace.facts->readbacks.at[0].per_step, 1, 1e-9);
	trace_done(&trace);
}

/* The ninth by its calls is the one with the loop. */
Test(repeat, threads_that_are_not_searched_are_counted)
{
	for (int others = 7; others < 10; others++) {
		struct trace trace = trace_new();

		loop(&trace, 20, 3000, 1);
		for (int other = 0; other < others; other++)
			for (int i = 0; i < 400; i++)
				trace_launch(&trace, 100 + other, 130 * i + other,
					     130 * i + other + 2, 130 * i + other + 3);
		trace_analyze(&trace);
		cr_assert_eq(trace.facts->threads_unsearched, others < 8 ? 0 : others - 7);
		trace_done(&trace);
	}
}

Test(repeat, a_loop_shorter_than_a_step_is_none)
{
	struct trace trace = trace_new();

	loop(&trace, 40, 400, 1);
	trace_analyze(&trace);
	cr_assert_null(trace.facts->steps.source);
	trace_done(&trace);
}

Test(repeat, a_range_of_the_user_goes_before_what_is_found)
{
	struct trace trace = trace_new();

	loop(&trace, 20, 3000, 1);
	for (int i = 0; i < 10; i++)
		trace_range(&trace, 1, RANGE_USER, "two steps", i * 6000, i * 6000 + 5900);
	trace_analyze(&trace);
	cr_assert_str_eq(trace.facts->steps.source, "repeated range");
	cr_assert_eq(trace.facts->steps.step.count, 10);
	trace_done(&trace);
}
