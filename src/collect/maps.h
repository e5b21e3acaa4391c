/*
 * maps.h - which files a process has mapped where.
 *
 * All-zero is an empty list.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct mapping {
	uint64_t start, end;
	uint64_t base; /* where the file's first byte lies, or would */
	bool is_code;
	char *path; /* "" none: made as the program runs */
};

struct maps {
	struct mapping *at; /* by start */
	size_t count, room;
};

/* What /proc/PID/maps under `root` says now, in place of what `maps` holds; empty if it
 * can't be read. */
void maps_load(struct maps *maps, const char *root, int64_t pid);
void maps_done(struct maps *maps);
bool maps_same(const struct maps *a, const struct maps *b);

/* NULL: nothing is mapped there. */
const struct mapping *maps_find(const struct maps *maps, uint64_t address);

/* What lies there is in no file that has symbols: the program made it. */
bool maps_is_made(const struct mapping *mapping);

/* Paths of a process as paths of ours: behind /proc/PID/root where it has a mount namespace
 * of its own (a container's). All-zero: as ours are. */
struct maps_files {
	struct buf path;
	size_t prefix;
};

void maps_files_load(struct maps_files *files, const char *root, int64_t pid);
void maps_files_done(struct maps_files *files);
/* Valid until the next call. NULL: by that name it is no file, or to us another: one that is
 * not absolute, a device, a descriptor in /proc/self. */
const char *maps_file(struct maps_files *files, struct str path);
