#include "read/ncu.h"

#include <math.h>
#include <string.h>

/* A launch has some thousand values; this many are a damaged file. */
enum { VALUES_MAX = 1 << 20 };

void ncu_launch_begin(struct ncu *ncu)
{
	struct ncu_launch *launch = &ncu->launch;

	launch->open = true;
	launch->id = launch->pid = launch->context = launch->stream = launch->device = -1;
	launch->cc_major = launch->cc_minor = 0;
	launch->kernel = launch->process_name = launch->host = 0;
	memset(launch->grid, 0, sizeof(launch->grid));
	memset(launch->block, 0, sizeof(launch->block));
	launch->values.count = 0;
	launch->rules.count = 0;
}

void ncu_launch_done(struct ncu_launch *launch)
{
	VEC_DONE(&launch->values);
	VEC_DONE(&launch->rules);
}

void ncu_launch_value(struct ncu *ncu, uint32_t name, uint32_t unit, struct str value)
{
	struct ncu_value *row;
	double number;

	value = str_trim(value);
	if (!value.len || !name || ncu->launch.values.count >= VALUES_MAX)
		return;
	row = VEC_ADD(&ncu->launch.values);
	row->name = name;
	row->unit = unit;
	if (ncu_number(value, ncu->decimal_comma, &number)) {
		row->value = number;
		return;
	}
	row->value = NAN;
	row->text = session_string(ncu->sink->session, value.at, value.len);
}

void ncu_launch_rule(struct ncu *ncu, struct str name, struct str type, struct str text,
		     struct str speedup_type, struct str speedup)
{
	struct buf detail = { 0 };
	struct ncu_rule *rule;

	if (ncu->launch.rules.count >= VALUES_MAX)
		return;
	if (type.len) {
		buf_add(&detail, type.at, type.len);
		buf_text(&detail, ": ");
	}
	buf_add(&detail, text.at, text.len);
	if (speedup.len) {
		buf_text(&detail, " [estimated ");
		if (speedup_type.len) {
			buf_add(&detail, speedup_type.at, speedup_type.len);
			buf_char(&detail, ' ');
		}
		buf_text(&detail, "speedup ");
		buf_add(&detail, speedup.at, speedup.len);
		buf_text(&detail, " %]");
	}
	rule = VEC_ADD(&ncu->launch.rules);
	rule->name = session_string(ncu->sink->session, name.at, name.len);
	rule->detail = session_string(ncu->sink->session, detail.at, detail.len);
	buf_done(&detail);
}

uint32_t ncu_section_name(struct ncu *ncu, struct str section, struct str metric)
{
	struct buf name = { 0 };
	uint32_t id;

	metric = str_trim(metric);
	section = str_trim(section);
	/* Metrics asked for by name (--metrics) stand in a section page as they are. */
	if (!section.len || str_find(metric, "__"))
		return session_string(ncu->sink->session, metric.at, metric.len);
	buf_add(&name, section.at, section.len);
	buf_text(&name, " / ");
	buf_add(&name, metric.at, metric.len);
	id = session_string(ncu->sink->session, name.at, name.len);
	buf_done(&name);
	return id;
}

/* The value with one of these names (NULL ends); NULL if the launch has none. */
static const struct ncu_value *find(const struct ncu *ncu, const char *const *names)
{
	const struct session *session = ncu->sink->session;

	for (; *names; names++) {
		uint32_t id;

		if (!intern_find(session->strings, *names, strlen(*names), &id))
			continue;
		for (size_t i = 0; i < ncu->launch.values.count; i++) {
			if (ncu->launch.values.at[i].name == id)
				return &ncu->launch.values.at[i];
		}
	}
	return NULL;
}

#define FIND(ncu, ...) find(ncu, (const char *const[]){ __VA_ARGS__, NULL })

static int64_t whole(const struct ncu_value *value, int64_t fallback)
{
	if (!value || !(value->value >= 0) || value->value > INT32_MAX)
		return fallback;
	return (int64_t)value->value;
}

/* Bytes, where the unit was not scaled: a rounded "4.22 Kbyte" is no identity. */
static int64_t exact_bytes(const struct ncu *ncu, const struct ncu_value *value)
{
	const char *unit = value ? session_text(ncu->sink->session, value->unit) : "";

	if (*unit && strncmp(unit, "byte", 4) != 0)
		return value->value == 0 ? 0 : -1;
	return whole(value, -1);
}

static uint32_t kernel_key(struct ncu *ncu)
{
	const struct ncu_launch *launch = &ncu->launch;
	struct kernel_key key = { .name = launch->kernel, .shared_bytes = -1 };
	const struct ncu_value *dim[9] = {
		FIND(ncu, "launch__grid_dim_x"),    FIND(ncu, "launch__grid_dim_y"),
		FIND(ncu, "launch__grid_dim_z"),    FIND(ncu, "launch__block_dim_x"),
		FIND(ncu, "launch__block_dim_y"),   FIND(ncu, "launch__block_dim_z"),
		FIND(ncu, "launch__cluster_dim_x"), FIND(ncu, "launch__cluster_dim_y"),
		FIND(ncu, "launch__cluster_dim_z"),
	};
	int64_t fixed =
		exact_bytes(ncu, FIND(ncu, "launch__shared_mem_per_block_static",
				      "Launch Statistics / Static Shared Memory Per Block"));
	int64_t dynamic =
		exact_bytes(ncu, FIND(ncu, "launch__shared_mem_per_block_dynamic",
				      "Launch Statistics / Dynamic Shared Memory Per Block"));

	for (int i = 0; i < 3; i++) {
		key.grid[i] = launch->grid[i] ? launch->grid[i] : (int32_t)whole(dim[i], 0);
		key.block[i] = launch->block[i] ? launch->block[i] : (int32_t)whole(dim[3 + i], 0);
		key.cluster[i] = (int32_t)whole(dim[6 + i], 0);
	}
	if (fixed >= 0 && dynamic >= 0)
		key.shared_bytes = fixed + dynamic;
	key.registers = (int32_t)whole(FIND(ncu, "launch__registers_per_thread",
					    "Launch Statistics / Registers Per Thread"),
				       -1);
	key.theoretical_occupancy_pct =
		(int32_t)whole(FIND(ncu, "sm__maximum_warps_per_active_cycle_pct",
				    "Occupancy / Theoretical Occupancy"),
			       -1);
	return session_key(ncu->sink->session, &key);
}

static uint32_t text_or_none(const struct ncu_value *value)
{
	return value ? value->text : 0;
}

static uint32_t device_of(struct ncu *ncu)
{
	const struct ncu_launch *launch = &ncu->launch;
	struct device facts = {
		.scope = DEVICE_OF_SOURCE,
		.source = ncu->source,
		.ordinal = launch->device,
		.name = text_or_none(FIND(ncu, "device__attribute_display_name")),
		.sm_count = whole(FIND(ncu, "device__attribute_multiprocessor_count",
				       "launch__sm_count", "Launch Statistics / # SMs"),
				  0),
		.cc_major = launch->cc_major,
		.cc_minor = launch->cc_minor,
		.warps_per_sm =
			whole(FIND(ncu, "device__attribute_max_warps_per_multiprocessor"), 0),
		.threads_per_sm =
			whole(FIND(ncu, "device__attribute_max_threads_per_multiprocessor"), 0),
		.regs_per_sm =
			whole(FIND(ncu, "device__attribute_max_registers_per_multiprocessor"), 0),
		.shared_per_sm = whole(
			FIND(ncu, "device__attribute_max_shared_memory_per_multiprocessor"), 0),
	};

	if (facts.name)
		facts.maker = session_string(ncu->sink->session, "NVIDIA", 6);
	return session_device(ncu->sink->session, &facts);
}

static bool is_attribute(const struct ncu *ncu, const struct ncu_value *value)
{
	return !strncmp(session_text(ncu->sink->session, value->name), "device__attribute_", 18);
}

/* Attributes of the card stand in every launch; once is enough. */
static void describe_device(struct ncu *ncu, uint32_t device)
{
	if (map_find(&ncu->described, device))
		return;
	map_put(&ncu->described, device, 1);
	for (size_t i = 0; i < ncu->launch.values.count; i++) {
		const struct ncu_value *value = &ncu->launch.values.at[i];
		const char *text = session_text(ncu->sink->session, value->text);
		char number[40];

		if (!is_attribute(ncu, value))
			continue;
		(void)snprintf(number, sizeof(number), "%.15g", value->value);
		session_env(ncu->sink->session, ncu->source, device,
			    str_of(session_text(ncu->sink->session, value->name)),
			    str_of(value->text ? text : number));
	}
}

static uint32_t lane_of(struct ncu *ncu, uint32_t device)
{
	const struct ncu_launch *launch = &ncu->launch;
	struct session *session = ncu->sink->session;
	struct lane lane = {
		.kind = LANE_LAUNCHES,
		.source = ncu->source,
		.device = device,
		.process = SESSION_NONE,
		.context = launch->context,
		.stream = launch->stream,
		.tid = -1,
	};

	if (launch->pid >= 0) {
		lane.process = session_process(session, ncu->source, launch->pid);
		if (launch->process_name)
			session->processes.at[lane.process].name = launch->process_name;
	}
	return session_lane(session, &lane);
}

static int emit_values(struct ncu *ncu, uint32_t lane, uint32_t key, struct err *err)
{
	for (size_t i = 0; i < ncu->launch.values.count; i++) {
		const struct ncu_value *value = &ncu->launch.values.at[i];
		struct counter counter = {
			.lane = lane,
			.launch = ncu->launches,
			.key = key,
			.name = value->name,
			.unit = value->unit,
			.value = value->value,
			.text = value->text,
		};

		if (!is_attribute(ncu, value) && sink_counter(ncu->sink, &counter, err) < 0)
			return err->code;
	}
	return 0;
}

int ncu_launch_end(struct ncu *ncu, struct err *err)
{
	struct ncu_launch *launch = &ncu->launch;
	uint32_t device, lane;

	if (!launch->open)
		return 0;
	launch->open = false;
	device = device_of(ncu);
	lane = lane_of(ncu, device);
	describe_device(ncu, device);
	if (launch->host && !ncu->launches)
		session_env(ncu->sink->session, ncu->source, SESSION_NONE, STR("host"),
			    str_of(session_text(ncu->sink->session, launch->host)));
	if (emit_values(ncu, lane, kernel_key(ncu), err) < 0)
		return err->code;
	for (size_t i = 0; i < launch->rules.count; i++) {
		/* Kept as a string until now: details last for one event. */
		struct str message;
		struct mark mark = {
			.kind = MARK_RULE,
			.lane = lane,
			.time_ns = ncu->launches, /* such a lane counts launches */
			.name = launch->rules.at[i].name,
		};

		message.at = intern_get(ncu->sink->session->strings, launch->rules.at[i].detail,
					&message.len);
		mark.detail = session_detail(ncu->sink->session, message.at, message.len);
		if (sink_mark(ncu->sink, &mark, err) < 0)
			return err->code;
	}
	ncu->launches++;
	return 0;
}
