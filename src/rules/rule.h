/*
 * rule.h - facts to findings, one rule a file.
 *
 * To add one: rule_x.c with `const struct rule rule_x`, a word in RULE_LIST,
 * doc/rules/x.md (what, threshold and its source, what to do), tests on both
 * sides of each threshold in tests/unit/test_rule_x.c.
 *
 * Findings speak plainly, in the user's language: every text goes through _()
 * of base/i18n.h. impact is a range of reclaimable ns that follows from
 * intervals in the facts; savings of different findings do not add.
 */
#pragma once

#include "analyze/facts.h"

enum severity { SEVERITY_INFO, SEVERITY_NOTE, SEVERITY_WARN, SEVERITY_BAD };
const char *severity_name(enum severity severity); /* "info", "note", "warn", "bad" */

enum layer { LAYER_SYSTEM, LAYER_TIMELINE, LAYER_KERNEL };
const char *layer_name(enum layer layer);

/* X(id, name): the time that a finding's share is a share of. All that the share counts
 * lies in it. The whole span is that of a device of which others judge the steady part. */
#define STRETCH_LIST(X)     \
	X(SPAN, "span")     \
	X(WHOLE, "span")    \
	X(STEADY, "steady") \
	X(STEPS, "steps")   \
	X(SAMPLES, "samples")

enum stretch {
#define X(id, name) STRETCH_##id,
	STRETCH_LIST(X)
#undef X
};

const char *stretch_name(enum stretch stretch);

struct evidence {
	const char *metric; /* name of the fact, as in the JSON, or NVIDIA's metric */
	double value;
	const char *unit;  /* "ns", "%", "W", "count", ... */
	const char *where; /* "device 0", "kernel copy_strided"; "" */
};

struct finding {
	const struct rule *rule;
	enum severity severity;
	uint32_t device;   /* SESSION_NONE */
	uint32_t kernel;   /* index into facts.kernels; SESSION_NONE */
	const char *title; /* "The GPU waits for the data loader" */
	const char *claim; /* one or two sentences with the numbers */
	VEC(struct evidence) evidence;
	int64_t impact_low_ns, impact_high_ns; /* FACT_UNKNOWN: no time can be given */
	double impact_share;                   /* high / impact_of, at most 1; NAN */
	enum stretch impact_of;
	double coverage; /* of the evidence; 0..1 */
	enum grade grade;
	VEC(const char *) advice;  /* most promising first */
	VEC(const char *) next;    /* commands or measurements to run next */
	const char *runner_up;     /* NULL */
	bool held_back;            /* a coarser finding explains more: shown last, with a line */
	const char *held_back_why; /* that line; NULL */
};

struct findings {
	VEC(struct finding) at;      /* after rules_run: in order of telling */
	VEC(const char *) abstained; /* "launch_bound: only 41 % of launches matched" */
	struct arena arena;
};

struct rule {
	const char *id;
	const char *title;
	const char *why; /* one sentence of background */
	enum layer layer;
	bool stands; /* it speaks of a program that hangs or broke: told before all of time */
	/* Add what applies. Must cope with every fact missing. */
	void (*apply)(const struct facts *facts, const struct rule *rule,
		      struct findings *findings);
	/* Instead of apply, for a rule about single kernels: is facts.kernels[index]
	 * concerned, and then the finding on it. */
	bool (*concerns)(const struct facts *facts, uint32_t index);
	void (*tell)(const struct facts *facts, const struct rule *rule, uint32_t index,
		     struct findings *findings);
};

/* Run one rule. */
void rule_apply(const struct facts *facts, const struct rule *rule, struct findings *findings);

/* One word a line; a word needs its file. */
#define RULE_LIST(X)              \
	X(failed_wait)            \
	X(open_wait)              \
	X(gpu_fault)              \
	X(driver_mismatch)        \
	X(host_oom)               \
	X(power_wall)             \
	X(thermal_throttle)       \
	X(shared_card_contention) \
	X(memory_growth)          \
	X(leak)                   \
	X(low_utilisation_trap)   \
	X(gpu_starved)            \
	X(sync_readback)          \
	X(pageable_copy)          \
	X(page_faults)            \
	X(launch_bound)           \
	X(step_outliers)          \
	X(collective_wait)        \
	X(special_function_bound) \
	X(fp64_bound)             \
	X(divergence)             \
	X(barrier_stall)          \
	X(atomic_contention)      \
	X(uncoalesced)            \
	X(bank_conflicts)         \
	X(low_cache_reuse)        \
	X(low_occupancy)          \
	X(tail_effect)            \
	X(small_grid)

#define X(name) extern const struct rule rule_##name;
RULE_LIST(X)
#undef X

const struct rule *const *rule_list(size_t *ret_count);

/* Run every rule, then order: by layer of largest impact, coarse before fine,
 * demoting what a coarser finding explains. */
void rules_run(const struct facts *facts, struct findings *findings);
/* The second half of rules_run: hold back and sort. */
void findings_order(struct findings *findings);
void findings_done(struct findings *findings);

/* For rules: a new finding with rule, grade HIGH, coverage 1, impact unknown. */
struct finding *finding_add(struct findings *findings, const struct rule *rule,
			    enum severity severity);
/* Formatted text in the findings' arena. */
const char *finding_text(struct findings *findings, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void finding_evidence(struct finding *finding, const char *metric, double value, const char *unit,
		      const char *where);
/* The range of reclaimable time, and its high end as a share of `of`, which is so long;
 * unknown if that is 0. More than `of` takes can't be gained: sums of what ran at once
 * are cut to it. */
void finding_impact(struct finding *finding, int64_t low_ns, int64_t high_ns, enum stretch of,
		    int64_t stretch_ns);
/* One grade less, down to GRADE_LOW. */
void finding_lose_grade(struct finding *finding);
void finding_advice(struct finding *finding, const char *text);
void finding_next(struct finding *finding, const char *text);
void findings_abstain(struct findings *findings, const struct rule *rule, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
