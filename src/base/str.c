#include "base/str.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

bool str_starts(struct str str, const char *prefix)
{
	size_t len = strlen(prefix);

	return str.len >= len && !memcmp(str.at, prefix, len);
}

bool str_ends(struct str str, const char *suffix)
{
	size_t len = strlen(suffix);

	return str.len >= len && !memcmp(str.at + str.len - len, suffix, len);
}

const char *str_find(struct str str, const char *needle)
{
	return str.len ? memmem(str.at, str.len, needle, strlen(needle)) : NULL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str str)
{
	while (str.len && is_blank(str.at[0])) {
		str.at++;
		str.len--;
	}
	while (str.len && is_blank(str.at[str.len - 1]))
		str.len--;
	return str;
}

struct str str_cut(struct str *str, char sep)
{
	const char *end = str->len ? memchr(str->at, sep, str->len) : NULL;
	struct str head = *str;

	if (!end) {
		*str = (struct str){ 0 };
		return head;
	}
	head.len = (size_t)(end - str->at);
	str->at = end + 1;
	str->len -= head.len + 1;
	return head;
}

bool str_to_u64(struct str str, uint64_t *ret)
{
	uint64_t value = 0;

	if (!str.len)
		return false;
	for (size_t i = 0; i < str.len; i++) {
		unsigned int digit = (unsigned char)str.at[i] - (unsigned int)'0';

		if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret = value;
	return true;
}

bool str_to_i64(struct str str, int64_t *ret)
{
	bool minus = str.len && str.at[0] == '-';
	uint64_t value;

	if (minus || (str.len && str.at[0] == '+')) {
		str.at++;
		str.len--;
	}
	if (!str_to_u64(str, &value) || value > (uint64_t)INT64_MAX + minus)
		return false;
	*ret = minus ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

bool str_to_hex(struct str str, uint64_t *ret)
{
	uint64_t value = 0;

	if (str_starts(str, "0x") || str_starts(str, "0X")) {
		str.at += 2;
		str.len -= 2;
	}
	if (!str.len || str.len > 16)
		return false;
	for (size_t i = 0; i < str.len; i++) {
		char c = str.at[i];

		value <<= 4;
		if (c >= '0' && c <= '9')
			value |= (uint64_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			value |= (uint64_t)((c | 32) - 'a' + 10);
		else
			return false;
	}
	*ret = value;
	return true;
}

/* strtod takes hex, "inf", "nan" and leading blanks: the first pass does not. */
static bool looks_decimal(struct str str)
{
	bool digit = false;

	for (size_t i = 0; i < str.len; i++) {
		char c = str.at[i];

		if (c >= '0' && c <= '9')
			digit = true;
		else if (c != '.' && c != '-' && c != '+' && !((c | 32) == 'e' && digit))
			return false;
	}
	return digit;
}

bool str_to_f64(struct str str, double *ret)
{
	static locale_t c_locale;
	char text[64];
	char *end;
	double value;

	if (str.len >= sizeof(text) || !looks_decimal(str))
		return false;
	memcpy(text, str.at, str.len);
	text[str.len] = 0;
	if (!c_locale)
		c_locale = newlocale(LC_ALL_MASK, "C", NULL);
	value = strtod_l(text, &end, c_locale);
	if (*end || !isfinite(value))
		return false;
	*ret = value;
	return true;
}

/* Digits, one point, a sign: the number times 10^digits, and whether the digit
 * after the last one kept is 5 or more. */
static bool fixed_digits(struct str str, int digits, bool minus, int64_t *ret)
{
	int64_t value = 0;
	int after_point = -1;
	bool any = false;
	int round = 0;

	for (size_t i = 0; i < str.len; i++) {
		char c = str.at[i];

		if (c == '.' && after_point < 0) {
			after_point = 0;
			continue;
		}
		if (c < '0' || c > '9')
			return false;
		any = true;
		if (after_point == digits) {
			round = c >= '5';
			after_point++;
		}
		if (after_point > digits)
			continue;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    (minus ? __builtin_sub_overflow(value, c - '0', &value)
			   : __builtin_add_overflow(value, c - '0', &value)))
			return false;
		if (after_point >= 0)
			after_point++;
	}
	for (int i = after_point < 0 ? 0 : after_point; i < digits; i++) {
		if (__builtin_mul_overflow(value, 10, &value))
			return false;
	}
	return any && !__builtin_add_overflow(value, minus ? -round : round, ret);
}

bool str_to_fixed(struct str str, int digits, int64_t *ret)
{
	bool minus = str.len && str.at[0] == '-';

	if (minus || (str.len && str.at[0] == '+')) {
		str.at++;
		str.len--;
	}
	return fixed_digits(str, digits, minus, ret);
}

size_t str_character(struct str str)
{
	const unsigned char *at = (const unsigned char *)str.at;
	size_t len;

	if (!str.len)
		return 0;
	len = at[0] < 0x80                    ? 1
	      : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
	      : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
	      : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
					      : 0;
	if (!len || len > str.len)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return len;
}
