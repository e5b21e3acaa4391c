/*
 * import.h - files of other tools into one profile, for the commands that take
 * such files: import, and report for those who have not heard of import.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Read `files` into a new profile at `output`. What is readable is kept even
 * if some files are not; then the profile is written and the result is the
 * code of the first failure. With none readable there is no profile.
 *
 * `ret_summary` gets a line a file. *ret_written: the profile is there. On a
 * terminal, progress is shown on stderr. A file at `output` is replaced only
 * if it is a profile (ERR_USAGE).
 */
int import_files(const char *const *files, size_t count, const char *output,
		 struct buf *ret_summary, bool *ret_written, struct err *err);
