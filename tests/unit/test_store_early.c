/* What a writer has put into the file by when: on a clock of the test's own. */
#include <criterion/criterion.h>

#include "store/store.h"
#include "temp_folder.h"
#include "warped_clock.h"

enum { EVENTS_BETWEEN_LOOKS = 4096 };

static struct temp_folder folder;
static char path[96];

static void make(void)
{
	temp_make(&folder, "/tmp");
	(void)snprintf(path, sizeof(path), "%s/p.sonde", folder.path);
	clock_warp();
}

static void clear(void)
{
	temp_remove(&folder);
}

static void write_kernels(struct store *store, int count)
{
	struct session *session = store_session(store);
	uint32_t source = session_source(session, "kineto", "trace.json");
	struct device device = { .scope = source, .source = source };
	struct lane lane = { .kind = LANE_STREAM,
			     .source = source,
			     .device = session_device(session, &device),
			     .process = SESSION_NONE,
			     .context = 1,
			     .stream = 7,
			     .tid = -1 };
	struct op op = { .kind = OP_KERNEL, .lane = session_lane(session, &lane) };

	for (int i = 0; i < count; i++) {
		op.start_ns = (int64_t)i * 1000;
		op.end_ns = op.start_ns + 500;
		cr_assert_eq(sink_op(store_sink(store), &op, NULL), 0);
	}
}

/* How many kernels a reader of PATH.part gets; -1: none can read it. */
static int64_t readable(void)
{
	OWN(store_closep) struct store *store = NULL;

	return store_open(path, &store, NULL) < 0 ? -1 : store_count(store, STORE_kernel);
}

Test(store_early, an_import_that_is_killed_at_once_has_left_something, .init = make, .fini = clear)
{
	OWN(store_closep) struct store *store = NULL;

	cr_assert_eq(store_create(path, &store, NULL), 0);
	*ahead_ns += INT64_C(40) * 1000000;
	write_kernels(store, EVENTS_BETWEEN_LOOKS);
	cr_assert_eq(readable(), EVENTS_BETWEEN_LOOKS);
	/* Then once a second. */
	*ahead_ns += INT64_C(1100) * 1000000;
	write_kernels(store, EVENTS_BETWEEN_LOOKS);
	cr_assert_eq(readable(), 2 * EVENTS_BETWEEN_LOOKS);
}

Test(store_early, a_recording_is_written_when_its_caller_says, .init = make, .fini = clear)
{
	OWN(store_closep) struct store *store = NULL;

	cr_assert_eq(store_create_recording(path, &store, NULL), 0);
	*ahead_ns += INT64_C(40) * 1000000;
	write_kernels(store, 400);
	cr_assert_leq(readable(), 0);
	cr_assert_eq(store_flush(store, NULL), 0);
	cr_assert_eq(readable(), 400);
}
