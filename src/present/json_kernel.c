#include "present/json_put.h"

#include <stddef.h>

static const struct counter_field {
	const char *name;
	size_t offset;
} COUNTER_FIELDS[] = {
#define FIELD(name)                                           \
	{                                                     \
#name, offsetof(struct kernel_counters, name) \
	}
	FIELD(duration_ns),
	FIELD(sm_pct),
	FIELD(memory_pct),
	FIELD(dram_pct),
	FIELD(l2_pct),
	FIELD(l1_pct),
	FIELD(issue_pct),
	FIELD(sectors_per_request_load),
	FIELD(sectors_per_request_store),
	FIELD(ideal_sectors_load),
	FIELD(ideal_sectors_store),
	FIELD(excess_sector_share),
	FIELD(bank_conflict_share),
	FIELD(local_share),
	FIELD(threads_per_instruction),
	FIELD(l1_hit_pct),
	FIELD(l2_hit_pct),
	FIELD(waves),
	FIELD(blocks),
	FIELD(sms),
	FIELD(active_share),
	FIELD(slice_max_pct),
	FIELD(slice_avg_pct),
	FIELD(atomic_share),
	FIELD(fp64_pct),
	FIELD(xu_pct),
	FIELD(fma_pct),
	FIELD(alu_pct),
	FIELD(tensor_pct),
	FIELD(lsu_pct),
	FIELD(warp_latency_cycles),
	FIELD(dram_bytes),
	FIELD(l2_bytes),
	FIELD(l1_bytes),
	FIELD(shared_reread),
	FIELD(fp32_unfused_share),
#undef FIELD
};

static void put_bound(const struct bound_fact *bound, struct json *json)
{
	json_object(json, "bound");
	json_text(json, "class", bound_name(bound->bound));
	put_text(json, "unit", bound->unit);
	json_text(json, "grade", grade_name(bound->grade));
	if (bound->runner_up != BOUND_UNKNOWN) {
		json_text(json, "runner_up", bound_name(bound->runner_up));
		put_text(json, "runner_up_unit", bound->runner_up_unit);
	}
	json_object(json, "numbers");
	for (size_t i = 0; i < bound->numbers.count; i++) {
		bool again = false;

		/* A key must not come twice: the more telling one stands first. */
		for (size_t j = 0; j < i && !again; j++)
			again = !strcmp(bound->numbers.at[j].metric, bound->numbers.at[i].metric);
		if (!again)
			put_f64(json, bound->numbers.at[i].metric, bound->numbers.at[i].value);
	}
	json_end(json);
	put_text(json, "next", bound->next);
	json_array(json, "notes");
	for (size_t i = 0; i < bound->notes.count; i++)
		json_text(json, NULL, bound->notes.at[i]);
	json_end(json);
	json_end(json);
}

static void put_counters(const struct kernel_fact *kernel, struct json *json)
{
	const struct kernel_counters *counters = &kernel->counters;

	json_object(json, "occupancy");
	put_f64(json, "achieved_pct", counters->achieved_occupancy_pct);
	put_f64(json, "theoretical_pct", counters->theoretical_occupancy_pct);
	put_text(json, "limiter", counters->occupancy_limiter);
	json_end(json);
	json_object(json, "counters");
	json_i64(json, "launches", kernel->counter_launches);
	for (size_t i = 0; i < sizeof(COUNTER_FIELDS) / sizeof(*COUNTER_FIELDS); i++) {
		double value;

		memcpy(&value, (const char *)counters + COUNTER_FIELDS[i].offset, sizeof(value));
		put_f64(json, COUNTER_FIELDS[i].name, value);
	}
	json_end(json);
}

/* Identity of a launch configuration in words. */
static void put_key(const struct session *session, const struct kernel_key *key, struct json *json)
{
	struct buf text = { 0 };
	const int32_t *g = key->grid, *b = key->block, *c = key->cluster;

	buf_text(&text, session_text(session, key->name));
	if (g[0])
		buf_printf(&text, " grid %dx%dx%d", g[0], g[1], g[2]);
	if (b[0])
		buf_printf(&text, " block %dx%dx%d", b[0], b[1], b[2]);
	if (c[0])
		buf_printf(&text, " cluster %dx%dx%d", c[0], c[1], c[2]);
	if (key->shared_bytes >= 0)
		buf_printf(&text, " shared %lld", (long long)key->shared_bytes);
	json_text(json, "key", text.at ? text.at : "");
	buf_done(&text);
	put_dim3(json, "grid", g);
	put_dim3(json, "block", b);
	put_dim3(json, "cluster", c);
	put_i64_unless(json, "shared_bytes", key->shared_bytes, -1);
	put_i64_unless(json, "registers", key->registers, -1);
	put_i64_unless(json, "theoretical_occupancy_pct", key->theoretical_occupancy_pct, -1);
}

void present_json_kernel(const struct facts *facts, const struct kernel_fact *kernel,
			 struct json *json)
{
	const struct session *session = facts->session;

	json_object(json, NULL);
	if (kernel->key < session->keys.count) {
		const struct kernel_key *key = &session->keys.at[kernel->key];

		json_text(json, "name", session_text(session, key->name));
		put_key(session, key, json);
	}
	put_i64_unless(json, "device", kernel->device, SESSION_NONE);
	if (kernel->count > 0) {
		json_i64(json, "count", kernel->count);
		put_i64(json, "sum_ns", kernel->sum_ns);
		put_i64(json, "mean_ns", kernel->mean_ns);
		put_i64(json, "min_ns", kernel->min_ns);
		put_i64(json, "max_ns", kernel->max_ns);
		put_f64(json, "share", kernel->share);
		put_f64(json, "coverage", kernel->coverage);
		put_i64(json, "launch_idle_ns", kernel->launch_idle_ns);
		put_f64(json, "mean_cycles", kernel->mean_cycles);
		put_f64(json, "sm_mhz", kernel->sm_mhz);
	}
	json_bool(json, "collective", kernel->collective);
	if (kernel->has_bound)
		put_bound(&kernel->bound, json);
	if (kernel->stalls.count) {
		json_object(json, "stalls");
		for (size_t i = 0; i < kernel->stalls.count; i++)
			put_f64(json, kernel->stalls.at[i].reason, kernel->stalls.at[i].share);
		json_end(json);
		put_i64_unless(json, "stall_samples", kernel->stall_samples, 0);
	}
	if (kernel->pc_samples) {
		json_i64(json, "pc_samples", kernel->pc_samples);
		if (kernel->top_stall) {
			json_text(json, "top_stall", kernel->top_stall);
			json_i64(json, "top_stall_samples", kernel->top_samples);
			json_bool(json, "top_stall_sure", kernel->sure_stall);
		}
	}
	if (kernel->has_counters)
		put_counters(kernel, json);
	json_end(json);
}
