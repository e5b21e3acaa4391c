/*
 * picture.h - the cards as they were last seen, for who looks at any time.
 *
 * A snapshot has what its round asked for. A picture adds what earlier rounds
 * said, where the new one did not ask: as long as that is young, and never
 * across a card's loss or a fresh start of its counters.
 */
#pragma once

#include "base/own.h"
#include "collect/board.h"

struct picture;

struct picture *picture_new(void);
void picture_free(struct picture *picture);
DEFINE_OWNED(picture, picture_free);

void picture_see(struct picture *picture, const struct snapshot *snapshot);
/* Until the next picture_see; NULL before the first. */
const struct snapshot *picture_snapshot(const struct picture *picture);
