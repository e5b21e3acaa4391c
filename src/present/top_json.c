/*
 * The picture for programs, schema "sonde.top/1". Metrics have the names of
 * model/metric.h, which carry their unit; absent is not measured, and "missing"
 * says why.
 */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "present/top.h"

static void put_text(struct json *json, const char *key, const char *value)
{
	if (*value)
		json_text(json, key, value);
}

static void put_number(struct json *json, const char *key, int64_t value, int64_t unknown)
{
	if (value != unknown)
		json_i64(json, key, value);
}

static void put_metric(struct json *json, enum metric metric, double value)
{
	if (value == floor(value) && fabs(value) < 9e15)
		json_i64(json, metric_name(metric), (int64_t)value);
	else if (isfinite(value))
		json_f64(json, metric_name(metric), value);
}

static void put_metrics(struct json *json, const struct sample *sample)
{
	json_object(json, "metrics");
	for (int i = 0; i < METRIC_COUNT; i++) {
		double value;

		if (sample_get(sample, (enum metric)i, &value))
			put_metric(json, (enum metric)i, value);
	}
	json_end(json);
}

/* Where a value is from if not plain NVML, and why there is none. */
static void put_origins(struct json *json, const struct board *board)
{
	json_object(json, "origins");
	for (int i = 0; i < METRIC_COUNT; i++) {
		enum origin origin = (enum origin)board->origin[i];

		if (origin_has(origin) && origin != ORIGIN_NVML)
			json_text(json, metric_name((enum metric)i), origin_name(origin));
	}
	json_end(json);
	json_object(json, "missing");
	for (int i = 0; i < METRIC_COUNT; i++) {
		enum origin origin = (enum origin)board->origin[i];

		if (!origin_has(origin) && origin != ORIGIN_NONE)
			json_text(json, metric_name((enum metric)i), origin_name(origin));
	}
	json_end(json);
}

static void put_reasons(struct json *json, const struct board *board)
{
	double mask;

	if (!board_get(board, METRIC_clock_reasons, &mask, NULL) || mask < 0 || mask > 1e15)
		return;
	json_array(json, "clock_held_by");
	for (size_t i = 0; top_clock_reason((uint64_t)mask, i); i++)
		json_text(json, NULL, top_clock_reason((uint64_t)mask, i));
	json_end(json);
}

static void put_board(struct json *json, const struct top_view *view, uint32_t place)
{
	static const char *const state[] = { [BOARD_OK] = "ok",
					     [BOARD_ASLEEP] = "asleep",
					     [BOARD_LOST] = "lost",
					     [BOARD_GONE] = "gone" };
	const struct snapshot *snapshot = view->snapshot;
	const struct board *board = &snapshot->boards.at[place];
	double bound;

	json_object(json, NULL);
	json_i64(json, "index", board->index);
	if (board->parent >= 0)
		json_i64(json, "mig_of", snapshot->boards.at[board->parent].index);
	put_text(json, "uuid", board->uuid);
	put_text(json, "name", board->name);
	put_text(json, "pci_bus", board->pci_bus);
	put_text(json, "mig_profile", board->mig_profile);
	put_number(json, "gpu_instance", board->gpu_instance, -1);
	put_number(json, "compute_instance", board->compute_instance, -1);
	json_text(json, "state", state[board->state]);
	put_number(json, "nvml_status", board->status, 0);
	if (board->mig_mode >= 0)
		json_bool(json, "mig", board->mig_mode == 1);
	if (board->persistence >= 0)
		json_bool(json, "persistence", board->persistence == 1);
	put_reasons(json, board);
	if (top_bound(board, &bound))
		json_f64(json, "activity_bound_pct", bound);
	put_number(json, "unaccounted_bytes", roster_unaccounted_bytes(snapshot, place), -1);
	put_metrics(json, &board->sample);
	put_origins(json, board);
	json_end(json);
}

static void put_kinds(struct json *json, uint32_t kinds)
{
	json_array(json, "kinds");
	if (kinds & PROCESS_COMPUTE)
		json_text(json, NULL, "compute");
	if (kinds & PROCESS_GRAPHICS)
		json_text(json, NULL, "graphics");
	if (kinds & PROCESS_MPS)
		json_text(json, NULL, "mps");
	json_end(json);
}

static void put_proc(struct json *json, const struct proc *proc)
{
	char state[2] = { proc->run_state, 0 };

	put_number(json, "uid", proc->uid, -1);
	put_text(json, "user", proc->user);
	put_text(json, "comm", proc->comm);
	put_text(json, "command", proc->command);
	json_text(json, "run_state", state);
	put_number(json, "start_utc_ns", proc->start_utc_ns, 0);
	json_i64(json, "cpu_ns", proc->cpu_ns);
	json_i64(json, "rss_bytes", proc->rss_bytes);
	put_text(json, "container_id", proc->group.container_id);
	put_text(json, "runtime", proc->group.runtime);
	put_text(json, "pod_uid", proc->group.pod_uid);
	put_text(json, "namespace", proc->namespace);
	put_text(json, "pod", proc->pod);
	put_text(json, "container", proc->container);
	put_text(json, "slurm_job", proc->group.slurm_job);
}

static void put_row(struct json *json, const struct top_view *view, const struct roster_row *row)
{
	static const char *const state[] = {
		[PROC_OK] = "ok", [PROC_GONE] = "gone", [PROC_FOREIGN] = "foreign"
	};
	const struct snapshot *snapshot = view->snapshot;
	const struct board *board = &snapshot->boards.at[row->board];
	const struct board_process *process = &snapshot->processes.at[row->place];

	json_object(json, NULL);
	json_i64(json, "gpu",
		 board->parent < 0 ? board->index : snapshot->boards.at[board->parent].index);
	if (board->parent >= 0)
		json_i64(json, "mig_index", board->index);
	put_text(json, "uuid", board->uuid);
	json_i64(json, "pid", row->proc.pid);
	json_text(json, "state", state[row->proc.state]);
	put_kinds(json, process->kinds);
	put_number(json, "idle_ns", row->idle_ns, -1);
	if (row->idle_ns >= 0)
		json_bool(json, "idle_holder", top_is_idle_holder(row));
	if (row->proc.state == PROC_OK)
		put_proc(json, &row->proc);
	put_metrics(json, &process->sample);
	json_end(json);
}

static void put_host(struct json *json, const struct top_view *view)
{
	json_object(json, "host");
	if (view->host.has_cpu)
		json_i64(json, "cpus", view->host.cpus);
	if (isfinite(view->host_busy))
		json_f64(json, "cpu_busy_share", view->host_busy);
	if (view->host.has_load)
		json_f64(json, "load_1m", view->host.load_1m);
	if (view->host.has_memory) {
		json_i64(json, "mem_total_bytes", view->host.mem_total_bytes);
		json_i64(json, "mem_available_bytes", view->host.mem_available_bytes);
	}
	json_end(json);
}

void present_top_json(const struct top_view *view, bool compact, struct buf *out)
{
	const struct snapshot *snapshot = view->snapshot;
	struct json json = { .out = out, .compact = compact };

	json_object(&json, NULL);
	json_text(&json, "schema", "sonde.top/1");
	json_i64(&json, "utc_ns", snapshot->utc_ns);
	json_i64(&json, "round_ns", view->round_ns);
	put_text(&json, "driver", snapshot->driver);
	put_text(&json, "cuda", snapshot->cuda);
	put_text(&json, "nvml", snapshot->nvml);
	put_text(&json, "library", snapshot->library);
	put_text(&json, "wrapper", snapshot->wrapper);
	json_bool(&json, "own_pid_namespace", view->nested);
	json_object(&json, "cost");
	json_i64(&json, "wall_ns", snapshot->wall_ns);
	json_i64(&json, "cpu_ns", snapshot->cpu_ns);
	json_i64(&json, "calls", snapshot->calls);
	put_text(&json, "slowest", snapshot->slowest);
	json_i64(&json, "slowest_ns", snapshot->slowest_ns);
	json_end(&json);
	json_i64(&json, "junk_rows", snapshot->junk_rows);
	put_host(&json, view);
	json_array(&json, "gpus");
	for (size_t i = 0; i < view->boards.count; i++)
		put_board(&json, view, view->boards.at[i]);
	json_end(&json);
	json_array(&json, "processes");
	for (size_t i = 0; i < view->shown.count; i++)
		put_row(&json, view, &view->rows[view->shown.at[i]]);
	json_end(&json);
	if (view->opener_count) {
		json_array(&json, "device_open_by");
		for (size_t i = 0; i < view->opener_count; i++) {
			json_object(&json, NULL);
			json_i64(&json, "pid", view->openers[i].pid);
			put_proc(&json, &view->openers[i]);
			json_end(&json);
		}
		json_end(&json);
	}
	json_end(&json);
	if (compact)
		buf_char(out, '\n');
}

void present_top_json_error(const char *line, struct buf *out)
{
	struct json json = { .out = out, .compact = true };

	json_object(&json, NULL);
	json_text(&json, "schema", "sonde.top/1");
	json_text(&json, "error", line);
	json_end(&json);
	buf_char(out, '\n');
}
