/*
 * Who is on a card. Three lists (compute, graphics, MPS clients) say who and how
 * much memory; the use samples say who did something since the round before,
 * among rows that can't be true: those are counted and left out.
 *
 * The driver knows PIDs of the first PID namespace only. On a card with MIG
 * the list of the card names the instance of each process if we have the
 * right to see it; if not, each instance is asked for its own.
 */
#include "collect/card.h"

#include <string.h>

#include "base/mem.h"
#include "collect/collector.h"

enum { ROWS_FIRST = 64, ROWS_MAX = 65536, PERCENT_MAX = 100 };

/* A row in whichever form the driver gave it. */
struct row {
	uint32_t pid, gpu_instance, compute_instance;
	uint64_t used_bytes;
};

/* Room in the scratch list for `rows` of `size` bytes. */
static void *list_room(struct cards *cards, size_t rows, size_t size)
{
	if (cards->list_bytes < rows * size) {
		free(cards->list);
		cards->list = mem_zero(rows * size);
		cards->list_bytes = rows * size;
	}
	return cards->list;
}

/* Newest name first. Bytes of a row in *ret_stride. */
static int call_list(struct cards *cards, struct nvml_device *device, int kind, uint32_t *count,
		     size_t *ret_stride)
{
	struct nvml *nvml = &cards->nvml;
	bool long_rows =
		nvml->driver_major == 535 && nvml->driver_minor >= 43 && nvml->driver_minor < 86;
	int status = NVML_NO_FUNCTION;

#define LIST(form)                                                                                   \
	(kind == PROCESS_COMPUTE    ? NVML(nvml, nvmlDeviceGetComputeRunningProcesses##form, device, \
					   count, cards->list)                                       \
	 : kind == PROCESS_GRAPHICS ? NVML(nvml, nvmlDeviceGetGraphicsRunningProcesses##form,        \
					   device, count, cards->list)                               \
				    : NVML(nvml, nvmlDeviceGetMPSComputeRunningProcesses##form,      \
					   device, count, cards->list))
	*ret_stride = long_rows ? NVML_PROCESS_STRIDE_535 : NVML_PROCESS_STRIDE;
	status = LIST(_v3);
	if (status != NVML_NO_FUNCTION)
		return status;
	*ret_stride = NVML_PROCESS_STRIDE;
	status = LIST(_v2);
	if (status != NVML_NO_FUNCTION)
		return status;
	*ret_stride = sizeof(struct nvml_process_v1);
	return LIST();
#undef LIST
}

static struct row row_at(const void *list, size_t i, size_t stride)
{
	struct nvml_process full = { .gpu_instance = UINT32_MAX, .compute_instance = UINT32_MAX };

	memcpy(&full, (const char *)list + i * stride,
	       stride < sizeof(full) ? stride : sizeof(full));
	return (struct row){ full.pid, full.gpu_instance, full.compute_instance, full.used_bytes };
}

/* The board of an instance, or the card itself. */
static uint32_t place_of(const struct cards *cards, uint32_t place, const struct row *row)
{
	if (row->gpu_instance == UINT32_MAX)
		return place;
	for (uint32_t i = place + 1; i < cards->at.count && cards->at.at[i].owner; i++) {
		const struct board *board = &cards->at.at[i].board;

		if (board->gpu_instance == (int32_t)row->gpu_instance &&
		    (row->compute_instance == UINT32_MAX ||
		     board->compute_instance == (int32_t)row->compute_instance))
			return i;
	}
	return place;
}

static struct board_process *find(struct snapshot *snapshot, size_t from, int64_t pid)
{
	for (size_t i = from; i < snapshot->processes.count; i++)
		if (snapshot->processes.at[i].pid == pid)
			return &snapshot->processes.at[i];
	return NULL;
}

static void add_row(struct cards *cards, uint32_t place, int kind, const struct row *row,
		    struct snapshot *snapshot, size_t from)
{
	uint32_t board = place_of(cards, place, row);
	struct board_process *process = find(snapshot, from, row->pid);

	if (process && process->board != board) /* one process on two instances */
		process = NULL;
	if (!process) {
		process = VEC_ADD(&snapshot->processes);
		process->board = board;
		process->pid = row->pid;
		process->gpu_instance = (int32_t)row->gpu_instance;
		process->compute_instance = (int32_t)row->compute_instance;
		process->sample.time_ns = cards->utc_ns;
	}
	process->kinds |= (uint32_t)kind;
	/* All ones: WSL and Windows do not know. Below that, zero and memory of
	 * a graphics list repeat what the compute list said. */
	if (row->used_bytes != UINT64_MAX)
		sample_set(&process->sample, METRIC_proc_mem_used_bytes, (double)row->used_bytes);
}

static int ask_list(struct cards *cards, uint32_t place, int kind, struct snapshot *snapshot,
		    size_t from)
{
	struct card *card = &cards->at.at[place];
	uint32_t room = ROWS_FIRST, count;
	size_t stride = 0;
	int status;

	do {
		(void)list_room(cards, room, NVML_PROCESS_STRIDE_535);
		count = (uint32_t)(cards->list_bytes / NVML_PROCESS_STRIDE_535);
		status = call_list(cards, card->device, kind, &count, &stride);
		/* More may come before we ask again. */
		room = count + count / 4 + 16;
	} while (status == NVML_TOO_SMALL && count && room <= ROWS_MAX);
	if (status)
		return status;
	for (uint32_t i = 0; i < count && (i + 1) * stride <= cards->list_bytes; i++) {
		struct row row = row_at(cards->list, i, stride);

		if (!row.pid)
			cards->junk_rows++;
		else
			add_row(cards, place, kind, &row, snapshot, from);
	}
	return 0;
}

/* A row of use; every number of it is doubtful until it proves true. */
static void put_use(struct cards *cards, struct card *card, struct snapshot *snapshot, size_t from,
		    const struct nvml_process_use_v1 *use, uint64_t since_us, bool engines)
{
	const uint32_t values[] = { use->sm,      use->memory, use->encoder,
				    use->decoder, use->jpeg,   use->optical_flow };
	static const enum metric metrics[] = { METRIC_proc_sm_pct,  METRIC_proc_mem_pct,
					       METRIC_proc_enc_pct, METRIC_proc_dec_pct,
					       METRIC_proc_jpg_pct, METRIC_proc_ofa_pct };
	size_t known = engines ? 6 : 4;
	/* A minute ahead of our clock: no stamp. */
	uint64_t newest_us = (uint64_t)(cards->utc_ns / 1000) + 60000000;
	struct board_process *process;
	bool junk = !use->pid || use->time_us > newest_us;

	for (size_t i = 0; i < known; i++)
		junk |= values[i] > PERCENT_MAX;
	if (junk) {
		cards->junk_rows++;
		return;
	}
	process = find(snapshot, from, use->pid);
	if (use->time_us <= since_us || !process)
		return; /* old, or of a process that has gone */
	if (use->time_us > card->use_seen_us)
		card->use_seen_us = use->time_us;
	for (size_t i = 0; i < known; i++)
		sample_set(&process->sample, metrics[i], values[i]);
}

static int ask_use(struct cards *cards, struct card *card, struct snapshot *snapshot, size_t from)
{
	uint64_t since_us = card->use_seen_us;
	uint32_t rows = ROWS_FIRST;
	struct nvml_process_uses uses;
	int status;

	do {
		void *list = list_room(cards, rows, sizeof(struct nvml_process_use_v1));

		uses = (struct nvml_process_uses){ NVML_VERSION(struct nvml_process_uses, 1),
						   (uint32_t)(cards->list_bytes /
							      sizeof(struct nvml_process_use_v1)),
						   since_us, list };
		status = NVML(&cards->nvml, nvmlDeviceGetProcessesUtilizationInfo, card->device,
			      &uses);
		rows = uses.count + 16;
	} while (status == NVML_TOO_SMALL && uses.count && rows <= ROWS_MAX &&
		 rows * sizeof(struct nvml_process_use_v1) > cards->list_bytes);
	if (status)
		return status;
	for (uint32_t i = 0; i < uses.count && i < ROWS_MAX; i++)
		put_use(cards, card, snapshot, from, &uses.at[i], since_us, true);
	return 0;
}

static int ask_use_old(struct cards *cards, struct card *card, struct snapshot *snapshot,
		       size_t from)
{
	const size_t size = sizeof(struct nvml_process_use);
	uint64_t since_us = card->use_seen_us;
	uint32_t rows = ROWS_FIRST, count;
	struct nvml_process_use *list;
	int status;

	do {
		list = list_room(cards, rows, size);
		count = (uint32_t)(cards->list_bytes / size);
		status = NVML(&cards->nvml, nvmlDeviceGetProcessUtilization, card->device, list,
			      &count, since_us);
		rows = count + 16;
	} while (status == NVML_TOO_SMALL && count && rows <= ROWS_MAX &&
		 rows * size > cards->list_bytes);
	if (status)
		return status;
	for (uint32_t i = 0; i < count && i < ROWS_MAX; i++) {
		struct nvml_process_use_v1 use = { .time_us = list[i].time_us,
						   .pid = list[i].pid,
						   .sm = list[i].sm,
						   .memory = list[i].memory,
						   .encoder = list[i].encoder,
						   .decoder = list[i].decoder };

		put_use(cards, card, snapshot, from, &use, since_us, false);
	}
	return 0;
}

/* Who is listed and has no fresh row did nothing: the driver leaves them out. */
static void fill_idle(struct snapshot *snapshot, size_t from)
{
	double value;

	for (size_t i = from; i < snapshot->processes.count; i++) {
		struct sample *sample = &snapshot->processes.at[i].sample;

		if (sample_get(sample, METRIC_proc_sm_pct, &value))
			continue;
		sample_set(sample, METRIC_proc_sm_pct, 0);
		sample_set(sample, METRIC_proc_mem_pct, 0);
	}
}

void card_ask_processes(struct cards *cards, uint32_t place, struct snapshot *snapshot)
{
	struct card *card = &cards->at.at[place];
	size_t from = snapshot->processes.count;
	uint64_t second_ago_us = (uint64_t)(cards->utc_ns / 1000) - 1000000;
	int status;

	if (card->owner) {
		/* Its card told already, unless it may not. */
		for (size_t i = 0; i < snapshot->processes.count; i++)
			if (snapshot->processes.at[i].board == place)
				return;
	}
	for (int kind = PROCESS_COMPUTE; kind <= PROCESS_MPS; kind *= 2)
		(void)ask_list(cards, place, kind, snapshot, from);
	if (card->owner || card->board.mig_mode > 0)
		return; /* the use of processes is not known with MIG */
	/* The driver renews these rows a few times a second at most. Asked again
	 * before it did, it has nothing new: that is no rest. */
	if (!card->use_seen_us || card->use_seen_us > second_ago_us)
		card->use_seen_us = second_ago_us;
	status = card->use_old ? NVML_NO_FUNCTION : ask_use(cards, card, snapshot, from);
	if (card_is_final(status) || status == NVML_INVALID) {
		card->use_old = true;
		status = ask_use_old(cards, card, snapshot, from);
	}
	/* Not found: no process had any use since. */
	if (!status || status == NVML_NOT_FOUND)
		fill_idle(snapshot, from);
}
