#include "read/ncu.h"
#include "read/reader.h"

#include <string.h>

/* How far the file is looked at for its decimal sign. */
static const size_t LOOK_AHEAD = 1u << 20;

/* What the lines of a piece of text are, as far as it goes. */
struct traits {
	bool table, launch, section, log;
};

static struct traits look(struct str text)
{
	struct traits traits = { 0 };

	while (text.at && !traits.table) {
		struct str line = str_cut(&text, '\n');

		traits.table = ncu_table_header(line);
		traits.launch |= ncu_report_launch(line);
		traits.section |= str_starts(line, "    Section: ");
		traits.log |= str_starts(line, "==PROF==") || str_starts(line, "==ERROR== ");
	}
	return traits;
}

static int ncu_probe(const char *at, size_t len)
{
	struct buf memory = { 0 };
	struct traits traits = look(lines_probe_text(at, len, &memory));

	buf_done(&memory);
	if (traits.table)
		return 95;
	if (traits.launch && traits.section)
		return 90;
	/* The log of a run whose results stand further down, or failed. */
	return traits.log ? 60 : 0;
}

static void ncu_done(struct ncu *ncu)
{
	ncu_launch_done(&ncu->launch);
	csv_done(&ncu->csv);
	lines_done(&ncu->lines);
	map_done(&ncu->described);
}

static int read_all(struct ncu *ncu, struct input *input, struct err *err)
{
	const char *at;
	int64_t got = input_fill(input, LOOK_AHEAD, &at, err);
	struct source *source;

	if (got < 0)
		return (int)got;
	ncu->decimal_comma = ncu_decimal_comma((struct str){ at, (size_t)got });
	/* The report's reader hands over to the table's at a table's header. */
	if (ncu_read_report(ncu, err) < 0)
		return err->code;
	source = &ncu->sink->session->sources.at[ncu->source];
	source->accelerator = session_string(ncu->sink->session, "NVIDIA", 6);
	if (input_truncated(input))
		source->truncated = true;
	if (ncu->launches)
		return 0;
	if (ncu->trouble[0])
		return err_set(err, ERR_FORMAT, "%s: no kernel in it; ncu said: %s",
			       input_name(input), ncu->trouble);
	return err_set(err, ERR_FORMAT, "%s: an output of ncu with no kernel in it",
		       input_name(input));
}

static int ncu_csv_read(struct input *input, struct sink *sink, uint32_t source, struct err *err)
{
	struct ncu ncu = { .sink = sink, .source = source };
	int ret;

	ncu.lines.input = input;
	ncu.csv.lines = &ncu.lines;
	ret = read_all(&ncu, input, err);
	ncu_done(&ncu);
	return ret;
}

const struct reader reader_ncu_csv = {
	.name = "ncu_csv",
	.title = "Nsight Compute: CSV of the raw or details page, or the text report",
	.probe = ncu_probe,
	.read = ncu_csv_read,
};
