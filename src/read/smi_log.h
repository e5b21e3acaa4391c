/*
 * smi_log.h - one nvidia-smi output on its way into a session.
 *
 * Hides what all its forms have in common: which device a row means, the clock
 * (local time without a zone, or none), what becomes environment, and the
 * counts and notes on what was absent or foreign.
 *
 * Time. Stamps are local time of an unknown zone, so a file is a clock of its
 * own whose zero is its first stamp (kept as environment "local time of
 * zero"). Without stamps a round over the GPUs is one sample and the interval
 * is taken to be smi_log.step_ns, marked as assumed.
 *
 * Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/sink.h"
#include "read/smi_fields.h"

/* What a row says of the GPU it is about. */
struct smi_gpu {
	int64_t index; /* -1 unknown */
	struct str uuid, name, bus;
	struct str part;                          /* of MIG: "MIG 1"; empty: the GPU */
	int64_t memory_bytes, cc_major, cc_minor; /* 0 unknown */
};

struct smi_absent {
	const char *why;
	int64_t count;
};

/* A device row found before, by what the file says of it. */
struct smi_known {
	int64_t index;
	uint32_t uuid, bus, name, part, device;
};

struct smi_log {
	struct sink *sink;
	struct session *session;
	uint32_t source;
	const char *what; /* "dmon": for notes */
	int64_t step_ns;  /* between rounds when nothing says */
	bool steps;       /* it is a series even with one round */
	const char *hint; /* for the error of a file without rows; may be NULL */
	/* clock */
	bool has_zero; /* a stamp was seen */
	int64_t zero_local_ns, last_ns;
	int64_t round;   /* -1 before the first */
	struct map seen; /* what this round already had */
	bool stepped_back;
	/* rows */
	int64_t rows, samples;
	VEC(struct smi_known) known;
	/* loss and environment */
	VEC(struct smi_absent) absent;
	struct map env; /* device and key to the value last kept */
	int64_t env_kept, env_lost;
	int64_t strays;
	uint32_t first_stray; /* string */
};

void smi_log_begin(struct smi_log *log, const char *what, struct sink *sink, uint32_t source);
void smi_log_done(struct smi_log *log);

uint32_t smi_log_device(struct smi_log *log, const struct smi_gpu *gpu);
/* The same for a part of it, which is a device of its own. `words` and `numbers`
 * make its name, as in "GI 7 CI 0". False, counted as dropped: a number that no
 * card has, or too many parts for a file that is what it says. */
bool smi_log_part(struct smi_log *log, const struct smi_gpu *gpu, const char *const words[2],
		  const struct str numbers[2], uint32_t *ret_device);

/* A stamp of local time, ns since 1970 as if it were UTC, to source time. */
int64_t smi_log_stamp(struct smi_log *log, int64_t local_ns);
/* This row's thing (`key`, of one round) was there already: a new round. */
void smi_log_turn(struct smi_log *log, uint64_t key);
void smi_log_new_round(struct smi_log *log);
/* Source time of the present round, for rows without a stamp. */
int64_t smi_log_round_time(const struct smi_log *log);

/* A sample of the board, or of `process` on it unless that is SESSION_NONE. */
int smi_log_sample(struct smi_log *log, uint32_t device, uint32_t process, int64_t time_ns,
		   struct sample *sample, struct err *err);

/* The process, with what is known of it. "N/A", "-" and "" say nothing. */
uint32_t smi_log_process(struct smi_log *log, int64_t pid, struct str type, struct str name);

/* Environment, once for each change; SESSION_NONE: of the machine. Driver and
 * CUDA version get their common name too, by `key`. */
void smi_log_env(struct smi_log *log, uint32_t device, struct str key, struct str value);

void smi_log_absent(struct smi_log *log, const char *why);
/* A line that is not nvidia-smi's, or that cannot be read. */
void smi_log_stray(struct smi_log *log, struct str line);
/* The file ends inside of something that was `bytes` long so far. */
void smi_log_truncated(struct smi_log *log, int64_t bytes);

/* Put the field and count what is not there. true: it has a value. */
bool smi_log_put(struct smi_log *log, struct smi_values *values, const struct smi_field *field,
		 struct str text, struct str unit);

/* At the end of the file: notes, interval; ERR_FORMAT if no row was read. */
int smi_log_end(struct smi_log *log, struct input *input, struct err *err);

/* "2026/11/30 03:27:55.539", "20261130 03:27:55", "Mon Nov 30 03:15:15 2026",
 * also without the time of day, to ns since 1970 without regard to zones. */
bool smi_stamp(struct str text, int64_t *ret_local_ns);
/* "03:27:55", optional fraction: ns since midnight. */
bool smi_clock(struct str text, int64_t *ret_ns);
