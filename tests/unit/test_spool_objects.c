/* Events and graphs of a process that makes and destroys them for ever. */
#include <criterion/criterion.h>

#include "collect/spool_process.h"
#include "sink_record.h"

static void slot(struct spooled *p, uint64_t handle, uint32_t made)
{
	struct segment_slot slot = { .time_ns = handle + 1,
				     .value = handle,
				     .x = { 7, OBJECT_EVENT, made } };

	cr_assert_eq(spooled_object_slot(p, &slot), 0);
}

Test(spool_objects, handles_that_are_no_more_do_not_fill_the_memory)
{
	enum { LIVE = 10, CHURN = 20000 };
	OWN(record_freep) struct record *record = record_new();
	struct spooled p = { .sink = &record->sink };

	p.source = session_source(record->sink.session, "cuda", "invented (pid 1)");
	for (uint64_t i = 1; i <= LIVE; i++)
		slot(&p, i, 1);
	for (uint64_t i = 1000; i < 1000 + CHURN; i++) {
		slot(&p, i, 1);
		slot(&p, i, 0);
	}
	cr_assert_lt(p.handles.count, CHURN / 4);
	/* Those that live are still known. */
	for (uint64_t i = 1; i <= LIVE; i++)
		slot(&p, i, 0);
	cr_assert_eq(record->marks.count, 2 * (LIVE + CHURN));
	map_done(&p.handles);
	map_done(&p.lanes);
	VEC_DONE(&p.objects);
}
