#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A line quotes names and bytes of files we do not trust: no escape sequence
 * reaches a terminal, no newline makes two lines of one. UTF-8 passes. */
static void tame(char *line)
{
	for (char *at = line; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	}
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return code;
	err->code = code;
	va_start(args, fmt);
	(void)vsnprintf(err->line, sizeof(err->line), fmt, args);
	va_end(args);
	tame(err->line);
	return code;
}

int err_errno(struct err *err, const char *fmt, ...)
{
	int saved = errno;
	enum err_code code = saved == ENOENT ? ERR_MISSING : ERR_IO;
	char text[400];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return err_set(err, code, "%s: %s", text, strerror(saved));
}

int err_context(struct err *err, const char *fmt, ...)
{
	char text[256];
	char line[sizeof(err->line)];
	va_list args;

	if (!err)
		return ERR_IO;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	memcpy(line, err->line, sizeof(line));
	return err_set(err, err->code, "%s: %s", text, line);
}

const char *err_name(enum err_code code)
{
	switch (code) {
	case ERR_NONE:
		return "none";
#define X(value, name, status) \
	case value:            \
		return name;
		ERR_LIST(X)
#undef X
	}
	return "unknown";
}
