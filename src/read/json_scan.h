/*
 * json_scan.h - finding the ends of things in JSON text, fast.
 *
 * Nothing here builds a tree or copies. Text is [at, end); a NULL result means
 * that `end` came first, so the caller can get more of the file and try again.
 * Strings may hold any byte but an unescaped quote: writers of traces let
 * control characters through (pytorch/pytorch#130622).
 *
 * The scanners look at 16 bytes a step with SSE2, which every x86-64 has, at 64
 * where AVX-512 is there and it pays, and at one elsewhere.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

static inline const char *scan_space(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
		at++;
	return at;
}

/* The first quote or backslash, or `end`. */
static inline const char *scan_quote(const char *at, const char *end)
{
#ifdef __SSE2__
	const __m128i quote = _mm_set1_epi8('"');
	const __m128i backslash = _mm_set1_epi8('\\');

	for (; end - at >= 16; at += 16) {
		__m128i text = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i hit =
			_mm_or_si128(_mm_cmpeq_epi8(text, quote), _mm_cmpeq_epi8(text, backslash));
		unsigned int mask = (unsigned int)_mm_movemask_epi8(hit);

		if (mask)
			return at + __builtin_ctz(mask);
	}
#endif
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
}

/* The closing quote of a string whose first character is at `at`. */
static inline const char *scan_string(const char *at, const char *end, bool *ret_escaped)
{
	*ret_escaped = false;
	for (;;) {
		at = scan_quote(at, end);
		if (end - at < 2)
			return at < end && *at == '"' ? at : NULL;
		if (*at == '"')
			return at;
		*ret_escaped = true;
		at += 2;
	}
}

/* The same for a writer that forgets to escape quotes (pytorch/pytorch#146900):
 * a quote closes only if what follows could follow a string there. */
const char *scan_string_loose(const char *at, const char *end, bool in_object, bool *ret_escaped);

/* Behind the array or object that opens at `at`. Brackets are counted, not
 * matched by kind; depth costs nothing. */
const char *scan_nested(const char *at, const char *end);
/* As it runs on processors without AVX-512: for tests, which compare. */
const char *scan_nested_narrow(const char *at, const char *end);
const char *scan_nested_loose(const char *at, const char *end);

/* Behind the value at `at`, whatever it is; *ret_bad if nothing starts there. */
const char *scan_value(const char *at, const char *end, bool *ret_bad);

static inline bool scan_in_number(char c)
{
	return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

/* How many of the 8 bytes at `at` are digits before the first that is none;
 * their value is added to *value times the power of ten. */
static inline unsigned int scan_8_digits(const char *at, uint64_t *value)
{
	static const uint32_t power[9] = { 1,      10,      100,      1000,     10000,
					   100000, 1000000, 10000000, 100000000 };
	unsigned int count = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	uint64_t text, bad;

	/* In each byte: 0..9 for a digit, more for others; the sum carries into
	 * the top bit exactly then. Only bytes behind the first bad one can be
	 * wrong about themselves. */
	memcpy(&text, at, 8);
	text ^= 0x3030303030303030u;
	bad = ((text + 0x7676767676767676u) | text) & 0x8080808080808080u;
	count = bad ? (unsigned int)__builtin_ctzll(bad) >> 3 : 8;
	if (!count)
		return 0;
	text <<= 64 - 8 * count;
	text = (text * 2561) >> 8;
	text = ((text & 0x00ff00ff00ff00ffu) * 6553601) >> 16;
	text = ((text & 0x0000ffff0000ffffu) * 42949672960001u) >> 32;
	*value = *value * power[count] + text;
#else
	for (; count < 8 && at[count] >= '0' && at[count] <= '9'; count++)
		*value = *value * 10 + (uint64_t)(at[count] - '0');
	(void)power;
#endif
	return count;
}

/* A JSON number times 10^digits, rounded; exact where it is written without an
 * exponent. False if it is none, or does not fit. */
bool scan_to_fixed(struct str text, int digits, int64_t *ret);

/* Add the text of a string (between its quotes) with escapes undone; an
 * escape that is none stays as it is. */
void scan_unescape(struct str raw, struct buf *out);

/* Skips one value piece by piece, for those too large for memory. All-zero is
 * the start, before the first byte of the value. */
struct scan_skip {
	uint64_t depth;
	bool begun, quoted, escape, done;
};

/* How many bytes of this piece belong to the value; skip->done once it ended. */
size_t scan_skip_more(struct scan_skip *skip, const char *at, size_t len);
