/*
 * temp.h - a place for a profile that is gone when the command is.
 *
 * A directory of our own, 0700, in $TMPDIR or /var/tmp: /tmp is memory on many
 * machines, and a big trace makes a big profile.
 */
#pragma once

#include "base/err.h"
#include "base/own.h"

struct temp;

/* The directory, empty. temp_free removes it with what is in it. */
int temp_new(struct temp **ret_temp, struct err *err);
/* Where the profile goes; no file is there yet. Borrowed until temp_free. */
const char *temp_path(const struct temp *temp);
/* Remove it; NULL is a no-op. */
void temp_free(struct temp *temp);
DEFINE_OWNED(temp, temp_free);
