/*
 * rule_bench.h - facts made by hand, and the findings of one rule on them.
 *
 * Each test breaks one fact at a time, so that both sides of each threshold
 * are shown on facts that differ in nothing else.
 */
#pragma once

#include <criterion/criterion.h>

#include <math.h>
#include <string.h>

#include "model/event.h"
#include "rules/rule.h"

struct rule_bench {
	struct session *session;
	struct facts facts;
	struct findings findings;
};

static inline uint32_t bench_text(struct rule_bench *bench, const char *text)
{
	return session_string(bench->session, text, strlen(text));
}

/* One source, one device with ordinal 0 of which nothing is known. */
static inline struct device_fact *bench_init(struct rule_bench *bench)
{
	struct device_fact *fact = VEC_ADD(&bench->facts.devices);
	struct session *session = session_new();

	bench->session = session;
	bench->facts.session = session;
	bench->facts.host_inflation = NAN;
	(void)session_source(session, "test", "folder/file.txt");
	fact->device = session_device(session, &(struct device){ .ordinal = 0 });
	fact->waiting_ns = FACT_UNKNOWN;
	fact->collective_suspect_ns = FACT_UNKNOWN;
	fact->coverage = NAN;
	fact->system.interval_ns = FACT_UNKNOWN;
	fact->system.period_ns = FACT_UNKNOWN;
	fact->system.mem_growth_bytes = NAN;
	fact->system.mem_growth_bytes_s = NAN;
	fact->system.high_util_power_share = NAN;
	fact->system.high_util_sm_active_pct = NAN;
	return fact;
}

static inline void bench_forget(struct rule_bench *bench)
{
	findings_done(&bench->findings);
	memset(&bench->findings, 0, sizeof(bench->findings));
}

static inline void bench_done(struct rule_bench *bench)
{
	bench_forget(bench);
	for (size_t i = 0; i < bench->facts.devices.count; i++) {
		for (int k = 0; k < IDLE_COUNT; k++)
			VEC_DONE(&bench->facts.devices.at[i].idle[k].during);
		VEC_DONE(&bench->facts.devices.at[i].episodes);
	}
	VEC_DONE(&bench->facts.devices);
	VEC_DONE(&bench->facts.kernels);
	VEC_DONE(&bench->facts.copies);
	VEC_DONE(&bench->facts.page_faults);
	VEC_DONE(&bench->facts.readbacks);
	VEC_DONE(&bench->facts.memory);
	VEC_DONE(&bench->facts.processes);
	for (size_t i = 0; i < bench->facts.steps.step.count; i++)
		VEC_DONE(&bench->facts.steps.step.at[i].differs);
	VEC_DONE(&bench->facts.steps.step);
	session_free(bench->session);
}

/* Findings of `rule` now; those of before are forgotten. */
static inline size_t found_by(struct rule_bench *bench, const struct rule *rule)
{
	bench_forget(bench);
	rule_apply(&bench->facts, rule, &bench->findings);
	return bench->findings.at.count;
}

static inline const struct finding *first(const struct rule_bench *bench)
{
	cr_assert_gt(bench->findings.at.count, 0, "no finding");
	return &bench->findings.at.at[0];
}

#define cr_assert_says(text, part) \
	cr_assert_not_null(strstr((text), (part)), "\"%s\" is not in: %s", (part), (text))
#define cr_assert_silent(text, part) \
	cr_assert_null(strstr((text), (part)), "\"%s\" is in: %s", (part), (text))
