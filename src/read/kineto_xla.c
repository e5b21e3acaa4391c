#include "read/json_scan.h"
#include "read/kineto.h"

/*
 * Events without a category: XLA's profiler (JAX, TensorFlow) writes none. Its
 * devices are processes called "/device:GPU:0"; of their threads only those
 * called "Stream #13(compute)" hold device work, the others ("XLA Ops",
 * "Steps", ...) tell the same time again by other names. Arguments are strings
 * such as "regs:32 static_shared:0 dynamic_shared:0 grid:8,1,1 block:256,1,1".
 * tsl/profiler/convert/trace_events_to_json.cc, xla/backends/profiler/gpu.
 */

/* "name:value" among words; false if it is not there or no number. */
static bool word_number(struct str words, const char *name, int64_t *ret)
{
	while (words.at) {
		struct str word = str_cut(&words, ' ');
		struct str key = str_cut(&word, ':');

		if (str_is(key, name) && word.at)
			return str_to_i64(word, ret);
	}
	return false;
}

static void word_dims(struct str words, const char *name, int32_t dims[3])
{
	while (words.at) {
		struct str word = str_cut(&words, ' ');
		struct str key = str_cut(&word, ':');
		int64_t value;

		if (!str_is(key, name) || !word.at)
			continue;
		for (int i = 0; i < 3 && word.at; i++) {
			if (str_to_i64(str_cut(&word, ','), &value) && value >= 0 &&
			    value <= INT32_MAX)
				dims[i] = (int32_t)value;
		}
		return;
	}
}

static void kernel(struct kineto *k, const struct kineto_event *event, struct op *op)
{
	const struct kineto_rest *rest = kineto_rest_find(event, "kernel_details");
	struct kernel_key key = { .name = op->name,
				  .shared_bytes = -1,
				  .registers = -1,
				  .theoretical_occupancy_pct = -1 };
	int64_t fixed, dynamic, value;

	if (rest) {
		word_dims(rest->value, "grid", key.grid);
		word_dims(rest->value, "block", key.block);
		if (word_number(rest->value, "static_shared", &fixed) &&
		    word_number(rest->value, "dynamic_shared", &dynamic) && fixed >= 0 &&
		    dynamic >= 0 && fixed < INT32_MAX && dynamic < INT32_MAX)
			key.shared_bytes = fixed + dynamic;
		if (word_number(rest->value, "regs", &value) && value >= 0 && value < 65536)
			key.registers = (int32_t)value;
		if (word_number(rest->value, "occ_pct", &value) && value >= 0 && value <= 100)
			key.theoretical_occupancy_pct = (int32_t)value;
	}
	op->key = session_key(k->session, &key);
}

static void copy(const struct kineto_event *event, struct op *op)
{
	const struct kineto_rest *rest = kineto_rest_find(event, "memcpy_details");
	int64_t bytes;

	kineto_copy_name(event->name, op);
	if (!rest)
		return;
	if (word_number(rest->value, "size", &bytes))
		op->bytes = bytes;
	if (str_find(rest->value, ":pageable"))
		op->host_memory = HOST_MEMORY_PAGEABLE;
	else if (str_find(rest->value, ":pinned"))
		op->host_memory = HOST_MEMORY_PINNED;
}

static void device_work(struct kineto *k, const struct kineto_event *event,
			struct kineto_track *track, int64_t device, struct op *op)
{
	struct str name = str_of(session_text(k->session, track->name));
	int64_t stream = track->tid;
	struct str number;

	/* "Stream #13(compute)" */
	name.at += 8;
	name.len -= 8;
	number = str_cut(&name, '(');
	(void)str_to_i64(number, &stream);
	*op = (struct op){ .kind = OP_KERNEL, .bytes = EVENT_UNKNOWN };
	op->lane = kineto_stream_lane(k, track, device, -1, stream);
	op->name = kineto_event_name(k, event);
	op->correlation = (uint64_t)kineto_num(event, KINETO_correlation, 0);
	if (str_starts(event->name, "Memcpy"))
		op->kind = OP_MEMCPY;
	else if (str_starts(event->name, "Memset"))
		op->kind = OP_MEMSET;
	if (op->kind == OP_KERNEL)
		kernel(k, event, op);
	else
		copy(event, op);
	kineto_detail(k, event, false);
	k->any_device = true;
}

/* cuLaunchKernel, cudaMalloc; "custom" and "cube" are none. */
static enum call_kind host_kind(struct str name)
{
	if (str_starts(name, "cuda") && name.len > 4 && name.at[4] >= 'A' && name.at[4] <= 'Z')
		return CALL_RUNTIME;
	if (str_starts(name, "cu") && name.len > 2 && name.at[2] >= 'A' && name.at[2] <= 'Z')
		return CALL_DRIVER;
	return str_starts(name, "$") ? CALL_PYTHON : CALL_OTHER;
}

void kineto_xla(struct kineto *k, const struct kineto_event *event, struct kineto_track *track,
		struct kineto_made *made)
{
	const struct kineto_pid *pid = kineto_pid_get(k, track->pid);

	if (pid->is_device && track->xla_stream) {
		made->kind = MADE_OP;
		device_work(k, event, track, pid->device, &made->op);
		return;
	}
	if (pid->is_device) {
		made->kind = MADE_RANGE;
		made->range = (struct range){ .kind = RANGE_DEVICE };
		made->range.lane = kineto_stream_lane(k, track, pid->device, -1, -2 - track->tid);
		made->range.name = kineto_event_name(k, event);
		kineto_detail(k, event, false);
		return;
	}
	made->kind = MADE_CALL;
	made->call = (struct call){ .kind = host_kind(event->name) };
	made->call.lane = kineto_thread_lane(k, track);
	made->call.name = kineto_event_name(k, event);
	made->call.correlation = (uint64_t)kineto_num(event, KINETO_correlation, 0);
	kineto_detail(k, event, false);
}
