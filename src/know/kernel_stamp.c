/*
 * Times as logs write them. Nothing here depends on the locale or the zone of
 * this machine: month names are those of syslog and the kernel's tools.
 */
#include <ctype.h>
#include <string.h>

#include "know/kernel_line.h"

#define NS_PER_S   INT64_C(1000000000)
#define NS_PER_DAY (86400 * NS_PER_S)

static const char MONTHS[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char DAYS[] = "MonTueWedThuFriSatSun";

/* What was read so far of a date. */
struct moment {
	int64_t year; /* 0: none */
	int64_t month, day;
	int64_t day_ns;
	int64_t resolution_ns;
	bool has_zone;
	int64_t zone_s;
};

static bool take_char(struct str *text, char c)
{
	if (!text->len || *text->at != c)
		return false;
	text->at++;
	text->len--;
	return true;
}

/* `least` to `most` digits. */
static bool take_digits(struct str *text, size_t least, size_t most, int64_t *ret)
{
	size_t len = 0;

	while (len < text->len && len < most && isdigit((unsigned char)text->at[len]))
		len++;
	if (len < least || !str_to_i64((struct str){ text->at, len }, ret))
		return false;
	text->at += len;
	text->len -= len;
	return true;
}

/* A three-letter name of `names`: its place, from 1. */
static bool take_name(struct str *text, const char *names, int64_t *ret)
{
	if (text->len < 3)
		return false;
	for (int64_t i = 0; names[i * 3]; i++) {
		if (!memcmp(text->at, names + i * 3, 3)) {
			*ret = i + 1;
			text->at += 3;
			text->len -= 3;
			return true;
		}
	}
	return false;
}

/* A fraction behind '.' or ',' in ns; a missing one is none. */
static void take_fraction(struct str *text, int64_t *ret_ns, int64_t *ret_resolution_ns)
{
	int64_t unit = NS_PER_S;
	struct str rest = *text;

	*ret_ns = 0;
	*ret_resolution_ns = NS_PER_S;
	if (!take_char(&rest, '.') && !take_char(&rest, ','))
		return;
	if (!rest.len || !isdigit((unsigned char)*rest.at))
		return;
	for (; rest.len && isdigit((unsigned char)*rest.at); rest.at++, rest.len--) {
		unit /= 10;
		*ret_ns += (*rest.at - '0') * unit;
		*ret_resolution_ns = unit ? unit : 1;
	}
	*text = rest;
}

static bool take_clock(struct str *text, struct moment *moment)
{
	struct str rest = *text;
	int64_t h, m, s, ns;

	if (!take_digits(&rest, 2, 2, &h) || !take_char(&rest, ':') ||
	    !take_digits(&rest, 2, 2, &m) || !take_char(&rest, ':') ||
	    !take_digits(&rest, 2, 2, &s) || h > 23 || m > 59 || s > 60)
		return false;
	take_fraction(&rest, &ns, &moment->resolution_ns);
	moment->day_ns = (h * 3600 + m * 60 + s) * NS_PER_S + ns;
	*text = rest;
	return true;
}

/* "Z", "UTC", "+00:00", "-0830", "+01". */
static void take_zone(struct str *text, struct moment *moment)
{
	struct str rest = *text;
	int64_t h, m = 0;
	bool minus;

	if (take_char(&rest, 'Z')) {
		moment->has_zone = true;
		*text = rest;
		return;
	}
	str_skip_blanks(&rest);
	if (str_starts(rest, "UTC") && (rest.len == 3 || !isalnum((unsigned char)rest.at[3]))) {
		moment->has_zone = true;
		*text = (struct str){ rest.at + 3, rest.len - 3 };
		return;
	}
	rest = *text;
	if (!rest.len || (*rest.at != '+' && *rest.at != '-'))
		return;
	minus = *rest.at == '-';
	rest.at++;
	rest.len--;
	if (!take_digits(&rest, 2, 2, &h))
		return;
	(void)take_char(&rest, ':');
	if (rest.len && isdigit((unsigned char)*rest.at) && !take_digits(&rest, 2, 2, &m))
		return;
	if (h > 14 || m > 59)
		return;
	moment->zone_s = (h * 3600 + m * 60) * (minus ? -1 : 1);
	moment->has_zone = true;
	*text = rest;
}

/* Days since 1970 of a date of the Gregorian calendar; after Howard Hinnant's
 * description of the civil calendar in eras of 400 years. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t era, of_era, of_year;

	year -= month <= 2;
	era = year / 400;
	of_era = year - era * 400;
	of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* A leap year, so that 29 February has a place. */
enum { YEARLESS = 2000 };

static bool settle(const struct moment *moment, struct kernel_line *line)
{
	int64_t year = moment->year ? moment->year : YEARLESS, ns;

	if (year < 1970 || year > 2200 || moment->month < 1 || moment->month > 12 ||
	    moment->day < 1 || moment->day > 31)
		return false;
	ns = days_of(year, moment->month, moment->day) * NS_PER_DAY + moment->day_ns;
	line->has_day = true;
	line->day_s = moment->day_ns / NS_PER_S % 86400;
	line->resolution_ns = moment->resolution_ns;
	line->stamp = !moment->year ? STAMP_YEARLESS : moment->has_zone ? STAMP_UTC : STAMP_LOCAL;
	line->stamp_ns = !moment->year ? ns - days_of(YEARLESS, 1, 1) * NS_PER_DAY
				       : ns - moment->zone_s * NS_PER_S;
	return true;
}

/* "2025-01-21T02:21:33,498559+00:00", also with a blank for the T. */
static bool take_iso(struct str *text, struct kernel_line *line)
{
	struct moment moment = { 0 };
	struct str rest = *text;

	if (!take_digits(&rest, 4, 4, &moment.year) || !take_char(&rest, '-') ||
	    !take_digits(&rest, 2, 2, &moment.month) || !take_char(&rest, '-') ||
	    !take_digits(&rest, 2, 2, &moment.day) ||
	    (!take_char(&rest, 'T') && !take_char(&rest, ' ')) || !take_clock(&rest, &moment))
		return false;
	take_zone(&rest, &moment);
	if (!moment.year || !settle(&moment, line))
		return false;
	*text = rest;
	return true;
}

/* "Feb 23 16:24:18", "Feb  3 2025 16:24:18", "2025 Feb 23 16:24:18",
 * "Sun Feb 23 16:24:18 2025". */
static bool take_named(struct str *text, struct kernel_line *line)
{
	struct moment moment = { 0 };
	struct str rest = *text, ahead;
	int64_t weekday;

	if (take_digits(&rest, 4, 4, &moment.year))
		str_skip_blanks(&rest);
	if (take_name(&rest, DAYS, &weekday))
		str_skip_blanks(&rest);
	if (!take_name(&rest, MONTHS, &moment.month) || !rest.len || *rest.at != ' ')
		return false;
	str_skip_blanks(&rest);
	if (!take_digits(&rest, 1, 2, &moment.day))
		return false;
	str_skip_blanks(&rest);
	ahead = rest;
	if (!moment.year && take_digits(&ahead, 4, 4, &moment.year)) {
		rest = ahead;
		(void)take_char(&rest, ':');
		str_skip_blanks(&rest);
	}
	if (!take_clock(&rest, &moment))
		return false;
	ahead = rest;
	str_skip_blanks(&ahead);
	if (!moment.year && take_digits(&ahead, 4, 4, &moment.year)) {
		if (ahead.len && *ahead.at != ' ' && *ahead.at != ']')
			moment.year = 0; /* a host whose name begins with a number */
		else
			rest = ahead;
	}
	take_zone(&rest, &moment);
	if (!settle(&moment, line))
		return false;
	*text = rest;
	return true;
}

/* "1737426093.498559": journalctl -o short-unix. */
static bool take_unix(struct str *text, struct kernel_line *line)
{
	struct str rest = *text;
	int64_t s, ns;

	if (!take_digits(&rest, 9, 10, &s) || !rest.len || *rest.at != '.')
		return false;
	take_fraction(&rest, &ns, &line->resolution_ns);
	if (!rest.len || *rest.at != ' ' || s > INT64_MAX / NS_PER_S - 1)
		return false;
	line->stamp = STAMP_UTC;
	line->stamp_ns = s * NS_PER_S + ns;
	*text = rest;
	return true;
}

bool kernel_stamp_take(struct str *text, struct kernel_line *line)
{
	struct str rest = *text;
	int64_t weekday;

	if (take_iso(text, line) || take_unix(text, line) || take_named(text, line))
		return true;
	/* journalctl -o short-full: "Tue 2025-01-21 02:21:33 UTC" */
	if (!take_name(&rest, DAYS, &weekday))
		return false;
	str_skip_blanks(&rest);
	if (!take_iso(&rest, line))
		return false;
	*text = rest;
	return true;
}

bool kernel_boot_take(struct str *text, int64_t *ret_ns, int64_t *ret_resolution_ns)
{
	struct str rest = *text;
	int64_t s, ns;

	if (!take_char(&rest, '['))
		return false;
	str_skip_blanks(&rest);
	if (!take_digits(&rest, 1, 10, &s) || !rest.len || *rest.at != '.')
		return false;
	take_fraction(&rest, &ns, ret_resolution_ns);
	/* printk.caller: "[  912.104][ T1234]" */
	if (!take_char(&rest, ']') || s > INT64_MAX / NS_PER_S - 1)
		return false;
	if (rest.len && *rest.at == '[') {
		const char *close = memchr(rest.at, ']', rest.len < 16 ? rest.len : 16);

		if (close) {
			rest.len -= (size_t)(close + 1 - rest.at);
			rest.at = close + 1;
		}
	}
	*ret_ns = s * NS_PER_S + ns;
	*text = rest;
	return true;
}
