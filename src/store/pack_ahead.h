/*
 * pack_ahead.h - a thread that packs chunks while the next ones fill.
 *
 * Jobs come back in the order in which they were given. The bytes in flight
 * are bounded: a full queue makes the giver wait. Internal to store/.
 */
#pragma once

#include "store/pack.h"

struct pack_ahead;

/* NULL: no thread to be had, or no CPU for it to run on. */
struct pack_ahead *pack_ahead_start(size_t rows_max);
/* Ends the thread; jobs that did not come back are gone. NULL is a no-op. */
void pack_ahead_stop(struct pack_ahead *ahead);

/* The job to fill for pack_ahead_give. NULL: the queue is full, or so are
 * `bytes` more with what is in flight: take one back. */
struct pack_job *pack_ahead_room(struct pack_ahead *ahead, size_t bytes);
/* The job of pack_ahead_room, whose rows (of malloc) now belong to the queue. What
 * its texts point to must stay until it comes back or the queue stops. */
void pack_ahead_give(struct pack_ahead *ahead, size_t bytes);
/* In place of a job: texts that no later job points to. Released when all jobs
 * before have come back. Needs pack_ahead_room, too. */
void pack_ahead_give_texts(struct pack_ahead *ahead, struct intern *texts);
/* The oldest job, packed; without `wait` NULL if it is not yet. NULL: there is
 * none. Good until the next call; its rows are released by then. Without rows
 * (count 0) it stood for texts. */
const struct pack_job *pack_ahead_take(struct pack_ahead *ahead, bool wait);
