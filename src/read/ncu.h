/*
 * ncu.h - what the layouts of Nsight Compute's exports have in common.
 *
 * Private to the reader of ncu files. A launch is collected value by value and
 * becomes events when it is complete: its kernel key needs values that stand
 * anywhere in it. NVIDIA's metric names and units are kept as they are written;
 * a display name of a section page becomes "Section Name / Metric Name".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/sink.h"
#include "read/csv.h"

struct ncu_value {
	uint32_t name, unit, text;
	double value;
};

struct ncu_rule {
	uint32_t name, detail;
};

struct ncu_launch {
	bool open;
	int64_t id, pid, context, stream, device; /* -1 unknown */
	int64_t cc_major, cc_minor;
	uint32_t kernel, process_name, host;
	int32_t grid[3], block[3];
	VEC(struct ncu_value) values;
	VEC(struct ncu_rule) rules;
};

struct ncu {
	struct sink *sink;
	uint32_t source;
	struct lines lines;
	struct csv csv;
	bool decimal_comma; /* as the locale of the writer wrote numbers */
	struct ncu_launch launch;
	int64_t launches;     /* complete ones */
	struct map described; /* devices whose attributes were taken over */
	char trouble[256];    /* the tool's own last error line */
};

/* A number as ncu prints it: grouped digits, either decimal sign, and, with
 * --print-metric-instances, values of instances in parentheses behind it. */
bool ncu_number(struct str text, bool decimal_comma, double *ret);
/* Three numbers, with whatever stands between: "(256, 1, 1)". */
bool ncu_dims(struct str text, int32_t ret[3]);
/* Whether these first bytes write decimal commas. */
bool ncu_decimal_comma(struct str head);
/* A line of ncu's own log ("==PROF== ..."): errors and warnings become notes. */
bool ncu_log_line(struct ncu *ncu, struct str line);

/* Forget the launch and begin a new one. */
void ncu_launch_begin(struct ncu *ncu);
/* A value; an empty one was not measured and leaves nothing. */
void ncu_launch_value(struct ncu *ncu, uint32_t name, uint32_t unit, struct str value);
/* Advice: `type` "OPT", "INF", ...; empty texts where the file has none. */
void ncu_launch_rule(struct ncu *ncu, struct str name, struct str type, struct str text,
		     struct str speedup_type, struct str speedup);
/* The name of a value of a section page. */
uint32_t ncu_section_name(struct ncu *ncu, struct str section, struct str metric);
/* Events of the launch into the sink; nothing if none is open. */
int ncu_launch_end(struct ncu *ncu, struct err *err);
void ncu_launch_done(struct ncu_launch *launch);

/* The layouts. Each reads to the end of the file. */
int ncu_read_table(struct ncu *ncu, struct err *err);
int ncu_read_report(struct ncu *ncu, struct err *err);

/* The header line of a table. */
bool ncu_table_header(struct str line);
/* The line of a text report that names a launch. */
bool ncu_report_launch(struct str line);
