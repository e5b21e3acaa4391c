#include "present/page.h"

#include <math.h>
#include <string.h>

#include "base/i18n.h"
#include "base/units.h"

enum { COLUMNS_MAX = 12, NAME_WIDTH_MIN = 28, GAP = 2 };

void table_cell(struct table *table, const char *text)
{
	*VEC_ADD(&table->cells) = text;
}

/* Widths of the columns, 0 for those in which nobody has a value. */
static void measure(struct page *page, const struct table *table, int *width)
{
	size_t columns = table->column_count;

	for (size_t c = 0; c < columns; c++) {
		bool any = false;

		width[c] = present_width(page_clean(page, _(table->columns[c].heading)));
		for (size_t i = c; i < table->cells.count; i += columns) {
			const char *text = table->cells.at[i];
			int cells = text ? present_width(page_clean(page, text)) : 1;

			any = any || text;
			width[c] = cells > width[c] ? cells : width[c];
		}
		if (!any)
			width[c] = 0;
	}
}

static int total(const struct table *table, const int *width)
{
	int sum = -GAP;

	for (size_t c = 0; c < table->column_count; c++)
		sum += width[c] ? width[c] + GAP : 0;
	return sum;
}

/* Make it fit into `room` cells: names give way down to NAME_WIDTH_MIN, then
 * the spare columns go, then names give way further. */
static void fit(const struct table *table, int *width, int room)
{
	size_t name = table->column_count;

	for (size_t c = 0; c < table->column_count; c++) {
		if (table->columns[c].name && width[c])
			name = c;
	}
	for (;;) {
		size_t drop = table->column_count;
		int over = total(table, width) - room;
		int give = name < table->column_count ? width[name] - NAME_WIDTH_MIN : 0;

		if (over <= (give > 0 ? give : 0))
			break;
		for (size_t c = 0; c < table->column_count; c++) {
			if (width[c] && table->columns[c].spare &&
			    (drop == table->column_count ||
			     table->columns[c].spare > table->columns[drop].spare))
				drop = c;
		}
		if (drop == table->column_count)
			break;
		width[drop] = 0;
	}
	if (name < table->column_count && total(table, width) > room) {
		width[name] -= total(table, width) - room;
		if (width[name] < 4)
			width[name] = 4;
	}
}

static void print_row(struct page *page, const struct table *table, const int *width, int indent,
		      const char *const *cells, enum ink ink)
{
	struct buf line = { 0 };

	for (int i = 0; i < indent; i++)
		buf_char(&line, ' ');
	for (size_t c = 0, shown = 0; c < table->column_count; c++) {
		const char *text = cells ? cells[c] : _(table->columns[c].heading);
		int blanks;

		if (!width[c])
			continue;
		for (int i = 0; shown && i < GAP; i++)
			buf_char(&line, ' ');
		shown++;
		text = page_clean(page, text ? text : "-");
		if (table->columns[c].name && present_width(text) > width[c])
			text = page_name(page, text, width[c]);
		blanks = width[c] - present_width(text);
		for (int i = 0; table->columns[c].right && i < blanks; i++)
			buf_char(&line, ' ');
		buf_text(&line, text);
		for (int i = 0; !table->columns[c].right && i < blanks; i++)
			buf_char(&line, ' ');
	}
	while (line.len && line.at[line.len - 1] == ' ')
		line.at[--line.len] = 0;
	page_ink(page, ink, line.at ? line.at : "");
	page_blank(page);
	buf_done(&line);
}

void table_print(struct page *page, struct table *table, int indent)
{
	int width[COLUMNS_MAX] = { 0 };

	if (table->cells.count && table->column_count <= COLUMNS_MAX) {
		measure(page, table, width);
		fit(table, width, page->columns - indent);
		print_row(page, table, width, indent, NULL, INK_DIM);
		for (size_t i = 0; i + table->column_count <= table->cells.count;
		     i += table->column_count)
			print_row(page, table, width, indent, &table->cells.at[i], INK_PLAIN);
	}
	VEC_DONE(&table->cells);
}

const char *cell_ns(struct page *page, int64_t ns)
{
	struct unit_text text;

	return ns == FACT_UNKNOWN ? NULL : page_printf(page, "%s", units_ns(&text, ns));
}

const char *cell_bytes(struct page *page, double bytes)
{
	struct unit_text text;

	if (!isfinite(bytes) || fabs(bytes) > 9e18 || (int64_t)bytes == FACT_UNKNOWN)
		return NULL;
	return page_printf(page, "%s", units_bytes(&text, (int64_t)bytes));
}

const char *cell_count(struct page *page, int64_t count)
{
	struct unit_text text;

	return count == FACT_UNKNOWN ? NULL : page_printf(page, "%s", units_count(&text, count));
}

const char *cell_share(struct page *page, double share)
{
	struct unit_text text;

	return isfinite(share) ? page_printf(page, "%s", units_share(&text, share)) : NULL;
}

const char *cell_of(struct page *page, int64_t part, int64_t whole)
{
	if (part == FACT_UNKNOWN || whole == FACT_UNKNOWN || whole <= 0)
		return NULL;
	return cell_share(page, (double)part / (double)whole);
}

/* A number without needless digits: 3 significant, more before the point. */
static const char *plain(struct page *page, double value)
{
	double size = fabs(value);

	if ((value == floor(value) || size >= 99.95) && size < 1e15)
		return cell_count(page, (int64_t)llround(value));
	return page_printf(page, "%.*f",
			   size >= 100   ? 0
			   : size >= 10  ? 1
			   : size >= 0.1 ? 2
					 : 4,
			   value);
}

const char *cell_value(struct page *page, double value, const char *unit)
{
	struct unit_text text;

	if (!isfinite(value))
		return NULL;
	if (!strcmp(unit, "ns") && fabs(value) < 9e18)
		return cell_ns(page, (int64_t)value);
	if ((!strcmp(unit, "B") || !strcmp(unit, "bytes") || !strcmp(unit, "byte")) &&
	    fabs(value) < 9e18)
		return cell_bytes(page, value);
	if (!strcmp(unit, "B/s"))
		return page_printf(page, "%s", units_rate(&text, value));
	if (!strcmp(unit, "share"))
		return cell_share(page, value);
	if (!strcmp(unit, "bool"))
		return value != 0 ? _("yes") : _("no");
	if (!*unit || !strcmp(unit, "count") || !strcmp(unit, "bits"))
		return plain(page, value);
	return page_printf(page, "%s %s", plain(page, value), unit);
}
