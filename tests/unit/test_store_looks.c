/* What threads were at, into the profile file and out of it again. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "store/store.h"
#include "temp_folder.h"

static struct temp_folder folder;

static void remove_temp(void)
{
	temp_remove(&folder);
}

static const struct {
	enum range_kind kind;
	enum store_kind stored;
	const char *name, *detail;
} LOOKS[] = {
	{ RANGE_STATE, STORE_state, "waiting: futex", NULL },
	{ RANGE_STATE_EXACT, STORE_state_exact, "runnable", NULL },
	{ RANGE_CPU_STACK, STORE_cpu_stack, "memcpy", "stack=memcpy < main" },
	{ RANGE_PYTHON_STACK, STORE_python_stack, "collate data.py:41",
	  "stack=collate data.py:41 < <module> train.py:7" },
	{ RANGE_USER, STORE_range, "step", "color=1" },
};
enum { LOOK_COUNT = sizeof(LOOKS) / sizeof(LOOKS[0]) };

static void fill(struct store *store)
{
	struct session *session = store_session(store);
	struct lane lane = { .kind = LANE_THREAD, .device = SESSION_NONE, .tid = 7 };
	struct err err = { 0 };

	lane.source = session_source(session, "cuda", "it");
	lane.process = session_process(session, lane.source, 7);
	for (int64_t i = 0; i < LOOK_COUNT; i++) {
		struct range range = { .kind = LOOKS[i].kind,
				       .lane = session_lane(session, &lane),
				       .start_ns = 1000 * i,
				       .end_ns = 1000 * i + 10 + i };

		range.name = intern_text(session->strings, LOOKS[i].name);
		if (LOOKS[i].detail)
			range.detail =
				session_detail(session, LOOKS[i].detail, strlen(LOOKS[i].detail));
		cr_assert_eq(sink_range(store_sink(store), &range, &err), 0, "%s", err.line);
	}
}

Test(store, each_way_to_look_at_a_thread_is_a_table_of_its_own, .fini = remove_temp)
{
	OWN(store_closep) struct store *in = NULL;
	OWN(store_closep) struct store *out = NULL;
	char path[96];
	struct err err = { 0 };

	temp_make(&folder, "/tmp");
	(void)snprintf(path, sizeof(path), "%s/p.sonde", folder.path);
	cr_assert_eq(store_create(path, &in, &err), 0, "%s", err.line);
	fill(in);
	cr_assert_eq(store_finish(in, &err), 0, "%s", err.line);
	cr_assert_eq(store_open(path, &out, &err), 0, "%s", err.line);
	for (int64_t i = 0; i < LOOK_COUNT; i++) {
		struct store_query query = { .kinds = STORE_BIT(LOOKS[i].stored),
					     .columns = UINT64_MAX };
		OWN(store_query_closep) struct store_cursor *cursor = NULL;
		const struct session *session = store_session(out);
		struct store_batch batch;

		cr_assert_eq(store_count(out, LOOKS[i].stored), 1);
		cr_assert_eq(store_query_open(out, &query, &cursor, &err), 0);
		cr_assert_eq(store_next(cursor, &batch, &err), 1);
		cr_assert_eq(batch.count, 1);
		cr_assert_eq(batch.col[COL_start][0], 1000 * i);
		cr_assert_eq(batch.col[COL_duration][0], 10 + i);
		cr_assert_str_eq(session_text(session, (uint32_t)batch.col[COL_name][0]),
				 LOOKS[i].name);
		if (LOOKS[i].detail)
			cr_assert_str_eq(intern_get(session->details,
						    (uint32_t)batch.col[COL_detail][0], NULL),
					 LOOKS[i].detail);
		cr_assert_eq(store_next(cursor, &batch, &err), 0);
	}
}
