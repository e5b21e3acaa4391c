#include "analyze/faults.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/timeline.h"
#include "base/hash.h"
#include "store/store.h"

/* A storm of more lines is counted in its group and not kept line by line. */
enum { EVENTS_MAX = 1 << 18, GROUPS_MAX = 4096 };
/* A fault is printed soon after the kernel that raised it; with clocks that
 * agree no better than this, no kernel can be named. */
static const int64_t KERNEL_CLOCK_NS = 10000000;

const char *fault_role_name(enum fault_role role)
{
	static const char *const name[] = {
#define X(id, text) [FAULT_ROLE_##id] = text,
		FAULT_ROLE_LIST(X)
#undef X
	};

	return name[role];
}

const char *fault_pattern_name(enum fault_pattern_kind kind)
{
	static const char *const name[] = {
#define X(id, text) [FAULT_PATTERN_##id] = text,
		FAULT_PATTERN_LIST(X)
#undef X
	};

	return name[kind];
}

struct loader {
	struct facts *facts;
	struct map groups; /* by hash of device, source, kind, number */
	uint64_t seed;
};

static bool same_group(const struct fault_group *group, uint32_t device, uint32_t source,
		       const struct fault *fault)
{
	return group->device == device && group->first.kind == fault->kind &&
	       group->first.number == fault->number &&
	       (device != SESSION_NONE || group->source == source);
}

/* FAULT_NO_INDEX: there are too many. */
static uint32_t group_of(struct loader *loader, uint32_t device, uint32_t source,
			 const struct fault *fault)
{
	struct facts *facts = loader->facts;
	uint64_t key = hash_u64((uint64_t)device << 32 | fault->kind, loader->seed);
	struct fault_group *group;

	key = hash_u64((uint64_t)fault->number ^ (device == SESSION_NONE ? source : 0), key);
	for (uint64_t *found; (found = map_find(&loader->groups, key)); key++) {
		if (same_group(&facts->fault_groups.at[*found], device, source, fault))
			return (uint32_t)*found;
	}
	if (facts->fault_groups.count >= GROUPS_MAX)
		return FAULT_NO_INDEX;
	group = VEC_ADD(&facts->fault_groups);
	group->device = device;
	group->source = source;
	group->first = *fault;
	group->caused_by = FAULT_NO_INDEX;
	group->previous = -1;
	fault_meaning_of(fault, &group->meaning);
	map_put(&loader->groups, key, facts->fault_groups.count - 1);
	return (uint32_t)facts->fault_groups.count - 1;
}

/* The heaviest line speaks for its group: of a link one "Fatal" is enough. */
static void heaviest(struct fault_group *group, const struct fault *fault)
{
	struct fault_meaning meaning;

	fault_meaning_of(fault, &meaning);
	if (meaning.weight <= group->meaning.weight)
		return;
	group->first = *fault;
	group->meaning = meaning;
}

int64_t fault_clock_error(const struct session *session, uint32_t a, uint32_t b)
{
	int64_t x = session->sources.at[a].mapping_error_ns,
		y = session->sources.at[b].mapping_error_ns;

	if (a == b)
		return 0;
	if (x == EVENT_UNKNOWN || y == EVENT_UNKNOWN)
		return INT64_MAX;
	return capped_add(x, y);
}

/* The kernel that ran on the device at that time, else the last before it. */
static uint32_t kernel_at(const struct facts *facts, uint32_t device, uint32_t source,
			  int64_t time_ns)
{
	const struct timeline *timeline = facts->timeline;
	const struct tl_device *at;
	size_t low = 0, high;

	if (!timeline || device >= facts->session->devices.count)
		return 0;
	at = &timeline->devices[device];
	high = at->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (op_start(&timeline->ops, device_op(at, middle)) <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	while (low > 0) {
		uint32_t op = device_op(at, --low);
		const struct tl_segment *segment = segment_find(timeline, op);

		if (segment->kind != STORE_kernel)
			continue;
		if (!fault_comparable(facts->session, source, segment->source) ||
		    fault_clock_error(facts->session, source, segment->source) > KERNEL_CLOCK_NS ||
		    timeline->ops.key[op] >= facts->session->keys.count)
			return 0;
		return facts->session->keys.at[timeline->ops.key[op]].name;
	}
	return 0;
}

static int64_t place_of(const struct fault *fault)
{
	if (fault_has(fault, FAULT_SM) && fault->gpc < 1000 && fault->tpc < 1000 &&
	    fault->sm < 1000)
		return fault->gpc * 1000000 + fault->tpc * 1000 + fault->sm;
	if (fault_has(fault, FAULT_LINK) && fault->link >= 0)
		return fault->link;
	return -1;
}

static void add_event(struct loader *loader, uint32_t lane_id, int64_t start_ns,
		      const struct fault *fault)
{
	struct facts *facts = loader->facts;
	const struct lane *lane = &facts->session->lanes.at[lane_id];
	uint32_t group = group_of(loader, lane->device, lane->source, fault);
	struct fault_event *event;

	if (group != FAULT_NO_INDEX)
		heaviest(&facts->fault_groups.at[group], fault);
	if (group == FAULT_NO_INDEX || facts->faults.count >= EVENTS_MAX) {
		facts->faults_left_out++;
		return;
	}
	event = VEC_ADD(&facts->faults);
	event->group = group;
	event->source = lane->source;
	event->cause = FAULT_NO_INDEX;
	event->process = intern_text(facts->fault_strings, fault->process);
	event->pid = fault_has(fault, FAULT_PID) ? fault->pid : -1;
	event->time_ns = session_time(facts->session, lane->source, start_ns);
	event->line = fault_has(fault, FAULT_LINE) ? fault->line : 0;
	event->day_s = fault_has(fault, FAULT_DAY_S) ? fault->day_s : -1;
	event->place = place_of(fault);
	event->has_time = fault->has_time;
	if (event->has_time)
		event->kernel = kernel_at(facts, lane->device, lane->source, event->time_ns);
	if (fault_has(fault, FAULT_PREVIOUS))
		event->previous = fault->previous;
	else
		event->previous = -1;
}

static void add_clock_mark(struct facts *facts, uint32_t lane_id, int64_t start_ns, uint32_t name)
{
	const struct lane *lane = &facts->session->lanes.at[lane_id];
	struct clock_mark *mark;

	if (facts->clock_marks.count >= EVENTS_MAX)
		return;
	mark = VEC_ADD(&facts->clock_marks);
	mark->device = lane->device;
	mark->source = lane->source;
	mark->name = name;
	mark->time_ns = session_time(facts->session, lane->source, start_ns);
}

static bool is_fault_mark(int64_t kind)
{
	return kind == MARK_XID || kind == MARK_OOM || kind == MARK_FAULT;
}

static int load(struct store *store, struct loader *loader, struct err *err)
{
	const struct store_query query = {
		.kinds = STORE_BIT(STORE_mark),
		.columns = COL_BIT(COL_start) | COL_BIT(COL_name) | COL_BIT(COL_detail) |
			   COL_BIT(COL_subkind),
	};
	const struct session *session = loader->facts->session;
	OWN(store_query_closep) struct store_cursor *cursor = NULL;
	struct store_batch batch;
	int got = store_query_open(store, &query, &cursor, err);

	while (got >= 0 && (got = store_next(cursor, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.count; i++) {
			struct str detail = { 0 };
			struct fault fault;

			if (batch.col[COL_subkind][i] == MARK_THROTTLE)
				add_clock_mark(loader->facts, batch.lane, batch.col[COL_start][i],
					       (uint32_t)batch.col[COL_name][i]);
			if (!is_fault_mark(batch.col[COL_subkind][i]))
				continue;
			detail.at = intern_get(session->details, (uint32_t)batch.col[COL_detail][i],
					       &detail.len);
			if (fault_from_detail(detail, &fault))
				add_event(loader, batch.lane, batch.col[COL_start][i], &fault);
		}
	}
	return got;
}

static int by_time(const void *a, const void *b)
{
	const struct fault_event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

int analyze_faults(struct store *store, struct facts *facts, struct err *err)
{
	struct loader loader = { .facts = facts, .seed = hash_seed() };
	int status;

	facts->fault_strings = intern_new();
	status = load(store, &loader, err);
	map_done(&loader.groups);
	if (status < 0)
		return status;
	if (facts->faults.count)
		qsort(facts->faults.at, facts->faults.count, sizeof(*facts->faults.at), by_time);
	fault_roles(facts);
	fault_patterns(facts);
	return 0;
}
