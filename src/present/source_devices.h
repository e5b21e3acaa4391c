/*
 * source_devices.h - which devices a recorded process worked on.
 */
#pragma once

#include "model/session.h"

/* The first `limit` devices that the source has streams on, in order; how many
 * there are. */
size_t source_devices(const struct session *session, uint32_t source, uint32_t *ret_at,
		      size_t limit);
/* The pid of the source's one process; -1: none or several. */
int64_t source_pid(const struct session *session, uint32_t source);
/* What was run, and how it ended, of a profile by `sonde run`; string ids, 0. */
uint32_t profile_env(const struct session *session, const char *key);
