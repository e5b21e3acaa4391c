/*
 * profile_file.h - what stands on disk where a command is told to read or to
 * write a profile.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* True if the file begins as a profile does, or another SQLite file; false too
 * if it can't be read. */
bool profile_file_is_database(const char *path);

/* On stderr, for a command that reads the profile: a newer recording to the same name has
 * not ended, or was killed, and what is read is the one before it. */
void profile_file_tell_newer(const char *path, const char *command);

/* -o is one letter away from the trace itself, or from the program: nothing is
 * written over but an older profile or an empty file. Else ERR_USAGE. */
int profile_file_check_output(const char *output, struct err *err);
