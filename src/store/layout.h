/*
 * layout.h - which columns each kind of chunk has, and events as rows of them.
 *
 * A row is one int64 a column in the order of layout_columns; doubles keep
 * their bits. The names in STORE_COLUMN_LIST and METRIC_LIST are what the file
 * says, so the order here may change without a new format. Internal to store/.
 */
#pragma once

#include "store/store.h"

enum { LAYOUT_MAX = METRIC_COUNT + 4 };

struct layout {
	const char *name;
	int count;                    /* columns */
	enum store_column column[16]; /* general columns, in row order; not of samples */
	bool sorted;                  /* by start, which is then column 0 */
};

const struct layout *layout_of(enum store_kind kind);
/* Name of column `i` of a kind as the file has it. */
const char *layout_column_name(enum store_kind kind, int i);
/* The column is a double. */
bool layout_is_double(enum store_kind kind, int i);
/* Place of a general column in the rows of a kind; -1: it has none. */
int layout_find(enum store_kind kind, enum store_column column);
bool layout_kind_find(const char *name, enum store_kind *ret_kind);
const char *layout_kind_name(enum store_kind kind);

enum store_kind layout_op_kind(enum op_kind kind);
enum store_kind layout_call_kind(enum call_kind kind);
enum store_kind layout_range_kind(enum range_kind kind);

/* Fill a row. `name` of a kernel that is its key's name is written as 0. */
void layout_op(const struct op *op, uint32_t name, int64_t *row);
void layout_call(const struct call *call, int64_t *row);
void layout_range(const struct range *range, int64_t *row);
void layout_link(const struct link *link, int64_t *row);
void layout_alloc(const struct alloc *alloc, int64_t *row);
void layout_sample(const struct sample *sample, int64_t *row);
void layout_stall(const struct stall *stall, int64_t *row);
void layout_counter(const struct counter *counter, int64_t *row);
void layout_mark(const struct mark *mark, int64_t *row);
