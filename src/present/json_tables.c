#include "present/json_put.h"

#include <math.h>

#include "know/cuda_error.h"
#include "model/event.h"
#include "rules/rule.h"

static const char *copy_name(int kind)
{
	static const char *const name[] = {
		[COPY_UNKNOWN] = "unknown", [COPY_HTOD] = "HtoD", [COPY_DTOH] = "DtoH",
		[COPY_DTOD] = "DtoD",       [COPY_HTOH] = "HtoH", [COPY_PTOP] = "PtoP",
	};

	return kind >= COPY_UNKNOWN && kind <= COPY_PTOP ? name[kind] : name[COPY_UNKNOWN];
}

static const char *copy_end(int kind, bool source)
{
	switch (kind) {
	case COPY_HTOD:
		return source ? "host" : "device";
	case COPY_DTOH:
		return source ? "device" : "host";
	case COPY_DTOD:
		return "device";
	case COPY_HTOH:
		return "host";
	case COPY_PTOP:
		return source ? "device" : "peer";
	default:
		return NULL;
	}
}

static void put_ops(const struct facts *facts, struct json *json)
{
	json_array(json, "ops");
	for (size_t i = 0; i < facts->ops.count; i++) {
		const struct op_fact *op = &facts->ops.at[i];

		json_object(json, NULL);
		json_text(json, "name", session_text(facts->session, op->name));
		json_i64(json, "count", op->count);
		put_i64(json, "cpu_self_ns", op->cpu_self_ns);
		put_i64(json, "cpu_total_ns", op->cpu_total_ns);
		put_i64(json, "gpu_self_ns", op->gpu_self_ns);
		put_i64(json, "gpu_total_ns", op->gpu_total_ns);
		json_text(json, "phase", phase_name(op->phase));
		json_end(json);
	}
	json_end(json);
}

static void put_copies(const struct facts *facts, struct json *json)
{
	json_array(json, "copies");
	for (size_t i = 0; i < facts->copies.count; i++) {
		const struct copy_fact *copy = &facts->copies.at[i];

		json_object(json, NULL);
		put_i64_unless(json, "device", copy->device, SESSION_NONE);
		json_text(json, "kind", copy_name(copy->kind));
		put_text(json, "src", copy_end(copy->kind, true));
		put_text(json, "dst", copy_end(copy->kind, false));
		json_i64(json, "count", copy->count);
		put_i64(json, "bytes", copy->bytes);
		put_i64(json, "sum_ns", copy->sum_ns);
		put_i64(json, "union_ns", copy->union_ns);
		put_f64(json, "gbps", copy->gbps);
		put_f64(json, "link_peak_gbps", copy->link_peak_gbps);
		if (copy->link_peak_gbps > 0)
			put_f64(json, "link_pct", 100 * copy->gbps / copy->link_peak_gbps);
		if (copy->pageable >= 0)
			json_bool(json, "pageable", copy->pageable);
		if (copy->managed)
			json_bool(json, "managed", true);
		put_i64(json, "tiny_count", copy->tiny_count);
		json_end(json);
	}
	json_end(json);
}

static void put_page_faults(const struct facts *facts, struct json *json)
{
	if (!facts->page_faults.count)
		return;
	json_array(json, "page_faults");
	for (size_t i = 0; i < facts->page_faults.count; i++) {
		const struct page_fault_fact *fault = &facts->page_faults.at[i];

		json_object(json, NULL);
		put_i64_unless(json, "device", fault->device, SESSION_NONE);
		json_text(json, "name", session_text(facts->session, fault->name));
		json_i64(json, "count", fault->count);
		json_i64(json, "faults", fault->faults);
		json_i64(json, "union_ns", fault->union_ns);
		json_end(json);
	}
	json_end(json);
}

static void put_stream_waits(const struct facts *facts, struct json *json)
{
	if (!facts->stream_waits.count)
		return;
	json_array(json, "stream_waits");
	for (size_t i = 0; i < facts->stream_waits.count; i++) {
		const struct stream_wait_fact *wait = &facts->stream_waits.at[i];

		json_object(json, NULL);
		put_i64_unless(json, "device", wait->device, SESSION_NONE);
		put_i64_unless(json, "context", wait->context, -1);
		json_i64(json, "stream", wait->stream);
		json_i64(json, "on_stream", wait->on_stream);
		json_i64(json, "count", wait->count);
		json_i64(json, "held_count", wait->held_count);
		json_i64(json, "held_ns", wait->held_ns);
		if (wait->held_count) {
			json_i64(json, "longest_ns", wait->longest_ns);
			put_string(json, "longest_for", facts->session, wait->longest_name);
		}
		json_end(json);
	}
	json_end(json);
}

static void put_wait_device(const struct facts *facts, const struct wait_fact *wait,
			    struct json *json)
{
	static const char *const handovers[] = { [WAIT_HANDOVER_ALL] = "all",
						 [WAIT_HANDOVER_LOST] = "lost",
						 [WAIT_HANDOVER_HELD] = "held" };
	const struct session *session = facts->session;

	put_string(json, "last_op", session, wait->last_op);
	if (wait->last_op)
		json_i64(json, "last_op_end_ns", wait->last_end_ns);
	put_i64(json, "returned_ns", wait->returned_ns);
	if (wait->end == WAIT_OPEN && wait->handover)
		json_text(json, "handover", handovers[wait->handover]);
	if (wait->end == WAIT_OPEN && wait->handover != WAIT_HANDOVER_ALL)
		put_i64(json, "known_until_ns", wait->known_ns);
	/* None is not known, where the recording can't have all. */
	if (wait->pending_count || wait->end == WAIT_FAILED || wait->handover == WAIT_HANDOVER_ALL)
		json_i64(json, "pending_launches", wait->pending_count);
	if (wait->pending_ns != FACT_UNKNOWN) {
		json_i64(json, "pending_since_ns", wait->pending_ns);
		put_i64(json, "pending_thread", session->lanes.at[wait->pending_lane].tid);
		put_string(json, "pending_range", session, wait->pending_range);
	}
	put_string(json, "pending_kernel", session, wait->named);
	put_string(json, "sampled_kernel", session, wait->sampled);
	if (wait->sampled) {
		json_i64(json, "sampled_count", wait->sampled_count);
		json_i64(json, "samples", wait->samples);
	}
	put_string(json, "likely_kernel", session, wait->likely);
	if (wait->likely)
		json_i64(json, "likely_count", wait->likely_count);
	put_f64(json, "util_pct", wait->util_pct);
}

static void put_waits(const struct facts *facts, struct json *json)
{
	const struct session *session = facts->session;

	if (!facts->waits.count)
		return;
	json_array(json, "waits");
	for (size_t i = 0; i < facts->waits.count; i++) {
		const struct wait_fact *wait = &facts->waits.at[i];
		const struct lane *lane = &session->lanes.at[wait->lane];

		json_object(json, NULL);
		json_text(json, "end", wait->end == WAIT_OPEN ? "open" : "failed");
		json_text(json, "call", wait->call);
		if (wait->end == WAIT_FAILED) {
			const struct cuda_error *error = cuda_error_find(wait->result);

			json_i64(json, "result", wait->result);
			put_text(json, "error", error ? error->name : NULL);
			json_i64(json, "count", wait->count);
		}
		if (lane->process < session->processes.count)
			put_i64(json, "pid", session->processes.at[lane->process].pid);
		put_i64_unless(json, "thread", lane->tid, -1);
		put_string(json, "thread_name", session, lane->name);
		json_i64(json, "since_ns", wait->since_ns);
		json_i64(json, "waited_ns", wait->waited_ns);
		put_i64(json, "longest_ns", wait->longest_ns);
		put_i64_unless(json, "device", wait->device, SESSION_NONE);
		put_i64_unless(json, "context", wait->context, -1);
		put_i64_unless(json, "stream", wait->stream, -1);
		put_text(json, wait->stack_is_python ? "python_stack" : "stack", wait->stack);
		put_wait_device(facts, wait, json);
		json_end(json);
	}
	json_end(json);
}

static void put_calls(const struct facts *facts, struct json *json)
{
	json_array(json, "calls");
	for (size_t i = 0; i < facts->calls.count; i++) {
		const struct call_fact *call = &facts->calls.at[i];

		json_object(json, NULL);
		json_text(json, "name", session_text(facts->session, call->name));
		json_i64(json, "count", call->count);
		put_i64(json, "sum_ns", call->sum_ns);
		put_i64(json, "max_ns", call->max_ns);
		put_i64_unless(json, "context_ns", call->context_ns, 0);
		json_bool(json, "synchronising", call->synchronising);
		json_end(json);
	}
	json_end(json);
}

static void put_phases(const struct facts *facts, struct json *json)
{
	json_array(json, "phases");
	for (size_t i = 0; i < facts->phases.count; i++) {
		const struct phase_fact *phase = &facts->phases.at[i];

		json_object(json, NULL);
		json_text(json, "name", phase_name(phase->phase));
		json_i64(json, "count", phase->count);
		put_i64(json, "wall_ns", phase->wall_ns);
		put_i64(json, "gpu_ns", phase->gpu_ns);
		put_i64(json, "idle_ns", phase->idle_ns);
		put_string(json, "longest", facts->session, phase->name);
		json_bool(json, "by_annotation", phase->by_annotation);
		json_end(json);
	}
	json_end(json);
}

static void put_readbacks(const struct facts *facts, struct json *json)
{
	json_array(json, "readbacks");
	for (size_t i = 0; i < facts->readbacks.count; i++) {
		const struct readback_fact *readback = &facts->readbacks.at[i];

		json_object(json, NULL);
		put_i64_unless(json, "device", readback->device, SESSION_NONE);
		json_i64(json, "count", readback->count);
		put_i64(json, "blocked_ns", readback->blocked_ns);
		put_i64(json, "idle_ns", readback->idle_ns);
		put_f64(json, "per_step", readback->per_step);
		put_string(json, "op", facts->session, readback->op);
		json_end(json);
	}
	json_end(json);
}

static void put_steps(const struct facts *facts, const struct step_facts *steps, const char *key,
		      struct json *json)
{
	if (!steps->source)
		return;
	json_object(json, key);
	json_text(json, "source", steps->source);
	put_string(json, "name", facts->session, steps->name);
	json_i64(json, "count", (int64_t)steps->step.count);
	if (steps->missed)
		json_i64(json, "missed", steps->missed);
	put_i64(json, "p50_ns", steps->p50_ns);
	put_i64(json, "p95_ns", steps->p95_ns);
	put_i64(json, "p99_ns", steps->p99_ns);
	json_array(json, "outliers");
	for (size_t i = 0; i < steps->step.count; i++) {
		const struct step *step = &steps->step.at[i];

		if (!step->outlier)
			continue;
		json_object(json, NULL);
		json_i64(json, "index", (int64_t)i);
		json_i64(json, "ns", step->end_ns - step->start_ns);
		if (step->setup)
			json_bool(json, "setup", true);
		json_array(json, "differs");
		for (size_t j = 0; j < step->differs.count; j++)
			json_text(json, NULL, step->differs.at[j]);
		json_end(json);
		json_end(json);
	}
	json_end(json);
	json_end(json);
}

static void put_leaks(const struct facts *facts, const struct memory_fact *memory,
		      struct json *json)
{
	if (!memory->leaks.count)
		return;
	json_array(json, "leaks");
	for (size_t i = 0; i < memory->leaks.count; i++) {
		const struct leak_fact *leak = &memory->leaks.at[i];

		json_object(json, NULL);
		json_i64(json, "count", leak->count);
		json_i64(json, "bytes", leak->count * leak->block_bytes);
		json_i64(json, "block_bytes", leak->block_bytes);
		if (leak->site)
			json_text(json, "site", session_text(facts->session, leak->site));
		json_end(json);
	}
	json_end(json);
}

static void put_sites(const struct facts *facts, const struct memory_fact *memory,
		      struct json *json)
{
	if (!memory->sites.count)
		return;
	json_array(json, "sites");
	for (size_t i = 0; i < memory->sites.count; i++) {
		const struct site_fact *site = &memory->sites.at[i];

		json_object(json, NULL);
		if (site->site)
			json_text(json, "site", session_text(facts->session, site->site));
		json_i64(json, "count", site->count);
		json_i64(json, "bytes", site->bytes);
		put_f64(json, "growth_bytes_per_step", site->growth_bytes_per_step);
		json_end(json);
	}
	json_end(json);
}

static void put_objects(const struct memory_fact *memory, struct json *json)
{
	static const char *const names[HELD_KINDS][3] = {
		{ "streams_live", "streams_leaked", "streams_site" },
		{ "events_live", "events_leaked", "events_site" },
		{ "graphs_live", "graphs_leaked", "graphs_site" },
		{ "graph_execs_live", "graph_execs_leaked", "graph_execs_site" },
	};

	for (size_t i = 0; i < HELD_KINDS; i++) {
		const struct object_fact *object = &memory->objects[i];

		if (object->live == FACT_UNKNOWN)
			continue;
		json_i64(json, names[i][0], object->live);
		json_i64(json, names[i][1], object->leaked);
		if (object->site)
			json_text(json, names[i][2], object->site);
	}
}

static void put_memory(const struct facts *facts, struct json *json)
{
	json_array(json, "memory");
	for (size_t i = 0; i < facts->memory.count; i++) {
		const struct memory_fact *memory = &facts->memory.at[i];

		json_object(json, NULL);
		put_i64_unless(json, "device", memory->device, SESSION_NONE);
		put_i64(json, "peak_bytes", memory->peak_bytes);
		put_i64(json, "live_bytes", memory->live_bytes);
		put_i64(json, "reserved_peak_bytes", memory->reserved_peak_bytes);
		put_i64(json, "alloc_count", memory->alloc_count);
		put_i64(json, "free_count", memory->free_count);
		put_f64(json, "growth_bytes_per_step", memory->growth_bytes_per_step);
		if (memory->device == SESSION_NONE)
			json_bool(json, "host", true);
		put_leaks(facts, memory, json);
		put_sites(facts, memory, json);
		put_objects(memory, json);
		json_end(json);
	}
	json_end(json);
}

static void put_ranges(const struct facts *facts, struct json *json)
{
	json_array(json, "ranges");
	for (size_t i = 0; i < facts->ranges.count; i++) {
		const struct range_fact *range = &facts->ranges.at[i];

		json_object(json, NULL);
		json_text(json, "name", session_text(facts->session, range->name));
		json_i64(json, "count", range->count);
		put_i64(json, "sum_ns", range->sum_ns);
		put_i64(json, "gpu_ns", range->gpu_ns);
		json_end(json);
	}
	json_end(json);
}

/* When and how much; equal parts of the recording without a sample are left out. */
static void put_process_use(const struct process_fact *process, struct json *json)
{
	put_i64(json, "first_ns", process->first_ns);
	put_i64(json, "last_ns", process->last_ns);
	if (process->sm_ns == FACT_UNKNOWN)
		return;
	json_i64(json, "sm_ns", process->sm_ns);
	put_f64(json, "sm_share", process->sm_share);
	json_array(json, "slots");
	for (int i = 0; i < PROCESS_SLOTS; i++) {
		if (!isfinite(process->slot_pct[i]))
			continue;
		json_object(json, NULL);
		json_i64(json, "slot", i);
		json_f64(json, "sm_pct", process->slot_pct[i]);
		json_end(json);
	}
	json_end(json);
}

static void put_processes(const struct facts *facts, struct json *json)
{
	const struct session *session = facts->session;

	json_array(json, "processes");
	for (size_t i = 0; i < facts->processes.count; i++) {
		const struct process_fact *process = &facts->processes.at[i];

		json_object(json, NULL);
		put_i64_unless(json, "device", process->device, SESSION_NONE);
		if (process->process < session->processes.count) {
			const struct process *row = &session->processes.at[process->process];

			json_i64(json, "pid", row->pid);
			put_string(json, "name", session, row->name);
			put_string(json, "command", session, row->command);
			put_string(json, "type", session, row->type);
		}
		json_i64(json, "samples", process->samples);
		put_f64(json, "sm_pct_mean", process->sm_pct_mean);
		put_f64(json, "sm_pct_max", process->sm_pct_max);
		put_f64(json, "mem_bytes", process->mem_bytes);
		put_f64(json, "mem_bytes_first", process->mem_bytes_first);
		put_f64(json, "mem_growth_bytes_s", process->mem_growth_bytes_s);
		put_f64(json, "mem_growth_bytes", process->mem_growth_bytes);
		put_process_use(process, json);
		json_end(json);
	}
	json_end(json);
}

/* Cards that differ from the others of their name. */
static void put_twins(const struct facts *facts, struct json *json)
{
	if (!facts->twins.count)
		return;
	json_array(json, "twins");
	for (size_t i = 0; i < facts->twins.count; i++) {
		const struct twin_fact *twin = &facts->twins.at[i];

		json_object(json, NULL);
		json_i64(json, "device", twin->device);
		json_text(json, "metric", metric_name(twin->metric));
		json_bool(json, "under_load", twin->under_load);
		put_f64(json, "value", twin->value);
		put_f64(json, "median", twin->median);
		put_f64(json, "spread", twin->spread);
		json_i64(json, "twins", twin->twins);
		json_end(json);
	}
	json_end(json);
}

void present_json_tables(const struct facts *facts, struct json *json)
{
	put_ops(facts, json);
	put_copies(facts, json);
	put_page_faults(facts, json);
	put_waits(facts, json);
	put_stream_waits(facts, json);
	put_calls(facts, json);
	put_phases(facts, json);
	put_readbacks(facts, json);
	put_steps(facts, &facts->steps, "steps", json);
	put_steps(facts, &facts->requests, "requests", json);
	put_memory(facts, json);
	put_ranges(facts, json);
	put_processes(facts, json);
	put_twins(facts, json);
}

static void put_texts(const char *const *at, size_t count, const char *key, struct json *json)
{
	json_array(json, key);
	for (size_t i = 0; i < count; i++)
		json_text(json, NULL, at[i]);
	json_end(json);
}

static void put_evidence(const struct finding *finding, struct json *json)
{
	json_array(json, "evidence");
	for (size_t i = 0; i < finding->evidence.count; i++) {
		const struct evidence *evidence = &finding->evidence.at[i];

		json_object(json, NULL);
		json_text(json, "metric", evidence->metric);
		put_f64(json, "value", evidence->value);
		put_text(json, "unit", evidence->unit);
		put_text(json, "where", evidence->where);
		json_end(json);
	}
	json_end(json);
}

static void put_finding(const struct facts *facts, const struct finding *finding, struct json *json)
{
	json_object(json, NULL);
	json_text(json, "id", finding->rule->id);
	json_text(json, "severity", severity_name(finding->severity));
	json_text(json, "layer", layer_name(finding->rule->layer));
	put_text(json, "title", finding->title);
	put_text(json, "claim", finding->claim);
	put_i64_unless(json, "device", finding->device, SESSION_NONE);
	if (finding->kernel < facts->kernels.count) {
		uint32_t key = facts->kernels.at[finding->kernel].key;

		if (key < facts->session->keys.count)
			put_string(json, "kernel", facts->session,
				   facts->session->keys.at[key].name);
	}
	put_evidence(finding, json);
	if (finding->impact_low_ns != FACT_UNKNOWN && finding->impact_high_ns != FACT_UNKNOWN) {
		json_array(json, "impact_ns");
		json_i64(json, NULL, finding->impact_low_ns);
		json_i64(json, NULL, finding->impact_high_ns);
		json_end(json);
	}
	put_f64(json, "impact_share", finding->impact_share);
	if (isfinite(finding->impact_share))
		json_text(json, "impact_of", stretch_name(finding->impact_of));
	put_f64(json, "coverage", finding->coverage);
	json_text(json, "grade", grade_name(finding->grade));
	put_texts(finding->advice.at, finding->advice.count, "advice", json);
	put_texts(finding->next.at, finding->next.count, "next", json);
	put_text(json, "runner_up", finding->runner_up);
	json_bool(json, "held_back", finding->held_back);
	if (finding->held_back)
		put_text(json, "held_back_why", finding->held_back_why);
	json_end(json);
}

void present_json_findings(const struct facts *facts, const struct findings *findings,
			   struct json *json)
{
	json_array(json, "findings");
	for (size_t i = 0; i < findings->at.count; i++)
		put_finding(facts, &findings->at.at[i], json);
	json_end(json);
}
