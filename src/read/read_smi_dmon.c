/*
 * nvidia-smi dmon: a row for each GPU, or part of it, and interval, a sample of
 * the board each.
 */
#include "read/reader.h"
#include "read/smi_columns.h"

struct dmon {
	struct smi_log log;
	struct smi_columns columns;
};

static int dmon_probe(const char *at, size_t len)
{
	return smi_columns_probe(at, len, false);
}

static int dmon_row(void *self, const struct smi_row *row, struct err *err)
{
	struct dmon *dmon = self;
	struct smi_gpu gpu = { 0 };
	struct smi_values values = { 0 };
	uint32_t device;
	int64_t time_ns;

	(void)smi_columns_gpu(&dmon->columns, row, &gpu.index);
	/* A part of a card is a device of its own: its values are not the card's. */
	if (!smi_columns_device(&dmon->columns, &dmon->log, row, &gpu, &device))
		return 0;
	smi_log_turn(&dmon->log, device);
	time_ns = smi_columns_time(&dmon->columns, &dmon->log, row);
	smi_columns_values(&dmon->columns, &dmon->log, row, &values);
	return smi_log_sample(&dmon->log, device, SESSION_NONE, time_ns, &values.sample, err);
}

/* What the report would want and only other switches give. */
static void tell_missing(struct dmon *dmon)
{
	static const char *const wanted[] = { "pwr", "sm", "pclk", "pviol", "fb" };

	for (size_t i = 0; dmon->columns.count && i < sizeof(wanted) / sizeof(*wanted); i++) {
		bool found = false;

		for (size_t c = 0; c < dmon->columns.count; c++)
			found |= !strcmp(session_text(dmon->log.session, dmon->columns.at[c].name),
					 wanted[i]);
		if (!found)
			session_missing_column(dmon->log.session, dmon->log.source, wanted[i]);
	}
}

static int dmon_read(struct input *input, struct sink *sink, uint32_t source, struct err *err)
{
	struct dmon dmon = { .columns.form = SMI_DMON };
	int ret;

	smi_log_begin(&dmon.log, "dmon", sink, source);
	dmon.log.steps = true;
	dmon.log.hint = "without a '# gpu' line the columns are not known";
	ret = smi_columns_read(&dmon.columns, &dmon.log, input, dmon_row, &dmon, err);
	if (ret == 0)
		ret = smi_log_end(&dmon.log, input, err);
	if (ret == 0) {
		smi_columns_end(&dmon.columns, &dmon.log);
		tell_missing(&dmon);
	}
	smi_log_done(&dmon.log);
	return ret;
}

const struct reader reader_smi_dmon = {
	.name = "smi_dmon",
	.title = "nvidia-smi dmon",
	.probe = dmon_probe,
	.read = dmon_read,
};
