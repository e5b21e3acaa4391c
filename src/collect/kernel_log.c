#include "collect/kernel_log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "know/fault_line.h"
#include "know/kernel_line.h"

/* A record of /dev/kmsg is at most 8 KiB (CONSOLE_EXT_LOG_MAX). */
enum { READ_BYTES = 16 << 10, LINE_MAX_BYTES = 64 << 10 };

enum log_kind { LOG_KMSG, LOG_FILE, LOG_JOURNAL };

struct kernel_log {
	enum log_kind kind;
	int fd;
	pid_t child; /* journalctl; 0 none */
	char name[256];
	char reason[256];
	ino_t inode;
	dev_t device;
	off_t offset;
	struct buf pending; /* what was read and not yet taken apart */
	size_t taken;
	bool skipping; /* a line that is too long, up to its end */
	struct buf memory;
	struct fault_parser parser;
	bool has_sequence;
	uint64_t sequence;
	int64_t lost;
};

static bool open_kmsg(struct kernel_log *log, const struct kernel_log_opts *opts)
{
	const char *path = opts->kmsg ? opts->kmsg : "/dev/kmsg";

	if (!*path || strlen(path) >= sizeof(log->name))
		return false;
	log->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (log->fd >= 0 && !opts->from_start)
		(void)lseek(log->fd, 0, SEEK_END);
	if (log->fd < 0) {
		struct err why = { 0 };

		(void)err_set(&why, ERR_IO, "%s: %s%s", path, strerror(errno),
			      errno == EPERM || errno == EACCES
				      ? " (as root, or with CAP_SYSLOG, or sysctl "
					"kernel.dmesg_restrict=0)"
				      : "");
		memcpy(log->reason, why.line, sizeof(log->reason) - 1);
		return false;
	}
	log->kind = LOG_KMSG;
	memcpy(log->name, path, strlen(path) + 1);
	return true;
}

static bool open_file(struct kernel_log *log, const char *path, bool from_start)
{
	struct stat at;

	log->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (log->fd < 0)
		return false;
	if (fstat(log->fd, &at) < 0 || !S_ISREG(at.st_mode)) {
		(void)close(log->fd);
		log->fd = -1;
		return false;
	}
	log->kind = LOG_FILE;
	log->inode = at.st_ino;
	log->device = at.st_dev;
	log->offset = from_start ? 0 : at.st_size;
	return true;
}

static bool open_files(struct kernel_log *log, const struct kernel_log_opts *opts)
{
	static const char *const USUAL[] = { "/var/log/kern.log", "/var/log/messages",
					     "/var/log/syslog", NULL };

	for (const char *const *path = opts->files ? opts->files : USUAL; *path; path++) {
		if (strlen(*path) < sizeof(log->name) && open_file(log, *path, opts->from_start)) {
			memcpy(log->name, *path, strlen(*path) + 1);
			return true;
		}
	}
	return false;
}

static bool open_journal(struct kernel_log *log)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	log->child = fork();
	if (log->child == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		sigset_t none;

		/* Who blocks signals to take them elsewhere must be able to end it. */
		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDERR_FILENO);
		(void)dup2(ends[1], STDOUT_FILENO);
		execlp("journalctl", "journalctl", "-k", "-f", "-n", "0", "-o", "json", NULL);
		_exit(127);
	}
	(void)close(ends[1]);
	if (log->child < 0) {
		log->child = 0;
		(void)close(ends[0]);
		return false;
	}
	log->kind = LOG_JOURNAL;
	log->fd = ends[0];
	(void)fcntl(log->fd, F_SETFL, O_NONBLOCK);
	memcpy(log->name, "journalctl", sizeof("journalctl"));
	return true;
}

int kernel_log_open(const struct kernel_log_opts *opts, struct kernel_log **ret_log,
		    struct err *err)
{
	OWN(kernel_log_closep) struct kernel_log *log = mem_zero(sizeof(*log));

	log->fd = -1;
	if (!open_kmsg(log, opts) && !(opts->journal && open_journal(log)) &&
	    !open_files(log, opts))
		return err_set(err, ERR_MISSING, "no kernel log can be read%s%s",
			       *log->reason ? ": " : "", log->reason);
	*ret_log = STEAL(log);
	return 0;
}

void kernel_log_close(struct kernel_log *log)
{
	if (!log)
		return;
	if (log->fd >= 0)
		(void)close(log->fd);
	if (log->child > 0) {
		(void)kill(log->child, SIGTERM);
		(void)waitpid(log->child, NULL, 0);
	}
	buf_done(&log->pending);
	buf_done(&log->memory);
	free(log);
}

/* The file was renamed away or cut: from now on the one that has its name. */
static bool rotated(struct kernel_log *log)
{
	struct stat at;

	if (log->kind != LOG_FILE || stat(log->name, &at) < 0)
		return false;
	if (at.st_ino == log->inode && at.st_dev == log->device) {
		if (at.st_size >= log->offset)
			return false;
		log->offset = 0;
		return true;
	}
	(void)close(log->fd);
	return open_file(log, log->name, true);
}

/* More bytes: 1, 0 none now, below 0 for good. */
static int fill(struct kernel_log *log, struct err *err)
{
	char bytes[READ_BYTES];
	ssize_t got;

	if (log->taken == log->pending.len) {
		buf_clear(&log->pending);
		log->taken = 0;
	}
	do {
		got = log->kind == LOG_FILE ? pread(log->fd, bytes, sizeof(bytes), log->offset)
					    : read(log->fd, bytes, sizeof(bytes));
		/* EPIPE: records were overwritten; the next read goes on behind them. */
	} while (got < 0 && (errno == EINTR || errno == EPIPE));
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (got < 0)
		return err_errno(err, "%s", log->name);
	if (!got && log->kind == LOG_JOURNAL)
		return err_set(err, ERR_IO, "journalctl has ended");
	if (!got)
		return rotated(log);
	log->offset += log->kind == LOG_FILE ? got : 0;
	buf_add(&log->pending, bytes, (size_t)got);
	return 1;
}

/* The next whole line; false: its end is not there yet. */
static bool next_line(struct kernel_log *log, struct str *ret_line)
{
	const char *at = log->pending.at ? log->pending.at + log->taken : "";
	size_t len = log->pending.len - log->taken;
	const char *end = len ? memchr(at, '\n', len) : NULL;
	bool skipped = log->skipping;

	if (!end) {
		if (len > LINE_MAX_BYTES) {
			log->skipping = true;
			log->taken = log->pending.len;
		}
		return false;
	}
	log->taken += (size_t)(end - at) + 1;
	log->skipping = false;
	*ret_line = skipped ? (struct str){ "", 0 } : (struct str){ at, (size_t)(end - at) };
	return true;
}

static void count_lost(struct kernel_log *log, const struct kernel_line *line)
{
	if (!line->has_sequence)
		return;
	if (log->has_sequence && line->sequence > log->sequence + 1 &&
	    line->sequence - log->sequence < INT32_MAX)
		log->lost += (int64_t)(line->sequence - log->sequence - 1);
	log->has_sequence = true;
	log->sequence = line->sequence;
}

static void set_time(const struct kernel_line *line, struct fault *fault)
{
	int64_t now_ns = clock_ns(CLOCK_REALTIME);

	fault->has_time = line->stamp == STAMP_UTC || line->stamp == STAMP_BOOT;
	fault->time_ns = now_ns;
	if (line->stamp == STAMP_UTC)
		fault->time_ns = line->stamp_ns;
	/* The kernel's log clock stands still while the machine sleeps. */
	if (line->stamp == STAMP_BOOT)
		fault->time_ns = now_ns - clock_steady_ns() + line->stamp_ns;
	if (line->has_day) {
		fault->day_s = line->day_s;
		fault->have |= FAULT_HAS(FAULT_DAY_S);
	}
}

int kernel_log_take(struct kernel_log *log, struct fault *ret_fault, struct err *err)
{
	for (;;) {
		struct kernel_line line;
		struct str text;

		if (!next_line(log, &text)) {
			int got = fill(log, err);

			if (got <= 0)
				return got;
			continue;
		}
		/* Further fields of a record. */
		if (!text.len || (log->kind == LOG_KMSG && *text.at == ' '))
			continue;
		kernel_line_parse(text, &log->memory, &line);
		count_lost(log, &line);
		if (fault_line_parse(&log->parser, line.message, ret_fault) != FAULT_LINE_FAULT)
			continue;
		set_time(&line, ret_fault);
		return 1;
	}
}

int kernel_log_fd(const struct kernel_log *log)
{
	return log->kind == LOG_FILE ? -1 : log->fd;
}

const char *kernel_log_name(const struct kernel_log *log)
{
	return log->name;
}

const char *kernel_log_reason(const struct kernel_log *log)
{
	return log->reason;
}

int64_t kernel_log_lost(const struct kernel_log *log)
{
	return log->lost;
}
