#include "cmd/run_host.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define OSRT "libsonde-osrt.so"

bool run_host_has_word(const char *list, const char *word)
{
	struct str rest = str_of(list);

	while (rest.at) {
		if (str_is(str_cut(&rest, ','), word))
			return true;
	}
	return false;
}

static bool is_osrt(const char *at, size_t len)
{
	static const size_t own = sizeof(OSRT) - 1;

	return len >= own && !memcmp(at + len - own, OSRT, own) &&
	       (len == own || at[len - own - 1] == '/');
}

int run_host_preload(const char *inject, const char *before, struct buf *out, struct err *err)
{
	const char *slash = strrchr(inject, '/');
	struct buf path = { 0 };
	char library[PATH_MAX];
	const char *found;

	buf_printf(&path, "%.*s" OSRT, slash ? (int)(slash - inject) + 1 : 0, inject);
	found = realpath(path.at, library);
	buf_done(&path);
	if (!found)
		return err_set(err, ERR_MISSING, OSRT " is not beside %s", inject);
	/* The loader's separators; it knows no way to write them otherwise. */
	if (strpbrk(library, ": "))
		return err_set(err, ERR_UNSUPPORTED,
			       "%s: LD_PRELOAD can't name a path with a blank or colon", library);
	buf_text(out, "LD_PRELOAD=");
	while (before && *before) {
		size_t len = strcspn(before, ": ");

		if (len && !is_osrt(before, len))
			buf_printf(out, "%.*s:", (int)len, before);
		before += len + (before[len] != 0);
	}
	buf_text(out, library);
	return 0;
}
