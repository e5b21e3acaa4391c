/*
 * sink_record.h - a sink for tests that keeps every event.
 *
 * Details don't outlive the sink call they come with, so their texts are moved
 * to the session's strings; `detail` of a kept event is a string id.
 */
#pragma once

#include <stdlib.h>

#include "base/vec.h"
#include "model/sink.h"

struct record {
	struct sink sink;
#define X(name) VEC(struct name) name##s;
	SINK_LIST(X)
#undef X
};

static inline struct record *record_of(struct sink *sink)
{
	return (struct record *)sink;
}

static inline void record_time(struct sink *sink, uint32_t lane, int64_t start, int64_t end)
{
	struct source *source = &sink->session->sources.at[sink->session->lanes.at[lane].source];

	source->first_ns = start < source->first_ns ? start : source->first_ns;
	source->last_ns = end > source->last_ns ? end : source->last_ns;
}

static inline uint32_t record_detail(struct sink *sink, uint32_t detail)
{
	size_t len;
	const char *text = intern_get(sink->session->details, detail, &len);

	return session_string(sink->session, text, len);
}

static inline int record_op(struct sink *sink, const struct op *event, struct err *err)
{
	struct op *kept = VEC_ADD(&record_of(sink)->ops);

	(void)err;
	*kept = *event;
	kept->detail = record_detail(sink, event->detail);
	record_time(sink, event->lane, event->start_ns, event->end_ns);
	return 0;
}

static inline int record_call(struct sink *sink, const struct call *event, struct err *err)
{
	struct call *kept = VEC_ADD(&record_of(sink)->calls);

	(void)err;
	*kept = *event;
	kept->detail = record_detail(sink, event->detail);
	record_time(sink, event->lane, event->start_ns, event->end_ns);
	return 0;
}

static inline int record_range(struct sink *sink, const struct range *event, struct err *err)
{
	struct range *kept = VEC_ADD(&record_of(sink)->ranges);

	(void)err;
	*kept = *event;
	kept->detail = record_detail(sink, event->detail);
	record_time(sink, event->lane, event->start_ns, event->end_ns);
	return 0;
}

static inline int record_mark(struct sink *sink, const struct mark *event, struct err *err)
{
	struct mark *kept = VEC_ADD(&record_of(sink)->marks);

	(void)err;
	*kept = *event;
	kept->detail = record_detail(sink, event->detail);
	record_time(sink, event->lane, event->time_ns, event->time_ns);
	return 0;
}

#define RECORD_INSTANT(name)                                                         \
	static inline int record_##name(struct sink *sink, const struct name *event, \
					struct err *err)                             \
	{                                                                            \
		(void)err;                                                           \
		*VEC_ADD(&record_of(sink)->name##s) = *event;                        \
		record_time(sink, event->lane, event->time_ns, event->time_ns);      \
		return 0;                                                            \
	}
RECORD_INSTANT(link)
RECORD_INSTANT(alloc)
RECORD_INSTANT(sample)
RECORD_INSTANT(stall)
#undef RECORD_INSTANT

static inline int record_counter(struct sink *sink, const struct counter *event, struct err *err)
{
	(void)err;
	*VEC_ADD(&record_of(sink)->counters) = *event;
	return 0;
}

static const struct sink_ops record_ops = {
#define X(name) .name = record_##name,
	SINK_LIST(X)
#undef X
};

/* Release with record_free. */
static inline struct record *record_new(void)
{
	struct record *record = calloc(1, sizeof(*record));

	if (!record)
		abort();
	record->sink.ops = &record_ops;
	record->sink.session = session_new();
	return record;
}

static inline void record_free(struct record *record)
{
	if (!record)
		return;
#define X(name) VEC_DONE(&record->name##s);
	SINK_LIST(X)
#undef X
	session_free(record->sink.session);
	free(record);
}
DEFINE_OWNED(record, record_free);
