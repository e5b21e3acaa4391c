/*
 * pcsamp.c - continuous PC sampling: which instruction each warp stood at, and
 * why it did not issue.
 *
 * One pc_context for each CUDA context, enabled and configured in its CREATED
 * callback, before another thread can launch in it, and never disabled: Disable,
 * Start and Stop wait for the driver's lock with CUPTI's own in hand, a launch takes
 * them the other way round, and both hang for ever (CUPTI 13.0, each time:
 * tests/gpu/pc_switch.cu). Only GetData can be called while others launch. So the
 * period is for the whole run, what is sampled while recording is paused is thrown
 * away here, and a context whose hardware buffer ran over is only asked again: should
 * it have room once more, its samples count from then on (CUPTI 13.0: it never has).
 *
 * CUPTI's threads decode what the card wrote each 100 ms: samples come that much
 * later, and the last drain waits for them.
 *
 * `busy` keeps the thread, the callback and the exit out of each other's way;
 * who cannot get it within a bounded time gives up and the samples are lost,
 * counted by CUPTI's own totals.
 */
#include "inject/inject.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	ROOM = 2048, /* PCs a drain returns at once */
	REASONS_MAX = 128,
	REASON_NAME = 128,   /* CUPTI_STALL_REASON_STRING_SIZE */
	PC_VERSION_MIN = 26, /* CUDA 12.8: before it the continuous mode is not stable */
	DRAIN_ROUNDS = 64,
	PERIOD = 18, /* 2^18 cycles: 960,000 samples a second of a full H200 */
};

static const uint64_t DRAIN_NS = 1000000000;
static const uint64_t DECODED_NS = 150000000; /* what is older has been decoded */
/* For the last samples; for the first of a context, which take longer. */
static const uint64_t LAST_NS = 250000000, FIRST_NS = 600000000, LAST_NAP_NS = 10000000;
/* CUPTI may write into the buffer of a context that goes, until it is gone. */
static const uint64_t GONE_NS = 10000000000;

/* Device memory for samples; CUPTI's own default is 512 MiB. With it goes the
 * period: at CUPTI's own, about 2^13 cycles, a full H200 makes 12 million samples
 * a second and overflows this; 2^16 did not (doc/measured.md). */
static const uint64_t HARDWARE_BYTES = 128 << 20;
static const uint64_t SCRATCH_BYTES = 4 << 20;

struct pc_buffer {
	struct cupti_pc_data data;
	struct cupti_pc *pcs;
	struct cupti_pc_stall *stalls;
};

struct pc_context {
	void *_Atomic context;
	uint32_t id, device;
	_Atomic bool busy, on;
	_Atomic bool enabled;     /* CUPTI samples it, whether we ask for it or not */
	_Atomic bool full;        /* its memory for samples, as it was last asked */
	_Atomic uint64_t gone_ns; /* when it went; 0: it is there */
	bool counted;             /* told to be so: its samples count */
	bool was_full;
	uint64_t drained_ns;      /* the last time that it went well */
	_Atomic uint64_t samples; /* so far */
	size_t reasons;
	struct pc_buffer configured, drain;
};

static bool enter(_Atomic bool *busy)
{
	struct timespec ms = { 0, 1000000 };

	for (int i = 0; i < 500; i++) {
		if (!atomic_exchange(busy, true))
			return true;
		(void)nanosleep(&ms, NULL);
	}
	return false;
}

static bool buffer_new(struct pc_buffer *buffer, size_t reasons)
{
	buffer->pcs = calloc(ROOM, sizeof(*buffer->pcs));
	buffer->stalls = calloc(ROOM * reasons, sizeof(*buffer->stalls));
	if (!buffer->pcs || !buffer->stalls)
		return false;
	for (size_t i = 0; i < ROOM; i++) {
		buffer->pcs[i].size = sizeof(buffer->pcs[i]);
		buffer->pcs[i].stalls = buffer->stalls + i * reasons;
	}
	buffer->data.size = sizeof(buffer->data);
	buffer->data.room = ROOM;
	buffer->data.at = buffer->pcs;
	return true;
}

static void buffer_free(struct pc_buffer *buffer)
{
	free(buffer->pcs);
	free(buffer->stalls);
	*buffer = (struct pc_buffer){ 0 };
}

static void buffers_free(struct pc_context *pc)
{
	buffer_free(&pc->configured);
	buffer_free(&pc->drain);
}

/* Whether samples of the context count: a window of the segment is open while those of any
 * do. Looked at with `telling` in hand, as a context may go while recording goes on. Those
 * of one that stopped count until `until_ns`, or 0: now. */
static void tell(struct inject *inject, struct pc_context *pc, uint64_t until_ns)
{
	struct segment_pc *told = &atomic_load(&inject->segment)->pc;
	uint64_t now, since;
	bool on;

	(void)enter(&inject->pc.telling); /* nobody has it for longer than this takes */
	now = inject_now();
	on = atomic_load(&pc->on) && !atomic_load(&pc->full) && atomic_load(&inject->pc.counts);
	if (on && !pc->counted && !inject->pc.counted++) {
		inject->pc.until_ns = now;
		if (!atomic_load(&told->first_ns))
			atomic_store(&told->first_ns, now);
		atomic_store(&told->since_ns, now);
	}
	if (!on && pc->counted) {
		if (!until_ns)
			until_ns = now;
		if (until_ns > inject->pc.until_ns)
			inject->pc.until_ns = until_ns;
		if (!--inject->pc.counted) {
			since = atomic_exchange(&told->since_ns, 0);
			atomic_fetch_add(&told->covered_ns, inject->pc.until_ns - since);
		}
	}
	pc->counted = on;
	atomic_store(&inject->pc.telling, false);
}

static void tell_begin(struct inject *inject, struct pc_context *pc)
{
	struct segment_pc *told = &atomic_load(&inject->segment)->pc;

	atomic_store(&told->period, inject->pc.period);
	atomic_fetch_add(&told->contexts, 1);
	tell(inject, pc, 0);
}

/* What came since the last good drain is lost, and maybe some before: samples have no times. */
static void tell_break(struct inject *inject, struct pc_context *pc)
{
	struct segment_pc *told = &atomic_load(&inject->segment)->pc;

	tell(inject, pc, pc->drained_ns);
	if (!atomic_load(&told->first_ns)) /* while recording was paused */
		atomic_store(&told->first_ns, inject_now());
}

static void tell_early_end(struct inject *inject, struct pc_context *pc, uint32_t result)
{
	struct segment_pc *told = &atomic_load(&inject->segment)->pc;

	atomic_store(&pc->on, false);
	tell_break(inject, pc);
	atomic_store(&told->result, result);
	atomic_fetch_add(&told->failed, 1);
}

/* Contexts are counted, not how often. */
static void tell_full(struct inject *inject, struct pc_context *pc)
{
	if (atomic_exchange(&pc->full, true))
		return;
	tell_break(inject, pc);
	if (!pc->was_full)
		atomic_fetch_add(&atomic_load(&inject->segment)->pc.full, 1);
	pc->was_full = true;
}

/* One PC into the ring. */
static void put_pc(struct segment *segment, const struct pc_context *pc, const struct cupti_pc *at)
{
	uint32_t function =
		at->function ? text_intern(segment, at->function, strlen(at->function)) : 0;

	for (size_t k = 0; k < at->stall_count && k < pc->reasons; k++) {
		struct segment_slot *slot;

		if (!at->stalls[k].samples || !(slot = slot_take(segment)))
			continue;
		slot->value = at->offset;
		slot->a = function;
		slot->b = at->stalls[k].reason;
		slot->x[0] = at->stalls[k].samples;
		slot->x[1] = pc->id;
		slot->x[2] = (uint32_t)at->cubin_crc;
		slot->x[3] = (uint32_t)(at->cubin_crc >> 32);
		slot->x[4] = pc->device;
		slot_commit(slot, SLOT_PC);
	}
}

static void count_totals(struct segment *segment, const struct cupti_pc_data *data)
{
	atomic_fetch_add(&segment->counts.pc_samples, data->total);
	atomic_fetch_add(&segment->counts.pc_dropped, data->dropped);
	atomic_fetch_add(&segment->counts.pc_other, data->other_kernels);
}

/* What a drain brought, into the ring, unless recording is paused; the samples. */
static uint64_t put(struct inject *inject, struct pc_context *pc)
{
	struct segment *segment = atomic_load(&inject->segment);
	struct cupti_pc_data *data = &pc->drain.data;
	bool counts = atomic_load(&inject->pc.counts);
	uint64_t total = data->total;

	atomic_fetch_add(&pc->samples, total);
	for (size_t i = 0; i < data->count && i < ROOM; i++) {
		if (counts)
			put_pc(segment, pc, &data->at[i]);
		/* The name is one for all PCs of a function, and CUPTI's: freeing it
		 * is a double free (seen with CUPTI 13.0). */
		data->at[i].function = NULL;
		data->at[i].stall_count = 0;
	}
	if (counts)
		count_totals(segment, data);
	data->total = data->dropped = data->other_kernels = 0;
	data->count = data->remaining = 0;
	return total;
}

static struct cupti_pc_params params_of(struct pc_context *pc, size_t bytes)
{
	return (struct cupti_pc_params){ .size = bytes, .context = pc->context };
}

enum {
	BYTES_PLAIN = offsetof(struct cupti_pc_params, u),
	BYTES_ONE = offsetof(struct cupti_pc_params, v),
	BYTES_TWO = offsetof(struct cupti_pc_params, names),
	BYTES_ALL = sizeof(struct cupti_pc_params),
};

/* Names of the reasons, once. */
static bool name_reasons(struct inject *inject, struct pc_context *pc)
{
	struct segment *segment = atomic_load(&inject->segment);
	struct cupti_pc_params params = params_of(pc, BYTES_ONE);
	uint64_t count = 0;
	uint32_t indices[REASONS_MAX];
	char *names[REASONS_MAX];
	char *room;

	params.u.counts = &count;
	if (inject->cupti.cuptiPCSamplingGetNumStallReasons(&params) || !count ||
	    count > REASONS_MAX)
		return false;
	room = calloc(count, REASON_NAME);
	if (!room)
		return false;
	for (size_t i = 0; i < count; i++)
		names[i] = room + i * REASON_NAME;
	params = params_of(pc, BYTES_ALL);
	params.u.count = count;
	params.v.indices = indices;
	params.names = names;
	pc->reasons = inject->cupti.cuptiPCSamplingGetStallReasons(&params) ? 0 : count;
	for (size_t i = 0; i < pc->reasons; i++) {
		struct segment_slot *slot = slot_take(segment);

		if (!slot)
			continue;
		slot->value = indices[i];
		slot->a = text_intern(segment, names[i], strnlen(names[i], REASON_NAME));
		slot_commit(slot, SLOT_STALL_NAME);
	}
	free(room);
	return pc->reasons > 0;
}

static uint32_t configure(struct inject *inject, struct pc_context *pc)
{
	struct cupti_pc_params params = params_of(pc, BYTES_TWO);
	struct cupti_pc_setting settings[] = {
		{ .attribute = CUPTI_PC_MODE, .value.u32 = 1 },
		{ .attribute = CUPTI_PC_FORMAT, .value.u32 = 1 },
		{ .attribute = CUPTI_PC_BUFFER, .value.pointer = &pc->configured.data },
		{ .attribute = CUPTI_PC_SCRATCH_BYTES, .value.size = SCRATCH_BYTES },
		{ .attribute = CUPTI_PC_HARDWARE_BYTES,
		  .value.size =
			  inject->pc_hardware_bytes ? inject->pc_hardware_bytes : HARDWARE_BYTES },
		{ .attribute = CUPTI_PC_PERIOD, .value.u32 = inject->pc.period },
	};

	params.u.count = sizeof(settings) / sizeof(settings[0]);
	params.v.settings = settings;
	return inject->cupti.cuptiPCSamplingSetConfigurationAttribute(&params);
}

static bool pc_possible(const struct inject *inject)
{
	return inject->trace >> TRACE_PC & 1 && inject->cupti.cuptiGetContextId &&
	       inject->cupti.cuptiGetDeviceId && inject->cupti.cuptiPCSamplingEnable &&
	       inject->cupti.cuptiPCSamplingGetData &&
	       inject->cupti.cuptiPCSamplingGetNumStallReasons &&
	       inject->cupti.cuptiPCSamplingGetStallReasons &&
	       inject->cupti.cuptiPCSamplingSetConfigurationAttribute &&
	       atomic_load(&inject->segment)->cupti_version >= PC_VERSION_MIN;
}

/* The result of the call that failed; 0: it samples. What failed half way is left as
 * it is, enabled: see above. */
static uint32_t start(struct inject *inject, struct pc_context *pc)
{
	struct cupti_pc_params params = params_of(pc, BYTES_PLAIN);
	uint32_t result = inject->cupti.cuptiPCSamplingEnable(&params);

	if (result)
		return result;
	atomic_store(&pc->enabled, true);
	if (!name_reasons(inject, pc))
		return CUPTI_RESULT_UNKNOWN;
	if (!buffer_new(&pc->configured, pc->reasons) || !buffer_new(&pc->drain, pc->reasons))
		return CUPTI_RESULT_OUT_OF_MEMORY;
	return configure(inject, pc);
}

/* `busy` is ours. The samples that came. */
static uint64_t drain(struct inject *inject, struct pc_context *pc)
{
	uint64_t samples = 0;

	for (int round = 0; round < DRAIN_ROUNDS && atomic_load(&pc->on); round++) {
		struct cupti_pc_params params = params_of(pc, BYTES_ONE);
		uint32_t result;
		bool more;

		params.u.data = &pc->drain.data;
		result = inject->cupti.cuptiPCSamplingGetData(&params);
		if (result == CUPTI_RESULT_OUT_OF_MEMORY) {
			samples += put(inject, pc); /* none, by CUPTI's header */
			tell_full(inject, pc);
			break;
		}
		if (result) {
			tell_early_end(inject, pc, result);
			break;
		}
		pc->drained_ns = inject_now();
		if (atomic_exchange(&pc->full, false))
			tell(inject, pc, 0);
		more = pc->drain.data.remaining > 0;
		samples += put(inject, pc);
		if (!more)
			break;
	}
	return samples;
}

/* All that are sampled, or only one; what came. */
static uint64_t drain_each(struct inject *inject, const struct pc_context *only)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < PC_CONTEXTS_MAX; i++) {
		struct pc_context *pc = atomic_load(&inject->pc.contexts[i]);

		if (!pc || !atomic_load(&pc->on) || (only && pc != only) || !enter(&pc->busy))
			continue;
		samples += drain(inject, pc);
		atomic_store(&pc->busy, false);
	}
	return samples;
}

enum { NONE_ON, ALL_CAME, NONE_CAME };

/* Is a context sampled, and has one of them never given a sample? For one that is full
 * nobody waits. */
static int state_of(struct inject *inject, const struct pc_context *only)
{
	int state = NONE_ON;

	for (size_t i = 0; i < PC_CONTEXTS_MAX; i++) {
		struct pc_context *pc = atomic_load(&inject->pc.contexts[i]);

		if (!pc || !atomic_load(&pc->on) || atomic_load(&pc->full) || (only && pc != only))
			continue;
		if (!atomic_load(&pc->samples))
			return NONE_CAME;
		state = ALL_CAME;
	}
	return state;
}

/* Until what the card wrote before has been decoded. A program of 28 ms of kernels that
 * waited 150 ms for its first samples got none (seen with CUPTI 13.0). */
static void drain_last(struct inject *inject, const struct pc_context *only)
{
	struct timespec nap = { 0, (long)LAST_NAP_NS };
	uint64_t begun = inject_now(), came = begun;
	uint64_t most = state_of(inject, only) == NONE_CAME ? FIRST_NS : LAST_NS;

	if (!atomic_load(&inject->pc.counts))
		return; /* what comes would be thrown away */
	for (;;) {
		uint64_t now = inject_now();

		if (drain_each(inject, only))
			came = now;
		if (now - begun > most ||
		    (now - came > DECODED_NS && state_of(inject, only) != NONE_CAME))
			return;
		(void)nanosleep(&nap, NULL);
	}
}

/* A place that nobody has, or had long ago, `busy` for us; NULL: there is none. It is
 * never freed: the thread may be about to look at `busy`. */
static struct pc_context *take_place(struct inject *inject)
{
	for (int i = 0; i < PC_CONTEXTS_MAX; i++) {
		struct pc_context *is = atomic_load(&inject->pc.contexts[i]), *fresh;

		if (!is && (fresh = calloc(1, sizeof(*fresh)))) {
			atomic_store(&fresh->busy, true);
			if (atomic_compare_exchange_strong(&inject->pc.contexts[i], &is, fresh))
				return fresh;
			free(fresh);
		}
		/* Still busy: somebody hangs in CUPTI with its buffers. */
		if (!is || !atomic_load(&is->gone_ns) ||
		    inject_now() - atomic_load(&is->gone_ns) < GONE_NS ||
		    atomic_exchange(&is->busy, true))
			continue;
		if (atomic_load(&is->gone_ns)) {
			buffers_free(is);
			atomic_store(&is->enabled, false);
			atomic_store(&is->full, false);
			is->was_full = false;
			atomic_store(&is->samples, 0);
			is->reasons = 0;
			return is;
		}
		atomic_store(&is->busy, false); /* another thread was faster */
	}
	return NULL;
}

static uint64_t device_bit(const struct pc_context *pc)
{
	return UINT64_C(1) << pc->device % 64;
}

/* A second context of a card is not sampled: from its end on CUPTI would refuse all
 * that come after it (seen with CUPTI 13.0). Taken before Enable: two threads may make
 * contexts at once. */
static bool take_device(struct inject *inject, const struct pc_context *pc)
{
	uint64_t bit = device_bit(pc);

	return !(atomic_fetch_or(&inject->pc.devices, bit) & bit);
}

static void leave_device(struct inject *inject, const struct pc_context *pc)
{
	atomic_fetch_and(&inject->pc.devices, ~device_bit(pc));
}

/* Which it is; of a card that CUPTI does not name nobody knows whether another context is
 * sampled already. */
static uint32_t name_context(struct inject *inject, struct pc_context *pc)
{
	uint32_t result = inject->cupti.cuptiGetContextId(pc->context, &pc->id);

	return result ? result : inject->cupti.cuptiGetDeviceId(pc->context, &pc->device);
}

/* [setup] */
void pc_context_created(struct inject *inject, void *context)
{
	enum segment_lack lack = LACK_PC_SAMPLING;
	struct pc_context *pc;
	uint32_t result;

	if (!pc_possible(inject))
		return;
	pc = take_place(inject);
	if (!pc) {
		inject_lacks(inject, LACK_PC_CONTEXTS, CUPTI_RESULT_MAX_LIMIT);
		return;
	}
	pc->context = context;
	atomic_store(&pc->gone_ns, 0);
	result = name_context(inject, pc);
	if (!result && !take_device(inject, pc)) {
		lack = LACK_PC_CONTEXTS;
		result = CUPTI_RESULT_MAX_LIMIT;
	} else if (!result) {
		result = start(inject, pc);
		if (!atomic_load(&pc->enabled))
			leave_device(inject, pc);
	}
	if (result)
		inject_lacks(inject, lack, result);
	atomic_store(&pc->on, !result);
	if (!result)
		tell_begin(inject, pc);
	pc->drained_ns = inject_now();
	atomic_store(&pc->busy, false);
}

/* [setup] In the context's own thread, and nobody else may use it any more. */
void pc_context_destroyed(struct inject *inject, void *context)
{
	for (size_t i = 0; i < PC_CONTEXTS_MAX; i++) {
		struct pc_context *pc = atomic_load(&inject->pc.contexts[i]);
		bool mine;

		if (!pc || pc->context != context || atomic_load(&pc->gone_ns))
			continue;
		if (state_of(inject, pc) != NONE_ON)
			drain_last(inject, pc);
		mine = enter(&pc->busy);
		if (atomic_exchange(&pc->on, false))
			tell(inject, pc, 0);
		atomic_store(&pc->gone_ns, inject_now());
		if (atomic_load(&pc->enabled))
			leave_device(inject, pc);
		if (mine)
			atomic_store(&pc->busy, false);
		return;
	}
}

/* [thread] */
void pc_drain(struct inject *inject)
{
	if (inject->trace >> TRACE_PC & 1)
		(void)drain_each(inject, NULL);
}

/* [setup], [final] */
void pc_end(struct inject *inject)
{
	if (!(inject->trace >> TRACE_PC & 1))
		return;
	if (state_of(inject, NULL) != NONE_ON)
		drain_last(inject, NULL);
	for (size_t i = 0; i < PC_CONTEXTS_MAX; i++) {
		struct pc_context *pc = atomic_load(&inject->pc.contexts[i]);

		if (pc && atomic_exchange(&pc->on, false))
			tell(inject, pc, 0);
	}
}

/* [thread] at each tick: drains once a second; samples follow the recording's windows, as much
 * later as they come. */
void pc_follow(struct inject *inject)
{
	uint64_t now = inject_now();
	bool wanted = atomic_load(&inject->active);

	if (!(inject->trace >> TRACE_PC & 1))
		return;
	if (now - inject->pc.drained_ns > DRAIN_NS) {
		inject->pc.drained_ns = now;
		pc_drain(inject);
	}
	if (wanted == atomic_load(&inject->pc.counts)) {
		inject->pc.turn_ns = 0;
		return;
	}
	if (!inject->pc.turn_ns)
		inject->pc.turn_ns = now;
	if (now - inject->pc.turn_ns < DECODED_NS)
		return;
	pc_drain(inject);
	inject->pc.turn_ns = 0;
	atomic_store(&inject->pc.counts, wanted);
	for (size_t i = 0; i < PC_CONTEXTS_MAX; i++) {
		struct pc_context *pc = atomic_load(&inject->pc.contexts[i]);

		if (pc && atomic_load(&pc->on))
			tell(inject, pc, 0);
	}
}

/* [setup] */
void pc_setup(struct inject *inject)
{
	inject->pc.period = inject->pc_period ? inject->pc_period : PERIOD;
	atomic_store(&inject->pc.counts, atomic_load(&inject->active));
}
