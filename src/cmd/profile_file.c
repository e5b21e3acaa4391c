#include "cmd/profile_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"

/* "Database File Format", sqlite.org/fileformat2.html: the magic is at 0, the
 * application id at 68. */
enum { APPLICATION_ID_AT = 68, HEADER_BYTES = 72 };

static bool read_header(const char *path, char ret_header[HEADER_BYTES])
{
	OWN(own_closep) int fd = -1;
	struct stat st;

	/* A FIFO that we opened and closed would cost its writer what it wrote. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && read(fd, ret_header, HEADER_BYTES) == HEADER_BYTES;
}

bool profile_file_is_database(const char *path)
{
	char header[HEADER_BYTES];

	return read_header(path, header) && !memcmp(header, "SQLite format 3", 16);
}

static bool is_profile(const char *path)
{
	char header[HEADER_BYTES];

	return profile_file_is_database(path) && read_header(path, header) &&
	       !memcmp(header + APPLICATION_ID_AT, "SOND", 4);
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

void profile_file_tell_newer(const char *path, const char *command)
{
	struct buf part = { 0 };
	struct stat whole, newer;

	buf_printf(&part, "%s.part", path);
	if (stat(path, &whole) == 0 && stat(part.at, &newer) == 0 &&
	    is_before(&whole.st_mtim, &newer.st_mtim))
		fprintf(stderr,
			"sonde %s: %s is newer, a recording that has not ended or was killed; "
			"this is %s, the one before it\n",
			command, part.at, path);
	buf_done(&part);
}

int profile_file_check_output(const char *output, struct err *err)
{
	struct stat st;

	if (stat(output, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "-o %s: is a directory", output);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "-o %s: is not an ordinary file", output);
	if (st.st_size && !is_profile(output))
		return err_set(err, ERR_USAGE, "-o %s: exists and is not a profile", output);
	return 0;
}
