/*
 * stack_look.h - where a thread was when somebody looked, as a range of its lane.
 *
 * A look holds up to the next one: begin it, write what was seen to `leaf` (the
 * function that names the range) and `chain` (behind "stack="), and put it once it is known
 * how long it lasted. All-zero but for sink, lane and kind is one that saw nothing.
 *
 * Not thread safe.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/sink.h"

struct stack_look {
	struct sink *sink; /* borrowed */
	uint32_t lane;
	enum range_kind kind;
	int64_t seen_ns;
	struct buf leaf, chain; /* no leaf: nothing seen, or put */
};

void stack_look_begin(struct stack_look *look, int64_t seen_ns);
/* Into the sink, if anything was seen, up to `until_ns`. Fails as the sink does. */
int stack_look_put(struct stack_look *look, int64_t until_ns, struct err *err);
void stack_look_done(struct stack_look *look);
