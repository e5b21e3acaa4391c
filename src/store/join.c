#include "store/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/note.h"

struct joined {
	uint32_t label;  /* string: the machine */
	uint32_t source; /* in the sink's session */
	int64_t last_ns; /* of its events, UTC */
};

struct join {
	struct sink *sink;
	int64_t from_ns;
	VEC(struct joined) joined;
	struct map envs; /* those told, by device, key and value */
	/* of the file that is being added: ids of its session to ours */
	VEC(uint32_t) lanes;
	const struct session *from;
	uint32_t source;
};

struct join *join_new(struct sink *sink, int64_t from_ns)
{
	struct join *join = mem_zero(sizeof(*join));

	join->sink = sink;
	join->from_ns = from_ns;
	return join;
}

void join_free(struct join *join)
{
	if (!join)
		return;
	VEC_DONE(&join->joined);
	VEC_DONE(&join->lanes);
	map_done(&join->envs);
	free(join);
}

static uint32_t text(const struct join *join, uint32_t id)
{
	size_t len;
	const char *at = intern_get(join->from->strings, id, &len);

	return session_string(join->sink->session, at, len);
}

/* The source that this file goes on with. Its events begin at first_ns. */
static struct joined *goes_on(struct join *join, const struct source *row, int64_t first_ns)
{
	uint32_t label = text(join, row->file);
	struct session *session = join->sink->session;
	const char *name = session_text(session, label);
	struct joined *joined;

	for (size_t i = join->joined.count; i--;) {
		joined = &join->joined.at[i];
		if (joined->label == label && joined->last_ns <= first_ns)
			return joined;
	}
	joined = VEC_ADD(&join->joined);
	joined->label = label;
	joined->last_ns = INT64_MIN;
	joined->source =
		session_source(session, intern_get(join->from->strings, row->reader, NULL), name);
	session->sources.at[joined->source].has_utc = row->has_utc;
	session->sources.at[joined->source].interval_ns = row->interval_ns;
	session->sources.at[joined->source].mapping_error_ns = row->mapping_error_ns;
	if (join->joined.count > 1)
		session_note(session, joined->source, NOTE_CLOCK_BACK, name);
	return joined;
}

static uint32_t device_of(struct join *join, uint32_t id)
{
	struct device device;

	if (id >= join->from->devices.count)
		return SESSION_NONE;
	device = join->from->devices.at[id];
	device.source = join->source;
	device.uuid = text(join, device.uuid);
	device.name = text(join, device.name);
	device.pci_bus = text(join, device.pci_bus);
	device.maker = text(join, device.maker);
	return session_device(join->sink->session, &device);
}

static uint32_t process_of(struct join *join, uint32_t id)
{
	struct session *session = join->sink->session;
	const struct process *row;
	struct process *to;
	uint32_t process;

	if (id >= join->from->processes.count)
		return SESSION_NONE;
	row = &join->from->processes.at[id];
	process = session_process(session, join->source, row->pid);
	to = &session->processes.at[process];
	to->name = to->name ? to->name : text(join, row->name);
	to->command = to->command ? to->command : text(join, row->command);
	to->type = to->type ? to->type : text(join, row->type);
	return process;
}

static void map_lanes(struct join *join)
{
	join->lanes.count = 0;
	for (size_t i = 0; i < join->from->lanes.count; i++) {
		struct lane lane = join->from->lanes.at[i];

		lane.source = join->source;
		lane.device = device_of(join, lane.device);
		lane.process = process_of(join, lane.process);
		lane.name = text(join, lane.name);
		*VEC_ADD(&join->lanes) = session_lane(join->sink->session, &lane);
	}
}

/* What the file says of machine, cards and itself; what was said is not said
 * again. */
static void tell_rest(struct join *join)
{
	struct session *session = join->sink->session;

	for (size_t i = 0; i < join->from->envs.count; i++) {
		const struct env *env = &join->from->envs.at[i];
		uint32_t device =
			env->device == SESSION_NONE ? SESSION_NONE : device_of(join, env->device);
		uint32_t key = text(join, env->key), value = text(join, env->value);
		uint64_t id = (uint64_t)device << 32 | key;
		const uint64_t *last = map_find(&join->envs, id);

		if (last && *last == value)
			continue;
		map_put(&join->envs, id, value);
		session_env(session, join->source, device, str_of(session_text(session, key)),
			    str_of(session_text(session, value)));
	}
	for (size_t i = 0; i < join->from->notes.count; i++)
		session_note(session, join->source, "%s",
			     session_text(join->from, join->from->notes.at[i].text));
	for (size_t i = 0; i < join->from->losses.count; i++)
		for (int k = 0; k < LOSS_COUNT; k++)
			session_loss(session, join->source, (enum loss)k,
				     join->from->losses.at[i].count[k]);
}

static int push_sample(struct join *join, const struct store_batch *batch, size_t i,
		       int64_t offset_ns, struct err *err)
{
	struct sample sample = batch->samples[i];

	if (__builtin_add_overflow(sample.time_ns, offset_ns, &sample.time_ns) ||
	    sample.time_ns < join->from_ns)
		return 0;
	sample.lane = join->lanes.at[batch->lane];
	return sink_sample(join->sink, &sample, err);
}

static int push_mark(struct join *join, const struct store_batch *batch, size_t i,
		     int64_t offset_ns, struct err *err)
{
	struct mark mark = { .kind = (enum mark_kind)batch->col[COL_subkind][i],
			     .lane = join->lanes.at[batch->lane] };
	size_t len;
	const char *detail =
		intern_get(join->from->details, (uint32_t)batch->col[COL_detail][i], &len);

	if (__builtin_add_overflow(batch->col[COL_start][i], offset_ns, &mark.time_ns) ||
	    mark.time_ns < join->from_ns)
		return 0;
	mark.name = text(join, (uint32_t)batch->col[COL_name][i]);
	mark.detail = session_detail(join->sink->session, detail, len);
	return sink_mark(join->sink, &mark, err);
}

static int push_events(struct join *join, struct store *store, struct err *err)
{
	const struct store_query query = { .kinds = STORE_BIT(STORE_sample) | STORE_BIT(STORE_mark),
					   .columns = COL_BIT(COL_start) | COL_BIT(COL_name) |
						      COL_BIT(COL_detail) | COL_BIT(COL_subkind) };
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int ret, got = 0;

	ret = store_query_open(store, &query, &cursor, err);
	while (ret >= 0 && (got = store_next(cursor, &batch, err)) > 0) {
		const struct source *source;

		if (batch.lane >= join->lanes.count)
			continue;
		source = &join->from->sources.at[join->from->lanes.at[batch.lane].source];
		for (size_t i = 0; ret >= 0 && i < batch.count; i++)
			ret = batch.kind == STORE_sample
				      ? push_sample(join, &batch, i, source->utc_offset_ns, err)
				      : push_mark(join, &batch, i, source->utc_offset_ns, err);
	}
	return got < 0 ? got : ret;
}

int join_add(struct join *join, struct store *store, struct err *err)
{
	const struct source *source;
	struct joined *joined;
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;

	join->from = store_session(store);
	if (!join->from->sources.count)
		return 0;
	for (size_t i = 0; i < join->from->sources.count; i++) {
		source = &join->from->sources.at[i];
		if (source->first_ns > source->last_ns)
			continue;
		first_ns = source->first_ns < first_ns ? source->first_ns : first_ns;
		last_ns = source->last_ns > last_ns ? source->last_ns : last_ns;
	}
	if (first_ns > last_ns || last_ns < join->from_ns)
		return 0;
	joined = goes_on(join, &join->from->sources.at[0], first_ns);
	joined->last_ns = last_ns;
	join->source = joined->source;
	map_lanes(join);
	tell_rest(join);
	return push_events(join, store, err);
}
