#include "cmd/run_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

static int expand(const char *output, struct buf *out, struct err *err)
{
	for (const char *at = output; *at; at++) {
		char host[256] = "";
		const char *close;

		if (*at != '%') {
			buf_char(out, *at);
			continue;
		}
		at++;
		if (*at == '%') {
			buf_char(out, '%');
		} else if (*at == 'p') {
			buf_printf(out, "%ld", (long)getpid());
		} else if (*at == 'h') {
			(void)gethostname(host, sizeof(host) - 1);
			buf_text(out, host);
		} else if (*at == 'q' && at[1] == '{' && (close = strchr(at, '}'))) {
			char name[256];
			const char *value;

			if (close - at - 2 >= (ptrdiff_t)sizeof(name))
				return err_set(err, ERR_LIMIT, "-o %s: the name is too long",
					       output);
			memcpy(name, at + 2, (size_t)(close - at - 2));
			name[close - at - 2] = 0;
			value = getenv(name);
			buf_text(out, value ? value : "");
			at = close;
		} else {
			return err_set(err, ERR_USAGE,
				       "-o %s: %%%c is none of %%p %%h %%q{NAME} %%%%", output,
				       *at ? *at : ' ');
		}
	}
	return 0;
}

/* "./train.py" -> "train.sonde", "train-2.sonde", ... */
static void first_free(const char *command, struct buf *out)
{
	const char *slash = strrchr(command, '/');
	const char *base = slash ? slash + 1 : command;
	const char *dot = strrchr(base, '.');
	int len = dot && dot > base ? (int)(dot - base) : (int)strlen(base);

	for (int number = 1; number < 10000; number++) {
		buf_clear(out);
		if (number == 1)
			buf_printf(out, "%.*s.sonde", len, base);
		else
			buf_printf(out, "%.*s-%d.sonde", len, base, number);
		if (access(out->at, F_OK) < 0)
			return;
	}
}

int run_name(const char *output, const char *command, char ret_path[PATH_MAX], struct err *err)
{
	struct buf path = { 0 };
	int ret = 0;

	if (output)
		ret = expand(output, &path, err);
	else
		first_free(command, &path);
	if (ret >= 0 && (!path.len || path.len >= PATH_MAX))
		ret = err_set(err, ERR_LIMIT, "-o: the name is %s",
			      path.len ? "too long" : "empty");
	if (ret >= 0)
		memcpy(ret_path, path.at, path.len + 1);
	buf_done(&path);
	return ret;
}
