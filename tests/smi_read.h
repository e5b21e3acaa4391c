/*
 * smi_read.h - a text through its reader into a recording sink, for tests.
 */
#pragma once

#include <criterion/criterion.h>

#include "base/buf.h"
#include "read/reader.h"
#include "sink_record.h"

/* Read `text` by the reader that claims it, as one more source. */
static inline int smi_read_bytes(struct record *record, const void *at, size_t len, struct err *err)
{
	const struct reader *reader = reader_probe(at, len);
	OWN(input_closep) struct input *input = input_memory("test", at, len);

	cr_assert_not_null(reader, "no reader claims the text");
	return reader->read(input, &record->sink,
			    session_source(record->sink.session, reader->name, "test"), err);
}

static inline struct record *smi_read(const char *text)
{
	struct record *record = record_new();
	struct err err = { 0 };

	cr_assert_eq(smi_read_bytes(record, text, strlen(text), &err), 0, "%s", err.line);
	return record;
}

static inline const char *smi_reader_of(const char *text)
{
	const struct reader *reader = reader_probe(text, strlen(text));

	return reader ? reader->name : "none";
}

/* The metric of sample `i`; -1 if it is absent. */
static inline double smi_value(const struct record *record, size_t i, enum metric metric)
{
	double value;

	cr_assert_lt(i, record->samples.count);
	return sample_get(&record->samples.at[i], metric, &value) ? value : -1;
}

static inline const struct lane *smi_lane(const struct record *record, size_t i)
{
	return &record->sink.session->lanes.at[record->samples.at[i].lane];
}

static inline int64_t smi_ordinal(const struct record *record, size_t i)
{
	return record->sink.session->devices.at[smi_lane(record, i)->device].ordinal;
}

/* The last value kept under this key; "" if there is none. */
static inline const char *smi_env(const struct record *record, const char *key)
{
	const struct session *session = record->sink.session;
	const char *value = "";

	for (size_t i = 0; i < session->envs.count; i++) {
		if (!strcmp(session_text(session, session->envs.at[i].key), key))
			value = session_text(session, session->envs.at[i].value);
	}
	return value;
}

static inline int64_t smi_loss(const struct record *record, enum loss loss)
{
	const struct session *session = record->sink.session;

	return session->losses.at[session->losses.count - 1].count[loss];
}

static inline bool smi_noted(const struct record *record, const char *part)
{
	const struct session *session = record->sink.session;

	for (size_t i = 0; i < session->notes.count; i++) {
		if (strstr(session_text(session, session->notes.at[i].text), part))
			return true;
	}
	return false;
}

static inline bool smi_misses(const struct record *record, const char *column)
{
	const struct session *session = record->sink.session;

	for (size_t i = 0; i < session->missing_columns.count; i++) {
		if (strstr(session_text(session, session->missing_columns.at[i]), column))
			return true;
	}
	return false;
}
