/*
 * golden.h - pages that are compared with a file in tests/present/.
 *
 * With SONDE_UPDATE=1 in the environment the files are written instead of
 * compared; look at the diff.
 */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/own.h"

static inline void check_golden(const char *name, const struct buf *got)
{
	OWN(own_fclosep) FILE *file = NULL;
	struct buf path = { 0 }, expected = { 0 };
	char part[4096];
	size_t len;

	buf_printf(&path, "%s/tests/present/%s", SOURCE_DIR, name);
	if (getenv("SONDE_UPDATE")) {
		file = fopen(path.at, "we");
		cr_assert(file && fwrite(got->at, 1, got->len, file) == got->len);
		return;
	}
	file = fopen(path.at, "re");
	cr_assert(file, "%s is missing: SONDE_UPDATE=1 writes it", path.at);
	while ((len = fread(part, 1, sizeof(part), file)) > 0)
		buf_add(&expected, part, len);
	cr_assert_str_eq(got->at, expected.at, "%s differs:\n%s", name, got->at);
	buf_done(&path);
	buf_done(&expected);
}
