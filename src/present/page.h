/*
 * page.h - a page for a terminal: headings, wrapped text, tables, quiet colour.
 *
 * Private to present/. Widths are terminal cells (a CJK character takes two).
 * Every text is cleaned on its way in: control characters, which could drive
 * the terminal, and bytes that are no UTF-8 become '?', and so does what is
 * beyond ASCII on a page without UTF-8. Formatted texts live in the page's
 * arena. Columns of a table in which no row has a value are not shown; a cell
 * without value is a dash.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/facts.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"
#include "present/present.h"
#include "rules/rule.h"

/* Colour has a meaning: what works, what copies, what waits, what hurts. */
enum ink { INK_PLAIN, INK_BOLD, INK_DIM, INK_WORK, INK_COPY, INK_WAIT, INK_BLOCK, INK_BAD };

struct page {
	struct buf *out;
	struct arena arena;
	int columns;
	bool colour;
	bool utf8;
	int top;
	int layers;
};

/* Are sections of this layer wanted? */
bool page_has(const struct page *page, enum layer layer);

const char *page_printf(struct page *page, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A text fit to show, as above; the text itself where nothing is to be done. */
const char *page_clean(struct page *page, const char *text);
/* At most `width` cells: the middle gives way to an ellipsis. */
const char *page_shorten(struct page *page, const char *text, int width);
/* A name of C++ or of a framework in `width` cells: see short_name.h. */
const char *page_name(struct page *page, const char *name, int width);

void page_blank(struct page *page);
/* A title with something at the right edge, which may be NULL. */
void page_heading(struct page *page, const char *title, const char *aside);
void page_ink(struct page *page, enum ink ink, const char *text);
void page_repeat(struct page *page, enum ink ink, const char *cell, int count);
/* `text` and blanks up to `width` cells. */
void page_pad(struct page *page, enum ink ink, const char *text, int width);
/* `first` at the left, then `text` wrapped, its lines `indent` cells in. */
void page_wrap(struct page *page, enum ink first_ink, const char *first, int indent, enum ink ink,
	       const char *text);

/* `text` wrapped from where the line stands, `indent` cells in; so that what is
 * at the left can have several inks. */
void page_flow(struct page *page, int indent, enum ink ink, const char *text);

struct column {
	const char *heading; /* marked N_ */
	bool right;
	bool name; /* takes what room is left, names are shortened into it */
	int spare; /* above 0: dropped if there is no room, the highest first */
};

struct table {
	const struct column *columns;
	size_t column_count;
	VEC(const char *) cells; /* row by row; NULL: a dash */
};

void table_cell(struct table *table, const char *text);
/* Prints, `indent` cells in, and empties it. */
void table_print(struct page *page, struct table *table, int indent);

/* Cells; NULL (a dash) for what is unknown. */
const char *cell_ns(struct page *page, int64_t ns);
const char *cell_bytes(struct page *page, double bytes);
const char *cell_count(struct page *page, int64_t count);
const char *cell_share(struct page *page, double share);
const char *cell_of(struct page *page, int64_t part, int64_t whole);
/* A value with its unit as metric.h and evidence name units. */
const char *cell_value(struct page *page, double value, const char *unit);
