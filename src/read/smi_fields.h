/*
 * smi_fields.h - what the fields of nvidia-smi are called and what they mean.
 *
 * One table for all its output forms: columns of dmon and pmon, names of
 * --query-gpu and --query-compute-apps, paths of -q, paths of -q -x. A row
 * says which metric the field is, in which unit when the text names none, and
 * how sure it is against other fields that give the same metric. To add a
 * field: a line in smi_fields.c.
 *
 * Source of names: output of drivers 384 to 610; nvidia-smi(1).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "model/metric.h"

enum smi_form { SMI_DMON, SMI_PMON, SMI_QUERY, SMI_Q, SMI_XML, SMI_APPS };

struct smi_field {
	const char *name;
	enum metric metric;
	const char *unit; /* when neither the text nor a header names one */
	uint8_t rank;     /* 0 is preferred where several give the metric */
	bool add;         /* the metric is the sum of all such fields */
	uint32_t reason;  /* a clock event reason: the bit it stands for */
};

/* NULL: no metric of ours. Letter case counts only in XML. */
const struct smi_field *smi_field_find(enum smi_form form, struct str name);

/* The text is no value: in words why, "N/A" for the plain forms of it. NULL:
 * it may be a value. Every bracketed text is missing, whatever it says. */
const char *smi_missing(struct str text);

/* The number in `text`, in the metric's unit. `unit` is what a header says, or
 * empty. false: it is no such number. */
bool smi_number(const struct smi_field *field, struct str text, struct str unit, double *ret_value);

/* A sample being filled from several fields. */
struct smi_values {
	struct sample sample;
	uint8_t rank[METRIC_COUNT];
	bool partial[METRIC_COUNT]; /* an addend is unknown, so the sum is */
	uint32_t reasons, reasons_known;
};

enum smi_put { SMI_PUT_VALUE, SMI_PUT_MISSING, SMI_PUT_MALFORMED };

/* Put the field's text into the sample. *ret_why: for SMI_PUT_MISSING. */
enum smi_put smi_values_put(struct smi_values *values, const struct smi_field *field,
			    struct str text, struct str unit, const char **ret_why);
/* After the last put: sums and clock event reasons. */
void smi_values_end(struct smi_values *values);

/* "00000000:0C:00.0" as "0000:0c:00.0"; false if it is no bus id. */
bool smi_bus(struct str text, char ret_bus[32]);
