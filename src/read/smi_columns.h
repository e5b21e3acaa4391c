/*
 * smi_columns.h - the tables that dmon and pmon print.
 *
 * Lines that begin with '#' name the columns and their units and come again
 * every screenful; the order of columns follows the switches, so only the
 * names count. Cells stand between blanks, or between commas with --format
 * csv. The last column of pmon, the command, may hold blanks and commas.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "read/lines.h"
#include "read/smi_log.h"

enum { SMI_COLUMNS_MAX = 128 };

enum smi_column_kind {
	SMI_COLUMN_UNKNOWN,
	SMI_COLUMN_METRIC,
	SMI_COLUMN_DATE,
	SMI_COLUMN_TIME,
	SMI_COLUMN_GPU,
	SMI_COLUMN_INSTANCE, /* of MIG: the row is about a part of the GPU */
	SMI_COLUMN_PID,
	SMI_COLUMN_TYPE,
	SMI_COLUMN_COMMAND,
};

struct smi_column {
	enum smi_column_kind kind;
	const struct smi_field *field;
	uint32_t name, unit; /* strings */
	int64_t values;      /* cells with a value */
};

/* One row; cells of columns that the header lacks are empty. */
struct smi_row {
	struct str cell[SMI_COLUMNS_MAX];
};

struct smi_columns {
	enum smi_form form;
	struct smi_column at[SMI_COLUMNS_MAX];
	size_t count;
	bool commas;
	size_t header_len; /* of the line with the names, without blanks at its end */
	int64_t rows;      /* since this header */
	/* how the clock of the file works */
	bool has_date, has_time;
	int64_t day_ns; /* added when a time without date passes midnight */
	int64_t last_clock_ns;
};

/* The cell of the only column of this kind; empty if there is none. */
struct str smi_columns_cell(const struct smi_columns *columns, const struct smi_row *row,
			    enum smi_column_kind kind);

/* The device that the row is about: the GPU or a part of it. False: the part is none,
 * and the row is counted as dropped. */
bool smi_columns_device(const struct smi_columns *columns, struct smi_log *log,
			const struct smi_row *row, const struct smi_gpu *gpu, uint32_t *ret_device);

/* GPU of the row; false: "-" or no number. */
bool smi_columns_gpu(const struct smi_columns *columns, const struct smi_row *row,
		     int64_t *ret_index);

/* Source time of the row: of its stamp, else of the present round. */
int64_t smi_columns_time(struct smi_columns *columns, struct smi_log *log,
			 const struct smi_row *row);

/* All metric cells of the row. */
void smi_columns_values(struct smi_columns *columns, struct smi_log *log, const struct smi_row *row,
			struct smi_values *values);

/* Columns that never had a value are told as missing. */
void smi_columns_end(struct smi_columns *columns, struct smi_log *log);

/* Read all lines; `row` is called for each row. */
typedef int smi_row_fn(void *self, const struct smi_row *row, struct err *err);
int smi_columns_read(struct smi_columns *columns, struct smi_log *log, struct input *input,
		     smi_row_fn *row, void *self, struct err *err);

/* For probes: a header line with these two columns is among the first bytes. */
int smi_columns_probe(const char *at, size_t len, bool wants_pid);
