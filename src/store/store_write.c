#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/writer.h"

/*
 * Rows collect in one buffer a lane and kind. A full one becomes a chunk. When
 * all of them together are over the budget, the largest go early. Once a
 * second everything in memory is written as it is, too, as "tail" chunks that
 * the full chunk replaces later: a killed writer loses a second, and a file
 * that was closed well has no small chunks. Writing tails may take a tenth of
 * the time at most, so its interval stretches when much is in memory. The clock is
 * looked at every so many events; where they come slowly, whoever waits for them tells
 * (sink_pause).
 *
 * Packing a chunk takes as long as reading it from a trace: once there is a full
 * one, a thread packs them (pack_ahead.h), and this one inserts what it packed
 * when the next is full.
 *
 * A recording of samples grows by a row a lane and second for an hour: writing
 * all that is in memory each time would cost more than the measuring. Its tails
 * are small ones of just the new rows; when SMALL_TAILS of them stand, they
 * become one with the rows before them.
 */
/* Twice that makes a profile of operators 7 % smaller, and its import 8 % slower, with
 * twice the memory. */
static const size_t DETAIL_BYTES_MAX = 8u << 20;
static const int64_t TAIL_INTERVAL_NS = 1000000000;
/* The first time: an import that is killed at once has left something, too, and not
 * much is in memory that early. */
static const int64_t FIRST_TAIL_NS = 1000000000 / 32;
static const uint32_t CLOCK_EVERY = 4096; /* events between looks at the clock */

static int begin(struct writer *writer, struct err *err)
{
	if (writer->in_transaction)
		return 0;
	writer->in_transaction = true;
	return store_exec(writer->store, "BEGIN", err);
}

/* The texts of the details, by number into the job's. They change no more: a
 * packing thread may look at them while others come. */
static void look_up_details(struct writer *writer, const struct rows *rows, struct pack_job *job)
{
	const struct intern *details = writer->store->session->details;
	size_t known = intern_count(details), width = (size_t)layout_of(rows->kind)->count;
	int detail = layout_find(rows->kind, COL_detail);

	job->texts.count = 0;
	if (detail < 0)
		return;
	if (known > writer->place_room) {
		writer->place_room = known * 2;
		writer->places = mem_resize(writer->places, known * 2 * 4);
	}
	memset(writer->places, 0, known * 4);
	job->text_of = mem_resize(job->text_of, rows->count * sizeof(*job->text_of));
	for (size_t i = 0; i < rows->count; i++) {
		uint64_t id = (uint64_t)rows->at[i * width + (size_t)detail];
		struct str *text;

		if (id >= known)
			id = 0;
		if (id && !writer->places[id]) {
			text = VEC_ADD(&job->texts);
			text->at = intern_get(details, (uint32_t)id, &text->len);
			writer->places[id] = (uint32_t)job->texts.count;
		}
		job->text_of[i] = writer->places[id];
	}
}

static void release_rows(struct writer *writer, struct rows *rows)
{
	writer->bytes -= rows->room * (size_t)layout_of(rows->kind)->count * 8;
	free(rows->at);
	rows->at = NULL;
	rows->count = rows->room = 0;
}

static void fill_job(struct writer *writer, const struct rows *rows, int64_t id,
		     struct pack_job *job)
{
	job->id = id;
	job->kind = rows->kind;
	job->lane = rows->lane;
	job->rows = rows->at;
	job->count = rows->count;
	look_up_details(writer, rows, job);
}

static int insert_chunk(struct writer *writer, const struct pack_job *job, struct err *err)
{
	const struct chunk_head *head = &job->head;
	sqlite3_stmt *insert = writer->insert;
	int ret = begin(writer, err);

	if (ret < 0)
		return ret;
	(void)sqlite3_bind_int64(insert, 1, head->rowid);
	(void)sqlite3_bind_text(insert, 2, layout_kind_name(head->kind), -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(insert, 3, head->lane);
	(void)sqlite3_bind_int64(insert, 4, head->first_ns);
	(void)sqlite3_bind_int64(insert, 5, head->last_ns);
	(void)sqlite3_bind_int64(insert, 6, head->count);
	(void)sqlite3_bind_int64(insert, 7, head->checksum);
	(void)sqlite3_bind_int64(insert, 8, head->bytes);
	/* Of rows that are zero throughout no column is written; a blob of no
	 * bytes is no NULL. */
	(void)sqlite3_bind_blob(insert, 9, job->blob.len ? job->blob.at : "", (int)job->blob.len,
				SQLITE_STATIC);
	return store_step_done(writer->store, insert, err);
}

/* The rows as the chunk with this id; they stay. */
static int pack_rows(struct writer *writer, const struct rows *rows, int64_t id, struct err *err)
{
	fill_job(writer, rows, id, &writer->job);
	pack(writer->packer, &writer->job);
	return insert_chunk(writer, &writer->job, err);
}

/* One chunk that the thread has packed: 1; 0: there is none. */
static int take_packed(struct writer *writer, bool wait, struct err *err)
{
	const struct pack_job *job = pack_ahead_take(writer->ahead, wait);
	int ret = job && job->count ? insert_chunk(writer, job, err) : 0;

	return ret < 0 ? ret : job != NULL;
}

/* All of them. */
static int drain(struct writer *writer, struct err *err)
{
	int ret = 1;

	while (writer->ahead && ret > 0)
		ret = take_packed(writer, true, err);
	return ret < 0 ? ret : 0;
}

int writer_commit(struct writer *writer, struct err *err)
{
	int ret = drain(writer, err);

	if (ret >= 0)
		ret = begin(writer, err);
	if (ret >= 0)
		ret = tables_save(writer->store, &writer->saved, err);
	if (ret >= 0)
		ret = store_exec(writer->store, "COMMIT", err);
	writer->in_transaction = false;
	return ret;
}

/* What is packed meanwhile is inserted first: chunks lie in the file as they
 * were filled. */
static int wait_room(struct writer *writer, size_t bytes, struct pack_job **ret_job,
		     struct err *err)
{
	int ret = 1;

	while (ret > 0)
		ret = take_packed(writer, false, err);
	while (ret >= 0 && !(*ret_job = pack_ahead_room(writer->ahead, bytes)))
		ret = take_packed(writer, true, err);
	return ret < 0 ? ret : 0;
}

/* The rows to the thread, with their memory. */
static int give_rows(struct writer *writer, struct rows *rows, int64_t id, struct err *err)
{
	size_t bytes = rows->room * (size_t)layout_of(rows->kind)->count * 8;
	struct pack_job *job;
	int ret = wait_room(writer, bytes, &job, err);

	if (ret < 0)
		return ret;
	fill_job(writer, rows, id, job);
	pack_ahead_give(writer->ahead, bytes);
	rows->at = NULL;
	release_rows(writer, rows);
	return 0;
}

/* Just what the file has not yet. */
static int write_small_tail(struct writer *writer, struct rows *rows, struct err *err)
{
	size_t width = (size_t)layout_of(rows->kind)->count;
	struct rows added = *rows;
	int64_t id = writer->next_rowid++;

	added.at += rows->written * width;
	added.count -= rows->written;
	rows->small[rows->small_count++] = id;
	rows->written = rows->count;
	rows->dirty = false;
	return pack_rows(writer, &added, id, err);
}

static int remove_small_tails(struct writer *writer, struct rows *rows, struct err *err)
{
	int ret = 0;

	for (int i = 0; ret >= 0 && i < rows->small_count; i++) {
		(void)sqlite3_bind_int64(writer->remove, 1, rows->small[i]);
		ret = store_step_done(writer->store, writer->remove, err);
	}
	rows->small_count = 0;
	return ret;
}

/* A full chunk is the first sign that there is much to come. */
static void start_thread(struct writer *writer, const struct rows *rows)
{
	if (writer->ahead_tried || writer->recording || rows->count < writer->rows_max)
		return;
	writer->ahead_tried = true;
	writer->ahead = pack_ahead_start(writer->rows_max);
}

static int write_tail(struct writer *writer, struct rows *rows, struct err *err)
{
	int ret;

	if (writer->recording && rows->small_count < SMALL_TAILS)
		return write_small_tail(writer, rows, err);
	if (!rows->tail)
		rows->tail = writer->next_rowid++;
	ret = pack_rows(writer, rows, rows->tail, err);
	if (ret >= 0)
		ret = remove_small_tails(writer, rows, err);
	rows->dirty = false;
	rows->written = rows->count;
	return ret;
}

/* Write the rows as a chunk, in place of their tails if there are some. */
static int write_chunk(struct writer *writer, struct rows *rows, struct err *err)
{
	bool full = rows->count == writer->rows_max;
	int64_t id = rows->tail;
	int ret;

	if (!rows->count) {
		release_rows(writer, rows);
		return 0;
	}
	start_thread(writer, rows);
	if (!id)
		id = writer->next_rowid++;
	if (writer->ahead)
		ret = give_rows(writer, rows, id, err);
	else
		ret = pack_rows(writer, rows, id, err);
	if (ret >= 0)
		ret = remove_small_tails(writer, rows, err);
	if (ret < 0)
		return ret;
	rows->dirty = false;
	rows->tail = 0;
	rows->written = 0;
	/* A lane that filled a chunk will fill the next: it keeps its memory. */
	rows->full = full;
	if (full && !writer->ahead && writer->bytes <= writer->budget_bytes)
		rows->count = 0;
	else
		release_rows(writer, rows);
	return 0;
}

/* Once nothing in memory refers to them, the details can go. */
int writer_write_all(struct writer *writer, struct err *err)
{
	struct session *session = writer->store->session;
	size_t texts = intern_count(session->details);
	struct pack_job *job;
	int ret = 0;

	for (size_t i = 0; ret >= 0 && i < writer->rows.count; i++)
		ret = write_chunk(writer, &writer->rows.at[i], err);
	if (ret >= 0 && writer->ahead)
		ret = wait_room(writer, 0, &job, err);
	if (ret < 0)
		return ret;
	if (writer->ahead)
		pack_ahead_give_texts(writer->ahead, session->details);
	else
		intern_free(session->details);
	/* The next ones will be as many. */
	session->details = intern_new_for(texts);
	session->details_generation++;
	return 0;
}

static int write_largest(struct writer *writer, struct err *err)
{
	size_t largest = 0;
	size_t size = 0;

	for (size_t i = 0; i < writer->rows.count; i++) {
		const struct rows *rows = &writer->rows.at[i];
		size_t bytes = rows->room * (size_t)layout_of(rows->kind)->count;

		if (bytes > size) {
			size = bytes;
			largest = i;
		}
	}
	return size ? write_chunk(writer, &writer->rows.at[largest], err) : 0;
}

int writer_write_tails(struct writer *writer, struct err *err)
{
	int64_t start_ns = clock_steady_ns();
	int64_t took_ns;
	int ret = 0;

	for (size_t i = 0; ret >= 0 && i < writer->rows.count; i++) {
		if (writer->rows.at[i].dirty && writer->rows.at[i].count)
			ret = write_tail(writer, &writer->rows.at[i], err);
	}
	if (ret >= 0)
		ret = writer_commit(writer, err);
	writer->unsaved = false;
	took_ns = clock_steady_ns() - start_ns;
	writer->next_tail_ns =
		start_ns + (took_ns * 10 > TAIL_INTERVAL_NS ? took_ns * 10 : TAIL_INTERVAL_NS);
	return ret;
}

static struct rows *rows_of_lane(struct writer *writer, uint32_t lane, enum store_kind kind)
{
	size_t slot = (size_t)lane * STORE_KIND_COUNT + kind;

	while (writer->by_lane.count <= slot)
		(void)VEC_ADD(&writer->by_lane);
	if (!writer->by_lane.at[slot]) {
		struct rows *rows = VEC_ADD(&writer->rows);

		rows->lane = lane;
		rows->kind = kind;
		writer->by_lane.at[slot] = (uint32_t)writer->rows.count;
	}
	return &writer->rows.at[writer->by_lane.at[slot] - 1];
}

/* After each event: write what is full, too much, or due. */
static int settle_up(struct writer *writer, struct rows *rows, struct err *err)
{
	int ret = 0;

	if (rows->count == writer->rows_max)
		ret = write_chunk(writer, rows, err);
	while (ret >= 0 && writer->bytes > writer->budget_bytes)
		ret = write_largest(writer, err);
	if (ret >= 0 && intern_bytes(writer->store->session->details) > DETAIL_BYTES_MAX)
		ret = writer_write_all(writer, err);
	if (ret >= 0 && !--writer->events_to_clock) {
		writer->events_to_clock = CLOCK_EVERY;
		if (clock_steady_ns() >= writer->next_tail_ns)
			ret = writer_write_tails(writer, err);
	}
	return ret;
}

/* Room for a row of this lane and kind. */
static int64_t *new_row(struct writer *writer, struct rows *rows)
{
	size_t width = (size_t)layout_of(rows->kind)->count;

	if (rows->count == rows->room) {
		size_t room = rows->room ? rows->room * 8 : writer->recording ? 8 : 64;

		/* Room that stands empty would count against the budget, and many lanes
		 * make small chunks as it is. */
		if (writer->recording && rows->room >= 64)
			room = rows->room + 64;
		if (room > writer->rows_max ||
		    (rows->full && writer->bytes < writer->budget_bytes / 2))
			room = writer->rows_max;
		writer->bytes += (room - rows->room) * width * 8;
		rows->at = mem_resize(rows->at, room * width * 8);
		rows->room = room;
	}
	rows->dirty = true;
	writer->unsaved = true;
	return rows->at + rows->count++ * width;
}

static void see_time(struct writer *writer, uint32_t lane, int64_t start_ns, int64_t end_ns)
{
	struct session *session = writer->store->session;
	struct source *source = &session->sources.at[session->lanes.at[lane].source];

	/* Such a lane counts launches, which is no time. */
	if (session->lanes.at[lane].kind == LANE_LAUNCHES)
		return;
	source->first_ns = start_ns < source->first_ns ? start_ns : source->first_ns;
	source->last_ns = end_ns > source->last_ns ? end_ns : source->last_ns;
}

#define WRITER(sink) ((struct writer *)(void *)(sink))

static int write_op(struct sink *sink, const struct op *op, struct err *err)
{
	struct writer *writer = WRITER(sink);
	struct rows *rows = rows_of_lane(writer, op->lane, layout_op_kind(op->kind));
	const struct session *session = sink->session;
	bool same = op->kind == OP_KERNEL && op->key < session->keys.count &&
		    session->keys.at[op->key].name == op->name;

	see_time(writer, op->lane, op->start_ns, op->end_ns);
	layout_op(op, same ? 0 : op->name, new_row(writer, rows));
	return settle_up(writer, rows, err);
}

static int write_call(struct sink *sink, const struct call *call, struct err *err)
{
	struct writer *writer = WRITER(sink);
	struct rows *rows = rows_of_lane(writer, call->lane, layout_call_kind(call->kind));

	see_time(writer, call->lane, call->start_ns, call->end_ns);
	layout_call(call, new_row(writer, rows));
	return settle_up(writer, rows, err);
}

static int write_range(struct sink *sink, const struct range *range, struct err *err)
{
	struct writer *writer = WRITER(sink);
	struct rows *rows = rows_of_lane(writer, range->lane, layout_range_kind(range->kind));

	see_time(writer, range->lane, range->start_ns, range->end_ns);
	layout_range(range, new_row(writer, rows));
	return settle_up(writer, rows, err);
}

/* The kinds that are an instant. */
#define WRITE_INSTANT(type)                                                                   \
	static int write_##type(struct sink *sink, const struct type *event, struct err *err) \
	{                                                                                     \
		struct writer *writer = WRITER(sink);                                         \
		struct rows *rows = rows_of_lane(writer, event->lane, STORE_##type);          \
                                                                                              \
		see_time(writer, event->lane, event->time_ns, event->time_ns);                \
		layout_##type(event, new_row(writer, rows));                                  \
		return settle_up(writer, rows, err);                                          \
	}
WRITE_INSTANT(link)
WRITE_INSTANT(alloc)
WRITE_INSTANT(stall)
WRITE_INSTANT(mark)

/* No sensor is this fine, and bits below it are noise that does not compress. */
static const double RECORDED_STEPS = 64;

static int write_sample(struct sink *sink, const struct sample *sample, struct err *err)
{
	struct writer *writer = WRITER(sink);
	struct rows *rows = rows_of_lane(writer, sample->lane, STORE_sample);
	struct sample rounded;

	see_time(writer, sample->lane, sample->time_ns, sample->time_ns);
	if (writer->recording) {
		rounded = *sample;
		for (int m = 0; m < METRIC_COUNT; m++)
			rounded.value[m] = rint(sample->value[m] * RECORDED_STEPS) / RECORDED_STEPS;
		sample = &rounded;
	}
	layout_sample(sample, new_row(writer, rows));
	return settle_up(writer, rows, err);
}

static int write_counter(struct sink *sink, const struct counter *counter, struct err *err)
{
	struct writer *writer = WRITER(sink);
	struct rows *rows = rows_of_lane(writer, counter->lane, STORE_counter);

	layout_counter(counter, new_row(writer, rows));
	return settle_up(writer, rows, err);
}

static int write_pause(struct sink *sink, int64_t *ret_again_ns, struct err *err)
{
	struct writer *writer = WRITER(sink);

	if (!writer->unsaved)
		return 0;
	if (clock_steady_ns() >= writer->next_tail_ns)
		return writer_write_tails(writer, err);
	*ret_again_ns = writer->next_tail_ns;
	return 0;
}

const struct sink_ops writer_ops = {
#define X(name) .name = write_##name,
	SINK_LIST(X)
#undef X
		.pause = write_pause,
};

void writer_start(struct writer *writer)
{
	writer->events_to_clock = CLOCK_EVERY;
	/* A recording's caller flushes by its own clock. */
	writer->next_tail_ns =
		clock_steady_ns() + (writer->recording ? TAIL_INTERVAL_NS : FIRST_TAIL_NS);
}
