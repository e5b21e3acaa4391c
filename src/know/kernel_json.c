/*
 * A line of `journalctl -o json`: one flat object. Only the few fields that we
 * want are decoded; MESSAGE is an array of bytes where it is no UTF-8.
 */
#include <string.h>

#include "know/kernel_line.h"

static const int64_t NS_PER_US = 1000;
static const size_t MESSAGE_MAX = 64u << 10;

static bool take(struct str *text, char c)
{
	str_skip_blanks(text);
	if (!text->len || *text->at != c)
		return false;
	text->at++;
	text->len--;
	return true;
}

/* The inside of a string, escapes and all. */
static bool take_string(struct str *text, struct str *ret)
{
	size_t i = 0;

	if (!take(text, '"'))
		return false;
	while (i < text->len && text->at[i] != '"')
		i += text->at[i] == '\\' ? 2 : 1;
	if (i >= text->len)
		return false;
	*ret = (struct str){ text->at, i };
	text->at += i + 1;
	text->len -= i + 1;
	return true;
}

/* Any value; of arrays what is between the brackets (they hold numbers, or
 * strings without brackets that matter to us). */
static bool take_value(struct str *text, struct str *ret, bool *ret_array)
{
	size_t len = 0;

	*ret_array = false;
	str_skip_blanks(text);
	if (text->len && *text->at == '"')
		return take_string(text, ret);
	if (take(text, '[')) {
		const char *close = memchr(text->at, ']', text->len);

		if (!close)
			return false;
		*ret_array = true;
		*ret = (struct str){ text->at, (size_t)(close - text->at) };
		text->at = close + 1;
		text->len -= ret->len + 1;
		return true;
	}
	while (len < text->len && text->at[len] != ',' && text->at[len] != '}')
		len++;
	*ret = str_trim((struct str){ text->at, len });
	text->at += len;
	text->len -= len;
	return true;
}

static void unescape(struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.len && out->len < MESSAGE_MAX; i++) {
		uint64_t code;

		if (text.at[i] != '\\' || i + 1 >= text.len) {
			buf_char(out, text.at[i]);
			continue;
		}
		i++;
		if (text.at[i] == 'n')
			buf_char(out, '\n');
		else if (text.at[i] == 't')
			buf_char(out, '\t');
		else if (text.at[i] == 'u' && i + 4 < text.len &&
			 str_to_hex((struct str){ text.at + i + 1, 4 }, &code)) {
			buf_char(out, code < 0x80 ? (char)code : '?');
			i += 4;
		} else {
			buf_char(out, text.at[i]);
		}
	}
}

static void bytes_of(struct str text, struct buf *out)
{
	while (text.at && text.len && out->len < MESSAGE_MAX) {
		int64_t byte;

		if (str_to_i64(str_trim(str_cut(&text, ',')), &byte))
			buf_char(out, (char)byte);
	}
}

static bool us_to_ns(struct str text, int64_t *ret_ns)
{
	return str_to_i64(text, ret_ns) && *ret_ns >= 0 &&
	       !__builtin_mul_overflow(*ret_ns, NS_PER_US, ret_ns);
}

static void field(struct str key, struct str value, bool array, struct buf *memory,
		  struct kernel_line *line, bool *ret_journal)
{
	if (str_is(key, "MESSAGE")) {
		buf_clear(memory);
		if (array)
			bytes_of(value, memory);
		else
			unescape(value, memory);
		line->message = (struct str){ memory->at ? memory->at : "", memory->len };
	} else if (str_is(key, "__REALTIME_TIMESTAMP")) {
		if (us_to_ns(value, &line->stamp_ns)) {
			line->stamp = STAMP_UTC;
			line->resolution_ns = NS_PER_US;
		}
		*ret_journal = true;
	} else if (str_is(key, "_SOURCE_MONOTONIC_TIMESTAMP")) {
		line->has_boot = us_to_ns(value, &line->boot_ns);
	} else if (str_is(key, "_TRANSPORT")) {
		line->kernel = str_is(value, "kernel");
		line->foreign = !line->kernel;
		*ret_journal = true;
	}
}

bool kernel_json_parse(struct str text, struct buf *memory, struct kernel_line *ret_line)
{
	struct str key, value;
	bool array, journal = false;

	ret_line->message = (struct str){ "", 0 };
	if (!take(&text, '{'))
		return false;
	while (!take(&text, '}')) {
		if (!take_string(&text, &key) || !take(&text, ':') ||
		    !take_value(&text, &value, &array))
			return false;
		field(key, value, array, memory, ret_line, &journal);
		if (!take(&text, ',') && !(text.len && *text.at == '}'))
			return false;
	}
	return journal;
}
