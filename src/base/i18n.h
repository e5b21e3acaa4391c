/*
 * i18n.h - texts in the user's language, through gettext.
 *
 * _() marks and translates, N_() only marks (for tables, translated with _()
 * where they are shown). Catalogs are found beside the program:
 * ../share/locale or ./locale, then the installation's. English needs none.
 */
#pragma once

#include <libintl.h>
#include <stdbool.h>

#define _(text)  gettext(text)
#define N_(text) (text)

/* "en", "zh" (or "zh_CN", ...); false: no catalog for it, English stays. */
bool i18n_choose(const char *lang);
