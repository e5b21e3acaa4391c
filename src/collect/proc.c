#include "collect/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

enum {
	FILE_MAX_BYTES = 1 << 20,    /* of /proc/stat, passwd, cgroup, ... */
	ENVIRON_MAX_BYTES = 1 << 17, /* SLURM_JOB_ID stands near the front */
	LOGS_MAX = 4096,
	FDS_MAX = 4096,
	LOGS_AGE_S = 10, /* a container that we don't know may be younger than our list */
};

/* Inode of the first PID namespace of every Linux: PROC_PID_INIT_INO,
 * include/linux/proc_ns.h. */
static const char FIRST_NAMESPACE[] = "pid:[4026531836]";

struct log_name {
	char id[72];
	char pod[256], namespace[72], container[256];
};

struct procs {
	bool real; /* the root is this machine: NSS may be asked */
	char *root;
	int proc; /* ROOT/proc */
	bool nested;
	int64_t boot_utc_ns; /* 0: unknown */
	int64_t ticks_per_s, page_bytes;
	struct buf passwd;
	struct map user_at; /* uid to 1 + index in users */
	VEC(char *) users;
	VEC(struct log_name) logs;
	int64_t logs_read_s; /* monotonic; 0: never */
	struct buf file;     /* of the file in hand */
};

void procs_close(struct procs *procs)
{
	if (!procs)
		return;
	if (procs->proc >= 0)
		(void)close(procs->proc);
	for (size_t i = 0; i < procs->users.count; i++)
		free(procs->users.at[i]);
	VEC_DONE(&procs->users);
	VEC_DONE(&procs->logs);
	map_done(&procs->user_at);
	buf_done(&procs->passwd);
	buf_done(&procs->file);
	free(procs->root);
	free(procs);
}

/* All of a file, at most `limit` bytes. False: it can't be read. */
static bool read_at(int folder, const char *path, size_t limit, struct buf *to)
{
	OWN(own_closep)
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	buf_clear(to);
	if (fd < 0)
		return false;
	while (to->len < limit) {
		size_t want = limit - to->len < 4096 ? limit - to->len : 4096;
		size_t before = to->len;
		ssize_t got = read(fd, buf_room(to, want), want);

		to->len = before + (got > 0 ? (size_t)got : 0);
		if (got <= 0)
			return got == 0 || before > 0;
	}
	return true;
}

static struct str content(const struct buf *buf)
{
	return (struct str){ buf->at ? buf->at : "", buf->len };
}

static bool read_pid(struct procs *procs, int64_t pid, const char *name, size_t limit)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%lld/%s", (long long)pid, name);
	return read_at(procs->proc, path, limit, &procs->file);
}

/* "btime 1700000000" in /proc/stat. */
static int64_t boot_time(struct procs *procs)
{
	struct str text;
	int64_t seconds;

	if (!read_at(procs->proc, "stat", FILE_MAX_BYTES, &procs->file))
		return 0;
	text = content(&procs->file);
	while (text.len) {
		struct str line = str_cut(&text, '\n');

		if (str_starts(line, "btime ") &&
		    str_to_i64((struct str){ line.at + 6, line.len - 6 }, &seconds) &&
		    seconds > 0 && seconds < INT64_MAX / 1000000000)
			return seconds * 1000000000;
	}
	return 0;
}

static bool own_namespace(int proc)
{
	char name[64];
	ssize_t len = readlinkat(proc, "self/ns/pid", name, sizeof(name) - 1);

	if (len <= 0)
		return false;
	name[len] = 0;
	return strcmp(name, FIRST_NAMESPACE) != 0;
}

int procs_open(const char *root, struct procs **ret_procs, struct err *err)
{
	OWN(procs_closep) struct procs *procs = mem_zero(sizeof(*procs));
	struct buf path = { 0 };

	procs->real = !*root || !strcmp(root, "/");
	procs->root = mem_text(procs->real ? "" : root);
	procs->ticks_per_s = sysconf(_SC_CLK_TCK);
	procs->page_bytes = sysconf(_SC_PAGESIZE);
	buf_printf(&path, "%s/proc", procs->root);
	procs->proc = open(path.at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (procs->proc < 0) {
		(void)err_errno(err, "%s", path.at);
		buf_done(&path);
		return err ? err->code : ERR_IO;
	}
	buf_clear(&path);
	buf_printf(&path, "%s/etc/passwd", procs->root);
	(void)read_at(AT_FDCWD, path.at, FILE_MAX_BYTES, &procs->passwd);
	buf_done(&path);
	procs->nested = own_namespace(procs->proc);
	procs->boot_utc_ns = boot_time(procs);
	*ret_procs = STEAL(procs);
	return 0;
}

bool procs_nested(const struct procs *procs)
{
	return procs->nested;
}

static char *passwd_name(struct str passwd, int64_t uid)
{
	while (passwd.len) {
		struct str line = str_cut(&passwd, '\n');
		struct str name = str_cut(&line, ':');
		int64_t its;

		(void)str_cut(&line, ':');
		if (name.len && str_to_i64(str_cut(&line, ':'), &its) && its == uid)
			return mem_copy(name.at, name.len + 1);
	}
	return NULL;
}

/* The file first: a directory service that hangs is asked only about users
 * that are not in it. */
static const char *user_name(struct procs *procs, int64_t uid)
{
	uint64_t *known = map_find(&procs->user_at, (uint64_t)uid);
	char *name, text[64];

	if (known)
		return procs->users.at[*known - 1];
	name = passwd_name(content(&procs->passwd), uid);
	if (name) {
		name[strcspn(name, ":")] = 0;
	} else if (procs->real) {
		struct passwd entry, *found = NULL;
		char space[4096];

		if (!getpwuid_r((uid_t)uid, &entry, space, sizeof(space), &found) && found)
			name = mem_text(found->pw_name);
	}
	if (!name) {
		(void)snprintf(text, sizeof(text), "%lld", (long long)uid);
		name = mem_text(text);
	}
	*VEC_ADD(&procs->users) = name;
	map_put(&procs->user_at, (uint64_t)uid, procs->users.count);
	return name;
}

int64_t proc_stat_field(struct str rest, int number)
{
	int64_t value = 0;

	for (int i = 3; i < number; i++)
		(void)str_cut(&rest, ' ');
	(void)str_to_i64(str_trim(str_cut(&rest, ' ')), &value);
	return value;
}

static int64_t ticks_to_ns(const struct procs *procs, int64_t ticks)
{
	int64_t ns = 1000000000 / procs->ticks_per_s;

	return ticks > 0 && ticks < INT64_MAX / 2 / ns ? ticks * ns : 0;
}

/* The name in stat may hold blanks and parentheses: it ends at the last one. */
static bool parse_stat(const struct procs *procs, struct str text, struct proc *ret)
{
	const char *open = memchr(text.at, '(', text.len);
	const char *close = open ? memrchr(text.at, ')', text.len) : NULL;
	struct str rest;
	int64_t pages;

	if (!close || close < open || close + 2 >= text.at + text.len)
		return false;
	proc_text(ret->comm, sizeof(ret->comm),
		  (struct str){ open + 1, (size_t)(close - open - 1) });
	rest = (struct str){ close + 2, (size_t)(text.at + text.len - close - 2) };
	ret->run_state = rest.at[0];
	ret->parent = proc_stat_field(rest, 4);
	ret->start_ticks = proc_stat_field(rest, 22);
	ret->cpu_ns = ticks_to_ns(procs, proc_stat_field(rest, 14)) +
		      ticks_to_ns(procs, proc_stat_field(rest, 15));
	pages = proc_stat_field(rest, 24);
	if (pages > 0 && pages < INT64_MAX / procs->page_bytes)
		ret->rss_bytes = pages * procs->page_bytes;
	if (procs->boot_utc_ns)
		ret->start_utc_ns = procs->boot_utc_ns + ticks_to_ns(procs, ret->start_ticks);
	return ret->run_state >= 'A' && ret->run_state <= 'z';
}

/* Only pid, state, run_state, parent, start_ticks, start_utc_ns, cpu_ns, rss_bytes and
 * comm: one file instead of five, for repeated reading. It does not look for
 * PROC_FOREIGN: for PIDs that procs_read knew. */
static enum proc_state procs_read_load(struct procs *procs, int64_t pid, struct proc *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->pid = pid;
	ret->uid = -1;
	ret->state = PROC_GONE;
	if (pid > 0 && read_pid(procs, pid, "stat", 4096) &&
	    parse_stat(procs, content(&procs->file), ret))
		ret->state = PROC_OK;
	return ret->state;
}

static void read_user(struct procs *procs, struct proc *ret)
{
	struct str text;
	int64_t uid;

	if (!read_pid(procs, ret->pid, "status", FILE_MAX_BYTES))
		return;
	text = content(&procs->file);
	while (text.len) {
		struct str line = str_cut(&text, '\n');

		if (!str_starts(line, "Uid:"))
			continue;
		/* real, effective, saved, of the file system */
		(void)str_cut(&line, '\t');
		(void)str_cut(&line, '\t');
		if (!str_to_i64(str_cut(&line, '\t'), &uid) || uid < 0)
			return;
		ret->uid = uid;
		proc_text(ret->user, sizeof(ret->user), str_of(user_name(procs, uid)));
		return;
	}
}

static void read_command(struct procs *procs, struct proc *ret)
{
	/* Cut characters at the end would make a '?' of a whole one. */
	if (!read_pid(procs, ret->pid, "cmdline", sizeof(ret->command) + 8))
		return;
	while (procs->file.len && !procs->file.at[procs->file.len - 1])
		procs->file.len--;
	for (size_t i = 0; i < procs->file.len; i++) {
		if (!procs->file.at[i])
			procs->file.at[i] = ' ';
	}
	proc_text(ret->command, sizeof(ret->command), content(&procs->file));
}

static void read_job(struct procs *procs, struct proc *ret)
{
	struct str text;

	if (*ret->group.slurm_job || !read_pid(procs, ret->pid, "environ", ENVIRON_MAX_BYTES))
		return;
	text = content(&procs->file);
	while (text.len) {
		struct str entry = str_cut(&text, 0);
		int64_t job;

		if (!str_starts(entry, "SLURM_JOB_ID="))
			continue;
		entry = (struct str){ entry.at + 13, entry.len - 13 };
		if (str_to_i64(entry, &job) && job > 0)
			proc_text(ret->group.slurm_job, sizeof(ret->group.slurm_job), entry);
		return;
	}
}

static void read_logs(struct procs *procs)
{
	struct buf path = { 0 };
	struct dirent *entry;
	DIR *folder;

	procs->logs.count = 0;
	buf_printf(&path, "%s/var/log/containers", procs->root);
	folder = opendir(path.at);
	buf_done(&path);
	if (!folder)
		return;
	while (procs->logs.count < LOGS_MAX && (entry = readdir(folder))) {
		struct str pod, namespace, container, id;
		struct log_name *log;

		if (!proc_log_name(str_of(entry->d_name), &pod, &namespace, &container, &id))
			continue;
		log = VEC_ADD(&procs->logs);
		proc_text(log->id, sizeof(log->id), id);
		proc_text(log->pod, sizeof(log->pod), pod);
		proc_text(log->namespace, sizeof(log->namespace), namespace);
		proc_text(log->container, sizeof(log->container), container);
	}
	(void)closedir(folder);
}

static bool name_pod(const struct procs *procs, struct proc *ret)
{
	for (size_t i = 0; i < procs->logs.count; i++) {
		const struct log_name *log = &procs->logs.at[i];

		if (strcmp(log->id, ret->group.container_id) != 0)
			continue;
		memcpy(ret->pod, log->pod, sizeof(ret->pod));
		memcpy(ret->namespace, log->namespace, sizeof(ret->namespace));
		memcpy(ret->container, log->container, sizeof(ret->container));
		return true;
	}
	return false;
}

static void read_group(struct procs *procs, struct proc *ret)
{
	struct timespec now;

	if (!read_pid(procs, ret->pid, "cgroup", FILE_MAX_BYTES))
		return;
	proc_group_parse(content(&procs->file), &ret->group);
	if (!*ret->group.container_id || name_pod(procs, ret))
		return;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if (procs->logs_read_s && now.tv_sec - procs->logs_read_s < LOGS_AGE_S)
		return;
	procs->logs_read_s = now.tv_sec ? now.tv_sec : 1;
	read_logs(procs);
	(void)name_pod(procs, ret);
}

static bool is_gpu_device(const char *path)
{
	return !strncmp(path, "/dev/nvidia", 11) || !strcmp(path, "/dev/dxg");
}

static bool has_gpu_open(const struct procs *procs, int64_t pid)
{
	char path[64], target[64];
	struct dirent *entry;
	bool found = false;
	DIR *folder;
	int fd;

	(void)snprintf(path, sizeof(path), "%lld/fd", (long long)pid);
	fd = openat(procs->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	for (int i = 0; !found && i < FDS_MAX && (entry = readdir(folder)); i++) {
		ssize_t len = readlinkat(fd, entry->d_name, target, sizeof(target) - 1);

		if (len <= 0)
			continue;
		target[len] = 0;
		found = is_gpu_device(target);
	}
	(void)closedir(folder);
	return found;
}

/* Drivers differ: some give the PIDs of the host whoever asks, newer ones
 * those of the asker's namespace and leave out whom it can't see. In a nested
 * namespace only an open NVIDIA device shows that the number means this
 * process. */
static bool is_meant(const struct procs *procs, int64_t pid)
{
	return !procs->nested || has_gpu_open(procs, pid);
}

static enum proc_state read_once(struct procs *procs, int64_t pid, struct proc *ret)
{
	struct proc again;

	if (procs_read_load(procs, pid, ret) != PROC_OK) {
		ret->state = procs->nested ? PROC_FOREIGN : PROC_GONE;
		return ret->state;
	}
	read_user(procs, ret);
	read_group(procs, ret);
	/* Arguments and environment are read through the process's memory map: of
	 * one that is stuck in the driver that could take forever. */
	if (ret->run_state != 'D') {
		read_command(procs, ret);
		read_job(procs, ret);
	}
	if (!is_meant(procs, pid)) {
		memset(ret, 0, sizeof(*ret));
		ret->pid = pid;
		ret->uid = -1;
		return ret->state = PROC_FOREIGN;
	}
	if (procs_read_load(procs, pid, &again) != PROC_OK ||
	    again.start_ticks != ret->start_ticks) {
		memset(ret, 0, sizeof(*ret));
		ret->pid = pid;
		ret->uid = -1;
		ret->state = PROC_GONE;
	}
	return ret->state;
}

enum proc_state procs_read(struct procs *procs, int64_t pid, struct proc *ret)
{
	enum proc_state state = read_once(procs, pid, ret);

	/* The number may belong to somebody else by now: look once more. */
	return state == PROC_GONE ? read_once(procs, pid, ret) : state;
}

static int by_number(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

size_t procs_with_gpu_open(struct procs *procs, int64_t *ret_pids, size_t room)
{
	int fd = openat(procs->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t count = 0;

	if (!folder) {
		if (fd >= 0)
			(void)close(fd);
		return 0;
	}
	while (count < room && (entry = readdir(folder))) {
		int64_t pid;

		if (str_to_i64(str_of(entry->d_name), &pid) && pid > 0 && has_gpu_open(procs, pid))
			ret_pids[count++] = pid;
	}
	(void)closedir(folder);
	qsort(ret_pids, count, sizeof(*ret_pids), by_number);
	return count;
}
