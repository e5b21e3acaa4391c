#include "read/smi_columns.h"

#include <strings.h>

#include "model/note.h"

static const int64_t NS_PER_DAY = 86400 * 1000000000LL;

static bool same_word(struct str text, const char *word)
{
	return strlen(word) == text.len && !strncasecmp(text.at, word, text.len);
}

/* The next cell; `rest` becomes empty with the last one. */
static struct str next_cell(struct str *rest, bool commas)
{
	struct str cell;
	size_t len = 0;

	if (commas)
		return str_trim(str_cut(rest, ','));
	*rest = str_trim(*rest);
	while (len < rest->len && rest->at[len] != ' ' && rest->at[len] != '\t')
		len++;
	cell = (struct str){ rest->at, len };
	rest->at += len;
	rest->len -= len;
	*rest = str_trim(*rest);
	return cell;
}

static bool at_end(struct str rest, bool commas)
{
	return commas ? !rest.at : !rest.len;
}

static struct str header_text(struct str line)
{
	line = str_trim(line);
	if (line.len && line.at[0] == '#') {
		line.at++;
		line.len--;
	}
	return str_trim(line);
}

static enum smi_column_kind kind_of(enum smi_form form, struct str name,
				    const struct smi_field **ret_field)
{
	static const struct {
		const char *name;
		enum smi_column_kind kind;
		bool of_pmon;
	} kinds[] = {
		{ "Date", SMI_COLUMN_DATE, false },       { "Time", SMI_COLUMN_TIME, false },
		{ "gpu", SMI_COLUMN_GPU, false },         { "mig", SMI_COLUMN_INSTANCE, false },
		{ "gi", SMI_COLUMN_INSTANCE, false },     { "ci", SMI_COLUMN_INSTANCE, false },
		{ "migdev", SMI_COLUMN_INSTANCE, false }, { "pid", SMI_COLUMN_PID, true },
		{ "type", SMI_COLUMN_TYPE, true },        { "command", SMI_COLUMN_COMMAND, true },
		{ "name", SMI_COLUMN_COMMAND, true },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (same_word(name, kinds[i].name) && (form == SMI_PMON || !kinds[i].of_pmon))
			return kinds[i].kind;
	}
	*ret_field = smi_field_find(form, name);
	return *ret_field ? SMI_COLUMN_METRIC : SMI_COLUMN_UNKNOWN;
}

/* Which of the two header lines it is: 1 names, 2 units, 0 neither. */
static int header_line(struct str line)
{
	bool commas = line.len && memchr(line.at, ',', line.len);
	struct str rest = header_text(line);
	size_t count = 0;
	int ret = 0;

	while (!at_end(rest, commas) && count++ < SMI_COLUMNS_MAX) {
		struct str cell = next_cell(&rest, commas);

		if (str_is(cell, "gpu") && !ret)
			ret = 1;
		if (str_is(cell, "Idx") && !ret)
			ret = 2;
	}
	return count > 1 ? ret : 0;
}

static void take_units(struct smi_columns *columns, struct smi_log *log, struct str line)
{
	struct str rest = header_text(line);

	for (size_t i = 0; i < columns->count && !at_end(rest, columns->commas); i++) {
		struct str unit = next_cell(&rest, columns->commas);

		columns->at[i].unit = session_string(log->session, unit.at, unit.len);
	}
}

static bool same_header(const struct smi_columns *a, const struct smi_columns *b)
{
	if (a->count != b->count || a->commas != b->commas)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (a->at[i].name != b->at[i].name)
			return false;
	}
	return true;
}

static void take_names(struct smi_columns *columns, struct smi_log *log, struct str line)
{
	struct smi_columns next = { .form = columns->form,
				    .day_ns = columns->day_ns,
				    .last_clock_ns = columns->last_clock_ns };
	struct str rest = header_text(line);

	next.commas = memchr(line.at, ',', line.len) != NULL;
	next.header_len = (size_t)(str_trim(line).at + str_trim(line).len - line.at);
	while (!at_end(rest, next.commas) && next.count < SMI_COLUMNS_MAX) {
		struct smi_column *column = &next.at[next.count++];
		struct str name = next_cell(&rest, next.commas);

		column->name = session_string(log->session, name.at, name.len);
		column->kind = kind_of(next.form, name, &column->field);
		next.has_date |= column->kind == SMI_COLUMN_DATE;
		next.has_time |= column->kind == SMI_COLUMN_TIME;
	}
	if (columns->count && same_header(columns, &next))
		return;
	if (columns->count) {
		session_note(log->session, log->source, NOTE_COLUMNS_CHANGE, log->what);
		smi_columns_end(columns, log);
	}
	for (size_t i = 0; i < next.count; i++) {
		if (next.at[i].kind == SMI_COLUMN_UNKNOWN)
			session_note(log->session, log->source, NOTE_COLUMN_UNKNOWN, log->what,
				     session_text(log->session, next.at[i].name));
	}
	*columns = next;
}

/* A line that begins with '#'. true: it was a header of this table. */
static bool smi_columns_header(struct smi_columns *columns, struct smi_log *log, struct str line)
{
	int which = header_line(line);

	if (which == 1)
		take_names(columns, log, line);
	if (which == 2)
		take_units(columns, log, line);
	return which != 0;
}

/* Cells of a row; false: it has another number of them, or no GPU in it. */
static bool smi_columns_row(const struct smi_columns *columns, struct str line,
			    struct smi_row *ret_row)
{
	struct str rest = str_trim(line);
	int64_t index;

	for (size_t i = 0; i < columns->count; i++) {
		bool last = i + 1 == columns->count;

		if (at_end(rest, columns->commas))
			return false;
		if (last && columns->at[i].kind == SMI_COLUMN_COMMAND) {
			ret_row->cell[i] = str_trim(rest);
			rest = (struct str){ 0 };
		} else {
			ret_row->cell[i] = next_cell(&rest, columns->commas);
		}
	}
	/* A comma behind the last cell is no cell. */
	return !str_trim(rest).len && smi_columns_gpu(columns, ret_row, &index);
}

struct str smi_columns_cell(const struct smi_columns *columns, const struct smi_row *row,
			    enum smi_column_kind kind)
{
	for (size_t i = 0; i < columns->count; i++) {
		if (columns->at[i].kind == kind)
			return row->cell[i];
	}
	return (struct str){ 0 };
}

bool smi_columns_gpu(const struct smi_columns *columns, const struct smi_row *row,
		     int64_t *ret_index)
{
	struct str cell = smi_columns_cell(columns, row, SMI_COLUMN_GPU);

	return str_to_i64(cell, ret_index) && *ret_index >= 0 && *ret_index < 65536;
}

/* The cell of the column of that name; empty if there is none or nothing in it. */
static struct str instance_cell(const struct smi_columns *columns, const struct smi_log *log,
				const struct smi_row *row, const char *name)
{
	for (size_t i = 0; i < columns->count; i++) {
		const char *column = session_text(log->session, columns->at[i].name);

		if (columns->at[i].kind == SMI_COLUMN_INSTANCE && same_word(str_of(column), name) &&
		    !smi_missing(row->cell[i]))
			return row->cell[i];
	}
	return (struct str){ 0 };
}

/* Is the row about a part of the GPU? */
static bool smi_columns_is_part(const struct smi_columns *columns, const struct smi_row *row)
{
	for (size_t i = 0; i < columns->count; i++) {
		if (columns->at[i].kind == SMI_COLUMN_INSTANCE && row->cell[i].len &&
		    !smi_missing(row->cell[i]))
			return true;
	}
	return false;
}

bool smi_columns_device(const struct smi_columns *columns, struct smi_log *log,
			const struct smi_row *row, const struct smi_gpu *gpu, uint32_t *ret_device)
{
	struct str mig = instance_cell(columns, log, row, "mig");

	if (!smi_columns_is_part(columns, row)) {
		*ret_device = smi_log_device(log, gpu);
		return true;
	}
	if (!mig.len)
		mig = instance_cell(columns, log, row, "migdev");
	/* The number of the MIG device says what GI and CI say together. */
	if (mig.len)
		return smi_log_part(log, gpu, (const char *const[]){ "MIG", NULL },
				    (const struct str[]){ mig, { 0 } }, ret_device);
	return smi_log_part(log, gpu, (const char *const[]){ "GI", "CI" },
			    (const struct str[]){ instance_cell(columns, log, row, "gi"),
						  instance_cell(columns, log, row, "ci") },
			    ret_device);
}

int64_t smi_columns_time(struct smi_columns *columns, struct smi_log *log,
			 const struct smi_row *row)
{
	int64_t clock_ns = 0, date_ns = 0;

	if (columns->has_date && !columns->has_time)
		smi_log_env(log, SESSION_NONE, STR("date"),
			    smi_columns_cell(columns, row, SMI_COLUMN_DATE));
	if (!columns->has_time ||
	    !smi_clock(smi_columns_cell(columns, row, SMI_COLUMN_TIME), &clock_ns))
		return smi_log_round_time(log);
	if (columns->has_date) {
		if (!smi_stamp(smi_columns_cell(columns, row, SMI_COLUMN_DATE), &date_ns))
			return smi_log_round_time(log);
		return smi_log_stamp(log, date_ns + clock_ns);
	}
	/* Half a day back is midnight, less is a clock that was set. */
	if (clock_ns < columns->last_clock_ns - NS_PER_DAY / 2)
		columns->day_ns += NS_PER_DAY;
	columns->last_clock_ns = clock_ns;
	return smi_log_stamp(log, columns->day_ns + clock_ns);
}

void smi_columns_values(struct smi_columns *columns, struct smi_log *log, const struct smi_row *row,
			struct smi_values *values)
{
	for (size_t i = 0; i < columns->count; i++) {
		struct smi_column *column = &columns->at[i];

		/* In pmon a dash says that there was no use in this interval. */
		if (column->kind != SMI_COLUMN_METRIC ||
		    (columns->form == SMI_PMON && str_is(row->cell[i], "-")))
			continue;
		if (smi_log_put(log, values, column->field, row->cell[i],
				str_of(session_text(log->session, column->unit))))
			column->values++;
	}
	columns->rows++;
	smi_values_end(values);
}

void smi_columns_end(struct smi_columns *columns, struct smi_log *log)
{
	if (!columns->rows || columns->form == SMI_PMON)
		return;
	for (size_t i = 0; i < columns->count; i++) {
		const struct smi_column *column = &columns->at[i];

		if (column->kind == SMI_COLUMN_METRIC && !column->values)
			session_missing_column(log->session, log->source,
					       session_text(log->session, column->name));
	}
}

/* Numbers stand flush right, so a line that stops before its header did, and
 * has no line end, was cut in its last number. */
static bool cut_off(const struct smi_columns *columns, const struct lines *lines, struct str line)
{
	bool by_blanks = columns->count && !columns->commas &&
			 columns->at[columns->count - 1].kind != SMI_COLUMN_COMMAND;
	struct str text = str_trim(line);

	return lines->open_end && by_blanks && text.len &&
	       (size_t)(text.at + text.len - line.at) < columns->header_len;
}

int smi_columns_read(struct smi_columns *columns, struct smi_log *log, struct input *input,
		     smi_row_fn *row, void *self, struct err *err)
{
	struct lines lines = { .input = input };
	struct smi_row cells = { 0 };
	struct str line;
	int ret;

	while ((ret = lines_next(&lines, &line, err)) > 0) {
		struct str text = str_trim(line);

		if (!text.len)
			continue;
		if (text.at[0] == '#' && smi_columns_header(columns, log, line))
			continue;
		if (lines.open_end &&
		    (cut_off(columns, &lines, line) ||
		     (columns->count && log->rows && !smi_columns_row(columns, line, &cells)))) {
			smi_log_truncated(log, (int64_t)lines.bytes);
			continue;
		}
		if (lines.shortened || !columns->count || !smi_columns_row(columns, line, &cells)) {
			smi_log_stray(log, line);
			continue;
		}
		log->rows++;
		ret = row(self, &cells, err);
		if (ret < 0)
			break;
	}
	lines_done(&lines);
	return ret < 0 ? ret : 0;
}

int smi_columns_probe(const char *at, size_t len, bool wants_pid)
{
	struct buf memory = { 0 };
	struct str text = lines_probe_text(at, len, &memory);
	int sure = 0;

	while (text.len && !sure) {
		struct str line = str_cut(&text, '\n');
		struct str rest = header_text(line);
		bool commas = line.len && memchr(line.at, ',', line.len);
		bool pid = false, gpu = false;
		int known = 0;

		if (!str_starts(str_trim(line), "#") || header_line(line) != 1)
			continue;
		while (!at_end(rest, commas)) {
			struct str cell = next_cell(&rest, commas);

			gpu |= str_is(cell, "gpu");
			pid |= str_is(cell, "pid");
			known += smi_field_find(SMI_DMON, cell) || smi_field_find(SMI_PMON, cell);
		}
		if (gpu && pid == wants_pid && (known || pid))
			sure = 95;
	}
	buf_done(&memory);
	return sure;
}
