/*
 * nearest.h - the word that was probably meant.
 *
 *	struct nearest nearest = { .word = typed };
 *	for (...)
 *		nearest_try(&nearest, names[i]);
 *	if (nearest.best)
 *		... "did you mean '%s'?"
 *
 * Edits are counted as git does: a letter added, left out, changed, or two
 * neighbours swapped. A word is a candidate only if less than half of it was
 * edited, or if what was typed is its beginning.
 */
#pragma once

#include <stddef.h>

struct nearest {
	const char *word;
	const char *best; /* NULL: nothing is near; borrowed from nearest_try */
	size_t edits;
};

void nearest_try(struct nearest *nearest, const char *candidate);
