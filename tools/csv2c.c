/*
 * csv2c - CSV tables as constant tables of C, at build time.
 *
 *	csv2c OUT.c FILE.csv...
 *
 * FILE.csv (RFC 4180, first row names the columns, every row as long) becomes
 * `const struct know_table know_table_FILE` (know/table.h). A row of another
 * length stops the build with file and row.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEM_MAX = 64, END_OF_FIELD = ',', END_OF_ROW = '\n', END_OF_FILE = -1 };

struct csv {
	FILE *in;
	FILE *out;
	const char *path;
	char stem[STEM_MAX];
};

static bool fail(const struct csv *csv, const char *what, int row)
{
	(void)fprintf(stderr, "csv2c: %s: row %d: %s\n", csv->path, row, what);
	return false;
}

static void put(FILE *out, int c)
{
	/* Octal always has three digits, so no digit behind it can join. */
	if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '?')
		(void)fprintf(out, "\\%03o", (unsigned int)c);
	else
		(void)fputc(c, out);
}

/* Copy one field as a string literal; what ended it. */
static int field(const struct csv *csv, int first)
{
	bool quoted = first == '"';
	int c = quoted ? getc(csv->in) : first;

	(void)fputs("\t\"", csv->out);
	for (;; c = getc(csv->in)) {
		if (quoted && c == '"') {
			c = getc(csv->in);
			if (c != '"') {
				quoted = false;
				if (c == '\r')
					c = getc(csv->in);
				break;
			}
		} else if (c == EOF || (!quoted && (c == ',' || c == '\n'))) {
			break;
		} else if (!quoted && c == '\r') {
			continue;
		}
		put(csv->out, c);
	}
	(void)fputs("\",\n", csv->out);
	return c == EOF ? END_OF_FILE : c;
}

/* Fields of one row; 0 at the end of the file, -1 on junk behind a quote. */
static int row(const struct csv *csv)
{
	int fields = 0, end, first;

	do {
		first = getc(csv->in);
		if (first == EOF && !fields)
			return 0;
		end = field(csv, first);
		fields++;
	} while (end == END_OF_FIELD);
	return end == END_OF_ROW || end == END_OF_FILE ? fields : -1;
}

static bool table(const struct csv *csv)
{
	int columns, rows = 0, fields;

	(void)fprintf(csv->out, "\nstatic const char *const %s_columns[] = {\n", csv->stem);
	columns = row(csv);
	if (columns <= 0)
		return fail(csv, "no column names", 1);
	(void)fprintf(csv->out, "};\n\nstatic const char *const %s_cells[] = {\n", csv->stem);
	while ((fields = row(csv)) != 0) {
		rows++;
		if (fields != columns)
			return fail(csv, "not as many fields as column names", rows + 1);
	}
	(void)fprintf(csv->out,
		      "};\n\nconst struct know_table know_table_%s = {\n\t%s_columns, %d, "
		      "%s_cells, %d\n};\n",
		      csv->stem, csv->stem, columns, csv->stem, rows);
	return rows > 0 || fail(csv, "no rows", 2);
}

static bool convert(struct csv *csv)
{
	const char *base = strrchr(csv->path, '/');
	bool done;

	(void)snprintf(csv->stem, sizeof(csv->stem), "%s", base ? base + 1 : csv->path);
	csv->stem[strcspn(csv->stem, ".")] = 0;
	csv->in = fopen(csv->path, "re");
	if (!csv->in)
		return fail(csv, strerror(errno), 0);
	done = table(csv);
	(void)fclose(csv->in);
	return done;
}

int main(int argc, char **argv)
{
	struct csv csv = { 0 };
	bool done = true;

	if (argc < 3 || !(csv.out = fopen(argv[1], "we"))) {
		(void)fprintf(stderr, "csv2c: OUT.c FILE.csv...\n");
		return 2;
	}
	(void)fputs("/* Made by tools/csv2c from data/: change it there. */\n"
		    "#include \"know/table.h\"\n",
		    csv.out);
	for (int i = 2; i < argc && done; i++) {
		csv.path = argv[i];
		done = convert(&csv);
	}
	if (fclose(csv.out) != 0)
		done = false;
	if (!done)
		(void)remove(argv[1]);
	return done ? 0 : 1;
}
