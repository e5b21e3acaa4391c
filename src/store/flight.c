#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/flight_block.h"
#include "store/layout.h"

enum { BLOCK_SNAPSHOTS = 128 };

/* A block is closed early at this: a thousand processes make long ones. */
static const size_t PENDING_BYTES = 1u << 20;
static const int64_t SPAN_NS = 600 * 1000000000LL;
static const size_t BUDGET_BYTES = 6u << 20;

struct flight *flight_new(const struct flight_opts *opts)
{
	struct flight *flight = mem_zero(sizeof(*flight));

	flight->span_ns = opts->span_ns ? opts->span_ns : SPAN_NS;
	flight->budget = opts->budget_bytes ? opts->budget_bytes : BUDGET_BYTES;
	flight->interval_ns = opts->interval_ns;
	flight->codec = chunk_codec_new();
	flight->column = mem_alloc(CHUNK_ROWS_MAX * sizeof(*flight->column));
	flight->lines = mem_zero(LINES_MAX * sizeof(*flight->lines));
	return flight;
}

static void block_done(struct block *block)
{
	VEC_DONE(&block->sections);
	free(block->bytes);
}

void flight_free(struct flight *flight)
{
	if (!flight)
		return;
	save_free(flight->save);
	for (size_t i = 0; i < flight->blocks.count; i++)
		block_done(&flight->blocks.at[i]);
	VEC_DONE(&flight->blocks);
	VEC_DONE(&flight->times.cells);
	VEC_DONE(&flight->processes.cells);
	VEC_DONE(&flight->points.cells);
	for (size_t i = 0; i < BOARDS_MAX; i++)
		VEC_DONE(&flight->boards[i].cells);
	VEC_DONE(&flight->known);
	chunk_codec_free(flight->codec);
	buf_done(&flight->out);
	free(flight->column);
	free(flight->lines);
	free(flight);
}

static int64_t *new_row(struct table *table, size_t width)
{
	VEC_ROOM(&table->cells, table->cells.count + width);
	table->cells.count += width;
	return table->cells.at + table->cells.count - width;
}

const char *flight_column(size_t column, char name[8])
{
	(void)snprintf(name, 8, "%zu", column);
	return name;
}

static bool is_double(enum section_kind kind, size_t column)
{
	switch (kind) {
	case SECTION_BOARD:
		return column >= BOARD_WIDTH - METRIC_COUNT;
	case SECTION_PROCESSES:
		return column >= PROCESS_WIDTH - METRIC_COUNT;
	case SECTION_POINTS:
		return column == POINT_WIDTH - 1;
	default:
		return false;
	}
}

static void close_section(struct flight *flight, struct block *block, struct table *table,
			  enum section_kind kind, uint32_t board, size_t width)
{
	size_t rows = table->cells.count / width;
	struct section *section;
	char name[8];

	if (!rows)
		return;
	section = VEC_ADD(&block->sections);
	*section = (struct section){ kind, board, (uint32_t)rows, flight->out.len, 0 };
	for (size_t c = 0; c < width; c++) {
		for (size_t i = 0; i < rows; i++)
			flight->column[i] = table->cells.at[i * width + c];
		chunk_put(flight->codec, &flight->out, flight_column(c, name), flight->column, rows,
			  is_double(kind, c));
	}
	section->len = flight->out.len - section->at;
	table->cells.count = 0;
}

static void drop_oldest(struct flight *flight)
{
	flight->bytes -= flight->blocks.at[0].len;
	block_done(&flight->blocks.at[0]);
	flight->blocks.count--;
	memmove(flight->blocks.at, flight->blocks.at + 1,
		flight->blocks.count * sizeof(*flight->blocks.at));
}

/* A save under way reads the blocks: they stay until it is done. */
void flight_keep_limits(struct flight *flight)
{
	while (!flight->save && flight->blocks.count) {
		const struct block *oldest = &flight->blocks.at[0];

		if (oldest->last_ns >= flight->last_ns - flight->span_ns &&
		    flight->bytes <= flight->budget)
			break;
		if (oldest->last_ns >= flight->last_ns - flight->span_ns)
			flight->dropped += oldest->snapshots;
		drop_oldest(flight);
	}
}

void flight_close_block(struct flight *flight)
{
	struct block *block;

	if (!flight->pending)
		return;
	block = VEC_ADD(&flight->blocks);
	block->snapshots = flight->pending;
	block->first_ns = flight->first_ns;
	block->last_ns = flight->last_ns;
	block->first_utc_ns = flight->first_utc_ns;
	block->last_utc_ns = flight->last_utc_ns;
	buf_clear(&flight->out);
	close_section(flight, block, &flight->times, SECTION_TIMES, 0, TIME_WIDTH);
	close_section(flight, block, &flight->processes, SECTION_PROCESSES, 0, PROCESS_WIDTH);
	close_section(flight, block, &flight->points, SECTION_POINTS, 0, POINT_WIDTH);
	for (uint32_t i = 0; i < flight->known.count; i++)
		close_section(flight, block, &flight->boards[i], SECTION_BOARD, i, BOARD_WIDTH);
	block->len = flight->out.len;
	block->bytes = mem_copy(flight->out.at, flight->out.len);
	flight->bytes += block->len;
	flight->pending = 0;
	flight_keep_limits(flight);
}

static bool same_board(const struct board *a, const struct board *b)
{
	if (a->uuid[0] || b->uuid[0])
		return !strcmp(a->uuid, b->uuid);
	return a->index == b->index && a->parent == b->parent && !strcmp(a->pci_bus, b->pci_bus);
}

/* Place of the board in `known`, with what is known of it now; BOARDS_MAX:
 * there are too many. */
static uint32_t know_board(struct flight *flight, const struct snapshot *snapshot, size_t place)
{
	const struct board *board = &snapshot->boards.at[place];
	size_t i = place;

	if (i >= flight->known.count || !same_board(&flight->known.at[i], board))
		for (i = 0; i < flight->known.count; i++)
			if (same_board(&flight->known.at[i], board))
				break;
	if (i == BOARDS_MAX)
		return BOARDS_MAX;
	if (i == flight->known.count)
		(void)VEC_ADD(&flight->known);
	flight->known.at[i] = *board;
	if (board->parent >= 0 && (size_t)board->parent < place)
		flight->known.at[i].parent =
			(int32_t)know_board(flight, snapshot, (size_t)board->parent);
	return (uint32_t)i;
}

static void add_rows(struct flight *flight, const struct snapshot *snapshot)
{
	uint32_t place[BOARDS_MAX];
	int64_t number = flight->pending;

	for (size_t i = 0; i < snapshot->boards.count && i < BOARDS_MAX; i++) {
		const struct board *board = &snapshot->boards.at[i];
		int64_t *row;

		place[i] = know_board(flight, snapshot, i);
		if (place[i] == BOARDS_MAX)
			continue;
		row = new_row(&flight->boards[place[i]], BOARD_WIDTH);
		row[0] = number;
		row[1] = board->state;
		row[2] = board->status;
		layout_sample(&board->sample, row + 3);
	}
	for (size_t i = 0; i < snapshot->processes.count; i++) {
		const struct board_process *process = &snapshot->processes.at[i];
		int64_t *row;

		if (process->board >= snapshot->boards.count || process->board >= BOARDS_MAX ||
		    place[process->board] == BOARDS_MAX)
			continue;
		row = new_row(&flight->processes, PROCESS_WIDTH);
		row[0] = number;
		row[1] = place[process->board];
		row[2] = process->pid;
		row[3] = process->kinds;
		row[4] = process->gpu_instance;
		row[5] = process->compute_instance;
		layout_sample(&process->sample, row + 6);
	}
	for (size_t i = 0; i < snapshot->points.count; i++) {
		const struct ring_point *point = &snapshot->points.at[i];
		int64_t *row;

		if (point->board >= snapshot->boards.count || point->board >= BOARDS_MAX ||
		    place[point->board] == BOARDS_MAX)
			continue;
		row = new_row(&flight->points, POINT_WIDTH);
		row[0] = number;
		row[1] = place[point->board];
		row[2] = point->metric;
		row[3] = point->utc_ns;
		memcpy(&row[4], &point->value, sizeof(row[4]));
	}
}

static size_t pending_bytes(const struct flight *flight)
{
	size_t cells = flight->processes.cells.count + flight->points.cells.count;

	for (size_t i = 0; i < flight->known.count; i++)
		cells += flight->boards[i].cells.count;
	return cells * sizeof(int64_t);
}

void flight_add(struct flight *flight, const struct snapshot *snapshot)
{
	int64_t *row = new_row(&flight->times, TIME_WIDTH);

	row[0] = snapshot->utc_ns;
	row[1] = snapshot->monotonic_ns;
	row[2] = snapshot->generation;
	row[3] = snapshot->groups;
	if (!flight->pending) {
		flight->first_utc_ns = snapshot->utc_ns;
		flight->first_ns = snapshot->monotonic_ns;
	}
	flight->last_utc_ns = snapshot->utc_ns;
	flight->last_ns = snapshot->monotonic_ns;
	memcpy(flight->driver, snapshot->driver, sizeof(flight->driver));
	memcpy(flight->cuda, snapshot->cuda, sizeof(flight->cuda));
	memcpy(flight->nvml, snapshot->nvml, sizeof(flight->nvml));
	memcpy(flight->library, snapshot->library, sizeof(flight->library));
	memcpy(flight->wrapper, snapshot->wrapper, sizeof(flight->wrapper));
	add_rows(flight, snapshot);
	flight->pending++;
	if (flight->pending == BLOCK_SNAPSHOTS || pending_bytes(flight) >= PENDING_BYTES)
		flight_close_block(flight);
}

void flight_line(struct flight *flight, int64_t utc_ns, enum mark_kind kind, const char *pci_bus,
		 const char *text, const char *detail)
{
	struct line *line = &flight->lines[flight->line_count++ % LINES_MAX];

	line->utc_ns = utc_ns;
	line->kind = kind;
	(void)snprintf(line->pci_bus, sizeof(line->pci_bus), "%s", pci_bus);
	(void)snprintf(line->text, sizeof(line->text), "%s", text);
	(void)snprintf(line->detail, sizeof(line->detail), "%s", detail);
}

struct flight_state flight_state(const struct flight *flight)
{
	struct flight_state state = { .bytes = flight->bytes,
				      .dropped = flight->dropped,
				      .snapshots = flight->pending,
				      .first_utc_ns = flight->first_utc_ns,
				      .last_utc_ns = flight->last_utc_ns };

	for (size_t i = 0; i < flight->blocks.count; i++)
		state.snapshots += flight->blocks.at[i].snapshots;
	if (flight->blocks.count)
		state.first_utc_ns = flight->blocks.at[0].first_utc_ns;
	return state;
}
