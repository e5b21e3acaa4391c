/*
 * sink.h - where events go.
 *
 * A reader or a collector gets a sink and pushes events into it, in any order;
 * ids in them come from sink->session. The profile file is a sink (store/);
 * tests and benchmarks have others. Each call returns 0 or a negative ERR_*
 * (disk full, say), which the reader passes on at once.
 *
 * Not thread safe.
 */
#pragma once

#include "base/err.h"
#include "model/event.h"
#include "model/metric.h"
#include "model/session.h"

struct sink;

/* X(struct name): one function each. */
#define SINK_LIST(X) \
	X(op)        \
	X(call)      \
	X(range)     \
	X(link)      \
	X(alloc)     \
	X(sample)    \
	X(stall)     \
	X(counter)   \
	X(mark)

struct sink_ops {
#define X(name) int (*name)(struct sink * sink, const struct name *event, struct err *err);
	SINK_LIST(X)
#undef X
	/* May be NULL. */
	int (*pause)(struct sink *sink, int64_t *ret_again_ns, struct err *err);
};

struct sink {
	const struct sink_ops *ops;
	struct session *session;
};

/* sink_op(sink, &op, err), sink_call(...), ... */
#define X(name)                                                                    \
	static inline int sink_##name(struct sink *sink, const struct name *event, \
				      struct err *err)                             \
	{                                                                          \
		return sink->ops->name(sink, event, err);                          \
	}
SINK_LIST(X)
#undef X

/* Whoever gives events has none for now: a time to bring what came into safety. To be
 * called again at *ret_again_ns of the steady clock if there are none by then, INT64_MAX:
 * no need to. */
static inline int sink_pause(struct sink *sink, int64_t *ret_again_ns, struct err *err)
{
	*ret_again_ns = INT64_MAX;
	return sink->ops->pause ? sink->ops->pause(sink, ret_again_ns, err) : 0;
}
