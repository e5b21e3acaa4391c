#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static void reserve(struct buf *buf, size_t more)
{
	size_t room = buf->room < 256 ? 256 : buf->room;
	char *at;

	if (buf->len + more + 1 <= buf->room)
		return;
	while (room < buf->len + more + 1)
		room *= 2;
	if (buf->len < buf->room / 2) {
		/* realloc would copy what was only reserved, too. */
		at = mem_alloc(room);
		memcpy(at, buf->at, buf->len + 1);
		free(buf->at);
		buf->at = at;
	} else {
		buf->at = mem_resize(buf->at, room);
	}
	buf->room = room;
}

void buf_add(struct buf *buf, const void *at, size_t len)
{
	reserve(buf, len);
	if (len)
		memcpy(buf->at + buf->len, at, len);
	buf->len += len;
	buf->at[buf->len] = 0;
}

void buf_text(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void buf_char(struct buf *buf, char c)
{
	buf_add(buf, &c, 1);
}

void *buf_room(struct buf *buf, size_t len)
{
	reserve(buf, len);
	buf->len += len;
	buf->at[buf->len] = 0;
	return buf->at + buf->len - len;
}

void buf_vprintf(struct buf *buf, const char *fmt, va_list args)
{
	va_list again;
	int len;

	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, args);
	if (len > 0) {
		reserve(buf, (size_t)len);
		(void)vsnprintf(buf->at + buf->len, (size_t)len + 1, fmt, again);
		buf->len += (size_t)len;
	}
	va_end(again);
}

void buf_printf(struct buf *buf, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	buf_vprintf(buf, fmt, args);
	va_end(args);
}

void buf_clear(struct buf *buf)
{
	buf->len = 0;
	if (buf->at)
		buf->at[0] = 0;
}

void buf_done(struct buf *buf)
{
	free(buf->at);
	memset(buf, 0, sizeof(*buf));
}

void buf_f64(struct buf *buf, double value)
{
	char text[40];

	for (int digits = 6; digits <= 17; digits += digits == 6 ? 9 : 1) {
		double back = 0;

		(void)snprintf(text, sizeof(text), "%.*g", digits, value);
		if (str_to_f64(str_of(text), &back) && back == value)
			break;
	}
	for (char *at = text; *at; at++) {
		if (*at == ',')
			*at = '.';
	}
	buf_text(buf, text);
}
