#include "present/json_put.h"

#include <math.h>

/* Sampled metrics under their names of metric.h: the mean as a plain number,
 * the rest in stats. */
static void put_metrics(const struct system_facts *system, struct json *json)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		if (system->metric[i].count)
			put_f64(json, metric_name((enum metric)i), system->metric[i].mean);
	}
	json_object(json, "stats");
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_stats *stats = &system->metric[i];

		if (!stats->count)
			continue;
		json_object(json, metric_name((enum metric)i));
		json_i64(json, "count", stats->count);
		put_f64(json, "min", stats->min);
		put_f64(json, "mean", stats->mean);
		put_f64(json, "median", stats->median);
		put_f64(json, "p95", stats->p95);
		put_f64(json, "max", stats->max);
		put_f64(json, "last", stats->last);
		json_end(json);
	}
	json_end(json);
}

/* "steady", ...; "" for unknown. */
static const char *present_character_name(enum job_character character)
{
	static const char *const name[] = {
		[CHARACTER_UNKNOWN] = "",      [CHARACTER_IDLE] = "idle",
		[CHARACTER_STEADY] = "steady", [CHARACTER_PERIODIC] = "periodic",
		[CHARACTER_BURSTY] = "bursty",
	};

	return name[character];
}

static const char *means_name(enum ledger_means means)
{
	static const char *const name[] = {
		[LEDGER_UNKNOWN] = "",
		[LEDGER_COUNTER] = "counter",
		[LEDGER_SHARE] = "share",
		[LEDGER_SAMPLED] = "sampled",
	};

	return name[means];
}

/* A limit that was never in force is an honest zero; one that nobody told of is
 * left out. */
static void put_ledger(const struct ledger *ledger, struct json *json)
{
	if (!ledger->observed_ns)
		return;
	json_object(json, "ledger");
	json_i64(json, "observed_ns", ledger->observed_ns);
	put_f64(json, "reference_mhz", ledger->reference_mhz);
	json_i64(json, "resets", ledger->resets);
	json_array(json, "limits");
	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct ledger_row *row = &ledger->row[i];

		if (row->means == LEDGER_UNKNOWN)
			continue;
		json_object(json, NULL);
		json_text(json, "reason", limit_name((enum limit)i));
		json_text(json, "means", means_name(row->means));
		json_i64(json, "ns", row->ns);
		json_i64(json, "clocked_ns", row->clocked_ns);
		if (row->clocked_ns || !row->ns)
			json_i64(json, "lost_ns", row->lost_ns);
		put_f64(json, "mhz_lost", row->mhz_lost);
		json_end(json);
	}
	json_end(json);
	json_end(json);
}

static void put_system(const struct system_facts *system, struct json *json)
{
	json_object(json, "system");
	json_i64(json, "samples", system->samples);
	if (system->samples_outside)
		json_i64(json, "samples_outside", system->samples_outside);
	if (system->has_clock) {
		json_i64(json, "first_ns", system->first_ns);
		json_i64(json, "last_ns", system->last_ns);
	}
	json_bool(json, "has_clock", system->has_clock);
	put_i64(json, "interval_ns", system->interval_ns);
	if (system->interval_ns != FACT_UNKNOWN)
		json_bool(json, "interval_assumed", system->interval_assumed);
	put_text(json, "character", present_character_name(system->character));
	put_i64(json, "period_ns", system->period_ns);
	if (system->metric[METRIC_util_pct].count)
		json_i64(json, "busy_samples", system->busy_samples);
	put_f64(json, "mem_growth_bytes_s", system->mem_growth_bytes_s);
	put_f64(json, "mem_growth_bytes", system->mem_growth_bytes);
	if (system->load_samples) {
		json_i64(json, "load_samples", system->load_samples);
		put_f64(json, "load_sm_mhz", system->load_sm_mhz);
		put_f64(json, "load_power_w", system->load_power_w);
		put_f64(json, "load_temp_c", system->load_temp_c);
	}
	put_ledger(&system->ledger, json);
	put_metrics(system, json);
	json_end(json);
}

static void put_episodes(const struct device_fact *device, struct json *json)
{
	json_array(json, "episodes");
	for (size_t i = 0; i < device->episodes.count; i++) {
		const struct episode *episode = &device->episodes.at[i];

		json_object(json, NULL);
		json_text(json, "reason", episode->reason);
		put_i64(json, "start_ns", episode->start_ns);
		put_i64(json, "end_ns", episode->end_ns);
		json_i64(json, "first_sample", episode->first_sample);
		json_i64(json, "last_sample", episode->last_sample);
		put_f64(json, "mhz_lost", episode->mhz_lost);
		put_f64(json, "mhz_before", episode->mhz_before);
		put_f64(json, "mhz_in", episode->mhz_in);
		put_f64(json, "power_w", episode->power_w);
		put_f64(json, "temp_c", episode->temp_c);
		json_end(json);
	}
	json_end(json);
}

static const char *activity_name(enum activity_kind kind)
{
	static const char *const name[] = {
		[ACTIVITY_UNKNOWN] = "unknown", [ACTIVITY_CALL] = "call",     [ACTIVITY_OP] = "op",
		[ACTIVITY_RANGE] = "range",     [ACTIVITY_PYTHON] = "python",
	};

	return name[kind];
}

/* What the launching thread was at. */
static void put_thread(const struct facts *facts, const struct idle_fact *idle, struct json *json)
{
	if (idle->thread_state) {
		json_text(json, "thread_state", idle->thread_state);
		if (idle->thread_ns) {
			json_i64(json, "thread_ns", idle->thread_ns);
			json_i64(json, "thread_state_ns", idle->thread_state_ns);
		} else {
			json_i64(json, "thread_looks", idle->thread_looks);
			json_i64(json, "thread_state_looks", idle->thread_state_looks);
		}
	}
	if (idle->python) {
		put_string(json, "python", facts->session, idle->python);
		json_i64(json, "python_looks", idle->python_looks);
		json_i64(json, "python_function_looks", idle->python_function_looks);
	}
	if (idle->cpu) {
		put_string(json, "cpu", facts->session, idle->cpu);
		json_i64(json, "cpu_samples", idle->cpu_samples);
		json_i64(json, "cpu_function_samples", idle->cpu_function_samples);
	}
}

/* A cause with no time in it is an honest zero and listed: the causes of a
 * device add up to idle_ns. */
static void put_idle(const struct facts *facts, const struct idle_fact *all, struct json *json)
{
	json_array(json, "idle");
	for (int i = 0; i < IDLE_COUNT; i++) {
		const struct idle_fact *idle = &all[i];

		if (!idle->ns && !idle->count)
			continue;
		json_object(json, NULL);
		json_text(json, "cause", idle_name((enum idle_cause)i));
		json_i64(json, "ns", idle->ns);
		json_i64(json, "count", idle->count);
		put_i64(json, "longest_ns", idle->longest_ns);
		put_i64(json, "longest_at_ns", idle->longest_at_ns);
		if (idle->upload_count) {
			json_i64(json, "upload_ns", idle->upload_ns);
			json_i64(json, "upload_count", idle->upload_count);
		}
		if (idle->turnaround_count) {
			json_i64(json, "turnaround_ns", idle->turnaround_ns);
			json_i64(json, "turnaround_count", idle->turnaround_count);
		}
		if (idle->board.count) {
			json_array(json, "board");
			for (size_t j = 0; j < idle->board.count; j++)
				json_text(json, NULL, idle->board.at[j]);
			json_end(json);
		}
		json_array(json, "during");
		for (size_t j = 0; j < idle->during.count; j++) {
			const struct during *during = &idle->during.at[j];

			json_object(json, NULL);
			json_text(json, "kind", activity_name(during->kind));
			put_string(json, "name", facts->session, during->name);
			if (during->range)
				put_string(json, "range", facts->session, during->range);
			json_text(json, "phase", phase_name(during->phase));
			json_i64(json, "ns", during->ns);
			json_end(json);
		}
		json_end(json);
		put_thread(facts, idle, json);
		json_end(json);
	}
	json_end(json);
}

/* What the verdict leaves out, and the times of the rest. */
static void put_steady(const struct facts *facts, const struct device_fact *device,
		       struct json *json)
{
	const struct steady_fact *steady = &device->steady;
	const struct setup_fact *setup = &device->setup;

	json_object(json, "setup");
	json_i64(json, "start_ns", setup->start_ns);
	json_i64(json, "ns", setup->ns);
	json_object(json, "parts");
	for (int i = SETUP_NONE + 1; i < SETUP_COUNT; i++)
		json_i64(json, setup_name((enum setup_kind)i), setup->part_ns[i]);
	json_i64(json, "other", setup->other_ns);
	json_end(json);
	json_end(json);
	json_object(json, "steady");
	json_i64(json, "start_ns", steady->start_ns);
	json_i64(json, "span_ns", steady->span_ns);
	json_i64(json, "busy_ns", steady->busy_ns);
	json_i64(json, "idle_ns", steady->idle_ns);
	json_i64(json, "kernel_ns", steady->kernel_ns);
	json_i64(json, "kernel_count", steady->kernel_count);
	json_i64(json, "launch_sum_ns", steady->launch_sum_ns);
	put_i64(json, "waiting_ns", steady->waiting_ns);
	put_i64_unless(json, "collective_ns", steady->collective_ns, 0);
	put_idle(facts, steady->idle, json);
	json_end(json);
}

static void put_timeline(const struct device_fact *device, struct json *json)
{
	put_i64(json, "window_start_ns", device->window_start_ns);
	put_i64(json, "window_ns", device->window_ns);
	put_i64(json, "before_ns", device->before_ns);
	put_i64(json, "after_ns", device->after_ns);
	if (device->paused_ns)
		put_i64(json, "paused_ns", device->paused_ns);
	put_i64(json, "span_ns", device->span_ns);
	put_i64(json, "busy_ns", device->busy_ns);
	put_i64(json, "waiting_ns", device->waiting_ns);
	put_i64(json, "working_ns", device->working_ns);
	put_i64(json, "idle_ns", device->idle_ns);
	put_i64(json, "kernel_ns", device->kernel_ns);
	put_i64(json, "kernel_sum_ns", device->kernel_sum_ns);
	put_i64(json, "copy_ns", device->copy_ns);
	put_i64(json, "compute_idle_ns", device->compute_idle_ns);
	put_i64(json, "copy_overlap_ns", device->copy_overlap_ns);
	put_i64(json, "stream_overlap_ns", device->stream_overlap_ns);
	put_i64(json, "collective_ns", device->collective_ns);
	put_i64(json, "collective_hidden_ns", device->collective_hidden_ns);
	put_i64(json, "collective_suspect_ns", device->collective_suspect_ns);
	if (device->compared_count) {
		json_i64(json, "compared_count", device->compared_count);
		json_i64(json, "compared_last", device->compared_last);
		put_i64(json, "late_p50_ns", device->late_p50_ns);
	}
	put_i64(json, "kernel_count", device->kernel_count);
	put_i64(json, "memcpy_count", device->memcpy_count);
	put_i64(json, "memset_count", device->memset_count);
	put_i64(json, "graph_count", device->graph_count);
	put_i64(json, "memcpy_bytes", device->memcpy_bytes);
	put_i64(json, "stream_count", device->stream_count);
	put_f64(json, "coverage", device->coverage);
	put_i64(json, "unmatched_ops", device->unmatched_ops);
	put_i64(json, "launched_before", device->launched_before);
	put_i64(json, "host_wait_ns", device->host_wait_ns);
	put_i64(json, "delay_p50_ns", device->delay_p50_ns);
	put_i64(json, "delay_p95_ns", device->delay_p95_ns);
	put_i64(json, "queued_p50_ns", device->queued_p50_ns);
	put_i64(json, "queued_p95_ns", device->queued_p95_ns);
	if (device->queued_p50_ns != FACT_UNKNOWN)
		put_i64(json, "queued_count", device->queued_count);
	put_i64(json, "queue_max", device->queue_max);
	put_f64(json, "queue_mean", device->queue_mean);
	put_i64(json, "small_kernels", device->small_kernels);
	put_i64(json, "small_kernel_ns", device->small_kernel_ns);
	put_i64(json, "kernel_p50_ns", device->kernel_p50_ns);
	put_i64(json, "launch_count", device->launch_count);
	put_i64(json, "launch_sum_ns", device->launch_sum_ns);
	put_i64(json, "launch_p50_ns", device->launch_p50_ns);
	put_i64(json, "launch_gap_p50_ns", device->launch_gap_p50_ns);
}

void present_json_device(const struct facts *facts, const struct device_fact *device,
			 struct json *json)
{
	const struct session *session = facts->session;

	json_object(json, NULL);
	json_i64(json, "id", device->device);
	if (device->device < session->devices.count) {
		const struct device *row = &session->devices.at[device->device];

		put_i64_unless(json, "ordinal", row->ordinal, -1);
		put_string(json, "uuid", session, row->uuid);
		put_string(json, "name", session, row->name);
		put_string(json, "part", session, row->part);
	}
	if (device->has_timeline) {
		put_timeline(device, json);
		put_idle(facts, device->idle, json);
		if (device->steady.has)
			put_steady(facts, device, json);
	}
	if (device->has_system)
		put_system(&device->system, json);
	if (device->has_system || device->episodes.count)
		put_episodes(device, json);
	json_end(json);
}
