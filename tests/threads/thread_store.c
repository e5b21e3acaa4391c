/*
 * thread_store - the thread that packs chunks, under the thread sanitizer.
 *
 * Events with details of two lanes go in by the hundred thousand; the profile is
 * finished, given up at many places, or its tails are written in between. What
 * the events are is the business of tests/unit/test_store.c; here they are only
 * counted and their details hashed. Status 0 if that is right; the sanitizer
 * ends the program with another one when it sees a race.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/thread.h"
#include "store/store.h"

enum { EVENTS = 300000, NAMES = 50000, TEXT_LEN = 120 };

static void fill_session(struct session *session)
{
	struct lane lane = { .kind = LANE_THREAD, .device = SESSION_NONE, .stream = -1 };

	(void)session_source(session, "test", "a");
	lane.process = session_process(session, 0, 4711);
	for (lane.tid = 1; lane.tid <= 2; lane.tid++)
		(void)session_lane(session, &lane);
}

static void text_of(uint32_t i, char text[TEXT_LEN])
{
	(void)snprintf(text, TEXT_LEN, "%0*x", 16 + (int)(i % 100), (unsigned int)(i % NAMES));
}

static struct store *start(const char *path)
{
	struct store *store;

	if (store_create(path, &store, NULL) < 0)
		abort();
	fill_session(store_session(store));
	return store;
}

/* Events [from, to); the sum of the hashes of their details. */
static uint64_t push(struct store *store, uint32_t from, uint32_t to)
{
	uint64_t sum = 0;

	for (uint32_t i = from; i < to; i++) {
		char text[TEXT_LEN];
		struct call call = {
			.kind = CALL_OP, .lane = i % 2, .start_ns = i, .end_ns = i + 5
		};

		text_of(i, text);
		call.detail = session_detail(store_session(store), text, strlen(text));
		sum += hash_bytes(text, strlen(text), 0);
		if (sink_call(store_sink(store), &call, NULL) < 0)
			abort();
	}
	return sum;
}

static int check(const char *path, uint64_t wanted)
{
	struct store_query query = { .kinds = STORE_BIT(STORE_op), .columns = COL_BIT(COL_detail) };
	struct store *store;
	struct store_cursor *cursor;
	struct store_batch batch;
	uint64_t sum = 0;
	size_t count = 0;

	if (store_open(path, &store, NULL) < 0 ||
	    store_query_open(store, &query, &cursor, NULL) < 0)
		return 1;
	while (store_next(cursor, &batch, NULL) > 0) {
		for (size_t i = 0; i < batch.count; i++) {
			size_t len;
			const char *text = intern_get(store_session(store)->details,
						      (uint32_t)batch.col[COL_detail][i], &len);

			sum += hash_bytes(text, len, 0);
		}
		count += batch.count;
	}
	store_query_close(cursor);
	store_close(store);
	if (count == EVENTS && sum == wanted)
		return 0;
	(void)fprintf(stderr, "%zu events, not %d, or other details\n", count, (int)EVENTS);
	return 1;
}

int main(void)
{
	char folder[] = "/tmp/thread-store-XXXXXX", path[sizeof(folder) + 8];
	struct store *store;
	uint64_t sum = 0;
	int failed = 0;

	if (!mkdtemp(folder))
		return 1;
	(void)snprintf(path, sizeof(path), "%s/a", folder);
	if (!thread_has_cpus())
		(void)fprintf(stderr, "one CPU: there is no thread to test\n");
	store = start(path);
	for (uint32_t from = 0; from < EVENTS; from += EVENTS / 4) {
		sum += push(store, from, from + EVENTS / 4);
		failed |= store_flush(store, NULL) < 0;
	}
	failed |= store_finish(store, NULL) < 0;
	store_close(store);
	failed |= check(path, sum);
	for (uint32_t stop = 140000; stop < EVENTS; stop += 60000) {
		store = start(path);
		(void)push(store, 0, stop);
		store_discard(store);
	}
	(void)unlink(path);
	(void)rmdir(folder);
	return failed;
}
