#include "read/ncu.h"

#include <limits.h>
#include <string.h>

/* Longer ones are text. */
enum { DIGITS_MAX = 64 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Length of a sign between groups of digits that some locale uses and that is
 * neither comma nor point: blank, apostrophe, U+00A0, U+2019, U+202F. */
static size_t blank_group(struct str rest)
{
	if (rest.len && (rest.at[0] == ' ' || rest.at[0] == '\''))
		return 1;
	if (rest.len >= 2 && !memcmp(rest.at, "\xc2\xa0", 2))
		return 2;
	if (rest.len >= 3 &&
	    (!memcmp(rest.at, "\xe2\x80\x99", 3) || !memcmp(rest.at, "\xe2\x80\xaf", 3)))
		return 3;
	return 0;
}

/* Exactly three digits follow, and then no fourth. */
static bool three_digits(struct str rest)
{
	return rest.len >= 3 && is_digit(rest.at[0]) && is_digit(rest.at[1]) &&
	       is_digit(rest.at[2]) && (rest.len == 3 || !is_digit(rest.at[3]));
}

bool ncu_number(struct str text, bool decimal_comma, double *ret)
{
	char digits[DIGITS_MAX];
	size_t len = 0;
	const char *instances;
	bool fraction = false;

	text = str_trim(text);
	instances = str_find(text, " (");
	if (instances && text.at[text.len - 1] == ')')
		text.len = (size_t)(instances - text.at);
	for (size_t i = 0; i < text.len;) {
		struct str rest = { text.at + i, text.len - i };
		char c = text.at[i];
		size_t group = blank_group(rest);

		if (!group && (c == ',' || c == '.') && (c == ',') != decimal_comma)
			group = 1;
		if (group) {
			if (!i || fraction ||
			    !three_digits((struct str){ rest.at + group, rest.len - group }))
				return false;
			i += group;
			continue;
		}
		if (len == sizeof(digits))
			return false;
		if (c == ',' || c == '.') {
			fraction = true;
			c = '.';
		}
		digits[len++] = c;
		i++;
	}
	return str_to_f64((struct str){ digits, len }, ret);
}

bool ncu_dims(struct str text, int32_t ret[3])
{
	for (int n = 0; n < 3; n++) {
		struct str digits;
		int64_t value;

		while (text.len && !is_digit(text.at[0]))
			text = (struct str){ text.at + 1, text.len - 1 };
		digits = (struct str){ text.at, 0 };
		while (digits.len < text.len && is_digit(text.at[digits.len]))
			digits.len++;
		if (!str_to_i64(digits, &value) || value > INT32_MAX)
			return false;
		ret[n] = (int32_t)value;
		text = (struct str){ text.at + digits.len, text.len - digits.len };
	}
	return true;
}

/* Votes of one token of digits, commas and points: which sign is the decimal
 * one, where that can be told. */
static int vote(struct str token)
{
	size_t commas = 0, points = 0, last = 0;

	for (size_t i = 0; i < token.len; i++) {
		commas += token.at[i] == ',';
		points += token.at[i] == '.';
		if (!is_digit(token.at[i]))
			last = i;
	}
	if (!commas && !points)
		return 0;
	if (commas && points)
		return token.at[last] == ',' ? 1 : -1;
	if (commas + points > 1 || last + 4 == token.len || last + 1 == token.len)
		return 0; /* groups of three, or a comma that ends something */
	return commas ? 1 : -1;
}

bool ncu_decimal_comma(struct str head)
{
	int64_t votes = 0;

	for (size_t i = 0; i < head.len;) {
		size_t end = i;

		while (end < head.len &&
		       (is_digit(head.at[end]) || head.at[end] == ',' || head.at[end] == '.'))
			end++;
		/* Whole cells only: in quotes, or between blanks in a text report. */
		if (end > i && i > 0 && end < head.len && is_digit(head.at[i]) &&
		    ((head.at[i - 1] == '"' && head.at[end] == '"') ||
		     (head.at[i - 1] == ' ' && (head.at[end] == '\n' || head.at[end] == '\r'))))
			votes += vote((struct str){ head.at + i, end - i });
		i = end > i ? end : i + 1;
	}
	return votes > 0;
}

bool ncu_log_line(struct ncu *ncu, struct str line)
{
	if (!str_starts(line, "=="))
		return false;
	line = str_trim(line);
	if (line.len > sizeof(ncu->trouble) - 1)
		line.len = sizeof(ncu->trouble) - 1;
	if (str_starts(line, "==ERROR==") || str_starts(line, "==WARNING==")) {
		memcpy(ncu->trouble, line.at, line.len);
		ncu->trouble[line.len] = '\0';
		session_note(ncu->sink->session, ncu->source, "%s", ncu->trouble);
	}
	return true;
}
