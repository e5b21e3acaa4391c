#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

static void add_escaped(struct buf *out, unsigned char c)
{
	switch (c) {
	case '"':
		buf_text(out, "\\\"");
		break;
	case '\\':
		buf_text(out, "\\\\");
		break;
	case '\n':
		buf_text(out, "\\n");
		break;
	case '\t':
		buf_text(out, "\\t");
		break;
	default:
		if (c < 0x20 || c == 0x7f)
			buf_printf(out, "\\u%04x", c);
		else
			buf_char(out, (char)c);
	}
}

static void add_quoted(struct buf *out, struct str text)
{
	buf_char(out, '"');
	for (size_t i = 0; i < text.len;) {
		const unsigned char *at = (const unsigned char *)text.at + i;
		size_t len = str_character((struct str){ text.at + i, text.len - i });

		if (len == 1)
			add_escaped(out, *at);
		else if (len)
			buf_add(out, at, len);
		else
			buf_text(out, "\xef\xbf\xbd");
		i += len ? len : 1;
	}
	buf_char(out, '"');
}

static void new_line(struct json *json)
{
	if (json->compact)
		return;
	buf_char(json->out, '\n');
	for (unsigned int i = 0; i < json->depth; i++)
		buf_text(json->out, "  ");
}

/* The comma, line break and key in front of a value. */
static void lead(struct json *json, const char *key)
{
	if (json->depth) {
		if (json->any[json->depth - 1])
			buf_char(json->out, ',');
		json->any[json->depth - 1] = true;
		new_line(json);
	}
	if (key) {
		add_quoted(json->out, str_of(key));
		buf_text(json->out, json->compact ? ":" : ": ");
	}
}

static void open_level(struct json *json, const char *key, char opener, char closer)
{
	assert(json->depth < JSON_DEPTH_MAX);
	lead(json, key);
	buf_char(json->out, opener);
	json->any[json->depth] = false;
	json->closer[json->depth] = closer;
	json->depth++;
}

void json_object(struct json *json, const char *key)
{
	open_level(json, key, '{', '}');
}

void json_array(struct json *json, const char *key)
{
	open_level(json, key, '[', ']');
}

void json_end(struct json *json)
{
	assert(json->depth);
	json->depth--;
	if (json->any[json->depth])
		new_line(json);
	buf_char(json->out, json->closer[json->depth]);
	if (!json->depth && !json->compact)
		buf_char(json->out, '\n');
}

void json_i64(struct json *json, const char *key, int64_t value)
{
	lead(json, key);
	buf_printf(json->out, "%lld", (long long)value);
}

void json_f64(struct json *json, const char *key, double value)
{
	assert(isfinite(value));
	lead(json, key);
	buf_f64(json->out, value);
}

void json_bool(struct json *json, const char *key, bool value)
{
	lead(json, key);
	buf_text(json->out, value ? "true" : "false");
}

void json_text(struct json *json, const char *key, const char *value)
{
	json_str(json, key, str_of(value));
}

void json_str(struct json *json, const char *key, struct str value)
{
	lead(json, key);
	add_quoted(json->out, value);
}
