/*
 * waits.h - the waits of a profile while they are looked at: waits.c finds them and what was
 * launched, wait_looks.c what was seen meanwhile.
 */
#pragma once

#include "analyze/untimed.h"
#include "base/str.h"

/* A call that did not return, in which thread, since when. */
struct wait_open {
	uint32_t lane;
	int64_t since_ns;
};

struct waits {
	struct store *store;
	const struct timeline *timeline;
	struct facts *facts;
	VEC(int64_t) raw_ns;         /* since_ns of each as its source counts */
	VEC(struct wait_open) opens; /* all of them, also those that are left out */
	struct untimed_ops untimed;
	bool *launches;              /* by number of a call's name */
	enum capture_call *captures; /* the same */
};

/* Does the stream belong to what is waited for? */
static inline bool wait_is_for(const struct wait_fact *fact, const struct lane *lane)
{
	return lane->kind == LANE_STREAM && lane->source == fact->source &&
	       (fact->context < 0 || lane->context == fact->context) &&
	       (fact->stream < 0 || lane->stream == fact->stream);
}

/* A text that lasts as long as the facts. */
const char *wait_keep(struct facts *facts, struct str text);

/* When the last wait there began that returned well: what was launched before had ended. */
int wait_look_at_returns(struct waits *waits, struct err *err);
/* Where the thread was in the program. */
int wait_look_at_thread(struct waits *waits, size_t index, enum store_kind kind, struct err *err);
/* How busy the device was, and of which kernel its samples were. */
int wait_look_at_samples(struct waits *waits, struct err *err);
int wait_look_at_stalls(struct waits *waits, struct err *err);
