#include "base/mem.h"
#include "read/json_scan.h"
#include "read/kineto.h"

/* An array or object without the line breaks of a pretty printer. */
static void add_compact(struct buf *out, struct str value)
{
	while (value.len) {
		const char *line = memchr(value.at, '\n', value.len);
		size_t len = line ? (size_t)(line - value.at) : value.len;

		buf_add(out, value.at, len);
		while (len < value.len && (value.at[len] == '\n' || value.at[len] == '\r' ||
					   value.at[len] == ' ' || value.at[len] == '\t'))
			len++;
		value.at += len;
		value.len -= len;
	}
}

static char *put(char *to, struct str text)
{
	memcpy(to, text.at, text.len);
	return to + text.len;
}

static bool is_plain(const struct kineto_rest *rest)
{
	return rest->is_string ? !rest->escaped : !memchr(rest->value.at, '\n', rest->value.len);
}

uint32_t kineto_detail(struct kineto *k, const struct kineto_event *event, bool with_cat)
{
	struct buf *text = &k->text;
	const struct kineto_rest *rest = event->rest;

	with_cat = with_cat && event->cat_text.len;
	if (!event->rest_count && !with_cat)
		return 0;
	buf_clear(text);
	if (with_cat) {
		buf_text(text, "cat=");
		scan_unescape(event->cat_text, text);
	}
	for (; rest < event->rest + event->rest_count; rest++) {
		size_t room = rest->key->text.len + rest->value.len + 2;
		char *at;

		if (is_plain(rest)) {
			/* The common case in one go: this runs for every operator. */
			char *start = buf_room(text, room);

			at = start;
			if (at != text->at)
				*at++ = ';';
			at = put(at, rest->key->text);
			*at++ = '=';
			at = put(at, rest->value);
			text->len -= room - (size_t)(at - start);
			continue;
		}
		if (text->len)
			buf_char(text, ';');
		buf_add(text, rest->key->text.at, rest->key->text.len);
		buf_char(text, '=');
		if (rest->is_string)
			scan_unescape(rest->value, text);
		else
			add_compact(text, rest->value);
	}
	return session_detail(k->session, text->at, text->len);
}
