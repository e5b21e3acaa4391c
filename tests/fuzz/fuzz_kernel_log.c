/*
 * The reader gets the bytes whatever its probe says, and must neither crash nor
 * push a mark that does not fit its session, nor one whose detail is not read
 * back as the fault that it was.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/fault.h"
#include "read/reader.h"

static int fuzz_mark(struct sink *sink, const struct mark *mark, struct err *err)
{
	const struct session *session = sink->session;
	struct str detail = { 0 };
	struct fault fault, again;
	struct buf text = { 0 };

	(void)err;
	if (mark->lane >= session->lanes.count || mark->name >= intern_count(session->strings))
		abort();
	detail.at = intern_get(session->details, mark->detail, &detail.len);
	if (!fault_from_detail(detail, &fault))
		abort();
	fault_detail(&fault, &text);
	if (!fault_from_detail((struct str){ text.at, text.len }, &again) ||
	    again.have != fault.have || again.number != fault.number ||
	    strcmp(again.pci, fault.pci) != 0 || strcmp(again.text, fault.text) != 0)
		abort();
	buf_done(&text);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
	static const struct sink_ops ops = { .mark = fuzz_mark };
	OWN(session_freep) struct session *session = session_new();
	OWN(input_closep) struct input *input = input_memory("fuzz", at, len);
	struct sink sink = { .ops = &ops, .session = session };
	struct err err = { 0 };
	uint32_t source = session_source(session, "kernel_log", "fuzz");

	(void)reader_kernel_log.probe((const char *)at, len);
	(void)reader_kernel_log.read(input, &sink, source, &err);
	return 0;
}
