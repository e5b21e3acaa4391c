/*
 * terminal.h - what standard output can show, and in which language.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "present/present.h"

/* Width, colour and UTF-8 of standard output; `color` is "auto", "always",
 * "never" or NULL. */
struct present_style terminal_style(const char *color);

/* `lang`, else the locale's language. Output for programs follows `lang` only,
 * so that they get the same words on every machine. ERR_MISSING: no catalog. */
int terminal_language(const char *lang, bool for_programs, struct err *err);
