#include "read/lines.h"

#include <string.h>

/* Read ahead in steps of this. */
static const size_t STEP = 64u << 10;

static void add_utf8(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_char(out, (char)c);
	} else if (c < 0x800) {
		buf_char(out, (char)(0xc0 | c >> 6));
		buf_char(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_char(out, (char)(0xe0 | c >> 12));
		buf_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_char(out, (char)(0x80 | (c & 0x3f)));
	} else {
		buf_char(out, (char)(0xf0 | c >> 18));
		buf_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
		buf_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_char(out, (char)(0x80 | (c & 0x3f)));
	}
}

static uint32_t unit_at(const char *at, bool big_endian)
{
	const unsigned char *byte = (const unsigned char *)at;

	return big_endian ? (uint32_t)byte[0] << 8 | byte[1] : (uint32_t)byte[1] << 8 | byte[0];
}

/* A surrogate without its partner becomes U+FFFD. */
static struct str decode_wide(const char *at, size_t len, bool big_endian, struct buf *out)
{
	buf_clear(out);
	for (size_t i = 0; i + 1 < len; i += 2) {
		uint32_t c = unit_at(at + i, big_endian);

		if (c >= 0xd800 && c < 0xdc00 && i + 3 < len) {
			uint32_t low = unit_at(at + i + 2, big_endian);

			if (low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
				i += 2;
			}
		}
		add_utf8(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
	}
	return (struct str){ out->at, out->len };
}

/* Length of a byte order mark; *ret_wide 2 and the order for UTF-16. */
static size_t mark_length(const char *at, size_t len, int *ret_wide, bool *ret_big_endian)
{
	if (len >= 3 && !memcmp(at, "\xef\xbb\xbf", 3))
		return 3;
	if (len >= 2 && (!memcmp(at, "\xff\xfe", 2) || !memcmp(at, "\xfe\xff", 2))) {
		*ret_wide = 2;
		*ret_big_endian = at[0] == '\xfe';
		return 2;
	}
	return 0;
}

struct str lines_probe_text(const char *at, size_t len, struct buf *memory)
{
	int wide = 0;
	bool big_endian = false;
	size_t mark = mark_length(at, len, &wide, &big_endian);

	if (wide)
		return decode_wide(at + mark, len - mark, big_endian, memory);
	return (struct str){ at + mark, len - mark };
}

static const char *find_end(const struct lines *lines, const char *at, size_t len)
{
	if (!lines->wide)
		return memchr(at, '\n', len);
	for (size_t i = 0; i + 1 < len; i += 2) {
		if (unit_at(at + i, lines->wide_big_endian) == '\n')
			return at + i;
	}
	return NULL;
}

static int begin(struct lines *lines, struct err *err)
{
	const char *at;
	int64_t got = input_fill(lines->input, 4, &at, err);

	if (got < 0)
		return (int)got;
	lines->begun = true;
	input_skip(lines->input,
		   mark_length(at, (size_t)got, &lines->wide, &lines->wide_big_endian));
	return 0;
}

/* The line at the front of the input: its bytes and how many to go past. */
static int find_line(struct lines *lines, struct str *ret_line, struct err *err)
{
	size_t unit = lines->wide ? 2 : 1;
	size_t searched = 0, seen = 0;
	const char *at;
	int64_t got = input_fill(lines->input, 1, &at, err);

	for (;;) {
		size_t len = (size_t)got;
		const char *end;

		if (got <= 0)
			return (int)got;
		end = find_end(lines, at + searched, len - searched);
		lines->open_end = !end && len == seen;
		if (!end && !lines->open_end && len < LINES_MAX) {
			searched = len - len % unit;
			seen = len;
			got = input_fill_some(lines->input, len, len + STEP, &at, err);
			continue;
		}
		lines->rest = !end && !lines->open_end;
		lines->pending = end ? (size_t)(end - at) + unit : len;
		*ret_line = (struct str){ at, end ? (size_t)(end - at) : len };
		lines->shortened = ret_line->len > LINES_MAX || lines->rest;
		if (ret_line->len > LINES_MAX)
			ret_line->len = LINES_MAX;
		return 1;
	}
}

/* Past the rest of a line that was too long. */
static int skip_rest(struct lines *lines, struct err *err)
{
	lines->rest = false;
	for (;;) {
		const char *at, *end;
		int64_t got = input_fill(lines->input, STEP, &at, err);

		if (got <= 0)
			return (int)got;
		end = find_end(lines, at, (size_t)got);
		input_skip(lines->input,
			   end ? (size_t)(end - at) + (lines->wide ? 2 : 1) : (size_t)got);
		if (end)
			return 0;
	}
}

int lines_next(struct lines *lines, struct str *ret_line, struct err *err)
{
	struct str line = { 0 };
	int ret;

	input_skip(lines->input, lines->pending);
	lines->pending = 0;
	if (!lines->begun && (ret = begin(lines, err)) < 0)
		return ret;
	if (lines->rest && (ret = skip_rest(lines, err)) < 0)
		return ret;
	ret = find_line(lines, &line, err);
	if (ret <= 0)
		return ret;
	lines->number++;
	lines->bytes = lines->pending;
	if (lines->wide)
		line = decode_wide(line.at, line.len, lines->wide_big_endian, &lines->decoded);
	if (line.len && line.at[line.len - 1] == '\r')
		line.len--;
	*ret_line = line;
	return 1;
}

void lines_done(struct lines *lines)
{
	buf_done(&lines->decoded);
}
