/*
 * table.h - the tables that tools/csv2c makes of data/NAME.csv.
 *
 * Private to know/. To add a kind of knowledge: data/x.csv with a `source`
 * column, a line in KNOW_LIST of know.c.
 */
#pragma once

#include <stddef.h>

struct know_table {
	const char *const *columns;
	size_t column_count;
	const char *const *cells; /* row by row */
	size_t row_count;
};
