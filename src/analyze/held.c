/* held.c - see held.h. */
#include "analyze/held.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "model/event.h"

struct reading {
	struct timeline *timeline;
	struct held *held;
};

/* A device of the source: of its lanes that with this context, or ordinal. */
static uint32_t device_of(const struct session *session, uint32_t source, int64_t context,
			  int64_t ordinal)
{
	for (size_t i = 0; i < session->lanes.count; i++) {
		const struct lane *lane = &session->lanes.at[i];

		if (lane->source != source || lane->kind != LANE_STREAM ||
		    lane->device >= session->devices.count)
			continue;
		if (context >= 0 ? lane->context == context
				 : session->devices.at[lane->device].ordinal == ordinal)
			return lane->device;
	}
	return SESSION_NONE;
}

static void take_allocs(struct reading *reading, const struct store_batch *batch, uint32_t source)
{
	const struct session *session = reading->timeline->session;
	uint32_t of_lane = session->lanes.at[batch->lane].device;
	int64_t context = session->lanes.at[batch->lane].context;
	const int64_t *ordinal = batch->col[COL_device], *address = batch->col[COL_address];
	const int64_t *site = batch->col[COL_name];
	int64_t known = -2, ignored;
	uint32_t device = SESSION_NONE, host = (uint32_t)session->devices.count;

	for (size_t i = 0; ordinal && address && i < batch->count; i++) {
		struct held_event *event;

		if (ordinal[i] != known)
			device = ordinal[i] < 0 ? host
				 : of_lane < session->devices.count
					 ? of_lane
					 : device_of(session, source, -1, ordinal[i]);
		known = ordinal[i];
		if (device == SESSION_NONE)
			continue;
		event = VEC_ADD(&reading->held->events);
		*event = (struct held_event){ .id = (uint64_t)address[i],
					      .bytes = batch->col[COL_bytes][i],
					      .place = device,
					      .source = source,
					      .context = context,
					      .kind = HELD_BLOCK,
					      .site = site ? (uint32_t)site[i] : 0 };
		timeline_time(reading->timeline, source, batch->col[COL_start][i], 0, &event->time,
			      &ignored);
	}
}

/* "context=1;stream=13", and perhaps ";site=..." behind it: see event.h. */
static bool read_object(struct reading *reading, const char *detail, struct held_event *event,
			uint64_t *ret_context)
{
	static const char *const words[HELD_KINDS] = { "stream", "event", "graph", "graph_exec" };
	struct str rest = str_of(detail);
	struct str context = str_cut(&rest, ';'), number = str_cut(&rest, ';'), word;
	uint64_t id;

	(void)str_cut(&context, '=');
	word = str_cut(&number, '=');
	event->kind = 0;
	while (event->kind < HELD_KINDS && !str_is(word, words[event->kind]))
		event->kind++;
	if (!str_to_u64(context, ret_context) || !str_to_u64(number, &id) ||
	    *ret_context > UINT32_MAX || id > UINT32_MAX)
		return false;
	if (rest.at && rest.len > 5 && !memcmp(rest.at, "site=", 5))
		event->site = intern_add(reading->held->sites, rest.at + 5, rest.len - 5);
	event->id = *ret_context << 32 | id;
	event->context = (int64_t)*ret_context;
	return event->kind < HELD_KINDS || event->context_gone;
}

static void take_marks(struct reading *reading, const struct store_batch *batch, uint32_t source)
{
	const struct session *session = reading->timeline->session;
	const int64_t *kind = batch->col[COL_subkind];

	for (size_t i = 0; kind && i < batch->count; i++) {
		struct held_event event = { .source = source };
		uint64_t context;
		int64_t ignored;

		event.context_gone = kind[i] == MARK_CONTEXT_GONE;
		event.bytes = kind[i] == MARK_STREAM_MADE || kind[i] == MARK_OBJECT_MADE;
		if ((!event.bytes && !event.context_gone && kind[i] != MARK_STREAM_GONE &&
		     kind[i] != MARK_OBJECT_GONE) ||
		    !read_object(
			    reading,
			    intern_get(session->details, (uint32_t)batch->col[COL_detail][i], NULL),
			    &event, &context))
			continue;
		event.place = device_of(session, source, (int64_t)context, 0);
		/* A graph can be made before there is a context. */
		if (event.place == SESSION_NONE)
			event.place = device_of(session, source, -1, 0);
		if (event.place == SESSION_NONE)
			continue;
		timeline_time(reading->timeline, source, batch->col[COL_start][i], 0, &event.time,
			      &ignored);
		*VEC_ADD(&reading->held->events) = event;
	}
}

static int load(struct reading *reading, struct store *store, struct err *err)
{
	struct store_query query = {
		.kinds = STORE_BIT(STORE_alloc) | STORE_BIT(STORE_mark),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_bytes) | COL_BIT(COL_address) |
			   COL_BIT(COL_device) | COL_BIT(COL_subkind) | COL_BIT(COL_detail) |
			   COL_BIT(COL_name),
	};
	const struct session *session = reading->timeline->session;
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int got = store_query_open(store, &query, &cursor, err);

	while (got >= 0 && (got = store_next(cursor, &batch, err)) > 0) {
		uint32_t source = session->lanes.at[batch.lane].source;

		if (!is_block_by_block(session, source))
			continue;
		if (batch.kind == STORE_alloc)
			take_allocs(reading, &batch, source);
		else
			take_marks(reading, &batch, source);
	}
	return got;
}

/* In order of time; at one time what is given back comes first. */
static int by_time(const void *a, const void *b)
{
	const struct held_event *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->bytes > 0) - (y->bytes > 0);
}

int held_load(struct timeline *timeline, struct store *store, struct held *held, struct err *err)
{
	struct reading reading = { timeline, held };
	int ret;

	held->sites = intern_new();
	ret = load(&reading, store, err);
	if (held->events.count)
		qsort(held->events.at, held->events.count, sizeof(*held->events.at), by_time);
	return ret;
}

void held_done(struct held *held)
{
	VEC_DONE(&held->events);
	intern_free(held->sites);
	held->sites = NULL;
}
