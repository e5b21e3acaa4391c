#include "serve/monitor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "collect/collector.h"
#include "collect/sampler.h"
#include "model/note.h"
#include "serve/black_box.h"
#include "serve/exporter.h"
#include "serve/faults.h"
#include "serve/names.h"
#include "serve/pace.h"
#include "serve/picture.h"
#include "store/recorder.h"

/* "the last 10 minutes at 10 Hz" */
static const int64_t FLIGHT_NS = 100000000;
/* A picture older than so many intervals is none for the exporter. */
static const int64_t STALE_INTERVALS = 3;
static const int64_t STALE_NS = 5 * 1000000000LL;
/* The child's CPU time is looked at no more often. */
static const int64_t CHILD_CPU_NS = 1000000000;

struct monitor {
	const struct monitor_opts *opts;
	struct collector *collector;
	struct snapshot snapshot;
	struct pace pace;
	struct recorder *recorder;
	struct sampler *sampler; /* of the recorder's open file */
	size_t named;            /* processes of that file that have been named */
	struct names *names;
	struct black_box *box;
	struct faults *faults; /* NULL: nobody wants them */
	int64_t overwritten;   /* of the kernel log, as recorded */
	struct ticker *ticker;
	struct buf lines;
	struct exporter *exporter;
	struct picture *picture; /* for the exporter */
	int signals;
	bool asked, is_round, end;
	struct monitor_cost cost;
	int64_t start_ns, start_utc_ns, start_cpu_ns;
	/* of the process that asks the driver: that of today, and those before */
	pid_t child;
	int64_t child_cpu_ns, dead_cpu_ns, next_cpu_ns;
	int64_t failures;
	char trouble[512];  /* told last; "" none */
	struct err failure; /* that ends it */
};

static void tell(const struct monitor *monitor, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void tell(const struct monitor *monitor, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	monitor->opts->tell(monitor->opts->arg, line);
}

void monitor_cost_done(struct monitor_cost *cost)
{
	VEC_DONE(&cost->calls);
	*cost = (struct monitor_cost){ 0 };
}

/* --- what it costs --- */

static void see_child(struct monitor *monitor, int64_t now_ns)
{
	pid_t pid = collector_pid(monitor->collector);
	clockid_t clock;

	if (pid != monitor->child) {
		monitor->dead_cpu_ns += monitor->child_cpu_ns;
		monitor->child_cpu_ns = 0;
		monitor->child = pid;
	}
	if (now_ns < monitor->next_cpu_ns)
		return;
	monitor->next_cpu_ns = now_ns + CHILD_CPU_NS;
	if (pid > 0 && clock_getcpuclockid(pid, &clock) == 0)
		monitor->child_cpu_ns = clock_ns(clock);
}

/* 0: unknown. */
static int64_t rss_of(pid_t pid)
{
	char path[64];
	OWN(own_fclosep) FILE *file = NULL;
	long long size, resident;

	(void)snprintf(path, sizeof(path), "/proc/%ld/statm", (long)pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%lld %lld", &size, &resident) != 2)
		return 0;
	return resident * sysconf(_SC_PAGESIZE);
}

/* --- metrics --- */

static const struct proc *find_proc(void *arg, int64_t pid)
{
	const struct monitor *monitor = arg;

	return names_find(monitor->names, pid);
}

static void current(void *arg, struct prometheus_input *ret)
{
	struct monitor *monitor = arg;
	int64_t age_ns = clock_steady_ns() - monitor->snapshot.monotonic_ns;
	int64_t interval_ns = pace_interval(&monitor->pace);

	if (monitor->snapshot.monotonic_ns && age_ns < STALE_INTERVALS * interval_ns + STALE_NS)
		ret->snapshot = picture_snapshot(monitor->picture);
	ret->find_proc = find_proc;
	ret->arg = monitor;
	if (monitor->faults)
		ret->xids = faults_xids(monitor->faults, &ret->xid_count);
	ret->own.start_utc_ns = monitor->start_utc_ns;
	ret->own.cpu_ns =
		clock_ns(CLOCK_PROCESS_CPUTIME_ID) + monitor->child_cpu_ns + monitor->dead_cpu_ns;
	ret->own.rss_bytes = rss_of(getpid());
	if (collector_pid(monitor->collector) > 0)
		ret->own.collector_rss_bytes = rss_of(collector_pid(monitor->collector));
	ret->own.interval_ns = interval_ns;
	ret->own.snapshots = (uint64_t)monitor->cost.snapshots;
	ret->own.failures = (uint64_t)monitor->failures;
	ret->own.collectors = collector_started(monitor->collector);
	ret->own.hung = collector_hung(monitor->collector);
}

/* --- a round --- */

/* The open file's sink, with a sampler on it; NULL: the disk refuses. */
static struct sink *open_sampler(struct monitor *monitor, int64_t utc_ns, int64_t monotonic_ns)
{
	bool fresh;
	struct sink *sink = recorder_sink(monitor->recorder, utc_ns, monotonic_ns, &fresh);

	if (!sink || fresh) {
		sampler_free(monitor->sampler);
		monitor->sampler = NULL;
	}
	if (sink && fresh) {
		monitor->sampler = sampler_new(sink, monitor->opts->interval_ns);
		monitor->named = 0;
	}
	return sink;
}

/* `failure`: NULL, or why the sink refused. */
static void commit(struct monitor *monitor, const struct err *failure)
{
	recorder_commit(monitor->recorder, failure);
	if (recorder_state(monitor->recorder).refused) {
		sampler_free(monitor->sampler);
		monitor->sampler = NULL;
	}
}

static void record(struct monitor *monitor)
{
	const struct snapshot *snapshot = &monitor->snapshot;
	struct sink *sink = open_sampler(monitor, snapshot->utc_ns, snapshot->monotonic_ns);
	struct err err = { 0 };
	int ret;

	if (!sink)
		return;
	/* Nothing to record, and worth telling all the same. */
	ret = snapshot->boards.count
		      ? sampler_push(monitor->sampler, snapshot, &err)
		      : sampler_silence(monitor->sampler, snapshot->utc_ns, NOTE_NO_GPU, &err);
	monitor->named = names_put(monitor->names, sink->session, monitor->named);
	commit(monitor, ret < 0 ? &err : NULL);
}

/* A file of hours without a driver says so: none would look like a monitor that was
 * not running. */
static void record_silence(struct monitor *monitor, const char *why)
{
	int64_t utc_ns = clock_ns(CLOCK_REALTIME);
	struct err err = { 0 };
	int ret;

	if (!open_sampler(monitor, utc_ns, clock_steady_ns()))
		return;
	ret = sampler_silence(monitor->sampler, utc_ns, why, &err);
	commit(monitor, ret < 0 ? &err : NULL);
}

static void show(struct monitor *monitor)
{
	buf_clear(&monitor->lines);
	ticker_add(monitor->ticker, &monitor->snapshot, &monitor->lines);
	if (monitor->opts->print(monitor->opts->arg, &monitor->lines, &monitor->failure) < 0)
		monitor->end = true;
}

/* The same trouble is told once. */
static void trouble(struct monitor *monitor, const struct err *err)
{
	const struct monitor_opts *opts = monitor->opts;

	monitor->failures++;
	if (!monitor->cost.snapshots && !opts->dir && !opts->listen) {
		monitor->failure = *err;
		monitor->end = true;
		return;
	}
	if (monitor->is_round && monitor->recorder)
		record_silence(monitor, err->line);
	if (!strcmp(monitor->trouble, err->line))
		return;
	(void)snprintf(monitor->trouble, sizeof(monitor->trouble), "%s", err->line);
	tell(monitor, "%s; goes on asking", err->line);
}

static void give_way(struct monitor *monitor)
{
	struct unit_text took, interval;
	const struct snapshot *snapshot = &monitor->snapshot;

	if (!pace_took(&monitor->pace, snapshot->wall_ns))
		return;
	tell(monitor, "a round takes the driver %s, most of it %s: asks every %s%s",
	     units_ns(&took, snapshot->wall_ns), snapshot->slowest,
	     units_ns(&interval, pace_interval(&monitor->pace)),
	     pace_level(&monitor->pace) ? ", without processes" : "");
}

/* The driver's Xids; the rest of its events is the sampler's. */
static void add_faults(struct monitor *monitor)
{
	const struct snapshot *snapshot = &monitor->snapshot;
	struct fault fault;

	for (size_t i = 0; monitor->faults && i < snapshot->events.count; i++)
		if (board_event_fault(snapshot, &snapshot->events.at[i], &fault))
			faults_add(monitor->faults, &fault, clock_steady_ns());
}

/* The end of a trouble, or another: each is told once. */
static void tell_answer(struct monitor *monitor)
{
	bool none = !monitor->snapshot.boards.count;

	if (none && strcmp(monitor->trouble, NOTE_NO_GPU) != 0)
		tell(monitor, "%s; goes on asking", NOTE_NO_GPU);
	else if (!none && *monitor->trouble)
		tell(monitor, "the driver answers again");
	(void)snprintf(monitor->trouble, sizeof(monitor->trouble), "%s", none ? NOTE_NO_GPU : "");
}

static void answered(struct monitor *monitor)
{
	struct snapshot *snapshot = &monitor->snapshot;
	struct trigger trigger;

	monitor->cost.snapshots++;
	tell_answer(monitor);
	if (snapshot->slowest_ns > monitor->cost.slowest_ns) {
		monitor->cost.slowest_ns = snapshot->slowest_ns;
		memcpy(monitor->cost.slowest, snapshot->slowest, sizeof(monitor->cost.slowest));
	}
	names_see(monitor->names, snapshot);
	add_faults(monitor);
	if (monitor->box && black_box_see(monitor->box, snapshot, &trigger))
		black_box_strike(monitor->box, &trigger, snapshot->monotonic_ns);
	if (monitor->exporter)
		picture_see(monitor->picture, snapshot);
	if (monitor->is_round && monitor->recorder)
		record(monitor);
	if (monitor->is_round && monitor->ticker)
		show(monitor);
	if (monitor->is_round && monitor->exporter)
		exporter_renew(monitor->exporter);
	give_way(monitor);
}

static void round_over(struct monitor *monitor)
{
	see_child(monitor, monitor->snapshot.monotonic_ns);
	monitor->asked = false;
	if (monitor->is_round)
		monitor->cost.rounds++;
	if (monitor->opts->count && monitor->cost.rounds >= monitor->opts->count)
		monitor->end = true;
}

static void ask(struct monitor *monitor, int64_t now_ns)
{
	uint32_t groups = pace_ask(&monitor->pace, now_ns, &monitor->is_round);
	struct err err = { 0 };

	if (collector_ask(monitor->collector, groups, &err) < 0) {
		trouble(monitor, &err);
		round_over(monitor);
		return;
	}
	monitor->asked = true;
}

static void take(struct monitor *monitor)
{
	struct err err = { 0 };

	if (collector_take(monitor->collector, &monitor->snapshot, &err) < 0)
		trouble(monitor, &err);
	else
		answered(monitor);
	round_over(monitor);
}

/* What the kernel log lost is missing in the file that is open. */
static void record_overwritten(struct monitor *monitor)
{
	int64_t count =
		monitor->faults ? faults_overwritten(monitor->faults) - monitor->overwritten : 0;
	struct sink *sink = monitor->recorder ? recorder_open_sink(monitor->recorder) : NULL;
	uint32_t source;

	if (!count || !sink || !monitor->sampler)
		return;
	source = sampler_source(monitor->sampler);
	session_loss(sink->session, source, LOSS_dropped, count);
	session_note(sink->session, source, NOTE_LOG_UNREAD, (long long)count);
	monitor->overwritten += count;
}

/* A fault in the file that is open, and in the flight recorder. */
static void take_faults(struct monitor *monitor, int64_t now_ns)
{
	struct fault fault;

	while (monitor->faults && faults_take(monitor->faults, now_ns, &fault)) {
		struct sink *sink =
			monitor->recorder ? recorder_open_sink(monitor->recorder) : NULL;
		struct err err = { 0 };

		if (sink && monitor->sampler &&
		    fault_push(sink, sampler_source(monitor->sampler), &fault, &err) < 0)
			recorder_commit(monitor->recorder, &err);
		if (monitor->box)
			black_box_fault(monitor->box, &fault, now_ns);
		if (monitor->exporter)
			exporter_renew(monitor->exporter);
	}
	record_overwritten(monitor);
}

/* --- the loop --- */

static int block_signals(struct monitor *monitor, struct err *err)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_errno(err, "signals");
	monitor->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return monitor->signals < 0 ? err_errno(err, "signals") : 0;
}

static void take_signals(struct monitor *monitor)
{
	struct signalfd_siginfo info;

	while (read(monitor->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM)
			monitor->end = true;
	}
}

/* Rounded up: waking early would be waking twice. */
static int wait_ms(const struct monitor *monitor, int64_t now_ns)
{
	int64_t until_ns = monitor->asked ? collector_deadline_ns(monitor->collector)
					  : pace_next(&monitor->pace);
	int64_t due_ns = monitor->box ? black_box_due(monitor->box) : INT64_MAX;

	until_ns = due_ns < until_ns ? due_ns : until_ns;
	due_ns = monitor->faults ? faults_due(monitor->faults) : INT64_MAX;
	until_ns = due_ns < until_ns ? due_ns : until_ns;
	if (until_ns <= now_ns)
		return 0;
	until_ns = (until_ns - now_ns + 999999) / 1000000;
	return until_ns > 60000 ? 60000 : (int)until_ns;
}

static void loop(struct monitor *monitor)
{
	while (!monitor->end) {
		int64_t now_ns = clock_steady_ns();
		struct pollfd fds[3] = { { .fd = monitor->signals, .events = POLLIN } };
		nfds_t count = 1, answer; /* descriptors before those of the kernel log */
		int timeout_ms = wait_ms(monitor, now_ns);

		if (monitor->asked && collector_fd(monitor->collector) >= 0)
			fds[count++] = (struct pollfd){ .fd = collector_fd(monitor->collector),
							.events = POLLIN };
		answer = count;
		if (monitor->faults && faults_fd(monitor->faults) >= 0)
			fds[count++] = (struct pollfd){ .fd = faults_fd(monitor->faults),
							.events = POLLIN };
		if (monitor->exporter)
			(void)exporter_poll(monitor->exporter, fds, count, timeout_ms);
		else
			(void)poll(fds, count, timeout_ms);
		if (fds[0].revents)
			take_signals(monitor);
		now_ns = clock_steady_ns();
		take_faults(monitor, now_ns);
		if (monitor->asked && (answer < 2 || fds[1].revents ||
				       now_ns >= collector_deadline_ns(monitor->collector)))
			take(monitor);
		else if (!monitor->asked && !monitor->end && now_ns >= pace_next(&monitor->pace))
			ask(monitor, now_ns);
		if (monitor->box && black_box_due(monitor->box) <= now_ns)
			(void)black_box_work(monitor->box, now_ns);
	}
}

static void tell_line(void *arg, const char *line)
{
	tell(arg, "%s", line);
}

static int open_outputs(struct monitor *monitor, struct err *err)
{
	const struct monitor_opts *opts = monitor->opts;
	const struct recorder_opts recorder_opts = { .dir = opts->dir,
						     .keep_ns = opts->keep_ns,
						     .keep_bytes = opts->keep_bytes,
						     .utc_ns = monitor->start_utc_ns,
						     .tell = tell_line,
						     .tell_arg = monitor };
	const struct exporter_opts exporter_opts = { .listen = opts->listen,
						     .names = opts->listen_names,
						     .dcgm_names = opts->dcgm_names,
						     .processes = opts->processes,
						     .current = current,
						     .arg = monitor };

	if (opts->dir && recorder_open(&recorder_opts, &monitor->recorder, err) < 0)
		return err->code;
	if (opts->flight)
		monitor->box = black_box_new(
			&(struct black_box_opts){ .recorder = monitor->recorder,
						  .names = monitor->names,
						  .interval_ns = monitor->pace.flight_ns,
						  .tell = tell_line,
						  .arg = monitor });
	if (opts->dir || opts->listen)
		monitor->faults = faults_open(opts->kernel_log, tell_line, monitor);
	if (opts->has_form)
		monitor->ticker = ticker_new(opts->form);
	monitor->picture = picture_new();
	if (opts->listen && exporter_open(&exporter_opts, &monitor->exporter, err) < 0)
		return err->code;
	if (monitor->exporter)
		tell(monitor, "metrics at http://%s/metrics", exporter_address(monitor->exporter));
	return 0;
}

static uint32_t needs(const struct monitor_opts *opts)
{
	bool rows = opts->has_form && opts->form == TICKER_DMON;

	return (opts->dir || (opts->has_form && !rows) ? PACE_FILES : 0) | (rows ? PACE_ROWS : 0) |
	       (opts->listen ? PACE_METRICS : 0);
}

static int monitor_open(struct monitor *monitor, struct err *err)
{
	const struct monitor_opts *opts = monitor->opts;
	const struct collector_opts collector_opts = { .library = opts->library,
						       .root = opts->root,
						       .wake = opts->wake };

	monitor->start_ns = clock_steady_ns();
	monitor->start_utc_ns = clock_ns(CLOCK_REALTIME);
	monitor->start_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	monitor->pace.interval_ns = opts->interval_ns;
	monitor->pace.flight_ns = opts->flight ? FLIGHT_NS : 0;
	monitor->pace.needs = needs(opts);
	if (block_signals(monitor, err) < 0)
		return err->code;
	/* First: the child begins with the memory that we have then. */
	if (collector_open(&collector_opts, &monitor->collector, err) < 0)
		return err->code;
	monitor->names = names_new(opts->root);
	return open_outputs(monitor, err);
}

static int by_total(const void *a, const void *b)
{
	const struct call_cost *x = a, *y = b;

	return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

static void count_cost(struct monitor *monitor)
{
	struct monitor_cost *cost = &monitor->cost;
	struct snapshot *snapshot = &monitor->snapshot;
	struct err err = { 0 };

	cost->wall_ns = clock_steady_ns() - monitor->start_ns;
	monitor->next_cpu_ns = 0;
	see_child(monitor, monitor->start_ns);
	cost->own_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - monitor->start_cpu_ns;
	cost->driver_cpu_ns = monitor->dead_cpu_ns + monitor->child_cpu_ns;
	cost->rss_bytes = rss_of(getpid());
	if (collector_pid(monitor->collector) > 0)
		cost->driver_rss_bytes = rss_of(collector_pid(monitor->collector));
	if (!monitor->opts->costs || !cost->snapshots ||
	    collector_ask(monitor->collector, COLLECT_FAST | COLLECT_COSTS, &err) < 0 ||
	    collector_take(monitor->collector, snapshot, &err) < 0)
		return;
	for (size_t i = 0; i < snapshot->costs.count; i++)
		*VEC_ADD(&cost->calls) = snapshot->costs.at[i];
	if (cost->calls.count)
		qsort(cost->calls.at, cost->calls.count, sizeof(*cost->calls.at), by_total);
}

static void monitor_done(struct monitor *monitor)
{
	exporter_close(monitor->exporter);
	faults_close(monitor->faults);
	sampler_free(monitor->sampler);
	black_box_free(monitor->box);
	recorder_close(monitor->recorder);
	ticker_free(monitor->ticker);
	picture_free(monitor->picture);
	names_free(monitor->names);
	collector_close(monitor->collector);
	snapshot_done(&monitor->snapshot);
	buf_done(&monitor->lines);
	own_closep(&monitor->signals);
}

int monitor_run(const struct monitor_opts *opts, struct monitor_cost *ret_cost, struct err *err)
{
	struct monitor monitor = { .opts = opts, .signals = -1 };
	int ret = monitor_open(&monitor, err);

	if (ret >= 0) {
		monitor.pace.next_round_ns = clock_steady_ns();
		monitor.pace.next_flight_ns = monitor.pace.next_round_ns;
		loop(&monitor);
		if (monitor.box)
			black_box_end(monitor.box);
		count_cost(&monitor);
		if (monitor.failure.code) {
			*err = monitor.failure;
			ret = err->code;
		}
	}
	if (monitor.recorder && ret >= 0)
		ret = recorder_finish(monitor.recorder, err);
	else if (monitor.recorder)
		(void)recorder_finish(monitor.recorder, NULL);
	monitor_done(&monitor);
	*ret_cost = monitor.cost;
	return ret;
}
