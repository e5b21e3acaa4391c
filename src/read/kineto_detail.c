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

/* Nothing to undo in the values: the common case, for every operator. Their room;
 * 0: there is. */
static size_t plain_room(const struct kineto_event *event)
{
	size_t room = 0;

	for (size_t i = 0; i < event->rest_count; i++) {
		const struct kineto_rest *rest = &event->rest[i];

		if (rest->is_string ? rest->escaped
				    : memchr(rest->value.at, '\n', rest->value.len) != NULL)
			return 0;
		room += rest->key->text.len + rest->value.len + 2;
	}
	return room;
}

static void add_plain(struct buf *text, const struct kineto_event *event, size_t room)
{
	char *start = buf_room(text, room);
	char *at = start;

	for (size_t i = 0; i < event->rest_count; i++) {
		const struct kineto_rest *rest = &event->rest[i];

		if (at != text->at)
			*at++ = ';';
		at = put(at, rest->key->text);
		*at++ = '=';
		at = put(at, rest->value);
	}
	text->len -= room - (size_t)(at - start);
}

static void add_any(struct buf *text, const struct kineto_rest *rest)
{
	if (text->len)
		buf_char(text, ';');
	buf_add(text, rest->key->text.at, rest->key->text.len);
	buf_char(text, '=');
	if (rest->is_string)
		scan_unescape(rest->value, text);
	else
		add_compact(text, rest->value);
}

void kineto_detail(struct kineto *k, const struct kineto_event *event, bool with_cat)
{
	struct buf *text = &k->detail;
	size_t room;

	with_cat = with_cat && event->cat_text.len;
	buf_clear(text);
	if (!event->rest_count && !with_cat)
		return;
	if (with_cat) {
		buf_text(text, "cat=");
		scan_unescape(event->cat_text, text);
	}
	room = plain_room(event);
	if (room)
		add_plain(text, event, room);
	for (size_t i = 0; i < event->rest_count && !room; i++)
		add_any(text, &event->rest[i]);
	k->detail_asked = intern_ask(k->session->details, text->at, text->len);
}

uint32_t kineto_detail_id(struct kineto *k)
{
	uint32_t id = 0;

	if (k->detail.len)
		id = intern_add_asked(k->session->details, k->detail.at, k->detail.len,
				      k->detail_asked);
	buf_clear(&k->detail);
	return id;
}
