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
