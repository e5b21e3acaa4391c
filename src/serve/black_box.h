/*
 * black_box.h - the monitor's flight recorder: what strikes, and what is saved.
 *
 * A strike saves the last minutes at once, in pieces between the rounds, and
 * half a minute later again under the same name, so that what followed is in it.
 * Strikes meanwhile belong to the same record.
 */
#pragma once

#include "base/own.h"
#include "collect/watch.h"
#include "model/fault.h"
#include "serve/names.h"
#include "store/recorder.h"

struct black_box;

struct black_box_opts {
	struct recorder *recorder; /* whose directory and names are used; borrowed */
	const struct names *names; /* borrowed */
	int64_t interval_ns;
	void (*tell)(void *arg, const char *line);
	void *arg;
};

struct black_box *black_box_new(const struct black_box_opts *opts);
void black_box_free(struct black_box *box);
DEFINE_OWNED(black_box, black_box_free);

/* Keep a snapshot. True: it holds a strike, *ret. */
bool black_box_see(struct black_box *box, const struct snapshot *snapshot, struct trigger *ret);

/* Something struck in the values of a card. */
void black_box_strike(struct black_box *box, const struct trigger *trigger, int64_t monotonic_ns);
/* A fault of the kernel log: kept, and a strike if it is an Xid, a card off the
 * bus, or a process killed for want of memory. */
void black_box_fault(struct black_box *box, const struct fault *fault, int64_t monotonic_ns);

/* A piece of work, if there is some. True: more is waiting. */
bool black_box_work(struct black_box *box, int64_t monotonic_ns);
/* When there is work without a further strike; INT64_MAX: never. */
int64_t black_box_due(const struct black_box *box);
/* Finish what is being saved. */
void black_box_end(struct black_box *box);
