/*
 * flight_block.h - the state of a flight recorder. Internal to store/.
 *
 * flight.c collects and compresses; flight_save.c makes a profile of it.
 *
 * A block is some chunks, as the profile file has them, of integers: one of the
 * times of its snapshots, one for each board, one of processes, one of points
 * of the driver's rings. A row of the latter three begins with the number of
 * its snapshot in the block. Boards have chunks of their own because a column
 * compresses by its change from row to row.
 */
#pragma once

#include "base/buf.h"
#include "base/vec.h"
#include "store/chunk.h"
#include "store/flight.h"

enum {
	BOARDS_MAX = 256,
	LINES_MAX = 128,
	TIME_WIDTH = 4,                   /* UTC, monotonic, generation, groups */
	SAMPLE_WIDTH = METRIC_COUNT + 3,  /* layout_sample */
	BOARD_WIDTH = SAMPLE_WIDTH + 3,   /* snapshot, state, status */
	PROCESS_WIDTH = SAMPLE_WIDTH + 6, /* snapshot, board, pid, kinds, instances */
	POINT_WIDTH = 5,                  /* snapshot, board, metric, UTC, value */
};

struct table {
	VEC(int64_t) cells;
};

/* What makes a section's rows: the boards' sections come last. */
enum section_kind { SECTION_TIMES, SECTION_PROCESSES, SECTION_POINTS, SECTION_BOARD };

struct section {
	enum section_kind kind;
	uint32_t board;
	uint32_t rows;
	size_t at, len; /* in the block's bytes */
};

struct block {
	int64_t first_ns, last_ns; /* monotonic */
	int64_t first_utc_ns, last_utc_ns;
	int64_t snapshots;
	VEC(struct section) sections;
	char *bytes;
	size_t len;
};

struct line {
	int64_t utc_ns;
	enum mark_kind kind;
	char pci_bus[20];
	char text[256];
	char detail[768];
};

struct save {
	struct store *store;
	struct sampler *sampler;
	size_t next, end; /* blocks */
	char why[256];
};

struct flight {
	int64_t span_ns, interval_ns;
	size_t budget;
	VEC(struct block) blocks; /* oldest first */
	size_t bytes;
	int64_t dropped;
	/* the block that is being filled */
	struct table times, processes, points;
	struct table boards[BOARDS_MAX];
	int64_t first_utc_ns, first_ns, last_utc_ns, last_ns;
	uint32_t pending;
	/* everything about the boards but their samples */
	VEC(struct board) known;
	char driver[32], cuda[16], nvml[32], library[256], wrapper[256];
	struct chunk_codec *codec;
	struct buf out;
	int64_t *column;
	struct line *lines; /* a ring */
	uint64_t line_count;
	struct save *save;
};

/* Columns are numbered: their names only live in a block. */
const char *flight_column(size_t column, char name[8]);
/* Compress what is pending. */
void flight_close_block(struct flight *flight);
/* Let go what is over the limits. */
void flight_keep_limits(struct flight *flight);
void save_free(struct save *save);
