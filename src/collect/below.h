/*
 * below.h - what descends from a process: how it is called, and whether a program of one
 * name is among it, with one variable set.
 *
 * Looked for in /proc, by the names of what descends from the process. A look takes
 * less than 1 us where no process began on the machine for a while, else 7 to 9 us
 * (measured with 40 descendants, two cores). It is at one process, and 256 are kept: what
 * lives for less than some ten looks can be missed, and so can what a thread other than
 * a process's first starts.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/own.h"
#include "model/session.h"

struct below;

/* Below `pid` or there, by a name as other_tool_is takes it, with `variable` in the
 * environment that it began with. The texts are borrowed. `root` is "" for this machine. */
struct below *below_new(const char *root, pid_t pid, const char *tool, const char *variable);
void below_free(struct below *below);
DEFINE_OWNED(below, below_free);

/* One look. NULL is a no-op. */
void below_look(struct below *below);
/* It was there. */
bool below_found(const struct below *below);
/* Rows of the session, in a source of READER_PROC, for those that were there for `least_ns` and
 * long enough to be called what they are, at most 512, and that have none: nothing is
 * recorded of them so far. Their names follow them. */
void below_tell(struct below *below, struct session *session, int64_t least_ns);
