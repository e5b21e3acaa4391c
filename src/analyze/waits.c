/*
 * waits.c - calls that wait for a device and had not returned, or returned an error.
 *
 * CUPTI has a record of a kernel when it has ended, and of a call when it has returned.
 * So what hangs shows as what is not there: a launch without its kernel. The record of a
 * launch does not name the kernel. Where the kernel before it was followed by one and the
 * same each time, that is most likely it.
 */
#include "analyze/waits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/event.h"

/* A server whose every thread hangs: the first say enough. */
enum { WAITS_MOST = 32 };
/* Fewer repeats are chance. */
static const int64_t LIKELY_LEAST = 3;

static int64_t number(struct str text, int64_t unknown)
{
	uint64_t value;

	return str_to_u64(text, &value) && value <= INT64_MAX ? (int64_t)value : unknown;
}

/* "call=cudaStreamSynchronize;waited_ns=5;context=3;...": see event.h. */
static void read_detail(struct facts *facts, const char *detail, struct wait_fact *fact)
{
	struct str rest = str_of(detail);

	while (rest.len) {
		struct str value = str_cut(&rest, ';'), word = str_cut(&value, '=');

		if (str_is(word, "call"))
			fact->call = wait_keep(facts, value);
		else if (str_is(word, "waited_ns"))
			fact->waited_ns = number(value, 0);
		else if (str_is(word, "context"))
			fact->context = number(value, -1);
		else if (str_is(word, "result"))
			fact->result = number(value, 0);
		else if (str_is(word, "handover"))
			fact->handover = str_is(value, "all")    ? WAIT_HANDOVER_ALL
					 : str_is(value, "lost") ? WAIT_HANDOVER_LOST
								 : WAIT_HANDOVER_HELD;
		else if (str_is(word, "stream") && str_is(value, "default"))
			fact->default_stream = true;
		else if (str_is(word, "stream"))
			fact->stream = number(value, -1);
	}
}

/* One for each error of a process, the earliest; one for each thread that hangs. */
static void add(struct waits *waits, const struct wait_fact *fact, int64_t raw_ns)
{
	struct facts *facts = waits->facts;

	if (fact->end == WAIT_OPEN)
		*VEC_ADD(&waits->opens) = (struct wait_open){ fact->lane, fact->since_ns };
	for (size_t i = 0; i < facts->waits.count && fact->end == WAIT_FAILED; i++) {
		struct wait_fact *known = &facts->waits.at[i];
		int64_t count = known->count;

		if (known->end != WAIT_FAILED || known->source != fact->source ||
		    known->result != fact->result)
			continue;
		if (fact->since_ns < known->since_ns) {
			*known = *fact;
			waits->raw_ns.at[i] = raw_ns;
		}
		known->count = count + 1;
		return;
	}
	if (facts->waits.count == WAITS_MOST) {
		facts->waits_left_out += fact->end == WAIT_OPEN;
		facts->errors_left_out += fact->end == WAIT_FAILED;
		return;
	}
	*VEC_ADD(&facts->waits) = *fact;
	*VEC_ADD(&waits->raw_ns) = raw_ns;
}

static void take_marks(struct waits *waits, const struct store_batch *batch)
{
	const struct session *session = waits->facts->session;
	const int64_t *kind = batch->col[COL_subkind], *detail = batch->col[COL_detail];
	uint32_t source = session->lanes.at[batch->lane].source;

	for (size_t i = 0; kind && detail && i < batch->count; i++) {
		struct wait_fact fact = { .end = kind[i] == MARK_WAIT_OPEN ? WAIT_OPEN
									   : WAIT_FAILED,
					  .lane = batch->lane,
					  .source = source,
					  .device = SESSION_NONE,
					  .context = -1,
					  .stream = -1,
					  .call = "",
					  .count = 1,
					  .longest_ns = FACT_UNKNOWN,
					  .returned_ns = FACT_UNKNOWN,
					  .known_ns = FACT_UNKNOWN,
					  .pending_ns = FACT_UNKNOWN,
					  .util_pct = NAN };
		int64_t raw_ns = batch->col[COL_start][i], ignored;
		const char *text;

		if (kind[i] != MARK_WAIT_OPEN && kind[i] != MARK_WAIT_FAILED)
			continue;
		text = intern_get(session->details, (uint32_t)detail[i], NULL);
		read_detail(waits->facts, text ? text : "", &fact);
		/* The mark of one that failed is where it ended. */
		if (fact.end == WAIT_FAILED)
			raw_ns = capped_add(raw_ns, -fact.waited_ns);
		timeline_time(waits->timeline, source, raw_ns, 0, &fact.since_ns, &ignored);
		add(waits, &fact, raw_ns);
	}
}

static int load(struct waits *waits, struct err *err)
{
	const struct store_query query = {
		.kinds = STORE_BIT(STORE_mark),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_subkind) | COL_BIT(COL_detail),
	};
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int got = store_query_open(waits->store, &query, &cursor, err);

	while (got >= 0 && (got = store_next(cursor, &batch, err)) > 0)
		take_marks(waits, &batch);
	return got;
}

/* The last that had ended by the end of the wait; TL_NONE. */
static uint32_t last_op(const struct timeline *timeline, struct wait_fact *fact)
{
	int64_t until_ns = capped_add(fact->since_ns, fact->waited_ns);
	const struct session *session = timeline->session;
	uint32_t last = TL_NONE;

	for (size_t s = 0; s < timeline->ops.segments.count; s++) {
		const struct tl_segment *segment = &timeline->ops.segments.at[s];

		if (!wait_is_for(fact, &session->lanes.at[segment->lane]))
			continue;
		for (uint32_t i = segment->first; i < segment->first + segment->count; i++) {
			int64_t end = op_end(&timeline->ops, i);

			if (end <= until_ns && (last == TL_NONE || end >= fact->last_end_ns)) {
				fact->last_end_ns = end;
				last = i;
			}
		}
	}
	return last;
}

/* What came after the kernel on its stream, each time but this last one. */
static void look_for_likely(const struct timeline *timeline, uint32_t last, struct wait_fact *fact)
{
	const struct tl_segment *segment = op_segment(timeline, last);
	const uint32_t *key = timeline->ops.key;
	uint32_t next = TL_NONE;

	if (segment->kind != STORE_kernel ||
	    !strcmp(session_text(timeline->session, fact->last_op), KERNEL_WITHOUT_NAME))
		return;
	for (uint32_t i = segment->first; i + 1 < segment->first + segment->count; i++) {
		if (key[i] != key[last] || i == last)
			continue;
		if (next != TL_NONE && key[next] != key[i + 1])
			return;
		next = i + 1;
		fact->likely_count++;
	}
	if (next != TL_NONE && fact->likely_count >= LIKELY_LEAST)
		fact->likely = op_name(timeline, next);
}

/* The innermost range or operator of a thread at a time. */
static uint32_t range_at(const struct timeline *timeline, uint32_t lane, int64_t time_ns)
{
	uint32_t name = 0;

	for (size_t i = 0; i < timeline->lanes.count; i++) {
		const struct tl_lane *at = &timeline->lanes.at[i];

		if (at->lane != lane)
			continue;
		for (size_t k = 0; k < at->frame_count && at->frames[k].start <= time_ns; k++) {
			if (at->frames[k].end > time_ns)
				name = at->frames[k].name;
		}
	}
	return name;
}

/* A launch of the thread that has launched nothing whose end is known. */
static void add_pending(uint32_t lane, int64_t start_ns, struct wait_fact *fact)
{
	if (fact->pending_ns == FACT_UNKNOWN || start_ns < fact->pending_ns) {
		fact->pending_ns = start_ns;
		fact->pending_lane = lane;
	}
	fact->pending_count++;
}

/* It is the wait itself, or one of another thread that hangs as well: neither returned. */
static bool is_no_other(const struct waits *waits, const struct wait_fact *fact, uint32_t lane,
			int64_t start_ns)
{
	if (fact->lane == lane && fact->since_ns == start_ns)
		return true;
	for (size_t i = 0; i < waits->opens.count; i++) {
		const struct wait_open *open = &waits->opens.at[i];

		if (open->lane == lane && open->since_ns == start_ns)
			return true;
	}
	return false;
}

/* Could what was launched then still be running at the end of the wait? */
static bool may_run(const struct wait_fact *fact, int64_t after_ns, int64_t start_ns,
		    int64_t end_ns)
{
	return start_ns > after_ns && end_ns > fact->returned_ns &&
	       start_ns <= capped_add(fact->since_ns, fact->waited_ns);
}

/* Launches behind `after_ns`, and the longest of the other waits. The driver's call inside
 * the runtime's is the same launch. What was launched is known only where its record came
 * without times: then it can be a copy, or of another stream than the one that is waited for. */
static void look_at_calls(const struct waits *waits, const struct tl_segment *segment,
			  int64_t after_ns, struct wait_fact *fact)
{
	const struct session *session = waits->facts->session;
	const struct tl_calls *calls = &waits->timeline->calls;
	size_t captures = 0;
	int64_t inside_ns = INT64_MIN;

	for (uint32_t i = segment->first; i < segment->first + segment->count; i++) {
		int64_t start_ns = call_start(calls, i);
		size_t name = calls->what[i] & (CALL_WAITS - 1);
		bool captured = capture_step(waits->captures[name], &captures);
		const struct untimed_op *untimed;

		if (call_waits(calls, i) && is_no_other(waits, fact, segment->lane, start_ns))
			continue;
		if (start_ns > fact->known_ns && segment->lane == fact->lane)
			fact->known_ns = start_ns;
		if (call_waits(calls, i)) {
			if (call_ns(calls, i) > fact->longest_ns)
				fact->longest_ns = call_ns(calls, i);
			fact->gone_on |= segment->lane == fact->lane && start_ns > fact->since_ns;
			continue;
		}
		untimed = untimed_find(&waits->untimed, segment->lane, start_ns);
		if (captured || start_ns < inside_ns || !(waits->launches[name] || untimed))
			continue;
		inside_ns = call_end(calls, i);
		fact->gone_on |= segment->lane == fact->lane && start_ns > fact->since_ns;
		if (untimed && !wait_is_for(fact, &session->lanes.at[untimed->lane]))
			continue;
		if (calls->first_op[i] == TL_NONE &&
		    may_run(fact, after_ns, start_ns, call_end(calls, i)))
			add_pending(segment->lane, start_ns, fact);
	}
}

/* Of what is pending, the first whose record came without times. Where its call did not
 * come, nobody knows when that was. */
static void name_pending(const struct waits *waits, int64_t after_ns, struct wait_fact *fact)
{
	const struct session *session = waits->facts->session;

	for (size_t i = 0; i < waits->untimed.at.count; i++) {
		const struct untimed_op *op = &waits->untimed.at.at[i];
		bool has_call = op->call_lane != SESSION_NONE;

		if (!wait_is_for(fact, &session->lanes.at[op->lane]) ||
		    (has_call && !may_run(fact, after_ns, op->call_ns, op->call_ns)))
			continue;
		if (!has_call)
			fact->pending_count++;
		if (!strcmp(session_text(session, op->name), KERNEL_WITHOUT_NAME))
			continue;
		if (!fact->named_count++)
			fact->named = op->name;
	}
}

/* What the device and the process had done. */
static void look_at_timeline(const struct waits *waits, struct wait_fact *fact)
{
	const struct timeline *timeline = waits->timeline;
	uint32_t last = last_op(timeline, fact);
	int64_t after_ns = INT64_MIN;

	if (last != TL_NONE) {
		uint32_t call = timeline->ops.call[last];

		fact->last_op = op_name(timeline, last);
		look_for_likely(timeline, last, fact);
		after_ns = call < timeline->calls.count ? call_start(&timeline->calls, call)
							: op_start(&timeline->ops, last);
	}
	for (size_t s = 0; s < timeline->calls.segments.count; s++) {
		const struct tl_segment *segment = &timeline->calls.segments.at[s];

		if (segment->source == fact->source)
			look_at_calls(waits, segment, after_ns, fact);
	}
	name_pending(waits, after_ns, fact);
	if (fact->pending_ns != FACT_UNKNOWN)
		fact->pending_range = range_at(timeline, fact->pending_lane, fact->pending_ns);
	if (!fact->pending_count || fact->named)
		fact->likely = 0;
}

static void find_device(const struct session *session, struct wait_fact *fact)
{
	for (size_t i = 0; i < session->lanes.count && fact->device == SESSION_NONE; i++) {
		const struct lane *lane = &session->lanes.at[i];

		if (wait_is_for(fact, lane) && lane->device < session->devices.count)
			fact->device = lane->device;
	}
	/* Nothing ran on the stream: any other of the context. */
	for (size_t i = 0; i < session->lanes.count && fact->device == SESSION_NONE; i++) {
		const struct lane *lane = &session->lanes.at[i];

		if (lane->kind == LANE_STREAM && lane->source == fact->source &&
		    lane->context == fact->context && lane->device < session->devices.count)
			fact->device = lane->device;
	}
}

static int64_t lost_of(const struct session *session, uint32_t source)
{
	return source < session->losses.count ? session->losses.at[source].count[LOSS_dropped] : 0;
}

static int by_since(const void *a, const void *b)
{
	const struct wait_fact *x = a, *y = b;

	if (x->end != y->end)
		return x->end == WAIT_FAILED ? -1 : 1;
	return (x->since_ns > y->since_ns) - (x->since_ns < y->since_ns);
}

/* A thread that did something else afterwards is in the call no more: it left by a jump, or an
 * exception, of which nobody is told. */
static void drop_those_left(struct facts *facts)
{
	size_t kept = 0;

	for (size_t i = 0; i < facts->waits.count; i++) {
		const struct wait_fact *fact = &facts->waits.at[i];

		if (fact->end != WAIT_OPEN || !fact->gone_on)
			facts->waits.at[kept++] = *fact;
	}
	facts->waits.count = kept;
}

int wait_facts(struct timeline *timeline, struct store *store, struct facts *facts, struct err *err)
{
	struct waits waits = { .store = store, .timeline = timeline, .facts = facts };
	const uint32_t *names = timeline->calls.names.at;
	size_t name_count = timeline->calls.names.count;
	int ret = load(&waits, err);

	waits.launches = mem_zero(name_count + 1);
	waits.captures = mem_zero((name_count + 1) * sizeof(*waits.captures));
	for (size_t i = 0; i < name_count && facts->waits.count; i++) {
		waits.launches[i] = launch_call_name(session_text(facts->session, names[i]));
		waits.captures[i] = capture_call_name(session_text(facts->session, names[i]));
	}
	if (ret >= 0 && facts->waits.count)
		ret = untimed_load(timeline, store, &waits.untimed, err);
	if (ret >= 0 && facts->waits.count)
		ret = wait_look_at_returns(&waits, err);
	for (size_t i = 0; i < facts->waits.count && ret >= 0; i++) {
		struct wait_fact *fact = &facts->waits.at[i];

		fact->lost = lost_of(facts->session, fact->source);
		look_at_timeline(&waits, fact);
		find_device(facts->session, fact);
		ret = wait_look_at_thread(&waits, i, STORE_python_stack, err);
		if (ret >= 0)
			ret = wait_look_at_thread(&waits, i, STORE_cpu_stack, err);
	}
	if (ret >= 0 && facts->waits.count)
		ret = wait_look_at_samples(&waits, err);
	if (ret >= 0 && facts->waits.count)
		ret = wait_look_at_stalls(&waits, err);
	drop_those_left(facts);
	if (facts->waits.count)
		qsort(facts->waits.at, facts->waits.count, sizeof(*facts->waits.at), by_since);
	untimed_done(&waits.untimed);
	VEC_DONE(&waits.opens);
	VEC_DONE(&waits.raw_ns);
	free(waits.launches);
	free(waits.captures);
	return ret < 0 ? ret : 0;
}
