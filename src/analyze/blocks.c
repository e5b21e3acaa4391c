/*
 * Blocks of memory by address, and streams, events and graphs, of processes whose
 * every allocation was recorded: how much was held, what is left at the end, and what was left
 * behind again and again.
 *
 * Nearly every program holds something when it ends, and the driver takes it
 * back: that is no leak. Blocks of one size that are obtained over and over
 * and never given back are. doc/analysis.md, "Memory".
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/held.h"

/* Once is a start, twice a coincidence. */
static const int64_t LEAK_COUNT = 3;
/* Without steps the device's span is cut into so many parts, and what is left
 * behind in each of them comes again and again. */
enum { PARTS = 3 };
static const int64_t LEAK_SPREAD = 3; /* different steps, or parts */
enum { LEAK_SIZES = 16 };             /* told of each device, by bytes */

/* What is held: by source and id. */
struct holder {
	int64_t time, bytes;
	uint64_t id;
	uint32_t place, source, site;
	int64_t context; /* -1 unknown */
	bool held;
	bool listed; /* in the list of this context */
	uint8_t kind;
};

/* Something that was obtained in a context. An address may be obtained in another one later,
 * and stays in the list of the first. */
struct member {
	size_t holder; /* place */
	size_t next;   /* of the same context: place in members + 1 */
};

/* A context that went. What was made in it went with it, unless the program ended
 * so: then it is what the program left to the end. */
struct gone {
	uint32_t source;
	int64_t context;
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
	struct held held;
	VEC(struct holder) holders;
	VEC(struct gone) gone; /* and nothing was made since */
	struct map index;      /* hash of source and id -> place in holders */
	VEC(struct member) members;
	struct map contexts;        /* source and context -> place in members + 1; 0 none */
	struct memory_fact *memory; /* by place */
	int64_t *level;             /* by place */
	struct levels *levels;      /* by place */
	struct own_steps *own;      /* by source */
};

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
	holder->context = -1;
	return holder;
}

static void count_object(struct blocks *blocks, const struct holder *holder, uint32_t place,
			 bool held)
{
	struct object_fact *object = &blocks->memory[place].objects[holder->kind];

	object->live = object->live == FACT_UNKNOWN ? 0 : object->live;
	object->live += held - holder->held;
}

static void put_level(struct blocks *blocks, uint32_t place, uint32_t source, int64_t time)
{
	*VEC_ADD(&blocks->levels[place].at) = (struct tl_level){ time, blocks->level[place] };
	blocks->levels[place].source = source;
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
	put_level(blocks, event->place, event->source, event->time);
}

static uint64_t context_key(uint32_t source, int64_t context)
{
	return (uint64_t)source << 32 | (uint32_t)context;
}

/* Into the list of its context, which what is given back leaves with all of it. */
static void list(struct blocks *blocks, struct holder *holder, int64_t context)
{
	uint64_t key = context_key(holder->source, context);
	const uint64_t *first = map_find(&blocks->contexts, key);
	struct member *member;

	if (holder->context != context)
		holder->listed = false;
	holder->context = context;
	if (holder->listed || context < 0)
		return;
	holder->listed = true;
	member = VEC_ADD(&blocks->members);
	member->holder = (size_t)(holder - blocks->holders.at);
	member->next = first ? *first : 0;
	map_put(&blocks->contexts, key, (uint64_t)(member - blocks->members.at) + 1);
}

static void lose(struct blocks *blocks, struct holder *holder, int64_t now)
{
	if (holder->held && holder->kind == HELD_BLOCK) {
		blocks->level[holder->place] -= holder->bytes;
		put_level(blocks, holder->place, holder->source, now);
	} else if (holder->held) {
		count_object(blocks, holder, holder->place, false);
	}
	holder->held = holder->listed = false;
}

/* The program goes on: what was made in them is gone, too. */
static void clear_gone(struct blocks *blocks, int64_t now)
{
	for (size_t i = 0; i < blocks->gone.count; i++) {
		const struct gone *gone = &blocks->gone.at[i];
		uint64_t *first =
			map_find(&blocks->contexts, context_key(gone->source, gone->context));

		for (size_t at = first ? *first : 0; at;) {
			const struct member *member = &blocks->members.at[at - 1];
			struct holder *holder = &blocks->holders.at[member->holder];

			at = member->next;
			if (holder->context == gone->context)
				lose(blocks, holder, now);
		}
		if (first)
			*first = 0;
	}
	blocks->gone.count = 0;
}

static void take_event(struct blocks *blocks, const struct held_event *event)
{
	bool obtained = event->bytes > 0;
	struct holder *holder;

	if (event->context_gone) {
		*VEC_ADD(&blocks->gone) = (struct gone){ event->source, event->context };
		return;
	}
	if (obtained && blocks->gone.count)
		clear_gone(blocks, event->time);
	holder = holder_of(blocks, event);
	if (event->kind == HELD_BLOCK)
		count_block(blocks, holder, event);
	else
		count_object(blocks, holder, event->place, obtained);
	if (obtained)
		list(blocks, holder, event->context);
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
	if (left->kind != HELD_BLOCK) {
		memory->objects[left->kind].leaked = (int64_t)count;
		if (site)
			memory->objects[left->kind].site =
				arena_printf(&blocks->facts->arena, "%s",
					     intern_get(blocks->held.sites, site, NULL));
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

		if (holder->held && holder->kind == HELD_BLOCK)
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

	blocks.memory = mem_zero((count + 1) * sizeof(*blocks.memory));
	blocks.level = mem_zero((count + 1) * sizeof(*blocks.level));
	blocks.levels = mem_zero((count + 1) * sizeof(*blocks.levels));
	for (uint32_t i = 0; i <= count; i++)
		memory_unknown(&blocks.memory[i], i < count ? i : SESSION_NONE);
	ret = held_load(timeline, store, &blocks.held, err);
	for (size_t i = 0; i < blocks.held.events.count; i++)
		take_event(&blocks, &blocks.held.events.at[i]);
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
	held_done(&blocks.held);
	VEC_DONE(&blocks.holders);
	VEC_DONE(&blocks.gone);
	VEC_DONE(&blocks.members);
	map_done(&blocks.index);
	map_done(&blocks.contexts);
	free(blocks.memory);
	free(blocks.level);
	free(blocks.levels);
	free(blocks.own);
	return ret;
}
