#include "present/ticker.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"

/* Rows between headers: what dmon prints on a screen of 46 lines. */
enum { SCREEN_ROWS = 44 };

/* NVML reference, nvmlClocksEventReasons. */
enum { BITS_THERMAL = 0x20 | 0x40 };

/* The snapshot before: counters, for what is a share of the time between, and
 * values that are not asked in each round. */
struct before {
	char uuid[96];
	struct sample sample;
	int64_t monotonic_ns;
	uint32_t generation;
	double power_cap_us, thermal_us; /* NAN: not known */
};

struct ticker {
	enum ticker_form form;
	bool begun;
	int rows; /* since the header */
	VEC(struct before) before;
};

bool ticker_form_find(const char *name, enum ticker_form *ret)
{
	static const char *const names[] = { "dmon", "csv", "jsonl" };

	for (int i = 0; i < 3; i++) {
		if (!strcmp(names[i], name)) {
			*ret = (enum ticker_form)i;
			return true;
		}
	}
	return false;
}

struct ticker *ticker_new(enum ticker_form form)
{
	struct ticker *ticker = mem_zero(sizeof(*ticker));

	ticker->form = form;
	return ticker;
}

void ticker_free(struct ticker *ticker)
{
	if (!ticker)
		return;
	VEC_DONE(&ticker->before);
	free(ticker);
}

const char *ticker_time(int64_t utc_ns, char text[32])
{
	time_t seconds = (time_t)(utc_ns / 1000000000);
	struct tm tm = { 0 };
	size_t len;

	(void)gmtime_r(&seconds, &tm);
	len = strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text + len, 32 - len, ".%03" PRId64 "Z", utc_ns / 1000000 % 1000);
	return text;
}

static double value_of(const struct board *board, enum metric metric)
{
	double value;

	return board_get(board, metric, &value, NULL) ? value : NAN;
}

static double heat_us(const struct board *board)
{
	double software = value_of(board, METRIC_reason_sw_thermal_us);
	double hardware = value_of(board, METRIC_reason_hw_thermal_us);

	return isnan(software) ? hardware : isnan(hardware) ? software : software + hardware;
}

static struct before *before_of(struct ticker *ticker, const struct board *board)
{
	struct before *before;

	for (size_t i = 0; i < ticker->before.count; i++)
		if (!strcmp(ticker->before.at[i].uuid, board->uuid))
			return &ticker->before.at[i];
	before = VEC_ADD(&ticker->before);
	memcpy(before->uuid, board->uuid, sizeof(before->uuid));
	before->power_cap_us = NAN;
	before->thermal_us = NAN;
	return before;
}

/* Time by counters as a share of the time between two snapshots. */
struct limited {
	double power_pct, thermal; /* NAN unknown; thermal 0 or 1 */
};

static struct limited limited_of(struct ticker *ticker, const struct snapshot *snapshot,
				 const struct board *board)
{
	struct before *before = before_of(ticker, board);
	double span_us = (double)(snapshot->monotonic_ns - before->monotonic_ns) / 1e3;
	double power_us = value_of(board, METRIC_reason_power_cap_us);
	double thermal_us = heat_us(board);
	double reasons = value_of(board, METRIC_clock_reasons);
	struct limited ret = { value_of(board, METRIC_power_violation_pct),
			       value_of(board, METRIC_thermal_violation) };
	bool same = before->monotonic_ns && before->generation == snapshot->generation;

	if (isnan(ret.power_pct) && same && span_us > 0)
		ret.power_pct = 100 * (power_us - before->power_cap_us) / span_us;
	/* The counter's clock and ours differ by a little. */
	if (ret.power_pct > 100)
		ret.power_pct = 100;
	if (isnan(ret.thermal) && same && !isnan(thermal_us) && !isnan(before->thermal_us))
		ret.thermal = thermal_us > before->thermal_us;
	else if (isnan(ret.thermal) && reasons >= 0)
		ret.thermal = ((uint64_t)reasons & BITS_THERMAL) != 0;
	before->monotonic_ns = snapshot->monotonic_ns;
	before->generation = snapshot->generation;
	before->power_cap_us = power_us;
	before->thermal_us = thermal_us;
	return ret;
}

/* The columns of dmon: a metric, and what makes its unit of ours. */
static const struct {
	const char *name, *unit;
	enum metric metric;
	double scale;
} dmon_columns[] = {
	{ "pwr", "W", METRIC_power_w, 1 },
	{ "gtemp", "C", METRIC_temp_c, 1 },
	{ "mtemp", "C", METRIC_temp_mem_c, 1 },
	{ "sm", "%", METRIC_util_pct, 1 },
	{ "mem", "%", METRIC_mem_util_pct, 1 },
	{ "enc", "%", METRIC_enc_pct, 1 },
	{ "dec", "%", METRIC_dec_pct, 1 },
	{ "jpg", "%", METRIC_jpg_pct, 1 },
	{ "ofa", "%", METRIC_ofa_pct, 1 },
	{ "mclk", "MHz", METRIC_mem_mhz, 1 },
	{ "pclk", "MHz", METRIC_sm_mhz, 1 },
	{ "pviol", "%", METRIC_power_violation_pct, 1 },
	{ "tviol", "bool", METRIC_thermal_violation, 1 },
	{ "fb", "MB", METRIC_mem_used_bytes, 1048576 },
	{ "bar1", "MB", METRIC_bar1_used_bytes, 1048576 },
	{ "ccpm", "MB", METRIC_protected_used_bytes, 1048576 },
	{ "sbecc", "errs", METRIC_ecc_single, 1 },
	{ "dbecc", "errs", METRIC_ecc_double, 1 },
	{ "pci", "errs", METRIC_pcie_replays, 1 },
	{ "rxpci", "MB/s", METRIC_pcie_rx_bytes_s, 1e6 },
	{ "txpci", "MB/s", METRIC_pcie_tx_bytes_s, 1e6 },
};

enum { DMON_COLUMNS = sizeof(dmon_columns) / sizeof(*dmon_columns) };

static void dmon_header(struct buf *out)
{
	buf_text(out, "# gpu");
	for (int i = 0; i < DMON_COLUMNS; i++)
		buf_printf(out, "%7s", dmon_columns[i].name);
	buf_text(out, " \n# Idx");
	for (int i = 0; i < DMON_COLUMNS; i++)
		buf_printf(out, "%7s", dmon_columns[i].unit);
	buf_text(out, " \n");
}

/* The card's value; of what was not asked this time, the last. A rate that was
 * measured for some milliseconds of another second is none of this one. */
static double shown_value(struct ticker *ticker, const struct board *board, enum metric metric)
{
	struct sample *last = &before_of(ticker, board)->sample;
	double value = NAN;

	if (board_get(board, metric, &value, NULL))
		sample_set(last, metric, value);
	else if (board->origin[metric] == ORIGIN_NONE && metric != METRIC_pcie_rx_bytes_s &&
		 metric != METRIC_pcie_tx_bytes_s)
		(void)sample_get(last, metric, &value);
	return value;
}

static void dmon_row(struct ticker *ticker, const struct snapshot *snapshot,
		     const struct board *board, struct buf *out)
{
	struct limited limited = limited_of(ticker, snapshot, board);

	buf_printf(out, "%5u", board->index);
	for (int i = 0; i < DMON_COLUMNS; i++) {
		enum metric metric = dmon_columns[i].metric;
		double value = shown_value(ticker, board, metric);

		if (metric == METRIC_power_violation_pct)
			value = limited.power_pct;
		if (metric == METRIC_thermal_violation)
			value = limited.thermal;
		value /= dmon_columns[i].scale;
		if (!isfinite(value) || fabs(value) > 1e15)
			buf_printf(out, "%7s", "-");
		else
			buf_printf(out, "%7.0f", fmax(0, value));
	}
	buf_text(out, " \n");
}

static void add_dmon(struct ticker *ticker, const struct snapshot *snapshot, struct buf *out)
{
	if (!ticker->begun || ticker->rows >= SCREEN_ROWS) {
		dmon_header(out);
		ticker->rows = 0;
	}
	for (size_t i = 0; i < snapshot->boards.count; i++) {
		const struct board *board = &snapshot->boards.at[i];

		/* dmon has cards alone, and those that are there. */
		if (board->parent >= 0 || board->state == BOARD_GONE)
			continue;
		dmon_row(ticker, snapshot, board, out);
		ticker->rows++;
	}
}

/* Metrics of a process are none of a card. */
static bool of_board(enum metric metric)
{
	return strncmp(metric_name(metric), "proc_", 5) != 0;
}

/* As short as it is exact to three decimals: sensors are not finer. */
static void csv_number(struct buf *out, double value)
{
	char text[40];
	int len = snprintf(text, sizeof(text), "%.3f", value);

	while (len && text[len - 1] == '0')
		len--;
	if (len && (text[len - 1] == '.' || text[len - 1] == ','))
		len--;
	for (int i = 0; i < len; i++)
		if (text[i] == ',')
			text[i] = '.';
	buf_add(out, text, (size_t)len);
}

/* A name with what could end a cell replaced: no reader has to unquote. */
static void csv_text(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_char(out, *text == ',' || *text == '"' || *text == '\n' ? ' ' : *text);
}

static void add_csv(struct ticker *ticker, const struct snapshot *snapshot, struct buf *out)
{
	char time[32];

	if (!ticker->begun) {
		buf_text(out, "time,gpu,uuid,name,mig");
		for (int m = 0; m < METRIC_COUNT; m++)
			if (of_board((enum metric)m))
				buf_printf(out, ",%s", metric_name((enum metric)m));
		buf_char(out, '\n');
	}
	for (size_t i = 0; i < snapshot->boards.count; i++) {
		const struct board *board = &snapshot->boards.at[i];
		double value;

		buf_printf(out, "%s,%u,", ticker_time(snapshot->utc_ns, time), board->index);
		csv_text(out, board->uuid);
		buf_char(out, ',');
		csv_text(out, board->name);
		buf_char(out, ',');
		csv_text(out, board->mig_profile);
		for (int m = 0; m < METRIC_COUNT; m++) {
			if (!of_board((enum metric)m))
				continue;
			buf_char(out, ',');
			if (sample_get(&board->sample, (enum metric)m, &value) && isfinite(value))
				csv_number(out, value);
		}
		buf_char(out, '\n');
	}
}

static void json_sample(struct json *json, const struct sample *sample)
{
	double value;

	for (int m = 0; m < METRIC_COUNT; m++)
		if (sample_get(sample, (enum metric)m, &value) && isfinite(value))
			json_f64(json, metric_name((enum metric)m), value);
}

static void json_boards(struct json *json, const struct snapshot *snapshot)
{
	static const char *const states[] = {
		[BOARD_OK] = "ok",
		[BOARD_ASLEEP] = "asleep",
		[BOARD_LOST] = "lost",
		[BOARD_GONE] = "gone",
	};

	json_array(json, "boards");
	for (size_t i = 0; i < snapshot->boards.count; i++) {
		const struct board *board = &snapshot->boards.at[i];

		json_object(json, NULL);
		json_i64(json, "index", board->index);
		if (board->parent >= 0)
			json_i64(json, "parent", board->parent);
		json_text(json, "uuid", board->uuid);
		json_text(json, "name", board->name);
		json_text(json, "pci_bus", board->pci_bus);
		if (*board->mig_profile)
			json_text(json, "mig_profile", board->mig_profile);
		json_text(json, "state", states[board->state]);
		json_sample(json, &board->sample);
		json_end(json);
	}
	json_end(json);
}

static void json_processes(struct json *json, const struct snapshot *snapshot)
{
	json_array(json, "processes");
	for (size_t i = 0; i < snapshot->processes.count; i++) {
		const struct board_process *process = &snapshot->processes.at[i];

		json_object(json, NULL);
		json_i64(json, "board", process->board);
		json_i64(json, "pid", process->pid);
		json_sample(json, &process->sample);
		json_end(json);
	}
	json_end(json);
}

static void add_jsonl(const struct snapshot *snapshot, struct buf *out)
{
	struct json json = { .out = out, .compact = true };
	char time[32];

	json_object(&json, NULL);
	json_text(&json, "schema", "sonde.snapshot/1");
	json_text(&json, "time", ticker_time(snapshot->utc_ns, time));
	json_i64(&json, "utc_ns", snapshot->utc_ns);
	if (*snapshot->driver)
		json_text(&json, "driver", snapshot->driver);
	json_boards(&json, snapshot);
	json_processes(&json, snapshot);
	json_object(&json, "cost");
	json_i64(&json, "wall_ns", snapshot->wall_ns);
	json_i64(&json, "cpu_ns", snapshot->cpu_ns);
	json_i64(&json, "calls", snapshot->calls);
	if (*snapshot->slowest) {
		json_text(&json, "slowest", snapshot->slowest);
		json_i64(&json, "slowest_ns", snapshot->slowest_ns);
	}
	json_end(&json);
	json_end(&json);
	buf_char(out, '\n');
}

void ticker_add(struct ticker *ticker, const struct snapshot *snapshot, struct buf *out)
{
	switch (ticker->form) {
	case TICKER_DMON:
		add_dmon(ticker, snapshot, out);
		break;
	case TICKER_CSV:
		add_csv(ticker, snapshot, out);
		break;
	case TICKER_JSONL:
		add_jsonl(snapshot, out);
		break;
	}
	ticker->begun = true;
}
