/*
 * fault_catalogue.h - what a fault means, how bad it is, what to do, and which
 * faults are only the wake of another.
 *
 * Xid and SXid come from data/xid.csv and data/sxid.csv, which follow NVIDIA's
 * own catalogues; what DCGM or gpud say of a number is not used where it
 * differs. Where the line itself says how bad it is (NVLink 5, SXid, recovery
 * action), the line wins.
 */
#pragma once

#include "model/fault.h"

/* How bad. X(id, name) */
#define FAULT_WEIGHT_LIST(X)                                                       \
	X(INFO, "info")   /* nothing to do */                                      \
	X(WARN, "warn")   /* count it; act if it comes back */                     \
	X(ERROR, "error") /* work was lost: of a program, or of one card's user */ \
	X(FATAL, "fatal") /* the card, switch or link needs hands */

enum fault_weight {
#define X(id, name) FAULT_WEIGHT_##id,
	FAULT_WEIGHT_LIST(X)
#undef X
};
const char *fault_weight_name(enum fault_weight weight);

struct fault_meaning {
	enum fault_weight weight;
	bool known;       /* in a catalogue */
	const char *name; /* "GPU_HAS_FALLEN_OFF_THE_BUS"; "" none */
	/* Marked N_ (of data/: by tools/update-po). */
	const char *meaning; /* "" only of what is no fault */
	const char *causes;  /* "" none */
	const char *action;
};

void fault_meaning_of(const struct fault *fault, struct fault_meaning *ret_meaning);

/* The fault as such says only that something was cleared away: a channel that
 * was removed (Xid 45), or that the driver changed its advice (154), limits
 * its messages. Without another fault before it, nothing failed. */
bool fault_is_aftermath(const struct fault *fault);

/* `later` is told because `earlier` happened, if both are of one card and
 * close together. */
bool fault_follows(const struct fault *later, const struct fault *earlier);

/* What the driver's recovery action asks for, 0 to 4 and beyond: marked N_. */
const char *fault_recovery_text(int64_t action);
