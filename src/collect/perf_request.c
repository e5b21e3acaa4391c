#include "collect/perf_request.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/vec.h"

enum { MAPS_MAX = 65536, HEAD_BYTES = 4096, TOLD_BYTES_MAX = 1 << 20 };
/* The kernel's own limit for arguments and environment of a process is 6 MiB at most by default
 * (a quarter of the stack's). */
static const size_t TEXT_MAX = 8 << 20;

/* Who asked for a map. */
enum asker { ASKER_UNKNOWN, ASKER_US, ASKER_OTHER };

struct appeared {
	int64_t pid;
	enum asker asker;
	dev_t device;
	ino_t inode;
};

struct perf_request {
	const char *root;
	struct buf mark;
	int folder, events, stop;
	int told; /* memory that processes write their numbers into */
	bool overrun, started;
	pthread_t thread;
	/* The thread's until it has ended. */
	VEC(struct appeared) appeared;
};

/* All of a file of a process in /proc. */
static void read_proc(const struct perf_request *request, int64_t pid, const char *name,
		      struct buf *out)
{
	struct buf path = { 0 };
	char part[16384];
	ssize_t len = 1;
	int file;

	buf_printf(&path, "%s/proc/%lld/%s", request->root, (long long)pid, name);
	file = open(path.at, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	buf_done(&path);
	while (file >= 0 && len > 0 && out->len < TEXT_MAX) {
		len = read(file, part, sizeof(part));
		if (len > 0)
			buf_add(out, part, (size_t)len);
	}
	if (file >= 0)
		(void)close(file);
}

/* One of the texts that a byte 0 ends is `text`. */
static bool has_text(const struct buf *texts, const char *text)
{
	struct str rest = { texts->at, texts->len };

	while (rest.at && rest.len) {
		if (str_is(str_cut(&rest, 0), text))
			return true;
	}
	return false;
}

/* "python -X perf", "-Xperf_jit": it would have written one without us. */
static bool asks_itself(const struct buf *arguments)
{
	struct str rest = { arguments->at, arguments->len };
	bool after_x = false;

	while (rest.at && rest.len) {
		struct str word = str_cut(&rest, 0);

		if (str_starts(word, "-Xperf") || (after_x && str_starts(word, "perf")))
			return true;
		after_x = str_is(word, "-X");
	}
	return false;
}

static enum asker asker_of(const struct perf_request *request, int64_t pid)
{
	struct buf environment = { 0 }, arguments = { 0 };
	enum asker asker = ASKER_UNKNOWN; /* it has gone, or may not be looked at */

	read_proc(request, pid, "environ", &environment);
	read_proc(request, pid, "cmdline", &arguments);
	if (environment.len)
		asker = has_text(&environment, request->mark.at) && !asks_itself(&arguments)
				? ASKER_US
				: ASKER_OTHER;
	buf_done(&environment);
	buf_done(&arguments);
	return asker;
}

/* "perf-4711.map"; 0: it is called otherwise. */
static int64_t pid_in(const char *name)
{
	struct str text = str_of(name);
	int64_t pid;

	if (!str_starts(text, "perf-") || !str_ends(text, ".map") || text.len <= 9)
		return 0;
	text.at += 5;
	text.len -= 9;
	return str_to_i64(text, &pid) && pid > 0 && *text.at != '+' && *text.at != '0' ? pid : 0;
}

static void look_at(struct perf_request *request, const char *name)
{
	struct appeared file = { .pid = pid_in(name) };
	struct stat is;

	if (!file.pid)
		return;
	file.asker = asker_of(request, file.pid);
	if (file.asker == ASKER_OTHER ||
	    fstatat(request->folder, name, &is, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(is.st_mode))
		return;
	if (request->appeared.count >= MAPS_MAX) {
		request->overrun = true;
		return;
	}
	file.device = is.st_dev;
	file.inode = is.st_ino;
	*VEC_ADD(&request->appeared) = file;
}

/* False: there are no more at this time. */
static bool take_events(struct perf_request *request)
{
	_Alignas(struct inotify_event) char bytes[16384];
	ssize_t len = read(request->events, bytes, sizeof(bytes));

	for (ssize_t at = 0; at < len;) {
		const struct inotify_event *event = (const void *)(bytes + at);

		if (event->mask & IN_Q_OVERFLOW)
			request->overrun = true;
		else if (event->len)
			look_at(request, event->name);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	return len > 0;
}

static void *watch(void *arg)
{
	/* The kernel keeps 16384: where files are made faster than they are looked at, the
	 * end must be seen all the same. */
	enum { TURNS = 512 };
	struct perf_request *request = arg;
	struct pollfd wait[] = { { .fd = request->events, .events = POLLIN },
				 { .fd = request->stop, .events = POLLIN } };

	do {
		if (poll(wait, 2, -1) < 0 && errno != EINTR)
			break;
		for (int i = 0; i < TURNS && take_events(request); i++)
			;
	} while (!wait[1].revents);
	return NULL;
}

static int open_watch(struct perf_request *request, struct err *err)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/tmp", request->root);
	request->folder = open(path.at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	request->events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	request->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (request->folder < 0 || request->events < 0 || request->stop < 0 || request->told < 0 ||
	    inotify_add_watch(request->events, path.at, IN_CREATE | IN_ONLYDIR) < 0)
		(void)err_errno(err, "%s: it can't be watched for perf maps", path.at);
	else if (!thread_start(&request->thread, watch, request))
		(void)err_set(err, ERR_IO, "%s: no thread to watch it for perf maps", path.at);
	else
		request->started = true;
	buf_done(&path);
	return request->started ? 0 : ERR_IO;
}

int perf_request_open(const char *root, struct perf_request **ret_request, struct err *err)
{
	struct perf_request *request = mem_zero(sizeof(*request));

	request->root = root;
	request->folder = request->events = request->stop = -1;
	request->told = memfd_create("sonde-perf-maps", MFD_CLOEXEC);
	buf_printf(&request->mark, "%s=/proc/%d/fd/%d", PERF_REQUEST_MARK, (int)getpid(),
		   request->told);
	if (open_watch(request, err) < 0) {
		(void)perf_request_close(request);
		return err->code;
	}
	*ret_request = request;
	return 0;
}

const char *perf_request_mark(const struct perf_request *request)
{
	return request->mark.at;
}

/* What CPython writes, or nothing so far. */
static bool is_pythons(int file)
{
	char head[HEAD_BYTES];
	ssize_t len = pread(file, head, sizeof(head), 0);
	struct str rest = { head, len > 0 ? (size_t)len : 0 }, line = str_cut(&rest, '\n');

	return len == 0 || (len > 0 && str_find(line, " py::"));
}

static bool is_same(const struct stat *is, const struct appeared *file)
{
	return S_ISREG(is->st_mode) && is->st_dev == file->device && is->st_ino == file->inode;
}

/* The file, if it is still what appeared and CPython's; else -1. */
static int open_map(const struct perf_request *request, const struct appeared *file,
		    const char *name)
{
	struct stat is;
	int opened = -1;

	if (fstatat(request->folder, name, &is, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&is, file))
		opened = openat(request->folder, name,
				O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (opened >= 0 && (fstat(opened, &is) < 0 || !is_same(&is, file) || !is_pythons(opened) ||
			    (file->asker == ASKER_UNKNOWN && is.st_uid != geteuid()))) {
		(void)close(opened);
		return -1;
	}
	return opened;
}

/* A number a line. */
static void read_told(const struct perf_request *request, struct map *pids)
{
	char *text = mem_alloc(TOLD_BYTES_MAX);
	ssize_t len = pread(request->told, text, TOLD_BYTES_MAX, 0);
	struct str rest = { text, len > 0 ? (size_t)len : 0 };

	while (rest.at && rest.len) {
		int64_t pid;

		if (str_to_i64(str_cut(&rest, '\n'), &pid) && pid > 0)
			map_put(pids, (uint64_t)pid, 1);
	}
	free(text);
}

static void remove_maps(const struct perf_request *request, struct perf_request_counts *counts)
{
	struct map told = { 0 };

	read_told(request, &told);
	for (size_t i = 0; i < request->appeared.count; i++) {
		struct appeared file = request->appeared.at[i];
		struct buf name = { 0 };
		int opened;

		if (file.asker == ASKER_UNKNOWN && map_find(&told, (uint64_t)file.pid))
			file.asker = ASKER_US;
		buf_printf(&name, "perf-%lld.map", (long long)file.pid);
		opened = open_map(request, &file, name.at);
		counts->seen += file.asker == ASKER_US;
		counts->unsure += file.asker == ASKER_UNKNOWN && opened >= 0;
		if (file.asker == ASKER_US && opened >= 0)
			counts->removed += unlinkat(request->folder, name.at, 0) == 0;
		if (opened >= 0)
			(void)close(opened);
		buf_done(&name);
	}
	map_done(&told);
}

struct perf_request_counts perf_request_close(struct perf_request *request)
{
	struct perf_request_counts counts = { 0 };
	uint64_t one = 1;

	if (!request)
		return counts;
	if (request->started) {
		(void)!write(request->stop, &one, sizeof(one));
		(void)pthread_join(request->thread, NULL);
		remove_maps(request, &counts);
	}
	counts.overrun = request->overrun;
	if (request->folder >= 0)
		(void)close(request->folder);
	if (request->events >= 0)
		(void)close(request->events);
	if (request->stop >= 0)
		(void)close(request->stop);
	if (request->told >= 0)
		(void)close(request->told);
	VEC_DONE(&request->appeared);
	buf_done(&request->mark);
	free(request);
	return counts;
}
