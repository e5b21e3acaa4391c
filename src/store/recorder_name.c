/*
 * Names of recordings: HOST-YYYYMMDDTHHMMSSZ[-WORD].sonde[.part]
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/recorder.h"

enum { STAMP_LEN = 16 }; /* 20261130T080000Z */

static bool parse_stamp(struct str text, int64_t *ret_utc_ns)
{
	static const char shape[STAMP_LEN + 1] = "00000000T000000Z";
	struct tm tm = { 0 };
	int64_t part[6];
	static const int at[6] = { 0, 4, 6, 9, 11, 13 }, len[6] = { 4, 2, 2, 2, 2, 2 };
	time_t seconds;

	if (text.len != STAMP_LEN)
		return false;
	for (int i = 0; i < STAMP_LEN; i++) {
		bool digit = text.at[i] >= '0' && text.at[i] <= '9';

		if (shape[i] == '0' ? !digit : text.at[i] != shape[i])
			return false;
	}
	for (int i = 0; i < 6; i++)
		(void)str_to_i64((struct str){ text.at + at[i], (size_t)len[i] }, &part[i]);
	tm.tm_year = (int)part[0] - 1900;
	tm.tm_mon = (int)part[1] - 1;
	tm.tm_mday = (int)part[2];
	tm.tm_hour = (int)part[3];
	tm.tm_min = (int)part[4];
	tm.tm_sec = (int)part[5];
	seconds = timegm(&tm);
	if (seconds < 0 || part[0] > 2200)
		return false;
	*ret_utc_ns = (int64_t)seconds * 1000000000;
	return true;
}

static bool take_end(struct str *text, const char *end)
{
	if (!str_ends(*text, end))
		return false;
	text->len -= strlen(end);
	return true;
}

/* Host, stamp and word of a name; false: it is no recording. */
static bool parse_name(struct str name, struct str *ret_host, struct recorder_file *ret)
{
	const char *dash;
	struct str word = { 0 };

	ret->is_part = take_end(&name, ".part");
	if (!take_end(&name, ".sonde") || name.len < STAMP_LEN + 2)
		return false;
	ret->in_series = true;
	ret->attempt = 1;
	dash = memrchr(name.at, '-', name.len);
	if (!dash)
		return false;
	if (!str_ends(name, "Z")) {
		int64_t number;

		word = (struct str){ dash + 1, (size_t)(name.at + name.len - dash - 1) };
		name.len = (size_t)(dash - name.at);
		ret->in_series = str_to_i64(word, &number) && number > 1 && number < 1000000;
		ret->attempt = ret->in_series ? (uint32_t)number : 1;
	}
	if (name.len < STAMP_LEN + 2 || name.at[name.len - STAMP_LEN - 1] != '-')
		return false;
	*ret_host = (struct str){ name.at, name.len - STAMP_LEN - 1 };
	return parse_stamp((struct str){ name.at + name.len - STAMP_LEN, STAMP_LEN }, &ret->utc_ns);
}

static int by_time(const void *a, const void *b)
{
	const struct recorder_file *x = a, *y = b;

	if (x->utc_ns != y->utc_ns)
		return x->utc_ns < y->utc_ns ? -1 : 1;
	if (x->attempt != y->attempt)
		return x->attempt < y->attempt ? -1 : 1;
	return strcmp(x->path, y->path);
}

int recorder_list(const char *dir, const char *host, struct recorder_files *ret_files,
		  struct err *err)
{
	DIR *open_dir = opendir(dir);
	struct dirent *entry;

	if (!open_dir)
		return err_errno(err, "%s", dir);
	while ((entry = readdir(open_dir))) {
		struct recorder_file file = { 0 };
		struct buf path = { 0 };
		struct str of_host;
		struct stat st;

		if (!parse_name(str_of(entry->d_name), &of_host, &file) ||
		    (host && !str_is(of_host, host)))
			continue;
		buf_printf(&path, "%s/%s", dir, entry->d_name);
		if (lstat(path.at, &st) < 0 || !S_ISREG(st.st_mode)) {
			buf_done(&path);
			continue;
		}
		file.bytes = (int64_t)st.st_size;
		file.path = path.at;
		*VEC_ADD(&ret_files->at) = file;
	}
	(void)closedir(open_dir);
	if (ret_files->at.count)
		qsort(ret_files->at.at, ret_files->at.count, sizeof(*ret_files->at.at), by_time);
	return 0;
}

void recorder_files_done(struct recorder_files *files)
{
	for (size_t i = 0; i < files->at.count; i++)
		free(files->at.at[i].path);
	VEC_DONE(&files->at);
}
