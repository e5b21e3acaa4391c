#include "base/capped.h"
#include "base/hash.h"
#include "read/json_scan.h"
#include "read/kineto.h"

/* Begun events that are remembered: beyond, the end finds no beginning. */
enum { OPEN_MAX_TRACK = 4096, OPEN_MAX = 65536 };

static uint32_t unescaped(struct kineto *k, struct str raw)
{
	buf_clear(&k->text);
	scan_unescape(raw, &k->text);
	return session_string(k->session, k->text.at, k->text.len);
}

uint32_t kineto_text(struct kineto *k, struct str raw, bool escaped)
{
	if (!raw.len)
		return 0;
	return escaped ? unescaped(k, raw) : session_string(k->session, raw.at, raw.len);
}

uint32_t kineto_event_name(struct kineto *k, const struct kineto_event *event)
{
	if (!event->name.len)
		return 0;
	return event->name_escaped ? unescaped(k, event->name)
				   : intern_add_asked(k->session->strings, event->name.at,
						      event->name.len, event->name_asked);
}

void kineto_maker(struct kineto *k, const char *maker)
{
	if (!k->maker)
		k->maker = intern_text(k->session->strings, maker);
}

static void copy_dims(int32_t to[3], const struct kineto_event *event, enum kineto_dims field)
{
	if (event->have_dims >> field & 1)
		memcpy(to, event->dims[field], sizeof(event->dims[field]));
}

static int32_t small(int64_t value)
{
	return value < 0 || value > INT32_MAX ? -1 : (int32_t)value;
}

static uint32_t kernel_key(struct kineto *k, const struct kineto_event *event, uint32_t name)
{
	struct kernel_key key = { .name = name };
	struct kineto_cached *cached;
	uint64_t hash;

	copy_dims(key.grid, event, KINETO_grid);
	copy_dims(key.block, event, KINETO_block);
	copy_dims(key.cluster, event, KINETO_cluster);
	key.shared_bytes = kineto_num(event, KINETO_shared, -1);
	key.registers = small(kineto_num(event, KINETO_registers, -1));
	key.theoretical_occupancy_pct = small(kineto_num(event, KINETO_occupancy, -1));
	hash = hash_bytes(key.grid, sizeof(key.grid) + sizeof(key.block), k->seed ^ name);
	hash ^= (uint64_t)key.shared_bytes;
	cached = &k->keys[hash % KINETO_KEY_CACHE];
	if (cached->hash == hash && cached->id < k->session->keys.count &&
	    kernel_key_same(&key, &k->session->keys.at[cached->id]))
		return cached->id;
	cached->hash = hash;
	cached->id = session_key(k->session, &key);
	return cached->id;
}

/* "Memcpy HtoD (Pageable -> Device)", "CopyDeviceToHost", "MemcpyD2H". */
void kineto_copy_name(struct str name, struct op *op)
{
	static const struct {
		const char *text;
		enum copy_kind kind;
	} kinds[] = {
		{ "HtoD", COPY_HTOD },         { "DtoH", COPY_DTOH },
		{ "DtoD", COPY_DTOD },         { "HtoH", COPY_HTOH },
		{ "PtoP", COPY_PTOP },         { "HtoA", COPY_HTOD },
		{ "AtoH", COPY_DTOH },         { "AtoA", COPY_DTOD },
		{ "AtoD", COPY_DTOD },         { "DtoA", COPY_DTOD },
		{ "H2D", COPY_HTOD },          { "D2H", COPY_DTOH },
		{ "D2D", COPY_DTOD },          { "P2P", COPY_PTOP },
		{ "H2H", COPY_HTOH },          { "HostToDevice", COPY_HTOD },
		{ "DeviceToHost", COPY_DTOH }, { "DeviceToDevice", COPY_DTOD },
		{ "HostToHost", COPY_HTOH },   { "PeerToPeer", COPY_PTOP },
	};
	const char *where = str_find(name, "(");
	struct str ends = { where, where ? name.len - (size_t)(where - name.at) : 0 };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !op->copy; i++) {
		if (str_find(name, kinds[i].text))
			op->copy = kinds[i].kind;
	}
	if (!ends.len)
		return;
	if (str_find(ends, "Pageable"))
		op->host_memory = HOST_MEMORY_PAGEABLE;
	else if (str_find(ends, "Pinned"))
		op->host_memory = HOST_MEMORY_PINNED;
	else if (str_find(ends, "Managed") || str_find(ends, "Unified"))
		op->host_memory = HOST_MEMORY_MANAGED;
}

static uint64_t positive(const struct kineto_event *event, enum kineto_num field)
{
	int64_t value = kineto_num(event, field, 0);

	return value > 0 ? (uint64_t)value : 0;
}

static uint32_t stream_of(struct kineto *k, const struct kineto_event *event,
			  struct kineto_track *track)
{
	return kineto_stream_lane(k, track, kineto_num(event, KINETO_device, track->pid),
				  kineto_num(event, KINETO_context, -1),
				  kineto_num(event, KINETO_stream, track->tid));
}

static void make_op(struct kineto *k, const struct kineto_event *event, struct kineto_track *track,
		    enum op_kind kind, struct kineto_made *made)
{
	struct op *op = &made->op;

	made->kind = MADE_OP;
	*op = (struct op){ .kind = kind };
	op->lane = stream_of(k, event, track);
	op->name = kineto_event_name(k, event);
	op->correlation = positive(event, KINETO_correlation);
	op->external = positive(event, KINETO_external);
	op->graph_node = positive(event, KINETO_graph_node);
	op->bytes = kineto_num(event, KINETO_bytes, EVENT_UNKNOWN);
	op->queued_ns = (int64_t)positive(event, KINETO_queued);
	if (kind == OP_KERNEL)
		op->key = kernel_key(k, event, op->name);
	else if (kind == OP_MEMCPY)
		kineto_copy_name(event->name, op);
	k->any_device |= kind != OP_OTHER;
	kineto_detail(k, event, kind == OP_OTHER);
}

static void make_call(struct kineto *k, const struct kineto_event *event,
		      struct kineto_track *track, enum call_kind kind, struct kineto_made *made)
{
	struct call *call = &made->call;

	made->kind = MADE_CALL;
	*call = (struct call){ .kind = kind };
	call->lane = kind == CALL_SYNC && kineto_has(event, KINETO_device)
			     ? stream_of(k, event, track)
			     : kineto_thread_lane(k, track);
	call->name = kineto_event_name(k, event);
	call->correlation = positive(event, KINETO_correlation);
	call->external = positive(event, KINETO_external);
	call->sequence = positive(event, KINETO_sequence);
	call->parent = (uint32_t)positive(event, KINETO_forward);
	kineto_detail(k, event, kind == CALL_OTHER);
	if (kind == CALL_RUNTIME && !k->maker)
		kineto_maker(k, str_starts(event->name, "hip") ? "AMD" : "NVIDIA");
}

static void make_range(struct kineto *k, const struct kineto_event *event,
		       struct kineto_track *track, enum range_kind kind, struct kineto_made *made)
{
	struct range *range = &made->range;

	made->kind = MADE_RANGE;
	*range = (struct range){ .kind = kind };
	range->lane =
		kind == RANGE_DEVICE ? stream_of(k, event, track) : kineto_thread_lane(k, track);
	range->name = kineto_event_name(k, event);
	range->external = positive(event, KINETO_external);
	kineto_detail(k, event, false);
}

static void make_mark(struct kineto *k, const struct kineto_event *event, uint32_t lane,
		      struct kineto_made *made)
{
	made->kind = MADE_MARK;
	made->mark = (struct mark){ .kind = MARK_TEXT, .lane = lane };
	made->mark.name = kineto_event_name(k, event);
	kineto_detail(k, event,
		      event->cat != KINETO_CAT_NONE && event->cat != KINETO_CAT_INSTANT &&
			      event->cat != KINETO_CAT_EVENT);
}

static bool is_step(const struct kineto_event *event)
{
	return str_starts(event->name, "ProfilerStep#");
}

/* What an event with a duration is; times are set by the caller. */
static void make(struct kineto *k, const struct kineto_event *event, struct kineto_track *track,
		 struct kineto_made *made)
{
	switch (event->cat) {
	case KINETO_CAT_KERNEL:
		return make_op(k, event, track, OP_KERNEL, made);
	case KINETO_CAT_MEMCPY:
		return make_op(k, event, track, OP_MEMCPY, made);
	case KINETO_CAT_MEMSET:
		return make_op(k, event, track, OP_MEMSET, made);
	case KINETO_CAT_MTIA_OP:
		kineto_maker(k, "MTIA");
		return make_op(k, event, track, OP_OTHER, made);
	case KINETO_CAT_HPU_OP:
		kineto_maker(k, "HPU");
		return make_op(k, event, track, OP_OTHER, made);
	case KINETO_CAT_RUNTIME:
		return make_call(k, event, track, CALL_RUNTIME, made);
	case KINETO_CAT_DRIVER:
		return make_call(k, event, track, CALL_DRIVER, made);
	case KINETO_CAT_OP:
		if (is_step(event))
			return make_range(k, event, track, RANGE_STEP, made);
		return make_call(k, event, track, CALL_OP, made);
	case KINETO_CAT_PYTHON:
		k->session->sources.at[k->source].with_stack = true;
		return make_call(k, event, track, CALL_PYTHON, made);
	case KINETO_CAT_OVERHEAD:
		return make_call(k, event, track, CALL_OVERHEAD, made);
	case KINETO_CAT_SYNC:
		return make_call(k, event, track, CALL_SYNC, made);
	case KINETO_CAT_USER:
		return make_range(k, event, track, is_step(event) ? RANGE_STEP : RANGE_USER, made);
	case KINETO_CAT_DEVICE_RANGE:
		return make_range(k, event, track, RANGE_DEVICE, made);
	case KINETO_CAT_SPAN:
		return make_range(k, event, track, RANGE_SPAN, made);
	case KINETO_CAT_COLLECTIVE:
		return make_range(k, event, track, RANGE_COLLECTIVE, made);
	case KINETO_CAT_EVENT:
		return make_mark(k, event, stream_of(k, event, track), made);
	case KINETO_CAT_NONE:
		return kineto_xla(k, event, track, made);
	default:
		if (event->cat == KINETO_CAT_MTIA_CALL)
			kineto_maker(k, "MTIA");
		else if (event->cat == KINETO_CAT_XPU_CALL)
			kineto_maker(k, "Intel");
		else if (event->cat == KINETO_CAT_PRIVATE_CALL)
			kineto_maker(k, "PrivateUse1");
		return make_call(k, event, track, CALL_OTHER, made);
	}
}

static void set_times(struct kineto_made *made, int64_t start_ns, int64_t end_ns)
{
	if (made->kind == MADE_OP) {
		made->op.start_ns = start_ns;
		made->op.end_ns = end_ns;
	} else if (made->kind == MADE_CALL) {
		made->call.start_ns = start_ns;
		made->call.end_ns = end_ns;
	} else if (made->kind == MADE_RANGE) {
		made->range.start_ns = start_ns;
		made->range.end_ns = end_ns;
	} else {
		made->mark.time_ns = start_ns;
	}
}

static int64_t start_of(const struct kineto_made *made)
{
	if (made->kind == MADE_OP)
		return made->op.start_ns;
	if (made->kind == MADE_CALL)
		return made->call.start_ns;
	return made->kind == MADE_RANGE ? made->range.start_ns : made->mark.time_ns;
}

static uint32_t *detail_of(struct kineto_made *made)
{
	switch (made->kind) {
	case MADE_OP:
		return &made->op.detail;
	case MADE_CALL:
		return &made->call.detail;
	case MADE_RANGE:
		return &made->range.detail;
	default:
		return &made->mark.detail;
	}
}

static int put(struct kineto *k, struct kineto_made *made)
{
	if (k->detail.len)
		*detail_of(made) = kineto_detail_id(k);
	switch (made->kind) {
	case MADE_OP:
		return sink_op(k->sink, &made->op, k->err);
	case MADE_CALL:
		return sink_call(k->sink, &made->call, k->err);
	case MADE_RANGE:
		return sink_range(k->sink, &made->range, k->err);
	case MADE_MARK:
		return sink_mark(k->sink, &made->mark, k->err);
	default:
		return 0;
	}
}

static int flush_held(struct kineto *k)
{
	int ret = put(k, &k->held);

	k->held.kind = MADE_NOTHING;
	return ret;
}

static void count_times(struct kineto *k, int64_t start_ns, int64_t end_ns)
{
	if (start_ns < k->min_ns)
		k->min_ns = start_ns;
	k->at_zero += !start_ns;
	k->loss[LOSS_negative] += end_ns < start_ns;
}

static int take_complete(struct kineto *k, const struct kineto_event *event,
			 struct kineto_track *track)
{
	int64_t start_ns = event->num[KINETO_ts];
	int64_t end_ns = capped_add(start_ns, kineto_num(event, KINETO_dur, 0));
	int ret = flush_held(k);

	make(k, event, track, &k->held);
	set_times(&k->held, start_ns, end_ns);
	k->held_pid = track->pid;
	k->held_tid = track->tid;
	count_times(k, start_ns, end_ns);
	return ret;
}

static int take_begin(struct kineto *k, const struct kineto_event *event,
		      struct kineto_track *track)
{
	struct kineto_made made;
	int ret = flush_held(k);

	if (ret < 0)
		return ret;
	if (track->open.count >= OPEN_MAX_TRACK || k->open_count >= OPEN_MAX) {
		k->loss[LOSS_unmatched_ends]++;
		make_mark(k, event, kineto_thread_lane(k, track), &made);
		made.mark.time_ns = event->num[KINETO_ts];
		return put(k, &made);
	}
	make(k, event, track, &made);
	set_times(&made, event->num[KINETO_ts], event->num[KINETO_ts]);
	/* Details don't outlive the next event of the sink; strings do. */
	*detail_of(&made) = session_string(k->session, k->detail.at, k->detail.len);
	buf_clear(&k->detail);
	*VEC_ADD(&track->open) = made;
	k->open_count++;
	return 0;
}

static int take_end(struct kineto *k, const struct kineto_event *event, struct kineto_track *track)
{
	struct kineto_made *made;
	int ret = flush_held(k);
	uint32_t *detail;
	const char *text;
	size_t len;

	if (ret < 0)
		return ret;
	if (!track->open.count) {
		k->loss[LOSS_unmatched_ends]++;
		k->loss[LOSS_dropped]++;
		return 0;
	}
	made = &track->open.at[--track->open.count];
	k->open_count--;
	set_times(made, start_of(made), event->num[KINETO_ts]);
	count_times(k, start_of(made), event->num[KINETO_ts]);
	detail = detail_of(made);
	text = intern_get(k->session->strings, *detail, &len);
	*detail = len ? session_detail(k->session, text, len) : 0;
	if (!len)
		kineto_detail(k, event, false);
	return put(k, made);
}

/* True if the arrow says no more than the event in front of it. */
static bool repeats(struct kineto *k, const struct kineto_event *event,
		    const struct kineto_track *track)
{
	struct kineto_made *held = &k->held;
	uint64_t id = (uint64_t)event->id[KINETO_id].number;
	int64_t ts = event->num[KINETO_ts];

	if (event->cat != KINETO_CAT_FLOW || !id || !event->id[KINETO_id].known ||
	    event->id[KINETO_id].text.at || track->pid != k->held_pid || track->tid != k->held_tid)
		return false;
	if (event->ph == 'f' && held->kind == MADE_OP && !held->op.flow &&
	    held->op.correlation == id && held->op.start_ns == ts) {
		held->op.flow = 1;
		return true;
	}
	if (event->ph == 's' && held->kind == MADE_CALL && !held->call.flow &&
	    held->call.correlation == id && held->call.start_ns == ts) {
		held->call.flow = 1;
		return true;
	}
	return false;
}

static uint32_t some_lane(struct kineto *k, struct kineto_track *track)
{
	if (track->stream_lane != SESSION_NONE && track->thread_lane == SESSION_NONE)
		return track->stream_lane;
	return kineto_thread_lane(k, track);
}

static int take_flow(struct kineto *k, const struct kineto_event *event, struct kineto_track *track)
{
	struct link link = { .kind = LINK_OTHER };
	const struct kineto_id *id = &event->id[KINETO_id];
	int ret;

	if (repeats(k, event, track))
		return 0;
	ret = flush_held(k);
	if (event->cat == KINETO_CAT_FLOW)
		link.kind = LINK_LAUNCH;
	else if (event->cat == KINETO_CAT_FORWARD)
		link.kind = LINK_FORWARD_BACKWARD;
	link.lane = some_lane(k, track);
	link.time_ns = event->num[KINETO_ts];
	if (id->known)
		link.id = id->text.at ? kineto_text(k, id->text, false) : (uint64_t)id->number;
	link.is_end = event->ph == 'f';
	count_times(k, link.time_ns, link.time_ns);
	return ret < 0 ? ret : sink_link(k->sink, &link, k->err);
}

static int take_alloc(struct kineto *k, const struct kineto_event *event,
		      struct kineto_track *track)
{
	struct alloc alloc = { .lane = kineto_thread_lane(k, track) };
	int ret = flush_held(k);

	alloc.time_ns = event->num[KINETO_ts];
	alloc.address = (uint64_t)kineto_num(event, KINETO_address, 0);
	alloc.bytes = event->num[KINETO_bytes];
	alloc.allocated_bytes = kineto_num(event, KINETO_allocated, EVENT_UNKNOWN);
	alloc.reserved_bytes = kineto_num(event, KINETO_reserved, EVENT_UNKNOWN);
	/* Device type 0 is the host; torch/csrc DeviceType.h. */
	alloc.device = kineto_num(event, KINETO_device_type, -1) == 0
			       ? -1
			       : kineto_num(event, KINETO_device_id, EVENT_UNKNOWN);
	count_times(k, alloc.time_ns, alloc.time_ns);
	return ret < 0 ? ret : sink_alloc(k->sink, &alloc, k->err);
}

static int take_instant(struct kineto *k, const struct kineto_event *event,
			struct kineto_track *track)
{
	struct kineto_made made;
	int ret;

	if (str_is(event->name, "[memory]") && kineto_has(event, KINETO_bytes))
		return take_alloc(k, event, track);
	ret = flush_held(k);
	make_mark(k, event, some_lane(k, track), &made);
	made.mark.time_ns = event->num[KINETO_ts];
	count_times(k, made.mark.time_ns, made.mark.time_ns);
	return ret < 0 ? ret : put(k, &made);
}

int kineto_event_take(struct kineto *k, const struct kineto_event *event)
{
	struct kineto_track *track;

	if (event->empty)
		return 0;
	intern_near(k->session->strings, event->name_asked);
	k->loss[LOSS_seen]++;
	k->loss[LOSS_malformed] += event->malformed;
	if (event->ph == 'M') {
		kineto_name(k, event);
		return 0;
	}
	if (!event->ph || !kineto_has(event, KINETO_ts)) {
		k->loss[LOSS_dropped]++;
		return 0;
	}
	track = kineto_track_get(k, event);
	switch (event->ph) {
	case 'X':
		return take_complete(k, event, track);
	case 'B':
		return take_begin(k, event, track);
	case 'E':
		return take_end(k, event, track);
	case 's':
	case 't':
	case 'f':
		return take_flow(k, event, track);
	default: /* instants, counters, and kinds that no profiler of ours writes */
		return take_instant(k, event, track);
	}
}

int kineto_flush(struct kineto *k)
{
	int ret = flush_held(k);

	for (size_t i = 0; i < k->tracks.count; i++) {
		struct kineto_track *track = &k->tracks.at[i];

		for (size_t j = 0; j < track->open.count && ret >= 0; j++) {
			struct kineto_made mark = { .kind = MADE_MARK };
			const struct kineto_made *made = &track->open.at[j];

			/* When it ended is unknown: its beginning stays as an instant. */
			mark.mark = (struct mark){
				.kind = MARK_TEXT,
				.lane = made->kind == MADE_OP      ? made->op.lane
					: made->kind == MADE_CALL  ? made->call.lane
					: made->kind == MADE_RANGE ? made->range.lane
								   : made->mark.lane,
				.name = made->kind == MADE_OP      ? made->op.name
					: made->kind == MADE_CALL  ? made->call.name
					: made->kind == MADE_RANGE ? made->range.name
								   : made->mark.name,
				.time_ns = start_of(made),
			};
			k->loss[LOSS_unmatched_ends]++;
			ret = put(k, &mark);
		}
	}
	return ret;
}
