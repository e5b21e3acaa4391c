/* Any bytes as a profile file: opened, read whole, asked by SQL. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int ignore_row(void *arg, int count, const char *const *names, const char *const *values,
		      const bool *numbers)
{
	int *rows = arg;

	(void)numbers;
	(void)count;
	(void)names;
	(void)values;
	return ++*rows > 1000;
}

static void read_whole(const char *path)
{
	struct store_query query = { .kinds = UINT32_MAX, .columns = UINT64_MAX };
	OWN(store_closep) struct store *store = NULL;
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	struct err err = { 0 };

	if (store_open(path, &store, &err) < 0)
		return;
	(void)store_query_open(store, &query, &cursor, &err);
	while (store_next(cursor, &batch, &err) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A real name: SQLite resolves links, and a memfd has no path. */
	char path[] = "/dev/shm/sonde-fuzz-XXXXXX";
	int fd = mkstemp(path), rows = 0;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	(void)close(fd);
	read_whole(path);
	(void)store_sql(path,
			"SELECT k.name, r.name FROM kernel k JOIN runtime r USING(correlation);"
			"SELECT * FROM op WHERE start_ns > 5; SELECT * FROM sample",
			ignore_row, &rows, NULL);
	(void)unlink(path);
	return 0;
}
