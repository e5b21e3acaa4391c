#include "collect/roster.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { OPENERS_MAX = 64 };

/* A process on a card, or a card itself (pid 0). */
struct worker {
	char uuid[96];
	int64_t pid, start_ticks;
	int64_t known_ns; /* monotonic: watched since */
	int64_t work_ns;  /* monotonic: last seen at work; 0 never */
	uint64_t round;
};

struct roster {
	struct procs *procs;
	VEC(struct worker) workers;
	VEC(struct roster_row) rows;
	VEC(struct proc) openers;
	uint64_t round;
};

struct roster *roster_new(struct procs *procs)
{
	struct roster *roster = mem_zero(sizeof(*roster));

	roster->procs = procs;
	return roster;
}

void roster_free(struct roster *roster)
{
	if (!roster)
		return;
	VEC_DONE(&roster->workers);
	VEC_DONE(&roster->rows);
	VEC_DONE(&roster->openers);
	free(roster);
}

static struct worker *find_worker(struct roster *roster, const struct board *board, int64_t pid,
				  int64_t start_ticks, int64_t now_ns)
{
	struct worker *worker = NULL;

	for (size_t i = 0; !worker && i < roster->workers.count; i++) {
		struct worker *at = &roster->workers.at[i];

		if (at->pid == pid && !strcmp(at->uuid, board->uuid))
			worker = at;
	}
	if (!worker) {
		worker = VEC_ADD(&roster->workers);
		memcpy(worker->uuid, board->uuid, sizeof(worker->uuid));
		worker->pid = pid;
	}
	/* The same number may be another process by now. */
	if (!worker->known_ns || worker->start_ticks != start_ticks) {
		worker->start_ticks = start_ticks;
		worker->known_ns = now_ns;
		worker->work_ns = 0;
	}
	worker->round = roster->round;
	return worker;
}

/* Those that are no longer there. */
static void forget(struct roster *roster)
{
	size_t kept = 0;

	for (size_t i = 0; i < roster->workers.count; i++) {
		if (roster->workers.at[i].round == roster->round)
			roster->workers.at[kept++] = roster->workers.at[i];
	}
	roster->workers.count = kept;
}

/* What the driver's ring says about times before this round. */
static void look_back(const struct snapshot *snapshot, uint32_t board, struct worker *worker)
{
	for (size_t i = 0; i < snapshot->points.count; i++) {
		const struct ring_point *point = &snapshot->points.at[i];
		int64_t age_ns = snapshot->utc_ns - point->utc_ns;
		int64_t at_ns = snapshot->monotonic_ns - age_ns;

		if (point->board != board || point->metric != METRIC_util_pct || age_ns < 0)
			continue;
		if (at_ns < worker->known_ns)
			worker->known_ns = at_ns;
		if (point->value > 0 && at_ns > worker->work_ns)
			worker->work_ns = at_ns;
	}
}

static int64_t rest_ns(const struct worker *worker, int64_t now_ns)
{
	return now_ns - (worker->work_ns > worker->known_ns ? worker->work_ns : worker->known_ns);
}

/* How long nothing ran on the card; 0: something does; -1 unknown. */
static int64_t board_idle(struct roster *roster, const struct snapshot *snapshot, uint32_t place)
{
	const struct board *board = &snapshot->boards.at[place];
	struct worker *worker = find_worker(roster, board, 0, 0, snapshot->monotonic_ns);
	double util_pct = 0, gr_active_pct = 0;
	bool known = board_get(board, METRIC_util_pct, &util_pct, NULL);

	/* Utilisation looks back up to a second; GPM covers the round. */
	known = board_get(board, METRIC_gr_active_pct, &gr_active_pct, NULL) || known;
	if (!known || util_pct > 0 || gr_active_pct > 0)
		worker->work_ns = snapshot->monotonic_ns;
	look_back(snapshot, place, worker);
	return known ? rest_ns(worker, snapshot->monotonic_ns) : -1;
}

static bool at_work(const struct board_process *process)
{
	static const enum metric use[] = { METRIC_proc_sm_pct,  METRIC_proc_mem_pct,
					   METRIC_proc_enc_pct, METRIC_proc_dec_pct,
					   METRIC_proc_jpg_pct, METRIC_proc_ofa_pct };

	for (size_t i = 0; i < sizeof(use) / sizeof(*use); i++) {
		double value;

		if (sample_get(&process->sample, use[i], &value) && value > 0)
			return true;
	}
	return false;
}

static int64_t process_idle(struct roster *roster, const struct snapshot *snapshot,
			    const struct board_process *process, const struct proc *proc,
			    int64_t board_idle_ns)
{
	const struct board *board = &snapshot->boards.at[process->board];
	int64_t now_ns = snapshot->monotonic_ns;
	struct worker *worker = find_worker(roster, board, process->pid, proc->start_ticks, now_ns);
	double sm_pct;
	bool told = sample_get(&process->sample, METRIC_proc_sm_pct, &sm_pct);
	int64_t idle_ns, age_ns = snapshot->utc_ns - proc->start_utc_ns;

	if (at_work(process) || !told)
		worker->work_ns = now_ns;
	if (at_work(process))
		return 0;
	/* On a busy card that tells nobody's use, this one may be at work. */
	if (!told && board_idle_ns <= 0)
		return -1;
	idle_ns = rest_ns(worker, now_ns);
	idle_ns = board_idle_ns > idle_ns ? board_idle_ns : idle_ns;
	if (proc->state == PROC_OK && proc->start_utc_ns && age_ns >= 0 && age_ns < idle_ns)
		idle_ns = age_ns;
	return idle_ns > 0 ? idle_ns : 1;
}

static bool in_rows(const struct roster *roster, int64_t pid)
{
	for (size_t i = 0; i < roster->rows.count; i++) {
		if (roster->rows.at[i].proc.pid == pid && roster->rows.at[i].proc.state == PROC_OK)
			return true;
	}
	return false;
}

static void find_openers(struct roster *roster)
{
	int64_t pids[OPENERS_MAX];
	bool foreign = false;
	size_t count;

	roster->openers.count = 0;
	for (size_t i = 0; !foreign && i < roster->rows.count; i++)
		foreign = roster->rows.at[i].proc.state == PROC_FOREIGN;
	if (!roster->procs || (!foreign && roster->rows.count) || !procs_nested(roster->procs))
		return;
	count = procs_with_gpu_open(roster->procs, pids, OPENERS_MAX);
	for (size_t i = 0; i < count; i++) {
		struct proc proc;

		/* The child that asks the driver is one of us. */
		if (!in_rows(roster, pids[i]) &&
		    procs_read(roster->procs, pids[i], &proc) == PROC_OK && proc.parent != getpid())
			*VEC_ADD(&roster->openers) = proc;
	}
}

const struct proc *roster_openers(const struct roster *roster, size_t *ret_count)
{
	*ret_count = roster->openers.count;
	return roster->openers.at;
}

const struct roster_row *roster_update(struct roster *roster, const struct snapshot *snapshot,
				       size_t *ret_count)
{
	VEC(int64_t) idle = { 0 };

	roster->round++;
	roster->rows.count = 0;
	for (size_t i = 0; i < snapshot->boards.count; i++)
		*VEC_ADD(&idle) = board_idle(roster, snapshot, (uint32_t)i);
	for (size_t i = 0; i < snapshot->processes.count; i++) {
		const struct board_process *process = &snapshot->processes.at[i];
		struct roster_row *row;

		if (process->board >= snapshot->boards.count)
			continue;
		row = VEC_ADD(&roster->rows);
		row->place = (uint32_t)i;
		row->board = process->board;
		row->proc = (struct proc){ .pid = process->pid, .state = PROC_FOREIGN, .uid = -1 };
		if (roster->procs)
			(void)procs_read(roster->procs, process->pid, &row->proc);
		row->idle_ns = process_idle(roster, snapshot, process, &row->proc,
					    idle.at[process->board]);
	}
	forget(roster);
	find_openers(roster);
	VEC_DONE(&idle);
	*ret_count = roster->rows.count;
	return roster->rows.at;
}

int64_t roster_unaccounted_bytes(const struct snapshot *snapshot, uint32_t board)
{
	double used, sum = 0;

	if (!board_get(&snapshot->boards.at[board], METRIC_mem_used_bytes, &used, NULL))
		return -1;
	for (size_t i = 0; i < snapshot->boards.count; i++) {
		if (snapshot->boards.at[i].parent == (int32_t)board)
			return -1;
	}
	for (size_t i = 0; i < snapshot->processes.count; i++) {
		double bytes;

		if (snapshot->processes.at[i].board != board)
			continue;
		if (!sample_get(&snapshot->processes.at[i].sample, METRIC_proc_mem_used_bytes,
				&bytes))
			return -1;
		sum += bytes;
	}
	return used > sum && used < 9e18 ? (int64_t)(used - sum) : 0;
}
