/*
 * nvidia-smi --query-gpu=... and --query-compute-apps=... with --format=csv.
 *
 * A header line names fields and, in brackets, units; cells may carry units
 * too. Nothing is quoted, so a comma in a process name shifts cells: columns
 * before it are counted from the left, those behind it from the right.
 * Columns that are no metric become environment, once for each change.
 */
#include <strings.h>

#include "base/hash.h"
#include "base/mem.h"
#include "model/note.h"
#include "read/lines.h"
#include "read/reader.h"
#include "read/smi_log.h"

enum { QUERY_COLUMNS_MAX = 512 };

enum query_kind {
	QUERY_ENV,
	QUERY_METRIC,
	QUERY_STAMP,
	QUERY_INDEX,
	QUERY_COUNT,
	QUERY_NAME,
	QUERY_UUID,
	QUERY_BUS,
	QUERY_CC,
	QUERY_PID,
	QUERY_PROCESS,
	QUERY_KIND_COUNT,
};

struct query_column {
	enum query_kind kind;
	const struct smi_field *field;
	uint32_t name, unit; /* strings */
	int64_t values;
};

struct query {
	struct smi_log log;
	struct query_column column[QUERY_COLUMNS_MAX];
	size_t count;
	bool of_processes;
	struct str cell[QUERY_COLUMNS_MAX];
	struct str by_kind[QUERY_KIND_COUNT]; /* cells of this row */
};

static const struct {
	const char *name;
	enum query_kind kind;
} identities[] = {
	{ "timestamp", QUERY_STAMP }, { "index", QUERY_INDEX },
	{ "count", QUERY_COUNT },     { "name", QUERY_NAME },
	{ "gpu_name", QUERY_NAME },   { "uuid", QUERY_UUID },
	{ "gpu_uuid", QUERY_UUID },   { "pci.bus_id", QUERY_BUS },
	{ "gpu_bus_id", QUERY_BUS },  { "compute_cap", QUERY_CC },
	{ "pid", QUERY_PID },         { "process_name", QUERY_PROCESS },
};

static bool is_identity(struct str name, enum query_kind *ret_kind)
{
	for (size_t i = 0; i < sizeof(identities) / sizeof(*identities); i++) {
		if (strlen(identities[i].name) == name.len &&
		    !strncasecmp(identities[i].name, name.at, name.len)) {
			*ret_kind = identities[i].kind;
			return true;
		}
	}
	return false;
}

/* "memory.used [MiB]" into name and unit; false if it can't be a field. */
static bool split_title(struct str cell, struct str *ret_name, struct str *ret_unit)
{
	struct str rest = str_trim(cell);

	*ret_name = str_trim(str_cut(&rest, '['));
	*ret_unit = str_trim(rest);
	if (ret_unit->len && ret_unit->at[ret_unit->len - 1] == ']')
		ret_unit->len--;
	if (!ret_name->len || (ret_name->at[0] | 32) < 'a' || (ret_name->at[0] | 32) > 'z')
		return false;
	for (size_t i = 0; i < ret_name->len; i++) {
		char c = ret_name->at[i];

		if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') && c != '.' &&
		    c != '_')
			return false;
	}
	return true;
}

/* How many fields of nvidia-smi the line names; 0 if it is no header. */
static int header_fields(struct str line)
{
	struct str rest = str_trim(line);
	int known = 0, all = 0;

	while (rest.at && all < QUERY_COLUMNS_MAX) {
		struct str name, unit;
		enum query_kind kind;

		if (!split_title(str_cut(&rest, ','), &name, &unit))
			return 0;
		all++;
		known += smi_field_find(SMI_QUERY, name) || smi_field_find(SMI_APPS, name) ||
			 is_identity(name, &kind);
	}
	return known;
}

/* A file without a header is claimed too, to say what it lacks. */
static bool looks_headless(struct str line)
{
	struct str first = str_cut(&line, ',');
	int64_t ns;

	return line.len &&
	       (smi_stamp(first, &ns) || str_starts(first, "GPU-") || str_find(line, ", GPU-"));
}

static int query_probe(const char *at, size_t len)
{
	struct buf memory = { 0 };
	struct str text = lines_probe_text(at, len, &memory);
	int sure = 0;

	for (int i = 0; i < 50 && text.len && sure < 60; i++) {
		struct str line = str_trim(str_cut(&text, '\n'));
		int known = header_fields(line);
		bool unit = str_find(line, " [MiB]") || str_find(line, " [%]") ||
			    str_find(line, " [W]") || str_find(line, " [MHz]") ||
			    str_find(line, " [us]");

		if (known >= 2 || (known == 1 && (unit || memchr(line.at, '.', line.len))))
			sure = 90;
		else if (!i && looks_headless(line))
			sure = 10;
	}
	buf_done(&memory);
	return sure;
}

static void end_columns(struct query *query)
{
	for (size_t i = 0; i < query->count; i++) {
		if (query->column[i].kind == QUERY_METRIC && !query->column[i].values)
			session_missing_column(
				query->log.session, query->log.source,
				session_text(query->log.session, query->column[i].name));
	}
}

static void take_header(struct query *query, struct str line)
{
	struct session *session = query->log.session;
	struct str rest = str_trim(line);

	end_columns(query);
	query->count = 0;
	query->of_processes = false;
	while (rest.at && query->count < QUERY_COLUMNS_MAX) {
		struct query_column *column = &query->column[query->count++];
		struct str name, unit;

		(void)split_title(str_cut(&rest, ','), &name, &unit);
		*column = (struct query_column){ 0 };
		column->name = session_string(session, name.at, name.len);
		column->unit = unit.len ? session_string(session, unit.at, unit.len) : 0;
		if (!is_identity(name, &column->kind))
			column->kind = QUERY_ENV;
		query->of_processes |= column->kind == QUERY_PID;
	}
	for (size_t i = 0; i < query->count; i++) {
		struct query_column *column = &query->column[i];
		struct str name = str_of(session_text(session, column->name));

		if (column->kind != QUERY_ENV)
			continue;
		column->field = smi_field_find(query->of_processes ? SMI_APPS : SMI_QUERY, name);
		if (column->field)
			column->kind = QUERY_METRIC;
	}
}

/* Cells of the line; false if there are not as many as columns. */
static bool split_row(struct query *query, struct str line)
{
	struct str rest = str_trim(line);
	size_t commas = 0, extra, flexible = query->count;

	for (size_t i = 0; i < rest.len; i++)
		commas += rest.at[i] == ',';
	if (commas + 1 < query->count)
		return false;
	extra = commas + 1 - query->count;
	for (size_t i = 0; i < query->count; i++) {
		if (query->column[i].kind == QUERY_PROCESS)
			flexible = i;
	}
	if (extra && flexible == query->count)
		return false;
	for (size_t i = 0; i < query->count; i++) {
		struct str cell = str_cut(&rest, ',');

		for (size_t more = i == flexible ? extra : 0; more; more--) {
			struct str next = str_cut(&rest, ',');

			cell.len = (size_t)(next.at + next.len - cell.at);
		}
		query->cell[i] = str_trim(cell);
	}
	return true;
}

/* A line of another program can have as many commas. */
static bool check_row(struct query *query)
{
	int good = 0;

	memset(query->by_kind, 0, sizeof(query->by_kind));
	for (size_t i = 0; i < query->count; i++) {
		const struct query_column *column = &query->column[i];
		struct str cell = query->cell[i];
		char bus[32];
		double number;
		int64_t whole;

		query->by_kind[column->kind] = cell;
		if (smi_missing(cell)) {
			good += cell.len > 0;
			continue;
		}
		if ((column->kind == QUERY_STAMP && !smi_stamp(cell, &whole)) ||
		    ((column->kind == QUERY_INDEX || column->kind == QUERY_PID) &&
		     (!str_to_i64(cell, &whole) || whole < 0)) ||
		    (column->kind == QUERY_BUS && !smi_bus(cell, bus)))
			return false;
		good += column->kind != QUERY_ENV && column->kind != QUERY_METRIC;
		good += column->field &&
			(column->field->reason ||
			 smi_number(column->field, cell,
				    str_of(session_text(query->log.session, column->unit)),
				    &number));
	}
	return good > 0;
}

static uint32_t device_of(struct query *query)
{
	struct smi_gpu gpu = { .index = -1,
			       .uuid = query->by_kind[QUERY_UUID],
			       .name = query->by_kind[QUERY_NAME],
			       .bus = query->by_kind[QUERY_BUS] };
	struct str minor = query->by_kind[QUERY_CC], major = str_cut(&minor, '.');

	/* Of one card in all the index is 0. */
	if (!str_to_i64(query->by_kind[QUERY_INDEX], &gpu.index) &&
	    str_is(query->by_kind[QUERY_COUNT], "1"))
		gpu.index = 0;
	if (!str_to_i64(major, &gpu.cc_major) || !str_to_i64(minor, &gpu.cc_minor))
		gpu.cc_major = gpu.cc_minor = 0;
	return smi_log_device(&query->log, &gpu);
}

static void take_cells(struct query *query, uint32_t device, struct smi_values *values)
{
	struct session *session = query->log.session;

	for (size_t i = 0; i < query->count; i++) {
		struct query_column *column = &query->column[i];
		struct str name = str_of(session_text(session, column->name));
		struct str cell = query->cell[i];
		double total;
		bool put = false;

		if (column->kind == QUERY_METRIC)
			put = smi_log_put(&query->log, values, column->field, cell,
					  str_of(session_text(session, column->unit)));
		column->values += put;
		if (put && column->field->metric == METRIC_mem_total_bytes &&
		    sample_get(&values->sample, METRIC_mem_total_bytes, &total) && total < 1e18 &&
		    !session->devices.at[device].memory_bytes)
			session->devices.at[device].memory_bytes = (int64_t)total;
		if (column->kind == QUERY_ENV && smi_missing(cell) && cell.len)
			smi_log_absent(&query->log, smi_missing(cell));
		/* A value that another field gave better is kept in words. */
		if (column->kind == QUERY_ENV || column->kind == QUERY_CC ||
		    column->kind == QUERY_COUNT ||
		    (column->kind == QUERY_METRIC && !query->of_processes &&
		     (!put || column->field->rank || column->field->reason)))
			smi_log_env(&query->log, device, name, cell);
	}
	smi_values_end(values);
}

static int take_row(struct query *query, struct err *err)
{
	struct smi_values values = { 0 };
	uint32_t device = device_of(query), process = SESSION_NONE;
	int64_t pid = -1, stamp_ns, time_ns;

	if (query->of_processes && !str_to_i64(query->by_kind[QUERY_PID], &pid)) {
		smi_log_absent(&query->log, smi_missing(query->by_kind[QUERY_PID]));
		session_loss(query->log.session, query->log.source, LOSS_dropped, 1);
		return 0;
	}
	smi_log_turn(&query->log, hash_u64((uint64_t)pid, device));
	time_ns = smi_stamp(query->by_kind[QUERY_STAMP], &stamp_ns)
			  ? smi_log_stamp(&query->log, stamp_ns)
			  : smi_log_round_time(&query->log);
	take_cells(query, device, &values);
	if (query->of_processes)
		process = smi_log_process(&query->log, pid, (struct str){ 0 },
					  query->by_kind[QUERY_PROCESS]);
	return smi_log_sample(&query->log, device, process, time_ns, &values.sample, err);
}

/* A number at the very end of the file may lack its last digits, which makes it
 * another number; one with its unit is whole. False: so the row has no owner. */
static bool drop_cut_number(struct query *query, struct str line)
{
	const struct query_column *last = &query->column[query->count - 1];
	char end = line.at[line.len - 1];

	if (end < '0' || end > '9')
		return true;
	if (last->kind == QUERY_INDEX || last->kind == QUERY_PID)
		return false;
	if (last->kind != QUERY_METRIC && last->kind != QUERY_ENV && last->kind != QUERY_CC)
		return true;
	query->cell[query->count - 1] = query->by_kind[last->kind] = (struct str){ 0 };
	session_loss(query->log.session, query->log.source, LOSS_malformed, 1);
	query->log.session->sources.at[query->log.source].truncated = true;
	return true;
}

static int query_lines(struct query *query, struct input *input, struct err *err)
{
	struct lines lines = { .input = input };
	struct str line;
	int ret;

	while ((ret = lines_next(&lines, &line, err)) > 0) {
		if (!str_trim(line).len)
			continue;
		if (header_fields(line) >= 1 && !lines.shortened) {
			take_header(query, line);
			continue;
		}
		if (lines.shortened || !query->count || !split_row(query, line) ||
		    !check_row(query)) {
			if (lines.open_end && query->log.rows)
				smi_log_truncated(&query->log, (int64_t)lines.bytes);
			else
				smi_log_stray(&query->log, line);
			continue;
		}
		if (lines.open_end && !drop_cut_number(query, line)) {
			smi_log_truncated(&query->log, (int64_t)lines.bytes);
			continue;
		}
		query->log.rows++;
		ret = take_row(query, err);
		if (ret < 0)
			break;
	}
	lines_done(&lines);
	return ret < 0 ? ret : 0;
}

static int query_read(struct input *input, struct sink *sink, uint32_t source, struct err *err)
{
	struct query *query = mem_zero(sizeof(*query));
	int ret;

	smi_log_begin(&query->log, "--query", sink, source);
	ret = query_lines(query, input, err);
	/* A header alone is an answer: nothing ran. */
	if (ret == 0 && query->count && !query->log.rows && query->of_processes) {
		session_note(sink->session, source, NOTE_NO_PROCESS);
		query->log.rows = 1;
	}
	if (ret == 0 && !query->count)
		query->log.hint = "without its header line the columns are not known";
	if (ret == 0)
		ret = smi_log_end(&query->log, input, err);
	if (ret == 0)
		end_columns(query);
	smi_log_done(&query->log);
	free(query);
	return ret;
}

const struct reader reader_smi_query = {
	.name = "smi_query",
	.title = "nvidia-smi --query-gpu or --query-compute-apps, CSV",
	.probe = query_probe,
	.read = query_read,
};
