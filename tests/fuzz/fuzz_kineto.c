/*
 * fuzz_kineto - any bytes as a trace: no crash, and the learned way and the
 * general way agree on every event.
 */
#include <stdlib.h>

#include "base/io.h"
#include "read/kineto.h"
#include "read/reader.h"
#include "sink_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COMPARE(name)                                                                            \
	if (a->name##s.count != b->name##s.count ||                                              \
	    (a->name##s.count &&                                                                 \
	     memcmp(a->name##s.at, b->name##s.at, a->name##s.count * sizeof(a->name##s.at[0])))) \
		abort();

static int read_one(struct record *record, const uint8_t *data, size_t size, bool learn)
{
	OWN(input_closep) struct input *input = input_memory("fuzz", data, size);
	uint32_t source = session_source(record->sink.session, "kineto", "fuzz");
	struct err err = { 0 };

	return kineto_read(input, &record->sink, source, learn, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWN(record_freep) struct record *a = record_new();
	OWN(record_freep) struct record *b = record_new();

	(void)reader_kineto.probe((const char *)data, size);
	if (read_one(a, data, size, true) != read_one(b, data, size, false))
		abort();
	COMPARE(op)
	COMPARE(call)
	COMPARE(range)
	COMPARE(link)
	COMPARE(alloc)
	COMPARE(mark)
	if (memcmp(a->sink.session->losses.at, b->sink.session->losses.at,
		   sizeof(struct loss_row)) ||
	    intern_count(a->sink.session->strings) != intern_count(b->sink.session->strings))
		abort();
	return 0;
}
