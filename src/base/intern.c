#include "base/intern.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"

/*
 * Open addressing over slots of low half of the hash, id + 1, and the text. The
 * texts lie in an arena, each behind its length, so growing moves slots and
 * never touches texts, and a text that is known costs two cache lines: its slot's
 * and its own. A slot's 32 hash bits settle nearly every comparison.
 */
struct slot {
	uint32_t hash;
	uint32_t id_plus_1;
	const struct text *text;
};

struct text {
	size_t len;
	char at[];
};

struct intern {
	struct slot *slots;
	size_t mask;
	uint64_t seed;
	struct arena arena;
	VEC(const struct text *) texts;
};

static const size_t FIRST_SLOTS = 1024;

/* Written, not calloc'd: a page that is looked at before it is written is mapped
 * twice, and the second time every other thread of the process is interrupted. */
static struct slot *slots_new(size_t count)
{
	struct slot *slots = mem_alloc(count * sizeof(*slots));

	memset(slots, 0, count * sizeof(*slots));
	return slots;
}

struct intern *intern_new(void)
{
	return intern_new_for(0);
}

struct intern *intern_new_for(size_t texts)
{
	struct intern *intern = mem_zero(sizeof(*intern));
	size_t slots = FIRST_SLOTS;

	while (slots / 2 <= texts)
		slots *= 2;
	intern->slots = slots_new(slots);
	intern->mask = slots - 1;
	intern->seed = hash_seed();
	(void)intern_add(intern, "", 0);
	return intern;
}

void intern_free(struct intern *intern)
{
	if (!intern)
		return;
	free(intern->slots);
	arena_done(&intern->arena);
	VEC_DONE(&intern->texts);
	free(intern);
}

/* The slot that holds the text, or the empty one where it belongs. */
static struct slot *seek(const struct intern *intern, const char *at, size_t len, uint64_t hash)
{
	for (size_t i = (uint32_t)hash & intern->mask;; i = (i + 1) & intern->mask) {
		struct slot *slot = &intern->slots[i];

		if (!slot->id_plus_1)
			return slot;
		if (slot->hash == (uint32_t)hash && slot->text->len == len &&
		    (!len || !memcmp(slot->text->at, at, len)))
			return slot;
	}
}

static void grow(struct intern *intern)
{
	struct slot *old = intern->slots;
	size_t count = intern->mask + 1;

	intern->slots = slots_new(count * 2);
	intern->mask = count * 2 - 1;
	for (size_t from = 0; from < count; from++) {
		size_t i = old[from].hash & intern->mask;

		if (!old[from].id_plus_1)
			continue;
		while (intern->slots[i].id_plus_1)
			i = (i + 1) & intern->mask;
		intern->slots[i] = old[from];
	}
	free(old);
}

uint64_t intern_ask(const struct intern *intern, const char *at, size_t len)
{
	uint64_t hash = hash_bytes(at, len, intern->seed);

	__builtin_prefetch(&intern->slots[(uint32_t)hash & intern->mask], 1);
	return hash;
}

void intern_near(const struct intern *intern, uint64_t asked)
{
	const struct slot *slot = &intern->slots[(uint32_t)asked & intern->mask];

	if (slot->hash == (uint32_t)asked && slot->id_plus_1)
		__builtin_prefetch(slot->text);
}

uint32_t intern_add_asked(struct intern *intern, const char *at, size_t len, uint64_t asked)
{
	struct slot *slot = seek(intern, at, len, asked);
	struct text *text;

	if (slot->id_plus_1)
		return slot->id_plus_1 - 1;
	if (intern->texts.count * 2 > intern->mask) {
		grow(intern);
		slot = seek(intern, at, len, asked);
	}
	text = arena_alloc(&intern->arena, sizeof(*text) + len + 1);
	text->len = len;
	if (len)
		memcpy(text->at, at, len);
	text->at[len] = 0;
	*VEC_ADD(&intern->texts) = text;
	slot->hash = (uint32_t)asked;
	slot->id_plus_1 = (uint32_t)intern->texts.count;
	slot->text = text;
	return slot->id_plus_1 - 1;
}

uint32_t intern_add(struct intern *intern, const char *at, size_t len)
{
	return intern_add_asked(intern, at, len, hash_bytes(at, len, intern->seed));
}

uint32_t intern_text(struct intern *intern, const char *text)
{
	return intern_add(intern, text, strlen(text));
}

const char *intern_get(const struct intern *intern, uint32_t id, size_t *ret_len)
{
	if (id >= intern->texts.count)
		id = 0;
	if (ret_len)
		*ret_len = intern->texts.at[id]->len;
	return intern->texts.at[id]->at;
}

_Bool intern_find(const struct intern *intern, const char *at, size_t len, uint32_t *ret_id)
{
	const struct slot *slot = seek(intern, at, len, hash_bytes(at, len, intern->seed));

	if (!slot->id_plus_1)
		return 0;
	*ret_id = slot->id_plus_1 - 1;
	return 1;
}

uint32_t intern_count(const struct intern *intern)
{
	return (uint32_t)intern->texts.count;
}

size_t intern_bytes(const struct intern *intern)
{
	return intern->arena.used_bytes;
}
