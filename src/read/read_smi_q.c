/*
 * nvidia-smi -q: "Name : Value" lines, four blanks a level, headings without a
 * value. A line that has a value can have lines below it too (HW Slowdown,
 * Process ID).
 */
#include "model/note.h"
#include "read/lines.h"
#include "read/reader.h"
#include "read/smi_tree.h"

static const char LOG_LINE[] = "NVSMI LOG";

struct q_reader {
	struct smi_log log;
	struct smi_tree tree;
};

static int q_probe(const char *at, size_t len)
{
	struct buf memory = { 0 };
	struct str text = lines_probe_text(at, len, &memory);
	int sure = 0;

	if (str_find(text, "=NVSMI LOG="))
		sure = 95;
	else if (str_find(text, "\nAttached GPUs  ") || str_starts(text, "Attached GPUs  "))
		sure = 80;
	buf_done(&memory);
	return sure;
}

/* Where " : " splits the line; the value may be empty. */
static bool split(struct str line, struct str *ret_name, struct str *ret_value)
{
	const char *colon = str_find(line, " : ");

	if (!colon && str_ends(line, " :"))
		colon = line.at + line.len - 2;
	if (!colon)
		return false;
	*ret_name = str_trim((struct str){ line.at, (size_t)(colon - line.at) });
	*ret_value = str_trim((struct str){ colon + 2, (size_t)(line.at + line.len - colon - 2) });
	return ret_name->len > 0;
}

static int indent_of(struct str line)
{
	size_t i = 0, column = 0;

	for (; i < line.len && (line.at[i] == ' ' || line.at[i] == '\t'); i++)
		column += line.at[i] == '\t' ? 8 : 1;
	return column < 1000 ? (int)column : 1000;
}

/* "GPU 00000000:83:00.0" at the margin, perhaps with a message behind it. */
static bool is_gpu_line(struct str line, struct str *ret_bus)
{
	char bus[32];

	if (!str_starts(line, "GPU "))
		return false;
	*ret_bus = str_trim((struct str){ line.at + 4, line.len - 4 });
	return smi_bus(*ret_bus, bus);
}

static void q_push(struct q_reader *q, struct str name, int indent)
{
	struct smi_tree *tree = &q->tree;

	while (tree->depth && tree->node[tree->depth - 1].indent >= indent)
		smi_tree_pop(tree);
	if (smi_tree_push(tree, name))
		tree->node[tree->depth - 1].indent = indent;
}

static int q_line(struct q_reader *q, struct str line, struct err *err)
{
	struct str name, value, bus, text = str_trim(line);
	int indent = indent_of(line);

	if (str_find(text, LOG_LINE)) {
		return smi_tree_flush(&q->tree, err);
	}
	if (indent == 0 && is_gpu_line(text, &bus)) {
		smi_tree_gpu(&q->tree, bus);
		return 0;
	}
	if (indent == 0 && str_starts(text, "GPU ") && str_find(text, "lost")) {
		smi_log_absent(&q->log, NOTE_GPU_LOST);
		smi_log_stray(&q->log, line);
		return 0;
	}
	if (split(line, &name, &value) && (indent > 0 || !q->tree.in_gpu)) {
		/* A second stamp without the line of the log is a new moment too. */
		if (indent == 0 && str_is(name, "Timestamp") && q->tree.has_stamp) {
			int ret = smi_tree_flush(&q->tree, err);

			if (ret < 0)
				return ret;
		}
		q_push(q, name, indent);
		if (q->tree.depth)
			smi_tree_leaf(&q->tree, value);
		return 0;
	}
	if (indent > 0 && q->tree.in_gpu) {
		q_push(q, text, indent);
		return 0;
	}
	smi_log_stray(&q->log, line);
	return 0;
}

static int q_lines(struct q_reader *q, struct input *input, struct err *err)
{
	struct lines lines = { .input = input };
	struct str line, name, value;
	int ret;

	while ((ret = lines_next(&lines, &line, err)) > 0) {
		if (!str_trim(line).len)
			continue;
		/* Without its end and without a value a line may be half a name. */
		if (lines.open_end && q->tree.in_gpu && !split(line, &name, &value)) {
			smi_log_truncated(&q->log, (int64_t)lines.bytes);
			continue;
		}
		if (lines.shortened) {
			smi_log_stray(&q->log, line);
			continue;
		}
		ret = q_line(q, line, err);
		if (ret < 0)
			break;
	}
	lines_done(&lines);
	return ret < 0 ? ret : smi_tree_flush(&q->tree, err);
}

static int q_read(struct input *input, struct sink *sink, uint32_t source, struct err *err)
{
	struct q_reader q = { 0 };
	int ret;

	smi_log_begin(&q.log, "-q", sink, source);
	smi_tree_begin(&q.tree, &q.log, SMI_Q);
	ret = q_lines(&q, input, err);
	if (ret == 0)
		ret = smi_log_end(&q.log, input, err);
	smi_tree_done(&q.tree);
	smi_log_done(&q.log);
	return ret;
}

const struct reader reader_smi_q = {
	.name = "smi_q",
	.title = "nvidia-smi -q, text",
	.probe = q_probe,
	.read = q_read,
};
