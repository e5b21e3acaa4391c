/*
 * smi_body.h - the body that the fuzzers of the nvidia-smi readers share: the
 * reader gets the bytes whatever its probe says, and must neither crash nor
 * push an event that does not fit its session.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "read/reader.h"

static int smi_fuzz_sample(struct sink *sink, const struct sample *sample, struct err *err)
{
	const struct session *session = sink->session;

	(void)err;
	if (sample->lane >= session->lanes.count ||
	    session->lanes.at[sample->lane].device >= session->devices.count)
		abort();
	for (int i = 0; i < METRIC_COUNT; i++) {
		double value;

		if (sample_get(sample, (enum metric)i, &value) &&
		    !(value > -1e300 && value < 1e300))
			abort();
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len);

#define SMI_FUZZ(reader)                                                               \
	int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)                      \
	{                                                                              \
		static const struct sink_ops ops = { .sample = smi_fuzz_sample };      \
		OWN(session_freep) struct session *session = session_new();            \
		OWN(input_closep) struct input *input = input_memory("fuzz", at, len); \
		struct sink sink = { .ops = &ops, .session = session };                \
		struct err err = { 0 };                                                \
		uint32_t source = session_source(session, reader.name, "fuzz");        \
                                                                                       \
		(void)reader.probe((const char *)at, len);                             \
		(void)reader.read(input, &sink, source, &err);                         \
		return 0;                                                              \
	}
