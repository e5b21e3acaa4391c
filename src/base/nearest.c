#include "base/nearest.h"

#include <string.h>

enum { WORD_MAX = 40 }; /* longer words are no typing errors */

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment distance; rows of the textbook table roll. */
static size_t edits_between(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b_len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *spare = before;

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t change = last[j - 1] + (a[i - 1] != b[j - 1]);

			row[j] = smaller(change, smaller(last[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = smaller(row[j], before[j - 2] + 1);
		}
		before = last;
		last = row;
		row = spare;
	}
	return last[b_len];
}

void nearest_try(struct nearest *nearest, const char *candidate)
{
	size_t word_len = strlen(nearest->word);
	size_t len = strlen(candidate);
	size_t edits;

	if (!word_len || !len || word_len > WORD_MAX || len > WORD_MAX)
		return;
	edits = edits_between(nearest->word, word_len, candidate, len);
	if (word_len >= 2 && !strncmp(nearest->word, candidate, word_len))
		edits = smaller(edits, 1);
	if (edits * 2 >= len || (nearest->best && edits >= nearest->edits))
		return;
	nearest->best = candidate;
	nearest->edits = edits;
}
