/*
 * spool_objects.c - what a process makes and has to destroy itself: streams, events,
 * graphs. Each making and each end is a mark, whose detail says which and where.
 *
 * Streams have numbers, events and graphs handles: addresses, which the driver uses
 * again. Here a handle stands for a place in `objects` as long as its object lives,
 * and the place is what the marks say.
 */
#include "collect/spool_process.h"
#include "model/note.h"

#include <string.h>

/* Alive at a time: more are not told of. */
enum { OBJECTS_MAX = 1 << 16, DEAD_HANDLES = 1 << 10 };

static int put(struct spooled *p, const struct segment_slot *slot, enum mark_kind kind,
	       const char *name, const char *word, uint64_t number)
{
	struct mark mark = { .kind = kind, .time_ns = (int64_t)slot->time_ns };
	struct session *session = p->sink->session;
	uint32_t site = spooled_site(p, slot->a);

	mark.lane = spooled_other(p, "streams");
	mark.name = intern_text(session->strings, name);
	mark.detail = spooled_detail(p, "context=%u;%s=%llu%s%s", slot->x[0], word,
				     (unsigned long long)number, site ? ";site=" : "",
				     site ? session_text(session, site) : "");
	return sink_mark(p->sink, &mark, p->err);
}

/* Which device the context is on may not be known yet: the analyses find it. */
int spooled_stream_slot(struct spooled *p, const struct segment_slot *slot)
{
	uint64_t handle;

	memcpy(&handle, &slot->x[3], sizeof(handle));
	if (slot->x[1]) {
		if (slot->x[2] != UINT32_MAX)
			map_put(&p->devices, slot->x[0], slot->x[2]);
		spooled_know_stream(p, slot->x[0], handle, (uint32_t)slot->value);
	}
	return slot->x[1]
		       ? put(p, slot, MARK_STREAM_MADE, "stream created", "stream", slot->value)
		       : put(p, slot, MARK_STREAM_GONE, "stream destroyed", "stream", slot->value);
}

int spooled_module_slot(struct spooled *p, const struct segment_slot *slot)
{
	struct mark mark = { .kind = MARK_MODULE, .time_ns = (int64_t)slot->time_ns };

	mark.lane = spooled_other(p, "modules");
	mark.name = intern_text(p->sink->session->strings,
				slot->x[2] ? "module loaded" : "module unloaded");
	mark.detail = spooled_detail(p, "context=%u;module=%u;bytes=%u;crc=0x%llx", slot->x[1],
				     slot->x[0], slot->x[3], (unsigned long long)slot->value);
	return sink_mark(p->sink, &mark, p->err);
}

static uint64_t key_of(uint64_t handle, uint32_t kind)
{
	return handle * OBJECT_KINDS + kind;
}

/* Its place, or a place for it; -1: there is no room. */
static int64_t place_for(struct spooled *p)
{
	if (p->free_object) {
		int64_t place = (int64_t)p->free_object - 1;

		p->free_object = p->objects.at[place].next_free;
		return place;
	}
	if (p->objects.count == OBJECTS_MAX) {
		if (!p->objects_full)
			session_note(p->sink->session, p->source, NOTE_OBJECTS_FULL, p->pid,
				     OBJECTS_MAX);
		p->objects_full = true;
		return -1;
	}
	(void)VEC_ADD(&p->objects);
	return (int64_t)p->objects.count - 1;
}

/* A handle that is no more stays in the map, for 0. A long run would fill it with
 * them: now and then it is made anew of those that live. */
static void forget_dead(struct spooled *p)
{
	if (p->handles.count < DEAD_HANDLES + 2 * p->objects.count)
		return;
	map_done(&p->handles);
	for (size_t i = 0; i < p->objects.count; i++) {
		const struct spooled_object *object = &p->objects.at[i];

		if (object->live)
			map_put(&p->handles, key_of(object->handle, object->kind), i + 1);
	}
}

static void forget(struct spooled *p, size_t place)
{
	struct spooled_object *object = &p->objects.at[place];

	map_put(&p->handles, key_of(object->handle, object->kind), 0);
	*object = (struct spooled_object){ .next_free = p->free_object };
	p->free_object = (uint32_t)place + 1;
	forget_dead(p);
}

int spooled_object_slot(struct spooled *p, const struct segment_slot *slot)
{
	static const char *const words[] = { "event", "graph", "graph_exec" };
	static const char *const made[] = { "event created", "graph created",
					    "graph instantiated" };
	static const char *const gone[] = { "event destroyed", "graph destroyed",
					    "executable graph destroyed" };
	uint32_t kind = slot->x[1];
	uint64_t *found;
	int64_t place;

	if (kind >= OBJECT_KINDS) {
		session_loss(p->sink->session, p->source, LOSS_malformed, 1);
		return 0;
	}
	found = map_find(&p->handles, key_of(slot->value, kind));
	if (!slot->x[2]) {
		struct segment_slot copy = *slot;

		if (!found || !*found)
			return 0; /* made before the recording; or told by the outer call */
		place = (int64_t)*found - 1;
		copy.x[0] = p->objects.at[place].context;
		forget(p, (size_t)place);
		return put(p, &copy, MARK_OBJECT_GONE, gone[kind], words[kind], (uint64_t)place);
	}
	if (found && *found)
		return 0; /* the driver's call inside the runtime's told already */
	place = place_for(p);
	if (place < 0)
		return 0;
	p->objects.at[place] = (struct spooled_object){ slot->value, slot->x[0], kind, true, 0 };
	map_put(&p->handles, key_of(slot->value, kind), (uint64_t)place + 1);
	return put(p, slot, MARK_OBJECT_MADE, made[kind], words[kind], (uint64_t)place);
}

int spooled_context_gone(struct spooled *p, const struct segment_slot *slot)
{
	struct segment_slot copy = *slot;

	copy.x[0] = (uint32_t)slot->value;
	for (size_t i = 0; i < p->objects.count; i++) {
		if (p->objects.at[i].live && p->objects.at[i].context == copy.x[0])
			forget(p, i);
	}
	return put(p, &copy, MARK_CONTEXT_GONE, "context destroyed", "context", slot->value);
}
