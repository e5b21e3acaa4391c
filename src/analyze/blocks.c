/*
 * Blocks of memory by address, and streams, events and graphs, of processes whose
 * every allocation was recorded: how much was held, what is left at the end, and what was left
 * behind again and again.
 *
 * Nearly every program holds something when it ends, and the driver takes it
 * back: that is no leak. Blocks of one size that are obtained over and over
 * and never given back are. doc/analysis.md, "Memory".
 */
#include "analyze/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "model/event.h"

/* Once is a start, twice a coincidence. */
static const int64_t LEAK_COUNT = 3;
/* Without steps the device's span is cut into so many parts, and what is left
 * behind in each of them comes again and again. */
enum { PARTS = 3 };
static const int64_t LEAK_SPREAD = 3; /* different steps, or parts */
enum { LEAK_SIZES = 16 };             /* told of each device, by bytes */

/* What is held: memory, or HELD_*. */
enum { BLOCK = HELD_KINDS };

struct held_event {
	int64_t time;
	uint64_t id;    /* address, or context << 32 | number */
	int64_t bytes;  /* 0 and less: given back */
	uint32_t place; /* device; devices.count + 1: host; of what has no size 0 */
	uint32_t source;
	uint32_t site;     /* of a block: string; else in blocks.sites */
	uint8_t kind;      /* BLOCK or HELD_* */
	bool context_gone; /* with all that was made in it */
};

/* What is held: by source and id. */
struct holder {
	int64_t time, bytes;
	uint64_t id;
	uint32_t place, source, site;
	bool held;
	bool listed; /* in the list of its context */
	uint8_t kind;
	size_t next; /* in that list: place in holders + 1 */
};

/* A context that went. What was made in it went with it, unless the program ended
 * so: then it is what the program left to the end. */
struct gone {
	uint32_t source, context;
};

/* Steps of one source: how many, and the place of its first among all. */
struct own_steps {
	size_t count, first;
};

/* How much was held of a place over time. */
struct levels {
	VEC(struct tl_level) at;
	uint32_t source; /* of the last event */
};

struct blocks {
	struct timeline *timeline;
	struct facts *facts;
	VEC(struct held_event) events;
	VEC(struct holder) holders;
	struct intern *sites;
	VEC(struct gone) gone;      /* and nothing was made since */
	struct map index;           /* hash of source and id -> place in holders */
	struct map contexts;        /* source and context -> first of its list; 0 none */
	struct memory_fact *memory; /* by place */
	int64_t *level;             /* by place */
	struct levels *levels;      /* by place */
	struct own_steps *own;      /* by source */
	uint32_t host;              /* the place that is the host */
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

static void take_allocs(struct blocks *blocks, const struct store_batch *batch, uint32_t source)
{
	const struct session *session = blocks->timeline->session;
	uint32_t of_lane = session->lanes.at[batch->lane].device;
	const int64_t *ordinal = batch->col[COL_device], *address = batch->col[COL_address];
	const int64_t *site = batch->col[COL_name];
	int64_t known = -2, ignored;
	uint32_t device = SESSION_NONE;

	for (size_t i = 0; ordinal && address && i < batch->count; i++) {
		struct held_event *event;

		if (ordinal[i] != known)
			device = ordinal[i] < 0 ? blocks->host
				 : of_lane < session->devices.count
					 ? of_lane
					 : device_of(session, source, -1, ordinal[i]);
		known = ordinal[i];
		if (device == SESSION_NONE)
			continue;
		event = VEC_ADD(&blocks->events);
		*event = (struct held_event){ .id = (uint64_t)address[i],
					      .bytes = batch->col[COL_bytes][i],
					      .place = device,
					      .source = source,
					      .kind = BLOCK,
					      .site = site ? (uint32_t)site[i] : 0 };
		timeline_time(blocks->timeline, source, batch->col[COL_start][i], 0, &event->time,
			      &ignored);
	}
}

/* "context=1;stream=13", and perhaps ";site=..." behind it: see event.h. */
static bool read_object(struct blocks *blocks, const char *detail, struct held_event *event,
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
		event->site = intern_add(blocks->sites, rest.at + 5, rest.len - 5);
	event->id = *ret_context << 32 | id;
	return event->kind < HELD_KINDS || event->context_gone;
}

static void take_marks(struct blocks *blocks, const struct store_batch *batch, uint32_t source)
{
	const struct session *session = blocks->timeline->session;
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
			    blocks,
			    intern_get(session->details, (uint32_t)batch->col[COL_detail][i], NULL),
			    &event, &context))
			continue;
		event.place = device_of(session, source, (int64_t)context, 0);
		/* A graph can be made before there is a context. */
		if (event.place == SESSION_NONE)
			event.place = device_of(session, source, -1, 0);
		if (event.place == SESSION_NONE)
			continue;
		timeline_time(blocks->timeline, source, batch->col[COL_start][i], 0, &event.time,
			      &ignored);
		*VEC_ADD(&blocks->events) = event;
	}
}

static int load(struct blocks *blocks, struct store *store, struct err *err)
{
	struct store_query query = {
		.kinds = STORE_BIT(STORE_alloc) | STORE_BIT(STORE_mark),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_bytes) | COL_BIT(COL_address) |
			   COL_BIT(COL_device) | COL_BIT(COL_subkind) | COL_BIT(COL_detail) |
			   COL_BIT(COL_name),
	};
	const struct session *session = blocks->timeline->session;
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int got = store_query_open(store, &query, &cursor, err);

	while (got >= 0 && (got = store_next(cursor, &batch, err)) > 0) {
		uint32_t source = session->lanes.at[batch.lane].source;

		if (!is_block_by_block(session, source))
			continue;
		if (batch.kind == STORE_alloc)
			take_allocs(blocks, &batch, source);
		else
			take_marks(blocks, &batch, source);
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

static struct holder *holder_of(struct blocks *blocks, const struct held_event *event)
{
	uint64_t key = event->id * UINT64_C(0x9e3779b97f4a7c15) ^
		       ((uint64_t)event->source << 3 | event->kind);
	uint64_t *found = map_find(&blocks->index, key);
	struct holder *holder;

	if (found)
		return &blocks->holders.at[*found];
	map_put(&blocks->index, key, blocks->holders.count);
	holder = VEC_ADD(&blocks->holders);
	holder->id = event->id;
	holder->source = event->source;
	holder->kind = event->kind;
	return holder;
}

static void count_object(struct blocks *blocks, const struct holder *holder, uint32_t place,
			 bool held)
{
	struct object_fact *object = &blocks->memory[place].objects[holder->kind];

	object->live = object->live == FACT_UNKNOWN ? 0 : object->live;
	object->live += held - holder->held;
}

static void count_block(struct blocks *blocks, const struct holder *holder,
			const struct held_event *event)
{
	struct memory_fact *memory = &blocks->memory[event->place];
	bool obtained = event->bytes > 0;

	memory->alloc_count += obtained;
	memory->free_count += !obtained;
	/* An address that comes again was given back unseen. */
	if (holder->held)
		blocks->level[holder->place] -= holder->bytes;
	if (obtained)
		blocks->level[event->place] = capped_add(blocks->level[event->place], event->bytes);
	if (memory->peak_bytes == FACT_UNKNOWN || blocks->level[event->place] > memory->peak_bytes)
		memory->peak_bytes = blocks->level[event->place];
	*VEC_ADD(&blocks->levels[event->place].at) =
		(struct tl_level){ event->time, blocks->level[event->place] };
	blocks->levels[event->place].source = event->source;
}

static uint64_t context_key(uint32_t source, uint32_t context)
{
	return (uint64_t)source << 32 | context;
}

/* Into the list of its context, which what is given back leaves with all of it. */
static void list(struct blocks *blocks, struct holder *holder)
{
	uint64_t key = context_key(holder->source, (uint32_t)(holder->id >> 32));
	const uint64_t *first = map_find(&blocks->contexts, key);

	if (holder->listed)
		return;
	holder->listed = true;
	holder->next = first ? *first : 0;
	map_put(&blocks->contexts, key, (uint64_t)(holder - blocks->holders.at) + 1);
}

/* The program goes on: what was made in them is gone, too. */
static void clear_gone(struct blocks *blocks)
{
	for (size_t i = 0; i < blocks->gone.count; i++) {
		const struct gone *gone = &blocks->gone.at[i];
		uint64_t *first =
			map_find(&blocks->contexts, context_key(gone->source, gone->context));
		size_t at = first ? *first : 0;

		if (first)
			*first = 0;
		for (struct holder *holder; at; at = holder->next) {
			holder = &blocks->holders.at[at - 1];
			if (holder->held)
				count_object(blocks, holder, holder->place, false);
			holder->held = holder->listed = false;
		}
	}
	blocks->gone.count = 0;
}

static void take_event(struct blocks *blocks, const struct held_event *event)
{
	bool obtained = event->bytes > 0;
	struct holder *holder;

	if (event->context_gone) {
		*VEC_ADD(&blocks->gone) =
			(struct gone){ event->source, (uint32_t)(event->id >> 32) };
		return;
	}
	if (obtained && blocks->gone.count)
		clear_gone(blocks);
	holder = holder_of(blocks, event);
	if (event->kind == BLOCK)
		count_block(blocks, holder, event);
	else
		count_object(blocks, holder, event->place, obtained);
	if (event->kind != BLOCK && obtained)
		list(blocks, holder);
	holder->held = obtained;
	holder->time = event->time;
	holder->bytes = event->bytes;
	holder->place = event->place;
	holder->site = event->site;
}

/* Each process has its own steps and its own first one. */
static void find_own_steps(struct blocks *blocks)
{
	const struct step_facts *steps = &blocks->facts->steps;
	size_t sources = blocks->timeline->session->sources.count;

	blocks->own = mem_zero((sources + 1) * sizeof(*blocks->own));
	for (size_t i = 0; i < steps->step.count; i++) {
		struct own_steps *own;

		if (steps->step.at[i].source >= sources)
			continue;
		own = &blocks->own[steps->step.at[i].source];
		if (!own->count++)
			own->first = i;
	}
}

/* Enough to tell what comes again. */
static bool has_steps(const struct blocks *blocks, uint32_t source)
{
	return source < blocks->timeline->session->sources.count &&
	       blocks->own[source].count > (size_t)LEAK_SPREAD;
}

/* The step, or part of the device's span, in which a time lies, from 1 on; 0: none,
 * or the first step, which is like no other. */
static int64_t place_in_time(const struct blocks *blocks, uint32_t source, int64_t time)
{
	int64_t from = INT64_MAX, to = INT64_MIN;
	const struct timeline *timeline = blocks->timeline;

	if (has_steps(blocks, source))
		return step_at(&blocks->facts->steps, blocks->own[source].first, source, time);
	for (size_t i = 0; i < blocks->facts->devices.count; i++) {
		const struct device_fact *device = &blocks->facts->devices.at[i];
		struct judged judged = device_judged(device);
		int64_t start = judged.steady ? device->steady.start_ns
					      : device->window_start_ns + device->before_ns;
		int64_t end = device->window_start_ns + device->window_ns - device->after_ns;

		if (!device->has_timeline || !timeline->devices[i].count)
			continue;
		from = start < from ? start : from;
		to = end > to ? end : to;
	}
	if (time <= from || time > to || to <= from)
		return 0;
	return 1 + (int64_t)((double)(time - from) / ((double)(to - from) + 1) * PARTS);
}

struct left {
	uint32_t place, source;
	uint8_t kind;
	uint32_t site;
	int64_t bytes, when;
};

static int by_size(const void *a, const void *b)
{
	const struct left *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind > y->kind ? -1 : 1; /* blocks first */
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->when > y->when) - (x->when < y->when);
}

static void leak(struct blocks *blocks, const struct left *left, size_t count)
{
	struct memory_fact *memory = &blocks->memory[left->place];
	int64_t spread = 1;
	uint32_t site = left->site; /* of all of them */

	for (size_t i = 1; i < count; i++) {
		spread += left[i].when != left[i - 1].when;
		site = left[i].site == site ? site : 0;
	}
	if ((int64_t)count < LEAK_COUNT || spread < LEAK_SPREAD)
		return;
	if (left->kind != BLOCK) {
		memory->objects[left->kind].leaked = (int64_t)count;
		if (site)
			memory->objects[left->kind].site = arena_printf(
				&blocks->facts->arena, "%s", intern_get(blocks->sites, site, NULL));
	} else if (memory->leaks.count < LEAK_SIZES) {
		*VEC_ADD(&memory->leaks) = (struct leak_fact){ left->bytes, (int64_t)count, site };
	}
}

static void find_leaks(struct blocks *blocks)
{
	VEC(struct left) left = { 0 };

	for (size_t i = 0; i < blocks->holders.count; i++) {
		const struct holder *holder = &blocks->holders.at[i];
		int64_t when =
			holder->held ? place_in_time(blocks, holder->source, holder->time) : 0;

		if (when)
			*VEC_ADD(&left) = (struct left){ .place = holder->place,
							 .kind = holder->kind,
							 .site = holder->site,
							 .bytes = holder->bytes,
							 .when = when };
	}
	if (left.count)
		qsort(left.at, left.count, sizeof(*left.at), by_size);
	for (size_t i = 0; i < left.count;) {
		size_t n = 1;

		while (i + n < left.count && left.at[i + n].place == left.at[i].place &&
		       left.at[i + n].kind == left.at[i].kind &&
		       left.at[i + n].bytes == left.at[i].bytes)
			n++;
		leak(blocks, &left.at[i], n);
		i += n;
	}
	VEC_DONE(&left);
}

static int by_site(const void *a, const void *b)
{
	const struct left *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return (x->when > y->when) - (x->when < y->when);
}

static int by_bytes(const void *a, const void *b)
{
	const struct site_fact *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->site > y->site) - (x->site < y->site);
}

/* What one site holds at the end, and what of it steps but the first left. */
static struct site_fact site_of(const struct blocks *blocks, const struct left *left, size_t count)
{
	struct site_fact site = { .site = left->site, .growth_bytes_per_step = NAN };
	int64_t last = 0, spread = 0;
	double growth = 0;
	bool by_steps = false;

	for (size_t i = 0; i < count; i++) {
		site.count++;
		site.bytes = capped_add(site.bytes, left[i].bytes);
		if (left[i].when && has_steps(blocks, left[i].source)) {
			by_steps = true;
			growth += (double)left[i].bytes /
				  (double)(blocks->own[left[i].source].count - 1);
		}
		spread += left[i].when != last;
		last = left[i].when;
	}
	if (spread >= LEAK_SPREAD && by_steps)
		site.growth_bytes_per_step = growth;
	return site;
}

static void find_sites(struct blocks *blocks)
{
	VEC(struct left) left = { 0 };

	for (size_t i = 0; i < blocks->holders.count; i++) {
		const struct holder *holder = &blocks->holders.at[i];

		if (holder->held && holder->kind == BLOCK)
			*VEC_ADD(&left) =
				(struct left){ .place = holder->place,
					       .source = holder->source,
					       .site = holder->site,
					       .bytes = holder->bytes,
					       .when = place_in_time(blocks, holder->source,
								     holder->time) };
	}
	if (left.count)
		qsort(left.at, left.count, sizeof(*left.at), by_site);
	for (size_t i = 0; i < left.count;) {
		size_t n = 1;

		while (i + n < left.count && left.at[i + n].place == left.at[i].place &&
		       left.at[i + n].site == left.at[i].site)
			n++;
		*VEC_ADD(&blocks->memory[left.at[i].place].sites) = site_of(blocks, &left.at[i], n);
		i += n;
	}
	VEC_DONE(&left);
}

static bool has_objects(const struct memory_fact *memory)
{
	for (size_t i = 0; i < HELD_KINDS; i++) {
		if (memory->objects[i].live != FACT_UNKNOWN)
			return true;
	}
	return false;
}

int block_facts(struct timeline *timeline, struct store *store, struct facts *facts,
		struct err *err)
{
	struct blocks blocks = { .timeline = timeline, .facts = facts };
	uint32_t count = (uint32_t)timeline->session->devices.count;
	int ret;

	blocks.host = count;
	blocks.memory = mem_zero((count + 1) * sizeof(*blocks.memory));
	blocks.level = mem_zero((count + 1) * sizeof(*blocks.level));
	blocks.levels = mem_zero((count + 1) * sizeof(*blocks.levels));
	for (uint32_t i = 0; i <= count; i++)
		memory_unknown(&blocks.memory[i], i < count ? i : SESSION_NONE);
	blocks.sites = intern_new();
	ret = load(&blocks, store, err);
	if (blocks.events.count)
		qsort(blocks.events.at, blocks.events.count, sizeof(*blocks.events.at), by_time);
	for (size_t i = 0; i < blocks.events.count; i++)
		take_event(&blocks, &blocks.events.at[i]);
	find_own_steps(&blocks);
	find_leaks(&blocks);
	find_sites(&blocks);
	for (uint32_t i = 0; i <= count; i++) {
		struct memory_fact *memory = &blocks.memory[i];

		if (memory->peak_bytes != FACT_UNKNOWN)
			memory->live_bytes = blocks.level[i];
		memory->growth_bytes_per_step =
			step_growth(blocks.levels[i].at.at, blocks.levels[i].at.count,
				    &facts->steps, blocks.levels[i].source);
		memory->steps = steps_of(&facts->steps, blocks.levels[i].source);
		VEC_DONE(&blocks.levels[i].at);
		if (memory->sites.count)
			qsort(memory->sites.at, memory->sites.count, sizeof(*memory->sites.at),
			      by_bytes);
		if (!memory->alloc_count && !memory->free_count && !has_objects(memory))
			continue;
		if (!memory_was_recorded(timeline->session))
			memory->alloc_count = memory->free_count = FACT_UNKNOWN;
		*VEC_ADD(&facts->memory) = *memory;
	}
	VEC_DONE(&blocks.events);
	VEC_DONE(&blocks.holders);
	VEC_DONE(&blocks.gone);
	intern_free(blocks.sites);
	map_done(&blocks.index);
	map_done(&blocks.contexts);
	free(blocks.memory);
	free(blocks.level);
	free(blocks.levels);
	free(blocks.own);
	return ret;
}
