/*
 * puppet_samples.c - PC sampling of CUPTI's puppet.
 *
 * Each kernel gives SAMPLES samples at two offsets, for two reasons each. As
 * seen on a card, all PCs of a function share one name, which is CUPTI's: who
 * frees it makes glibc abort. Samples come when CUPTI's thread has decoded them, each
 * 100 ms. A second context of a card can't be sampled beside the first. There is no
 * Disable: on a card it hangs where another thread launches.
 */
#include "fake/puppet_cupti.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FUNCTIONS = 32, OFFSETS = 2, REASONS = 2, SAMPLES = 10, CONTEXTS = 16 };

static const char *const reason_names[] = { "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
					    "smsp__pcsamp_warps_issue_stalled_selected" };
static const uint32_t reason_indices[] = { 17, 5 };

struct sampled {
	void *context; /* NULL: not enabled */
	struct cupti_pc_data *configured;
	uint32_t period;
	uint64_t room; /* samples until the hardware buffer is full; "pc-full" */
	bool full;
	uint32_t refused; /* times since then; "pc-again" */
	uint32_t drained; /* times that it gave samples */
	int64_t decoded;  /* in which tick */
	struct {
		char *name;
		uint32_t fresh, kernels; /* not yet decoded; since the last drain */
		uint32_t untold;         /* of those, not in a total yet */
	} functions[FUNCTIONS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sampled all[CONTEXTS];

static struct sampled *find(const void *context)
{
	for (int i = 0; i < CONTEXTS; i++) {
		if (all[i].context == context)
			return &all[i];
	}
	return NULL;
}

/* Contexts begin with their id and that of their card. */
static uint32_t device_of(const void *context)
{
	return ((const uint32_t *)context)[1];
}

void puppet_wait_ns(long ns)
{
	struct timespec from, now, span = { 0, ns };

	if (ns >= 100000) { /* long: another's turn, so that a busy machine shows less */
		(void)nanosleep(&span, NULL);
		return;
	}
	if (!ns)
		return;
	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < ns);
}

/* What was sampled in an earlier tick is decoded. */
static void decode(struct sampled *in)
{
	struct timespec now;
	int64_t tick;

	clock_gettime(CLOCK_MONOTONIC, &now);
	tick = now.tv_sec * 10 + now.tv_nsec / 100000000;
	if (tick == in->decoded)
		return;
	in->decoded = tick;
	for (int i = 0; i < FUNCTIONS; i++) {
		in->functions[i].kernels += in->functions[i].fresh;
		in->functions[i].untold += in->functions[i].fresh;
		in->functions[i].fresh = 0;
	}
}

void puppet_sampled(void *context, const char *function)
{
	struct sampled *in;

	pthread_mutex_lock(&lock);
	in = context ? find(context) : NULL;
	if (in)
		decode(in);
	for (int i = 0; in && in->configured && i < FUNCTIONS; i++) {
		if (!in->functions[i].name)
			in->functions[i].name = strdup(function);
		if (strcmp(in->functions[i].name, function) != 0)
			continue;
		in->full = in->full || (puppet_word("pc-full") && in->room < SAMPLES);
		in->room -= SAMPLES;
		in->functions[i].fresh += !in->full;
		break;
	}
	pthread_mutex_unlock(&lock);
}

/* What was sampled into `data`, as far as there is room: how many PCs. As on a card the total is
 * of all that is there, and what was left over comes next time with a total of 0. */
static uint64_t fill(struct sampled *in, struct cupti_pc_data *data)
{
	data->count = data->total = data->remaining = 0;
	for (int i = 0; i < FUNCTIONS; i++) {
		uint32_t kernels = in->functions[i].kernels;

		data->total += (uint64_t)in->functions[i].untold * SAMPLES;
		in->functions[i].untold = 0;
		if (!kernels)
			continue;
		if (data->count + OFFSETS > data->room) {
			data->remaining += OFFSETS;
			continue;
		}
		for (uint32_t k = 0; k < OFFSETS; k++) {
			struct cupti_pc *pc = &data->at[data->count++];

			pc->cubin_crc = 0x1234;
			pc->offset = 16 * k;
			pc->function = in->functions[i].name;
			pc->stall_count = REASONS;
			pc->stalls[0].reason = reason_indices[0];
			pc->stalls[0].samples = kernels * (k ? 1 : 4);
			pc->stalls[1].reason = reason_indices[1];
			pc->stalls[1].samples = kernels * (k ? 2 : 3);
		}
		in->functions[i].kernels = 0;
	}
	return data->count;
}

static bool is_card_sampled(const void *context)
{
	for (int i = 0; i < CONTEXTS; i++) {
		if (all[i].context && device_of(all[i].context) == device_of(context))
			return true;
	}
	return false;
}

uint32_t cuptiPCSamplingEnable(struct cupti_pc_params *params)
{
	uint32_t result = puppet_word("pc-enable");
	struct sampled *in;

	if (result)
		return result;
	if (!params->context || params->size != offsetof(struct cupti_pc_params, u))
		return RESULT_INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	in = is_card_sampled(params->context) ? NULL : find(NULL);
	if (in)
		in->context = params->context;
	pthread_mutex_unlock(&lock);
	return in ? 0 : RESULT_INVALID_PARAMETER;
}

/* With its context it goes. */
void puppet_sampled_gone(void *context)
{
	struct sampled *in;

	pthread_mutex_lock(&lock);
	in = context ? find(context) : NULL;
	if (in)
		*in = (struct sampled){ 0 };
	pthread_mutex_unlock(&lock);
}

uint32_t cuptiPCSamplingGetNumStallReasons(struct cupti_pc_params *params)
{
	*params->u.counts = REASONS;
	return find(params->context) ? 0 : RESULT_INVALID_PARAMETER;
}

uint32_t cuptiPCSamplingGetStallReasons(struct cupti_pc_params *params)
{
	if (params->u.count < REASONS || !find(params->context))
		return RESULT_INVALID_PARAMETER;
	for (int i = 0; i < REASONS; i++) {
		params->v.indices[i] = reason_indices[i];
		memcpy(params->names[i], reason_names[i], strlen(reason_names[i]) + 1);
	}
	return 0;
}

static uint64_t room_of(const struct sampled *in)
{
	return (uint64_t)puppet_word("pc-full") << (in->period > 20 ? in->period - 20 : 0);
}

uint32_t cuptiPCSamplingSetConfigurationAttribute(struct cupti_pc_params *params)
{
	struct sampled *in = find(params->context);

	if (!in || !params->context)
		return RESULT_INVALID_PARAMETER;
	for (uint64_t i = 0; i < params->u.count; i++) {
		if (params->v.settings[i].attribute == CUPTI_PC_BUFFER)
			in->configured = params->v.settings[i].value.pointer;
		if (params->v.settings[i].attribute == CUPTI_PC_PERIOD) {
			in->period = params->v.settings[i].value.u32;
			in->room = room_of(in);
		}
		params->v.settings[i].status = 0;
	}
	return 0;
}

/* Does a context whose buffer ran over still refuse? */
static bool still_full(struct sampled *in)
{
	if (in->full && puppet_word("pc-again") && ++in->refused > puppet_word("pc-again")) {
		in->full = false;
		in->refused = 0;
		in->room = room_of(in);
	}
	return in->full;
}

uint32_t cuptiPCSamplingGetData(struct cupti_pc_params *params)
{
	uint32_t result = puppet_word("pc-data");
	struct sampled *in;

	pthread_mutex_lock(&lock);
	in = params->context ? find(params->context) : NULL;
	if (in && in->drained < puppet_word("pc-good"))
		result = 0;
	if (!result && in && still_full(in))
		result = CUPTI_RESULT_OUT_OF_MEMORY;
	else if (!result && (!in || params->u.data == in->configured))
		result = RESULT_INVALID_PARAMETER;
	if (!result) {
		decode(in);
		in->drained += fill(in, params->u.data) > 0;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

uint32_t cuptiGetCubinCrc(struct cupti_crc_params *params)
{
	params->crc = 0x1234;
	return 0;
}
