#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/i18n.h"
#include "base/own.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/profile_file.h"
#include "cmd/run_host.h"
#include "cmd/run_limits.h"
#include "cmd/run_maps.h"
#include "cmd/run_name.h"
#include "cmd/run_range.h"
#include "cmd/run_status.h"
#include "cmd/run_system.h"
#include "collect/below.h"
#include "collect/launch.h"
#include "collect/spool.h"
#include "collect/threads.h"
#include "store/store.h"
#include "wire/other_tools.h"
#include "wire/segment.h"

#define CUDA_INJECTION "CUDA_INJECTION64_PATH"
#define NVTX_INJECTION "NVTX_INJECTION64_PATH"

enum { RUN_ENV_MAX = 10 };
/* Odd, so that it does not keep step with timers. */
enum { CPU_SAMPLES_HZ = 99 };

struct run_args {
	const char *output;
	const char *trace;
	const char *cuda_api;
	const char *graph;
	const char *pc;
	struct run_limits limits;
	const char *lang;
	const char *range;
	const char *library, *nvml;
	int duration, delay;
	bool calibrate, status, no_report, no_system, no_threads, torch_ops, perf_map;
	struct opt_list command;
};

static const struct opt run_opts[] = {
	OPT_STRING(
		struct run_args, output, 'o', "output", "PROFILE",
		N_("write this file; %p pid, %h host, %q{NAME} environment; else COMMAND.sonde")),
	OPT_STRING(
		struct run_args, trace, 't', "trace", "LIST",
		N_("with commas between: cuda kernel nvtx memory sync events unified queued osrt "
		   "sched cpu "
		   "python; else cuda,nvtx,memory,sync,sched,cpu,python")),
	OPT_STRING(struct run_args, cuda_api, 0, "cuda-api", "some|all",
		   N_("calls that launch, copy, wait, allocate; or every one")),
	OPT_STRING(struct run_args, graph, 0, "cuda-graph", "node|graph",
		   N_("a CUDA graph as its kernels, or as one block")),
	OPT_STRING(struct run_args, pc, 0, "pc-sampling", "on|off",
		   N_("why warps stall, by instruction, in the same run; off by default")),
	OPT_STRING(struct run_args, limits.pc_period, 0, "pc-period", "N",
		   N_("one PC sample of an SM every 2^N cycles; else 2^18")),
	OPT_STRING(struct run_args, limits.pc_memory, 0, "pc-memory", "BYTES",
		   N_("device memory for PC samples; else 128M")),
	OPT_STRING(
		struct run_args, limits.osrt_threshold, 0, "osrt-threshold", "NS",
		N_("calls of the system (osrt) that take less are left out; 0: none; else 1000")),
	OPT_STRING(struct run_args, limits.memory, 0, "memory", "BYTES",
		   N_("host memory in each process for what it records; else 64M")),
	OPT_INT(struct run_args, delay, 0, "delay", "SECONDS", N_("begin to record after this")),
	OPT_INT(struct run_args, duration, 'd', "duration", "SECONDS",
		N_("record this long; COMMAND goes on")),
	OPT_STRING(struct run_args, range, 'c', "capture-range", "RANGE",
		   N_("cudaProfilerApi: from cudaProfilerStart to Stop; or nvtx:NAME[@DOMAIN]")),
	OPT_FLAG(struct run_args, calibrate, 0, "calibrate",
		 N_("pause now and then, to say what recording costs")),
	OPT_FLAG(struct run_args, status, 0, "status",
		 N_("a live line on the terminal; its title where COMMAND writes there")),
	OPT_FLAG(struct run_args, no_system, 0, "no-system", N_("no samples of the cards")),
	OPT_FLAG(struct run_args, torch_ops, 0, "torch-ops",
		 N_("PyTorch's operators as ranges; brings nvtx")),
	OPT_FLAG(struct run_args, perf_map, 0, "perf-map",
		 N_("CPython 3.12 and later name their functions in call stacks")),
	OPT_FLAG(struct run_args, no_threads, 0, "no-threads",
		 N_("do not look at what threads are at")),
	OPT_FLAG(struct run_args, no_report, 0, "no-report", N_("only write the profile")),
	OPT_STRING(struct run_args, lang, 'l', "lang", "en|zh", N_("the report's language")),
	OPT_STRING(struct run_args, library, 0, "inject", "FILE", NULL),
	OPT_STRING(struct run_args, nvml, 0, "nvml", "FILE", NULL),
	OPT_COMMAND(struct run_args, command, "COMMAND...", N_("the program and its arguments")),
	OPT_END,
};

static const char *trace_list(const struct run_args *args)
{
	return args->trace ? args->trace : "cuda,nvtx,memory,sync,sched,cpu,python";
}

static bool samples_pcs(const struct run_args *args)
{
	return args->pc && !strcmp(args->pc, "on");
}

static int trace_words(const struct run_args *args, struct buf *out, struct err *err)
{
	static const char *const words[] = { "cuda", "kernel", "nvtx",    "memory",
					     "sync", "events", "unified", "queued",
					     "osrt", "sched",  "cpu",     "python" };
	const char *list = trace_list(args);
	struct str rest = str_of(list);

	while (rest.at) {
		struct str word = str_cut(&rest, ',');
		size_t i = 0;

		while (i < sizeof(words) / sizeof(words[0]) && !str_is(word, words[i]))
			i++;
		if (i == sizeof(words) / sizeof(words[0]))
			return err_set(err, ERR_USAGE,
				       "--trace: '%.*s' is none of cuda, kernel, nvtx, "
				       "memory, sync, events, unified, queued, osrt, sched, cpu, "
				       "python",
				       (int)word.len, word.at);
	}
	buf_printf(out, "%s=%s", SEGMENT_OPTIONS_ENV, list);
	if (args->cuda_api && !strcmp(args->cuda_api, "all"))
		buf_text(out, ",api-all");
	if (args->graph && !strcmp(args->graph, "graph"))
		buf_text(out, ",graph");
	if (run_host_has_word(list, "events") && !run_host_has_word(list, "sync"))
		buf_text(out, ",sync");
	if (args->torch_ops) /* PyTorch's ranges are NVTX ranges */
		buf_text(out, run_host_has_word(list, "nvtx") ? ",torch-ops" : ",nvtx,torch-ops");
	if (samples_pcs(args))
		buf_text(out, ",pc");
	if (run_limits_words(&args->limits, samples_pcs(args), run_host_has_word(list, "osrt"), out,
			     err) < 0)
		return err->code;
	if (args->calibrate && args->range)
		return err_set(err, ERR_USAGE,
			       "--calibrate and --capture-range both say when to record");
	return run_range_words(args->range, out, err);
}

struct run {
	const struct run_args *args;
	struct store *store;
	struct spool *spool;
	struct launch *launch;
	struct run_system *system;
	struct threads *threads;
	struct run_maps *maps;
	struct below *below;
	struct run_status live;
	const char *path;
	int64_t start_ns;
	bool started, stopped, quiet, looked; /* looked: at threads, for the last time */
	int64_t turn_ns;                      /* of --calibrate: when it goes off or on next */
	int status;
};

/* --delay and --duration, and the first SIGINT. */
static void keep_time(struct run *run, bool interrupted)
{
	int64_t seconds = (clock_steady_ns() - run->start_ns) / 1000000000;

	if (run->args->delay && !run->started && !run->stopped && seconds >= run->args->delay) {
		spool_ask_start(run->spool);
		run->started = true;
	}
	if (!run->stopped && (interrupted || (run->args->duration &&
					      seconds >= run->args->delay + run->args->duration))) {
		spool_ask_stop(run->spool);
		run->stopped = true;
		/* Who pressed the key sees the program go on, and would think that nothing came. */
		if (interrupted && isatty(STDERR_FILENO))
			fprintf(stderr, "\nsonde run: recording has ended, the command goes on; "
					"interrupt again to end it\n");
	}
}

/* --calibrate: off for a moment, on for two. Not in step with anything: each window
 * has a length of its own. */
static void alternate(struct run *run)
{
	static const int64_t FIRST_NS = 500000000, QUIET_NS = 200000000;
	int64_t now = clock_steady_ns();

	if (!run->args->calibrate || run->stopped || (run->args->delay && !run->started))
		return;
	if (!run->turn_ns)
		run->turn_ns = now + FIRST_NS;
	if (now < run->turn_ns)
		return;
	run->quiet = !run->quiet;
	if (run->quiet)
		spool_ask_quiet(run->spool);
	else
		spool_ask_start(run->spool);
	run->turn_ns = now + (run->quiet ? QUIET_NS : 2 * QUIET_NS) + now % (QUIET_NS / 4);
}

/* The cards and the threads, in the windows of --delay, --duration and the first SIGINT. */
static int look_around(struct run *run, struct err *err)
{
	int64_t now_ns = clock_steady_ns();
	int ret;

	if (run->looked || (run->args->delay && !run->started && !run->stopped))
		return 0;
	if (run->stopped) {
		run->looked = true;
		return threads_finish(run->threads, now_ns, err);
	}
	ret = run_system_tick(run->system, err);
	return ret < 0 ? ret : threads_tick(run->threads, now_ns, err);
}

/* Until the program ends. A failure of the profile does not touch it: it goes
 * on, and what was recorded stays. */
static int record(struct run *run, struct err *err)
{
	enum { TICK_MS = 20 };
	/* A process that uses CUDA has done so by then, mostly. */
	static const int64_t FLUSH_NS = 500000000, STAYS_NS = 2000000000;
	struct launch_news news;
	/* From the first moment there is a profile to read, whatever kills us. */
	int ret = store_flush(run->store, err);
	int64_t flushed_ns = clock_steady_ns();

	do {
		launch_wait(run->launch, TICK_MS, &news);
		if (ret < 0)
			continue;
		keep_time(run, news.interrupted);
		alternate(run);
		run_status_tick(&run->live, run->spool, run->path);
		below_look(run->below);
		ret = spool_take(run->spool, store_sink(run->store), err);
		if (ret >= 0)
			ret = look_around(run, err);
		if (ret >= 0 && clock_steady_ns() - flushed_ns > FLUSH_NS) {
			below_tell(run->below, store_session(run->store), STAYS_NS);
			ret = store_flush(run->store, err);
			flushed_ns = clock_steady_ns();
		}
	} while (!news.ended);
	run_status_stop(&run->live);
	run->status = news.status;
	if (ret >= 0 && !run->looked)
		ret = threads_finish(run->threads, clock_steady_ns(), err);
	if (ret >= 0)
		ret = spool_finish(run->spool, store_sink(run->store), err);
	return ret;
}

/* What the recording took of the processors beside the command. */
static void describe_cost(const struct run *run, struct session *session)
{
	int64_t cards_ns = run_system_cpu_ns(run->system);
	struct buf text = { 0 };

	buf_printf(&text, "cpu_ns=%" PRId64 ";cards_cpu_ns=%" PRId64 ";wall_ns=%" PRId64,
		   clock_ns(CLOCK_PROCESS_CPUTIME_ID) + cards_ns, cards_ns,
		   clock_steady_ns() - run->start_ns);
	session_env(session, SESSION_NONE, SESSION_NONE, STR("recorder_cost"),
		    (struct str){ text.at, text.len });
	buf_done(&text);
}

static void describe(struct run *run)
{
	struct session *session = store_session(run->store);
	struct buf command = { 0 };
	char status[16];

	for (size_t i = 0; i < run->args->command.count; i++)
		buf_printf(&command, "%s%s", i ? " " : "", run->args->command.at[i]);
	snprintf(status, sizeof(status), "%d", run->status);
	session_env(session, SESSION_NONE, SESSION_NONE, STR("command"),
		    (struct str){ command.at, command.len });
	session_env(session, SESSION_NONE, SESSION_NONE, STR("exit_status"), str_of(status));
	session_env(session, SESSION_NONE, SESSION_NONE, STR("trace"),
		    str_of(trace_list(run->args)));
	session_env(session, SESSION_NONE, SESSION_NONE, STR("pc_sampling"),
		    str_of(samples_pcs(run->args) ? "on" : "off"));
	buf_done(&command);
	below_tell(run->below, session, 0);
	describe_cost(run, session);
}

/* Tools that bring a library of their own into the program get it as without us.
 * Where they are called by a script or another program, the library in the process
 * sees them and stays off (inject/other.c). */
static const char *other_tool(const char *command)
{
	const char *slash = strrchr(command, '/');

	return other_tool_named(slash ? slash + 1 : command);
}

static void tell(const struct run *run)
{
	struct spool_status status;
	const char *line;

	spool_status(run->spool, &status);
	for (uint32_t i = 0; (line = spool_complaint(run->spool, i)); i++)
		fprintf(stderr, "sonde run: %s\n", line);
	line = run_system_complaint(run->system);
	if (line)
		fprintf(stderr, "sonde run: no samples of the cards: %s\n", line);
	line = threads_complaint(run->threads);
	if (line)
		fprintf(stderr, "sonde run: threads are only looked at: %s\n", line);
	line = threads_python_complaint(run->threads);
	if (line)
		fprintf(stderr, "sonde run: Python functions are not read: %s\n", line);
	if (status.unserved)
		fprintf(stderr, "sonde run: %u processes found no room and were not recorded\n",
			status.unserved);
	if (status.unserved_host)
		fprintf(stderr, "sonde run: calls of the system of %u processes found no room\n",
			status.unserved_host);
	if (below_found(run->below))
		fprintf(stderr,
			"sonde run: ncu was started by the command and may refuse to work beside "
			"sonde: call it as `env -u %s -u %s ncu`, or as `sonde run -- ncu`\n",
			CUDA_INJECTION, NVTX_INJECTION);
	if (other_tool(run->args->command.at[0]))
		fprintf(stderr,
			"sonde run: %s profiles the program itself: its GPU activity is not "
			"recorded\n",
			other_tool(run->args->command.at[0]));
	else if (!status.processes && !status.stranger)
		fprintf(stderr, "sonde run: no process of the command used CUDA or NVTX\n");
}

/* As 'sonde report PATH' would; but standard output is the command's: a file or a pipe there
 * gets nothing of ours. */
static int show(const struct run *run, const char *path, struct err *err)
{
	const char *argv[] = { "report", path, run->args->lang ? "--lang" : NULL, run->args->lang,
			       NULL };
	const struct cmd *cmd = &cmd_report;
	struct opt_memory *memory = NULL;
	void *args;
	bool help;
	int ret;

	if (!isatty(STDOUT_FILENO) && ((fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY ||
				       dup2(STDERR_FILENO, STDOUT_FILENO) < 0))
		return 0;
	args = calloc(1, cmd->args_size);
	ret = args ? opt_parse(cmd->opts, run->args->lang ? 4 : 2, argv, args, &memory, &help, err)
		   : -1;

	if (ret >= 0)
		ret = cmd->run(args, err);
	clearerr(stdout); /* the status is the command's whatever became of the report */
	opt_done(memory);
	free(args);
	return ret;
}

/* Another tool's injection library, put there by the user, stays. */
static bool is_taken(const char *variable)
{
	const char *other = getenv(variable);
	const char *slash = other ? strrchr(other, '/') : NULL;

	/* That of a sonde around us gives way. */
	if (!other || !*other || !strcmp(slash ? slash + 1 : other, "libsonde-inject.so"))
		return false;
	fprintf(stderr, "sonde run: %s is %s: left to that tool, %s not recorded\n", variable,
		other, variable[0] == 'C' ? "GPU activity is" : "NVTX ranges are");
	return true;
}

/* What is added to the command's environment: ret_env[0..], as "NAME=VALUE". */
static int environment(const struct run_args *args, const struct run_maps *maps,
		       struct buf ret_env[RUN_ENV_MAX], struct err *err)
{
	static const char *const injections[] = { CUDA_INJECTION, NVTX_INJECTION };
	char library[PATH_MAX];
	size_t at = 1; /* [0] is the spool's path */
	int ret = run_host_library(args->library, library, err);

	if (ret >= 0)
		ret = trace_words(args, &ret_env[at++], err);
	if (ret >= 0 && args->trace && run_host_has_word(args->trace, "osrt"))
		ret = run_host_preload(library, getenv("LD_PRELOAD"), &ret_env[at++], err);
	if (ret >= 0 && args->torch_ops)
		buf_text(&ret_env[at++], "SONDE_TORCH_OPS=1");
	if (ret >= 0 && maps)
		at += run_maps_environment(maps, &ret_env[at]);
	if (ret >= 0 && (args->torch_ops || maps))
		ret = run_host_python(library, getenv("PYTHONPATH"), &ret_env[at++], err);
	for (int i = 0; i < 2 && ret >= 0; i++) {
		if (!other_tool(args->command.at[0]) && !is_taken(injections[i]))
			buf_printf(&ret_env[at++], "%s=%s", injections[i], library);
	}
	return ret;
}

static int start(struct run *run, struct err *err)
{
	struct buf env[RUN_ENV_MAX] = { 0 };
	const char *vars[RUN_ENV_MAX + 1] = { 0 };
	struct launch_opts opts = { .env = vars, .argv = run->args->command.at };
	struct spool_opts spool = { .calibrates = run->args->calibrate,
				    .waits = run->args->delay != 0,
				    .range = run->args->range,
				    .named = run->args->torch_ops ||
					     run_host_has_word(trace_list(run->args), "nvtx") };
	int ret = run->args->perf_map ? run_maps_open(&run->maps, err) : 0;

	if (ret >= 0)
		ret = environment(run->args, run->maps, env, err);
	if (ret >= 0)
		ret = run_limits_memory(&run->args->limits, &spool.memory, err);
	/* Each process of a shell script has calls of the system. */
	if (run->args->trace && run_host_has_word(run->args->trace, "osrt"))
		spool.segments = SEGMENT_COUNT_MAX;
	if (ret >= 0)
		ret = spool_open(&spool, &run->spool, err);
	if (ret >= 0) {
		buf_printf(&env[0], "%s=%s", SEGMENT_ENV, spool_path(run->spool));
		for (size_t i = 0; i < RUN_ENV_MAX; i++)
			vars[i] = env[i].at;
		ret = launch_start(&opts, &run->launch, err);
		/* Who no longer reads our lines ends no recording, and changes no status. */
		(void)signal(SIGPIPE, SIG_IGN);
		if (ret < 0)
			run->status = launch_failed_status(err);
	}
	for (size_t i = 0; i < RUN_ENV_MAX; i++)
		buf_done(&env[i]);
	run->start_ns = clock_steady_ns();
	return ret;
}

static void watch_threads(struct run *run)
{
	const char *list = trace_list(run->args);
	struct threads_opts opts = { .switches = run_host_has_word(list, "sched") };

	if (run->args->no_threads)
		return;
	/* Where a sample stops to hold only a switch tells. */
	if (run_host_has_word(list, "cpu"))
		opts = (struct threads_opts){ .switches = true, .samples_hz = CPU_SAMPLES_HZ };
	opts.python = run_host_has_word(list, "python");
	run->threads = threads_new("", &opts, store_sink(run->store));
}

/* 125: sonde failed before the program began; 126, 127: it could not be started. */
static int run_run(const void *arguments, struct err *err)
{
	enum { FAILED_BEFORE = 125 };
	struct run run = { .args = arguments };
	char path[PATH_MAX];
	struct err own = { 0 };
	int ret;

	ret = run_name(run.args->output, run.args->command.at[0], path, err);
	if (ret >= 0)
		ret = profile_file_check_output(path, err);
	if (ret >= 0)
		ret = store_create(path, &run.store, err);
	if (ret >= 0 && !run.args->no_system)
		ret = run_system_open(run.args->nvml, store_sink(run.store), &run.system, err);
	if (ret >= 0)
		ret = start(&run, err);
	if (ret < 0) {
		if (ret != ERR_USAGE)
			fprintf(stderr, "sonde run: %s\n", err->line);
		run_system_close(run.system);
		run_maps_close(run.maps, NULL, NULL);
		store_discard(run.store);
		spool_close(run.spool);
		if (ret == ERR_USAGE) /* told by our caller, as any command's */
			return ret;
		return run.status ? run.status : FAILED_BEFORE;
	}
	watch_threads(&run);
	run.below = below_new("", launch_pid(run.launch), "ncu", CUDA_INJECTION);
	run.path = path;
	run_status_start(&run.live, run.args->status);
	ret = record(&run, &own);
	run_maps_close(run.maps, run.threads, store_session(run.store));
	describe(&run);
	launch_free(run.launch);
	if (ret >= 0)
		ret = store_finish(run.store, &own);
	store_close(run.store);
	tell(&run);
	if (ret >= 0)
		fprintf(stderr, "sonde run: %s\n", path);
	else
		fprintf(stderr, "sonde run: %s; what was recorded before is %s.part\n", own.line,
			path);
	threads_free(run.threads);
	below_free(run.below);
	if (ret >= 0 && !run.args->no_report && show(&run, path, &own) < 0)
		fprintf(stderr, "sonde run: %s\n", own.line);
	run_system_close(run.system);
	spool_close(run.spool);
	return run.status;
}

const struct cmd cmd_run = {
	.name = "run",
	.summary = N_("Run a program and say where its GPU time goes"),
	.description =
		N_("Records kernels, copies, the calls that launch and wait, NVTX ranges and\n"
		   "memory of COMMAND and the processes it starts, in one normal run, and\n"
		   "reports when it ends.\n"
		   "The exit status is COMMAND's own."),
	.examples = "  sonde run -- python train.py\n"
		    "  sonde run -o step.sonde -d 30 -- ./server --port 80\n"
		    "  sonde run --pc-sampling on -- ./cases",
	.opts = run_opts,
	.args_size = sizeof(struct run_args),
	.keeps_signals = true,
	.run = run_run,
};
