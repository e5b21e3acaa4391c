/*
 * texts.c - names in the segment: written once, referred to by offset.
 *
 * The table segment->names finds a text again, by the pointer that CUPTI puts
 * into its records or by a hash of the content (highest bit set, which no
 * user-space pointer has). Entries are only added; lookups give up after
 * NAME_PROBES steps, and then the text is written again.
 */
#include "inject/inject.h"

#include <string.h>

#define CONTENT ((uint64_t)1 << 63)

static struct segment_text *text_at(struct segment *segment, uint32_t id)
{
	return (struct segment_text *)(void *)((char *)segment + segment->texts_at + id);
}

/* [hot] */
uint32_t text_add(struct segment *segment, const char *at, size_t len)
{
	size_t need;
	uint64_t offset;
	struct segment_text *text;

	if (len >= TEXT_MAX)
		len = TEXT_MAX - 1;
	need = (sizeof(*text) + len + 1 + 3) & ~(size_t)3;
	offset = atomic_load_explicit(&segment->texts_used, memory_order_relaxed);
	do {
		if (offset + need > segment->texts_bytes) {
			atomic_fetch_add_explicit(&segment->counts.texts_dropped, 1,
						  memory_order_relaxed);
			return 0;
		}
	} while (!atomic_compare_exchange_weak(&segment->texts_used, &offset, offset + need));
	text = text_at(segment, (uint32_t)offset);
	memcpy(text->at, at, len);
	text->at[len] = 0;
	atomic_store_explicit(&text->len, (uint32_t)len, memory_order_release);
	return (uint32_t)offset;
}

static bool text_is(struct segment *segment, uint32_t id, const char *at, size_t len)
{
	struct segment_text *text = text_at(segment, id);

	return text->len == len && !memcmp(text->at, at, len);
}

/* The entry for `key`, made if need be; NULL: the neighbourhood is full. */
static struct segment_name *entry_of(struct segment *segment, uint64_t key)
{
	uint32_t at = segment_name_at(key);

	for (uint32_t i = 0; i < NAME_PROBES; i++) {
		struct segment_name *entry = &segment->names[(at + i) % SEGMENT_NAMES];
		uint64_t found = atomic_load_explicit(&entry->pointer, memory_order_acquire);

		if (!found && atomic_compare_exchange_strong(&entry->pointer, &found, key))
			return entry;
		if (found == key)
			return entry;
	}
	return NULL;
}

static uint32_t text_for(struct segment *segment, uint64_t key, const char *at, size_t len)
{
	struct segment_name *entry = entry_of(segment, key);
	uint32_t text = entry ? atomic_load_explicit(&entry->text, memory_order_acquire) : 0;

	if (text && text_is(segment, text, at, len))
		return text;
	text = key & CONTENT ? text_add(segment, at, len) : text_intern(segment, at, len);
	if (entry && text)
		atomic_store_explicit(&entry->text, text, memory_order_release);
	return text;
}

/* [hot] */
uint32_t text_intern(struct segment *segment, const char *at, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	if (len >= TEXT_MAX)
		len = TEXT_MAX - 1;
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)at[i]) * 0x100000001b3ull;
	return text_for(segment, hash | CONTENT, at, len);
}

/* [hot] The content is compared: a module that went can leave its address to
 * another name. */
uint32_t text_of_pointer(struct segment *segment, const char *pointer)
{
	if (!pointer || (uintptr_t)pointer & CONTENT)
		return 0;
	return text_for(segment, (uintptr_t)pointer, pointer, strnlen(pointer, TEXT_MAX - 1));
}
