/*
 * str.h - texts that end where their length says, and numbers in them.
 *
 * A parser takes the whole text or fails: "12 W" is no number. Nothing here
 * depends on the locale.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *at;
	size_t len;
};

#define STR(literal) ((struct str){ literal, sizeof(literal) - 1 })

static inline struct str str_of(const char *text)
{
	return (struct str){ text, strlen(text) };
}

static inline bool str_is(struct str str, const char *text)
{
	return str.len == strlen(text) && !memcmp(str.at, text, str.len);
}

static inline bool str_same(struct str a, struct str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.at, b.at, a.len));
}

bool str_starts(struct str str, const char *prefix);
bool str_ends(struct str str, const char *suffix);
/* The first `needle`; NULL if absent. */
const char *str_find(struct str str, const char *needle);
/* Without blanks, tabs, CR and LF at both ends. */
struct str str_trim(struct str str);

/* Without the blanks and tabs in front. */
static inline void str_skip_blanks(struct str *str)
{
	while (str->len && (*str->at == ' ' || *str->at == '\t')) {
		str->at++;
		str->len--;
	}
}

/* As a C string, cut where `size` bytes end. */
static inline void str_copy(struct str str, char *ret, size_t size)
{
	size_t len = str.len < size ? str.len : size - 1;

	memcpy(ret, str.at, len);
	ret[len] = 0;
}

/* Take off and return what stands before the first `sep`; all of it, leaving
 * *str empty with at == NULL, if there is none. */
struct str str_cut(struct str *str, char sep);

/* Bytes of the UTF-8 character in front, 0 if it is none: overlong forms,
 * surrogates and what is above U+10FFFF are none, and so is an empty text. */
size_t str_character(struct str str);

/* Optional sign and decimal digits; false on anything else or out of range. */
bool str_to_i64(struct str str, int64_t *ret);
bool str_to_u64(struct str str, uint64_t *ret);
/* The same in hex, "0x" optional. */
bool str_to_hex(struct str str, uint64_t *ret);
/* Finite decimal numbers, exponent allowed; "inf" and "nan" are none. */
bool str_to_f64(struct str str, double *ret);

/* A decimal number times 10^digits as an integer, exact: "12.5" with digits 3
 * is 12500. Further digits round half up; false if it does not fit. */
bool str_to_fixed(struct str str, int digits, int64_t *ret);
