#include "model/session.h"

#include <stdarg.h>

#include "base/buf.h"
#include "base/capped.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "model/event.h"

/* Rows by a hash of their identity. A key that two identities share is
 * settled by comparing and trying the next key. */
struct session_index {
	struct map lanes;
	struct map keys;
	struct map processes;
};

struct session *session_new(void)
{
	struct session *session = mem_zero(sizeof(*session));

	session->strings = intern_new();
	session->details = intern_new();
	session->index = mem_zero(sizeof(*session->index));
	return session;
}

void session_free(struct session *session)
{
	if (!session)
		return;
	intern_free(session->strings);
	intern_free(session->details);
	VEC_DONE(&session->sources);
	VEC_DONE(&session->devices);
	VEC_DONE(&session->processes);
	VEC_DONE(&session->lanes);
	VEC_DONE(&session->keys);
	VEC_DONE(&session->envs);
	VEC_DONE(&session->losses);
	VEC_DONE(&session->notes);
	VEC_DONE(&session->missing_columns);
	map_done(&session->index->lanes);
	map_done(&session->index->keys);
	map_done(&session->index->processes);
	free(session->index);
	free(session);
}

uint32_t session_source(struct session *session, const char *reader, const char *file)
{
	uint32_t id = (uint32_t)session->sources.count;
	struct source *source = VEC_ADD(&session->sources);

	source->reader = intern_text(session->strings, reader);
	source->file = intern_text(session->strings, file);
	source->mapping_error_ns = EVENT_UNKNOWN;
	source->first_ns = INT64_MAX;
	source->last_ns = INT64_MIN;
	source->rank = source->world_size = -1;
	VEC_ADD(&session->losses)->source = id;
	return id;
}

/* Neither knows, or both know the same. */
static bool agree(uint32_t a, uint32_t b)
{
	return !a || !b || a == b;
}

static bool same_device(const struct device *row, const struct device *facts)
{
	if (row->uuid && facts->uuid)
		return row->uuid == facts->uuid && agree(row->part, facts->part);
	if (row->part != facts->part)
		return false;
	/* A kernel log knows the slot and no number. */
	if (row->scope == DEVICE_OF_SMI && facts->scope == DEVICE_OF_SMI && row->pci_bus &&
	    row->pci_bus == facts->pci_bus && (row->ordinal < 0 || facts->ordinal < 0))
		return agree(row->name, facts->name);
	if (row->scope != facts->scope || row->ordinal != facts->ordinal || row->ordinal < 0)
		return false;
	if (row->scope == DEVICE_OF_SOURCE && row->source != facts->source)
		return false;
	return agree(row->name, facts->name) && agree(row->pci_bus, facts->pci_bus);
}

static void complete_device(struct device *row, const struct device *facts)
{
#define FILL(field)      \
	if (!row->field) \
	row->field = facts->field
	FILL(uuid);
	FILL(name);
	FILL(pci_bus);
	FILL(part);
	FILL(maker);
	FILL(sm_count);
	FILL(memory_bytes);
	FILL(warps_per_sm);
	FILL(threads_per_sm);
	FILL(regs_per_sm);
	FILL(shared_per_sm);
	if (!row->cc_major) {
		row->cc_major = facts->cc_major;
		row->cc_minor = facts->cc_minor;
	}
	if (row->ordinal < 0)
		row->ordinal = facts->ordinal;
#undef FILL
}

/* The device with that UUID; SESSION_NONE. */
static uint32_t device_by_uuid(const struct session *session, const struct device *facts)
{
	for (size_t i = 0; facts->uuid && i < session->devices.count; i++) {
		if (session->devices.at[i].uuid == facts->uuid &&
		    same_device(&session->devices.at[i], facts))
			return (uint32_t)i;
	}
	return SESSION_NONE;
}

uint32_t session_device(struct session *session, const struct device *facts)
{
	uint32_t known = device_by_uuid(session, facts);

	if (known != SESSION_NONE) {
		complete_device(&session->devices.at[known], facts);
		return known;
	}
	for (size_t i = 0; i < session->devices.count; i++) {
		if (!same_device(&session->devices.at[i], facts))
			continue;
		complete_device(&session->devices.at[i], facts);
		return (uint32_t)i;
	}
	*VEC_ADD(&session->devices) = *facts;
	return (uint32_t)session->devices.count - 1;
}

static bool of_smi(const struct session *session, uint32_t source)
{
	return source < session->sources.count &&
	       str_starts(str_of(session_text(session, session->sources.at[source].reader)), "smi");
}

uint32_t session_process(struct session *session, uint32_t source, int64_t pid)
{
	bool shared = of_smi(session, source);
	uint64_t key = hash_u64((uint64_t)pid, shared ? 0x5319 : source + 1);
	struct process *process;

	for (uint64_t *found; (found = map_find(&session->index->processes, key)); key++) {
		const struct process *row = &session->processes.at[*found];

		if (row->pid == pid &&
		    (row->source == source || (shared && of_smi(session, row->source))))
			return (uint32_t)*found;
	}
	process = VEC_ADD(&session->processes);
	process->source = source;
	process->pid = pid;
	map_put(&session->index->processes, key, session->processes.count - 1);
	return (uint32_t)session->processes.count - 1;
}

/* One that came to use CUDA later has a row of that, too. */
bool session_process_is_bare(const struct session *session, uint32_t process)
{
	const struct process *row = &session->processes.at[process];

	if (strcmp(session_text(session, session->sources.at[row->source].reader), READER_PROC) !=
	    0)
		return false;
	for (size_t i = 0; i < session->processes.count; i++) {
		const struct process *other = &session->processes.at[i];

		if (other->pid == row->pid &&
		    !strcmp(session_text(session, session->sources.at[other->source].reader),
			    READER_CUDA))
			return false;
	}
	return true;
}

static bool same_lane(const struct lane *a, const struct lane *b)
{
	return a->kind == b->kind && a->source == b->source && a->device == b->device &&
	       a->process == b->process && a->context == b->context && a->stream == b->stream &&
	       a->tid == b->tid;
}

static uint64_t lane_hash(const struct lane *lane)
{
	uint64_t h = hash_u64(((uint64_t)lane->kind << 32) | lane->source, 1);

	h = hash_u64(((uint64_t)lane->device << 32) | lane->process, h);
	h = hash_u64((uint64_t)lane->context, h);
	h = hash_u64((uint64_t)lane->stream, h);
	return hash_u64((uint64_t)lane->tid, h);
}

uint32_t session_lane(struct session *session, const struct lane *lane)
{
	uint64_t key = lane_hash(lane);

	for (uint64_t *found; (found = map_find(&session->index->lanes, key)); key++) {
		struct lane *row = &session->lanes.at[*found];

		if (!same_lane(row, lane))
			continue;
		if (lane->name)
			row->name = lane->name;
		return (uint32_t)*found;
	}
	*VEC_ADD(&session->lanes) = *lane;
	map_put(&session->index->lanes, key, session->lanes.count - 1);
	return (uint32_t)session->lanes.count - 1;
}

static uint64_t key_hash(const struct kernel_key *key)
{
	uint64_t h = hash_u64(((uint64_t)key->name << 32) ^ (uint64_t)key->shared_bytes, 2);

	h = hash_bytes(key->grid, sizeof(key->grid), h);
	h = hash_bytes(key->block, sizeof(key->block), h);
	return hash_bytes(key->cluster, sizeof(key->cluster), h);
}

uint32_t session_key(struct session *session, const struct kernel_key *key)
{
	uint64_t hash = key_hash(key);

	for (uint64_t *found; (found = map_find(&session->index->keys, hash)); hash++) {
		if (kernel_key_same(&session->keys.at[*found], key))
			return (uint32_t)*found;
	}
	*VEC_ADD(&session->keys) = *key;
	map_put(&session->index->keys, hash, session->keys.count - 1);
	return (uint32_t)session->keys.count - 1;
}

void session_env(struct session *session, uint32_t source, uint32_t device, struct str key,
		 struct str value)
{
	struct env *env = VEC_ADD(&session->envs);

	env->source = source;
	env->device = device;
	env->key = intern_add(session->strings, key.at, key.len);
	env->value = intern_add(session->strings, value.at, value.len);
}

void session_loss(struct session *session, uint32_t source, enum loss loss, int64_t count)
{
	session->losses.at[source].count[loss] += count;
}

int64_t session_loss_sum(const struct session *session, enum loss loss, bool of_perf)
{
	int64_t sum = 0;

	for (size_t i = 0; i < session->losses.count; i++) {
		bool is_perf =
			i < session->sources.count &&
			!strcmp(session_text(session, session->sources.at[i].reader), READER_PERF);

		if (is_perf == of_perf)
			sum += session->losses.at[i].count[loss];
	}
	return sum;
}

void session_note(struct session *session, uint32_t source, const char *fmt, ...)
{
	struct buf text = { 0 };
	struct note *note = VEC_ADD(&session->notes);
	va_list args;

	va_start(args, fmt);
	buf_vprintf(&text, fmt, args);
	va_end(args);
	note->source = source;
	note->text = intern_add(session->strings, text.at, text.len);
	buf_done(&text);
}

void session_missing_column(struct session *session, uint32_t source, const char *column)
{
	struct buf text = { 0 };
	uint32_t id;

	buf_printf(&text, "%s: %s", session_text(session, session->sources.at[source].file),
		   column);
	id = intern_add(session->strings, text.at, text.len);
	buf_done(&text);
	for (size_t i = 0; i < session->missing_columns.count; i++) {
		if (session->missing_columns.at[i] == id)
			return;
	}
	*VEC_ADD(&session->missing_columns) = id;
}

void session_settle(struct session *session)
{
	bool any = false;

	for (size_t i = 0; i < session->sources.count; i++) {
		const struct source *source = &session->sources.at[i];
		int64_t start;

		if (!source->has_utc || source->first_ns > source->last_ns ||
		    __builtin_add_overflow(source->first_ns, source->utc_offset_ns, &start))
			continue;
		if (!any || start < session->zero_utc_ns)
			session->zero_utc_ns = start;
		any = true;
	}
}

int64_t session_source_span(const struct source *source)
{
	return source->first_ns < source->last_ns ? capped_sub(source->last_ns, source->first_ns)
						  : 0;
}

int64_t session_time(const struct session *session, uint32_t source, int64_t ns)
{
	const struct source *row = &session->sources.at[source];

	if (!row->has_utc)
		return row->first_ns > row->last_ns ? ns : capped_sub(ns, row->first_ns);
	return capped_sub(ns, capped_sub(session->zero_utc_ns, row->utc_offset_ns));
}
