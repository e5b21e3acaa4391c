#include "read/csv.h"

#include <string.h>

/* Beyond this a record is a quote that somebody forgot, not data. */
static const size_t ROW_MAX = 64u << 20;

static void field_begin(struct csv *csv)
{
	*VEC_ADD(&csv->starts) = csv->text.len;
}

static void field_end(struct csv *csv)
{
	buf_char(&csv->text, '\0');
}

/* A run of a quoted field. Returns what is left behind the closing quote, or a
 * text with at == NULL if the line ends first. */
static struct str quoted(struct csv *csv, struct str rest)
{
	for (;;) {
		const char *quote = rest.len ? memchr(rest.at, '"', rest.len) : NULL;
		size_t len;

		if (!quote) {
			buf_add(&csv->text, rest.at, rest.len);
			return (struct str){ 0 };
		}
		len = (size_t)(quote - rest.at);
		buf_add(&csv->text, rest.at, len);
		rest = (struct str){ quote + 1, rest.len - len - 1 };
		if (!rest.len || rest.at[0] != '"')
			return rest;
		buf_char(&csv->text, '"');
		rest = (struct str){ rest.at + 1, rest.len - 1 };
	}
}

/* Take a line; true if the record ends with it. `open`: a quoted field of the
 * line before goes on. */
static bool take_line(struct csv *csv, struct str line, bool open)
{
	struct str rest = line;

	for (;;) {
		const char *comma;
		size_t len;

		if (!open) {
			field_begin(csv);
			open = rest.len && rest.at[0] == '"';
			if (open)
				rest = (struct str){ rest.at + 1, rest.len - 1 };
		}
		if (open) {
			rest = quoted(csv, rest);
			if (!rest.at)
				return false;
			open = false;
		}
		/* Bare text up to the comma; behind a closing quote it is kept as it is. */
		comma = rest.len ? memchr(rest.at, ',', rest.len) : NULL;
		len = comma ? (size_t)(comma - rest.at) : rest.len;
		buf_add(&csv->text, rest.at, len);
		field_end(csv);
		if (!comma)
			return true;
		rest = (struct str){ comma + 1, rest.len - len - 1 };
	}
}

static bool looks_like_record(struct str line)
{
	size_t i = 1;

	if (line.len < 4 || line.at[0] != '"')
		return false;
	while (i < line.len && line.at[i] >= '0' && line.at[i] <= '9')
		i++;
	return i > 1 && i + 1 < line.len && line.at[i] == '"' && line.at[i + 1] == ',';
}

static void set_fields(struct csv *csv)
{
	size_t count = csv->starts.count;

	csv->fields.count = 0;
	for (size_t i = 0; i < count; i++) {
		size_t start = csv->starts.at[i];
		size_t end = i + 1 < count ? csv->starts.at[i + 1] : csv->text.len;

		*VEC_ADD(&csv->fields) = (struct str){ csv->text.at + start, end - start - 1 };
	}
}

int csv_peek(struct csv *csv, struct str *ret_line, struct err *err)
{
	if (!csv->held) {
		int ret = lines_next(csv->lines, &csv->line, err);

		if (ret <= 0)
			return ret;
		csv->held = true;
	}
	*ret_line = csv->line;
	return 1;
}

void csv_pass(struct csv *csv)
{
	csv->held = false;
}

int csv_next(struct csv *csv, struct err *err)
{
	struct str line;
	bool whole = false;
	int ret;

	buf_clear(&csv->text);
	csv->starts.count = 0;
	csv->damaged = false;
	csv->bytes = 0;
	while (!whole) {
		bool open = csv->starts.count > 0;

		ret = csv_peek(csv, &line, err);
		if (ret < 0 || (!ret && !open))
			return ret;
		if (!ret || (open && (looks_like_record(line) || csv->text.len > ROW_MAX))) {
			field_end(csv);
			csv->damaged = true;
			break;
		}
		csv_pass(csv);
		csv->bytes += (int64_t)csv->lines->bytes;
		csv->damaged |= csv->lines->shortened;
		if (open)
			buf_char(&csv->text, '\n');
		whole = take_line(csv, line, open);
	}
	set_fields(csv);
	return 1;
}

void csv_done(struct csv *csv)
{
	VEC_DONE(&csv->fields);
	VEC_DONE(&csv->starts);
	buf_done(&csv->text);
}
