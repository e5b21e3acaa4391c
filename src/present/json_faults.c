#include "present/json_put.h"

#include <math.h>

/* Of a storm the first lines are enough; the profile has the rest. */
static const size_t EVENTS_SHOWN = 1000;

static void put_title(const struct fault *fault, struct json *json)
{
	struct buf text = { 0 };

	fault_title(fault, &text);
	json_text(json, "title", text.at);
	buf_done(&text);
}

static void put_known(struct json *json, const char *key, const struct fault *fault,
		      enum fault_number number, int64_t value)
{
	if (fault_has(fault, number))
		json_i64(json, key, value);
}

static void put_first(const struct fault *fault, struct json *json)
{
	put_text(json, "text", fault->text);
	put_known(json, "gpu_instance", fault, FAULT_GPU_INSTANCE, fault->gpu_instance);
	put_known(json, "compute_instance", fault, FAULT_COMPUTE_INSTANCE, fault->compute_instance);
	put_known(json, "link", fault, FAULT_LINK, fault->link);
	put_known(json, "unit", fault, FAULT_UNIT, fault->unit);
	put_known(json, "status", fault, FAULT_STATUS, fault->status);
	if (fault_has(fault, FAULT_FATAL))
		json_bool(json, "fatal", fault->fatal != 0);
	put_text(json, "event", fault->event);
	put_known(json, "action_from", fault, FAULT_ACTION_FROM, fault->action_from);
	put_known(json, "action_to", fault, FAULT_ACTION_TO, fault->action_to);
	put_text(json, "client_version", fault->client);
	put_text(json, "module_version", fault->module);
	put_text(json, "cgroup", fault->cgroup);
}

static void put_patterns(const struct fault_group *group, struct json *json)
{
	json_array(json, "patterns");
	for (size_t i = 0; i < group->patterns.count; i++) {
		const struct fault_pattern *pattern = &group->patterns.at[i];

		json_object(json, NULL);
		json_text(json, "pattern", fault_pattern_name(pattern->kind));
		put_text(json, "what", pattern->what);
		json_i64(json, "incidents", pattern->count);
		json_i64(json, "least", pattern->least);
		put_f64(json, pattern->kind == FAULT_PATTERN_DAYTIME ? "day_s" : "interval_ns",
			pattern->value);
		put_f64(json, "p", pattern->p);
		json_end(json);
	}
	json_end(json);
}

static void put_processes(const struct fault_group *group, struct json *json)
{
	json_array(json, "processes");
	for (size_t i = 0; i < group->processes.count; i++) {
		json_object(json, NULL);
		put_text(json, "name", group->processes.at[i].name);
		put_i64_unless(json, "pid", group->processes.at[i].pid, -1);
		json_i64(json, "count", group->processes.at[i].count);
		json_end(json);
	}
	json_end(json);
}

static void put_group(const struct facts *facts, const struct fault_group *group, struct json *json)
{
	const struct session *session = facts->session;

	json_object(json, NULL);
	json_text(json, "kind", fault_kind_name(group->first.kind));
	put_title(&group->first, json);
	put_known(json, "number", &group->first, FAULT_NUMBER, group->first.number);
	put_text(json, "name", group->meaning.name);
	json_text(json, "weight", fault_weight_name(group->meaning.weight));
	json_bool(json, "catalogued", group->meaning.known);
	put_text(json, "meaning", group->meaning.meaning);
	put_text(json, "causes", group->meaning.causes);
	put_text(json, "action", group->meaning.action);
	if (group->device != SESSION_NONE) {
		json_i64(json, "device", group->device);
		put_string(json, "pci_bus", session, session->devices.at[group->device].pci_bus);
		put_string(json, "uuid", session, session->devices.at[group->device].uuid);
	}
	json_i64(json, "count", group->count);
	json_bool(json, "lower_bound", group->lower_bound);
	json_i64(json, "incidents", group->incidents);
	for (int role = 0; role < FAULT_ROLE_COUNT; role++)
		json_i64(json, fault_role_name((enum fault_role)role), group->role[role]);
	if (group->has_time) {
		json_i64(json, "first_ns", group->first_ns);
		json_i64(json, "last_ns", group->last_ns);
	}
	put_i64_unless(json, "caused_by", group->caused_by, FAULT_NO_INDEX);
	put_i64_unless(json, "previous_xid", group->previous, -1);
	put_first(&group->first, json);
	put_processes(group, json);
	put_patterns(group, json);
	json_end(json);
}

static void put_event(const struct facts *facts, const struct fault_event *event, struct json *json)
{
	json_object(json, NULL);
	json_i64(json, "fault", event->group);
	if (event->has_time)
		json_i64(json, "time_ns", event->time_ns);
	json_text(json, "role", fault_role_name(event->role));
	json_i64(json, "incident", event->incident);
	put_i64_unless(json, "follows", event->cause, FAULT_NO_INDEX);
	put_i64_unless(json, "pid", event->pid, -1);
	put_text(json, "process", intern_get(facts->fault_strings, event->process, NULL));
	put_string(json, "kernel", facts->session, event->kernel);
	put_i64_unless(json, "line", event->line, 0);
	json_i64(json, "source", event->source);
	json_end(json);
}

void present_json_faults(const struct facts *facts, struct json *json)
{
	json_array(json, "faults");
	for (size_t i = 0; i < facts->fault_groups.count; i++)
		put_group(facts, &facts->fault_groups.at[i], json);
	json_end(json);
	json_array(json, "fault_events");
	for (size_t i = 0; i < facts->faults.count && i < EVENTS_SHOWN; i++)
		put_event(facts, &facts->faults.at[i], json);
	json_end(json);
	json_i64(json, "fault_lines", (int64_t)facts->faults.count + facts->faults_left_out);
}
