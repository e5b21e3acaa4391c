/*
 * nvidia-smi -q -x: one document a moment; -l writes them one behind the other.
 *
 * The schema number of the DOCTYPE is kept and decides nothing: names changed
 * within one number, and new numbers come. Entities other than XML's own are
 * refused, so a hostile file can't make expat swell.
 */
#include <expat.h>

#include "base/buf.h"
#include "model/note.h"
#include "read/lines.h"
#include "read/reader.h"
#include "read/smi_tree.h"

static const size_t VALUE_MAX = 64u << 10;
static const size_t PIECE = 256u << 10;

struct xml_reader {
	struct smi_log log;
	struct smi_tree tree;
	XML_Parser parser;
	struct buf text; /* of the innermost element */
	int depth;       /* elements open, the root counted */
	int too_deep;
	bool root_ok;
	bool root_closed;
	bool foreign_entity;
	int64_t document_at; /* offset of the document in the file */
	int64_t good_at;     /* end of the last whole element in it */
	int64_t too_deep_seen;
};

static int xml_probe(const char *at, size_t len)
{
	struct buf memory = { 0 };
	struct str text = lines_probe_text(at, len, &memory);
	int sure = str_find(text, "<nvidia_smi_log")            ? 98
		   : str_find(text, "<!DOCTYPE nvidia_smi_log") ? 90
								: 0;

	buf_done(&memory);
	return sure;
}

static void on_doctype(void *self, const XML_Char *name, const XML_Char *system,
		       const XML_Char *public, int has_internal)
{
	struct xml_reader *xml = self;

	(void)name;
	(void)public;
	(void)has_internal;
	if (system)
		smi_log_env(&xml->log, SESSION_NONE, STR("schema"), str_of(system));
}

static void on_entity(void *self, const XML_Char *name, int is_parameter, const XML_Char *value,
		      int value_length, const XML_Char *base, const XML_Char *system,
		      const XML_Char *public, const XML_Char *notation)
{
	struct xml_reader *xml = self;

	(void)name;
	(void)is_parameter;
	(void)value;
	(void)value_length;
	(void)base;
	(void)system;
	(void)public;
	(void)notation;
	xml->foreign_entity = true;
	(void)XML_StopParser(xml->parser, XML_FALSE);
}

static const char *attribute(const XML_Char **attributes, const char *name)
{
	for (size_t i = 0; attributes[i]; i += 2) {
		if (!strcmp(attributes[i], name))
			return attributes[i + 1];
	}
	return "";
}

static void on_start(void *self, const XML_Char *name, const XML_Char **attributes)
{
	struct xml_reader *xml = self;

	buf_clear(&xml->text);
	if (!xml->depth++) {
		xml->root_ok = !strcmp(name, "nvidia_smi_log");
		return;
	}
	if (xml->depth == 2 && !strcmp(name, "gpu")) {
		smi_tree_gpu(&xml->tree, str_of(attribute(attributes, "id")));
		return;
	}
	if (xml->too_deep || !smi_tree_push(&xml->tree, str_of(name))) {
		xml->too_deep++;
		xml->too_deep_seen++;
	}
}

static void on_end(void *self, const XML_Char *name)
{
	struct xml_reader *xml = self;
	struct smi_tree *tree = &xml->tree;

	xml->depth--;
	xml->good_at = XML_GetCurrentByteIndex(xml->parser) + XML_GetCurrentByteCount(xml->parser);
	if (!xml->depth) {
		xml->root_closed = true;
		(void)XML_StopParser(xml->parser, XML_FALSE);
		return;
	}
	if (xml->too_deep) {
		xml->too_deep--;
		return;
	}
	if (xml->depth == 1 && tree->in_gpu && !strcmp(name, "gpu")) {
		smi_tree_leave_gpu(tree);
		return;
	}
	if (!tree->depth)
		return;
	if (!tree->node[tree->depth - 1].has_children)
		smi_tree_leaf(tree, str_trim((struct str){ xml->text.at, xml->text.len }));
	buf_clear(&xml->text);
	smi_tree_pop(tree);
}

static void on_text(void *self, const XML_Char *at, int len)
{
	struct xml_reader *xml = self;

	if (xml->text.len + (size_t)len <= VALUE_MAX)
		buf_add(&xml->text, at, (size_t)len);
}

static void open_document(struct xml_reader *xml, int64_t offset)
{
	xml->parser = XML_ParserCreate(NULL);
	xml->depth = 0;
	xml->too_deep = 0;
	xml->root_ok = xml->root_closed = false;
	xml->document_at = offset;
	xml->good_at = 0;
	XML_SetUserData(xml->parser, xml);
	XML_SetElementHandler(xml->parser, on_start, on_end);
	XML_SetCharacterDataHandler(xml->parser, on_text);
	XML_SetStartDoctypeDeclHandler(xml->parser, on_doctype);
	XML_SetEntityDeclHandler(xml->parser, on_entity);
	(void)XML_SetParamEntityParsing(xml->parser, XML_PARAM_ENTITY_PARSING_NEVER);
}

/* Blanks and marks between documents belong to none. */
static int skip_blanks(struct input *input, bool *ret_more, struct err *err)
{
	for (;;) {
		const char *at;
		int64_t got = input_fill(input, 1, &at, err);
		size_t len = 0;

		if (got < 0)
			return (int)got;
		while (len < (size_t)got && (at[len] == ' ' || at[len] == '\t' || at[len] == '\r' ||
					     at[len] == '\n' || at[len] == 0))
			len++;
		input_skip(input, len);
		*ret_more = len < (size_t)got;
		if (*ret_more || !got)
			return 0;
	}
}

/* What was complete before the damage counts. */
static void broken(struct xml_reader *xml, struct input *input, int64_t end)
{
	enum XML_Error code = XML_GetErrorCode(xml->parser);

	smi_log_truncated(&xml->log, end - xml->document_at - xml->good_at);
	session_note(xml->log.session, xml->log.source, NOTE_BROKEN_XML, input_name(input),
		     (unsigned long)XML_GetCurrentLineNumber(xml->parser),
		     xml->foreign_entity ? NOTE_ENTITIES : XML_ErrorString(code));
}

/* One document. *ret_whole: its root was closed, and another may follow. */
static int read_document(struct xml_reader *xml, struct input *input, bool *ret_whole,
			 struct err *err)
{
	for (;;) {
		const char *at;
		int64_t got = input_fill_some(input, 0, PIECE, &at, err);
		int64_t before = input_offset(input);
		size_t len = got > (int64_t)PIECE ? PIECE : (size_t)got;
		enum XML_Status status;

		if (got < 0)
			return (int)got;
		status = XML_Parse(xml->parser, at, (int)len, got == 0);
		if (xml->root_closed) {
			input_skip(input, (size_t)(xml->document_at + xml->good_at - before));
			*ret_whole = true;
			return 0;
		}
		if (status != XML_STATUS_OK || got == 0) {
			/* The rest can't be parsed: only its length counts. */
			do {
				input_skip(input, (size_t)got);
				got = input_fill(input, PIECE, &at, err);
			} while (got > 0);
			if (got < 0)
				return (int)got;
			broken(xml, input, input_offset(input));
			return 0;
		}
		input_skip(input, len);
	}
}

static int read_documents(struct xml_reader *xml, struct input *input, struct err *err)
{
	bool more = true;
	int ret = skip_blanks(input, &more, err);

	while (ret == 0 && more) {
		bool whole = false;

		open_document(xml, input_offset(input));
		ret = read_document(xml, input, &whole, err);
		if (ret == 0 && xml->root_ok)
			ret = smi_tree_flush(&xml->tree, err);
		XML_ParserFree(xml->parser);
		xml->parser = NULL;
		if (ret == 0)
			ret = skip_blanks(input, &more, err);
		if (!whole)
			break;
	}
	return ret;
}

static int xml_read(struct input *input, struct sink *sink, uint32_t source, struct err *err)
{
	struct xml_reader xml = { 0 };
	int ret;

	smi_log_begin(&xml.log, "-q -x", sink, source);
	smi_tree_begin(&xml.tree, &xml.log, SMI_XML);
	ret = read_documents(&xml, input, err);
	if (ret == 0)
		ret = smi_log_end(&xml.log, input, err);
	if (ret == 0 && xml.too_deep_seen)
		session_loss(sink->session, source, LOSS_dropped, xml.too_deep_seen);
	smi_tree_done(&xml.tree);
	smi_log_done(&xml.log);
	buf_done(&xml.text);
	return ret;
}

const struct reader reader_smi_xml = {
	.name = "smi_xml",
	.title = "nvidia-smi -q -x, XML",
	.probe = xml_probe,
	.read = xml_read,
};
