#include "know/compat.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "know/know.h"

static const char *field(const struct know_entry *entry, const char *wanted)
{
	const char *column, *value;

	for (size_t i = 0; know_field(entry, i, &column, &value); i++) {
		if (!strcmp(column, wanted))
			return value;
	}
	return NULL;
}

/* The first dotted number in `text`: "525 (525.60.13)" gives the longer one in
 * the brackets, ">=610 (branch" gives 610. */
static void driver_in(const char *text, char ret_driver[24])
{
	const char *bracket = text ? strchr(text, '(') : NULL;
	size_t len;

	ret_driver[0] = 0;
	if (!text)
		return;
	if (bracket && isdigit((unsigned char)bracket[1]))
		text = bracket + 1;
	text += strcspn(text, "0123456789");
	len = strspn(text, "0123456789.");
	if (len && len < 24)
		(void)snprintf(ret_driver, 24, "%.*s", (int)len, text);
}

static int number(const char *text)
{
	int64_t value;
	struct str digits = { text, text ? strspn(text, "0123456789") : 0 };

	return digits.len && str_to_i64(digits, &value) && value < 1000 ? (int)value : 0;
}

bool compat_toolkit(const char *version, struct compat_toolkit *ret_toolkit)
{
	size_t len = strlen(version);
	struct know_entry entry;
	bool found = false;

	*ret_toolkit = (struct compat_toolkit){ 0 };
	/* Newest first: the last that fits is the first release. */
	for (size_t i = 0; len && know_at(i, &entry); i++) {
		if (strcmp(entry.kind, "cuda") != 0 || strncmp(entry.name, version, len) != 0 ||
		    !strchr(" .", entry.name[len]) || strstr(entry.name, "floor"))
			continue;
		found = true;
		ret_toolkit->name = entry.name;
		driver_in(field(&entry, "min_linux_driver"), ret_toolkit->driver);
		ret_toolkit->sm_min = number(field(&entry, "sm_min"));
		ret_toolkit->sm_max = number(field(&entry, "sm_max"));
	}
	return found;
}

void compat_floor(int major, char ret_driver[24])
{
	struct know_entry entry;
	char name[16];

	ret_driver[0] = 0;
	(void)snprintf(name, sizeof(name), "%d.x floor", major);
	for (size_t i = 0; know_at(i, &entry); i++) {
		if (!strcmp(entry.kind, "cuda") && !strncmp(entry.name, name, strlen(name)))
			driver_in(field(&entry, "min_linux_driver"), ret_driver);
	}
}

/* The row of "2.9" for "2.9.0+cu128"; "see 2.12" is followed once. */
static const char *capabilities_of(const char *torch)
{
	struct know_entry entry;
	char release[16];
	size_t len = strspn(torch, "0123456789");

	if (torch[len] == '.')
		len += 1 + strspn(torch + len + 1, "0123456789");
	if (!len || len >= sizeof(release))
		return NULL;
	(void)snprintf(release, sizeof(release), "%.*s", (int)len, torch);
	for (size_t i = 0; know_at(i, &entry); i++) {
		const char *text;

		if (strcmp(entry.kind, "pytorch") != 0 || strcmp(entry.name, release) != 0)
			continue;
		text = field(&entry, "compute_capabilities");
		return text && !strncmp(text, "see ", 4) && strcmp(text + 4, release) != 0
			       ? capabilities_of(text + 4)
			       : text;
	}
	return NULL;
}

/* "cu130/cu132: 7.5 8.0 12.0(+PTX on Linux)": machine code runs on later minor
 * versions of its major version, PTX on everything later. */
static enum compat fits(struct str part, int cc_major, int cc_minor)
{
	enum compat answer = COMPAT_UNKNOWN;

	while (part.at) {
		struct str word = str_cut(&part, ' ');
		struct str left = word, major = str_cut(&left, '.');
		int64_t big, small;
		bool ptx = str_find(word, "PTX") != NULL;

		left.len = left.at ? strspn(left.at, "0123456789") : 0;
		if (!str_to_i64(major, &big) || !str_to_i64(left, &small))
			continue;
		if ((big == cc_major && small <= cc_minor) ||
		    (ptx && (big < cc_major || (big == cc_major && small <= cc_minor))))
			return COMPAT_YES;
		answer = COMPAT_NO;
	}
	return answer;
}

enum compat compat_torch(const char *torch, const char *cuda, int cc_major, int cc_minor)
{
	const char *text = capabilities_of(torch);
	const char *dot = strchr(cuda, '.');
	struct str rest = text ? str_of(text) : (struct str){ 0 };
	char wheel[16];

	if (!dot || strlen(cuda) > 8)
		return COMPAT_UNKNOWN;
	(void)snprintf(wheel, sizeof(wheel), "cu%.*s%.*s", (int)(dot - cuda), cuda,
		       (int)strspn(dot + 1, "0123456789"), dot + 1);
	while (rest.at) {
		struct str part = str_cut(&rest, ';');

		if (str_find(part, wheel) && !str_find(part, "aarch64"))
			return fits(part, cc_major, cc_minor);
	}
	return COMPAT_UNKNOWN;
}
