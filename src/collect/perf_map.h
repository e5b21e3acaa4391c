/*
 * perf_map.h - functions that a program made as it ran, as it tells of them in a perf map.
 *
 * A line is "START SIZE NAME", both numbers in hex: what perf reads from /tmp/perf-PID.map, and
 * CPython, node, Java's agents and Julia write. Programs give addresses away again: where entries
 * overlap the later one is right. The bytes are a stranger's: lines have a length, entries and
 * names a limit, and what is no entry is counted and skipped.
 *
 * CPython's "py::make.<locals>.collate:/home/me/data.py" becomes "collate data.py", as python.h
 * names functions.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/own.h"

struct perf_map;

struct perf_map *perf_map_new(void);
void perf_map_free(struct perf_map *map);
DEFINE_OWNED(perf_map, perf_map_free);

/* The file's next bytes: a line may end in the next ones. */
void perf_map_feed(struct perf_map *map, const char *at, size_t len);

/* NULL: no function is known there. Borrowed until the map is freed. */
const char *perf_map_find(struct perf_map *map, uint64_t address, bool *ret_is_python);

struct perf_map_counts {
	int64_t entries;   /* taken */
	int64_t malformed; /* lines that are none */
	int64_t left_out;  /* there was no room */
	size_t pieces;     /* of memory with one name each, at most 2^20 */
};

struct perf_map_counts perf_map_counts(struct perf_map *map);
