/*
 * watch.h - what in the values of a card is a reason to save a flight record.
 *
 * A watch looks at each snapshot and says when something strikes: once for each
 * strike, not again while it lasts. What the kernel log says comes from
 * elsewhere in the same shape (struct trigger).
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/own.h"
#include "collect/board.h"
#include "model/note.h"

/* X(id, word, what). The word stands in file names. */
#define TRIGGER_LIST(X)                      \
	X(XID, "xid", NOTE_FAULT_TOLD)       \
	X(LOST, "lost", NOTE_CARD_LOST)      \
	X(THERMAL, "thermal", NOTE_CARD_HOT) \
	X(CLOCK, "clock", NOTE_CLOCK_FELL)   \
	X(OOM, "oom", NOTE_HOST_OOM)

enum trigger_kind {
#define X(id, word, what) TRIGGER_##id,
	TRIGGER_LIST(X)
#undef X
		TRIGGER_COUNT
};

struct trigger {
	enum trigger_kind kind;
	int64_t utc_ns;
	char pci_bus[20]; /* "" unknown */
	char text[256];   /* "GPU 3: SM clock 345 MHz, 1980 MHz before" */
};

const char *trigger_word(enum trigger_kind kind);
const char *trigger_what(enum trigger_kind kind); /* marked N_ */

struct watch;

struct watch *watch_new(void);
void watch_free(struct watch *watch);
DEFINE_OWNED(watch, watch_free);

/* The first thing that strikes in this snapshot; false: nothing. */
bool watch_see(struct watch *watch, const struct snapshot *snapshot, struct trigger *ret);
