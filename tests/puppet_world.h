/*
 * puppet_world.h - a scripted NVML for one test case.
 *
 *	struct world world = { 0 };
 *	world_set(&world, "gpu\nname X\n...");      (again: the world changes)
 *	world.opts.library is the puppet; world_done(&world);
 */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "collect/collector.h"

struct world {
	char folder[64];
	char script[128];
	struct collector_opts opts;
};

/* `text` may begin with "@NAME": the script tests/fake/NAME goes before the rest. */
static inline void world_set(struct world *world, const char *text)
{
	char next[160], line[512];
	FILE *out;

	if (!world->folder[0]) {
		(void)snprintf(world->folder, sizeof(world->folder), "/tmp/puppet.XXXXXX");
		cr_assert_not_null(mkdtemp(world->folder));
		(void)snprintf(world->script, sizeof(world->script), "%s/script", world->folder);
		(void)setenv("PUPPET_NVML", world->script, 1);
		if (!world->opts.library)
			world->opts.library = FAKE_DIR "/libnvidia-ml.so.1";
		if (!world->opts.root)
			world->opts.root = world->folder;
	}
	(void)snprintf(next, sizeof(next), "%s/next", world->folder);
	out = fopen(next, "we");
	cr_assert_not_null(out);
	if (*text == '@') {
		char path[256];
		FILE *in;
		size_t len = strcspn(text, "\n");

		(void)snprintf(path, sizeof(path), SOURCE_DIR "/tests/fake/%.*s", (int)len - 1,
			       text + 1);
		in = fopen(path, "re");
		cr_assert_not_null(in, "%s", path);
		while (fgets(line, sizeof(line), in))
			(void)fputs(line, out);
		(void)fclose(in);
		text += len;
	}
	(void)fputs(text, out);
	(void)fclose(out);
	cr_assert_eq(rename(next, world->script), 0);
}

static inline void world_done(struct world *world)
{
	(void)unlink(world->script);
	(void)rmdir(world->folder);
}
