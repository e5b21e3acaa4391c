/*
 * buf.h - bytes that grow.
 *
 * All-zero is an empty buffer. After any call that adds text, `at` is followed
 * by a NUL that `len` does not count.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *at;
	size_t len;
	size_t room;
};

void buf_add(struct buf *buf, const void *at, size_t len);
void buf_text(struct buf *buf, const char *text);
void buf_char(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *buf, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));
/* A finite number in the shortest form that reads back as the same double,
 * whatever the locale. */
void buf_f64(struct buf *buf, double value);

/* `len` bytes at the end, not set yet: fill them before the next call. */
void *buf_room(struct buf *buf, size_t len);

/* Empty, keeping the memory. */
void buf_clear(struct buf *buf);
void buf_done(struct buf *buf);
