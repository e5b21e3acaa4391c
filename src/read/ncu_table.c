/*
 * The tables of `ncu --csv`: the raw page (a column a metric, a row of units,
 * a row a launch) and the section pages (a row a metric or a rule). Which one
 * it is, and where things stand, is told by the header texts alone: columns
 * come and go with versions. A file may hold several tables (runs written one
 * after the other) and ncu's own log lines anywhere between records.
 */
#include "model/note.h"
#include "read/ncu.h"

#include <string.h>

enum role {
	ROLE_METRIC, /* of the raw page; also ranges of NVTX, which are text */
	ROLE_ID,
	ROLE_PID,
	ROLE_PROCESS,
	ROLE_HOST,
	ROLE_KERNEL,
	ROLE_CONTEXT,
	ROLE_STREAM,
	ROLE_BLOCK,
	ROLE_GRID,
	ROLE_DEVICE,
	ROLE_CC,
	ROLE_SECTION,
	ROLE_METRIC_NAME,
	ROLE_METRIC_UNIT,
	ROLE_METRIC_VALUE,
	ROLE_RULE_NAME,
	ROLE_RULE_TYPE,
	ROLE_RULE_TEXT,
	ROLE_SPEEDUP_TYPE,
	ROLE_SPEEDUP,
	ROLE_COUNT
};

/* Headers as ncu 2019.5 to 2025.3 write them. "Average" is the value column of
 * a page with --print-summary. */
static const struct heading {
	const char *text;
	enum role role;
} HEADINGS[] = {
	{ "ID", ROLE_ID },
	{ "Process ID", ROLE_PID },
	{ "Process Name", ROLE_PROCESS },
	{ "Host Name", ROLE_HOST },
	{ "Kernel Name", ROLE_KERNEL },
	{ "Context", ROLE_CONTEXT },
	{ "Stream", ROLE_STREAM },
	{ "Block Size", ROLE_BLOCK },
	{ "Grid Size", ROLE_GRID },
	{ "Device", ROLE_DEVICE },
	{ "CC", ROLE_CC },
	{ "Section Name", ROLE_SECTION },
	{ "Metric Name", ROLE_METRIC_NAME },
	{ "Metric Unit", ROLE_METRIC_UNIT },
	{ "Metric Value", ROLE_METRIC_VALUE },
	{ "Average", ROLE_METRIC_VALUE },
	{ "Rule Name", ROLE_RULE_NAME },
	{ "Rule Type", ROLE_RULE_TYPE },
	{ "Rule Description", ROLE_RULE_TEXT },
	{ "Estimated Speedup Type", ROLE_SPEEDUP_TYPE },
	{ "Estimated Speedup", ROLE_SPEEDUP },
};

struct column {
	enum role role;
	uint32_t name, unit;
};

struct table {
	struct ncu *ncu;
	VEC(struct column) columns;
	size_t at[ROLE_COUNT]; /* 1 + column; 0: the table has none */
	bool sections;         /* a row a metric */
	bool units_due;        /* the next record may be the row of units */
};

bool ncu_table_header(struct str line)
{
	return (str_starts(line, "\"ID\",") || str_starts(line, "ID,")) &&
	       str_find(line, "Kernel Name");
}

static struct str cell(const struct table *table, enum role role)
{
	size_t at = table->at[role];

	if (!at || at > table->ncu->csv.fields.count)
		return (struct str){ 0 };
	return str_trim(table->ncu->csv.fields.at[at - 1]);
}

static uint32_t cell_string(const struct table *table, enum role role)
{
	struct str text = cell(table, role);

	return text.len ? session_string(table->ncu->sink->session, text.at, text.len) : 0;
}

static int64_t cell_number(const struct table *table, enum role role)
{
	int64_t value;

	return str_to_i64(cell(table, role), &value) && value >= 0 ? value : -1;
}

static void read_header(struct table *table)
{
	struct ncu *ncu = table->ncu;

	table->columns.count = 0;
	memset(table->at, 0, sizeof(table->at));
	for (size_t i = 0; i < ncu->csv.fields.count; i++) {
		struct str text = str_trim(ncu->csv.fields.at[i]);
		struct column *column = VEC_ADD(&table->columns);

		column->role = ROLE_METRIC;
		for (size_t k = 0; k < sizeof(HEADINGS) / sizeof(HEADINGS[0]); k++) {
			if (str_is(text, HEADINGS[k].text) && !table->at[HEADINGS[k].role])
				column->role = HEADINGS[k].role;
		}
		if (column->role == ROLE_METRIC)
			column->name = session_string(ncu->sink->session, text.at, text.len);
		else
			table->at[column->role] = i + 1;
	}
	table->sections = table->at[ROLE_METRIC_NAME] && table->at[ROLE_METRIC_VALUE];
	table->units_due = !table->sections;
}

/* The raw page's second row: units, nothing in the column of the ID. */
static bool read_units(struct table *table)
{
	struct ncu *ncu = table->ncu;

	if (cell(table, ROLE_ID).len || cell(table, ROLE_KERNEL).len)
		return false;
	for (size_t i = 0; i < table->columns.count && i < ncu->csv.fields.count; i++) {
		struct str unit = str_trim(ncu->csv.fields.at[i]);

		table->columns.at[i].unit = session_string(ncu->sink->session, unit.at, unit.len);
	}
	return true;
}

static void begin_launch(struct table *table)
{
	struct ncu_launch *launch = &table->ncu->launch;
	struct str cc = cell(table, ROLE_CC), major = str_cut(&cc, '.');
	int64_t number;

	ncu_launch_begin(table->ncu);
	launch->id = cell_number(table, ROLE_ID);
	launch->pid = cell_number(table, ROLE_PID);
	launch->process_name = cell_string(table, ROLE_PROCESS);
	launch->host = cell_string(table, ROLE_HOST);
	launch->kernel = cell_string(table, ROLE_KERNEL);
	launch->context = cell_number(table, ROLE_CONTEXT);
	launch->stream = cell_number(table, ROLE_STREAM);
	launch->device = cell_number(table, ROLE_DEVICE);
	if (str_to_i64(major, &number))
		launch->cc_major = number;
	if (cc.at && str_to_i64(cc, &number))
		launch->cc_minor = number;
	if (!ncu_dims(cell(table, ROLE_GRID), launch->grid))
		memset(launch->grid, 0, sizeof(launch->grid));
	if (!ncu_dims(cell(table, ROLE_BLOCK), launch->block))
		memset(launch->block, 0, sizeof(launch->block));
}

static int raw_row(struct table *table, struct err *err)
{
	struct ncu *ncu = table->ncu;

	begin_launch(table);
	for (size_t i = 0; i < table->columns.count && i < ncu->csv.fields.count; i++) {
		const struct column *column = &table->columns.at[i];

		if (column->role == ROLE_METRIC)
			ncu_launch_value(ncu, column->name, column->unit, ncu->csv.fields.at[i]);
	}
	return ncu_launch_end(ncu, err);
}

static int section_row(struct table *table, struct err *err)
{
	struct ncu *ncu = table->ncu;
	struct ncu_launch *launch = &ncu->launch;
	struct str metric = cell(table, ROLE_METRIC_NAME), rule = cell(table, ROLE_RULE_NAME);

	if (!launch->open || launch->id != cell_number(table, ROLE_ID) ||
	    launch->pid != cell_number(table, ROLE_PID)) {
		if (ncu_launch_end(ncu, err) < 0)
			return err->code;
		begin_launch(table);
		for (size_t i = 0; i < table->columns.count && i < ncu->csv.fields.count; i++) {
			/* Columns we have no name for: once a launch. */
			if (table->columns.at[i].role == ROLE_METRIC)
				ncu_launch_value(ncu, table->columns.at[i].name, 0,
						 ncu->csv.fields.at[i]);
		}
	}
	if (metric.len)
		ncu_launch_value(ncu, ncu_section_name(ncu, cell(table, ROLE_SECTION), metric),
				 cell_string(table, ROLE_METRIC_UNIT),
				 cell(table, ROLE_METRIC_VALUE));
	if (rule.len)
		ncu_launch_rule(ncu, rule, cell(table, ROLE_RULE_TYPE), cell(table, ROLE_RULE_TEXT),
				cell(table, ROLE_SPEEDUP_TYPE), cell(table, ROLE_SPEEDUP));
	return 0;
}

/* A number without its last digits is another number: the field in which a
 * record was cut goes. ncu quotes all fields; of a table that was saved again
 * without quotes, the last field of a short record at the end of the file may
 * be cut. What is left of a kernel's name still tells that it ran. */
static void drop_cut_field(struct table *table)
{
	struct csv *csv = &table->ncu->csv;
	bool bare = csv->lines->open_end && !table->sections &&
		    csv->fields.count < table->columns.count && csv->line.len &&
		    csv->line.at[csv->line.len - 1] != '"';

	if (!csv->damaged && !bare)
		return;
	if (csv->fields.count && csv->fields.count != table->at[ROLE_KERNEL])
		csv->fields.count--;
	if (csv->lines->open_end)
		table->ncu->sink->session->sources.at[table->ncu->source].truncated = true;
}

static int take_record(struct table *table, struct err *err)
{
	struct ncu *ncu = table->ncu;
	struct session *session = ncu->sink->session;

	drop_cut_field(table);
	if (table->units_due) {
		table->units_due = false;
		if (read_units(table))
			return 0;
	}
	session_loss(session, ncu->source, LOSS_seen, 1);
	if (cell_number(table, ROLE_ID) < 0 || !cell(table, ROLE_KERNEL).len) {
		session_loss(session, ncu->source, LOSS_dropped, 1);
		return 0;
	}
	/* Records of section pages end where their last filled column does. */
	if (ncu->csv.damaged || ncu->csv.fields.count > table->columns.count ||
	    (!table->sections && ncu->csv.fields.count < table->columns.count))
		session_loss(session, ncu->source, LOSS_malformed, 1);
	return table->sections ? section_row(table, err) : raw_row(table, err);
}

static int read_records(struct table *table, struct err *err)
{
	struct csv *csv = &table->ncu->csv;
	struct str line;
	int ret;

	while ((ret = csv_peek(csv, &line, err)) > 0) {
		bool header = ncu_table_header(line);

		if (ncu_log_line(table->ncu, line) || !str_trim(line).len ||
		    (!header && !table->columns.count)) {
			csv_pass(csv);
			continue;
		}
		if ((ret = csv_next(csv, err)) <= 0)
			break;
		if (csv->damaged && csv->lines->shortened)
			session_note(table->ncu->sink->session, table->ncu->source, NOTE_LONG_LINE,
				     (long long)csv->lines->number, LINES_MAX >> 20);
		if (header) {
			if (ncu_launch_end(table->ncu, err) < 0)
				return err->code;
			read_header(table);
		} else if (take_record(table, err) < 0) {
			return err->code;
		}
	}
	return ret < 0 ? ret : ncu_launch_end(table->ncu, err);
}

int ncu_read_table(struct ncu *ncu, struct err *err)
{
	struct table table = { .ncu = ncu };
	int ret = read_records(&table, err);

	VEC_DONE(&table.columns);
	return ret;
}
