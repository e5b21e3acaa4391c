/*
 * held.h - what programs obtained and gave back, in order of time: blocks of memory by address,
 * streams, events and graphs by number, and contexts that ended, with all that was made in
 * them. Only of processes whose every allocation was recorded.
 */
#pragma once

#include "analyze/timeline.h"
#include "base/intern.h"

/* Beside the kinds of objects. */
enum { HELD_BLOCK = HELD_KINDS };

struct held_event {
	int64_t time;
	uint64_t id;    /* address, or context << 32 | number */
	int64_t bytes;  /* 0 and less: given back */
	uint32_t place; /* device; devices.count + 1: host; of what has no size 0 */
	uint32_t source;
	uint32_t site;     /* of a block: string; else in held.sites */
	int64_t context;   /* that it goes with; -1 unknown */
	uint8_t kind;      /* HELD_* */
	bool context_gone; /* with all that was made in it */
};

struct held {
	VEC(struct held_event) events;
	struct intern *sites; /* of objects: where in the program they were made */
};

/* Empty before; release with held_done, whatever comes back. */
int held_load(struct timeline *timeline, struct store *store, struct held *held, struct err *err);
void held_done(struct held *held);
