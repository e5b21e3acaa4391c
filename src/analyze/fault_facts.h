/*
 * fault_facts.h - the faults of a profile: one by one, and by card and number.
 *
 * Lines of one card that come close together are one incident. In it each line
 * has a role: the cause, a consequence of another line, a repeat of one, or a
 * clean-up that stands alone. Groups gather what has one kind and number on one
 * card. Definitions, thresholds and tests: doc/rules/gpu_fault.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "know/fault_catalogue.h"
#include "model/fault.h"

/* X(id, name) */
#define FAULT_ROLE_LIST(X)            \
	X(CAUSE, "cause")             \
	X(CONSEQUENCE, "consequence") \
	X(REPEAT, "repeat")           \
	X(CLEANUP, "cleanup")

enum fault_role {
#define X(id, name) FAULT_ROLE_##id,
	FAULT_ROLE_LIST(X)
#undef X
		FAULT_ROLE_COUNT
};
const char *fault_role_name(enum fault_role role);

enum { FAULT_NO_INDEX = UINT32_MAX };

/* One line or event. Light, as a storm has a million of them; what it says in
 * full is in the profile. */
struct fault_event {
	enum fault_role role;
	uint32_t group;    /* index into facts.fault_groups */
	uint32_t source;   /* of the session */
	uint32_t incident; /* number within the profile */
	uint32_t cause;    /* event that it follows or repeats; FAULT_NO_INDEX */
	uint32_t process;  /* string of facts.fault_strings; 0 unknown */
	uint32_t kernel;   /* string of the session: that ran at the time; 0 unknown */
	int64_t pid;       /* -1 unknown */
	int64_t previous;  /* "caused by previous Xid N"; -1 */
	int64_t time_ns;   /* session time */
	int64_t line;      /* in its file; 0 unknown */
	int64_t day_s;     /* -1 unknown */
	int64_t place;     /* SM or link, as a number; -1 unknown */
	bool has_time;
};

/* What incidents of a group have in common. X(id, name) */
#define FAULT_PATTERN_LIST(X)     \
	X(PROCESS, "process")     \
	X(KERNEL, "kernel")       \
	X(PLACE, "place")         \
	X(INTERVAL, "interval")   \
	X(DAYTIME, "time_of_day") \
	X(NONE, "none")           \
	X(TOO_FEW, "too_few")

enum fault_pattern_kind {
#define X(id, name) FAULT_PATTERN_##id,
	FAULT_PATTERN_LIST(X)
#undef X
};
const char *fault_pattern_name(enum fault_pattern_kind kind);

struct fault_pattern {
	enum fault_pattern_kind kind;
	const char *what; /* the process, the kernel, "GPC 1 TPC 2 SM 0", "link 8"; "" */
	int64_t count;    /* incidents that the test could use */
	int64_t least;    /* fewer, and it is not made */
	double value;     /* interval: ns; time of day: mean second of the day; NAN */
	double p;         /* time of day: chance of so much order without a cause; NAN */
};

struct fault_process {
	const char *name; /* "" unknown */
	int64_t pid;      /* of the last; -1 unknown */
	int64_t count;
};

struct fault_group {
	struct fault first;           /* the first line of it, whole */
	struct fault_meaning meaning; /* the heaviest of its lines */
	uint32_t device;              /* of the session; SESSION_NONE: none */
	uint32_t source;
	int64_t count;
	int64_t role[FAULT_ROLE_COUNT]; /* of them */
	int64_t incidents;              /* that one of its causes began, or it alone */
	bool lower_bound;               /* the driver limited its messages */
	bool has_time;
	int64_t first_ns, last_ns; /* session time */
	uint32_t caused_by;        /* group that most of its consequences follow; FAULT_NO_INDEX */
	int64_t previous;          /* "previous Xid" whose line is not there; -1 none */
	VEC(struct fault_process) processes; /* most often named first */
	VEC(struct fault_pattern) patterns;
};
