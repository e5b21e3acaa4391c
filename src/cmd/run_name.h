/*
 * run_name.h - the profile's name of `sonde run`.
 */
#pragma once

#include <limits.h>

#include "base/err.h"

/* `output` with %p (pid), %h (host), %q{NAME} (environment), %% expanded; NULL:
 * the command's last part with .sonde, and -2, -3 ... if that exists.
 * ERR_USAGE: an unknown %; ERR_LIMIT: too long. */
int run_name(const char *output, const char *command, char ret_path[PATH_MAX], struct err *err);
