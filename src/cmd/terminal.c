#include "cmd/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/i18n.h"
#include "base/str.h"

enum { COLUMNS_DEFAULT = 80, COLUMNS_LEAST = 40, COLUMNS_MOST = 400 };

/* COLUMNS where set, else the terminal's width, else 80; a pipe is 80 wide so
 * that what one person mails looks the same to another. */
static int columns(void)
{
	const char *text = getenv("COLUMNS");
	struct winsize size = { 0 };
	int64_t value = 0;

	if (!text || !str_to_i64(str_of(text), &value)) {
		if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
			return COLUMNS_DEFAULT;
		value = size.ws_col;
	}
	if (value < COLUMNS_LEAST || value > COLUMNS_MOST)
		return COLUMNS_DEFAULT;
	return (int)value;
}

static bool colour(const char *when)
{
	const char *no_color = getenv("NO_COLOR"); /* no-color.org: set and not empty */
	const char *term = getenv("TERM");

	if (when && strcmp(when, "auto") != 0)
		return !strcmp(when, "always");
	return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term &&
	       strcmp(term, "dumb") != 0;
}

/* The value of LC_ALL, else of `category`, else of LANG; "" if none is set. */
static const char *locale_name(const char *category)
{
	const char *const names[] = { "LC_ALL", category, "LANG" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return value;
	}
	return "";
}

/* By its name too: many containers name a locale that they don't have. */
static bool speaks_utf8(void)
{
	struct str name = str_of(locale_name("LC_CTYPE"));

	return !strcmp(nl_langinfo(CODESET), "UTF-8") || str_find(name, "UTF-8") ||
	       str_find(name, "utf8");
}

struct present_style terminal_style(const char *color)
{
	struct present_style style = { .columns = columns() };

	style.colour = colour(color);
	style.utf8 = speaks_utf8();
	return style;
}

int terminal_language(const char *lang, bool for_programs, struct err *err)
{
	(void)setlocale(LC_CTYPE, "");
	(void)setlocale(LC_MESSAGES, "");
	if (lang) {
		if (!i18n_choose(lang))
			return err_set(err, ERR_MISSING, "--lang %s: its catalog is not installed",
				       lang);
	} else if (!for_programs) {
		(void)i18n_choose(locale_name("LC_MESSAGES"));
	}
	return 0;
}
