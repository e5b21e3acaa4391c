#include "read/smi_tree.h"

#include "base/buf.h"
#include "base/hash.h"
#include "model/note.h"

/* A card with all supported clocks listed has about 1,000 leaves. */
static const size_t LEAVES_MAX = 400000;

void smi_tree_begin(struct smi_tree *tree, struct smi_log *log, enum smi_form form)
{
	*tree = (struct smi_tree){ .log = log, .form = form, .attached = -1 };
}

static void clear(struct smi_tree *tree)
{
	for (size_t i = 0; i < tree->gpus.count; i++)
		VEC_DONE(&tree->gpus.at[i].leaves);
	tree->gpus.count = 0;
	tree->machine.count = 0;
	tree->leaf_count = 0;
	tree->depth = 0;
	tree->in_gpu = false;
	tree->has_stamp = false;
	tree->attached = -1;
	map_done(&tree->again);
}

void smi_tree_done(struct smi_tree *tree)
{
	clear(tree);
	VEC_DONE(&tree->gpus);
	VEC_DONE(&tree->machine);
}

void smi_tree_gpu(struct smi_tree *tree, struct str bus)
{
	struct smi_tree_gpu *gpu = VEC_ADD(&tree->gpus);

	gpu->bus = session_string(tree->log->session, bus.at, bus.len);
	tree->in_gpu = true;
	tree->depth = 0;
	map_done(&tree->again);
}

void smi_tree_leave_gpu(struct smi_tree *tree)
{
	tree->in_gpu = false;
	tree->depth = 0;
	map_done(&tree->again);
}

/* How often this name came under this parent, this time counted. */
static uint64_t times_seen(struct smi_tree *tree, uint32_t parent, struct str name)
{
	uint64_t key =
		(uint64_t)parent << 32 | session_string(tree->log->session, name.at, name.len);
	uint64_t *seen = map_find(&tree->again, key);
	uint64_t count = seen ? *seen + 1 : 1;

	map_put(&tree->again, key, count);
	return count;
}

static uint32_t join(struct smi_tree *tree, uint32_t parent, struct str name, uint64_t number)
{
	struct buf text = { 0 };
	uint32_t id;

	if (parent)
		buf_printf(&text, "%s / ", session_text(tree->log->session, parent));
	buf_add(&text, name.at, name.len);
	if (number > 1)
		buf_printf(&text, "[%llu]", (unsigned long long)number);
	id = session_string(tree->log->session, text.at, text.len);
	buf_done(&text);
	return id;
}

bool smi_tree_push(struct smi_tree *tree, struct str name)
{
	struct smi_node *parent = tree->depth ? &tree->node[tree->depth - 1] : NULL;
	struct smi_node *node = &tree->node[tree->depth];
	uint32_t path = parent ? parent->path : 0;

	if (tree->depth == SMI_TREE_DEPTH_MAX || tree->leaf_count > LEAVES_MAX)
		return false;
	if (parent)
		parent->has_children = true;
	if (name.len > 200)
		name.len = 200;
	*node = (struct smi_node){ 0 };
	node->plain = join(tree, parent ? parent->plain : 0, name, 1);
	node->path = join(tree, path, name, times_seen(tree, path, name));
	tree->depth++;
	return true;
}

void smi_tree_pop(struct smi_tree *tree)
{
	tree->depth -= tree->depth > 0;
}

void smi_tree_leaf(struct smi_tree *tree, struct str value)
{
	const struct smi_node *node = &tree->node[tree->depth - 1];
	const char *name = session_text(tree->log->session, node->plain);
	struct smi_leaf *leaf;

	if (tree->leaf_count++ > LEAVES_MAX) {
		tree->too_many++;
		return;
	}
	leaf = tree->in_gpu ? VEC_ADD(&tree->gpus.at[tree->gpus.count - 1].leaves)
			    : VEC_ADD(&tree->machine);
	leaf->path = node->path;
	leaf->plain = node->plain;
	leaf->value = session_string(tree->log->session, value.at, value.len);
	if (tree->in_gpu)
		return;
	if (!strcmp(name, "Timestamp") || !strcmp(name, "timestamp"))
		tree->has_stamp = smi_stamp(value, &tree->stamp_ns);
	if (!strcmp(name, "Attached GPUs") || !strcmp(name, "attached_gpus"))
		(void)str_to_i64(value, &tree->attached);
}

static struct str text_of(const struct smi_tree *tree, uint32_t id)
{
	size_t len;
	const char *at = intern_get(tree->log->session->strings, id, &len);

	return (struct str){ at, len };
}

/* The value under one of two paths; empty if there is none. */
static struct str leaf_value(const struct smi_tree *tree, const struct smi_tree_gpu *gpu,
			     const char *q_path, const char *xml_path)
{
	const char *wanted = tree->form == SMI_XML ? xml_path : q_path;

	for (size_t i = 0; i < gpu->leaves.count; i++) {
		if (str_is(text_of(tree, gpu->leaves.at[i].path), wanted))
			return text_of(tree, gpu->leaves.at[i].value);
	}
	return (struct str){ 0 };
}

static uint32_t device_of(struct smi_tree *tree, size_t number)
{
	const struct smi_tree_gpu *tree_gpu = &tree->gpus.at[number];
	bool all = tree->attached < 0 || (size_t)tree->attached <= tree->gpus.count;
	struct smi_gpu gpu = { .index = all ? (int64_t)number : -1 };
	struct str total =
		leaf_value(tree, tree_gpu, "FB Memory Usage / Total", "fb_memory_usage / total");
	const struct smi_field *field = smi_field_find(SMI_QUERY, STR("memory.total"));
	double bytes;

	gpu.uuid = leaf_value(tree, tree_gpu, "GPU UUID", "uuid");
	gpu.name = leaf_value(tree, tree_gpu, "Product Name", "product_name");
	gpu.bus = text_of(tree, tree_gpu->bus);
	if (smi_number(field, total, (struct str){ 0 }, &bytes) && bytes < 1e18)
		gpu.memory_bytes = (int64_t)bytes;
	return smi_log_device(tree->log, &gpu);
}

/* A process as its leaves come in. */
struct process_leaves {
	bool open;
	int64_t pid;
	struct str type, name;
	struct smi_values values;
};

static int flush_process(struct smi_tree *tree, struct process_leaves *process, uint32_t device,
			 int64_t time_ns, struct err *err)
{
	uint32_t id;

	if (!process->open)
		return 0;
	smi_values_end(&process->values);
	id = smi_log_process(tree->log, process->pid, process->type, process->name);
	process->open = false;
	return smi_log_sample(tree->log, device, id, time_ns, &process->values.sample, err);
}

/* Processes lie flat between the leaves: one begins with its pid. */
static int send_processes(struct smi_tree *tree, const struct smi_tree_gpu *gpu, uint32_t device,
			  int64_t time_ns, struct err *err)
{
	static const char *const q[] = { "Processes / Process ID", "Processes / Process ID / Type",
					 "Processes / Process ID / Name" };
	static const char *const xml[] = { "processes / process_info / pid",
					   "processes / process_info / type",
					   "processes / process_info / process_name" };
	const char *const *path = tree->form == SMI_XML ? xml : q;
	struct process_leaves process = { 0 };

	for (size_t i = 0; i < gpu->leaves.count; i++) {
		struct str plain = text_of(tree, gpu->leaves.at[i].plain);
		struct str value = text_of(tree, gpu->leaves.at[i].value);
		const struct smi_field *field;
		int ret;

		if (str_is(plain, path[0])) {
			ret = flush_process(tree, &process, device, time_ns, err);
			if (ret < 0)
				return ret;
			process = (struct process_leaves){ 0 };
			process.open = str_to_i64(value, &process.pid) && process.pid >= 0;
			continue;
		}
		if (!process.open)
			continue;
		if (str_is(plain, path[1]))
			process.type = value;
		if (str_is(plain, path[2]))
			process.name = value;
		field = str_starts(plain, tree->form == SMI_XML ? "processes / " : "Processes / ")
				? smi_field_find(tree->form, plain)
				: NULL;
		if (field)
			(void)smi_log_put(tree->log, &process.values, field, value,
					  (struct str){ 0 });
	}
	return flush_process(tree, &process, device, time_ns, err);
}

static bool of_process(const struct smi_field *field)
{
	return field->metric == METRIC_proc_mem_used_bytes ||
	       field->metric == METRIC_proc_protected_bytes;
}

static int send_gpu(struct smi_tree *tree, size_t number, int64_t time_ns, struct err *err)
{
	const struct smi_tree_gpu *gpu = &tree->gpus.at[number];
	uint32_t device = device_of(tree, number);
	struct smi_values values = { 0 };
	bool any = false;

	for (size_t i = 0; i < gpu->leaves.count; i++) {
		const struct smi_leaf *leaf = &gpu->leaves.at[i];
		struct str value = text_of(tree, leaf->value);
		const struct smi_field *field =
			smi_field_find(tree->form, text_of(tree, leaf->plain));

		smi_log_env(tree->log, device, text_of(tree, leaf->path), value);
		if (!field || leaf->path != leaf->plain || of_process(field)) {
			const char *why = field && !of_process(field) ? NULL : smi_missing(value);

			if (why && value.len)
				smi_log_absent(tree->log, why);
			continue;
		}
		any |= smi_log_put(tree->log, &values, field, value, (struct str){ 0 });
	}
	tree->log->rows++;
	smi_values_end(&values);
	if (any) {
		int ret = smi_log_sample(tree->log, device, SESSION_NONE, time_ns, &values.sample,
					 err);
		if (ret < 0)
			return ret;
	}
	return send_processes(tree, gpu, device, time_ns, err);
}

int smi_tree_flush(struct smi_tree *tree, struct err *err)
{
	int64_t time_ns;
	int ret = 0;

	if (!tree->gpus.count && !tree->machine.count)
		return 0;
	smi_log_new_round(tree->log);
	time_ns = tree->has_stamp ? smi_log_stamp(tree->log, tree->stamp_ns)
				  : smi_log_round_time(tree->log);
	for (size_t i = 0; i < tree->machine.count; i++)
		smi_log_env(tree->log, SESSION_NONE, text_of(tree, tree->machine.at[i].path),
			    text_of(tree, tree->machine.at[i].value));
	if (tree->attached > 0 && (size_t)tree->attached > tree->gpus.count)
		session_note(tree->log->session, tree->log->source, NOTE_SOME_GPUS, tree->log->what,
			     tree->gpus.count, (long long)tree->attached);
	for (size_t i = 0; i < tree->gpus.count && ret == 0; i++)
		ret = send_gpu(tree, i, time_ns, err);
	if (tree->too_many)
		session_note(tree->log->session, tree->log->source, NOTE_FIELDS_LOST,
			     tree->log->what, (long long)tree->too_many);
	tree->too_many = 0;
	clear(tree);
	return ret;
}
