#include "counter_sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWN(counter_sink_freep) struct counter_sink *sink = counter_sink_new();
	OWN(input_closep) struct input *input = input_memory("fuzz", data, size);
	struct err err = { 0 };

	(void)reader_ncu_csv.probe((const char *)data, size);
	(void)reader_ncu_csv.read(input, &sink->sink,
				  session_source(sink->sink.session, "ncu_csv", "fuzz"), &err);
	return 0;
}
