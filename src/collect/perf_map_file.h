/*
 * perf_map_file.h - the perf map of a running process, read behind its back as it grows.
 *
 * The file is /tmp/perf-PID.map, with the process's /tmp and the PID that it has for itself
 * where it is in a container. Taken is a regular file that the process's user, root or ours owns
 * and that was written to since the process began: numbers of processes come again. At most 1 MiB
 * are read at a time and 256 MiB in all, with a rest of 20 times what it took; the process
 * feels nothing of it. Once open the file is read on when the process has gone or has removed it;
 * one that another took the place of, or that is shorter than it was, is read anew.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/own.h"

struct perf_map_file;

/* `root` as threads_new has it; borrowed. */
struct perf_map_file *perf_map_file_new(const char *root, int64_t pid);
void perf_map_file_free(struct perf_map_file *file);
DEFINE_OWNED(perf_map_file, perf_map_file_free);

/* The function at `address`, as far as the file is read, which goes on if it is time to. NULL:
 * none. Valid until the next call. */
const char *perf_map_file_find(struct perf_map_file *file, uint64_t address, int64_t now_ns,
			       bool *ret_is_python);
