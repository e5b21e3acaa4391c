#include "present/present.h"

#include <math.h>

#include "present/json_put.h"
#include "present/source_devices.h"

void put_i64(struct json *json, const char *key, int64_t value)
{
	put_i64_unless(json, key, value, FACT_UNKNOWN);
}

void put_i64_unless(struct json *json, const char *key, int64_t value, int64_t unknown)
{
	if (value != unknown)
		json_i64(json, key, value);
}

void put_f64(struct json *json, const char *key, double value)
{
	if (isfinite(value))
		json_f64(json, key, value);
}

void put_text(struct json *json, const char *key, const char *value)
{
	if (value && *value)
		json_text(json, key, value);
}

void put_string(struct json *json, const char *key, const struct session *session, uint32_t id)
{
	struct str value = { 0 };

	value.at = intern_get(session->strings, id, &value.len);
	if (value.len)
		json_str(json, key, value);
}

void put_dim3(struct json *json, const char *key, const int32_t dim[3])
{
	if (!dim[0])
		return;
	json_array(json, key);
	for (int i = 0; i < 3; i++)
		json_i64(json, NULL, dim[i]);
	json_end(json);
}

static void put_devices(const struct session *session, uint32_t id, struct json *json)
{
	enum { DEVICES_LIMIT = 256 };
	uint32_t devices[DEVICES_LIMIT];
	size_t count = source_devices(session, id, devices, DEVICES_LIMIT);

	if (!count)
		return;
	json_array(json, "devices");
	for (size_t i = 0; i < count && i < DEVICES_LIMIT; i++)
		json_i64(json, NULL, devices[i]);
	json_end(json);
}

/* Of a run: those of which nothing else is known. */
static void put_others(const struct session *session, uint32_t source, struct json *json)
{
	json_array(json, "processes");
	for (size_t i = 0; i < session->processes.count; i++) {
		const struct process *process = &session->processes.at[i];

		if (process->source != source || !session_process_is_bare(session, (uint32_t)i))
			continue;
		json_object(json, NULL);
		json_i64(json, "pid", process->pid);
		put_string(json, "name", session, process->name);
		put_string(json, "command", session, process->command);
		json_end(json);
	}
	json_end(json);
}

static void put_source(const struct session *session, uint32_t id, struct json *json)
{
	const struct source *source = &session->sources.at[id];

	json_object(json, NULL);
	put_string(json, "reader", session, source->reader);
	put_string(json, "file", session, source->file);
	put_i64(json, "mapping_error_ns", source->mapping_error_ns);
	if (source->first_ns <= source->last_ns)
		json_i64(json, "duration_ns", session_source_span(source));
	put_i64_unless(json, "interval_ns", source->interval_ns, 0);
	if (source->interval_ns)
		json_bool(json, "interval_assumed", source->interval_assumed);
	put_i64_unless(json, "rank", source->rank, -1);
	put_i64_unless(json, "world_size", source->world_size, -1);
	put_i64_unless(json, "pid", source_pid(session, id), -1);
	put_devices(session, id, json);
	if (!strcmp(session_text(session, source->reader), READER_PROC))
		put_others(session, id, json);
	put_string(json, "accelerator", session, source->accelerator);
	json_bool(json, "with_stack", source->with_stack);
	json_bool(json, "truncated", source->truncated);
	json_bool(json, "no_device_activity", source->no_device_activity);
	json_end(json);
}

static void put_profile(const struct facts *facts, struct json *json)
{
	const struct session *session = facts->session;
	int64_t status;

	json_object(json, "profile");
	put_text(json, "path", facts->path);
	if (facts->start_ns <= facts->end_ns)
		json_i64(json, "duration_ns", facts->end_ns - facts->start_ns);
	if (session->zero_utc_ns)
		json_i64(json, "zero_utc_ns", session->zero_utc_ns);
	json_array(json, "sources");
	for (size_t i = 0; i < session->sources.count; i++)
		put_source(session, (uint32_t)i, json);
	json_end(json);
	put_string(json, "host", session, profile_env(session, "host"));
	put_string(json, "command", session, profile_env(session, "command"));
	if (str_to_i64(str_of(session_text(session, profile_env(session, "exit_status"))), &status))
		json_i64(json, "exit_status", status);
	json_bool(json, "has_timeline", facts->has_timeline);
	json_bool(json, "no_device_activity", facts->no_device_activity);
	json_bool(json, "was_cut", facts->was_cut);
	json_end(json);
}

static bool key_is_known(const char *key)
{
	return !strcmp(key, "driver") || !strcmp(key, "cuda") || !strcmp(key, "cupti") ||
	       !strcmp(key, "git_revision") || !strcmp(key, "clock_state");
}

/* Rows of one device (SESSION_NONE: of none), each key once. Quadratic only in
 * the keys that repeat the same row, which readers don't do. */
static void put_envs(const struct session *session, uint32_t device, struct json *json)
{
	for (size_t i = 0; i < session->envs.count; i++) {
		const struct env *env = &session->envs.at[i];
		const char *key = session_text(session, env->key);
		bool again = false;

		if (env->device != device || (device == SESSION_NONE && key_is_known(key)))
			continue;
		for (size_t j = 0; j < i && !again; j++)
			again = session->envs.at[j].key == env->key &&
				session->envs.at[j].device == device;
		if (!again)
			put_string(json, key, session, env->value);
	}
}

static void put_environment_device(const struct session *session, uint32_t id, struct json *json)
{
	const struct device *device = &session->devices.at[id];

	json_object(json, NULL);
	json_i64(json, "id", id);
	put_i64_unless(json, "ordinal", device->ordinal, -1);
	put_string(json, "uuid", session, device->uuid);
	put_string(json, "name", session, device->name);
	put_string(json, "part", session, device->part);
	put_string(json, "pci_bus", session, device->pci_bus);
	put_string(json, "maker", session, device->maker);
	put_i64_unless(json, "sm_count", device->sm_count, 0);
	put_i64_unless(json, "memory_bytes", device->memory_bytes, 0);
	if (device->cc_major > 0) {
		struct buf text = { 0 };

		buf_printf(&text, "%d.%d", (int)device->cc_major, (int)device->cc_minor);
		json_text(json, "compute_capability", text.at);
		buf_done(&text);
	}
	json_object(json, "settings");
	put_envs(session, id, json);
	json_end(json);
	json_end(json);
}

static void put_environment(const struct session *session, struct json *json)
{
	static const char *const known[] = { "driver", "cuda", "cupti", "git_revision",
					     "clock_state" };

	json_object(json, "environment");
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		put_string(json, known[i], session, profile_env(session, known[i]));
	json_object(json, "settings");
	put_envs(session, SESSION_NONE, json);
	json_end(json);
	json_array(json, "devices");
	for (size_t i = 0; i < session->devices.count; i++)
		put_environment_device(session, (uint32_t)i, json);
	json_end(json);
	json_end(json);
}

static const char *loss_key(enum loss loss)
{
	static const char *const name[] = {
#define X(id, what) [LOSS_##id] = #id,
		LOSS_LIST(X)
#undef X
	};

	return name[loss];
}

static void put_loss(const struct facts *facts, struct json *json)
{
	const struct session *session = facts->session;

	json_object(json, "loss");
	for (int loss = 0; loss < LOSS_COUNT; loss++) {
		json_i64(json, loss_key(loss), session_loss_sum(session, loss, false));
	}
	if (facts->has_timeline) {
		put_i64(json, "unmatched_ops", facts->unmatched_ops);
		put_i64(json, "unmatched_calls", facts->unmatched_calls);
		put_i64_unless(json, "captured_calls", facts->captured_calls, 0);
		put_i64(json, "streams_uncompared", facts->streams_uncompared);
		put_i64(json, "threads_unsearched", facts->threads_unsearched);
	}
	put_i64(json, "damaged_chunks", facts->damaged_chunks);
	json_array(json, "missing_columns");
	for (size_t i = 0; i < session->missing_columns.count; i++)
		put_string(json, NULL, session, session->missing_columns.at[i]);
	json_end(json);
	json_array(json, "sources");
	for (size_t i = 0; i < session->losses.count; i++) {
		json_object(json, NULL);
		if (i < session->sources.count) {
			put_string(json, "reader", session, session->sources.at[i].reader);
			put_string(json, "file", session, session->sources.at[i].file);
		}
		for (int loss = 0; loss < LOSS_COUNT; loss++)
			json_i64(json, loss_key(loss), session->losses.at[i].count[loss]);
		json_end(json);
	}
	json_end(json);
	json_end(json);
}

/* Each source that knows its place in a job. */
static void put_ranks(const struct session *session, struct json *json)
{
	json_array(json, "ranks");
	for (uint32_t i = 0; i < session->sources.count; i++) {
		const struct source *source = &session->sources.at[i];

		if (source->rank < 0)
			continue;
		json_object(json, NULL);
		json_i64(json, "rank", source->rank);
		put_i64_unless(json, "world_size", source->world_size, -1);
		put_i64_unless(json, "pid", source_pid(session, i), -1);
		put_string(json, "file", session, source->file);
		put_devices(session, i, json);
		json_end(json);
	}
	json_end(json);
}

static void put_spread(struct json *json, const char *name, const double *values)
{
	json_object(json, name);
	put_f64(json, "low", values[0]);
	put_f64(json, "median", values[1]);
	put_f64(json, "high", values[2]);
	json_end(json);
}

static void put_calibrations(const struct facts *facts, struct json *json)
{
	if (!facts->calibrations.count)
		return;
	json_array(json, "calibration");
	for (size_t i = 0; i < facts->calibrations.count; i++) {
		const struct calibration_fact *fact = &facts->calibrations.at[i];

		json_object(json, NULL);
		put_i64_unless(json, "pid", source_pid(facts->session, fact->source), -1);
		json_i64(json, "windows", fact->windows);
		json_i64(json, "launches", fact->launches);
		put_spread(json, "launch_ns", fact->launch_ns);
		put_spread(json, "wall_share", fact->share);
		json_end(json);
	}
	json_end(json);
}

static void put_pc_samplings(const struct facts *facts, struct json *json)
{
	if (!facts->pc_samplings.count)
		return;
	json_array(json, "pc_sampling");
	for (size_t i = 0; i < facts->pc_samplings.count; i++) {
		const struct pc_sampling_fact *fact = &facts->pc_samplings.at[i];

		json_object(json, NULL);
		put_i64_unless(json, "pid", source_pid(facts->session, fact->source), -1);
		json_i64(json, "covered_ns", fact->covered_ns);
		json_i64(json, "span_ns", fact->span_ns);
		put_i64(json, "period", fact->period);
		put_i64(json, "samples", fact->samples);
		put_i64(json, "dropped", fact->dropped);
		put_i64(json, "other_kernels", fact->other_kernels);
		json_end(json);
	}
	json_end(json);
}

static void put_callbacks(const struct facts *facts, struct json *json)
{
	if (!facts->callbacks.count)
		return;
	json_array(json, "callbacks");
	for (size_t i = 0; i < facts->callbacks.count; i++) {
		const struct callback_fact *fact = &facts->callbacks.at[i];

		json_object(json, NULL);
		put_i64_unless(json, "pid", source_pid(facts->session, fact->source), -1);
		json_i64(json, "count", fact->count);
		json_i64(json, "sum_ns", fact->sum_ns);
		json_end(json);
	}
	json_end(json);
}

static void put_recorder(const struct recorder_fact *recorder, struct json *json)
{
	if (!recorder->wall_ns)
		return;
	json_object(json, "recorder");
	json_i64(json, "wall_ns", recorder->wall_ns);
	json_i64(json, "cpu_ns", recorder->cpu_ns);
	json_i64(json, "cards_cpu_ns", recorder->cards_cpu_ns);
	json_end(json);
}

/* What recording cost. Nothing is known where there are no records of it. */
static void put_overhead(const struct facts *facts, struct json *json)
{
	json_object(json, "overhead");
	json_bool(json, "host_time_inflated", facts->host_time_inflated);
	put_f64(json, "host_inflation", facts->host_inflation);
	if (facts->overheads.count) {
		json_i64(json, "own_ns", facts->own_ns);
		json_array(json, "records");
		for (size_t i = 0; i < facts->overheads.count; i++) {
			const struct overhead_fact *overhead = &facts->overheads.at[i];

			json_object(json, NULL);
			put_string(json, "name", facts->session, overhead->name);
			json_i64(json, "count", overhead->count);
			json_i64(json, "sum_ns", overhead->sum_ns);
			json_bool(json, "own", overhead->own);
			json_end(json);
		}
		json_end(json);
	}
	put_callbacks(facts, json);
	put_recorder(&facts->recorder, json);
	put_calibrations(facts, json);
	put_pc_samplings(facts, json);
	json_end(json);
}

static void put_notes(const struct session *session, struct json *json)
{
	json_array(json, "notes");
	for (size_t i = 0; i < session->notes.count; i++) {
		const struct note *note = &session->notes.at[i];

		json_object(json, NULL);
		if (note->source < session->sources.count)
			put_string(json, "file", session, session->sources.at[note->source].file);
		json_text(json, "text", session_text(session, note->text));
		json_end(json);
	}
	json_end(json);
}

void present_json(const struct facts *facts, const struct findings *findings, struct buf *out)
{
	struct json json = { .out = out };

	json_object(&json, NULL);
	json_text(&json, "schema", "sonde.report/1");
	put_profile(facts, &json);
	put_environment(facts->session, &json);
	put_loss(facts, &json);
	put_overhead(facts, &json);
	json_array(&json, "devices");
	for (size_t i = 0; i < facts->devices.count; i++)
		present_json_device(facts, &facts->devices.at[i], &json);
	json_end(&json);
	json_array(&json, "kernels");
	for (size_t i = 0; i < facts->kernels.count; i++)
		present_json_kernel(facts, &facts->kernels.at[i], &json);
	json_end(&json);
	present_json_tables(facts, &json);
	put_ranks(facts->session, &json);
	present_json_faults(facts, &json);
	present_json_findings(facts, findings, &json);
	json_array(&json, "abstained");
	for (size_t i = 0; i < findings->abstained.count; i++)
		json_text(&json, NULL, findings->abstained.at[i]);
	json_end(&json);
	put_notes(facts->session, &json);
	json_end(&json);
	buf_char(out, '\n');
}
