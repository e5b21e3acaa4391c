/*
 * pcsamp.c - continuous PC sampling: which instruction each warp stood at, and
 * why it did not issue.
 *
 * One pc_context for each CUDA context, made in its CREATED callback. Our
 * thread drains once a second and switches sampling off and on (pcgovern.c says
 * when); the last samples come with Disable, which writes into the buffer given
 * at configuration, by the thread, in the DESTROY_STARTING callback or at exit.
 * CUPTI's GetData wants a buffer other than that one.
 *
 * A context whose hardware buffer ran over (OUT_OF_MEMORY) gives no more samples
 * until it is disabled, enabled and configured again.
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
};

/* Device memory for samples; CUPTI's own default is 512 MiB. With it goes the
 * period: at CUPTI's own, about 2^13 cycles, a full H200 makes 12 million samples
 * a second and overflows this; 2^20 makes 240,000. */
static const uint64_t HARDWARE_BYTES = 128 << 20;
static const uint64_t SCRATCH_BYTES = 4 << 20;

struct pc_buffer {
	struct cupti_pc_data data;
	struct cupti_pc *pcs;
	struct cupti_pc_stall *stalls;
};

struct pc_context {
	void *context;
	uint32_t id, device;
	_Atomic bool busy;
	bool on;
	bool overrun; /* gives nothing until it is started anew */
	size_t reasons;
	struct pc_buffer configured, drain;
};

static bool enter(struct pc_context *pc)
{
	struct timespec ms = { 0, 1000000 };

	for (int i = 0; i < 500; i++) {
		if (!atomic_exchange(&pc->busy, true))
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

/* Sampling of the context begins or ends. */
static void tell(struct inject *inject, const struct pc_context *pc, enum pc_why why)
{
	struct segment_slot *slot = slot_take(atomic_load(&inject->segment));

	if (!slot)
		return;
	slot->value = pc->on;
	slot->b = why;
	slot->x[0] = pc->id;
	slot->x[1] = inject->pc.period;
	slot->x[2] = inject->pc.cost_permille;
	slot->x[4] = pc->device;
	slot_commit(slot, SLOT_PC_WINDOW);
}

/* Samples of one buffer into the ring. */
static void put(struct inject *inject, struct pc_context *pc, struct pc_buffer *buffer)
{
	struct segment *segment = atomic_load(&inject->segment);

	for (size_t i = 0; i < buffer->data.count && i < ROOM; i++) {
		struct cupti_pc *at = &buffer->pcs[i];
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
		/* The name is one for all PCs of a function, and CUPTI's: freeing it
		 * is a double free (seen with CUPTI 13.0). */
		at->function = NULL;
		at->stall_count = 0;
	}
	if (buffer->data.total || buffer->data.dropped) {
		struct segment_slot *slot = slot_take(segment);

		inject->pc.samples += buffer->data.total;
		inject->pc.dropped += buffer->data.dropped;
		atomic_fetch_add(&segment->counts.pc_samples, buffer->data.total);
		atomic_fetch_add(&segment->counts.pc_dropped, buffer->data.dropped);
		if (slot) {
			slot->value = buffer->data.total;
			slot->x[0] = (uint32_t)buffer->data.dropped;
			slot->x[1] = (uint32_t)buffer->data.other_kernels;
			slot->x[2] = pc->id;
			slot_commit(slot, SLOT_PC_TOTALS);
		}
	}
	buffer->data.total = buffer->data.dropped = buffer->data.other_kernels = 0;
	buffer->data.count = buffer->data.remaining = 0;
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
		{ .attribute = CUPTI_PC_SCRATCH_BYTES,
		  .value.size =
			  inject->pc_scratch_bytes ? inject->pc_scratch_bytes : SCRATCH_BYTES },
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
	return inject->trace >> TRACE_PC & 1 && inject->cupti.cuptiPCSamplingEnable &&
	       inject->cupti.cuptiPCSamplingDisable && inject->cupti.cuptiPCSamplingGetData &&
	       inject->cupti.cuptiPCSamplingGetNumStallReasons &&
	       inject->cupti.cuptiPCSamplingGetStallReasons &&
	       inject->cupti.cuptiPCSamplingSetConfigurationAttribute &&
	       atomic_load(&inject->segment)->cupti_version >= PC_VERSION_MIN;
}

/* `busy` is ours. The result of the call that failed; 0: it samples. */
static uint32_t start(struct inject *inject, struct pc_context *pc, enum pc_why why)
{
	struct cupti_pc_params params = params_of(pc, BYTES_PLAIN);
	uint32_t result = inject->cupti.cuptiPCSamplingEnable(&params);

	if (result)
		return result;
	if (!pc->reasons && !name_reasons(inject, pc))
		result = CUPTI_RESULT_UNKNOWN;
	if (!result && !pc->drain.pcs &&
	    (!buffer_new(&pc->configured, pc->reasons) || !buffer_new(&pc->drain, pc->reasons)))
		result = CUPTI_RESULT_OUT_OF_MEMORY;
	if (!result)
		result = configure(inject, pc);
	if (result) {
		params = params_of(pc, BYTES_PLAIN);
		(void)inject->cupti.cuptiPCSamplingDisable(&params);
		return result;
	}
	pc->on = true;
	pc->overrun = false;
	tell(inject, pc, why);
	return 0;
}

static void drain(struct inject *inject, struct pc_context *pc)
{
	for (int round = 0; round < DRAIN_ROUNDS; round++) {
		struct cupti_pc_params params = params_of(pc, BYTES_ONE);
		uint32_t result;
		bool more;

		params.u.data = &pc->drain.data;
		result = inject->cupti.cuptiPCSamplingGetData(&params);
		if (result == CUPTI_RESULT_OUT_OF_MEMORY)
			pc->overrun = true;
		if (result)
			return;
		more = pc->drain.data.remaining > 0;
		put(inject, pc, &pc->drain);
		if (!more)
			return;
	}
}

/* `busy` is ours. */
static void stop(struct inject *inject, struct pc_context *pc, enum pc_why why)
{
	struct cupti_pc_params params = params_of(pc, BYTES_PLAIN);

	if (!pc->on)
		return;
	drain(inject, pc);
	if (!inject->cupti.cuptiPCSamplingDisable(&params))
		put(inject, pc, &pc->configured);
	pc->on = false;
	/* What it overran with nobody knows. */
	tell(inject, pc, pc->overrun && why == PC_WHY_END ? PC_WHY_LOST : why);
}

/* The thread sees it from now on, and waits for `busy`: who switches all off or on
 * while it begins does so to it, too. Its place; -1: there is none. */
static int publish(struct inject *inject, struct pc_context *pc)
{
	for (int i = 0; i < PC_CONTEXTS_MAX; i++) {
		struct pc_context *none = NULL;

		if (atomic_compare_exchange_strong(&inject->pc.contexts[i], &none, pc))
			return i;
	}
	return -1;
}

/* [setup] */
void pc_context_created(struct inject *inject, void *context)
{
	struct pc_context *pc = pc_possible(inject) ? calloc(1, sizeof(*pc)) : NULL;
	uint32_t result = 0;
	int place;

	if (!pc)
		return;
	pc->context = context;
	if (inject->cupti.cuptiGetContextId)
		(void)inject->cupti.cuptiGetContextId(context, &pc->id);
	if (inject->cupti.cuptiGetDeviceId)
		(void)inject->cupti.cuptiGetDeviceId(context, &pc->device);
	atomic_store(&pc->busy, true);
	place = publish(inject, pc);
	if (place < 0) {
		inject_reason(inject, SEGMENT_REASON_NO_PC_SAMPLING, 0);
		free(pc);
		return;
	}
	if (pc_govern_begin(inject))
		result = start(inject, pc, PC_WHY_WANTED);
	/* Off meanwhile, by a thread that waited for `busy` in vain. */
	if (!pc_govern_begin(inject))
		stop(inject, pc, PC_WHY_WANTED);
	if (result) {
		inject_reason(inject, SEGMENT_REASON_NO_PC_SAMPLING, result);
		atomic_store(&inject->pc.contexts[place], NULL);
		buffers_free(pc);
	}
	/* Itself not freed: the thread may be about to look at `busy`. */
	atomic_store(&pc->busy, false);
}

/* For all contexts, out of the way of callbacks and of the exit. */
static void each_context(struct inject *inject, enum pc_why why,
			 void (*act)(struct inject *inject, struct pc_context *pc, enum pc_why why))
{
	for (size_t i = 0; i < PC_CONTEXTS_MAX; i++) {
		struct pc_context *pc = atomic_load(&inject->pc.contexts[i]);

		if (!pc || !enter(pc))
			continue;
		if (atomic_load(&inject->pc.contexts[i]) == pc)
			act(inject, pc, why);
		atomic_store(&pc->busy, false);
	}
}

static void drain_one(struct inject *inject, struct pc_context *pc, enum pc_why why)
{
	(void)why;
	if (pc->on)
		drain(inject, pc);
	inject->pc.overrun |= pc->overrun;
}

static void start_one(struct inject *inject, struct pc_context *pc, enum pc_why why)
{
	uint32_t result = pc->on ? 0 : start(inject, pc, why);

	if (result)
		inject_reason(inject, SEGMENT_REASON_NO_PC_SAMPLING, result);
}

static void restart_one(struct inject *inject, struct pc_context *pc, enum pc_why why)
{
	stop(inject, pc, why);
	start_one(inject, pc, why);
}

/* [thread], [final] */
void pc_drain(struct inject *inject)
{
	if (!(inject->trace >> TRACE_PC & 1))
		return;
	if (atomic_load(&inject->leaving))
		each_context(inject, PC_WHY_END, stop);
	else
		each_context(inject, PC_WHY_WANTED, drain_one);
}

/* [thread] */
void pc_switch(struct inject *inject, bool on, enum pc_why why)
{
	each_context(inject, why, on ? start_one : stop);
}

/* [thread] */
void pc_restart(struct inject *inject, enum pc_why why)
{
	each_context(inject, why, restart_one);
}

/* [setup] */
void pc_context_destroyed(struct inject *inject, void *context)
{
	for (size_t i = 0; i < PC_CONTEXTS_MAX; i++) {
		struct pc_context *pc = atomic_load(&inject->pc.contexts[i]);

		if (!pc || pc->context != context || !enter(pc))
			continue;
		atomic_store(&inject->pc.contexts[i], NULL);
		stop(inject, pc, PC_WHY_END);
		buffers_free(pc);
		/* Itself not freed: the thread may be about to look at `busy`. */
		atomic_store(&pc->busy, false);
		return;
	}
}
