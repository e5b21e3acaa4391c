/*
 * intern.h - each text once, known by a number.
 *
 * Ids count up from 0 in the order of first sight, without holes; id 0 is the
 * empty text. Texts may hold any byte, NUL too; a NUL that the length does not
 * count follows each. Hashing is keyed at random for each table, so a hostile
 * file can't aim at it.
 *
 * Not thread safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/own.h"

struct intern;

struct intern *intern_new(void);
/* With room for so many texts. */
struct intern *intern_new_for(size_t texts);
void intern_free(struct intern *intern);
DEFINE_OWNED(intern, intern_free);

uint32_t intern_add(struct intern *intern, const char *at, size_t len);
uint32_t intern_text(struct intern *intern, const char *text);

/* In steps, for those who have something to do in between: ask for the text's
 * place (memory begins to come nearer), some 100 ns later for a text of the same
 * hash there, and at last add it with what the first returned. Another table than
 * the one asked is fine, only slower. */
uint64_t intern_ask(const struct intern *intern, const char *at, size_t len);
void intern_near(const struct intern *intern, uint64_t asked);
uint32_t intern_add_asked(struct intern *intern, const char *at, size_t len, uint64_t asked);

/* The text of an id, borrowed until intern_free; the empty text for an id that
 * was never given out. `ret_len` may be NULL. */
const char *intern_get(const struct intern *intern, uint32_t id, size_t *ret_len);

/* True and the id if the text is known. */
_Bool intern_find(const struct intern *intern, const char *at, size_t len, uint32_t *ret_id);

/* Texts known, the empty one counted. */
uint32_t intern_count(const struct intern *intern);
size_t intern_bytes(const struct intern *intern);
