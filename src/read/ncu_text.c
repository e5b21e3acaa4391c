/*
 * The text report that ncu prints on a terminal: a line that names the launch,
 * then sections, each a table between lines of dashes, then advice.
 *
 *	  name (864, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.0
 *	    Section: Launch Statistics
 *	    -------------- ----------- ------------
 *	    Metric Name    Metric Unit Metric Value
 *	    -------------- ----------- ------------
 *	    Threads             thread       221184
 *	    -------------- ----------- ------------
 *	    OPT   Estimated Speedup: 50%
 *	          A wave of thread blocks is ...
 *
 * Versions before 2022 have no line of titles, and a date before "Context".
 * The dashes say where columns begin and end.
 */
#include "read/ncu.h"

#include <string.h>

enum { COLUMNS_MAX = 8, ADVICE_MAX = 1 << 16 };

struct span {
	size_t begin, end;
};

enum place { OUTSIDE, TITLES, ROWS_DUE, ROWS };

struct report {
	struct ncu *ncu;
	int64_t pid;
	uint32_t process_name, host;
	struct buf section;
	enum place place;
	struct span spans[COLUMNS_MAX];
	size_t columns;
	size_t value; /* which column is the value */
	char advice_type[8];
	struct buf advice;
};

static const char *find_last(struct str text, const char *needle)
{
	const char *last = NULL, *found;

	while ((found = str_find(text, needle))) {
		last = found;
		text = (struct str){ found + 1, (size_t)(text.at + text.len - found) - 1 };
	}
	return last;
}

bool ncu_report_launch(struct str line)
{
	const char *context = find_last(line, ", Context ");

	return context && str_starts(line, "  ") &&
	       str_find((struct str){ context, (size_t)(line.at + line.len - context) },
			", Stream ");
}

/* The number behind `word` in the tail of a launch line; -1 if there is none. */
static int64_t number_after(struct str tail, const char *word)
{
	const char *at = str_find(tail, word);
	struct str digits;
	int64_t value;

	if (!at)
		return -1;
	digits =
		(struct str){ at + strlen(word), (size_t)(tail.at + tail.len - at) - strlen(word) };
	digits = str_cut(&digits, ',');
	digits = str_cut(&digits, '.');
	return str_to_i64(str_trim(digits), &value) ? value : -1;
}

/* "name (864, 1, 1)x(256, 1, 1)" or "name, 2021-Sep-13 10:23:45". */
static void take_name(struct report *report, struct str name)
{
	struct ncu_launch *launch = &report->ncu->launch;
	const char *x = find_last(name, ")x(");

	if (x) {
		struct str left = { name.at, (size_t)(x - name.at) };
		struct str right = { x + 3, name.len - left.len - 3 };
		const char *open = find_last(left, "(");

		if (open &&
		    ncu_dims((struct str){ open, (size_t)(left.at + left.len - open) },
			     launch->grid) &&
		    ncu_dims(right, launch->block))
			name.len = (size_t)(open - name.at);
	} else {
		const char *date = find_last(name, ", ");

		/* A date has a digit behind the comma; an argument type does not. */
		if (date && date + 2 < name.at + name.len && date[2] >= '0' && date[2] <= '9')
			name.len = (size_t)(date - name.at);
	}
	name = str_trim(name);
	launch->kernel = session_string(report->ncu->sink->session, name.at, name.len);
}

static int begin_launch(struct report *report, struct str line, struct err *err)
{
	struct ncu *ncu = report->ncu;
	const char *context = find_last(line, ", Context ");
	struct str tail = { context, (size_t)(line.at + line.len - context) };
	const char *minor;

	if (ncu_launch_end(ncu, err) < 0)
		return err->code;
	ncu_launch_begin(ncu);
	ncu->launch.pid = report->pid;
	ncu->launch.process_name = report->process_name;
	ncu->launch.host = report->host;
	ncu->launch.context = number_after(tail, ", Context ");
	ncu->launch.stream = number_after(tail, ", Stream ");
	ncu->launch.device = number_after(tail, ", Device ");
	ncu->launch.cc_major = number_after(tail, ", CC ");
	minor = ncu->launch.cc_major >= 0 ? find_last(tail, ".") : NULL;
	ncu->launch.cc_minor = minor ? number_after(tail, ".") : 0;
	if (ncu->launch.cc_major < 0)
		ncu->launch.cc_major = 0;
	take_name(report, str_trim((struct str){ line.at, (size_t)(context - line.at) }));
	buf_clear(&report->section);
	report->place = OUTSIDE;
	return 0;
}

/* Where the dashes are; 0 if the line has anything else. */
static size_t dashes(struct str line, struct span *spans)
{
	size_t count = 0;

	for (size_t i = 0; i < line.len;) {
		size_t end = i;

		if (line.at[i] == ' ') {
			i++;
			continue;
		}
		while (end < line.len && line.at[end] == '-')
			end++;
		if (end == i || count == COLUMNS_MAX)
			return 0;
		spans[count++] = (struct span){ i, end };
		i = end;
	}
	return count;
}

static struct str slice(struct str line, struct span span)
{
	size_t begin = span.begin < line.len ? span.begin : line.len;
	size_t end = span.end < line.len ? span.end : line.len;

	return str_trim((struct str){ line.at + begin, end - begin });
}

/* The last column is the value: alone, or the average of a summary. */
static void take_titles(struct report *report, struct str line)
{
	report->value = 0;
	for (size_t i = 1; i < report->columns; i++) {
		struct str title = slice(line, report->spans[i]);

		if (str_is(title, "Metric Value") || str_is(title, "Average"))
			report->value = i;
	}
}

static void take_row(struct report *report, struct str line)
{
	struct ncu *ncu = report->ncu;
	struct session *session = ncu->sink->session;
	struct str name = slice(line, report->spans[0]);
	struct str unit = slice(line, report->spans[1]);
	struct str value = slice(line, report->spans[report->value]);

	if (!report->value || !ncu->launch.open)
		return; /* a table of something else, by source line for example */
	session_loss(session, ncu->source, LOSS_seen, 1);
	if (!name.len) {
		session_loss(session, ncu->source, LOSS_dropped, 1);
		return;
	}
	ncu_launch_value(ncu,
			 ncu_section_name(ncu,
					  (struct str){ report->section.at, report->section.len },
					  name),
			 unit.len ? session_string(session, unit.at, unit.len) : 0, value);
}

/* True if the line belonged to a table. */
static bool table_line(struct report *report, struct str line)
{
	struct span spans[COLUMNS_MAX];
	size_t count = dashes(line, spans);

	if (count >= 3) {
		switch (report->place) {
		case OUTSIDE:
			memcpy(report->spans, spans, sizeof(spans));
			report->columns = count;
			report->value = count - 1;
			report->place = TITLES;
			break;
		case ROWS_DUE:
			report->place = ROWS;
			break;
		default:
			report->place = OUTSIDE;
		}
		return true;
	}
	if (report->place == OUTSIDE)
		return false;
	if (count || !str_trim(line).len) {
		report->place = OUTSIDE; /* cut or foreign lines end a table too */
		return true;
	}
	if (report->place == TITLES && str_starts(str_trim(line), "Metric Name")) {
		take_titles(report, line);
		report->place = ROWS_DUE;
		return true;
	}
	report->place = ROWS;
	take_row(report, line);
	return true;
}

static void end_advice(struct report *report)
{
	if (report->advice.len && report->ncu->launch.open)
		ncu_launch_rule(report->ncu,
				(struct str){ report->section.at, report->section.len },
				str_of(report->advice_type),
				(struct str){ report->advice.at, report->advice.len },
				(struct str){ 0 }, (struct str){ 0 });
	buf_clear(&report->advice);
	report->advice_type[0] = '\0';
}

/* "    OPT   text" begins advice, ten blanks and text go on. */
static bool advice_line(struct report *report, struct str line)
{
	struct str text = str_trim(line);
	size_t len = 4;

	if (report->advice_type[0] && str_starts(line, "          ") && text.len) {
		if (report->advice.len && report->advice.len < ADVICE_MAX)
			buf_char(&report->advice, ' ');
		if (report->advice.len < ADVICE_MAX)
			buf_add(&report->advice, text.at, text.len);
		return true;
	}
	end_advice(report);
	if (!str_starts(line, "    ") || line.len < 10)
		return false;
	while (len < line.len && line.at[len] >= 'A' && line.at[len] <= 'Z')
		len++;
	if (len < 7 || len > 9 || line.at[len] != ' ' || line.at[len + 1] != ' ')
		return false;
	memcpy(report->advice_type, line.at + 4, len - 4);
	report->advice_type[len - 4] = '\0';
	text = str_trim((struct str){ line.at + len, line.len - len });
	buf_add(&report->advice, text.at, text.len);
	return true;
}

/* "[185098] python3.8@127.0.0.1" */
static bool process_line(struct report *report, struct str line)
{
	struct session *session = report->ncu->sink->session;
	struct str pid, name;
	int64_t number;

	if (!str_starts(line, "["))
		return false;
	line = (struct str){ line.at + 1, line.len - 1 };
	pid = str_cut(&line, ']');
	if (!line.at || !str_to_i64(pid, &number) || number < 0)
		return false;
	report->pid = number;
	line = str_trim(line);
	name = str_cut(&line, '@');
	report->process_name = session_string(session, name.at, name.len);
	report->host = line.at ? session_string(session, line.at, line.len) : 0;
	return true;
}

static int take_line(struct report *report, struct str line, struct err *err)
{
	if (advice_line(report, line) || ncu_log_line(report->ncu, line))
		return 0;
	if (ncu_report_launch(line))
		return begin_launch(report, line, err);
	if (str_starts(line, "    Section: ")) {
		struct str name = str_trim((struct str){ line.at + 13, line.len - 13 });

		buf_clear(&report->section);
		buf_add(&report->section, name.at, name.len);
		report->place = OUTSIDE;
		return 0;
	}
	if (!table_line(report, line))
		(void)process_line(report, line);
	return 0;
}

int ncu_read_report(struct ncu *ncu, struct err *err)
{
	struct report report = { .ncu = ncu, .pid = -1 };
	struct str line;
	int ret;

	while ((ret = csv_peek(&ncu->csv, &line, err)) > 0) {
		csv_pass(&ncu->csv);
		if (ncu_table_header(line)) {
			/* Not a report after all: a table follows what looked like one. */
			ncu->csv.held = true;
			break;
		}
		if ((ret = take_line(&report, line, err)) < 0)
			break;
	}
	if (ret >= 0)
		end_advice(&report);
	buf_done(&report.section);
	buf_done(&report.advice);
	if (ret < 0 || ncu_launch_end(ncu, err) < 0)
		return err->code;
	return ret > 0 ? ncu_read_table(ncu, err) : 0;
}
