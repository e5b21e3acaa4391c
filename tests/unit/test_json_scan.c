/* The fast scanners of JSON text against plain ones, on random text. */
#include <criterion/criterion.h>

#include "base/hash.h"
#include "read/json_scan.h"

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = hash_u64(state, 0x5eed);
	return (uint32_t)(state >> 32) % below;
}

/* What scan_nested says, one byte at a time. */
static const char *plain_nested(const char *at, const char *end)
{
	bool quoted = false;
	size_t depth = 0;

	for (; at < end; at++) {
		if (quoted && *at == '\\')
			at++;
		else if (*at == '"')
			quoted = !quoted;
		else if (!quoted && (*at == '[' || *at == '{'))
			depth++;
		else if (!quoted && (*at == ']' || *at == '}') && !--depth)
			return at + 1;
	}
	return NULL;
}

/* Text of brackets, quotes and letters; `letters` of 64 are neither. */
static size_t invent(char *text, size_t room, uint32_t letters)
{
	static const char signs[] = "[]{}[]{}\"\"";
	size_t len = 1 + draw((uint32_t)room - 1);

	text[0] = draw(2) ? '[' : '{';
	for (size_t i = 1; i < len; i++)
		text[i] = draw(64) < letters ? (char)('a' + draw(26))
					     : signs[draw(sizeof(signs) - 1)];
	/* Few escapes: a block with one takes another way. */
	for (uint32_t i = draw(4); i > 1; i--)
		text[1 + draw((uint32_t)len)] = '\\';
	return len;
}

Test(json_scan, nested_ends_where_a_plain_scan_says)
{
	char text[1024];
	size_t found = 0;

	for (int round = 0; round < 200000; round++) {
		size_t room = round % 3 ? 200 : sizeof(text) - 1;
		size_t len = invent(text, room, 32 + draw(32));
		const char *expected = plain_nested(text, text + len);

		cr_assert_eq(scan_nested(text, text + len), expected, "%.*s", (int)len, text);
		cr_assert_eq(scan_nested_narrow(text, text + len), expected, "%.*s", (int)len,
			     text);
		found += expected != NULL;
	}
	cr_assert_gt(found, 10000);
}

Test(json_scan, nested_counts_deep_brackets)
{
	static char text[300001];
	size_t half = sizeof(text) / 2;

	memset(text, '[', half);
	memset(text + half, ']', half);
	text[sizeof(text) - 1] = ',';
	cr_assert_eq(scan_nested(text, text + sizeof(text)), text + 2 * half);
	cr_assert_eq(scan_nested_narrow(text, text + sizeof(text)), text + 2 * half);
	cr_assert_null(scan_nested(text, text + 2 * half - 1));
}

Test(json_scan, eight_digits_at_once)
{
	for (int round = 0; round < 200000; round++) {
		char text[24] = "";
		uint64_t value = draw(10), expected = value;
		unsigned int count = 0;

		for (int i = 0; i < 16; i++)
			text[i] = draw(8) ? (char)('0' + draw(10)) : (char)draw(256);
		for (; count < 8 && text[count] >= '0' && text[count] <= '9'; count++)
			expected = expected * 10 + (uint64_t)(text[count] - '0');
		cr_assert_eq(scan_8_digits(text, &value), count);
		cr_assert_eq(value, expected);
	}
}
