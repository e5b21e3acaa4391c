/*
 * nvtx_schema.c - which part of a payload is the name of its event.
 *
 * Of what a schema says only that is kept, in a table that is never full for long: a
 * program registers a few, once. Who finds no room has events without names.
 */
#include "inject/nvtx.h"

#include <stdatomic.h>
#include <string.h>

enum { SCHEMAS = 256 };

static const uint64_t DYNAMIC_FIRST = UINT64_C(1) << 32;

/* `ready` is set last, as others look while a schema is registered. */
static struct message_place {
	_Atomic bool taken, ready;
	uint64_t key, offset, length;
	bool handle;
} places[SCHEMAS];

static _Atomic uint64_t ids;

static uint64_t next_id(void)
{
	return DYNAMIC_FIRST + atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed);
}

/* A static id is one of its domain, and below the dynamic ones, which are all different. */
static uint64_t key_of(const void *domain, uint64_t id)
{
	return id >= DYNAMIC_FIRST ? id : (uint64_t)(uint32_t)(uintptr_t)domain << 32 | id;
}

/* Where it is known without what stands before it: first, or at an offset. */
static bool is_message(const struct nvtx_schema_entry *entry, size_t index)
{
	return entry->flags & NVTX_ENTRY_MESSAGE && !(entry->flags & NVTX_ENTRY_PLAIN) &&
	       (!index || entry->offset) &&
	       (entry->type == NVTX_ENTRY_CSTRING || entry->type == NVTX_ENTRY_UTF8 ||
		entry->type == NVTX_ENTRY_HANDLE);
}

static void keep(uint64_t key, const struct nvtx_schema_entry *entry)
{
	for (size_t i = 0; i < SCHEMAS; i++) {
		if (atomic_exchange(&places[i].taken, true))
			continue;
		places[i].key = key;
		places[i].offset = entry->offset;
		places[i].handle = entry->type == NVTX_ENTRY_HANDLE;
		places[i].length = places[i].handle ? 0 : entry->detail;
		atomic_store(&places[i].ready, true);
		return;
	}
}

uint64_t nvtx_schema_register(const void *domain, const struct nvtx_schema *schema)
{
	uint64_t id = schema && schema->fields & NVTX_SCHEMA_ID ? schema->id : next_id();
	const uint64_t listed = NVTX_SCHEMA_ENTRIES | NVTX_SCHEMA_COUNT;

	if (!schema || (schema->fields & listed) != listed || !schema->entries)
		return id;
	for (size_t i = 0; i < schema->count; i++) {
		if (is_message(&schema->entries[i], i)) {
			keep(key_of(domain, id), &schema->entries[i]);
			break;
		}
	}
	return id;
}

uint64_t nvtx_enum_register(const struct nvtx_enum *from)
{
	return from && from->fields & NVTX_ENUM_ID ? from->id : next_id();
}

static const struct message_place *find(uint64_t key)
{
	for (size_t i = 0; i < SCHEMAS && atomic_load(&places[i].taken); i++) {
		if (atomic_load(&places[i].ready) && places[i].key == key)
			return &places[i];
	}
	return NULL;
}

/* The payload is the program's, and as long as it says. */
static bool read_message(const struct message_place *place, const struct nvtx_payload *payload,
			 struct nvtx_message_room *room)
{
	const char *at = (const char *)payload->at + place->offset, *text;
	size_t bytes = place->length ? place->length : sizeof(void *);

	if (place->offset > payload->bytes || payload->bytes - place->offset < bytes)
		return false;
	if (!place->length) {
		memcpy(&text, at, sizeof(text));
		room->event.message.ascii = text;
		room->event.message_type = place->handle ? MESSAGE_REGISTERED : MESSAGE_CHAR;
		return text;
	}
	if (bytes > sizeof(room->text) - 1)
		bytes = sizeof(room->text) - 1;
	bytes = strnlen(at, bytes);
	memcpy(room->text, at, bytes);
	room->text[bytes] = '\0';
	room->event.message.ascii = room->text;
	room->event.message_type = MESSAGE_CHAR;
	return true;
}

const struct nvtx_event *nvtx_message(const void *domain, const struct nvtx_payload *at,
				      size_t count, struct nvtx_message_room *room)
{
	room->event = (struct nvtx_event){ .size = sizeof(room->event) };
	for (size_t i = 0; at && i < count; i++) {
		const struct message_place *place =
			at[i].at ? find(key_of(domain, at[i].schema)) : NULL;

		if (place && read_message(place, &at[i], room))
			return &room->event;
	}
	return NULL;
}
