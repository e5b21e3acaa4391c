/*
 * nvidia-smi pmon: a row for each process on a GPU and interval, a row of
 * dashes for a GPU without any.
 *
 * A process that did nothing in an interval has dashes too: its sample is
 * there and holds no value, which says that it lived.
 */
#include "base/hash.h"
#include "read/reader.h"
#include "read/smi_columns.h"

struct pmon {
	struct smi_log log;
	struct smi_columns columns;
	int64_t last_gpu;
	uint32_t last_device;
	bool last_idle;
	struct map idle; /* GPU to rounds without a process */
};

static int pmon_probe(const char *at, size_t len)
{
	return smi_columns_probe(at, len, true);
}

/* GPUs go up within a round; a GPU has its processes, or one row of dashes. */
static void pmon_turn(struct pmon *pmon, int64_t gpu, uint32_t device, int64_t pid)
{
	bool idle = pid < 0;

	if (gpu < pmon->last_gpu ||
	    (gpu == pmon->last_gpu && device == pmon->last_device && (idle || pmon->last_idle)))
		smi_log_new_round(&pmon->log);
	smi_log_turn(&pmon->log, hash_u64((uint64_t)pid, device));
	pmon->last_gpu = gpu;
	pmon->last_device = device;
	pmon->last_idle = idle;
}

static int pmon_row(void *self, const struct smi_row *row, struct err *err)
{
	struct pmon *pmon = self;
	struct smi_columns *columns = &pmon->columns;
	struct smi_gpu gpu = { 0 };
	struct smi_values values = { 0 };
	int64_t pid = -1, time_ns;
	uint32_t device, process;
	struct str cell = smi_columns_cell(columns, row, SMI_COLUMN_PID);
	uint64_t *idle;

	if (!smi_missing(cell) && (!str_to_i64(cell, &pid) || pid < 0)) {
		session_loss(pmon->log.session, pmon->log.source, LOSS_dropped, 1);
		return 0;
	}
	(void)smi_columns_gpu(columns, row, &gpu.index);
	if (!smi_columns_device(columns, &pmon->log, row, &gpu, &device))
		return 0;
	pmon_turn(pmon, gpu.index, device, pid);
	time_ns = smi_columns_time(columns, &pmon->log, row);
	if (pid < 0) {
		idle = map_find(&pmon->idle, device);
		map_put(&pmon->idle, device, idle ? *idle + 1 : 1);
		return 0;
	}
	smi_columns_values(columns, &pmon->log, row, &values);
	process = smi_log_process(&pmon->log, pid, smi_columns_cell(columns, row, SMI_COLUMN_TYPE),
				  smi_columns_cell(columns, row, SMI_COLUMN_COMMAND));
	return smi_log_sample(&pmon->log, device, process, time_ns, &values.sample, err);
}

static void tell_idle(struct pmon *pmon)
{
	for (size_t i = 0; i < pmon->log.session->devices.count; i++) {
		uint64_t *rounds = map_find(&pmon->idle, i);
		struct buf text = { 0 };

		if (!rounds)
			continue;
		buf_printf(&text, "%llu of %lld", (unsigned long long)*rounds,
			   (long long)pmon->log.round + 1);
		smi_log_env(&pmon->log, (uint32_t)i, STR("pmon rounds without a process"),
			    (struct str){ text.at, text.len });
		buf_done(&text);
	}
}

static int pmon_read(struct input *input, struct sink *sink, uint32_t source, struct err *err)
{
	struct pmon pmon = { .columns.form = SMI_PMON, .last_gpu = -1 };
	int ret;

	smi_log_begin(&pmon.log, "pmon", sink, source);
	pmon.log.steps = true;
	pmon.log.hint = "without a '# gpu' line the columns are not known";
	ret = smi_columns_read(&pmon.columns, &pmon.log, input, pmon_row, &pmon, err);
	if (ret == 0)
		ret = smi_log_end(&pmon.log, input, err);
	if (ret == 0) {
		smi_columns_end(&pmon.columns, &pmon.log);
		tell_idle(&pmon);
	}
	smi_log_done(&pmon.log);
	map_done(&pmon.idle);
	return ret;
}

const struct reader reader_smi_pmon = {
	.name = "smi_pmon",
	.title = "nvidia-smi pmon",
	.probe = pmon_probe,
	.read = pmon_read,
};
