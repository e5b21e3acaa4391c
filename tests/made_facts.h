/*
 * made_facts.h - facts made by hand, for tests of rules and presenters.
 *
 * Everything is unknown until a test sets it, as the analyses leave it.
 */
#pragma once

#include <math.h>
#include <string.h>

#include "analyze/facts.h"
#include "model/event.h"
#include "rules/rule.h"

struct made {
	struct session *session;
	struct facts facts;
	struct findings findings;
};

static inline uint32_t made_string(struct made *made, const char *text)
{
	return session_string(made->session, text, strlen(text));
}

/* A case is a process of its own and its things live as long: what it made
 * stays in reach, so that the leak checker looks at sonde alone. */
static inline void made_keep(void *made)
{
	static struct kept {
		void *made;
		struct kept *next;
	} * all;
	struct kept *kept = mem_zero(sizeof(*kept));

	kept->made = made;
	kept->next = all;
	all = kept;
}

static inline struct made *made_new(const char *reader, const char *file)
{
	struct made *made = mem_zero(sizeof(*made));
	struct facts *facts = &made->facts;

	made_keep(made);
	made->session = session_new();
	(void)session_source(made->session, reader, file);
	facts->session = made->session;
	facts->path = "run.sonde";
	facts->start_ns = 1;
	facts->end_ns = 0;
	facts->host_inflation = NAN;
	return made;
}

static inline uint32_t made_device(struct made *made, int64_t ordinal, const char *name)
{
	struct device row = { .scope = DEVICE_OF_SOURCE, .ordinal = ordinal };

	row.name = made_string(made, name);
	row.cc_major = row.cc_minor = -1;
	return session_device(made->session, &row);
}

static inline struct device_fact *made_device_fact(struct made *made, uint32_t device)
{
	struct device_fact *fact = VEC_ADD(&made->facts.devices);

	fact->device = device;
	fact->waiting_ns = fact->collective_suspect_ns = FACT_UNKNOWN;
	fact->delay_p50_ns = fact->delay_p95_ns = FACT_UNKNOWN;
	fact->queued_p50_ns = fact->queued_p95_ns = FACT_UNKNOWN;
	fact->host_wait_ns = FACT_UNKNOWN;
	fact->queue_max = FACT_UNKNOWN;
	fact->queue_mean = fact->coverage = NAN;
	fact->kernel_p50_ns = fact->launch_p50_ns = fact->launch_gap_p50_ns = FACT_UNKNOWN;
	fact->system.interval_ns = fact->system.period_ns = FACT_UNKNOWN;
	fact->system.mem_growth_bytes = fact->system.mem_growth_bytes_s = NAN;
	return fact;
}

static inline void made_metric(struct device_fact *device, enum metric metric, int64_t count,
			       double min, double mean, double max)
{
	device->system.metric[metric] = (struct metric_stats){ .count = count,
							       .min = min,
							       .mean = mean,
							       .median = mean,
							       .p95 = max,
							       .max = max,
							       .last = min };
}

/* Every counter unknown, whatever fields there are: all of them are doubles
 * but the limiter. */
static inline void made_no_counters(struct kernel_counters *counters)
{
	double nan = NAN;

	for (size_t at = 0; at + sizeof(nan) <= sizeof(*counters); at += sizeof(nan))
		memcpy((char *)counters + at, &nan, sizeof(nan));
	counters->occupancy_limiter = NULL;
}

static inline struct kernel_fact *made_kernel(struct made *made, uint32_t device, const char *name,
					      int64_t count, int64_t mean_ns)
{
	struct kernel_fact *kernel = VEC_ADD(&made->facts.kernels);
	struct kernel_key key = { .shared_bytes = -1,
				  .registers = -1,
				  .theoretical_occupancy_pct = -1 };

	key.name = made_string(made, name);
	key.grid[0] = 132;
	key.grid[1] = key.grid[2] = 1;
	key.block[0] = 256;
	key.block[1] = key.block[2] = 1;
	kernel->key = session_key(made->session, &key);
	kernel->device = device;
	kernel->count = count;
	kernel->mean_ns = mean_ns;
	kernel->min_ns = mean_ns / 2;
	kernel->max_ns = mean_ns * 2;
	kernel->sum_ns = count * mean_ns;
	kernel->share = kernel->coverage = NAN;
	made_no_counters(&kernel->counters);
	return kernel;
}

static inline struct finding *made_finding(struct made *made, const struct rule *rule,
					   enum severity severity)
{
	struct finding *finding = VEC_ADD(&made->findings.at);

	finding->rule = rule;
	finding->severity = severity;
	finding->device = finding->kernel = SESSION_NONE;
	finding->impact_low_ns = finding->impact_high_ns = FACT_UNKNOWN;
	finding->impact_share = NAN;
	finding->coverage = 1;
	finding->grade = GRADE_HIGH;
	return finding;
}

/* The process ends with the test: what hangs on the facts may stay. */
static inline void made_free(struct made *made)
{
	session_free(made->session);
	free(made);
}
