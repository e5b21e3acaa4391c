/* replay_cupti.c - CUPTI's functions, answered from a log: see replay_cupti.h. */
#include "fake/replay_cupti.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "fake/puppet_cupti.h"

struct replay replay;
__thread uint32_t replay_line;

static const char *const specs[] = {
#define X(name, spec) spec,
	CUPTI_LOG_SPECS(X)
#undef X
};

static const char *const names[] = {
#define X(name, spec) #name,
	CUPTI_LOG_SPECS(X)
#undef X
};

/* What was answered next, as seen from what is being played, or else last. */
static struct log_call *find(enum cupti_call call, uint64_t key, bool once)
{
	struct cupti_log *log = log_now();
	uint32_t line = replay_line ? replay_line : atomic_load(&replay.line);
	struct log_call *last = NULL;

	for (size_t i = 0; i < log->call_count; i++) {
		struct log_call *at = &log->calls[i];

		if (at->key != key || at->call != call || (once && at->used))
			continue;
		last = at;
		if (at->line >= line)
			break;
	}
	return last;
}

static size_t numbers_in(const char *spec, const uintptr_t *args, uint64_t *in)
{
	const struct cupti_pc_params *pc = (const void *)args[0];
	const struct cupti_crc_params *crc = (const void *)args[0];
	size_t count = 0;

	for (int i = 0; spec[i]; i++) {
		if (spec[i] == 'u')
			in[count++] = (uint32_t)args[i];
		else if (spec[i] == 'y')
			in[count++] = (uint8_t)args[i];
		else if (spec[i] == 'p')
			in[count++] = args[i];
		else if (spec[i] == 'v')
			in[count++] = *(const uint8_t *)args[i];
		else if (strchr("knND", spec[i]))
			in[count++] = (uintptr_t)pc->context;
		else if (spec[i] == 'C')
			in[count++] = crc->cubin_bytes;
	}
	return count;
}

/* INDEX "NAME" again and again. */
static void put_reasons(const struct log_call *call, struct cupti_pc_params *params)
{
	const char *at = call->text;

	for (uint64_t i = 0; i < call->out && i < params->u.count; i++) {
		char *end;
		size_t len;

		params->v.indices[i] = (uint32_t)strtoul(at, &end, 16);
		at = strchr(end, '"') + 1;
		len = strcspn(at, "\"");
		if (len > 127)
			len = 127;
		memcpy(params->names[i], at, len);
		params->names[i][len] = 0;
		at += strcspn(at, "\"") + 1;
	}
}

static uint64_t most_reasons(const void *context)
{
	uint64_t in[] = { (uintptr_t)context };
	const struct log_call *call =
		find(CALL_cuptiPCSamplingGetNumStallReasons,
		     log_key(CALL_cuptiPCSamplingGetNumStallReasons, in, 1), false);

	return call ? call->out : 0;
}

static void put_samples(const struct log_call *call, struct cupti_pc_params *params)
{
	struct cupti_log *log = log_now();
	struct cupti_pc_data *data = params->u.data;
	uint64_t most = most_reasons(params->context);

	data->total = call->total[0];
	data->dropped = call->total[1];
	data->remaining = call->total[3];
	data->other_kernels = call->total[4];
	data->hardware_full = (uint8_t)call->total[5];
	data->count = call->pc_count < data->room ? call->pc_count : data->room;
	for (size_t i = 0; i < data->count && call->first_pc + i < log->pc_count; i++) {
		const struct log_pc *from = &log->pcs[call->first_pc + i];
		struct cupti_pc *to = &data->at[i];

		to->offset = from->offset;
		to->cubin_crc = from->crc;
		to->function = (char *)(uintptr_t)from->function;
		to->stall_count = from->count < most ? from->count : most;
		if (to->stall_count)
			memcpy(to->stalls, &log->stalls[from->first],
			       to->stall_count * sizeof(*to->stalls));
	}
}

static bool brings(const struct log_call *call)
{
	return !call->result && (call->total[0] || call->pc_count);
}

static bool is_of(const struct log_call *call, const struct cupti_pc_params *params)
{
	return call->call == CALL_cuptiPCSamplingGetData && call->in == (uintptr_t)params->context;
}

/* Samples that came before what is being played now, behind `from`, and were not asked for yet. */
static bool is_late(const struct log_call *from, const struct cupti_pc_params *params)
{
	const struct cupti_log *log = log_now();
	uint32_t line = atomic_load(&replay.line);

	for (const struct log_call *at = from + 1; at < log->calls + log->call_count; at++)
		if (at->line <= line && is_of(at, params) && !at->used && brings(at))
			return true;
	return false;
}

/* How often it is drained is a matter of time: what brought samples comes once each, in order,
 * a failure once until there were samples again; then nothing, or the last failure. Who comes
 * seldom is told that more is there, and spared failures that were told once. */
static uint32_t drain(struct cupti_pc_params *params)
{
	struct cupti_log *log = log_now();
	struct cupti_pc_data *data = params->u.data;
	struct log_call *found = NULL, *last = NULL;
	uint32_t told = 0;

	data->total = data->dropped = data->other_kernels = data->remaining = data->count = 0;
	for (size_t i = 0; i < log->call_count; i++) {
		struct log_call *at = &log->calls[i];

		if (!is_of(at, params))
			continue;
		last = at;
		told = at->used && at->result ? at->result : told;
		if (at->used || !(at->result || brings(at)))
			continue;
		if (found && (brings(at) || at->result != found->result))
			break;
		at->used = true; /* so are the same failures behind it */
		if (at->result && at->result == told && is_late(at, params))
			continue;
		found = found ? found : at;
		if (!at->result)
			break;
	}
	if (found && !found->result) {
		put_samples(found, params);
		data->remaining += is_late(found, params);
	}
	if (found)
		return found->result;
	return last ? last->result : RESULT_NOT_SUPPORTED;
}

static void put_out(const struct log_call *call, const char *spec, uintptr_t *args)
{
	struct cupti_pc_params *pc = (void *)args[0];

	for (int i = 0; spec[i]; i++) {
		if (spec[i] == 'U')
			*(uint32_t *)args[i] = (uint32_t)call->out;
		else if (spec[i] == 'Z')
			*(size_t *)args[i] = call->out;
		else if (spec[i] == 'T')
			*(const char **)args[i] = call->text;
		else if (spec[i] == 'C')
			((struct cupti_crc_params *)args[0])->crc = call->out;
		else if (spec[i] == 'n')
			*pc->u.counts = call->out;
		else if (spec[i] == 'N')
			put_reasons(call, pc);
	}
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* What a call that went well changes here. */
static void take(enum cupti_call call, uintptr_t *args)
{
	uint32_t cbid = (uint32_t)args[3];

	if (call == CALL_cuptiSubscribe) {
		*(void **)args[0] = &replay;
		replay.user = (void *)args[2];
		replay.base_ns = clock_ns(CLOCK_MONOTONIC);
		replay.base_real_ns = clock_ns(CLOCK_REALTIME);
		replay.callback = (cupti_callback_fn *)args[1];
	} else if (call == CALL_cuptiUnsubscribe) {
		replay.callback = NULL;
	} else if (call == CALL_cuptiActivityRegisterCallbacks) {
		replay.asked = (cupti_buffer_asked *)args[0];
		replay.done = (cupti_buffer_done *)args[1];
	} else if (call == CALL_cuptiEnableCallback && args[2] < 4 && cbid < CALLS_MAX) {
		if (args[0])
			replay.watched[args[2]][cbid / 64] |= UINT64_C(1) << cbid % 64;
		else
			replay.watched[args[2]][cbid / 64] &= ~(UINT64_C(1) << cbid % 64);
	}
}

/* What the log does not know, as it was not asked then: what gives something out fails. */
static uint32_t answer(enum cupti_call call, uintptr_t p, uintptr_t q, uintptr_t r, uintptr_t s)
{
	static _Atomic uint32_t count;
	uintptr_t args[CUPTI_LOG_ARGS] = { p, q, r, s };
	uint64_t in[CUPTI_LOG_ARGS];
	const char *spec = specs[call];
	bool once = call == CALL_cuptiActivityGetNumDroppedRecords;
	uint32_t result = puppet_word(names[call]);
	struct log_call *found;

	if (atomic_fetch_add(&count, 1) + 1 == puppet_word("fail-call"))
		return RESULT_UNKNOWN;
	if (result)
		return result;
	if (*spec == 'D')
		return drain((struct cupti_pc_params *)p);
	found = find(call, log_key(call, in, numbers_in(spec, args, in)), once);
	if (found && found->result)
		return found->result;
	if (!found && once)
		*(size_t *)r = 0;
	else if (!found && strpbrk(spec, "UZTnNDC"))
		return RESULT_NOT_SUPPORTED;
	else if (found)
		put_out(found, spec, args);
	if (found && once)
		found->used = true;
	take(call, args);
	return 0;
}

#define X(name, spec)                                                      \
	uint32_t name(uintptr_t p, uintptr_t q, uintptr_t r, uintptr_t s); \
	uint32_t name(uintptr_t p, uintptr_t q, uintptr_t r, uintptr_t s)  \
	{                                                                  \
		return answer(CALL_##name, p, q, r, s);                    \
	}
CUPTI_LOG_SPECS(X)
#undef X

uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at = *record;
	uint32_t kind;

	if (at) {
		memcpy(&kind, at, sizeof(kind));
		if (kind >= CUPTI_LOG_KINDS || !log_now()->strides[kind])
			return CUPTI_RESULT_MAX_LIMIT;
		at += log_now()->strides[kind];
	} else {
		at = buffer;
	}
	if (at >= buffer + valid)
		return CUPTI_RESULT_MAX_LIMIT;
	*record = at;
	return 0;
}
