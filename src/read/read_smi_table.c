/*
 * nvidia-smi without arguments: boxes of '|', two or three lines a GPU, then a
 * list of processes. Widths and captions changed over the years; what the
 * cells hold did not.
 *
 *	|   0  NVIDIA H200        On  |   00000000:00:06.0 Off |            0 |
 *	| N/A   36C    P0  113W / 700W |    0MiB / 143771MiB |   0%   Default |
 *	|                             |                        |     Disabled |
 */
#include "read/lines.h"
#include "read/reader.h"
#include "read/smi_log.h"

enum { CELLS_MAX = 8, WORDS_MAX = 24, MIG_IDS = 4 };

enum table_part { PART_BOARDS, PART_MIG, PART_PROCESSES };

/* Which device an instance of a GPU is, for its processes. */
struct table_instance {
	int64_t gpu, gi, ci;
	uint32_t device;
};

struct table {
	struct smi_log log;
	enum table_part part;
	bool has_instances; /* processes have GI and CI columns */
	bool wddm;          /* third word of a GPU is its driver model */
	int board_line;     /* of the GPU at hand: 1 name, 2 readings, 3 row of MIG; 0 none */
	bool stamped;
	int64_t stamp_ns;
	uint32_t device;
	struct smi_values values;
	int64_t time_ns;
	int mig_rows;
	VEC(struct table_instance) instances;
};

static int table_probe(const char *at, size_t len)
{
	struct buf memory = { 0 };
	struct str text = lines_probe_text(at, len, &memory);
	int sure = str_find(text, "| NVIDIA-SMI ") ? 92 : 0;

	buf_done(&memory);
	return sure;
}

static size_t split_words(struct str text, struct str *ret_words)
{
	size_t count = 0;

	for (text = str_trim(text); text.len && count < WORDS_MAX; text = str_trim(text))
		ret_words[count++] = str_cut(&text, ' ');
	return count;
}

/* "| a | b |" into its cells; 0 if it is no such line. */
static size_t split_cells(struct str line, struct str *ret_cells)
{
	size_t count = 0;

	line = str_trim(line);
	if (line.len < 3 || line.at[0] != '|' || line.at[line.len - 1] != '|')
		return 0;
	line = (struct str){ line.at + 1, line.len - 2 };
	while (line.at && count < CELLS_MAX)
		ret_cells[count++] = str_trim(str_cut(&line, '|'));
	return count;
}

static bool put_text(struct table *table, enum smi_form form, const char *field, struct str text)
{
	return smi_log_put(&table->log, &table->values, smi_field_find(form, str_of(field)), text,
			   (struct str){ 0 });
}

static int flush_board(struct table *table, struct err *err)
{
	struct smi_values values = table->values;
	struct device *device;
	double total;
	bool open = table->board_line > 0;

	table->board_line = 0;
	table->values = (struct smi_values){ 0 };
	if (!open)
		return 0;
	smi_values_end(&values);
	device = &table->log.session->devices.at[table->device];
	if (sample_get(&values.sample, METRIC_mem_total_bytes, &total) && !device->memory_bytes &&
	    total < 1e18)
		device->memory_bytes = (int64_t)total;
	return smi_log_sample(&table->log, table->device, SESSION_NONE, table->time_ns,
			      &values.sample, err);
}

/* "NVIDIA-SMI 580.1   Driver Version: 580.1   CUDA Version: 13.0" */
static bool take_versions(struct table *table, struct str cell)
{
	static const char *const labels[] = { "NVIDIA-SMI", "Driver Version:", "CUDA Version:",
					      "KMD Version:", "CUDA UMD Version:" };

	if (!str_starts(cell, "NVIDIA-SMI"))
		return false;
	for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++) {
		const char *at = str_find(cell, labels[i]);
		struct str rest, word, key = str_of(labels[i]);

		if (!at)
			continue;
		at += key.len;
		rest = str_trim((struct str){ at, (size_t)(cell.at + cell.len - at) });
		word = str_cut(&rest, ' ');
		key.len -= i > 0;
		if (word.len)
			smi_log_env(&table->log, SESSION_NONE, key, word);
	}
	return true;
}

/* A new box begins: a moment of its own. */
static int begin_moment(struct table *table, struct err *err)
{
	int ret = flush_board(table, err);

	smi_log_new_round(&table->log);
	table->part = PART_BOARDS;
	table->instances.count = 0;
	table->wddm = false;
	table->time_ns = table->stamped ? smi_log_stamp(&table->log, table->stamp_ns)
					: smi_log_round_time(&table->log);
	table->stamped = false;
	return ret;
}

/* Line 1: index, name, mode; bus and display; errors. */
static bool take_name(struct table *table, const struct str *cell)
{
	struct smi_gpu gpu = { 0 };
	struct str word[WORDS_MAX], name = cell[0], rest;
	size_t count = split_words(cell[0], word);
	char bus[32];

	if (count < 3 || !str_to_i64(word[0], &gpu.index) || gpu.index < 0)
		return false;
	name.at = word[1].at;
	name.len = (size_t)(word[count - 1].at - name.at);
	gpu.name = str_trim(name);
	table->values = (struct smi_values){ 0 };
	rest = cell[1];
	gpu.bus = str_cut(&rest, ' ');
	if (!smi_bus(gpu.bus, bus))
		return false;
	table->device = smi_log_device(&table->log, &gpu);
	table->log.rows++;
	table->board_line = 1;
	smi_log_env(&table->log, table->device, STR("Name"), gpu.name);
	smi_log_env(&table->log, table->device,
		    table->wddm ? STR("TCC/WDDM") : STR("Persistence-M"), word[count - 1]);
	smi_log_env(&table->log, table->device, STR("Bus-Id"), gpu.bus);
	(void)put_text(table, SMI_QUERY, "ecc.errors.uncorrected.volatile.total", cell[2]);
	if (smi_missing(cell[2]))
		smi_log_env(&table->log, table->device, STR("Volatile Uncorr. ECC"), cell[2]);
	return true;
}

/* Two values with a slash between. */
static void put_pair(struct table *table, struct str text, const char *first, const char *second)
{
	struct str used = str_cut(&text, '/');

	(void)put_text(table, SMI_QUERY, first, str_trim(used));
	(void)put_text(table, SMI_QUERY, second, str_trim(text));
}

/* Line 2: fan, temperature, state, power; memory; utilisation and mode. */
static void take_readings(struct table *table, const struct str *cell)
{
	static const char *const fields[] = { "fan.speed", "temperature.gpu", "pstate" };
	struct str rest = cell[0], util = cell[2];
	size_t at = 0;

	for (; at < 3 && rest.len; at++) {
		struct str word = str_cut(&rest, ' ');

		rest = str_trim(rest);
		if (!put_text(table, SMI_QUERY, fields[at], word) && smi_missing(word))
			smi_log_env(&table->log, table->device, str_of(fields[at]), word);
	}
	put_pair(table, rest, "power.draw", "enforced.power.limit");
	put_pair(table, cell[1], "memory.used", "memory.total");
	(void)put_text(table, SMI_QUERY, "utilization.gpu", str_cut(&util, ' '));
	smi_log_env(&table->log, table->device, STR("Compute M."), str_trim(util));
	table->board_line = 2;
}

/* GPU, GI, CI, number; memory; SMs and errors. A row that says less is kept as
 * the text that it is. */
static void take_mig_row(struct table *table, const struct str *cell, size_t count, struct str line)
{
	struct str word[WORDS_MAX];
	struct smi_gpu gpu = { 0 };
	struct table_instance instance;
	struct buf key = { 0 };
	int64_t sms;

	buf_printf(&key, "MIG devices / row[%d]", ++table->mig_rows);
	smi_log_env(&table->log, SESSION_NONE, (struct str){ key.at, key.len }, line);
	buf_done(&key);
	if (count < 3 || split_words(cell[0], word) != MIG_IDS ||
	    !str_to_i64(word[0], &gpu.index) || gpu.index < 0 ||
	    !str_to_i64(word[1], &instance.gi) || !str_to_i64(word[2], &instance.ci) ||
	    !smi_log_part(&table->log, &gpu, (const char *const[]){ "MIG", NULL },
			  (const struct str[]){ word[3], { 0 } }, &table->device))
		return;
	instance.gpu = gpu.index;
	instance.device = table->device;
	*VEC_ADD(&table->instances) = instance;
	smi_log_env(&table->log, table->device, STR("GI ID"), word[1]);
	smi_log_env(&table->log, table->device, STR("CI ID"), word[2]);
	table->values = (struct smi_values){ 0 };
	put_pair(table, cell[1], "memory.used", "memory.total");
	if (split_words(cell[2], word) >= 2) {
		struct device *device = &table->log.session->devices.at[table->device];

		if (str_to_i64(word[0], &sms) && sms > 0 && sms < 100000 && !device->sm_count)
			device->sm_count = sms;
		(void)put_text(table, SMI_QUERY, "ecc.errors.uncorrected.volatile.total", word[1]);
	}
	table->log.rows++;
	table->board_line = 3;
}

/* The second line of an instance. */
static void take_mig_bar1(struct table *table, struct str cell)
{
	struct str used = str_cut(&cell, '/');

	(void)put_text(table, SMI_Q, "BAR1 Memory Usage / Used", str_trim(used));
	(void)put_text(table, SMI_Q, "BAR1 Memory Usage / Total", str_trim(cell));
}

/* The device of a process: of the instance that was told before, or its GPU. */
static uint32_t process_device(struct table *table, const struct smi_gpu *gpu, struct str gi,
			       struct str ci)
{
	int64_t gi_id, ci_id;
	uint32_t device;

	if (!table->has_instances || !str_to_i64(gi, &gi_id) || !str_to_i64(ci, &ci_id))
		return smi_log_device(&table->log, gpu);
	for (size_t i = 0; i < table->instances.count; i++) {
		const struct table_instance *at = &table->instances.at[i];

		if (at->gpu == gpu->index && at->gi == gi_id && at->ci == ci_id)
			return at->device;
	}
	if (smi_log_part(&table->log, gpu, (const char *const[]){ "GI", "CI" },
			 (const struct str[]){ gi, ci }, &device))
		return device;
	return smi_log_device(&table->log, gpu);
}

static int take_process(struct table *table, struct str cell, struct err *err)
{
	struct str word[WORDS_MAX], rest = cell, memory = { 0 }, name;
	size_t skip = table->has_instances ? 3 : 1;
	struct smi_gpu gpu = { 0 };
	struct smi_values values = { 0 };
	size_t count = split_words(cell, word);
	int64_t pid;
	uint32_t process;

	if (count < skip + 3 || !str_to_i64(word[0], &gpu.index) || gpu.index < 0 ||
	    !str_to_i64(word[skip], &pid) || pid < 0)
		return 1;
	for (size_t i = 0; i < skip + 2; i++) {
		rest = str_trim(rest);
		(void)str_cut(&rest, ' ');
	}
	name = str_trim(rest);
	for (size_t i = name.len; i && !memory.len; i--) {
		if (name.at[i - 1] == ' ')
			memory = (struct str){ name.at + i, name.len - i };
	}
	name.len -= memory.len;
	name = str_trim(name);
	table->log.rows++;
	(void)smi_log_put(&table->log, &values, smi_field_find(SMI_APPS, STR("used_gpu_memory")),
			  memory, (struct str){ 0 });
	smi_values_end(&values);
	process = smi_log_process(&table->log, pid, word[skip + 1], name);
	return smi_log_sample(&table->log, process_device(table, &gpu, word[1], word[2]), process,
			      table->time_ns, &values.sample, err);
}

static bool is_caption(struct str cell)
{
	static const char *const starts[] = { "GPU ",  "Fan ",  "ID ",       "No running",
					      "Usage", "CI",    "Processes", "MIG devices",
					      "|",     "Shared" };

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (str_starts(cell, starts[i]))
			return true;
	}
	return !cell.len || cell.at[0] == '=' || cell.at[0] == '-';
}

/* Captions say what follows. true: the line was one. */
static bool take_caption(struct table *table, struct str line, struct str cell)
{
	if (str_starts(cell, "Processes"))
		table->part = PART_PROCESSES;
	if (str_starts(cell, "MIG devices"))
		table->part = PART_MIG;
	if (table->part == PART_PROCESSES && str_starts(cell, "GPU"))
		table->has_instances = str_find(line, " GI ") != NULL;
	if (table->part == PART_BOARDS && str_starts(cell, "GPU"))
		table->wddm = str_find(line, "WDDM") || str_find(line, "Driver-Model");
	if (str_starts(cell, "No running"))
		smi_log_env(&table->log, SESSION_NONE, STR("Processes"), cell);
	return is_caption(cell);
}

static int take_line(struct table *table, struct str line, struct err *err)
{
	struct str cell[CELLS_MAX];
	size_t count = split_cells(line, cell);
	int ret;

	if (!count) {
		if (smi_stamp(line, &table->stamp_ns))
			table->stamped = true;
		else if (line.at[0] != '+' && line.at[0] != '|')
			smi_log_stray(&table->log, line);
		return 0;
	}
	if (take_versions(table, cell[0]))
		return begin_moment(table, err);
	if (count == 3 && table->board_line == 2 && !cell[0].len) {
		if (cell[2].len)
			smi_log_env(&table->log, table->device, STR("MIG M."), cell[2]);
		return flush_board(table, err);
	}
	if (count >= 3 && table->board_line == 3 && !cell[0].len) {
		take_mig_bar1(table, cell[1]);
		return flush_board(table, err);
	}
	if (count == 3 && table->board_line == 1 && table->part == PART_BOARDS) {
		take_readings(table, cell);
		return 0;
	}
	if (table->part == PART_BOARDS && count == 3 && cell[0].len && cell[0].at[0] >= '0' &&
	    cell[0].at[0] <= '9') {
		ret = flush_board(table, err);
		if (ret == 0 && !take_name(table, cell))
			smi_log_stray(&table->log, line);
		return ret;
	}
	ret = flush_board(table, err);
	if (ret < 0 || take_caption(table, line, cell[0]))
		return ret;
	if (table->part == PART_MIG) {
		take_mig_row(table, cell, count, line);
		return 0;
	}
	ret = table->part == PART_PROCESSES ? take_process(table, cell[0], err) : 1;
	if (ret == 1)
		smi_log_stray(&table->log, line);
	return ret < 0 ? ret : 0;
}

static int table_read(struct input *input, struct sink *sink, uint32_t source, struct err *err)
{
	struct table table = { 0 };
	struct lines lines = { .input = input };
	struct str line;
	int ret;

	smi_log_begin(&table.log, "table", sink, source);
	while ((ret = lines_next(&lines, &line, err)) > 0) {
		line = str_trim(line);
		if (!line.len)
			continue;
		if (lines.open_end && line.at[0] == '|' && line.at[line.len - 1] != '|') {
			smi_log_truncated(&table.log, (int64_t)lines.bytes);
			continue;
		}
		ret = take_line(&table, line, err);
		if (ret < 0)
			break;
	}
	lines_done(&lines);
	if (ret == 0)
		ret = flush_board(&table, err);
	if (ret == 0)
		ret = smi_log_end(&table.log, input, err);
	smi_log_done(&table.log);
	VEC_DONE(&table.instances);
	return ret;
}

const struct reader reader_smi_table = {
	.name = "smi_table",
	.title = "nvidia-smi, the table",
	.probe = table_probe,
	.read = table_read,
};
