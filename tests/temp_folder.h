/*
 * temp_folder.h - a folder of a test's own, removed with all that is in it.
 */
#pragma once

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct temp_folder {
	char path[64];
};

/* Below `parent`, or in /tmp where that can't be had. */
static inline void temp_make(struct temp_folder *folder, const char *parent)
{
	(void)snprintf(folder->path, sizeof(folder->path), "%s/sonde-test-XXXXXX", parent);
	if (mkdtemp(folder->path))
		return;
	(void)snprintf(folder->path, sizeof(folder->path), "/tmp/sonde-test-XXXXXX");
	cr_assert_not_null(mkdtemp(folder->path));
}

static inline int temp_remove_one(const char *path, const struct stat *stat, int kind,
				  struct FTW *place)
{
	(void)stat;
	(void)kind;
	(void)place;
	return remove(path);
}

static inline void temp_remove(struct temp_folder *folder)
{
	(void)nftw(folder->path, temp_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
