/*
 * untimed.h - operations of which the recorder had no times, by the calls that launched them:
 * what has not ended, or was in a context that failed, still has its name. For waits.c.
 */
#pragma once

#include "analyze/timeline.h"

struct untimed_op {
	uint32_t source, lane; /* of its stream */
	uint32_t name;
	uint64_t correlation;
	uint32_t
		call_lane; /* of the thread that launched it; SESSION_NONE: its call is not known */
	int64_t call_ns;   /* session time */
};

struct untimed_ops {
	VEC(struct untimed_op) at; /* in order of launch, as far as that is known */
	struct map by_call;
};

/* All-zero before; with untimed_done in any case. */
int untimed_load(const struct timeline *timeline, struct store *store, struct untimed_ops *ret_ops,
		 struct err *err);
void untimed_done(struct untimed_ops *ops);
/* What the call launched that began then in the thread; NULL. */
const struct untimed_op *untimed_find(const struct untimed_ops *ops, uint32_t lane,
				      int64_t start_ns);
