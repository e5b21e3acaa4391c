/*
 * A query's rows, as a table, CSV or JSON.
 *
 * The table's columns are as wide as the first WIDTH_ROWS rows need; later rows
 * are printed as they come, so a query over millions of events takes no memory.
 */
#include <string.h>
#include <unistd.h>

#include "base/i18n.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/profile_file.h"
#include "present/present.h"
#include "store/store.h"

struct sql_args {
	bool csv;
	bool json;
	const char *profile;
	struct opt_list query;
};

static const struct opt sql_opts[] = {
	OPT_FLAG(struct sql_args, csv, 'c', "csv", N_("comma-separated, as RFC 4180 has it")),
	OPT_FLAG(struct sql_args, json, 'j', "json", N_("an array with an object for each row")),
	OPT_ARGUMENT(struct sql_args, profile, "PROFILE", N_("a profile, also one being written")),
	OPT_ARGUMENTS(struct sql_args, query, "QUERY",
		      N_("SQL as SQLite has it; left out: the tables there are"), false),
	OPT_END,
};

/* On a terminal a kernel's full name would push all else off the screen. */
enum { WIDTH_ROWS = 200, CELL_MOST = 48 };

struct table {
	int count;         /* of columns */
	size_t rows;       /* that wait for their widths, the header too */
	bool clip;         /* to CELL_MOST */
	VEC(char *) cells; /* of those rows; NULL: SQL NULL */
	VEC(int) widths;
	VEC(bool) words; /* the column holds something that is no number: flush left */
};

struct printer {
	const struct sql_args *args;
	struct table table;
	bool begun;     /* there was a row */
	size_t rows;    /* of JSON */
	struct buf out; /* rows not printed yet */
	struct err err; /* of printing */
};

/* Rows are small and writing each by itself is slow. */
enum { PRINT_BYTES = 65536 };

/* As it is shown: names come from traces, and nothing in them may move the
 * cursor; without their end where they are clipped. */
static void add_shown(const struct table *table, struct buf *out, const char *value)
{
	size_t start = out->len;
	int most = CELL_MOST;

	buf_text(out, ""); /* also an empty cell ends with NUL */
	for (const char *at = value ? value : "-"; *at; at++)
		buf_char(out, (unsigned char)*at < 0x20 || *at == 0x7f ? '?' : *at);
	if (!table->clip || present_width(out->at + start) <= most)
		return;
	while (present_width(out->at + start) > most - 2) {
		while ((out->at[--out->len] & 0xc0) == 0x80)
			;
		out->at[out->len] = 0;
	}
	buf_text(out, "..");
}

static int width_of(const char *text)
{
	int width = present_width(text);

	return width < 0 ? (int)strlen(text) : width;
}

static void add_cell(const struct table *table, struct buf *out, int column, const char *value)
{
	struct buf cell = { 0 };
	bool last = column + 1 == table->count;
	int pad;

	add_shown(table, &cell, value);
	pad = table->widths.at[column] - width_of(cell.at);
	if (column)
		buf_text(out, "  ");
	if (!table->words.at[column] && pad > 0)
		buf_printf(out, "%*s", pad, "");
	buf_add(out, cell.at, cell.len);
	if (table->words.at[column] && pad > 0 && !last)
		buf_printf(out, "%*s", pad, "");
	if (last)
		buf_char(out, '\n');
	buf_done(&cell);
}

/* The rows that waited, now that their widths are known. */
static void table_flush(struct table *table, struct buf *out)
{
	for (size_t i = 0; i < table->cells.count; i++) {
		add_cell(table, out, (int)(i % (size_t)table->count), table->cells.at[i]);
		free(table->cells.at[i]);
	}
	table->cells.count = 0;
}

static void table_header(struct table *table, struct buf *out, int count)
{
	table_flush(table, out); /* of the statement before */
	table->count = count;
	table->rows = 0;
	table->widths.count = table->words.count = 0;
	for (int i = 0; i < count; i++) {
		*VEC_ADD(&table->widths) = 0;
		*VEC_ADD(&table->words) = false;
	}
}

static void table_row(struct table *table, struct buf *out, const char *const *cells,
		      const bool *numbers)
{
	if (table->rows++ > WIDTH_ROWS) {
		table_flush(table, out);
		for (int i = 0; i < table->count; i++)
			add_cell(table, out, i, cells[i]);
		return;
	}
	for (int i = 0; i < table->count; i++) {
		struct buf cell = { 0 };
		int width;

		add_shown(table, &cell, cells[i]);
		width = width_of(cell.at);
		buf_done(&cell);
		if (numbers && cells[i] && !numbers[i])
			table->words.at[i] = true;
		if (width > table->widths.at[i] && width <= CELL_MOST)
			table->widths.at[i] = width;
		*VEC_ADD(&table->cells) = cells[i] ? mem_text(cells[i]) : NULL;
	}
}

static void csv_row(struct buf *out, int count, const char *const *cells)
{
	for (int i = 0; i < count; i++) {
		const char *text = cells[i] ? cells[i] : "";
		/* An empty text is quoted: an absent value is not. */
		bool quote = cells[i] && (!*text || strpbrk(text, ",\"\r\n"));

		if (i)
			buf_char(out, ',');
		if (quote)
			buf_char(out, '"');
		for (; *text; text++) {
			if (*text == '"')
				buf_char(out, '"');
			buf_char(out, *text);
		}
		if (quote)
			buf_char(out, '"');
	}
	buf_char(out, '\n');
}

static void json_row(struct printer *printer, int count, const char *const *names,
		     const char *const *values, const bool *numbers)
{
	struct json json = { .out = &printer->out, .compact = true };

	buf_text(&printer->out, printer->rows++ ? ",\n" : "[\n");
	json_object(&json, NULL);
	for (int i = 0; i < count; i++) {
		int64_t integer;
		double real;

		if (!values[i])
			continue;
		if (numbers[i] && str_to_i64(str_of(values[i]), &integer))
			json_i64(&json, names[i], integer);
		else if (numbers[i] && str_to_f64(str_of(values[i]), &real))
			json_f64(&json, names[i], real);
		else
			json_text(&json, names[i], values[i]);
	}
	json_end(&json);
}

static int print_row(void *arg, int count, const char *const *names, const char *const *values,
		     const bool *numbers)
{
	struct printer *printer = arg;

	printer->begun |= values != NULL;
	if (printer->args->json) {
		if (values)
			json_row(printer, count, names, values, numbers);
	} else if (printer->args->csv) {
		csv_row(&printer->out, count, values ? values : names);
	} else {
		if (!values)
			table_header(&printer->table, &printer->out, count);
		table_row(&printer->table, &printer->out, values ? values : names, numbers);
	}
	return printer->out.len < PRINT_BYTES ? 0 : cmd_print(&printer->out, &printer->err);
}

static int print_end(struct printer *printer)
{
	table_flush(&printer->table, &printer->out);
	if (printer->args->json)
		buf_text(&printer->out, printer->rows ? "\n]\n" : "[]\n");
	return cmd_print(&printer->out, &printer->err);
}

/* Kinds of events that there are, then what they refer to. */
static const char tables_query[] =
	"SELECT kind AS \"table\", sum(count) AS rows FROM chunk GROUP BY kind"
#define TABLE(name) " UNION ALL SELECT '" #name "', count(*) FROM " #name
	TABLE(source) TABLE(device) TABLE(process) TABLE(lane) TABLE(kernel_key) TABLE(string)
		TABLE(env) TABLE(loss) TABLE(note);
#undef TABLE

static void printer_done(struct printer *printer)
{
	for (size_t i = 0; i < printer->table.cells.count; i++)
		free(printer->table.cells.at[i]);
	VEC_DONE(&printer->table.cells);
	VEC_DONE(&printer->table.widths);
	VEC_DONE(&printer->table.words);
	buf_done(&printer->out);
}

static int sql_run(const void *arguments, struct err *err)
{
	const struct sql_args *args = arguments;
	struct printer printer = { .args = args };
	struct buf query = { 0 };
	int code;

	printer.table.clip = isatty(STDOUT_FILENO);
	if (args->csv && args->json)
		return err_set(err, ERR_USAGE, "--csv and --json exclude each other");
	for (size_t i = 0; i < args->query.count; i++)
		buf_printf(&query, "%s%s", i ? " " : "", args->query.at[i]);
	if (!query.len)
		buf_text(&query, tables_query);
	profile_file_tell_newer(args->profile, "sql");
	code = store_sql(args->profile, query.at, print_row, &printer, err);
	if (code == ERR_FORMAT && access(args->profile, F_OK) == 0 &&
	    !profile_file_is_database(args->profile))
		code = err_set(err, ERR_FORMAT,
			       "%s: is not a sonde profile; 'sonde import' makes one of it",
			       args->profile);
	/* Where a damaged part ends the query, what came before it is shown. */
	if (!printer.err.code && (code >= 0 || printer.begun))
		(void)print_end(&printer);
	if (printer.err.code) {
		*err = printer.err;
		code = err->code;
	}
	printer_done(&printer);
	buf_done(&query);
	return code < 0 ? code : 0;
}

const struct cmd cmd_sql = {
	.name = "sql",
	.summary = N_("Query a profile's events and tables"),
	.description =
		N_("Each kind of event is a table with names and times resolved. Reads only,\n"
		   "also while the profile is being written."),
	.examples = "  sonde sql run.sonde\n"
		    "  sonde sql run.sonde 'SELECT name, count(*), sum(duration_ns) FROM kernel\n"
		    "                       GROUP BY name ORDER BY 3 DESC LIMIT 10'",
	.opts = sql_opts,
	.args_size = sizeof(struct sql_args),
	.run = sql_run,
};
