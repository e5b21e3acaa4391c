#include "cmd/run_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "collect/spool.h"

#define OSRT "libsonde-osrt.so"

static int find_library(const char *given, char ret_path[PATH_MAX], struct err *err)
{
	static const char *const places[] = { "libsonde-inject.so",
					      "../lib/sonde/libsonde-inject.so" };
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (given)
		return realpath(given, ret_path) ? 0 : err_errno(err, "%s", given);
	if (len <= 0)
		return err_errno(err, "/proc/self/exe");
	self[len] = 0;
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - self), self, places[i]) <
			    (int)sizeof(path) &&
		    realpath(path, ret_path))
			return 0;
	}
	return err_set(err, ERR_MISSING,
		       "libsonde-inject.so is neither beside %s nor in "
		       "../lib/sonde",
		       self);
}

int run_host_library(const char *given, char ret_path[PATH_MAX], struct err *err)
{
	int ret = find_library(given, ret_path, err);

	return ret < 0 ? ret : spool_check_library(ret_path, err);
}

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

/* What lies beside the library. It goes into a list that knows no way to write
 * one of its own `separators` in a path. */
static int beside(const char *inject, const char *name, const char *separators,
		  char ret_path[PATH_MAX], struct err *err)
{
	const char *slash = strrchr(inject, '/');
	struct buf path = { 0 };
	const char *found;

	buf_printf(&path, "%.*s%s", slash ? (int)(slash - inject) + 1 : 0, inject, name);
	found = realpath(path.at, ret_path);
	buf_done(&path);
	if (!found)
		return err_set(err, ERR_MISSING, "%s is not beside %s", name, inject);
	if (strpbrk(ret_path, separators))
		return err_set(err, ERR_UNSUPPORTED,
			       "%s: a path with a blank or colon can't be handed to the command",
			       ret_path);
	return 0;
}

int run_host_python(const char *inject, const char *before, struct buf *out, struct err *err)
{
	char folder[PATH_MAX];

	if (beside(inject, "python", ":", folder, err) < 0)
		return err->code;
	buf_printf(out, "PYTHONPATH=%s", folder);
	if (before && *before)
		buf_printf(out, ":%s", before);
	return 0;
}

int run_host_preload(const char *inject, const char *before, struct buf *out, struct err *err)
{
	char library[PATH_MAX];

	if (beside(inject, OSRT, ": ", library, err) < 0 || spool_check_library(library, err) < 0)
		return err->code;
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
