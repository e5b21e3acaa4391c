/*
 * run_maps.h - Python's own perf maps for the length of a run: asked for, and removed.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "collect/threads.h"
#include "model/session.h"

struct run_maps;

/* *ret_maps NULL: the user's environment asks for maps already, and they are the user's. Fails as
 * perf_request_open. */
int run_maps_open(struct run_maps **ret_maps, struct err *err);
/* What the command's environment needs, at most 2 of ret_env; how many. */
size_t run_maps_environment(const struct run_maps *maps, struct buf *ret_env);
/* Removes them; NULL is a no-op. What was missing becomes a note of the session, which may be
 * NULL, as `threads`, who know the Pythons. */
void run_maps_close(struct run_maps *maps, const struct threads *threads, struct session *session);
