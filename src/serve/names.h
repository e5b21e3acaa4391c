/*
 * names.h - what the processes on the cards are called, read once each.
 *
 * A flight record is saved when a process may be dead: its name must be known
 * before. Nothing here grows with time: who was not seen for a quarter of an
 * hour goes.
 */
#pragma once

#include "base/own.h"
#include "collect/board.h"
#include "collect/proc.h"
#include "model/session.h"

struct names;

/* `root` as for procs_open. Without /proc nobody has a name. */
struct names *names_new(const char *root);
void names_free(struct names *names);
DEFINE_OWNED(names, names_free);

/* Learn who the processes of this snapshot are. */
void names_see(struct names *names, const struct snapshot *snapshot);

/* Complete the processes of a session from row `from` on; returns how many rows
 * there are. */
size_t names_put(const struct names *names, struct session *session, size_t from);

/* Who a PID is; NULL: nobody knows. Good until the next names_see. */
const struct proc *names_find(const struct names *names, int64_t pid);
