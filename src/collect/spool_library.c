/* spool_library.c - whether a library's file is of this build, by the mark in it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "collect/spool.h"
#include "wire/segment.h"

/* Ours have a tenth of a megabyte. */
static const off_t LIBRARY_MOST = 16 << 20;

/* The version in the mark; 0: there is none. */
static uint32_t version_in(const char *at, size_t len)
{
	static const char word[] = SEGMENT_MARK_WORD;
	struct segment_mark mark = { 0 };
	const char *found = memmem(at, len, word, sizeof(word));

	if (found && (size_t)(found - at) <= len - sizeof(mark))
		memcpy(&mark, found, sizeof(mark));
	return mark.version;
}

int spool_check_library(const char *path, struct err *err)
{
	OWN(own_freep) char *bytes = NULL;
	OWN(own_closep) int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	ssize_t got = 0;
	uint32_t version;

	if (file < 0 || fstat(file, &status) < 0)
		return err_errno(err, "%s", path);
	if (S_ISREG(status.st_mode) && status.st_size <= LIBRARY_MOST) {
		bytes = mem_alloc((size_t)status.st_size + 1);
		got = pread(file, bytes, (size_t)status.st_size, 0);
		if (got < 0)
			return err_errno(err, "%s", path);
	}
	version = (size_t)got >= sizeof(struct segment_mark) ? version_in(bytes, (size_t)got) : 0;
	if (version == SEGMENT_VERSION)
		return 0;
	if (!version)
		return err_set(err, ERR_UNSUPPORTED,
			       "%s is no library of sonde's, or one of an older build", path);
	return err_set(err, ERR_UNSUPPORTED,
		       "%s is of another build of sonde: it writes recordings of version %u, this "
		       "sonde reads version %d",
		       path, version, SEGMENT_VERSION);
}
