/*
 * join.h - recordings of one machine, file after file, as one.
 *
 * A monitor cuts its recording every hour. Analyses want the whole on one lane
 * a card: join_add pushes samples and marks of an opened recording into a sink
 * under ids of the sink's session. Cards are told by UUID, processes by pid,
 * machines by the name that their recordings bear. Where a recording begins
 * before the last one ended (the clock was set back), it is a source of its own.
 *
 * Not thread safe.
 */
#pragma once

#include "base/err.h"
#include "base/own.h"
#include "store/store.h"

struct join;

/* Events before from_ns (UTC) are left out; INT64_MIN: none. */
struct join *join_new(struct sink *sink, int64_t from_ns);
void join_free(struct join *join);
DEFINE_OWNED(join, join_free);

/* Files in order of time. Fails as the sink and the store do. */
int join_add(struct join *join, struct store *store, struct err *err);
