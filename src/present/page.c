#include "present/page.h"

#include <stdarg.h>
#include <string.h>

#include "base/call_stack.h"
#include "present/utf8.h"
#include "rules/short_name.h"

bool page_has(const struct page *page, enum layer layer)
{
	return !page->layers || page->layers >> layer & 1;
}

const char *page_printf(struct page *page, const char *fmt, ...)
{
	struct buf text = { 0 };
	const char *kept;
	va_list args;

	va_start(args, fmt);
	buf_vprintf(&text, fmt, args);
	va_end(args);
	kept = arena_text(&page->arena, text.at ? text.at : "", text.len);
	buf_done(&text);
	return kept;
}

static bool is_fit(const struct page *page, uint32_t code, size_t len)
{
	return len && code >= 0x20 && code != 0x7f && (code < 0x80 || code >= 0xa0) &&
	       (page->utf8 || code < 0x80) && !(code >= 0x202a && code <= 0x202e) &&
	       !(code >= 0x2066 && code <= 0x2069);
}

const char *page_clean(struct page *page, const char *text)
{
	struct buf clean = { 0 };
	const char *kept;
	bool same = true;

	for (const char *at = text; *at;) {
		uint32_t code = 0;
		size_t len = utf8_next(at, &code);

		if (is_fit(page, code, len)) {
			buf_add(&clean, at, len);
		} else {
			buf_char(&clean, code == '\n' || code == '\t' ? ' ' : '?');
			same = false;
		}
		at += len ? len : 1;
	}
	kept = same ? text : arena_text(&page->arena, clean.at, clean.len);
	buf_done(&clean);
	return kept;
}

/* Bytes of the longest head that fits into `width` cells. */
static size_t head_bytes(const char *text, int width)
{
	size_t bytes = 0;

	while (text[bytes]) {
		uint32_t code;
		size_t len = utf8_next(text + bytes, &code);

		if (!len || utf8_cells(code) > width)
			break;
		width -= utf8_cells(code);
		bytes += len;
	}
	return bytes;
}

/* The longest tail that fits. */
static const char *tail(const char *text, int width)
{
	int skip = present_width(text) - width;

	while (*text && skip > 0) {
		uint32_t code;
		size_t len = utf8_next(text, &code);

		skip -= utf8_cells(code);
		text += len ? len : 1;
	}
	return text;
}

/* With a third of what is left, or what `end` says, for its end; 0: none. */
static const char *shorten(struct page *page, const char *text, int width, int end)
{
	const char *dots = page->utf8 ? "\xe2\x80\xa6" : "..";
	int room = width - present_width(dots);
	int back = end ? room / end : 0;

	text = page_clean(page, text);
	if (present_width(text) <= width || room < 2)
		return text;
	return page_printf(page, "%.*s%s%s", (int)head_bytes(text, room - back), text, dots,
			   tail(text, back));
}

const char *page_shorten(struct page *page, const char *text, int width)
{
	return shorten(page, text, width, 3);
}

const char *page_name(struct page *page, const char *name, int width)
{
	bool is_stack = stack_step(name);
	struct buf text = { 0 };
	const char *kept, *cut;

	short_stack(name, &text);
	kept = page_clean(page, page_printf(page, "%s", text.at ? text.at : ""));
	buf_done(&text);
	/* The namespaces in front tell least: they go first. */
	while (present_width(kept) > width && (cut = strstr(kept, "::")) && cut[2] &&
	       !strchr(kept, ' '))
		kept = cut + 2;
	if (!is_stack)
		return page_shorten(page, kept, width);
	/* Of a call stack the library goes, then the outer functions. */
	cut = strstr(kept, " (");
	if (cut && present_width(kept) > width)
		kept = page_printf(page, "%.*s", (int)(cut - kept), kept);
	return shorten(page, kept, width, 0);
}

void page_blank(struct page *page)
{
	buf_char(page->out, '\n');
}

void page_ink(struct page *page, enum ink ink, const char *text)
{
	static const char *const code[] = {
		[INK_PLAIN] = "",        [INK_BOLD] = "\33[1m",  [INK_DIM] = "\33[2m",
		[INK_WORK] = "\33[32m",  [INK_COPY] = "\33[36m", [INK_WAIT] = "\33[33m",
		[INK_BLOCK] = "\33[35m", [INK_BAD] = "\33[31m",
	};
	bool inked = page->colour && *code[ink] && *text;

	if (inked)
		buf_text(page->out, code[ink]);
	buf_text(page->out, page_clean(page, text));
	if (inked)
		buf_text(page->out, "\33[0m");
}

void page_repeat(struct page *page, enum ink ink, const char *cell, int count)
{
	struct buf text = { 0 };

	for (int i = 0; i < count; i++)
		buf_text(&text, cell);
	if (text.len)
		page_ink(page, ink, text.at);
	buf_done(&text);
}

void page_pad(struct page *page, enum ink ink, const char *text, int width)
{
	text = page_clean(page, text);
	page_ink(page, ink, text);
	for (int i = present_width(text); i < width; i++)
		buf_char(page->out, ' ');
}

void page_heading(struct page *page, const char *title, const char *aside)
{
	int used;

	title = page_clean(page, title);
	aside = aside ? page_shorten(page, aside, page->columns - present_width(title) - 6) : "";
	used = present_width(title) + present_width(aside) + 2;
	page_blank(page);
	page_ink(page, INK_BOLD, title);
	buf_char(page->out, ' ');
	page_repeat(page, INK_DIM, page->utf8 ? "\xe2\x94\x80" : "-",
		    page->columns - used + (*aside ? 0 : 1));
	if (*aside) {
		buf_char(page->out, ' ');
		page_ink(page, INK_DIM, aside);
	}
	page_blank(page);
}

/* May a line break stand before the character `code`, whose forerunner is
 * `before`? After a blank, and between characters of two cells but not before
 * their closing punctuation. */
static bool breaks(uint32_t before, uint32_t code)
{
	static const uint32_t closing[] = { 0x3001, 0x3002, 0xff0c, 0xff1b, 0xff1a,
					    0xff09, 0xff01, 0xff1f, 0x300d, 0x300b };

	for (size_t i = 0; i < sizeof(closing) / sizeof(*closing); i++) {
		if (code == closing[i])
			return false;
	}
	if (before == 0xff08 || before == 0x300c || before == 0x300a)
		return false;
	return before == ' ' || utf8_cells(before) == 2 || utf8_cells(code) == 2;
}

/* Bytes of the next line of `text` in `room` cells; an unbreakable word that
 * is longer stays whole: names are to be copied. */
static size_t line_bytes(const char *text, int room)
{
	size_t best = 0, at = 0;
	uint32_t before = 0;
	int cells = 0;

	while (text[at]) {
		uint32_t code;
		size_t len = utf8_next(text + at, &code);

		if (at && code != ' ' && breaks(before, code)) {
			if (cells <= room || !best)
				best = at;
			if (cells > room)
				return best;
		}
		cells += code == ' ' && cells >= room ? 0 : utf8_cells(code);
		if (cells > room && best)
			return best;
		before = code;
		at += len;
	}
	return cells <= room || !best ? at : best;
}

void page_flow(struct page *page, int indent, enum ink ink, const char *text)
{
	int room = page->columns - indent;

	text = page_clean(page, text);
	do {
		size_t len = line_bytes(text, room), shown = len;

		while (shown && text[shown - 1] == ' ')
			shown--;
		page_ink(page, ink, arena_text(&page->arena, text, shown));
		page_blank(page);
		text += len;
		if (*text)
			page_pad(page, INK_PLAIN, "", indent);
	} while (*text);
}

void page_wrap(struct page *page, enum ink first_ink, const char *first, int indent, enum ink ink,
	       const char *text)
{
	page_pad(page, first_ink, first, indent);
	page_flow(page, indent, ink, text);
}
