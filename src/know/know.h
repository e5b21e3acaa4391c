/*
 * know.h - what is known of Xid numbers, metrics, stall reasons, concepts,
 * symptoms, error texts and widespread misreadings.
 *
 * The tables are data/NAME.csv, compiled in; every entry names its source.
 * Read only and thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct know_table;

/* One row of a table. */
struct know_entry {
	const char *kind;  /* "xid", "metric", "concept", ... */
	const char *title; /* "Xid", "Metric", ...: marked N_ */
	const char *name;  /* "79", "occupancy" */
	const struct know_table *table;
	size_t row;
};

enum { KNOW_HITS_MAX = 8 };

struct know_hits {
	struct know_entry at[KNOW_HITS_MAX]; /* best first */
	size_t count;
	bool exact; /* by number or name; else by the words of a text */
};

/*
 * What `text` is about: a number ("79", "SXid 20034"), a name or alias, or a
 * pasted line or description, of which the words count. In this order: the
 * first way that finds something wins. ERR_MISSING, with near names, if none
 * does.
 */
int know_find(const char *text, struct know_hits *ret_hits, struct err *err);

/* Field `i` of an entry: false past the end. The label is the column's name
 * with blanks; columns that only serve to find the entry are not shown, nor
 * are empty ones (*ret_value is NULL). */
bool know_field(const struct know_entry *entry, size_t i, const char **ret_column,
		const char **ret_value);

/* Every entry, in order of the tables: false past the end. */
bool know_at(size_t i, struct know_entry *ret_entry);

/* The entry `name` of a kind, letter for letter; false: there is none. */
bool know_get(const char *kind, const char *name, struct know_entry *ret_entry);
/* The text of a column of it; "" where the table has no such column. */
const char *know_cell(const struct know_entry *entry, const char *column);
