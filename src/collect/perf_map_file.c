#include "collect/perf_map_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/maps.h"
#include "collect/perf_map.h"
#include "collect/proc.h"

static const off_t FILE_MAX = 256 << 20;
enum { TURN_BYTES = 1 << 20, PART_BYTES = 64 << 10, TEXT_BYTES = 4096 };
/* Between two looks whether the file has grown; and whether there is one, doubled in vain. */
static const int64_t GROWN_NS = 1000000;
static const int64_t PAUSE_NS = 20000000, PAUSE_MAX_NS = 5000000000;
static const int64_t REST = 20;
/* Of the clocks of files and of processes. */
static const int64_t CLOCKS_APART_NS = 2000000000;

struct perf_map_file {
	const char *root;
	int64_t pid;
	struct perf_map *map; /* NULL: no file so far */
	int folder, file;
	struct buf name; /* of the file in its folder */
	struct stat was;
	off_t at;
	int64_t due_ns, pause_ns;
};

struct perf_map_file *perf_map_file_new(const char *root, int64_t pid)
{
	struct perf_map_file *file = mem_zero(sizeof(*file));

	file->root = root;
	file->pid = pid;
	file->folder = file->file = -1;
	file->pause_ns = PAUSE_NS;
	return file;
}

static void let_go(struct perf_map_file *file)
{
	perf_map_free(file->map);
	file->map = NULL;
	if (file->file >= 0)
		(void)close(file->file);
	file->file = -1;
	file->at = 0;
}

void perf_map_file_free(struct perf_map_file *file)
{
	if (!file)
		return;
	let_go(file);
	if (file->folder >= 0)
		(void)close(file->folder);
	buf_done(&file->name);
	free(file);
}

/* A file of the process in /proc; "" if it can't be read. */
static void text_of(const struct perf_map_file *file, const char *name, char text[TEXT_BYTES])
{
	struct buf path = { 0 };
	ssize_t len = -1;
	int from;

	buf_printf(&path, "%s/proc/%lld/%s", file->root, (long long)file->pid, name);
	from = open(path.at, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	buf_done(&path);
	if (from >= 0) {
		len = read(from, text, TEXT_BYTES - 1);
		(void)close(from);
	}
	text[len > 0 ? len : 0] = 0;
}

/* What it calls itself: the last number of "NSpid: 4711 12 1". */
static int64_t own_pid(const struct perf_map_file *file)
{
	char text[TEXT_BYTES];
	struct str rest;
	int64_t pid = file->pid;

	text_of(file, "status", text);
	rest = str_of(text);
	while (rest.at) {
		struct str line = str_cut(&rest, '\n');

		if (!str_starts(line, "NSpid:"))
			continue;
		while (line.at) {
			struct str word = str_cut(&line, '\t');
			int64_t number;

			if (str_to_i64(word, &number) && number > 0)
				pid = number;
		}
	}
	return pid;
}

static bool find_folder(struct perf_map_file *file)
{
	struct maps_files places = { 0 };
	struct buf path = { 0 };
	/* In a container /tmp could be a link that leads elsewhere to us. */
	int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;

	maps_files_load(&places, file->root, file->pid);
	if (places.prefix)
		flags |= O_NOFOLLOW;
	buf_printf(&path, "%.*s/tmp", places.prefix ? (int)places.prefix : (int)strlen(file->root),
		   places.prefix ? places.path.at : file->root);
	file->folder = open(path.at, flags);
	buf_clear(&file->name);
	buf_printf(&file->name, "perf-%lld.map", (long long)own_pid(file));
	maps_files_done(&places);
	buf_done(&path);
	return file->folder >= 0;
}

/* When the process began, by the clock of files; 0: it has gone, or it is no time. */
static int64_t began_ns(const struct perf_map_file *file)
{
	char text[TEXT_BYTES];
	const char *name_end;
	int64_t ticks, hz = sysconf(_SC_CLK_TCK);

	text_of(file, "stat", text);
	name_end = strrchr(text, ')');
	ticks = name_end && name_end[1] == ' ' ? proc_stat_field(str_of(name_end + 2), 22) : 0;
	if (ticks <= 0 || hz <= 0 || ticks > INT64_MAX / 1000000000)
		return 0;
	return clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) + ticks * 1000000000 / hz;
}

static bool is_its(const struct perf_map_file *file, const struct stat *is)
{
	struct buf path = { 0 };
	struct stat process;
	bool alive;
	int64_t changed_ns = (int64_t)is->st_mtim.tv_sec * 1000000000 + is->st_mtim.tv_nsec;

	buf_printf(&path, "%s/proc/%lld", file->root, (long long)file->pid);
	alive = stat(path.at, &process) == 0;
	buf_done(&path);
	return S_ISREG(is->st_mode) &&
	       (is->st_uid == 0 || is->st_uid == geteuid() ||
		(alive && is->st_uid == process.st_uid)) &&
	       changed_ns > began_ns(file) - CLOCKS_APART_NS;
}

static bool open_file(struct perf_map_file *file)
{
	struct stat is;

	if (file->folder < 0 && !find_folder(file))
		return false;
	/* To open a FIFO or a device is felt by others. */
	if (fstatat(file->folder, file->name.at, &is, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !is_its(file, &is))
		return false;
	file->file = openat(file->folder, file->name.at,
			    O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (file->file < 0)
		return false;
	if (fstat(file->file, &file->was) < 0 || !is_its(file, &file->was)) {
		let_go(file);
		return false;
	}
	file->map = perf_map_new();
	return true;
}

/* Another file, or other bytes in it. */
static bool is_new(const struct perf_map_file *file)
{
	struct stat is;

	if (fstat(file->file, &is) == 0 && is.st_size < file->at)
		return true;
	return fstatat(file->folder, file->name.at, &is, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (is.st_ino != file->was.st_ino || is.st_dev != file->was.st_dev);
}

static void read_on(struct perf_map_file *file)
{
	char part[PART_BYTES];
	ssize_t len = 1;

	for (off_t read = 0; len > 0 && read < TURN_BYTES && file->at < FILE_MAX; read += len) {
		len = pread(file->file, part, sizeof(part), file->at);
		if (len <= 0)
			break;
		perf_map_feed(file->map, part, (size_t)len);
		file->at += len;
	}
}

static void refresh(struct perf_map_file *file, int64_t now_ns)
{
	int64_t before_ns = clock_steady_ns(), rest_ns;
	bool is_python;

	if (now_ns < file->due_ns)
		return;
	if (file->map && is_new(file))
		let_go(file);
	if (!file->map && !open_file(file)) {
		file->due_ns = now_ns + file->pause_ns;
		file->pause_ns = file->pause_ns < PAUSE_MAX_NS ? 2 * file->pause_ns : PAUSE_MAX_NS;
		return;
	}
	file->pause_ns = PAUSE_NS;
	read_on(file);
	(void)perf_map_find(file->map, 0, &is_python); /* its cost belongs to the reading's */
	rest_ns = (clock_steady_ns() - before_ns) * REST;
	file->due_ns = now_ns + (rest_ns > GROWN_NS ? rest_ns : GROWN_NS);
}

const char *perf_map_file_find(struct perf_map_file *file, uint64_t address, int64_t now_ns,
			       bool *ret_is_python)
{
	*ret_is_python = false;
	refresh(file, now_ns);
	return file->map ? perf_map_find(file->map, address, ret_is_python) : NULL;
}
