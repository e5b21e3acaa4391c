#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/i18n.h"
#include "base/str.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "serve/monitor.h"

static const double INTERVAL_S = 5, INTERVAL_LEAST_S = 0.1, INTERVAL_MOST_S = 3600;
static const double KEEP_DAYS = 14, KEEP_DAYS_MOST = 36500;
static const int64_t KEEP_BYTES = 1000000000;

struct monitor_args {
	const char *interval;
	int count;
	const char *keep_days;
	const char *keep_bytes;
	bool flight;
	const char *format;
	const char *listen;
	const char *listen_names;
	bool listen_processes;
	bool listen_dcgm;
	bool wake;
	bool cost;
	bool quiet;
	const char *nvml;
	const char *root;
	const char *kernel_log;
	struct opt_list dir;
};

static const struct opt monitor_opts[] = {
	OPT_STRING(struct monitor_args, interval, 'i', "interval", "SECONDS",
		   N_("between rounds: 0.1 to 3600; 5 by default")),
	OPT_INT(struct monitor_args, count, 'c', "count", "N", N_("end after so many rounds")),
	OPT_STRING(struct monitor_args, format, 'f', "format", "dmon|csv|jsonl",
		   N_("print each round; dmon: as nvidia-smi dmon -s pucvmet")),
	OPT_STRING(struct monitor_args, keep_days, 0, "keep-days", "DAYS",
		   N_("remove recordings older than this; 14; 0: never")),
	OPT_STRING(struct monitor_args, keep_bytes, 0, "keep-bytes", "SIZE",
		   N_("remove the oldest above this size of all, as in 500M; 1G; 0: never")),
	OPT_FLAG(struct monitor_args, flight, 0, "flight",
		 N_("keep the last 10 minutes at 10 Hz and save them when a fault strikes")),
	OPT_STRING(struct monitor_args, listen, 'l', "listen", "[ADDRESS:]PORT",
		   N_("serve Prometheus metrics there; on this machine only unless ADDRESS says "
		      "more")),
	OPT_STRING(struct monitor_args, listen_names, 0, "listen-names", "NAME,NAME",
		   N_("further host names that requests may be for")),
	OPT_FLAG(struct monitor_args, listen_processes, 0, "listen-processes",
		 N_("serve users and command lines, too")),
	OPT_FLAG(struct monitor_args, listen_dcgm, 0, "listen-dcgm",
		 N_("serve the names of the DCGM exporter's dashboard, too")),
	OPT_FLAG(struct monitor_args, wake, 0, "wake", N_("ask cards that sleep, too")),
	OPT_FLAG(struct monitor_args, cost, 0, "cost",
		 N_("at the end, tell what each call of the driver cost")),
	OPT_FLAG(struct monitor_args, quiet, 'q', "quiet", N_("no summary at the end")),
	OPT_STRING(struct monitor_args, nvml, 0, "nvml", "FILE", NULL),
	OPT_STRING(struct monitor_args, root, 0, "root", "FOLDER", NULL),
	OPT_STRING(struct monitor_args, kernel_log, 0, "kernel-log", "FILE", NULL),
	OPT_ARGUMENTS(struct monitor_args, dir, "DIRECTORY",
		      N_("record into this directory, a file an hour"), false),
	OPT_END,
};

static int print(void *arg, struct buf *out, struct err *err)
{
	(void)arg;
	errno = 0;
	if (fwrite(out->at, 1, out->len, stdout) == out->len && fflush(stdout) == 0)
		return 0;
	/* A reader that went away is no failure. */
	if (errno != EPIPE)
		return err_errno(err, "standard output");
	clearerr(stdout);
	return -1;
}

static void tell(void *arg, const char *line)
{
	(void)arg;
	(void)fprintf(stderr, "sonde monitor: %s\n", line);
}

static int number(const char *text, const char *option, double least, double most, double *ret,
		  struct err *err)
{
	if (!text)
		return 0;
	if (!str_to_f64(str_of(text), ret) || !(*ret >= least) || *ret > most)
		return err_set(err, ERR_USAGE, "%s: '%s' is not a number from %g to %g", option,
			       text, least, most);
	return 0;
}

/* "500M", "1.5G": powers of ten, as disks are sold. */
static int size(const char *text, int64_t *ret_bytes, struct err *err)
{
	static const char units[] = "KMGT";
	struct str rest = str_of(text);
	const char *unit = rest.len ? strchr(units, rest.at[rest.len - 1] & ~0x20) : NULL;
	double value, scale = 1;

	if (unit && *unit) {
		rest.len--;
		for (const char *at = units; at <= unit; at++)
			scale *= 1000;
	}
	if (!str_to_f64(rest, &value) || !(value >= 0) || value * scale > 9e18)
		return err_set(err, ERR_USAGE, "--keep-bytes: '%s' is no size such as 500M or 2G",
			       text);
	*ret_bytes = (int64_t)(value * scale);
	return 0;
}

static int options(const struct monitor_args *args, struct monitor_opts *ret, struct err *err)
{
	double interval_s = INTERVAL_S, keep_days = KEEP_DAYS;

	if (number(args->interval, "--interval", INTERVAL_LEAST_S, INTERVAL_MOST_S, &interval_s,
		   err) < 0 ||
	    number(args->keep_days, "--keep-days", 0, KEEP_DAYS_MOST, &keep_days, err) < 0)
		return err->code;
	*ret = (struct monitor_opts){ .interval_ns = (int64_t)llround(interval_s * 1e9),
				      .count = args->count,
				      .keep_ns = (int64_t)(keep_days * 86400e9),
				      .keep_bytes = KEEP_BYTES,
				      .flight = args->flight,
				      .listen = args->listen,
				      .listen_names = args->listen_names,
				      .dcgm_names = args->listen_dcgm,
				      .processes = args->listen_processes,
				      .library = args->nvml,
				      .root = args->root,
				      .wake = args->wake,
				      .costs = args->cost,
				      .kernel_log = args->kernel_log,
				      .print = print,
				      .tell = tell };
	if (args->keep_bytes && size(args->keep_bytes, &ret->keep_bytes, err) < 0)
		return err->code;
	if (args->count < 0)
		return err_set(err, ERR_USAGE, "--count: %d is below 0", args->count);
	if (args->format) {
		ret->has_form = ticker_form_find(args->format, &ret->form);
		if (!ret->has_form)
			return err_set(err, ERR_USAGE, "--format: '%s' is none of dmon, csv, jsonl",
				       args->format);
	}
	if (args->dir.count > 1)
		return err_set(err, ERR_USAGE, "%s: one directory at a time", args->dir.at[1]);
	ret->dir = args->dir.count ? args->dir.at[0] : NULL;
	if (ret->flight && !ret->dir)
		return err_set(err, ERR_USAGE, "--flight saves into a DIRECTORY: name one");
	if (!ret->dir && !ret->has_form && !ret->listen)
		return err_set(err, ERR_USAGE,
			       "nothing to do: name a DIRECTORY, a --format or a --listen port");
	return 0;
}

static void summary(const struct monitor_cost *cost)
{
	struct unit_text wall, own, driver, share, slowest, rss, driver_rss;
	double cpu_ns = (double)(cost->own_cpu_ns + cost->driver_cpu_ns);

	(void)fprintf(stderr,
		      "sonde monitor: %lld snapshot(s) in %s; CPU time %s here and %s asking the "
		      "driver, %s of a core; memory %s and %s",
		      (long long)cost->snapshots, units_ns(&wall, cost->wall_ns),
		      units_ns(&own, cost->own_cpu_ns), units_ns(&driver, cost->driver_cpu_ns),
		      units_share(&share, cpu_ns / (double)(cost->wall_ns ? cost->wall_ns : 1)),
		      units_bytes(&rss, cost->rss_bytes),
		      units_bytes(&driver_rss, cost->driver_rss_bytes));
	if (*cost->slowest)
		(void)fprintf(stderr, "; slowest call %s, %s", cost->slowest,
			      units_ns(&slowest, cost->slowest_ns));
	(void)fputc('\n', stderr);
}

static void call_table(const struct monitor_cost *cost)
{
	if (cost->calls.count)
		(void)fprintf(stderr, "%-48s %8s %8s %10s %10s %10s\n", "call", "count", "failed",
			      "mean", "most", "all");
	for (size_t i = 0; i < cost->calls.count; i++) {
		const struct call_cost *call = &cost->calls.at[i];
		struct unit_text mean, most, all;

		(void)fprintf(
			stderr, "%-48s %8llu %8llu %10s %10s %10s\n", call->name,
			(unsigned long long)call->count, (unsigned long long)call->failed,
			units_ns(&mean, call->count ? call->total_ns / (int64_t)call->count : 0),
			units_ns(&most, call->max_ns), units_ns(&all, call->total_ns));
	}
}

static int monitor_command(const void *arguments, struct err *err)
{
	const struct monitor_args *args = arguments;
	struct monitor_opts opts;
	struct monitor_cost cost = { 0 };
	int ret;

	if (options(args, &opts, err) < 0)
		return err->code;
	/* What main sets for imports would keep every page that was ever touched. */
	(void)mallopt(M_MMAP_THRESHOLD, 256 << 10);
	(void)mallopt(M_TRIM_THRESHOLD, 256 << 10);
	ret = monitor_run(&opts, &cost, err);
	if (ret < 0)
		ret = cmd_ask_doctor(err);
	if (cost.snapshots && !args->quiet)
		summary(&cost);
	call_table(&cost);
	monitor_cost_done(&cost);
	return ret;
}

const struct cmd cmd_monitor = {
	.name = "monitor",
	.summary = N_("Record the cards all the time: files, lines, metrics, flight records"),
	.description =
		N_("Asks the driver every 5 seconds, in a child process, and goes on\n"
		   "whatever happens: no driver, one that hangs, a lost card, a full disk, a\n"
		   "clock that is set.\n"
		   "'sonde report DIRECTORY' tells what was recorded."),
	.examples = "  sonde monitor /var/lib/sonde\n"
		    "  sonde monitor --flight --listen 9877 /var/lib/sonde\n"
		    "  sonde monitor --format dmon --interval 1 --count 60\n"
		    "  sonde monitor --format jsonl | jq '.boards[].power_w'",
	.opts = monitor_opts,
	.args_size = sizeof(struct monitor_args),
	.run = monitor_command,
};
