#include <math.h>

#include "rules/rule.h"
#include "trace_builder.h"

/* A source whose every allocation is recorded, with its device. */
static struct trace recorded(void)
{
	struct trace trace = { .store = memory_store_new() };
	struct session *session = trace.store->session;
	struct device device = { .scope = DEVICE_OF_SOURCE };

	trace.source = session_source(session, "cuda", "invented (pid 100)");
	device.source = trace.source;
	trace.device = session_device(session, &device);
	trace.process = session_process(session, trace.source, 100);
	return trace;
}

static uint32_t other_in(struct trace *trace, int64_t context)
{
	struct lane lane = { .kind = LANE_OTHER,
			     .source = trace->source,
			     .device = SESSION_NONE,
			     .process = trace->process,
			     .context = context,
			     .stream = -1,
			     .tid = -1 };

	return session_lane(trace->store->session, &lane);
}

static uint32_t other(struct trace *trace)
{
	return other_in(trace, -1);
}

/* device -1: of the host. `bytes` below 0: given back. */
static void block_in(struct trace *trace, int64_t context, int64_t at_us, int64_t device,
		     uint64_t address, int64_t bytes)
{
	struct alloc alloc = { .lane = other_in(trace, context),
			       .time_ns = at_us * 1000,
			       .address = address,
			       .bytes = bytes,
			       .allocated_bytes = EVENT_UNKNOWN,
			       .reserved_bytes = EVENT_UNKNOWN,
			       .device = device,
			       .site = bytes == 8 << 20
					       ? intern_text(trace->store->session->strings,
							     "fill < main (job)")
					       : 0 };

	sink_alloc(&trace->store->sink, &alloc, NULL);
}

static void block(struct trace *trace, int64_t at_us, int64_t device, uint64_t address,
		  int64_t bytes)
{
	block_in(trace, -1, at_us, device, address, bytes);
}

static void stream(struct trace *trace, int64_t at_us, unsigned number, bool made)
{
	char detail[64];
	int len = snprintf(detail, sizeof(detail), "context=1;stream=%u%s", number,
			   number % 2 ? ";site=step < main (job)" : "");
	struct mark mark = { .kind = made ? MARK_STREAM_MADE : MARK_STREAM_GONE,
			     .lane = other(trace),
			     .time_ns = at_us * 1000,
			     .detail = session_detail(trace->store->session, detail, (size_t)len) };

	sink_mark(&trace->store->sink, &mark, NULL);
}

enum { STEP_US = 1000, STEPS = 20 };

static void steps(struct trace *trace, bool named)
{
	for (int i = 0; i < STEPS; i++) {
		if (named)
			trace_range(trace, 1, RANGE_USER, "step", i * STEP_US,
				    i * STEP_US + STEP_US - 10);
		for (int k = 0; k < 10; k++)
			trace_launch(trace, 1, i * STEP_US + 90 * k, i * STEP_US + 90 * k + 10,
				     i * STEP_US + 90 * k + 80);
	}
}

static const struct memory_fact *held_on(struct trace *trace, uint32_t device)
{
	if (!trace->facts)
		trace_analyze(trace);
	for (size_t i = 0; i < trace->facts->memory.count; i++)
		if (trace->facts->memory.at[i].device == device)
			return &trace->facts->memory.at[i];
	return NULL;
}

static size_t findings_of(struct trace *trace)
{
	struct findings findings = { 0 };
	size_t count;

	rule_apply(trace->facts, &rule_leak, &findings);
	count = findings.at.count;
	findings_done(&findings);
	return count;
}

Test(leaks, a_block_left_in_every_fourth_step_is_told_with_its_size)
{
	for (int named = 0; named < 2; named++) {
		struct trace trace = recorded();
		const struct memory_fact *memory;

		block(&trace, 0, 0, 0x1000, 1 << 20); /* held from start to end: no leak */
		for (int i = 0; i < STEPS; i += 4)
			block(&trace, i * STEP_US + 500, 0, 0x100000 * (uint64_t)(i + 1), 8 << 20);
		steps(&trace, named);
		memory = held_on(&trace, trace.device);
		cr_assert_eq(memory->live_bytes, (1 << 20) + 5 * (8 << 20));
		cr_assert_eq(memory->peak_bytes, memory->live_bytes);
		cr_assert_eq(memory->leaks.count, 1);
		cr_assert_eq(memory->leaks.at[0].block_bytes, 8 << 20);
		cr_assert_str_eq(session_text(trace.facts->session, memory->leaks.at[0].site),
				 "fill < main (job)");
		/* The first step is like no other. */
		cr_assert_eq(memory->leaks.at[0].count, named ? 4 : 5);
		cr_assert_eq(findings_of(&trace), 1);
		trace_done(&trace);
	}
}

Test(leaks, blocks_that_were_not_to_be_recorded_are_no_zero)
{
	for (int recorded_too = 0; recorded_too < 2; recorded_too++) {
		struct trace trace = recorded();
		const struct memory_fact *memory;

		session_env(trace.store->session, trace.source, SESSION_NONE, STR("trace"),
			    recorded_too ? STR("cuda,memory") : STR("cuda,nvtx"));
		stream(&trace, 100, 13, true);
		steps(&trace, true);
		memory = held_on(&trace, trace.device);
		cr_assert_eq(memory->objects[HELD_STREAM].live, 1);
		cr_assert_eq(memory->alloc_count, recorded_too ? 0 : FACT_UNKNOWN);
		cr_assert_eq(memory->free_count, recorded_too ? 0 : FACT_UNKNOWN);
		trace_done(&trace);
	}
}

Test(leaks, sites_tell_what_is_held_and_what_steps_leave)
{
	struct trace trace = recorded();
	const struct memory_fact *memory;

	block(&trace, 0, 0, 0x1000, 64 << 20); /* once, nobody knows where */
	for (int i = 0; i < STEPS; i++)
		block(&trace, i * STEP_US + 500, 0, 0x100000 * (uint64_t)(i + 1), 8 << 20);
	steps(&trace, true);
	memory = held_on(&trace, trace.device);
	cr_assert_eq(memory->sites.count, 2);
	cr_assert_str_eq(session_text(trace.facts->session, memory->sites.at[0].site),
			 "fill < main (job)");
	cr_assert_eq(memory->sites.at[0].count, STEPS);
	cr_assert_eq(memory->sites.at[0].bytes, (int64_t)STEPS * (8 << 20));
	cr_assert_float_eq(memory->sites.at[0].growth_bytes_per_step, 8 << 20, 1);
	cr_assert_eq(memory->sites.at[1].bytes, 64 << 20);
	cr_assert(isnan(memory->sites.at[1].growth_bytes_per_step));
	cr_assert_float_eq(memory->growth_bytes_per_step, 8 << 20, 1);
	trace_done(&trace);
}

Test(leaks, each_rank_grows_by_its_own_steps)
{
	struct trace trace = recorded();
	struct session *session = trace.store->session;
	uint32_t devices[4];

	for (int rank = 0; rank < 4; rank++) {
		if (rank) {
			struct device device = { .scope = DEVICE_OF_SOURCE };
			char label[32];

			(void)snprintf(label, sizeof(label), "invented (pid %d)", 100 + rank);
			trace.source = session_source(session, "cuda", label);
			device.source = trace.source;
			trace.device = session_device(session, &device);
			trace.process = session_process(session, trace.source, 100 + rank);
		}
		devices[rank] = trace.device;
		for (int i = 0; i < STEPS; i++)
			block(&trace, i * STEP_US + 500, 0, 0x100000 * (uint64_t)(i + 1), 8 << 20);
		steps(&trace, false);
		for (int i = 0; i < STEPS; i++)
			trace_range(&trace, 1, RANGE_STEP, "step", i * STEP_US,
				    i * STEP_US + STEP_US - 10);
	}
	for (int rank = 0; rank < 4; rank++) {
		const struct memory_fact *memory = held_on(&trace, devices[rank]);

		cr_assert_eq(memory->sites.count, 1);
		cr_assert_float_eq(memory->sites.at[0].growth_bytes_per_step, 8 << 20, 1);
		cr_assert_float_eq(memory->growth_bytes_per_step, 8 << 20, 1);
		cr_assert_eq(memory->steps, STEPS);
	}
	trace_done(&trace);
}

Test(leaks, what_is_given_back_is_none)
{
	struct trace trace = recorded();
	const struct memory_fact *memory;

	for (int i = 0; i < STEPS; i++) {
		block(&trace, i * STEP_US + 500, 0, 0x100000, 8 << 20);
		/* The record of a free need not say how much. */
		block(&trace, i * STEP_US + 700, 0, 0x100000, i % 2 ? 0 : -(8 << 20));
	}
	steps(&trace, true);
	memory = held_on(&trace, trace.device);
	cr_assert_eq(memory->live_bytes, 0);
	cr_assert_eq(memory->peak_bytes, 8 << 20);
	cr_assert_eq(memory->free_count, STEPS);
	cr_assert_eq(memory->leaks.count, 0);
	cr_assert_eq(findings_of(&trace), 0);
	trace_done(&trace);
}

Test(leaks, what_a_program_holds_from_its_start_is_none)
{
	struct trace trace = recorded();

	for (int i = 0; i < 30; i++)
		block(&trace, i, 0, 0x100000 * (uint64_t)(i + 1), 8 << 20);
	steps(&trace, true);
	cr_assert_eq(held_on(&trace, trace.device)->leaks.count, 0);
	cr_assert_eq(held_on(&trace, trace.device)->live_bytes, INT64_C(30) * (8 << 20));
	trace_done(&trace);
}

Test(leaks, twice_is_a_coincidence)
{
	for (int count = 2; count <= 3; count++) {
		struct trace trace = recorded();

		for (int i = 0; i < count; i++)
			block(&trace, (3 + i) * STEP_US + 500, 0, 0x100000 * (uint64_t)(i + 1),
			      512);
		steps(&trace, true);
		cr_assert_eq(held_on(&trace, trace.device)->leaks.count, count > 2);
		trace_done(&trace);
	}
}

Test(leaks, pinned_memory_is_the_hosts)
{
	struct trace trace = recorded();

	for (int i = 0; i < STEPS; i++)
		block(&trace, i * STEP_US + 500, -1, 0x100000 * (uint64_t)(i + 1), 4096);
	steps(&trace, true);
	cr_assert_null(held_on(&trace, trace.device));
	cr_assert_eq(held_on(&trace, SESSION_NONE)->leaks.at[0].count, STEPS - 1);
	cr_assert_eq(held_on(&trace, SESSION_NONE)->leaks.at[0].site, 0);
	trace_done(&trace);
}

Test(leaks, streams_that_are_left_again_and_again)
{
	for (int leak = 0; leak < 2; leak++) {
		struct trace trace = recorded();
		const struct memory_fact *memory;

		stream(&trace, 0, 13, true);
		for (unsigned i = 1; i < STEPS; i += 4) {
			stream(&trace, i * STEP_US + 100, 20 + i, true);
			if (!leak)
				stream(&trace, i * STEP_US + 600, 20 + i, false);
		}
		steps(&trace, true);
		memory = held_on(&trace, trace.device);
		cr_assert_eq(memory->objects[HELD_STREAM].live, leak ? 6 : 1);
		cr_assert_eq(memory->objects[HELD_STREAM].leaked, leak ? 5 : 0);
		if (leak)
			cr_assert_str_eq(memory->objects[HELD_STREAM].site, "step < main (job)");
		cr_assert_eq(findings_of(&trace), (size_t)leak);
		trace_done(&trace);
	}
}

static void thing(struct trace *trace, int64_t at_us, const char *word, unsigned number,
		  enum mark_kind kind, const char *site)
{
	char detail[96];
	int len = snprintf(detail, sizeof(detail), "context=1;%s=%u%s%s", word, number,
			   site ? ";site=" : "", site ? site : "");
	struct mark mark = { .kind = kind,
			     .lane = other(trace),
			     .time_ns = at_us * 1000,
			     .detail = session_detail(trace->store->session, detail, (size_t)len) };

	sink_mark(&trace->store->sink, &mark, NULL);
}

static void gone_elsewhere(struct trace *trace, int64_t at_us)
{
	struct mark mark = { .kind = MARK_CONTEXT_GONE,
			     .lane = other(trace),
			     .time_ns = at_us * 1000 + 500,
			     .detail = session_detail(trace->store->session, "context=9;context=9",
						      19) };

	sink_mark(&trace->store->sink, &mark, NULL);
}

Test(leaks, events_and_graphs_are_told_apart_each_with_its_place)
{
	static const char *const words[] = { "event", "graph", "graph_exec" };

	for (int kind = 0; kind < 3; kind++) {
		struct trace trace = recorded();
		const struct object_fact *object;

		for (unsigned i = 1; i < STEPS; i += 2) {
			thing(&trace, i * STEP_US + 100, words[kind], i, MARK_OBJECT_MADE,
			      "step < main (job)");
			thing(&trace, i * STEP_US + 200, words[(kind + 1) % 3], 1, MARK_OBJECT_MADE,
			      NULL);
			thing(&trace, i * STEP_US + 300, words[(kind + 1) % 3], 1, MARK_OBJECT_GONE,
			      NULL);
		}
		steps(&trace, true);
		object = &held_on(&trace, trace.device)->objects[HELD_EVENT + kind];
		cr_assert_eq(object->live, STEPS / 2);
		cr_assert_eq(object->leaked, STEPS / 2);
		cr_assert_str_eq(object->site, "step < main (job)");
		object = &held_on(&trace, trace.device)->objects[HELD_EVENT + (kind + 1) % 3];
		cr_assert_eq(object->live, 0);
		cr_assert_eq(held_on(&trace, trace.device)->objects[HELD_STREAM].live,
			     FACT_UNKNOWN);
		cr_assert_eq(findings_of(&trace), 1);
		trace_done(&trace);
	}
}

/* PyTorch's pool of events grows now and then; who keeps one of each step does more. */
Test(leaks, a_framework_may_keep_fewer_events_than_one_a_step)
{
	for (unsigned every = 1; every <= 4; every += 3) {
		struct trace trace = recorded();

		for (unsigned i = 1; i < STEPS; i += every)
			for (unsigned k = 0; k < 2; k++)
				thing(&trace, i * STEP_US + 100 + k, "event", 2 * i + k,
				      MARK_OBJECT_MADE,
				      "c10::cuda::CUDAEvent::createEvent(int) < f");
		steps(&trace, true);
		cr_assert_gt(held_on(&trace, trace.device)->objects[HELD_EVENT].leaked, 3);
		cr_assert_eq(findings_of(&trace), (size_t)(every == 1));
		trace_done(&trace);
	}
}

Test(leaks, what_was_made_in_two_places_has_none)
{
	struct trace trace = recorded();
	const struct object_fact *event;

	for (unsigned i = 1; i < STEPS; i++)
		thing(&trace, i * STEP_US + 100, "event", i, MARK_OBJECT_MADE,
		      i % 2 ? "one < main (job)" : "other < main (job)");
	steps(&trace, true);
	event = &held_on(&trace, trace.device)->objects[HELD_EVENT];
	cr_assert_eq(event->leaked, STEPS - 1);
	cr_assert_null(event->site);
	trace_done(&trace);
}

/* A reset of the device frees what was made; at the very end it is no excuse. */
Test(leaks, a_context_takes_with_it_what_was_made_in_it_if_the_program_goes_on)
{
	for (int goes_on = 0; goes_on < 2; goes_on++) {
		struct trace trace = recorded();
		const struct object_fact *event;

		for (unsigned i = 1; i < STEPS - 2; i++)
			thing(&trace, i * STEP_US + 100, "event", i, MARK_OBJECT_MADE, NULL);
		thing(&trace, (STEPS - 2) * STEP_US, "context", 1, MARK_CONTEXT_GONE, NULL);
		if (goes_on)
			thing(&trace, (STEPS - 1) * STEP_US, "event", 1, MARK_OBJECT_MADE, NULL);
		steps(&trace, true);
		event = &held_on(&trace, trace.device)->objects[HELD_EVENT];
		cr_assert_eq(event->live, goes_on ? 1 : STEPS - 3);
		cr_assert_eq(event->leaked, goes_on ? 0 : STEPS - 3);
		trace_done(&trace);
	}
}

/* Of the device and of the host. Where the program ends so, it is what was left to the end. */
Test(leaks, memory_goes_with_its_context)
{
	for (int goes_on = 0; goes_on < 2; goes_on++) {
		struct trace trace = recorded();
		const struct memory_fact *memory, *pinned;

		block_in(&trace, 1, 100, 0, 0x1000, 4096);
		block_in(&trace, 1, 200, -1, 0x9000, 100);
		block_in(&trace, 2, 300, 0, 0x3000, 50);
		thing(&trace, 400, "context", 1, MARK_CONTEXT_GONE, NULL);
		if (goes_on)
			block_in(&trace, 3, 500, 0, 0x2000, 1024);
		steps(&trace, true);
		memory = held_on(&trace, trace.device);
		pinned = held_on(&trace, SESSION_NONE);
		cr_assert_eq(memory->live_bytes, goes_on ? 1024 + 50 : 4096 + 50);
		cr_assert_eq(memory->peak_bytes, 4096 + 50);
		cr_assert_eq(pinned->live_bytes, goes_on ? 0 : 100);
		trace_done(&trace);
	}
}

Test(leaks, an_address_is_of_the_context_that_had_it_last)
{
	struct trace trace = recorded();

	for (int round = 0; round < 3; round++) {
		block_in(&trace, 1, round * 100 + 1, 0, 0x1000, 10);
		block_in(&trace, 2, round * 100 + 2, 0, 0x1000, 20);
		thing(&trace, round * 100 + 3, "context", 1, MARK_CONTEXT_GONE, NULL);
		block_in(&trace, 2, round * 100 + 4, 0, 0x2000, 1);
	}
	steps(&trace, true);
	cr_assert_eq(held_on(&trace, trace.device)->live_bytes, 21);
	cr_assert_eq(held_on(&trace, trace.device)->peak_bytes, 21);
	trace_done(&trace);
}

/* Looking through all that is held for each context that goes would take hours. */
Test(leaks, many_contexts_go_while_much_is_held, .timeout = 60)
{
	enum { PAIRS = 150000 };
	struct trace trace = recorded();
	const struct object_fact *event;

	for (unsigned i = 1; i <= PAIRS; i++) {
		thing(&trace, i, "event", i, MARK_OBJECT_MADE, NULL);
		gone_elsewhere(&trace, i);
	}
	steps(&trace, true);
	event = &held_on(&trace, trace.device)->objects[HELD_EVENT];
	cr_assert_eq(event->live, PAIRS);
	trace_done(&trace);
}

/* What was given back and made again is in its context once. */
Test(leaks, what_goes_with_its_context_can_be_made_again)
{
	struct trace trace = recorded();
	const struct object_fact *event;

	for (int round = 0; round < 3; round++) {
		thing(&trace, round * 100 + 1, "event", 1, MARK_OBJECT_MADE, NULL);
		thing(&trace, round * 100 + 2, "event", 1, MARK_OBJECT_GONE, NULL);
		thing(&trace, round * 100 + 3, "event", 1, MARK_OBJECT_MADE, NULL);
		thing(&trace, round * 100 + 4, "event", 2, MARK_OBJECT_MADE, NULL);
		thing(&trace, round * 100 + 5, "context", 1, MARK_CONTEXT_GONE, NULL);
	}
	thing(&trace, 400, "event", 2, MARK_OBJECT_MADE, NULL);
	steps(&trace, true);
	event = &held_on(&trace, trace.device)->objects[HELD_EVENT];
	cr_assert_eq(event->live, 1);
	trace_done(&trace);
}

/* Plainly: an array of what is held by address. */
Test(leaks, levels_agree_with_plain_book_keeping)
{
	unsigned seed = 11;

	for (int round = 0; round < 20; round++) {
		struct trace trace = recorded();
		int64_t held[8] = { 0 }, level = 0, peak = 0;

		for (int i = 0; i < 200; i++) {
			int at = rand_r(&seed) % 8;
			int64_t bytes = 1 + rand_r(&seed) % 1000;

			block(&trace, 10 + i, 0, 0x1000 * (uint64_t)(at + 1),
			      held[at] ? -held[at] : bytes);
			level += held[at] ? -held[at] : bytes;
			held[at] = held[at] ? 0 : bytes;
			peak = level > peak ? level : peak;
		}
		steps(&trace, true);
		cr_assert_eq(held_on(&trace, trace.device)->live_bytes, level);
		cr_assert_eq(held_on(&trace, trace.device)->peak_bytes, peak);
		trace_done(&trace);
	}
}
