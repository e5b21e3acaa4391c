/*
 * collector_bench.h - a collector on the puppet, and what its snapshots should say.
 */
#pragma once

#include <criterion/criterion.h>
#include <sys/stat.h>
#include <time.h>

#include "puppet_world.h"

static inline void take(struct collector *collector, struct snapshot *snapshot)
{
	struct err err = { 0 };

	cr_assert_eq(collector_take(collector, snapshot, &err), 0, "%s", err.line);
}

static inline struct collector *open_world(struct world *world, const char *script)
{
	struct collector *collector = NULL;
	struct err err = { 0 };

	world_set(world, script);
	cr_assert_eq(collector_open(&world->opts, &collector, &err), 0, "%s", err.line);
	return collector;
}

static inline void expect(const struct board *board, enum metric metric, double wanted)
{
	double value = 0;
	enum origin origin;

	cr_assert(board_get(board, metric, &value, &origin), "%s: %s", metric_name(metric),
		  origin_word(origin));
	cr_assert_float_eq(value, wanted, 1e-6, "%s: %g, not %g", metric_name(metric), value,
			   wanted);
}

static inline void expect_none(const struct board *board, enum metric metric, enum origin wanted)
{
	double value = 0;
	enum origin origin;

	cr_assert_not(board_get(board, metric, &value, &origin), "%s: %g", metric_name(metric),
		      value);
	cr_assert_eq(origin, wanted, "%s: %s", metric_name(metric), origin_name(origin));
}

static inline void wait_ms(int ms)
{
	(void)nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

/* A file below the world's folder, which stands for "/". */
static inline void put_file(const struct world *world, const char *path, const char *text)
{
	char full[512], *slash;
	FILE *file;

	(void)snprintf(full, sizeof(full), "%s/%s", world->folder, path);
	for (slash = strchr(full + strlen(world->folder) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = 0;
		(void)mkdir(full, 0700);
		*slash = '/';
	}
	file = fopen(full, "we");
	cr_assert_not_null(file, "%s", full);
	(void)fputs(text, file);
	(void)fclose(file);
}
