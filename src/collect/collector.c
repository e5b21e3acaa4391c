#include "collect/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collect/child.h"

static const int64_t MS = 1000000;
static const int64_t DEADLINE_NS = INT64_C(10) * 1000000000;
/* How long a killed child may take to die before it counts as unkillable. */
static const int64_t DEATH_NS = INT64_C(500) * 1000000;
/* After a child that hung or crashed: at once, then 1, 2, 4 ... 64 s later. */
enum { BACKOFF_MAX = 7 };

struct collector {
	struct collector_opts opts;
	int fd;              /* our end; -1: no child */
	pid_t pid;           /* 0: none */
	int64_t gone_cpu_ns; /* of children that ended */
	bool asked;
	int64_t deadline_ns;
	int64_t not_before_ns; /* no new child before this */
	uint32_t failures;     /* in a row: hung or died */
	uint32_t started, hung;
	uint32_t generation_base; /* of children that ended */
	uint32_t generation_last;
	enum collector_state state;
	int status;
	char line[512]; /* why there is no driver, or no child */
	struct answer answer;
	struct snapshot next;    /* of which the caller's arrays become the next next */
	VEC(struct board) known; /* cards seen, for those that vanish */
};

/* In the new process: nothing of the parent's but the socket, which becomes
 * descriptor 3. Signals meant for the parent, as from a terminal, are its. */
static void become_child(int fd, pid_t parent, const struct collector_opts *opts)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	static const int usual[] = { SIGCHLD, SIGALRM, SIGUSR1, SIGUSR2, SIGWINCH };
	sigset_t none;
	int null;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_Exit(0);
	(void)prctl(PR_SET_NAME, "sonde-nvml");
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		(void)signal(usual[i], SIG_DFL);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (fd != 3 && dup2(fd, 3) < 0)
		_Exit(1);
	(void)close_range(4, ~0U, 0);
	/* The library may print; nobody would expect that. */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; null >= 0 && i < 3; i++)
		(void)dup2(null, i);
	if (null > 3)
		(void)close(null);
	child_run(3, opts);
	_Exit(0);
}

static int start(struct collector *collector, struct err *err)
{
	pid_t parent = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_errno(err, "a socket for the collector");
	collector->pid = fork();
	if (collector->pid < 0) {
		collector->pid = 0;
		(void)close(pair[0]);
		(void)close(pair[1]);
		return err_errno(err, "a process for the collector");
	}
	if (!collector->pid)
		become_child(pair[1], parent, &collector->opts);
	(void)close(pair[1]);
	(void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
	collector->fd = pair[0];
	collector->started++;
	collector->asked = false;
	return 0;
}

static int64_t ns_of(struct timeval time)
{
	return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

/* Is the child gone? Waits for that until `until_ns`. */
static bool reap(struct collector *collector, int64_t until_ns)
{
	const struct timespec moment = { 0, 2 * 1000000 };

	while (collector->pid) {
		struct rusage used = { 0 };
		pid_t pid = wait4(collector->pid, NULL, WNOHANG, &used);

		if (pid == collector->pid || (pid < 0 && errno == ECHILD)) {
			collector->gone_cpu_ns += ns_of(used.ru_utime) + ns_of(used.ru_stime);
			collector->pid = 0;
			break;
		}
		if (clock_steady_ns() >= until_ns)
			return false;
		(void)nanosleep(&moment, NULL);
	}
	return true;
}

/* The next child counts its generations from here. */
static void drop(struct collector *collector)
{
	if (collector->fd >= 0)
		(void)close(collector->fd);
	collector->fd = -1;
	collector->asked = false;
	collector->generation_base = collector->generation_last + 1;
}

static void back_off(struct collector *collector)
{
	uint32_t steps = collector->failures < BACKOFF_MAX ? collector->failures : BACKOFF_MAX;

	collector->not_before_ns =
		collector->failures ? clock_steady_ns() + (INT64_C(1000) * MS << (steps - 1)) : 0;
	collector->failures++;
}

static void kill_child(struct collector *collector)
{
	int (*kill_fn)(pid_t, int) = collector->opts.kill ? collector->opts.kill : kill;

	(void)kill_fn(collector->pid, SIGKILL);
}

/* No answer in time. */
static int give_up(struct collector *collector, struct err *err)
{
	long pid = collector->pid;

	collector->hung++;
	kill_child(collector);
	drop(collector);
	back_off(collector);
	if (reap(collector, clock_steady_ns() + DEATH_NS)) {
		collector->state = COLLECTOR_HUNG;
		(void)snprintf(collector->line, sizeof(collector->line),
			       "the NVIDIA driver gave no answer within %.1f s; the process that "
			       "asked was ended",
			       (double)collector->opts.deadline_ns / 1e9);
	} else {
		collector->state = COLLECTOR_ABANDONED;
		(void)snprintf(collector->line, sizeof(collector->line),
			       "the NVIDIA driver hangs: process %ld waits in it and can't be "
			       "ended; nothing more is asked until it is gone (often only a reboot "
			       "helps)",
			       pid);
	}
	return err_set(err, ERR_BUSY, "%s", collector->line);
}

static int died(struct collector *collector, struct err *err)
{
	drop(collector);
	kill_child(collector);
	(void)reap(collector, clock_steady_ns() + DEATH_NS);
	back_off(collector);
	collector->state = COLLECTOR_DIED;
	(void)snprintf(collector->line, sizeof(collector->line),
		       "the process that asks the NVIDIA driver died");
	return err_set(err, ERR_IO, "%s", collector->line);
}

int collector_open(const struct collector_opts *opts, struct collector **ret_collector,
		   struct err *err)
{
	OWN(collector_closep) struct collector *collector = mem_zero(sizeof(*collector));
	int ret;

	collector->opts = *opts;
	collector->fd = -1;
	collector->state = COLLECTOR_STARTING;
	if (!collector->opts.groups)
		collector->opts.groups = COLLECT_ALL;
	if (collector->opts.deadline_ns <= 0)
		collector->opts.deadline_ns = DEADLINE_NS;
	ret = start(collector, err);
	if (ret < 0)
		return ret;
	*ret_collector = STEAL(collector);
	return 0;
}

void collector_close(struct collector *collector)
{
	if (!collector)
		return;
	if (collector->fd >= 0)
		(void)close(collector->fd);
	/* An idle child ends by itself when the socket closes; one in the middle
	 * of a call is not waited for. */
	if (collector->pid && (collector->asked || !reap(collector, clock_steady_ns() + 50 * MS))) {
		kill_child(collector);
		(void)reap(collector, clock_steady_ns() + 50 * MS);
	}
	VEC_DONE(&collector->known);
	snapshot_done(&collector->next);
	free(collector);
}

/* A child that can be asked, if it is time for one. */
static int ensure_child(struct collector *collector, struct err *err)
{
	if (collector->fd >= 0)
		return 0;
	if (!reap(collector, 0))
		return err_set(err, ERR_BUSY, "%s", collector->line);
	if (clock_steady_ns() < collector->not_before_ns)
		return err_set(err,
			       collector->state == COLLECTOR_NO_DRIVER ? ERR_MISSING : ERR_BUSY,
			       "%s", collector->line);
	return start(collector, err);
}

int collector_ask(struct collector *collector, uint32_t groups, struct err *err)
{
	int ret;

	if (collector->asked)
		return 0;
	ret = ensure_child(collector, err);
	if (ret < 0)
		return ret;
	if (send(collector->fd, &groups, sizeof(groups), MSG_NOSIGNAL) != (ssize_t)sizeof(groups))
		return died(collector, err);
	collector->asked = true;
	collector->deadline_ns = clock_steady_ns() + collector->opts.deadline_ns;
	return 0;
}

/* `size` bytes into `at`. 0, or -1: the child is gone; -2: too late. */
static int receive(struct collector *collector, void *at, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = recv(collector->fd, (char *)at + got, size - got, 0);
		struct pollfd poll_fd = { .fd = collector->fd, .events = POLLIN };
		int64_t left_ns;

		if (n > 0) {
			got += (size_t)n;
			continue;
		}
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return -1;
		left_ns = collector->deadline_ns - clock_steady_ns();
		if (left_ns <= 0)
			return -2;
		(void)poll(&poll_fd, 1, (int)(left_ns / MS) + 1);
	}
	return 0;
}

/* One array of the answer, into memory that is reused. */
#define RECEIVE(collector, vec, wanted, most)                                              \
	__extension__({                                                                    \
		size_t count_ = (wanted);                                                  \
		int ret_ = -1;                                                             \
		if (count_ <= (most)) {                                                    \
			VEC_ROOM(vec, count_);                                             \
			(vec)->count = count_;                                             \
			ret_ = receive(collector, (vec)->at, count_ * sizeof(*(vec)->at)); \
		}                                                                          \
		ret_;                                                                      \
	})

/* Scalars of `from`, arrays of `to` emptied: theirs point nowhere here. */
static void take_scalars(struct snapshot *to, const struct snapshot *from)
{
	struct snapshot kept = *to;

	*to = *from;
	to->boards = kept.boards;
	to->processes = kept.processes;
	to->points = kept.points;
	to->events = kept.events;
	to->costs = kept.costs;
	to->boards.count = to->processes.count = to->points.count = 0;
	to->events.count = to->costs.count = 0;
}

static int receive_answer(struct collector *collector)
{
	const struct snapshot *from = &collector->answer.snapshot;
	struct snapshot *to = &collector->next;
	int ret = receive(collector, &collector->answer, sizeof(collector->answer));

	if (ret)
		return ret;
	if (collector->answer.magic != ANSWER_MAGIC)
		return -1;
	take_scalars(to, from);
	ret = RECEIVE(collector, &to->boards, from->boards.count, BOARDS_MAX);
	if (!ret)
		ret = RECEIVE(collector, &to->processes, from->processes.count, PROCESSES_MAX);
	if (!ret)
		ret = RECEIVE(collector, &to->points, from->points.count, POINTS_MAX);
	if (!ret)
		ret = RECEIVE(collector, &to->events, from->events.count, EVENTS_MAX);
	if (!ret)
		ret = RECEIVE(collector, &to->costs, from->costs.count, COSTS_MAX);
	return ret;
}

static int no_driver(struct collector *collector, struct err *err)
{
	collector->answer.line[sizeof(collector->answer.line) - 1] = 0;
	memcpy(collector->line, collector->answer.line, sizeof(collector->line));
	collector->status = collector->answer.status;
	collector->state = COLLECTOR_NO_DRIVER;
	drop(collector);
	if (!reap(collector, clock_steady_ns() + DEATH_NS))
		kill_child(collector);
	collector->failures = 0;
	collector->not_before_ns = clock_steady_ns() + 1000 * MS;
	return err_set(err, ERR_MISSING, "%s", collector->line);
}

static struct board *find_known(struct collector *collector, const struct board *board)
{
	for (size_t i = 0; i < collector->known.count; i++) {
		struct board *known = &collector->known.at[i];

		if (board->uuid[0]      ? !strcmp(known->uuid, board->uuid)
		    : board->pci_bus[0] ? !strcmp(known->pci_bus, board->pci_bus)
					: known->index == board->index)
			return known;
	}
	return NULL;
}

/* A lost card may not even say who it is, and one that fell off the bus is not
 * listed after a fresh start: both stay in the picture. */
static void remember_cards(struct collector *collector, struct snapshot *snapshot)
{
	for (size_t i = 0; i < collector->known.count; i++)
		collector->known.at[i].state = BOARD_GONE;
	for (size_t i = 0; i < snapshot->boards.count; i++) {
		struct board *board = &snapshot->boards.at[i];
		struct board *known = find_known(collector, board);

		if (board->parent >= 0 || (!known && !board->uuid[0]))
			continue;
		if (!known)
			known = VEC_ADD(&collector->known);
		/* Of a card lost before this child asked, /proc tells name and UUID. */
		if (board->uuid[0] && !board->cc_major) {
			board->cc_major = known->cc_major;
			board->cc_minor = known->cc_minor;
		}
		if (board->uuid[0]) {
			*known = *board;
			continue;
		}
		memcpy(board->uuid, known->uuid, sizeof(board->uuid));
		memcpy(board->name, known->name, sizeof(board->name));
		memcpy(board->pci_bus, known->pci_bus, sizeof(board->pci_bus));
		board->cc_major = known->cc_major;
		board->cc_minor = known->cc_minor;
		known->state = board->state;
	}
	for (size_t i = 0; i < collector->known.count; i++) {
		const struct board *known = &collector->known.at[i];
		struct board *gone;

		if (known->state != BOARD_GONE)
			continue;
		gone = VEC_ADD(&snapshot->boards);
		*gone = *known;
		memset(&gone->sample, 0, sizeof(gone->sample));
		memset(gone->origin, ORIGIN_LOST, sizeof(gone->origin));
		gone->sample.time_ns = snapshot->utc_ns;
	}
}

int collector_take(struct collector *collector, struct snapshot *snapshot, struct err *err)
{
	struct snapshot taken;
	int ret = collector_ask(collector, collector->opts.groups, err);

	if (ret < 0)
		return ret;
	ret = receive_answer(collector);
	if (ret == -2)
		return give_up(collector, err);
	if (ret < 0)
		return died(collector, err);
	collector->asked = false;
	if (collector->answer.failed)
		return no_driver(collector, err);
	collector->generation_last =
		collector->generation_base + collector->answer.snapshot.generation;
	collector->next.generation = collector->generation_last;
	if (collector->answer.leaves) {
		drop(collector);
		if (!reap(collector, clock_steady_ns() + DEATH_NS))
			kill_child(collector);
	}
	remember_cards(collector, &collector->next);
	taken = collector->next;
	collector->next = *snapshot;
	*snapshot = taken;
	collector->state = COLLECTOR_OK;
	collector->status = 0;
	collector->failures = 0;
	return 0;
}

int collector_fd(const struct collector *collector)
{
	return collector->fd;
}

int64_t collector_deadline_ns(const struct collector *collector)
{
	return collector->asked ? collector->deadline_ns : 0;
}

enum collector_state collector_state(const struct collector *collector)
{
	return collector->state;
}

int collector_status(const struct collector *collector)
{
	return collector->status;
}

uint32_t collector_started(const struct collector *collector)
{
	return collector->started;
}

uint32_t collector_hung(const struct collector *collector)
{
	return collector->hung;
}

pid_t collector_pid(const struct collector *collector)
{
	return collector->pid ? collector->pid : -1;
}

int64_t collector_cpu_ns(const struct collector *collector)
{
	clockid_t clock;

	if (!collector->pid || clock_getcpuclockid(collector->pid, &clock) != 0)
		return collector->gone_cpu_ns;
	return collector->gone_cpu_ns + clock_ns(clock);
}
