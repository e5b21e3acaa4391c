/*
 * repeat.h - the unit that a sequence of launches repeats.
 *
 * A training or inference loop launches nearly the same work again and again.
 * repeat_find looks for a mark (a kind of work, or two in a row) between whose
 * occurrences the same work lies, counted by kind; order within a unit is free,
 * and a launch more or less does no harm. It abstains rather than guess: what
 * it asks for, and where the thresholds come from, is in doc/analysis.md.
 *
 * Pure: no timeline, no session. Memory: 8 bytes a launch, and only where a unit
 * was found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* One launch. */
struct repeat_item {
	uint32_t what;   /* kind of work, below `whats` */
	uint32_t gap_ns; /* of the thread before it; UINT32_MAX: that or more */
};

/* Launches [first, end). */
struct repeat_unit {
	size_t first, end;
};

struct repeat {
	VEC(struct repeat_unit) units; /* whole ones, in order; they do not overlap */
	double score;                  /* 0..1: how alike they are */
};

/* Where launches come from: some of the middle are asked for first, all of them
 * only once a unit was found there. */
struct repeat_source {
	size_t count;
	/* Launches [first, first + count). */
	void (*get)(const struct repeat_source *source, size_t first, size_t count,
		    struct repeat_item *ret_items);
};

/* The units of the source's launches; false, and none, if nothing is repeated for
 * sure. Release with repeat_done in both cases. */
bool repeat_find(const struct repeat_source *source, uint32_t whats, struct repeat *ret_repeat);
void repeat_done(struct repeat *repeat);
