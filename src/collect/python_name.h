/*
 * python_name.h - names of Python's as we show them, from whichever side they come:
 * "collate data.py" of the function `make.<locals>.collate` in /home/me/data.py.
 */
#pragma once

#include "base/str.h"

/* A qualified name without the functions that it was made in. */
static inline struct str python_name_function(struct str qualname)
{
	static const char locals[] = "<locals>.";
	const char *at;

	while (qualname.len && (at = str_find(qualname, locals))) {
		const char *next = at + sizeof(locals) - 1;

		qualname = (struct str){ next, (size_t)(qualname.at + qualname.len - next) };
	}
	return qualname;
}

/* A file without its folders. */
static inline struct str python_name_file(struct str path)
{
	const char *slash = path.len ? memrchr(path.at, '/', path.len) : NULL;

	return slash ? (struct str){ slash + 1, (size_t)(path.at + path.len - slash - 1) } : path;
}
