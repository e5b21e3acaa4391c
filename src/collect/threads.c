#include "collect/threads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "collect/perf_watch.h"
#include "collect/proc.h"
#include "collect/python_thread.h"
#include "model/note.h"
#include "model/thread_state.h"

static const int64_t INTERVAL_NS = 20000000;
/* Shorter waits are not asked what they wait for. */
static const int64_t LOOK_NS = 1000000;
/* A look is followed by this many times its cost of rest: half a percent. */
static const int64_t REST = 200;
/* Three descriptors each; more threads than that launch in no program. Of processes that make no
 * calls (workers of a data loader) fewer, looked at so much more seldom: the others go first. */
enum { THREADS_MAX = 64, TEXT_BYTES = 512, PYTHON_TRIES = 4, APART_MAX = 16, APART_ROUNDS = 8 };

struct watched {
	uint32_t lane;
	int stat, syscall, schedstat;
	uint32_t state; /* string: as last seen; 0: not yet */
	int64_t seen_ns;
	uint64_t ran_ns, queued_ns;
	bool was_running;
	bool apart;                   /* of a process that makes no calls: looks only */
	struct perf_watch *perf;      /* NULL: by looks */
	struct python_thread *python; /* NULL: none, or not asked for */
};

/* What threads of one process share. */
struct shared {
	uint32_t process;
	struct perf_stack *stack;
	struct python *python; /* NULL: not found (yet), or refused */
	int tries;             /* to find it */
	uint32_t version;      /* of Python, as python_open has it */
};

struct threads {
	const char *root;
	struct threads_opts opts;
	struct sink *sink;
	int64_t due_ns, looked_ns;
	uint32_t limited; /* threads that perf is too dear for */
	uint32_t source;  /* of what perf lost; SESSION_NONE until it is used */
	/* The first reason why there are only looks, why no Python functions. */
	struct err refused, refused_python;
	struct symbols *symbols;
	VEC(struct shared) shared;
	size_t lanes_seen, processes_seen;
	int64_t left_out; /* threads beyond THREADS_MAX */
	unsigned int rounds, apart;
	VEC(struct watched) watched;
};

/* The calls that threads are found waiting in; others go by their number. */
static const struct {
	long number;
	const char *name;
} CALLS[] = {
	{ SYS_futex, "futex" },
	{ SYS_read, "read" },
	{ SYS_write, "write" },
	{ SYS_pread64, "pread" },
	{ SYS_pwrite64, "pwrite" },
	{ SYS_readv, "readv" },
	{ SYS_writev, "writev" },
	{ SYS_openat, "openat" },
	{ SYS_ppoll, "ppoll" },
	{ SYS_pselect6, "pselect" },
	{ SYS_epoll_pwait, "epoll_pwait" },
	{ SYS_nanosleep, "nanosleep" },
	{ SYS_clock_nanosleep, "clock_nanosleep" },
	{ SYS_wait4, "wait4" },
	{ SYS_waitid, "waitid" },
	{ SYS_recvfrom, "recvfrom" },
	{ SYS_recvmsg, "recvmsg" },
	{ SYS_sendto, "sendto" },
	{ SYS_sendmsg, "sendmsg" },
	{ SYS_accept, "accept" },
	{ SYS_accept4, "accept4" },
	{ SYS_connect, "connect" },
	{ SYS_fsync, "fsync" },
	{ SYS_fdatasync, "fdatasync" },
	{ SYS_ioctl, "ioctl" },
	{ SYS_mmap, "mmap" },
	{ SYS_munmap, "munmap" },
	{ SYS_madvise, "madvise" },
	{ SYS_sched_yield, "sched_yield" },
	{ SYS_rt_sigtimedwait, "sigtimedwait" },
#ifdef SYS_poll
	{ SYS_poll, "poll" },
	{ SYS_select, "select" },
	{ SYS_epoll_wait, "epoll_wait" },
	{ SYS_open, "open" },
	{ SYS_pause, "pause" },
#endif
};

struct threads *threads_new(const char *root, const struct threads_opts *opts, struct sink *sink)
{
	struct threads *threads = mem_zero(sizeof(*threads));

	threads->root = root;
	threads->sink = sink;
	threads->source = SESSION_NONE;
	if (opts)
		threads->opts = *opts;
	return threads;
}

static void unwatch(struct watched *watched)
{
	int files[] = { watched->stat, watched->syscall, watched->schedstat };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (files[i] >= 0)
			(void)close(files[i]);
	}
	perf_watch_free(watched->perf);
	watched->perf = NULL;
	python_thread_free(watched->python);
	watched->python = NULL;
}

void threads_free(struct threads *threads)
{
	if (!threads)
		return;
	for (size_t i = 0; i < threads->watched.count; i++)
		unwatch(&threads->watched.at[i]);
	VEC_DONE(&threads->watched);
	for (size_t i = 0; i < threads->shared.count; i++) {
		perf_stack_free(threads->shared.at[i].stack);
		python_close(threads->shared.at[i].python);
	}
	VEC_DONE(&threads->shared);
	symbols_free(threads->symbols);
	free(threads);
}

static int open_at(const struct threads *threads, int64_t pid, int64_t tid, const char *name)
{
	struct buf path = { 0 };
	int file;

	buf_printf(&path, "%s/proc/%lld/task/%lld/%s", threads->root, (long long)pid,
		   (long long)tid, name);
	file = open(path.at, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	buf_done(&path);
	return file;
}

/* The file as it is now; "" if it can't be read. */
static void text_of(int file, char text[TEXT_BYTES])
{
	ssize_t len = file < 0 ? -1 : pread(file, text, TEXT_BYTES - 1, 0);

	text[len > 0 ? len : 0] = 0;
}

/* "12 (name (of) it) S ...": the name, and what follows it. */
static struct str name_in(const char *stat, const char **ret_rest)
{
	const char *first = strchr(stat, '('), *last = strrchr(stat, ')');

	*ret_rest = NULL;
	if (!first || !last || last < first || last[1] != ' ' || !last[2])
		return (struct str){ 0 };
	*ret_rest = last + 2;
	return (struct str){ first + 1, (size_t)(last - first - 1) };
}

/* A process in a pid namespace of its own counts otherwise than we do: its number
 * here can be a stranger's. When it began tells; where that is not known its name, which
 * it may have changed since. */
static bool is_same(const struct threads *threads, const struct process *process)
{
	const char *name = session_text(threads->sink->session, process->name), *rest;
	int file = open_at(threads, process->pid, process->pid, "stat");
	char text[TEXT_BYTES];
	struct str found;

	text_of(file, text);
	if (file >= 0)
		(void)close(file);
	found = name_in(text, &rest);
	if (rest && process->start_ticks)
		return (uint64_t)proc_stat_field(str_of(rest), 22) == process->start_ticks;
	return rest && (!process->name || str_is(found, name));
}

static struct shared *shared_of(struct threads *threads, uint32_t process)
{
	struct shared *shared;

	for (size_t i = 0; i < threads->shared.count; i++) {
		if (threads->shared.at[i].process == process)
			return &threads->shared.at[i];
	}
	shared = VEC_ADD(&threads->shared);
	shared->process = process;
	return shared;
}

static struct perf_stack *stack_of(struct threads *threads, uint32_t process)
{
	struct shared *shared = shared_of(threads, process);

	if (!threads->symbols)
		threads->symbols = symbols_new();
	if (!shared->stack)
		shared->stack = perf_stack_new(threads->root,
					       threads->sink->session->processes.at[process].pid,
					       threads->symbols);
	return shared->stack;
}

/* An interpreter can come later than the first thread: asked for with the next few. */
static void watch_python(struct threads *threads, struct watched *watched)
{
	const struct session *session = threads->sink->session;
	const struct lane *facts = &session->lanes.at[watched->lane];
	struct shared *shared = shared_of(threads, facts->process);
	struct err err = { 0 };

	if (!threads->opts.python)
		return;
	if (!shared->python && shared->tries++ < PYTHON_TRIES &&
	    python_open(threads->root, session->processes.at[facts->process].pid, &shared->python,
			&shared->version, &err) == ERR_UNSUPPORTED) {
		shared->tries = PYTHON_TRIES;
		if (!threads->refused_python.code)
			threads->refused_python = err;
	}
	if (shared->python)
		watched->python =
			python_thread_new(shared->python, facts->tid, watched->lane, threads->sink);
}

static bool is_apart(const struct session *session, uint32_t process)
{
	uint32_t source = session->processes.at[process].source;

	return !strcmp(session_text(session, session->sources.at[source].reader), READER_PROC);
}

/* Switches and samples of the thread, where the kernel lets us. */
static void watch_closely(struct threads *threads, struct watched *watched, int64_t now_ns)
{
	struct session *session = threads->sink->session;
	const struct lane *facts = &session->lanes.at[watched->lane];
	struct perf_watch_opts opts = { .tid = facts->tid,
					.lane = watched->lane,
					.sink = threads->sink,
					.samples_hz = threads->opts.samples_hz };
	struct err err = { 0 };

	if (!threads->opts.switches)
		return;
	if (opts.samples_hz)
		opts.stack = stack_of(threads, facts->process);
	if (perf_watch_new(&opts, now_ns, &watched->perf, &err) < 0) {
		if (err.code != ERR_MISSING && !threads->refused.code)
			threads->refused = err;
		return;
	}
	if (threads->source == SESSION_NONE)
		threads->source = session_source(session, READER_PERF, "context switches");
}

/* False: there is no room for it. */
static bool watch(struct threads *threads, uint32_t lane, int64_t now_ns)
{
	struct session *session = threads->sink->session;
	const struct lane *facts = &session->lanes.at[lane];
	const struct process *process;
	struct watched watched = { .lane = lane };
	char text[TEXT_BYTES];
	struct str name;
	const char *rest;

	if (facts->kind != LANE_THREAD || facts->tid <= 0 || facts->process == SESSION_NONE)
		return true;
	for (size_t i = 0; i < threads->watched.count; i++) {
		if (threads->watched.at[i].lane == lane)
			return true;
	}
	process = &session->processes.at[facts->process];
	if (!is_same(threads, process))
		return true;
	watched.apart = is_apart(session, facts->process);
	if (watched.apart && threads->apart >= APART_MAX)
		return true;
	if (threads->watched.count >= THREADS_MAX)
		return false;
	watched.stat = open_at(threads, process->pid, facts->tid, "stat");
	watched.syscall = open_at(threads, process->pid, facts->tid, "syscall");
	watched.schedstat = open_at(threads, process->pid, facts->tid, "schedstat");
	text_of(watched.stat, text);
	name = name_in(text, &rest);
	if (!rest) {
		unwatch(&watched);
		return true;
	}
	if (!session->lanes.at[lane].name)
		session->lanes.at[lane].name = session_string(session, name.at, name.len);
	threads->apart += watched.apart;
	if (!watched.apart) {
		watch_closely(threads, &watched, now_ns);
		watch_python(threads, &watched);
	}
	*VEC_ADD(&threads->watched) = watched;
	return true;
}

static void watch_new(struct threads *threads, int64_t now_ns)
{
	struct session *session = threads->sink->session;

	for (; threads->processes_seen < session->processes.count; threads->processes_seen++) {
		uint32_t row = (uint32_t)threads->processes_seen;
		const struct process *process = &session->processes.at[row];
		struct lane first = { .kind = LANE_THREAD,
				      .source = process->source,
				      .device = SESSION_NONE,
				      .process = row,
				      .context = -1,
				      .stream = -1,
				      .tid = process->pid };
		const char *reader =
			session_text(session, session->sources.at[process->source].reader);

		/* Processes that only use a card have no threads of ours. */
		if (!strcmp(reader, READER_CUDA) || !strcmp(reader, READER_PROC))
			(void)watch(threads, session_lane(session, &first), now_ns);
	}
	for (; threads->lanes_seen < session->lanes.count; threads->lanes_seen++)
		threads->left_out += !watch(threads, (uint32_t)threads->lanes_seen, now_ns);
}

static uint64_t number_at(const char **at)
{
	uint64_t number = 0;

	while (**at == ' ')
		(*at)++;
	for (; **at >= '0' && **at <= '9'; (*at)++)
		number = number * 10 + (uint64_t)(**at - '0');
	return number;
}

/* It has no core: since the last look it waited for one longer than it ran. */
static bool is_queued(struct watched *watched)
{
	char text[TEXT_BYTES];
	const char *at = text;
	uint64_t ran, queued;
	bool is;

	text_of(watched->schedstat, text);
	ran = number_at(&at);
	queued = number_at(&at);
	is = watched->was_running && queued - watched->queued_ns > ran - watched->ran_ns;
	watched->ran_ns = ran;
	watched->queued_ns = queued;
	return is;
}

/* "waiting: futex". The file says "running", or "202 0x..." with the arguments,
 * or "-1 ..." outside of any call; it may be out of reach. */
static uint32_t in_call(struct session *session, enum thread_state state, int file)
{
	char text[TEXT_BYTES], call[32];
	const char *at = text;
	uint64_t number;

	text_of(file, text);
	if (*text < '0' || *text > '9')
		return thread_state_string(session, state, NULL);
	number = number_at(&at);
	for (size_t i = 0; i < sizeof(CALLS) / sizeof(CALLS[0]); i++) {
		if ((uint64_t)CALLS[i].number == number)
			return thread_state_string(session, state, CALLS[i].name);
	}
	(void)snprintf(call, sizeof(call), "system call %u", (unsigned int)number);
	return thread_state_string(session, state, call);
}

/* 0: it is gone. */
static uint32_t state_of(struct threads *threads, struct watched *watched)
{
	struct session *session = threads->sink->session;
	char text[TEXT_BYTES];
	const char *rest;
	uint32_t state;

	text_of(watched->stat, text);
	(void)name_in(text, &rest);
	if (!rest)
		return 0;
	switch (*rest) {
	case 'R':
		state = thread_state_string(
			session, is_queued(watched) ? THREAD_STATE_runnable : THREAD_STATE_running,
			NULL);
		watched->was_running = true;
		return state;
	case 'S':
		state = in_call(session, THREAD_STATE_waiting, watched->syscall);
		break;
	case 'D':
		state = in_call(session, THREAD_STATE_uninterruptible, watched->syscall);
		break;
	case 'T':
	case 't':
		state = thread_state_string(session, THREAD_STATE_stopped, NULL);
		break;
	default: /* dead, or something new */
		return 0;
	}
	watched->was_running = false;
	return state;
}

static int put(struct threads *threads, const struct watched *watched, int64_t now_ns,
	       struct err *err)
{
	struct range range = { .kind = RANGE_STATE,
			       .lane = watched->lane,
			       .start_ns = watched->seen_ns,
			       .end_ns = now_ns,
			       .name = watched->state };

	return watched->state ? sink_range(threads->sink, &range, err) : 0;
}

/* What was last seen of a thread that ended between two looks: it held no longer than to
 * where the next would have been. */
static int end(struct threads *threads, struct watched *watched, int64_t now_ns, struct err *err)
{
	int64_t due_ns = threads->looked_ns + INTERVAL_NS;
	int64_t until_ns = now_ns < due_ns ? now_ns : due_ns;

	if (watched->python && python_thread_finish(watched->python, until_ns, err) < 0)
		return err->code;
	if (watched->state && put(threads, watched, until_ns, err) < 0)
		return err->code;
	watched->state = 0;
	return 0;
}

/* Take what the kernel recorded of it. 0: it has ended. */
static int feed(struct threads *threads, struct watched *watched, int64_t now_ns, struct err *err)
{
	struct session *session = threads->sink->session;
	bool was_limited;
	int alive;

	if (!watched->perf)
		return 1;
	was_limited = perf_watch_limited(watched->perf);
	alive = perf_watch_feed(watched->perf, now_ns, err);
	session_loss(session, threads->source, LOSS_dropped, perf_watch_lost(watched->perf));
	session_loss(session, threads->source, LOSS_seen, perf_watch_seen(watched->perf));
	if (!was_limited && perf_watch_limited(watched->perf) && !threads->limited++)
		session_note(session, threads->source, NOTE_THREAD_BUSY,
			     (long long)session->lanes.at[watched->lane].tid);
	return alive || end(threads, watched, now_ns, err) == 0 ? alive : err->code;
}

/* As `each` says 0 of a thread it has ended, and is watched no more. */
static int for_all(struct threads *threads,
		   int (*each)(struct threads *threads, struct watched *watched, int64_t now_ns,
			       struct err *err),
		   int64_t now_ns, struct err *err)
{
	for (size_t i = 0; i < threads->watched.count;) {
		struct watched *watched = &threads->watched.at[i];
		int alive = each(threads, watched, now_ns, err);

		if (alive < 0)
			return alive;
		if (alive) {
			i++;
			continue;
		}
		threads->apart -= watched->apart;
		unwatch(watched);
		*watched = threads->watched.at[--threads->watched.count];
	}
	return 0;
}

/* 0: it has ended. */
static int look(struct threads *threads, struct watched *watched, int64_t now_ns, struct err *err)
{
	if (watched->apart && threads->rounds % APART_ROUNDS)
		return 1;
	if (watched->python && python_thread_look(watched->python, now_ns, err) < 0)
		return err->code;
	if (put(threads, watched, now_ns, err) < 0)
		return err->code;
	watched->state = 0;
	/* What a wait is for only /proc says. */
	if (watched->perf && perf_watch_exact(watched->perf)) {
		if (perf_watch_wants_look(watched->perf, now_ns - LOOK_NS) &&
		    perf_watch_looked(watched->perf, state_of(threads, watched), now_ns, err) < 0)
			return err->code;
		return 1;
	}
	watched->state = state_of(threads, watched);
	watched->seen_ns = now_ns;
	return watched->state != 0;
}

int threads_tick(struct threads *threads, int64_t now_ns, struct err *err)
{
	int64_t began_ns, rest_ns;

	if (!threads)
		return 0;
	if (for_all(threads, feed, now_ns, err) < 0)
		return err->code;
	if (now_ns < threads->due_ns)
		return 0;
	/* What is new is opened once: that is not what rests are for. */
	watch_new(threads, now_ns);
	threads->looked_ns = now_ns;
	threads->rounds++;
	began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (for_all(threads, look, now_ns, err) < 0)
		return err->code;
	rest_ns = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns) * REST;
	threads->due_ns = now_ns + (rest_ns > INTERVAL_NS ? rest_ns : INTERVAL_NS);
	return 0;
}

int threads_finish(struct threads *threads, int64_t now_ns, struct err *err)
{
	if (threads && threads->left_out)
		session_note(threads->sink->session, SESSION_NONE, NOTE_THREADS_LEFT_OUT,
			     (long long)threads->left_out, THREADS_MAX);
	if (threads && for_all(threads, feed, now_ns, err) < 0)
		return err->code;
	for (size_t i = 0; threads && i < threads->watched.count; i++) {
		struct watched *watched = &threads->watched.at[i];

		if (watched->python && python_thread_finish(watched->python, now_ns, err) < 0)
			return err->code;
		if (watched->perf && perf_watch_finish(watched->perf, now_ns, err) < 0)
			return err->code;
		if (put(threads, watched, now_ns, err) < 0)
			return err->code;
		watched->state = 0;
		unwatch(watched);
	}
	if (threads)
		threads->watched.count = 0;
	return 0;
}

const char *threads_complaint(const struct threads *threads)
{
	return threads && threads->refused.code ? threads->refused.line : NULL;
}

const char *threads_python_complaint(const struct threads *threads)
{
	return threads && threads->refused_python.code ? threads->refused_python.line : NULL;
}

bool threads_python(const struct threads *threads, size_t i, int64_t *ret_pid,
		    uint32_t *ret_version)
{
	const struct shared *shared =
		threads && i < threads->shared.count ? &threads->shared.at[i] : NULL;

	if (!shared)
		return false;
	*ret_pid = threads->sink->session->processes.at[shared->process].pid;
	*ret_version = shared->version;
	return true;
}
