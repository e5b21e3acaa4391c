#include "base/i18n.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

static const char DOMAIN[] = "sonde";
enum { LANG_BYTES_MAX = 32, PATH_BYTES_MAX = 4096 };

/* A language goes into a path: letters, digits and _ only, and no longer than
 * any real one. "zh_CN.UTF-8" is cut to "zh_CN". */
static bool clean(const char *lang, char ret[LANG_BYTES_MAX])
{
	size_t len = strcspn(lang, ".@");

	if (!len || len >= LANG_BYTES_MAX ||
	    strspn(lang, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") < len)
		return false;
	memcpy(ret, lang, len);
	ret[len] = 0;
	return true;
}

static bool holds_catalog(const char *dir, const char *lang)
{
	struct buf path = { 0 };
	bool found;

	buf_printf(&path, "%s/%s/LC_MESSAGES/%s.mo", dir, lang, DOMAIN);
	found = access(path.at, R_OK) == 0;
	buf_done(&path);
	return found;
}

/* Bind the first folder with a catalog of `lang`: beside the program, then of
 * its installation, then the system's. */
static bool bind_beside_program(const char *lang)
{
	static const char *const beside[] = { "/locale", "/../share/locale", "" };
	char exe[PATH_BYTES_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	bool found = false;

	if (len < 0)
		len = 0;
	exe[len] = 0;
	if (strrchr(exe, '/'))
		*strrchr(exe, '/') = 0;
	for (size_t i = 0; i < sizeof(beside) / sizeof(*beside) && !found; i++) {
		struct buf dir = { 0 };

		buf_printf(&dir, "%s%s", *beside[i] ? exe : "/usr/share/locale", beside[i]);
		found = holds_catalog(dir.at, lang) && bindtextdomain(DOMAIN, dir.at);
		buf_done(&dir);
	}
	return found;
}

/* gettext ignores LANGUAGE while the locale is "C", and a machine with no
 * installed locale has nothing else to choose but C.UTF-8, which glibc 2.35
 * carries inside (glibc intl/dcigettext.c, guess_category_value). */
static void leave_c_locale(void)
{
	const char *now = setlocale(LC_MESSAGES, NULL);

	if (!now || !strcmp(now, "C") || !strcmp(now, "POSIX"))
		(void)setlocale(LC_MESSAGES, "C.UTF-8");
	(void)setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		(void)setlocale(LC_CTYPE, "C.UTF-8");
}

bool i18n_choose(const char *lang)
{
	char name[LANG_BYTES_MAX];

	if (!clean(lang, name))
		return false;
	if (!strcmp(name, "C") || !strcmp(name, "POSIX") || !strncmp(name, "en", 2)) {
		(void)setenv("LANGUAGE", "en", 1);
		(void)textdomain(DOMAIN);
		return true;
	}
	if (!bind_beside_program(name)) {
		if (!strchr(name, '_'))
			return false;
		*strchr(name, '_') = 0;
		if (!bind_beside_program(name))
			return false;
	}
	leave_c_locale();
	/* The catalogs are UTF-8, and so is what we print, whatever the locale. */
	(void)bind_textdomain_codeset(DOMAIN, "UTF-8");
	(void)setenv("LANGUAGE", name, 1);
	(void)textdomain(DOMAIN);
	return true;
}
