#include "base/hash.h"
#include "base/mem.h"
#include "read/kineto.h"

/* Text ids ("Spans", "PyTorch Profiler") as numbers that no system gives out:
 * this minus the string's id. */
static const int64_t TEXT_BASE = -1000000000000;

static int64_t id_number(struct kineto *k, const struct kineto_id *id)
{
	if (!id->known)
		return -1;
	if (!id->text.at)
		return id->number;
	return TEXT_BASE - kineto_text(k, id->text, memchr(id->text.at, '\\', id->text.len));
}

static bool is_text(int64_t id)
{
	return id <= TEXT_BASE;
}

static uint32_t text_of(int64_t id)
{
	return (uint32_t)(TEXT_BASE - id);
}

static uint32_t track_find(struct kineto *k, int64_t pid, int64_t tid, uint64_t hash)
{
	struct kineto_track *track;

	for (uint64_t *found; (found = map_find(&k->track_index, hash)); hash++) {
		track = &k->tracks.at[*found];
		if (track->pid == pid && track->tid == tid)
			return (uint32_t)*found;
	}
	track = VEC_ADD(&k->tracks);
	track->pid = pid;
	track->tid = tid;
	track->thread_lane = track->stream_lane = SESSION_NONE;
	track->device = track->context = track->stream = -1;
	map_put(&k->track_index, hash, k->tracks.count - 1);
	return (uint32_t)k->tracks.count - 1;
}

struct kineto_track *kineto_track_get(struct kineto *k, const struct kineto_event *event)
{
	int64_t pid = id_number(k, &event->id[KINETO_pid]);
	int64_t tid = id_number(k, &event->id[KINETO_tid]);
	uint64_t hash = hash_u64((uint64_t)pid, hash_u64((uint64_t)tid, k->seed));
	uint32_t *cached = &k->track_cache[hash % KINETO_TRACK_CACHE];

	if (*cached < k->tracks.count) {
		struct kineto_track *track = &k->tracks.at[*cached];

		if (track->pid == pid && track->tid == tid)
			return track;
	}
	*cached = track_find(k, pid, tid, hash);
	return &k->tracks.at[*cached];
}

struct kineto_pid *kineto_pid_get(struct kineto *k, int64_t pid)
{
	uint64_t *found = map_find(&k->pid_index, (uint64_t)pid);
	struct kineto_pid *row;

	if (found)
		return &k->pids.at[*found];
	row = VEC_ADD(&k->pids);
	row->pid = pid;
	row->device = -1;
	map_put(&k->pid_index, (uint64_t)pid, k->pids.count - 1);
	return row;
}

uint32_t kineto_thread_lane(struct kineto *k, struct kineto_track *track)
{
	struct lane lane = { .kind = LANE_THREAD, .source = k->source };

	if (track->thread_lane != SESSION_NONE)
		return track->thread_lane;
	(void)kineto_pid_get(k, track->pid);
	lane.device = SESSION_NONE;
	lane.process = session_process(k->session, k->source, track->pid);
	lane.context = lane.stream = -1;
	lane.tid = track->tid;
	lane.name = track->name;
	if (is_text(track->pid) || is_text(track->tid)) {
		lane.kind = LANE_OTHER;
		if (is_text(track->tid))
			lane.name = text_of(track->tid);
	}
	track->thread_lane = session_lane(k->session, &lane);
	return track->thread_lane;
}

uint32_t kineto_stream_lane(struct kineto *k, struct kineto_track *track, int64_t device,
			    int64_t context, int64_t stream)
{
	struct lane lane = { .kind = LANE_STREAM, .source = k->source };
	struct device facts = { .scope = DEVICE_OF_SOURCE, .source = k->source };

	if (track->stream_lane != SESSION_NONE) {
		bool same = track->device == device && track->stream == stream;

		if (same && (context == -1 || context == track->context))
			return track->stream_lane;
	}
	facts.ordinal = device;
	lane.device = device >= 0 ? session_device(k->session, &facts) : SESSION_NONE;
	lane.process = SESSION_NONE;
	lane.context = context;
	lane.stream = stream;
	lane.tid = -1;
	lane.name = track->name;
	track->stream_lane = session_lane(k->session, &lane);
	track->device = device;
	track->context = context;
	track->stream = stream;
	return track->stream_lane;
}

/* A second name of the same thing is kept beside the first. */
static void name_once(struct kineto *k, uint32_t *name, uint32_t text, const char *what, int64_t id)
{
	struct buf key = { 0 };

	if (!*name || *name == text) {
		*name = text;
		return;
	}
	buf_printf(&key, "%s / %lld", what, (long long)id);
	session_env(k->session, k->source, SESSION_NONE, (struct str){ key.at, key.len },
		    str_of(session_text(k->session, text)));
	buf_done(&key);
}

/* "/device:GPU:0" and the like, with more words behind: XLA. */
static void name_device(struct kineto *k, struct kineto_pid *pid)
{
	struct str name = str_of(session_text(k->session, pid->name));
	struct str kind;

	if (!str_starts(name, "/device:"))
		return;
	name.at += 8;
	name.len -= 8;
	kind = str_cut(&name, ':');
	pid->is_device = true;
	if (!name.at || !str_to_i64(str_cut(&name, ' '), &pid->device))
		pid->device = -1;
	if (!str_is(kind, "GPU")) {
		char maker[32] = "";

		memcpy(maker, kind.at, kind.len < 31 ? kind.len : 31);
		kineto_maker(k, maker);
	}
}

void kineto_name(struct kineto *k, const struct kineto_event *event)
{
	bool labels = str_is(event->name, "process_labels");
	const struct kineto_rest *arg = kineto_rest_find(event, labels ? "labels" : "name");
	struct kineto_track *track = kineto_track_get(k, event);
	int64_t tid = track->tid;
	uint32_t text;

	if (!arg || !arg->is_string)
		return;
	text = kineto_text(k, arg->value, arg->escaped);
	if (str_is(event->name, "thread_name")) {
		name_once(k, &track->name, text, "thread name", tid);
		track->xla_stream = str_starts(str_of(session_text(k->session, text)), "Stream #");
	} else if (labels) {
		struct kineto_pid *pid = kineto_pid_get(k, track->pid);

		name_once(k, &pid->labels, text, "process labels", pid->pid);
	} else if (str_is(event->name, "process_name")) {
		struct kineto_pid *pid = kineto_pid_get(k, track->pid);

		name_once(k, &pid->name, text, "process name", pid->pid);
		name_device(k, pid);
	}
}

void kineto_name_all(struct kineto *k)
{
	for (size_t i = 0; i < k->tracks.count; i++) {
		const struct kineto_track *track = &k->tracks.at[i];
		const uint32_t lanes[] = { track->thread_lane, track->stream_lane };

		for (size_t j = 0; j < 2; j++) {
			if (lanes[j] != SESSION_NONE && track->name)
				k->session->lanes.at[lanes[j]].name = track->name;
		}
	}
	for (size_t i = 0; i < k->session->processes.count; i++) {
		struct process *process = &k->session->processes.at[i];
		uint64_t *found = map_find(&k->pid_index, (uint64_t)process->pid);

		if (process->source != k->source)
			continue;
		if (is_text(process->pid))
			process->name = text_of(process->pid);
		else if (found)
			process->name = k->pids.at[*found].name;
	}
	for (size_t i = 0; i < k->pids.count; i++) {
		const struct kineto_pid *pid = &k->pids.at[i];
		struct buf key = { 0 };

		if (!pid->labels || is_text(pid->pid))
			continue;
		buf_printf(&key, "process labels / %lld", (long long)pid->pid);
		session_env(k->session, k->source, SESSION_NONE, (struct str){ key.at, key.len },
			    str_of(session_text(k->session, pid->labels)));
		buf_done(&key);
	}
}
