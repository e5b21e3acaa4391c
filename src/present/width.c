#include "present/present.h"

#include <stddef.h>
#include <stdint.h>

#include "present/utf8.h"

/* Characters of two cells: East Asian Wide and Fullwidth of Unicode 15,
 * EastAsianWidth.txt, neighbouring blocks joined. */
static const struct span {
	uint32_t first, last;
} WIDE[] = {
	{ 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x2e80, 0x303e },   { 0x3041, 0x33ff },
	{ 0x3400, 0x4dbf },   { 0x4e00, 0xa4cf },   { 0xa960, 0xa97c },   { 0xac00, 0xd7a3 },
	{ 0xf900, 0xfaff },   { 0xfe10, 0xfe19 },   { 0xfe30, 0xfe6b },   { 0xff01, 0xff60 },
	{ 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff },
	{ 0x20000, 0x2fffd }, { 0x30000, 0x3fffd },
},
  /* Combining marks and joiners: no cell of their own. */
	NONE[] = {
		{ 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x064b, 0x065f },
		{ 0x200b, 0x200f }, { 0x202a, 0x202e }, { 0x2060, 0x2064 }, { 0x20d0, 0x20f0 },
		{ 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff },
	};

static int is_in(const struct span *spans, size_t count, uint32_t code)
{
	for (size_t i = 0; i < count; i++) {
		if (code >= spans[i].first && code <= spans[i].last)
			return 1;
	}
	return 0;
}

size_t utf8_next(const char *at, uint32_t *ret_code)
{
	const unsigned char *c = (const unsigned char *)at;
	size_t len = c[0] < 0x80                   ? 1
		     : c[0] >= 0xc2 && c[0] < 0xe0 ? 2
		     : c[0] >= 0xe0 && c[0] < 0xf0 ? 3
		     : c[0] >= 0xf0 && c[0] < 0xf5 ? 4
						   : 0;
	uint32_t code;

	if (len <= 1) {
		*ret_code = c[0];
		return len;
	}
	code = c[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (c[i] & 0x3f);
	}
	if ((len == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
	    (len == 4 && (code < 0x10000 || code > 0x10ffff)))
		return 0;
	*ret_code = code;
	return len;
}

int utf8_cells(uint32_t code)
{
	if (code < 0x300)
		return 1;
	if (is_in(NONE, sizeof(NONE) / sizeof(*NONE), code))
		return 0;
	return 1 + is_in(WIDE, sizeof(WIDE) / sizeof(*WIDE), code);
}

int present_width(const char *text)
{
	int cells = 0;

	while (*text) {
		uint32_t code;
		size_t len = utf8_next(text, &code);

		if (!len)
			return -1;
		cells += utf8_cells(code);
		text += len;
	}
	return cells;
}
