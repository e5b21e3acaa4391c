/*
 * counter_sink.h - a sink that keeps counters and marks in memory, for tests
 * of readers of kernel metrics.
 */
#pragma once

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/reader.h"

struct counter_sink {
	struct sink sink;
	VEC(struct counter) counters;
	VEC(struct mark) marks;
	int64_t others;
};

static int keep_counter(struct sink *sink, const struct counter *counter, struct err *err)
{
	struct counter_sink *self = (struct counter_sink *)(void *)sink;

	(void)err;
	*VEC_ADD(&self->counters) = *counter;
	return 0;
}

static int keep_mark(struct sink *sink, const struct mark *mark, struct err *err)
{
	struct counter_sink *self = (struct counter_sink *)(void *)sink;

	(void)err;
	*VEC_ADD(&self->marks) = *mark;
	return 0;
}

/* One for each kind; those of counters and marks stay unused. */
#define X(name)                                                                     \
	static inline int count_##name(struct sink *sink, const struct name *event, \
				       struct err *err)                             \
	{                                                                           \
		(void)event;                                                        \
		(void)err;                                                          \
		((struct counter_sink *)(void *)sink)->others++;                    \
		return 0;                                                           \
	}
SINK_LIST(X)
#undef X

static const struct sink_ops COUNTER_SINK_OPS = {
	.op = count_op,
	.call = count_call,
	.range = count_range,
	.link = count_link,
	.alloc = count_alloc,
	.sample = count_sample,
	.stall = count_stall,
	.counter = keep_counter,
	.mark = keep_mark,
};

static struct counter_sink *counter_sink_new(void)
{
	struct counter_sink *self = mem_zero(sizeof(*self));

	self->sink.ops = &COUNTER_SINK_OPS;
	self->sink.session = session_new();
	return self;
}

static void counter_sink_free(struct counter_sink *self)
{
	if (!self)
		return;
	session_free(self->sink.session);
	VEC_DONE(&self->counters);
	VEC_DONE(&self->marks);
	free(self);
}
DEFINE_OWNED(counter_sink, counter_sink_free);

/* The counter `name` of a launch; NULL if there is none. */
static inline const struct counter *counter_sink_find(const struct counter_sink *self,
						      int64_t launch, const char *name)
{
	for (size_t i = 0; i < self->counters.count; i++) {
		const struct counter *counter = &self->counters.at[i];

		if (counter->launch == launch &&
		    !strcmp(session_text(self->sink.session, counter->name), name))
			return counter;
	}
	return NULL;
}
