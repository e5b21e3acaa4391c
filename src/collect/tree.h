/*
 * tree.h - small texts below a root directory: /proc, /sys, /etc.
 *
 * The root is "" for this machine; tests, and a pod that has the node mounted,
 * name another. What can't be read is NULL, not an error: a missing file is
 * a fact here. Everything lives in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

enum { TREE_TEXT_MAX = 1 << 20 };

struct tree {
	const char *root;       /* "" or a directory without a slash at its end */
	char *const *variables; /* "NAME=value", NULL at the end */
	struct arena *arena;
};

/* The path below the root, fit for open(2). */
const char *tree_path(const struct tree *tree, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The file's content, up to TREE_TEXT_MAX bytes; bytes 0, which separate the
 * words of a command line, become blanks. */
const char *tree_text(const struct tree *tree, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The first line without its end, up to 4 KiB of it. */
const char *tree_line(const struct tree *tree, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Where a link points to, as it is written there. */
const char *tree_link(const struct tree *tree, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool tree_has(const struct tree *tree, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Names in a directory, sorted, without those that start with a dot. */
const char *const *tree_names(const struct tree *tree, const char *path, size_t *ret_count);

/* An environment variable; NULL if it is not set. */
const char *tree_variable(const struct tree *tree, const char *name);

/* What follows `key` and its colon on a line of `text` ("Key:  value"), without blanks. */
const char *tree_value(const struct tree *tree, const char *text, const char *key);
