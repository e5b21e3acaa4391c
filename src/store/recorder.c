#include "store/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "model/note.h"
#include "store/store.h"

static const int64_t NS_PER_S = 1000000000;
static const int64_t NS_PER_HOUR = 3600 * 1000000000LL;

/* A killed process loses a second, a machine without power ten. */
static const int64_t FLUSH_NS = 1000000000;
static const int64_t DURABLE_NS = 10 * 1000000000LL;
static const int64_t RETRY_NS = 10 * 1000000000LL;
static const int64_t PRUNE_NS = 60 * 1000000000LL;

/* More than NTP slews in an hour (500 ppm: 1.8 s): somebody set the clock. */
static const int64_t CLOCK_STEP_NS = 2 * 1000000000LL;

enum { HOST_MAX = 64 };

struct recorder {
	char *dir, *name;
	char host[HOST_MAX + 1];
	int lock;
	int64_t keep_ns, keep_bytes;
	recorder_tell *tell;
	void *tell_arg;
	/* the open file */
	struct store *store;
	char *path;
	int64_t hour, clock_ns; /* of its beginning; UTC - monotonic then */
	bool described;
	/* now */
	int64_t utc_ns, monotonic_ns;
	int64_t next_flush_ns, next_durable_ns, next_try_ns, next_prune_ns;
	int64_t lost; /* not yet told to a file */
	struct recorder_state state;
};

static void tell(const struct recorder *recorder, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void tell(const struct recorder *recorder, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (recorder->tell)
		recorder->tell(recorder->tell_arg, line);
}

/* What may stand in a file name of any system. */
static void clean_host(const char *from, char to[HOST_MAX + 1])
{
	size_t len = 0;

	for (; *from && len < HOST_MAX; from++) {
		bool plain = (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z') ||
			     (*from >= '0' && *from <= '9') || *from == '-' ||
			     (*from == '.' && len);

		to[len++] = plain ? *from : '_';
	}
	if (!len)
		to[len++] = '_';
	to[len] = 0;
}

static int lock_dir(struct recorder *recorder, struct err *err)
{
	struct buf path = { 0 };
	char pid[24] = "";
	ssize_t got;
	int ret = 0;

	if (mkdir(recorder->dir, 0755) < 0 && errno != EEXIST)
		return err_errno(err, "%s", recorder->dir);
	buf_printf(&path, "%s/.sonde-monitor.lock", recorder->dir);
	recorder->lock = open(path.at, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (recorder->lock < 0) {
		ret = err_errno(err, "%s", path.at);
	} else if (flock(recorder->lock, LOCK_EX | LOCK_NB) < 0) {
		got = pread(recorder->lock, pid, sizeof(pid) - 1, 0);
		pid[got > 0 ? got : 0] = 0;
		ret = err_set(err, ERR_BUSY, "%s: another sonde monitor records there (pid %.*s)",
			      recorder->dir, (int)strcspn(pid, "\n"), *pid ? pid : "unknown");
	} else {
		int len = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());

		/* Only a courtesy to whoever is refused: a full disk does not matter. */
		if (ftruncate(recorder->lock, 0) < 0 ||
		    pwrite(recorder->lock, pid, (size_t)len, 0) < 0)
			ret = 0;
	}
	buf_done(&path);
	return ret;
}

/* Files of killed recorders. `path` ends in ".part". */
static void recover(const struct recorder *recorder, const char *path)
{
	char *whole = mem_text(path);
	struct err err = { 0 };
	int ret;

	whole[strlen(whole) - strlen(".part")] = 0;
	ret = store_recover(whole, &err);
	if (ret > 0)
		tell(recorder, "%s: closed what an earlier recording left", whole);
	else if (ret < 0)
		tell(recorder, "left as it is: %s", err.line);
	free(whole);
}

static void recover_all(const struct recorder *recorder)
{
	struct recorder_files files = { 0 };

	if (recorder_list(recorder->dir, recorder->host, &files, NULL) >= 0) {
		for (size_t i = 0; i < files.at.count; i++)
			if (files.at.at[i].is_part)
				recover(recorder, files.at.at[i].path);
	}
	recorder_files_done(&files);
}

static bool expired(const struct recorder *recorder, const struct recorder_file *file,
		    int64_t bytes)
{
	if (recorder->keep_ns && file->utc_ns + NS_PER_HOUR < recorder->utc_ns - recorder->keep_ns)
		return true;
	return recorder->keep_bytes && bytes > recorder->keep_bytes;
}

/* Oldest first, until age and size hold. Never one that is being written. */
static void prune(struct recorder *recorder)
{
	struct recorder_files files = { 0 };
	int64_t bytes = 0;

	recorder->next_prune_ns = recorder->monotonic_ns + PRUNE_NS;
	if ((!recorder->keep_ns && !recorder->keep_bytes) ||
	    recorder_list(recorder->dir, recorder->host, &files, NULL) < 0)
		return;
	for (size_t i = 0; i < files.at.count; i++)
		bytes += files.at.at[i].bytes;
	for (size_t i = 0; i < files.at.count; i++) {
		const struct recorder_file *file = &files.at.at[i];

		if (file->is_part || !expired(recorder, file, bytes) ||
		    !store_is_recording(file->path))
			continue;
		if (unlink(file->path) == 0)
			bytes -= file->bytes;
	}
	recorder_files_done(&files);
}

int recorder_open(const struct recorder_opts *opts, struct recorder **ret_recorder, struct err *err)
{
	OWN(recorder_closep) struct recorder *recorder = mem_zero(sizeof(*recorder));
	char host[256] = "";

	recorder->lock = -1;
	recorder->dir = mem_text(opts->dir);
	recorder->keep_ns = opts->keep_ns;
	recorder->keep_bytes = opts->keep_bytes;
	recorder->tell = opts->tell;
	recorder->tell_arg = opts->tell_arg;
	recorder->utc_ns = opts->utc_ns;
	if (!opts->host && gethostname(host, sizeof(host) - 1) < 0)
		return err_errno(err, "name of this machine");
	clean_host(opts->host ? opts->host : host, recorder->host);
	if (lock_dir(recorder, err) < 0)
		return err->code;
	recover_all(recorder);
	prune(recorder);
	*ret_recorder = STEAL(recorder);
	return 0;
}

void recorder_close(struct recorder *recorder)
{
	if (!recorder)
		return;
	store_close(recorder->store);
	own_closep(&recorder->lock);
	free(recorder->path);
	free(recorder->name);
	free(recorder->dir);
	free(recorder);
}

static bool taken(const char *path)
{
	struct buf part = { 0 };
	struct stat st;
	bool is = lstat(path, &st) == 0;

	buf_printf(&part, "%s.part", path);
	is = is || lstat(part.at, &st) == 0;
	buf_done(&part);
	return is;
}

/* The first of NAME.sonde, NAME-2.sonde, ... that is free, or NAME-WORD.sonde. */
static char *free_path(const struct recorder *recorder, int64_t utc_ns, const char *word)
{
	time_t seconds = (time_t)(utc_ns / NS_PER_S);
	struct tm tm = { 0 };
	char stamp[32];
	struct buf path = { 0 };

	(void)gmtime_r(&seconds, &tm);
	(void)strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
	for (unsigned int attempt = 1; attempt < 100000; attempt++) {
		buf_clear(&path);
		buf_printf(&path, "%s/%s-%s", recorder->dir, recorder->host, stamp);
		if (word)
			buf_printf(&path, "-%s", word);
		if (attempt > 1)
			buf_printf(&path, word ? "%u" : "-%u", attempt);
		buf_text(&path, ".sonde");
		if (!taken(path.at))
			break;
	}
	return path.at;
}

const char *recorder_path(struct recorder *recorder, int64_t utc_ns, const char *word)
{
	free(recorder->name);
	recorder->name = free_path(recorder, utc_ns, word);
	return recorder->name;
}

int recorder_finish(struct recorder *recorder, struct err *err)
{
	int ret = 0;

	if (recorder->store)
		ret = store_finish(recorder->store, err);
	store_close(recorder->store);
	recorder->store = NULL;
	return ret;
}

/* The disk refuses: what is in the file stays in it, and we try again later. */
static void refuse(struct recorder *recorder, const struct err *err)
{
	if (!recorder->state.refused)
		tell(recorder, "cannot record: %s; goes on, tries again every %d s", err->line,
		     (int)(RETRY_NS / NS_PER_S));
	recorder->state.refused = true;
	recorder->next_try_ns = recorder->monotonic_ns + RETRY_NS;
	store_close(recorder->store);
	recorder->store = NULL;
}

static int begin_file(struct recorder *recorder, bool at_hour, struct err *err)
{
	int64_t start_ns = recorder->utc_ns;
	int ret = 0;

	/* The file that the disk refused. */
	if (recorder->path && recorder->state.refused)
		ret = store_recover(recorder->path, err);
	if (ret == ERR_IO)
		return ret;
	prune(recorder);
	if (at_hour)
		start_ns -= start_ns % NS_PER_HOUR;
	free(recorder->path);
	recorder->path = free_path(recorder, start_ns, NULL);
	recorder->described = false;
	recorder->hour = recorder->utc_ns / NS_PER_HOUR;
	recorder->clock_ns = recorder->utc_ns - recorder->monotonic_ns;
	recorder->next_flush_ns = recorder->monotonic_ns;
	recorder->next_durable_ns = recorder->monotonic_ns;
	return store_create_recording(recorder->path, &recorder->store, err);
}

/* Close the open file if the hour is over or the clock was set. True: the next
 * begins at the full hour. */
static bool end_file(struct recorder *recorder)
{
	int64_t step_ns = recorder->utc_ns - recorder->monotonic_ns - recorder->clock_ns;
	bool stepped = step_ns > CLOCK_STEP_NS || step_ns < -CLOCK_STEP_NS;
	struct unit_text text;
	struct err err = { 0 };

	if (!recorder->store || (!stepped && recorder->utc_ns / NS_PER_HOUR == recorder->hour))
		return false;
	if (stepped)
		tell(recorder, "the clock was set %s by %s: a new file begins",
		     step_ns < 0 ? "back" : "forward",
		     units_ns(&text, step_ns < 0 ? -step_ns : step_ns));
	if (recorder_finish(recorder, &err) < 0) {
		refuse(recorder, &err);
		recorder->next_try_ns = recorder->monotonic_ns;
	}
	return !stepped;
}

struct sink *recorder_sink(struct recorder *recorder, int64_t utc_ns, int64_t monotonic_ns,
			   bool *ret_fresh)
{
	struct err err = { 0 };
	bool at_hour;

	*ret_fresh = false;
	recorder->utc_ns = utc_ns;
	recorder->monotonic_ns = monotonic_ns;
	at_hour = end_file(recorder);
	if (monotonic_ns >= recorder->next_prune_ns)
		prune(recorder);
	if (recorder->store)
		return store_sink(recorder->store);
	if (recorder->state.refused && monotonic_ns < recorder->next_try_ns) {
		recorder->lost++;
		recorder->state.lost++;
		return NULL;
	}
	if (begin_file(recorder, at_hour, &err) < 0) {
		refuse(recorder, &err);
		recorder->lost++;
		recorder->state.lost++;
		return NULL;
	}
	recorder->state.files++;
	*ret_fresh = true;
	return store_sink(recorder->store);
}

struct sink *recorder_open_sink(const struct recorder *recorder)
{
	return recorder->store ? store_sink(recorder->store) : NULL;
}

/* Once a file has its source: whose it is, and what is missing before it. */
static void describe(struct recorder *recorder)
{
	struct session *session = store_session(recorder->store);

	if (!session->sources.count)
		return;
	if (!recorder->described) {
		if (!session->sources.at[0].file)
			session->sources.at[0].file =
				session_string(session, recorder->host, strlen(recorder->host));
		session_env(session, 0, SESSION_NONE, STR("host"), str_of(recorder->host));
		session_env(session, 0, SESSION_NONE, STR("recorder"),
			    STR("sonde monitor " SONDE_VERSION));
		recorder->described = true;
	}
	if (recorder->lost) {
		session_loss(session, 0, LOSS_dropped, recorder->lost);
		session_note(session, 0, NOTE_DISK_REFUSED, (long long)recorder->lost);
	}
}

void recorder_commit(struct recorder *recorder, const struct err *failure)
{
	struct err err = { 0 };
	bool durably = recorder->monotonic_ns >= recorder->next_durable_ns;
	int ret;

	if (!recorder->store)
		return;
	if (!failure && store_session(recorder->store)->sources.count)
		session_loss(store_session(recorder->store), 0, LOSS_seen, 1);
	if (!failure && recorder->monotonic_ns < recorder->next_flush_ns) {
		recorder->state.snapshots++;
		return;
	}
	if (failure) {
		err = *failure;
		ret = err.code;
	} else {
		describe(recorder);
		ret = durably ? store_flush_durably(recorder->store, &err)
			      : store_flush(recorder->store, &err);
	}
	if (ret < 0) {
		recorder->lost++;
		recorder->state.lost++;
		refuse(recorder, &err);
		return;
	}
	recorder->state.snapshots++;
	if (recorder->state.refused)
		tell(recorder, "%s: recording goes on; %lld snapshot(s) were lost", recorder->path,
		     (long long)recorder->lost);
	recorder->state.refused = false;
	recorder->lost = 0;
	recorder->next_flush_ns = recorder->monotonic_ns + FLUSH_NS;
	if (durably)
		recorder->next_durable_ns = recorder->monotonic_ns + DURABLE_NS;
}

struct recorder_state recorder_state(const struct recorder *recorder)
{
	return recorder->state;
}
