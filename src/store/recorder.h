/*
 * recorder.h - a directory of recordings, one file an hour.
 *
 * Files are HOST-20261130T080000Z.sonde: cut at full hours of UTC, or begun
 * when the recorder was; "-2" and so on follows where a name is taken, a word
 * for what is no part of the series ("-xid"). The directory is locked against a
 * second recorder. What a killed one left is closed at the start. Old files go
 * by age and by size of all, none but those that a recorder of this host wrote.
 *
 * Nothing ends a recording but recorder_finish: when the disk refuses, snapshots
 * are counted and the next try comes ten seconds later, in a new file; when the
 * clock is set, a new file begins. `tell` gets a line for each such thing.
 *
 * Times come in as arguments, so that a test can record a day in a second.
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/own.h"
#include "base/vec.h"
#include "model/sink.h"

typedef void recorder_tell(void *arg, const char *line);

struct recorder_opts {
	const char *dir;    /* made if need be */
	const char *host;   /* NULL: this machine's name */
	int64_t keep_ns;    /* 0: no limit */
	int64_t keep_bytes; /* 0: no limit */
	int64_t utc_ns;     /* now */
	recorder_tell *tell;
	void *tell_arg;
};

struct recorder;

/* ERR_BUSY: another recorder holds the directory. */
int recorder_open(const struct recorder_opts *opts, struct recorder **ret_recorder,
		  struct err *err);
/* NULL is a no-op. The open file stays as a killed recorder leaves it. */
void recorder_close(struct recorder *recorder);
DEFINE_OWNED(recorder, recorder_close);
/* Finish the open file. */
int recorder_finish(struct recorder *recorder, struct err *err);

/* The sink for the snapshot taken at this time. *ret_fresh: it is another than
 * before, with an empty session. NULL: the disk refuses; the snapshot is counted
 * as lost. */
struct sink *recorder_sink(struct recorder *recorder, int64_t utc_ns, int64_t monotonic_ns,
			   bool *ret_fresh);
/* After a snapshot's events. `failure`: NULL, or why the sink refused one. */
void recorder_commit(struct recorder *recorder, const struct err *failure);

/* The sink of the open file, for what comes between snapshots; NULL: there is none. */
struct sink *recorder_open_sink(const struct recorder *recorder);

/* A free path for a file that is no part of the series, as "HOST-...-xid.sonde".
 * Valid until the next call. */
const char *recorder_path(struct recorder *recorder, int64_t utc_ns, const char *word);

struct recorder_state {
	int64_t files;     /* begun */
	int64_t snapshots; /* kept */
	int64_t lost;      /* not kept */
	bool refused;      /* at present */
};
struct recorder_state recorder_state(const struct recorder *recorder);

/* A file of a directory, as its name says. */
struct recorder_file {
	char *path;
	int64_t utc_ns; /* of its beginning */
	int64_t bytes;
	bool in_series;   /* false: a flight record or the like */
	bool is_part;     /* being written, or left by a killed recorder */
	uint32_t attempt; /* 2 for "-2", else 1 */
};
struct recorder_files {
	VEC(struct recorder_file) at;
};

/* Files of `host` (NULL: all hosts) in order of time. Other files are left out. */
int recorder_list(const char *dir, const char *host, struct recorder_files *ret_files,
		  struct err *err);
void recorder_files_done(struct recorder_files *files);
