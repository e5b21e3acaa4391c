#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "collect/sampler.h"
#include "model/note.h"
#include "store/flight_block.h"
#include "store/store.h"

void save_free(struct save *save)
{
	if (!save)
		return;
	sampler_free(save->sampler);
	store_discard(save->store);
	free(save);
}

bool flight_saving(const struct flight *flight)
{
	return flight->save != NULL;
}

int flight_save(struct flight *flight, const char *path, const char *why, struct err *err)
{
	struct save *save;

	if (flight->save)
		return err_set(err, ERR_BUSY, "a flight record is being saved");
	save = mem_zero(sizeof(*save));
	if (store_create_recording(path, &save->store, err) < 0) {
		save_free(save);
		return err->code;
	}
	(void)snprintf(save->why, sizeof(save->why), "%s", why);
	save->sampler = sampler_new(store_sink(save->store), flight->interval_ns);
	flight_close_block(flight);
	save->end = flight->blocks.count;
	flight->save = save;
	return 0;
}

/* The rows of a section; NULL: damaged, which can't be but for a bug. */
static int64_t *open_section(struct flight *flight, const struct block *block,
			     const struct section *section, size_t width)
{
	struct str chunk = { block->bytes + section->at, section->len };
	int64_t *cells = mem_alloc(section->rows * width * sizeof(*cells));
	char name[8];

	for (size_t c = 0; c < width; c++) {
		if (chunk_get(flight->codec, chunk, flight_column(c, name), section->rows,
			      flight->column) < 0) {
			free(cells);
			return NULL;
		}
		for (size_t i = 0; i < section->rows; i++)
			cells[i * width + c] = flight->column[i];
	}
	return cells;
}

static void read_sample(const int64_t *row, struct sample *ret)
{
	*ret = (struct sample){ .time_ns = row[0] };
	ret->have[0] = (uint64_t)row[1];
	ret->have[1] = (uint64_t)row[2];
	memcpy(ret->value, row + 3, sizeof(ret->value));
}

/* A section of a block on its way back into snapshots. */
struct reading {
	const struct section *section;
	int64_t *cells;
	size_t width, next;
};

static const size_t WIDTH[] = {
	[SECTION_TIMES] = TIME_WIDTH,
	[SECTION_PROCESSES] = PROCESS_WIDTH,
	[SECTION_POINTS] = POINT_WIDTH,
	[SECTION_BOARD] = BOARD_WIDTH,
};

static void read_row(const struct section *section, const int64_t *row, struct snapshot *ret)
{
	if (section->kind == SECTION_BOARD) {
		struct board *board = &ret->boards.at[section->board];

		board->state = (enum board_state)row[1];
		board->status = (int32_t)row[2];
		read_sample(row + 3, &board->sample);
	} else if (section->kind == SECTION_PROCESSES) {
		struct board_process *process = VEC_ADD(&ret->processes);

		process->board = (uint32_t)row[1];
		process->pid = row[2];
		process->kinds = (uint32_t)row[3];
		process->gpu_instance = (int32_t)row[4];
		process->compute_instance = (int32_t)row[5];
		read_sample(row + 6, &process->sample);
	} else if (section->kind == SECTION_POINTS) {
		struct ring_point *point = VEC_ADD(&ret->points);

		point->board = (uint32_t)row[1];
		point->metric = (uint32_t)row[2];
		point->utc_ns = row[3];
		memcpy(&point->value, &row[4], sizeof(point->value));
	}
}

/* All boards that were ever seen, without values; those of this snapshot get
 * theirs from their rows. */
static void begin_snapshot(const struct flight *flight, const int64_t *times, struct snapshot *ret)
{
	ret->utc_ns = times[0];
	ret->monotonic_ns = times[1];
	ret->generation = (uint32_t)times[2];
	ret->groups = (uint32_t)times[3];
	memcpy(ret->driver, flight->driver, sizeof(ret->driver));
	memcpy(ret->cuda, flight->cuda, sizeof(ret->cuda));
	memcpy(ret->nvml, flight->nvml, sizeof(ret->nvml));
	memcpy(ret->library, flight->library, sizeof(ret->library));
	memcpy(ret->wrapper, flight->wrapper, sizeof(ret->wrapper));
	ret->processes.count = 0;
	ret->points.count = 0;
	ret->boards.count = 0;
	for (size_t i = 0; i < flight->known.count; i++) {
		struct board *board = VEC_ADD(&ret->boards);

		*board = flight->known.at[i];
		board->sample = (struct sample){ .time_ns = ret->utc_ns };
		board->state = BOARD_GONE;
	}
}

static int push_block(struct flight *flight, const struct block *block, struct err *err)
{
	VEC(struct reading) readings = { 0 };
	struct snapshot snapshot = { 0 };
	int64_t *times = NULL;
	int ret = 0;

	for (size_t i = 0; i < block->sections.count; i++) {
		const struct section *section = &block->sections.at[i];
		struct reading *reading = VEC_ADD(&readings);

		*reading = (struct reading){ section, NULL, WIDTH[section->kind], 0 };
		reading->cells = open_section(flight, block, section, reading->width);
		if (section->kind == SECTION_TIMES)
			times = reading->cells;
	}
	for (int64_t n = 0; times && ret >= 0 && n < block->snapshots; n++) {
		begin_snapshot(flight, times + n * TIME_WIDTH, &snapshot);
		for (size_t i = 0; i < readings.count; i++) {
			struct reading *at = &readings.at[i];

			while (at->section->kind != SECTION_TIMES && at->next < at->section->rows &&
			       at->cells[at->next * at->width] == n)
				read_row(at->section, at->cells + at->next++ * at->width,
					 &snapshot);
		}
		ret = sampler_push(flight->save->sampler, &snapshot, err);
	}
	for (size_t i = 0; i < readings.count; i++)
		free(readings.at[i].cells);
	VEC_DONE(&readings);
	snapshot_done(&snapshot);
	return ret;
}

/* A lane for what is of no card. */
static uint32_t machine_lane(struct session *session, uint32_t source)
{
	struct lane lane = { .kind = LANE_OTHER,
			     .source = source,
			     .device = SESSION_NONE,
			     .process = SESSION_NONE,
			     .context = -1,
			     .stream = -1,
			     .tid = -1 };

	return session_lane(session, &lane);
}

static int push_lines(struct flight *flight, struct err *err)
{
	struct sink *sink = store_sink(flight->save->store);
	uint32_t source = sampler_source(flight->save->sampler);
	int64_t oldest_ns = flight->blocks.count ? flight->blocks.at[0].first_utc_ns : 0;
	uint64_t first = flight->line_count > LINES_MAX ? flight->line_count - LINES_MAX : 0;
	int ret = 0;

	for (uint64_t i = first; ret >= 0 && i < flight->line_count; i++) {
		const struct line *line = &flight->lines[i % LINES_MAX];
		struct mark mark = { .kind = line->kind, .time_ns = line->utc_ns };

		if (line->utc_ns < oldest_ns)
			continue;
		mark.lane = *line->pci_bus ? sampler_lane(flight->save->sampler, line->pci_bus)
					   : SESSION_NONE;
		if (mark.lane == SESSION_NONE)
			mark.lane = machine_lane(sink->session, source);
		mark.name = session_string(sink->session, line->text, strlen(line->text));
		mark.detail = session_detail(sink->session, line->detail, strlen(line->detail));
		ret = sink_mark(sink, &mark, err);
	}
	return ret;
}

static int finish(struct flight *flight, flight_describe *describe, void *arg, struct err *err)
{
	struct save *save = flight->save;
	struct session *session = store_session(save->store);
	uint32_t source = sampler_source(save->sampler);
	int ret = push_lines(flight, err);

	session_note(session, source, NOTE_FLIGHT, save->why);
	if (describe)
		describe(arg, session);
	if (ret >= 0)
		ret = store_finish(save->store, err);
	return ret;
}

int flight_save_step(struct flight *flight, flight_describe *describe, void *arg, struct err *err)
{
	struct save *save = flight->save;
	bool last;
	int ret;

	if (!save)
		return 0;
	last = save->next == save->end;
	if (last)
		ret = finish(flight, describe, arg, err);
	else
		ret = push_block(flight, &flight->blocks.at[save->next++], err);
	if (ret >= 0 && !last)
		return 1;
	save_free(save);
	flight->save = NULL;
	flight_keep_limits(flight);
	return ret < 0 ? ret : 0;
}
