#include <string.h>

#include "present/prometheus_part.h"

static const struct proc *find(const struct prometheus_input *input, int64_t pid)
{
	const struct proc *proc = input->find_proc ? input->find_proc(input->arg, pid) : NULL;

	return proc && proc->state == PROC_OK ? proc : NULL;
}

/* Labels of one process on one board, and whose it is. */
static void process_labels(const struct prometheus_input *input, const struct prom_labels *board,
			   const struct board_process *process, struct prom_labels *ret)
{
	const struct proc *proc = find(input, process->pid);

	buf_add(&ret->text, board->text.at, board->text.len);
	prom_labels_i64(ret, "pid", process->pid);
	/* Seen on the card although it runs on an instance: rows of one pid differ in that. */
	if (input->snapshot->boards.at[process->board].parent < 0 && process->gpu_instance >= 0) {
		prom_labels_i64(ret, "gpu_instance", process->gpu_instance);
		prom_labels_i64(ret, "compute_instance", process->compute_instance);
	}
	if (!proc)
		return;
	prom_labels_text(ret, "namespace", proc->namespace);
	prom_labels_text(ret, "pod", proc->pod);
	/* Without a pod's log to name it, the number has to do. */
	prom_labels_text(ret, "container",
			 *proc->container ? proc->container : proc->group.container_id);
	prom_labels_text(ret, "slurm_job", proc->group.slurm_job);
}

/* Prometheus drops a whole answer that has one series twice, so a row that repeats
 * another must not be written whatever the driver said. */
static bool may_show(const struct snapshot *snapshot, size_t place)
{
	const struct board_process *process = &snapshot->processes.at[place];

	if (process->board >= snapshot->boards.count)
		return false;
	for (size_t i = 0; i < place; i++) {
		const struct board_process *other = &snapshot->processes.at[i];

		if (other->pid == process->pid && other->board == process->board &&
		    other->gpu_instance == process->gpu_instance &&
		    other->compute_instance == process->compute_instance)
			return false;
	}
	return true;
}

static void put_metric(struct prom *prom, const struct prometheus_input *input,
		       const struct prom_labels *labels, enum metric metric, double divisor)
{
	const struct snapshot *snapshot = input->snapshot;
	double value;

	for (size_t i = 0; i < snapshot->processes.count; i++) {
		const struct board_process *process = &snapshot->processes.at[i];
		struct prom_labels own = { 0 };

		if (!may_show(snapshot, i) || !sample_get(&process->sample, metric, &value))
			continue;
		process_labels(input, &labels[process->board], process, &own);
		prom_sample(prom, &own, value / divisor);
		prom_labels_done(&own);
	}
}

static void put_private(struct prom *prom, const struct prometheus_input *input,
			const struct prom_labels *labels)
{
	const struct snapshot *snapshot = input->snapshot;

	prom_family(prom, "sonde_gpu_process", PROM_INFO, "Who a process is.");
	for (size_t i = 0; i < snapshot->processes.count; i++) {
		const struct board_process *process = &snapshot->processes.at[i];
		const struct proc *proc = find(input, process->pid);
		struct prom_labels own = { 0 };

		if (!may_show(snapshot, i) || !proc)
			continue;
		process_labels(input, &labels[process->board], process, &own);
		prom_labels_text(&own, "user", proc->user);
		prom_labels_text(&own, "command", *proc->command ? proc->command : proc->comm);
		prom_sample(prom, &own, 1);
		prom_labels_done(&own);
	}
}

static void put_counts(struct prom *prom, const struct snapshot *snapshot,
		       const struct prom_labels *labels)
{
	prom_family(prom, "sonde_gpu_processes", PROM_GAUGE, "Processes on the card.");
	for (size_t i = 0; i < snapshot->boards.count; i++) {
		size_t count = 0;

		for (size_t j = 0; j < snapshot->processes.count; j++)
			count += snapshot->processes.at[j].board == i;
		if (snapshot->boards.at[i].state == BOARD_OK)
			prom_sample(prom, &labels[i], (double)count);
	}
}

void prometheus_processes(struct prom *prom, const struct prometheus_input *input, bool private,
			  const struct prom_labels *labels)
{
	put_counts(prom, input->snapshot, labels);
	prom_family(prom, "sonde_gpu_process_memory_bytes", PROM_GAUGE,
		    "Device memory of a process.");
	put_metric(prom, input, labels, METRIC_proc_mem_used_bytes, 1);
	prom_family(prom, "sonde_gpu_process_sm_utilization_ratio", PROM_GAUGE,
		    "Share of time in which a kernel of the process ran.");
	put_metric(prom, input, labels, METRIC_proc_sm_pct, 100);
	if (private)
		put_private(prom, input, labels);
}
