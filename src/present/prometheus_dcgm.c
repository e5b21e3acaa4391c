#include <string.h>

#include "present/prometheus_part.h"

/*
 * Names, labels and units of NVIDIA's dcgm-exporter, as far as its official
 * Grafana board (12239) asks for them, so that boards and alerts that exist go
 * on working. Megabytes there are MiB, utilisation is 0..100, activity 0..1.
 */
static const struct {
	const char *name;
	enum metric metric;
	double divisor;
	const char *help;
} fields[] = {
	{ "DCGM_FI_DEV_SM_CLOCK", METRIC_sm_mhz, 1, "SM clock (in MHz)." },
	{ "DCGM_FI_DEV_GPU_TEMP", METRIC_temp_c, 1, "GPU temperature (in C)." },
	{ "DCGM_FI_DEV_POWER_USAGE", METRIC_power_w, 1, "Power draw (in W)." },
	{ "DCGM_FI_DEV_GPU_UTIL", METRIC_util_pct, 1, "GPU utilization (in %)." },
	{ "DCGM_FI_DEV_FB_USED", METRIC_mem_used_bytes, 1048576, "Memory used (in MiB)." },
	{ "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", METRIC_tensor_pct, 100,
	  "Ratio of cycles the tensor pipes are active." },
};

/* The pod of the board's processes, if all have the same. */
static const struct proc *only_pod(const struct prometheus_input *input, size_t board)
{
	const struct snapshot *snapshot = input->snapshot;
	const struct proc *first = NULL;

	for (size_t i = 0; input->find_proc && i < snapshot->processes.count; i++) {
		const struct board_process *process = &snapshot->processes.at[i];
		const struct proc *proc;

		if (process->board != board)
			continue;
		proc = input->find_proc(input->arg, process->pid);
		if (!proc || proc->state != PROC_OK || !*proc->pod)
			return NULL;
		if (first && (strcmp(first->pod, proc->pod) != 0 ||
			      strcmp(first->namespace, proc->namespace) != 0 ||
			      strcmp(first->container, proc->container) != 0))
			return NULL;
		first = proc;
	}
	return first;
}

static void dcgm_labels(const struct prometheus_input *input, size_t place, struct prom_labels *ret)
{
	const struct board *board = &input->snapshot->boards.at[place];
	const struct board *card = prometheus_card(input->snapshot, board);
	const struct proc *pod = only_pod(input, place);
	struct buf text = { 0 };

	prom_labels_i64(ret, "gpu", card->index);
	prom_labels_text(ret, "UUID", card->uuid);
	/* There the domain has eight digits; the kernel writes four. */
	if (*card->pci_bus)
		buf_printf(&text, "0000%s", card->pci_bus);
	prom_labels_text(ret, "pci_bus_id", text.at);
	buf_clear(&text);
	buf_printf(&text, "nvidia%u", card->index);
	prom_labels_text(ret, "device", text.at);
	buf_done(&text);
	prom_labels_text(ret, "modelName", card->name);
	prom_labels_text(ret, "Hostname", input->hostname);
	if (card != board) {
		prom_labels_text(ret, "GPU_I_PROFILE", board->mig_profile);
		if (board->gpu_instance >= 0)
			prom_labels_i64(ret, "GPU_I_ID", board->gpu_instance);
	}
	if (pod) {
		prom_labels_text(ret, "container", pod->container);
		prom_labels_text(ret, "namespace", pod->namespace);
		prom_labels_text(ret, "pod", pod->pod);
	}
}

void prometheus_dcgm(struct prom *prom, const struct prometheus_input *input)
{
	const struct snapshot *snapshot = input->snapshot;
	double value;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		prom_family(prom, fields[i].name, PROM_GAUGE, fields[i].help);
		for (size_t j = 0; j < snapshot->boards.count; j++) {
			const struct board *board = &snapshot->boards.at[j];
			struct prom_labels labels = { 0 };

			if (board->state == BOARD_GONE ||
			    !board_get(board, fields[i].metric, &value, NULL))
				continue;
			dcgm_labels(input, j, &labels);
			prom_sample(prom, &labels, value / fields[i].divisor);
			prom_labels_done(&labels);
		}
	}
}
